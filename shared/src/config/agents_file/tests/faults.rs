//! Every fault of a file, with the line, the key and the rule that it must name.

use super::{asker, read};

/// A file that begins with these lines, and an agent that uses nothing of them.
fn beside(lines: &str) -> String {
    format!("{lines}\n{}", asker(""))
}

fn refuses(rows: &[(String, &str)]) {
    for (text, expected) in rows {
        let fault = read(text).expect_err(expected);
        assert!(fault.starts_with(expected), "{text}\n{fault}\n{expected}");
        assert!(!fault.contains('\n'), "{fault}");
    }
}

#[test]
fn an_unknown_key_is_named_with_its_line() {
    let model = "[models.x]\nprovider = \"scripted\"\nturns = [{ text = \"a\" }]\n";
    refuses(&[
        (beside("\"a\\nb\" = 1"), "agents.toml:1: a\\nb: unknown key"),
        (
            beside("[model.x]"),
            "agents.toml:1: model: unknown key; known here: models, agents",
        ),
        (
            asker("modle = 1"),
            "agents.toml:6: agents.asker.modle: unknown key",
        ),
        (
            asker("limits = { step = 1 }"),
            "agents.toml:6: agents.asker.limits.step: unknown key",
        ),
        (
            asker("[agents.asker.limits.perRun]\ntokens = 1"),
            "agents.toml:7: agents.asker.limits.perRun.tokens: unknown key",
        ),
        (
            asker("guards.in = []"),
            "agents.toml:6: agents.asker.guards.in: unknown key",
        ),
        (
            asker(
                "[[agents.asker.guards.out]]\npattern = \"a\"\nreason = \"b\"\n\
                   [[agents.asker.guards.out]]\nlength = 5",
            ),
            "agents.toml:10: agents.asker.guards.out.1.length: unknown key",
        ),
        (
            beside(&format!("{model}apiKeyEnv = \"K\"")),
            "agents.toml:4: models.x.apiKeyEnv: unknown",
        ),
        (
            beside("[models.x]\nprovider = \"responses\"\nturns = []"),
            "agents.toml:3: models.x.turns: unknown key",
        ),
        (
            beside(
                "[models.x]\nprovider = \"scripted\"\nturns = [\n{ text = \"a\" },\n{ txt = 1 },\n]",
            ),
            "agents.toml:5: models.x.turns.1.txt: unknown key",
        ),
        (
            beside("[models.x]\nprovider = \"scripted\"\nturns = [{ calls = [{ name = \"t\" }] }]"),
            "agents.toml:3: models.x.turns.0.calls.0.name: unknown key",
        ),
        (
            beside("[tools.t]\nhttps = {}"),
            "agents.toml:2: tools.t.https: unknown key",
        ),
        (
            beside("[tools.t]\nhttp = { url = \"http://h\", headers = {} }"),
            "agents.toml:2: tools.t.http.headers: unknown key",
        ),
        (
            beside("[mcp.s]\nurl = \"http://h\"\nenv = {}"),
            "agents.toml:3: mcp.s.env: unknown key",
        ),
    ]);
}

#[test]
fn a_reserved_tool_name_fails_with_the_agent_and_the_tool() {
    let own = |name: &str| {
        format!("tools = [\"{name}\"]\n[tools.{name}]\nhttp = {{ url = \"http://h\" }}")
    };
    refuses(&[
        (
            asker(&own("ask_question")),
            "agents.toml:7: tools.ask_question: T1009: agent asker: the name ask_question is",
        ),
        (
            asker(&own("question")),
            "agents.toml:7: tools.question: T1009: agent asker: the name question is reserved",
        ),
        (
            asker("[tools.question]"),
            "agents.toml:6: tools.question: T1009: the name question",
        ),
        (
            asker("tools = [\"question\"]"),
            "agents.toml:6: agents.asker.tools.0: T1009: agent asker: the name question is",
        ),
    ]);
}

