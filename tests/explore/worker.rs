//! A worker, step by step as `worker/src/hold.rs` and `worker/src/advance.rs` go: claim, decide,
//! act, commit, read again after a conflict, repeat the same op while its outcome is not known.

use std::collections::BTreeSet;

use askwell_shared::id::RunId;
use askwell_shared::ports::{Clock, Commit, Committed, Committing};
use askwell_shared::run::{CallState, Next};
use askwell_shared::time::Millis;
use askwell_shared::transcript::Transcript;

use crate::broken::{Broken, Invariant, must};
use crate::hold::{Deed, Doing, Hold};
use crate::invariants;
use crate::kept::Kept;
use crate::rules::{Mistake, Rules, TICK};
use crate::store::{Leased, append};
use crate::world::{Action, World};

/// A worker. Which of several it is makes no difference.
#[derive(Clone, Hash, Default)]
pub(crate) struct Worker {
    at: At,
}

#[derive(Clone, Hash, Default)]
enum At {
    #[default]
    Idle,
    /// The claim's reply was lost; it is repeated with the same nonce until then.
    Claiming(RunId, String, Millis),
    Holding(Kept<Hold>),
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

    pub(crate) fn is_idle(&self) -> bool {
        matches!(self.at, At::Idle)
    }

    pub(crate) fn drop_all(&mut self) {
        self.at = At::Idle;
    }

    /// When a worker that repeats its claim gives up.
    pub(crate) fn gives_up_at(&self) -> Option<Millis> {
        match &self.at {
            At::Claiming(_, _, until) => Some(*until),
            _ => None,
        }
    }
}

/// Takes a hint and claims its run. The hint is gone before the claim is made.
pub(crate) fn take(
    world: &mut World,
    number: usize,
    run: &RunId,
    lost: bool,
    rules: &Rules,
) -> Result<(), Broken> {
    world.take_hint(run);
    let nonce = format!("n{}", world.nonces);
    let leased = world.store.lease(run, &nonce, TICK, world.now);
    if lost {
        world.nonces += 1;
        world.budget.replies -= 1;
        let until = world.now.after(TICK);
        world.workers[number].at = At::Claiming(run.clone(), nonce, until);
        return Ok(());
    }
    if leased.is_some() {
        world.nonces += 1;
    }
    hold(world, number, leased, rules)
}

/// Claims again with the same nonce, no longer than the first claim could hold.
pub(crate) fn claim_again(world: &mut World, number: usize, rules: &Rules) -> Result<(), Broken> {
    let At::Claiming(run, nonce, until) = world.workers[number].at.clone() else {
        return Ok(());
    };
    let mut leased = None;
    if world.now < until {
        leased = world.store.lease(&run, &nonce, TICK, world.now);
    }
    hold(world, number, leased, rules)
}

fn hold(
    world: &mut World,
    number: usize,
    leased: Option<Leased>,
    rules: &Rules,
) -> Result<(), Broken> {
    let hold = leased.map(|Leased { run, transcript }| Hold {
        token: run.lease.clone().unwrap().token,
        run,
        transcript,
        op: 0,
        made: 0,
        intents: BTreeSet::new(),
        spawned: BTreeSet::new(),
        running: BTreeSet::new(),
        doing: Doing::Deciding,
    });
    decide_at_once(world, number, hold, rules)
}

/// Keeps what a worker holds by now. Where there is one thing to decide and nobody sees it, it is
/// decided with the reply that made it possible.
fn decide_at_once(
    world: &mut World,
    number: usize,
    hold: Option<Hold>,
    rules: &Rules,
) -> Result<(), Broken> {
    let Some(hold) = hold else {
        world.workers[number].keep(None);
        return Ok(());
    };
    let deeds = match hold.doing {
        Doing::Deciding => hold.deeds(rules),
        _ => Vec::new(),
    };
    let chances = world.budget.pauses + world.budget.failures + world.budget.drains;
    let open = hold.run.next() == Next::Model && chances > 0;
    let gives_up = matches!(hold.doing, Doing::Deciding) && deeds.is_empty();
    world.workers[number].keep(Some(hold).filter(|_| !gives_up));
    match &deeds[..] {
        [Deed::Make(_)] => Ok(()),
        [deed] if !open => decide(world, number, deed, rules),
        _ => Ok(()),
    }
}

impl Worker {
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

pub(crate) fn renew(world: &mut World, number: usize, rules: &Rules) {
    world.budget.renewals -= 1;
    let hold = world.workers[number].held();
    let id = &hold.run.id;
    let (now, mistake) = (world.now, rules.mistake);
    if !world.store.renew(id, &hold.token, now, mistake) {
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
            return decide_at_once(world, number, Some(hold), rules);
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
    // Not at once: a deed that does not apply any more is looked at again in a step of its own.
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
            if let Ok(moved) = thread.end(moved, second.as_deref(), at) {
                let commit = Commit::of_thread(hold.by(), Clock::Any, moved);
                commit_deed(world, hold, (deed, at, written), &commit, lost, rules)?
            } else {
                // As a conflict: another thread than this was read.
                hold.doing = Doing::Reading(deed);
                Some(hold)
            }
        }
    };
    decide_at_once(world, number, hold, rules)
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
