//! A model that says what it was told to say: for demos and tests, without a network (SPEC section
//! 7).

use async_trait::async_trait;
use serde_json::Value;

use askwell_shared::agent::Script;

use super::{Entry, Model, ModelCall, ModelFault, ModelReply, ModelRequest, Usage, tokens_of};

/// Stands for the last tool result, in texts and in texts within inputs.
const ANSWER: &str = "{{answer}}";
/// What the model says when its turns are over.
const DONE: &str = "Done.";

/// The model. It keeps no state: which turn it is follows from the request, so that any worker may
/// go on, and a repeated call gives the same reply.
#[derive(Debug, Clone)]
pub struct Scripted {
    script: Script,
}

impl Scripted {
    /// A model that says this, turn after turn; then its text is `Done.`.
    pub fn new(script: Script) -> Self {
        Self { script }
    }

    fn reply(&self, request: &ModelRequest) -> ModelReply {
        let own = own_turns(&request.entries);
        let answer = last_result(own);
        let (text, calls) = match self.script.turns.get(own.len()) {
            Some(turn) => (
                turn.text
                    .as_deref()
                    .unwrap_or_default()
                    .replace(ANSWER, answer),
                turn.calls.as_slice(),
            ),
            None => (DONE.to_owned(), &[][..]),
        };
        let turn = own.len() + 1;
        let calls: Vec<(String, Value)> = calls
            .iter()
            .map(|call| (call.tool.clone(), fill(&call.input, answer)))
            .collect();
        let written = text.len()
            + calls
                .iter()
                .map(|(_, input)| input.to_string().len())
                .sum::<usize>();
        let calls = calls
            .into_iter()
            .enumerate()
            .map(|(n, (tool, input))| ModelCall {
                id: format!("call_{turn}_{}", n + 1),
                tool,
                input: Ok(input),
            });
        ModelReply {
            text,
            calls: calls.collect(),
            raw: None,
            usage: Usage {
                tokens_in: request.estimated_tokens(),
                tokens_out: tokens_of(written),
                estimated: true,
            },
        }
    }
}

#[async_trait]
impl Model for Scripted {
    async fn call(
        &self,
        request: &ModelRequest,
        deltas: &mut (dyn for<'t> FnMut(&'t str) + Send),
    ) -> Result<ModelReply, ModelFault> {
        let reply = self.reply(request);
        for (at, word) in reply.text.split_inclusive(' ').enumerate() {
            if at > 0 && !self.script.delay.is_zero() {
                tokio::time::sleep(self.script.delay).await;
            }
            deltas(word);
        }
        Ok(reply)
    }
}

/// The turns of this run alone: in a thread the earlier runs' messages stand before its own input.
fn own_turns(entries: &[Entry]) -> &[Entry] {
    let input = entries
        .iter()
        .rposition(|entry| matches!(entry, Entry::User { .. }));
    &entries[input.map_or(0, |at| at + 1)..]
}

fn last_result(turns: &[Entry]) -> &str {
    let results = turns.iter().rev().filter_map(|entry| match entry {
        Entry::Assistant { calls, .. } => calls.last(),
        Entry::User { .. } => None,
    });
    results
        .map(|call| call.result.as_str())
        .next()
        .unwrap_or("")
}

