//! Where a socket is in its owner's log: which frames it gets, and when it must read the log or
//! the state (PROTOCOL 1, 4.1, 4.2). Pure.

use askwell_shared::ports::Events;

/// A replay is at most so long; beyond it the state is shorter.
pub(super) const MOST_REPLAYED: u64 = 1000;

/// Where a client says that it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Resume {
    /// The life of the store whose frames it has.
    pub(super) epoch: String,
    /// The last frame it applied.
    pub(super) seq: u64,
}

/// What a frame is to a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meets {
    /// The next one.
    Next,
    /// It has it already.
    Old,
    /// Others are missing before it.
    Gap,
}

/// How a frame with `seq` stands to the last one sent.
pub(super) fn meets(last: u64, seq: u64) -> Meets {
    if seq <= last {
        Meets::Old
    } else if seq == last + 1 {
        Meets::Next
    } else {
        Meets::Gap
    }
}

/// Why a client that was there before gets the state; `None`: the frames after `resume` are
/// there, all of them. `events` are those after `resume.seq`.
pub(super) fn why_snapshot(resume: &Resume, events: &Events) -> Option<&'static str> {
    if resume.epoch == events.epoch {
        hole(resume.seq, events)
    } else {
        Some("epoch")
    }
}

/// Why the log does not lead on from `seq`.
pub(super) fn hole(seq: u64, events: &Events) -> Option<&'static str> {
    if seq > events.head {
        Some("ahead")
    } else if events.trimmed {
        Some("trimmed")
    } else if events.head - seq > MOST_REPLAYED {
        Some("tooMany")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn frames_are_sent_once_and_in_order() {
        assert_eq!(meets(0, 1), Meets::Next);
        assert_eq!(meets(4, 4), Meets::Old);
        assert_eq!(meets(4, 3), Meets::Old);
        assert_eq!(meets(4, 5), Meets::Next);
        assert_eq!(meets(4, 6), Meets::Gap);
    }

    #[test]
    fn a_replay_is_whole_or_none() {
        let at = |epoch: &str, seq| Resume {
            epoch: epoch.into(),
            seq,
        };
        let events = |head, trimmed| Events {
            epoch: "e".into(),
            head,
            frames: vec![(head, Arc::from("{}"))],
            trimmed,
        };
        for (resume, head, trimmed, why) in [
            (at("e", 4), 7, false, None),
            (at("e", 7), 7, false, None),
            (at("e", 0), 0, false, None),
            (at("old", 4), 7, false, Some("epoch")),
            (at("old", 9), 7, true, Some("epoch")),
            (at("e", 8), 7, false, Some("ahead")),
            (at("e", 4), 7, true, Some("trimmed")),
            (at("e", 4), 1004, false, None),
            (at("e", 4), 1005, false, Some("tooMany")),
        ] {
            let found = why_snapshot(&resume, &events(head, trimmed));
            assert_eq!(found, why, "{resume:?} at {head}");
        }
    }
}
