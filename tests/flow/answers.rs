//! What an answer must be, and what happens to one that is not (SPEC 3.1 to 3.5).

use serde_json::{Value, json};

use super::{results, size};
use crate::client::Reply;
use crate::system::System;
use crate::world::Answer;

fn rules(reply: &Reply) -> Vec<(String, String)> {
    assert_eq!(reply.status, 422, "{}", reply.text);
    assert_eq!(reply.code(), "T0002");
    let errors = reply.body["errors"].as_array().cloned().unwrap();
    let text = |error: &Value, key: &str| error[key].as_str().unwrap_or_default().to_owned();
    errors
        .iter()
        .map(|error| (text(error, "pointer"), text(error, "rule")))
        .collect()
}

fn rule(pointer: &str, rule: &str) -> Vec<(String, String)> {
    vec![(pointer.to_owned(), rule.to_owned())]
}

/// One ask is open, as it was, and the model has not been called again.
async fn waits(on: &System, run: &str) {
    let found = on.api("ada").asked(run, 1).await.unwrap();
    assert_eq!(found["asks"].as_array().unwrap().len(), 1);
    assert_eq!(on.world.requests("m").len(), 1);
}

fn told(on: &System) -> String {
    results(&on.world.requests("m")[1])[0].1.clone()
}

/// Wrong answers, one after the other; the ask waits on, and takes the right one.
pub async fn a_misfit_leaves_the_ask_waiting(on: &mut System) {
    on.world.say("m", [size(), Answer::text("Done.")]);
    let ada = on.api("ada");
    let run = ada.start("asker", "a T-shirt").await.unwrap();
    let before = ada.asked(&run, 1).await.unwrap()["asks"][0].clone();
    for wrong in [
        json!("XL"),
        json!("m"),
        json!("M "),
        json!(["M"]),
        json!({"answer": "M"}),
        json!(1),
        json!(""),
        Value::Null,
    ] {
        let reply = ada
            .approve(&run, "question 1.1", wrong.clone())
            .await
            .unwrap();
        assert_eq!(rules(&reply), rule("", "choices"), "{wrong}");
        assert!(!reply.text.contains("XL"), "the answer is echoed");
    }
    let path = format!("/v1/runs/{run}/approve");
    let none = ada
        .post(&path, &json!({"step": "question 1.1"}))
        .await
        .unwrap();
    assert_eq!(rules(&none), rule("", "required"));
    let torn = ada
        .post_text(&path, "{\"step\":\"question 1.1\",\"data\":", None)
        .await
        .unwrap();
    assert_eq!((torn.status, torn.code()), (400, "T0006"));
    let elsewhere = ada.approve(&run, "question 1.2", json!("M")).await.unwrap();
    assert_eq!(elsewhere.code(), "T0001");
    let beyond = json!({"step": "question 1.1", "n": 2, "data": "M"});
    let beyond = ada.post(&path, &beyond).await.unwrap();
    assert_eq!(beyond.code(), "T0002");
    waits(on, &run).await;
    assert_eq!(ada.asked(&run, 1).await.unwrap()["asks"][0], before);
    let right = ada.approve(&run, "question 1.1", json!("M")).await.unwrap();
    assert_eq!(right.status, 200, "{}", right.text);
    ada.status(&run, "succeeded").await.unwrap();
    assert_eq!(told(on), "M");
    let late = ada.approve(&run, "question 1.1", json!("L")).await.unwrap();
    assert_eq!((late.status, late.code()), (409, "T0003"));
    assert_eq!(late.body["settled"]["outcome"], "answered");
    assert_eq!(late.body["settled"]["by"]["sub"], "ada");
}

