//! A wait for a person: its record, its kinds, and what an answer must meet (SPEC 3).
//!
//! - [`question`] and [`ask_question`]: the two question tools, their input and their answers.
//! - [`approval`]: what may be sent along with an approval.
//! - [`input`]: a tool's input against its schema.
//! - [`texts`]: the words that a model reads in place of a result.

pub mod approval;
pub mod ask_question;
pub mod input;
pub mod question;
mod reading;
pub mod texts;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::code::Misfit;
use crate::id::RunId;
use crate::json;
use crate::time::Millis;

/// A tool as a model is offered it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolOffer {
    /// The tool's name.
    pub name: String,
    /// What it is for, for the model.
    pub description: String,
    /// JSON Schema of its input.
    pub parameters: Value,
}

/// The most bytes of JSON that the drafts of one ask may have together (ours): they are shown on
/// every device with the ask.
const MOST_DRAFTS: usize = 64 * 1024;

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// One question (SPEC 3.1).
    Question,
    /// Several questions with choices (SPEC 3.2).
    AskQuestion,
    /// Leave to call a tool (SPEC 3.3).
    Approval,
    /// Leave to call a tool again whose outcome is not known (SPEC 3.3, 5).
    Redo,
}

impl Kind {
    /// The kind as it stands on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Question => "question",
            Kind::AskQuestion => "ask_question",
            Kind::Approval => "approval",
            Kind::Redo => "redo",
        }
    }
}

/// How an ask ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// An answer that fits was accepted.
    Answered,
    /// The person refused.
    Refused,
    /// The deadline passed.
    Expired,
    /// The run ended first.
    Cancelled,
    /// A newer run of the thread took its place.
    Superseded,
}

/// Who settled an ask.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct By {
    /// The `sub` of the token.
    pub sub: String,
    /// The device as the client named it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub device: Option<String>,
}

/// The end of an ask.
#[derive(Debug, Clone, PartialEq, Hash, Serialize, Deserialize)]
pub struct Settlement {
    /// How it ended.
    pub outcome: Outcome,
    /// Who ended it; `None` where nobody did (expired, cancelled, superseded).
    pub by: Option<By>,
    /// When, by the store's clock.
    pub at: Millis,
    /// The answer as the model reads it; `None` where there is none.
    ///
    /// Kept apart from an answer of `null`, which is `Some(Value::Null)`.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "present")]
    pub data: Option<Value>,
    /// The reason given with a refusal. Recorded; only an approval's reaches the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The command that settled it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cmd: Option<String>,
}

/// An ask, open or settled.
#[derive(Debug, Clone, PartialEq, Hash, Serialize, Deserialize)]
pub struct Ask {
    /// Random id.
    pub id: String,
    /// The run that waits.
    pub run: RunId,
    /// The agent of the run.
    pub agent: String,
    /// The turn that asked, from 1.
    pub turn: u32,
    /// The call of that turn that waits, by its number there, from 0.
    pub call: usize,
    /// Where in the run, as `question 1.1`.
    pub step: String,
    /// Which asking at that step, 1 the first.
    pub repeat: u32,
    /// What is asked for.
    pub kind: Kind,
    /// The tool that asks.
    pub tool: String,
    /// What the person is shown.
    pub input: Value,
    /// How many questions there are.
    pub questions: u32,
    /// For an approval of an editable tool: the schema that an edited input must meet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub editable: Option<Value>,
    /// When it was opened.
    pub opened: Millis,
    /// Until when it may be answered; an answer at that time or later is late.
    pub deadline: Millis,
    /// Saved partial answers, by question id.
    #[serde(default)]
    pub drafts: Map<String, Value>,
    /// How it ended; `None` while it is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled: Option<Settlement>,
}

/// What an answer that fits does to an ask.
#[derive(Debug, Clone, PartialEq)]
pub enum Fitted {
    /// It settles the ask with this data (`None`: an approval as it stands).
    Settles(Option<Value>),
    /// It is one of several answers, saved under the question's id.
    Draft {
        /// The number of the question, from 1.
        n: u32,
        /// The id of the question.
        question: String,
        /// The answer, filled in.
        answer: Value,
    },
}

impl Ask {
    /// Whether this ask still waits.
    pub fn is_open(&self) -> bool {
        self.settled.is_none()
    }

    /// Holds an answer against the rules of this ask's kind. The reply never echoes the answer.
    pub fn fit(&self, n: Option<u32>, data: Option<&Value>) -> Result<Fitted, Vec<Misfit>> {
        if self.kind != Kind::AskQuestion && n.is_some_and(|n| n != 1) {
            return Err(vec![Misfit::at("", "unknown")]);
        }
        match (self.kind, n) {
            (Kind::Question, _) => {
                question::fit(&self.input, data).map(|data| Fitted::Settles(Some(data)))
            }
            (Kind::AskQuestion, None) => {
                ask_question::fit(&self.input, data).map(|data| Fitted::Settles(Some(data)))
            }
            (Kind::AskQuestion, Some(n)) => self.fit_draft(n, data),
            (Kind::Approval, _) => {
                approval::fit(self.editable.is_some(), self.editable.as_ref(), data)
                    .map(Fitted::Settles)
            }
            (Kind::Redo, _) => approval::fit(false, None, data).map(Fitted::Settles),
        }
    }

    fn fit_draft(&self, n: u32, data: Option<&Value>) -> Result<Fitted, Vec<Misfit>> {
        let (question, answer) = ask_question::fit_one(&self.input, n, data)?;
        let mut drafts = self.drafts.clone();
        drafts.insert(question.clone(), answer.clone());
        let bytes = serde_json::to_string(&drafts).map_or(usize::MAX, |text| text.len());
        if bytes > MOST_DRAFTS {
            return Err(vec![Misfit::at("", "size")]);
        }
        Ok(match ask_question::gather(&self.input, &drafts) {
            Some(whole) => Fitted::Settles(Some(whole)),
            None => Fitted::Draft {
                n,
                question,
                answer,
            },
        })
    }

    /// What the tool answers the model once this ask ended so; `None` where the call goes on
    /// (an approval or redo that was granted) or the run is over.
    pub fn tells(&self, settlement: &Settlement, tell_expiry: bool) -> Option<String> {
        match (settlement.outcome, self.kind) {
            (Outcome::Answered, Kind::Question | Kind::AskQuestion) => {
                Some(settlement.data.as_ref().map(json::text).unwrap_or_default())
            }
            (Outcome::Refused | Outcome::Expired, Kind::Redo) => {
                Some(texts::UNKNOWN_OUTCOME.to_owned())
            }
            (Outcome::Refused, Kind::Approval) => {
                Some(texts::refused_with(settlement.reason.as_deref()))
            }
            (Outcome::Expired, _) if tell_expiry => Some(texts::EXPIRED.to_owned()),
            (Outcome::Refused | Outcome::Expired, _) => Some(texts::REFUSED.to_owned()),
            (Outcome::Answered, Kind::Approval | Kind::Redo)
            | (Outcome::Cancelled | Outcome::Superseded, _) => None,
        }
    }
}

/// Keeps an answer of `null` apart from no answer at all.
mod present {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use serde_json::Value;

    #[expect(clippy::ref_option, reason = "the signature is serde's")]
    pub(super) fn serialize<S: Serializer>(
        data: &Option<Value>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        data.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Value>, D::Error> {
        Value::deserialize(deserializer).map(Some)
    }
}
