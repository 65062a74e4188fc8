//! The body of a provider's answer as payloads: from an event stream, or from plain JSON where a
//! server does not stream.

use std::io::Cursor;
use std::pin::Pin;

use futures_util::{Stream, StreamExt, stream};
use reqwest::Response;
use serde_json::Value;
use sse_stream::SseByteStream;

use super::ModelFault;
use super::endpoint::Endpoint;

/// Far beyond any reply: a server that never ends must not fill the worker's memory.
const LONGEST_BODY: usize = 32 * 1024 * 1024;
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// One message of the provider.
#[derive(Debug, PartialEq)]
pub(crate) enum Payload {
    /// `[DONE]`: nothing follows.
    Done,
    /// A chunk, or the whole answer of a server that did not stream.
    Json(Value),
    /// An event of the type `error`.
    Error(Value),
}

/// The payloads of one answer, in order.
pub(crate) struct Payloads<'a> {
    endpoint: &'a Endpoint,
    events: Events,
    /// Payloads of the last event that are still to be handed out, newest first.
    waiting: Vec<Payload>,
}

type Bytes = Pin<Box<dyn Stream<Item = Result<Cursor<Vec<u8>>, BodyFault>> + Send>>;

enum Events {
    Stream(Box<SseByteStream<Bytes>>),
    Plain(Option<Vec<u8>>),
}

#[derive(Debug, thiserror::Error)]
enum BodyFault {
    #[error(transparent)]
    Broken(#[from] reqwest::Error),
    #[error("the answer is longer than {LONGEST_BODY} bytes")]
    TooLong,
}

impl<'a> Payloads<'a> {
    /// Looks at the first byte, not at the content type, which many servers get wrong: an event
    /// stream never begins with a brace.
    pub(crate) async fn of(response: Response, endpoint: &'a Endpoint) -> Result<Self, ModelFault> {
        let mut bytes = limited(response);
        let mut start = Vec::new();
        while begins_with(&start).is_none() {
            match bytes.next().await {
                Some(Ok(more)) => start.extend(more.into_inner()),
                Some(Err(fault)) => return Err(body_fault(endpoint, fault)),
                None => break,
            }
        }
        let events = if begins_with(&start) == Some(b'{') {
            while let Some(more) = bytes.next().await {
                let more = more.map_err(|fault| body_fault(endpoint, fault))?;
                start.extend(more.into_inner());
            }
            Events::Plain(Some(start))
        } else {
            // The last event counts though its empty line be missing; were it cut, it is no JSON.
            let end = stream::iter([Ok(Cursor::new(b"\n\n".to_vec()))]);
            let all = stream::iter([Ok(Cursor::new(start))])
                .chain(bytes)
                .chain(end);
            Events::Stream(Box::new(SseByteStream::new(Box::pin(all))))
        };
        Ok(Self {
            endpoint,
            events,
            waiting: Vec::new(),
        })
    }

    /// The next payload, `None` at the end of the body.
    pub(crate) async fn next(&mut self) -> Result<Option<Payload>, ModelFault> {
        loop {
            if let Some(payload) = self.waiting.pop() {
                return Ok(Some(payload));
            }
            let (kind, data) = match &mut self.events {
                Events::Plain(body) => match body.take() {
                    Some(body) => (None, String::from_utf8_lossy(&body).into_owned()),
                    None => return Ok(None),
                },
                Events::Stream(events) => match events.next().await {
                    Some(Ok(event)) => (event.event, event.data.unwrap_or_default()),
                    Some(Err(error)) => return Err(stream_fault(self.endpoint, error)),
                    None => return Ok(None),
                },
            };
            self.waiting = self.payloads_in(kind.as_deref(), &data)?;
            self.waiting.reverse();
        }
    }

    /// One event is one payload. Where the empty line between two is missing, it holds several
    /// lines.
    fn payloads_in(&self, kind: Option<&str>, data: &str) -> Result<Vec<Payload>, ModelFault> {
        let data = data.trim();
        if kind == Some("error") {
            let error = serde_json::from_str(data).unwrap_or_else(|_| data.into());
            return Ok(vec![Payload::Error(error)]);
        }
        if data.is_empty() {
            return Ok(Vec::new());
        }
        if let Some(payload) = payload_of(data) {
            return Ok(vec![payload]);
        }
        let lines = data.lines().map(str::trim).filter(|line| !line.is_empty());
        lines
            .map(|line| {
                payload_of(line).ok_or_else(|| {
                    let reason = format!("the stream carried what is no JSON: {line}");
                    self.endpoint.retry(&reason)
                })
            })
            .collect()
    }
}

fn payload_of(text: &str) -> Option<Payload> {
    if text == "[DONE]" {
        return Some(Payload::Done);
    }
    serde_json::from_str(text).ok().map(Payload::Json)
}

fn limited(response: Response) -> Bytes {
    let mut left = LONGEST_BODY;
    let bytes = response.bytes_stream().map(move |read| {
        let read = read?;
        left = left.checked_sub(read.len()).ok_or(BodyFault::TooLong)?;
        Ok(Cursor::new(read.to_vec()))
    });
    Box::pin(bytes)
}

/// The first byte that says something, once there is one.
fn begins_with(start: &[u8]) -> Option<u8> {
    if start.len() < BYTE_ORDER_MARK.len() && BYTE_ORDER_MARK.starts_with(start) {
        return None;
    }
    let text = start.strip_prefix(BYTE_ORDER_MARK).unwrap_or(start);
    text.iter()
        .copied()
        .find(|byte| !byte.is_ascii_whitespace())
}

fn body_fault(endpoint: &Endpoint, fault: BodyFault) -> ModelFault {
    match fault {
        BodyFault::Broken(error) => endpoint.broken(error),
        BodyFault::TooLong => endpoint.retry(&fault.to_string()),
    }
}

fn stream_fault(endpoint: &Endpoint, error: sse_stream::Error) -> ModelFault {
    match error {
        sse_stream::Error::Body(source) => match source.downcast::<BodyFault>() {
            Ok(fault) => body_fault(endpoint, *fault),
            Err(source) => endpoint.retry(&source.to_string()),
        },
        error => endpoint.retry(&format!("the stream broke: {error}")),
    }
}
