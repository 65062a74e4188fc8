//! A world: a store, hints, workers, people and a sweeper, and all that can happen between them.

use std::collections::BTreeMap;

use askwell_shared::id::RunId;
use askwell_shared::ports::{Clock, Commit, Committer, Committing};
use askwell_shared::run::{Claim, Run};
use askwell_shared::thread::Thread;
use askwell_shared::time::Millis;

use crate::broken::Broken;
use crate::client::{self, Client};
use crate::explorer::{Game, Moves, hash};
use crate::hold::{Deed, Ending};
use crate::invariants;
use crate::kept::Kept;
use crate::reading::{THREAD, start_of};
use crate::rules::{Budget, Rules, TICK};
use crate::store::Store;
use crate::sweeper::{self, Due, Sweeper};
use crate::worker::{self, Worker};

/// More hints of a run than this are as good as this many.
const MOST_HINTS: u8 = 2;

/// A state of a world.
#[derive(Clone, Hash)]
pub(crate) struct World {
    /// The store's clock.
    pub(crate) now: Millis,
    pub(crate) store: Store,
    /// Hints under way.
    pub(crate) hints: BTreeMap<RunId, u8>,
    pub(crate) workers: Vec<Worker>,
    /// Nonces used.
    pub(crate) nonces: u8,
    pub(crate) clients: Vec<Client>,
    pub(crate) sweeper: Sweeper,
    /// What may still happen.
    pub(crate) budget: Budget,
    /// How often each call was made, in the world outside.
    pub(crate) made: Kept<BTreeMap<(RunId, String), u8>>,
}

/// Whether a gateway hears the reply to its commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answered {
    /// It does.
    Yes,
    /// The reply is lost.
    Lost,
    /// It dies first.
    GatewayDied,
}

/// Something that happens.
#[derive(Debug, Clone)]
pub(crate) enum Action {
    /// The clock ticks.
    Tick,
    /// The clock goes to when something is due, since nothing else can be done.
    Wait(Millis),
    /// A command's next step.
    Client(usize, Answered),
    /// A client sends its answered command again.
    Repeat(usize),
    /// A worker takes a hint and claims; `true`: the reply is lost.
    Take(usize, RunId, bool),
    /// A worker repeats its claim.
    ClaimAgain(usize),
    /// A holder decides.
    Decide(usize, Deed),
    /// A holder's next step; `true`: the reply is lost.
    GoOn(usize, bool),
    /// A holder has nothing more to do.
    Drop(usize),
    /// A worker loses all it has.
    Crash(usize),
    /// A holder renews its lease.
    Renew(usize),
    /// The sweeper looks at something due.
    Sweep(Due),
    /// The sweeper commits.
    SweepOn,
    /// A hint is lost.
    LoseHint(RunId),
    /// A hint comes twice.
    DoubleHint(RunId),
}

impl World {
    /// Commits, and hints what has become due.
    pub(crate) fn commit(&mut self, commit: &Commit, rules: &Rules) -> Result<Committing, Broken> {
        let reply = self.store.commit(commit, self.now, rules.mistake)?;
        if let Committing::Done(done) = &reply {
            for moved in &commit.runs {
                if moved.run.claim(done.now) == Claim::Free {
                    self.put_hint(&moved.run.id);
                }
            }
        }
        Ok(reply)
    }

    pub(crate) fn put_hint(&mut self, run: &RunId) {
        let hints = self.hints.entry(run.clone()).or_default();
        *hints = MOST_HINTS.min(*hints + 1);
    }

    pub(crate) fn take_hint(&mut self, run: &RunId) {
        if let Some(hints) = self.hints.get_mut(run) {
            *hints -= 1;
            if *hints == 0 {
                self.hints.remove(run);
            }
        }
    }

    /// The thread of a run that ends, and who comes next in it.
    pub(crate) fn ending(&self, run: &RunId) -> Ending {
        let thread = self.store.thread.clone().unwrap();
        let next = thread.second().filter(|_| thread.head() == Some(run));
        let second = next.and_then(|next| self.store.run(next));
        (thread, second)
    }

    pub(crate) fn made(&mut self, run: &RunId, step: &str) {
        let mut made = BTreeMap::clone(&self.made);
        *made.entry((run.clone(), step.to_owned())).or_default() += 1;
        self.made = Kept::new(made);
    }

