//! The Chat Completions provider against a real HTTP server that sends given pieces of bytes.

#![allow(
    clippy::unwrap_used,
    reason = "what prepares a test may fail it, and clippy.toml's exception covers only the tests"
)]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use askwell_worker::model::chat_completions::ChatCompletions;
use askwell_worker::model::endpoint::Timeouts;
use askwell_worker::model::{
    Entry, MadeCall, Model, ModelFault, ModelReply, ModelRequest, ToolOffer,
};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Response};
use axum::routing::post;
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

/// Must never be seen in a fault.
const KEY: &str = "sk-secret-1";

#[path = "chat_completions/faults.rs"]
mod faults;
#[path = "chat_completions/streams.rs"]
mod streams;

/// What the server does with a request.
struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    pieces: Vec<Vec<u8>>,
    end: End,
}

enum End {
    Clean,
    /// Nothing more comes; the sender is dropped when the client hangs up.
    Silent(oneshot::Sender<()>),
}

impl Answer {
    fn events(pieces: Vec<Vec<u8>>) -> Self {
        Self {
            status: 200,
            headers: vec![("content-type".to_owned(), "text/event-stream".to_owned())],
            pieces,
            end: End::Clean,
        }
    }

    fn text(text: &str) -> Self {
        let chunk =
            json!({ "choices": [{ "delta": { "content": text }, "finish_reason": "stop" }] });
        Self::events(vec![
            format!("data: {chunk}\n\ndata: [DONE]\n\n").into_bytes(),
        ])
    }

    fn status(status: u16, headers: &[(&str, &str)], body: &str) -> Self {
        Self {
            status,
            headers: headers
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            pieces: vec![body.as_bytes().to_vec()],
            end: End::Clean,
        }
    }
}

type Seen = Arc<Mutex<Vec<(HeaderMap, Value)>>>;
type Script = Arc<Mutex<Vec<Answer>>>;

/// Gives each request the answer prepared for it, and keeps the requests.
struct Server {
    base: String,
    model: ChatCompletions,
    script: Script,
    seen: Seen,
}

impl Server {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}/v1", listener.local_addr().unwrap());
        let (script, seen) = (Script::default(), Seen::default());
        let app = Router::new()
            .route("/v1/chat/completions", post(answer))
            .with_state((script.clone(), seen.clone()));
        tokio::spawn(async move { axum::serve(listener, app).await });
        let model = ChatCompletions::new(&base, "house", Some(KEY)).unwrap();
        Self {
            base,
            model,
            script,
            seen,
        }
    }

    fn prepare(&self, answer: Answer) {
        self.script.lock().unwrap().push(answer);
    }

    /// One try, and the text that was heard during it.
    async fn ask(
        &self,
        answer: Answer,
        request: &ModelRequest,
    ) -> (Result<ModelReply, ModelFault>, String) {
        self.prepare(answer);
        ask(&self.model, request).await
    }

    fn last_seen(&self) -> (HeaderMap, Value) {
        self.seen.lock().unwrap().last().unwrap().clone()
    }
}

async fn ask(
    model: &ChatCompletions,
    request: &ModelRequest,
) -> (Result<ModelReply, ModelFault>, String) {
    let mut text = String::new();
    let reply = model
        .call(request, &mut |piece| {
            assert!(!piece.is_empty());
            text.push_str(piece);
        })
        .await;
    (reply, text)
}

async fn answer(
    State((script, seen)): State<(Script, Seen)>,
    headers: HeaderMap,
    body: Bytes,
) -> Response<Body> {
    let body = serde_json::from_slice(&body).unwrap();
    seen.lock().unwrap().push((headers, body));
    let answer = script.lock().unwrap().pop().unwrap();
    let mut response = Response::builder().status(answer.status);
    for (name, value) in answer.headers {
        response = response.header(name, value);
    }
    let pieces = stream::iter(answer.pieces.into_iter().map(Ok::<_, std::io::Error>));
    let body = match answer.end {
        End::Clean => Body::from_stream(pieces),
        End::Silent(gone) => Body::from_stream(pieces.chain(stream::once(async move {
            let _held = gone;
            std::future::pending().await
        }))),
    };
    response.body(body).unwrap()
}

fn tools() -> Vec<ToolOffer> {
    let offer = |name: &str, properties: Value| ToolOffer {
        name: name.to_owned(),
        description: format!("Use {name}."),
        parameters: json!({ "type": "object", "properties": properties }),
    };
    vec![
        offer(
            "ask",
            json!({
                "question": { "type": "string" },
                "choices": { "type": "array", "items": {} },
                "shape": { "type": "object" },
            }),
        ),
        offer("ask_list", json!({ "questions": { "type": "array" } })),
        offer("clock", json!({})),
    ]
}

fn request(entries: Vec<Entry>) -> ModelRequest {
    ModelRequest {
        instructions: "Help.".to_owned(),
        entries,
        tools: tools(),
    }
}

fn hello() -> Vec<Entry> {
    vec![Entry::User {
        text: "A cup, please.".to_owned(),
    }]
}

/// The entry that goes on after a reply: each call with its result.
fn made(reply: &ModelReply) -> Entry {
    let calls = reply.calls.iter().map(|call| MadeCall {
        id: call.id.clone(),
        tool: call.tool.clone(),
        input: call.input.clone().unwrap_or_else(|_| json!({})),
        result: match &call.input {
            Ok(_) => "blue".to_owned(),
            Err(told) => told.clone(),
        },
        failed: call.input.is_err(),
    });
    Entry::Assistant {
        text: reply.text.clone(),
        calls: calls.collect(),
        raw: reply.raw.clone(),
    }
}

