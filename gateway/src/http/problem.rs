//! A refusal as problem details (RFC 9457, SPEC 4).

use askwell_shared::code::Code;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value};

use crate::refusal::Refusal;

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        respond(&self, None)
    }
}

/// Answers a refusal with its code's own status, or another where HTTP has a better word.
pub(crate) fn respond(refusal: &Refusal, status: Option<StatusCode>) -> Response {
    let row = refusal.code.row();
    let own = StatusCode::from_u16(row.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let status = status.unwrap_or(own);
    let mut problem = Map::new();
    problem.insert("type".into(), format!("urn:askwell:{}", row.name).into());
    problem.insert("title".into(), row.title.into());
    problem.insert("status".into(), status.as_u16().into());
    refusal.write_to(&mut problem);
    let mut response = (status, Value::Object(problem).to_string()).into_response();
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/problem+json"),
    );
    if refusal.code == Code::T0009 {
        headers.insert(
            header::WWW_AUTHENTICATE,
            HeaderValue::from_static("Bearer realm=\"askwell\""),
        );
    }
    if let Some(retry) = refusal.retry_ms {
        // Whole seconds, rounded up: sooner than `retryMs` nobody shall come.
        headers.insert(header::RETRY_AFTER, HeaderValue::from(retry.div_ceil(1000)));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn problems_have_their_codes_status_and_type() {
        for row in &askwell_shared::code::TABLE {
            if row.status == 0 {
                continue;
            }
            let response = Refusal::of(row.code).into_response();
            assert_eq!(response.status().as_u16(), row.status, "{}", row.name);
            let kind = &response.headers()[header::CONTENT_TYPE];
            assert_eq!(kind, "application/problem+json");
            let challenged = response.headers().contains_key(header::WWW_AUTHENTICATE);
            assert_eq!(challenged, row.status == 401);
            let body = axum::body::to_bytes(response.into_body(), 10_000)
                .await
                .unwrap();
            let body: Value = serde_json::from_slice(&body).unwrap();
            assert_eq!(body["code"], row.name);
            assert_eq!(body["status"], row.status);
            assert_eq!(body["temporary"], row.temporary);
            assert_eq!(body["title"], row.title);
            assert!(body["detail"].as_str().is_some_and(|text| !text.is_empty()));
        }
    }
}
