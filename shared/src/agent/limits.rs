//! What a run of an agent may use (SPEC 2).

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::rule::{Broken, milliseconds};

/// How long an ask may wait at most: beyond it a deadline is no time that can be written down.
pub const LONGEST_WAIT: Duration = Duration::from_hours(24 * 36_500);

/// What a run may use (SPEC 2). Time spent waiting for a person counts against `ask` alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    /// Turns of a run.
    pub steps: Option<u32>,
    /// Tokens that the model may write in a run.
    pub tokens_out: Option<u64>,
    /// Tokens that the model may read in a run.
    pub tokens_in: Option<u64>,
    /// Asks of a run; redo and repeats do not count. With 0 nobody is ever asked.
    pub asks: u32,
    /// How long an ask waits; in milliseconds on the wire.
    #[serde(rename = "askMs", with = "milliseconds")]
    pub ask: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            steps: None,
            tokens_out: None,
            tokens_in: None,
            asks: 20,
            ask: Duration::from_hours(24),
        }
    }
}

impl Limits {
    /// Checks every limit; places are those of the agents file.
    pub fn check(&self) -> Result<(), Broken> {
        let positive = "must be greater than 0";
        if self.steps == Some(0) {
            return Err(Broken::at("steps", positive));
        }
        if self.tokens_out == Some(0) {
            return Err(Broken::at("perRun.tokensOut", positive));
        }
        if self.tokens_in == Some(0) {
            return Err(Broken::at("perRun.tokensIn", positive));
        }
        // Deadlines are milliseconds, so a shorter wait would round to none.
        if self.ask.as_millis() == 0 {
            return Err(Broken::at("ask", positive));
        }
        if self.ask > LONGEST_WAIT {
            return Err(Broken::at("ask", "must be at most 36500d"));
        }
        Ok(())
    }
}
