//! Reading runs and asks (SPEC 3.7). Nothing here settles anything.

use askwell_shared::ask::Ask;
use askwell_shared::caller::{Caller, View, may_read};
use askwell_shared::id::RunId;
use askwell_shared::ports::{Page, Whose};
use askwell_shared::run::{Run, Status};
use askwell_shared::time::Millis;
use askwell_shared::transcript::{Message, Transcript};
use askwell_shared::wire::{AskView, end_name};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use serde_json::{Value, json};

use super::Calls;
use super::patience::Patience;
use crate::refusal::{Refusal, to_value};

/// Items of a page where the caller names no number.
const LIMIT: usize = 50;
/// Items of a page at most.
const MOST: usize = 200;
/// How many runs of a page are read at once.
const AT_ONCE: usize = 8;

/// Which runs are listed, as the query says.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct RunFilter {
    /// Of this agent.
    pub agent: Option<String>,
    /// In this thread.
    pub thread: Option<String>,
    /// `live` or one status.
    pub status: Option<String>,
    /// At most so many.
    pub limit: Option<String>,
    /// Where the page before ended.
    pub cursor: Option<String>,
}

/// Which asks are listed, as the query says.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct AskFilter {
    /// Only `open` is there to list.
    pub state: Option<String>,
    /// Of this agent.
    pub agent: Option<String>,
    /// At most so many.
    pub limit: Option<String>,
    /// Where the page before ended.
    pub cursor: Option<String>,
}

impl Calls {
    /// One run with its asks and conversation: `GET /v1/runs/{run}`.
    pub async fn run(&self, caller: &Caller, run: &str) -> Result<Value, Refusal> {
        let id = RunId::parse(run).ok_or_else(Refusal::not_found)?;
        let mut patience = Patience::new();
        let run = self.load(&id, &mut patience).await?.value;
        let view = may_read(caller, run.as_ref().map(|run| &run.starter)).map_err(Refusal::of)?;
        let run = run.ok_or_else(Refusal::not_found)?;
        let store = &self.ports.store;
        let reading = || store.transcript(&id);
        let transcript = patience.read(reading).await?.value;
        let mut shown = show_run(&run, view);
        let (messages, tools) = show_transcript(&transcript, view);
        shown["messages"] = messages;
        shown["tools"] = tools;
        Ok(shown)
    }

    /// A page of runs with their asks, newest first: `GET /v1/runs`. Ops see everybody's.
    pub async fn runs(&self, caller: &Caller, filter: &RunFilter) -> Result<Value, Refusal> {
        let limit = read_limit(filter.limit.as_deref())?;
        let mut page = page_of(caller, limit, filter.cursor.as_deref())?;
        page.agent.clone_from(&filter.agent);
        page.thread.clone_from(&filter.thread);
        page.statuses = read_statuses(filter.status.as_deref())?;
        let store = &self.ports.store;
        let mut patience = Patience::new();
        let mut runs = patience.read(|| store.runs(&page)).await?.value;
        let more = runs.len() > limit;
        runs.truncate(limit);
        let cursor = runs
            .last()
            .filter(|_| more)
            .map(|run| write_cursor(run.created, run.id.as_str()));
        // The list holds runs without their asks' records.
        let whole: Vec<Option<Run>> = stream::iter(runs)
            .map(|run| async move {
                let loaded = self.load(&run.id, &mut Patience::new()).await?;
                Ok::<_, Refusal>(loaded.value)
            })
            .buffered(AT_ONCE)
            .try_collect()
            .await?;
        let shown: Vec<Value> = whole
            .iter()
            .flatten()
            .filter_map(|run| {
                let view = may_read(caller, Some(&run.starter)).ok()?;
                Some(show_run(run, view))
            })
            .collect();
        Ok(json!({ "runs": shown, "cursor": cursor }))
    }

