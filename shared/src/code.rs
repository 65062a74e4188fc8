//! The one table of codes (SPEC 4): what a caller is told, and with which HTTP status.
//!
//! The docs, the OpenAPI document and the clients' types are made from this table. A code is
//! never used again for anything else.

use serde::Serialize;

/// A stable code of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Code {
    /// No such run, step or ask, or not the caller's.
    T0001,
    /// The answer does not fit, or none was given; the ask still waits.
    T0002,
    /// The ask is settled already.
    T0003,
    /// This command id was used with another body.
    T0004,
    /// No such agent, or the caller may not start it.
    T0005,
    /// Malformed request or frame.
    T0006,
    /// Too large.
    T0007,
    /// Too many.
    T0008,
    /// Not signed in.
    T0009,
    /// The run is over, or is not failed (retry).
    T0010,
    /// The store cannot be reached.
    T0011,
    /// Overloaded or going away.
    T0012,
    /// A tool of the agent bears a reserved name.
    T1009,
    /// Backend code answered a run that a person started.
    T3101,
}

/// One row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodeRow {
    /// The code.
    pub code: Code,
    /// The code as it stands on the wire.
    pub name: &'static str,
    /// The HTTP status; 0 where the code never crosses HTTP.
    pub status: u16,
    /// Whether the same request may succeed later.
    pub temporary: bool,
    /// A title for problem details (RFC 9457).
    pub title: &'static str,
}

/// The table of SPEC 4, in its order.
pub const TABLE: [CodeRow; 14] = [
    row(Code::T0001, "T0001", 404, false, "No such run, step or ask"),
    row(Code::T0002, "T0002", 422, false, "The answer does not fit"),
    row(
        Code::T0003,
        "T0003",
        409,
        false,
        "The ask is settled already",
    ),
    row(
        Code::T0004,
        "T0004",
        409,
        false,
        "This command id was used with another body",
    ),
    row(Code::T0005, "T0005", 404, false, "No such agent"),
    row(Code::T0006, "T0006", 400, false, "Malformed request"),
    row(Code::T0007, "T0007", 413, false, "Too large"),
    row(Code::T0008, "T0008", 429, true, "Too many"),
    row(Code::T0009, "T0009", 401, false, "Not signed in"),
    row(
        Code::T0010,
        "T0010",
        409,
        false,
        "The run is over, or is not failed",
    ),
    row(
        Code::T0011,
        "T0011",
        503,
        true,
        "The store cannot be reached",
    ),
    row(Code::T0012, "T0012", 503, true, "Overloaded or going away"),
    row(
        Code::T1009,
        "T1009",
        0,
        false,
        "A tool bears a reserved name",
    ),
    row(
        Code::T3101,
        "T3101",
        403,
        false,
        "Backend code answered a run that a person started",
    ),
];

const fn row(
    code: Code,
    name: &'static str,
    status: u16,
    temporary: bool,
    title: &'static str,
) -> CodeRow {
    CodeRow {
        code,
        name,
        status,
        temporary,
        title,
    }
}

impl Code {
    /// This code's row of the table.
    pub fn row(self) -> &'static CodeRow {
        // The table is in the order of the enum; a test holds that.
        &TABLE[self as usize]
    }

    /// The code as it stands on the wire.
    pub fn name(self) -> &'static str {
        self.row().name
    }
}

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl Serialize for Code {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// One place of an answer that does not fit (SPEC 3.6). It never holds a part of the answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Misfit {
    /// The id of the question, for `ask_question`.
    pub question: Option<String>,
    /// JSON pointer (RFC 6901) into `data`; for a draft, into the one answer.
    pub pointer: String,
    /// The failed schema keyword, or `choices`, `required`, `blank`, `unknown`, `twice`, `size`.
    pub rule: String,
}

impl Misfit {
    /// A misfit at `pointer` by `rule`, of no question in particular.
    pub fn at(pointer: impl Into<String>, rule: impl Into<String>) -> Self {
        Misfit {
            question: None,
            pointer: pointer.into(),
            rule: rule.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_is_in_the_order_of_the_enum() {
        for row in &TABLE {
            assert_eq!(row.code.row(), row);
            assert_eq!(format!("{:?}", row.code), row.name);
        }
    }
}
