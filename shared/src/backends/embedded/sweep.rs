//! What is due, what is known of agents, and what is dropped.

use rusqlite::{Connection, params};

use super::Broken;
use super::rows::{run_id, text};
use crate::agent::Announcement;
use crate::id::RunId;
use crate::ports::{
    AGENT_KEPT, COMMAND_KEPT, Due, ENDED_KEPT, FAILED_KEPT, HINT_AGAIN, THREAD_KEPT, push_wait,
};
use crate::run::{RECORD_VERSION, Status};
use crate::time::Millis;

/// Records of a kind that one sweep drops at most, so that no commit waits long behind it.
const DROPPED: usize = 500;

/// Takes what is due; ready runs are moved back.
pub(super) fn take_due(connection: &Connection, limit: usize, now: Millis) -> Result<Due, Broken> {
    let mut due = Due::default();
    let mut ready = connection.prepare_cached(
        "SELECT id, pushes FROM runs WHERE ready_at <= ?1 AND v <= ?2 ORDER BY ready_at LIMIT ?3",
    )?;
    let taken = ready
        .query_and_then(params![now.0, RECORD_VERSION, limit], |row| {
            Ok((run_id(row, 0)?, row.get(1)?))
        })?
        .collect::<Result<Vec<(_, u32)>, Broken>>()?;
    let mut push = connection
        .prepare_cached("UPDATE runs SET ready_at = ?2, pushes = pushes + 1 WHERE id = ?1")?;
    for (run, pushes) in taken {
        push.execute(params![run.as_str(), now.after(push_wait(pushes)).0])?;
        due.ready.push(run);
    }
    let mut asks = connection.prepare_cached(
        "SELECT run, id FROM asks WHERE due <= ?1 AND v <= ?2 ORDER BY due LIMIT ?3",
    )?;
    due.asks = asks
        .query_and_then(params![now.0, RECORD_VERSION, limit], |row| {
            Ok((run_id(row, 0)?, row.get(1)?))
        })?
        .collect::<Result<_, Broken>>()?;
    let mut leases = connection.prepare_cached(
        "SELECT id FROM runs WHERE lease_until <= ?1 AND v <= ?2 ORDER BY lease_until LIMIT ?3",
    )?;
    due.leases = leases
        .query_and_then(params![now.0, RECORD_VERSION, limit], |row| run_id(row, 0))?
        .collect::<Result<_, Broken>>()?;
    Ok(due)
}

/// Brings a ready run's next hint forward, since this one was not taken.
pub(super) fn unhinted(connection: &Connection, run: &RunId, now: Millis) -> Result<(), Broken> {
    connection
        .prepare_cached(
            "UPDATE runs SET ready_at = ?2, pushes = max(pushes - 1, 0) \
             WHERE id = ?1 AND v <= ?3 AND ready_at > ?2",
        )?
        .execute(params![
            run.as_str(),
            now.after(HINT_AGAIN).0,
            RECORD_VERSION
        ])?;
    Ok(())
}

/// Notes that a worker with these agents is alive.
pub(super) fn announce(
    connection: &Connection,
    agents: &[Announcement],
    fresh: bool,
    now: Millis,
) -> Result<(), Broken> {
    let mut note = connection.prepare_cached(
        // A record of a newer version is left alone.
        "INSERT INTO agents (name, revision, v, announced, seen, record) \
         VALUES (?1, ?2, ?3, ?4, ?4, ?5) \
         ON CONFLICT (name, revision) DO UPDATE SET \
           v = excluded.v, seen = excluded.seen, record = excluded.record, \
           announced = CASE WHEN ?6 THEN excluded.announced ELSE announced END \
         WHERE v <= excluded.v",
    )?;
    for agent in agents {
        note.execute(params![
            agent.name,
            agent.revision,
            agent.v,
            now.0,
            text(agent)?,
            fresh
        ])?;
    }
    Ok(())
}

/// Drops what has been kept long enough. The runs of a thread are kept as long as the thread.
pub(super) fn forget(connection: &Connection, now: Millis) -> Result<(), Broken> {
    let before = |kept: std::time::Duration| {
        let kept = i64::try_from(kept.as_millis()).unwrap_or(i64::MAX);
        now.0.saturating_sub(kept)
    };
    connection
        .prepare_cached(
            "DELETE FROM threads WHERE (owner, name) IN \
             (SELECT owner, name FROM threads WHERE idle_since <= ?1 AND v <= ?2 LIMIT ?3)",
        )?
        .execute(params![before(THREAD_KEPT), RECORD_VERSION, DROPPED])?;
    let mut over = connection.prepare_cached(
        // The plain bound on `ended` is what the index is searched by.
        "SELECT id, owner FROM runs WHERE live = 0 AND v <= ?1 AND ended <= ?4 \
           AND ended <= CASE status WHEN ?2 THEN ?3 ELSE ?4 END \
           AND NOT EXISTS (SELECT 1 FROM threads \
                           WHERE threads.owner = runs.owner AND threads.name = runs.thread) \
         ORDER BY ended LIMIT ?5",
    )?;
    let over = over
        .query_and_then(
            params![
                RECORD_VERSION,
                Status::Failed.name(),
                before(FAILED_KEPT),
                before(ENDED_KEPT),
                DROPPED
            ],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?
        .collect::<Result<Vec<(String, String)>, Broken>>()?;
    for (run, owner) in over {
        connection
            .prepare_cached("DELETE FROM runs WHERE id = ?1")?
            .execute([&run])?;
        // A system run's log goes with it; a person's head never goes back.
        if owner == format!("s:{run}") {
            for delete in [
                "DELETE FROM log WHERE owner = ?1",
                "DELETE FROM heads WHERE owner = ?1",
            ] {
                connection.prepare_cached(delete)?.execute([&owner])?;
            }
        }
    }
    connection
        .prepare_cached(
            "DELETE FROM commands WHERE key IN \
             (SELECT key FROM commands WHERE kept_with IS NULL AND at <= ?1 LIMIT ?2)",
        )?
        .execute(params![before(COMMAND_KEPT), DROPPED])?;
    connection
        .prepare_cached("DELETE FROM agents WHERE seen <= ?1 AND v <= ?2")?
        .execute(params![before(AGENT_KEPT), Announcement::VERSION])?;
    Ok(())
}
