//! Everything that can happen to a run, and what it does.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;

use super::turn::{Opening, Plan, SavedTurn, limit_reached};
use super::{CallState, Lease, MAX_ATTEMPTS, RECORD_VERSION, Run, SET_ASIDE, Start, Status, Token};
use crate::agent::Limits;
use crate::ask::{By, Kind, Outcome, Settlement};
use crate::json;
use crate::time::Millis;
use crate::transcript::{CallEnd, JournalEntry, Message, Usage};
use crate::wire::Frame;

/// Everything that can happen to a run that exists.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A worker claims it.
    Leased {
        /// The worker's random part of the token.
        nonce: String,
        /// The end of the lease.
        until: Millis,
    },
    /// The model's turn is saved: message, asks, intents, or the end of the run.
    TurnSaved(SavedTurn),
    /// The calls of a turn that was saved at a limit are decided after a retry.
    Planned {
        /// One plan a call.
        plans: Vec<Plan>,
        /// The agent's limits now.
        limits: Limits,
    },
    /// Calls (by number) are about to be made: intents.
    CallsStarted(Vec<usize>),
    /// A call has its result.
    CallEnded {
        /// The call's number in the turn.
        call: usize,
        /// What the model reads.
        text: String,
        /// Whether it tells of a failure.
        failed: bool,
    },
    /// It is not known whether these calls were made; the starter is asked (SPEC 3.3).
    RedoAsked {
        /// Calls by number, each with the new ask's id.
        calls: Vec<(usize, String)>,
        /// How long the starter has.
        wait: Duration,
    },
    /// A caller settles an ask that [`Run::find_ask`] gave, with an answer that fits.
    Settled {
        /// The ask's id.
        ask: String,
        /// `Answered` or `Refused`.
        outcome: Outcome,
        /// The answer, as fitted.
        data: Option<Value>,
        /// The reason of a refusal.
        reason: Option<String>,
        /// Who.
        by: By,
        /// The command.
        cmd: Option<String>,
    },
    /// A caller saves one of several answers.
    Drafted {
        /// The ask's id.
        ask: String,
        /// Which question, from 1.
        n: u32,
        /// Its id.
        question: String,
        /// The answer, filled in.
        answer: Value,
    },
    /// The deadline of an ask has passed by the store's clock.
    Expired {
        /// The ask's id.
        ask: String,
    },
    /// The run cannot go on.
    Failed {
        /// Why.
        reason: String,
    },
    /// The starter or ops cancels it.
    Cancelled,
    /// A newer run of its thread takes its place.
    Superseded,
    /// The worker gives it back at once.
    Released,
    /// The worker gives it back; nobody may claim it before `until`.
    Postponed {
        /// When it may be claimed again.
        until: Millis,
        /// How often the next model call has been tried so far.
        tries: u32,
    },
    /// It has been due too long and nobody can take it.
    Stalled {
        /// Why nobody can.
        reason: String,
    },
    /// Its lease has run out.
    Reclaimed,
    /// The starter or ops retries a failed run.
    Retried {
        /// The agent's limits now.
        limits: Limits,
        /// Whether it is head of its thread again at once.
        head: bool,
        /// Ids for asks that open anew; at least as many as the turn has calls.
        ids: Vec<String>,
    },
    /// It has become head of its thread.
    Headed {
        /// The thread's next number: what ended before is what its model sees.
        earlier: u64,
    },
}

/// Why an event comes too late or does not apply: expected outcomes, not faults.
#[derive(Debug, Clone, PartialEq)]
pub enum Late {
    /// The run has no such ask.
    Unknown,
    /// The ask is settled already.
    Settled(Box<Settlement>),
    /// The ask's deadline has passed, though nobody has settled it: expire it first.
    Past(String),
    /// The run has ended (or, for a retry, has not failed).
    Over,
    /// The event does not belong to this state: the one who sent it has old knowledge.
    NotNow,
}

/// What an event did: the run after it, and all that has to be written with it.
#[derive(Debug, Clone, PartialEq)]
pub struct Moved {
    /// The run after the event, `rev` raised by one.
    pub run: Run,
    /// Messages to append to the transcript.
    pub messages: Vec<Message>,
    /// Journal entries to write, by step.
    pub journal: Vec<JournalEntry>,
    /// Which of the run's asks were opened or changed, by number.
    pub asks: BTreeSet<usize>,
    /// What its owner's screens are told, in order.
    pub frames: Vec<Frame>,
}

