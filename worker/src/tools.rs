//! What an agent can do besides asking: [`Tool`], and the tools that come with Askwell.

pub mod http;

use async_trait::async_trait;
use serde_json::Value;

use askwell_shared::agent::ToolSpec;

/// What a tool may know of the call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallContext {
    /// `<run>/<step>`: the same over repeats and retries. A tool whose effects can be recognised
    /// by it is idempotent (SPEC 5).
    pub key: String,
    /// Which try of the call, from 1.
    pub attempt: u32,
}

/// A tool of an agent's own. The engine has checked the input against the tool's schema.
#[async_trait]
pub trait Tool: Send + Sync {
    /// What the model is told of it, and whether a person must agree first.
    fn spec(&self) -> &ToolSpec;

    /// Makes the call. Both texts are read by the model: `Err` tells of a failure.
    async fn call(&self, input: &Value, context: &CallContext) -> Result<String, String>;

    /// Whether this very call needs approval; asked only where the tool is not approved always.
    fn needs_approval(&self, input: &Value) -> bool {
        let _ = input;
        false
    }
}
