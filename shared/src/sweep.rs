//! What nobody else does in time: hint again, expire, reclaim, say that a run is stalled. Every
//! gateway and worker sweeps; each action is a condition on state, so any number may overlap.

use std::time::Duration;

use crate::id::RunId;
use crate::ports::{At, Clock, Committer, Committing, Fault, Known, Ports};
use crate::run::{Claim, Event, Late, Moved, Run, Status};
use crate::time::Millis;

/// How often the due members of each partition are looked at.
pub const EVERY: Duration = Duration::from_millis(250);

/// How often they are looked at by a process whose hints find nobody: one that can act, a worker
/// that claims from the store itself, then nearly always comes first.
pub const EVERY_UNHEARD: Duration = Duration::from_secs(2);

/// How often what has been kept long enough is dropped.
pub const FORGET_EVERY: Duration = Duration::from_mins(1);

/// A run due for this long that no live worker can take is stalled (SPEC 2).
pub const STALLED_AFTER: Duration = Duration::from_mins(1);

/// The most of each kind that one look at a partition takes.
const BATCH: usize = 256;

/// Looks after what is due.
pub struct Sweeper {
    ports: Ports,
    stalled_after: Duration,
}

impl Sweeper {
    /// A sweeper over these ports.
    pub fn new(ports: Ports) -> Self {
        Sweeper {
            ports,
            stalled_after: STALLED_AFTER,
        }
    }

    /// Says that a run is stalled after another time than [`STALLED_AFTER`].
    #[must_use]
    pub fn stalled_after(mut self, wait: Duration) -> Self {
        self.stalled_after = wait;
        self
    }

    /// Sweeps until it is dropped.
    pub async fn run(&self) {
        let mut tick = tokio::time::interval(EVERY);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut forget = tokio::time::interval(FORGET_EVERY);
        let mut faulty = false;
        let mut swept_last = tokio::time::Instant::now();
        loop {
            let swept = tokio::select! {
                now = tick.tick() => {
                    if !self.ports.hints.reachable() && now - swept_last < EVERY_UNHEARD {
                        continue;
                    }
                    swept_last = now;
                    self.sweep().await
                }
                _ = forget.tick() => self.forget().await,
            };
            // One line when it begins and one when it ends, however long the store is away.
            match swept {
                Err(fault) if !faulty => {
                    tracing::warn!(%fault, "the sweeper cannot reach the store");
                    faulty = true;
                }
                Ok(()) if faulty => {
                    tracing::info!("the sweeper reaches the store again");
                    faulty = false;
                }
                _ => {}
            }
        }
    }

    /// One pass over all partitions.
    pub async fn sweep(&self) -> Result<(), Fault> {
        for partition in 0..self.ports.store.partitions() {
            let At { value: due, .. } = self.ports.store.take_due(partition, BATCH).await?;
            for (run, ask) in due.asks {
                self.expire(&run, ask).await?;
            }
            for run in due.leases {
                self.reclaim(&run).await?;
            }
            if !due.ready.is_empty() {
                let agents = self.ports.store.agents().await?;
                for run in due.ready {
                    self.hint(&run, &agents).await?;
                }
            }
        }
        Ok(())
    }

    async fn forget(&self) -> Result<(), Fault> {
        for partition in 0..self.ports.store.partitions() {
            self.ports.store.forget(partition).await?;
        }
        Ok(())
    }

    async fn load(&self, run: &RunId) -> Result<Option<(Run, Millis)>, Fault> {
        let At { now, value } = self.ports.store.load(run, None).await?;
        Ok(value.run.map(|run| (run, now)))
    }

    /// Commits what a due member calls for. Whoever came first has done it already: a conflict
    /// or a late event is left to the next pass.
    async fn commit(&self, clock: Clock, moved: Result<Moved, Late>) -> Result<(), Fault> {
        let Ok(moved) = moved else { return Ok(()) };
        let (run, status, rev) = (moved.run.id.clone(), moved.run.status, moved.run.rev);
        let reply = self
            .ports
            .commit_move(Committer::Sweeper, clock, moved)
            .await?;
        if let Committing::Done(_) = reply {
            tracing::debug!(%run, status = status.name(), rev, "swept");
        }
        Ok(())
    }

    async fn expire(&self, run: &RunId, ask: String) -> Result<(), Fault> {
        let Some((run, now)) = self.load(run).await? else {
            return Ok(());
        };
        let Some(deadline) = run.ask(&ask).map(|ask| ask.deadline) else {
            return Ok(());
        };
        let moved = run.apply(Event::Expired { ask }, now);
        self.commit(Clock::From(deadline), moved).await
    }

    async fn reclaim(&self, run: &RunId) -> Result<(), Fault> {
        let Some((run, now)) = self.load(run).await? else {
            return Ok(());
        };
        let Some(until) = run.lease.as_ref().map(|lease| lease.until) else {
            return Ok(());
        };
        let moved = run.apply(Event::Reclaimed, now);
        if moved.is_ok() {
            tracing::warn!(run = %run.id, attempts = run.attempts + 1, "lease ran out: reclaimed");
        }
        self.commit(Clock::From(until), moved).await
    }

    async fn hint(&self, run: &RunId, agents: &At<Vec<Known>>) -> Result<(), Fault> {
        let Some((run, now)) = self.load(run).await? else {
            return Ok(());
        };
        if run.claim(now) != Claim::Free {
            return Ok(());
        }
        let overdue = now.since(run.due_since) >= self.stalled_after;
        if run.status == Status::Queued
            && overdue
            && let Some(reason) = nobody_for(&run, &agents.value, now)
        {
            tracing::warn!(run = %run.id, agent = run.agent, reason, "stalled");
            let moved = run.apply(Event::Stalled { reason }, now);
            return self.commit(Clock::Any, moved).await;
        }
        self.ports.hint(&run, now).await;
        Ok(())
    }
}

/// Why no live worker can take a run; `None` where one can.
fn nobody_for(run: &Run, agents: &[Known], now: Millis) -> Option<String> {
    let live = |known: &&Known| known.announcement.name == run.agent && known.is_live(now);
    let agent = &run.agent;
    if !agents.iter().any(|known| live(&known)) {
        return Some(format!("no live worker has the agent {agent}"));
    }
    let same = |known: &&Known| live(known) && known.announcement.revision == run.revision;
    if run.pinned && !agents.iter().any(|known| same(&known)) {
        let revision = &run.revision;
        return Some(format!(
            "no live worker has the agent {agent} in revision {revision}"
        ));
    }
    None
}
