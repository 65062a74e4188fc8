//! The first frame of a client (PROTOCOL 1): who it is, and where it was.

use std::time::Duration;

use axum::extract::ws::Message;
use futures_util::StreamExt as _;
use serde_json::{Map, Value};
use tokio::time::timeout;

use super::close::Close;
use super::cursor::Resume;
use super::inbound::{self, Frame};
use super::{Incoming, Sink, frames, write};
use crate::Gateway;
use crate::auth::{self, Signed};
use crate::fields::Fields;
use crate::refusal::Refusal;

/// A client that says nothing for so long is closed 4001.
const PATIENCE: Duration = Duration::from_secs(5);

/// The longest name of a device, in characters.
const LONGEST_DEVICE: usize = 128;

/// The last number that JSON, Lua and SQLite all count exactly.
const LAST_SEQ: u64 = (1 << 53) - 1;

/// Frames that are no `hello` and are answered before it; a client that sends more is none.
const MOST_MALFORMED: usize = 8;

/// What a client says of itself.
#[derive(Debug, PartialEq)]
pub(super) struct Hello {
    token: Option<String>,
    pub(super) device: Option<String>,
    pub(super) resume: Option<Resume>,
    pub(super) deltas: bool,
}

/// Waits for `hello` and checks its token, or the one that came before it.
pub(super) async fn wait(
    gateway: &Gateway,
    sink: &mut Sink,
    incoming: &mut Incoming,
    signed: Option<Signed>,
) -> Result<(Hello, Signed), Close> {
    let first = timeout(PATIENCE, first(sink, incoming)).await;
    let hello = first.unwrap_or(Err(Close::PROTOCOL))?;
    let renewed = match &hello.token {
        Some(token) => Some(
            gateway
                .auth
                .check(token, auth::now())
                .map_err(|_| Close::TOKEN)?,
        ),
        None => None,
    };
    let signed = match (signed, renewed) {
        // Who came in with one token does not become somebody else by another.
        (Some(before), Some(after)) if before.caller.as_starter() != after.caller.as_starter() => {
            return Err(Close::TOKEN);
        }
        (before, after) => after.or(before),
    };
    match signed {
        None => Err(Close::TOKEN),
        Some(signed) if signed.caller.system => Err(Close::FORBIDDEN),
        Some(signed) => Ok((hello, signed)),
    }
}

async fn first(sink: &mut Sink, incoming: &mut Incoming) -> Result<Hello, Close> {
    let mut malformed = 0;
    loop {
        let text = match incoming.next().await {
            None | Some(Ok(Message::Close(_))) => return Err(Close::GONE),
            Some(Err(fault)) => return Err(Close::unreadable(fault)),
            Some(Ok(Message::Binary(_))) => return Err(Close::BINARY),
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => continue,
            Some(Ok(Message::Text(text))) => text,
        };
        let refusal = match inbound::read(&text) {
            Ok(Frame { kind, map, .. }) if kind == "hello" => match read(&map) {
                Ok(hello) => return Ok(hello),
                Err(refusal) => refusal,
            },
            Ok(Frame { kind, .. }) if inbound::is_known(&kind) => return Err(Close::PROTOCOL),
            Ok(_) => Refusal::malformed("There is no frame of this type."),
            Err((_, refusal)) => refusal,
        };
        malformed += 1;
        if malformed > MOST_MALFORMED {
            return Err(Close::PROTOCOL);
        }
        write(sink, frames::error(None, &refusal)).await?;
    }
}

fn read(map: &Map<String, Value>) -> Result<Hello, Refusal> {
    let fields = Fields(map);
    let device = fields.optional_text("device")?;
    if device
        .as_ref()
        .is_some_and(|device| device.chars().count() > LONGEST_DEVICE)
    {
        return Err(Refusal::malformed(format!(
            "The field device must have at most {LONGEST_DEVICE} characters."
        )));
    }
    let resume = match map.get("resume") {
        None | Some(Value::Null) => None,
        Some(Value::Object(resume)) => {
            let resume = Fields(resume);
            Some(Resume {
                epoch: resume.text("epoch")?,
                // No log comes near the end of its numbers: what is beyond is ahead of it all the
                // same, and every store can count so far.
                seq: resume.seq("seq")?.min(LAST_SEQ),
            })
        }
        Some(_) => {
            return Err(Refusal::malformed(
                "The field resume must be an object with epoch and seq.",
            ));
        }
    };
    Ok(Hello {
        token: fields.optional_text("token")?,
        device,
        resume,
        deltas: fields.flag("deltas", true)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello(json: &str) -> Result<Hello, Refusal> {
        let map: Map<String, Value> = serde_json::from_str(json).unwrap();
        read(&map)
    }

    #[test]
    fn everything_may_be_left_out() {
        let expected = Hello {
            token: None,
            device: None,
            resume: None,
            deltas: true,
        };
        assert_eq!(hello("{}"), Ok(expected));
    }

    #[test]
    fn what_is_there_is_read() {
        let found = hello(
            r#"{"token":"a.b.c","device":"d","resume":{"epoch":"e","seq":4},"deltas":false}"#,
        );
        let expected = Hello {
            token: Some("a.b.c".into()),
            device: Some("d".into()),
            resume: Some(Resume {
                epoch: "e".into(),
                seq: 4,
            }),
            deltas: false,
        };
        assert_eq!(found, Ok(expected));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let long = format!(r#"{{"device":"{}"}}"#, "d".repeat(129));
        for (json, field) in [
            (r#"{"token":1}"#, "token"),
            (long.as_str(), "device"),
            (r#"{"resume":4}"#, "resume"),
            (r#"{"resume":{"seq":4}}"#, "epoch"),
            (r#"{"resume":{"epoch":"e","seq":-1}}"#, "seq"),
            (r#"{"resume":{"epoch":"e"}}"#, "seq"),
            (r#"{"deltas":"no"}"#, "deltas"),
        ] {
            let refusal = hello(json).unwrap_err();
            assert!(refusal.detail.contains(field), "{json}: {}", refusal.detail);
        }
    }
}
