//! What only reads: each method is one script, hence one reading.

use std::sync::Arc;

use deadpool_redis::redis::{self, Value};
use futures_util::future::try_join_all;

use super::keys::{self, Partition};
use super::record::{self, Parts};
use super::{Broken, Redis, log, script};
use crate::ask::Ask;
use crate::caller::Starter;
use crate::id::{Owner, PARTITIONS, RunId};
use crate::ports::{At, CommandKey, CommandRecord, Events, Found, Known, Snapshot};
use crate::run::Run;
use crate::thread::Thread;
use crate::transcript::Transcript;
use crate::wire::{LiveRun, with_seq};

impl Redis {
    pub(super) async fn load_run(
        &self,
        run: &RunId,
        command: Option<&CommandKey>,
    ) -> Result<At<Found>, Broken> {
        let partition = Partition::of_run(run);
        let mut call = self.script(&script::LOAD, &partition);
        for kind in ["run", "header", "asks"] {
            call.key(partition.run(kind, run));
        }
        if let Some(key) = command {
            call.key(Partition::of_command(key).command(key));
        }
        let mut parts = self.ask(&call).await?;
        let now = parts.now()?;
        let mut found = record::run(parts.value(), || format!("run {run}"))?;
        let asks = parts.list()?;
        if let Some(run) = &mut found {
            run.asks = record::asks(asks)?;
        }
        let value = Found {
            run: found,
            command: record::command(parts.value())?,
        };
        Ok(At { now, value })
    }

    pub(super) async fn load_command(
        &self,
        key: &CommandKey,
    ) -> Result<At<Option<CommandRecord>>, Broken> {
        let partition = Partition::of_command(key);
        let call = self
            .script(&script::COMMAND, &partition)
            .with(partition.command(key));
        let mut parts = self.ask(&call).await?;
        Ok(At {
            now: parts.now()?,
            value: record::command(parts.value())?,
        })
    }

    pub(super) async fn conversation(&self, run: &RunId) -> Result<At<Transcript>, Broken> {
        let partition = Partition::of_run(run);
        let call = self
            .script(&script::TRANSCRIPT, &partition)
            .with(partition.run("msgs", run))
            .with(partition.run("steps", run));
        let mut parts = self.ask(&call).await?;
        Ok(At {
            now: parts.now()?,
            value: record::transcript(parts.list()?, parts.list()?)?,
        })
    }

    pub(super) async fn load_thread(
        &self,
        owner: &Owner,
        name: &str,
    ) -> Result<At<Option<Thread>>, Broken> {
        let partition = Partition::of_owner(owner);
        let call = self
            .script(&script::THREAD, &partition)
            .with(partition.thread("thread", owner, name));
        let mut parts = self.ask(&call).await?;
        let now = parts.now()?;
        let mut fields = Parts::of(parts.value())?;
        let value = match fields.value() {
            Value::Nil => None,
            v => {
                record::known(record::number(v)?, || format!("thread {name}"))?;
                Some(record::json(fields.value())?)
            }
        };
        Ok(At { now, value })
    }

    pub(super) async fn past(
        &self,
        owner: &Owner,
        name: &str,
        before: u64,
    ) -> Result<Vec<Transcript>, Broken> {
        let partition = Partition::of_owner(owner);
        let mut call = self
            .script(&script::PAST, &partition)
            .with(partition.thread("past", owner, name));
        call.arg(before);
        let mut parts = self.ask(&call).await?;
        parts.now()?;
        let transcript = |parts| {
            let mut parts = Parts::of(parts)?;
            record::transcript(parts.list()?, parts.list()?)
        };
        parts.list()?.into_iter().map(transcript).collect()
    }

    pub(super) async fn known_agents(&self) -> Result<At<Vec<Known>>, Broken> {
        let call = self
            .script(&script::KNOWN, &Partition::new(0))
            .with(keys::AGENTS.to_owned());
        let mut parts = self.ask(&call).await?;
        let now = parts.now()?;
        let mut known = Vec::new();
        for agent in parts.list()? {
            known.extend(record::agent(agent)?);
        }
        known.sort_by(|one, two| {
            let by_name = one.announcement.name.cmp(&two.announcement.name);
            let by_age = || two.announced.cmp(&one.announced);
            let by_revision = || one.announcement.revision.cmp(&two.announcement.revision);
            by_name.then_with(by_age).then_with(by_revision)
        });
        Ok(At { now, value: known })
    }

