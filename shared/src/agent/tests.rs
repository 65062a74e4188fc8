use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::json;

use super::*;

fn script() -> ModelSpec {
    ModelSpec::Scripted(Script {
        turns: vec![ScriptedTurn {
            text: Some("Hello".into()),
            calls: vec![],
        }],
        delay: Duration::ZERO,
    })
}

fn asker() -> AgentBuilder {
    Agent::builder("asker").model(script())
}

fn http_tool(http: HttpToolSpec) -> ToolSpec {
    ToolSpec {
        http: Some(http),
        ..ToolSpec::new("refund")
    }
}

fn http() -> HttpToolSpec {
    HttpToolSpec {
        method: "POST".into(),
        url: "http://127.0.0.1:9000/refund".into(),
        headers_env: BTreeMap::from([("authorization".into(), "REFUND_AUTH".into())]),
        timeout: Duration::from_secs(30),
    }
}

fn model(base_url: &str, model: &str, key: Option<&str>) -> ModelSpec {
    ModelSpec::Http(HttpModel {
        provider: Provider::ChatCompletions,
        base_url: base_url.into(),
        model: model.into(),
        api_key_env: key.map(Into::into),
    })
}

fn fault(builder: AgentBuilder) -> String {
    builder.build().unwrap_err().to_string()
}

#[test]
fn what_is_left_out_has_the_defaults_of_the_spec() {
    let agent = asker().build().unwrap();
    assert_eq!(agent.access, [Access::SignedIn]);
    assert_eq!(agent.limits.asks, 20);
    assert_eq!(agent.limits.ask, Duration::from_hours(24));
    assert_eq!(agent.on_message, OnMessage::Queue);
    assert_eq!(agent.upgrade, Upgrade::Newest);
    assert!(!agent.questions && !agent.ask_question && !agent.tell_expiry);
}

#[test]
fn a_reserved_tool_name_is_refused_with_the_agent_and_the_tool() {
    for name in ["question", "ask_question"] {
        let text = fault(asker().tool(ToolSpec::new(name)));
        for part in ["T1009", "asker", name] {
            assert!(text.contains(part), "{text}");
        }
        let mcp = McpSpec {
            server: "ask".into(),
            transport: McpTransport::Command(vec!["server".into()]),
            tools: vec![name.into()],
        };
        assert!(fault(asker().mcp(mcp)).starts_with("T1009"));
    }
    for name in ["questions", "Question", "question_", "ask_questions"] {
        assert!(asker().tool(ToolSpec::new(name)).build().is_ok(), "{name}");
    }
}

#[test]
fn names_are_short_and_plain() {
    let longest = "a".repeat(64);
    for name in ["a", "A-1_b", longest.as_str()] {
        assert!(Agent::builder(name).model(script()).build().is_ok());
        assert!(asker().tool(ToolSpec::new(name)).build().is_ok());
    }
    let too_long = "a".repeat(65);
    for name in ["", "a b", "a.b", "ä", "a\n", too_long.as_str()] {
        let text = fault(Agent::builder(name).model(script()));
        assert!(text.contains("name: a name must be 1 to 64"), "{text}");
        let text = fault(asker().tool(ToolSpec::new(name)));
        assert!(text.contains("a name must be 1 to 64"), "{text}");
    }
}

type LimitRow = (&'static str, fn(&mut Limits), &'static str);

#[test]
fn limits_are_positive_and_can_be_written_down() {
    let with = |change: fn(&mut Limits)| {
        let mut limits = Limits::default();
        change(&mut limits);
        asker().limits(limits)
    };
    let days = |days: u64| Duration::from_hours(24 * days);
    for ask in [
        Duration::from_millis(1),
        days(30),
        Duration::from_millis(1 << 32),
        days(36_500),
    ] {
        let limits = Limits {
            ask,
            ..Limits::default()
        };
        assert!(asker().limits(limits).build().is_ok(), "{ask:?}");
    }
    assert!(with(|limits| limits.asks = 0).build().is_ok());
    let positive = "must be greater than 0";
    let rows: [LimitRow; 6] = [
        ("steps", |l| l.steps = Some(0), positive),
        ("perRun.tokensOut", |l| l.tokens_out = Some(0), positive),
        ("perRun.tokensIn", |l| l.tokens_in = Some(0), positive),
        ("ask", |l| l.ask = Duration::ZERO, positive),
        ("ask", |l| l.ask = Duration::from_nanos(999_999), positive),
        ("ask", |l| l.ask = Duration::MAX, "must be at most 36500d"),
    ];
    for (place, change, rule) in rows {
        let expected = format!("agent asker: limits.{place}: {rule}");
        assert_eq!(fault(with(change)), expected);
    }
}

