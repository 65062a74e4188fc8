//! Commands as they come in, and what makes two of them the same.

use askwell_shared::json;
use serde_json::{Map, Value, json};

use crate::fields::Fields;
use crate::refusal::Refusal;

/// What a caller wants done. `run` is as it was sent: one that no run can have is T0001, like one
/// that none has.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    /// Start a run.
    Start(Start),
    /// Answer an ask, or one of its questions.
    Approve {
        /// The run.
        run: String,
        /// Which ask of it.
        at: Answer,
        /// Which question, from 1.
        n: Option<u32>,
        /// The answer; left out and `null` differ.
        data: Option<Value>,
    },
    /// Refuse an ask.
    Refuse {
        /// The run.
        run: String,
        /// Which ask of it.
        at: Answer,
        /// Why, for the record.
        reason: Option<String>,
    },
    /// End a run.
    Cancel {
        /// The run.
        run: String,
    },
    /// Go on with a failed run.
    Retry {
        /// The run.
        run: String,
    },
}

/// What a run is started with.
#[derive(Debug, Clone, PartialEq)]
pub struct Start {
    /// The agent.
    pub agent: String,
    /// Any JSON; text is the person's message.
    pub input: Value,
    /// The starter's thread.
    pub thread: Option<String>,
}

/// Which ask of a run (SPEC 3.4).
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The step.
    pub step: String,
    /// Which asking, from 1.
    pub repeat: u32,
}

impl Command {
    /// Reads a command of this kind; `None` where there is no such kind. For HTTP `run` is part
    /// of the path and put in by the caller.
    pub fn read(kind: &str, map: &Map<String, Value>) -> Option<Result<Self, Refusal>> {
        let fields = Fields(map);
        Some(match kind {
            "start" => read_start(&fields),
            "approve" => read_approve(&fields),
            "refuse" => read_refuse(&fields),
            "cancel" => fields.text("run").map(|run| Command::Cancel { run }),
            "retry" => fields.text("run").map(|run| Command::Retry { run }),
            _ => return None,
        })
    }

    /// What the command is known by besides its id: kind and fields after defaults, compared as
    /// JSON (SPEC 3.6). A missing `data` and `null` differ; `1` and `1.0` do not.
    pub fn digest(&self) -> String {
        let body = match self {
            Command::Start(start) => json!({
                "kind": "start",
                "agent": start.agent,
                "input": start.input,
                "thread": start.thread,
            }),
            Command::Approve { run, at, n, data } => {
                let mut body = json!({
                    "kind": "approve", "run": run, "step": at.step, "repeat": at.repeat, "n": n,
                });
                if let Some(data) = data {
                    body["data"] = data.clone();
                }
                body
            }
            Command::Refuse { run, at, reason } => json!({
                "kind": "refuse", "run": run, "step": at.step, "repeat": at.repeat,
                "reason": reason,
            }),
            Command::Cancel { run } => json!({"kind": "cancel", "run": run}),
            Command::Retry { run } => json!({"kind": "retry", "run": run}),
        };
        json::digest(&body)
    }
}

fn read_start(fields: &Fields) -> Result<Command, Refusal> {
    Ok(Command::Start(Start {
        agent: fields.text("agent")?,
        input: fields
            .any("input")
            .ok_or_else(|| Refusal::malformed("The field input is missing."))?,
        thread: fields.optional_text("thread")?,
    }))
}

fn read_approve(fields: &Fields) -> Result<Command, Refusal> {
    Ok(Command::Approve {
        run: fields.text("run")?,
        at: read_answer(fields)?,
        n: fields.optional_count("n")?,
        data: fields.any("data"),
    })
}

fn read_refuse(fields: &Fields) -> Result<Command, Refusal> {
    Ok(Command::Refuse {
        run: fields.text("run")?,
        at: read_answer(fields)?,
        reason: fields.optional_text("reason")?,
    })
}

