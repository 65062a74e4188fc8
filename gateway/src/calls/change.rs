//! Cancel and retry (SPEC 3.6), by the starter or ops.

use askwell_shared::agent::Limits;
use askwell_shared::caller::{Caller, may_change};
use askwell_shared::code::Code;
use askwell_shared::id::{RunId, new_ask_id};
use askwell_shared::ports::{Clock, Commit, Committer, Committing};
use askwell_shared::run::{Event, Late, Run};
use askwell_shared::thread::Thread;
use askwell_shared::time::Millis;
use serde_json::Map;

use super::patience::Patience;
use super::{Calls, Done, Write};
use crate::refusal::Refusal;

/// What happens to the run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// It ends, whatever its state.
    Cancel,
    /// A failed one goes on.
    Retry,
}

impl Calls {
    pub(super) async fn change(
        &self,
        caller: &Caller,
        run: &RunId,
        write: &Write,
        change: Change,
    ) -> Result<Done, Refusal> {
        let mut patience = Patience::new();
        let store = &self.ports.store;
        loop {
            let reading = || store.load(run, Some(&write.key));
            let loaded = patience.read(reading).await?;
            let found = loaded.value;

            let starter = found.run.as_ref().map(|run| &run.starter);
            may_change(caller, starter).map_err(Refusal::of)?;
            if let Some(record) = found.command {
                return write.known(record);
            }
            let run = found.run.ok_or_else(Refusal::not_found)?;
            if let Some(commit) = self
                .changed(&run, write, change, loaded.now, &mut patience)
                .await?
            {
                match patience.commit(&self.ports, &commit).await? {
                    Committing::Done(committed) => {
                        return Ok(Done {
                            reply: reply_of(&commit, &run),
                            seq: committed.seq,
                        });
                    }
                    Committing::Known(record) => return write.known(record),
                    Committing::Conflict | Committing::Lost | Committing::Untimely(_) => {}
                }
            }
            patience.again().await?;
        }
    }

    /// The commit of the change; `None` where what was read does not fit together.
    async fn changed(
        &self,
        run: &Run,
        write: &Write,
        change: Change,
        now: Millis,
        patience: &mut Patience,
    ) -> Result<Option<Commit>, Refusal> {
        let mut commit = match (change, &run.thread) {
            (Change::Cancel, None) => {
                let moved = applied(run.apply(Event::Cancelled, now))?;
                Commit::of(nobody(write), Clock::Any, moved)
            }
            (Change::Retry, None) => {
                let event = self.retried(run, patience).await?(true);
                let moved = applied(run.apply(event, now))?;
                Commit::of(nobody(write), Clock::Any, moved)
            }
            (Change::Cancel, Some(name)) => {
                let moved = applied(run.apply(Event::Cancelled, now))?;
                let (thread, read) = self.thread(run, name, patience).await?;
                let mut now = now.max(read);
                let mut second = None;
                if thread.head() == Some(&run.id)
                    && let Some(id) = thread.second()
                {
                    let loaded = self.load(id, patience).await?;
                    now = now.max(loaded.now);
                    second = loaded.value;
                }
                match thread.end(moved, second.as_ref(), now) {
                    Ok(moved) => Commit::of_thread(nobody(write), Clock::Any, moved),
                    Err(_) => return Ok(None),
                }
            }
            (Change::Retry, Some(name)) => {
                let retry = self.retried(run, patience).await?;
                let (thread, read) = self.thread(run, name, patience).await?;
                let moved = applied(thread.rejoin(run, retry, now.max(read)))?;
                Commit::of_thread(nobody(write), Clock::Any, moved)
            }
        };
        commit.by = Committer::Caller(write.with(&reply_of(&commit, run)));
        Ok(Some(commit))
    }

    /// The event of a retry, by the limits that hold for the agent now.
    async fn retried(
        &self,
        run: &Run,
        patience: &mut Patience,
    ) -> Result<impl FnOnce(bool) -> Event + use<>, Refusal> {
        let agents = self.agents.list_with(&run.agent, patience).await?;
        // Of an agent that nobody knows any more no limits are known either; the worker that
        // takes the run, if one ever does, checks its own at the next turn.
        let limits = agents
            .agent(&run.agent)
            .map_or_else(Limits::default, |agent| agent.limits.clone());
        let ids = run.calls.iter().map(|_| new_ask_id()).collect();
        Ok(move |head| Event::Retried { limits, head, ids })
    }

    async fn thread(
        &self,
        run: &Run,
        name: &str,
        patience: &mut Patience,
    ) -> Result<(Thread, Millis), Refusal> {
        let owner = run.owner();
        let store = &self.ports.store;
        let read = patience.read(|| store.thread(&owner, name)).await?;
        // A failed run is kept longer than its thread.
        let thread = read
            .value
            .unwrap_or_else(|| Thread::new(owner, name.to_owned()));
        Ok((thread, read.now))
    }
}

/// Who commits, until the reply to be kept is known.
fn nobody(write: &Write) -> Committer {
    Committer::Caller(write.with(&Map::new()))
}

fn applied<T>(moved: Result<T, Late>) -> Result<T, Refusal> {
    moved.map_err(|_| Refusal::of(Code::T0010))
}

fn reply_of(commit: &Commit, run: &Run) -> Map<String, serde_json::Value> {
    let after = commit.runs.iter().find(|moved| moved.run.id == run.id);
    let status = after.map_or(run.status, |moved| moved.run.status);
    let mut reply = Map::new();
    reply.insert("run".into(), run.id.as_str().into());
    reply.insert("status".into(), status.name().into());
    reply
}
