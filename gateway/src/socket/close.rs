//! How a socket ends: the code tells the client what to do (PROTOCOL 4.6).

use axum::extract::ws::{CloseFrame, Message, Utf8Bytes};
use futures_util::{SinkExt as _, StreamExt as _};
use tokio::time::{sleep, timeout};
use tokio_tungstenite::tungstenite::Error as Broken;
use tokio_tungstenite::tungstenite::error::CapacityError;

use super::{FAREWELL, Incoming, Sink};

/// An end of a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Close {
    code: u16,
    reason: &'static str,
    /// Nothing more can be read: the peer's answer is not waited for, but given time to come.
    unreadable: bool,
}

impl Close {
    /// The connection is gone, or the peer ended it: nothing is said.
    pub(super) const GONE: Close = close(0, "");
    /// A binary message.
    pub(super) const BINARY: Close = close(1003, "only text frames are read");
    /// The client broke the protocol.
    pub(super) const PROTOCOL: Close = close(4001, "hello must come first, within 5 s");
    /// A system token.
    pub(super) const FORBIDDEN: Close = close(4003, "backends use HTTP");
    /// The peer does not read.
    pub(super) const SLOW: Close = close(4101, "too slow");
    /// A ping was not answered.
    pub(super) const NO_PONG: Close = close(4102, "no pong");
    /// The store cannot be reached.
    pub(super) const OVERLOADED: Close = close(4103, "overloaded, come back later");
    /// This process ends, or the store is another one.
    pub(super) const DRAIN: Close = close(4201, "connect again");
    /// The token is expired or bad.
    pub(super) const TOKEN: Close = close(4301, "a valid token is needed");

    pub(super) fn code(self) -> u16 {
        self.code
    }

    /// The end after a message that could not be read.
    pub(super) fn unreadable(fault: axum::Error) -> Close {
        let broken = |code, reason| Close {
            unreadable: true,
            ..close(code, reason)
        };
        match fault.into_inner().downcast_ref::<Broken>() {
            Some(Broken::Capacity(CapacityError::MessageTooLong { .. })) => {
                broken(1009, "a frame is at most 64 KiB")
            }
            Some(Broken::Utf8(_)) => broken(1007, "a text frame is UTF-8"),
            Some(Broken::Protocol(_)) => broken(1002, "not a WebSocket frame"),
            _ => Close::GONE,
        }
    }
}

const fn close(code: u16, reason: &'static str) -> Close {
    Close {
        code,
        reason,
        unreadable: false,
    }
}

/// Tells the peer and lets it read that before the connection goes: a connection that is dropped
/// with unread bytes in it is reset, and the peer may never see the code.
pub(super) async fn farewell(sink: &mut Sink, incoming: &mut Incoming, close: Close) {
    if close.code == 0 {
        // The answer to the peer's own close is queued by the read that met it, and sent here.
        let _ = timeout(FAREWELL, sink.flush()).await;
        return;
    }
    let frame = CloseFrame {
        code: close.code,
        reason: Utf8Bytes::from_static(close.reason),
    };
    let told = timeout(FAREWELL, sink.send(Message::Close(Some(frame)))).await;
    if !matches!(told, Ok(Ok(()))) {
        return;
    }
    if close.unreadable {
        sleep(FAREWELL).await;
        return;
    }
    let rest = async { while let Some(Ok(_)) = incoming.next().await {} };
    // A peer that does not answer is left.
    let _ = timeout(FAREWELL, rest).await;
}
