//! What is due, who is there, and what is dropped.

use std::time::Duration;

use deadpool_redis::redis;
use futures_util::future::try_join_all;
use tokio::time::Instant;

use super::commit::millis;
use super::keys::{self, Partition};
use super::{Broken, DROPPED, LOOK_AGAIN, MEMORY_LOOK, ROOM, Redis, greet, record, script, text};
use crate::agent::Announcement;
use crate::id::{Owner, PARTITIONS, RunId};
use crate::ports::{AGENT_KEPT, At, Due, HINT_AGAIN, THREAD_KEPT, push_wait};

impl Redis {
    pub(super) async fn take(&self, partition: u8, limit: usize) -> Result<At<Due>, Broken> {
        let partition = Partition::new(partition);
        let mut call = self
            .script(&script::DUE, &partition)
            .with(partition.index("ready"))
            .with(partition.index("due"))
            .with(partition.index("leases"));
        call.arg(limit);
        // As many waits as there are different ones; the last goes for all that follow.
        for pushes in 0.. {
            call.arg(millis(push_wait(pushes)));
            if push_wait(pushes) == push_wait(u32::MAX) {
                break;
            }
        }
        let mut parts = self.ask(&call).await?;
        let now = parts.now()?;
        let run_id = |text: &str| {
            RunId::parse(text).ok_or_else(|| Broken::Damaged(format!("{text} is no run's id")))
        };
        let runs = |parts: Vec<String>| -> Result<Vec<RunId>, Broken> {
            parts.iter().map(|run| run_id(run)).collect()
        };
        let ready = runs(parts.texts()?)?;
        let mut asks = Vec::new();
        for member in parts.texts()? {
            let (ask, run) = member
                .split_once(' ')
                .ok_or_else(|| Broken::Damaged(format!("{member} is no ask")))?;
            asks.push((run_id(run)?, ask.to_owned()));
        }
        let leases = runs(parts.texts()?)?;
        let value = Due {
            ready,
            asks,
            leases,
        };
        Ok(At { now, value })
    }

    /// Sets back a hint that was not taken.
    pub(super) async fn set_back(&self, run: &RunId) -> Result<(), Broken> {
        let partition = Partition::of_run(run);
        let mut call = self
            .script(&script::UNHINTED, &partition)
            .with(partition.run("run", run))
            .with(partition.index("ready"));
        call.arg(run).arg(millis(HINT_AGAIN));
        self.ask(&call).await.map(drop)
    }

    /// Says that owners are online at a gateway: one script for each partition.
    pub(super) async fn note_presence(
        &self,
        gateway: &str,
        owners: &[Owner],
        ttl: Duration,
    ) -> Result<(), Broken> {
        let calls = (0..PARTITIONS).filter_map(|number| {
            let partition = Partition::new(number);
            let here = owners.iter().filter(|owner| owner.partition() == number);
            let keys: Vec<String> = here.map(|owner| partition.owner("online", owner)).collect();
            (!keys.is_empty()).then(|| {
                let mut call = self.script(&script::ARRIVE, &partition);
                for key in keys {
                    call.key(key);
                }
                call.arg(gateway).arg(millis(ttl));
                call
            })
        });
        try_join_all(calls.map(async |call| self.ask(&call).await.map(drop))).await?;
        Ok(())
    }

    pub(super) async fn note_agents(
        &self,
        agents: &[Announcement],
        fresh: bool,
    ) -> Result<(), Broken> {
        let mut call = self
            .script(&script::ANNOUNCE, &Partition::new(0))
            .with(keys::AGENTS.to_owned());
        call.arg(u8::from(fresh));
        for agent in agents {
            // Names hold no line end.
            let field = format!("{}\n{}", agent.name, agent.revision);
            call.arg(field).arg(agent.v).arg(text(agent)?);
        }
        self.ask(&call).await.map(drop)
    }

    pub(super) async fn drop_old(&self, partition: u8) -> Result<(), Broken> {
        let at = Partition::new(partition);
        let mut call = self
            .script(&script::FORGET, &at)
            .with(at.index("ended"))
            .with(at.index("idle"))
            .with(at.index("runs"));
        call.arg(DROPPED)
            .arg(millis(THREAD_KEPT))
            .arg(millis(LOOK_AGAIN));
        self.ask(&call).await?;
        if partition == 0 {
            // Agents belong to no partition; the first one's sweep looks after them.
            let mut call = self
                .script(&script::UNSEEN, &at)
                .with(keys::AGENTS.to_owned());
            call.arg(millis(AGENT_KEPT)).arg(Announcement::VERSION);
            self.ask(&call).await?;
        }
        Ok(())
    }

    pub(super) async fn has_room(&self) -> Result<bool, Broken> {
        let mut room = self.room.lock().await;
        if let Some((when, room)) = *room
            && when.elapsed() < MEMORY_LOOK
        {
            return Ok(room);
        }
        let mut info = redis::cmd("INFO");
        info.arg("memory");
        let info = record::text(self.lines.send(&info).await?.value)?;
        let has = greet::memory(&info)
            .is_none_or(|(used, limit)| limit == 0 || used * 100 < limit * ROOM);
        *room = Some((Instant::now(), has));
        Ok(has)
    }
}