/// Several questions: drafts are kept and changed, the last missing one settles the ask, and the
/// model reads what the server filled in.
pub async fn several_questions_and_drafts(on: &mut System) {
    let questions = json!({"questions": [
        {"id": "priority", "question": "How urgent?", "choices": [
            {"label": "Low", "value": "low"}, {"label": "High", "value": "high"}]},
        {"id": "channel", "question": "Which channel?", "choices": [
            {"label": "E-mail", "value": "email"}, {"label": "Phone", "value": "phone"}]},
    ]});
    on.world.say(
        "m",
        [
            Answer::calls("", &[("c1", "ask_question", questions)]),
            Answer::text("Done."),
        ],
    );
    let ada = on.socket_at(0, "ada").await.unwrap();
    let other = on.socket_at(1, "ada").await.unwrap();
    let run = on.api("ada").start("asker", "help").await.unwrap();
    let opened = ada
        .frame("ask", |frame| frame["type"] == "ask.opened")
        .await
        .unwrap();
    assert_eq!(opened["ask"]["questions"], 2);
    let step = "ask_question 1.1";
    let draft = |n: u32, data: Value| json!({"type": "approve", "run": run, "step": step, "n": n, "data": data});
    for (n, data, pointer, rule_name) in [
        (1, json!({"choice": "higher"}), "/choice", "choices"),
        (
            1,
            json!({"questionId": "channel", "choice": "low"}),
            "/questionId",
            "unknown",
        ),
        (3, json!({"choice": "low"}), "", "unknown"),
        (
            2,
            json!({"answer": " ", "custom": true}),
            "/answer",
            "blank",
        ),
    ] {
        let error = ada.command(&draft(n, data.clone())).await.unwrap();
        assert_eq!(error["code"], "T0002", "{data}");
        let found = &error["errors"][0];
        assert_eq!(
            (&found["pointer"], &found["rule"]),
            (&json!(pointer), &json!(rule_name)),
            "{data}"
        );
    }
    let low = ada
        .command(&draft(1, json!({"choice": "low"})))
        .await
        .unwrap();
    assert_eq!(low["type"], "ok");
    assert!(low.get("outcome").is_none(), "a draft settles nothing");
    let changed = ada
        .command(&draft(1, json!({"choice": "high"})))
        .await
        .unwrap();
    assert_eq!(changed["type"], "ok");
    other
        .frame("the changed draft", |frame| {
            frame["type"] == "ask.draft" && frame["data"]["choice"] == "high" && frame["n"] == 1
        })
        .await
        .unwrap();
    let kept = on.api("ada").asked(&run, 1).await.unwrap()["asks"][0]["drafts"].clone();
    assert_eq!(kept["priority"]["answer"], "High");
    let last = other
        .command(&draft(2, json!({"answer": "by letter"})))
        .await
        .unwrap();
    assert_eq!(last["outcome"], "answered");
    on.api("ada").status(&run, "succeeded").await.unwrap();
    let read: Value = serde_json::from_str(&told(on)).unwrap();
    assert_eq!(
        read,
        json!({"answers": [
            {"questionId": "priority", "answer": "High", "choice": "high"},
            {"questionId": "channel", "answer": "by letter", "custom": true},
        ]})
    );
}

