//! What speaks to a gateway: HTTP calls, and a socket that keeps every frame it was sent.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, anyhow, bail};
use futures_util::{SinkExt as _, StreamExt as _};
use jsonwebtoken::{EncodingKey, Header};
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use uuid::Uuid;

/// The secret that the tests' gateways are configured with.
pub const SECRET: &str = "a-secret-of-the-tests-own-0123456789";

/// How long anything is waited for. Far above what it takes: it only bounds a hang.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// A token of `sub` with these roles, for an hour.
///
/// # Panics
/// Never: the claims are plain JSON.
pub fn token(sub: &str, roles: &[&str]) -> String {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let claims = json!({"sub": sub, "roles": roles, "exp": now.as_secs() + 3600});
    EncodingKey::from_secret(SECRET.as_bytes())
        .and_then(|key| jsonwebtoken::encode(&Header::default(), &claims, &key))
        .unwrap_or_default()
}

/// An id for a command.
pub fn cmd() -> String {
    Uuid::new_v4().to_string()
}

/// A reply over HTTP.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// The status.
    pub status: u16,
    /// The body as it came.
    pub text: String,
    /// The body as JSON, `null` where it is none.
    pub body: Value,
}

impl Reply {
    /// The code of a refusal.
    pub fn code(&self) -> &str {
        self.body["code"].as_str().unwrap_or_default()
    }
}

/// HTTP calls of one caller to one gateway.
#[derive(Debug, Clone)]
pub struct Api {
    url: String,
    token: String,
    client: reqwest::Client,
}

impl Api {
    /// Calls to the gateway at `url`.
    pub fn new(url: &str, token: &str) -> Self {
        Api {
            url: url.to_owned(),
            token: token.to_owned(),
            client: reqwest::Client::new(),
        }
    }

    /// Reads a path.
    ///
    /// # Errors
    /// When there is no reply.
    pub async fn get(&self, path: &str) -> Result<Reply> {
        self.reply(self.client.get(format!("{}{path}", self.url)))
            .await
    }

    /// Posts a JSON body.
    ///
    /// # Errors
    /// When there is no reply.
    pub async fn post(&self, path: &str, body: &Value) -> Result<Reply> {
        self.post_text(path, &body.to_string(), None).await
    }

    /// Posts a JSON body as a command with an id.
    ///
    /// # Errors
    /// When there is no reply.
    pub async fn command(&self, path: &str, body: &Value, cmd: &str) -> Result<Reply> {
        self.post_text(path, &body.to_string(), Some(cmd)).await
    }

    /// Posts a body as it is.
    ///
    /// # Errors
    /// When there is no reply.
    pub async fn post_text(&self, path: &str, body: &str, cmd: Option<&str>) -> Result<Reply> {
        let mut request = self
            .client
            .post(format!("{}{path}", self.url))
            .header("content-type", "application/json")
            .body(body.to_owned());
        if let Some(cmd) = cmd {
            request = request.header("idempotency-key", cmd);
        }
        self.reply(request).await
    }

    async fn reply(&self, request: reqwest::RequestBuilder) -> Result<Reply> {
        let request = if self.token.is_empty() {
            request
        } else {
            request.bearer_auth(&self.token)
        };
        let reply = request.timeout(PATIENCE).send().await?;
        let status = reply.status().as_u16();
        let text = reply.text().await?;
        let body = serde_json::from_str(&text).unwrap_or(Value::Null);
        Ok(Reply { status, text, body })
    }

    /// Starts a run and gives its id.
    ///
    /// # Errors
    /// When it is refused.
    pub async fn start(&self, agent: &str, input: &str) -> Result<String> {
        let reply = self
            .post("/v1/runs", &json!({"agent": agent, "input": input}))
            .await?;
        match reply.body["run"].as_str() {
            Some(run) if reply.status == 202 => Ok(run.to_owned()),
            _ => bail!("not started: {} {}", reply.status, reply.text),
        }
    }

    /// Approves a step.
    ///
    /// # Errors
    /// When there is no reply.
    pub async fn approve(&self, run: &str, step: &str, data: Value) -> Result<Reply> {
        let body = json!({"step": step, "data": data});
        self.post(&format!("/v1/runs/{run}/approve"), &body).await
    }

    /// Refuses a step.
    ///
    /// # Errors
    /// When there is no reply.
    pub async fn refuse(&self, run: &str, step: &str) -> Result<Reply> {
        let body = json!({"step": step});
        self.post(&format!("/v1/runs/{run}/refuse"), &body).await
    }

