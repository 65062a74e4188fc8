//! The HTTP tool against a real server (SPEC 7): what is sent, what the model reads.
#![allow(clippy::unwrap_used, reason = "a test's helpers may fail by panicking")]

use std::collections::BTreeMap;
use std::time::Duration;

use askwell_shared::agent::{HttpToolSpec, ToolSpec};
use askwell_worker::tools::http::HttpTool;
use askwell_worker::tools::{CallContext, Tool as _};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, Method, Response, StatusCode, Uri};
use axum::routing::any;
use serde_json::{Value, json};

const LONG: usize = 10 * 1024 * 1024;

/// Tells back what came; some paths misbehave.
async fn answer(method: Method, uri: Uri, headers: HeaderMap, body: Bytes) -> Response<Body> {
    let text = |name: &str| {
        headers
            .get(name)
            .map(|value| value.to_str().unwrap().to_owned())
    };
    let reply =
        |status: StatusCode, body: Body| Response::builder().status(status).body(body).unwrap();
    match uri.path() {
        "/broken" => reply(StatusCode::INTERNAL_SERVER_ERROR, "no such order".into()),
        "/long" => reply(StatusCode::OK, "é".repeat(LONG / 2).into()),
        "/slow" => std::future::pending().await,
        "/away" => Response::builder()
            .status(StatusCode::FOUND)
            .header("location", "/echo")
            .body(Body::empty())
            .unwrap(),
        _ => {
            let told = json!({
                "method": method.as_str(),
                "query": uri.query(),
                "body": String::from_utf8_lossy(&body),
                "key": text("idempotency-key"),
                "authorization": text("authorization"),
            });
            reply(StatusCode::OK, told.to_string().into())
        }
    }
}

async fn serve() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let app = Router::new().fallback(any(answer));
        axum::serve(listener, app).await.unwrap();
    });
    format!("http://{address}")
}

async fn call(method: &str, path: &str, input: Value) -> Result<String, String> {
    let http = HttpToolSpec {
        method: method.into(),
        url: format!("{}{path}", serve().await),
        headers_env: BTreeMap::from([("authorization".into(), "SHOP_AUTH".into())]),
        timeout: Duration::from_millis(500),
    };
    let secret = |name: &str| (name == "SHOP_AUTH").then(|| "Bearer planted".to_owned());
    let tool = HttpTool::new(ToolSpec::new("shop"), &http, &secret).unwrap();
    let context = CallContext {
        key: "run_1/shop 1.1".into(),
        attempt: 1,
    };
    tool.call(&input, &context).await
}

fn read(told: &str) -> Value {
    serde_json::from_str(told).unwrap()
}

#[tokio::test]
async fn the_input_is_the_body_and_the_key_goes_along() {
    let input = read(r#"{"order":7,"sum":1.50}"#);
    let told = read(&call("POST", "/echo", input).await.unwrap());
    assert_eq!(told["method"], "POST");
    assert_eq!(told["body"], r#"{"order":7,"sum":1.50}"#);
    assert_eq!(told["key"], "run_1/shop 1.1");
    assert_eq!(told["authorization"], "Bearer planted");
    let told = read(
        &call("GET", "/echo?a=b", json!({"q": "x y&z", "n": 2}))
            .await
            .unwrap(),
    );
    assert_eq!(told["query"], "a=b&q=x+y%26z&n=2");
    assert_eq!(told["body"], "");
}

#[tokio::test]
async fn what_goes_wrong_is_told_the_model_without_a_secret() {
    let broken = call("POST", "/broken", json!({})).await.unwrap_err();
    assert_eq!(broken, "HTTP 500: no such order");
    let slow = call("POST", "/slow", json!({})).await.unwrap_err();
    assert_eq!(slow, "The request was given up after 500 ms.");
    let long = call("POST", "/long", json!({})).await.unwrap();
    assert_eq!(long, "é".repeat(8 * 1024));
    // A redirect is not followed: it would carry the secret to an address nobody chose.
    assert_eq!(call("POST", "/away", json!({})).await, Ok(String::new()));
    for told in [broken, slow] {
        assert!(!told.contains("planted"));
    }
}

#[test]
fn a_secret_that_is_not_set_is_named() {
    let http = HttpToolSpec {
        method: "POST".into(),
        url: "http://127.0.0.1:9/".into(),
        headers_env: BTreeMap::from([("authorization".into(), "SHOP_AUTH".into())]),
        timeout: Duration::from_secs(1),
    };
    let fault = HttpTool::new(ToolSpec::new("shop"), &http, &|_| None).err();
    assert_eq!(
        fault.as_deref(),
        Some("tools.shop.http.headersEnv.authorization: SHOP_AUTH is not set")
    );
}
