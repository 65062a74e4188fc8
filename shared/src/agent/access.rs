//! Who may start an agent (SPEC 2).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::caller::{Caller, SYSTEM_ROLE};

/// One entry of an agent's `access`; in files and on the wire `signedIn`, `role:<name>` or
/// `system`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Access {
    /// Any person.
    SignedIn,
    /// A person with this role.
    Role(String),
    /// Backend code, which starts nothing else.
    System,
}

/// Whether `caller` may start an agent with this `access`. Who may not is told T0005, as if the
/// agent did not exist.
pub fn may_start(access: &[Access], caller: &Caller) -> bool {
    access.iter().any(|entry| match entry {
        Access::SignedIn => !caller.system,
        // A role in a system's token opens nothing: backends start only what is theirs.
        Access::Role(role) => !caller.system && caller.has_role(role),
        Access::System => caller.system,
    })
}

impl FromStr for Access {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            None if text == "signedIn" => Ok(Access::SignedIn),
            None if text == SYSTEM_ROLE => Ok(Access::System),
            Some(("role", SYSTEM_ROLE)) => {
                Err("no person has the role system; write system for backends".to_owned())
            }
            Some(("role", role)) if !role.is_empty() && !role.contains(char::is_whitespace) => {
                Ok(Access::Role(role.to_owned()))
            }
            _ => Err("must be signedIn, role:<name> or system".to_owned()),
        }
    }
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Access::SignedIn => f.write_str("signedIn"),
            Access::Role(role) => write!(f, "role:{role}"),
            Access::System => f.write_str(SYSTEM_ROLE),
        }
    }
}

impl Serialize for Access {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Access {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(roles: &[&str]) -> Caller {
        let roles = roles.iter().map(ToString::to_string).collect();
        Caller::of_token("ann", roles).unwrap()
    }

    #[test]
    fn who_may_start() {
        let staff = || Access::Role("staff".into());
        let rows: &[(&[Access], &[&str], bool)] = &[
            (&[Access::SignedIn], &[], true),
            (&[Access::SignedIn], &["ops"], true),
            (&[Access::SignedIn], &["system"], false),
            (&[staff()], &[], false),
            (&[staff()], &["staff"], true),
            (&[staff()], &["Staff"], false),
            (&[staff()], &["ops"], false),
            (&[staff()], &["system", "staff"], false),
            (&[Access::System], &[], false),
            (&[Access::System], &["ops:content"], false),
            (&[Access::System], &["system"], true),
            (&[staff(), Access::System], &["system"], true),
            (&[staff(), Access::System], &["staff"], true),
            (&[], &[], false),
        ];
        for (access, roles, expected) in rows {
            let got = may_start(access, &caller(roles));
            assert_eq!(got, *expected, "{access:?} for {roles:?}");
        }
    }

    #[test]
    fn what_is_written_is_what_is_read() {
        for text in ["signedIn", "role:staff", "role:ops:content", "system"] {
            let access: Access = text.parse().unwrap();
            assert_eq!(access.to_string(), text);
            let json = serde_json::to_string(&access).unwrap();
            assert_eq!(serde_json::from_str::<Access>(&json).unwrap(), access);
        }
        for text in [
            "",
            "signedin",
            "role",
            "role:",
            "role:a b",
            "role:system",
            "everyone",
        ] {
            assert!(text.parse::<Access>().is_err(), "{text:?}");
        }
    }
}
