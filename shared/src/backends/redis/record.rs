//! From replies to records.

use deadpool_redis::redis::Value;
use serde::de::DeserializeOwned;

use super::Broken;
use crate::ask::Ask;
use crate::ports::{CommandRecord, Known};
use crate::run::{Lease, RECORD_VERSION, Run, Status, Token};
use crate::time::Millis;
use crate::transcript::Transcript;

/// The parts of a reply, in their order.
pub(super) struct Parts(std::vec::IntoIter<Value>);

impl Parts {
    pub(super) fn of(value: Value) -> Result<Self, Broken> {
        list(value).map(|values| Parts(values.into_iter()))
    }

    /// The next part; nil where there is none.
    pub(super) fn value(&mut self) -> Value {
        self.0.next().unwrap_or(Value::Nil)
    }

    pub(super) fn list(&mut self) -> Result<Vec<Value>, Broken> {
        list(self.value())
    }

    pub(super) fn text(&mut self) -> Result<String, Broken> {
        text(self.value())
    }

    pub(super) fn texts(&mut self) -> Result<Vec<String>, Broken> {
        self.list()?.into_iter().map(text).collect()
    }

    pub(super) fn maybe(&mut self) -> Result<Option<String>, Broken> {
        maybe(self.value())
    }

    pub(super) fn number<T: TryFrom<i64> + std::str::FromStr>(&mut self) -> Result<T, Broken> {
        number(self.value())
    }

    /// The store's clock, with which most replies begin.
    pub(super) fn now(&mut self) -> Result<Millis, Broken> {
        self.number().map(Millis)
    }
}

fn damaged(what: impl Into<String>) -> Broken {
    Broken::Damaged(what.into())
}

/// A list.
pub(super) fn list(value: Value) -> Result<Vec<Value>, Broken> {
    match value {
        Value::Array(values) => Ok(values),
        // Lua has one type for lists and nothing else for an empty one.
        Value::Nil => Ok(Vec::new()),
        other => Err(damaged(format!("a list was expected, not {other:?}"))),
    }
}

/// A text.
pub(super) fn text(value: Value) -> Result<String, Broken> {
    maybe(value)?.ok_or_else(|| damaged("a text was expected"))
}

/// A text, or nothing.
pub(super) fn maybe(value: Value) -> Result<Option<String>, Broken> {
    match value {
        Value::Nil => Ok(None),
        Value::BulkString(bytes) => String::from_utf8(bytes)
            .map(Some)
            .map_err(|fault| damaged(fault.to_string())),
        Value::SimpleString(text) => Ok(Some(text)),
        other => Err(damaged(format!("a text was expected, not {other:?}"))),
    }
}

/// A whole number, as such or as text.
pub(super) fn number<T: TryFrom<i64> + std::str::FromStr>(value: Value) -> Result<T, Broken> {
    match value {
        Value::Int(number) => T::try_from(number).ok(),
        other => text(other)?.parse().ok(),
    }
    .ok_or_else(|| damaged("a whole number was expected"))
}

/// A record of a JSON text.
pub(super) fn json<T: DeserializeOwned>(value: Value) -> Result<T, Broken> {
    Ok(serde_json::from_str(&text(value)?)?)
}

/// Records of JSON texts.
pub(super) fn all<T: DeserializeOwned>(values: Vec<Value>) -> Result<Vec<T>, Broken> {
    values.into_iter().map(json).collect()
}

/// A run without its asks, of the fields that `run_of` in the scripts reads. `what` names it
/// where it is of a newer version.
pub(super) fn run(fields: Value, what: impl FnOnce() -> String) -> Result<Option<Run>, Broken> {
    let mut fields = Parts::of(fields)?;
    let v = match fields.value() {
        Value::Nil => return Ok(None),
        v => number(v)?,
    };
    known(v, what)?;
    let rev: u64 = fields.number()?;
    let token = fields.maybe()?;
    let until = fields.maybe()?;
    let claimed = fields.maybe()?;
    let mut run: Run = serde_json::from_str(&fields.text()?)?;
    let lease = match (token, until) {
        (Some(token), Some(until)) => Some(lease(&token, &until)?),
        _ => None,
    };
    if let (Some(at), Some(lease)) = (claimed, &lease) {
        // What `Run::apply` does for `Event::Leased`, which the script has written beside the
        // header.
        run.rev = rev;
        run.status = Status::Running;
        run.reason = None;
        run.fence = lease.token.fence;
        run.updated = Millis(number(Value::SimpleString(at))?);
    }
    run.lease = lease;
    if run.rev != rev {
        return Err(damaged(format!("run {} and its fields disagree", run.id)));
    }
    Ok(Some(run))
}

