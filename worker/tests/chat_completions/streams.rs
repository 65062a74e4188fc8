//! Streams as servers of every sort send them, and what comes of them. The rows stand in
//! `rows.json`, by table: a name, the payloads of the `data:` lines, what is expected.
//!
//! A payload is a text as it is, `{say}` a piece of text, `{end}` a finish reason, `{calls}` pieces
//! of calls as `[index, id, name, arguments]` without what is `null`, `{delta}` a delta of any kind,
//! `{chunk}` anything else. Expected are `calls` as `[id, tool, input]`, where `null` is an id of
//! our own and `"told"` an input that tells the model of a fault, the `text` and the tokens `out`,
//! left out if they are estimated; or the part of a reason after which to `retry`, or which is
//! `final`.

use serde_json::{Map, Value, json};

use super::*;

fn chunk(delta: &Value, finish: &Value) -> Value {
    json!({
        "id": "c", "object": "chat.completion.chunk", "created": 1, "model": "house",
        "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }],
    })
}

fn piece(call: &Value) -> Value {
    let fields = |names: [(usize, &str); 2]| -> Map<String, Value> {
        let given = names.iter().filter(|(at, _)| !call[*at].is_null());
        given
            .map(|(at, name)| ((*name).to_owned(), call[*at].clone()))
            .collect()
    };
    let mut piece = fields([(0, "index"), (1, "id")]);
    piece.insert("type".to_owned(), "function".into());
    let function = fields([(2, "name"), (3, "arguments")]);
    piece.insert("function".to_owned(), function.into());
    piece.into()
}

fn line(payload: &Value) -> String {
    let none = Value::Null;
    let Some((kind, said)) = payload.as_object().and_then(|fields| fields.iter().next()) else {
        return payload.as_str().unwrap().to_owned();
    };
    let chunk = match kind.as_str() {
        "say" => chunk(&json!({ "content": said }), &none),
        "end" => chunk(&json!({}), said),
        "calls" => {
            let pieces: Vec<Value> = said.as_array().unwrap().iter().map(piece).collect();
            chunk(&json!({ "tool_calls": pieces }), &none)
        }
        "delta" => chunk(said, &none),
        "chunk" => said.clone(),
        other => panic!("no payload is named {other}"),
    };
    chunk.to_string()
}

fn body_of(payloads: &[Value]) -> Vec<u8> {
    let events = payloads
        .iter()
        .map(|payload| format!("data: {}\n\n", line(payload)));
    events.collect::<String>().into_bytes()
}

/// What came of one answer, in the form of a row's expectation.
fn outcome_as(reply: &Result<ModelReply, ModelFault>, expected: &Value) -> Value {
    let reply = match reply {
        Ok(reply) => reply,
        Err(ModelFault::Retry { reason, .. }) => return json!({ "retry": reason }),
        Err(ModelFault::Final { reason }) => return json!({ "final": reason }),
    };
    let mut outcome = Map::new();
    if !reply.calls.is_empty() || expected.get("calls").is_some() {
        let calls = reply.calls.iter().enumerate().map(|(at, call)| {
            let own = expected["calls"][at][0].is_null();
            let id = Some(&call.id).filter(|_| !own);
            let input = call.input.clone().unwrap_or_else(|_| "told".into());
            json!([id, call.tool, input])
        });
        outcome.insert("calls".to_owned(), calls.collect());
    }
    if !reply.text.is_empty() {
        outcome.insert("text".to_owned(), reply.text.as_str().into());
    }
    if !reply.usage.estimated {
        outcome.insert("out".to_owned(), reply.usage.tokens_out.into());
    }
    outcome.into()
}