fn refuses(rows: impl IntoIterator<Item = (AgentBuilder, &'static str)>) {
    for (builder, expected) in rows {
        let text = fault(builder);
        assert!(text.contains(expected), "{text}\n{expected}");
        assert!(!text.contains('\n'), "{text}");
    }
}

#[test]
fn every_rule_of_a_model_a_guard_and_access_names_its_place() {
    let empty = ModelSpec::Scripted(Script {
        turns: vec![],
        delay: Duration::ZERO,
    });
    let pattern = |pattern: &str, reason: &str| {
        asker().guard_out(GuardSpec::Pattern {
            pattern: pattern.into(),
            reason: reason.into(),
        })
    };
    let with = |base_url: &str, name: &str, key| asker().model(model(base_url, name, key));
    let local = "http://127.0.0.1:11434/v1";
    refuses([
        (Agent::builder("asker"), "model: is missing"),
        (
            asker().model(empty),
            "model.turns: must have at least one turn",
        ),
        (with("nowhere", "m", None), "model.baseUrl: must be a URL"),
        (
            with("http://me:pw@host", "m", None),
            "model.baseUrl: must hold no user",
        ),
        (
            with("http://host/v1?key=1", "m", None),
            "model.baseUrl: must end with its path",
        ),
        (with(local, " ", None), "model.model: must not be blank"),
        (
            with(local, "m", Some("sk-1")),
            "model.apiKeyEnv: must be the name",
        ),
        (asker().access([]), "access: must name at least one"),
        (
            pattern("(", "no"),
            "guards.out.0.pattern: must be a regular expression: ",
        ),
        (
            pattern("(?=a)", "no"),
            "guards.out.0.pattern: must be a regular expression: ",
        ),
        (pattern("a", " "), "guards.out.0.reason: must not be blank"),
    ]);
}

#[test]
fn every_rule_of_a_tool_names_its_place() {
    let tool = |parameters| {
        asker().tool(ToolSpec {
            parameters,
            ..ToolSpec::new("refund")
        })
    };
    let twice = asker()
        .tool(ToolSpec::new("refund"))
        .tool(ToolSpec::new("refund"));
    let schema = "tools.refund.parameters: must be a JSON Schema";
    let remote = json!({"type": "object", "$ref": "http://127.0.0.1:1/a.json"});
    refuses([
        (twice, "tools.refund: is there twice"),
        (
            tool(json!(true)),
            "tools.refund.parameters: must be of type",
        ),
        (
            tool(json!({"type": "array"})),
            "tools.refund.parameters: must be of type",
        ),
        (tool(json!({"type": "object", "required": "order"})), schema),
        (tool(remote), schema),
    ]);
}

#[test]
fn every_rule_of_an_http_tool_and_a_server_names_its_place() {
    let with = |change: fn(&mut HttpToolSpec)| {
        let mut http = http();
        change(&mut http);
        asker().tool(http_tool(http))
    };
    let mcp = |transport| {
        asker().mcp(McpSpec {
            server: "files".into(),
            transport,
            tools: vec!["files_read".into()],
        })
    };
    let headers = |name: &str, variable: &str| {
        asker().tool(http_tool(HttpToolSpec {
            headers_env: BTreeMap::from([(name.into(), variable.into())]),
            ..http()
        }))
    };
    assert!(with(|_| ()).build().is_ok());
    refuses([
        (
            with(|h| h.method = "post".into()),
            "tools.refund.http.method: must be one of GET",
        ),
        (
            with(|h| h.url = "/refund".into()),
            "tools.refund.http.url: must be a URL",
        ),
        (
            with(|h| h.timeout = Duration::ZERO),
            "http.timeout: must be greater than 0",
        ),
        (
            headers("a b", "X"),
            "http.headersEnv.a b: must be the name of an HTTP header",
        ),
        (
            headers("a", "Bearer x"),
            "http.headersEnv.a: must be the name of an environment",
        ),
        (
            mcp(McpTransport::Command(vec![])),
            "mcp.files.command: must begin with a program",
        ),
        (
            mcp(McpTransport::Url("files".into())),
            "mcp.files.url: must be a URL",
        ),
    ]);
}

#[test]
fn a_rule_never_repeats_a_secret_that_was_written_where_its_name_belongs() {
    for builder in [
        asker().model(model("http://host", "m", Some("sk-secret"))),
        asker().model(model("http://me:secret@host", "m", None)),
    ] {
        assert!(!fault(builder).contains("secret"));
    }
}

#[test]
fn the_revision_is_of_the_definition_alone() {
    let base = || asker().instructions("Ask.");
    let revision = |builder: AgentBuilder| builder.build().unwrap().revision();
    let with = |parameters| {
        base().tool(ToolSpec {
            parameters,
            ..ToolSpec::new("refund")
        })
    };
    let same = revision(base());
    assert_eq!(same.len(), 16);
    assert_eq!(revision(base()), same);
    let one = json!({"type": "object", "properties": {"a": {}, "b": {}}});
    let other = json!({"properties": {"b": {}, "a": {}}, "type": "object"});
    assert_eq!(revision(with(one.clone())), revision(with(other)));
    for changed in [
        base().instructions("Ask well."),
        base().description("Asks"),
        base().questions(true),
        base().ask_question(true),
        base().tell_expiry(true),
        base().access([Access::System]),
        base().on_message(OnMessage::Supersede),
        base().upgrade(Upgrade::Pinned),
        base().limits(Limits {
            asks: 21,
            ..Limits::default()
        }),
        base().model(model("http://host", "m", None)),
        with(one),
    ] {
        assert_ne!(revision(changed.clone()), same, "{changed:?}");
    }
}

/// A pinned run goes on only with the same revision, so a digest that changes from one release to
/// the next strands them: this one is written down.
#[test]
fn the_revision_is_the_same_in_every_release() {
    assert_eq!(asker().build().unwrap().revision(), "412db1c89c81992a");
}
