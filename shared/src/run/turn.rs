//! What a saved turn brings, and what happens to its calls.

use serde_json::Value;

use super::apply::Moving;
use super::{Call, CallState};
use crate::agent::Limits;
use crate::ask::{Ask, Kind, texts};
use crate::time::Millis;
use crate::transcript::{CallEnd, JournalEntry, Message, MessageCall, Raw, Usage};
use crate::wire::Frame;

/// A turn as the model made it, with what is to happen to each call.
#[derive(Debug, Clone, PartialEq)]
pub struct SavedTurn {
    /// The model's text.
    pub text: String,
    /// Its calls, in order.
    pub calls: Vec<SavedCall>,
    /// The provider's own form of the message.
    pub raw: Option<Raw>,
    /// Tokens this call used.
    pub usage: Usage,
    /// The agent's limits now.
    pub limits: Limits,
}

/// A call of a turn.
#[derive(Debug, Clone, PartialEq)]
pub struct SavedCall {
    /// The provider's id, unique in the turn.
    pub call: String,
    /// The tool.
    pub tool: String,
    /// Its input, for the transcript.
    pub input: Value,
    /// What happens to it.
    pub plan: Plan,
}

/// What happens to a call. The worker has asked tools, schemas and guards before it plans.
#[derive(Debug, Clone, PartialEq)]
pub enum Plan {
    /// A person is asked.
    Ask {
        /// What for.
        kind: Kind,
        /// The new ask's id.
        id: String,
        /// What the person is shown.
        input: Value,
        /// How many questions there are.
        questions: u32,
        /// For an approval of an editable tool: its schema.
        editable: Option<Value>,
    },
    /// It is made at once.
    Call,
    /// It is not made; the model reads this.
    Tell(String),
}

/// The first limit that a turn with calls has reached, as the reason of the failure (SPEC 2).
pub(super) fn limit_reached(turn: u32, usage: Usage, limits: &Limits) -> Option<String> {
    let reached = |name: &str, value: u64| format!("limit {name} of {value} reached");
    if let Some(steps) = limits.steps.filter(|steps| turn >= *steps) {
        return Some(reached("steps", steps.into()));
    }
    if let Some(most) = limits.tokens_out.filter(|most| usage.tokens_out >= *most) {
        return Some(reached("perRun.tokensOut", most));
    }
    limits
        .tokens_in
        .filter(|most| usage.tokens_in >= *most)
        .map(|most| reached("perRun.tokensIn", most))
}

impl Moving {
    /// Appends the turn's message and its calls, nothing decided yet.
    pub(super) fn save_turn(&mut self, turn: &SavedTurn) {
        self.run.turn += 1;
        self.run.usage = self.run.usage.plus(turn.usage);
        let number = self.run.turn;
        let mut calls: Vec<Call> = Vec::with_capacity(turn.calls.len());
        for saved in &turn.calls {
            let ordinal = 1 + calls.iter().filter(|call| call.tool == saved.tool).count();
            calls.push(Call {
                call: saved.call.clone(),
                tool: saved.tool.clone(),
                step: format!("{} {number}.{ordinal}", saved.tool),
                input: saved.input.clone(),
                state: CallState::Saved,
                attempts: 0,
            });
        }
        let message_calls: Vec<MessageCall> = calls
            .iter()
            .map(|call| MessageCall {
                call: call.call.clone(),
                step: call.step.clone(),
                tool: call.tool.clone(),
                input: call.input.clone(),
            })
            .collect();
        self.frames.push(Frame::assistant(
            &self.run.id,
            number,
            &turn.text,
            &message_calls,
        ));
        self.messages.push(Message::Assistant {
            turn: number,
            text: turn.text.clone(),
            calls: message_calls,
            raw: turn.raw.clone(),
        });
        self.run.calls = calls;
    }

