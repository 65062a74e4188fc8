//! Points in time as the store tells them. Nothing in this crate's pure part reads a clock.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Milliseconds since 1970-01-01 UTC, by the store's clock: the only clock that decides.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Millis(pub i64);

impl Millis {
    /// This point plus `wait`; stops at the end of time rather than wrapping around.
    #[must_use]
    pub fn after(self, wait: Duration) -> Millis {
        let wait = i64::try_from(wait.as_millis()).unwrap_or(i64::MAX);
        Millis(self.0.saturating_add(wait))
    }

    /// The time from `earlier` to this point; zero where `earlier` is later.
    pub fn since(self, earlier: Millis) -> Duration {
        let passed = self.0.saturating_sub(earlier.0).max(0);
        Duration::from_millis(u64::try_from(passed).unwrap_or(0))
    }

    /// RFC 3339 in UTC with milliseconds, as every time on the wire.
    pub fn rfc3339(self) -> String {
        // A time that no calendar holds can only be a deadline "for ever": the last one it holds.
        let stamp = jiff::Timestamp::from_millisecond(self.0).unwrap_or(jiff::Timestamp::MAX);
        format!("{stamp:.3}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wire_times_have_milliseconds() {
        assert_eq!(Millis(0).rfc3339(), "1970-01-01T00:00:00.000Z");
        assert_eq!(
            Millis(1_796_073_599_007).rfc3339(),
            "2026-11-30T21:19:59.007Z"
        );
    }

    #[test]
    fn waits_of_months_do_not_wrap() {
        let month = Duration::from_millis(4_294_967_296);
        assert_eq!(Millis(5).after(month), Millis(4_294_967_301));
        assert_eq!(Millis(5).after(Duration::MAX), Millis(i64::MAX));
    }
}
