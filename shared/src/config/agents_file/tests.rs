use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::agent::{
    Approval, HttpModel, McpTransport, ModelSpec, Provider, Script, ScriptedCall, ScriptedTurn,
};

mod faults;

/// The file of SPEC 7, with a scripted model beside it.
const WHOLE: &str = r#"
[models.writer]
provider = "chat-completions"
baseUrl = "http://127.0.0.1:11434/v1"
model = "some-model"
apiKeyEnv = "WRITER_API_KEY"

[agents.asker]
description = "Asks for a size"
model = "writer"
instructions = "Ask what you need to know."
tools = ["ask_question", "refund", "files_read", "files_list"]
access = ["role:staff", "system"]
questions = true
limits = { steps = 6, ask = "30d", asks = 3, perRun = { tokensOut = 50000, tokensIn = 9 } }
onMessage = "supersede"
upgrade = "pinned"
tellExpiry = true
[[agents.asker.guards.out]]
pattern = '(?i)\bpassword\b'
reason = "never ask for a password"

[tools.refund]
description = "Refund an order"
parameters = { type = "object", properties = { order = { type = "string" } }, required = ["order"] }
approval = "always"
editable = true
idempotent = true
http = { method = "PUT", url = "http://127.0.0.1:9000/refund", headersEnv = { authorization = "REFUND_AUTH" }, timeout = "5s" }

[mcp.files]
command = ["some-mcp-server", "--flag"]
"#;

fn env(name: &str) -> Option<String> {
    match name {
        "WRITER_API_KEY" | "REFUND_AUTH" => Some("secret".into()),
        "EMPTY" => Some(String::new()),
        "BROKEN" => Some("a\nb".into()),
        _ => None,
    }
}

fn read(text: &str) -> Result<Vec<Agent>, String> {
    parse(text, "agents.toml", &env).map_err(|fault| fault.to_string())
}

fn one(text: &str) -> Agent {
    let mut agents = read(text).unwrap();
    assert_eq!(agents.len(), 1);
    agents.remove(0)
}

/// A file whose agent starts at line 4, with these lines below its model.
fn asker(lines: &str) -> String {
    format!(
        "[models.m]\nprovider = \"scripted\"\nturns = [{{ text = \"Hi\" }}]\n[agents.asker]\n\
         model = \"m\"\n{lines}"
    )
}

#[test]
fn every_key_is_read() {
    let agent = one(WHOLE);
    assert_eq!(agent.name, "asker");
    assert_eq!(agent.description, "Asks for a size");
    assert_eq!(agent.instructions, "Ask what you need to know.");
    let model = HttpModel {
        provider: Provider::ChatCompletions,
        base_url: "http://127.0.0.1:11434/v1".into(),
        model: "some-model".into(),
        api_key_env: Some("WRITER_API_KEY".into()),
    };
    assert_eq!(agent.model, ModelSpec::Http(model));
    assert!(agent.ask_question && agent.questions && agent.tell_expiry);
    assert_eq!(agent.access, [Access::Role("staff".into()), Access::System]);
    let limits = Limits {
        steps: Some(6),
        tokens_out: Some(50_000),
        tokens_in: Some(9),
        asks: 3,
        ask: Duration::from_hours(30 * 24),
    };
    assert_eq!(agent.limits, limits);
    assert_eq!(agent.on_message, OnMessage::Supersede);
    assert_eq!(agent.upgrade, Upgrade::Pinned);
    let guard = GuardSpec::Pattern {
        pattern: r"(?i)\bpassword\b".into(),
        reason: "never ask for a password".into(),
    };
    assert_eq!(agent.guards_out, [guard]);

    let [tool] = agent.tools.as_slice() else {
        panic!("{:?}", agent.tools);
    };
    assert_eq!(
        (tool.name.as_str(), tool.approval),
        ("refund", Approval::Always)
    );
    assert!(tool.editable && tool.idempotent);
    let order = json!({"order": {"type": "string"}});
    let schema = json!({"type": "object", "properties": order, "required": ["order"]});
    assert_eq!(tool.parameters, schema);
    let http = tool.http.as_ref().unwrap();
    assert_eq!((http.method.as_str(), http.timeout.as_secs()), ("PUT", 5));
    assert_eq!(http.headers_env["authorization"], "REFUND_AUTH");
    let files = McpSpec {
        server: "files".into(),
        transport: McpTransport::Command(vec!["some-mcp-server".into(), "--flag".into()]),
        tools: vec!["files_read".into(), "files_list".into()],
    };
    assert_eq!(agent.mcp, [files]);
    assert!(!format!("{agent:?}").contains("secret"));
}

#[test]
fn what_is_left_out_is_as_in_rust() {
    let agent = one(&asker(""));
    let script = Script {
        turns: vec![ScriptedTurn {
            text: Some("Hi".into()),
            calls: vec![],
        }],
        delay: Duration::ZERO,
    };
    let built = Agent::builder("asker").model(ModelSpec::Scripted(script));
    let built = built.build().unwrap();
    assert_eq!(agent, built);
    assert_eq!(agent.revision(), built.revision());
    let tool = "tools = [\"t\"]\n[tools.t]\nhttp = { url = \"http://host\" }";
    let http = one(&asker(tool)).tools[0].http.clone().unwrap();
    assert_eq!((http.method.as_str(), http.timeout.as_secs()), ("POST", 30));
}

