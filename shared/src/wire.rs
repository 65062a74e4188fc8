//! The wire (PROTOCOL): durable frames and the records that HTTP and sockets show.
//!
//! These types are written, never read back: what a client sends is read field by field where
//! it comes in. Times are RFC 3339 text, names are camelCase.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::ask::{Ask, By, Outcome};
use crate::id::RunId;
use crate::run::Run;
use crate::transcript::{CallEnd, JournalEntry, MessageCall};

/// The most bytes of one frame (PROTOCOL 2).
pub const MAX_FRAME: usize = 64 * 1024;

/// Room that a frame keeps for everything but its longest text.
const FRAME_ROOM: usize = 2 * 1024;

/// A durable frame, before the store gives it its `seq` (PROTOCOL 2).
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all_fields = "camelCase")]
pub enum Frame {
    /// An ask was opened.
    #[serde(rename = "ask.opened")]
    AskOpened {
        /// The ask.
        ask: Box<AskView>,
    },
    /// One of several answers was saved.
    #[serde(rename = "ask.draft")]
    AskDraft {
        /// The run.
        run: RunId,
        /// The step.
        step: String,
        /// The asking.
        repeat: u32,
        /// Which question, from 1.
        n: u32,
        /// The answer, filled in.
        data: Value,
    },
    /// An ask ended.
    #[serde(rename = "ask.settled")]
    AskSettled {
        /// The run.
        run: RunId,
        /// The step.
        step: String,
        /// The asking.
        repeat: u32,
        /// How it ended.
        outcome: Outcome,
        /// Who ended it.
        by: Option<By>,
        /// When.
        at: String,
        /// The answer; left out where there is none.
        #[serde(skip_serializing_if = "Option::is_none")]
        data: Option<Value>,
        /// The command that ended it.
        #[serde(skip_serializing_if = "Option::is_none")]
        cmd: Option<String>,
        /// Whether `data` was left out for its length.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        truncated: bool,
    },
    /// A run has another status.
    #[serde(rename = "run.status")]
    RunStatus {
        /// The run.
        run: RunId,
        /// Its agent.
        agent: String,
        /// Its thread.
        thread: Option<String>,
        /// Where it is.
        status: &'static str,
        /// Its revision.
        rev: u64,
        /// Why.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// The last assistant text, once it succeeded.
        #[serde(skip_serializing_if = "Option::is_none")]
        output: Option<String>,
        /// Whether `output` was cut.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        truncated: bool,
    },
    /// A finished message.
    #[serde(rename = "run.message")]
    RunMessage {
        /// The run.
        run: RunId,
        /// Its turn; 0 is the person's.
        turn: u32,
        /// `user` or `assistant`.
        role: &'static str,
        /// The text.
        text: String,
        /// The model's calls.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        calls: Vec<CallView>,
        /// Whether text or inputs were cut.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        truncated: bool,
    },
    /// A tool's call started or ended.
    #[serde(rename = "run.tool")]
    RunTool {
        /// The run.
        run: RunId,
        /// The turn.
        turn: u32,
        /// The call.
        call: String,
        /// The tool.
        tool: String,
        /// `started`, `done` or `failed`.
        state: &'static str,
        /// What the model reads.
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<String>,
        /// Whether the result was cut.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        truncated: bool,
    },
}

/// A call as screens see it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CallView {
    /// The provider's id.
    pub call: String,
    /// Where in the run.
    pub step: String,
    /// The tool.
    pub tool: String,
    /// Its input.
    pub input: Value,
}

