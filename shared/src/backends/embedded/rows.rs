//! From rows to records and back.

use std::error::Error;

use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Broken;
use crate::ask::Ask;
use crate::caller::Starter;
use crate::id::{Owner, RunId};
use crate::ports::{CommandKey, CommandRecord};
use crate::run::{RECORD_VERSION, Run};
use crate::thread::Thread;
use crate::time::Millis;
use crate::transcript::Transcript;

/// The columns that [`run_of`] reads, in their order.
pub(super) const RUN: &str = "v, header, lease_until";

/// A record as JSON text.
pub(super) fn text(record: &impl Serialize) -> Result<String, Broken> {
    Ok(serde_json::to_string(record)?)
}

/// The record that a column holds as JSON text.
pub(super) fn record<T: DeserializeOwned>(row: &Row, column: usize) -> Result<T, Broken> {
    parse(row.get_ref(column)?.as_str().map_err(damaged)?)
}

/// The record of a JSON text.
pub(super) fn parse<T: DeserializeOwned>(text: &str) -> Result<T, Broken> {
    Ok(serde_json::from_str(text)?)
}

/// A run's id, from a column.
pub(super) fn run_id(row: &Row, column: usize) -> Result<RunId, Broken> {
    let text: String = row.get(column)?;
    RunId::parse(&text).ok_or_else(|| damaged(format!("{text} is no run's id")))
}

/// Data that this program cannot have written.
pub(super) fn damaged(fault: impl Into<Box<dyn Error + Send + Sync>>) -> Broken {
    Broken::Damaged(fault.into())
}

/// A starter as it stands in columns. A person and a system of one name differ.
pub(super) fn starter_key(starter: &Starter) -> String {
    let kind = if starter.system { 's' } else { 'p' };
    format!("{kind}:{}", starter.sub)
}

/// Refuses a record of a newer version (SPEC 5).
pub(super) fn known(v: u32, what: impl FnOnce() -> String) -> Result<(), Broken> {
    if v > RECORD_VERSION {
        return Err(Broken::Newer { what: what(), v });
    }
    Ok(())
}

/// A run without its asks, from the columns [`RUN`].
pub(super) fn run_of(row: &Row) -> Result<Run, Broken> {
    let mut run: Run = record(row, 1)?;
    let until: Option<i64> = row.get(2)?;
    if let (Some(lease), Some(until)) = (&mut run.lease, until) {
        lease.until = Millis(until);
    }
    Ok(run)
}

/// A run with its asks.
pub(super) fn load(connection: &Connection, id: &RunId) -> Result<Option<Run>, Broken> {
    let mut find = connection.prepare_cached(&format!("SELECT {RUN} FROM runs WHERE id = ?1"))?;
    let mut rows = find.query([id.as_str()])?;
    let Some(row) = rows.next()? else {
        return Ok(None);
    };
    known(row.get(0)?, || format!("run {id}"))?;
    let mut run = run_of(row)?;
    run.asks = asks(connection, id)?;
    Ok(Some(run))
}

fn asks(connection: &Connection, run: &RunId) -> Result<Vec<Ask>, Broken> {
    let mut find =
        connection.prepare_cached("SELECT record FROM asks WHERE run = ?1 ORDER BY number")?;
    find.query_and_then([run.as_str()], |row| record(row, 0))?
        .collect()
}

/// The conversation of a run.
pub(super) fn transcript(connection: &Connection, run: &RunId) -> Result<Transcript, Broken> {
    let mut messages =
        connection.prepare_cached("SELECT record FROM messages WHERE run = ?1 ORDER BY number")?;
    let mut journal =
        connection.prepare_cached("SELECT record FROM journal WHERE run = ?1 ORDER BY rowid")?;
    Ok(Transcript {
        messages: messages
            .query_and_then([run.as_str()], |row| record(row, 0))?
            .collect::<Result<_, Broken>>()?,
        journal: journal
            .query_and_then([run.as_str()], |row| record(row, 0))?
            .collect::<Result<_, Broken>>()?,
    })
}

/// What is kept of a command.
pub(super) fn command(
    connection: &Connection,
    key: &CommandKey,
) -> Result<Option<CommandRecord>, Broken> {
    let mut find = connection.prepare_cached("SELECT record FROM commands WHERE key = ?1")?;
    let mut rows = find.query([key.text()])?;
    rows.next()?.map(|row| record(row, 0)).transpose()
}

/// A thread.
pub(super) fn thread(
    connection: &Connection,
    owner: &Owner,
    name: &str,
) -> Result<Option<Thread>, Broken> {
    let mut find = connection
        .prepare_cached("SELECT v, record FROM threads WHERE owner = ?1 AND name = ?2")?;
    let mut rows = find.query(params![owner.key(), name])?;
    let Some(row) = rows.next()? else {
        return Ok(None);
    };
    known(row.get(0)?, || format!("thread {name}"))?;
    record(row, 1).map(Some)
}

/// An owner's head.
pub(super) fn head(connection: &Connection, owner: &Owner) -> Result<u64, Broken> {
    let seq = connection
        .prepare_cached("SELECT seq FROM heads WHERE owner = ?1")?
        .query_row([owner.key()], |row| row.get(0))
        .optional()?;
    Ok(seq.unwrap_or(0))
}
