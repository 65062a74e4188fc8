//! One address of a provider: a request, and which faults are worth another try.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimeParser;
use reqwest::header::{ACCEPT, DATE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Client, Response, StatusCode, Url, redirect};
use serde_json::Value;

use super::ModelFault;

/// How much of a provider's own message is kept, in characters.
const MESSAGE_CHARS: usize = 500;
/// How much of an error's body is read, in bytes: enough for any message, no more of a web page.
const ERROR_BODY_BYTES: usize = 64 * 1024;
/// A shorter key is a placeholder for a local server, and hiding it would garble every message.
const SHORTEST_SECRET: usize = 4;

/// How long a provider may keep one waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// For the connection to stand.
    pub connect: Duration,
    /// Between two reads, the wait for the first one included. Comments in a stream count as reads:
    /// with them providers say that a slow model is still at work.
    pub idle: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            idle: Duration::from_mins(2),
        }
    }
}

/// Why an endpoint cannot be used; tells of a bad configuration.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    /// The address is malformed or no http address.
    #[error("baseUrl: {0} is no http or https address")]
    Address(String),
    /// The key holds characters that no header may.
    #[error("the API key holds a character that cannot be sent in a header")]
    Key,
    /// The TLS or HTTP machinery could not be set up.
    #[error("the HTTP client: {0}")]
    Client(String),
}

/// How a provider wants its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyHeader {
    /// `Authorization: Bearer <key>`
    Bearer,
    /// The bare key in a header of this name.
    Named(&'static str),
}

/// One address that takes a JSON body by POST.
#[derive(Clone)]
pub struct Endpoint {
    client: Client,
    url: Url,
    headers: HeaderMap,
    key: Option<String>,
    idle: Duration,
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Neither the key nor the address' query, which may hold another one.
        f.debug_struct("Endpoint")
            .field("host", &self.url.host_str())
            .finish_non_exhaustive()
    }
}

impl Endpoint {
    /// The address `path` (its segments) below `base_url`, whose query is kept. A blank key is none.
    pub fn new(
        base_url: &str,
        path: &[&str],
        key: Option<(KeyHeader, &str)>,
        timeouts: Timeouts,
    ) -> Result<Self, EndpointError> {
        let address = || EndpointError::Address(base_url.to_owned());
        let mut url = Url::parse(base_url).map_err(|_| address())?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(address());
        }
        url.path_segments_mut()
            .map_err(|()| address())?
            .pop_if_empty()
            .extend(path);

        let key = key
            .map(|(header, key)| (header, key.trim()))
            .filter(|(_, key)| !key.is_empty());
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        if let Some((header, key)) = key {
            let (name, value) = match header {
                KeyHeader::Bearer => ("authorization", format!("Bearer {key}")),
                KeyHeader::Named(name) => (name, key.to_owned()),
            };
            let mut value = HeaderValue::from_str(&value).map_err(|_| EndpointError::Key)?;
            value.set_sensitive(true);
            headers.insert(HeaderName::from_static(name), value);
        }

