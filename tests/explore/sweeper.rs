//! The sweeper: hints what is ready, expires, reclaims. It reads, and commits a step later.

use askwell_shared::id::RunId;
use askwell_shared::ports::{Clock, Commit, Committer};
use askwell_shared::run::{Claim, Event, Run, Status};
use askwell_shared::time::Millis;

use crate::broken::Broken;
use crate::hold::Ending;
use crate::kept::Kept;
use crate::rules::{Mistake, Rules};
use crate::world::{Action, World};

/// The sweeper.
#[derive(Clone, Hash, Default)]
pub(crate) enum Sweeper {
    /// Between two looks.
    #[default]
    Idle,
    /// Has read a run that is due.
    Read(Due, Kept<Run>, Millis),
    /// And the thread of a run that this ends.
    Gathered(Due, Kept<Run>, Millis, Ending),
}

/// What is due.
#[derive(Debug, Clone, Hash)]
pub(crate) enum Due {
    /// A hint.
    Hint(RunId),
    /// The end of an ask.
    Expiry(RunId, String),
    /// The end of a lease.
    Reclaim(RunId),
    /// Nobody can take a run.
    Stall(RunId),
}

impl Sweeper {
    pub(crate) fn moves(&self, world: &World, rules: &Rules, into: &mut Vec<Action>) {
        if !matches!(self, Sweeper::Idle) {
            into.push(Action::SweepOn);
            return;
        }
        let is_due = |at: &Millis| *at <= world.now;
        for record in &world.store.runs {
            let run = &record.run;
            for (ask, deadline) in run.indexes().open {
                if is_due(&deadline) {
                    into.push(Action::Sweep(Due::Expiry(run.id.clone(), ask)));
                }
            }
            if record.lease.as_ref().is_some_and(is_due) {
                into.push(Action::Sweep(Due::Reclaim(run.id.clone())));
            }
            if record.ready.as_ref().is_some_and(is_due)
                && rules.mistake != Some(Mistake::NoHintAgain)
            {
                into.push(Action::Sweep(Due::Hint(run.id.clone())));
            }
        }
    }
}

/// Whether the sweeper may find that nobody can take a run.
pub(crate) fn chances(world: &World, into: &mut Vec<Action>) {
    if world.budget.stalls == 0 || !matches!(world.sweeper, Sweeper::Idle) {
        return;
    }
    for record in &world.store.runs {
        let run = &record.run;
        if run.status == Status::Queued && run.claim(world.now) == Claim::Free {
            into.push(Action::Sweep(Due::Stall(run.id.clone())));
        }
    }
}

/// Looks at what is due.
pub(crate) fn sweep(world: &mut World, due: &Due) {
    match due {
        Due::Hint(id) => {
            world.store.take_ready(id, world.now);
            if world.store.run(id).unwrap().claim(world.now) == Claim::Free {
                world.put_hint(id);
            }
        }
        Due::Expiry(id, _) | Due::Reclaim(id) | Due::Stall(id) => {
            world.budget.stalls -= u8::from(matches!(due, Due::Stall(_)));
            let run = world.store.run(id).unwrap();
            world.sweeper = Sweeper::Read(due.clone(), run, world.now);
        }
    }
}

/// Commits what was due when it was read.
pub(crate) fn go_on(world: &mut World, rules: &Rules) -> Result<(), Broken> {
    let (due, run, now, ending) = match std::mem::take(&mut world.sweeper) {
        Sweeper::Idle => return Ok(()),
        Sweeper::Read(due, run, now) => (due, run, now, None),
        Sweeper::Gathered(due, run, now, ending) => (due, run, now, Some(ending)),
    };
    let (event, clock) = match &due {
        Due::Hint(_) => return Ok(()),
        Due::Expiry(_, ask) => {
            let deadline = run.ask(ask).map_or(now, |ask| ask.deadline);
            (Event::Expired { ask: ask.clone() }, Clock::From(deadline))
        }
        Due::Stall(_) => {
            let reason = "no live worker".to_owned();
            (Event::Stalled { reason }, Clock::Any)
        }
        Due::Reclaim(_) => {
            let Some(until) = run.lease.as_ref().map(|lease| lease.until) else {
                return Ok(());
            };
            (Event::Reclaimed, Clock::From(until))
        }
    };
    let Ok(moved) = run.apply(event, now) else {
        return Ok(());
    };
    let by = Committer::Sweeper;
    let commit = match ending {
        None if run.thread.is_some() && !moved.run.status.is_live() => {
            let ending = world.ending(&run.id);
            world.sweeper = Sweeper::Gathered(due, run, now, ending);
            return Ok(());
        }
        None => Commit::of(by, clock, moved),
        Some((thread, second)) => match thread.end(moved, second.as_deref(), now) {
            Ok(moved) => Commit::of_thread(by, clock, moved),
            Err(_) => return Ok(()),
        },
    };
    world.commit(&commit, rules)?;
    Ok(())
}
