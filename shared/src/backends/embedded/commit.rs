//! What changes runs: claims, renewals and commits. Each runs inside a savepoint of the writer.

use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, params};
use serde::{Deserialize, Serialize};

use super::Broken;
use super::rows::{self, known, parse, starter_key, text};
use crate::id::{Owner, RunId};
use crate::ports::{
    CommandRecord, Commit, Committed, Committer, Committing, FRAMES_KEPT, LastOp, Leased, Leasing,
    Standing, verdict,
};
use crate::run::{Claim, Event, Moved, Run, Token};
use crate::thread::Thread;
use crate::time::Millis;
use crate::wire::{Frame, with_seq};

/// What a claim's repetition is told.
#[derive(Serialize, Deserialize)]
struct Claimed {
    rev: u64,
    seq: u64,
}

/// Writes a commit, or says why not.
pub(super) fn commit(
    connection: &Connection,
    commit: &Commit,
    now: Millis,
) -> Result<Committing, Broken> {
    let stranger = |moved: &&Moved| moved.run.owner() != commit.owner;
    if let Some(moved) = commit.runs.iter().find(stranger) {
        return Err(Broken::Owner(moved.run.id.clone()));
    }
    let standing = standing(connection, commit)?;
    if let Some(reply) = verdict(commit, &standing, now) {
        return Ok(reply);
    }
    if let Some(thread) = &commit.thread {
        write_thread(connection, thread)?;
    }
    for (moved, rev) in commit.runs.iter().zip(&standing.runs) {
        write_run(connection, moved, *rev == 0)?;
    }
    if let Some(thread) = &commit.thread {
        let mut end = connection.prepare_cached(
            "INSERT INTO thread_ended (owner, name, number, run) VALUES (?1, ?2, ?3, ?4)",
        )?;
        for (run, number) in &commit.ended {
            end.execute(params![
                thread.owner.key(),
                thread.name,
                number,
                run.as_str()
            ])?;
        }
    }
    let frames = commit.runs.iter().flat_map(|moved| &moved.frames);
    let seq = append(connection, &commit.owner, frames)?;
    let reply = Committed {
        now,
        seq,
        // All screens are in this process and hear the feed.
        online: Vec::new(),
    };
    match &commit.by {
        Committer::Worker { run, token, op } => {
            let last = LastOp {
                token: token.clone(),
                op: *op,
                reply: reply.clone(),
            };
            connection
                .prepare_cached("UPDATE runs SET last_op = ?2 WHERE id = ?1")?
                .execute(params![run.as_str(), text(&last)?])?;
        }
        Committer::Caller(command) => {
            let record = CommandRecord {
                digest: command.digest.clone(),
                reply: command.reply.clone(),
                seq,
            };
            let kept_with = commit.settled_by_command().map(RunId::as_str);
            connection
                .prepare_cached(
                    "INSERT INTO commands (key, kept_with, at, record) VALUES (?1, ?2, ?3, ?4)",
                )?
                .execute(params![
                    command.key.text(),
                    kept_with,
                    now.0,
                    text(&record)?
                ])?;
        }
        Committer::Sweeper => {}
    }
    Ok(Committing::Done(reply))
}

/// Claims a run.
pub(super) fn lease(
    connection: &Connection,
    id: &RunId,
    nonce: String,
    ttl: Duration,
    now: Millis,
) -> Result<Leasing, Broken> {
    let Some(run) = rows::load(connection, id)? else {
        return Ok(Leasing::NotClaimable);
    };
    if let Some(lease) = &run.lease
        && lease.token.nonce == nonce
        && lease.until > now
    {
        return repeat(connection, run);
    }
    match run.claim(now) {
        Claim::Held => return Ok(Leasing::Held),
        Claim::NotClaimable => return Ok(Leasing::NotClaimable),
        Claim::NotYet(at) => return Ok(Leasing::NotYet(at)),
        Claim::Free => {}
    }
    let until = now.after(ttl);
    let Ok(moved) = run.apply(Event::Leased { nonce, until }, now) else {
        return Ok(Leasing::NotClaimable);
    };
    write_run(connection, &moved, false)?;
    let seq = append(connection, &moved.run.owner(), moved.frames.iter())?;
    let claimed = Claimed {
        rev: moved.run.rev,
        seq,
    };
    connection
        .prepare_cached("UPDATE runs SET claim = ?2 WHERE id = ?1")?
        .execute(params![id.as_str(), text(&claimed)?])?;
    Ok(Leasing::Leased(Box::new(Leased {
        transcript: rows::transcript(connection, id)?,
        run: moved.run,
        seq,
        frames: moved.frames,
        online: Vec::new(),
    })))
}

