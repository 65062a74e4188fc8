//! What only reads: lists, logs and snapshots. Records of a newer version are left out of lists
//! (SPEC 5); who asks for one by its id is told.

use std::collections::BTreeSet;
use std::sync::Arc;

use rusqlite::types::ToSql;
use rusqlite::{Connection, params, params_from_iter};

use super::Broken;
use super::rows::{self, RUN, record, run_id, run_of, starter_key};
use crate::ask::Ask;
use crate::id::Owner;
use crate::ports::{Events, Known, Page, Snapshot, Whose};
use crate::run::{RECORD_VERSION, Run, Status};
use crate::time::Millis;
use crate::transcript::Transcript;
use crate::wire::LiveRun;

/// A query in the making: conditions and what they compare with.
struct Query {
    text: String,
    values: Vec<Box<dyn ToSql>>,
}

impl Query {
    fn new(text: String) -> Self {
        Query {
            text,
            values: Vec::new(),
        }
    }

    /// Adds a piece in which each `?` stands for the next of `values`.
    fn and(&mut self, piece: &str, values: impl IntoIterator<Item = Box<dyn ToSql>>) {
        self.text.push_str(piece);
        self.values.extend(values);
    }

    /// What all pages have in common; `time` is the column that orders them.
    fn page(&mut self, page: &Page, time: &str) {
        if let Whose::Of(starter) = &page.whose {
            self.and(" AND starter = ?", [boxed(starter_key(starter))]);
        }
        if let Some(agent) = &page.agent {
            self.and(" AND agent = ?", [boxed(agent.clone())]);
        }
        if let Some((after, id)) = &page.after {
            let piece = format!(" AND ({time}, id) < (?, ?)");
            self.and(&piece, [boxed(after.0), boxed(id.clone())]);
        }
    }

    fn newest_first(&mut self, limit: usize, time: &str) {
        let piece = format!(" ORDER BY {time} DESC, id DESC LIMIT ?");
        self.and(&piece, [boxed(limit)]);
    }

    fn all<T>(
        &self,
        connection: &Connection,
        each: impl FnMut(&rusqlite::Row) -> Result<T, Broken>,
    ) -> Result<Vec<T>, Broken> {
        let mut query = connection.prepare_cached(&self.text)?;
        query
            .query_and_then(params_from_iter(&self.values), each)?
            .collect()
    }
}

fn boxed(value: impl ToSql + 'static) -> Box<dyn ToSql> {
    Box::new(value)
}

/// A page of open asks.
pub(super) fn open_asks(connection: &Connection, page: &Page) -> Result<Vec<Ask>, Broken> {
    let mut query = Query::new("SELECT record FROM asks WHERE due IS NOT NULL AND v <= ?".into());
    query.values.push(boxed(RECORD_VERSION));
    query.page(page, "opened");
    query.newest_first(page.limit, "opened");
    query.all(connection, |row| record(row, 0))
}

/// A page of runs.
pub(super) fn runs(connection: &Connection, page: &Page) -> Result<Vec<Run>, Broken> {
    if page.whose != Whose::All || page.statuses.len() < 2 {
        return runs_with(connection, page, &page.statuses);
    }
    // Of everybody's runs, each status is in order by itself: so no page sorts all of them.
    let mut runs = Vec::new();
    for status in BTreeSet::from_iter(&page.statuses) {
        runs.extend(runs_with(connection, page, std::slice::from_ref(status))?);
    }
    runs.sort_by(|one, other| (other.created, &other.id).cmp(&(one.created, &one.id)));
    runs.truncate(page.limit);
    Ok(runs)
}

fn runs_with(
    connection: &Connection,
    page: &Page,
    statuses: &[Status],
) -> Result<Vec<Run>, Broken> {
    let mut query = Query::new(format!("SELECT {RUN} FROM runs WHERE v <= ?"));
    query.values.push(boxed(RECORD_VERSION));
    query.page(page, "created");
    if let Some(thread) = &page.thread {
        query.and(" AND thread = ?", [boxed(thread.clone())]);
    }
    if !statuses.is_empty() {
        let marks = vec!["?"; statuses.len()].join(", ");
        let names = statuses.iter().map(|status| boxed(status.name()));
        query.and(&format!(" AND status IN ({marks})"), names);
    }
    query.newest_first(page.limit, "created");
    query.all(connection, run_of)
}