    pub(super) async fn state(&self, owner: &Owner) -> Result<Snapshot, Broken> {
        let partition = Partition::of_owner(owner);
        let head = partition.owner("head", owner);
        let mut runs = Vec::new();
        let mut asks: Vec<Ask> = Vec::new();
        let (reply, now, seq);
        match owner {
            Owner::Person(sub) => {
                let starter = Starter {
                    sub: sub.clone(),
                    system: false,
                };
                let call = self
                    .script(&script::SNAPSHOT, &partition)
                    .with(head)
                    .with(partition.owner("live", owner))
                    .with(partition.starter("open", &starter));
                reply = self.lines.call(&call).await?;
                let mut parts = Parts::of(reply.value)?;
                now = parts.now()?;
                seq = parts.value();
                for run in parts.list()? {
                    runs.extend(record::run(run, || "a live run".to_owned())?);
                }
                asks.extend(record::asks(parts.list()?)?);
            }
            Owner::System(run) => {
                let mut call = self.script(&script::ALONE, &partition).with(head);
                for kind in ["run", "header", "asks"] {
                    call.key(partition.run(kind, run));
                }
                reply = self.lines.call(&call).await?;
                let mut parts = Parts::of(reply.value)?;
                now = parts.now()?;
                seq = parts.value();
                // One of a newer version is left out.
                match record::run(parts.value(), || format!("run {run}")) {
                    Ok(run) => runs.extend(run.filter(|run| run.status.is_live())),
                    Err(Broken::Newer { .. }) => {}
                    Err(broken) => return Err(broken),
                }
                if !runs.is_empty() {
                    asks.extend(record::asks(parts.list()?)?);
                    asks.retain(Ask::is_open);
                }
            }
        }
        let place = |ask: &Ask| (ask.opened, ask.turn, ask.call);
        asks.sort_by(|one, two| (&one.run, place(one)).cmp(&(&two.run, place(two))));
        asks.sort_by_key(|ask| ask.opened);
        runs.sort_by(|one: &Run, two| (one.created, &one.id).cmp(&(two.created, &two.id)));
        Ok(Snapshot {
            now,
            epoch: reply.epoch.to_string(),
            seq: record::maybe(seq)?
                .map_or(Ok(0), |seq| seq.parse())
                .map_err(|_| Broken::Damaged("a head is no number".to_owned()))?,
            asks,
            runs: runs.iter().map(LiveRun::of).collect(),
        })
    }

    pub(super) async fn frames(
        &self,
        owner: &Owner,
        seq: u64,
        limit: usize,
    ) -> Result<Events, Broken> {
        let partition = Partition::of_owner(owner);
        let mut call = self
            .script(&script::EVENTS, &partition)
            .with(partition.owner("head", owner))
            .with(partition.owner("log", owner));
        // At least one, to see whether the log still reaches back to the point.
        call.arg(seq.saturating_add(1)).arg(limit.max(1));
        let reply = self.lines.call(&call).await?;
        let mut parts = Parts::of(reply.value)?;
        let head = match parts.value() {
            Value::Nil => 0,
            head => record::number(head)?,
        };
        let (mut frames, mut gone) = (Vec::new(), false);
        for entry in parts.list()? {
            let mut entry = Parts::of(entry)?;
            let id = entry.text()?;
            let number = id.split('-').next().and_then(|seq| seq.parse().ok());
            let number = number.ok_or_else(|| Broken::Damaged(format!("{id} is no seq")))?;
            // What has gone with its run is gone from the log too, with all before it.
            match log::frame(&mut entry)? {
                Some(frame) => frames.push((number, Arc::from(with_seq(&frame, number)))),
                None => gone = true,
            }
        }
        let first_is_gone = frames.first().is_none_or(|(first, _)| *first != seq + 1);
        let trimmed = head > seq && (gone || first_is_gone);
        frames.truncate(if trimmed { 0 } else { limit });
        Ok(Events {
            epoch: reply.epoch.to_string(),
            head,
            frames,
            trimmed,
        })
    }

    /// Heads, by one reading for each partition.
    pub(super) async fn all_heads(&self, owners: &[Owner]) -> Result<Vec<u64>, Broken> {
        let mut places: Vec<Vec<usize>> = vec![Vec::new(); usize::from(PARTITIONS)];
        for (place, owner) in owners.iter().enumerate() {
            places[usize::from(owner.partition())].push(place);
        }
        places.retain(|places| !places.is_empty());
        let reads = places.into_iter().map(async |places| {
            let mut get = redis::cmd("MGET");
            for place in &places {
                let owner = &owners[*place];
                get.arg(Partition::of_owner(owner).owner("head", owner));
            }
            let heads = record::list(self.lines.send(&get).await?.value)?;
            Ok::<_, Broken>(places.into_iter().zip(heads))
        });
        let mut heads = vec![0; owners.len()];
        for read in try_join_all(reads).await? {
            for (place, head) in read {
                if head != Value::Nil {
                    heads[place] = record::number(head)?;
                }
            }
        }
        Ok(heads)
    }
}