/// The claim that was made already, with the run as it is now.
fn repeat(connection: &Connection, run: Run) -> Result<Leasing, Broken> {
    let claimed: String = connection
        .prepare_cached("SELECT claim FROM runs WHERE id = ?1")?
        .query_row([run.id.as_str()], |row| row.get(0))?;
    let claimed: Claimed = parse(&claimed)?;
    // A run keeps its agent, thread and status while it is held: the claim's frame follows.
    let at_claim = Run {
        rev: claimed.rev,
        ..run.clone()
    };
    Ok(Leasing::Leased(Box::new(Leased {
        transcript: rows::transcript(connection, &run.id)?,
        run,
        seq: claimed.seq,
        frames: vec![Frame::status(&at_claim)],
        online: Vec::new(),
    })))
}

/// Moves the end of a lease. `false`: the right is gone, or over at `now`.
pub(super) fn renew(
    connection: &Connection,
    run: &RunId,
    token: &Token,
    now: Millis,
    until: Millis,
) -> Result<bool, Broken> {
    let mut find =
        connection.prepare_cached("SELECT v, token, lease_until FROM runs WHERE id = ?1")?;
    let held: Option<(u32, Option<String>, Option<i64>)> = find
        .query_row([run.as_str()], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })
        .optional()?;
    let Some((v, Some(holder), Some(end))) = held else {
        return Ok(false);
    };
    known(v, || format!("run {run}"))?;
    if parse::<Token>(&holder)? != *token || end <= now.0 {
        return Ok(false);
    }
    connection
        .prepare_cached("UPDATE runs SET lease_until = ?2 WHERE id = ?1")?
        .execute(params![run.as_str(), until.0])?;
    Ok(true)
}

