//! A person's command on its way through a gateway, as the gateway's calls go: read, known
//! command, which ask, still waits, fit, commit; read again after a conflict.

use askwell_shared::ask::{By, Fitted, Outcome};
use askwell_shared::caller::Starter;
use askwell_shared::id::RunId;
use askwell_shared::ports::{
    Clock, CommandKey, CommandRecord, CommandWrite, Commit, Committer, Committing,
};
use askwell_shared::run::{CallState, Event, Late, Moved, Run, Start, Status};
use askwell_shared::thread::Thread;
use askwell_shared::time::Millis;
use serde_json::{Value, json};

use crate::broken::{Broken, Invariant, must};
use crate::kept::Kept;
use crate::rules::{Mistake, Rules, Want, run_id};
use crate::world::{Action, Answered, World};

/// The name of the only thread.
pub(crate) const THREAD: &str = "t";

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

#[derive(Clone, Hash)]
struct Reading {
    now: Millis,
    run: Option<Kept<Run>>,
    thread: Option<Kept<Thread>>,
    second: Option<Kept<Run>>,
}

impl Want {
    fn run(self) -> Option<RunId> {
        match self {
            Want::Answer(run, ..)
            | Want::Approve(run, ..)
            | Want::Refuse(run, ..)
            | Want::Cancel(run)
            | Want::Retry(run) => Some(run_id(run)),
            Want::Start => None,
        }
    }