/// Checks that the history after `reply` is one that a provider takes: readable arguments, distinct
/// ids, a result for each call in order, the provider's message unchanged.
async fn check_history(server: &Server, name: &str, reply: &ModelReply) {
    let mut entries = hello();
    entries.push(made(reply));
    server
        .ask(Answer::text("ok"), &request(entries))
        .await
        .0
        .unwrap();
    let (_, body) = server.last_seen();
    let messages = body["messages"].as_array().unwrap();
    if reply.text.is_empty() && reply.calls.is_empty() {
        assert_eq!(messages.len(), 2, "{name}: an empty message went back");
        return;
    }
    assert_eq!(messages[2], reply.raw.as_ref().unwrap().content, "{name}");
    let none = Vec::new();
    let calls = messages[2]["tool_calls"].as_array().unwrap_or(&none);
    let mut ids: Vec<&str> = Vec::new();
    for (call, made) in calls.iter().zip(&reply.calls) {
        let arguments = call["function"]["arguments"].as_str().unwrap();
        let arguments: Value = serde_json::from_str(arguments).unwrap();
        assert!(arguments.is_object(), "{name}: {arguments}");
        assert_eq!(call["function"]["name"], made.tool.as_str(), "{name}");
        assert!(!made.tool.is_empty(), "{name}");
        ids.push(call["id"].as_str().unwrap());
    }
    let results: Vec<&str> = messages[3..]
        .iter()
        .map(|message| message["tool_call_id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, results, "{name}");
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), reply.calls.len(), "{name}: ids are not distinct");
}

#[tokio::test]
async fn the_request_is_the_dialects_own() {
    let server = Server::start().await;
    let mut asked = request(hello());
    // Another provider's message is not sent as it is.
    asked.entries.push(Entry::Assistant {
        text: "One moment.".to_owned(),
        calls: vec![MadeCall {
            id: "c1".to_owned(),
            tool: "clock".to_owned(),
            input: json!({ "zone": 1 }),
            result: "noon".to_owned(),
            failed: false,
        }],
        raw: Some(askwell_worker::model::Raw {
            provider: "another".to_owned(),
            content: json!([1]),
        }),
    });
    server.ask(Answer::text("ok"), &asked).await.0.unwrap();
    let (headers, body) = server.last_seen();
    assert_eq!(headers["authorization"], "Bearer sk-secret-1");
    assert_eq!(body["model"], "house");
    assert_eq!(body["stream"], true);
    assert_eq!(body["stream_options"], json!({ "include_usage": true }));
    assert_eq!(body["tools"][2]["function"]["name"], "clock");
    assert_eq!(
        body["messages"],
        json!([
            { "role": "system", "content": "Help." },
            { "role": "user", "content": "A cup, please." },
            { "role": "assistant", "content": "One moment.", "tool_calls": [{
                "id": "c1", "type": "function",
                "function": { "name": "clock", "arguments": "{\"zone\":1}" },
            }] },
            { "role": "tool", "tool_call_id": "c1", "content": "noon" },
        ])
    );

    asked.tools.clear();
    asked.instructions.clear();
    let keyless = ChatCompletions::new(&server.base, "house", None).unwrap();
    server.prepare(Answer::text("ok"));
    ask(&keyless, &asked).await.0.unwrap();
    let (headers, body) = server.last_seen();
    assert!(!headers.contains_key("authorization"));
    assert!(body.get("tools").is_none());
    assert_eq!(body["messages"][0]["role"], "user");
}

#[tokio::test]
async fn dropping_the_future_aborts_the_request() {
    let (gone, hung_up) = oneshot::channel();
    let first = "data: {\"choices\":[{\"delta\":{\"content\":\"Hm\"}}]}\n\n";
    let mut silent = Answer::events(vec![first.as_bytes().to_vec()]);
    silent.end = End::Silent(gone);
    let server = Server::start().await;
    server.prepare(silent);
    let model = server.model;
    let (said, mut heard) = tokio::sync::mpsc::unbounded_channel();
    let running = tokio::spawn(async move {
        let mut deltas = |text: &str| said.send(text.to_owned()).unwrap();
        model.call(&request(hello()), &mut deltas).await
    });
    assert_eq!(heard.recv().await.as_deref(), Some("Hm"));
    running.abort();
    assert!(hung_up.await.is_err());
}

#[tokio::test]
async fn a_silent_server_is_a_fault() {
    let (gone, _hung_up) = oneshot::channel();
    let mut silent = Answer::events(vec![b": still there\n\n".to_vec()]);
    silent.end = End::Silent(gone);
    let server = Server::start().await;
    server.prepare(silent);
    let timeouts = Timeouts {
        idle: Duration::from_millis(200),
        ..Timeouts::default()
    };
    let model = ChatCompletions::with_timeouts(&server.base, "house", None, timeouts).unwrap();
    let fault = model
        .call(&request(hello()), &mut |_| ())
        .await
        .unwrap_err();
    assert!(
        matches!(&fault, ModelFault::Retry { reason, .. } if reason.contains("nothing came for 0.2 s")),
        "{fault:?}"
    );
}
