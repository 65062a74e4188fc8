//! Who speaks, who started a run, and what follows from the two: the caller table of SPEC 3.6
//! and the reading rules of SPEC 3.7 as pure functions.
//!
//! Every function takes the starter as an `Option`: a run that does not exist and a run of
//! somebody else go the same way, so that no caller can tell one from the other.

use serde::{Deserialize, Serialize};

use crate::code::Code;

/// The role of backend code.
pub const SYSTEM_ROLE: &str = "system";
/// The role that sees all runs redacted, and may cancel and retry them.
pub const OPS_ROLE: &str = "ops";
/// The role that sees all runs whole.
pub const OPS_CONTENT_ROLE: &str = "ops:content";

/// Who speaks now, as their token says (SPEC 8).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The token's subject: a person's name, or a backend's.
    pub sub: String,
    /// Whether this is backend code. A person and a system of one name are different callers.
    pub system: bool,
    /// The token's roles.
    pub roles: Vec<String>,
}

/// Who started a run; stored with it and never changed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Starter {
    /// The subject of the token that started the run.
    pub sub: String,
    /// Whether backend code started it.
    pub system: bool,
}

/// How much of a run a reader sees (SPEC 3.7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    /// Everything.
    Full,
    /// Question text and answers are left out.
    Redacted,
}

impl Caller {
    /// The caller of a checked token (SPEC 8): `system` makes it backend code, everything else is
    /// a person. Backend code with a role of ops is refused with T0009, because the two see
    /// different things and neither could be told from the token.
    pub fn of_token(sub: impl Into<String>, roles: Vec<String>) -> Result<Self, Code> {
        let has = |role: &str| roles.iter().any(|held| held == role);
        let system = has(SYSTEM_ROLE);
        if system && (has(OPS_ROLE) || has(OPS_CONTENT_ROLE)) {
            return Err(Code::T0009);
        }
        Ok(Caller {
            sub: sub.into(),
            system,
            roles,
        })
    }

    /// This caller as the starter of a run.
    pub fn as_starter(&self) -> Starter {
        Starter {
            sub: self.sub.clone(),
            system: self.system,
        }
    }

    /// Whether the token bears `role`.
    pub fn has_role(&self, role: &str) -> bool {
        self.roles.iter().any(|held| held == role)
    }

    /// Whether the caller is a person of ops. `ops:content` includes `ops`.
    pub fn is_ops(&self) -> bool {
        !self.system && (self.has_role(OPS_ROLE) || self.has_role(OPS_CONTENT_ROLE))
    }

    fn started(&self, starter: &Starter) -> bool {
        self.system == starter.system && self.sub == starter.sub
    }
}

/// Whether `caller` may approve or refuse an ask of a run of `starter`; `None` where there is no
/// such run (SPEC 3.6). Ops may not: an answer is the starter's alone.
pub fn may_settle(caller: &Caller, starter: Option<&Starter>) -> Result<(), Code> {
    match starter {
        Some(starter) if caller.started(starter) => Ok(()),
        Some(starter) if caller.system && !starter.system => Err(Code::T3101),
        _ => Err(Code::T0001),
    }
}

/// Whether `caller` may cancel or retry a run of `starter`; `None` where there is no such run
/// (SPEC 3.6).
pub fn may_change(caller: &Caller, starter: Option<&Starter>) -> Result<(), Code> {
    match starter {
        Some(starter) if caller.started(starter) || caller.is_ops() => Ok(()),
        _ => Err(Code::T0001),
    }
}

