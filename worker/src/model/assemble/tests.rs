use super::*;
use serde_json::json;

fn offer(name: &str) -> ToolOffer {
    ToolOffer {
        name: name.to_owned(),
        description: String::new(),
        parameters: json!({ "type": "object" }),
    }
}

/// Pieces as `[index, id, name, arguments]`, one list per chunk; what the calls come out as.
fn check(name: &str, chunks: &Value, ending: Ending, expected: &Value) {
    let offers = [offer("ask"), offer("ask_more"), offer("today")];
    let mut assembly = Assembly::new(&offers);
    for chunk in chunks.as_array().unwrap() {
        assembly.next_chunk();
        for piece in chunk.as_array().unwrap() {
            let text = |at: usize| piece[at].as_str().map(str::to_owned);
            assembly.push(Piece {
                index: piece[0].as_i64(),
                id: text(1),
                name: text(2),
                arguments: Some(piece[3].clone()),
                extra: Map::new(),
            });
        }
    }
    let mut given = HashSet::new();
    for chunk in chunks.as_array().unwrap() {
        given.extend(
            chunk
                .as_array()
                .unwrap()
                .iter()
                .filter_map(|p| p[1].as_str()),
        );
    }
    let calls = assembly.finish(ending);
    let ids: HashSet<&str> = calls.iter().map(|made| made.call.id.as_str()).collect();
    assert_eq!(ids.len(), calls.len(), "{name}: ids are not distinct");
    let got: Vec<Value> = calls
        .iter()
        .map(|made| {
            let id = Some(made.call.id.as_str()).filter(|id| given.contains(id));
            let history: Value = serde_json::from_str(&made.arguments).unwrap();
            assert!(history.is_object(), "{name}: history holds {history}");
            match &made.call.input {
                Ok(input) => json!([id, made.call.tool, input]),
                Err(_) => json!([id, made.call.tool, "told"]),
            }
        })
        .collect();
    assert_eq!(Value::Array(got), *expected, "{name}");
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn pieces_find_their_call() {
    let (a, b) = ("{\"q\":1}", "{\"q\":2}");
    let rows = [
        (
            "an id that changes with each piece",
            json!([
                [[0, "x1", "ask", "{\"q\""]],
                [[0, "x2", null, ":"]],
                [[0, "x3", "ask", "1}"]],
                [[0, "x4", null, ""]]
            ]),
            json!([["x1", "ask", {"q": 1}]]),
        ),
        (
            "an id that comes late",
            json!([[[0, null, "ask", ""]], [[0, "x", null, a]]]),
            json!([["x", "ask", {"q": 1}]]),
        ),
        (
            "a name that comes late",
            json!([[[0, "x", null, ""]], [[0, null, "ask", a]]]),
            json!([["x", "ask", {"q": 1}]]),
        ),
        (
            "a name with every piece",
            json!([
                [[0, "x", "ask", "{\"q\""]],
                [[0, "x", "ask", ":1}"]],
                [[0, "x", "ask", ""]]
            ]),
            json!([["x", "ask", {"q": 1}]]),
        ),
        (
            "a name in pieces",
            json!([
                [[0, "x", "ask_", ""]],
                [[0, null, "more", ""]],
                [[0, null, null, a]]
            ]),
            json!([["x", "ask_more", {"q": 1}]]),
        ),
        (
            "one id for two indexes",
            json!([
                [[0, "x", "ask", ""], [1, "x", "ask", ""]],
                [[0, null, null, a]],
                [[1, null, null, b]]
            ]),
            json!([["x", "ask", {"q": 1}], [null, "ask", {"q": 2}]]),
        ),
        (
            "one id with every piece of two indexes",
            json!([
                [[0, "x", "ask", ""]],
                [[1, "x", "ask", ""]],
                [[0, "x", null, "{\"q\""]],
                [[1, "x", null, b]],
                [[0, "x", null, ":1}"]]
            ]),
            json!([["x", "ask", {"q": 1}], [null, "ask", {"q": 2}]]),
        ),
        (
            "one object twice, its number written otherwise",
            json!([[[0, "x", "ask", a]], [[0, null, null, "{\"q\":1.0}"]]]),
            json!([["x", "ask", {"q": 1}]]),
        ),
        (
            "one id for two calls in one chunk",
            json!([[[null, "x", "ask", a], [null, "x", "ask", b]]]),
            json!([["x", "ask", {"q": 1}], [null, "ask", {"q": 2}]]),
        ),
        (
            "an index that grows with each piece",
            json!([
                [[0, "x", "ask", "{\"q\""]],
                [[1, null, null, ":"]],
                [[2, "x", null, "1}"]]
            ]),
            json!([["x", "ask", {"q": 1}]]),
        ),
        (
            "no ids at all, index 0 for both",
            json!([[[0, null, "ask", a]], [[0, null, "today", ""]]]),
            json!([[null, "ask", {"q": 1}], [null, "today", {}]]),
        ),
        (
            "no ids, both in one chunk",
            json!([[[null, null, "today", ""], [null, null, "today", ""]]]),
            json!([[null, "today", {}], [null, "today", {}]]),
        ),
        (
            "two different objects, the second one in pieces",
            json!([
                [[0, "x", "ask", a]],
                [[0, null, null, "{\"q\""]],
                [[0, null, null, ":2}"]]
            ]),
            json!([["x", "ask", {"q": 1}], [null, "ask", {"q": 2}]]),
        ),
        (
            "arguments of a tool that was never named",
            json!([[[0, "x", null, a]]]),
            json!([["x", "unknown", "told"]]),
        ),
        (
            "a name that cannot be sent back",
            json!([[[0, "x", "ask more", a]]]),
            json!([["x", "ask_more", "told"]]),
        ),
    ];
    for (name, chunks, expected) in rows {
        check(name, &chunks, Ending::Whole, &expected);
    }
}

#[test]
fn an_empty_object_opens_a_call_and_is_no_call() {
    let rows = [
        json!([
            [[0, "x", "ask", {}]],
            [[0, null, null, "{\"q\""]],
            [[0, null, null, ":1}"]]
        ]),
        json!([[[0, "x", "ask", "null"]], [[0, null, null, "{\"q\":1}"]]]),
        json!([[[0, "x", "ask", "{\"q\":1}"]], [[0, null, null, "{}"]]]),
    ];
    for chunks in rows {
        check(
            "placeholder",
            &chunks,
            Ending::Whole,
            &json!([["x", "ask", {"q": 1}]]),
        );
    }
    check(
        "placeholder, then cut",
        &json!([[[0, "x", "ask", {}]], [[0, null, null, "{\"q\""]]]),
        Ending::Cut,
        &json!([["x", "ask", "told"]]),
    );
}

#[test]
fn a_cut_reply_makes_only_what_is_plainly_whole() {
    let rows = [
        (
            json!([[[0, "x", "ask", ""]]]),
            json!([["x", "ask", "told"]]),
        ),
        (
            json!([[[0, "x", "ask", "{\"a\":"]], [[0, null, null, "{\"a\":1}"]]]),
            json!([["x", "ask", "told"]]),
        ),
        (
            json!([[[0, "x", "ask", "{\"a\":1}"]], [[1, "y", "ask", "{\"a\":"]]]),
            json!([["x", "ask", {"a": 1}], ["y", "ask", "told"]]),
        ),
        (
            json!([[[0, "x", "ask", "{\"a\":1}{\"b\":"]]]),
            json!([["x", "ask", {"a": 1}], [null, "ask", "told"]]),
        ),
    ];
    for (chunks, expected) in rows {
        check("cut", &chunks, Ending::Cut, &expected);
    }
}

#[test]
fn the_vendors_own_fields_are_kept() {
    let mut into = json!({ "vendor": { "a": 1 }, "kept": 2 });
    let more = json!({ "vendor": { "b": 3 }, "kept": null });
    merge(
        into.as_object_mut().unwrap(),
        more.as_object().unwrap().clone(),
    );
    assert_eq!(into, json!({ "vendor": { "a": 1, "b": 3 }, "kept": 2 }));
}
