//! A worker, step by step as `worker/src/hold.rs` and `worker/src/advance.rs` go: claim, decide,
//! act, commit, read again after a conflict, repeat the same op while its outcome is not known.

use std::collections::BTreeSet;

use askwell_shared::ask::Kind;
use askwell_shared::id::RunId;
use askwell_shared::ports::{Clock, Commit, Committed, Committer, Committing};
use askwell_shared::run::{
    CallState, Event, Late, Next, Plan, Run, SavedCall, SavedTurn, Status, Token,
};
use askwell_shared::thread::Thread;
use askwell_shared::time::Millis;
use askwell_shared::transcript::{Transcript, Usage};
use serde_json::json;

use crate::broken::{Broken, Invariant, must};
use crate::invariants;
use crate::kept::Kept;
use crate::rules::{Call, Mistake, Rules, TICK, idempotent};
use crate::store::{Leased, append};
use crate::world::{Action, World};

/// A worker.
#[derive(Clone, Hash, Default)]
pub(crate) struct Worker {
    /// How many leases it was given: each has a nonce of its own.
    leases: u8,
    at: At,
}

#[derive(Clone, Hash, Default)]
enum At {
    #[default]
    Idle,
    /// The claim's reply was lost; it is repeated with the same nonce until then.
    Claiming(RunId, Millis),
    Holding(Kept<Hold>),
}

/// A run that a worker holds, or believes it holds.
#[derive(Clone, Hash)]
pub(crate) struct Hold {
    pub(crate) run: Kept<Run>,
    pub(crate) transcript: Kept<Transcript>,
    pub(crate) token: Token,
    op: u64,
    /// Model calls made under this lease.
    made: u8,
    intents: BTreeSet<usize>,
    spawned: BTreeSet<usize>,
    running: BTreeSet<usize>,
    doing: Doing,
}

#[derive(Clone, Hash)]
enum Doing {
    /// Looks what comes next.
    Deciding,
    /// Has decided at this time; `Some`: the op was carried out, but its reply was lost.
    Decided(Deed, Millis, Option<(Millis, u64)>),
    /// As before, and has read the thread of the run that ends.
    Gathered(Deed, Millis, Option<(Millis, u64)>, Ending),
    /// Reads the run again.
    Reading(Deed),
    /// Reads its conversation again.
    ReadingOn(Deed),
}

/// A thread, and the run that comes next in it.
pub(crate) type Ending = (Kept<Thread>, Option<Kept<Run>>);

/// What a worker decides to do.
#[derive(Debug, Clone, Hash)]
pub(crate) enum Deed {
    /// Calls the model and saves this turn; the text is unique to the model call.
    Turn(u32, String),
    /// Gives the run back until then, since the model is away.
    Pause(Millis),
    /// Fails the run, since the model will never do.
    Fail,
    /// Journals intents.
    Start(Vec<usize>),
    /// Asks about calls of unknown outcome; the text makes the new asks' ids unique.
    Redo(Vec<usize>, String),
    /// Makes a call. No commit.
    Make(usize),
    /// Saves a result.
    End(usize),
    /// Gives the run back.
    Release,
}

impl Worker {
    /// What it can do by itself.
    pub(crate) fn moves(
        &self,
        number: usize,
        world: &World,
        rules: &Rules,
        into: &mut Vec<Action>,
    ) {
        match &self.at {
            At::Idle => {
                let hinted = world.hints.keys().cloned();
                into.extend(hinted.map(|run| Action::Take(number, run, false)));
            }
            At::Claiming(..) => into.push(Action::ClaimAgain(number)),
            At::Holding(hold) => match &hold.doing {
                Doing::Deciding => {
                    let deeds = hold.deeds(rules);
                    if deeds.is_empty() {
                        into.push(Action::Drop(number));
                    }
                    let decide = |deed| Action::Decide(number, deed);
                    into.extend(deeds.into_iter().map(decide));
                }
                Doing::Decided(..)
                | Doing::Gathered(..)
                | Doing::Reading(_)
                | Doing::ReadingOn(_) => into.push(Action::GoOn(number, false)),
            },
        }
    }

