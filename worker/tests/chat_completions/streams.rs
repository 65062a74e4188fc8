//! Streams as servers of every sort send them, and what comes of them. A row: its name, the
//! payloads of its `data:` lines, what is expected.

use serde_json::{Map, Value, json};

use super::*;

/// Expected of a stream: the reply's calls as `[id, tool, input]`, where `null` is an id of our own
/// and `"told"` an input that tells the model of a fault; text; tokens out, or `null` if estimated.
fn reply(calls: Value, text: &str, tokens_out: Value) -> Value {
    json!({ "calls": calls, "text": text, "out": tokens_out })
}

fn calls(calls: Value) -> Value {
    reply(calls, "", Value::Null)
}

fn retry(reason: &str) -> Value {
    json!({ "retry": reason })
}

fn chunk(delta: Value, finish: Value) -> Value {
    json!({
        "id": "c", "object": "chat.completion.chunk", "created": 1, "model": "house",
        "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }],
    })
}

fn said(text: &str) -> Value {
    chunk(json!({ "content": text }), Value::Null)
}

fn end(reason: &str) -> Value {
    chunk(json!({}), reason.into())
}

fn done() -> Value {
    "[DONE]".into()
}

fn pieces(list: Value) -> Value {
    chunk(json!({ "tool_calls": list }), Value::Null)
}

/// One call's piece; what is `null` is left out.
fn piece(index: Value, id: Value, name: Value, arguments: Value) -> Value {
    let mut call = Map::new();
    let mut function = Map::new();
    for (fields, field, value) in [
        (0, "index", index),
        (0, "id", id),
        (1, "name", name),
        (1, "arguments", arguments),
    ] {
        if !value.is_null() {
            let into = if fields == 0 {
                &mut call
            } else {
                &mut function
            };
            into.insert(field.to_owned(), value);
        }
    }
    call.insert("type".to_owned(), "function".into());
    call.insert("function".to_owned(), function.into());
    call.into()
}

fn one(index: Value, id: Value, name: Value, arguments: Value) -> Value {
    pieces(json!([piece(index, id, name, arguments)]))
}

const NONE: Value = Value::Null;
const COLOUR: &str = r#"{"question":"Which colour?","choices":["red","blue"]}"#;
const HANDLE: &str = r#"{"question":"With a handle?","choices":["yes","no"]}"#;

fn colour() -> Value {
    serde_json::from_str(COLOUR).unwrap()
}

fn handle() -> Value {
    serde_json::from_str(HANDLE).unwrap()
}

fn both(ids: [&str; 2]) -> Value {
    calls(json!([
        [ids[0], "ask", colour()],
        [ids[1], "ask", handle()]
    ]))
}

