//! A transition on its way into the store, and what the store replies.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::caller::Starter;
use crate::id::{Owner, RunId};
use crate::run::{Moved, Token};
use crate::thread::{Thread, ThreadMoved};
use crate::time::Millis;

/// A caller's command: its id, and what it is known by (PROTOCOL 3).
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CommandKey {
    /// Who sent it.
    pub caller: Starter,
    /// The run it is about; `None` for a start.
    pub run: Option<RunId>,
    /// The client's id of it.
    pub cmd: String,
}

impl CommandKey {
    /// The key as text; different keys have different texts.
    pub fn text(&self) -> String {
        let kind = if self.caller.system { "s" } else { "p" };
        let sub = &self.caller.sub;
        let run = self.run.as_ref().map_or("-", RunId::as_str);
        format!("{kind}{}:{sub}:{run}:{}", sub.len(), self.cmd)
    }
}

/// What is kept of a command that was carried out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CommandRecord {
    /// Digest of its body (kind and fields, compared as JSON).
    pub digest: String,
    /// Its reply, without `seq`.
    pub reply: Value,
    /// The last `seq` of its commit.
    pub seq: u64,
}

/// A command to be kept with a commit.
#[derive(Debug, Clone, PartialEq)]
pub struct CommandWrite {
    /// Its key.
    pub key: CommandKey,
    /// Digest of its body.
    pub digest: String,
    /// Its reply, without `seq`.
    pub reply: Value,
}

/// Who commits, which decides what makes a commit come too late.
#[derive(Debug, Clone, PartialEq)]
pub enum Committer {
    /// A worker that holds a lease. `op` counts its commits under this token from 1: the same
    /// number again is the same commit and gets the same reply.
    Worker {
        /// The run it holds.
        run: RunId,
        /// Its right.
        token: Token,
        /// The number of this commit.
        op: u64,
    },
    /// A caller, through a gateway. A command that is known already is not carried out again.
    Caller(CommandWrite),
    /// The sweeper, or a gateway that meets a late answer: the revision alone decides, since
    /// what it does is a condition on state.
    Sweeper,
}

/// A condition on the store's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// Always.
    Any,
    /// Only before this time (an answer).
    Before(Millis),
    /// Only at this time or later (an expiry, a reclaim).
    From(Millis),
}

/// One transition: atomic over runs of one owner, their asks, transcripts and journals, the
/// thread, the command record, the owner's log and every index.
#[derive(Debug, Clone, PartialEq)]
pub struct Commit {
    /// Whose runs.
    pub owner: Owner,
    /// Who commits.
    pub by: Committer,
    /// The condition on the clock.
    pub clock: Clock,
    /// The runs after the change, in the order of their frames. Each is written only where the
    /// store holds the revision before it (`rev - 1`; none for a new run).
    pub runs: Vec<Moved>,
    /// The thread after the change, under the same condition on its own `rev`.
    pub thread: Option<Thread>,
    /// Runs that ended in the thread, with their numbers.
    pub ended: Vec<(RunId, u64)>,
}

impl Commit {
    /// A commit of one run outside a thread, or of a change that leaves its thread alone.
    pub fn of(by: Committer, clock: Clock, moved: Moved) -> Self {
        Commit {
            owner: moved.run.owner(),
            by,
            clock,
            runs: vec![moved],
            thread: None,
            ended: Vec::new(),
        }
    }

    /// A commit of a thread and its runs.
    pub fn of_thread(by: Committer, clock: Clock, moved: ThreadMoved) -> Self {
        Commit {
            owner: moved.thread.owner.clone(),
            by,
            clock,
            runs: moved.runs,
            thread: Some(moved.thread),
            ended: moved.ended,
        }
    }
}

/// The reply to a commit. All but [`Committing::Done`] and [`Committing::Known`] have written
/// nothing.
#[derive(Debug, Clone, PartialEq)]
pub enum Committing {
    /// It is durable.
    Done(Committed),
    /// This command was carried out before; the caller compares the digests.
    Known(CommandRecord),
    /// A revision differs: load and decide again.
    Conflict,
    /// The worker's right is gone: drop everything.
    Lost,
    /// The condition on the clock does not hold at `now`.
    Untimely(Millis),
}

/// A durable commit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Committed {
    /// The store's clock.
    pub now: Millis,
    /// The owner's head after it: the `seq` of its last frame.
    pub seq: u64,
    /// The gateways where the owner is online.
    pub online: Vec<String>,
}
