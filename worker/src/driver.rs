//! Who decides the turns of a run: [`Driver`]. The engine's own loop, which calls a model, is
//! one of them.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;

use askwell_shared::ask::{ToolOffer, ask_question, question};
use askwell_shared::run::Run;
use askwell_shared::transcript::{JournalEntry, Message, Raw, Transcript, Usage};

use crate::agents::Loaded;
use crate::model::{Entry, MadeCall, Model, ModelFault, ModelRequest};

/// What a driver sees of a run of which every call has its result.
pub struct TurnView<'a> {
    /// The agent.
    pub agent: &'a Loaded,
    /// The run.
    pub run: &'a Run,
    /// Its conversation.
    pub transcript: &'a Transcript,
    /// The conversations of the thread's earlier runs, oldest first.
    pub earlier: &'a [Transcript],
}

/// A turn as a driver made it. Nothing has happened yet: the engine checks inputs, asks guards
/// and persons, and makes the calls.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    /// What the agent says.
    pub text: String,
    /// What it wants done; none: the run is over.
    pub calls: Vec<TurnCall>,
    /// The provider's own form of the message.
    pub raw: Option<Raw>,
    /// Tokens that this turn used.
    pub usage: Usage,
}

/// A call of a turn.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnCall {
    /// An id, unique in the turn.
    pub call: String,
    /// The tool.
    pub tool: String,
    /// The input, or what the model is told about arguments that could not be read.
    pub input: Result<Value, String>,
}

/// Why there is no turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoTurn {
    /// Another try may succeed.
    Again {
        /// What went wrong.
        reason: String,
        /// How long to wait at least.
        after: Option<Duration>,
    },
    /// The run fails.
    Never {
        /// Why.
        reason: String,
    },
}

/// Decides the turns of an agent's runs.
#[async_trait]
pub trait Driver: Send + Sync {
    /// Makes one try at the next turn. It may be called again for the same turn, on another
    /// worker, after a fault or a crash; dropping the future stops it. `deltas` gets each piece
    /// of text as it comes.
    async fn turn(
        &self,
        view: &TurnView<'_>,
        deltas: &mut (dyn for<'t> FnMut(&'t str) + Send),
    ) -> Result<Turn, NoTurn>;
}

/// The engine's own loop: it offers the question tools and calls a model.
pub struct Engine {
    model: Arc<dyn Model>,
}

impl Engine {
    /// The loop over this model.
    pub fn new(model: Arc<dyn Model>) -> Self {
        Engine { model }
    }
}

#[async_trait]
impl Driver for Engine {
    async fn turn(
        &self,
        view: &TurnView<'_>,
        deltas: &mut (dyn for<'t> FnMut(&'t str) + Send),
    ) -> Result<Turn, NoTurn> {
        let reply = self
            .model
            .call(&request(view), deltas)
            .await
            .map_err(|fault| match fault {
                ModelFault::Retry { reason, after } => NoTurn::Again {
                    reason: format!("model: {reason}"),
                    after,
                },
                ModelFault::Final { reason } => NoTurn::Never {
                    reason: format!("model: {reason}"),
                },
            })?;
        let calls = reply.calls.into_iter().map(|call| TurnCall {
            call: call.id,
            tool: call.tool,
            input: call.input,
        });
        Ok(Turn {
            text: reply.text,
            calls: calls.collect(),
            raw: reply.raw,
            usage: reply.usage,
        })
    }
}

fn request(view: &TurnView<'_>) -> ModelRequest {
    let agent = &view.agent.agent;
    let mut tools = Vec::new();
    let mut instructions = agent.instructions.clone();
    if agent.questions {
        tools.push(question::offer());
    }
    if agent.ask_question {
        tools.push(ask_question::offer());
        if !instructions.is_empty() {
            instructions.push_str("\n\n");
        }
        instructions.push_str(ask_question::instructions());
    }
    tools.extend(agent.tools.iter().map(|tool| ToolOffer {
        name: tool.name.clone(),
        description: tool.description.clone(),
        parameters: tool.parameters.clone(),
    }));
    let mut entries: Vec<Entry> = Vec::new();
    for earlier in view.earlier {
        entries.extend(earlier.messages.iter().filter_map(text_only));
    }
    entries.extend(
        view.transcript
            .messages
            .iter()
            .map(|message| entry(message, &view.transcript.journal)),
    );
    ModelRequest {
        instructions,
        entries,
        tools,
    }
}

/// A message of an earlier run: what was said, not what was called (SPEC 2, `thread`).
fn text_only(message: &Message) -> Option<Entry> {
    match message {
        Message::User { text } => Some(Entry::User { text: text.clone() }),
        Message::Assistant { text, .. } if text.is_empty() => None,
        Message::Assistant { text, .. } => Some(Entry::Assistant {
            text: text.clone(),
            calls: Vec::new(),
            raw: None,
        }),
    }
}

fn entry(message: &Message, journal: &[JournalEntry]) -> Entry {
    match message {
        Message::User { text } => Entry::User { text: text.clone() },
        Message::Assistant {
            text, calls, raw, ..
        } => Entry::Assistant {
            text: text.clone(),
            calls: calls
                .iter()
                .map(|call| {
                    let ended = journal.iter().find(|entry| entry.step == call.step);
                    MadeCall {
                        id: call.call.clone(),
                        tool: call.tool.clone(),
                        input: call.input.clone(),
                        result: ended
                            .and_then(|entry| entry.result.clone())
                            .unwrap_or_default(),
                        failed: ended.is_some_and(|entry| {
                            entry.state == askwell_shared::transcript::CallEnd::Failed
                        }),
                    }
                })
                .collect(),
            raw: raw.clone(),
        },
    }
}
