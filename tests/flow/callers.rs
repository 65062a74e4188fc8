//! Who may do what, and what everybody else is told (SPEC 3.6, 3.7, 4).

use serde_json::{Value, json};

use super::size;
use crate::client::{Api, Client, Ended, Offer, Reply, cmd, token};
use crate::system::System;
use crate::world::Answer;

/// A run of a person that waits at `question 1.1`.
async fn waiting(on: &System, api: &Api) -> String {
    on.world.say("m", [size()]);
    let run = api.start("asker", "go").await.unwrap();
    api.asked(&run, 1).await.unwrap();
    run
}

async fn approve(api: &Api, run: &str) -> Reply {
    api.approve(run, "question 1.1", json!("M")).await.unwrap()
}

fn expect(reply: &Reply, status: u16, code: &str) {
    assert_eq!(
        (reply.status, reply.code()),
        (status, code),
        "{}",
        reply.text
    );
}

/// The table of SPEC 3.6, row by row.
pub async fn the_caller_table(on: &mut System) {
    let ada = on.api("ada");
    let bob = on.api("bob");
    let ops = on.api_with("root", &["ops"]);
    let content = on.api_with("root", &["ops:content"]);
    let shop = on.api_with("shop", &["system"]);
    let bank = on.api_with("bank", &["system"]);
    // A person and a system of one name are two.
    let named_shop = on.api("shop");
    let of_ada = waiting(on, &ada).await;
    let of_shop = waiting(on, &shop).await;
    for (who, api, run, status, code) in [
        ("another person", &bob, &of_ada, 404, "T0001"),
        ("ops", &ops, &of_ada, 404, "T0001"),
        ("ops with content", &content, &of_ada, 404, "T0001"),
        ("a system, a person's run", &shop, &of_ada, 403, "T3101"),
        ("another system", &bank, &of_shop, 404, "T0001"),
        ("a person, a system's run", &ada, &of_shop, 404, "T0001"),
        (
            "a person of the system's name",
            &named_shop,
            &of_shop,
            404,
            "T0001",
        ),
        ("ops, a system's run", &ops, &of_shop, 404, "T0001"),
    ] {
        let answered = approve(api, run).await;
        assert_eq!((answered.status, answered.code()), (status, code), "{who}");
        let misfit = api
            .approve(run, "question 1.1", json!("no choice"))
            .await
            .unwrap();
        assert_eq!(
            (misfit.status, misfit.code()),
            (status, code),
            "{who}, misfit"
        );
        let refused = api.refuse(run, "question 1.1").await.unwrap();
        assert_eq!(
            (refused.status, refused.code()),
            (status, code),
            "{who}, refuse"
        );
    }
    // Cancel, retry and read of a person's run by a system.
    for path in ["cancel", "retry"] {
        let reply = shop
            .post(&format!("/v1/runs/{of_ada}/{path}"), &json!({}))
            .await
            .unwrap();
        expect(&reply, 404, "T0001");
        let reply = bob
            .post(&format!("/v1/runs/{of_ada}/{path}"), &json!({}))
            .await
            .unwrap();
        expect(&reply, 404, "T0001");
    }
    for api in [&shop, &bob, &bank] {
        let reply = api.get(&format!("/v1/runs/{of_ada}")).await.unwrap();
        expect(&reply, 404, "T0001");
    }
    // Ops read: redacted, unless the role says more.
    let read = ops.get(&format!("/v1/runs/{of_ada}")).await.unwrap();
    assert_eq!(read.status, 200);
    assert!(!read.text.contains("Which size?"), "{}", read.text);
    assert_eq!(read.body["asks"][0]["step"], "question 1.1");
    let read = content.get(&format!("/v1/runs/{of_ada}")).await.unwrap();
    assert!(read.text.contains("Which size?"));
    let list = ops.get("/v1/asks?state=open").await.unwrap();
    assert_eq!(list.body["asks"].as_array().unwrap().len(), 2);
    assert!(!list.text.contains("Which size?"));
    // The starters answer; ops cancel.
    on.world.say("m", [Answer::text("Done.")]);
    expect(&approve(&shop, &of_shop).await, 200, "");
    shop.status(&of_shop, "succeeded").await.unwrap();
    let reply = ops
        .post(&format!("/v1/runs/{of_ada}/cancel"), &json!({}))
        .await
        .unwrap();
    assert_eq!(
        (reply.status, &reply.body["status"]),
        (200, &json!("cancelled"))
    );
    ada.status(&of_ada, "cancelled").await.unwrap();
}

