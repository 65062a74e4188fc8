//! What an agent asks a person is checked here, before anyone sees it (SPEC 2, `guards.out`).

use async_trait::async_trait;
use regex::Regex;
use serde_json::Value;

use askwell_shared::agent::GuardSpec;

/// Checks what an agent asks.
#[async_trait]
pub trait Guard: Send + Sync {
    /// Looks at an ask: the tool, what the person would be shown, and all texts in that, joined
    /// by line feeds. `Err` is the reason why nobody may see it; the model reads it.
    async fn check(&self, tool: &str, input: &Value, text: &str) -> Result<(), String>;
}

/// Refuses what matches a pattern.
pub struct PatternGuard {
    pattern: Regex,
    reason: String,
}

impl PatternGuard {
    /// A guard that refuses what matches `pattern`, for `reason`.
    pub fn new(pattern: &str, reason: &str) -> Result<Self, String> {
        // The agents file was checked already; in Rust a builder may bring anything.
        let pattern = Regex::new(pattern).map_err(|fault| fault.to_string())?;
        Ok(PatternGuard {
            pattern,
            reason: reason.to_owned(),
        })
    }
}

#[async_trait]
impl Guard for PatternGuard {
    async fn check(&self, _tool: &str, _input: &Value, text: &str) -> Result<(), String> {
        if self.pattern.is_match(text) {
            Err(self.reason.clone())
        } else {
            Ok(())
        }
    }
}

/// The guard of a definition.
pub fn guard(spec: &GuardSpec) -> Result<Box<dyn Guard>, String> {
    match spec {
        GuardSpec::Pattern { pattern, reason } => Ok(Box::new(PatternGuard::new(pattern, reason)?)),
    }
}

/// Asks all guards; the first reason counts.
pub async fn check_all(guards: &[Box<dyn Guard>], tool: &str, input: &Value) -> Result<(), String> {
    let mut text = String::new();
    gather(input, &mut text);
    for guard in guards {
        guard.check(tool, input, &text).await?;
    }
    Ok(())
}

/// Every text that the person could read: values, and the names of fields, since a form shows
/// them as labels.
fn gather(value: &Value, text: &mut String) {
    let mut line = |piece: &str| {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(piece);
    };
    match value {
        Value::String(piece) => line(piece),
        Value::Number(number) => line(&number.to_string()),
        Value::Array(items) => items.iter().for_each(|item| gather(item, text)),
        Value::Object(fields) => {
            for (name, field) in fields {
                gather(&Value::String(name.clone()), text);
                gather(field, text);
            }
        }
        Value::Null | Value::Bool(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    async fn check(pattern: &str, input: Value) -> Result<(), String> {
        let guards: Vec<Box<dyn Guard>> = vec![Box::new(PatternGuard::new(pattern, "no").unwrap())];
        check_all(&guards, "question", &input).await
    }

    #[tokio::test]
    async fn every_text_of_an_ask_is_looked_at() {
        let secret = r"(?i)\bpassword\b";
        for input in [
            json!({"question": "Your Password?"}),
            json!({"question": "Which?", "choices": ["a", "the password"]}),
            json!({"question": "?", "shape": {"properties": {"password": {"type": "string"}}}}),
            json!({"questions": [{"id": "a", "question": "x", "choices": [{"label": "password", "value": "p"}]}]}),
        ] {
            assert_eq!(
                check(secret, input.clone()).await,
                Err("no".into()),
                "{input}"
            );
        }
        let fine = json!({"question": "Which size?", "choices": ["S", 1, null, true]});
        assert_eq!(check(secret, fine).await, Ok(()));
    }

    #[test]
    fn a_bad_pattern_is_told() {
        assert!(PatternGuard::new("(", "no").is_err());
    }
}