/// Refuses a record of a newer version (SPEC 5).
pub(super) fn known(v: u32, what: impl FnOnce() -> String) -> Result<(), Broken> {
    if v > RECORD_VERSION {
        return Err(Broken::Newer { what: what(), v });
    }
    Ok(())
}

/// A token as it stands in fields.
pub(super) fn token_text(token: &Token) -> String {
    format!("{} {}", token.fence, token.nonce)
}

fn lease(token: &str, until: &str) -> Result<Lease, Broken> {
    let read = || {
        let (fence, nonce) = token.split_once(' ')?;
        let token = Token {
            fence: fence.parse().ok()?,
            nonce: nonce.to_owned(),
        };
        let until = Millis(until.parse().ok()?);
        Some(Lease { token, until })
    };
    read().ok_or_else(|| damaged("a lease cannot be read"))
}

/// A run's asks, in their order.
pub(super) fn asks(values: Vec<Value>) -> Result<Vec<Ask>, Broken> {
    all(values)
}

/// A conversation: messages in their order, journal entries each with its place before it.
pub(super) fn transcript(messages: Vec<Value>, journal: Vec<Value>) -> Result<Transcript, Broken> {
    let mut entries = Vec::with_capacity(journal.len());
    for entry in journal {
        let entry = text(entry)?;
        let (place, record) = entry
            .split_once(' ')
            .and_then(|(place, record)| Some((place.parse::<u64>().ok()?, record)))
            .ok_or_else(|| damaged("a journal entry has no place"))?;
        entries.push((place, serde_json::from_str(record)?));
    }
    entries.sort_by_key(|(place, _)| *place);
    Ok(Transcript {
        messages: all(messages)?,
        journal: entries.into_iter().map(|(_, entry)| entry).collect(),
    })
}

/// What a command's record holds after its end and its `seq`, which the script puts before it.
pub(super) fn command_text(digest: &str, reply: &serde_json::Value) -> String {
    format!("{} {digest}{reply}", digest.len())
}

/// What is kept of a command.
pub(super) fn command(value: Value) -> Result<Option<CommandRecord>, Broken> {
    let Some(record) = maybe(value)? else {
        return Ok(None);
    };
    let read = || {
        let (_, rest) = record.split_once(' ')?;
        let (seq, rest) = rest.split_once(' ')?;
        let (size, rest) = rest.split_once(' ')?;
        let (digest, reply) = rest.split_at_checked(size.parse().ok()?)?;
        Some((seq.parse().ok()?, digest.to_owned(), reply))
    };
    let (seq, digest, reply) = read().ok_or_else(|| damaged("a command cannot be read"))?;
    Ok(Some(CommandRecord {
        digest,
        reply: serde_json::from_str(reply)?,
        seq,
    }))
}

/// An agent: version, when it was announced and seen, and the announcement. `None`: of a newer
/// version.
pub(super) fn agent(value: Value) -> Result<Option<Known>, Broken> {
    let record = text(value)?;
    let mut words = record.splitn(4, ' ');
    let mut number = || words.next()?.parse::<i64>().ok();
    let (Some(v), Some(announced), Some(seen)) = (number(), number(), number()) else {
        return Err(damaged("an agent cannot be read"));
    };
    if v > i64::from(crate::agent::Announcement::VERSION) {
        return Ok(None);
    }
    Ok(Some(Known {
        announcement: serde_json::from_str(words.next().unwrap_or_default())?,
        announced: Millis(announced),
        seen: Millis(seen),
    }))
}