        let mut client = Client::builder()
            .connect_timeout(timeouts.connect)
            .read_timeout(timeouts.idle)
            // A POST that is redirected would lose its body; and the key is for this host alone.
            .redirect(redirect::Policy::none());
        if is_loopback(&url) {
            client = client.no_proxy();
        }
        let client = client
            .build()
            .map_err(|error| EndpointError::Client(chain(&error)))?;
        Ok(Self {
            client,
            url,
            headers,
            key: key.map(|(_, key)| key.to_owned()),
            idle: timeouts.idle,
        })
    }

    /// Adds a header to every request, a version for one.
    #[must_use]
    pub fn with_header(mut self, name: &'static str, value: HeaderValue) -> Self {
        self.headers.insert(HeaderName::from_static(name), value);
        self
    }

    /// Sends one request. Any status but 2xx is a fault.
    pub(crate) async fn post(&self, body: &Value) -> Result<Response, ModelFault> {
        let response = self
            .client
            .post(self.url.clone())
            .headers(self.headers.clone())
            .json(body)
            .send()
            .await
            .map_err(|error| self.broken(error))?;
        if response.status().is_success() {
            return Ok(response);
        }
        Err(self.refused(response).await)
    }

    /// The fault of a connection that failed or broke.
    pub(crate) fn broken(&self, error: reqwest::Error) -> ModelFault {
        let reason = if error.is_timeout() && !error.is_connect() {
            format!("nothing came for {} s", self.idle.as_secs_f32())
        } else {
            chain(&error.without_url())
        };
        self.retry(&reason)
    }

    /// A fault worth another try, its text cut and without the key.
    pub(crate) fn retry(&self, reason: &str) -> ModelFault {
        ModelFault::Retry {
            reason: self.shown(reason),
            after: None,
        }
    }

    /// The fault of an error that came inside a stream.
    pub(crate) fn stream_error(&self, error: &Value) -> ModelFault {
        let message = message_in(error).unwrap_or_else(|| error.to_string());
        let reason = format!("the stream carried an error: {message}");
        if out_of_quota(error) {
            return ModelFault::Final {
                reason: self.shown(&reason),
            };
        }
        self.retry(&reason)
    }

    async fn refused(&self, mut response: Response) -> ModelFault {
        let status = response.status();
        let headers = response.headers().clone();
        let mut body = Vec::new();
        // What of the body came before a fault is still the best message there is.
        while let Ok(Some(chunk)) = response.chunk().await {
            body.extend_from_slice(&chunk);
            if body.len() > ERROR_BODY_BYTES {
                break;
            }
        }
        let text = String::from_utf8_lossy(&body);
        let json = serde_json::from_str::<Value>(&text).ok();
        let message = json
            .as_ref()
            .and_then(message_in)
            .unwrap_or_else(|| text.trim().to_owned());
        let reason = if message.is_empty() {
            status.to_string()
        } else {
            format!("{status}: {message}")
        };
        let reason = self.shown(&reason);
        let hopeless = json.as_ref().is_some_and(out_of_quota);
        if !hopeless && asks_for_another_try(status, &headers) {
            let after = retry_after(&headers, Timestamp::now());
            return ModelFault::Retry { reason, after };
        }
        ModelFault::Final { reason }
    }

    fn shown(&self, text: &str) -> String {
        let text = match &self.key {
            // Before the cut, which might leave half of it.
            Some(key) if key.len() >= SHORTEST_SECRET => text.replace(key.as_str(), "[key]"),
            _ => text.to_owned(),
        };
        match text.char_indices().nth(MESSAGE_CHARS) {
            Some((end, _)) => format!("{}...", &text[..end]),
            None => text,
        }
    }
}

/// The message of a provider's error, in any of the forms that they send.
pub(crate) fn message_in(error: &Value) -> Option<String> {
    let text = match error {
        Value::String(text) => text.trim().to_owned(),
        Value::Object(fields) => {
            let named = ["error", "message", "detail", "details", "errors"];
            return named
                .iter()
                .filter_map(|name| fields.get(*name))
                .find_map(message_in);
        }
        Value::Array(items) => return items.iter().find_map(message_in),
        _ => return None,
    };
    Some(text).filter(|text| !text.is_empty())
}

fn out_of_quota(error: &Value) -> bool {
    let error = error.get("error").unwrap_or(error);
    let is = |name: &str| error.get(name).and_then(Value::as_str) == Some("insufficient_quota");
    is("code") || is("type")
}

fn asks_for_another_try(status: StatusCode, headers: &HeaderMap) -> bool {
    match text_of(headers, "x-should-retry") {
        Some("true") => true,
        Some("false") => false,
        _ => matches!(status.as_u16(), 408 | 409 | 429) || status.is_server_error(),
    }
}

/// The wait that the provider asks for: milliseconds, seconds or a date (RFC 9110, 10.2.3). A date
/// is measured against the response's own, so that a clock of ours that is wrong does no harm.
fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let millis = text_of(headers, "retry-after-ms").and_then(|text| text.parse::<f64>().ok());
    if let Some(millis) = millis {
        return Duration::try_from_secs_f64(millis / 1000.0).ok();
    }
    let text = text_of(headers, RETRY_AFTER.as_str())?;
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let date = |text: &str| DateTimeParser::new().parse_timestamp(text).ok();
    let sent = text_of(headers, DATE.as_str()).and_then(date);
    let wait = date(text)?.duration_since(sent.unwrap_or(now));
    Some(wait.try_into().unwrap_or_default())
}

