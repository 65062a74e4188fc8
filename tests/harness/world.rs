//! What lies outside Askwell: models that stream and tools that act, as one HTTP server of the
//! tests' own with a ledger of all that came.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, Response, StatusCode};
use axum::routing::post;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

/// One answer of a model: the pieces of its body, as they are written to the connection.
#[derive(Debug, Clone)]
pub struct Answer {
    status: u16,
    pieces: Vec<Bytes>,
    /// Held back before the last piece until [`World::release`].
    held: bool,
}

impl Answer {
    /// A stream of these `data:` payloads, each a piece of its own.
    pub fn stream(payloads: &[Value]) -> Self {
        let mut pieces: Vec<Bytes> = payloads
            .iter()
            .map(|payload| Bytes::from(format!("data: {payload}\n\n")))
            .collect();
        pieces.push(Bytes::from_static(b"data: [DONE]\n\n"));
        Answer {
            status: 200,
            pieces,
            held: false,
        }
    }

    /// A turn that only says something, in two pieces.
    pub fn text(text: &str) -> Self {
        let half = text.floor_char_boundary(text.len() / 2);
        Answer::stream(&[
            chunk(&json!({"role": "assistant", "content": text[..half]}), None),
            chunk(&json!({"content": text[half..]}), None),
            chunk(&json!({}), Some("stop")),
            json!({"choices": [], "usage": {"prompt_tokens": 11, "completion_tokens": 7}}),
        ])
    }

    /// A turn with these calls, the arguments of each cut in two pieces.
    pub fn calls(text: &str, calls: &[(&str, &str, Value)]) -> Self {
        let mut payloads = vec![chunk(&json!({"role": "assistant", "content": text}), None)];
        for (index, (id, tool, input)) in calls.iter().enumerate() {
            let arguments = input.to_string();
            let half = arguments.floor_char_boundary(arguments.len() / 2);
            payloads.push(chunk(
                &json!({"tool_calls": [{"index": index, "id": id, "type": "function",
                    "function": {"name": tool, "arguments": arguments[..half]}}]}),
                None,
            ));
            payloads.push(chunk(
                &json!({"tool_calls": [{"index": index,
                    "function": {"arguments": arguments[half..]}}]}),
                None,
            ));
        }
        payloads.push(chunk(&json!({}), Some("tool_calls")));
        payloads
            .push(json!({"choices": [], "usage": {"prompt_tokens": 11, "completion_tokens": 7}}));
        Answer::stream(&payloads)
    }

    /// A refusal of the request with this status.
    pub fn status(status: u16, body: &str) -> Self {
        Answer {
            status,
            pieces: vec![Bytes::from(body.to_owned())],
            held: false,
        }
    }

    /// The same, but its last piece waits for [`World::release`].
    #[must_use]
    pub fn held(mut self) -> Self {
        self.held = true;
        self
    }
}

