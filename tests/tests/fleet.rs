//! Several gateways and workers: who goes on when one stops, and what happens while RabbitMQ or
//! Redis is away.
#![allow(clippy::unwrap_used, reason = "a test's helpers may fail by panicking")]

use askwell_tests::client::{Client, Ended, PATIENCE, cmd};
use askwell_tests::flow::{AGENTS, size};
use askwell_tests::servers::{Rabbit, Redis};
use askwell_tests::system::System;
use askwell_tests::world::{Answer, World};
use futures_util::StreamExt as _;
use serde_json::{Value, json};

async fn status(client: &Client, run: &str, status: &str) {
    client
        .frame(status, |frame| {
            frame["type"] == "run.status" && frame["run"] == run && frame["status"] == status
        })
        .await
        .unwrap();
}

async fn start(client: &Client, agent: &str) -> String {
    let start = json!({"type": "start", "agent": agent, "input": "go"});
    let ok = client.command(&start).await.unwrap();
    assert_eq!(ok["type"], "ok", "{ok}");
    ok["run"].as_str().unwrap().to_owned()
}

fn approve(run: &str, data: &str) -> Value {
    json!({"type": "approve", "run": run, "step": "question 1.1", "data": data, "cmd": cmd()})
}

/// The worker that asked is stopped, the answer comes in over the other gateway, the other worker
/// resumes; both gateways show the person the same, in the same order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_worker_resumes() {
    let mut on = System::distributed(AGENTS, 2, 1).await.unwrap();
    on.world.say("m", [size()]);
    let here = on.socket_at(0, "ada").await.unwrap();
    let there = on.socket_at(1, "ada").await.unwrap();
    let run = start(&here, "asker").await;
    status(&there, &run, "waiting").await;
    let asked = on.workers.remove(0);
    on.grow(0, 1).await.unwrap();
    asked.kill().await.unwrap();
    on.world.say("m", [Answer::text("M it is.")]);
    let ok = there.command(&approve(&run, "M")).await.unwrap();
    assert_eq!(ok["outcome"], "answered", "{ok}");
    status(&here, &run, "succeeded").await;
    status(&there, &run, "succeeded").await;
    assert_eq!(here.durable(), there.durable());
    assert_eq!(on.world.requests("m").len(), 2);
}

/// kill -9 of the worker in the middle of a model call: the other one makes it again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_workers_run_goes_on_elsewhere() {
    let mut on = System::distributed(AGENTS, 1, 1).await.unwrap();
    on.world.say("m", [size().held()]);
    let ada = on.socket("ada").await.unwrap();
    let run = start(&ada, "asker").await;
    let called = |world: &World| world.requests("m").len() == 1;
    on.world.until("request", PATIENCE, called).await.unwrap();
    let worker = on.workers.remove(0);
    worker.kill().await.unwrap();
    on.world.say("m", [size(), Answer::text("Done.")]);
    on.grow(0, 1).await.unwrap();
    status(&ada, &run, "waiting").await;
    let ok = ada.command(&approve(&run, "M")).await.unwrap();
    assert_eq!(ok["type"], "ok", "{ok}");
    status(&ada, &run, "succeeded").await;
}

/// A start while no worker is alive waits for one; an agent that nobody has is not there; an
/// agent that one of two workers has is advanced by that one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_has_which_agent() {
    let mut on = System::distributed(AGENTS, 1, 1).await.unwrap();
    let ada = on.socket("ada").await.unwrap();
    let unknown = json!({"type": "start", "agent": "elsewhere", "input": "go"});
    assert_eq!(ada.command(&unknown).await.unwrap()["code"], "T0005");
    let worker = on.workers.remove(0);
    let ended = worker.terminate(PATIENCE).await.unwrap();
    assert_eq!(ended.code(), Some(0), "{:?}", worker.lines());
    on.world.say("m", [size()]);
    let run = start(&ada, "asker").await;
    // Another worker, which has another agent only.
    let file = std::fs::read_to_string(on.folder().join("agents.toml")).unwrap();
    let other = format!(
        "[models.x]\nprovider = \"chat-completions\"\nbaseUrl = \"{}/x\"\nmodel = \"x\"\n\
         [agents.elsewhere]\nmodel = \"x\"\n",
        on.world.url
    );
    std::fs::write(on.folder().join("agents.toml"), other).unwrap();
    on.grow(0, 1).await.unwrap();
    std::fs::write(on.folder().join("agents.toml"), file).unwrap();
    on.world.say("x", [Answer::text("Here.")]);
    let elsewhere = on.api("ada").start("elsewhere", "go").await.unwrap();
    on.api("ada").status(&elsewhere, "succeeded").await.unwrap();
    assert_eq!(
        on.world.requests("m").len(),
        0,
        "nobody can take the first yet"
    );
    on.grow(0, 1).await.unwrap();
    status(&ada, &run, "waiting").await;
}

