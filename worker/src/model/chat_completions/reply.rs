//! One reply while its chunks come. The HTTP status was 200 long ago, so the stream itself must
//! prove that it is whole and no error.

use askwell_shared::json;
use serde_json::{Map, Value, json};

use super::super::assemble::{Assembly, Ending, Piece, merge};
use super::super::endpoint::message_in;
use super::super::{ModelReply, Raw, ToolOffer, Usage, tokens_of};

/// Finish reasons by which vendors say that they broke off; another try may get further.
const BROKEN_OFF: &[&str] = &[
    "error",
    "abort",
    "aborted",
    "cancelled",
    "network_error",
    "insufficient_system_resource",
];
/// Finish reasons after which arguments that are not whole were cut.
const CUT: &[&str] = &["length", "max_tokens", "content_filter"];
/// Fields of a delta that say the same in every chunk and are not to be joined.
const CONSTANT: &[&str] = &["role", "name", "id", "type", "object"];

/// Why a stream gives no reply.
#[derive(Debug, PartialEq)]
pub(super) enum Failed {
    /// It carried an error of the provider's.
    Error(Value),
    /// It is not whole.
    Stream(String),
}

/// What has come so far.
pub(super) struct Reply<'a> {
    text: String,
    calls: Assembly<'a>,
    /// Content that came as a list of parts, which goes back as one.
    parts: Option<Vec<Value>>,
    /// What the vendor put beside the known fields of the message.
    extra: Map<String, Value>,
    usage: (Option<u64>, Option<u64>),
    finish: Option<String>,
    done: bool,
    argument_bytes: usize,
}

impl<'a> Reply<'a> {
    pub(super) fn new(offers: &'a [ToolOffer]) -> Self {
        Self {
            text: String::new(),
            calls: Assembly::new(offers),
            parts: None,
            extra: Map::new(),
            usage: (None, None),
            finish: None,
            done: false,
            argument_bytes: 0,
        }
    }

    /// `[DONE]` has come.
    pub(super) fn done(&mut self) {
        self.done = true;
    }

