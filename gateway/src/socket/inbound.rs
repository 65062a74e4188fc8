//! What a client sends after `hello` (PROTOCOL 3).

use std::sync::Arc;
use std::sync::atomic::Ordering;

use askwell_shared::json;
use axum::extract::ws::Message;
use futures_util::StreamExt as _;
use serde_json::{Map, Value};
use tokio::sync::Semaphore;
use tokio::sync::mpsc::Sender;

use super::close::Close;
use super::{Connection, Incoming, Outgoing, frames};
use crate::auth;
use crate::calls::{Command, Speaker};
use crate::fields::{Fields, check_cmd};
use crate::refusal::Refusal;

/// Commands of one socket that are carried out at once; more wait unread.
const AT_ONCE: usize = 16;

/// A frame whose type and command id can be read.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) kind: String,
    pub(super) cmd: Option<String>,
    pub(super) map: Map<String, Value>,
}

/// Reads until the peer ends the connection. When the process stops, nothing more is read and
/// the end is the writing side's to say.
pub(super) async fn run(
    connection: &Arc<Connection>,
    incoming: &mut Incoming,
    replies: Sender<Outgoing>,
) -> Close {
    let permits = Arc::new(Semaphore::new(AT_ONCE));
    loop {
        let message = tokio::select! {
            biased;
            () = connection.gateway.stop.cancelled() => {
                // The replies end when the last command has ended.
                drop(replies);
                return std::future::pending().await;
            }
            message = incoming.next() => message,
        };
        let text = match message {
            None | Some(Ok(Message::Close(_))) => return Close::GONE,
            Some(Err(fault)) => return Close::unreadable(fault),
            Some(Ok(Message::Binary(_))) => return Close::BINARY,
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => continue,
            Some(Ok(Message::Text(text))) => text,
        };
        let answer = match read(&text) {
            Ok(frame) => take(connection, frame, &permits, &replies).await,
            Err((cmd, refusal)) => Some(Outgoing::Frame(frames::error(cmd.as_deref(), &refusal))),
        };
        if let Some(answer) = answer
            && replies.send(answer).await.is_err()
        {
            return Close::GONE;
        }
    }
}

/// Reads a frame as far as its type and command id. Of one that cannot be read further, the
/// command id is told where there is one.
pub(super) fn read(text: &str) -> Result<Frame, (Option<String>, Refusal)> {
    let map = match json::parse(text.as_bytes()) {
        Ok(Value::Object(map)) => map,
        Ok(_) => {
            return Err((None, Refusal::malformed("A frame must be a JSON object.")));
        }
        Err(fault) => {
            let detail = format!("The frame is not JSON: {}.", fault.detail());
            return Err((None, Refusal::malformed(detail)));
        }
    };
    let cmd = match map.get("cmd") {
        Some(Value::String(cmd)) if check_cmd(cmd).is_ok() => Some(cmd.clone()),
        _ => None,
    };
    match Fields(&map).text("type") {
        Ok(kind) => Ok(Frame { kind, cmd, map }),
        Err(refusal) => Err((cmd, refusal)),
    }
}

/// Whether a client may send a frame of this type after `hello`.
pub(super) fn is_known(kind: &str) -> bool {
    matches!(kind, "pong" | "auth" | "resync") || Command::read(kind, &Map::new()).is_some()
}

/// Acts on a frame; a command's reply comes later.
async fn take(
    connection: &Arc<Connection>,
    frame: Frame,
    permits: &Arc<Semaphore>,
    replies: &Sender<Outgoing>,
) -> Option<Outgoing> {
    let Frame { kind, cmd, map } = frame;
    let answered = match kind.as_str() {
        "pong" => {
            connection.pinged.store(false, Ordering::Relaxed);
            return None;
        }
        "resync" => Fields(&map).seq("seq").map(Outgoing::Resync),
        "hello" => Err(Refusal::malformed("hello was said already.")),
        "auth" => need(cmd.as_deref(), &map)
            .and_then(|cmd| refresh(connection, cmd, &map))
            .map(Outgoing::Frame),
        kind => match Command::read(kind, &map) {
            None => Err(Refusal::malformed("There is no frame of this type.")),
            Some(command) => {
                match need(cmd.as_deref(), &map).and_then(|cmd| Ok((cmd.to_owned(), command?))) {
                    Ok((cmd, command)) => {
                        start(connection, cmd, command, permits, replies).await;
                        return None;
                    }
                    Err(refusal) => Err(refusal),
                }
            }
        },
    };
    Some(
        answered.unwrap_or_else(|refusal| Outgoing::Frame(frames::error(cmd.as_deref(), &refusal))),
    )
}

