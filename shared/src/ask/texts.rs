//! The words that a model reads in place of a tool's result (SPEC 2, 3.3, 3.6 and 4).
//!
//! They are fixed: models, tests and other people's dashboards compare them by letter.

/// What is read for a refused ask, and for one that nobody answered in time (SPEC 3.6).
pub const REFUSED: &str = "The person refused this.";

/// What is read for an expired ask where the agent has `tellExpiry` (SPEC 3.6).
pub const EXPIRED: &str = "Nobody answered in time.";

/// What is read for a tool call of unknown outcome that is not made again (SPEC 3.3).
pub const UNKNOWN_OUTCOME: &str = "It is not known whether this was done; it was not done again.";

/// What is read for a question beyond `limits.asks` (SPEC 2).
pub const NO_MORE_QUESTIONS: &str = "No more questions may be asked in this run.";

/// What is read for a refused approval (SPEC 3.3). A blank reason counts as none.
pub fn refused_with(reason: Option<&str>) -> String {
    match reason.filter(|reason| !super::reading::is_blank(reason)) {
        Some(reason) => format!("{REFUSED} Reason: {reason}"),
        None => REFUSED.to_owned(),
    }
}

/// What is read for a question that an out guard refused (SPEC 2 and 4).
pub fn guard_refused(reason: &str) -> String {
    format!("A guard refused this question: {reason}")
}

/// What is read for a call whose tool the worker does not have any more (SPEC 2 and 4).
pub fn tool_gone(tool: &str) -> String {
    format!("There is no tool named {tool} any more.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_follows_the_refusal() {
        assert_eq!(
            refused_with(Some("too dear")),
            "The person refused this. Reason: too dear"
        );
        assert_eq!(refused_with(None), REFUSED);
        assert_eq!(refused_with(Some(" \u{200b}")), REFUSED);
    }

    #[test]
    fn names_and_reasons_stand_in_their_sentence() {
        assert_eq!(
            guard_refused("never ask for a password"),
            "A guard refused this question: never ask for a password"
        );
        assert_eq!(
            tool_gone("refund"),
            "There is no tool named refund any more."
        );
    }
}
