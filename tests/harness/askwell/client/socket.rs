//! A socket `askwell.v1` (PROTOCOL 1 to 3) that keeps every frame until a test asks for it.

use std::collections::VecDeque;

use anyhow::{Context, Result, bail};
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::error::Error as Broken;
use tokio_tungstenite::tungstenite::http::{HeaderName, HeaderValue, Response};
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Bytes, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, client_async_with_config};
use uuid::Uuid;

use super::LIMIT;

/// What a handshake offers. The default offers the subprotocol and nothing else.
#[derive(Debug, Clone)]
pub struct Offer {
    /// One `Sec-WebSocket-Protocol` header each.
    pub protocols: Vec<String>,
    /// Further headers.
    pub headers: Vec<(String, String)>,
    /// Behind `/v1/ws`, with its `?`.
    pub query: String,
}

impl Default for Offer {
    fn default() -> Self {
        Offer {
            protocols: vec!["askwell.v1".to_owned()],
            headers: Vec::new(),
            query: String::new(),
        }
    }
}

/// What a handshake came to.
#[derive(Debug)]
pub enum Shook {
    /// 101, with the subprotocol that was chosen.
    Open(Box<Client>, Option<String>),
    /// No upgrade: the status and the body.
    Refused(u16, String),
}

/// One socket.
#[derive(Debug)]
pub struct Client {
    stream: WebSocketStream<MaybeTlsStream<TcpStream>>,
    /// Frames that were read and that nobody has asked for.
    kept: VecDeque<Value>,
    /// Set when the server ended it: the code, 1006 for none.
    closed: Option<u16>,
    /// Whether pings are answered while something is waited for; `true` at first.
    pub answers_pings: bool,
    /// The `welcome`, once it came.
    pub welcome: Value,
    /// The newest `seq` of a durable frame or snapshot that was read.
    pub seq: u64,
}

impl Client {
    /// Shakes hands at `base` (`http://127.0.0.1:1234`) and says nothing more.
    ///
    /// # Errors
    /// The connection fails, or the reply is none of HTTP.
    pub async fn shake(base: &str, offer: &Offer) -> Result<Shook> {
        let address = base.trim_start_matches("http://").trim_end_matches('/');
        let url = format!("ws://{address}/v1/ws{}", offer.query);
        let mut request = url.into_client_request()?;
        let headers = request.headers_mut();
        for protocol in &offer.protocols {
            headers.append("sec-websocket-protocol", protocol.parse()?);
        }
        for (name, value) in &offer.headers {
            let name: HeaderName = name.parse()?;
            let value: HeaderValue = value.parse()?;
            // Replaces what the library sets itself, such as Host.
            headers.insert(name, value);
        }
        let shaking = async {
            let stream = MaybeTlsStream::Plain(TcpStream::connect(address).await?);
            // Its own check of the chosen subprotocol would hide what the server did.
            let config = WebSocketConfig::default();
            Ok::<_, anyhow::Error>(client_async_with_config(request, stream, Some(config)).await)
        };
        match timeout(LIMIT, shaking).await.context("no handshake")?? {
            Ok((stream, response)) => Ok(Shook::Open(
                Box::new(Client {
                    stream,
                    kept: VecDeque::new(),
                    closed: None,
                    answers_pings: true,
                    welcome: Value::Null,
                    seq: 0,
                }),
                chosen(&response),
            )),
            Err(Broken::Http(response)) => {
                let body = response.body().clone().unwrap_or_default();
                let body = String::from_utf8_lossy(&body).into_owned();
                Ok(Shook::Refused(response.status().as_u16(), body))
            }
            Err(fault) => Err(fault.into()),
        }
    }

    /// Connects with the subprotocol alone.
    ///
    /// # Errors
    /// No upgrade.
    pub async fn connect(base: &str) -> Result<Client> {
        match Client::shake(base, &Offer::default()).await? {
            Shook::Open(client, _) => Ok(*client),
            Shook::Refused(status, body) => bail!("refused with {status}: {body}"),
        }
    }

    /// Connects, says hello, and waits until the welcome and the whole snapshot are read. The
    /// snapshot's parts stay to be asked for.
    ///
    /// # Errors
    /// The server wants none of it.
    pub async fn open(base: &str, token: &str) -> Result<Client> {
        let mut client = Client::connect(base).await?;
        client.hello(json!({ "token": token })).await?;
        loop {
            let part = client.read_next("snapshot").await?;
            let more = part["more"] == true;
            client.kept.push_back(part);
            if !more {
                return Ok(client);
            }
        }
    }

    /// Connects and resumes after `seq`; waits for the welcome.
    ///
    /// # Errors
    /// The server wants none of it.
    pub async fn resume(base: &str, token: &str, epoch: &str, seq: u64) -> Result<Client> {
        let mut client = Client::connect(base).await?;
        let resume = json!({ "epoch": epoch, "seq": seq });
        client
            .hello(json!({ "token": token, "resume": resume }))
            .await?;
        Ok(client)
    }

