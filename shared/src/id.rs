//! Ids, owners and partitions: from a run's id alone follows where it is kept (DESIGN 4).

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::caller::Starter;

/// How many partitions there are. Fixed: run ids carry theirs.
pub const PARTITIONS: u8 = 64;

/// The name of the function that spreads owners over partitions, kept beside the data.
pub const PARTITION_HASH: &str = "sha256/first-byte";

/// A run's id, `run_` + two hex digits of its partition + a UUID (version 7, RFC 9562).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunId(String);

impl RunId {
    /// The id of a run whose owner lives in `partition`, made of a UUID.
    pub fn new(partition: u8, uuid: Uuid) -> Self {
        RunId(format!(
            "run_{:02x}{}",
            partition % PARTITIONS,
            uuid.simple()
        ))
    }

    /// Reads an id that a caller sent. `None`: no run can have it.
    pub fn parse(text: &str) -> Option<Self> {
        let hex = text.strip_prefix("run_")?;
        let well_formed = hex.len() == 34
            && hex
                .bytes()
                .all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
        let id = RunId(text.to_owned());
        (well_formed && id.partition() < PARTITIONS).then_some(id)
    }

    /// The partition in which this run and all that belongs to it is kept.
    pub fn partition(&self) -> u8 {
        u8::from_str_radix(&self.0[4..6], 16).unwrap_or(0)
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whose log a run's events are in: a person's, or for a system run the run's own (SPEC 1).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Owner {
    /// A person, by the `sub` of their token.
    Person(String),
    /// A run that a backend started.
    System(RunId),
}

impl Owner {
    /// The owner of a run.
    pub fn of(starter: &Starter, run: &RunId) -> Self {
        if starter.system {
            Owner::System(run.clone())
        } else {
            Owner::Person(starter.sub.clone())
        }
    }

    /// The owner as it stands in keys. A person never shares a key with a system run.
    pub fn key(&self) -> String {
        match self {
            Owner::Person(sub) => format!("p:{sub}"),
            Owner::System(run) => format!("s:{run}"),
        }
    }

    /// The owner that [`Owner::key`] made this key of.
    pub fn parse(key: &str) -> Option<Self> {
        match key.split_once(':')? {
            ("p", sub) => Some(Owner::Person(sub.to_owned())),
            ("s", run) => RunId::parse(run).map(Owner::System),
            _ => None,
        }
    }

    /// The partition in which this owner's runs are kept.
    pub fn partition(&self) -> u8 {
        match self {
            Owner::Person(sub) => partition_of(&["person", sub]),
            Owner::System(run) => run.partition(),
        }
    }
}

/// The partition of a run that `starter` starts with the command `cmd` (DESIGN 4).
pub fn partition_for(starter: &Starter, cmd: &str) -> u8 {
    if starter.system {
        partition_of(&["system", &starter.sub, cmd])
    } else {
        partition_of(&["person", &starter.sub])
    }
}

fn partition_of(parts: &[&str]) -> u8 {
    let mut hash = Sha256::new();
    for part in parts {
        // The length first, so that no two lists of parts hash the same bytes.
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    }
    hash.finalize()[0] % PARTITIONS
}

/// A new id of an ask.
pub fn new_ask_id() -> String {
    format!("ask_{}", Uuid::new_v4().simple())
}

/// A new nonce of a lease.
pub fn new_nonce() -> String {
    Uuid::new_v4().simple().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_id_carries_its_partition() {
        let id = RunId::new(37, Uuid::nil());
        assert_eq!(id.partition(), 37);
        assert_eq!(RunId::parse(id.as_str()), Some(id));
    }

    #[test]
    fn what_no_run_can_be_called_is_no_id() {
        for text in [
            "",
            "run_",
            "run_zz",
            "run_ff00000000000000000000000000000000",
            "R1",
        ] {
            assert_eq!(RunId::parse(text), None, "{text}");
        }
    }

    #[test]
    fn persons_and_system_runs_never_share_a_key() {
        let run = RunId::new(1, Uuid::nil());
        let person = Owner::Person(format!("s:{run}"));
        assert_ne!(person.key(), Owner::System(run.clone()).key());
        for owner in [person, Owner::System(run)] {
            assert_eq!(Owner::parse(&owner.key()), Some(owner));
        }
    }
}