/// A shape: the gateway never converts, and names the place and the rule.
pub async fn a_shape_is_checked_at_the_door(on: &mut System) {
    let shape = json!({"type": "object", "required": ["count"], "additionalProperties": false,
        "properties": {"count": {"type": "integer", "minimum": 1}, "mail": {"type": "string", "format": "email"}}});
    let input = json!({"question": "How many?", "shape": shape});
    on.world.say(
        "m",
        [
            Answer::calls("", &[("c1", "question", input)]),
            Answer::text("Done."),
        ],
    );
    let ada = on.api("ada");
    let run = ada.start("asker", "shirts").await.unwrap();
    ada.asked(&run, 1).await.unwrap();
    for (wrong, pointer, rule_name) in [
        (json!({"count": "5"}), "/count", "type"),
        (json!({"count": 0}), "/count", "minimum"),
        (json!({"count": 1.5}), "/count", "type"),
        (json!({"count": true}), "/count", "type"),
        (json!({}), "", "required"),
        (json!({"count": 1, "mail": "just text"}), "/mail", "format"),
        (
            json!({"count": 1, "secretname": 1}),
            "",
            "additionalProperties",
        ),
        (json!(3), "", "type"),
    ] {
        let reply = ada
            .approve(&run, "question 1.1", wrong.clone())
            .await
            .unwrap();
        assert_eq!(rules(&reply), rule(pointer, rule_name), "{wrong}");
        assert!(!reply.text.contains("secretname"));
    }
    waits(on, &run).await;
    let right = ada
        .approve(
            &run,
            "question 1.1",
            json!({"count": 5.0, "mail": "a@example.org"}),
        )
        .await
        .unwrap();
    assert_eq!(right.status, 200);
    ada.status(&run, "succeeded").await.unwrap();
    assert_eq!(told(on), r#"{"count":5.0,"mail":"a@example.org"}"#);
}

/// Shapes that reach out, never end or blow up: nobody is asked, the model is told, the gateway
/// and the worker go on.
pub async fn hostile_shapes_are_told_the_model_and_open_nothing(on: &mut System) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let outside = format!("http://127.0.0.1:{port}/point.json");
    let deep = (0..90).fold(
        json!({"type": "integer"}),
        |inner, _| json!({"items": inner}),
    );
    let shapes = [
        json!({"$ref": "https://shapes.example.test/point.json"}),
        json!({"type": "object", "properties": {"p": {"$ref": outside}}}),
        json!({"$schema": outside, "type": "number"}),
        json!({"$ref": "file:///nowhere/shape.json"}),
        json!({"$ref": "#"}),
        json!({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}),
        json!({"type": "string", "pattern": "^((a{0,100}){0,100}){0,100}$"}),
        json!({"type": "string", "pattern": "^(?=.*[0-9]).*$"}),
        json!({"type": "STRING"}),
        json!("a number"),
        json!(false),
    ];
    let calls: Vec<(String, Value)> = shapes
        .iter()
        .enumerate()
        .map(|(at, shape)| (format!("c{at}"), json!({"question": "?", "shape": shape})))
        .collect();
    let calls: Vec<(&str, &str, Value)> = calls
        .iter()
        .map(|(id, input)| (id.as_str(), "question", input.clone()))
        .collect();
    let too_deep = [("c1", "question", json!({"question": "?", "shape": deep}))];
    // A shape that is allowed, with an answer that would cost an unbounded checker for ever.
    let triple = json!({"$ref": "#/$defs/n"});
    let branch = json!({"type": "array", "items": triple});
    let costly = json!({"$defs": {"n": {"anyOf": [branch, branch, branch]}}, "$ref": "#/$defs/n"});
    let costly = [("c1", "question", json!({"question": "?", "shape": costly}))];
    on.world.say(
        "m",
        [
            Answer::calls("", &calls),
            Answer::calls("", &too_deep),
            Answer::calls("", &costly),
            Answer::text("Done."),
        ],
    );
    let ada = on.api("ada");
    let run = ada.start("asker", "go").await.unwrap();
    // Only the last may have been asked; it is answered, refused or was told the model.
    let found = ada
        .until(&run, "third turn", |run| {
            run["status"] == "waiting" || run["status"] == "succeeded"
        })
        .await
        .unwrap();
    let steps: Vec<&str> = found["asks"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|ask| ask["step"].as_str())
        .collect();
    assert!(steps.is_empty() || steps == ["question 3.1"], "{steps:?}");
    if !steps.is_empty() {
        let brackets = (0..14).fold(json!(1), |inner, _| json!([inner]));
        let reply = ada.approve(&run, "question 3.1", brackets).await.unwrap();
        assert_eq!(reply.code(), "T0002", "{}", reply.text);
        ada.refuse(&run, "question 3.1").await.unwrap();
    }
    ada.status(&run, "succeeded").await.unwrap();
    let requests = on.world.requests("m");
    let told = results(&requests[1]);
    assert_eq!(told.len(), shapes.len());
    for (call, text) in &told {
        assert!(text.contains("shape"), "{call}: {text}");
    }
    let nobody = std::time::Duration::ZERO;
    let asked = tokio::time::timeout(nobody, listener.accept()).await;
    assert!(asked.is_err(), "a shape was fetched");
}

/// Numbers reach the model as they were sent.
pub async fn numbers_keep_their_digits(on: &mut System) {
    let input = json!({"question": "How much?", "shape": {"type": "number"}});
    on.world.say(
        "m",
        [
            Answer::calls("", &[("c1", "question", input)]),
            Answer::text("Done."),
        ],
    );
    let ada = on.api("ada");
    let run = ada.start("asker", "go").await.unwrap();
    ada.asked(&run, 1).await.unwrap();
    let digits = "12345678901234567890.10";
    let body = format!("{{\"step\":\"question 1.1\",\"data\":{digits}}}");
    let path = format!("/v1/runs/{run}/approve");
    let doubled = format!("{{\"step\":\"question 1.1\",\"data\":{digits},\"data\":1}}");
    let reply = ada.post_text(&path, &doubled, None).await.unwrap();
    assert_eq!(reply.code(), "T0006", "a key twice");
    let reply = ada.post_text(&path, &body, None).await.unwrap();
    assert_eq!(reply.status, 200, "{}", reply.text);
    ada.status(&run, "succeeded").await.unwrap();
    assert_eq!(told(on), digits);
    let whole = ada.get(&format!("/v1/runs/{run}")).await.unwrap();
    assert!(whole.text.contains(&format!("\"data\":{digits}")));
}