    /// A page of open asks, newest first: `GET /v1/asks`. Ops see everybody's.
    pub async fn asks(&self, caller: &Caller, filter: &AskFilter) -> Result<Value, Refusal> {
        if filter.state.as_deref().is_some_and(|state| state != "open") {
            return Err(Refusal::malformed("The field state must be open."));
        }
        let limit = read_limit(filter.limit.as_deref())?;
        let mut page = page_of(caller, limit, filter.cursor.as_deref())?;
        page.agent.clone_from(&filter.agent);
        let store = &self.ports.store;
        let mut patience = Patience::new();
        let reading = || store.open_asks(&page);
        let mut asks = patience.read(reading).await?.value;
        let more = asks.len() > limit;
        asks.truncate(limit);
        let cursor = asks
            .last()
            .filter(|_| more)
            .map(|ask| write_cursor(ask.opened, &ask.id));
        let mut shown = Vec::with_capacity(asks.len());
        for ask in &asks {
            let view = match &page.whose {
                Whose::Of(_) => View::Full,
                Whose::All => self.view_of(caller, ask, &mut patience).await?,
            };
            shown.push(to_value(&show_ask(ask, view)));
        }
        Ok(json!({ "asks": shown, "cursor": cursor }))
    }

    /// How much of an ask ops see: an ask does not say who started its run.
    async fn view_of(
        &self,
        caller: &Caller,
        ask: &Ask,
        patience: &mut Patience,
    ) -> Result<View, Refusal> {
        let run = self.load(&ask.run, patience).await?.value;
        let starter = run.as_ref().map(|run| &run.starter);
        Ok(may_read(caller, starter).unwrap_or(View::Redacted))
    }
}

fn page_of(caller: &Caller, limit: usize, cursor: Option<&str>) -> Result<Page, Refusal> {
    Ok(Page {
        whose: if caller.is_ops() {
            Whose::All
        } else {
            Whose::Of(caller.as_starter())
        },
        agent: None,
        thread: None,
        statuses: Vec::new(),
        // One more than is shown tells whether there is another page.
        limit: limit + 1,
        after: cursor.map(read_cursor).transpose()?,
    })
}

fn show_ask(ask: &Ask, view: View) -> AskView {
    match view {
        View::Full => AskView::full(ask),
        View::Redacted => AskView::redacted(ask),
    }
}

/// A run without its conversation. Redacted, it tells what became of it and not what was said.
fn show_run(run: &Run, view: View) -> Value {
    let asks: Vec<AskView> = run.asks.iter().map(|ask| show_ask(ask, view)).collect();
    let output = match view {
        View::Full => run.output.as_deref(),
        View::Redacted => None,
    };
    json!({
        "run": run.id.as_str(),
        "agent": run.agent,
        "revision": run.revision,
        "thread": run.thread,
        "starter": { "sub": run.starter.sub, "system": run.starter.system },
        "status": run.status.name(),
        "rev": run.rev,
        "reason": run.reason,
        "attempts": run.attempts,
        "asks": to_value(&asks),
        "output": output,
        "usage": to_value(&run.usage),
        "created": run.created.rfc3339(),
        "updated": run.updated.rfc3339(),
    })
}

fn show_transcript(transcript: &Transcript, view: View) -> (Value, Value) {
    let full = view == View::Full;
    let shown = |text: &str| full.then(|| text.to_owned());
    let messages: Vec<Value> = transcript
        .messages
        .iter()
        .map(|message| match message {
            Message::User { text } => {
                json!({ "turn": 0, "role": "user", "text": shown(text) })
            }
            Message::Assistant {
                turn, text, calls, ..
            } => {
                let calls: Vec<Value> = calls
                    .iter()
                    .map(|call| {
                        json!({
                            "call": call.call,
                            "step": call.step,
                            "tool": call.tool,
                            "input": full.then(|| call.input.clone()),
                        })
                    })
                    .collect();
                json!({ "turn": turn, "role": "assistant", "text": shown(text), "calls": calls })
            }
        })
        .collect();
    let tools: Vec<Value> = transcript
        .journal
        .iter()
        .map(|entry| {
            json!({
                "turn": entry.turn,
                "call": entry.call,
                "tool": entry.tool,
                "state": end_name(entry.state),
                "result": entry.result.as_deref().and_then(shown),
            })
        })
        .collect();
    (messages.into(), tools.into())
}