/// While RabbitMQ is away asks are listed, answers accepted, runs go on and screens follow; when
/// it is back nothing has to be restarted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_rabbitmq() {
    let (mut broker, redis) = tokio::try_join!(Rabbit::start(), Redis::start()).unwrap();
    let mut on = System::on(AGENTS, &broker.url(), &redis.url())
        .await
        .unwrap();
    on.grow(2, 2).await.unwrap();
    on.world.say("m", [size()]);
    let here = on.socket_at(0, "ada").await.unwrap();
    let there = on.socket_at(1, "ada").await.unwrap();
    let run = start(&here, "asker").await;
    status(&here, &run, "waiting").await;
    broker.kill().await.unwrap();
    let asks = on.api("ada").get("/v1/asks?state=open").await.unwrap();
    assert_eq!(asks.body["asks"][0]["run"], run.as_str());
    on.world.say("m", [Answer::text("M it is.")]);
    let ok = there.command(&approve(&run, "M")).await.unwrap();
    assert_eq!(ok["type"], "ok", "{ok}");
    status(&here, &run, "succeeded").await;
    // A whole run from start to end without the broker.
    on.world.say("m", [size()]);
    let second = start(&there, "asker").await;
    status(&here, &second, "waiting").await;
    broker.restart().await.unwrap();
    on.world.say("m", [Answer::text("L it is.")]);
    let ok = here.command(&approve(&second, "L")).await.unwrap();
    assert_eq!(ok["type"], "ok", "{ok}");
    status(&here, &second, "succeeded").await;
    status(&there, &second, "succeeded").await;
    assert_eq!(here.durable(), there.durable());
    assert_eq!(on.world.requests("m").len(), 4);
    for client in [&here, &there] {
        assert_eq!(client.ended(), Ended::No);
    }
}

/// While Redis is away callers are told so, sockets stay, and nothing is half done; when it is
/// back everything goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_redis() {
    let (broker, mut redis) = tokio::try_join!(Rabbit::start(), Redis::start()).unwrap();
    let mut on = System::on(AGENTS, &broker.url(), &redis.url())
        .await
        .unwrap();
    on.grow(1, 1).await.unwrap();
    on.world.say("m", [size()]);
    let ada = on.socket("ada").await.unwrap();
    let run = start(&ada, "asker").await;
    status(&ada, &run, "waiting").await;
    redis.kill().await.unwrap();
    let answer = approve(&run, "M");
    let away = ada.command(&answer).await.unwrap();
    assert_eq!(
        (away["code"].as_str(), &away["temporary"]),
        (Some("T0011"), &json!(true)),
        "{away}"
    );
    let read = on.api("ada").get("/v1/asks").await.unwrap();
    assert_eq!((read.status, read.code()), (503, "T0011"), "{}", read.text);
    let ready = on.api("ada").get("/readyz").await.unwrap();
    assert_eq!(ready.status, 503);
    assert_eq!(ada.ended(), Ended::No);
    redis.restart().await.unwrap();
    on.world.say("m", [Answer::text("M it is.")]);
    // The client sends the same command again until it is answered.
    let mut ok = ada.command(&answer).await.unwrap();
    while ok["code"] == "T0011" {
        ok = ada.command(&answer).await.unwrap();
    }
    assert_eq!(ok["type"], "ok", "{ok}");
    status(&ada, &run, "succeeded").await;
    assert_eq!(ada.ended(), Ended::No);
    assert_eq!(on.world.requests("m").len(), 2);
}

