//! The agents as workers announced them: all that a gateway knows of them (SPEC 2).

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use askwell_shared::agent::{Announcement, OnMessage, may_start};
use askwell_shared::caller::Caller;
use askwell_shared::ports::{At, Fault, Known, Store};
use askwell_shared::time::Millis;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::Calls;
use super::patience::Patience;
use crate::refusal::Refusal;

/// A list no older than this decides starts; a worker announces its agents far less often.
const FRESH: Duration = Duration::from_secs(1);

/// The agents of the store, read at most once in [`FRESH`].
pub(super) struct Agents {
    store: Arc<dyn Store>,
    newest: Mutex<Option<List>>,
}

/// The agents at one moment.
#[derive(Clone)]
pub(super) struct List {
    read: Instant,
    at: Arc<At<Vec<Known>>>,
}

impl List {
    /// The store's clock now, by the monotonic time since the reading.
    pub(super) fn now(&self) -> Millis {
        self.at.now.after(self.read.elapsed())
    }

    /// The announcement that decides for this agent: of two revisions the one announced last.
    pub(super) fn agent(&self, name: &str) -> Option<&Announcement> {
        decides(&self.at.value, name)
    }

    /// What a new start does while a run of this agent waits at the head of its thread.
    pub(super) fn on_message(&self, name: &str) -> OnMessage {
        self.agent(name)
            .map_or_else(OnMessage::default, |agent| agent.on_message)
    }
}

impl Agents {
    pub(super) fn new(store: Arc<dyn Store>) -> Self {
        Agents {
            store,
            newest: Mutex::new(None),
        }
    }

    /// Reads the list now.
    pub(super) async fn refresh(&self) -> Result<List, Fault> {
        let list = List {
            at: Arc::new(self.store.agents().await?),
            read: Instant::now(),
        };
        *self.newest.lock().unwrap_or_else(PoisonError::into_inner) = Some(list.clone());
        Ok(list)
    }

    fn cached(&self) -> Option<List> {
        let newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        newest.clone().filter(|list| list.read.elapsed() < FRESH)
    }

    /// A list not older than [`FRESH`].
    pub(super) async fn list(&self, patience: &mut Patience) -> Result<List, Refusal> {
        match self.cached() {
            Some(list) => Ok(list),
            None => patience.read(|| self.refresh()).await,
        }
    }

    /// A list that knows this agent, if any does: one that was announced a moment ago is not
    /// refused because of an older list.
    pub(super) async fn list_with(
        &self,
        name: &str,
        patience: &mut Patience,
    ) -> Result<List, Refusal> {
        match self.cached() {
            Some(list) if list.agent(name).is_some() => Ok(list),
            _ => patience.read(|| self.refresh()).await,
        }
    }
}

fn decides<'a>(known: &'a [Known], name: &str) -> Option<&'a Announcement> {
    known
        .iter()
        .filter(|known| is_ours(known) && known.announcement.name == name)
        .max_by_key(|known| known.announced)
        .map(|known| &known.announcement)
}

/// A record of a newer version is left alone (SPEC 5).
fn is_ours(known: &Known) -> bool {
    known.announcement.v <= Announcement::VERSION
}

impl Calls {
    /// The agents that the caller may start, by name: `GET /v1/agents`.
    pub async fn agents(&self, caller: &Caller) -> Result<Value, Refusal> {
        let list = self.agents.list(&mut Patience::new()).await?;
        let now = list.now();
        let known = &list.at.value;
        let mut names: Vec<&str> = known
            .iter()
            .map(|known| known.announcement.name.as_str())
            .collect();
        names.sort_unstable();
        names.dedup();
        let agents: Vec<Value> = names
            .into_iter()
            .filter_map(|name| decides(known, name))
            .filter(|agent| may_start(&agent.access, caller))
            .map(|agent| {
                let live = known
                    .iter()
                    .any(|known| known.announcement.name == agent.name && known.is_live(now));
                json!({
                    "name": agent.name,
                    "description": agent.description,
                    "revision": agent.revision,
                    "questions": agent.questions,
                    "live": live,
                })
            })
            .collect();
        Ok(json!({ "agents": agents }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use askwell_shared::agent::{Access, Limits, Upgrade};

    fn known(revision: &str, announced: i64, v: u32) -> Known {
        Known {
            announcement: Announcement {
                v,
                name: "asker".into(),
                revision: revision.into(),
                access: vec![Access::SignedIn],
                description: String::new(),
                limits: Limits::default(),
                on_message: OnMessage::Queue,
                questions: true,
                ask_question: false,
                tell_expiry: false,
                upgrade: Upgrade::Newest,
                tools: std::collections::BTreeMap::new(),
            },
            announced: Millis(announced),
            seen: Millis(announced),
        }
    }

    #[test]
    fn the_revision_announced_last_decides() {
        let all = [
            known("old", 1, 1),
            known("newest", 9, 1),
            known("mid", 5, 1),
            known("of a newer build", 10, 2),
        ];
        assert_eq!(decides(&all, "asker").unwrap().revision, "newest");
        assert_eq!(decides(&all, "other"), None);
    }
}