    /// When something is due next.
    fn due(&self) -> Option<Millis> {
        let records = self.store.runs.iter();
        let of_runs = records.flat_map(|record| {
            let indexes = record.run.indexes();
            let deadlines = indexes.open.into_iter().map(|(_, deadline)| deadline);
            deadlines.chain(record.lease).chain(record.ready)
        });
        let of_workers = self.workers.iter().filter_map(Worker::gives_up_at);
        let due = of_runs
            .chain(of_workers)
            .filter(|at| *at > self.now)
            .min()?;
        let tick = i64::try_from(TICK.as_millis()).unwrap();
        // The clock of these worlds stands on whole ticks.
        Some(Millis((due.0 + tick - 1) / tick * tick))
    }
}

impl Game for Rules {
    type State = World;
    type Action = Action;

    fn start(&self) -> World {
        let mut world = World {
            now: Millis(0),
            store: Store::default(),
            hints: BTreeMap::new(),
            workers: vec![Worker::default(); self.workers],
            nonces: 0,
            clients: vec![Client::default(); self.people.len()],
            sweeper: Sweeper::default(),
            budget: self.budget,
            made: Kept::new(BTreeMap::new()),
        };
        for number in 1..=self.runs {
            let start = start_of(number, self);
            let by = Committer::Sweeper;
            let clock = Clock::Any;
            let moved = Run::start(start.clone(), true, 0, world.now);
            let commit = if self.threaded {
                let new = || Thread::new(moved.run.owner(), THREAD.to_owned());
                let thread = world.store.thread.as_deref().cloned();
                let thread = thread.unwrap_or_else(new);
                let head = thread.head().and_then(|id| world.store.run(id));
                let started =
                    thread.start(start, self.on_message, head.as_deref(), None, world.now);
                Commit::of_thread(by, clock, started.unwrap())
            } else {
                Commit::of(by, clock, moved)
            };
            world.commit(&commit, self).unwrap();
        }
        world
    }

    fn moves(&self, world: &World) -> Moves<Action> {
        let mut by_itself = Vec::new();
        let mut by_chance = Vec::new();
        let mut idle = 0;
        for (number, worker) in world.workers.iter().enumerate() {
            idle += u8::from(worker.is_idle());
            if worker.is_idle() && idle > 1 {
                // As good as the one before.
                continue;
            }
            worker.moves(number, world, self, &mut by_itself);
            worker.chances(number, world, &mut by_chance);
        }
        for (number, client) in world.clients.iter().enumerate() {
            client.moves(number, self.people[number], world, &mut by_itself);
            client.chances(number, world, &mut by_chance);
        }
        world.sweeper.moves(world, self, &mut by_itself);
        if by_itself.is_empty() {
            by_itself.extend(world.due().map(Action::Wait));
        }
        sweeper::chances(world, &mut by_chance);
        if world.budget.ticks > 0 {
            by_chance.push(Action::Tick);
        }
        for hinted in world.hints.keys() {
            if world.budget.hints > 0 {
                by_chance.push(Action::LoseHint(hinted.clone()));
            }
            if world.budget.doubles > 0 {
                by_chance.push(Action::DoubleHint(hinted.clone()));
            }
        }
        Moves {
            by_itself,
            by_chance,
        }
    }

    fn step(&self, before: &World, action: &Action) -> Result<World, Broken> {
        let mut world = before.clone();
        match action {
            Action::Tick => {
                world.budget.ticks -= 1;
                world.now = world.now.after(TICK);
            }
            Action::Wait(until) => world.now = *until,
            Action::Client(number, answered) => {
                client::go_on(&mut world, *number, self, *answered)?;
            }
            Action::Repeat(number) => {
                world.budget.repeats -= 1;
                world.clients[*number].repeat();
            }
            Action::Take(number, run, lost) => {
                worker::take(&mut world, *number, run, *lost, self)?;
            }
            Action::ClaimAgain(number) => worker::claim_again(&mut world, *number, self)?,
            Action::Decide(number, deed) => worker::decide(&mut world, *number, deed, self)?,
            Action::GoOn(number, lost) => worker::go_on(&mut world, *number, *lost, self)?,
            Action::Drop(number) => world.workers[*number].drop_all(),
            Action::Crash(number) => {
                world.budget.crashes -= 1;
                world.workers[*number].drop_all();
            }
            Action::Renew(number) => worker::renew(&mut world, *number, self),
            Action::Sweep(due) => sweeper::sweep(&mut world, due),
            Action::SweepOn => sweeper::go_on(&mut world, self)?,
            Action::LoseHint(run) => {
                world.budget.hints -= 1;
                world.take_hint(run);
            }
            Action::DoubleHint(run) => {
                world.budget.doubles -= 1;
                world.put_hint(run);
            }
        }
        invariants::between(before, &world)?;
        invariants::in_state(before, &world, self)?;
        world.workers.sort_by_cached_key(hash);
        Ok(world)
    }

    fn end(&self, world: &World) -> Result<(), Broken> {
        invariants::at_the_end(world)
    }
}
