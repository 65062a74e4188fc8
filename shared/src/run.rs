//! A run as a pure state machine (DESIGN 6). It reads no clock and does no I/O.
//!
//! ```text
//!            start                    lease                  turn saved, no calls
//!  (nothing) -----> queued  ------------------->  running  -----------------------> succeeded
//!                    ^  |  ^  released, postponed,   |  ^
//!       all settled  |  |  |  reclaimed              |  | (tools go on)
//!                    |  |  +-------------------------+--+
//!                    |  | due 60 s, no worker        | only asks are left
//!                    |  v                            v
//!                    | stalled --lease--> running   waiting --superseded--> cancelled
//!                    +-------------------------------+
//!  every live state --cancelled--> cancelled     running --failed, set aside--> failed --retried--> queued
//! ```
//!
//! [`Run::apply`] decides an [`Event`]; backends only commit what it decided. Which indexes hold
//! a run follows from its state alone ([`Run::indexes`]).

mod apply;
#[cfg(test)]
mod tests;
mod turn;

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use apply::{Event, Late, Moved};
pub use turn::{Plan, SavedCall, SavedTurn};

use crate::ask::Ask;
use crate::caller::Starter;
use crate::id::{Owner, RunId};
use crate::time::Millis;
use crate::transcript::Usage;

/// The version of a run's record. A process leaves a newer one alone (SPEC 5).
pub const RECORD_VERSION: u32 = 1;

/// A run whose lease ran out so often without progress between is set aside (SPEC 5).
pub const MAX_ATTEMPTS: u32 = 5;

/// The reason of a run that was set aside.
pub const SET_ASIDE: &str = "set aside: its worker was lost five times without progress";

/// How long after a commit a ready run waits for the committer's own hint before the sweeper
/// hints it.
pub const HINT_GRACE: Duration = Duration::from_secs(2);

/// Where a run is (DESIGN 6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Status {
    /// A worker may claim it, or it is not yet the head of its thread.
    Queued,
    /// A worker advances it.
    Running,
    /// Only asks are left to wait for; no worker holds it.
    Waiting,
    /// It is due, but no live worker can take it.
    Stalled,
    /// It ended well.
    Succeeded,
    /// It ended with a reason and may be retried.
    Failed,
    /// It was cancelled.
    Cancelled,
}

impl Status {
    /// The status as it stands on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Status::Queued => "queued",
            Status::Running => "running",
            Status::Waiting => "waiting",
            Status::Stalled => "stalled",
            Status::Succeeded => "succeeded",
            Status::Failed => "failed",
            Status::Cancelled => "cancelled",
        }
    }

    /// The status of this name.
    pub fn parse(name: &str) -> Option<Status> {
        [
            Status::Queued,
            Status::Running,
            Status::Waiting,
            Status::Stalled,
            Status::Succeeded,
            Status::Failed,
            Status::Cancelled,
        ]
        .into_iter()
        .find(|status| status.name() == name)
    }

    /// Whether the run has not ended.
    pub fn is_live(self) -> bool {
        !matches!(self, Status::Succeeded | Status::Failed | Status::Cancelled)
    }
}

/// One worker's right to advance a run. Compared whole: after a failover a fence may be given
/// out twice, the nonce is not.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Token {
    /// Which lease of the run this is, from 1.
    pub fence: u64,
    /// The worker's own random part.
    pub nonce: String,
}

/// A token and until when it holds.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Lease {
    /// The right.
    pub token: Token,
    /// Its end by the store's clock; only the sweeper takes it away then.
    pub until: Millis,
}

/// How far a call of the current turn is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CallState {
    /// Saved with its turn, nothing decided: the run reached a limit first.
    Saved,
    /// It waits for a person.
    Asking {
        /// The ask's id.
        ask: String,
    },
    /// It may be made: approved, or allowed again.
    Ready,
    /// An intent stands in the journal. After a crash its outcome is not known.
    Started {
        /// Which try, from 1.
        attempt: u32,
    },
    /// It has its result.
    Done,
}

/// A call of the current turn.
#[derive(Debug, Clone, PartialEq, Hash, Serialize, Deserialize)]
pub struct Call {
    /// The provider's id.
    pub call: String,
    /// The tool.
    pub tool: String,
    /// Where in the run, as `refund 2.1`. It never changes.
    pub step: String,
    /// The input to call the tool with; an approval may have replaced the model's.
    pub input: Value,
    /// How far it is.
    pub state: CallState,
    /// How often it was started.
    #[serde(default)]
    pub attempts: u32,
}

/// A run. `asks` are kept in records of their own; everything else is the run's header.
#[derive(Debug, Clone, PartialEq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Run {
    /// The record's version.
    pub v: u32,
    /// The id.
    pub id: RunId,
    /// Raised by one with each change.
    pub rev: u64,
    /// Who started it.
    pub starter: Starter,
    /// The agent.
    pub agent: String,
    /// The agent's revision at the start.
    pub revision: String,
    /// Whether only a worker with that revision may go on with it.
    pub pinned: bool,
    /// Whether the model is told that nobody answered (SPEC 3.6, `tellExpiry`).
    pub tell_expiry: bool,
    /// The starter's thread.
    pub thread: Option<String>,
    /// Whether it is its thread's head; `true` outside a thread.
    pub head: bool,
    /// Which ended runs of the thread its model sees: those numbered below this. Fixed when it
    /// first becomes head.
    pub earlier: Option<u64>,
    /// Where it is.
    pub status: Status,
    /// Why it failed, was cancelled or is stalled.
    pub reason: Option<String>,
    /// The last assistant text, once it succeeded.
    pub output: Option<String>,
    /// What it was started with.
    pub input: Value,
    /// Turns saved.
    pub turn: u32,
    /// The calls of the last turn saved.
    pub calls: Vec<Call>,
    /// Asks that count against `limits.asks`.
    pub asked: u32,
    /// Tokens used.
    pub usage: Usage,
    /// Leases that ran out without progress between.
    pub attempts: u32,
    /// Tries of the next model call that failed before the worker gave the run back.
    #[serde(default)]
    pub tries: u32,
    /// No claim before this.
    pub not_before: Millis,
    /// The number of the newest lease.
    pub fence: u64,
    /// The lease, while a worker holds it.
    pub lease: Option<Lease>,
    /// Since when it is due (queued and head).
    pub due_since: Millis,
    /// When it was started.
    pub created: Millis,
    /// When it last changed.
    pub updated: Millis,
    /// When it ended.
    pub ended: Option<Millis>,
    /// Its asks, in the order in which they were opened.
    #[serde(skip)]
    pub asks: Vec<Ask>,
}