async fn check(
    server: &Server,
    name: &str,
    pieces: Vec<Vec<u8>>,
    expected: &Value,
) -> Option<ModelReply> {
    let (reply, said) = server.ask(Answer::events(pieces), &request(hello())).await;
    let got = outcome_as(&reply, expected);
    for fault in ["retry", "final"] {
        if let Some(part) = expected[fault].as_str() {
            let reason = got[fault].as_str().unwrap_or_default();
            assert!(!reason.is_empty() && reason.contains(part), "{name}: {got}");
            assert!(!reason.contains(KEY), "{name}: {reason}");
            return None;
        }
    }
    assert_eq!(got, *expected, "{name}");
    let reply = reply.unwrap();
    assert_eq!(reply.text, said, "{name}: the deltas are not the text");
    Some(reply)
}

async fn check_table(table: &str) {
    let tables: Value = serde_json::from_str(include_str!("rows.json")).unwrap();
    let server = Server::start().await;
    for row in tables[table].as_array().unwrap() {
        let (name, expected) = (row[0].as_str().unwrap(), &row[2]);
        let lines: Vec<String> = row[1].as_array().unwrap().iter().map(line).collect();
        let plain = lines.iter().map(|line| format!("data: {line}\n\n"));
        let plain: String = plain.collect();
        let odd = lines
            .iter()
            .map(|line| format!("event: message\r\nid: 7\r\ndata:{line}\r\n: comment\r\n\r\n"));
        let odd = "\u{feff}: hello\r\n\r\n".to_owned() + &odd.collect::<String>();
        let bytes = plain.clone().into_bytes();
        if let Some(reply) = check(&server, name, vec![bytes], expected).await {
            check_history(&server, name, &reply).await;
        }
        // Every read is one byte: within characters, between CR and LF.
        let bytes = odd.bytes().map(|byte| vec![byte]).collect();
        check(&server, &format!("{name}, by byte"), bytes, expected).await;
        // The last event has no empty line, not even a line end.
        let end = plain.trim_end().as_bytes().to_vec();
        check(&server, &format!("{name}, open end"), vec![end], expected).await;
    }
}

#[tokio::test]
async fn no_mark_of_a_call_is_trusted() {
    check_table("no mark of a call is trusted").await;
}

#[tokio::test]
async fn arguments_sent_again_count_once() {
    check_table("arguments sent again count once").await;
}

#[tokio::test]
async fn odd_arguments_are_read_or_told() {
    check_table("odd arguments are read or told").await;
}

#[tokio::test]
async fn chunks_for_bookkeeping_do_no_harm() {
    check_table("chunks for bookkeeping do no harm").await;
}

#[tokio::test]
async fn what_breaks_off_is_no_reply() {
    check_table("what breaks off is no reply").await;
}

#[tokio::test]
async fn arguments_too_deep_are_told() {
    let deep = format!("{}1{}", "{\"a\":".repeat(500), "}".repeat(500));
    let call = line(&json!({ "calls": [[0, "a", "ask", deep]] }));
    let body = format!(
        "data: {call}\n\ndata: {}\n\n",
        line(&json!({ "end": "stop" }))
    );
    let expected = json!({ "calls": [["a", "ask", "told"]] });
    let server = Server::start().await;
    check(&server, "deep", vec![body.into_bytes()], &expected).await;
}

#[tokio::test]
async fn a_message_too_deep_for_a_record_is_not_kept() {
    let deep = format!("{}1{}", "[".repeat(100), "]".repeat(100));
    let deep: Value = serde_json::from_str(&deep).unwrap();
    let payloads = [
        json!({ "delta": { "reasoning": deep } }),
        json!({ "say": "Tea." }),
        json!({ "end": "stop" }),
    ];
    let body = body_of(&payloads);
    let server = Server::start().await;
    let expected = json!({ "text": "Tea." });
    let reply = check(&server, "deep", vec![body], &expected).await;
    assert_eq!(reply.unwrap().raw, None);
}