    /// Takes in one chunk. Chunks for bookkeeping have no choice; a choice other than the first is
    /// not ours.
    pub(super) fn push(
        &mut self,
        mut chunk: Value,
        deltas: &mut (dyn for<'t> FnMut(&'t str) + Send),
    ) -> Result<(), Failed> {
        if let Some(error) = error_in(&chunk) {
            return Err(Failed::Error(error));
        }
        self.count(&chunk);
        let choices = chunk.get_mut("choices").and_then(Value::as_array_mut);
        for choice in choices.into_iter().flatten() {
            let index = choice.get("index").and_then(Value::as_i64).unwrap_or(0);
            if index == 0 {
                self.push_choice(choice, deltas)?;
            }
        }
        Ok(())
    }

    fn push_choice(
        &mut self,
        choice: &mut Value,
        deltas: &mut (dyn for<'t> FnMut(&'t str) + Send),
    ) -> Result<(), Failed> {
        if let Some(reason) = choice.get("finish_reason").and_then(Value::as_str) {
            if BROKEN_OFF.contains(&reason) {
                let told = format!("the provider broke off ({reason})");
                return Err(Failed::Stream(told));
            }
            // Whatever follows, a reply that was cut once stays cut.
            let was_cut = self.finish.as_deref().is_some_and(|old| CUT.contains(&old));
            if !reason.is_empty() && !was_cut {
                self.finish = Some(reason.to_owned());
            }
        }
        let delta = choice.get_mut("delta").map(Value::take);
        let message = choice.get_mut("message").map(Value::take);
        match (delta, message) {
            (Some(Value::Object(delta)), _) => self.push_delta(delta, deltas),
            // A server that did not stream; after pieces it would only repeat them.
            (_, Some(Value::Object(message))) if self.text.is_empty() && self.calls.is_empty() => {
                self.finish.get_or_insert_with(|| "stop".to_owned());
                self.push_delta(message, deltas);
            }
            _ => {}
        }
        Ok(())
    }

    fn push_delta(
        &mut self,
        mut delta: Map<String, Value>,
        deltas: &mut (dyn for<'t> FnMut(&'t str) + Send),
    ) {
        // The reason for which a model declines is what it says to the person.
        for said in [delta.shift_remove("content"), delta.shift_remove("refusal")] {
            self.push_content(said, deltas);
        }
        self.calls.next_chunk();
        let calls = match delta.shift_remove("tool_calls") {
            Some(Value::Array(calls)) => calls,
            Some(call @ Value::Object(_)) => vec![call],
            _ => Vec::new(),
        };
        let old_form = delta
            .shift_remove("function_call")
            .filter(Value::is_object)
            .map(|function| json!({ "function": function }));
        for call in calls.into_iter().chain(old_form) {
            if let Value::Object(call) = call {
                let piece = piece_of(call);
                self.argument_bytes += match &piece.arguments {
                    Some(Value::String(text)) => text.len(),
                    Some(value) => value.to_string().len(),
                    None => 0,
                };
                self.calls.push(piece);
            }
        }
        join(&mut self.extra, delta);
    }

    fn push_content(
        &mut self,
        said: Option<Value>,
        deltas: &mut (dyn for<'t> FnMut(&'t str) + Send),
    ) {
        let mut say = |text: &str| {
            if !text.is_empty() {
                deltas(text);
                self.text.push_str(text);
            }
        };
        match said {
            Some(Value::String(text)) => {
                say(&text);
                if let (Some(parts), false) = (&mut self.parts, text.is_empty()) {
                    parts.push(json!({ "type": "text", "text": text }));
                }
            }
            Some(Value::Array(parts)) => {
                let before = match self.text.as_str() {
                    "" => Vec::new(),
                    text => vec![json!({ "type": "text", "text": text })],
                };
                let kept = self.parts.get_or_insert(before);
                for part in parts {
                    let text = part["text"].as_str().unwrap_or_default();
                    if !text.is_empty() {
                        deltas(text);
                        self.text.push_str(text);
                    }
                    kept.push(part);
                }
            }
            _ => {}
        }
    }

    /// The last figure counts: some servers report a running total with every chunk.
    fn count(&mut self, chunk: &Value) {
        let places = ["/usage", "/choices/0/usage", "/x_groq/usage"];
        let usage = places
            .iter()
            .filter_map(|place| chunk.pointer(place))
            .find(|usage| usage.is_object());
        if let Some(usage) = usage {
            let (tokens_in, tokens_out) = &mut self.usage;
            *tokens_in = usage["prompt_tokens"].as_u64().or(*tokens_in);
            *tokens_out = usage["completion_tokens"].as_u64().or(*tokens_out);
        }
    }

    /// The reply, if it is whole. A finish reason proves that; `[DONE]` without one is taken for it
    /// where each call can be read.
    pub(super) fn finish(self, estimated_in: impl FnOnce() -> u64) -> Result<ModelReply, Failed> {
        let no_finish = || Failed::Stream("the stream ended without a finish".to_owned());
        if self.finish.is_none() && !self.done {
            return Err(no_finish());
        }
        let nothing = self.text.is_empty() && self.calls.is_empty();
        let announced = matches!(self.finish.as_deref(), Some("tool_calls" | "function_call"));
        if nothing && announced {
            let told = "the provider announced calls and sent none";
            return Err(Failed::Stream(told.to_owned()));
        }
        if nothing && self.finish.is_none() {
            return Err(no_finish());
        }
        let cut = self
            .finish
            .as_deref()
            .is_none_or(|reason| CUT.contains(&reason));
        let calls = self
            .calls
            .finish(if cut { Ending::Cut } else { Ending::Whole });
        if self.finish.is_none() && calls.iter().any(|made| made.call.input.is_err()) {
            return Err(no_finish());
        }

        let content = match self.parts {
            Some(parts) => Value::Array(parts),
            None if self.text.is_empty() && !calls.is_empty() => Value::Null,
            None => self.text.as_str().into(),
        };
        let mut message = json!({ "role": "assistant", "content": content });
        if let Some(fields) = message.as_object_mut() {
            let mut extra = self.extra;
            extra.shift_remove("role");
            fields.extend(extra);
        }
        if !calls.is_empty() {
            let raw = calls.iter().map(|made| {
                let mut call = made.extra.clone();
                let function = json!({
                    "id": made.call.id,
                    "type": "function",
                    "function": { "name": made.call.tool, "arguments": made.arguments },
                });
                if let Value::Object(known) = function {
                    merge(&mut call, known);
                }
                Value::Object(call)
            });
            message["tool_calls"] = raw.collect();
        }

        // A message that a record could not hold is not kept; the calls and the text stand without.
        let keepable = json::parse(message.to_string().as_bytes()).is_ok();
        let raw = keepable.then(|| Raw {
            provider: super::PROVIDER.to_owned(),
            content: message,
        });
        let (tokens_in, tokens_out) = self.usage;
        let written = self.text.len() + self.argument_bytes;
        Ok(ModelReply {
            text: self.text,
            calls: calls.into_iter().map(|made| made.call).collect(),
            raw,
            usage: Usage {
                tokens_in: tokens_in.unwrap_or_else(estimated_in),
                tokens_out: tokens_out.unwrap_or_else(|| tokens_of(written)),
                estimated: tokens_in.is_none() || tokens_out.is_none(),
            },
        })
    }
}