fn chunk(delta: &Value, finish: Option<&str>) -> Value {
    json!({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
}

/// A call that came to a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct Effect {
    /// The tool.
    pub tool: String,
    /// The idempotency key.
    pub key: String,
    /// The input.
    pub input: Value,
}

#[derive(Default)]
struct Ledger {
    answers: BTreeMap<String, VecDeque<Answer>>,
    requests: Vec<(String, Value)>,
    effects: Vec<Effect>,
    gated: Vec<String>,
    fail: BTreeMap<String, u16>,
}

struct Shared {
    ledger: Mutex<Ledger>,
    changed: watch::Sender<u64>,
    release: Notify,
}

/// The server. It ends when it is dropped.
pub struct World {
    /// `http://127.0.0.1:PORT`.
    pub url: String,
    shared: Arc<Shared>,
    serving: JoinHandle<()>,
}

impl Drop for World {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl World {
    /// Serves on a free loopback port.
    ///
    /// # Errors
    /// When there is none.
    pub async fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        let shared = Arc::new(Shared {
            ledger: Mutex::new(Ledger::default()),
            changed: watch::Sender::new(0),
            release: Notify::new(),
        });
        let app = Router::new()
            .route("/{model}/chat/completions", post(model))
            .route("/tool/{tool}", post(tool))
            .with_state(shared.clone());
        let serving = tokio::spawn(async move {
            // It ends with the test.
            let _ = axum::serve(listener, app).await;
        });
        Ok(World {
            url,
            shared,
            serving,
        })
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.shared
            .ledger
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// What a model (the first part of its path) answers next, in order. A model that has nothing
    /// left to say answers 500.
    pub fn say(&self, model: &str, answers: impl IntoIterator<Item = Answer>) {
        let mut ledger = self.ledger();
        ledger
            .answers
            .entry(model.to_owned())
            .or_default()
            .extend(answers);
    }

    /// Every request that came to a model, in order.
    pub fn requests(&self, model: &str) -> Vec<Value> {
        let ledger = self.ledger();
        ledger
            .requests
            .iter()
            .filter(|(name, _)| name == model)
            .map(|(_, body)| body.clone())
            .collect()
    }

    /// Every call that came to tools, in order.
    pub fn effects(&self) -> Vec<Effect> {
        self.ledger().effects.clone()
    }

    /// Calls of this tool are not answered before [`World::release`].
    pub fn gate(&self, tool: &str) {
        self.ledger().gated.push(tool.to_owned());
    }

    /// Calls of this tool are answered with this status.
    pub fn fail(&self, tool: &str, status: u16) {
        self.ledger().fail.insert(tool.to_owned(), status);
    }

    /// Lets everything that is held go on, and holds back no more calls.
    pub fn release(&self) {
        self.ledger().gated.clear();
        self.shared.release.notify_waiters();
    }

    /// Waits until the ledger fits.
    ///
    /// # Errors
    /// When it does not within `limit`.
    pub async fn until(
        &self,
        what: &str,
        limit: Duration,
        fits: impl Fn(&World) -> bool,
    ) -> Result<()> {
        let mut changed = self.shared.changed.subscribe();
        let waiting = async {
            while !fits(self) {
                changed.changed().await.context("the world has ended")?;
            }
            anyhow::Ok(())
        };
        match tokio::time::timeout(limit, waiting).await {
            Ok(done) => done,
            Err(_) => bail!("no {what} within {limit:?}; effects: {:?}", self.effects()),
        }
    }
}

impl Shared {
    fn note<T>(&self, change: impl FnOnce(&mut Ledger) -> T) -> T {
        let noted = change(&mut self.ledger.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.send_modify(|count| *count += 1);
        noted
    }
}

async fn model(
    State(shared): State<Arc<Shared>>,
    Path(name): Path<String>,
    body: String,
) -> Response<Body> {
    let request: Value = serde_json::from_str(&body).unwrap_or(Value::Null);
    let answer = shared.note(|ledger| {
        ledger.requests.push((name.clone(), request));
        ledger.answers.get_mut(&name).and_then(VecDeque::pop_front)
    });
    let Some(Answer {
        status,
        pieces,
        held,
    }) = answer
    else {
        return reply(500, Body::from("nothing left to say"));
    };
    let last = pieces.len().saturating_sub(1);
    let stream = futures_util::stream::unfold(
        (pieces.into_iter().enumerate(), shared),
        move |(mut pieces, shared)| async move {
            let (number, piece) = pieces.next()?;
            if held && number == last {
                shared.release.notified().await;
            }
            Some((Ok::<Bytes, Infallible>(piece), (pieces, shared)))
        },
    );
    reply(status, Body::from_stream(stream))
}

async fn tool(
    State(shared): State<Arc<Shared>>,
    Path(tool): Path<String>,
    headers: HeaderMap,
    body: String,
) -> Response<Body> {
    let effect = Effect {
        tool: tool.clone(),
        key: headers
            .get("idempotency-key")
            .and_then(|key| key.to_str().ok())
            .unwrap_or_default()
            .to_owned(),
        input: serde_json::from_str(&body).unwrap_or(Value::Null),
    };
    // Waited for from before the call is seen, so that a release right after is not missed.
    let released = shared.release.notified();
    tokio::pin!(released);
    released.as_mut().enable();
    let (gated, status) = shared.note(|ledger| {
        ledger.effects.push(effect);
        let status = ledger.fail.get(&tool).copied();
        (ledger.gated.contains(&tool), status.unwrap_or(200))
    });
    if gated {
        released.await;
    }
    reply(status, Body::from(format!("{tool} done")))
}

fn reply(status: u16, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() =
        StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response
}