#[tokio::test]
async fn odd_framing_is_read() {
    let server = Server::start().await;
    let expected = json!({ "text": "Tea." });
    let first = line(&json!({ "say": "Tea." }));
    let last = line(&json!({ "end": "stop" }));
    let folded = first.replacen(',', ",\ndata: ", 1);
    let whole = [
        format!("data: {first}\r\rdata: {last}\r\rdata: [DONE]\r\r"),
        format!("data: {first}\ndata: {last}\ndata: [DONE]\n"),
        format!("data:\n\ndata: {first}\n\ndata: \n\ndata: {last}\n\n"),
        format!("data: {folded}\n\ndata: {last}\n\n"),
        format!("\n \n\ndata: {first}\n\ndata:  {last}  \n\n"),
        format!("{first}\n{last}\n"),
    ];
    for body in whole {
        check(&server, &body, vec![body.clone().into_bytes()], &expected).await;
        let bytes = body.bytes().map(|byte| vec![byte]).collect();
        check(&server, &body, bytes, &expected).await;
    }
    let cut = format!("data: {first}\n\ndata: {}", &last[..20]);
    let mut cut_character = format!("data: {first}\n\ndata: \"").into_bytes();
    cut_character.extend([0xf0, 0x9f]);
    let broken: [(Vec<u8>, &str); 4] = [
        (cut.into_bytes(), "no JSON"),
        (cut_character, "utf8"),
        (
            b"event: error\ndata: {\"message\":\"cold\"}\n\n".to_vec(),
            "cold",
        ),
        (b"event: error\ndata: cold\n\n".to_vec(), "cold"),
    ];
    for (body, reason) in broken {
        check(&server, reason, vec![body], &json!({ "retry": reason })).await;
    }
}

#[tokio::test]
async fn an_answer_that_is_no_stream_is_read() {
    let server = Server::start().await;
    let pieces = [
        json!([null, "a", "ask", "{\"question\":\"Q?\"}"]),
        json!([null, "b", "clock", ""]),
    ];
    let pieces: Vec<Value> = pieces.iter().map(piece).collect();
    let message = json!({ "role": "assistant", "content": "Tea?", "tool_calls": pieces });
    let usage = json!({ "prompt_tokens": 5, "completion_tokens": 12 });
    let calls = json!([["a", "ask", { "question": "Q?" }], ["b", "clock", {}]]);
    let expected = json!({ "calls": calls, "text": "Tea?", "out": 12 });
    for finish in [json!("tool_calls"), Value::Null] {
        let choice = json!({ "index": 0, "message": message, "finish_reason": finish });
        let body = json!({ "choices": [choice], "usage": usage });
        let bytes = format!("\n{body:#}").into_bytes();
        let reply = check(&server, "whole", vec![bytes], &expected)
            .await
            .unwrap();
        check_history(&server, "whole", &reply).await;
    }
    let error = br#"{"error":{"message":"cold"}}"#.to_vec();
    check(&server, "error", vec![error], &json!({ "retry": "cold" })).await;
}

#[tokio::test]
async fn what_vendors_add_goes_back_unchanged() {
    let extra = json!({ "vendor": { "signature": "c2ln" } });
    let mut first = piece(&json!([0, "a", "ask", "{\"question\""]));
    first["extra_content"] = extra.clone();
    let payloads = [
        json!({ "delta": { "role": "assistant", "reasoning": "Let me ", "details": [1] } }),
        json!({ "delta": { "role": "assistant", "reasoning": "see.", "details": [2] } }),
        json!({ "delta": { "tool_calls": [first] } }),
        json!({ "calls": [[0, null, null, ":\"Q?\"}"]] }),
        json!({ "end": "tool_calls" }),
    ];
    let body = body_of(&payloads);
    let server = Server::start().await;
    let expected = json!({ "calls": [["a", "ask", { "question": "Q?" }]] });
    let reply = check(&server, "extras", vec![body], &expected).await;
    let reply = reply.unwrap();
    check_history(&server, "extras", &reply).await;
    let message = json!({
        "role": "assistant", "content": null, "reasoning": "Let me see.", "details": [1, 2],
        "tool_calls": [{
            "extra_content": extra, "id": "a", "type": "function",
            "function": { "name": "ask", "arguments": "{\"question\":\"Q?\"}" },
        }],
    });
    assert_eq!(reply.raw.unwrap().content, message);
}
