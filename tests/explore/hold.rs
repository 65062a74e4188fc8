//! What a worker holds and what it decides, as `worker/src/advance.rs` does: from the run alone
//! follows the deed, from the deed the event.

use std::collections::BTreeSet;

use askwell_shared::ask::Kind;
use askwell_shared::ports::Committer;
use askwell_shared::run::{
    CallState, Event, Late, Next, Plan, Run, SavedCall, SavedTurn, Status, Token,
};
use askwell_shared::thread::Thread;
use askwell_shared::time::Millis;
use askwell_shared::transcript::{Transcript, Usage};
use serde_json::json;

use crate::kept::Kept;
use crate::rules::{Call, Mistake, Rules, idempotent};

/// A run that a worker holds, or believes it holds.
#[derive(Clone, Hash)]
pub(crate) struct Hold {
    pub(crate) run: Kept<Run>,
    pub(crate) transcript: Kept<Transcript>,
    pub(crate) token: Token,
    pub(crate) op: u64,
    /// Model calls made under this lease.
    pub(crate) made: u8,
    pub(crate) intents: BTreeSet<usize>,
    pub(crate) spawned: BTreeSet<usize>,
    pub(crate) running: BTreeSet<usize>,
    pub(crate) doing: Doing,
}

#[derive(Clone, Hash)]
pub(crate) enum Doing {
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

impl Hold {
    pub(crate) fn by(&self) -> Committer {
        Committer::Worker {
            run: self.run.id.clone(),
            token: self.token.clone(),
            op: self.op,
        }
    }

    /// Takes up a deed where the run still allows it, looks again where it does not now, and
    /// drops the run where it never will.
    pub(crate) fn decided(
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

    pub(crate) fn deeds(&self, rules: &Rules) -> Vec<Deed> {
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

    pub(crate) fn event(&self, deed: &Deed, rules: &Rules) -> Event {
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