    /// Decides the saved calls: opens asks, journals intents, answers what is not made.
    pub(super) fn plan(&mut self, plans: Vec<Plan>, limits: &Limits, now: Millis) {
        let mut tool_frames = Vec::new();
        for (number, plan) in plans.into_iter().enumerate() {
            match plan {
                Plan::Ask { .. } if self.run.asked >= limits.asks => {
                    let told = texts::NO_MORE_QUESTIONS.to_owned();
                    tool_frames.extend(self.end_call(number, told, CallEnd::Failed));
                }
                Plan::Ask {
                    kind,
                    id,
                    input,
                    questions,
                    editable,
                } => {
                    self.run.asked += 1;
                    self.open_ask(
                        number,
                        Opening {
                            kind,
                            id,
                            input,
                            questions,
                            editable,
                            deadline: now.after(limits.ask),
                        },
                        now,
                    );
                }
                Plan::Call => tool_frames.push(self.start_call(number)),
                Plan::Tell(text) => {
                    tool_frames.extend(self.end_call(number, text, CallEnd::Failed));
                }
            }
        }
        // PROTOCOL 7: of one turn, the asks come before the tools.
        self.frames.append(&mut tool_frames);
    }

    pub(super) fn open_ask(&mut self, number: usize, opening: Opening, now: Millis) {
        let call = &mut self.run.calls[number];
        let asked_before = self
            .run
            .asks
            .iter()
            .filter(|ask| ask.step == call.step)
            .count();
        call.state = CallState::Asking {
            ask: opening.id.clone(),
        };
        let ask = Ask {
            id: opening.id,
            run: self.run.id.clone(),
            agent: self.run.agent.clone(),
            turn: self.run.turn,
            call: number,
            step: call.step.clone(),
            repeat: u32::try_from(asked_before).map_or(u32::MAX, |before| before + 1),
            kind: opening.kind,
            tool: call.tool.clone(),
            input: opening.input,
            questions: opening.questions,
            editable: opening.editable,
            opened: now,
            deadline: opening.deadline,
            drafts: serde_json::Map::new(),
            settled: None,
        };
        self.frames.push(Frame::opened(&ask));
        self.asks.insert(self.run.asks.len());
        self.run.asks.push(ask);
    }

    /// Journals the intent of a call and gives its frame.
    pub(super) fn start_call(&mut self, number: usize) -> Frame {
        let call = &mut self.run.calls[number];
        call.attempts += 1;
        call.state = CallState::Started {
            attempt: call.attempts,
        };
        let entry = self.run.entry(number, CallEnd::Started, None);
        let frame = Frame::tool(&self.run.id, &entry);
        self.journal.push(entry);
        frame
    }

    /// Gives a call its result; a frame where screens show the tool.
    pub(super) fn end_call(&mut self, number: usize, text: String, end: CallEnd) -> Option<Frame> {
        let call = &mut self.run.calls[number];
        call.state = CallState::Done;
        // The transcript has the input; the header only keeps what is still to be done.
        call.input = Value::Null;
        let entry = self.run.entry(number, end, Some(text));
        let shown = !is_question_tool(&entry.tool);
        let frame = shown.then(|| Frame::tool(&self.run.id, &entry));
        self.journal.push(entry);
        frame
    }
}

/// A new ask of a call.
pub(super) struct Opening {
    pub(super) kind: Kind,
    pub(super) id: String,
    pub(super) input: Value,
    pub(super) questions: u32,
    pub(super) editable: Option<Value>,
    pub(super) deadline: Millis,
}

impl super::Run {
    fn entry(&self, number: usize, state: CallEnd, result: Option<String>) -> JournalEntry {
        let call = &self.calls[number];
        JournalEntry {
            turn: self.turn,
            call: call.call.clone(),
            step: call.step.clone(),
            tool: call.tool.clone(),
            state,
            attempt: call.attempts,
            result,
        }
    }
}

/// Whether screens see this tool as an ask and not as a tool (SPEC 2).
fn is_question_tool(tool: &str) -> bool {
    matches!(tool, "question" | "ask_question")
}
