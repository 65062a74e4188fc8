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

#[cfg(test)]
mod tests {
    use serde_json::json;
    use uuid::Uuid;

    use super::*;
    use crate::caller::Starter;
    use crate::ports::{CommandKey, CommandWrite};
    use crate::run::{Run, Start};

    const NOW: Millis = Millis(1_000);

    fn commit(by: Committer, clock: Clock) -> Commit {
        let start = Start {
            id: RunId::new(0, Uuid::nil()),
            starter: ada(),
            agent: "asker".into(),
            revision: "r1".into(),
            pinned: false,
            tell_expiry: false,
            thread: None,
            input: json!("hi"),
        };
        Commit::of(by, clock, Run::start(start, true, 0, NOW))
    }

    fn ada() -> Starter {
        Starter {
            sub: "ada".into(),
            system: false,
        }
    }

    fn token(fence: u64, nonce: &str) -> Token {
        Token {
            fence,
            nonce: nonce.into(),
        }
    }

    fn worker(token: Token, op: u64) -> Committer {
        Committer::Worker {
            run: RunId::new(0, Uuid::nil()),
            token,
            op,
        }
    }

    fn reply() -> Committed {
        Committed {
            now: Millis(7),
            seq: 7,
            online: Vec::new(),
        }
    }

    /// A store that has none of the commit's runs, where the first worker holds the run.
    fn standing() -> Standing {
        Standing {
            holder: Some(token(1, "a")),
            last_op: Some(LastOp {
                token: token(1, "a"),
                op: 1,
                reply: reply(),
            }),
            runs: vec![0],
            ..Standing::default()
        }
    }

    #[test]
    fn a_time_limit_is_met_to_the_millisecond() {
        let of = |clock| verdict(&commit(Committer::Sweeper, clock), &standing(), NOW);
        let untimely = Some(Committing::Untimely(NOW));
        assert_eq!(of(Clock::Any), None);
        assert_eq!(of(Clock::Before(Millis(1_001))), None);
        assert_eq!(of(Clock::Before(NOW)), untimely);
        assert_eq!(of(Clock::From(NOW)), None);
        assert_eq!(of(Clock::From(Millis(1_001))), untimely);
    }

    #[test]
    fn a_worker_is_known_by_its_whole_token_and_op() {
        let of = |token, op| verdict(&commit(worker(token, op), Clock::Any), &standing(), NOW);
        assert_eq!(of(token(1, "a"), 1), Some(Committing::Done(reply())));
        assert_eq!(of(token(1, "a"), 2), None);
        assert_eq!(of(token(1, "b"), 1), Some(Committing::Lost));
        assert_eq!(of(token(2, "a"), 1), Some(Committing::Lost));
        let nobody = Standing {
            holder: None,
            ..standing()
        };
        let again = commit(worker(token(1, "a"), 1), Clock::Any);
        let done = Some(Committing::Done(reply()));
        assert_eq!(verdict(&again, &nobody, NOW), done);
        let next = commit(worker(token(1, "a"), 2), Clock::Any);
        assert_eq!(verdict(&next, &nobody, NOW), Some(Committing::Lost));
    }

    #[test]
    fn each_check_comes_before_the_next() {
        let stale = Standing {
            runs: vec![5],
            command: Some(CommandRecord {
                digest: "d".into(),
                reply: json!({}),
                seq: 3,
            }),
            ..standing()
        };
        let never = Clock::Before(Millis(0));
        let of = |by| verdict(&commit(by, never), &stale, NOW);
        assert_eq!(
            of(worker(token(1, "a"), 1)),
            Some(Committing::Done(reply()))
        );
        assert_eq!(of(worker(token(9, "x"), 1)), Some(Committing::Lost));
        assert_eq!(of(worker(token(1, "a"), 2)), Some(Committing::Conflict));
        assert_eq!(of(Committer::Sweeper), Some(Committing::Conflict));
        let caller = Committer::Caller(CommandWrite {
            key: CommandKey {
                caller: ada(),
                run: None,
                cmd: "c".into(),
            },
            digest: "d".into(),
            reply: json!({}),
        });
        assert!(matches!(of(caller), Some(Committing::Known(_))));
    }

    #[test]
    fn every_revision_counts() {
        let commit = commit(Committer::Sweeper, Clock::Any);
        let of = |runs: Vec<u64>| {
            let standing = Standing { runs, ..standing() };
            verdict(&commit, &standing, NOW)
        };
        assert_eq!(of(vec![0]), None);
        for runs in [vec![1], vec![], vec![0, 0], vec![u64::MAX]] {
            assert_eq!(of(runs), Some(Committing::Conflict));
        }
    }
}