    /// Says hello with these fields and waits for the welcome, which is kept in `welcome`.
    ///
    /// # Errors
    /// No welcome comes.
    pub async fn hello(&mut self, mut fields: Value) -> Result<()> {
        fields["type"] = "hello".into();
        self.send(&fields).await?;
        self.welcome = self.next("welcome").await?;
        Ok(())
    }

    /// The epoch of the welcome.
    pub fn epoch(&self) -> &str {
        self.welcome["epoch"].as_str().unwrap_or("")
    }

    /// Sends a frame.
    ///
    /// # Errors
    /// The connection is gone.
    pub async fn send(&mut self, frame: &Value) -> Result<()> {
        self.send_text(&frame.to_string()).await
    }

    /// Sends a text, whatever it is.
    ///
    /// # Errors
    /// The connection is gone.
    pub async fn send_text(&mut self, text: &str) -> Result<()> {
        Ok(self.stream.send(Message::text(text)).await?)
    }

    /// Sends a binary message.
    ///
    /// # Errors
    /// The connection is gone.
    pub async fn send_binary(&mut self, bytes: &[u8]) -> Result<()> {
        let bytes = Bytes::copy_from_slice(bytes);
        Ok(self.stream.send(Message::Binary(bytes)).await?)
    }

    /// The oldest frame that nobody has asked for; waits for one.
    ///
    /// # Errors
    /// None comes in time, or the server ends the connection.
    pub async fn frame(&mut self) -> Result<Value> {
        match self.kept.pop_front() {
            Some(frame) => Ok(frame),
            None => self.read().await,
        }
    }

    /// The oldest frame of this type that nobody has asked for; waits for one. All others stay.
    ///
    /// # Errors
    /// None comes in time, or the server ends the connection; the error shows what came instead.
    pub async fn next(&mut self, kind: &str) -> Result<Value> {
        self.next_where(kind, |_| true).await
    }

    /// As [`Client::next`], of the frames that meet `met`.
    ///
    /// # Errors
    /// As [`Client::next`].
    pub async fn next_where(&mut self, kind: &str, met: impl Fn(&Value) -> bool) -> Result<Value> {
        let fits = |frame: &Value| frame["type"] == kind && met(frame);
        if let Some(at) = self.kept.iter().position(&fits) {
            // The position was found a moment ago.
            return self.kept.remove(at).context("a kept frame");
        }
        let reading = async {
            loop {
                let frame = self.read().await?;
                if fits(&frame) {
                    return Ok(frame);
                }
                self.kept.push_back(frame);
            }
        };
        let read: Result<Value> = timeout(LIMIT, reading).await.unwrap_or_else(|_| {
            bail!("it did not come in time");
        });
        read.with_context(|| format!("no {kind} that was waited for; instead {:?}", self.kept))
    }

    /// All durable frames up to the first that meets `met`, in order; others stay.
    ///
    /// # Errors
    /// It does not come in time.
    pub async fn durable_until(&mut self, met: impl Fn(&Value) -> bool) -> Result<Vec<Value>> {
        let mut found = Vec::new();
        loop {
            let is_durable = |frame: &Value| {
                frame.get("seq").is_some()
                    && frame["type"]
                        .as_str()
                        .is_some_and(|kind| kind.starts_with("ask.") || kind.starts_with("run."))
            };
            let Some(at) = self.kept.iter().position(is_durable) else {
                let frame = timeout(LIMIT, self.read())
                    .await
                    .with_context(|| format!("only {found:?} came"))??;
                self.kept.push_back(frame);
                continue;
            };
            let frame = self.kept.remove(at).context("a kept frame")?;
            let last = met(&frame);
            found.push(frame);
            if last {
                return Ok(found);
            }
        }
    }

    /// Everything that was read and not asked for.
    pub fn kept(&self) -> impl Iterator<Item = &Value> {
        self.kept.iter()
    }

    /// Sends a command and waits for its `ok` or `error`. Without a `cmd` it gets a new one.
    ///
    /// # Errors
    /// No reply comes in time.
    pub async fn command(&mut self, mut frame: Value) -> Result<Value> {
        if frame.get("cmd").is_none() {
            frame["cmd"] = Uuid::new_v4().to_string().into();
        }
        let cmd = frame["cmd"].clone();
        self.send(&frame).await?;
        self.reply(&cmd).await
    }

