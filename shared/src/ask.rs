//! Asks: waits for a person (SPEC 3), and the pure rules of what is asked and what answers it.
//!
//! - [`question`] and [`ask_question`]: the two question tools, their input and their answers.
//! - [`approval`]: what may be sent along with an approval.
//! - [`input`]: a tool's input against its schema.
//! - [`texts`]: the words that a model reads in place of a result.

use serde_json::Value;

pub mod approval;
pub mod ask_question;
pub mod input;
pub mod question;
mod reading;
pub mod texts;

/// A tool as it is offered to a model.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolOffer {
    /// The name by which the model calls it.
    pub name: String,
    /// What it is for, in words for the model.
    pub description: String,
    /// The JSON Schema of its input.
    pub parameters: Value,
}