fn standing(connection: &Connection, commit: &Commit) -> Result<Standing, Broken> {
    let mut standing = Standing::default();
    match &commit.by {
        Committer::Worker { run, .. } => {
            let mut find =
                connection.prepare_cached("SELECT last_op, token FROM runs WHERE id = ?1")?;
            let held: Option<(Option<String>, Option<String>)> = find
                .query_row([run.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))
                .optional()?;
            let (last_op, holder) = held.unwrap_or_default();
            standing.last_op = last_op.as_deref().map(parse).transpose()?;
            standing.holder = holder.as_deref().map(parse).transpose()?;
        }
        Committer::Caller(command) => {
            standing.command = rows::command(connection, &command.key)?;
        }
        Committer::Sweeper => {}
    }
    let mut find = connection.prepare_cached("SELECT v, rev FROM runs WHERE id = ?1")?;
    for moved in &commit.runs {
        let id = &moved.run.id;
        let held: Option<(u32, u64)> = find
            .query_row([id.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        let (v, rev) = held.unwrap_or_default();
        known(v, || format!("run {id}"))?;
        standing.runs.push(rev);
    }
    if let Some(thread) = &commit.thread {
        let held = rows::thread(connection, &thread.owner, &thread.name)?;
        standing.thread = held.map_or(0, |held| held.rev);
    }
    Ok(standing)
}

fn write_thread(connection: &Connection, thread: &Thread) -> Result<(), Broken> {
    connection
        .prepare_cached(
            "INSERT INTO threads (owner, name, v, rev, idle_since, record) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6) \
             ON CONFLICT (owner, name) DO UPDATE SET \
               v = excluded.v, rev = excluded.rev, idle_since = excluded.idle_since, \
               record = excluded.record",
        )?
        .execute(params![
            thread.owner.key(),
            thread.name,
            thread.v,
            thread.rev,
            thread.idle_since.map(|since| since.0),
            text(thread)?
        ])?;
    Ok(())
}

fn write_run(connection: &Connection, moved: &Moved, new: bool) -> Result<(), Broken> {
    let run = &moved.run;
    let id = run.id.as_str();
    let owner = run.owner().key();
    let starter = starter_key(&run.starter);
    if new {
        connection
            .prepare_cached(
                "INSERT INTO runs \
                   (id, owner, starter, agent, thread, created, v, rev, status, live, header) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0, 0, '', 0, '')",
            )?
            .execute(params![
                id,
                owner,
                starter,
                run.agent,
                run.thread,
                run.created.0
            ])?;
    }
    let indexes = run.indexes();
    let token = run.lease.as_ref().map(|lease| text(&lease.token));
    let ready = indexes.ready.map(|ready| ready.0);
    connection
        .prepare_cached(
            // A renewal changes no revision, so whoever writes under the same token may know an
            // older end of the lease than the store.
            "UPDATE runs SET v = ?2, rev = ?3, status = ?4, live = ?5, ended = ?6, \
               lease_until = CASE WHEN token = ?7 THEN lease_until ELSE ?8 END, token = ?7, \
               ready_from = ?9, ready_at = ?9, pushes = 0, header = ?10 \
             WHERE id = ?1",
        )?
        .execute(params![
            id,
            run.v,
            run.rev,
            run.status.name(),
            indexes.live,
            run.ended.map(|ended| ended.0),
            token.transpose()?,
            indexes.lease.map(|until| until.0),
            ready,
            text(run)?
        ])?;
    for number in &moved.asks {
        let Some(ask) = run.asks.get(*number) else {
            continue;
        };
        let open = indexes.open.iter().find(|(open, _)| *open == ask.id);
        connection
            .prepare_cached(
                "INSERT INTO asks \
                   (id, run, number, v, owner, starter, agent, opened, due, record) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) \
                 ON CONFLICT (run, number) DO UPDATE SET \
                   v = excluded.v, due = excluded.due, record = excluded.record",
            )?
            .execute(params![
                ask.id,
                id,
                number,
                run.v,
                owner,
                starter,
                ask.agent,
                ask.opened.0,
                open.map(|(_, deadline)| deadline.0),
                text(ask)?
            ])?;
    }
    for message in &moved.messages {
        connection
            .prepare_cached(
                "INSERT INTO messages (run, number, record) VALUES \
                 (?1, (SELECT coalesce(max(number) + 1, 0) FROM messages WHERE run = ?1), ?2)",
            )?
            .execute(params![id, text(message)?])?;
    }
    for entry in &moved.journal {
        connection
            .prepare_cached(
                "INSERT INTO journal (run, step, record) VALUES (?1, ?2, ?3) \
                 ON CONFLICT (run, step) DO UPDATE SET record = excluded.record",
            )?
            .execute(params![id, entry.step, text(entry)?])?;
    }
    Ok(())
}

/// Appends frames to an owner's log and gives the head after them.
fn append<'a>(
    connection: &Connection,
    owner: &Owner,
    frames: impl Iterator<Item = &'a Frame>,
) -> Result<u64, Broken> {
    let key = owner.key();
    let before = rows::head(connection, owner)?;
    let mut seq = before;
    let mut insert =
        connection.prepare_cached("INSERT INTO log (owner, seq, frame) VALUES (?1, ?2, ?3)")?;
    for frame in frames {
        seq += 1;
        insert.execute(params![key, seq, with_seq(&frame.text(), seq)])?;
    }
    if seq > before {
        connection
            .prepare_cached(
                "INSERT INTO heads (owner, seq) VALUES (?1, ?2) \
                 ON CONFLICT (owner) DO UPDATE SET seq = excluded.seq",
            )?
            .execute(params![key, seq])?;
        connection
            .prepare_cached("DELETE FROM log WHERE owner = ?1 AND seq <= ?2")?
            .execute(params![key, seq.saturating_sub(FRAMES_KEPT)])?;
    }
    Ok(seq)
}
