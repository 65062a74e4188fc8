//! The agents a worker has: definitions with their models, tools and guards at hand.

use std::collections::BTreeMap;
use std::sync::Arc;

use askwell_shared::agent::{Agent, ModelSpec, Provider, ToolSpec};

use crate::driver::{Driver, Engine};
use crate::guards::{Guard, guard};
use crate::model::Model;
use crate::model::chat_completions::ChatCompletions;
use crate::model::scripted::Scripted;
use crate::tools::Tool;
use crate::tools::http::HttpTool;

/// An agent that this worker can advance.
pub struct Loaded {
    /// The definition.
    pub agent: Agent,
    /// The definition's revision.
    pub revision: String,
    /// Who decides its turns.
    pub driver: Arc<dyn Driver>,
    /// Its own tools, by name.
    pub tools: BTreeMap<String, Arc<dyn Tool>>,
    /// What its asks must pass.
    pub guards: Vec<Box<dyn Guard>>,
}

/// All agents of a worker, by name.
pub type Agents = BTreeMap<String, Arc<Loaded>>;

/// Makes the agents of a file ready. `secret` gives the value of an environment variable. The
/// error is one line that names the place.
pub fn load(agents: Vec<Agent>, secret: &dyn Fn(&str) -> Option<String>) -> Result<Agents, String> {
    let mut loaded = Agents::new();
    for agent in agents {
        let name = agent.name.clone();
        let agent =
            Loaded::new(agent, secret).map_err(|fault| format!("agents.{name}: {fault}"))?;
        loaded.insert(name, Arc::new(agent));
    }
    Ok(loaded)
}

impl Loaded {
    /// Makes one agent ready, with the engine's own loop as its driver.
    pub fn new(agent: Agent, secret: &dyn Fn(&str) -> Option<String>) -> Result<Self, String> {
        if let Some(server) = agent.mcp.first() {
            return Err(format!(
                "mcp.{}: is not spoken by this version",
                server.server
            ));
        }
        let model = model(&agent.model, secret)?;
        let mut tools: BTreeMap<String, Arc<dyn Tool>> = BTreeMap::new();
        for spec in &agent.tools {
            tools.insert(spec.name.clone(), http_tool(spec, secret)?);
        }
        let guards = agent
            .guards_out
            .iter()
            .map(guard)
            .collect::<Result<_, _>>()?;
        Ok(Loaded {
            revision: agent.revision(),
            driver: Arc::new(Engine::new(model)),
            agent,
            tools,
            guards,
        })
    }
}

fn http_tool(
    spec: &ToolSpec,
    secret: &dyn Fn(&str) -> Option<String>,
) -> Result<Arc<dyn Tool>, String> {
    let http = spec
        .http
        .clone()
        .ok_or_else(|| format!("tools.{}: has no http", spec.name))?;
    Ok(Arc::new(HttpTool::new(spec.clone(), &http, secret)?))
}

fn model(
    spec: &ModelSpec,
    secret: &dyn Fn(&str) -> Option<String>,
) -> Result<Arc<dyn Model>, String> {
    match spec {
        ModelSpec::Scripted(script) => Ok(Arc::new(Scripted::new(script.clone()))),
        ModelSpec::Http(http) => match http.provider {
            Provider::ChatCompletions => {
                let key = match &http.api_key_env {
                    None => None,
                    Some(name) => {
                        Some(secret(name).ok_or_else(|| format!("apiKeyEnv: {name} is not set"))?)
                    }
                };
                ChatCompletions::new(&http.base_url, &http.model, key.as_deref())
                    .map(|model| Arc::new(model) as Arc<dyn Model>)
                    .map_err(|fault| fault.to_string())
            }
            Provider::Anthropic | Provider::Responses => {
                Err("provider: is not spoken by this version".to_owned())
            }
        },
    }
}
