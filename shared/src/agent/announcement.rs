//! What workers announce of an agent, and all that gateways know of it (SPEC 2).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Access, Agent, Approval, Limits, OnMessage, Upgrade};

/// An agent as it stands in the store. When it was last seen is the store's to add.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Announcement {
    /// The version of this record, [`Announcement::VERSION`]; a newer one is left alone (SPEC 5).
    pub v: u32,
    /// The agent's name.
    pub name: String,
    /// The revision of its definition.
    pub revision: String,
    /// Who may start it.
    pub access: Vec<Access>,
    /// What it is for, to people who choose.
    pub description: String,
    /// What a run of it may use.
    pub limits: Limits,
    /// What a new start does to a waiting head of its thread.
    pub on_message: OnMessage,
    /// Whether the model is offered `question`.
    pub questions: bool,
    /// Whether the model is offered `ask_question`.
    pub ask_question: bool,
    /// Whether the model is told that an ask expired.
    pub tell_expiry: bool,
    /// Which revision goes on with its runs.
    pub upgrade: Upgrade,
    /// The tools whose calls may become asks, by name.
    pub tools: BTreeMap<String, AnnouncedTool>,
}

/// What a gateway must know of a tool to check the answer to its approval (SPEC 3.3).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AnnouncedTool {
    /// Whether the person who approves may replace the input.
    pub editable: bool,
    /// The schema of the input; left out where nothing may be replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
}

impl Announcement {
    /// The version that this build writes and reads.
    pub const VERSION: u32 = 1;
}

impl Agent {
    /// What a worker announces of this agent.
    pub fn announcement(&self) -> Announcement {
        // A tool written in Rust may ask for approval by a predicate of its own; that it is
        // editable tells so.
        let asked = self
            .tools
            .iter()
            .filter(|tool| tool.approval == Approval::Always || tool.editable);
        let tools = asked.map(|tool| {
            let announced = AnnouncedTool {
                editable: tool.editable,
                schema: tool.editable.then(|| tool.parameters.clone()),
            };
            (tool.name.clone(), announced)
        });
        Announcement {
            v: Announcement::VERSION,
            name: self.name.clone(),
            revision: self.revision(),
            access: self.access.clone(),
            description: self.description.clone(),
            limits: self.limits.clone(),
            on_message: self.on_message,
            questions: self.questions,
            ask_question: self.ask_question,
            tell_expiry: self.tell_expiry,
            upgrade: self.upgrade,
            tools: tools.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{ModelSpec, Script, ScriptedTurn, ToolSpec};
    use super::*;

    fn agent() -> Agent {
        let turn = ScriptedTurn {
            text: Some("Hello".into()),
            calls: vec![],
        };
        let schema = json!({"type": "object", "properties": {"amount": {"maximum": 9.90}}});
        let tool = |name: &str, approval, editable| ToolSpec {
            approval,
            editable,
            parameters: schema.clone(),
            ..ToolSpec::new(name)
        };
        Agent::builder("shop")
            .model(ModelSpec::Scripted(Script {
                turns: vec![turn],
                delay: std::time::Duration::ZERO,
            }))
            .description("Sells")
            .tool(tool("look", Approval::Never, false))
            .tool(tool("pay", Approval::Always, false))
            .tool(tool("refund", Approval::Always, true))
            .ask_question(true)
            .build()
            .unwrap()
    }

    #[test]
    fn a_record_has_the_names_of_the_wire() {
        let mut json = serde_json::to_value(agent().announcement()).unwrap();
        let revision = json["revision"].take();
        assert_eq!(revision.as_str().unwrap().len(), 16);
        assert_eq!(
            json,
            json!({
                "v": 1, "name": "shop", "revision": null, "access": ["signedIn"],
                "description": "Sells",
                "limits": {
                    "steps": null, "tokensOut": null, "tokensIn": null, "asks": 20,
                    "askMs": 86_400_000
                },
                "onMessage": "queue", "questions": false, "askQuestion": true,
                "tellExpiry": false, "upgrade": "newest",
                "tools": {
                    "pay": {"editable": false},
                    "refund": {
                        "editable": true,
                        "schema": {"type": "object", "properties": {"amount": {"maximum": 9.90}}}
                    }
                }
            })
        );
    }

    #[test]
    fn a_record_is_read_as_it_was_written_and_unknown_fields_are_left_alone() {
        let announcement = agent().announcement();
        let mut json = serde_json::to_value(&announcement).unwrap();
        json["seenAt"] = json!("2026-01-01T00:00:00.000Z");
        let read: Announcement = serde_json::from_str(&json.to_string()).unwrap();
        assert_eq!(read, announcement);
    }
}
