//! Where things are kept. Every key of a partition has its tag, so that on Cluster all of them
//! share a slot and each transition is one script (DESIGN 4).

use crate::caller::Starter;
use crate::id::{Owner, PARTITIONS, RunId, partition_for};
use crate::ports::CommandKey;

/// What is known of agents, which belong to no partition.
pub(super) const AGENTS: &str = "aw:{agents}:known";

/// How the store is laid out, checked at every new connection.
pub(super) const META: &str = "aw:{meta}";

/// The keys of one partition.
#[derive(Debug, Clone)]
pub(super) struct Partition {
    /// What all of them begin with.
    pub(super) prefix: String,
}

impl Partition {
    pub(super) fn new(number: u8) -> Self {
        Partition {
            prefix: format!("aw:{{p{number:02}}}:"),
        }
    }

    pub(super) fn all() -> impl Iterator<Item = Partition> {
        (0..PARTITIONS).map(Partition::new)
    }

    pub(super) fn of_run(run: &RunId) -> Self {
        Partition::new(run.partition())
    }

    pub(super) fn of_owner(owner: &Owner) -> Self {
        Partition::new(owner.partition())
    }

    /// Where a command is kept: with its run, or where a start puts the new one.
    pub(super) fn of_command(key: &CommandKey) -> Self {
        match &key.run {
            Some(run) => Partition::of_run(run),
            None => Partition::new(partition_for(&key.caller, &key.cmd)),
        }
    }

    /// An index over the whole partition: `ready`, `leases`, `due`, `open`, `runs`, `ended`,
    /// `idle`.
    pub(super) fn index(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// A key of a run: `run` (what scripts decide by), `header`, `asks`, `msgs`, `steps`, `cmds`
    /// (commands kept with it).
    pub(super) fn run(&self, kind: &str, run: &RunId) -> String {
        format!("{}{kind}:{run}", self.prefix)
    }

    /// A key of an owner: `head`, `log`, `online`, `live` (a person's runs that have not ended).
    pub(super) fn owner(&self, kind: &str, owner: &Owner) -> String {
        format!("{}{kind}:{}", self.prefix, owner.key())
    }

    /// A list of a starter's: `runs` or `open` asks.
    pub(super) fn starter(&self, kind: &str, starter: &Starter) -> String {
        format!("{}{kind}:{}", self.prefix, starter_text(starter))
    }

    /// The open asks of an agent's runs.
    pub(super) fn open_of_agent(&self, agent: &str) -> String {
        format!("{}open:agent:{agent}", self.prefix)
    }

    /// A key of a thread: `thread` itself, or its `past` runs by their numbers.
    pub(super) fn thread(&self, kind: &str, owner: &Owner, name: &str) -> String {
        format!("{}{kind}:{}", self.prefix, thread_text(owner, name))
    }

    /// A command's record.
    pub(super) fn command(&self, key: &CommandKey) -> String {
        format!("{}cmd:{}", self.prefix, key.text())
    }
}

/// A starter in keys and fields. A person and a system of one name differ.
pub(super) fn starter_text(starter: &Starter) -> String {
    let kind = if starter.system { 's' } else { 'p' };
    format!("{kind}:{}", starter.sub)
}

/// A thread in keys and indexes. Names of threads hold no colon, so no two read alike.
pub(super) fn thread_text(owner: &Owner, name: &str) -> String {
    format!("{}:{name}", owner.key())
}

/// An ask in indexes: by its id first, which orders those of one moment.
pub(super) fn ask_text(ask: &str, run: &RunId, number: usize) -> String {
    format!("{ask} {run} {number}")
}