fn read_answer(fields: &Fields) -> Result<Answer, Refusal> {
    Ok(Answer {
        step: fields.text("step")?,
        repeat: fields.optional_count("repeat")?.unwrap_or(1),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(kind: &str, json: &str) -> Result<Command, Refusal> {
        let value = json::parse(json.as_bytes()).unwrap();
        Command::read(kind, value.as_object().unwrap()).unwrap()
    }

    fn digest(kind: &str, json: &str) -> String {
        read(kind, json).unwrap().digest()
    }

    #[test]
    fn defaults_and_unknown_fields_make_no_other_body() {
        let plain = digest("approve", r#"{"run":"r","step":"question 1.1","data":1}"#);
        for same in [
            r#"{"data":1.0,"step":"question 1.1","run":"r","repeat":1,"n":null}"#,
            r#"{"run":"r","step":"question 1.1","data":1,"cmd":"x","owner":"someone"}"#,
        ] {
            assert_eq!(digest("approve", same), plain, "{same}");
        }
        for other in [
            r#"{"run":"r","step":"question 1.1"}"#,
            r#"{"run":"r","step":"question 1.1","data":null}"#,
            r#"{"run":"r","step":"question 1.1","data":"1"}"#,
            r#"{"run":"r","step":"question 1.1","data":1,"n":1}"#,
            r#"{"run":"r","step":"question 1.1","data":1,"repeat":2}"#,
            r#"{"run":"s","step":"question 1.1","data":1}"#,
        ] {
            assert_ne!(digest("approve", other), plain, "{other}");
        }
        let missing = digest("approve", r#"{"run":"r","step":"q"}"#);
        let null = digest("approve", r#"{"run":"r","step":"q","data":null}"#);
        assert_ne!(missing, null);
    }

    #[test]
    fn kinds_never_share_a_body() {
        let kinds = ["cancel", "retry"].map(|kind| digest(kind, r#"{"run":"r"}"#));
        assert_ne!(kinds[0], kinds[1]);
        let refuse = digest("refuse", r#"{"run":"r","step":"q"}"#);
        assert_ne!(refuse, digest("approve", r#"{"run":"r","step":"q"}"#));
    }

    #[test]
    fn data_of_a_refusal_is_not_looked_at() {
        assert_eq!(
            digest("refuse", r#"{"run":"r","step":"q","data":{"a":1}}"#),
            digest("refuse", r#"{"run":"r","step":"q","reason":null}"#)
        );
    }

    #[test]
    fn a_wrong_field_is_named() {
        for (kind, json, field) in [
            ("start", r#"{"input":"x"}"#, "agent"),
            ("start", r#"{"agent":"a"}"#, "input"),
            ("start", r#"{"agent":1,"input":"x"}"#, "agent"),
            (
                "start",
                r#"{"agent":"a","input":"x","thread":{}}"#,
                "thread",
            ),
            ("approve", r#"{"run":"r","data":1}"#, "step"),
            (
                "approve",
                r#"{"run":"r","step":"q","repeat":"1"}"#,
                "repeat",
            ),
            ("approve", r#"{"run":"r","step":"q","n":1.5}"#, "n"),
            ("refuse", r#"{"run":"r","step":"q","reason":3}"#, "reason"),
            ("cancel", r"{}", "run"),
            ("retry", r#"{"run":[]}"#, "run"),
        ] {
            let refusal = read(kind, json).unwrap_err();
            assert_eq!(refusal.code.name(), "T0006", "{kind} {json}");
            assert!(
                refusal.detail.contains(&format!("field {field} ")),
                "{kind} {json}: {}",
                refusal.detail
            );
        }
    }

    #[test]
    fn an_input_of_null_is_an_input() {
        let command = read("start", r#"{"agent":"a","input":null}"#).unwrap();
        let Command::Start(start) = command else {
            panic!("{command:?}")
        };
        assert_eq!(start.input, Value::Null);
    }
}