#[test]
fn what_is_wrong_with_an_agent_is_named() {
    let missing = "[agents.asker]\nquestions = true";
    refuses(&[
        (
            String::new(),
            "agents.toml:1: agents: must define at least one agent",
        ),
        (
            "\n[agents]\n".into(),
            "agents.toml:2: agents: must define at least one agent",
        ),
        (
            "[agents]\na = 1".into(),
            "agents.toml:2: agents.a: must be a table",
        ),
        (
            missing.into(),
            "agents.toml:1: agents.asker.model: is missing",
        ),
        (
            "[agents.a]\nmodel = \"m\"".into(),
            "agents.toml:2: agents.a.model: there is no model",
        ),
        (
            asker("[agents.\"a b\"]\nmodel = \"m\""),
            "agents.toml:6: agents.a b.name: a name must",
        ),
        (
            asker("description = 5"),
            "agents.toml:6: agents.asker.description: must be a text",
        ),
        (
            asker("questions = \"yes\""),
            "agents.toml:6: agents.asker.questions: must be true or",
        ),
        (
            asker("onMessage = \"drop\""),
            "agents.toml:6: agents.asker.onMessage: must be one of queue, supersede",
        ),
        (
            asker("upgrade = \"never\""),
            "agents.toml:6: agents.asker.upgrade: must be one of newest, pinned",
        ),
        (
            asker("access = \"anyone\""),
            "agents.toml:6: agents.asker.access: must be signedIn, role:<name> or system",
        ),
        (
            asker("access = [\n\"system\",\n\"role:\"]"),
            "agents.toml:8: agents.asker.access.1: must be",
        ),
        (
            asker("access = []"),
            "agents.toml:6: agents.asker.access: must name at least one",
        ),
        (
            asker("access = true"),
            "agents.toml:6: agents.asker.access: must be a text or a list",
        ),
        (
            asker("tools = \"refund\""),
            "agents.toml:6: agents.asker.tools: must be a list",
        ),
        (
            asker("tools = [\n\"refnd\"]"),
            "agents.toml:7: agents.asker.tools.0: there is no tool named refnd",
        ),
        (
            asker("tools = [\"ask_question\", \"ask_question\"]"),
            "agents.toml:6: agents.asker.tools.1: the tool ask_question is there twice",
        ),
        (
            asker("guards.out = [{ pattern = \"(\", reason = \"no\" }]"),
            "agents.toml:6: agents.asker.guards.out.0.pattern: must be a regular expression: unclosed group",
        ),
        (
            asker("guards.out = [{ pattern = \"a\" }]"),
            "agents.toml:6: agents.asker.guards.out.0.reason: is missing",
        ),
        (
            asker("guards = []"),
            "agents.toml:6: agents.asker.guards: must be a table",
        ),
        (asker("model = \"m\""), "agents.toml:6: duplicate key"),
        (asker("[agents.asker]"), "agents.toml:6: duplicate key"),
        (asker("limits = {"), "agents.toml:6: "),
    ]);
}

#[test]
fn what_is_wrong_with_limits_is_named() {
    let ask = |value: &str| asker(&format!("\n[agents.asker.limits]\n\nask = {value}"));
    refuses(&[
        (
            ask("\"0s\""),
            "agents.toml:9: agents.asker.limits.ask: must be greater than 0",
        ),
        (
            ask("0"),
            "agents.toml:9: agents.asker.limits.ask: must be greater than 0",
        ),
        (
            ask("24"),
            "agents.toml:9: agents.asker.limits.ask: must be a duration such as 500ms",
        ),
        (
            ask("\"24\""),
            "agents.toml:9: agents.asker.limits.ask: must be a duration",
        ),
        (
            ask("\"-1h\""),
            "agents.toml:9: agents.asker.limits.ask: must be a duration",
        ),
        (
            ask("\"99999999999d\""),
            "agents.toml:9: agents.asker.limits.ask: must be at most 36500d",
        ),
        (
            ask("\"9999999999999d\""),
            "agents.toml:9: agents.asker.limits.ask: is too long",
        ),
        (
            asker("limits.steps = 0"),
            "agents.toml:6: agents.asker.limits.steps: must be greater than 0",
        ),
        (
            asker("limits.steps = -1"),
            "agents.toml:6: agents.asker.limits.steps: must be greater than 0",
        ),
        (
            asker("limits.steps = 1.5"),
            "agents.toml:6: agents.asker.limits.steps: must be a whole number",
        ),
        (
            asker("limits.steps = \"6\""),
            "agents.toml:6: agents.asker.limits.steps: must be a whole number",
        ),
        (
            asker("limits.steps = 4294967296"),
            "agents.toml:6: agents.asker.limits.steps: is too large",
        ),
        (
            asker("limits.perRun.tokensOut = 0"),
            "agents.toml:6: agents.asker.limits.perRun.tokensOut: must be greater",
        ),
        (
            asker("limits.perRun.tokensIn = 0"),
            "agents.toml:6: agents.asker.limits.perRun.tokensIn: must be greater",
        ),
    ]);
}

