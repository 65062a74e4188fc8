//! The frames of a run, one by one (PROTOCOL 7).

use serde_json::{Value, json};

use super::{results, size, which_size};
use crate::client::Client;
use crate::system::System;
use crate::world::Answer;

/// The durable frames, each in a few words, without what differs from run to run.
fn told(client: &Client) -> Vec<String> {
    let frames = client.durable();
    frames.iter().map(line).collect()
}

fn line(frame: &Value) -> String {
    let text = |key: &str| frame[key].as_str().unwrap_or_default().to_owned();
    let name = text("type");
    match name.as_str() {
        "run.status" => {
            let output = frame["output"].as_str();
            let output = output
                .map(|text| format!(" output {text:?}"))
                .unwrap_or_default();
            format!("run.status {}{output}", text("status"))
        }
        "run.message" => {
            let calls = frame["calls"].as_array().cloned().unwrap_or_default();
            let steps: Vec<&str> = calls
                .iter()
                .filter_map(|call| call["step"].as_str())
                .collect();
            let steps = if steps.is_empty() {
                String::new()
            } else {
                format!(" calls {steps:?}")
            };
            format!("run.message turn {} {}{steps}", frame["turn"], text("role"))
        }
        "ask.opened" => format!("ask.opened {}", frame["ask"]["step"].as_str().unwrap()),
        "ask.settled" => format!(
            "ask.settled {} {} {}",
            text("step"),
            text("outcome"),
            frame["data"]
        ),
        "run.tool" => format!("run.tool {} {}", text("tool"), text("state")),
        _ => name,
    }
}

/// Their numbers are dense from 1.
fn dense(client: &Client) {
    let seqs: Vec<u64> = client
        .durable()
        .iter()
        .map(|frame| frame["seq"].as_u64().unwrap())
        .collect();
    let expected: Vec<u64> = (1..=seqs.len() as u64).collect();
    assert_eq!(seqs, expected);
}

async fn start(client: &Client, agent: &str) -> String {
    let ok = client
        .command(&json!({"type": "start", "agent": agent, "input": "a T-shirt, please"}))
        .await
        .unwrap();
    assert_eq!(ok["type"], "ok", "{ok}");
    ok["run"].as_str().unwrap().to_owned()
}

async fn approve(client: &Client, run: &str, step: &str, data: &str) -> Value {
    client
        .command(&json!({"type": "approve", "run": run, "step": step, "data": data}))
        .await
        .unwrap()
}

async fn status(client: &Client, status: &str) {
    client
        .frame(status, |frame| {
            frame["type"] == "run.status" && frame["status"] == status
        })
        .await
        .unwrap();
}

/// One person, one question, an answer, the end; two devices see the same.
pub async fn the_trace_of_the_protocol(on: &mut System) {
    on.world.say("m", [size(), Answer::text("M it is.")]);
    let ada = on.socket_at(0, "ada").await.unwrap();
    let other = on.socket_at(1, "ada").await.unwrap();
    let run = start(&ada, "asker").await;
    status(&ada, "waiting").await;
    let ok = approve(&ada, &run, "question 1.1", "M").await;
    assert_eq!(ok["outcome"], "answered");
    let trace = [
        "run.status queued",
        "run.message turn 0 user",
        "run.status running",
        "run.message turn 1 assistant calls [\"question 1.1\"]",
        "ask.opened question 1.1",
        "run.status waiting",
        "ask.settled question 1.1 answered \"M\"",
        "run.status queued",
        "run.status running",
        "run.message turn 2 assistant",
        "run.status succeeded output \"M it is.\"",
    ];
    for client in [&ada, &other] {
        status(client, "succeeded").await;
        assert_eq!(told(client), trace);
        dense(client);
    }
    // The reply's `seq` is that of its commit's last frame.
    let queued = ada.durable()[7]["seq"].clone();
    assert_eq!(ok["seq"], queued);
    let opened = ada.durable()[4]["ask"].clone();
    assert_eq!(opened["input"], which_size());
    assert_eq!(opened["state"], "open");
    assert_eq!(opened["kind"], "question");
    let settled = ada.durable()[6].clone();
    assert_eq!(settled["by"]["sub"], "ada");
    assert_eq!(ada.durable(), other.durable());
}

/// The tool is done first: the run waits, and goes on with the answer.
pub async fn a_sibling_tool_ends_before_the_answer(on: &mut System) {
    on.world.say("m", [beside(), Answer::text("Done.")]);
    let ada = on.socket("ada").await.unwrap();
    let run = start(&ada, "asker").await;
    status(&ada, "waiting").await;
    approve(&ada, &run, "question 1.1", "M").await;
    status(&ada, "succeeded").await;
    assert_eq!(
        told(&ada)[2..],
        [
            "run.status running",
            "run.message turn 1 assistant calls [\"send 1.1\", \"question 1.1\"]",
            "ask.opened question 1.1",
            "run.tool send started",
            "run.tool send done",
            "run.status waiting",
            "ask.settled question 1.1 answered \"M\"",
            "run.status queued",
            "run.status running",
            "run.message turn 2 assistant",
            "run.status succeeded output \"Done.\"",
        ]
    );
    both_results(on);
}

