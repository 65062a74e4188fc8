//! Who gets in at all: tokens, hosts, origins, and the page (PROTOCOL 1, SPEC 8, DESIGN 7).
#![allow(clippy::unwrap_used, reason = "what cannot be set up fails the test")]

use std::time::Duration;

use askwell_tests::askwell::client::{Client, Http, Offer, Shook, token};
use askwell_tests::askwell::{Askwell, SECRET};
use reqwest::Method;
use serde_json::json;

const NO_RUN: &str = "run_00000000000000000000000000000000aa";

/// One agent, for staff.
const AGENTS: &str = r#"
[models.asker]
provider = "scripted"
turns = [{ text = "Hello." }]

[agents.staff]
model = "asker"
access = "role:staff"
"#;

async fn askwell() -> Askwell {
    Askwell::start(AGENTS).await.unwrap()
}

#[tokio::test]
async fn nobody_gets_in_without_a_good_token() {
    let askwell = askwell().await;
    let nobody = Http::new(&askwell.base());
    let good = askwell.token("ann", &[]).unwrap();
    let both = askwell.token("shop", &["system", "ops"]).unwrap();
    let callers = [
        nobody.clone(),
        nobody.clone().with("x"),
        nobody
            .clone()
            .with(&token(SECRET, "ann", &[], -60).unwrap()),
        nobody
            .clone()
            .with(&token("another secret", "ann", &[], 60).unwrap()),
        nobody.clone().with(&token(SECRET, "", &[], 60).unwrap()),
        nobody.clone().with(&both),
    ];
    for caller in &callers {
        for reply in [
            caller.get("/v1/runs").await.unwrap(),
            caller.get("/v1/agents").await.unwrap(),
            caller.approve(NO_RUN, "question 1.1", "M").await.unwrap(),
        ] {
            assert_eq!((reply.status, reply.code()), (401, "T0009"));
            assert_eq!(
                reply.headers["www-authenticate"],
                "Bearer realm=\"askwell\""
            );
        }
    }
    // A token in the address is not read, a good one neither.
    let reply = nobody.get(&format!("/v1/runs?token={good}")).await.unwrap();
    assert_eq!(reply.status, 401);
    let cookie = nobody
        .request(Method::GET, "/v1/runs")
        .header("cookie", format!("token={good}"));
    assert_eq!(nobody.send(cookie).await.unwrap().status, 401);
    // With a secret nobody makes tokens here.
    let reply = nobody
        .post("/v1/dev/session", &json!({"name": "ann"}))
        .await
        .unwrap();
    assert_eq!(reply.status, 404);
    assert_eq!(nobody.get("/readyz").await.unwrap().status, 200);
    assert_eq!(nobody.get("/healthz").await.unwrap().status, 200);
}

#[tokio::test]
async fn development_mode_is_for_this_machine_alone() {
    let askwell = Askwell::start_with(AGENTS, &[]).await.unwrap();
    let nobody = Http::new(&askwell.base());
    let warned = askwell
        .process()
        .line("development mode", Duration::from_secs(5))
        .await;
    assert!(warned.unwrap().contains("WARN"));
    let body = json!({"name": "ann", "roles": ["staff"]});
    let signed = nobody
        .post("/v1/dev/session", &body)
        .await
        .unwrap()
        .ok()
        .unwrap();
    let token = signed["token"].as_str().unwrap();
    let ann = nobody.clone().with(token);
    ann.start("staff", "hi").await.unwrap();

    for (host, served) in [
        ("localhost:80", true),
        ("127.0.0.1", true),
        ("[::1]:9", true),
        ("evil.example", false),
        ("localhost.evil.example", false),
        ("127.0.0.1.evil.example", false),
    ] {
        for path in ["/", "/v1/agents", "/healthz"] {
            let request = ann.request(Method::GET, path).header("host", host);
            let reply = ann.send(request).await.unwrap();
            assert_eq!(
                reply.status == 200,
                served,
                "{path} as {host}: {}",
                reply.status
            );
            assert!(served || !reply.text.contains("staff"), "{path} as {host}");
        }
        let mut offer = Offer::default();
        offer.headers.push(("host".to_owned(), host.to_owned()));
        let shaken = Client::shake(&askwell.base(), &offer).await.unwrap();
        assert_eq!(
            matches!(shaken, Shook::Open(..)),
            served,
            "socket as {host}"
        );
    }
    for (origin, status) in [
        (askwell.base(), 200),
        ("https://evil.example".to_owned(), 403),
        ("null".to_owned(), 403),
    ] {
        let request = nobody
            .request(Method::POST, "/v1/dev/session")
            .header("origin", &origin);
        let request = request
            .header("content-type", "application/json")
            .body(body.to_string());
        assert_eq!(
            nobody.send(request).await.unwrap().status,
            status,
            "{origin}"
        );
    }
}

#[tokio::test]
async fn the_page_is_served_under_a_strict_policy() {
    let askwell = askwell().await;
    let nobody = Http::new(&askwell.base());
    let page = nobody.get("/").await.unwrap();
    assert_eq!(page.status, 200);
    assert_eq!(page.headers["content-type"], "text/html; charset=utf-8");
    assert_eq!(page.headers["x-content-type-options"], "nosniff");
    assert_eq!(page.headers["referrer-policy"], "no-referrer");
    let policy = page.headers["content-security-policy"].to_str().unwrap();
    assert!(policy.starts_with("default-src 'none'; script-src 'self'"));
    let script = nobody.get("/studio.js").await.unwrap();
    assert_eq!(
        script.headers["content-type"],
        "text/javascript; charset=utf-8"
    );
    let known = nobody
        .request(Method::GET, "/studio.js")
        .header("if-none-match", &script.headers["etag"]);
    assert_eq!(nobody.send(known).await.unwrap().status, 304);
    for missing in [
        "/nothing.js",
        "/package.json",
        "/wire.d.ts",
        "/%2e%2e/Cargo.toml",
    ] {
        assert_eq!(nobody.get(missing).await.unwrap().status, 404, "{missing}");
    }
}
