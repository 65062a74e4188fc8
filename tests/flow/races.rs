//! What happens at the same moment, twice, or while nobody is connected.

use futures_util::future::join_all;
use serde_json::{Value, json};

use super::{results, size};
use crate::client::{Client, cmd, token};
use crate::system::System;
use crate::world::Answer;

/// 200 pairs of answers from two sockets: one wins, the other hears who won, the model is called
/// once.
pub async fn two_answers_at_the_same_moment(on: &mut System) {
    let pairs = 200;
    let first = on.socket_at(0, "ada").await.unwrap();
    let second = on.socket_at(1, "ada").await.unwrap();
    let ada = on.api("ada");
    for batch in 0..10 {
        let size_of_batch = pairs / 10;
        // All questions first, so that the answers below are the model's next.
        on.world.say("m", (0..size_of_batch).map(|_| size()));
        let mut runs = Vec::new();
        for _ in 0..size_of_batch {
            runs.push(ada.start("asker", "a T-shirt").await.unwrap());
        }
        for run in &runs {
            ada.asked(run, 1).await.unwrap();
        }
        on.world
            .say("m", (0..size_of_batch).map(|_| Answer::text("Done.")));
        let races = runs.iter().map(|run| {
            let answer = |data: &str| json!({"type": "approve", "run": run, "step": "question 1.1", "data": data});
            let (one, two) = (answer("M"), answer("L"));
            let (first, second) = (&first, &second);
            async move {
                let (one, two) = tokio::join!(first.command(&one), second.command(&two));
                (run, one.unwrap(), two.unwrap())
            }
        });
        for (run, one, two) in join_all(races).await {
            let (won, lost, data) = if one["type"] == "ok" {
                (one, two, "M")
            } else {
                (two, one, "L")
            };
            assert_eq!(won["outcome"], "answered", "batch {batch}");
            assert_eq!(lost["code"], "T0003", "batch {batch}");
            assert_eq!(lost["settled"]["outcome"], "answered");
            assert_eq!(lost["settled"]["by"]["sub"], "ada");
            let run = ada.status(run, "succeeded").await.unwrap();
            assert_eq!(run["asks"][0]["data"], data);
            assert_eq!(run["tools"][0]["result"], data);
        }
    }
    assert_eq!(on.world.requests("m").len(), 2 * pairs);
}

/// A command id is a command: the same again gets the same reply, also when the run is over;
/// another body is refused.
pub async fn the_same_command_twice(on: &mut System) {
    on.world.say("m", [size(), Answer::text("Done.")]);
    let ada = on.socket_at(0, "ada").await.unwrap();
    let other = on.socket_at(1, "ada").await.unwrap();
    let started = cmd();
    let start = json!({"type": "start", "agent": "asker", "input": "go", "cmd": started});
    let first = ada.command(&start).await.unwrap();
    assert_eq!(ada.command(&start).await.unwrap(), first);
    assert_eq!(other.command(&start).await.unwrap(), first);
    let run = first["run"].as_str().unwrap().to_owned();
    let changed = json!({"type": "start", "agent": "asker", "input": "stop", "cmd": started});
    assert_eq!(ada.command(&changed).await.unwrap()["code"], "T0004");
    let api = on.api("ada");
    api.asked(&run, 1).await.unwrap();
    // A refusal is not recorded: the same command may succeed later.
    let answered = cmd();
    let approve = |data: &str| json!({"type": "approve", "run": run, "step": "question 1.1", "data": data, "cmd": answered});
    let misfit = ada.command(&approve("XL")).await.unwrap();
    assert_eq!(misfit["code"], "T0002");
    let ok = ada.command(&approve("M")).await.unwrap();
    assert_eq!(ok["type"], "ok");
    assert_eq!(other.command(&approve("M")).await.unwrap(), ok);
    assert_eq!(other.command(&approve("L")).await.unwrap()["code"], "T0004");
    api.status(&run, "succeeded").await.unwrap();
    assert_eq!(ada.command(&approve("M")).await.unwrap(), ok);
    // Over HTTP it is the same command, with defaults left out or not.
    let body = json!({"step": "question 1.1", "repeat": 1, "n": null, "data": "M"});
    let path = format!("/v1/runs/{run}/approve");
    let reply = api.command(&path, &body, &answered).await.unwrap();
    assert_eq!((reply.status, &reply.body["seq"]), (200, &ok["seq"]));
    let again = api
        .command(
            "/v1/runs",
            &json!({"agent": "asker", "input": "go"}),
            &started,
        )
        .await
        .unwrap();
    assert_eq!((again.status, &again.body["run"]), (202, &first["run"]));
    // Another caller's command of the same id is another command.
    let bob = on.api("bob");
    let theirs = bob
        .command(
            "/v1/runs",
            &json!({"agent": "nobody", "input": "go"}),
            &started,
        )
        .await
        .unwrap();
    assert_eq!(theirs.code(), "T0005");
    assert_eq!(on.world.requests("m").len(), 2);
}

