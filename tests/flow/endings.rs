//! How asks and runs end other than by an answer (SPEC 2, 3.3, 3.6).

use serde_json::{Value, json};

use super::{results, size};
use crate::client::{Api, PATIENCE};
use crate::system::System;
use crate::world::{Answer, World};

const REFUSED: &str = "The person refused this.";

fn told(on: &System, request: usize) -> Vec<String> {
    let requests = on.world.requests("m");
    let results = results(&requests[request]);
    results.into_iter().map(|(_, text)| text).collect()
}

/// The model reads the same words; the record, the events and the answer to a late device tell
/// them apart.
pub async fn refusal_and_expiry_read_the_same_and_are_kept_apart(on: &mut System) {
    let ada = on.api("ada");
    let socket = on.socket("ada").await.unwrap();
    on.world.say("m", [size(), Answer::text("Then not.")]);
    let run = ada.start("brief", "go").await.unwrap();
    ada.asked(&run, 1).await.unwrap();
    let reply = ada.refuse(&run, "question 1.1").await.unwrap();
    assert_eq!(
        (reply.status, &reply.body["outcome"]),
        (200, &json!("refused"))
    );
    let refused = ada.status(&run, "succeeded").await.unwrap();
    assert_eq!(refused["asks"][0]["outcome"], "refused");
    assert_eq!(refused["asks"][0]["by"]["sub"], "ada");
    assert_eq!(told(on, 1), [REFUSED]);

    on.world.say("m", [size(), Answer::text("Then not.")]);
    let run = ada.start("brief", "go").await.unwrap();
    let expired = ada.status(&run, "succeeded").await.unwrap();
    assert_eq!(expired["asks"][0]["outcome"], "expired");
    assert_eq!(expired["asks"][0]["by"], Value::Null);
    assert_eq!(told(on, 3), [REFUSED]);
    for outcome in ["refused", "expired"] {
        socket
            .frame(outcome, |frame| {
                frame["type"] == "ask.settled" && frame["outcome"] == outcome
            })
            .await
            .unwrap();
    }
    // Late is late, whether it would fit or not.
    for data in ["M", "XL"] {
        let late = ada
            .approve(&run, "question 1.1", json!(data))
            .await
            .unwrap();
        assert_eq!((late.status, late.code()), (409, "T0003"), "{}", late.text);
        assert_eq!(late.body["settled"]["outcome"], "expired");
    }
    // The person's own words are an answer, whatever they say.
    on.world.say(
        "m",
        [
            Answer::calls(
                "",
                &[("c1", "question", json!({"question": "Anything else?"}))],
            ),
            Answer::text("Done."),
        ],
    );
    let run = ada.start("asker", "go").await.unwrap();
    ada.asked(&run, 1).await.unwrap();
    ada.approve(&run, "question 1.1", json!(REFUSED))
        .await
        .unwrap();
    let answered = ada.status(&run, "succeeded").await.unwrap();
    assert_eq!(answered["asks"][0]["outcome"], "answered");
}

/// `tellExpiry` lets the model know that nobody answered.
pub async fn an_expiry_is_told_where_the_agent_wants_it(on: &mut System) {
    let ada = on.api("ada");
    on.world.say("m", [size(), Answer::text("Then not.")]);
    let run = ada.start("told", "go").await.unwrap();
    ada.status(&run, "succeeded").await.unwrap();
    assert_eq!(told(on, 1), ["Nobody answered in time."]);
}

async fn cancel(api: &Api, run: &str) {
    let reply = api
        .post(&format!("/v1/runs/{run}/cancel"), &json!({}))
        .await
        .unwrap();
    assert_eq!(
        (reply.status, &reply.body["status"]),
        (200, &json!("cancelled")),
        "{}",
        reply.text
    );
}