/// Processes that start before their servers wait for them, and then serve.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_either_from_the_start() {
    let (mut broker, mut redis) = tokio::try_join!(Rabbit::start(), Redis::start()).unwrap();
    tokio::try_join!(broker.kill(), redis.kill()).unwrap();
    let mut on = System::on(AGENTS, &broker.url(), &redis.url())
        .await
        .unwrap();
    let worker = on.start_worker().unwrap();
    on.grow(1, 0).await.unwrap();
    let ready = on.api("ada").get("/readyz").await.unwrap();
    assert_eq!(ready.status, 503);
    tokio::try_join!(broker.restart(), redis.restart()).unwrap();
    worker.line("working", PATIENCE).await.unwrap();
    on.world.say("m", [Answer::text("Hello.")]);
    let ada = on.socket("ada").await.unwrap();
    let run = start(&ada, "asker").await;
    status(&ada, &run, "succeeded").await;
    assert_eq!(on.api("ada").get("/readyz").await.unwrap().status, 200);
}

/// A broker that stands still, or takes no messages for want of memory: answers are accepted all
/// the same, and used once it moves again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_a_broker_that_stands_still() {
    let (broker, redis) = tokio::try_join!(Rabbit::start(), Redis::start()).unwrap();
    let mut on = System::on(AGENTS, &broker.url(), &redis.url())
        .await
        .unwrap();
    on.grow(1, 1).await.unwrap();
    let ada = on.socket("ada").await.unwrap();
    for frozen in [true, false] {
        on.world.say("m", [size()]);
        let run = start(&ada, "asker").await;
        status(&ada, &run, "waiting").await;
        if frozen {
            broker.process().freeze().unwrap();
        } else {
            broker.alarm(true).await.unwrap();
        }
        on.world.say("m", [Answer::text("M it is.")]);
        let ok = ada.command(&approve(&run, "M")).await.unwrap();
        assert_eq!(ok["outcome"], "answered", "{ok}");
        let listed = on.api("ada").get(&format!("/v1/runs/{run}")).await.unwrap();
        assert_eq!(listed.body["asks"][0]["outcome"], "answered");
        if frozen {
            broker.process().thaw().unwrap();
        } else {
            broker.alarm(false).await.unwrap();
        }
        status(&ada, &run, "succeeded").await;
    }
    assert_eq!(on.world.requests("m").len(), 4);
    assert_eq!(ada.ended(), Ended::No);
}

/// A Redis that stands still: what timed out may have run. The same command gets the same reply,
/// and the answer is used once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_a_redis_that_stands_still() {
    let (broker, redis) = tokio::try_join!(Rabbit::start(), Redis::start()).unwrap();
    let mut on = System::on(AGENTS, &broker.url(), &redis.url())
        .await
        .unwrap();
    on.grow(1, 1).await.unwrap();
    let ada = on.socket("ada").await.unwrap();
    on.world.say("m", [size(), Answer::text("M it is.")]);
    let run = start(&ada, "asker").await;
    status(&ada, &run, "waiting").await;
    redis.process().freeze().unwrap();
    let answer = approve(&run, "M");
    let told = ada.command(&answer).await.unwrap();
    assert_eq!(told["code"], "T0011", "{told}");
    redis.process().thaw().unwrap();
    let mut ok = ada.command(&answer).await.unwrap();
    while ok["code"] == "T0011" {
        ok = ada.command(&answer).await.unwrap();
    }
    assert_eq!(ok["outcome"], "answered", "{ok}");
    assert_eq!(ada.command(&answer).await.unwrap(), ok);
    status(&ada, &run, "succeeded").await;
    assert_eq!(on.world.requests("m").len(), 2);
}

