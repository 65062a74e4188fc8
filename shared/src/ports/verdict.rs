//! The order in which a commit is checked (DESIGN 3): op known, token, revisions, clock. Pure, so
//! that backends in Rust and the exhaustive exploration of the state machine decide alike.

use serde::{Deserialize, Serialize};

use super::{Clock, CommandRecord, Commit, Committed, Committer, Committing};
use crate::id::RunId;
use crate::run::Token;
use crate::time::Millis;

/// A worker's newest op on a run, kept beside the run where other writers leave it alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LastOp {
    /// Under which right.
    pub token: Token,
    /// Its number.
    pub op: u64,
    /// What the worker was told.
    pub reply: Committed,
}

/// What a store holds of all that a commit depends on.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Standing {
    /// The caller's command, if it was carried out before.
    pub command: Option<CommandRecord>,
    /// The newest op on the committing worker's run.
    pub last_op: Option<LastOp>,
    /// Who holds the committing worker's run.
    pub holder: Option<Token>,
    /// The revisions of the commit's runs, in their order; 0 where there is no such run.
    pub runs: Vec<u64>,
    /// The revision of the commit's thread; 0 where nobody has used it yet.
    pub thread: u64,
}

/// What a commit is answered without writing anything; `None`: it is to be written.
pub fn verdict(commit: &Commit, standing: &Standing, now: Millis) -> Option<Committing> {
    match &commit.by {
        Committer::Worker { token, op, .. } => {
            if let Some(last) = &standing.last_op
                && last.token == *token
                && last.op == *op
            {
                return Some(Committing::Done(last.reply.clone()));
            }
            if standing.holder.as_ref() != Some(token) {
                return Some(Committing::Lost);
            }
        }
        Committer::Caller(_) => {
            if let Some(record) = &standing.command {
                return Some(Committing::Known(record.clone()));
            }
        }
        Committer::Sweeper => {}
    }
    let revs = commit.runs.iter().map(|moved| moved.run.rev);
    let runs_agree = commit.runs.len() == standing.runs.len()
        && revs
            .zip(&standing.runs)
            .all(|(rev, held)| rev == held.saturating_add(1));
    let thread_agrees = commit
        .thread
        .as_ref()
        .is_none_or(|thread| thread.rev == standing.thread.saturating_add(1));
    if !runs_agree || !thread_agrees {
        return Some(Committing::Conflict);
    }
    let timely = match commit.clock {
        Clock::Any => true,
        Clock::Before(end) => now < end,
        Clock::From(start) => now >= start,
    };
    (!timely).then_some(Committing::Untimely(now))
}

impl Commit {
    /// The run whose ask this commit's command settles: the command is kept as long as that ask
    /// (PROTOCOL 3), not only as long as others.
    pub fn settled_by_command(&self) -> Option<&RunId> {
        let Committer::Caller(command) = &self.by else {
            return None;
        };
        let cmd = Some(command.key.cmd.as_str());
        let moved = self.runs.iter().find(|moved| {
            moved
                .asks
                .iter()
                .filter_map(|number| moved.run.asks.get(*number))
                .filter_map(|ask| ask.settled.as_ref())
                .any(|settlement| settlement.cmd.as_deref() == cmd)
        })?;
        Some(&moved.run.id)
    }
}