/// While it waits, while the model streams, while a tool runs, while it is queued behind another.
pub async fn cancel_in_every_state(on: &mut System) {
    let ada = on.api("ada");
    // Waiting.
    on.world.say("m", [size()]);
    let run = ada.start("asker", "go").await.unwrap();
    ada.asked(&run, 1).await.unwrap();
    cancel(&ada, &run).await;
    let over = ada.status(&run, "cancelled").await.unwrap();
    assert_eq!(over["asks"][0]["outcome"], "cancelled");
    let late = ada.approve(&run, "question 1.1", json!("M")).await.unwrap();
    assert_eq!(
        (late.code(), &late.body["settled"]["outcome"]),
        ("T0003", &json!("cancelled"))
    );
    // While the model streams.
    on.world.say("m", [Answer::text("a long story").held()]);
    let run = ada.start("asker", "go").await.unwrap();
    let asked = |world: &World| world.requests("m").len() == 2;
    on.world.until("request", PATIENCE, asked).await.unwrap();
    cancel(&ada, &run).await;
    on.world.release();
    // While a tool runs.
    on.world.gate("send");
    on.world.say(
        "m",
        [Answer::calls("", &[("c1", "send", json!({"to": "x"}))])],
    );
    let running = ada.start("asker", "go").await.unwrap();
    let called = |world: &World| world.effects().len() == 1;
    on.world.until("call", PATIENCE, called).await.unwrap();
    cancel(&ada, &running).await;
    on.world.release();
    // Behind another in a thread.
    on.world.say("m", [size()]);
    let start = |input: &str| json!({"agent": "asker", "input": input, "thread": "t"});
    let head = ada.post("/v1/runs", &start("one")).await.unwrap().body;
    let head = head["run"].as_str().unwrap().to_owned();
    ada.asked(&head, 1).await.unwrap();
    let behind = ada.post("/v1/runs", &start("two")).await.unwrap().body;
    let behind = behind["run"].as_str().unwrap().to_owned();
    cancel(&ada, &behind).await;
    on.world.say("m", [Answer::text("Done.")]);
    ada.approve(&head, "question 1.1", json!("M"))
        .await
        .unwrap();
    ada.status(&head, "succeeded").await.unwrap();
    for run in [&run, &running, &behind] {
        ada.status(run, "cancelled").await.unwrap();
    }
    assert_eq!(
        on.world.requests("m").len(),
        5,
        "no model was called after a cancel"
    );
    assert_eq!(
        ada.get("/v1/runs?status=live").await.unwrap().body["runs"],
        json!([])
    );
}

/// A turn with calls at a limit fails before anyone is asked, and says which limit; beyond
/// `limits.asks` the model is told.
pub async fn limits_ask_nobody_in_vain(on: &mut System) {
    let ada = on.api("ada");
    let two = [
        ("c1", "question", super::which_size()),
        ("c2", "question", super::which_size()),
    ];
    on.world.say("m", [Answer::calls("", &two), size()]);
    let run = ada.start("few", "go").await.unwrap();
    let found = ada.asked(&run, 1).await.unwrap();
    assert_eq!(found["asks"].as_array().unwrap().len(), 1);
    ada.approve(&run, "question 1.1", json!("M")).await.unwrap();
    let failed = ada.status(&run, "failed").await.unwrap();
    assert_eq!(failed["reason"], "limit steps of 2 reached");
    assert_eq!(
        failed["asks"].as_array().unwrap().len(),
        1,
        "nobody was asked in vain"
    );
    assert_eq!(
        told(on, 1),
        ["M", "No more questions may be asked in this run."]
    );
    // Still over: the same reason again.
    let reply = ada
        .post(&format!("/v1/runs/{run}/retry"), &json!({}))
        .await
        .unwrap();
    assert_eq!(
        (reply.status, &reply.body["status"]),
        (200, &json!("failed")),
        "{}",
        reply.text
    );
    let failed = ada.status(&run, "failed").await.unwrap();
    assert_eq!(failed["reason"], "limit steps of 2 reached");
}