type Row = (&'static str, Vec<Value>, Value);

fn marks_not_to_be_trusted() -> Vec<Row> {
    let open = || chunk(json!({ "role": "assistant", "content": null }), NONE);
    vec![
        (
            "index 0 for every call",
            vec![
                open(),
                one(0.into(), "a".into(), "ask".into(), COLOUR.into()),
                one(0.into(), "b".into(), "ask".into(), HANDLE.into()),
                end("tool_calls"),
                done(),
            ],
            both(["a", "b"]),
        ),
        (
            "index 0 for every call, in pieces",
            vec![
                one(0.into(), "a".into(), "ask".into(), "".into()),
                one(0.into(), NONE, NONE, COLOUR.into()),
                one(0.into(), "b".into(), "ask".into(), "".into()),
                one(0.into(), NONE, NONE, HANDLE[..9].into()),
                one(0.into(), NONE, NONE, HANDLE[9..].into()),
                end("tool_calls"),
                done(),
            ],
            both(["a", "b"]),
        ),
        (
            "no index, in three pieces, ends with stop",
            vec![
                open(),
                one(NONE, "a".into(), "ask".into(), COLOUR[..7].into()),
                one(NONE, NONE, NONE, COLOUR[7..20].into()),
                one(NONE, NONE, NONE, COLOUR[20..].into()),
                end("stop"),
                done(),
            ],
            calls(json!([["a", "ask", colour()]])),
        ),
        (
            "no index, one after the other",
            vec![
                one(NONE, "a".into(), "ask".into(), COLOUR[..7].into()),
                one(NONE, NONE, NONE, COLOUR[7..].into()),
                one(NONE, "b".into(), "ask".into(), HANDLE[..7].into()),
                one(NONE, NONE, NONE, HANDLE[7..].into()),
                end("tool_calls"),
                done(),
            ],
            both(["a", "b"]),
        ),
        (
            "no index, both in one chunk",
            vec![
                pieces(json!([
                    piece(NONE, "a".into(), "ask".into(), COLOUR.into()),
                    piece(NONE, "b".into(), "ask".into(), HANDLE.into()),
                ])),
                end("tool_calls"),
                done(),
            ],
            both(["a", "b"]),
        ),
        (
            "index as text",
            vec![
                one("0".into(), "a".into(), "ask".into(), COLOUR[..7].into()),
                one("1".into(), "b".into(), "ask".into(), HANDLE.into()),
                one("0".into(), NONE, NONE, COLOUR[7..].into()),
                end("tool_calls"),
                done(),
            ],
            both(["a", "b"]),
        ),
        (
            "index null",
            vec![
                pieces(
                    json!([{ "index": null, "id": "a", "function": { "name": "ask", "arguments": COLOUR } }]),
                ),
                end("tool_calls"),
                done(),
            ],
            calls(json!([["a", "ask", colour()]])),
        ),
        (
            "honest indexes, interleaved",
            vec![
                pieces(json!([
                    piece(0.into(), "a".into(), "ask".into(), "".into()),
                    piece(1.into(), "b".into(), "ask".into(), "".into())
                ])),
                one(1.into(), NONE, NONE, HANDLE[..12].into()),
                one(0.into(), NONE, NONE, COLOUR[..5].into()),
                one(1.into(), NONE, NONE, HANDLE[12..].into()),
                one(0.into(), NONE, NONE, COLOUR[5..].into()),
                end("tool_calls"),
                done(),
            ],
            both(["a", "b"]),
        ),
        (
            "one id for both",
            vec![
                one(0.into(), "ask".into(), "ask".into(), COLOUR.into()),
                one(1.into(), "ask".into(), "ask".into(), HANDLE.into()),
                end("tool_calls"),
                done(),
            ],
            calls(json!([["ask", "ask", colour()], [null, "ask", handle()]])),
        ),
        (
            "no ids, or blank ones",
            vec![
                one(0.into(), "".into(), "ask".into(), COLOUR.into()),
                one(1.into(), " ".into(), "ask".into(), HANDLE.into()),
                end("tool_calls"),
                done(),
            ],
            calls(json!([[null, "ask", colour()], [null, "ask", handle()]])),
        ),
        (
            "an id that is a number",
            vec![
                one(0.into(), 7.into(), "ask".into(), COLOUR.into()),
                end("tool_calls"),
                done(),
            ],
            calls(json!([["7", "ask", colour()]])),
        ),
        (
            "finish before the last piece",
            vec![
                one(0.into(), "a".into(), "ask".into(), COLOUR[..9].into()),
                end("tool_calls"),
                one(0.into(), NONE, NONE, COLOUR[9..].into()),
                done(),
            ],
            calls(json!([["a", "ask", colour()]])),
        ),
        (
            "one call that is no list",
            vec![
                pieces(piece(0.into(), "a".into(), "ask".into(), COLOUR.into())),
                end("tool_calls"),
                done(),
            ],
            calls(json!([["a", "ask", colour()]])),
        ),
        (
            "the old form of a call",
            vec![
                chunk(
                    json!({ "function_call": { "name": "ask", "arguments": COLOUR[..9] } }),
                    NONE,
                ),
                chunk(
                    json!({ "function_call": { "arguments": COLOUR[9..] } }),
                    NONE,
                ),
                end("function_call"),
                done(),
            ],
            calls(json!([[null, "ask", colour()]])),
        ),
        (
            "a call without a name",
            vec![
                one(0.into(), "a".into(), NONE, COLOUR.into()),
                end("tool_calls"),
                done(),
            ],
            calls(json!([["a", "unknown", "told"]])),
        ),
    ]
}

fn repeated_arguments() -> Vec<Row> {
    let open = |arguments: &str| one(0.into(), "a".into(), "ask".into(), arguments.into());
    let more = |arguments: &str| one(0.into(), NONE, NONE, arguments.into());
    let whole = || calls(json!([["a", "ask", colour()]]));
    let flush = |arguments: &str| {
        let call = json!({ "index": 0, "id": null, "type": null, "function": { "name": null, "arguments": arguments } });
        chunk(json!({ "tool_calls": [call] }), "tool_calls".into())
    };
    vec![
        (
            "short pieces, then all of it beside the finish",
            vec![
                open(""),
                more(&COLOUR[..20]),
                more(&COLOUR[20..40]),
                flush(COLOUR),
                done(),
            ],
            whole(),
        ),
        (
            "whole, then once more",
            vec![open(COLOUR), flush(COLOUR), done()],
            whole(),
        ),
        (
            "whole, then once more with other blanks",
            vec![open(COLOUR), flush(&COLOUR.replace(':', ": ")), done()],
            whole(),
        ),
        (
            "a brace, then all of it",
            vec![open("{"), flush(COLOUR), done()],
            whole(),
        ),
        (
            "each piece repeats what came before",
            vec![
                open(&COLOUR[..9]),
                more(&COLOUR[..30]),
                more(COLOUR),
                end("tool_calls"),
                done(),
            ],
            whole(),
        ),
        (
            "pieces that only look like a repeat",
            vec![
                open(r#"{"shape":"#),
                more(r#"{"shape":1}}"#),
                end("tool_calls"),
                done(),
            ],
            calls(json!([["a", "ask", { "shape": { "shape": 1 } }]])),
        ),
        (
            "two different objects in one call",
            vec![
                open(""),
                more(COLOUR),
                more(HANDLE),
                end("tool_calls"),
                done(),
            ],
            calls(json!([["a", "ask", colour()], [null, "ask", handle()]])),
        ),
        (
            "one, the other, and the one again",
            vec![
                open(COLOUR),
                more(HANDLE),
                more(COLOUR),
                end("tool_calls"),
                done(),
            ],
            calls(json!([["a", "ask", colour()], [null, "ask", handle()]])),
        ),
        (
            "whole, and another that is cut",
            vec![open(COLOUR), more(&HANDLE[..20]), end("tool_calls"), done()],
            calls(json!([["a", "ask", colour()], [null, "ask", "told"]])),
        ),
        (
            "whole, and a brace too many",
            vec![open(COLOUR), more("}"), end("tool_calls"), done()],
            calls(json!([["a", "ask", "told"]])),
        ),
    ]
}

fn odd_arguments() -> Vec<Row> {
    let row = |name, tool: &str, arguments: Value, input: Value| {
        let sent = vec![
            one(0.into(), "a".into(), tool.into(), arguments),
            end("tool_calls"),
            done(),
        ];
        (name, sent, calls(json!([["a", tool, input]])))
    };
    let list = json!([{ "id": "c", "question": "Which colour?" }]);
    let shape = json!({ "type": "object", "required": ["n"] });
    vec![
        row("empty text", "ask", "".into(), json!({})),
        row("none", "ask", NONE, json!({})),
        row("blank text", "ask", " \n\t".into(), json!({})),
        row("the text null", "ask", "null".into(), json!({})),
        row(
            "nothing for a tool without parameters",
            "clock",
            "".into(),
            json!({}),
        ),
        row(
            "an object as text for a tool without parameters",
            "clock",
            "{}".into(),
            json!({}),
        ),
        row("a list", "ask", "[\"Which colour?\"]".into(), "told".into()),
        row(
            "a list that is no text",
            "ask",
            json!(["Which colour?"]),
            "told".into(),
        ),
        row("a number", "ask", "3".into(), "told".into()),
        row("prose", "ask", "Which colour?".into(), "told".into()),
        row("an object", "ask", colour(), colour()),
        row("an empty object", "clock", json!({}), json!({})),
        row(
            "encoded twice",
            "ask",
            json!(COLOUR).to_string().into(),
            colour(),
        ),
        row(
            "encoded three times",
            "ask",
            json!(json!(COLOUR).to_string()).to_string().into(),
            "told".into(),
        ),
        row(
            "a list as text",
            "ask_list",
            json!({ "questions": list.to_string() }).to_string().into(),
            json!({ "questions": list }),
        ),
        row(
            "choices as text",
            "ask",
            r#"{"question":"Q?","choices":"[\"a\",\"b\"]"}"#.into(),
            json!({ "question": "Q?", "choices": ["a", "b"] }),
        ),
        row(
            "a shape as text",
            "ask",
            json!({ "question": "Q?", "shape": shape.to_string() })
                .to_string()
                .into(),
            json!({ "question": "Q?", "shape": shape }),
        ),
        row(
            "choices as prose stay text",
            "ask",
            r#"{"question":"Q?","choices":"a or b"}"#.into(),
            json!({ "question": "Q?", "choices": "a or b" }),
        ),
        row(
            "texts that look like JSON stay text",
            "ask",
            r#"{"question":"{\"a\":1}","choices":["[1]","2"]}"#.into(),
            json!({ "question": "{\"a\":1}", "choices": ["[1]", "2"] }),
        ),
        row("bare keys", "ask", "{question: 'Q?'}".into(), "told".into()),
        row(
            "a trailing comma",
            "ask",
            r#"{"question":"Q?",}"#.into(),
            "told".into(),
        ),
        row(
            "curly quotes",
            "ask",
            r#"{"question":"Wirklich „alles“ – 🧹?"}"#.into(),
            json!({ "question": "Wirklich „alles“ – 🧹?" }),
        ),
        row(
            "half a surrogate pair",
            "ask",
            r#"{"question":"\ud83e"}"#.into(),
            "told".into(),
        ),
        row(
            "digits are kept",
            "ask",
            r#"{"choices":[1.50,1e2]}"#.into(),
            serde_json::from_str(r#"{"choices":[1.50,1e2]}"#).unwrap(),
        ),
        row(
            "too deep",
            "ask",
            format!(
                "{}{}",
                "{\"a\":".repeat(500),
                "1".to_owned() + &"}".repeat(500)
            )
            .into(),
            "told".into(),
        ),
        row(
            "a tool that nobody offered",
            "fly",
            "{\"to\":\"sea\"}".into(),
            json!({ "to": "sea" }),
        ),
        (
            "null, pieces later",
            vec![
                pieces(
                    json!([{ "index": 0, "id": "a", "function": { "name": "ask", "arguments": null } }]),
                ),
                one(0.into(), NONE, NONE, COLOUR.into()),
                end("tool_calls"),
                done(),
            ],
            calls(json!([["a", "ask", colour()]])),
        ),
        (
            "an empty object, pieces later",
            vec![
                one(0.into(), "a".into(), "ask".into(), json!({})),
                one(0.into(), NONE, NONE, COLOUR[..9].into()),
                one(0.into(), NONE, NONE, COLOUR[9..].into()),
                end("tool_calls"),
                done(),
            ],
            calls(json!([["a", "ask", colour()]])),
        ),
    ]
}

fn bookkeeping() -> Vec<Row> {
    let ask = || one(0.into(), "a".into(), "ask".into(), COLOUR.into());
    let usage = |tokens: u64| json!({ "prompt_tokens": 30, "completion_tokens": tokens, "total_tokens": 30 + tokens });
    let counted = || reply(json!([["a", "ask", colour()]]), "", 12.into());
    let with_usage = |mut chunk: Value, tokens| {
        chunk["usage"] = usage(tokens);
        chunk
    };
    vec![
        (
            "a report first, usage last, without choices",
            vec![
                json!({ "id": "", "choices": [], "prompt_filter_results": [{ "hate": { "filtered": false } }] }),
                ask(),
                end("tool_calls"),
                json!({ "choices": [], "usage": usage(12) }),
                done(),
            ],
            counted(),
        ),
        (
            "usage without the key choices",
            vec![
                ask(),
                end("tool_calls"),
                json!({ "usage": usage(12) }),
                done(),
            ],
            counted(),
        ),
        (
            "usage with every chunk",
            vec![
                with_usage(said(""), 1),
                with_usage(ask(), 9),
                with_usage(end("tool_calls"), 12),
                done(),
            ],
            counted(),
        ),
        (
            "usage in the choice",
            vec![
                ask(),
                json!({ "choices": [{ "delta": {}, "finish_reason": "stop", "usage": usage(12) }] }),
                done(),
            ],
            counted(),
        ),
        (
            "usage null",
            vec![
                ask(),
                json!({ "choices": [], "usage": null }),
                end("tool_calls"),
                done(),
            ],
            calls(json!([["a", "ask", colour()]])),
        ),
        (
            "usage after nothing that counts",
            vec![
                ask(),
                with_usage(end("tool_calls"), 12),
                json!({ "choices": [], "usage": null }),
                done(),
            ],
            counted(),
        ),
        (
            "null wherever one may be",
            vec![
                json!({ "choices": null }),
                json!({ "choices": [null] }),
                json!({ "choices": [{ "index": 0, "delta": null }] }),
                json!({ "choices": [{ "index": 0, "finish_reason": null }] }),
                chunk(
                    json!({ "content": null, "tool_calls": null, "refusal": null, "role": null }),
                    NONE,
                ),
                chunk(
                    json!({ "tool_calls": [null, { "index": 0, "function": null }] }),
                    NONE,
                ),
                json!({}),
                json!([]),
                json!(null),
                json!({ "error": null, "choices": [] }),
                ask(),
                end("tool_calls"),
                done(),
            ],
            calls(json!([["a", "ask", colour()]])),
        ),
        (
            "a second choice",
            vec![
                json!({ "choices": [{ "index": 1, "delta": { "content": "No.", "tool_calls": [piece(0.into(), "z".into(), "ask".into(), HANDLE.into())] }, "finish_reason": "length" }] }),
                json!({ "choices": [{ "index": 1, "delta": { "content": "No." } }, { "index": 0, "delta": { "content": "Yes." } }] }),
                ask(),
                end("tool_calls"),
                done(),
            ],
            reply(json!([["a", "ask", colour()]]), "Yes.", NONE),
        ),
        (
            "text in pieces, cut within a character's neighbours",
            vec![said("Grü"), said("ße, "), said("🫖"), end("stop"), done()],
            reply(json!([]), "Grüße, 🫖", NONE),
        ),
        (
            "a list of parts",
            vec![
                chunk(
                    json!({ "content": [{ "type": "thinking", "thinking": "hm" }] }),
                    NONE,
                ),
                chunk(
                    json!({ "content": [{ "type": "text", "text": "Tea" }] }),
                    NONE,
                ),
                said(" it is."),
                end("stop"),
                done(),
            ],
            reply(json!([]), "Tea it is.", NONE),
        ),
        (
            "a refusal",
            vec![
                chunk(json!({ "refusal": "I will not." }), NONE),
                end("stop"),
                done(),
            ],
            reply(json!([]), "I will not.", NONE),
        ),
        (
            "neither text nor call",
            vec![
                chunk(json!({ "role": "assistant", "content": "" }), NONE),
                end("stop"),
                done(),
            ],
            reply(json!([]), "", NONE),
        ),
        (
            "text beside a call",
            vec![said("One moment."), ask(), end("tool_calls"), done()],
            reply(json!([["a", "ask", colour()]]), "One moment.", NONE),
        ),
        (
            "finish without [DONE]",
            vec![ask(), end("tool_calls")],
            calls(json!([["a", "ask", colour()]])),
        ),
        (
            "[DONE] without a finish, text",
            vec![said("Tea."), done()],
            reply(json!([]), "Tea.", NONE),
        ),
        (
            "[DONE] without a finish, a whole call",
            vec![ask(), done()],
            calls(json!([["a", "ask", colour()]])),
        ),
        (
            "what follows [DONE] is not read",
            vec![said("Tea."), end("stop"), done(), said("Milk.")],
            reply(json!([]), "Tea.", NONE),
        ),
        (
            "a stream of one whole message",
            vec![
                json!({ "choices": [{ "message": { "role": "assistant", "content": "Tea." }, "finish_reason": "stop" }] }),
                done(),
            ],
            reply(json!([]), "Tea.", NONE),
        ),
        (
            "pieces, then the whole message",
            vec![
                said("Tea."),
                json!({ "choices": [{ "message": { "content": "Tea." }, "finish_reason": "stop" }] }),
                done(),
            ],
            reply(json!([]), "Tea.", NONE),
        ),
    ]
}

fn broken_off() -> Vec<Row> {
    let start = || one(0.into(), "a".into(), "ask".into(), COLOUR[..20].into());
    let ask = || one(0.into(), "a".into(), "ask".into(), COLOUR.into());
    let told = || calls(json!([["a", "ask", "told"]]));
    vec![
        (
            "an error object between chunks",
            vec![
                start(),
                json!({ "error": { "message": "kiln is cold", "code": 502 } }),
            ],
            retry("kiln is cold"),
        ),
        (
            "object: error",
            vec![
                start(),
                json!({ "object": "error", "message": "kiln died" }),
                done(),
            ],
            retry("kiln died"),
        ),
        (
            "type: error",
            vec![
                start(),
                json!({ "type": "error", "message": "kiln died" }),
                done(),
            ],
            retry("kiln died"),
        ),
        (
            "an error beside empty choices, first",
            vec![
                json!({ "choices": [], "error": { "message": "too many cups" } }),
                done(),
            ],
            retry("too many cups"),
        ),
        (
            "a whole call, then an error",
            vec![
                ask(),
                json!({ "error": { "message": "kiln is cold" } }),
                done(),
            ],
            retry("kiln is cold"),
        ),
        (
            "a finish, then an error",
            vec![
                ask(),
                end("tool_calls"),
                json!({ "error": { "message": "kiln is cold" } }),
                done(),
            ],
            retry("kiln is cold"),
        ),
        (
            "an error that is text",
            vec![said("Te"), json!({ "error": "no more clay" }), done()],
            retry("no more clay"),
        ),
        (
            "an error in the choice",
            vec![
                json!({ "choices": [{ "index": 0, "delta": { "content": "" }, "error": { "message": "shards" }, "finish_reason": "error" }] }),
            ],
            retry("shards"),
        ),
        (
            "an error without a message",
            vec![json!({ "error": { "code": 502 } })],
            retry("502"),
        ),
        (
            "a bare message",
            vec![
                said("Te"),
                json!({ "code": 503, "message": "kiln is cold" }),
                done(),
            ],
            retry("kiln is cold"),
        ),
        (
            "a bare detail",
            vec![json!({ "detail": "kiln is cold" })],
            retry("kiln is cold"),
        ),
        (
            "finish error",
            vec![start(), end("error"), done()],
            retry("broke off"),
        ),
        (
            "out of quota",
            vec![json!({ "error": { "message": "pay first", "code": "insufficient_quota" } })],
            json!({ "final": "pay first" }),
        ),
        (
            "the key in an error",
            vec![json!({ "error": { "message": "bad key sk-secret-1" } })],
            retry("bad key [key]"),
        ),
        ("length", vec![start(), end("length"), done()], told()),
        (
            "length before any argument",
            vec![
                one(0.into(), "a".into(), "ask".into(), "".into()),
                end("length"),
                done(),
            ],
            told(),
        ),
        (
            "length, then another reason",
            vec![
                one(0.into(), "a".into(), "ask".into(), "".into()),
                end("length"),
                end("stop"),
                done(),
            ],
            told(),
        ),
        (
            "a filter",
            vec![start(), end("content_filter"), done()],
            told(),
        ),
        (
            "cut but labelled tool_calls",
            vec![start(), end("tool_calls"), done()],
            told(),
        ),
        (
            "cut but labelled stop",
            vec![start(), end("stop"), done()],
            told(),
        ),
        (
            "cut in a list of choices",
            vec![
                one(
                    0.into(),
                    "a".into(),
                    "ask".into(),
                    r#"{"question":"Q?","choices":["a","b"]"#.into(),
                ),
                end("tool_calls"),
                done(),
            ],
            told(),
        ),
        (
            "whole, length",
            vec![ask(), end("length"), done()],
            calls(json!([["a", "ask", colour()]])),
        ),
        (
            "the first whole, the second cut",
            vec![
                ask(),
                one(1.into(), "b".into(), "ask".into(), HANDLE[..20].into()),
                end("length"),
                done(),
            ],
            calls(json!([["a", "ask", colour()], ["b", "ask", "told"]])),
        ),
        (
            "text cut by length",
            vec![said("Te"), end("length"), done()],
            reply(json!([]), "Te", NONE),
        ),
        ("no finish, cut", vec![start()], retry("without a finish")),
        (
            "no finish, not one argument",
            vec![one(0.into(), "a".into(), "ask".into(), "".into())],
            retry("without a finish"),
        ),
        ("no finish, whole", vec![ask()], retry("without a finish")),
        (
            "no finish, text",
            vec![said("Tea.")],
            retry("without a finish"),
        ),
        (
            "[DONE] without a finish, cut",
            vec![start(), done()],
            retry("without a finish"),
        ),
        (
            "[DONE] without a finish, not one argument",
            vec![one(0.into(), "a".into(), "ask".into(), "".into()), done()],
            retry("without a finish"),
        ),
        ("[DONE] alone", vec![done()], retry("without a finish")),
        ("nothing", vec![], retry("without a finish")),
        (
            "calls announced and none sent",
            vec![said(""), end("tool_calls"), done()],
            retry("sent none"),
        ),
        (
            "what is no JSON",
            vec![said("Te"), "upstream went away".into()],
            retry("upstream went away"),
        ),
    ]
}

fn lines(payloads: &[Value]) -> Vec<String> {
    let line = |payload: &Value| match payload {
        Value::String(text) => text.clone(),
        chunk => chunk.to_string(),
    };
    payloads.iter().map(line).collect()
}

/// What came of one answer, in the form of a row's expectation.
fn seen_as(
    name: &str,
    outcome: &Result<ModelReply, ModelFault>,
    said: &str,
    expected: &Value,
) -> Value {
    match outcome {
        Ok(reply) => {
            assert_eq!(reply.text, said, "{name}: the deltas are not the text");
            let rows = reply.calls.iter().enumerate().map(|(at, call)| {
                let own = expected["calls"][at][0].is_null();
                let id = if own { NONE } else { call.id.as_str().into() };
                let input = call.input.clone().unwrap_or_else(|_| "told".into());
                json!([id, call.tool, input])
            });
            let out = if reply.usage.estimated {
                NONE
            } else {
                reply.usage.tokens_out.into()
            };
            super::streams::reply(rows.collect(), &reply.text, out)
        }
        Err(ModelFault::Retry { reason, .. }) => json!({ "retry": reason }),
        Err(ModelFault::Final { reason }) => json!({ "final": reason }),
    }
}

async fn check(name: &str, pieces: Vec<Vec<u8>>, expected: &Value) -> Option<ModelReply> {
    let (base, _seen) = serve(vec![Answer::events(pieces)]).await;
    let (outcome, said) = call(&base, &request(hello())).await;
    let got = seen_as(name, &outcome, &said, expected);
    for fault in ["retry", "final"] {
        if let Some(part) = expected[fault].as_str() {
            let reason = got[fault].as_str().unwrap_or_default();
            assert!(
                reason.contains(part),
                "{name}: {got} is no {fault} with {part}"
            );
            assert!(!reason.contains("sk-secret-1"), "{name}: {reason}");
            return None;
        }
    }
    assert_eq!(got, *expected, "{name}");
    outcome.ok()
}

async fn check_rows(rows: Vec<Row>) {
    for (name, payloads, expected) in rows {
        let mut plain = String::new();
        let mut odd = "\u{feff}: hello\r\n\r\n".to_owned();
        for line in lines(&payloads) {
            plain += &format!("data: {line}\n\n");
            odd += &format!("event: message\r\nid: 7\r\ndata:{line}\r\n: comment\r\n\r\n");
        }
        if let Some(reply) = check(name, vec![plain.clone().into_bytes()], &expected).await {
            check_history(name, &reply).await;
        }
        // Every read one byte: within characters, between CR and LF.
        let bytes = odd.bytes().map(|byte| vec![byte]).collect();
        check(&format!("{name}, byte by byte"), bytes, &expected).await;
        // The last event without its empty line, even without its line end.
        let end = plain.trim_end().as_bytes().to_vec();
        check(&format!("{name}, no last line end"), vec![end], &expected).await;
    }
}

#[tokio::test]
async fn no_mark_of_a_call_is_trusted() {
    check_rows(marks_not_to_be_trusted()).await;
}

#[tokio::test]
async fn arguments_sent_again_count_once() {
    check_rows(repeated_arguments()).await;
}

#[tokio::test]
async fn odd_arguments_are_read_or_told() {
    check_rows(odd_arguments()).await;
}

#[tokio::test]
async fn chunks_for_bookkeeping_do_no_harm() {
    check_rows(bookkeeping()).await;
}

#[tokio::test]
async fn what_breaks_off_is_no_reply() {
    check_rows(broken_off()).await;
}

#[tokio::test]
async fn odd_framing_is_read() {
    let expected = reply(json!([]), "Tea.", NONE);
    let (first, last) = (said("Tea.").to_string(), end("stop").to_string());
    let rows = [
        (
            "carriage returns alone",
            format!("data: {first}\r\rdata: {last}\r\rdata: [DONE]\r\r"),
        ),
        (
            "no empty lines",
            format!("data: {first}\ndata: {last}\ndata: [DONE]\n"),
        ),
        (
            "empty data",
            format!("data:\n\ndata: {first}\n\ndata: \n\ndata: {last}\n\n"),
        ),
        (
            "JSON over lines",
            format!(
                "data: {}\n\ndata: {last}\n\n",
                first.replacen(',', ",\ndata: ", 1)
            ),
        ),
        (
            "leading blanks",
            format!("\n \n\ndata: {first}\n\ndata:  {last}  \n\n"),
        ),
        ("lines of JSON", format!("{first}\n{last}\n")),
    ];
    for (name, body) in rows {
        check(name, vec![body.clone().into_bytes()], &expected).await;
        check(
            name,
            body.bytes().map(|byte| vec![byte]).collect(),
            &expected,
        )
        .await;
    }
    let cut = format!("data: {first}\n\ndata: {}", &last[..20]);
    check(
        "cut within a chunk",
        vec![cut.into_bytes()],
        &retry("no JSON"),
    )
    .await;
    let mut bytes = format!("data: {first}\n\ndata: \"").into_bytes();
    bytes.extend([0xf0, 0x9f]);
    check("cut within a character", vec![bytes], &retry("")).await;
    let event = "event: error\ndata: {\"message\":\"kiln is cold\"}\n\n";
    check("an error event", vec![event.into()], &retry("kiln is cold")).await;
    let event = "event: error\ndata: kiln is cold\n\n";
    check(
        "an error event of text",
        vec![event.into()],
        &retry("kiln is cold"),
    )
    .await;
}

#[tokio::test]
async fn an_answer_that_is_no_stream_is_read() {
    let message = json!({ "role": "assistant", "content": "Tea?", "tool_calls": [
        piece(NONE, "a".into(), "ask".into(), COLOUR.into()),
        piece(NONE, "b".into(), "clock".into(), "".into()),
    ] });
    let usage = json!({ "prompt_tokens": 5, "completion_tokens": 12 });
    let expected = reply(
        json!([["a", "ask", colour()], ["b", "clock", {}]]),
        "Tea?",
        12.into(),
    );
    for finish in [json!("tool_calls"), NONE] {
        let body = json!({ "choices": [{ "index": 0, "message": message, "finish_reason": finish }], "usage": usage });
        let reply = check("whole", vec![format!("\n{body:#}").into_bytes()], &expected)
            .await
            .unwrap();
        check_history("whole", &reply).await;
    }
    let body = json!({ "error": { "message": "kiln is cold" } }).to_string();
    check("an error", vec![body.into_bytes()], &retry("kiln is cold")).await;
}

#[tokio::test]
async fn what_vendors_add_goes_back_unchanged() {
    let extra = json!({ "vendor": { "signature": "c2ln" } });
    let mut first = piece(0.into(), "a".into(), "ask".into(), COLOUR[..9].into());
    first["extra_content"] = extra.clone();
    let rest = piece(0.into(), NONE, NONE, COLOUR[9..].into());
    let payloads = [
        chunk(
            json!({ "role": "assistant", "reasoning_content": "Let me ", "reasoning_details": [{ "n": 1 }] }),
            NONE,
        ),
        chunk(
            json!({ "role": "assistant", "reasoning_content": "see.", "reasoning_details": [{ "n": 2 }] }),
            NONE,
        ),
        pieces(json!([first])),
        pieces(json!([rest])),
        end("tool_calls"),
        done(),
    ];
    let body: String = lines(&payloads)
        .iter()
        .map(|line| format!("data: {line}\n\n"))
        .collect();
    let expected = calls(json!([["a", "ask", colour()]]));
    let reply = check("extras", vec![body.into_bytes()], &expected)
        .await
        .unwrap();
    check_history("extras", &reply).await;
    let message = reply.raw.unwrap().content;
    assert_eq!(
        message,
        json!({
            "role": "assistant", "content": null,
            "reasoning_content": "Let me see.", "reasoning_details": [{ "n": 1 }, { "n": 2 }],
            "tool_calls": [{
                "extra_content": extra, "id": "a", "type": "function",
                "function": { "name": "ask", "arguments": COLOUR },
            }],
        })
    );
}
