//! Which model an agent speaks to, and what a scripted one says (SPEC 7).

use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use super::rule::{Broken, check_env_name, check_plain_url, milliseconds};

/// Which model an agent speaks to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ModelSpec {
    /// A model behind an HTTP interface.
    Http(HttpModel),
    /// Turns written beforehand, for demos and tests (SPEC 7).
    Scripted(Script),
}

/// The HTTP interfaces that are spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Provider {
    /// `POST <baseUrl>/chat/completions`.
    ChatCompletions,
    /// `POST <baseUrl>/messages`.
    Anthropic,
    /// `POST <baseUrl>/responses`.
    Responses,
}

/// A model behind an HTTP interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HttpModel {
    /// The interface.
    pub provider: Provider,
    /// The address to which the interface's path is appended.
    pub base_url: String,
    /// The model's name there.
    pub model: String,
    /// The environment variable with the key; local servers need none.
    pub api_key_env: Option<String>,
}

/// What a scripted model says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Script {
    /// The turns in order; after the last one the model says `Done.`.
    pub turns: Vec<ScriptedTurn>,
    /// How long it waits before a piece of its text, so that a person sees it write.
    #[serde(rename = "delayMs", with = "milliseconds")]
    pub delay: Duration,
}

/// One turn of a scripted model. In texts, and in the texts of inputs, `{{answer}}` stands for
/// the last tool result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ScriptedTurn {
    /// What it says.
    pub text: Option<String>,
    /// What it calls.
    pub calls: Vec<ScriptedCall>,
}

/// One call of a scripted turn. Neither the tool nor the input is checked here: a script may play
/// a model that errs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ScriptedCall {
    /// The tool's name.
    pub tool: String,
    /// Its input.
    pub input: Value,
}

impl ModelSpec {
    /// Checks the model's definition; places are those of the agents file.
    pub fn check(&self) -> Result<(), Broken> {
        match self {
            ModelSpec::Http(model) => {
                check_plain_url(&model.base_url).map_err(|rule| Broken::at("baseUrl", rule))?;
                if model.base_url.contains(['?', '#']) {
                    return Err(Broken::at("baseUrl", "must end with its path"));
                }
                if model.model.trim().is_empty() {
                    return Err(Broken::at("model", "must not be blank"));
                }
                let key = model.api_key_env.as_deref();
                key.map_or(Ok(()), check_env_name)
                    .map_err(|rule| Broken::at("apiKeyEnv", rule))
            }
            ModelSpec::Scripted(script) if script.turns.is_empty() => {
                Err(Broken::at("turns", "must have at least one turn"))
            }
            ModelSpec::Scripted(_) => Ok(()),
        }
    }

    /// The environment variables it needs, each with its place.
    pub fn needed_env(&self) -> Vec<(String, String)> {
        match self {
            ModelSpec::Http(HttpModel {
                api_key_env: Some(name),
                ..
            }) => vec![("apiKeyEnv".to_owned(), name.clone())],
            _ => Vec::new(),
        }
    }
}