/// An error in any of the places where servers put one into a stream of status 200.
fn error_in(chunk: &Value) -> Option<Value> {
    let places = ["/error", "/choices/0/error", "/choices/0/delta/error"];
    let said = places
        .iter()
        .filter_map(|place| chunk.pointer(place))
        .find(|error| !matches!(error, Value::Null | Value::Bool(false)) && **error != "");
    if let Some(error) = said {
        return Some(error.clone());
    }
    let is_error = chunk["object"] == "error" || chunk["type"] == "error";
    let bare = chunk.get("choices").is_none()
        && chunk.get("usage").is_none()
        && message_in(chunk).is_some();
    (is_error || bare).then(|| chunk.clone())
}

fn piece_of(mut call: Map<String, Value>) -> Piece {
    let mut function = match call.shift_remove("function") {
        Some(Value::Object(function)) => function,
        // Some servers leave out the wrapper.
        _ => ["name", "arguments"]
            .iter()
            .filter_map(|field| Some(((*field).to_owned(), call.shift_remove(*field)?)))
            .collect(),
    };
    call.shift_remove("type");
    let text = |value: Option<Value>| match value? {
        Value::String(text) => Some(text),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    let index = text(call.shift_remove("index")).and_then(|index| index.trim().parse().ok());
    let id = text(call.shift_remove("id"));
    let name = text(function.shift_remove("name"));
    let arguments = function.shift_remove("arguments");
    if !function.is_empty() {
        call.insert("function".to_owned(), Value::Object(function));
    }
    Piece {
        index,
        id,
        name,
        arguments,
        extra: call,
    }
}

/// Joins what vendors stream beside the content, their models' reasoning for one: texts and lists
/// come in pieces, the rest is said once.
fn join(into: &mut Map<String, Value>, from: Map<String, Value>) {
    for (name, value) in from {
        let constant = CONSTANT.contains(&name.as_str());
        match (into.get_mut(&name), value) {
            (_, Value::Null) => {}
            (Some(Value::String(text)), Value::String(more)) if !constant => text.push_str(&more),
            (Some(Value::Array(items)), Value::Array(more)) => items.extend(more),
            (Some(Value::Object(there)), Value::Object(more)) => merge(there, more),
            (Some(there), value) => *there = value,
            (None, value) => {
                into.insert(name, value);
            }
        }
    }
}