/// The messages that came to a queue of the test's own, bound by one key.
async fn counted(queue: &mut lapin::Consumer, channel: &lapin::Channel) -> usize {
    // A message of our own through the same queue: what came before it is all there is.
    let name = queue.queue();
    channel
        .basic_publish(
            "".into(),
            name,
            lapin::options::BasicPublishOptions::default(),
            b"the end",
            lapin::BasicProperties::default(),
        )
        .await
        .unwrap();
    let mut count = 0;
    while let Some(delivery) = queue.next().await {
        if delivery.unwrap().data == b"the end" {
            return count;
        }
        count += 1;
    }
    panic!("the queue is gone");
}

/// With four gateways and a person at one of them, an event goes to that one only; a gateway that
/// is killed and a person who moves see everything.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_goes_only_where_somebody_looks() {
    let (broker, redis) = tokio::try_join!(Rabbit::start(), Redis::start()).unwrap();
    let mut on = System::on(AGENTS, &broker.url(), &redis.url())
        .await
        .unwrap();
    on.grow(4, 1).await.unwrap();
    let ada = on.socket_at(2, "ada").await.unwrap();
    // One queue of our own beside each gateway's.
    let listed = broker
        .ctl(&["list_bindings", "source_name", "routing_key"])
        .await
        .unwrap();
    let keys: Vec<String> = listed
        .lines()
        .filter_map(|line| line.strip_prefix("askwell.events\t"))
        .filter(|key| key.starts_with("gw."))
        .map(str::to_owned)
        .collect();
    assert_eq!(keys.len(), 4, "{listed}");
    let connection =
        lapin::Connection::connect(&broker.url(), lapin::ConnectionProperties::default())
            .await
            .unwrap();
    let channel = connection.create_channel().await.unwrap();
    let mut spies = Vec::new();
    for key in keys {
        let options = lapin::options::QueueDeclareOptions {
            exclusive: true,
            ..Default::default()
        };
        let queue = channel
            .queue_declare("".into(), options, lapin::types::FieldTable::default())
            .await
            .unwrap();
        let (name, exchange) = (queue.name().clone(), "askwell.events".into());
        let bind = channel.queue_bind(
            name.clone(),
            exchange,
            key.into(),
            lapin::options::QueueBindOptions::default(),
            lapin::types::FieldTable::default(),
        );
        bind.await.unwrap();
        let options = lapin::options::BasicConsumeOptions {
            no_ack: true,
            ..Default::default()
        };
        let consumer = channel.basic_consume(
            name,
            "".into(),
            options,
            lapin::types::FieldTable::default(),
        );
        spies.push(consumer.await.unwrap());
    }
    on.world.say("m", [size(), Answer::text("M it is.")]);
    let run = start(&ada, "asker").await;
    status(&ada, &run, "waiting").await;
    ada.command(&approve(&run, "M")).await.unwrap();
    status(&ada, &run, "succeeded").await;
    let mut counts = Vec::new();
    for spy in &mut spies {
        counts.push(counted(spy, &channel).await);
    }
    counts.sort_unstable();
    assert_eq!(
        counts[..counts.len() - 1],
        vec![0; counts.len() - 1],
        "{counts:?}"
    );
    // Start, claim, turn, approve, claim, turn; deltas come on top.
    assert!(counts[counts.len() - 1] >= 6, "{counts:?}");
    // The gateway dies; the person goes to another and sees what came meanwhile.
    on.world.say("m", [size()]);
    let second = start(&ada, "asker").await;
    status(&ada, &second, "waiting").await;
    let seen = ada.durable();
    on.processes[2].kill().await.unwrap();
    on.world.say("m", [Answer::text("L it is.")]);
    let other = on.socket_at(0, "ada").await.unwrap();
    other.command(&approve(&second, "L")).await.unwrap();
    status(&other, &second, "succeeded").await;
    let last = seen.last().unwrap()["seq"].as_u64().unwrap();
    let first = other.durable()[0]["seq"].as_u64().unwrap();
    assert_eq!(first, last + 1, "after the snapshot nothing is missing");
}