fn read_limit(limit: Option<&str>) -> Result<usize, Refusal> {
    let Some(text) = limit else {
        return Ok(LIMIT);
    };
    text.parse()
        .ok()
        .filter(|limit| (1..=MOST).contains(limit))
        .ok_or_else(|| {
            Refusal::malformed(format!(
                "The field limit must be a number from 1 to {MOST}."
            ))
        })
}

fn read_statuses(status: Option<&str>) -> Result<Vec<Status>, Refusal> {
    match status {
        None => Ok(Vec::new()),
        Some("live") => Ok(vec![
            Status::Queued,
            Status::Running,
            Status::Waiting,
            Status::Stalled,
        ]),
        Some(name) => Status::parse(name)
            .map(|status| vec![status])
            .ok_or_else(|| {
                Refusal::malformed("The field status must be live or the status of a run.")
            }),
    }
}

/// A cursor is opaque to callers: the time and id of a page's last item.
fn write_cursor(at: Millis, id: &str) -> String {
    URL_SAFE_NO_PAD.encode(format!("{}:{id}", at.0))
}

fn read_cursor(cursor: &str) -> Result<(Millis, String), Refusal> {
    let read = || {
        let bytes = URL_SAFE_NO_PAD.decode(cursor).ok()?;
        let text = String::from_utf8(bytes).ok()?;
        let (at, id) = text.split_once(':')?;
        Some((Millis(at.parse().ok()?), id.to_owned()))
    };
    read().ok_or_else(|| {
        Refusal::malformed("The field cursor must be the cursor of the page before.")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use askwell_shared::transcript::{CallEnd, JournalEntry, MessageCall};

    #[test]
    fn cursors_come_back_as_they_were() {
        let cursor = write_cursor(Millis(1_796_073_599_007), "run_00ab");
        assert!(!cursor.contains('.'));
        assert_eq!(
            read_cursor(&cursor),
            Ok((Millis(1_796_073_599_007), "run_00ab".to_owned()))
        );
        for bad in ["", "!", "YWJj", "YTpi"] {
            assert!(read_cursor(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn limits_and_statuses_are_checked() {
        assert_eq!(read_limit(None), Ok(50));
        assert_eq!(read_limit(Some("200")), Ok(200));
        for bad in ["0", "201", "-1", "x", ""] {
            assert!(read_limit(Some(bad)).is_err(), "{bad}");
        }
        assert_eq!(read_statuses(Some("failed")), Ok(vec![Status::Failed]));
        assert_eq!(read_statuses(Some("live")).unwrap().len(), 4);
        assert!(read_statuses(Some("Failed")).is_err());
    }

    #[test]
    fn ops_read_what_happened_and_not_what_was_said() {
        let transcript = Transcript {
            messages: vec![
                Message::User {
                    text: "secret one".into(),
                },
                Message::Assistant {
                    turn: 1,
                    text: "secret two".into(),
                    calls: vec![MessageCall {
                        call: "c1".into(),
                        step: "refund 1.1".into(),
                        tool: "refund".into(),
                        input: json!({"order": "secret three"}),
                    }],
                    raw: None,
                },
            ],
            journal: vec![JournalEntry {
                turn: 1,
                call: "c1".into(),
                step: "refund 1.1".into(),
                tool: "refund".into(),
                state: CallEnd::Done,
                attempt: 1,
                result: Some("secret four".into()),
            }],
        };
        let (messages, tools) = show_transcript(&transcript, View::Redacted);
        let text = format!("{messages}{tools}");
        assert!(!text.contains("secret"), "{text}");
        assert!(text.contains("refund 1.1") && text.contains("\"done\""));
        let (messages, tools) = show_transcript(&transcript, View::Full);
        assert_eq!(format!("{messages}{tools}").matches("secret").count(), 4);
    }
}