/// The indexes that hold a run: a function of its state, written by every backend in the same
/// commit (DESIGN 3).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Indexes {
    /// It needs a hint: when the sweeper gives the first.
    pub ready: Option<Millis>,
    /// It is leased until then.
    pub lease: Option<Millis>,
    /// Its open asks and their deadlines.
    pub open: Vec<(String, Millis)>,
    /// It has not ended.
    pub live: bool,
}

/// What a lease meets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// It may be claimed.
    Free,
    /// Another worker holds it.
    Held,
    /// Nothing is to be done for it now.
    NotClaimable,
    /// Not before then.
    NotYet(Millis),
}

/// What a new run starts with.
#[derive(Debug, Clone, PartialEq)]
pub struct Start {
    /// The run's new id.
    pub id: RunId,
    /// Who starts it.
    pub starter: Starter,
    /// The agent.
    pub agent: String,
    /// Its revision.
    pub revision: String,
    /// Whether it goes on only with that revision.
    pub pinned: bool,
    /// Whether its model is told of an expiry.
    pub tell_expiry: bool,
    /// The thread, if any.
    pub thread: Option<String>,
    /// What it starts with.
    pub input: Value,
}

impl Run {
    /// Whose log its events are in.
    pub fn owner(&self) -> Owner {
        Owner::of(&self.starter, &self.id)
    }

    /// Whether and when a worker may claim it.
    pub fn claim(&self, now: Millis) -> Claim {
        match self.status {
            Status::Running => Claim::Held,
            Status::Queued | Status::Stalled if !self.head => Claim::NotClaimable,
            Status::Queued | Status::Stalled if self.not_before > now => {
                Claim::NotYet(self.not_before)
            }
            Status::Queued | Status::Stalled => Claim::Free,
            _ => Claim::NotClaimable,
        }
    }

    /// The indexes that hold it.
    pub fn indexes(&self) -> Indexes {
        let due = self.head && matches!(self.status, Status::Queued | Status::Stalled);
        Indexes {
            ready: due.then(|| self.not_before.max(self.updated.after(HINT_GRACE))),
            lease: self.lease.as_ref().map(|lease| lease.until),
            open: self
                .asks
                .iter()
                .filter(|ask| ask.is_open())
                .map(|ask| (ask.id.clone(), ask.deadline))
                .collect(),
            live: self.status.is_live(),
        }
    }

    /// The asks that still wait.
    pub fn open_asks(&self) -> impl Iterator<Item = &Ask> {
        self.asks.iter().filter(|ask| ask.is_open())
    }

    /// The ask of this id.
    pub fn ask(&self, id: &str) -> Option<&Ask> {
        self.asks.iter().find(|ask| ask.id == id)
    }

    /// The ask that `step` and `repeat` name, if it still waits (SPEC 3.4, 3.6).
    pub fn find_ask(&self, step: &str, repeat: u32, now: Millis) -> Result<&Ask, Late> {
        let ask = self
            .asks
            .iter()
            .find(|ask| ask.step == step && ask.repeat == repeat)
            .ok_or(Late::Unknown)?;
        match &ask.settled {
            Some(settlement) => Err(Late::Settled(Box::new(settlement.clone()))),
            None if now >= ask.deadline => Err(Late::Past(ask.id.clone())),
            None => Ok(ask),
        }
    }

    /// What a worker that holds the run does next.
    pub fn next(&self) -> Next {
        if self.status != Status::Running {
            return Next::Nothing;
        }
        if self
            .calls
            .iter()
            .any(|call| matches!(call.state, CallState::Saved))
        {
            return Next::Plan;
        }
        let runnable =
            |call: &Call| matches!(call.state, CallState::Ready | CallState::Started { .. });
        if self.calls.iter().any(runnable) {
            Next::Calls
        } else if self.open_asks().next().is_some() {
            Next::Nothing
        } else {
            Next::Model
        }
    }

    /// Where it rests when no worker holds it: `waiting` where only asks are left.
    fn resting(&self) -> Status {
        let to_do = self.calls.iter().any(|call| {
            matches!(
                call.state,
                CallState::Saved | CallState::Ready | CallState::Started { .. }
            )
        });
        if self.head && !to_do && self.open_asks().next().is_some() {
            Status::Waiting
        } else {
            Status::Queued
        }
    }
}

/// What comes next for the worker that holds a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Every call has its result: call the model.
    Model,
    /// A saved turn's calls are to be decided.
    Plan,
    /// Calls are to be made or cleared up.
    Calls,
    /// Give the run back.
    Nothing,
}
