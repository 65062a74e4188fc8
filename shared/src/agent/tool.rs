//! The tools of an agent's own: HTTP requests, code in Rust, and tools of MCP servers (SPEC 7).

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::rule::{Broken, check_env_name, check_name, check_plain_url, milliseconds};
use crate::code::Code;

/// The built-in tool that asks several questions at once (SPEC 2).
pub const ASK_QUESTION: &str = "ask_question";
/// The engine's own tool that `questions` offers (SPEC 2).
pub const QUESTION: &str = "question";

/// Checks the name of a tool of an agent's own, one of an MCP server included: T1009 for the names
/// of the engine's tools (SPEC 2), else the rule of [`check_name`].
pub fn check_tool_name(name: &str) -> Result<(), (Option<Code>, String)> {
    if name == QUESTION || name == ASK_QUESTION {
        let rule = format!("the name {name} is reserved for a tool of the engine's own");
        return Err((Some(Code::T1009), rule));
    }
    check_name(name).map_err(|rule| (None, rule))
}

/// Whether a person must agree before a tool is called (SPEC 2, 3.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Approval {
    /// It is called at once.
    #[default]
    Never,
    /// Every call is an ask first.
    Always,
}

/// A tool of an agent's own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolSpec {
    /// Its name, as the model calls it and steps are named.
    pub name: String,
    /// What the model is told about it.
    pub description: String,
    /// JSON Schema of its input: an object.
    pub parameters: Value,
    /// Whether a person must agree first.
    pub approval: Approval,
    /// Whether that person may change the input.
    pub editable: bool,
    /// Whether a call of unknown outcome may be made again (SPEC 5).
    pub idempotent: bool,
    /// The HTTP request that it is; `None` for a tool written in Rust.
    pub http: Option<HttpToolSpec>,
}

/// A tool that is an HTTP request (SPEC 7).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HttpToolSpec {
    /// The method, one of [`HttpToolSpec::METHODS`].
    pub method: String,
    /// The address.
    pub url: String,
    /// Header names, each with the environment variable that holds its value.
    pub headers_env: BTreeMap<String, String>,
    /// How long a call may take.
    #[serde(rename = "timeoutMs", with = "milliseconds")]
    pub timeout: Duration,
}

impl HttpToolSpec {
    /// The methods that a tool may use.
    pub const METHODS: [&'static str; 5] = ["GET", "POST", "PUT", "PATCH", "DELETE"];
}

impl ToolSpec {
    /// A tool of this name that takes an empty object, needs nobody and may not be repeated.
    pub fn new(name: impl Into<String>) -> Self {
        ToolSpec {
            name: name.into(),
            description: String::new(),
            parameters: serde_json::json!({ "type": "object", "properties": {} }),
            approval: Approval::Never,
            editable: false,
            idempotent: false,
            http: None,
        }
    }

    /// Checks everything but its name; places are those of the agents file.
    pub fn check(&self) -> Result<(), Broken> {
        if self.parameters.get("type").and_then(Value::as_str) != Some("object") {
            return Err(Broken::at("parameters", "must be of type = \"object\""));
        }
        // Built only to be checked. The crate is built without resolvers, so nothing is fetched.
        jsonschema::options()
            .build(&self.parameters)
            .map_err(|fault| {
                let rule = format!("must be a JSON Schema: {}", one_line(&fault.to_string()));
                Broken::at("parameters", rule)
            })?;
        self.http.as_ref().map_or(Ok(()), check_http)
    }

    /// The environment variables it needs, each with its place.
    pub fn needed_env(&self) -> Vec<(String, String)> {
        let headers = self.http.iter().flat_map(|http| &http.headers_env);
        headers
            .map(|(header, name)| (format!("http.headersEnv.{header}"), name.clone()))
            .collect()
    }
}

fn check_http(http: &HttpToolSpec) -> Result<(), Broken> {
    if !HttpToolSpec::METHODS.contains(&http.method.as_str()) {
        let rule = format!("must be one of {}", HttpToolSpec::METHODS.join(", "));
        return Err(Broken::at("http.method", rule));
    }
    check_plain_url(&http.url).map_err(|rule| Broken::at("http.url", rule))?;
    for (header, name) in &http.headers_env {
        let place = || format!("http.headersEnv.{header}");
        // RFC 9110, 5.1: a field name is a token.
        let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
        if header.is_empty() || !header.bytes().all(token) {
            return Err(Broken::at(place(), "must be the name of an HTTP header"));
        }
        check_env_name(name).map_err(|rule| Broken::at(place(), rule))?;
    }
    if http.timeout.as_millis() == 0 {
        return Err(Broken::at("http.timeout", "must be greater than 0"));
    }
    Ok(())
}

/// An MCP server and what an agent uses of it; its tools are named `<server>_<tool>`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct McpSpec {
    /// The server's name in the agents file.
    pub server: String,
    /// How it is reached.
    pub transport: McpTransport,
    /// The tools that the agent uses, by their full names.
    pub tools: Vec<String>,
}

/// How an MCP server is reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum McpTransport {
    /// A program with its arguments, spoken to over its standard input and output.
    Command(Vec<String>),
    /// An address.
    Url(String),
}

impl McpTransport {
    /// Checks the shape alone; places are those of the agents file.
    pub fn check(&self) -> Result<(), Broken> {
        match self {
            McpTransport::Command(words) if words.first().is_none_or(String::is_empty) => {
                Err(Broken::at("command", "must begin with a program"))
            }
            McpTransport::Command(_) => Ok(()),
            McpTransport::Url(url) => check_plain_url(url).map_err(|rule| Broken::at("url", rule)),
        }
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
