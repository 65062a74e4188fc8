//! What a run asks of a language model, and what comes back: [`Model`].
//!
//! A provider makes one try per call and says by [`ModelFault`] whether another one may help; the
//! engine repeats (SPEC section 7). What a provider keeps for itself between the turns, signatures
//! of its reasoning for one, travels in [`Raw`] and goes back unchanged.

use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;

pub use askwell_shared::ask::ToolOffer;
pub use askwell_shared::transcript::{Raw, Usage};

pub mod arguments;
pub mod assemble;
pub mod chat_completions;
pub mod endpoint;
pub mod scripted;
mod sse;

/// All that one turn is decided on. The same request may be sent again after a fault or a crash.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelRequest {
    /// The agent's instructions; blank ones are not sent.
    pub instructions: String,
    /// The conversation so far, oldest first.
    pub entries: Vec<Entry>,
    /// The tools that this turn may call.
    pub tools: Vec<ToolOffer>,
}

/// One message of the conversation.
#[derive(Debug, Clone, PartialEq)]
pub enum Entry {
    /// What the person said.
    User {
        /// Their words; input that was no text is its JSON.
        text: String,
    },
    /// What the model answered, and what became of the calls that it made.
    Assistant {
        /// Its words, perhaps none.
        text: String,
        /// Exactly one result per call, in the order of the calls (SPEC section 3.4).
        calls: Vec<MadeCall>,
        /// The message as its provider sent it.
        raw: Option<Raw>,
    },
}

/// A call of an earlier turn, with its result.
#[derive(Debug, Clone, PartialEq)]
pub struct MadeCall {
    /// The id that the reply bore.
    pub id: String,
    /// The tool's name.
    pub tool: String,
    /// What it was called with; `{}` where that could not be read.
    pub input: Value,
    /// What the tool answered the model.
    pub result: String,
    /// Whether `result` tells of a failure.
    pub failed: bool,
}

/// A finished turn of the model. No text and no call is legal: the model had nothing to say.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelReply {
    /// All text pieces joined.
    pub text: String,
    /// The calls, in the order in which they began.
    pub calls: Vec<ModelCall>,
    /// The message to send back with the calls' results.
    pub raw: Option<Raw>,
    /// What the turn cost.
    pub usage: Usage,
}

/// One call that the model asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelCall {
    /// Unique within the reply; some providers repeat ids in later turns.
    pub id: String,
    /// The tool's name, always of the form `[A-Za-z0-9_-]{1,64}`, but perhaps none that exists.
    pub tool: String,
    /// An object, or what the model is told about arguments that could not be read.
    pub input: Result<Value, String>,
}

/// Why a try gave no reply. The texts name the status or the fault and never hold the API key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelFault {
    /// Another try may succeed.
    #[error("{reason}")]
    Retry {
        /// What went wrong, for the run's record.
        reason: String,
        /// How long the provider asks to wait; the engine's own delays apply without it.
        after: Option<Duration>,
    },
    /// The same request will fail again.
    #[error("{reason}")]
    Final {
        /// What went wrong, for the run's record.
        reason: String,
    },
}

/// A language model behind some provider.
#[async_trait]
pub trait Model: Send + Sync {
    /// Makes one try at a turn. `deltas` gets each piece of text as it comes, never an empty one;
    /// pieces of a try that then fails are void. Dropping the future aborts the request.
    async fn call(
        &self,
        request: &ModelRequest,
        deltas: &mut (dyn for<'t> FnMut(&'t str) + Send),
    ) -> Result<ModelReply, ModelFault>;
}

/// UTF-8 bytes / 4, rounded up so that nothing said is free.
pub(crate) fn tokens_of(bytes: usize) -> u64 {
    u64::try_from(bytes.div_ceil(4)).unwrap_or(u64::MAX)
}

impl ModelRequest {
    /// An estimate of [`Usage::tokens_in`]: the texts, inputs and results of the conversation and
    /// the tools offered, for providers that report none.
    pub fn estimated_tokens(&self) -> u64 {
        let entries = self.entries.iter().map(|entry| match entry {
            Entry::User { text } => text.len(),
            Entry::Assistant { text, calls, .. } => {
                let calls = calls.iter();
                text.len()
                    + calls
                        .map(|call| call.input.to_string().len() + call.result.len())
                        .sum::<usize>()
            }
        });
        let tools = self.tools.iter().map(|tool| {
            tool.name.len() + tool.description.len() + tool.parameters.to_string().len()
        });
        tokens_of(self.instructions.len() + entries.sum::<usize>() + tools.sum::<usize>())
    }
}