#[test]
fn what_is_wrong_with_a_model_is_named() {
    let http = |lines: &str| {
        let head = "[models.x]\nprovider = \"anthropic\"\nbaseUrl = \"http://h\"";
        beside(&format!("{head}\n{lines}"))
    };
    let script = |lines: &str| beside(&format!("[models.x]\nprovider = \"scripted\"\n{lines}"));
    refuses(&[
        (
            beside("[models.x]"),
            "agents.toml:1: models.x.provider: is missing",
        ),
        (
            beside("[models.x]\nprovider = \"gpt\""),
            "agents.toml:2: models.x.provider: must be one of chat-completions, anthropic, responses, scripted",
        ),
        (
            beside("[models.x]\nprovider = \"responses\"\nmodel = \"m\""),
            "agents.toml:1: models.x.baseUrl: is missing",
        ),
        (
            beside("[models.\"x.y\"]"),
            "agents.toml:1: models.x.y: a name must be",
        ),
        (http(""), "agents.toml:1: models.x.model: is missing"),
        (
            http("model = \"\""),
            "agents.toml:4: models.x.model: must not be blank",
        ),
        (
            http("model = \"m\"\napiKeyEnv = \"UNSET\""),
            "agents.toml:5: models.x.apiKeyEnv: the environment variable UNSET is not set",
        ),
        (
            http("model = \"m\"\napiKeyEnv = \"EMPTY\""),
            "agents.toml:5: models.x.apiKeyEnv: the environment variable EMPTY is not set",
        ),
        (
            http("model = \"m\"\napiKeyEnv = \"BROKEN\""),
            "agents.toml:5: models.x.apiKeyEnv: the environment variable BROKEN holds a line break",
        ),
        (script(""), "agents.toml:1: models.x.turns: is missing"),
        (
            script("turns = []"),
            "agents.toml:3: models.x.turns: must have at least one turn",
        ),
        (
            script("turns = [{}]"),
            "agents.toml:3: models.x.turns.0: must have a text or calls",
        ),
        (
            script("turns = [{ calls = [{ input = 1 }] }]"),
            "agents.toml:3: models.x.turns.0.calls.0.tool: is missing",
        ),
        (
            script("turns = [{ text = \"a\" }]\ndelay = 30"),
            "agents.toml:4: models.x.delay: must be a duration",
        ),
        (
            script("turns = [{ calls = [{ tool = \"t\", input = { at = [1, 2020-01-01] } }] }]"),
            "agents.toml:3: models.x.turns.0.calls.0.input.at.1: JSON has no dates",
        ),
        (
            script("turns = [{ calls = [{ tool = \"t\", input = nan }] }]"),
            "agents.toml:3: models.x.turns.0.calls.0.input: must be a number that JSON has",
        ),
        (
            script("turns = [{ calls = [{ tool = \"t\", input = -inf }] }]"),
            "agents.toml:3: models.x.turns.0.calls.0.input: must be a number",
        ),
    ]);
}

#[test]
fn what_is_wrong_with_a_tool_or_a_server_is_named() {
    let tool = |lines: &str| beside(&format!("[tools.t]\n{lines}"));
    let url = "http.url = \"http://h\"\n";
    let mcp = |lines: &str| beside(&format!("[mcp.s]\n{lines}"));
    refuses(&[
        (
            beside("[tools.\"a b\"]"),
            "agents.toml:1: tools.a b: a name must be",
        ),
        (tool(""), "agents.toml:1: tools.t.http: is missing"),
        (
            tool("http = {}"),
            "agents.toml:2: tools.t.http.url: is missing",
        ),
        (
            tool("http = { url = \"refund\" }"),
            "agents.toml:2: tools.t.http.url: must be a URL",
        ),
        (
            tool(&format!("{url}http.method = \"HEAD\"")),
            "agents.toml:3: tools.t.http.method: must be one of",
        ),
        (
            tool(&format!("{url}http.timeout = \"0s\"")),
            "agents.toml:3: tools.t.http.timeout: must be greater than 0",
        ),
        (
            tool(&format!("{url}http.headersEnv = {{ a = \"UNSET\" }}")),
            "agents.toml:3: tools.t.http.headersEnv.a: the environment variable UNSET is not set",
        ),
        (
            tool(&format!("{url}approval = \"sometimes\"")),
            "agents.toml:3: tools.t.approval: must be one of never, always",
        ),
        (
            tool(&format!("{url}editable = 1")),
            "agents.toml:3: tools.t.editable: must be true or false",
        ),
        (
            tool(&format!("{url}parameters = \"x\"")),
            "agents.toml:3: tools.t.parameters: must be of type = \"object\"",
        ),
        (
            tool(&format!(
                "{url}parameters = {{ type = \"object\", properties = 1 }}"
            )),
            "agents.toml:3: tools.t.parameters: must be a JSON Schema",
        ),
        (
            mcp(""),
            "agents.toml:1: mcp.s.command: is missing, and so is url",
        ),
        (
            mcp("command = []"),
            "agents.toml:2: mcp.s.command: must begin with a program",
        ),
        (
            mcp("command = \"server\""),
            "agents.toml:2: mcp.s.command: must be a list",
        ),
        (
            mcp("url = \"files\""),
            "agents.toml:2: mcp.s.url: must be a URL",
        ),
        (
            mcp("command = [\"a\"]\nurl = \"http://h\""),
            "agents.toml:3: mcp.s.url: must be left out",
        ),
    ]);
}