/// For who is not the starter there is no such run: the same bytes, whether it is there or not.
pub async fn a_stranger_learns_nothing(on: &mut System) {
    let ada = on.api("ada");
    let bob = on.api("bob");
    let there = waiting(on, &ada).await;
    let over = waiting(on, &ada).await;
    ada.post(&format!("/v1/runs/{over}/cancel"), &json!({}))
        .await
        .unwrap();
    let nowhere = format!("{}{}", &there[..8], "0".repeat(there.len() - 8));
    let runs = [there.as_str(), over.as_str(), nowhere.as_str(), "R9", "%ff"];
    for (path, body) in [
        ("approve", json!({"step": "question 1.1", "data": "M"})),
        ("approve", json!({"step": "question 1.1"})),
        ("refuse", json!({"step": "question 1.1"})),
        ("cancel", json!({})),
        ("retry", json!({})),
    ] {
        let mut replies = Vec::new();
        for run in runs {
            let reply = bob
                .post(&format!("/v1/runs/{run}/{path}"), &body)
                .await
                .unwrap();
            expect(&reply, 404, "T0001");
            replies.push(reply.text.replace(run, "RUN"));
        }
        replies.dedup();
        assert_eq!(replies.len(), 1, "{path}: {replies:?}");
    }
    let mut replies = Vec::new();
    for run in runs {
        let reply = bob.get(&format!("/v1/runs/{run}")).await.unwrap();
        expect(&reply, 404, "T0001");
        replies.push(reply.text.replace(run, "RUN"));
    }
    replies.dedup();
    assert_eq!(replies.len(), 1, "{replies:?}");
    // Nothing is listed and nothing is pushed.
    let socket = on.socket("bob").await.unwrap();
    assert_eq!(bob.get("/v1/asks").await.unwrap().body["asks"], json!([]));
    assert_eq!(bob.get("/v1/runs").await.unwrap().body["runs"], json!([]));
    on.world.say("m", [Answer::text("Done.")]);
    let claimed = json!({"step": "question 1.1", "data": "M", "owner": "ada", "sub": "ada"});
    let reply = bob
        .post(&format!("/v1/runs/{there}/approve"), &claimed)
        .await
        .unwrap();
    expect(&reply, 404, "T0001");
    expect(&approve(&ada, &there).await, 200, "");
    ada.status(&there, "succeeded").await.unwrap();
    assert_eq!(socket.durable(), [Value::Null; 0]);
}