/// A move in the making.
pub(super) struct Moving {
    pub(super) run: Run,
    pub(super) messages: Vec<Message>,
    pub(super) journal: Vec<JournalEntry>,
    pub(super) asks: BTreeSet<usize>,
    pub(super) frames: Vec<Frame>,
}

impl Run {
    /// A new run. `head`: it is its thread's head, or has none; `earlier` as in
    /// [`Event::Headed`].
    pub fn start(start: Start, head: bool, earlier: u64, now: Millis) -> Moved {
        let text = json::text(&start.input);
        let run = Run {
            v: RECORD_VERSION,
            id: start.id,
            rev: 0,
            starter: start.starter,
            agent: start.agent,
            revision: start.revision,
            pinned: start.pinned,
            tell_expiry: start.tell_expiry,
            thread: start.thread,
            head,
            earlier: head.then_some(earlier),
            status: Status::Queued,
            reason: None,
            output: None,
            input: start.input,
            turn: 0,
            calls: Vec::new(),
            asked: 0,
            usage: Usage::default(),
            attempts: 0,
            tries: 0,
            not_before: Millis(0),
            fence: 0,
            lease: None,
            due_since: now,
            created: now,
            updated: now,
            ended: None,
            asks: Vec::new(),
        };
        let user = Frame::user(&run.id, &text);
        let mut moving = Moving::of(run);
        moving.messages.push(Message::User { text });
        let mut moved = moving.done(true, now);
        // PROTOCOL 7: the first run's status comes before its first message.
        moved.frames.push(user);
        moved
    }

    /// Decides one event. The run itself is left as it was.
    pub fn apply(&self, event: Event, now: Millis) -> Result<Moved, Late> {
        let before = self.status;
        let mut moving = Moving::of(self.clone());
        moving.decide(event, now)?;
        let told = moving.run.status != before
            || moving.run.status == Status::Failed
            || moving.run.reason != self.reason;
        Ok(moving.done(told, now))
    }

    fn expect(&self, allowed: &[Status]) -> Result<(), Late> {
        if allowed.contains(&self.status) {
            Ok(())
        } else if self.status.is_live() {
            Err(Late::NotNow)
        } else {
            Err(Late::Over)
        }
    }
}

impl Moving {
    fn of(run: Run) -> Self {
        Moving {
            run,
            messages: Vec::new(),
            journal: Vec::new(),
            asks: BTreeSet::new(),
            frames: Vec::new(),
        }
    }

    fn done(mut self, tell_status: bool, now: Millis) -> Moved {
        self.run.rev += 1;
        self.run.updated = now;
        if tell_status {
            self.frames.push(Frame::status(&self.run));
        }
        Moved {
            run: self.run,
            messages: self.messages,
            journal: self.journal,
            asks: self.asks,
            frames: self.frames,
        }
    }

