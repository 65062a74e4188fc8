//! What must hold in every world (SPEC 5), each by a name that a planted mistake can be held to.

use std::fmt;

/// What must hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Invariant {
    /// An ask settles once, and what is settled never changes.
    SettledOnce,
    /// An ended run never changes, but for the retry of a failed one.
    EndedStays,
    /// Who does not hold the run saves nothing.
    OldFence,
    /// Every turn is saved once, with the result of one model call.
    TurnOnce,
    /// An accepted answer is used, and no other.
    AnswerUsed,
    /// An answer that was turned away is never used.
    TurnedAway,
    /// Every call has exactly one result, before the next model call, and keeps it.
    OneResult,
    /// One head a thread, and only the head is ready or running.
    OneHead,
    /// The indexes say what the state says.
    Indexes,
    /// A lease is taken away only when it is over.
    LeaseHolds,
    /// A finished call is not made again, and one of unknown outcome only with leave.
    CallOnce,
    /// The same op of a worker gets the same answer.
    SameOp,
    /// The same command gets the same reply.
    SameReply,
    /// Where nothing more happens, every run has ended.
    NoDeadEnd,
}

/// An invariant that does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Broken {
    /// Which.
    pub(crate) invariant: Invariant,
    /// How it shows.
    pub(crate) detail: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.invariant, self.detail)
    }
}

/// Breaks `invariant` unless `holds`.
pub(crate) fn must(
    holds: bool,
    invariant: Invariant,
    detail: impl FnOnce() -> String,
) -> Result<(), Broken> {
    if holds {
        return Ok(());
    }
    Err(Broken {
        invariant,
        detail: detail(),
    })
}