    /// Reads a run until it fits. Reading is how a backend without a socket waits.
    ///
    /// # Errors
    /// When it does not within [`PATIENCE`].
    pub async fn until(
        &self,
        run: &str,
        what: &str,
        fits: impl Fn(&Value) -> bool,
    ) -> Result<Value> {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        loop {
            let reply = self.get(&format!("/v1/runs/{run}")).await;
            if let Ok(reply) = &reply
                && reply.status == 200
                && fits(&reply.body)
            {
                return Ok(reply.body.clone());
            }
            if tokio::time::Instant::now() > deadline {
                bail!("no {what}: {reply:?}");
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Reads a run until it has this status.
    ///
    /// # Errors
    /// When it does not get it within [`PATIENCE`].
    pub async fn status(&self, run: &str, status: &str) -> Result<Value> {
        self.until(run, status, |run| run["status"] == status).await
    }

    /// Reads a run until it has `count` open asks, and nothing else is to be done.
    ///
    /// # Errors
    /// When it does not within [`PATIENCE`].
    pub async fn asked(&self, run: &str, count: usize) -> Result<Value> {
        let open = |run: &Value| {
            let asks = run["asks"].as_array().cloned().unwrap_or_default();
            asks.iter().filter(|ask| ask["state"] == "open").count() == count
        };
        self.until(run, "ask", |run| run["status"] == "waiting" && open(run))
            .await
    }
}

/// How a socket ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// It has not.
    No,
    /// With a close frame of this code (1005: without one).
    Closed(u16),
    /// The connection broke.
    Broken,
}

#[derive(Debug, Default)]
struct Heard {
    frames: Vec<Value>,
    ended: Option<Ended>,
}

/// A socket. It answers pings by itself and keeps every other frame in the order of arrival.
pub struct Client {
    heard: Arc<Mutex<Heard>>,
    changed: watch::Receiver<u64>,
    out: mpsc::UnboundedSender<Message>,
    running: JoinHandle<()>,
}

impl Drop for Client {
    fn drop(&mut self) {
        self.running.abort();
    }
}

/// What a socket offers when it connects.
#[derive(Debug, Clone, Default)]
pub struct Offer {
    /// `Sec-WebSocket-Protocol`, each a line of its own.
    pub protocols: Vec<String>,
    /// Other headers.
    pub headers: Vec<(String, String)>,
    /// What follows the path.
    pub query: String,
    /// Leaves pings unanswered.
    pub silent: bool,
}

impl Offer {
    /// The ordinary offer.
    pub fn plain() -> Self {
        Offer {
            protocols: vec!["askwell.v1".to_owned()],
            ..Offer::default()
        }
    }
}

impl Client {
    /// Connects with an offer; the error holds the HTTP status where the upgrade was refused. The
    /// second value is the protocol that the gateway chose.
    ///
    /// # Errors
    /// When the gateway cannot be reached or does not upgrade.
    pub async fn open(url: &str, offer: &Offer) -> Result<(Self, Option<String>)> {
        let address = format!("{}/v1/ws{}", url.replacen("http", "ws", 1), offer.query);
        let mut request = address.into_client_request()?;
        for protocol in &offer.protocols {
            request
                .headers_mut()
                .append("sec-websocket-protocol", protocol.parse()?);
        }
        for (name, value) in &offer.headers {
            let name: axum::http::HeaderName = name.parse()?;
            request.headers_mut().append(name, value.parse()?);
        }
        let host = url.trim_start_matches("http://");
        let stream = tokio::net::TcpStream::connect(host).await?;
        let connecting = tokio_tungstenite::client_async(request, stream);
        let (socket, response) =
            tokio::time::timeout(PATIENCE, connecting)
                .await?
                .map_err(|fault| match fault {
                    tokio_tungstenite::tungstenite::Error::Http(response) => {
                        anyhow!("HTTP {}", response.status().as_u16())
                    }
                    fault => anyhow!(fault),
                })?;
        let chosen = response
            .headers()
            .get("sec-websocket-protocol")
            .and_then(|value| value.to_str().ok())
            .map(str::to_owned);
        let (mut sink, mut source) = socket.split();
        let heard = Arc::new(Mutex::new(Heard::default()));
        let (note, changed) = watch::channel(0);
        let (out, mut queue) = mpsc::unbounded_channel::<Message>();
        let kept = heard.clone();
        let silent = offer.silent;
        let running = tokio::spawn(async move {
            let tell = |change: &dyn Fn(&mut Heard)| {
                change(&mut kept.lock().unwrap_or_else(PoisonError::into_inner));
                note.send_modify(|count| *count += 1);
            };
            loop {
                tokio::select! {
                    message = queue.recv() => {
                        let Some(message) = message else { return };
                        // A socket that is over takes nothing; its end is noted below.
                        let _ = sink.send(message).await;
                    }
                    message = source.next() => match message {
                        Some(Ok(Message::Text(text))) => {
                            let frame: Value = serde_json::from_str(&text).unwrap_or(Value::Null);
                            if frame["type"] == "ping" && !silent {
                                let pong = json!({"type": "pong", "seq": frame["head"]});
                                let _ = sink.send(Message::text(pong.to_string())).await;
                            }
                            tell(&|heard| heard.frames.push(frame.clone()));
                        }
                        Some(Ok(Message::Close(frame))) => {
                            let code = frame.map_or(1005, |frame| frame.code.into());
                            tell(&|heard| heard.ended = Some(Ended::Closed(code)));
                            // Answers the close.
                            let _ = sink.close().await;
                        }
                        Some(Ok(_)) => {}
                        Some(Err(_)) | None => {
                            tell(&|heard| {
                                heard.ended.get_or_insert(Ended::Broken);
                            });
                            return;
                        }
                    },
                }
            }
        });
        let client = Client {
            heard,
            changed,
            out,
            running,
        };
        Ok((client, chosen))
    }

    /// Connects, says hello with a token and waits for the end of the snapshot.
    ///
    /// # Errors
    /// When it is not welcomed.
    pub async fn sign_in(url: &str, token: &str) -> Result<Self> {
        Client::hello(url, &json!({"type": "hello", "token": token})).await
    }

    /// Connects and sends this `hello`; waits for `welcome`, and for the snapshot where one comes.
    ///
    /// # Errors
    /// When it is not welcomed.
    pub async fn hello(url: &str, hello: &Value) -> Result<Self> {
        let (client, _) = Client::open(url, &Offer::plain()).await?;
        client.send(hello);
        let welcome = client
            .frame("welcome", |frame| frame["type"] == "welcome")
            .await?;
        if welcome["mode"] == "snapshot" {
            client
                .frame("the snapshot's end", |frame| {
                    frame["type"] == "snapshot" && frame["more"] == false
                })
                .await?;
        }
        Ok(client)
    }

    /// Sends a frame.
    pub fn send(&self, frame: &Value) {
        self.send_raw(Message::text(frame.to_string()));
    }

    /// Sends a message as it is.
    pub fn send_raw(&self, message: Message) {
        // A socket that is over takes nothing; what is waited for then says so.
        let _ = self.out.send(message);
    }

    fn lock(&self) -> MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Every frame so far.
    pub fn frames(&self) -> Vec<Value> {
        self.lock().frames.clone()
    }

    /// The durable frames so far.
    pub fn durable(&self) -> Vec<Value> {
        let mut frames = self.frames();
        frames.retain(|frame| {
            frame["type"].as_str().is_some_and(|name| {
                name.starts_with("ask.") || (name.starts_with("run.") && name != "run.delta")
            })
        });
        frames
    }

    /// How it ended.
    pub fn ended(&self) -> Ended {
        self.lock().ended.unwrap_or(Ended::No)
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// When it stays open for [`PATIENCE`].
    pub async fn end(&self) -> Result<Ended> {
        let ended = |heard: &Heard| heard.ended;
        self.wait("end of the socket", PATIENCE, ended).await
    }

    /// Waits for a frame that fits, one that has come before included.
    ///
    /// # Errors
    /// When none comes within [`PATIENCE`].
    pub async fn frame(&self, what: &str, fits: impl Fn(&Value) -> bool) -> Result<Value> {
        let find = |heard: &Heard| heard.frames.iter().find(|frame| fits(frame)).cloned();
        self.wait(what, PATIENCE, find).await
    }

    /// Waits until the frames so far fit as a whole.
    ///
    /// # Errors
    /// When they do not within [`PATIENCE`].
    pub async fn until(&self, what: &str, fits: impl Fn(&[Value]) -> bool) -> Result<()> {
        let find = |heard: &Heard| fits(&heard.frames).then_some(());
        self.wait(what, PATIENCE, find).await
    }

    async fn wait<T>(
        &self,
        what: &str,
        limit: Duration,
        find: impl Fn(&Heard) -> Option<T>,
    ) -> Result<T> {
        let mut changed = self.changed.clone();
        let waiting = async {
            loop {
                if let Some(found) = find(&self.lock()) {
                    return Ok(found);
                }
                changed.changed().await.context("the socket is over")?;
            }
        };
        let waited: Result<Result<T>, _> = tokio::time::timeout(limit, waiting).await;
        waited
            .unwrap_or_else(|_| Err(anyhow!("not within {limit:?}")))
            .with_context(|| {
                let heard = self.lock();
                let last = heard.frames.iter().rev().take(8).rev();
                let last: Vec<String> = last.map(ToString::to_string).collect();
                format!(
                    "no {what}; ended: {:?}; last frames: {last:#?}",
                    heard.ended
                )
            })
    }

    /// Sends a command (its `cmd` is made where it has none) and waits for `ok` or `error`.
    ///
    /// # Errors
    /// When it is not answered.
    pub async fn command(&self, command: &Value) -> Result<Value> {
        let mut command = command.clone();
        if command.get("cmd").is_none() {
            command["cmd"] = cmd().into();
        }
        let id = command["cmd"].clone();
        let answers = |frames: &[Value]| {
            let answers = |frame: &&Value| {
                matches!(frame["type"].as_str(), Some("ok" | "error")) && frame["cmd"] == id
            };
            frames
                .iter()
                .filter(answers)
                .cloned()
                .collect::<Vec<Value>>()
        };
        let before = answers(&self.lock().frames).len();
        self.send(&command);
        let find = |heard: &Heard| answers(&heard.frames).into_iter().nth(before);
        self.wait("answer to a command", PATIENCE, find).await
    }
}