/// An owner's frames after a point.
pub(super) fn events(
    connection: &Connection,
    epoch: &str,
    owner: &Owner,
    seq: u64,
    limit: usize,
) -> Result<Events, Broken> {
    let head = rows::head(connection, owner)?;
    let mut find = connection.prepare_cached(
        "SELECT seq, frame FROM log WHERE owner = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3",
    )?;
    // At least one, to see whether the log still reaches back to the point.
    let mut frames = find
        .query_and_then(params![owner.key(), seq, limit.max(1)], |row| {
            let frame: String = row.get(1)?;
            Ok((row.get(0)?, Arc::from(frame)))
        })?
        .collect::<Result<Vec<(u64, Arc<str>)>, Broken>>()?;
    let trimmed = head > seq && frames.first().is_none_or(|(first, _)| *first != seq + 1);
    frames.truncate(if trimmed { 0 } else { limit });
    Ok(Events {
        epoch: epoch.to_owned(),
        head,
        frames,
        trimmed,
    })
}

/// An owner's state.
pub(super) fn snapshot(
    connection: &Connection,
    epoch: &str,
    owner: &Owner,
    now: Millis,
) -> Result<Snapshot, Broken> {
    let key = owner.key();
    let mut asks = connection.prepare_cached(
        "SELECT record FROM asks WHERE owner = ?1 AND due IS NOT NULL AND v <= ?2 \
         ORDER BY opened, run, number",
    )?;
    let mut runs = connection.prepare_cached(&format!(
        "SELECT {RUN} FROM runs WHERE owner = ?1 AND live = 1 AND v <= ?2 ORDER BY created, id"
    ))?;
    Ok(Snapshot {
        now,
        epoch: epoch.to_owned(),
        seq: rows::head(connection, owner)?,
        asks: asks
            .query_and_then(params![key, RECORD_VERSION], |row| record(row, 0))?
            .collect::<Result<_, Broken>>()?,
        runs: runs
            .query_and_then(params![key, RECORD_VERSION], |row| {
                run_of(row).map(|run| LiveRun::of(&run))
            })?
            .collect::<Result<_, Broken>>()?,
    })
}

/// The heads of owners, in their order.
pub(super) fn heads(connection: &Connection, owners: &[Owner]) -> Result<Vec<u64>, Broken> {
    owners
        .iter()
        .map(|owner| rows::head(connection, owner))
        .collect()
}

/// The conversations of a thread's ended runs numbered below `before`, each run once: one that
/// was retried keeps its first place.
pub(super) fn earlier(
    connection: &Connection,
    owner: &Owner,
    name: &str,
    before: u64,
) -> Result<Vec<Transcript>, Broken> {
    let mut find = connection.prepare_cached(
        "SELECT run FROM thread_ended WHERE owner = ?1 AND name = ?2 AND number < ?3 \
         GROUP BY run ORDER BY min(number)",
    )?;
    find.query_and_then(params![owner.key(), name, before], |row| {
        rows::transcript(connection, &run_id(row, 0)?)
    })?
    .collect()
}

/// The agents that are known.
pub(super) fn agents(connection: &Connection) -> Result<Vec<Known>, Broken> {
    let mut find = connection.prepare_cached(
        "SELECT record, announced, seen FROM agents WHERE v <= ?1 ORDER BY name, announced DESC, revision",
    )?;
    find.query_and_then([crate::agent::Announcement::VERSION], |row| {
        Ok(Known {
            announcement: record(row, 0)?,
            announced: Millis(row.get(1)?),
            seen: Millis(row.get(2)?),
        })
    })?
    .collect()
}
