//! HTTP against a real process (PROTOCOL 5, SPEC 3.6, 3.7 and 4).
#![allow(clippy::unwrap_used, reason = "what cannot be set up fails the test")]

use askwell_tests::askwell::Askwell;
use askwell_tests::askwell::client::{Http, Reply};
use reqwest::Method;
use serde_json::{Value, json};

/// Agents for persons, for staff and for backends, and one whose asks end at once.
const AGENTS: &str = r#"
[models.asker]
provider = "scripted"
turns = [
  { text = "Hello.", calls = [
    { tool = "question", input = { question = "Which size?", choices = ["S", "M", "L"] } },
  ] },
  { text = "{{answer}} it is." },
]

[agents.asker]
model = "asker"
questions = true
access = ["signedIn", "system"]

[agents.staff]
model = "asker"
access = "role:staff"

[agents.backend]
model = "asker"
questions = true
access = "system"

[agents.hasty]
model = "asker"
questions = true
limits = { ask = "1ms" }
"#;

const NO_RUN: &str = "run_00000000000000000000000000000000aa";

async fn askwell() -> Askwell {
    Askwell::start(AGENTS).await.unwrap()
}

/// A run that waits at `question 1.1`.
async fn waiting(caller: &Http) -> String {
    let run = caller.start("asker", "hi").await.unwrap();
    caller.run_is(&run, "waiting").await.unwrap();
    run
}

#[tokio::test]
async fn who_may_do_what() {
    let askwell = askwell().await;
    let ann = askwell.http("ann", &[]).unwrap();
    let bob = askwell.http("bob", &["staff"]).unwrap();
    let ops = askwell.http("olga", &["ops"]).unwrap();
    let shop = askwell.http("shop", &["system"]).unwrap();
    let bank = askwell.http("bank", &["system"]).unwrap();
    // A person and a system of one name are different callers.
    let namesake = askwell.http("ann", &["system"]).unwrap();
    let anns = waiting(&ann).await;
    let shops = waiting(&shop).await;

    for (who, caller, run, settle, change, read) in [
        ("another person", &bob, &anns, "T0001", "T0001", "T0001"),
        (
            "a person, a system's",
            &bob,
            &shops,
            "T0001",
            "T0001",
            "T0001",
        ),
        (
            "system, a person's",
            &shop,
            &anns,
            "T3101",
            "T0001",
            "T0001",
        ),
        (
            "system of her name",
            &namesake,
            &anns,
            "T3101",
            "T0001",
            "T0001",
        ),
        ("another system", &bank, &shops, "T0001", "T0001", "T0001"),
    ] {
        // The answer is not looked at: one that would not fit is told the same.
        for data in ["M", "nonsense"] {
            let reply = caller.approve(run, "question 1.1", data).await.unwrap();
            assert_eq!(reply.code(), settle, "{who} answers {data}");
        }
        let reply = caller.refuse(run, "question 1.1").await.unwrap();
        assert_eq!(reply.code(), settle, "{who} refuses");
        for what in ["cancel", "retry"] {
            let reply = caller.change(run, what).await.unwrap();
            assert_eq!(reply.code(), change, "{who}: {what}");
        }
        let reply = caller.get(&format!("/v1/runs/{run}")).await.unwrap();
        assert_eq!(reply.code(), read, "{who} reads");
    }
    // Ops may not answer, and may read, redacted.
    assert_eq!(
        ops.approve(&anns, "question 1.1", "M")
            .await
            .unwrap()
            .code(),
        "T0001"
    );
    let seen = ops.run(&anns).await.unwrap();
    assert_eq!(seen["asks"][0]["step"], "question 1.1");
    assert_eq!(seen["asks"][0]["input"], Value::Null);
    assert!(!seen.to_string().contains("Hello."));
    let content = askwell.http("olga", &["ops:content"]).unwrap();
    assert_eq!(
        content.run(&anns).await.unwrap()["asks"][0]["input"]["question"],
        "Which size?"
    );

    // A system answers what it started, and the answer must fit.
    assert_eq!(
        shop.approve(&shops, "question 1.1", "XL")
            .await
            .unwrap()
            .code(),
        "T0002"
    );
    let done = shop
        .approve(&shops, "question 1.1", "M")
        .await
        .unwrap()
        .ok()
        .unwrap();
    assert_eq!(done["outcome"], "answered");
    shop.run_is(&shops, "succeeded").await.unwrap();
    // Ops end any run; it was still waiting all the while.
    assert_eq!(ann.run(&anns).await.unwrap()["status"], "waiting");
    let done = ops.change(&anns, "cancel").await.unwrap().ok().unwrap();
    assert_eq!(done["status"], "cancelled");
    let ended = ann.run(&anns).await.unwrap();
    assert_eq!(ended["asks"][0]["outcome"], "cancelled");
    for what in ["cancel", "retry"] {
        assert_eq!(ann.change(&anns, what).await.unwrap().code(), "T0010");
    }
}