    /// What may happen to it.
    pub(crate) fn chances(&self, number: usize, world: &World, into: &mut Vec<Action>) {
        let budget = &world.budget;
        match &self.at {
            At::Idle if budget.replies > 0 => {
                let hinted = world.hints.keys().cloned();
                into.extend(hinted.map(|run| Action::Take(number, run, true)));
            }
            At::Idle => {}
            At::Claiming(..) => {
                if budget.crashes > 0 {
                    into.push(Action::Crash(number));
                }
            }
            At::Holding(hold) => {
                if budget.crashes > 0 {
                    into.push(Action::Crash(number));
                }
                if budget.renewals > 0 {
                    into.push(Action::Renew(number));
                }
                match &hold.doing {
                    Doing::Deciding if hold.run.next() == Next::Model => {
                        let mut chance = |left: u8, deed| {
                            if left > 0 {
                                into.push(Action::Decide(number, deed));
                            }
                        };
                        let until = world.now.after(TICK * 2);
                        chance(budget.pauses, Deed::Pause(until));
                        chance(budget.failures, Deed::Fail);
                        chance(budget.drains, Deed::Release);
                    }
                    Doing::Decided(..) | Doing::Gathered(..) if budget.replies > 0 => {
                        into.push(Action::GoOn(number, true));
                    }
                    _ => {}
                }
            }
        }
    }

    pub(crate) fn drop_all(&mut self) {
        self.at = At::Idle;
    }

    /// When a worker that repeats its claim gives up.
    pub(crate) fn gives_up_at(&self) -> Option<Millis> {
        match &self.at {
            At::Claiming(_, until) => Some(*until),
            _ => None,
        }
    }
}

/// Takes a hint and claims its run. The hint is gone before the claim is made.
pub(crate) fn take(world: &mut World, number: usize, run: &RunId, lost: bool) {
    world.take_hint(run);
    let leased = claim(world, number, run);
    if lost {
        world.budget.replies -= 1;
        let until = world.now.after(TICK);
        world.workers[number].at = At::Claiming(run.clone(), until);
    } else {
        world.workers[number].hold(leased);
    }
}

/// Claims again with the same nonce, no longer than the first claim could hold.
pub(crate) fn claim_again(world: &mut World, number: usize) {
    let At::Claiming(run, until) = world.workers[number].at.clone() else {
        return;
    };
    let leased = (world.now < until)
        .then(|| claim(world, number, &run))
        .flatten();
    if leased.is_none() {
        // Whatever became of it, the nonce is never used again.
        world.workers[number].leases += 1;
    }
    world.workers[number].hold(leased);
}

fn claim(world: &mut World, number: usize, run: &RunId) -> Option<Leased> {
    let nonce = format!("w{number}.{}", world.workers[number].leases);
    world.store.lease(run, &nonce, TICK, world.now)
}

impl Worker {
    fn hold(&mut self, leased: Option<Leased>) {
        self.at = match leased {
            None => At::Idle,
            Some(Leased { run, transcript }) => {
                self.leases += 1;
                let token = run.lease.clone().unwrap().token;
                At::Holding(Kept::new(Hold {
                    run,
                    transcript,
                    token,
                    op: 0,
                    made: 0,
                    intents: BTreeSet::new(),
                    spawned: BTreeSet::new(),
                    running: BTreeSet::new(),
                    doing: Doing::Deciding,
                }))
            }
        };
    }

    fn held(&self) -> Hold {
        match &self.at {
            At::Holding(hold) => Hold::clone(hold),
            _ => unreachable!("only a holder does this"),
        }
    }

    fn keep(&mut self, hold: Option<Hold>) {
        self.at = hold.map_or(At::Idle, |hold| At::Holding(Kept::new(hold)));
    }
}

pub(crate) fn renew(world: &mut World, number: usize) {
    world.budget.renewals -= 1;
    let hold = world.workers[number].held();
    let until = world.now.after(TICK);
    if !world.store.renew(&hold.run.id, &hold.token, until) {
        world.workers[number].keep(None);
    }
}

/// Decides: from here on the worker is bound to this deed.
pub(crate) fn decide(
    world: &mut World,
    number: usize,
    deed: &Deed,
    rules: &Rules,
) -> Result<(), Broken> {
    let mut hold = world.workers[number].held();
    if hold.run.next() != Next::Calls {
        hold.spawned.clear();
    }
    match deed {
        Deed::Make(call) => {
            invariants::making(world, &hold, *call)?;
            let step = &hold.run.calls[*call].step;
            world.made(&hold.run.id, step);
            hold.spawned.insert(*call);
            hold.running.insert(*call);
            world.workers[number].keep(Some(hold));
            return Ok(());
        }
        Deed::Turn(..) => {
            invariants::calling_the_model(&hold)?;
            hold.made += 1;
        }
        Deed::Pause(_) => world.budget.pauses -= 1,
        Deed::Fail => world.budget.failures -= 1,
        Deed::End(call) => {
            hold.running.remove(call);
        }
        Deed::Release if hold.run.next() == Next::Model => world.budget.drains -= 1,
        _ => {}
    }
    hold.op += 1;
    let hold = hold.decided(deed.clone(), world.now, None, rules);
    world.workers[number].keep(hold);
    Ok(())
}

