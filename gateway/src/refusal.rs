//! What a caller is told instead of a result: one type for HTTP and sockets (SPEC 4).

use askwell_shared::ask::{By, Outcome, Settlement};
use askwell_shared::code::{Code, Misfit};
use serde::Serialize;
use serde_json::{Map, Value};

/// A final or temporary no. Its detail is ours and fixed per rule: it never holds a part of an
/// answer, and none tells a run that is another's from one that is not there.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    /// Which no.
    pub code: Code,
    /// One sentence for people.
    pub detail: String,
    /// How long to wait before the same request is sent again, in milliseconds.
    pub retry_ms: Option<u64>,
    /// Where the answer does not fit (T0002).
    pub errors: Vec<Misfit>,
    /// How the ask ended (T0003).
    pub settled: Option<Box<Settled>>,
}

/// How an ask ended, as the caller who came too late is told.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Settled {
    /// How.
    pub outcome: Outcome,
    /// Who ended it.
    pub by: Option<By>,
    /// When, RFC 3339.
    pub at: String,
}

impl Refusal {
    /// A refusal with a detail.
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        Refusal {
            code,
            detail: detail.into(),
            retry_ms: None,
            errors: Vec::new(),
            settled: None,
        }
    }

    /// T0001. One text for a run that is not there and one that is another's.
    pub fn not_found() -> Self {
        Refusal::new(
            Code::T0001,
            "There is no such run, step or ask, or it is not yours.",
        )
    }

    /// T0002 with the places that do not fit.
    pub fn misfit(errors: Vec<Misfit>) -> Self {
        let mut places: Vec<String> = errors
            .iter()
            .take(3)
            .map(|misfit| {
                let place = if misfit.pointer.is_empty() {
                    "the answer"
                } else {
                    &misfit.pointer
                };
                match &misfit.question {
                    Some(question) => format!("{place} ({question}): {}", misfit.rule),
                    None => format!("{place}: {}", misfit.rule),
                }
            })
            .collect();
        if errors.len() > places.len() {
            places.push(format!("and {} more", errors.len() - places.len()));
        }
        let places = places.join("; ");
        Refusal {
            errors,
            ..Refusal::new(
                Code::T0002,
                format!("The answer does not fit ({places}). The ask still waits."),
            )
        }
    }

    /// T0003 with how the ask ended.
    pub fn settled(settlement: &Settlement) -> Self {
        Refusal {
            settled: Some(Box::new(Settled {
                outcome: settlement.outcome,
                by: settlement.by.clone(),
                at: settlement.at.rfc3339(),
            })),
            ..Refusal::new(Code::T0003, "The ask is settled already.")
        }
    }

    /// T0004.
    pub fn other_body() -> Self {
        Refusal::new(
            Code::T0004,
            "This command id was used before, with another body.",
        )
    }

    /// T0005. One text for an agent that is not there and one that the caller may not start.
    pub fn no_agent() -> Self {
        Refusal::new(
            Code::T0005,
            "There is no such agent, or you may not start it.",
        )
    }

    /// T0006: names the place and the rule, never the value.
    pub fn malformed(detail: impl Into<String>) -> Self {
        Refusal::new(Code::T0006, detail)
    }

    /// T0009. Why a token is none is for nobody to read who cannot sign one.
    pub fn not_signed_in() -> Self {
        Refusal::new(Code::T0009, "A valid token is needed.")
    }

    /// T0011: the same command may be sent again.
    pub fn store_away() -> Self {
        Refusal {
            retry_ms: Some(1000),
            ..Refusal::new(
                Code::T0011,
                "The store cannot be reached now. Send the same command again.",
            )
        }
    }

    /// The store has no room for new runs; those that are there go on (SPEC 8).
    pub fn full() -> Self {
        Refusal {
            retry_ms: Some(5_000),
            ..Refusal::new(
                Code::T0012,
                "No new run can be started now: the store is nearly full.",
            )
        }
    }

    /// The refusal of a code that says all itself.
    pub fn of(code: Code) -> Self {
        match code {
            Code::T0001 => Refusal::not_found(),
            Code::T0005 => Refusal::no_agent(),
            Code::T0009 => Refusal::not_signed_in(),
            Code::T0011 => Refusal::store_away(),
            code => Refusal::new(code, format!("{}.", code.row().title)),
        }
    }

    /// Adds what problem details and `error` frames share (SPEC 4).
    pub fn write_to(&self, map: &mut Map<String, Value>) {
        map.insert("code".into(), self.code.name().into());
        map.insert("detail".into(), self.detail.as_str().into());
        map.insert("temporary".into(), self.code.row().temporary.into());
        if let Some(retry) = self.retry_ms {
            map.insert("retryMs".into(), retry.into());
        }
        if !self.errors.is_empty() {
            map.insert("errors".into(), to_value(&self.errors));
        }
        if let Some(settled) = &self.settled {
            map.insert("settled".into(), to_value(settled));
        }
    }
}

/// A record of ours as JSON. Records of text, numbers and JSON values always have one.
pub(crate) fn to_value(record: &impl Serialize) -> Value {
    serde_json::to_value(record).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use askwell_shared::time::Millis;

    fn written(refusal: &Refusal) -> Value {
        let mut map = Map::new();
        refusal.write_to(&mut map);
        Value::Object(map)
    }

    #[test]
    fn a_misfit_names_places_and_rules() {
        let errors = vec![
            Misfit::at("", "choices"),
            Misfit {
                question: Some("size".into()),
                ..Misfit::at("/answers/0/answer", "blank")
            },
        ];
        let refusal = written(&Refusal::misfit(errors));
        let detail = refusal["detail"].as_str().unwrap();
        assert!(detail.contains("the answer: choices; /answers/0/answer (size): blank"));
        assert_eq!(refusal["errors"][1]["rule"], "blank");
        assert_eq!(refusal["temporary"], false);
    }

    #[test]
    fn the_loser_hears_how_it_ended() {
        let refusal = written(&Refusal::settled(&Settlement {
            outcome: Outcome::Expired,
            by: None,
            at: Millis(0),
            data: Some("secret".into()),
            reason: None,
            cmd: None,
        }));
        let settled = &refusal["settled"];
        assert_eq!(settled["outcome"], "expired");
        assert_eq!(settled["by"], Value::Null);
        assert_eq!(settled["at"], "1970-01-01T00:00:00.000Z");
        assert!(!refusal.to_string().contains("secret"));
    }
}
