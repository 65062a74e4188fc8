//! HTTP: the same domain calls as the socket's, for backends, curl and adapters (PROTOCOL 5).
//!
//! Events as a stream (SSE), tickets, the documents and the pages of ops get their routes here.
//!
//! A path that is not there and a method that is not allowed are no run that is not there: they
//! answer T0006 with the statuses 404 and 405.

mod body;
mod query;

pub(crate) mod problem;

use std::sync::Arc;
use std::time::Duration;

use askwell_shared::code::Code;
use axum::Router;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use serde_json::{Map, Value, json};
use tokio::time::timeout;
use uuid::Uuid;

use crate::Gateway;
use crate::auth::{self, Signed};
use crate::calls::{AskFilter, Command, RunFilter, Speaker};
use crate::fields::{Fields, check_cmd};
use crate::refusal::Refusal;
use crate::{assets, socket};
use query::Query;

/// How long a development token holds.
const DEVELOPMENT_TTL: Duration = Duration::from_hours(12);
/// A store that does not answer for so long is not ready.
const READY: Duration = Duration::from_secs(2);

type Reply = Result<Response, Refusal>;

/// All routes.
pub(crate) fn router(gateway: Arc<Gateway>) -> Router {
    let guard = middleware::from_fn_with_state(gateway.clone(), guard);
    Router::new()
        .route("/v1/ws", get(socket::upgrade))
        .route("/v1/runs", get(list_runs).post(start))
        .route("/v1/runs/{run}", get(read_run))
        .route("/v1/runs/{run}/{command}", post(command))
        .route("/v1/asks", get(list_asks))
        .route("/v1/agents", get(list_agents))
        .route("/v1/dev/session", post(development_session))
        .route("/healthz", get(healthy))
        .route("/readyz", get(ready))
        .route("/", get(assets::index))
        .route("/{*path}", get(assets::file))
        .fallback(no_path)
        .method_not_allowed_fallback(no_method)
        .layer(guard)
        .with_state(gateway)
}

