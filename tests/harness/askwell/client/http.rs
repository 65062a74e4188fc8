//! HTTP as a backend or curl speaks it.

use anyhow::{Context, Result, ensure};
use reqwest::header::HeaderMap;
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use super::LIMIT;

/// A caller over HTTP.
#[derive(Debug, Clone)]
pub struct Http {
    base: String,
    token: Option<String>,
    client: reqwest::Client,
}

/// What came back.
#[derive(Debug, Clone)]
pub struct Reply {
    /// The status.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body as it came, to be compared byte by byte.
    pub text: String,
    /// The body as JSON; `null` where it is none.
    pub body: Value,
}

impl Reply {
    /// The code of a refusal, or nothing.
    pub fn code(&self) -> &str {
        self.body["code"].as_str().unwrap_or("")
    }

    /// The body of a reply that went well.
    ///
    /// # Errors
    /// It did not.
    pub fn ok(self) -> Result<Value> {
        ensure!(self.status < 300, "status {}: {}", self.status, self.text);
        Ok(self.body)
    }
}

impl Http {
    /// A caller without a token at `base` (`http://127.0.0.1:1234`).
    pub fn new(base: &str) -> Self {
        Http {
            base: base.trim_end_matches('/').to_owned(),
            token: None,
            client: reqwest::Client::new(),
        }
    }

    /// The same with this token.
    #[must_use]
    pub fn with(mut self, token: &str) -> Self {
        self.token = Some(token.to_owned());
        self
    }

    /// A request to be changed further, sent by [`Http::send`].
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.client.request(method, format!("{}{path}", self.base));
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    /// Sends a request and reads the whole reply.
    ///
    /// # Errors
    /// No reply came in time.
    pub async fn send(&self, request: RequestBuilder) -> Result<Reply> {
        let reply = request.timeout(LIMIT).send().await?;
        let (status, headers) = (reply.status().as_u16(), reply.headers().clone());
        let text = reply.text().await?;
        let body = serde_json::from_str(&text).unwrap_or_default();
        Ok(Reply {
            status,
            headers,
            text,
            body,
        })
    }

    /// GET.
    ///
    /// # Errors
    /// No reply came in time.
    pub async fn get(&self, path: &str) -> Result<Reply> {
        self.send(self.request(Method::GET, path)).await
    }

    /// POST of JSON.
    ///
    /// # Errors
    /// No reply came in time.
    pub async fn post(&self, path: &str, body: &Value) -> Result<Reply> {
        self.post_text(path, &body.to_string()).await
    }

    /// POST of a text that is sent as JSON, whatever it is.
    ///
    /// # Errors
    /// No reply came in time.
    pub async fn post_text(&self, path: &str, body: &str) -> Result<Reply> {
        let request = self.request(Method::POST, path);
        let request = request.header("content-type", "application/json");
        self.send(request.body(body.to_owned())).await
    }

    /// POST of JSON with an `Idempotency-Key`.
    ///
    /// # Errors
    /// No reply came in time.
    pub async fn post_as(&self, key: &str, path: &str, body: &Value) -> Result<Reply> {
        let request = self.request(Method::POST, path);
        let request = request.header("content-type", "application/json");
        let request = request.header("idempotency-key", key);
        self.send(request.body(body.to_string())).await
    }

    /// Starts a run and gives its id.
    ///
    /// # Errors
    /// It is refused.
    pub async fn start(&self, agent: &str, input: impl Into<Value>) -> Result<String> {
        let body = json!({ "agent": agent, "input": input.into() });
        let started = self.post("/v1/runs", &body).await?.ok()?;
        let run = started["run"].as_str().context("a start names its run")?;
        Ok(run.to_owned())
    }

    /// Answers an ask.
    ///
    /// # Errors
    /// No reply came in time.
    pub async fn approve(&self, run: &str, step: &str, data: impl Into<Value>) -> Result<Reply> {
        let body = json!({ "step": step, "data": data.into() });
        self.post(&format!("/v1/runs/{run}/approve"), &body).await
    }

    /// Refuses an ask.
    ///
    /// # Errors
    /// No reply came in time.
    pub async fn refuse(&self, run: &str, step: &str) -> Result<Reply> {
        let body = json!({ "step": step });
        self.post(&format!("/v1/runs/{run}/refuse"), &body).await
    }

    /// Cancels or retries a run, as `what` says.
    ///
    /// # Errors
    /// No reply came in time.
    pub async fn change(&self, run: &str, what: &str) -> Result<Reply> {
        self.post(&format!("/v1/runs/{run}/{what}"), &json!({}))
            .await
    }

    /// A run as GET shows it.
    ///
    /// # Errors
    /// It is refused.
    pub async fn run(&self, run: &str) -> Result<Value> {
        self.get(&format!("/v1/runs/{run}")).await?.ok()
    }

    /// Reads a run again and again until `met` holds, at most [`LIMIT`]. For callers that have no
    /// socket; a test that has one waits for its frames instead.
    ///
    /// # Errors
    /// It never held; the error shows the run as it was last.
    pub async fn run_until(&self, run: &str, met: impl Fn(&Value) -> bool) -> Result<Value> {
        let deadline = tokio::time::Instant::now() + LIMIT;
        loop {
            let shown = self.run(run).await?;
            if met(&shown) {
                return Ok(shown);
            }
            ensure!(tokio::time::Instant::now() < deadline, "stayed at {shown}");
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    }

    /// Waits until a run has this status.
    ///
    /// # Errors
    /// It never had; the error shows the run as it was last.
    pub async fn run_is(&self, run: &str, status: &str) -> Result<Value> {
        self.run_until(run, |shown| shown["status"] == status).await
    }
}
