//! What an agent is (SPEC 2): plain data, made by [`Agent::builder`] or from a file of agents, and
//! checked in one place, so that both ways mean the same.
//!
//! Secrets are no part of a definition: it names the environment variables that hold them.

mod access;
mod announcement;
mod guard;
mod limits;
mod model;
mod rule;
mod tool;

use std::collections::HashSet;
use std::fmt;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

pub use access::{Access, may_start};
pub use announcement::{AnnouncedTool, Announcement};
pub use guard::GuardSpec;
pub use limits::{LONGEST_WAIT, Limits};
pub use model::{HttpModel, ModelSpec, Provider, Script, ScriptedCall, ScriptedTurn};
pub use rule::{Broken, check_name};
pub use tool::{
    ASK_QUESTION, Approval, HttpToolSpec, McpSpec, McpTransport, QUESTION, ToolSpec,
    check_tool_name,
};

use crate::code::Code;

/// What a new start does while its thread's head waits for a person (SPEC 2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum OnMessage {
    /// The new run waits its turn.
    #[default]
    Queue,
    /// The head's open asks are settled `superseded` and it ends.
    Supersede,
}

/// Which revision of an agent goes on with its runs (SPEC 2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Upgrade {
    /// Whatever the worker has.
    #[default]
    Newest,
    /// Only the revision that the run started with.
    Pinned,
}

/// The definition of an agent. It is read freely and made by [`Agent::builder`] alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Agent {
    /// Its name.
    pub name: String,
    /// What it is for, to people who choose.
    pub description: String,
    /// The model that it speaks to.
    pub model: ModelSpec,
    /// What the model is told first.
    pub instructions: String,
    /// Its own tools, in the order in which the model is told of them.
    pub tools: Vec<ToolSpec>,
    /// The MCP servers of which it uses tools.
    pub mcp: Vec<McpSpec>,
    /// Whether the model is offered `ask_question`.
    pub ask_question: bool,
    /// Whether the model is offered `question`.
    pub questions: bool,
    /// Who may start it.
    pub access: Vec<Access>,
    /// What a run of it may use.
    pub limits: Limits,
    /// What its asks must pass before anyone sees them.
    pub guards_out: Vec<GuardSpec>,
    /// What a new start does to a waiting head of its thread.
    pub on_message: OnMessage,
    /// Which revision goes on with its runs.
    pub upgrade: Upgrade,
    /// Whether the model is told that nobody answered in time, instead of that the person refused.
    pub tell_expiry: bool,
}

impl Agent {
    /// Begins the definition of an agent with this name. A model is all that must be added.
    pub fn builder(name: impl Into<String>) -> AgentBuilder {
        AgentBuilder {
            name: name.into(),
            model: None,
            description: String::new(),
            instructions: String::new(),
            tools: Vec::new(),
            mcp: Vec::new(),
            ask_question: false,
            questions: false,
            access: None,
            limits: Limits::default(),
            guards_out: Vec::new(),
            on_message: OnMessage::default(),
            upgrade: Upgrade::default(),
            tell_expiry: false,
        }
    }

    /// A digest of the definition, 16 hexadecimal digits: equal for equal definitions in every
    /// process, whatever the order in which a schema's keys were written.
    pub fn revision(&self) -> String {
        let value = serde_json::to_value(self).unwrap_or_default();
        let mut text = String::new();
        write_canonical(&value, &mut text);
        let digest = Sha256::digest(text.as_bytes());
        digest.iter().take(8).fold(String::new(), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        })
    }
}

