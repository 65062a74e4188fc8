//! A store in memory, checked by the real order of checks ([`verdict`]).

use std::time::Duration;

use askwell_shared::id::RunId;
use askwell_shared::ports::{
    CommandKey, CommandRecord, Commit, Committed, Committer, Committing, LastOp, Standing,
    push_wait, verdict,
};
use askwell_shared::run::{Claim, Event, Moved, Run, Token};
use askwell_shared::thread::Thread;
use askwell_shared::time::Millis;
use askwell_shared::transcript::Transcript;

use crate::broken::{Broken, Invariant, must};
use crate::kept::Kept;
use crate::rules::{Mistake, TICK};

/// The store.
#[derive(Clone, Hash, Default)]
pub(crate) struct Store {
    /// By id.
    pub(crate) runs: Vec<Kept<Record>>,
    /// The only thread.
    pub(crate) thread: Option<Kept<Thread>>,
    /// By key.
    commands: Vec<Kept<Carried>>,
    /// The owner's head.
    seq: u64,
}

/// A command's key, and what is kept of it: digest, reply, `seq`.
type Carried = (String, String, String, u64);

/// A run as it is stored.
#[derive(Clone, Hash)]
pub(crate) struct Record {
    pub(crate) run: Kept<Run>,
    pub(crate) transcript: Kept<Transcript>,
    /// The newest op of a worker, with its reply.
    pub(crate) last_op: Option<(Token, u64, Millis, u64)>,
    /// The index `ready`: when the sweeper hints next, after so many hints.
    pub(crate) ready: Option<Millis>,
    pushes: u32,
    /// The index `leases`.
    pub(crate) lease: Option<Millis>,
}

/// What a claim was told.
pub(crate) struct Leased {
    pub(crate) run: Kept<Run>,
    pub(crate) transcript: Kept<Transcript>,
}

impl Store {
    /// The record of this run.
    pub(crate) fn record(&self, id: &RunId) -> Option<&Kept<Record>> {
        self.runs.iter().find(|record| record.run.id == *id)
    }

    /// The run with its asks. The end of its lease is that of the index, which a renewal moves.
    pub(crate) fn run(&self, id: &RunId) -> Option<Kept<Run>> {
        let record = self.record(id)?;
        let known = record.run.lease.as_ref().map(|lease| lease.until);
        if known == record.lease {
            return Some(record.run.clone());
        }
        let mut run = Run::clone(&record.run);
        if let (Some(lease), Some(until)) = (&mut run.lease, record.lease) {
            lease.until = until;
        }
        Some(Kept::new(run))
    }

    /// Whether a command was carried out before.
    pub(crate) fn command(&self, key: &CommandKey) -> Option<CommandRecord> {
        let text = key.text();
        let known = self.commands.iter().find(|known| known.0 == text)?;
        Some(CommandRecord {
            digest: known.1.clone(),
            reply: serde_json::from_str(&known.2).unwrap(),
            seq: known.3,
        })
    }

    /// The same nonce gets the same lease, within the lease's time; nobody takes an expired one.
    pub(crate) fn lease(
        &mut self,
        id: &RunId,
        nonce: &str,
        ttl: Duration,
        now: Millis,
    ) -> Option<Leased> {
        let run = self.run(id)?;
        let held = run.lease.as_ref();
        let same = held.is_some_and(|lease| lease.token.nonce == nonce && lease.until > now);
        if !same {
            if run.claim(now) != Claim::Free {
                return None;
            }
            let nonce = nonce.to_owned();
            let until = now.after(ttl);
            let moved = run.apply(Event::Leased { nonce, until }, now).ok()?;
            self.seq += moved.frames.len() as u64;
            self.write(&moved);
        }
        let record = self.record(id)?;
        Some(Leased {
            run: self.run(id)?,
            transcript: record.transcript.clone(),
        })
    }

    /// Makes a lease hold longer that is not over. No revision changes.
    pub(crate) fn renew(
        &mut self,
        id: &RunId,
        token: &Token,
        now: Millis,
        mistake: Option<Mistake>,
    ) -> bool {
        let Some(number) = self.runs.iter().position(|record| record.run.id == *id) else {
            return false;
        };
        let mut record = Record::clone(&self.runs[number]);
        let over = record.lease.is_none_or(|until| until <= now);
        let held = record.run.lease.as_ref().map(|lease| &lease.token) == Some(token);
        if !held || (over && mistake != Some(Mistake::LateRenewal)) {
            return false;
        }
        record.lease = Some(now.after(TICK));
        self.runs[number] = Kept::new(record);
        true
    }