fn text_of<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok().map(str::trim)
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost"
        || host
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

/// An error with its causes: reqwest's own text says only that sending failed.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.ends_with(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| {
                (
                    HeaderName::from_static(name),
                    HeaderValue::from_static(value),
                )
            })
            .collect()
    }

    #[test]
    fn the_wait_is_read_in_all_three_forms() {
        let noon = "Tue, 01 Jan 2030 12:00:00 GMT";
        let later = "Tue, 01 Jan 2030 12:00:09 GMT";
        let rows = [
            (
                headers(&[("retry-after-ms", "250"), ("retry-after", "9")]),
                Some(250),
            ),
            (headers(&[("retry-after", "3")]), Some(3000)),
            (headers(&[("retry-after", "0.5")]), Some(500)),
            (
                headers(&[("retry-after", later), ("date", noon)]),
                Some(9000),
            ),
            (headers(&[("retry-after", noon), ("date", later)]), Some(0)),
            (headers(&[("retry-after", "soon")]), None),
            (headers(&[("retry-after", "-3")]), None),
            (headers(&[("retry-after", "1e300")]), None),
            (headers(&[("retry-after", "NaN")]), None),
            (headers(&[]), None),
        ];
        for (headers, millis) in rows {
            let expected = millis.map(Duration::from_millis);
            assert_eq!(
                retry_after(&headers, Timestamp::UNIX_EPOCH),
                expected,
                "{headers:?}"
            );
        }
    }

    #[test]
    fn a_message_is_found_in_every_form_of_error() {
        let rows = [
            (json!("full"), Some("full")),
            (json!({ "error": "full" }), Some("full")),
            (
                json!({ "error": { "message": "full", "code": 502 } }),
                Some("full"),
            ),
            (
                json!({ "object": "error", "message": "full" }),
                Some("full"),
            ),
            (json!({ "detail": [{ "message": "full" }] }), Some("full")),
            (json!([{ "error": { "message": "full" } }]), Some("full")),
            (json!({ "error": { "code": 502 } }), None),
            (json!({ "error": null, "message": " " }), None),
        ];
        for (error, expected) in rows {
            assert_eq!(message_in(&error).as_deref(), expected, "{error}");
        }
    }

    #[test]
    fn the_address_is_appended_and_its_query_kept() {
        let url = |base: &str| {
            Endpoint::new(base, &["chat", "completions"], None, Timeouts::default())
                .map(|endpoint| endpoint.url.to_string())
                .map_err(|error| error.to_string())
        };
        let rows = [
            (
                "http://127.0.0.1:1/v1",
                "http://127.0.0.1:1/v1/chat/completions",
            ),
            (
                "http://127.0.0.1:1/v1/",
                "http://127.0.0.1:1/v1/chat/completions",
            ),
            ("http://127.0.0.1:1", "http://127.0.0.1:1/chat/completions"),
            (
                "http://127.0.0.1:1/v1?api=2",
                "http://127.0.0.1:1/v1/chat/completions?api=2",
            ),
        ];
        for (base, expected) in rows {
            assert_eq!(url(base).as_deref(), Ok(expected));
        }
        for base in ["", "v1", "ftp://host/v1", "mailto:a@b"] {
            assert!(url(base).unwrap_err().contains("baseUrl"), "{base}");
        }
    }

    #[test]
    fn a_key_is_neither_debugged_nor_shown() {
        let key = Some((KeyHeader::Bearer, "secret-key"));
        let endpoint =
            Endpoint::new("http://127.0.0.1:1", &["x"], key, Timeouts::default()).unwrap();
        assert!(!format!("{endpoint:?}").contains("secret-key"));
        let long = format!("{}secret-key{}", "a".repeat(495), "b".repeat(100));
        let shown = endpoint.shown(&long);
        assert!(!shown.contains("secre"), "{shown}");
        assert_eq!(shown.chars().count(), MESSAGE_CHARS + 3);
        let bad = Endpoint::new(
            "http://127.0.0.1:1",
            &["x"],
            Some((KeyHeader::Bearer, "a\nb")),
            Timeouts::default(),
        );
        assert!(matches!(bad, Err(EndpointError::Key)));
    }
}