/// What holds for every request: the host, no token in the address, and headers for browsers.
async fn guard(State(gateway): State<Arc<Gateway>>, request: Request, next: Next) -> Response {
    let host = request
        .headers()
        .get(header::HOST)
        .and_then(|host| host.to_str().ok())
        .or_else(|| {
            request
                .uri()
                .authority()
                .map(axum::http::uri::Authority::as_str)
        });
    let mut response = if !gateway.door.host(host) {
        let refusal = Refusal::malformed(
            "In development mode only localhost, 127.0.0.1 and [::1] are served.",
        );
        problem::respond(&refusal, Some(StatusCode::MISDIRECTED_REQUEST))
    } else if query::holds_token(request.uri()) {
        problem::respond(&Refusal::not_signed_in(), None)
    } else {
        next.run(request).await
    };
    let headers = response.headers_mut();
    for (name, value) in [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    // What is said to one caller is for no cache; static files say their own.
    headers
        .entry(header::CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    response
}

async fn start(State(gateway): State<Arc<Gateway>>, headers: HeaderMap, request: Request) -> Reply {
    let signed = signed_in(&gateway, &headers)?;
    let body = body::read(&headers, request.into_body()).await?;
    carry_out(
        &gateway,
        &signed,
        &headers,
        "start",
        &body,
        StatusCode::ACCEPTED,
    )
    .await
}

async fn command(
    State(gateway): State<Arc<Gateway>>,
    path: Result<Path<(String, String)>, PathRejection>,
    headers: HeaderMap,
    request: Request,
) -> Reply {
    let Ok(Path((run, command))) = path else {
        return unreadable_run(&gateway, &headers);
    };
    if !matches!(command.as_str(), "approve" | "refuse" | "cancel" | "retry") {
        return Ok(no_path().await);
    }
    let signed = signed_in(&gateway, &headers)?;
    let mut body = body::read(&headers, request.into_body()).await?;
    // The run is the one of the path, whatever the body says.
    body.insert("run".into(), run.into());
    carry_out(&gateway, &signed, &headers, &command, &body, StatusCode::OK).await
}

/// A path that is no text names no run: the same as for any other that is not there.
fn unreadable_run(gateway: &Gateway, headers: &HeaderMap) -> Reply {
    signed_in(gateway, headers)?;
    Err(Refusal::not_found())
}

async fn carry_out(
    gateway: &Arc<Gateway>,
    signed: &Signed,
    headers: &HeaderMap,
    kind: &str,
    body: &Map<String, Value>,
    status: StatusCode,
) -> Reply {
    let cmd = idempotency_key(headers)?;
    let command = match Command::read(kind, body) {
        Some(command) => command?,
        None => return Ok(no_path().await),
    };
    let speaker = Speaker {
        caller: Arc::new(signed.caller.clone()),
        device: None,
    };
    // A caller who hangs up does not stop what was begun: they may ask again under the same key.
    let calls = gateway.clone();
    let done = gateway
        .tracker
        .spawn(async move { calls.calls.command(&speaker, &cmd, command).await });
    let done = done.await.map_err(|panicked| {
        tracing::error!(%panicked, "a command broke off");
        Refusal::store_away()
    })??;
    Ok(json_reply(status, &done.into_value()))
}

async fn read_run(
    State(gateway): State<Arc<Gateway>>,
    path: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
) -> Reply {
    let Ok(Path(run)) = path else {
        return unreadable_run(&gateway, &headers);
    };
    let signed = signed_in(&gateway, &headers)?;
    let run = gateway.calls.run(&signed.caller, &run).await?;
    Ok(json_reply(StatusCode::OK, &run))
}

async fn list_runs(State(gateway): State<Arc<Gateway>>, headers: HeaderMap, query: Query) -> Reply {
    let signed = signed_in(&gateway, &headers)?;
    let filter = RunFilter {
        agent: query.one("agent")?,
        thread: query.one("thread")?,
        status: query.one("status")?,
        limit: query.one("limit")?,
        cursor: query.one("cursor")?,
    };
    let runs = gateway.calls.runs(&signed.caller, &filter).await?;
    Ok(json_reply(StatusCode::OK, &runs))
}

async fn list_asks(State(gateway): State<Arc<Gateway>>, headers: HeaderMap, query: Query) -> Reply {
    let signed = signed_in(&gateway, &headers)?;
    let filter = AskFilter {
        state: query.one("state")?,
        agent: query.one("agent")?,
        limit: query.one("limit")?,
        cursor: query.one("cursor")?,
    };
    let asks = gateway.calls.asks(&signed.caller, &filter).await?;
    Ok(json_reply(StatusCode::OK, &asks))
}

async fn list_agents(State(gateway): State<Arc<Gateway>>, headers: HeaderMap) -> Reply {
    let signed = signed_in(&gateway, &headers)?;
    let agents = gateway.calls.agents(&signed.caller).await?;
    Ok(json_reply(StatusCode::OK, &agents))
}

/// A token for anyone on this machine: only in development mode (SPEC 8).
async fn development_session(
    State(gateway): State<Arc<Gateway>>,
    headers: HeaderMap,
    request: Request,
) -> Reply {
    if !gateway.door.development {
        return Ok(no_path().await);
    }
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or(""));
    if !gateway.door.origin(text("origin"), text("host")) {
        let refusal = Refusal::malformed("Pages of this origin may not sign in.");
        return Ok(problem::respond(&refusal, Some(StatusCode::FORBIDDEN)));
    }
    let body = body::read(&headers, request.into_body()).await?;
    let fields = Fields(&body);
    let (name, roles) = (fields.text("name")?, fields.texts("roles")?);
    let token = gateway
        .auth
        .issue(&name, &roles, DEVELOPMENT_TTL, auth::now())
        .map_err(|rule| Refusal::malformed(format!("The field name or roles: {rule}.")))?;
    Ok(json_reply(StatusCode::OK, &json!({ "token": token })))
}

/// The process lives.
async fn healthy() -> Response {
    json_reply(StatusCode::OK, &json!({ "status": "ok" }))
}

/// It can do its work: the store answers, and it is not on its way out.
async fn ready(State(gateway): State<Arc<Gateway>>) -> Reply {
    if gateway.stop.is_cancelled() {
        return Err(Refusal::of(Code::T0012));
    }
    match timeout(READY, gateway.calls.ready()).await {
        Ok(true) => Ok(json_reply(StatusCode::OK, &json!({ "status": "ready" }))),
        _ => Err(Refusal::store_away()),
    }
}

pub(crate) async fn no_path() -> Response {
    let refusal = Refusal::malformed("There is nothing at this address.");
    problem::respond(&refusal, Some(StatusCode::NOT_FOUND))
}

async fn no_method() -> Response {
    let refusal = Refusal::malformed("This method is not for this address.");
    problem::respond(&refusal, Some(StatusCode::METHOD_NOT_ALLOWED))
}

fn signed_in(gateway: &Gateway, headers: &HeaderMap) -> Result<Signed, Refusal> {
    let mut sent = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(value), None) = (sent.next(), sent.next()) else {
        return Err(Refusal::not_signed_in());
    };
    let token = value
        .to_str()
        .ok()
        .and_then(auth::bearer)
        .ok_or_else(Refusal::not_signed_in)?;
    gateway.auth.check(token, auth::now())
}

/// The command's id: `Idempotency-Key`, or one made here.
fn idempotency_key(headers: &HeaderMap) -> Result<String, Refusal> {
    let mut sent = headers.get_all("idempotency-key").iter();
    let Some(value) = sent.next() else {
        return Ok(Uuid::new_v4().to_string());
    };
    let key = value.to_str().unwrap_or("");
    check_cmd(key)?;
    match sent.next() {
        None => Ok(key.to_owned()),
        Some(_) => Err(Refusal::malformed("Only one Idempotency-Key may be sent.")),
    }
}

fn json_reply(status: StatusCode, body: &Value) -> Response {
    let json = HeaderValue::from_static("application/json");
    (status, [(header::CONTENT_TYPE, json)], body.to_string()).into_response()
}