/// How much `caller` may read of a run of `starter`; `None` where there is no such run
/// (SPEC 3.7). Ops see their own runs whole, like any person.
pub fn may_read(caller: &Caller, starter: Option<&Starter>) -> Result<View, Code> {
    match starter {
        Some(starter) if caller.started(starter) => Ok(View::Full),
        Some(_) if caller.is_ops() && caller.has_role(OPS_CONTENT_ROLE) => Ok(View::Full),
        Some(_) if caller.is_ops() => Ok(View::Redacted),
        _ => Err(Code::T0001),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn person(sub: &str, roles: &[&str]) -> Caller {
        let roles = roles.iter().map(ToString::to_string).collect();
        Caller::of_token(sub, roles).unwrap()
    }

    fn system(sub: &str) -> Caller {
        person(sub, &["system"])
    }

    fn by_person(sub: &str) -> Starter {
        person(sub, &[]).as_starter()
    }

    fn by_system(sub: &str) -> Starter {
        system(sub).as_starter()
    }

    type Row = (
        &'static str,
        Caller,
        Option<Starter>,
        Result<(), Code>,
        Result<(), Code>,
        Result<View, Code>,
    );

    /// The table of SPEC 3.6 with 3.7: caller, run started by, settle, cancel or retry, read.
    #[rustfmt::skip]
    fn table() -> Vec<Row> {
        use Code::{T0001, T3101};
        let ops = || person("olga", &["ops"]);
        let content = || person("olga", &["ops:content"]);
        vec![
            ("a person, their own", person("ann", &[]), Some(by_person("ann")), Ok(()), Ok(()), Ok(View::Full)),
            ("a person, another's", person("bob", &[]), Some(by_person("ann")), Err(T0001), Err(T0001), Err(T0001)),
            ("a person, no such run", person("bob", &[]), None, Err(T0001), Err(T0001), Err(T0001)),
            ("a person, a system's", person("bob", &[]), Some(by_system("shop")), Err(T0001), Err(T0001), Err(T0001)),
            ("a person, the system of their name", person("ann", &[]), Some(by_system("ann")), Err(T0001), Err(T0001), Err(T0001)),
            ("a person with a role of their own", person("bob", &["staff"]), Some(by_person("ann")), Err(T0001), Err(T0001), Err(T0001)),
            ("ops, another's", ops(), Some(by_person("ann")), Err(T0001), Ok(()), Ok(View::Redacted)),
            ("ops, their own", ops(), Some(by_person("olga")), Ok(()), Ok(()), Ok(View::Full)),
            ("ops, a system's", ops(), Some(by_system("shop")), Err(T0001), Ok(()), Ok(View::Redacted)),
            ("ops, no such run", ops(), None, Err(T0001), Err(T0001), Err(T0001)),
            ("ops:content, another's", content(), Some(by_person("ann")), Err(T0001), Ok(()), Ok(View::Full)),
            ("ops:content, a system's", content(), Some(by_system("shop")), Err(T0001), Ok(()), Ok(View::Full)),
            ("ops:content, no such run", content(), None, Err(T0001), Err(T0001), Err(T0001)),
            ("system, a person's", system("shop"), Some(by_person("ann")), Err(T3101), Err(T0001), Err(T0001)),
            ("system, the person of its name", system("ann"), Some(by_person("ann")), Err(T3101), Err(T0001), Err(T0001)),
            ("system a, system a's", system("shop"), Some(by_system("shop")), Ok(()), Ok(()), Ok(View::Full)),
            ("system a, system b's", system("shop"), Some(by_system("bank")), Err(T0001), Err(T0001), Err(T0001)),
            ("system, no such run", system("shop"), None, Err(T0001), Err(T0001), Err(T0001)),
        ]
    }

    #[test]
    fn every_row_of_the_table_holds() {
        for (row, caller, starter, settle, change, read) in table() {
            let starter = starter.as_ref();
            assert_eq!(may_settle(&caller, starter), settle, "settle: {row}");
            assert_eq!(may_change(&caller, starter), change, "change: {row}");
            assert_eq!(may_read(&caller, starter), read, "read: {row}");
        }
    }

    #[test]
    fn a_system_with_a_role_of_ops_is_not_signed_in() {
        for role in [OPS_ROLE, OPS_CONTENT_ROLE] {
            let roles = vec![SYSTEM_ROLE.to_owned(), role.to_owned()];
            assert_eq!(Caller::of_token("shop", roles), Err(Code::T0009));
        }
    }

    #[test]
    fn subjects_are_compared_as_they_are() {
        for other in ["Ann", "ann ", " ann", "ann\0"] {
            let starter = by_person("ann");
            let result = may_settle(&person(other, &[]), Some(&starter));
            assert_eq!(result, Err(Code::T0001), "{other:?}");
        }
    }
}
