//! What stands in messages (PROTOCOL 7): small JSON, never a checkpoint. Read without flattened or
//! untagged records, which would lose the digits of numbers (SPEC 3.6).

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::ask::{By, Outcome, Settlement};
use crate::id::{Owner, RunId};
use crate::ports::{Delta, Heard, Hint, HintKind, News, Settled};
use crate::time::Millis;

/// The version of every message that this program writes, and the newest it reads.
const VERSION: u32 = 1;

/// Routing key of hints of new runs.
pub(super) const START: &str = "start";

/// Routing key of hints of runs that go on.
pub(super) const RESUME: &str = "resume";

/// By which key a hint goes to its queue.
pub(super) fn key(kind: HintKind) -> &'static str {
    match kind {
        HintKind::Start => START,
        HintKind::Resume => RESUME,
    }
}

/// Why a message cannot be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unreadable {
    #[error("not a message: {0}")]
    Json(#[from] serde_json::Error),
    #[error("of version {0}, unknown to this program")]
    Version(u32),
    #[error("{0} is no id")]
    Id(String),
}

#[derive(Deserialize)]
struct Versioned {
    v: u32,
}

/// Looks at the version alone: the rest may mean something else in another.
fn versioned(body: &[u8]) -> Result<(), Unreadable> {
    match serde_json::from_slice::<Versioned>(body)?.v {
        VERSION => Ok(()),
        other => Err(Unreadable::Version(other)),
    }
}

#[derive(Serialize, Deserialize)]
struct HintMessage {
    v: u32,
    run: RunId,
    rev: u64,
    agent: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    revision: Option<String>,
    kind: HintKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    settlement: Option<SettledMessage>,
}

#[derive(Serialize, Deserialize)]
struct SettledMessage {
    ask: String,
    step: String,
    repeat: u32,
    outcome: Outcome,
    /// Left out where there is none, which differs from `null`.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "present"
    )]
    data: Option<Value>,
    by: Option<By>,
    at: Millis,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cmd: Option<String>,
    digest: String,
    reply: Value,
}

fn present<'de, D: serde::Deserializer<'de>>(data: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(data).map(Some)
}

/// A hint as the body of a message.
pub(super) fn write_hint(hint: &Hint) -> serde_json::Result<Vec<u8>> {
    let settlement = hint.settlement.as_deref().map(|settled| SettledMessage {
        ask: settled.ask.clone(),
        step: settled.step.clone(),
        repeat: settled.repeat,
        outcome: settled.settlement.outcome,
        data: settled.settlement.data.clone(),
        by: settled.settlement.by.clone(),
        at: settled.settlement.at,
        reason: settled.settlement.reason.clone(),
        cmd: settled.settlement.cmd.clone(),
        digest: settled.digest.clone(),
        reply: settled.reply.clone(),
    });
    serde_json::to_vec(&HintMessage {
        v: VERSION,
        run: hint.run.clone(),
        rev: hint.rev,
        agent: hint.agent.clone(),
        revision: hint.revision.clone(),
        kind: hint.kind,
        settlement,
    })
}

/// The hint in a message's body.
pub(super) fn read_hint(body: &[u8]) -> Result<Hint, Unreadable> {
    versioned(body)?;
    let message: HintMessage = serde_json::from_slice(body)?;
    let settlement = message.settlement.map(|settled| {
        Box::new(Settled {
            ask: settled.ask,
            step: settled.step,
            repeat: settled.repeat,
            settlement: Settlement {
                outcome: settled.outcome,
                by: settled.by,
                at: settled.at,
                data: settled.data,
                reason: settled.reason,
                cmd: settled.cmd,
            },
            digest: settled.digest,
            reply: settled.reply,
        })
    });
    Ok(Hint {
        run: run_id(&message.run)?,
        rev: message.rev,
        agent: message.agent,
        revision: message.revision,
        kind: message.kind,
        settlement,
    })
}

/// A record is read without looking at the form of its ids.
fn run_id(run: &RunId) -> Result<RunId, Unreadable> {
    RunId::parse(run.as_str()).ok_or_else(|| Unreadable::Id(run.to_string()))
}

#[derive(Serialize, Deserialize)]
struct EventMessage<'a> {
    v: u32,
    owner: String,
    run: RunId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    /// The frames of a commit, or none and a piece of streamed text.
    #[serde(default, borrow, skip_serializing_if = "Option::is_none")]
    frames: Option<Vec<&'a RawValue>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    delta: Option<DeltaMessage>,
}

#[derive(Serialize, Deserialize)]
struct DeltaMessage {
    turn: u32,
    attempt: u64,
    offset: u64,
    text: String,
}

#[derive(Deserialize)]
struct Numbered {
    seq: u64,
}

/// News as the body of a message.
pub(super) fn write_news(news: &News) -> serde_json::Result<Vec<u8>> {
    let frames = news.frames.iter();
    serde_json::to_vec(&EventMessage {
        v: VERSION,
        owner: news.owner.key(),
        run: news.run.clone(),
        agent: Some(news.agent.clone()),
        frames: Some(
            frames
                .map(|(_, frame)| serde_json::from_str(frame))
                .collect::<serde_json::Result<_>>()?,
        ),
        delta: None,
    })
}

