//! What a hint says, and the second copy of a settlement that it may carry (DESIGN 5).

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::commit::{Commit, Committer};
use crate::ask::Settlement;
use crate::id::RunId;
use crate::run::Run;

/// Why a run may be claimable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum HintKind {
    /// It is new.
    Start,
    /// It goes on; a person waits.
    Resume,
}

/// "This run may be claimable."
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hint {
    /// The run.
    pub run: RunId,
    /// Its revision when the hint was made.
    pub rev: u64,
    /// Its agent.
    pub agent: String,
    /// The revision of the agent that it is pinned to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// Why.
    pub kind: HintKind,
    /// The settlement that a caller was told is accepted: it stands here a second time, so that
    /// a store that lost it gets it back (DESIGN 5).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settlement: Option<Box<Settled>>,
}

/// A caller's settlement as a hint carries it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Settled {
    /// The ask's id.
    pub ask: String,
    /// Its step.
    pub step: String,
    /// Its asking.
    pub repeat: u32,
    /// How it ended: outcome, data, by, at, cmd.
    pub settlement: Settlement,
    /// The command's digest.
    pub digest: String,
    /// The command's reply, without `seq`.
    pub reply: Value,
}

impl Settled {
    /// The settlement that a commit of a caller makes, if it makes one.
    pub(super) fn of(commit: &Commit) -> Option<(&Run, Self)> {
        let Committer::Caller(command) = &commit.by else {
            return None;
        };
        commit.runs.iter().find_map(|moved| {
            let ask = moved
                .asks
                .iter()
                .filter_map(|number| moved.run.asks.get(*number))
                .find(|ask| ask.settled.as_ref().is_some_and(|end| end.by.is_some()))?;
            let settled = Settled {
                ask: ask.id.clone(),
                step: ask.step.clone(),
                repeat: ask.repeat,
                settlement: ask.settled.clone()?,
                digest: command.digest.clone(),
                reply: command.reply.clone(),
            };
            Some((&moved.run, settled))
        })
    }
}

impl Hint {
    /// The hint of a run that is due.
    pub fn of(run: &Run) -> Self {
        Hint {
            run: run.id.clone(),
            rev: run.rev,
            agent: run.agent.clone(),
            revision: run.pinned.then(|| run.revision.clone()),
            kind: if run.turn == 0 {
                HintKind::Start
            } else {
                HintKind::Resume
            },
            settlement: None,
        }
    }
}