    fn ask(self) -> Option<(&'static str, u32)> {
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

fn starter() -> Starter {
    Starter {
        sub: "ada".to_owned(),
        system: false,
    }
}

/// What a run of this number starts with.
pub(crate) fn start_of(number: u8, rules: &Rules) -> Start {
    Start {
        id: run_id(number),
        starter: starter(),
        agent: "asker".to_owned(),
        revision: "r1".to_owned(),
        pinned: false,
        tell_expiry: false,
        thread: rules.threaded.then(|| THREAD.to_owned()),
        input: json!("hello"),
    }
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

impl Reading {
    fn of(world: &World, run: Option<Kept<Run>>) -> Self {
        Reading {
            now: world.now,
            run,
            thread: None,
            second: None,
        }
    }

    /// The commit; `Ok(None)`: what was read does not fit together, `Err`: the caller is refused,
    /// `true` as too late.
    fn commit(
        &self,
        want: Want,
        key: &CommandKey,
        number: usize,
        sent: u8,
        rules: &Rules,
    ) -> Result<Option<Commit>, bool> {
        let by = |reply: Value| {
            Committer::Caller(CommandWrite {
                key: key.clone(),
                digest: key.cmd.clone(),
                reply,
            })
        };
        let now = self.now;
        let changed = |run: &Run, status: Status| by(json!({"run": run.id, "status": status}));
        match want {
            Want::Start => {
                // Another sending is another id: a gateway makes it anew.
                let id = 16 * (1 + u8::try_from(number).unwrap()) + sent;
                let start = start_of(id, rules);
                let by = by(json!({"run": start.id, "status": "queued"}));
                if !rules.threaded {
                    let moved = Run::start(start, true, 0, now);
                    return Ok(Some(Commit::of(by, Clock::Any, moved)));
                }
                let new = || {
                    Thread::new(
                        Run::start(start.clone(), true, 0, now).run.owner(),
                        THREAD.to_owned(),
                    )
                };
                let thread = self.thread.as_deref().cloned().unwrap_or_else(new);
                let (head, second) = (self.run.as_deref(), self.second.as_deref());
                let moved = thread.start(start, rules.on_message, head, second, now);
                let Ok(mut moved) = moved else {
                    return Ok(None);
                };
                if rules.mistake == Some(Mistake::TwoHeads) {
                    moved.runs.last_mut().unwrap().run.head = true;
                }
                Ok(Some(Commit::of_thread(by, Clock::Any, moved)))
            }
            Want::Cancel(_) => {
                let run = self.run.as_ref().unwrap();
                let moved = run.apply(Event::Cancelled, now).map_err(|_| false)?;
                let by = changed(run, moved.run.status);
                let Some(thread) = &self.thread else {
                    return Ok(Some(Commit::of(by, Clock::Any, moved)));
                };
                let is_head = thread.head() == Some(&run.id);
                let second = self.second.as_deref().filter(|_| is_head);
                let moved = thread.end(moved, second, now).ok();
                Ok(moved.map(|moved| Commit::of_thread(by, Clock::Any, moved)))
            }
            Want::Retry(_) => {
                let run = self.run.as_ref().unwrap();
                let ids = (0..run.calls.len()).map(|call| format!("{}.{sent}.{call}", key.cmd));
                let retry = |head| Event::Retried {
                    limits: rules.limits(),
                    head,
                    ids: ids.collect(),
                };
                let by = changed(run, Status::Queued);
                let Some(thread) = &self.thread else {
                    let moved = run.apply(retry(true), now).map_err(|_| false)?;
                    return Ok(Some(Commit::of(by, Clock::Any, moved)));
                };
                let moved = thread.rejoin(run, retry, now).map_err(|_| false)?;
                Ok(Some(Commit::of_thread(by, Clock::Any, moved)))
            }
            Want::Answer(..) | Want::Approve(..) | Want::Refuse(..) => {
                self.settle(want, number, by, rules)
            }
        }
    }

    fn settle(
        &self,
        want: Want,
        number: usize,
        by: impl FnOnce(Value) -> Committer,
        rules: &Rules,
    ) -> Result<Option<Commit>, bool> {
        let (step, repeat) = want.ask().unwrap();
        let mut run = Run::clone(self.run.as_ref().unwrap());
        if rules.mistake == Some(Mistake::NoOpenCheck) {
            open_again(&mut run, step, repeat);
        }
        let ask = run.find_ask(step, repeat, self.now).map_err(|_| false)?;
        let (outcome, data) = match want {
            Want::Refuse(..) => (Outcome::Refused, None),
            _ => {
                let given = matches!(want, Want::Answer(..));
                let given = given.then(|| Value::from(answer_of(number)));
                match ask.fit(None, given.as_ref()) {
                    Ok(Fitted::Settles(data)) => (Outcome::Answered, data),
                    other => unreachable!("{other:?}"),
                }
            }
        };
        let reply = json!({"run": run.id, "step": step, "repeat": repeat, "outcome": outcome});
        let deadline = ask.deadline;
        let event = Event::Settled {
            ask: ask.id.clone(),
            outcome,
            data,
            reason: None,
            by: By {
                sub: starter().sub,
                device: None,
            },
            cmd: Some(command_of(number)),
        };
        let mut moved = match run.apply(event, self.now) {
            Ok(moved) => moved,
            Err(Late::NotNow | Late::Past(_)) => return Ok(None),
            Err(late) => return Err(matches!(late, Late::Settled(_))),
        };
        if rules.mistake == Some(Mistake::SettledWhileRunningQueues) {
            queue(&run, &mut moved);
        }
        Ok(Some(Commit::of(by(reply), Clock::Before(deadline), moved)))
    }
}

/// Planted: the settlement forgets that a worker holds the run.
fn queue(before: &Run, moved: &mut Moved) {
    if before.status == Status::Running {
        moved.run.status = Status::Queued;
        moved.run.lease = None;
    }
}

/// Planted: the ask is taken for open whatever became of it.
fn open_again(run: &mut Run, step: &str, repeat: u32) {
    let mut asks = run.asks.iter_mut();
    let ask = asks.find(|ask| ask.step == step && ask.repeat == repeat);
    let ask = ask.unwrap();
    ask.settled = None;
    if ask.turn == run.turn {
        run.calls[ask.call].state = CallState::Asking {
            ask: ask.id.clone(),
        };
    }
}
