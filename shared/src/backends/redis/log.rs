//! What an owner's log holds of a frame. Messages and opened asks are kept once, with their run:
//! the log refers to them, and they are shown as they were then. Of a status it holds what
//! changes; agent and thread are the run's.

use deadpool_redis::redis::Value;

use super::Broken;
use super::record::{self, Parts};
use crate::ask::Ask;
use crate::id::RunId;
use crate::run::{Moved, Run, Status};
use crate::transcript::Message;
use crate::wire::Frame;

/// A frame as the log holds it.
#[derive(Debug, PartialEq)]
pub(super) enum Entry {
    /// Its text.
    Text(String),
    /// The message of this number among those that the commit appends.
    Message(usize),
    /// The ask of this number.
    Ask(usize),
    /// The run's status, and the revision.
    Status(&'static str, u64),
}

impl Entry {
    /// What the log holds of a frame of `moved`. A reference stands only for what shows as
    /// exactly this frame.
    pub(super) fn of(frame: &Frame, moved: &Moved) -> Self {
        let id = &moved.run.id;
        let found = match frame {
            Frame::RunMessage { .. } => {
                let mut messages = moved.messages.iter();
                let place = messages.position(|message| message_frame(id, message) == *frame);
                place.map(Entry::Message)
            }
            Frame::AskOpened { .. } => {
                let mut asks = moved.asks.iter().copied();
                let asked = |number: &usize| moved.run.asks.get(*number);
                let same =
                    |number: &usize| asked(number).is_some_and(|ask| opened_frame(ask) == *frame);
                asks.find(same).map(Entry::Ask)
            }
            Frame::RunStatus { status, rev, .. } => {
                let Run { agent, thread, .. } = &moved.run;
                let same = status_frame(id, agent, thread.clone(), status, *rev) == *frame;
                same.then_some(Entry::Status(status, *rev))
            }
            _ => None,
        };
        found.unwrap_or_else(|| Entry::Text(frame.text()))
    }
}

/// The text of a frame from an entry, its kind and what it refers to. `None`: that is gone, with
/// its run.
pub(super) fn frame(entry: &mut Parts) -> Result<Option<String>, Broken> {
    let kind = entry.text()?;
    let value = entry.text()?;
    if kind == "f" {
        return Ok(Some(value));
    }
    let kept = match entry.value() {
        Value::Nil => return Ok(None),
        kept => kept,
    };
    let damaged = || Broken::Damaged(format!("a log holds {kind} {value}"));
    let mut words = value.split(' ');
    let run = words.next().and_then(RunId::parse).ok_or_else(damaged)?;
    let frame = match kind.as_str() {
        "m" => message_frame(&run, &record::json(kept)?),
        "a" => opened_frame(&record::json(kept)?),
        "s" => {
            let status = words.next().and_then(Status::parse).ok_or_else(damaged)?;
            let rev = words.next().and_then(|rev| rev.parse().ok());
            let mut run_is = Parts::of(kept)?;
            let (agent, thread) = (run_is.text()?, run_is.maybe()?);
            status_frame(
                &run,
                &agent,
                thread,
                status.name(),
                rev.ok_or_else(damaged)?,
            )
        }
        _ => return Err(damaged()),
    };
    Ok(Some(frame.text()))
}

/// A status without a reason or an output.
fn status_frame(
    run: &RunId,
    agent: &str,
    thread: Option<String>,
    status: &'static str,
    rev: u64,
) -> Frame {
    Frame::RunStatus {
        run: run.clone(),
        agent: agent.to_owned(),
        thread,
        status,
        rev,
        reason: None,
        output: None,
        truncated: false,
    }
}

fn message_frame(run: &RunId, message: &Message) -> Frame {
    match message {
        Message::User { text } => Frame::user(run, text),
        Message::Assistant {
            turn, text, calls, ..
        } => Frame::assistant(run, *turn, text, calls),
    }
}

/// An ask as it was opened, whatever has become of it.
fn opened_frame(ask: &Ask) -> Frame {
    Frame::opened(&Ask {
        drafts: serde_json::Map::new(),
        settled: None,
        ..ask.clone()
    })
}
