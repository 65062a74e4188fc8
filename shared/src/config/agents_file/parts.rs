//! What the agents of a file share: models, tools and MCP servers.

use std::collections::BTreeMap;
use std::time::Duration;

use super::super::fault::ConfigFault;
use super::super::reader::{Item, Section};
use crate::agent::{
    Approval, HttpModel, HttpToolSpec, McpTransport, ModelSpec, Provider, Script, ScriptedCall,
    ScriptedTurn, ToolSpec, check_name, check_tool_name,
};

/// How long an HTTP tool may take where the file does not say.
const HTTP_TIMEOUT: Duration = Duration::from_secs(30);

type Env<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The named parts of a file.
pub(super) struct Parts {
    pub(super) models: BTreeMap<String, ModelSpec>,
    pub(super) tools: BTreeMap<String, ToolSpec>,
    pub(super) servers: BTreeMap<String, McpTransport>,
}

impl Parts {
    pub(super) fn read(root: &Section<'_>, env: Env<'_>) -> Result<Self, ConfigFault> {
        let mut parts = Parts {
            models: BTreeMap::new(),
            tools: BTreeMap::new(),
            servers: BTreeMap::new(),
        };
        for (name, item) in named(root, "models")? {
            check_name(name).map_err(|rule| item.fault(rule))?;
            let section = item.section()?;
            let model = model(&section)?;
            let checked = model.check();
            checked.map_err(|broken| section.fault_at(&broken.place, broken.rule))?;
            check_env(&section, &model.needed_env(), env)?;
            parts.models.insert(name.to_owned(), model);
        }
        for (name, item) in named(root, "tools")? {
            check_own_name(root, name, &item)?;
            let section = item.section()?;
            let tool = tool(name, &section)?;
            let checked = tool.check();
            checked.map_err(|broken| section.fault_at(&broken.place, broken.rule))?;
            check_env(&section, &tool.needed_env(), env)?;
            parts.tools.insert(name.to_owned(), tool);
        }
        for (name, item) in named(root, "mcp")? {
            check_name(name).map_err(|rule| item.fault(rule))?;
            let section = item.section()?;
            let server = server(&section)?;
            let checked = server.check();
            checked.map_err(|broken| section.fault_at(&broken.place, broken.rule))?;
            parts.servers.insert(name.to_owned(), server);
        }
        Ok(parts)
    }

    /// The server whose tool `name` would be: `<server>_<tool>`. Of two, the longer name.
    pub(super) fn server_of(&self, name: &str) -> Option<(&str, &McpTransport)> {
        let of = |server: &str| {
            let rest = name.strip_prefix(server)?.strip_prefix('_')?;
            (!rest.is_empty()).then_some(())
        };
        self.servers
            .iter()
            .filter(|(server, _)| of(server).is_some())
            .max_by_key(|(server, _)| server.len())
            .map(|(server, transport)| (server.as_str(), transport))
    }
}

fn named<'a>(root: &Section<'a>, key: &str) -> Result<Vec<(&'a str, Item<'a>)>, ConfigFault> {
    match root.get(key) {
        Some(item) => Ok(item.section()?.entries()),
        None => Ok(Vec::new()),
    }
}

/// A reserved name is told with the agents that list the tool (SPEC 2), which are read later.
fn check_own_name(root: &Section<'_>, name: &str, item: &Item<'_>) -> Result<(), ConfigFault> {
    let Err((code, rule)) = check_tool_name(name) else {
        return Ok(());
    };
    let Some(code) = code else {
        return Err(item.fault(rule));
    };
    let lists = |agent: &Item<'_>| {
        let tools = agent.section().ok()?.get("tools")?.texts().ok()?;
        tools.contains(&name).then_some(())
    };
    let agents = named(root, "agents").unwrap_or_default();
    let agents: Vec<_> = agents
        .iter()
        .filter(|(_, agent)| lists(agent).is_some())
        .map(|(agent, _)| format!(" agent {agent}:"))
        .collect();
    Err(item.fault(format!("{code}:{} {rule}", agents.concat())))
}

fn check_env(
    section: &Section<'_>,
    needed: &[(String, String)],
    env: Env<'_>,
) -> Result<(), ConfigFault> {
    for (place, name) in needed {
        let Some(value) = env(name).filter(|value| !value.is_empty()) else {
            let rule = format!("the environment variable {name} is not set");
            return Err(section.fault_at(place, rule));
        };
        // It is sent as a header, which a line break would end.
        if value.chars().any(char::is_control) {
            let rule = format!("the environment variable {name} holds a line break or the like");
            return Err(section.fault_at(place, rule));
        }
    }
    Ok(())
}