/// An ask as callers see it (PROTOCOL 5).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AskView {
    /// The id.
    pub id: String,
    /// The run.
    pub run: RunId,
    /// The agent.
    pub agent: String,
    /// The step.
    pub step: String,
    /// The asking.
    pub repeat: u32,
    /// `question`, `ask_question`, `approval` or `redo`.
    pub kind: &'static str,
    /// The tool.
    pub tool: String,
    /// What the person is shown; `null` where the reader may not see it.
    pub input: Value,
    /// How many questions.
    pub questions: u32,
    /// Whether an approval may replace the input (ours).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub editable: bool,
    /// `open` or `settled`.
    pub state: &'static str,
    /// When it was opened.
    pub opened: String,
    /// Until when it may be answered.
    pub deadline: String,
    /// Saved partial answers.
    pub drafts: Map<String, Value>,
    /// How it ended.
    pub outcome: Option<Outcome>,
    /// Who ended it.
    pub by: Option<By>,
    /// When it ended.
    pub at: Option<String>,
    /// The answer.
    pub data: Option<Value>,
    /// The reason of a refusal (ours).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Whether drafts or the input were left out for their length: GET has them whole.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}

impl AskView {
    /// The ask with all that its starter may see.
    pub fn full(ask: &Ask) -> Self {
        let settled = ask.settled.as_ref();
        AskView {
            id: ask.id.clone(),
            run: ask.run.clone(),
            agent: ask.agent.clone(),
            step: ask.step.clone(),
            repeat: ask.repeat,
            kind: ask.kind.name(),
            tool: ask.tool.clone(),
            input: ask.input.clone(),
            questions: ask.questions,
            editable: ask.editable.is_some(),
            state: if settled.is_some() { "settled" } else { "open" },
            opened: ask.opened.rfc3339(),
            deadline: ask.deadline.rfc3339(),
            drafts: ask.drafts.clone(),
            outcome: settled.map(|settled| settled.outcome),
            by: settled.and_then(|settled| settled.by.clone()),
            at: settled.map(|settled| settled.at.rfc3339()),
            data: settled.and_then(|settled| settled.data.clone()),
            reason: settled.and_then(|settled| settled.reason.clone()),
            truncated: false,
        }
    }

    /// The ask as it goes into a frame: the same in `ask.opened` and in a snapshot. Where drafts
    /// or the input make it longer than a frame they are left out and it is marked.
    pub fn framed(ask: &Ask) -> Self {
        let mut view = AskView::full(ask);
        if encoded(&view) > MAX_FRAME - FRAME_ROOM {
            view.drafts = Map::new();
            view.truncated = true;
        }
        if encoded(&view) > MAX_FRAME - FRAME_ROOM {
            view.input = Value::Null;
        }
        view
    }

    /// The ask without question text and answers, for ops (SPEC 3.7).
    pub fn redacted(ask: &Ask) -> Self {
        AskView {
            input: Value::Null,
            drafts: Map::new(),
            data: None,
            reason: None,
            ..AskView::full(ask)
        }
    }
}

/// A live run in a snapshot (PROTOCOL 2).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LiveRun {
    /// The run.
    pub run: RunId,
    /// Its agent.
    pub agent: String,
    /// Its thread.
    pub thread: Option<String>,
    /// Where it is.
    pub status: &'static str,
    /// Its revision.
    pub rev: u64,
}

impl LiveRun {
    /// What a snapshot says of a run.
    pub fn of(run: &Run) -> Self {
        LiveRun {
            run: run.id.clone(),
            agent: run.agent.clone(),
            thread: run.thread.clone(),
            status: run.status.name(),
            rev: run.rev,
        }
    }
}

impl Frame {
    /// The person's message.
    pub fn user(run: &RunId, text: &str) -> Self {
        let (text, truncated) = cut(text, MAX_FRAME - FRAME_ROOM);
        Frame::RunMessage {
            run: run.clone(),
            turn: 0,
            role: "user",
            text,
            calls: Vec::new(),
            truncated,
        }
    }