    #[expect(
        clippy::too_many_lines,
        reason = "everything that can happen, on one screen"
    )]
    fn decide(&mut self, event: Event, now: Millis) -> Result<(), Late> {
        use Status::{Failed, Queued, Running, Stalled, Waiting};
        const LIVE: [Status; 4] = [Queued, Running, Waiting, Stalled];
        match event {
            Event::Leased { nonce, until } => {
                self.run.expect(&[Queued, Stalled])?;
                self.run.fence += 1;
                let token = Token {
                    fence: self.run.fence,
                    nonce,
                };
                self.run.lease = Some(Lease { token, until });
                self.run.status = Running;
                self.run.reason = None;
            }
            Event::TurnSaved(turn) => {
                self.run.expect(&[Running])?;
                let done = |call: &super::Call| call.state == CallState::Done;
                if !self.run.calls.iter().all(done) {
                    return Err(Late::NotNow);
                }
                self.save_turn(&turn);
                self.run.attempts = 0;
                self.run.tries = 0;
                let plans: Vec<Plan> = turn.calls.into_iter().map(|call| call.plan).collect();
                if plans.is_empty() {
                    self.run.output = Some(turn.text);
                    self.end(Status::Succeeded, None, now);
                } else if let Some(reason) =
                    limit_reached(self.run.turn, self.run.usage, &turn.limits)
                {
                    self.end(Failed, Some(reason), now);
                } else {
                    self.plan(plans, &turn.limits, now);
                    self.after_step();
                }
            }
            Event::Planned { plans, limits } => {
                self.run.expect(&[Running])?;
                let saved = |call: &super::Call| call.state == CallState::Saved;
                if plans.len() != self.run.calls.len() || !self.run.calls.iter().all(saved) {
                    return Err(Late::NotNow);
                }
                self.run.attempts = 0;
                self.plan(plans, &limits, now);
                self.after_step();
            }
            Event::CallsStarted(calls) => {
                self.run.expect(&[Running])?;
                for number in calls {
                    match self.run.calls.get(number).map(|call| &call.state) {
                        Some(CallState::Ready | CallState::Started { .. }) => {}
                        _ => return Err(Late::NotNow),
                    }
                    let frame = self.start_call(number);
                    self.frames.push(frame);
                }
            }
            Event::CallEnded { call, text, failed } => {
                self.run.expect(&[Running])?;
                match self.run.calls.get(call).map(|call| &call.state) {
                    Some(CallState::Started { .. } | CallState::Ready) => {}
                    _ => return Err(Late::NotNow),
                }
                let end = if failed {
                    CallEnd::Failed
                } else {
                    CallEnd::Done
                };
                let frame = self.end_call(call, text, end);
                self.frames.extend(frame);
                self.run.attempts = 0;
                self.after_step();
            }
            Event::RedoAsked { calls, wait } => {
                self.run.expect(&[Running])?;
                for (number, id) in calls {
                    match self.run.calls.get(number).map(|call| &call.state) {
                        Some(CallState::Started { .. }) => {}
                        _ => return Err(Late::NotNow),
                    }
                    let input = self.run.calls[number].input.clone();
                    let opening = Opening {
                        kind: Kind::Redo,
                        id,
                        input,
                        questions: 1,
                        editable: None,
                        deadline: now.after(wait),
                    };
                    self.open_ask(number, opening, now);
                }
                self.run.attempts = 0;
                self.after_step();
            }
            Event::Settled {
                ask,
                outcome,
                data,
                reason,
                by,
                cmd,
            } => {
                let number = self.open_at(&ask, now)?;
                let settlement = Settlement {
                    outcome,
                    by: Some(by),
                    at: now,
                    data,
                    reason,
                    cmd,
                };
                self.settle(number, settlement);
                self.after_settlement(now);
            }
            Event::Drafted {
                ask,
                n,
                question,
                answer,
            } => {
                let number = self.open_at(&ask, now)?;
                let ask = &mut self.run.asks[number];
                ask.drafts.insert(question, answer.clone());
                self.frames.push(Frame::draft(ask, n, answer));
                self.asks.insert(number);
            }
            Event::Expired { ask } => {
                let number = match self.open_at(&ask, now) {
                    Err(Late::Past(_)) => self.number_of(&ask).ok_or(Late::Unknown)?,
                    Err(late) => return Err(late),
                    Ok(_) => return Err(Late::NotNow),
                };
                self.settle(number, unasked(Outcome::Expired, now));
                self.after_settlement(now);
            }
            Event::Failed { reason } => {
                self.run.expect(&[Running])?;
                self.end(Failed, Some(reason), now);
            }
            Event::Cancelled => {
                self.run.expect(&LIVE)?;
                self.end(Status::Cancelled, None, now);
            }
            Event::Superseded => {
                self.run.expect(&[Waiting])?;
                self.settle_all(Outcome::Superseded, now);
                self.end(Status::Cancelled, Some("superseded".to_owned()), now);
            }
            Event::Released => {
                self.run.expect(&[Running])?;
                self.run.not_before = Millis(0);
                self.rest(now);
            }
            Event::Postponed { until, tries } => {
                self.run.expect(&[Running])?;
                self.run.tries = tries;
                self.run.not_before = until;
                self.rest(now);
            }
            Event::Stalled { reason } => {
                self.run.expect(&[Queued])?;
                self.run.status = Stalled;
                self.run.reason = Some(reason);
            }
            Event::Reclaimed => {
                self.run.expect(&[Running])?;
                if self
                    .run
                    .lease
                    .as_ref()
                    .is_some_and(|lease| lease.until > now)
                {
                    return Err(Late::NotNow);
                }
                self.run.attempts += 1;
                if self.run.attempts >= MAX_ATTEMPTS {
                    self.end(Failed, Some(SET_ASIDE.to_owned()), now);
                } else {
                    let wait = [0, 1, 5, 25][(self.run.attempts as usize - 1).min(3)];
                    self.run.not_before = now.after(Duration::from_secs(wait));
                    self.rest(now);
                }
            }
            Event::Retried { limits, head, ids } => {
                if self.run.status != Failed {
                    return Err(if self.run.status.is_live() {
                        Late::NotNow
                    } else {
                        Late::Over
                    });
                }
                self.retry(&limits, head, ids, now);
            }
            Event::Headed { earlier } => {
                self.run.expect(&[Queued])?;
                self.run.head = true;
                self.run.earlier.get_or_insert(earlier);
                self.rest(now);
            }
        }
        Ok(())
    }

    fn number_of(&self, ask: &str) -> Option<usize> {
        self.run.asks.iter().position(|kept| kept.id == ask)
    }

    fn open_at(&self, ask: &str, now: Millis) -> Result<usize, Late> {
        let number = self.number_of(ask).ok_or(Late::Unknown)?;
        let kept = &self.run.asks[number];
        match &kept.settled {
            Some(settlement) => Err(Late::Settled(Box::new(settlement.clone()))),
            None if now >= kept.deadline => Err(Late::Past(kept.id.clone())),
            None => Ok(number),
        }
    }

    /// Ends an ask and moves its call on.
    fn settle(&mut self, number: usize, settlement: Settlement) {
        let ask = &mut self.run.asks[number];
        let told = ask.tells(&settlement, self.run.tell_expiry);
        let call = ask.call;
        let granted = settlement.outcome == Outcome::Answered;
        let replaced = settlement.data.clone();
        ask.settled = Some(settlement);
        self.frames.push(Frame::settled(ask));
        self.asks.insert(number);
        // An ask of an earlier turn is settled with its call; only the current turn's move.
        if ask.turn != self.run.turn {
            return;
        }
        if let Some(text) = told {
            let end = if granted {
                CallEnd::Done
            } else {
                CallEnd::Failed
            };
            let frame = self.end_call(call, text, end);
            self.frames.extend(frame);
        } else if granted {
            let call = &mut self.run.calls[call];
            call.state = CallState::Ready;
            if let Some(input) = replaced {
                call.input = input;
            }
        }
    }

    fn settle_all(&mut self, outcome: Outcome, now: Millis) {
        for number in 0..self.run.asks.len() {
            if self.run.asks[number].is_open() {
                self.settle(number, unasked(outcome, now));
            }
        }
    }

    /// After a worker's step: only asks left means that nobody holds the run.
    fn after_step(&mut self) {
        if self.run.resting() == Status::Waiting {
            self.run.status = Status::Waiting;
            self.run.lease = None;
        }
    }

    /// After a settlement: a waiting run of which a call may now be made, or that has nothing
    /// left to wait for, is due. The holder of a running one decides by itself at its next commit.
    ///
    /// An approved call does not wait for the other asks of its turn: whoever approved it expects
    /// it to be done.
    fn after_settlement(&mut self, now: Millis) {
        if self.run.status == Status::Waiting && self.run.resting() == Status::Queued {
            self.run.status = Status::Queued;
            self.run.not_before = Millis(0);
            self.run.due_since = now;
        }
    }

    fn rest(&mut self, now: Millis) {
        self.run.lease = None;
        self.run.status = self.run.resting();
        self.run.due_since = now;
    }

    fn end(&mut self, status: Status, reason: Option<String>, now: Millis) {
        self.settle_all(Outcome::Cancelled, now);
        self.run.status = status;
        self.run.reason = reason;
        self.run.lease = None;
        self.run.ended = Some(now);
    }

    fn retry(&mut self, limits: &Limits, head: bool, ids: Vec<String>, now: Millis) {
        let turn_has_calls = !self.run.calls.is_empty();
        let over = turn_has_calls
            .then(|| limit_reached(self.run.turn, self.run.usage, limits))
            .flatten();
        if let Some(reason) = over {
            self.run.reason = Some(reason);
            return;
        }
        self.run.status = Status::Queued;
        self.run.reason = None;
        self.run.ended = None;
        self.run.attempts = 0;
        self.run.tries = 0;
        self.run.not_before = Millis(0);
        self.run.head = head;
        let mut ids = ids.into_iter();
        for number in 0..self.run.calls.len() {
            let CallState::Asking { ask } = &self.run.calls[number].state else {
                continue;
            };
            // Closed by the failure, so it opens anew with the next repeat.
            let closed = self.run.ask(ask).cloned();
            if let (Some(closed), Some(id)) = (closed, ids.next()) {
                let wait = closed.deadline.since(closed.opened);
                let opening = Opening {
                    kind: closed.kind,
                    id,
                    input: closed.input,
                    questions: closed.questions,
                    editable: closed.editable,
                    deadline: now.after(wait),
                };
                self.open_ask(number, opening, now);
            }
        }
        self.rest(now);
    }
}

fn unasked(outcome: Outcome, at: Millis) -> Settlement {
    Settlement {
        outcome,
        by: None,
        at,
        data: None,
        reason: None,
        cmd: None,
    }
}