fn model(section: &Section<'_>) -> Result<ModelSpec, ConfigFault> {
    let known = [
        ("chat-completions", Some(Provider::ChatCompletions)),
        ("anthropic", Some(Provider::Anthropic)),
        ("responses", Some(Provider::Responses)),
        ("scripted", None),
    ];
    let Some(provider) = section.need("provider")?.one_of(&known)? else {
        return script(section).map(ModelSpec::Scripted);
    };
    section.only(&["provider", "baseUrl", "model", "apiKeyEnv"])?;
    let key = section.get("apiKeyEnv");
    Ok(ModelSpec::Http(HttpModel {
        provider,
        base_url: section.need("baseUrl")?.text()?.to_owned(),
        model: section.need("model")?.text()?.to_owned(),
        api_key_env: key.map(|item| item.text().map(str::to_owned)).transpose()?,
    }))
}

fn script(section: &Section<'_>) -> Result<Script, ConfigFault> {
    section.only(&["provider", "turns", "delay"])?;
    let turns = section.need("turns")?.list()?;
    let delay = section.get("delay").map(|item| item.duration());
    Ok(Script {
        turns: turns.iter().map(turn).collect::<Result<_, _>>()?,
        delay: delay.transpose()?.unwrap_or_default(),
    })
}

fn turn(item: &Item<'_>) -> Result<ScriptedTurn, ConfigFault> {
    let section = item.section()?;
    section.only(&["text", "calls"])?;
    let text = section.get("text");
    let calls = match section.get("calls") {
        Some(item) => item.list()?,
        None => Vec::new(),
    };
    if text.is_none() && calls.is_empty() {
        return Err(item.fault("must have a text or calls"));
    }
    Ok(ScriptedTurn {
        text: text
            .map(|item| item.text().map(str::to_owned))
            .transpose()?,
        calls: calls.iter().map(call).collect::<Result<_, _>>()?,
    })
}

fn call(item: &Item<'_>) -> Result<ScriptedCall, ConfigFault> {
    let section = item.section()?;
    section.only(&["tool", "input"])?;
    let input = section.get("input");
    Ok(ScriptedCall {
        tool: section.need("tool")?.text()?.to_owned(),
        input: match input {
            Some(input) => input.json()?,
            None => serde_json::json!({}),
        },
    })
}

fn tool(name: &str, section: &Section<'_>) -> Result<ToolSpec, ConfigFault> {
    section.only(&[
        "description",
        "parameters",
        "approval",
        "editable",
        "idempotent",
        "http",
    ])?;
    let mut tool = ToolSpec::new(name);
    if let Some(item) = section.get("description") {
        item.text()?.clone_into(&mut tool.description);
    }
    if let Some(item) = section.get("parameters") {
        tool.parameters = item.json()?;
    }
    if let Some(item) = section.get("approval") {
        let known = [("never", Approval::Never), ("always", Approval::Always)];
        tool.approval = item.one_of(&known)?;
    }
    if let Some(item) = section.get("editable") {
        tool.editable = item.flag()?;
    }
    if let Some(item) = section.get("idempotent") {
        tool.idempotent = item.flag()?;
    }
    // A tool of a file is an HTTP request or nothing at all, and a call of nothing would fail in
    // front of a person.
    tool.http = Some(http(&section.need("http")?)?);
    Ok(tool)
}

fn http(item: &Item<'_>) -> Result<HttpToolSpec, ConfigFault> {
    let section = item.section()?;
    section.only(&["method", "url", "headersEnv", "timeout"])?;
    let mut headers_env = BTreeMap::new();
    if let Some(item) = section.get("headersEnv") {
        for (header, item) in item.section()?.entries() {
            headers_env.insert(header.to_owned(), item.text()?.to_owned());
        }
    }
    let method = section.get("method");
    let timeout = section.get("timeout");
    Ok(HttpToolSpec {
        method: method.map_or(Ok("POST"), |item| item.text())?.to_owned(),
        url: section.need("url")?.text()?.to_owned(),
        headers_env,
        timeout: timeout.map_or(Ok(HTTP_TIMEOUT), |item| item.duration())?,
    })
}

fn server(section: &Section<'_>) -> Result<McpTransport, ConfigFault> {
    section.only(&["command", "url"])?;
    match (section.get("command"), section.get("url")) {
        (Some(command), None) => {
            let words = command.texts()?;
            let words = words.into_iter().map(str::to_owned);
            Ok(McpTransport::Command(words.collect()))
        }
        (None, Some(url)) => Ok(McpTransport::Url(url.text()?.to_owned())),
        (None, None) => Err(section.fault_at("command", "is missing, and so is url")),
        (Some(_), Some(url)) => Err(url.fault("must be left out where there is a command")),
    }
}