/// An approval as it stands, one with another input, and one that is refused with a reason.
pub async fn an_approval_is_edited_approved_refused(on: &mut System) {
    let order = |number: &str| json!({"order": number});
    on.world.say(
        "m",
        [
            Answer::calls(
                "",
                &[
                    ("c1", "refund", order("1")),
                    ("c2", "mend", order("2")),
                    ("c3", "refund", order("3")),
                    ("c4", "refund", json!({"no": 1})),
                    ("c5", "refund", order(&"9".repeat(40_000))),
                ],
            ),
            Answer::text("Done."),
        ],
    );
    let ada = on.api("ada");
    let run = ada.start("asker", "go").await.unwrap();
    let asked = ada.asked(&run, 3).await.unwrap();
    assert_eq!(asked["asks"][0]["kind"], "approval");
    assert_eq!(asked["asks"][0]["tool"], "refund");
    assert_eq!(asked["asks"][0]["input"], order("1"));
    assert_eq!(on.world.effects().len(), 0, "nothing is done unasked");
    let path = |run: &str| format!("/v1/runs/{run}/approve");
    let other = ada.approve(&run, "refund 1.1", order("9")).await.unwrap();
    assert_eq!(other.code(), "T0002", "it is not editable");
    let bad = ada
        .approve(&run, "mend 1.1", json!({"order": "2", "sum": 0}))
        .await
        .unwrap();
    assert_eq!(rules(&bad), rule("/sum", "minimum"));
    let edited = ada
        .approve(&run, "mend 1.1", json!({"order": "20", "sum": 3}))
        .await
        .unwrap();
    assert_eq!(edited.status, 200, "{}", edited.text);
    let plain = ada
        .post(&path(&run), &json!({"step": "refund 1.1"}))
        .await
        .unwrap();
    assert_eq!(plain.status, 200, "{}", plain.text);
    let refused = json!({"step": "refund 1.2", "reason": "too dear", "data": {"stray": 1}});
    let refused = ada
        .post(&format!("/v1/runs/{run}/refuse"), &refused)
        .await
        .unwrap();
    assert_eq!(refused.status, 200, "{}", refused.text);
    ada.status(&run, "succeeded").await.unwrap();
    let read: Vec<String> = results(&on.world.requests("m")[1])
        .into_iter()
        .map(|(_, text)| text)
        .collect();
    assert_eq!(
        read[..3],
        [
            "refund done",
            "mend done",
            "The person refused this. Reason: too dear"
        ]
    );
    assert!(read[3].contains("order"), "{}", read[3]);
    assert!(
        read[4].contains("at most 32768 can be shown"),
        "{}",
        read[4]
    );
    let mut inputs: Vec<String> = on
        .world
        .effects()
        .iter()
        .map(|effect| format!("{} {}", effect.key.split('/').nth(1).unwrap(), effect.input))
        .collect();
    inputs.sort();
    assert_eq!(
        inputs,
        [
            "mend 1.1 {\"order\":\"20\",\"sum\":3}",
            "refund 1.1 {\"order\":\"1\"}"
        ]
    );
}

/// What a guard refuses, no person ever sees.
pub async fn a_guard_refuses_to_the_model_alone(on: &mut System) {
    let ask = |text: &str| json!({"question": text});
    let several = json!({"questions": [{"id": "a", "question": "Which?",
        "choices": [{"label": "my password", "value": "p"}]}]});
    on.world.say(
        "m",
        [
            Answer::calls(
                "",
                &[
                    ("c1", "question", ask("Your Password, please?")),
                    ("c2", "ask_question", several),
                    ("c3", "refund", json!({"order": "the password"})),
                ],
            ),
            Answer::text("Done."),
        ],
    );
    let ada = on.socket("ada").await.unwrap();
    let run = on.api("ada").start("guarded", "go").await.unwrap();
    let run = on.api("ada").status(&run, "succeeded").await.unwrap();
    assert_eq!(run["asks"], json!([]));
    ada.frame("end", |frame| frame["status"] == "succeeded")
        .await
        .unwrap();
    assert!(
        ada.frames()
            .iter()
            .all(|frame| frame["type"] != "ask.opened")
    );
    for (call, text) in results(&on.world.requests("m")[1]) {
        let expected = "A guard refused this question: never ask for a password";
        assert_eq!(text, expected, "{call}");
    }
    assert_eq!(on.world.effects().len(), 0);
}