/// Every row of the code table over HTTP (but T0008 and T0012, which have their own issue).
pub async fn every_code_over_http(on: &mut System) {
    let ada = on.api("ada");
    let run = waiting(on, &ada).await;
    let path = format!("/v1/runs/{run}/approve");
    let answer = json!({"step": "question 1.1", "data": "M"});
    let id = cmd();
    let misfit = json!({"step": "question 1.1", "data": "XL"});
    expect(&ada.post(&path, &misfit).await.unwrap(), 422, "T0002");
    expect(
        &on.api("bob").post(&path, &answer).await.unwrap(),
        404,
        "T0001",
    );
    let shop = on.api_with("shop", &["system"]);
    expect(&shop.post(&path, &answer).await.unwrap(), 403, "T3101");
    on.world.say("m", [Answer::text("Done.")]);
    expect(&ada.command(&path, &answer, &id).await.unwrap(), 200, "");
    expect(&ada.post(&path, &answer).await.unwrap(), 409, "T0003");
    expect(
        &ada.command(&path, &misfit, &id).await.unwrap(),
        409,
        "T0004",
    );
    for (api, agent) in [
        (&ada, "nobody"),
        (&ada, "staff"),
        (&ada, "backend"),
        (&shop, "few"),
    ] {
        let start = json!({"agent": agent, "input": "go"});
        let reply = api.post("/v1/runs", &start).await.unwrap();
        expect(&reply, 404, "T0005");
        let unknown = json!({"agent": "nobody-at-all", "input": "go"});
        let unknown = api.post("/v1/runs", &unknown).await.unwrap();
        let same = reply.text.replace(agent, "A");
        assert_eq!(same, unknown.text.replace("nobody-at-all", "A"));
    }
    for body in [
        "",
        "{",
        "[]",
        "{\"agent\":1,\"input\":2}",
        "{\"input\":\"go\"}",
        "{\"agent\":\"asker\",\"agent\":\"asker\",\"input\":1}",
    ] {
        let reply = ada.post_text("/v1/runs", body, None).await.unwrap();
        expect(&reply, 400, "T0006");
    }
    let (start, long) = (json!({"agent": "asker", "input": 1}), "x".repeat(129));
    let long = ada.command("/v1/runs", &start, &long).await.unwrap();
    expect(&long, 400, "T0006");
    let named = json!({"agent": "asker", "input": 1, "thread": "t"});
    expect(&shop.post("/v1/runs", &named).await.unwrap(), 400, "T0006");
    let bad_name = json!({"agent": "asker", "input": 1, "thread": "not a name"});
    expect(
        &ada.post("/v1/runs", &bad_name).await.unwrap(),
        400,
        "T0006",
    );
    let large = json!({"agent": "asker", "input": "x".repeat(70_000)});
    expect(&ada.post("/v1/runs", &large).await.unwrap(), 413, "T0007");
    let url = on.gateways[0].clone();
    let other_secret = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhZGEiLCJleHAiOjk5OTk5OTk5OTl9.AAAA";
    let none = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZGEiLCJleHAiOjk5OTk5OTk5OTl9.";
    let both = token("shop", &["system", "ops"]);
    for bad in ["", "rubbish", other_secret, none, both.as_str()] {
        let reply = Api::new(&url, bad).get("/v1/runs").await.unwrap();
        expect(&reply, 401, "T0009");
    }
    ada.status(&run, "succeeded").await.unwrap();
    for path in ["cancel", "retry"] {
        let reply = ada
            .post(&format!("/v1/runs/{run}/{path}"), &json!({}))
            .await
            .unwrap();
        expect(&reply, 409, "T0010");
    }
    let problem = ada.post(&path, &answer).await.unwrap().body;
    for key in ["type", "title", "status", "detail", "temporary", "settled"] {
        assert!(problem.get(key).is_some(), "{key}");
    }
    assert_eq!(ada.get("/healthz").await.unwrap().status, 200);
    assert_eq!(ada.get("/readyz").await.unwrap().status, 200);
    assert_eq!(
        ada.post("/v1/dev/session", &json!({"name": "x"}))
            .await
            .unwrap()
            .status,
        404
    );
}