    /// The model's message of a turn.
    pub fn assistant(run: &RunId, turn: u32, text: &str, calls: &[MessageCall]) -> Self {
        let mut truncated = false;
        let mut calls: Vec<CallView> = calls
            .iter()
            .map(|call| CallView {
                call: call.call.clone(),
                step: call.step.clone(),
                tool: call.tool.clone(),
                input: call.input.clone(),
            })
            .collect();
        let mut room = (MAX_FRAME - FRAME_ROOM).saturating_sub(encoded(&calls));
        if room < MAX_FRAME / 2 {
            // Inputs are whole by GET and, where a person is asked, in `ask.opened`.
            for call in &mut calls {
                call.input = Value::Null;
            }
            truncated = true;
            room = (MAX_FRAME - FRAME_ROOM).saturating_sub(encoded(&calls));
        }
        let (text, cut_text) = cut(text, room);
        Frame::RunMessage {
            run: run.clone(),
            turn,
            role: "assistant",
            text,
            calls,
            truncated: truncated || cut_text,
        }
    }

    /// An ask that was opened.
    pub fn opened(ask: &Ask) -> Self {
        Frame::AskOpened {
            ask: Box::new(AskView::framed(ask)),
        }
    }

    /// A saved partial answer.
    pub fn draft(ask: &Ask, n: u32, data: Value) -> Self {
        Frame::AskDraft {
            run: ask.run.clone(),
            step: ask.step.clone(),
            repeat: ask.repeat,
            n,
            data,
        }
    }

    /// An ask that has ended.
    pub fn settled(ask: &Ask) -> Self {
        let settlement = ask.settled.as_ref();
        let data = settlement.and_then(|settled| settled.data.clone());
        let truncated = data
            .as_ref()
            .is_some_and(|data| encoded(data) > MAX_FRAME - FRAME_ROOM);
        Frame::AskSettled {
            run: ask.run.clone(),
            step: ask.step.clone(),
            repeat: ask.repeat,
            outcome: settlement.map_or(Outcome::Cancelled, |settled| settled.outcome),
            by: settlement.and_then(|settled| settled.by.clone()),
            at: settlement.map_or_else(String::new, |settled| settled.at.rfc3339()),
            data: data.filter(|_| !truncated),
            cmd: settlement.and_then(|settled| settled.cmd.clone()),
            truncated,
        }
    }

    /// A run's status.
    pub fn status(run: &Run) -> Self {
        let output = run
            .output
            .as_deref()
            .map(|output| cut(output, MAX_FRAME - 2 * FRAME_ROOM));
        Frame::RunStatus {
            run: run.id.clone(),
            agent: run.agent.clone(),
            thread: run.thread.clone(),
            status: run.status.name(),
            rev: run.rev,
            reason: run.reason.clone(),
            truncated: output.as_ref().is_some_and(|(_, cut)| *cut),
            output: output.map(|(text, _)| text),
        }
    }

    /// A tool's call.
    pub fn tool(run: &RunId, entry: &JournalEntry) -> Self {
        let result = entry
            .result
            .as_deref()
            .map(|result| cut(result, MAX_FRAME - FRAME_ROOM));
        Frame::RunTool {
            run: run.clone(),
            turn: entry.turn,
            call: entry.call.clone(),
            tool: entry.tool.clone(),
            state: end_name(entry.state),
            truncated: result.as_ref().is_some_and(|(_, cut)| *cut),
            result: result.map(|(text, _)| text),
        }
    }

