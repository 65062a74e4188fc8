//! What is sent to models and tools, and what they get back.

use serde_json::json;

use super::{results, size};
use crate::system::System;
use crate::world::Answer;

/// The second request holds the assistant's message unchanged and one tool message per call.
pub async fn the_next_request_is_what_the_provider_wants(on: &mut System) {
    let calls = json!([
        {"index": 0, "id": "c1", "type": "function", "extra_content": {"signature": "c2ln"},
            "function": {"name": "question", "arguments": "{\"question\":\"Which"}},
    ]);
    let more = json!([{"index": 0, "function": {"arguments": " size?\"}"}}]);
    let chunk = |delta: serde_json::Value, finish: Option<&str>| json!({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]});
    on.world.say(
        "m",
        [
            Answer::stream(&[
                chunk(json!({"role": "assistant", "content": "One "}), None),
                chunk(json!({"content": "moment."}), None),
                chunk(json!({"tool_calls": calls}), None),
                chunk(json!({"tool_calls": more}), Some("tool_calls")),
                json!({"choices": [], "usage": {"prompt_tokens": 30, "completion_tokens": 12}}),
            ]),
            Answer::text("Done."),
        ],
    );
    let ada = on.api("ada");
    let run = ada.start("asker", "a T-shirt").await.unwrap();
    ada.asked(&run, 1).await.unwrap();
    ada.approve(&run, "question 1.1", json!("a large one"))
        .await
        .unwrap();
    let run = ada.status(&run, "succeeded").await.unwrap();
    assert_eq!(run["usage"], json!({"tokensIn": 41, "tokensOut": 19}));
    let requests = on.world.requests("m");
    assert_eq!(requests.len(), 2);
    assert_eq!(requests[0]["stream"], true);
    assert_eq!(requests[0]["model"], "house-model");
    let before = requests[0]["messages"].as_array().unwrap();
    let after = requests[1]["messages"].as_array().unwrap();
    assert_eq!(after[..before.len()], before[..]);
    assert_eq!(after.len(), before.len() + 2);
    let assistant = &after[before.len()];
    assert_eq!(assistant["content"], "One moment.");
    assert_eq!(
        assistant["tool_calls"],
        json!([{"id": "c1", "type": "function", "extra_content": {"signature": "c2ln"},
            "function": {"name": "question", "arguments": "{\"question\":\"Which size?\"}"}}])
    );
    assert_eq!(
        after[before.len() + 1],
        json!({"role": "tool", "tool_call_id": "c1", "content": "a large one"})
    );
}

/// A tool that is not there, wrong arguments, a failing tool, arguments that cannot be read: the
/// model reads what was wrong, each call has its result, nobody is asked.
pub async fn a_call_that_goes_wrong_is_told_the_model(on: &mut System) {
    on.world.fail("lookup", 503);
    on.world.say(
        "m",
        [
            Answer::calls(
                "",
                &[
                    ("c1", "teleport", json!({})),
                    ("c2", "send", json!({"too": "x"})),
                    ("c3", "lookup", json!({"q": "hours"})),
                    ("c4", "question", json!({"choices": ["a"]})),
                    (
                        "c5",
                        "question",
                        json!({"question": "?", "choices": "red, green or blue"}),
                    ),
                    ("c6", "question", json!("text")),
                ],
            ),
            Answer::text("Done."),
        ],
    );
    let ada = on.api("ada");
    let run = ada.start("asker", "go").await.unwrap();
    let run = ada.status(&run, "succeeded").await.unwrap();
    assert_eq!(run["asks"], json!([]));
    let told = results(&on.world.requests("m")[1]);
    let ids: Vec<&str> = told.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(ids, ["c1", "c2", "c3", "c4", "c5", "c6"]);
    assert_eq!(told[0].1, "There is no tool named teleport any more.");
    assert!(told[1].1.contains("to"), "{}", told[1].1);
    assert_eq!(told[2].1, "HTTP 503: lookup done");
    for (_, text) in &told[3..] {
        assert!(!text.is_empty());
    }
    assert_eq!(on.world.effects().len(), 1, "only the lookup was made");
}

/// A stream that breaks or refuses is void and is made again; what it said is on no screen in
/// the end.
pub async fn a_provider_that_fails_is_tried_again(on: &mut System) {
    let broken = Answer::stream(&[
        json!({"choices": [{"index": 0, "delta": {"content": "Rubbish"}, "finish_reason": null}]}),
        json!({"error": {"message": "upstream is full", "code": 502}}),
    ]);
    on.world.say(
        "m",
        [
            broken,
            Answer::status(503, "busy"),
            size(),
            Answer::text("Done."),
        ],
    );
    let ada = on.socket("ada").await.unwrap();
    let run = on.api("ada").start("asker", "go").await.unwrap();
    on.api("ada").asked(&run, 1).await.unwrap();
    ada.frame("ask", |frame| frame["type"] == "ask.opened")
        .await
        .unwrap();
    let opened = ada
        .durable()
        .iter()
        .filter(|frame| frame["type"] == "ask.opened")
        .count();
    assert_eq!(opened, 1);
    assert!(
        ada.durable()
            .iter()
            .all(|frame| !frame.to_string().contains("Rubbish"))
    );
    let attempts: Vec<u64> = ada
        .frames()
        .iter()
        .filter(|frame| frame["type"] == "run.delta")
        .filter_map(|frame| frame["attempt"].as_u64())
        .collect();
    assert_eq!(attempts.len(), 1, "{attempts:?}");
    on.api("ada")
        .approve(&run, "question 1.1", json!("M"))
        .await
        .unwrap();
    on.api("ada").status(&run, "succeeded").await.unwrap();
    assert_eq!(on.world.requests("m").len(), 4);
    // A refusal for good is not tried again, and its reason is the run's.
    on.world.say(
        "m",
        [Answer::status(401, "{\"error\":{\"message\":\"bad key\"}}")],
    );
    let failed = on.api("ada").start("asker", "go").await.unwrap();
    let failed = on.api("ada").status(&failed, "failed").await.unwrap();
    let reason = failed["reason"].as_str().unwrap();
    assert!(reason.starts_with("model: 401"), "{reason}");
    assert_eq!(on.world.requests("m").len(), 5);
}