/// The command id, which every command must have.
fn need<'a>(cmd: Option<&'a str>, map: &Map<String, Value>) -> Result<&'a str, Refusal> {
    if let Some(cmd) = cmd {
        return Ok(cmd);
    }
    let text = Fields(map).text("cmd")?;
    check_cmd(&text)?;
    Err(Refusal::malformed("The field cmd is missing."))
}

/// Takes a new token for the same person; any other leaves the old one in force.
fn refresh(
    connection: &Connection,
    cmd: &str,
    map: &Map<String, Value>,
) -> Result<String, Refusal> {
    let token = Fields(map).text("token")?;
    let signed = connection.gateway.auth.check(&token, auth::now())?;
    let old = connection.signed.borrow().clone();
    if signed.caller.sub != old.caller.sub || signed.caller.system {
        return Err(Refusal::not_signed_in());
    }
    connection.signed.send_replace(Arc::new(signed));
    Ok(frames::plain_ok(cmd))
}

/// Carries out a command beside the socket. It ends even when the socket is gone: its client may
/// ask again under the same id.
async fn start(
    connection: &Arc<Connection>,
    cmd: String,
    command: Command,
    permits: &Arc<Semaphore>,
    replies: &Sender<Outgoing>,
) {
    // The semaphore is never closed.
    let Ok(permit) = permits.clone().acquire_owned().await else {
        return;
    };
    let (connection, replies) = (connection.clone(), replies.clone());
    let gateway = connection.gateway.clone();
    gateway.tracker.clone().spawn(async move {
        let signed = connection.signed.borrow().clone();
        let done = if signed.is_expired(auth::now()) {
            Err(Refusal::not_signed_in())
        } else {
            let speaker = Speaker {
                caller: Arc::new(signed.caller.clone()),
                device: connection.device.clone(),
            };
            gateway.calls.command(&speaker, &cmd, command).await
        };
        let frame = match done {
            Ok(done) => frames::ok(&cmd, done),
            Err(refusal) => frames::error(Some(&cmd), &refusal),
        };
        // A socket that is gone needs no reply.
        let _ = replies.send(Outgoing::Frame(frame)).await;
        drop(permit);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_an_object_with_a_type() {
        let frame = read(r#"{"type":"cancel","cmd":"c-1","run":"r"}"#).unwrap();
        assert_eq!(
            (frame.kind.as_str(), frame.cmd.as_deref()),
            ("cancel", Some("c-1"))
        );
        for (text, cmd) in [
            ("", None),
            ("{", None),
            ("[]", None),
            ("null", None),
            (r#"{"cmd":"c-1"}"#, Some("c-1")),
            (r#"{"type":1,"cmd":"c-1"}"#, Some("c-1")),
            (r#"{"type":"cancel","type":"retry"}"#, None),
        ] {
            let (found, refusal) = read(text).unwrap_err();
            assert_eq!(found.as_deref(), cmd, "{text}");
            assert_eq!(refusal.code.name(), "T0006", "{text}");
        }
    }

    #[test]
    fn a_command_id_that_is_none_is_not_sent_back() {
        for text in [
            r#"{"type":"cancel","cmd":"a b","run":"r"}"#,
            r#"{"type":"cancel","cmd":"","run":"r"}"#,
            r#"{"type":"cancel","cmd":7,"run":"r"}"#,
            r#"{"type":"cancel","run":"r"}"#,
        ] {
            let frame = read(text).unwrap();
            assert_eq!(frame.cmd, None, "{text}");
            assert!(need(None, &frame.map).is_err(), "{text}");
        }
    }

    #[test]
    fn only_what_clients_send_is_known() {
        for kind in [
            "start", "approve", "refuse", "cancel", "retry", "pong", "resync", "auth",
        ] {
            assert!(is_known(kind), "{kind}");
        }
        for kind in ["ok", "welcome", "", "Start"] {
            assert!(!is_known(kind), "{kind}");
        }
    }
}