/// The answer comes while the tool is still at work: it changes no status, and the model is
/// called when the tool is done too.
pub async fn a_sibling_tool_ends_after_the_answer(on: &mut System) {
    on.world.gate("send");
    on.world.say("m", [beside(), Answer::text("Done.")]);
    let ada = on.socket("ada").await.unwrap();
    let run = start(&ada, "asker").await;
    let wait = crate::client::PATIENCE;
    let called = |world: &crate::world::World| world.effects().len() == 1;
    on.world.until("call", wait, called).await.unwrap();
    let ok = approve(&ada, &run, "question 1.1", "M").await;
    assert_eq!(ok["type"], "ok", "{ok}");
    assert_eq!(on.world.requests("m").len(), 1, "a result is still missing");
    on.world.release();
    status(&ada, "succeeded").await;
    assert_eq!(
        told(&ada)[4..],
        [
            "ask.opened question 1.1",
            "run.tool send started",
            "ask.settled question 1.1 answered \"M\"",
            "run.tool send done",
            "run.message turn 2 assistant",
            "run.status succeeded output \"Done.\"",
        ]
    );
    both_results(on);
}

fn beside() -> Answer {
    Answer::calls(
        "",
        &[
            ("c1", "send", json!({"to": "box@example.test"})),
            ("c2", "question", which_size()),
        ],
    )
}

fn both_results(on: &System) {
    let requests = on.world.requests("m");
    assert_eq!(requests.len(), 2);
    let expected = [("c1", "send done"), ("c2", "M")];
    let expected = expected.map(|(call, text)| (call.to_owned(), text.to_owned()));
    assert_eq!(results(&requests[1]), expected);
    assert_eq!(on.world.effects().len(), 1);
}

/// Two asks of one turn, the first answered first.
pub async fn two_asks_answered_in_order(on: &mut System) {
    two_asks(on, ["question 1.1", "question 1.2"]).await;
}

/// Two asks of one turn, the second answered first.
pub async fn two_asks_answered_the_other_way_round(on: &mut System) {
    two_asks(on, ["question 1.2", "question 1.1"]).await;
}

async fn two_asks(on: &mut System, order: [&str; 2]) {
    let wrap = json!({"question": "Gift wrap it?", "choices": ["yes", "no"]});
    let asks = [("c1", "question", which_size()), ("c2", "question", wrap)];
    on.world
        .say("m", [Answer::calls("", &asks), Answer::text("Done.")]);
    let ada = on.socket("ada").await.unwrap();
    let run = start(&ada, "asker").await;
    status(&ada, "waiting").await;
    let answer = |step: &str| if step == "question 1.1" { "M" } else { "no" };
    // What fits the other ask does not fit this one.
    let other = answer(order[1]);
    let misfit = approve(&ada, &run, order[0], other).await;
    assert_eq!(misfit["code"], "T0002");
    let first = approve(&ada, &run, order[0], answer(order[0])).await;
    assert_eq!(first["type"], "ok");
    let open = on.api("ada").get("/v1/asks?state=open").await.unwrap().body;
    assert_eq!(open["asks"].as_array().unwrap().len(), 1);
    assert_eq!(open["asks"][0]["step"], order[1]);
    assert_eq!(on.world.requests("m").len(), 1);
    approve(&ada, &run, order[1], answer(order[1])).await;
    status(&ada, "succeeded").await;
    let settled = |step: &str| format!("ask.settled {step} answered {:?}", answer(step));
    assert_eq!(
        told(&ada)[3..9],
        [
            "run.message turn 1 assistant calls [\"question 1.1\", \"question 1.2\"]".to_owned(),
            "ask.opened question 1.1".to_owned(),
            "ask.opened question 1.2".to_owned(),
            "run.status waiting".to_owned(),
            settled(order[0]),
            settled(order[1]),
        ]
    );
    let expected = [("c1", "M"), ("c2", "no")];
    let expected = expected.map(|(call, text)| (call.to_owned(), text.to_owned()));
    assert_eq!(results(&on.world.requests("m")[1]), expected);
}

/// Text comes in pieces by offset, all of it before its message, and none after.
pub async fn text_streams_before_it_is_saved(on: &mut System) {
    let text = "Größe \u{1F455} M it is, and then some more words.";
    on.world.say("m", [Answer::text(text)]);
    let ada = on.socket("ada").await.unwrap();
    start(&ada, "asker").await;
    status(&ada, "succeeded").await;
    let frames = ada.frames();
    let saved = frames
        .iter()
        .position(|frame| frame["type"] == "run.message" && frame["turn"] == 1)
        .unwrap();
    let mut streamed = String::new();
    for (at, frame) in frames.iter().enumerate() {
        if frame["type"] != "run.delta" {
            continue;
        }
        assert!(at < saved, "a piece came after its message");
        let offset = streamed.encode_utf16().count();
        assert_eq!(frame["offset"].as_u64().unwrap(), offset as u64);
        assert!(frame.get("seq").is_none());
        streamed.push_str(frame["text"].as_str().unwrap());
    }
    assert_eq!(streamed, text);
    assert_eq!(frames[saved]["text"], text);
}
