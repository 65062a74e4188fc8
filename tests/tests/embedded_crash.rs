//! kill -9 of the embedded system at the moments that hurt, and what is there afterwards.
#![allow(clippy::unwrap_used, reason = "a test's helpers may fail by panicking")]

use askwell_tests::client::PATIENCE;
use askwell_tests::flow::{AGENTS, results, size};
use askwell_tests::system::System;
use askwell_tests::world::{Answer, World};
use serde_json::json;

/// The ask is there with the time that is left, takes the answer, and the run ends; what was
/// settled before the kill is not open after it.
#[tokio::test]
async fn with_an_ask_open() {
    let mut on = System::embedded(AGENTS).await.unwrap();
    on.world.say(
        "m",
        [size(), size(), Answer::text("Done."), Answer::text("Done.")],
    );
    let ada = on.api("ada");
    let answered = ada.start("asker", "one").await.unwrap();
    ada.asked(&answered, 1).await.unwrap();
    let open = ada.start("asker", "two").await.unwrap();
    let before = ada.asked(&open, 1).await.unwrap();
    let reply = ada
        .approve(&answered, "question 1.1", json!("L"))
        .await
        .unwrap();
    assert_eq!(reply.status, 200);
    // Accepted: from here on the answer is used, whatever dies.
    on.kill_and_start().await.unwrap();
    let ada = on.api("ada");
    let after = ada.asked(&open, 1).await.unwrap();
    assert_eq!(after["asks"], before["asks"]);
    let socket = on.socket("ada").await.unwrap();
    let frames = socket.frames();
    let snapshot = frames
        .iter()
        .find(|frame| frame["type"] == "snapshot")
        .unwrap();
    let asks = snapshot["asks"].as_array().unwrap();
    assert_eq!(asks.len(), 1, "a settled ask is open: {snapshot}");
    assert_eq!(asks[0], before["asks"][0]);
    ada.approve(&open, "question 1.1", json!("M"))
        .await
        .unwrap();
    for (run, data) in [(&answered, "L"), (&open, "M")] {
        let run = ada.status(run, "succeeded").await.unwrap();
        assert_eq!(run["tools"][0]["result"], data);
        assert_eq!(run["asks"].as_array().unwrap().len(), 1);
    }
    assert_eq!(
        ada.get("/v1/asks?state=open").await.unwrap().body["asks"],
        json!([])
    );
}

/// A model call under way is made again, nothing of the broken one is kept.
#[tokio::test]
async fn with_a_model_call_under_way() {
    let mut on = System::embedded(AGENTS).await.unwrap();
    on.world.say("m", [size().held()]);
    let run = on.api("ada").start("asker", "go").await.unwrap();
    let asked = |world: &World| world.requests("m").len() == 1;
    on.world.until("request", PATIENCE, asked).await.unwrap();
    on.kill_and_start().await.unwrap();
    on.world.say("m", [size(), Answer::text("Done.")]);
    let ada = on.api("ada");
    let waiting = ada.asked(&run, 1).await.unwrap();
    assert_eq!(waiting["asks"].as_array().unwrap().len(), 1);
    ada.approve(&run, "question 1.1", json!("M")).await.unwrap();
    ada.status(&run, "succeeded").await.unwrap();
    let requests = on.world.requests("m");
    assert_eq!(requests.len(), 3, "one was paid twice, none three times");
    assert_eq!(requests[0], requests[1]);
}

/// A tool that may be repeated is, with the same key; for one that may not the starter is asked,
/// and is the only one who can have it done again.
#[tokio::test]
async fn with_tool_calls_under_way() {
    let mut on = System::embedded(AGENTS).await.unwrap();
    on.world.gate("send");
    on.world.gate("lookup");
    let calls = [
        ("c1", "send", json!({"to": "x"})),
        ("c2", "lookup", json!({"q": "hours"})),
        ("c3", "send", json!({"to": "y"})),
    ];
    on.world
        .say("m", [Answer::calls("", &calls), Answer::text("Done.")]);
    let run = on.api("ada").start("asker", "go").await.unwrap();
    let called = |world: &World| world.effects().len() == 3;
    on.world.until("calls", PATIENCE, called).await.unwrap();
    on.kill_and_start().await.unwrap();
    on.world.release();
    let ada = on.api("ada");
    let asked = ada.asked(&run, 2).await.unwrap();
    for (number, ask) in asked["asks"].as_array().unwrap().iter().enumerate() {
        assert_eq!(ask["kind"], "redo");
        assert_eq!(ask["step"], format!("send 1.{}", number + 1));
        assert_eq!(ask["repeat"], 1);
    }
    let effects = on.world.effects();
    assert_eq!(effects.len(), 4, "only the lookup was made again");
    assert_eq!(effects[3].tool, "lookup");
    let keys: Vec<&str> = effects
        .iter()
        .filter(|effect| effect.tool == "lookup")
        .map(|effect| effect.key.as_str())
        .collect();
    assert_eq!(
        keys,
        [format!("{run}/lookup 1.1"), format!("{run}/lookup 1.1")]
    );
    let again = json!({"step": "send 1.1"});
    let again = ada
        .post(&format!("/v1/runs/{run}/approve"), &again)
        .await
        .unwrap();
    assert_eq!(again.status, 200, "{}", again.text);
    ada.refuse(&run, "send 1.2").await.unwrap();
    ada.status(&run, "succeeded").await.unwrap();
    let told = results(&on.world.requests("m")[1]);
    let told: Vec<&str> = told.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(
        told,
        [
            "send done",
            "lookup done",
            "It is not known whether this was done; it was not done again.",
        ]
    );
    assert_eq!(on.world.effects().len(), 5);
}

/// SIGTERM gives runs back at once: the next process goes on with them without waiting for a
/// lease to run out.
#[tokio::test]
async fn a_drain_gives_runs_back() {
    let mut on = System::embedded(AGENTS).await.unwrap();
    on.world.say("m", [size().held()]);
    let run = on.api("ada").start("asker", "go").await.unwrap();
    let asked = |world: &World| world.requests("m").len() == 1;
    on.world.until("request", PATIENCE, asked).await.unwrap();
    let status = on.processes[0].terminate(PATIENCE).await.unwrap();
    assert_eq!(status.code(), Some(0), "{:?}", on.processes[0].lines());
    on.world.say("m", [size()]);
    on.kill_and_start().await.unwrap();
    let run = on.api("ada").asked(&run, 1).await.unwrap();
    assert_eq!(run["attempts"], 0, "it was given back, not lost");
}
