//! A person's command on its way through a gateway, as the gateway's calls go: read, known
//! command, which ask, still waits, fit, commit; read again after a conflict.

use askwell_shared::id::RunId;
use askwell_shared::ports::{Clock, CommandKey, CommandRecord, Commit, Committer, Committing};
use askwell_shared::run::{Event, Late, Run, Status};
use askwell_shared::thread::Thread;
use askwell_shared::time::Millis;

use crate::broken::{Broken, Invariant, must};
use crate::kept::Kept;
use crate::reading::{Reading, starter};
use crate::rules::{Mistake, Rules, Want, run_id};
use crate::world::{Action, Answered, World};

/// A command and how far it is. A gateway keeps nothing, so which of them has it makes no
/// difference: two commands under way are two gateways.
#[derive(Clone, Hash, Default)]
pub(crate) struct Client {
    /// How often it was sent.
    sent: u8,
    at: At,
    /// The `ok` that the client has seen.
    pub(crate) ok: Option<(String, u64)>,
    /// It was told that the ask is settled (T0003).
    pub(crate) too_late: bool,
}

#[derive(Clone, Hash, Default)]
enum At {
    /// Nothing was sent yet, or the gateway reads again.
    #[default]
    Reading,
    /// The gateway has read the run.
    Read(Kept<Run>, Millis),
    /// The gateway has read the thread, and the run if the command names one.
    ReadThread(Option<(Kept<Run>, Millis)>, Option<Kept<Thread>>),
    /// It has all it needs to commit.
    Ready(Reading),
    /// The deadline has passed: it expires the ask first.
    Expiring(Kept<Run>, String, Millis),
    /// The client has its reply.
    Told,
}

impl Want {
    pub(crate) fn run(self) -> Option<RunId> {
        match self {
            Want::Answer(run, ..)
            | Want::Approve(run, ..)
            | Want::Refuse(run, ..)
            | Want::Cancel(run)
            | Want::Retry(run) => Some(run_id(run)),
            Want::Start => None,
        }
    }

    pub(crate) fn ask(self) -> Option<(&'static str, u32)> {
        match self {
            Want::Answer(_, step, repeat)
            | Want::Approve(_, step, repeat)
            | Want::Refuse(_, step, repeat) => Some((step, repeat)),
            _ => None,
        }
    }

    /// Whether a person sees something that makes them want it.
    fn is_sensible(self, world: &World) -> bool {
        let Some(run) = self.run() else { return true };
        let Some(run) = world.store.run(&run) else {
            return false;
        };
        match self {
            Want::Cancel(_) => run.status.is_live(),
            Want::Retry(_) => run.status == Status::Failed,
            _ => {
                let (step, repeat) = self.ask().unwrap();
                let asked = |ask: &&askwell_shared::ask::Ask| ask.step == step;
                run.asks
                    .iter()
                    .filter(asked)
                    .any(|ask| ask.repeat == repeat)
            }
        }
    }
}

/// The answer that only the client of this number gives.
pub(crate) fn answer_of(number: usize) -> String {
    format!("answer {number}")
}

/// The command of the client of this number.
pub(crate) fn command_of(number: usize) -> String {
    format!("cmd-{number}")
}

impl Client {
    pub(crate) fn moves(&self, number: usize, want: Want, world: &World, into: &mut Vec<Action>) {
        let unsent = matches!(self.at, At::Reading) && self.sent == 0;
        let over = matches!(self.at, At::Told);
        if !over && (!unsent || want.is_sensible(world)) {
            into.push(Action::Client(number, Answered::Yes));
        }
    }

    pub(crate) fn chances(&self, number: usize, world: &World, into: &mut Vec<Action>) {
        match self.at {
            At::Ready(_) => {
                if world.budget.replies > 0 {
                    into.push(Action::Client(number, Answered::Lost));
                }
                if world.budget.gateways > 0 {
                    into.push(Action::Client(number, Answered::GatewayDied));
                }
            }
            At::Told if self.ok.is_some() && world.budget.repeats > 0 => {
                into.push(Action::Repeat(number));
            }
            _ => {}
        }
    }

    /// The client sends its command again though it was answered.
    pub(crate) fn repeat(&mut self) {
        self.sent += 1;
        self.at = At::Reading;
    }

    fn tell(&mut self, number: usize, record: &CommandRecord) -> Result<(), Broken> {
        let reply = (record.reply.to_string(), record.seq);
        let before = self.ok.replace(reply.clone());
        self.at = At::Told;
        must(
            before.is_none() || before == Some(reply.clone()),
            Invariant::SameReply,
            || format!("{}: {before:?}, then {reply:?}", command_of(number)),
        )
    }