/// The next step of a deed.
pub(crate) fn go_on(
    world: &mut World,
    number: usize,
    lost: bool,
    rules: &Rules,
) -> Result<(), Broken> {
    let mut hold = world.workers[number].held();
    let hold = match hold.doing.clone() {
        Doing::Deciding => Some(hold),
        Doing::Reading(deed) => {
            let read = world.store.run(&hold.run.id).filter(|run| {
                let mine = run.lease.as_ref().map(|lease| &lease.token) == Some(&hold.token);
                mine || rules.mistake == Some(Mistake::NoTokenCheck)
            });
            read.and_then(|run| {
                let moved_on = run.rev != hold.run.rev;
                hold.run = run;
                if moved_on {
                    hold.doing = Doing::ReadingOn(deed);
                    Some(hold)
                } else {
                    hold.decided(deed, world.now, None, rules)
                }
            })
        }
        Doing::ReadingOn(deed) => {
            let record = world.store.record(&hold.run.id).unwrap();
            hold.transcript = record.transcript.clone();
            hold.decided(deed, world.now, None, rules)
        }
        Doing::Decided(deed, at, written) => {
            let moved = hold.run.apply(hold.event(&deed, rules), at).unwrap();
            if moved.run.thread.is_some() && !moved.run.status.is_live() {
                let ending = world.ending(&hold.run.id);
                hold.doing = Doing::Gathered(deed, at, written, ending);
                Some(hold)
            } else {
                let commit = Commit::of(hold.by(), Clock::Any, moved);
                commit_deed(world, hold, (deed, at, written), &commit, lost, rules)?
            }
        }
        Doing::Gathered(deed, at, written, (thread, second)) => {
            let moved = hold.run.apply(hold.event(&deed, rules), at).unwrap();
            match thread.end(moved, second.as_deref(), at) {
                Ok(moved) => {
                    let commit = Commit::of_thread(hold.by(), Clock::Any, moved);
                    commit_deed(world, hold, (deed, at, written), &commit, lost, rules)?
                }
                // As a conflict: another thread than this was read.
                Err(_) => {
                    hold.doing = Doing::Reading(deed);
                    Some(hold)
                }
            }
        }
    };
    world.workers[number].keep(hold);
    Ok(())
}

type Decided = (Deed, Millis, Option<(Millis, u64)>);

fn commit_deed(
    world: &mut World,
    mut hold: Hold,
    (deed, at, written): Decided,
    commit: &Commit,
    lost: bool,
    rules: &Rules,
) -> Result<Option<Hold>, Broken> {
    let reply = world.commit(commit, rules)?;
    if let Some((now, seq)) = written {
        let online = Vec::new();
        let recorded = Committing::Done(Committed { now, seq, online });
        // Only a newer holder's first op may take the slot.
        let fence = world.store.run(&hold.run.id).unwrap().fence;
        must(
            reply == recorded || (reply == Committing::Lost && fence > hold.token.fence),
            Invariant::SameOp,
            || format!("{recorded:?}, then {reply:?}"),
        )?;
    }
    if lost {
        world.budget.replies -= 1;
        let written = match reply {
            Committing::Done(done) => Some((done.now, done.seq)),
            _ => written,
        };
        return Ok(hold.decided(deed, world.now, written, rules));
    }
    Ok(match reply {
        Committing::Done(_) => {
            let event = hold.event(&deed, rules);
            let moved = hold.run.apply(event, at).unwrap();
            let mut transcript = Transcript::clone(&hold.transcript);
            append(&mut transcript, &moved);
            hold.transcript = Kept::new(transcript);
            hold.run = Kept::new(moved.run);
            match deed {
                Deed::Turn(..) => {
                    let calls = hold.run.calls.iter().enumerate();
                    let started = |call: &CallState| matches!(call, CallState::Started { .. });
                    hold.intents = calls
                        .filter(|(_, call)| started(&call.state))
                        .map(|(number, _)| number)
                        .collect();
                }
                Deed::Start(calls) => hold.intents.extend(calls),
                _ => {}
            }
            hold.doing = Doing::Deciding;
            Some(hold)
        }
        Committing::Conflict => {
            hold.doing = Doing::Reading(deed);
            Some(hold)
        }
        Committing::Lost | Committing::Known(_) | Committing::Untimely(_) => None,
    })
}