    /// Writes a commit, or says why not.
    pub(crate) fn commit(
        &mut self,
        commit: &Commit,
        now: Millis,
        mistake: Option<Mistake>,
    ) -> Result<Committing, Broken> {
        let standing = self.standing(commit, mistake);
        if let Some(reply) = verdict(commit, &standing, now) {
            return Ok(reply);
        }
        self.check_right(commit, now)?;
        for moved in &commit.runs {
            self.write(moved);
            if mistake == Some(Mistake::SharedOpSlot) {
                self.set_last_op(&moved.run.id, None);
            }
        }
        if let Some(thread) = &commit.thread {
            self.thread = Some(Kept::new(thread.clone()));
        }
        let frames = commit.runs.iter().flat_map(|moved| &moved.frames);
        self.seq += frames.count() as u64;
        let seq = self.seq;
        match &commit.by {
            Committer::Worker { run, token, op } => {
                self.set_last_op(run, Some((token.clone(), *op, now, seq)));
            }
            Committer::Caller(command) => {
                let key = command.key.text();
                let reply = command.reply.to_string();
                let kept = (key, command.digest.clone(), reply, seq);
                if mistake != Some(Mistake::CommandsIgnored) {
                    self.commands.push(Kept::new(kept));
                    self.commands.sort_by(|a, b| a.0.cmp(&b.0));
                }
            }
            Committer::Sweeper => {}
        }
        let online = Vec::new();
        Ok(Committing::Done(Committed { now, seq, online }))
    }

    /// Takes a ready run that is due; its next hint comes later.
    pub(crate) fn take_ready(&mut self, id: &RunId, now: Millis) {
        self.change(id, |record| {
            record.ready = Some(now.after(push_wait(record.pushes)));
            record.pushes += 1;
        });
    }

    fn standing(&self, commit: &Commit, mistake: Option<Mistake>) -> Standing {
        let mut standing = Standing::default();
        match &commit.by {
            Committer::Worker { run, token, .. } => {
                if let Some(record) = self.record(run) {
                    standing.last_op = record.last_op.clone().map(last_op);
                    standing.holder = record.run.lease.as_ref().map(|lease| lease.token.clone());
                }
                if mistake == Some(Mistake::NoTokenCheck) {
                    standing.holder = Some(token.clone());
                }
            }
            Committer::Caller(command) => standing.command = self.command(&command.key),
            Committer::Sweeper => {}
        }
        let revs = commit.runs.iter();
        standing.runs = revs
            .map(|moved| self.record(&moved.run.id).map_or(0, |held| held.run.rev))
            .collect();
        standing.thread = self.thread.as_ref().map_or(0, |thread| thread.rev);
        standing
    }

    /// Whoever writes as a worker holds the run. A lease goes by its holder, by the end of the
    /// run, or by the sweeper once it is over.
    fn check_right(&self, commit: &Commit, now: Millis) -> Result<(), Broken> {
        if let Committer::Worker { run, token, .. } = &commit.by {
            let held = self.record(run).and_then(|record| record.run.lease.clone());
            let holder = held.map(|lease| lease.token);
            return must(holder.as_ref() == Some(token), Invariant::OldFence, || {
                format!("{token:?} saves {run}, which {holder:?} holds")
            });
        }
        for moved in &commit.runs {
            let run = &moved.run;
            let until = self.record(&run.id).and_then(|record| record.lease);
            let over = commit.by == Committer::Sweeper && until.is_some_and(|until| until <= now);
            must(
                until.is_none() || over || run.lease.is_some() || !run.status.is_live(),
                Invariant::LeaseHolds,
                || {
                    format!(
                        "{} is taken at {now:?} from a holder until {until:?}",
                        run.id
                    )
                },
            )?;
        }
        Ok(())
    }

    fn write(&mut self, moved: &Moved) {
        let run = &moved.run;
        let at = self.runs.iter().position(|kept| kept.run.id >= run.id);
        let at = at.unwrap_or(self.runs.len());
        let before = self.runs.get(at).filter(|kept| kept.run.id == run.id);
        let mut transcript = before.map_or_else(Transcript::default, |kept| {
            Transcript::clone(&kept.transcript)
        });
        append(&mut transcript, moved);
        let indexes = run.indexes();
        let token = |run: &Run| run.lease.as_ref().map(|lease| lease.token.clone());
        let lease = match before {
            // Whoever writes under the same token may know an older end of the lease.
            Some(kept) if token(&kept.run) == token(run) => kept.lease,
            _ => indexes.lease,
        };
        let record = Kept::new(Record {
            last_op: before.and_then(|kept| kept.last_op.clone()),
            run: Kept::new(run.clone()),
            transcript: Kept::new(transcript),
            ready: indexes.ready,
            pushes: 0,
            lease,
        });
        if before.is_some() {
            self.runs[at] = record;
        } else {
            self.runs.insert(at, record);
        }
    }

    fn set_last_op(&mut self, id: &RunId, last_op: Option<(Token, u64, Millis, u64)>) {
        self.change(id, |record| record.last_op = last_op);
    }

    fn change(&mut self, id: &RunId, change: impl FnOnce(&mut Record)) {
        if let Some(kept) = self.runs.iter_mut().find(|record| record.run.id == *id) {
            let mut record = Record::clone(kept);
            change(&mut record);
            *kept = Kept::new(record);
        }
    }
}

/// Adds what an event wrote to a conversation.
pub(crate) fn append(transcript: &mut Transcript, moved: &Moved) {
    transcript.messages.extend(moved.messages.iter().cloned());
    for entry in &moved.journal {
        let known = transcript.journal.iter_mut();
        match known.into_iter().find(|known| known.step == entry.step) {
            Some(known) => *known = entry.clone(),
            None => transcript.journal.push(entry.clone()),
        }
    }
}

fn last_op((token, op, now, seq): (Token, u64, Millis, u64)) -> LastOp {
    let online = Vec::new();
    let reply = Committed { now, seq, online };
    LastOp { token, op, reply }
}
