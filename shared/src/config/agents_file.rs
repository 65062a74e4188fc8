//! The file of agents (SPEC 7): TOML in which an unknown key is an error, and every error names
//! its line, its key and the rule.

mod parts;

use std::path::Path;

use super::fault::ConfigFault;
use super::reader::{Document, Item, Section};
use crate::agent::{
    ASK_QUESTION, Access, Agent, AgentBuilder, AgentFault, GuardSpec, Limits, McpSpec, OnMessage,
    QUESTION, Upgrade, check_tool_name,
};
use parts::Parts;

/// The agents of a newcomer's first minutes, on scripted models.
pub const DEMO: &str = include_str!("demo.toml");

/// Reads a file of agents. `file_name` is how faults name it; `env` looks up the environment
/// variables that the file names, which must be set.
pub fn parse(
    text: &str,
    file_name: &str,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Vec<Agent>, ConfigFault> {
    let document = Document::new(file_name, text);
    let table = document.parse()?;
    let root = Section::root(&document, table.get_ref());
    root.only(&["models", "agents", "tools", "mcp"])?;
    let parts = Parts::read(&root, env)?;
    let Some(agents) = root.get("agents") else {
        return Err(root.fault_at("agents", "must define at least one agent"));
    };
    let entries = agents.section()?.entries();
    if entries.is_empty() {
        return Err(agents.fault("must define at least one agent"));
    }
    entries
        .iter()
        .map(|(name, item)| agent(name, item, &parts))
        .collect()
}

/// The agents of the file at `path`, or the demo agents where there is none. Reads the file and
/// the environment of the process.
pub fn load(path: Option<&Path>) -> Result<Vec<Agent>, ConfigFault> {
    let Some(path) = path else {
        return demo();
    };
    let text = std::fs::read_to_string(path).map_err(|fault| ConfigFault::Setting {
        name: "ASKWELL_AGENTS (--agents)".to_owned(),
        rule: format!("cannot read {}: {fault}", path.display()),
    })?;
    let env = |name: &str| std::env::var(name).ok();
    parse(&text, &path.display().to_string(), &env)
}

/// The demo agents.
pub fn demo() -> Result<Vec<Agent>, ConfigFault> {
    parse(DEMO, "demo.toml", &|_| None)
}

fn agent(name: &str, item: &Item<'_>, parts: &Parts) -> Result<Agent, ConfigFault> {
    let section = item.section()?;
    section.only(&[
        "description",
        "model",
        "instructions",
        "tools",
        "access",
        "questions",
        "limits",
        "guards",
        "onMessage",
        "upgrade",
        "tellExpiry",
    ])?;
    let mut builder = Agent::builder(name);
    if let Some(item) = section.get("tools") {
        builder = tools(name, builder, &item, parts)?;
    }
    let model = section.need("model")?;
    let spec = parts.models.get(model.text()?);
    let spec = spec.ok_or_else(|| model.fault("there is no model of this name in [models]"))?;
    builder = builder.model(spec.clone());
    if let Some(item) = section.get("description") {
        builder = builder.description(item.text()?);
    }
    if let Some(item) = section.get("instructions") {
        builder = builder.instructions(item.text()?);
    }
    if let Some(item) = section.get("access") {
        builder = builder.access(access(&item)?);
    }
    if let Some(item) = section.get("questions") {
        builder = builder.questions(item.flag()?);
    }
    if let Some(item) = section.get("limits") {
        builder = builder.limits(limits(&item)?);
    }
    if let Some(item) = section.get("guards") {
        for guard in guards_out(&item)? {
            builder = builder.guard_out(guard);
        }
    }
    if let Some(item) = section.get("onMessage") {
        let known = [
            ("queue", OnMessage::Queue),
            ("supersede", OnMessage::Supersede),
        ];
        builder = builder.on_message(item.one_of(&known)?);
    }
    if let Some(item) = section.get("upgrade") {
        let known = [("newest", Upgrade::Newest), ("pinned", Upgrade::Pinned)];
        builder = builder.upgrade(item.one_of(&known)?);
    }
    if let Some(item) = section.get("tellExpiry") {
        builder = builder.tell_expiry(item.flag()?);
    }
    builder.build().map_err(|fault| located(&section, &fault))
}

/// The rules of an agent are checked in one place, its builder; only the line is found here.
fn located(section: &Section<'_>, fault: &AgentFault) -> ConfigFault {
    let rule = match fault.code {
        Some(code) => format!("{code}: agent {}: {}", fault.agent, fault.rule),
        None => fault.rule.clone(),
    };
    section.fault_at(&fault.place, rule)
}

fn tools(
    agent: &str,
    mut builder: AgentBuilder,
    item: &Item<'_>,
    parts: &Parts,
) -> Result<AgentBuilder, ConfigFault> {
    let mut servers: Vec<McpSpec> = Vec::new();
    let mut seen = Vec::new();
    for item in item.list()? {
        let name = item.text()?;
        if seen.contains(&name) {
            return Err(item.fault(format!("the tool {name} is there twice")));
        }
        seen.push(name);
        if name == ASK_QUESTION {
            builder = builder.ask_question(true);
        } else if name == QUESTION {
            let rule = check_tool_name(name)
                .err()
                .map_or_else(String::new, |e| e.1);
            return Err(item.fault(format!(
                "T1009: agent {agent}: {rule}; questions = true offers it"
            )));
        } else if let Some(tool) = parts.tools.get(name) {
            builder = builder.tool(tool.clone());
        } else if let Some((server, transport)) = parts.server_of(name) {
            match servers.iter_mut().find(|spec| spec.server == server) {
                Some(spec) => spec.tools.push(name.to_owned()),
                None => servers.push(McpSpec {
                    server: server.to_owned(),
                    transport: transport.clone(),
                    tools: vec![name.to_owned()],
                }),
            }
        } else {
            return Err(item.fault(format!(
                "there is no tool named {name} in [tools], and no server in [mcp] that it could \
                 be of"
            )));
        }
    }
    Ok(servers.into_iter().fold(builder, AgentBuilder::mcp))
}

fn access(item: &Item<'_>) -> Result<Vec<Access>, ConfigFault> {
    let entries = match item.text() {
        Ok(_) => vec![item.clone()],
        Err(_) => item
            .list()
            .map_err(|_| item.fault("must be a text or a list of texts"))?,
    };
    entries
        .iter()
        .map(|entry| {
            entry
                .text()?
                .parse()
                .map_err(|rule: String| entry.fault(rule))
        })
        .collect()
}

fn limits(item: &Item<'_>) -> Result<Limits, ConfigFault> {
    let section = item.section()?;
    section.only(&["steps", "perRun", "asks", "ask"])?;
    let mut limits = Limits::default();
    if let Some(item) = section.get("steps") {
        limits.steps = Some(item.whole()?);
    }
    if let Some(item) = section.get("perRun") {
        let per_run = item.section()?;
        per_run.only(&["tokensOut", "tokensIn"])?;
        if let Some(item) = per_run.get("tokensOut") {
            limits.tokens_out = Some(item.whole()?);
        }
        if let Some(item) = per_run.get("tokensIn") {
            limits.tokens_in = Some(item.whole()?);
        }
    }
    if let Some(item) = section.get("asks") {
        limits.asks = item.whole()?;
    }
    if let Some(item) = section.get("ask") {
        limits.ask = item.duration()?;
    }
    Ok(limits)
}

fn guards_out(item: &Item<'_>) -> Result<Vec<GuardSpec>, ConfigFault> {
    let section = item.section()?;
    section.only(&["out"])?;
    let Some(out) = section.get("out") else {
        return Ok(Vec::new());
    };
    let guard = |item: &Item<'_>| {
        let section = item.section()?;
        section.only(&["pattern", "reason"])?;
        Ok(GuardSpec::Pattern {
            pattern: section.need("pattern")?.text()?.to_owned(),
            reason: section.need("reason")?.text()?.to_owned(),
        })
    };
    out.list()?.iter().map(guard).collect()
}

#[cfg(test)]
mod tests;