impl Hold {
    fn by(&self) -> Committer {
        Committer::Worker {
            run: self.run.id.clone(),
            token: self.token.clone(),
            op: self.op,
        }
    }

    /// Takes up a deed where the run still allows it, looks again where it does not now, and
    /// drops the run where it never will.
    fn decided(
        mut self,
        deed: Deed,
        at: Millis,
        written: Option<(Millis, u64)>,
        rules: &Rules,
    ) -> Option<Hold> {
        match self.run.apply(self.event(&deed, rules), at) {
            Ok(_) => self.doing = Doing::Decided(deed, at, written),
            Err(Late::NotNow) => {
                self.spawned.clear();
                self.running.clear();
                self.doing = Doing::Deciding;
            }
            Err(_) => return None,
        }
        Some(self)
    }

    fn deeds(&self, rules: &Rules) -> Vec<Deed> {
        match self.run.next() {
            Next::Model => {
                let text = format!("m{}.{}", self.token.nonce, self.made);
                vec![Deed::Turn(self.run.turn + 1, text)]
            }
            Next::Plan => unreachable!("no world has a limit"),
            Next::Calls => self.calls(rules),
            Next::Nothing if self.run.status == Status::Running => vec![Deed::Release],
            Next::Nothing => Vec::new(),
        }
    }

    fn calls(&self, rules: &Rules) -> Vec<Deed> {
        let mut start = Vec::new();
        let mut redo = Vec::new();
        for (number, call) in self.run.calls.iter().enumerate() {
            let known = self.intents.contains(&number) || self.spawned.contains(&number);
            match call.state {
                CallState::Ready => start.push(number),
                CallState::Started { .. } if known => {}
                CallState::Started { .. }
                    if idempotent(&call.tool) || rules.mistake == Some(Mistake::NoRedo) =>
                {
                    start.push(number);
                }
                CallState::Started { .. } => redo.push(number),
                _ => {}
            }
        }
        if !redo.is_empty() {
            return vec![Deed::Redo(redo, format!("r{}", self.token.nonce))];
        }
        if !start.is_empty() {
            return vec![Deed::Start(start)];
        }
        let started = |number: &&usize| {
            let call = self.run.calls.get(**number);
            call.is_some_and(|call| matches!(call.state, CallState::Started { .. }))
        };
        let mut unmade = self.intents.iter().filter(started);
        match unmade.find(|number| !self.spawned.contains(number)) {
            Some(number) => vec![Deed::Make(*number)],
            None => self
                .running
                .iter()
                .map(|number| Deed::End(*number))
                .collect(),
        }
    }

    fn event(&self, deed: &Deed, rules: &Rules) -> Event {
        let limits = rules.limits();
        match deed {
            Deed::Turn(turn, text) => Event::TurnSaved(SavedTurn {
                text: text.clone(),
                calls: self.turn(*turn, text, rules),
                raw: None,
                usage: Usage::default(),
                limits,
            }),
            Deed::Pause(until) => Event::Postponed {
                until: *until,
                tries: self.run.tries + 1,
            },
            Deed::Fail => Event::Failed {
                reason: "model: 400".to_owned(),
            },
            Deed::Start(calls) => Event::CallsStarted(calls.clone()),
            Deed::Redo(calls, id) => Event::RedoAsked {
                calls: calls
                    .iter()
                    .map(|number| (*number, format!("{id}.{number}")))
                    .collect(),
                wait: limits.ask,
            },
            Deed::Make(_) => unreachable!("a call is made without a commit"),
            Deed::End(call) => Event::CallEnded {
                call: *call,
                text: "done".to_owned(),
                failed: false,
            },
            Deed::Release => Event::Released,
        }
    }

    fn turn(&self, turn: u32, text: &str, rules: &Rules) -> Vec<SavedCall> {
        let calls = (rules.script)(&self.run.id, turn);
        let saved = calls.iter().enumerate().map(|(number, call)| {
            let ask = |kind| Plan::Ask {
                kind,
                id: format!("{text}.{number}"),
                input: json!({"question": "?"}),
                questions: 1,
                editable: None,
            };
            SavedCall {
                call: format!("c{number}"),
                tool: call.tool().to_owned(),
                input: json!({}),
                plan: match call {
                    Call::Question => ask(Kind::Question),
                    Call::Send => ask(Kind::Approval),
                    Call::Look | Call::Pay => Plan::Call,
                },
            }
        });
        saved.collect()
    }
}