/// The same over the socket, for persons.
pub async fn every_code_over_the_socket(on: &mut System) {
    let ada = on.socket("ada").await.unwrap();
    let run = waiting(on, &on.api("ada")).await;
    let id = cmd();
    let answer = |data: &str, cmd: &str| json!({"type": "approve", "run": run, "step": "question 1.1", "data": data, "cmd": cmd});
    let code = |error: Value| error["code"].as_str().unwrap_or("ok").to_owned();
    let bob = on.socket("bob").await.unwrap();
    assert_eq!(
        code(bob.command(&answer("M", &cmd())).await.unwrap()),
        "T0001"
    );
    let misfit = ada.command(&answer("XL", &cmd())).await.unwrap();
    assert_eq!(
        (code(misfit.clone()).as_str(), &misfit["temporary"]),
        ("T0002", &json!(false))
    );
    assert_eq!(misfit["errors"][0]["rule"], "choices");
    on.world.say("m", [Answer::text("Done.")]);
    assert_eq!(code(ada.command(&answer("M", &id)).await.unwrap()), "ok");
    let late = ada.command(&answer("M", &cmd())).await.unwrap();
    assert_eq!(code(late.clone()), "T0003");
    assert_eq!(late["settled"]["outcome"], "answered");
    assert_eq!(code(ada.command(&answer("S", &id)).await.unwrap()), "T0004");
    for (agent, expected) in [
        ("nobody", "T0005"),
        ("staff", "T0005"),
        ("backend", "T0005"),
    ] {
        let start = json!({"type": "start", "agent": agent, "input": "go"});
        assert_eq!(code(ada.command(&start).await.unwrap()), expected);
    }
    for malformed in [
        json!({"type": "approve", "run": run}),
        json!({"type": "approve", "run": 1, "step": "question 1.1"}),
        json!({"type": "what", "run": run}),
        json!({"type": "start", "agent": "asker"}),
        json!({"type": "refuse", "run": run, "step": "question 1.1", "repeat": "1"}),
    ] {
        assert_eq!(
            code(ada.command(&malformed).await.unwrap()),
            "T0006",
            "{malformed}"
        );
    }
    // Where the id itself cannot be used, the error names none.
    let long = "x".repeat(129);
    let torn = [
        "{\"type\":".to_owned(),
        "[1]".to_owned(),
        json!({"type": "start", "agent": "asker", "input": "go", "cmd": ""}).to_string(),
        json!({"type": "start", "agent": "asker", "input": "go", "cmd": "ü"}).to_string(),
        json!({"type": "start", "agent": "asker", "input": "go", "cmd": long}).to_string(),
        json!({"type": "start", "agent": "asker", "input": "go"}).to_string(),
    ];
    for frame in &torn {
        ada.send_raw(tokio_tungstenite::tungstenite::Message::text(frame.clone()));
    }
    ada.until("a word on each torn frame", |frames| {
        let nameless = |frame: &&Value| frame["code"] == "T0006" && frame.get("cmd").is_none();
        frames.iter().filter(nameless).count() == torn.len()
    })
    .await
    .unwrap();
    on.api("ada").status(&run, "succeeded").await.unwrap();
    for name in ["cancel", "retry"] {
        let over = json!({"type": name, "run": run});
        assert_eq!(code(ada.command(&over).await.unwrap()), "T0010");
    }
    let other = json!({"type": "auth", "token": token("bob", &[]), "cmd": cmd()});
    assert_eq!(code(ada.command(&other).await.unwrap()), "T0009");
    assert_eq!(ada.ended(), Ended::No);
    // Who is not let in, and with which code.
    let url = &on.gateways[0];
    for (hello, expected) in [
        (json!({"type": "hello", "token": "rubbish"}), 4301),
        (json!({"type": "hello"}), 4301),
        (
            json!({"type": "hello", "token": token("shop", &["system"])}),
            4003,
        ),
        (
            json!({"type": "start", "cmd": "c", "agent": "asker", "input": "go"}),
            4001,
        ),
    ] {
        let (client, chosen) = Client::open(url, &Offer::plain()).await.unwrap();
        assert_eq!(chosen.as_deref(), Some("askwell.v1"));
        client.send(&hello);
        assert_eq!(
            client.end().await.unwrap(),
            Ended::Closed(expected),
            "{hello}"
        );
    }
    // A client that says goodbye is answered.
    let leaving = Client::sign_in(url, &token("ada", &[])).await.unwrap();
    leaving.send_raw(tokio_tungstenite::tungstenite::Message::Close(None));
    assert_eq!(leaving.end().await.unwrap(), Ended::Closed(1005));
    // Who came in by a header does not become somebody else by `hello`.
    let header = (
        "authorization".to_owned(),
        format!("Bearer {}", token("ada", &[])),
    );
    let offer = Offer {
        headers: vec![header],
        ..Offer::plain()
    };
    let (client, _) = Client::open(url, &offer).await.unwrap();
    client.send(&json!({"type": "hello", "token": token("bob", &[])}));
    assert_eq!(client.end().await.unwrap(), Ended::Closed(4301));
    let large = json!({"type": "start", "cmd": "c", "agent": "asker", "input": "x".repeat(70_000)});
    ada.send(&large);
    assert_eq!(ada.end().await.unwrap(), Ended::Closed(1009));
}

/// A backend starts a run and answers it over HTTP (`runs.approve`); what does not fit waits on.
pub async fn a_backend_starts_and_answers_its_own(on: &mut System) {
    on.world.say("m", [size(), Answer::text("M it is.")]);
    let shop = on.api_with("shop", &["system"]);
    let start = json!({"agent": "asker", "input": {"order": 7}});
    let id = cmd();
    let started = shop.command("/v1/runs", &start, &id).await.unwrap();
    assert_eq!(started.status, 202);
    assert_eq!(
        shop.command("/v1/runs", &start, &id).await.unwrap(),
        started
    );
    let run = started.body["run"].as_str().unwrap().to_owned();
    let listed = shop.asked(&run, 1).await.unwrap();
    assert_eq!(listed["starter"], json!({"sub": "shop", "system": true}));
    let asks = shop.get("/v1/asks?state=open").await.unwrap();
    assert_eq!(asks.body["asks"][0]["run"], run.as_str());
    let misfit = shop
        .approve(&run, "question 1.1", json!("XL"))
        .await
        .unwrap();
    expect(&misfit, 422, "T0002");
    expect(&approve(&shop, &run).await, 200, "");
    let over = shop.status(&run, "succeeded").await.unwrap();
    assert_eq!(over["output"], "M it is.");
    assert_eq!(over["messages"][0]["text"], "{\"order\":7}");
    let requests = on.world.requests("m");
    let messages = requests[0]["messages"].as_array().unwrap();
    assert_eq!(messages.last().unwrap()["content"], "{\"order\":7}");
}