#[tokio::test]
async fn a_run_of_another_looks_like_none() {
    let askwell = askwell().await;
    let ann = askwell.http("ann", &[]).unwrap();
    let bob = askwell.http("bob", &[]).unwrap();
    let open = waiting(&ann).await;
    let ended = waiting(&ann).await;
    ann.change(&ended, "cancel").await.unwrap().ok().unwrap();

    let same = |reply: Reply| (reply.status, reply.text);
    let mut seen = Vec::new();
    for run in [open.as_str(), &ended, NO_RUN, "R9", "run_", "%00", "..%2f"] {
        seen.push((
            run,
            same(bob.approve(run, "question 1.1", "M").await.unwrap()),
        ));
        seen.push((run, same(bob.refuse(run, "question 1.1").await.unwrap())));
        seen.push((run, same(bob.change(run, "cancel").await.unwrap())));
        seen.push((run, same(bob.change(run, "retry").await.unwrap())));
        seen.push((
            run,
            same(bob.get(&format!("/v1/runs/{run}")).await.unwrap()),
        ));
    }
    for (run, reply) in &seen {
        assert_eq!(reply, &seen[0].1, "{run}");
    }
    assert_eq!(seen[0].1.0, 404);
    assert!(seen[0].1.1.contains("T0001"));
    // So does a step or a repeat of one's own run that is not there.
    for (step, repeat) in [
        ("question 1.2", 1),
        ("question 1.1", 2),
        ("question 1.1", 0),
        ("", 1),
    ] {
        let body = json!({"step": step, "repeat": repeat, "data": "M"});
        let reply = ann
            .post(&format!("/v1/runs/{open}/approve"), &body)
            .await
            .unwrap();
        assert_eq!(same(reply), seen[0].1, "{step} {repeat}");
    }
    assert_eq!(bob.get("/v1/runs").await.unwrap().body["runs"], json!([]));
    assert_eq!(bob.get("/v1/asks").await.unwrap().body["asks"], json!([]));
    let own = ann.get("/v1/asks?state=open").await.unwrap().body;
    assert_eq!(own["asks"][0]["run"], open);
    let live = ann
        .get("/v1/runs?status=live&agent=asker")
        .await
        .unwrap()
        .body;
    assert_eq!(live["runs"].as_array().unwrap().len(), 1);
    assert_eq!(live["runs"][0]["asks"][0]["tool"], "question");
}

#[tokio::test]
async fn lists_come_in_pages() {
    let askwell = askwell().await;
    let ann = askwell.http("ann", &[]).unwrap();
    let mut runs = Vec::new();
    for _ in 0..5 {
        runs.push(waiting(&ann).await);
    }
    runs.reverse();
    let mut listed = Vec::new();
    let mut path = "/v1/runs?limit=2".to_owned();
    loop {
        let page = ann.get(&path).await.unwrap().ok().unwrap();
        let items = page["runs"].as_array().unwrap();
        assert!(items.len() <= 2);
        listed.extend(
            items
                .iter()
                .map(|run| run["run"].as_str().unwrap().to_owned()),
        );
        match page["cursor"].as_str() {
            Some(cursor) => path = format!("/v1/runs?limit=2&cursor={cursor}"),
            None => break,
        }
    }
    assert_eq!(listed, runs);
}

#[tokio::test]
async fn commands_are_known_by_their_key() {
    let askwell = askwell().await;
    let ann = askwell.http("ann", &[]).unwrap();
    let bob = askwell.http("bob", &[]).unwrap();
    let body = json!({"agent": "asker", "input": 1});
    let first = ann.post_as("k", "/v1/runs", &body).await.unwrap();
    assert_eq!(first.status, 202);
    let same = json!({"thread": null, "input": 1.0, "agent": "asker"});
    let again = ann.post_as("k", "/v1/runs", &same).await.unwrap();
    assert_eq!((again.status, &again.text), (202, &first.text));
    let other = json!({"agent": "asker", "input": 2});
    assert_eq!(
        ann.post_as("k", "/v1/runs", &other).await.unwrap().code(),
        "T0004"
    );
    // Another caller's key is another key.
    let bobs = bob
        .post_as("k", "/v1/runs", &other)
        .await
        .unwrap()
        .ok()
        .unwrap();
    assert_ne!(bobs["run"], first.body["run"]);

    let run = first.body["run"].as_str().unwrap();
    ann.run_is(run, "waiting").await.unwrap();
    let path = format!("/v1/runs/{run}/refuse");
    let refused = ann
        .post_as("k", &path, &json!({"step": "question 1.1"}))
        .await
        .unwrap();
    assert_eq!(refused.body["outcome"], "refused");
    let again = json!({"step": "question 1.1", "repeat": 1, "data": "not looked at"});
    assert_eq!(
        ann.post_as("k", &path, &again).await.unwrap().text,
        refused.text
    );
    let ended = ann.run_is(run, "succeeded").await.unwrap();
    assert_eq!(ended["output"], "The person refused this. it is.");
    assert_eq!(ended["asks"][0]["outcome"], "refused");

    for bad in ["", "a b", &"k".repeat(129)] {
        let reply = ann.post_as(bad, "/v1/runs", &body).await.unwrap();
        assert_eq!(reply.code(), "T0006", "{bad:?}");
    }
}

