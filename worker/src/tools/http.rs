//! A tool that is an HTTP request (SPEC 7): the input is the JSON body (GET: the query), the
//! result is the body as text.

use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt as _;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Method, Url, redirect};
use serde_json::Value;

use super::{CallContext, Tool};
use askwell_shared::agent::{HttpToolSpec, ToolSpec};
use askwell_shared::json;

/// The most bytes of a result; what is over it is cut (SPEC 7).
const MAX_RESULT: usize = 16 * 1024;

/// A tool that is an HTTP request.
pub struct HttpTool {
    spec: ToolSpec,
    method: Method,
    url: Url,
    headers: HeaderMap,
    timeout: Duration,
    client: Client,
}

impl HttpTool {
    /// The tool of this definition; `secret` gives the value of an environment variable. The
    /// error names the place and never a secret.
    pub fn new(
        spec: ToolSpec,
        http: &HttpToolSpec,
        secret: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, String> {
        let place = format!("tools.{}.http", spec.name);
        let method: Method = http
            .method
            .parse()
            .map_err(|_| format!("{place}.method: is no HTTP method"))?;
        let url: Url = http
            .url
            .parse()
            .map_err(|_| format!("{place}.url: is no address"))?;
        let mut headers = HeaderMap::new();
        for (header, variable) in &http.headers_env {
            let place = format!("{place}.headersEnv.{header}");
            let value =
                secret(variable).ok_or_else(|| format!("{place}: {variable} is not set"))?;
            let name: HeaderName = header
                .parse()
                .map_err(|_| format!("{place}: is no header's name"))?;
            let mut value = HeaderValue::try_from(value)
                .map_err(|_| format!("{place}: {variable} holds no header's value"))?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        let client = Client::builder()
            .connect_timeout(Duration::from_secs(10))
            // A redirect would carry the input and its headers to an address nobody chose.
            .redirect(redirect::Policy::none())
            .build()
            .map_err(|fault| format!("{place}: {fault}"))?;
        Ok(HttpTool {
            method,
            url,
            headers,
            timeout: http.timeout,
            client,
            spec,
        })
    }

    async fn send(&self, input: &Value, context: &CallContext) -> Result<String, String> {
        let mut url = self.url.clone();
        let by_query = self.method == Method::GET;
        if by_query && let Value::Object(fields) = input {
            let mut query = url.query_pairs_mut();
            for (name, value) in fields {
                query.append_pair(name, &json::text(value));
            }
            drop(query);
        }
        let mut request = self
            .client
            .request(self.method.clone(), url)
            .headers(self.headers.clone())
            .header("idempotency-key", &context.key);
        if !by_query {
            request = request.json(input);
        }
        let reply = request
            .send()
            .await
            .map_err(|fault| format!("The request failed: {}", fault.without_url()))?;
        let status = reply.status();
        let body = read_cut(reply).await?;
        if status.is_client_error() || status.is_server_error() {
            Err(format!("HTTP {}: {body}", status.as_u16()))
        } else {
            Ok(body)
        }
    }
}

/// The start of a body as text, read no further than it is kept.
async fn read_cut(reply: reqwest::Response) -> Result<String, String> {
    let mut bytes = Vec::new();
    let mut stream = reply.bytes_stream();
    while let Some(piece) = stream.next().await {
        let piece =
            piece.map_err(|fault| format!("The reply broke off: {}", fault.without_url()))?;
        bytes.extend_from_slice(&piece);
        if bytes.len() > MAX_RESULT {
            bytes.truncate(MAX_RESULT);
            // A character that the cut split is left out whole.
            if let Err(fault) = std::str::from_utf8(&bytes)
                && fault.error_len().is_none()
            {
                bytes.truncate(fault.valid_up_to());
            }
            break;
        }
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[async_trait]
impl Tool for HttpTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, input: &Value, context: &CallContext) -> Result<String, String> {
        tokio::time::timeout(self.timeout, self.send(input, context))
            .await
            .unwrap_or_else(|_| {
                let limit = self.timeout.as_millis();
                Err(format!("The request was given up after {limit} ms."))
            })
    }
}