/// A failed model call is made again; what was settled and done stays.
pub async fn a_failed_run_is_retried(on: &mut System) {
    let ada = on.api("ada");
    let beside = [
        ("c1", "send", json!({"to": "x"})),
        ("c2", "question", super::which_size()),
    ];
    on.world
        .say("m", [Answer::calls("", &beside), Answer::status(400, "no")]);
    let run = ada.start("asker", "go").await.unwrap();
    ada.asked(&run, 1).await.unwrap();
    ada.approve(&run, "question 1.1", json!("M")).await.unwrap();
    let failed = ada.status(&run, "failed").await.unwrap();
    assert!(failed["reason"].as_str().unwrap().starts_with("model: 400"));
    on.world.say("m", [Answer::text("Done.")]);
    let reply = ada
        .post(&format!("/v1/runs/{run}/retry"), &json!({}))
        .await
        .unwrap();
    assert_eq!(
        (reply.status, &reply.body["status"]),
        (200, &json!("queued")),
        "{}",
        reply.text
    );
    ada.status(&run, "succeeded").await.unwrap();
    assert_eq!(told(on, 2), ["send done", "M"]);
    assert_eq!(
        on.world.effects().len(),
        1,
        "a finished call is not made again"
    );
}

/// The second waits for the first, and its model sees what was said before.
pub async fn a_thread_goes_one_at_a_time(on: &mut System) {
    let ada = on.api("ada");
    on.world.say("m", [size()]);
    let start = |input: &str| json!({"agent": "asker", "input": input, "thread": "shirts"});
    let first = ada
        .post("/v1/runs", &start("a T-shirt"))
        .await
        .unwrap()
        .body;
    let first = first["run"].as_str().unwrap().to_owned();
    ada.asked(&first, 1).await.unwrap();
    let second = ada
        .post("/v1/runs", &start("and a hat"))
        .await
        .unwrap()
        .body;
    let second = second["run"].as_str().unwrap().to_owned();
    // Another person's thread of the same name is another thread.
    on.world.say("m", [Answer::text("Hello Bob.")]);
    let bob = on.api("bob");
    let theirs = bob.post("/v1/runs", &start("hello")).await.unwrap().body;
    bob.status(theirs["run"].as_str().unwrap(), "succeeded")
        .await
        .unwrap();
    assert_eq!(on.world.requests("m").len(), 2, "the second did not start");
    on.world
        .say("m", [Answer::text("M it is."), Answer::text("A hat too.")]);
    ada.approve(&first, "question 1.1", json!("M"))
        .await
        .unwrap();
    ada.status(&second, "succeeded").await.unwrap();
    let requests = on.world.requests("m");
    let said: Vec<(String, String)> = requests[3]["messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|message| message["role"] != "system")
        .map(|message| {
            let text = |key: &str| message[key].as_str().unwrap_or_default().to_owned();
            (text("role"), text("content"))
        })
        .collect();
    let expected = [
        ("user", "a T-shirt"),
        ("assistant", "M it is."),
        ("user", "and a hat"),
    ];
    assert_eq!(
        said,
        expected.map(|(role, text)| (role.to_owned(), text.to_owned()))
    );
}

/// `onMessage = "supersede"`: a waiting head makes room.
pub async fn a_newer_message_supersedes(on: &mut System) {
    let ada = on.api("ada");
    on.world.say("m", [size(), Answer::text("A hat, then.")]);
    let start = |input: &str| json!({"agent": "latest", "input": input, "thread": "t"});
    let first = ada
        .post("/v1/runs", &start("a T-shirt"))
        .await
        .unwrap()
        .body;
    let first = first["run"].as_str().unwrap().to_owned();
    ada.asked(&first, 1).await.unwrap();
    let second = ada
        .post("/v1/runs", &start("no, a hat"))
        .await
        .unwrap()
        .body;
    ada.status(second["run"].as_str().unwrap(), "succeeded")
        .await
        .unwrap();
    let over = ada.status(&first, "cancelled").await.unwrap();
    assert_eq!(over["reason"], "superseded");
    assert_eq!(over["asks"][0]["outcome"], "superseded");
    let late = ada
        .approve(&first, "question 1.1", json!("M"))
        .await
        .unwrap();
    assert_eq!(late.body["settled"]["outcome"], "superseded");
}