/// Streamed text as the body of a message.
pub(super) fn write_delta(delta: &Delta) -> serde_json::Result<Vec<u8>> {
    serde_json::to_vec(&EventMessage {
        v: VERSION,
        owner: delta.owner.key(),
        run: delta.run.clone(),
        agent: None,
        frames: None,
        delta: Some(DeltaMessage {
            turn: delta.turn,
            attempt: delta.attempt,
            offset: delta.offset,
            text: delta.text.clone(),
        }),
    })
}

/// What a message of the feed tells.
pub(super) fn read_event(body: &[u8]) -> Result<Heard, Unreadable> {
    versioned(body)?;
    let message: EventMessage = serde_json::from_slice(body)?;
    let run = run_id(&message.run)?;
    let owner = Owner::parse(&message.owner).ok_or(Unreadable::Id(message.owner))?;
    if let Some(delta) = message.delta {
        return Ok(Heard::Delta(Arc::new(Delta {
            owner,
            run,
            turn: delta.turn,
            attempt: delta.attempt,
            offset: delta.offset,
            text: delta.text,
        })));
    }
    let mut frames = Vec::new();
    for frame in message.frames.unwrap_or_default() {
        let seq = serde_json::from_str::<Numbered>(frame.get())?.seq;
        frames.push((seq, Arc::from(frame.get())));
    }
    Ok(Heard::News(Arc::new(News {
        owner,
        run,
        agent: message.agent.unwrap_or_default(),
        // They stand on the message's outside, for those who choose by them.
        keys: Vec::new(),
        frames,
    })))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use uuid::Uuid;

    use super::*;

    fn hint() -> Hint {
        Hint {
            run: RunId::new(3, Uuid::nil()),
            rev: 7,
            agent: "asker".into(),
            revision: Some("r1".into()),
            kind: HintKind::Resume,
            settlement: None,
        }
    }

    fn settled(data: Option<Value>) -> Hint {
        let settlement = Settlement {
            outcome: Outcome::Answered,
            by: Some(By {
                sub: "ada".into(),
                device: None,
            }),
            at: Millis(1_764_500_000_000),
            data,
            reason: None,
            cmd: Some("c1".into()),
        };
        let settled = Settled {
            ask: "ask_1".into(),
            step: "question 1.1".into(),
            repeat: 2,
            settlement,
            digest: "d".into(),
            reply: json!({"outcome": "answered"}),
        };
        Hint {
            settlement: Some(Box::new(settled)),
            ..hint()
        }
    }

    #[test]
    fn hints_come_back_as_they_were_put() {
        let digits: Value =
            serde_json::from_str(r#"{"a": 1.10, "b": [1e2, 123456789012345678901234567890]}"#)
                .unwrap();
        let hints = [
            hint(),
            settled(None),
            settled(Some(Value::Null)),
            settled(Some(digits)),
        ];
        for hint in hints {
            let body = write_hint(&hint).unwrap();
            let read = read_hint(&body).unwrap();
            assert_eq!(read, hint);
            // `Value` compares numbers by their digits here.
            assert_eq!(write_hint(&read).unwrap(), body);
        }
    }

    #[test]
    fn a_settlement_stands_flat_in_its_hint() {
        let body = write_hint(&settled(Some(json!("M")))).unwrap();
        let value: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(value["v"], 1);
        assert_eq!(value["kind"], "resume");
        let keys: Vec<&str> = value["settlement"]
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        let expected = "ask step repeat outcome data by at cmd digest reply";
        assert_eq!(keys, expected.split(' ').collect::<Vec<_>>());
    }

    #[test]
    fn what_is_no_hint_of_ours_is_refused() {
        let whole = r#"{"v":1,"run":"run_03x","rev":7,"agent":"asker","kind":"resume"}"#;
        for (body, says) in [
            ("\u{0}\u{1}", "not a message"),
            ("[]", "not a message"),
            ("{}", "not a message"),
            (r#"{"v":99}"#, "of version 99"),
            (r#"{"v":1}"#, "not a message"),
            (whole, "run_03x is no id"),
        ] {
            let fault = read_hint(body.as_bytes()).unwrap_err().to_string();
            assert!(fault.contains(says), "{body}: {fault}");
        }
    }

    #[test]
    fn what_the_feed_tells_comes_back() {
        let run = RunId::new(3, Uuid::nil());
        let news = News {
            owner: Owner::Person("ada".into()),
            run: run.clone(),
            agent: "asker".into(),
            keys: Vec::new(),
            frames: vec![
                (8, Arc::from(r#"{"seq":8,"type":"a","data":1.10}"#)),
                (9, Arc::from(r#"{"seq":9,"type":"b"}"#)),
            ],
        };
        let delta = Delta {
            owner: Owner::System(run.clone()),
            run,
            turn: 1,
            attempt: 5,
            offset: 10,
            text: "a\u{1F600}".into(),
        };
        let body = write_news(&news).unwrap();
        assert_eq!(read_event(&body).unwrap(), Heard::News(Arc::new(news)));
        let body = write_delta(&delta).unwrap();
        assert_eq!(read_event(&body).unwrap(), Heard::Delta(Arc::new(delta)));
        read_event(br#"{"v":2,"owner":"p:ada"}"#).unwrap_err();
    }
}
