//! How long a store keeps what is no longer needed, and how it spaces repeated hints.

use std::time::Duration;

const HOUR: u64 = 60 * 60;
const DAY: u64 = 24 * HOUR;

/// How long a run that succeeded or was cancelled is kept (SPEC 5).
pub const ENDED_KEPT: Duration = Duration::from_secs(7 * DAY);

/// How long a failed run is kept, so that it can be retried (SPEC 5).
pub const FAILED_KEPT: Duration = Duration::from_secs(30 * DAY);

/// How long a thread is kept after its last run's end (SPEC 2).
pub const THREAD_KEPT: Duration = Duration::from_secs(7 * DAY);

/// How long a command is kept that settled no ask (PROTOCOL 3).
pub const COMMAND_KEPT: Duration = Duration::from_secs(48 * HOUR);

/// How long an agent is kept after it was last seen (SPEC 2).
pub const AGENT_KEPT: Duration = Duration::from_secs(30 * DAY);

/// How many frames of an owner's log are kept (DESIGN 4).
pub const FRAMES_KEPT: u64 = 1_000;

/// How long a ready run whose hint was not taken waits at most for the next (DESIGN 5).
pub const HINT_AGAIN: Duration = Duration::from_secs(2);

/// How long a ready run waits for its next hint after `pushes` hints since it last changed
/// (DESIGN 5): 5 s, 30 s, then twice as long each time, at most 5 min.
pub fn push_wait(pushes: u32) -> Duration {
    let seconds = match pushes {
        0 => 5,
        // Four doublings of 30 s pass the limit already.
        more => (30 << (more - 1).min(4)).min(300),
    };
    Duration::from_secs(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_are_repeated_ever_less_often() {
        let waits: Vec<u64> = (0..8).map(|pushes| push_wait(pushes).as_secs()).collect();
        assert_eq!(waits, [5, 30, 60, 120, 240, 300, 300, 300]);
        assert_eq!(push_wait(u32::MAX).as_secs(), 300);
    }
}