#[test]
fn agents_come_in_the_order_of_the_file() {
    let more = "[agents.b]\nmodel = \"m\"\n[agents.a]\nmodel = \"m\"";
    let agents = read(&asker(more)).unwrap();
    let names: Vec<_> = agents.iter().map(|agent| agent.name.as_str()).collect();
    assert_eq!(names, ["asker", "b", "a"]);
}

#[test]
fn inputs_keep_their_order_and_digits() {
    let text = "[models.m]\nprovider = \"scripted\"\n[[models.m.turns]]\ncalls = [\n\
        { tool = \"t\", input = { z = 1.0, a = [1, 0x10, 1_000, -5, +2.50, 1e3], t = true } },\n\
        { tool = \"t\", input = 123456789012345678901234567890 }, { tool = \"t\" },\n]\n\
        [agents.a]\nmodel = \"m\"";
    let ModelSpec::Scripted(script) = one(text).model else {
        panic!("a scripted model");
    };
    let inputs: Vec<_> = script.turns[0]
        .calls
        .iter()
        .map(|ScriptedCall { input, .. }| input.to_string())
        .collect();
    let expected = [
        r#"{"z":1.0,"a":[1,16,1000,-5,2.50,1e+3],"t":true}"#,
        "123456789012345678901234567890",
        "{}",
    ];
    assert_eq!(inputs, expected);
}

#[test]
fn the_demo_agents_are_three_and_ask_in_three_ways() {
    let agents = demo().unwrap();
    let names: Vec<_> = agents.iter().map(|agent| agent.name.as_str()).collect();
    assert_eq!(names, ["tshirt", "support", "order"]);
    let first_call = |agent: &Agent| -> (String, Value) {
        let ModelSpec::Scripted(script) = &agent.model else {
            panic!("a demo agent needs no key");
        };
        assert_eq!(script.delay, Duration::from_millis(30));
        assert_eq!(script.turns.len(), 2);
        assert!(
            script.turns[1]
                .text
                .as_ref()
                .unwrap()
                .contains("{{answer}}")
        );
        let call = &script.turns[0].calls[0];
        (call.tool.clone(), call.input.clone())
    };
    let size = json!({"question": "Which size?", "choices": ["S", "M", "L"]});
    assert_eq!(first_call(&agents[0]), ("question".into(), size));
    let (tool, input) = first_call(&agents[1]);
    assert_eq!(tool, "ask_question");
    let ids = input["questions"].as_array().unwrap().iter();
    let ids: Vec<_> = ids
        .map(|question| question["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["priority", "channel"]);
    let (tool, input) = first_call(&agents[2]);
    assert_eq!(tool, "question");
    let properties = input["shape"]["properties"].as_object().unwrap();
    let fields: Vec<_> = properties.keys().map(String::as_str).collect();
    assert_eq!(
        fields,
        ["count", "email", "gift", "note"],
        "a form keeps its order"
    );
    assert!(agents[0].questions && agents[1].ask_question && agents[2].questions);
    assert!(agents.iter().all(|agent| !agent.description.is_empty()));
}

const DEPLOYED: &str = include_str!("../../../../deploy/agents.toml");

#[test]
fn the_deployed_file_holds_the_demo_agents() {
    assert_eq!(parse(DEPLOYED, "agents.toml", &|_| None), demo());
}

/// In that file a `#` without a blank after it hides a line of an example.
#[test]
fn the_examples_of_the_deployed_file_are_right() {
    let text: Vec<_> = DEPLOYED
        .lines()
        .map(|line| match line.strip_prefix('#') {
            Some(hidden) if !hidden.starts_with(' ') => hidden,
            _ => line,
        })
        .collect();
    let env = |_: &str| Some("set".to_owned());
    let agents = parse(&text.join("\n"), "agents.toml", &env).unwrap();
    let shop = agents.iter().find(|agent| agent.name == "shop").unwrap();
    assert_eq!(shop.tools[0].approval, Approval::Always);
    assert_eq!(shop.guards_out.len(), 1);
    assert_eq!(shop.mcp.len(), 1);
}

#[test]
fn a_file_is_read_where_it_is_and_its_absence_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("agents.toml");
    let fault = load(Some(&path)).unwrap_err().to_string();
    assert!(
        fault.starts_with("ASKWELL_AGENTS (--agents): cannot read "),
        "{fault}"
    );
    std::fs::write(&path, asker("")).unwrap();
    assert_eq!(load(Some(&path)).unwrap().len(), 1);
    std::fs::write(&path, "[agents]\n\nx = 1").unwrap();
    let fault = load(Some(&path)).unwrap_err().to_string();
    assert!(
        fault.contains("agents.toml:3: agents.x: must be"),
        "{fault}"
    );
    assert_eq!(load(None), demo());
}