    /// Waits for the `ok` or `error` of a command.
    ///
    /// # Errors
    /// No reply comes in time.
    pub async fn reply(&mut self, cmd: &Value) -> Result<Value> {
        let is_reply = |frame: &Value| {
            (frame["type"] == "ok" || frame["type"] == "error") && frame["cmd"] == *cmd
        };
        if let Some(at) = self.kept.iter().position(is_reply) {
            return self.kept.remove(at).context("a kept frame");
        }
        let reading = async {
            loop {
                let frame = self.read().await?;
                if is_reply(&frame) {
                    return Ok(frame);
                }
                self.kept.push_back(frame);
            }
        };
        timeout(LIMIT, reading)
            .await
            .with_context(|| format!("no reply to {cmd}"))?
    }

    /// Starts a run and gives its id.
    ///
    /// # Errors
    /// It is refused.
    pub async fn start(&mut self, agent: &str, input: impl Into<Value>) -> Result<String> {
        let frame = json!({ "type": "start", "agent": agent, "input": input.into() });
        let reply = self.command(frame).await?;
        let run = reply["run"].as_str();
        run.map(str::to_owned)
            .with_context(|| format!("not started: {reply}"))
    }

    /// Answers an ask; gives the `ok` or `error`.
    ///
    /// # Errors
    /// No reply comes in time.
    pub async fn approve(
        &mut self,
        run: &str,
        step: &str,
        data: impl Into<Value>,
    ) -> Result<Value> {
        let data = data.into();
        self.command(json!({ "type": "approve", "run": run, "step": step, "data": data }))
            .await
    }

    /// Refuses an ask; gives the `ok` or `error`.
    ///
    /// # Errors
    /// No reply comes in time.
    pub async fn refuse(&mut self, run: &str, step: &str) -> Result<Value> {
        self.command(json!({ "type": "refuse", "run": run, "step": step }))
            .await
    }

    /// Cancels or retries a run, as `kind` says; gives the `ok` or `error`.
    ///
    /// # Errors
    /// No reply comes in time.
    pub async fn change(&mut self, kind: &str, run: &str) -> Result<Value> {
        self.command(json!({ "type": kind, "run": run })).await
    }

    /// Waits for the run's next ask.
    ///
    /// # Errors
    /// None comes in time.
    pub async fn asked(&mut self, run: &str) -> Result<Value> {
        let frame = self
            .next_where("ask.opened", |frame| frame["ask"]["run"] == run)
            .await?;
        Ok(frame["ask"].clone())
    }

    /// Waits until the run has this status.
    ///
    /// # Errors
    /// It does not come in time.
    pub async fn run_is(&mut self, run: &str, status: &str) -> Result<Value> {
        self.next_where("run.status", |frame| {
            frame["run"] == run && frame["status"] == status
        })
        .await
    }

    /// Waits for the end and gives its code; 1006 where none was said.
    ///
    /// # Errors
    /// It does not end in time.
    pub async fn closed(&mut self) -> Result<u16> {
        loop {
            if let Some(code) = self.closed {
                return Ok(code);
            }
            match self.read().await {
                Ok(frame) => self.kept.push_back(frame),
                Err(fault) if self.closed.is_none() => return Err(fault),
                Err(_) => {}
            }
        }
    }

    /// Ends the connection as a page does that is left.
    ///
    /// # Errors
    /// The connection is gone already.
    pub async fn leave(mut self) -> Result<()> {
        Ok(self.stream.close(None).await?)
    }

    /// Reads one frame from the connection.
    async fn read(&mut self) -> Result<Value> {
        loop {
            let read = timeout(LIMIT, self.stream.next()).await;
            let Some(Ok(message)) = read.context("no frame came in time")? else {
                let code = *self.closed.get_or_insert(1006);
                bail!("the connection ended with {code}");
            };
            match message {
                Message::Text(text) => {
                    let frame: Value =
                        serde_json::from_str(&text).with_context(|| format!("no JSON: {text}"))?;
                    if let Some(seq) = frame["seq"].as_u64()
                        && frame["type"] != "ok"
                        && frame["type"] != "welcome"
                    {
                        self.seq = seq;
                    }
                    if frame["type"] == "ping" && self.answers_pings {
                        let pong = json!({ "type": "pong", "seq": self.seq });
                        self.send(&pong).await?;
                    }
                    return Ok(frame);
                }
                Message::Close(said) => {
                    let code = said.map_or(1005, |said| u16::from(said.code));
                    self.closed = Some(code);
                    bail!("the server ended the connection with {code}");
                }
                _ => {}
            }
        }
    }

    /// Reads until a frame of this type comes, past all that is kept.
    async fn read_next(&mut self, kind: &str) -> Result<Value> {
        loop {
            let frame = self.read().await?;
            if frame["type"] == kind {
                return Ok(frame);
            }
            self.kept.push_back(frame);
        }
    }
}

fn chosen<T>(response: &Response<T>) -> Option<String> {
    let chosen = response.headers().get("sec-websocket-protocol")?;
    Some(chosen.to_str().unwrap_or("").to_owned())
}
