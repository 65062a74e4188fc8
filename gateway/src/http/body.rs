//! A request's body: strict JSON of bounded length.

use std::time::Duration;

use askwell_shared::code::Code;
use askwell_shared::json;
use axum::body::Body;
use axum::http::{HeaderMap, header};
use futures_util::StreamExt as _;
use serde_json::{Map, Value};
use tokio::time::timeout;

use crate::refusal::Refusal;

/// A body is at most so long (T0007).
const MOST: usize = 64 * 1024;
/// Of a longer one so much is read and thrown away, so that its sender gets to read the refusal
/// and not a broken connection.
const MOST_DISCARDED: usize = 4 * 1024 * 1024;
/// A body must be there within this time.
const PATIENCE: Duration = Duration::from_secs(10);

/// Reads an object. An empty body counts as `{}`, so that what needs no fields needs none.
pub(super) async fn read(headers: &HeaderMap, body: Body) -> Result<Map<String, Value>, Refusal> {
    let bytes = timeout(PATIENCE, gather(body))
        .await
        .map_err(|_| Refusal::malformed("The body did not arrive in time."))??;
    if bytes.is_empty() {
        return Ok(Map::new());
    }
    let kind = headers.get(header::CONTENT_TYPE);
    if !kind
        .and_then(|kind| kind.to_str().ok())
        .is_some_and(is_json)
    {
        return Err(Refusal::malformed(
            "The Content-Type must be application/json.",
        ));
    }
    match json::parse(&bytes) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(_) => Err(Refusal::malformed("The body must be a JSON object.")),
        Err(fault) => Err(Refusal::malformed(format!(
            "The body is not JSON: {}.",
            fault.detail()
        ))),
    }
}

async fn gather(body: Body) -> Result<Vec<u8>, Refusal> {
    let mut bytes = Vec::new();
    let mut seen = 0;
    let mut stream = body.into_data_stream();
    while let Some(chunk) = stream.next().await {
        let chunk = chunk.map_err(|_| Refusal::malformed("The body did not arrive whole."))?;
        seen += chunk.len();
        if seen <= MOST {
            bytes.extend_from_slice(&chunk);
        } else if seen > MOST_DISCARDED {
            break;
        }
    }
    if seen > MOST {
        return Err(Refusal::new(
            Code::T0007,
            format!("A body has at most {MOST} bytes."),
        ));
    }
    Ok(bytes)
}

fn is_json(kind: &str) -> bool {
    let essence = kind.split(';').next().unwrap_or(kind).trim();
    essence.eq_ignore_ascii_case("application/json")
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn body(kind: Option<&str>, text: &str) -> Result<Map<String, Value>, &'static str> {
        let mut headers = HeaderMap::new();
        if let Some(kind) = kind {
            headers.insert(header::CONTENT_TYPE, kind.parse().unwrap());
        }
        let read = read(&headers, Body::from(text.to_owned())).await;
        read.map_err(|refusal| refusal.code.name())
    }

    #[tokio::test]
    async fn only_an_object_of_json_is_a_body() {
        let json = Some("application/json");
        assert_eq!(body(json, r#"{"a":1}"#).await.unwrap().len(), 1);
        let with_charset = Some("Application/JSON; charset=utf-8");
        assert!(body(with_charset, "{}").await.is_ok());
        assert!(body(None, "").await.is_ok());
        for (kind, text, code) in [
            (json, "[]", "T0006"),
            (json, "{", "T0006"),
            (json, "null", "T0006"),
            (json, r#"{"a":1,"a":1}"#, "T0006"),
            (json, "{}{}", "T0006"),
            (None, "{}", "T0006"),
            (Some("text/plain"), "{}", "T0006"),
            (Some("application/jsonp"), "{}", "T0006"),
        ] {
            assert_eq!(body(kind, text).await, Err(code), "{kind:?} {text}");
        }
    }

    #[tokio::test]
    async fn a_long_body_is_too_large() {
        let json = Some("application/json");
        let of = |length: usize| format!(r#"{{"a":"{}"}}"#, "x".repeat(length - 8));
        assert!(body(json, &of(64 * 1024)).await.is_ok());
        assert_eq!(body(json, &of(64 * 1024 + 1)).await, Err("T0007"));
        // Its length decides before its type and its form do.
        assert_eq!(body(None, &"[".repeat(100_000)).await, Err("T0007"));
    }
}
