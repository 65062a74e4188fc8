//! What is checked before anyone sees an ask (SPEC 2).

use serde::Serialize;

use super::rule::Broken;

/// What every ask of an agent must pass before anyone sees it (SPEC 2).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum GuardSpec {
    /// Refuses what the pattern matches.
    Pattern {
        /// A regular expression of the crate `regex`.
        pattern: String,
        /// What the model is told.
        reason: String,
    },
}

impl GuardSpec {
    /// Checks the guard; places are those of the agents file.
    pub fn check(&self) -> Result<(), Broken> {
        match self {
            GuardSpec::Pattern { pattern, reason } => {
                if let Err(fault) = regex::Regex::new(pattern) {
                    let rule = format!("must be a regular expression: {}", last_line(&fault));
                    return Err(Broken::at("pattern", rule));
                }
                if reason.trim().is_empty() {
                    return Err(Broken::at("reason", "must not be blank"));
                }
                Ok(())
            }
        }
    }
}

/// The crate `regex` draws the pattern first and says what is wrong in the last line.
fn last_line(fault: &regex::Error) -> String {
    let text = fault.to_string();
    let line = text.lines().last().unwrap_or_default();
    line.trim_start_matches("error: ").to_owned()
}
