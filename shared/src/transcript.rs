//! What a run keeps of its conversation: the transcript, which only grows, and the journal of
//! its calls.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The provider's own form of an assistant message, kept so that any worker can send it back
/// unchanged (reasoning blocks, signatures, vendor fields).
#[derive(Debug, Clone, PartialEq, Hash, Serialize, Deserialize)]
pub struct Raw {
    /// Which provider made it; another provider builds its own form from the text and calls.
    pub provider: String,
    /// The message.
    pub content: Value,
}

/// Tokens that model calls used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// Tokens read.
    pub tokens_in: u64,
    /// Tokens written.
    pub tokens_out: u64,
    /// Whether a part of this was reckoned from bytes, since the provider said nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
}

impl Usage {
    /// The sum of both.
    #[must_use]
    pub fn plus(self, other: Usage) -> Usage {
        Usage {
            tokens_in: self.tokens_in.saturating_add(other.tokens_in),
            tokens_out: self.tokens_out.saturating_add(other.tokens_out),
            estimated: self.estimated || other.estimated,
        }
    }
}

/// A call as the model made it.
#[derive(Debug, Clone, PartialEq, Hash, Serialize, Deserialize)]
pub struct MessageCall {
    /// The provider's id of the call, unique in its turn.
    pub call: String,
    /// Where in the run, as `question 1.1`.
    pub step: String,
    /// The tool.
    pub tool: String,
    /// Its input; `{}` where the model's arguments could not be read.
    pub input: Value,
}

/// One finished message.
#[derive(Debug, Clone, PartialEq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Message {
    /// The person's (turn 0).
    User {
        /// What they wrote.
        text: String,
    },
    /// The model's.
    Assistant {
        /// Which turn, from 1.
        turn: u32,
        /// Its text.
        text: String,
        /// Its calls, in order.
        calls: Vec<MessageCall>,
        /// The provider's own form.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        raw: Option<Raw>,
    },
}

/// How far a call of the journal is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CallEnd {
    /// An intent: the call may have been made.
    Started,
    /// It has its result.
    Done,
    /// It has a result that tells of a failure.
    Failed,
}

/// One call of the journal.
#[derive(Debug, Clone, PartialEq, Hash, Serialize, Deserialize)]
pub struct JournalEntry {
    /// Which turn, from 1.
    pub turn: u32,
    /// The provider's id of the call.
    pub call: String,
    /// Where in the run; the key of the entry.
    pub step: String,
    /// The tool.
    pub tool: String,
    /// How far it is.
    pub state: CallEnd,
    /// Which try of the call, from 1; 0 where nothing was called.
    pub attempt: u32,
    /// What the model reads; `None` while only the intent stands.
    pub result: Option<String>,
}

/// All that a run keeps of its conversation.
#[derive(Debug, Clone, Default, PartialEq, Hash)]
pub struct Transcript {
    /// The messages, in order.
    pub messages: Vec<Message>,
    /// The journal, in the order of first writing.
    pub journal: Vec<JournalEntry>,
}

impl Transcript {
    /// The result of a call, if it has one.
    pub fn result(&self, step: &str) -> Option<&JournalEntry> {
        self.journal
            .iter()
            .find(|entry| entry.step == step && entry.result.is_some())
    }
}