#[tokio::test]
async fn a_late_answer_finds_the_ask_expired() {
    let askwell = askwell().await;
    let ann = askwell.http("ann", &[]).unwrap();
    let run = ann.start("hasty", "hi").await.unwrap();
    ann.run_until(&run, |run| run["asks"][0]["step"] == "question 1.1")
        .await
        .unwrap();
    let late = ann.approve(&run, "question 1.1", "M").await.unwrap();
    assert_eq!((late.status, late.code()), (409, "T0003"));
    let settled = json!({"outcome": "expired", "by": null, "at": late.body["settled"]["at"]});
    assert_eq!(late.body["settled"], settled);
    let ended = ann.run_is(&run, "succeeded").await.unwrap();
    assert_eq!(ended["output"], "The person refused this. it is.");
    assert_eq!(ended["asks"][0]["outcome"], "expired");
}

#[tokio::test]
async fn agents_are_there_for_who_may_start_them() {
    let askwell = askwell().await;
    for (sub, roles, names) in [
        ("ann", vec![], vec!["asker", "hasty"]),
        ("sam", vec!["staff"], vec!["asker", "hasty", "staff"]),
        ("shop", vec!["system"], vec!["asker", "backend"]),
    ] {
        let caller = askwell.http(sub, &roles).unwrap();
        let listed = caller.get("/v1/agents").await.unwrap().ok().unwrap();
        let agents = listed["agents"].as_array().unwrap();
        let found: Vec<&str> = agents
            .iter()
            .map(|agent| agent["name"].as_str().unwrap())
            .collect();
        assert_eq!(found, names, "{sub}");
        assert!(agents.iter().all(|agent| agent["live"] == true));
        let mut refusals = Vec::new();
        for name in ["asker", "hasty", "staff", "backend", "nobody"] {
            let body = json!({"agent": name, "input": "hi"});
            let reply = caller.post("/v1/runs", &body).await.unwrap();
            if names.contains(&name) {
                assert_eq!(reply.status, 202, "{sub} {name}");
            } else {
                refusals.push((reply.status, reply.text));
            }
        }
        assert!(refusals[0].1.contains("T0005"));
        assert!(
            refusals.iter().all(|refusal| *refusal == refusals[0]),
            "{refusals:?}"
        );
    }
    let shop = askwell.http("shop", &["system"]).unwrap();
    let body = json!({"agent": "asker", "input": "hi", "thread": "t"});
    assert_eq!(shop.post("/v1/runs", &body).await.unwrap().code(), "T0006");
}

#[tokio::test]
async fn what_is_malformed_is_named() {
    let askwell = askwell().await;
    let ann = askwell.http("ann", &[]).unwrap();
    for (body, field) in [
        ("", "agent"),
        ("{}", "agent"),
        (r#"{"agent":"asker"}"#, "input"),
        (r#"{"agent":3,"input":"hi"}"#, "agent"),
        (r#"{"agent":"asker","input":"hi","thread":7}"#, "thread"),
        (r#"{"agent":"asker","input":"hi","thread":"a b"}"#, "thread"),
        (r#"{"agent":"asker","input":{"a":1,"a":2}}"#, "JSON"),
        (r#"{"agent":"asker","input":"#, "JSON"),
        ("[]", "object"),
    ] {
        let reply = ann.post_text("/v1/runs", body).await.unwrap();
        assert_eq!((reply.status, reply.code()), (400, "T0006"), "{body}");
        assert!(
            reply.body["detail"].as_str().unwrap().contains(field),
            "{}",
            reply.text
        );
        assert_eq!(reply.headers["content-type"], "application/problem+json");
    }
    let long = json!({"agent": "asker", "input": "x".repeat(70_000)});
    let reply = ann.post("/v1/runs", &long).await.unwrap();
    assert_eq!((reply.status, reply.code()), (413, "T0007"));
    let form = ann
        .request(Method::POST, "/v1/runs")
        .header("content-type", "text/plain");
    let reply = ann
        .send(form.body(r#"{"agent":"asker","input":"hi"}"#))
        .await
        .unwrap();
    assert_eq!(reply.code(), "T0006");
    for query in [
        "limit=0",
        "limit=x",
        "cursor=x",
        "status=dead",
        "limit=1&limit=2",
    ] {
        let reply = ann.get(&format!("/v1/runs?{query}")).await.unwrap();
        assert_eq!(reply.code(), "T0006", "{query}");
    }
    assert_eq!(ann.get("/v1/nothing").await.unwrap().status, 404);
    assert_eq!(ann.change(NO_RUN, "nothing").await.unwrap().status, 404);
    let delete = ann
        .send(ann.request(Method::DELETE, "/v1/runs"))
        .await
        .unwrap();
    assert_eq!(delete.status, 405);
}