/// Three asks of one turn, answered over three sockets at once while a sibling tool is at work.
pub async fn three_answers_beside_a_tool(on: &mut System) {
    on.world.gate("send");
    let ask = |text: &str| json!({"question": text});
    on.world.say(
        "m",
        [
            Answer::calls(
                "",
                &[
                    ("c1", "question", ask("Name?")),
                    ("c2", "send", json!({"to": "x"})),
                    ("c3", "question", ask("Street?")),
                    ("c4", "question", ask("Town?")),
                ],
            ),
            Answer::text("Done."),
        ],
    );
    let mut sockets = Vec::new();
    for number in 0..3 {
        sockets.push(on.socket_at(number, "ada").await.unwrap());
    }
    let run = on.api("ada").start("asker", "go").await.unwrap();
    let called = |world: &crate::world::World| world.effects().len() == 1;
    on.world
        .until("call", crate::client::PATIENCE, called)
        .await
        .unwrap();
    let answers = sockets.iter().enumerate().map(|(number, socket)| {
        let step = format!("question 1.{}", number + 1);
        let data = format!("answer {number}");
        let answer = json!({"type": "approve", "run": run, "step": step, "data": data});
        async move { socket.command(&answer).await.unwrap() }
    });
    for ok in join_all(answers).await {
        assert_eq!(ok["outcome"], "answered", "{ok}");
    }
    assert_eq!(on.world.requests("m").len(), 1, "the tool is still at work");
    on.world.release();
    on.api("ada").status(&run, "succeeded").await.unwrap();
    let requests = on.world.requests("m");
    assert_eq!(requests.len(), 2);
    let told: Vec<String> = results(&requests[1])
        .into_iter()
        .map(|(_, text)| text)
        .collect();
    assert_eq!(told, ["answer 0", "send done", "answer 1", "answer 2"]);
    assert_eq!(on.world.effects().len(), 1);
}

/// Twenty answers to twenty asks of one run at once: all go through, each to its own.
pub async fn many_asks_at_once(on: &mut System) {
    let asks: Vec<(String, Value)> = (0..20)
        .map(|number| {
            let text = format!("Number {number}?");
            (format!("c{number}"), json!({"question": text}))
        })
        .collect();
    let calls: Vec<(&str, &str, Value)> = asks
        .iter()
        .map(|(id, input)| (id.as_str(), "question", input.clone()))
        .collect();
    on.world
        .say("m", [Answer::calls("", &calls), Answer::text("Done.")]);
    let ada = on.api("ada");
    let run = ada.start("asker", "go").await.unwrap();
    ada.asked(&run, 20).await.unwrap();
    let answers = (1..=20).map(|number| {
        let step = format!("question 1.{number}");
        let (ada, run) = (ada.clone(), run.clone());
        async move {
            let data = json!(format!("answer {number}"));
            ada.approve(&run, &step, data).await.unwrap()
        }
    });
    for reply in join_all(answers).await {
        assert_eq!(reply.status, 200, "{}", reply.text);
    }
    ada.status(&run, "succeeded").await.unwrap();
    let requests = on.world.requests("m");
    assert_eq!(requests.len(), 2);
    for (number, (call, text)) in results(&requests[1]).into_iter().enumerate() {
        assert_eq!(call, format!("c{number}"));
        assert_eq!(text, format!("answer {}", number + 1));
    }
}

/// A device that was away sees what it missed, once and in order; one that was away too long
/// gets the state.
pub async fn a_device_that_comes_back_sees_all(on: &mut System) {
    on.world.say("m", [size(), Answer::text("Done.")]);
    let ada = on.socket("ada").await.unwrap();
    let run = on.api("ada").start("asker", "go").await.unwrap();
    let status = |client: &Client, name: &'static str| {
        let frames = client.durable();
        frames.iter().any(|frame| frame["status"] == name)
    };
    ada.frame("wait", |frame| frame["status"] == "waiting")
        .await
        .unwrap();
    let welcome = ada
        .frame("welcome", |frame| frame["type"] == "welcome")
        .await
        .unwrap();
    let epoch = welcome["epoch"].clone();
    let seen = ada.durable();
    let last = seen.last().unwrap()["seq"].as_u64().unwrap();
    drop(ada);
    on.api("ada")
        .approve(&run, "question 1.1", json!("M"))
        .await
        .unwrap();
    on.api("ada").status(&run, "succeeded").await.unwrap();
    let url = on.gateways[0].clone();
    let hello = |epoch: &Value, seq: u64| json!({"type": "hello", "token": token("ada", &[]), "resume": {"epoch": epoch, "seq": seq}});
    let back = Client::hello(&url, &hello(&epoch, last)).await.unwrap();
    back.frame("end", |frame| frame["status"] == "succeeded")
        .await
        .unwrap();
    let welcomed = back.frames();
    let welcomed = welcomed.iter().find(|frame| frame["type"] == "welcome");
    assert_eq!(welcomed.unwrap()["mode"], "resumed");
    let seqs: Vec<u64> = back
        .durable()
        .iter()
        .map(|frame| frame["seq"].as_u64().unwrap())
        .collect();
    let expected: Vec<u64> = (last + 1..last + 1 + seqs.len() as u64).collect();
    assert_eq!(seqs, expected);
    assert!(status(&back, "succeeded"));
    // Another epoch, a number from the future: the state, and why.
    for (epoch, seq, why) in [
        (json!("another"), last, "epoch"),
        (json!("x"), u64::MAX, "epoch"),
        (epoch.clone(), u64::MAX, "ahead"),
        (epoch, 10_000, "ahead"),
    ] {
        let back = Client::hello(&url, &hello(&epoch, seq)).await.unwrap();
        let frames = back.frames();
        let welcome = frames
            .iter()
            .find(|frame| frame["type"] == "welcome")
            .unwrap();
        assert_eq!(
            (&welcome["mode"], &welcome["why"]),
            (&json!("snapshot"), &json!(why))
        );
        let snapshot = frames
            .iter()
            .find(|frame| frame["type"] == "snapshot")
            .unwrap();
        assert_eq!(snapshot["asks"], json!([]));
        assert_eq!(snapshot["runs"], json!([]));
    }
}