fn fill(value: &Value, answer: &str) -> Value {
    match value {
        Value::String(text) => Value::String(text.replace(ANSWER, answer)),
        Value::Array(items) => items.iter().map(|item| fill(item, answer)).collect(),
        Value::Object(fields) => {
            let filled = fields
                .iter()
                .map(|(name, value)| (name.clone(), fill(value, answer)));
            Value::Object(filled.collect())
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::MadeCall;
    use super::*;
    use askwell_shared::agent::{ScriptedCall, ScriptedTurn};
    use serde_json::json;
    use std::time::Duration;

    fn script(turns: &Value) -> Scripted {
        let calls = |turn: &Value| -> Vec<ScriptedCall> {
            let calls = turn["calls"].as_array().cloned().unwrap_or_default();
            let call = |call: &Value| ScriptedCall {
                tool: call["tool"].as_str().unwrap().to_owned(),
                input: call.get("input").cloned().unwrap_or_else(|| json!({})),
            };
            calls.iter().map(call).collect()
        };
        let turns = turns.as_array().unwrap().iter().map(|turn| ScriptedTurn {
            text: turn["text"].as_str().map(str::to_owned),
            calls: calls(turn),
        });
        Scripted::new(Script {
            turns: turns.collect(),
            delay: Duration::ZERO,
        })
    }

    fn user(text: &str) -> Entry {
        Entry::User {
            text: text.to_owned(),
        }
    }

    fn made(results: &[&str]) -> Entry {
        let calls = results.iter().map(|result| MadeCall {
            id: "call_1_1".to_owned(),
            tool: "question".to_owned(),
            input: json!({}),
            result: (*result).to_owned(),
            failed: false,
        });
        Entry::Assistant {
            text: String::new(),
            calls: calls.collect(),
            raw: None,
        }
    }

    async fn reply_to(model: &Scripted, entries: Vec<Entry>) -> (ModelReply, Vec<String>) {
        let request = ModelRequest {
            instructions: "Ask.".to_owned(),
            entries,
            tools: Vec::new(),
        };
        let mut words = Vec::new();
        let reply = model
            .call(&request, &mut |word| words.push(word.to_owned()))
            .await
            .unwrap();
        (reply, words)
    }

    #[tokio::test]
    async fn it_follows_its_turns_and_then_says_done() {
        let model = script(&json!([
            { "text": "One moment, please.", "calls": [
                { "tool": "question", "input": { "question": "Which size?", "choices": ["S", 1.5] } },
                { "tool": "today" },
            ] },
            { "calls": [{ "tool": "order", "input": { "size": ["size {{answer}}"] } }] },
            { "text": "{{answer}} it is." },
        ]));
        let (first, words) = reply_to(&model, vec![user("a shirt")]).await;
        assert_eq!(words, ["One ", "moment, ", "please."]);
        assert_eq!(first.text, "One moment, please.");
        let ids: Vec<&str> = first.calls.iter().map(|call| call.id.as_str()).collect();
        assert_eq!(ids, ["call_1_1", "call_1_2"]);
        let input = first.calls[0].input.clone().unwrap();
        assert_eq!(
            input.to_string(),
            r#"{"question":"Which size?","choices":["S",1.5]}"#
        );
        assert_eq!(first.calls[1].input, Ok(json!({})));
        assert!(first.usage.estimated && first.usage.tokens_in > 0);

        let (second, words) = reply_to(&model, vec![user("a shirt"), made(&["M"])]).await;
        assert_eq!(words, [""; 0]);
        assert_eq!(second.calls[0].id, "call_2_1");
        assert_eq!(second.calls[0].input, Ok(json!({ "size": ["size M"] })));

        let entries = vec![user("a shirt"), made(&["M"]), made(&["x", "It {{answer}}"])];
        let (third, _) = reply_to(&model, entries).await;
        assert_eq!(third.text, "It {{answer}} it is.");

        let entries = vec![user("a shirt"), made(&[]), made(&[]), made(&[]), made(&[])];
        let (last, _) = reply_to(&model, entries).await;
        assert_eq!((last.text.as_str(), last.calls.len()), ("Done.", 0));
        assert_eq!(last.usage.tokens_out, 2);
    }

    #[tokio::test]
    async fn earlier_runs_of_a_thread_do_not_count() {
        let model = script(&json!([{ "text": "Hello{{answer}}." }]));
        let entries = vec![user("hi"), made(&["old"]), made(&[]), user("again")];
        let (reply, _) = reply_to(&model, entries).await;
        assert_eq!(reply.text, "Hello.");
    }
}