    /// The frame's `type`.
    pub fn name(&self) -> &'static str {
        match self {
            Frame::AskOpened { .. } => "ask.opened",
            Frame::AskDraft { .. } => "ask.draft",
            Frame::AskSettled { .. } => "ask.settled",
            Frame::RunStatus { .. } => "run.status",
            Frame::RunMessage { .. } => "run.message",
            Frame::RunTool { .. } => "run.tool",
        }
    }

    /// Its `type` on the wire.
    pub fn kind(&self) -> &'static str {
        match self {
            Frame::AskOpened { .. } => "ask.opened",
            Frame::AskDraft { .. } => "ask.draft",
            Frame::AskSettled { .. } => "ask.settled",
            Frame::RunStatus { .. } => "run.status",
            Frame::RunMessage { .. } => "run.message",
            Frame::RunTool { .. } => "run.tool",
        }
    }

    /// The frame as JSON text, without its `seq`.
    pub fn text(&self) -> String {
        // A record of text, numbers and JSON values always has a JSON text.
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// A frame's text with the `seq` that the store gave it.
pub fn with_seq(frame: &str, seq: u64) -> String {
    let rest = frame.strip_prefix('{').unwrap_or(frame);
    format!("{{\"seq\":{seq},{rest}")
}

/// A journal state as it stands on the wire.
pub fn end_name(end: CallEnd) -> &'static str {
    match end {
        CallEnd::Started => "started",
        CallEnd::Done => "done",
        CallEnd::Failed => "failed",
    }
}

fn encoded(value: &impl Serialize) -> usize {
    serde_json::to_string(value).map_or(usize::MAX, |text| text.len())
}

/// The longest start of `text` whose JSON takes at most `room` bytes, and whether it is cut.
fn cut(text: &str, room: usize) -> (String, bool) {
    // Most texts are short: one byte takes at most six in JSON (`\u0001`).
    if text.len() <= room / 6 {
        return (text.to_owned(), false);
    }
    let mut used = 2;
    for (at, char) in text.char_indices() {
        used += match char {
            '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
            char if char < ' ' => 6,
            char => char.len_utf8(),
        };
        if used > room {
            return (text[..at].to_owned(), true);
        }
    }
    (text.to_owned(), false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run_id() -> RunId {
        RunId::new(3, uuid::Uuid::nil())
    }

    #[test]
    fn seq_goes_first() {
        let frame = Frame::user(&run_id(), "hi");
        let text = with_seq(&frame.text(), 7);
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["seq"], 7);
        assert_eq!(value["type"], frame.kind());
        assert_eq!(value["type"], "run.message");
        assert_eq!(value["role"], "user");
    }

    #[test]
    fn an_ask_that_fits_no_frame_is_marked() {
        let ask = |input: usize, draft: usize| {
            let mut drafts = Map::new();
            drafts.insert("a".into(), Value::String("d".repeat(draft)));
            Ask {
                id: "ask_1".into(),
                run: run_id(),
                agent: "a".into(),
                turn: 1,
                call: 0,
                step: "t 1.1".into(),
                repeat: 1,
                kind: crate::ask::Kind::Approval,
                tool: "t".into(),
                input: Value::String("i".repeat(input)),
                questions: 1,
                editable: None,
                opened: crate::time::Millis(0),
                deadline: crate::time::Millis(1),
                drafts,
                settled: None,
            }
        };
        for (input, draft, kept_input, kept_drafts) in [
            (100, 100, true, true),
            (40_000, 40_000, true, false),
            (200_000, 100, false, false),
        ] {
            let view = AskView::framed(&ask(input, draft));
            assert_eq!(view.input != Value::Null, kept_input);
            assert_eq!(!view.drafts.is_empty(), kept_drafts);
            assert_eq!(view.truncated, !kept_drafts);
            assert!(Frame::opened(&ask(input, draft)).text().len() < MAX_FRAME);
        }
    }

    #[test]
    fn no_frame_is_longer_than_the_limit() {
        for filler in ["a", "\"", "\u{1}", "é", "\u{1F600}"] {
            let long = filler.repeat(70_000);
            let calls = vec![MessageCall {
                call: "c".into(),
                step: "t 1.1".into(),
                tool: "t".into(),
                input: Value::String(long.clone()),
            }];
            for frame in [
                Frame::user(&run_id(), &long),
                Frame::assistant(&run_id(), 1, &long, &calls),
            ] {
                let text = frame.text();
                assert!(text.len() < MAX_FRAME, "{filler}: {}", text.len());
                assert!(text.contains("\"truncated\":true"));
            }
        }
    }
}
