//! The WebSocket `askwell.v1` (PROTOCOL 1 to 4): from the handshake to the close.
//!
//! One task serves a socket: [`inbound`] reads, [`outbound`] writes, and neither waits for the
//! other. Commands run beside them, so that a slow one holds up nothing; one that was accepted
//! ends even when its socket is gone.

mod close;
mod cursor;
mod frames;
mod handshake;
mod hello;
mod inbound;
mod outbound;
mod snapshot;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use askwell_shared::id::Owner;
use axum::extract::State;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use futures_util::StreamExt as _;
use futures_util::stream::{SplitSink, SplitStream};
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use crate::Gateway;
use crate::auth::{self, Signed};
use crate::http::problem;
use crate::refusal::Refusal;
use close::Close;
use handshake::PROTOCOL;

/// A frame or message is at most so long (PROTOCOL 1).
const MOST_BYTES: usize = 64 * 1024;
/// Bytes that a socket reads at once. The library's own 128 KiB would be most of the memory of an
/// idle socket.
const READ_BUFFER: usize = 4096;
/// A write that takes longer closes 4101.
const WRITE: Duration = Duration::from_secs(10);
/// A peer that was told of the end has so long to answer, so that it reads the reason before the
/// connection goes.
const FAREWELL: Duration = Duration::from_secs(1);
/// Replies that wait to be written; more stop the reading.
const REPLIES: usize = 16;

type Sink = SplitSink<WebSocket, Message>;
type Incoming = SplitStream<WebSocket>;

/// `GET /v1/ws`.
pub(crate) async fn upgrade(
    State(gateway): State<Arc<Gateway>>,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Response {
    let header = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or(""));
    if !gateway.door.origin(header("origin"), header("host")) {
        let refusal = Refusal::malformed("Pages of this origin may not connect.");
        return problem::respond(&refusal, Some(StatusCode::FORBIDDEN));
    }
    let upgrade = match upgrade {
        Ok(upgrade) => upgrade,
        Err(rejection) => {
            let refusal = Refusal::malformed("This address is for WebSockets.");
            return problem::respond(&refusal, Some(rejection.into_response().status()));
        }
    };
    let offers: Vec<&str> = headers
        .get_all("sec-websocket-protocol")
        .iter()
        .map(|value| value.to_str().unwrap_or(""))
        .collect();
    let authorization: Vec<&str> = headers
        .get_all("authorization")
        .iter()
        .map(|value| value.to_str().unwrap_or(""))
        .collect();
    let chosen = match handshake::choose(&offers, &authorization) {
        Ok(chosen) => chosen,
        Err(refusal) => return problem::respond(&refusal, None),
    };
    let signed = match chosen.token {
        None => None,
        Some(token) => match gateway.auth.check(token, auth::now()) {
            Ok(signed) => Some(signed),
            Err(refusal) => return problem::respond(&refusal, None),
        },
    };
    if gateway.stop.is_cancelled() {
        return problem::respond(&Refusal::of(askwell_shared::code::Code::T0012), None);
    }
    let mut upgrade = upgrade
        .read_buffer_size(READ_BUFFER)
        .write_buffer_size(0)
        .max_write_buffer_size(4 * MOST_BYTES)
        .max_message_size(MOST_BYTES)
        .max_frame_size(MOST_BYTES);
    if chosen.echo {
        upgrade.set_selected_protocol(HeaderValue::from_static(PROTOCOL));
    }
    let tracked = gateway.tracker.token();
    upgrade.on_upgrade(move |socket| async move {
        serve(&gateway, socket, signed).await;
        drop(tracked);
    })
}

/// What both directions of a signed-in socket share.
struct Connection {
    gateway: Arc<Gateway>,
    owner: Owner,
    device: Option<String>,
    signed: watch::Sender<Arc<Signed>>,
    /// A ping waits for its pong.
    pinged: AtomicBool,
}

/// What the reading direction hands to the writing one.
enum Outgoing {
    /// A finished frame: `ok` or `error`.
    Frame(String),
    /// Read the log again from here.
    Resync(u64),
}

async fn serve(gateway: &Arc<Gateway>, socket: WebSocket, signed: Option<Signed>) {
    let (mut sink, mut incoming) = socket.split();
    let close = converse(gateway, &mut sink, &mut incoming, signed).await;
    tracing::debug!(code = close.code(), "socket ends");
    close::farewell(&mut sink, &mut incoming, close).await;
}

async fn converse(
    gateway: &Arc<Gateway>,
    sink: &mut Sink,
    incoming: &mut Incoming,
    signed: Option<Signed>,
) -> Close {
    if signed.as_ref().is_some_and(|signed| signed.caller.system) {
        return Close::FORBIDDEN;
    }
    let greeting = frames::hello(&gateway.node);
    if let Err(close) = write(sink, greeting).await {
        return close;
    }
    let greeted = tokio::select! {
        () = gateway.stop.cancelled() => return Close::DRAIN,
        greeted = hello::wait(gateway, sink, incoming, signed) => greeted,
    };
    let (hello, signed) = match greeted {
        Ok(greeted) => greeted,
        Err(close) => return close,
    };

    let owner = Owner::Person(signed.caller.sub.clone());
    let connection = Arc::new(Connection {
        gateway: gateway.clone(),
        owner: owner.clone(),
        device: hello.device,
        signed: watch::Sender::new(Arc::new(signed)),
        pinged: AtomicBool::new(false),
    });
    // Registered before anything is read: what is told from here on waits in the lane.
    let registered = gateway.hub.register(owner.clone(), hello.deltas);
    if let Err(fault) = crate::hub::arrive(&gateway.ports, &[owner]).await {
        // The hub writes it again; until then heads are compared, and nothing is lost.
        tracing::debug!(%fault, "presence was not written");
    }
    let (replies, outgoing) = mpsc::channel(REPLIES);
    let read = inbound::run(&connection, incoming, replies);
    let written = outbound::run(
        &connection,
        sink,
        registered.lane(),
        outgoing,
        hello.resume.as_ref(),
    );
    tokio::select! {
        close = read => close,
        close = written => close,
    }
}

impl Connection {
    /// Whether the newest ping was answered; asked once per ping.
    fn was_answered(&self) -> bool {
        !self.pinged.load(Ordering::Relaxed)
    }
}

/// Writes one frame, or says why the socket must end.
async fn write(
    sink: &mut Sink,
    frame: impl Into<axum::extract::ws::Utf8Bytes>,
) -> Result<(), Close> {
    use futures_util::SinkExt as _;
    match timeout(WRITE, sink.send(Message::Text(frame.into()))).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) => Err(Close::GONE),
        Err(_) => Err(Close::SLOW),
    }
}
