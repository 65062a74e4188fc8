//! Starting a run (SPEC 2).

use askwell_shared::agent::{OnMessage, Upgrade, check_name, may_start};
use askwell_shared::caller::Caller;
use askwell_shared::id::{Owner, RunId, partition_for};
use askwell_shared::ports::{At, Clock, Commit, Committer, Committing};
use askwell_shared::run::{self, Run, Status};
use askwell_shared::thread::Thread;
use serde_json::Map;
use uuid::Uuid;

use super::agents::List;
use super::command::Start;
use super::patience::Patience;
use super::{Calls, Done, Write};
use crate::refusal::Refusal;

impl Calls {
    pub(super) async fn start(
        &self,
        caller: &Caller,
        write: &Write,
        start: Start,
    ) -> Result<Done, Refusal> {
        check_thread(caller, start.thread.as_deref())?;
        let mut patience = Patience::new();
        let agents = self.agents.list_with(&start.agent, &mut patience).await?;
        let agent = agents
            .agent(&start.agent)
            .filter(|agent| may_start(&agent.access, caller));
        let Some(agent) = agent else {
            // A start that was carried out before keeps its reply, whatever became of the agent.
            let store = &self.ports.store;
            let reading = || store.command(&write.key);
            let known = patience.read(reading).await?.value;
            return known.map_or_else(|| Err(Refusal::no_agent()), |record| write.known(record));
        };

        let room = patience.read(|| self.ports.store.room()).await?;
        if !room {
            let reading = || self.ports.store.command(&write.key);
            let known = patience.read(reading).await?.value;
            return known.map_or_else(|| Err(Refusal::full()), |record| write.known(record));
        }

        let starter = caller.as_starter();
        let partition = partition_for(&starter, &write.key.cmd);
        let start = run::Start {
            id: RunId::new(partition, Uuid::now_v7()),
            starter,
            agent: start.agent,
            revision: agent.revision.clone(),
            pinned: agent.upgrade == Upgrade::Pinned,
            tell_expiry: agent.tell_expiry,
            thread: start.thread,
            input: start.input,
        };
        let mut reply = Map::new();
        reply.insert("run".into(), start.id.as_str().into());
        reply.insert("status".into(), Status::Queued.name().into());

        let by = Committer::Caller(write.with(&reply));
        loop {
            let commit = match &start.thread {
                None => {
                    let moved = Run::start(start.clone(), true, 0, agents.now());
                    Some(Commit::of(by.clone(), Clock::Any, moved))
                }
                Some(name) => {
                    self.in_thread(name, &start, &agents, &by, &mut patience)
                        .await?
                }
            };
            if let Some(commit) = commit {
                match patience.commit(&self.ports, &commit).await? {
                    Committing::Done(committed) => {
                        let seq = committed.seq;
                        return Ok(Done { reply, seq });
                    }
                    Committing::Known(record) => return write.known(record),
                    Committing::Conflict | Committing::Lost | Committing::Untimely(_) => {}
                }
            }
            patience.again().await?;
        }
    }

    /// The commit of a start in a thread; `None` where the thread moved while it was read.
    async fn in_thread(
        &self,
        name: &str,
        start: &run::Start,
        agents: &List,
        by: &Committer,
        patience: &mut Patience,
    ) -> Result<Option<Commit>, Refusal> {
        let owner = Owner::of(&start.starter, &start.id);
        let store = &self.ports.store;
        let read = patience.read(|| store.thread(&owner, name)).await?;
        let mut now = read.now;
        let thread = read
            .value
            .unwrap_or_else(|| Thread::new(owner, name.to_owned()));
        let mut head = None;
        let mut second = None;
        let mut on_message = OnMessage::default();
        if let Some(id) = thread.head() {
            let loaded = self.load(id, patience).await?;
            now = now.max(loaded.now);
            head = loaded.value;
            if let Some(head) = &head {
                on_message = agents.on_message(&head.agent);
            }
        }
        // Only where the head makes room is the next one needed.
        if on_message == OnMessage::Supersede
            && let Some(id) = thread.second()
        {
            let loaded = self.load(id, patience).await?;
            now = now.max(loaded.now);
            second = loaded.value;
        }
        let moved = thread.start(
            start.clone(),
            on_message,
            head.as_ref(),
            second.as_ref(),
            now,
        );
        match moved {
            Ok(moved) => Ok(Some(Commit::of_thread(by.clone(), Clock::Any, moved))),
            Err(_) => Ok(None),
        }
    }

    /// A run with its asks.
    pub(super) async fn load(
        &self,
        run: &RunId,
        patience: &mut Patience,
    ) -> Result<At<Option<Run>>, Refusal> {
        let store = &self.ports.store;
        let found = patience.read(|| store.load(run, None)).await?;
        Ok(At {
            now: found.now,
            value: found.value.run,
        })
    }
}

fn check_thread(caller: &Caller, thread: Option<&str>) -> Result<(), Refusal> {
    let Some(name) = thread else {
        return Ok(());
    };
    if caller.system {
        return Err(Refusal::malformed(
            "The field thread is for persons; a system's runs have none.",
        ));
    }
    check_name(name).map_err(|rule| Refusal::malformed(format!("The field thread: {rule}.")))
}
