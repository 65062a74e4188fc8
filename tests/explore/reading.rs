//! What a gateway makes of what it has read: the commit of a command, or a refusal.

use askwell_shared::ask::{By, Fitted, Outcome};
use askwell_shared::caller::Starter;
use askwell_shared::ports::{Clock, CommandKey, CommandWrite, Commit, Committer};
use askwell_shared::run::{CallState, Event, Late, Moved, Run, Start, Status};
use askwell_shared::thread::Thread;
use askwell_shared::time::Millis;
use serde_json::{Value, json};

use crate::client::{answer_of, command_of};
use crate::kept::Kept;
use crate::rules::{Mistake, Rules, Want, run_id};
use crate::world::World;

/// The name of the only thread.
pub(crate) const THREAD: &str = "t";

/// What a gateway has read.
#[derive(Clone, Hash)]
pub(crate) struct Reading {
    pub(crate) now: Millis,
    pub(crate) run: Option<Kept<Run>>,
    pub(crate) thread: Option<Kept<Thread>>,
    pub(crate) second: Option<Kept<Run>>,
}

/// Who starts and answers everything.
pub(crate) fn starter() -> Starter {
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

impl Reading {
    pub(crate) fn of(world: &World, run: Option<Kept<Run>>) -> Self {
        Reading {
            now: world.now,
            run,
            thread: None,
            second: None,
        }
    }

    /// The commit; `Ok(None)`: what was read does not fit together, `Err`: the caller is refused,
    /// `true` as too late.
    pub(crate) fn commit(
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
        let (outcome, data) = if matches!(want, Want::Refuse(..)) {
            (Outcome::Refused, None)
        } else {
            let given = matches!(want, Want::Answer(..));
            let given = given.then(|| Value::from(answer_of(number)));
            match ask.fit(None, given.as_ref()) {
                Ok(Fitted::Settles(data)) => (Outcome::Answered, data),
                other => unreachable!("{other:?}"),
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
