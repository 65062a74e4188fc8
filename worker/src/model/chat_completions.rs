//! The Chat Completions dialect, as hosted and local servers speak it: the request, and the reading
//! of the stream. What a stream may get wrong is dealt with in `reply`.

use async_trait::async_trait;
use serde_json::{Value, json};

use super::endpoint::{Endpoint, EndpointError, KeyHeader, Timeouts};
use super::sse::{Payload, Payloads};
use super::{Entry, MadeCall, Model, ModelFault, ModelReply, ModelRequest, Raw, ToolOffer};

mod reply;

use reply::{Failed, Reply};

/// Marks raw messages as this dialect's own.
const PROVIDER: &str = "chat-completions";

/// A model behind `<baseUrl>/chat/completions`.
#[derive(Debug, Clone)]
pub struct ChatCompletions {
    endpoint: Endpoint,
    model: String,
}

impl ChatCompletions {
    /// The model named `model`. Without a key, local servers for instance, no `Authorization` is
    /// sent.
    pub fn new(base_url: &str, model: &str, key: Option<&str>) -> Result<Self, EndpointError> {
        Self::with_timeouts(base_url, model, key, Timeouts::default())
    }

    /// The same with times of one's own.
    pub fn with_timeouts(
        base_url: &str,
        model: &str,
        key: Option<&str>,
        timeouts: Timeouts,
    ) -> Result<Self, EndpointError> {
        let key = key.map(|key| (KeyHeader::Bearer, key));
        Ok(Self {
            endpoint: Endpoint::new(base_url, &["chat", "completions"], key, timeouts)?,
            model: model.to_owned(),
        })
    }

    fn fault(&self, failed: Failed) -> ModelFault {
        match failed {
            Failed::Error(error) => self.endpoint.stream_error(&error),
            Failed::Stream(reason) => self.endpoint.retry(&reason),
        }
    }
}

#[async_trait]
impl Model for ChatCompletions {
    async fn call(
        &self,
        request: &ModelRequest,
        deltas: &mut (dyn for<'t> FnMut(&'t str) + Send),
    ) -> Result<ModelReply, ModelFault> {
        let body = body_of(&self.model, request);
        let response = self.endpoint.post(&body).await?;
        let mut payloads = Payloads::of(response, &self.endpoint).await?;
        let mut reply = Reply::new(&request.tools);
        while let Some(payload) = payloads.next().await? {
            match payload {
                Payload::Done => {
                    reply.done();
                    break;
                }
                Payload::Error(error) => return Err(self.endpoint.stream_error(&error)),
                Payload::Json(chunk) => reply
                    .push(chunk, deltas)
                    .map_err(|failed| self.fault(failed))?,
            }
        }
        reply
            .finish(|| request.estimated_tokens())
            .map_err(|failed| self.fault(failed))
    }
}

fn body_of(model: &str, request: &ModelRequest) -> Value {
    let mut messages = Vec::new();
    if !request.instructions.trim().is_empty() {
        messages.push(json!({ "role": "system", "content": request.instructions }));
    }
    for entry in &request.entries {
        match entry {
            Entry::User { text } => messages.push(json!({ "role": "user", "content": text })),
            // Servers refuse a message that says and calls nothing.
            Entry::Assistant { text, calls, .. } if text.is_empty() && calls.is_empty() => {}
            Entry::Assistant { text, calls, raw } => {
                messages.push(assistant_message(text, calls, raw.as_ref()));
                messages.extend(calls.iter().map(|call| {
                    json!({ "role": "tool", "tool_call_id": call.id, "content": call.result })
                }));
            }
        }
    }
    let mut body = json!({
        "model": model,
        "messages": messages,
        "stream": true,
        "stream_options": { "include_usage": true },
    });
    if !request.tools.is_empty() {
        body["tools"] = request.tools.iter().map(tool_of).collect();
    }
    body
}

/// The provider's own message where it is this dialect's and names the calls that have results:
/// with another set of ids the provider would refuse the whole conversation.
fn assistant_message(text: &str, calls: &[MadeCall], raw: Option<&Raw>) -> Value {
    if let Some(raw) = raw.filter(|raw| raw.provider == PROVIDER) {
        let none = Vec::new();
        let named = raw.content["tool_calls"].as_array().unwrap_or(&none).iter();
        if named
            .map(|call| call["id"].as_str())
            .eq(calls.iter().map(|call| Some(call.id.as_str())))
        {
            return raw.content.clone();
        }
    }
    let content = if text.is_empty() {
        Value::Null
    } else {
        text.into()
    };
    let mut message = json!({ "role": "assistant", "content": content });
    if !calls.is_empty() {
        let calls = calls.iter().map(|call| {
            let arguments = call.input.to_string();
            json!({
                "id": call.id,
                "type": "function",
                "function": { "name": call.tool, "arguments": arguments },
            })
        });
        message["tool_calls"] = calls.collect();
    }
    message
}

fn tool_of(tool: &ToolOffer) -> Value {
    let parameters = if tool.parameters.is_object() {
        tool.parameters.clone()
    } else {
        json!({ "type": "object", "properties": {} })
    };
    json!({
        "type": "function",
        "function": {
            "name": tool.name,
            "description": tool.description,
            "parameters": parameters,
        },
    })
}