    fn refuse(&mut self, number: usize, too_late: bool) -> Result<(), Broken> {
        self.at = At::Told;
        self.too_late |= too_late;
        must(self.ok.is_none(), Invariant::SameReply, || {
            format!("{}: ok, then refused", command_of(number))
        })
    }
}

/// The next step of a command.
pub(crate) fn go_on(
    world: &mut World,
    number: usize,
    rules: &Rules,
    answered: Answered,
) -> Result<(), Broken> {
    let want = rules.people[number];
    let key = CommandKey {
        caller: starter(),
        run: want.run(),
        cmd: command_of(number),
    };
    let mut client = world.clients[number].clone();
    client.sent = client.sent.max(1);
    match client.at.clone() {
        At::Reading => match want.run() {
            None if rules.threaded => {
                client.at = At::ReadThread(None, world.store.thread.clone());
            }
            None => client.at = At::Ready(Reading::of(world, None)),
            Some(run) => {
                if let Some(record) = world.store.command(&key) {
                    client.tell(number, &record)?;
                } else {
                    let run = world.store.run(&run).unwrap();
                    client.read(number, want, run, world, rules)?;
                }
            }
        },
        At::Read(run, now) => {
            client.at = At::ReadThread(Some((run, now)), world.store.thread.clone());
        }
        At::ReadThread(run, thread) => {
            let second = thread.as_ref().and_then(|thread| thread.second());
            let second = second.and_then(|id| world.store.run(id));
            let mut reading = Reading::of(world, run.map(|(run, _)| run));
            if reading.run.is_none() {
                let head = thread.as_ref().and_then(|thread| thread.head());
                reading.run = head.and_then(|id| world.store.run(id));
            }
            reading.second = second;
            reading.thread = thread;
            client.at = At::Ready(reading);
        }
        At::Expiring(run, ask, now) => {
            let deadline = run.ask(&ask).unwrap().deadline;
            if let Ok(moved) = run.apply(Event::Expired { ask }, now) {
                let clock = Clock::From(deadline);
                world.commit(&Commit::of(Committer::Sweeper, clock, moved), rules)?;
            }
            client.at = At::Reading;
        }
        At::Ready(reading) => {
            let sent = client.sent;
            match reading.commit(want, &key, number, sent, rules) {
                Ok(None) => client.at = At::Reading,
                Err(too_late) => client.refuse(number, too_late)?,
                Ok(Some(commit)) => {
                    let reply = world.commit(&commit, rules)?;
                    client.hear(number, reply, &commit, answered, world)?;
                }
            }
        }
        At::Told => {}
    }
    world.clients[number] = client;
    Ok(())
}

impl Client {
    /// What follows from the run as it was read.
    fn read(
        &mut self,
        number: usize,
        want: Want,
        run: Kept<Run>,
        world: &World,
        rules: &Rules,
    ) -> Result<(), Broken> {
        if let Some((step, repeat)) = want.ask() {
            match run.find_ask(step, repeat, world.now) {
                Ok(_) => {}
                Err(Late::Past(ask)) => {
                    self.at = At::Expiring(run, ask, world.now);
                    return Ok(());
                }
                Err(Late::Settled(_)) if rules.mistake == Some(Mistake::NoOpenCheck) => {}
                Err(late) => return self.refuse(number, matches!(late, Late::Settled(_))),
            }
        } else if rules.threaded {
            self.at = At::Read(run, world.now);
            return Ok(());
        }
        self.at = At::Ready(Reading::of(world, Some(run)));
        Ok(())
    }

    fn hear(
        &mut self,
        number: usize,
        reply: Committing,
        commit: &Commit,
        answered: Answered,
        world: &mut World,
    ) -> Result<(), Broken> {
        match answered {
            // The gateway repeats the same op: nothing it knows has changed.
            Answered::Lost => world.budget.replies -= 1,
            Answered::GatewayDied => {
                world.budget.gateways -= 1;
                self.repeat();
            }
            Answered::Yes => match reply {
                Committing::Done(done) => {
                    let Committer::Caller(write) = &commit.by else {
                        unreachable!("a caller's commit");
                    };
                    let record = CommandRecord {
                        digest: write.digest.clone(),
                        reply: write.reply.clone(),
                        seq: done.seq,
                    };
                    self.tell(number, &record)?;
                }
                Committing::Known(record) => self.tell(number, &record)?,
                Committing::Conflict | Committing::Lost | Committing::Untimely(_) => {
                    self.at = At::Reading;
                }
            },
        }
        Ok(())
    }
}