/// Writes `value` with the keys of every object in order.
fn write_canonical(value: &Value, text: &mut String) {
    match value {
        Value::Object(object) => {
            let mut keys: Vec<_> = object.iter().collect();
            keys.sort_by(|a, b| a.0.cmp(b.0));
            text.push('{');
            for (key, value) in keys {
                let _ = write!(text, "{}:", Value::from(key.as_str()));
                write_canonical(value, text);
                text.push(',');
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for item in items {
                write_canonical(item, text);
                text.push(',');
            }
            text.push(']');
        }
        scalar => {
            let _ = write!(text, "{scalar}");
        }
    }
}

/// A definition in the making.
#[derive(Debug, Clone)]
#[must_use]
pub struct AgentBuilder {
    name: String,
    model: Option<ModelSpec>,
    description: String,
    instructions: String,
    tools: Vec<ToolSpec>,
    mcp: Vec<McpSpec>,
    ask_question: bool,
    questions: bool,
    access: Option<Vec<Access>>,
    limits: Limits,
    guards_out: Vec<GuardSpec>,
    on_message: OnMessage,
    upgrade: Upgrade,
    tell_expiry: bool,
}

impl AgentBuilder {
    /// Sets the model.
    pub fn model(mut self, model: ModelSpec) -> Self {
        self.model = Some(model);
        self
    }

    /// Says what the agent is for.
    pub fn description(mut self, text: impl Into<String>) -> Self {
        self.description = text.into();
        self
    }

    /// Says what the model is told first.
    pub fn instructions(mut self, text: impl Into<String>) -> Self {
        self.instructions = text.into();
        self
    }

    /// Adds a tool of the agent's own.
    pub fn tool(mut self, tool: ToolSpec) -> Self {
        self.tools.push(tool);
        self
    }

    /// Adds tools of an MCP server.
    pub fn mcp(mut self, mcp: McpSpec) -> Self {
        self.mcp.push(mcp);
        self
    }

    /// Offers the model the built-in tool `ask_question`.
    pub fn ask_question(mut self, offered: bool) -> Self {
        self.ask_question = offered;
        self
    }

    /// Offers the model the engine's own tool `question`.
    pub fn questions(mut self, offered: bool) -> Self {
        self.questions = offered;
        self
    }

    /// Says who may start it; left out, any person.
    pub fn access(mut self, access: impl IntoIterator<Item = Access>) -> Self {
        self.access = Some(access.into_iter().collect());
        self
    }

    /// Sets what a run may use.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Adds a guard that every ask must pass before anyone sees it.
    pub fn guard_out(mut self, guard: GuardSpec) -> Self {
        self.guards_out.push(guard);
        self
    }

    /// Sets what a new start does to a waiting head of its thread.
    pub fn on_message(mut self, on_message: OnMessage) -> Self {
        self.on_message = on_message;
        self
    }

    /// Sets which revision goes on with its runs.
    pub fn upgrade(mut self, upgrade: Upgrade) -> Self {
        self.upgrade = upgrade;
        self
    }

    /// Lets the model be told that nobody answered in time.
    pub fn tell_expiry(mut self, tell: bool) -> Self {
        self.tell_expiry = tell;
        self
    }

    /// Checks every rule and makes the agent. The fault names the first rule that is not met.
    pub fn build(self) -> Result<Agent, AgentFault> {
        let name = self.name.clone();
        self.checked().map_err(|(code, broken)| AgentFault {
            agent: name,
            place: broken.place,
            rule: broken.rule,
            code,
        })
    }

    fn checked(self) -> Result<Agent, (Option<Code>, Broken)> {
        let plain = |broken| (None, broken);
        check_name(&self.name).map_err(|rule| plain(Broken::at("name", rule)))?;
        self.check_tools()?;
        let Some(model) = self.model else {
            return Err(plain(Broken::at("model", "is missing")));
        };
        let below = |place: String| move |broken: Broken| (None, broken.below(&place));
        model.check().map_err(below("model".into()))?;
        let access = self.access.unwrap_or_else(|| vec![Access::SignedIn]);
        if access.is_empty() {
            let rule = "must name at least one of signedIn, role:<name>, system";
            return Err(plain(Broken::at("access", rule)));
        }
        self.limits.check().map_err(below("limits".into()))?;
        for (at, guard) in self.guards_out.iter().enumerate() {
            guard.check().map_err(below(format!("guards.out.{at}")))?;
        }
        Ok(Agent {
            name: self.name,
            description: self.description,
            model,
            instructions: self.instructions,
            tools: self.tools,
            mcp: self.mcp,
            ask_question: self.ask_question,
            questions: self.questions,
            access,
            limits: self.limits,
            guards_out: self.guards_out,
            on_message: self.on_message,
            upgrade: self.upgrade,
            tell_expiry: self.tell_expiry,
        })
    }

    fn check_tools(&self) -> Result<(), (Option<Code>, Broken)> {
        let mut names = HashSet::new();
        let own = self.tools.iter().map(|tool| &tool.name);
        for name in own.chain(self.mcp.iter().flat_map(|mcp| &mcp.tools)) {
            let at = |rule: String| Broken::at(format!("tools.{name}"), rule);
            check_tool_name(name).map_err(|(code, rule)| (code, at(rule)))?;
            if !names.insert(name) {
                return Err((None, at("is there twice".to_owned())));
            }
        }
        for tool in &self.tools {
            let place = format!("tools.{}", tool.name);
            tool.check()
                .map_err(|broken| (None, broken.below(&place)))?;
        }
        for mcp in &self.mcp {
            let place = format!("mcp.{}", mcp.server);
            let transport = mcp.transport.check();
            transport.map_err(|broken| (None, broken.below(&place)))?;
        }
        Ok(())
    }
}

/// Why a definition is none: start-up fails with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentFault {
    /// The agent.
    pub agent: String,
    /// Where in its definition, as a path of keys: `limits.ask`, `tools.refund.parameters`.
    pub place: String,
    /// The rule that is not met.
    pub rule: String,
    /// T1009 for a tool that bears a reserved name.
    pub code: Option<Code>,
}

impl fmt::Display for AgentFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(code) = self.code {
            write!(f, "{code}: ")?;
        }
        write!(f, "agent {}: {}: {}", self.agent, self.place, self.rule)
    }
}

impl std::error::Error for AgentFault {}

#[cfg(test)]
mod tests;
