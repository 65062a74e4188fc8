//! The scripts, and a call of one. Their text is part of the program, so that a rolling deploy
//! never changes the code under an older process.

use std::sync::LazyLock;

use deadpool_redis::redis::{self, Cmd};

use super::keys::Partition;
use crate::run::RECORD_VERSION;

/// One script as the server knows it.
pub(super) struct Script {
    text: String,
    hash: String,
}

impl Script {
    fn new(flags: &str, body: &str) -> Self {
        // The first line makes the server refuse the script whole where it may not write, rather
        // than in the middle.
        let text = format!("#!lua{flags}\n{}\n{body}", include_str!("prelude.lua"));
        let hash = redis::Script::new(&text).get_hash().to_owned();
        Script { text, hash }
    }
}

/// Writes, unless the memory is full.
const WRITES: &str = "";
/// Writes what frees memory, or a bounded little: also where the memory is full.
const ALWAYS: &str = " flags=allow-oom";
const READS: &str = " flags=no-writes";

macro_rules! scripts {
    ($($name:ident = $flags:ident $file:literal;)*) => {
        $(pub(super) static $name: LazyLock<Script> =
            LazyLock::new(|| Script::new($flags, include_str!($file)));)*
    };
}

scripts! {
    COMMIT = WRITES "commit.lua";
    COMMIT_ALWAYS = ALWAYS "commit.lua";
    LEASE = WRITES "lease.lua";
    RENEW = ALWAYS "renew.lua";
    ARRIVE = ALWAYS "arrive.lua";
    ANNOUNCE = ALWAYS "agents.lua";
    DUE = ALWAYS "due.lua";
    UNHINTED = ALWAYS "unhinted.lua";
    FORGET = ALWAYS "forget.lua";
    UNSEEN = ALWAYS "unseen.lua";
    LOAD = READS "load.lua";
    COMMAND = READS "command.lua";
    TRANSCRIPT = READS "transcript.lua";
    THREAD = READS "thread.lua";
    PAST = READS "past.lua";
    EVENTS = READS "events.lua";
    SNAPSHOT = READS "snapshot.lua";
    ALONE = READS "alone.lua";
    LIST = READS "list.lua";
    KNOWN = READS "known.lua";
}

/// A script with its keys and arguments.
pub(super) struct Call {
    script: &'static Script,
    keys: Vec<String>,
    args: Vec<String>,
}

impl Call {
    /// A call in a partition, by a clock that is `ahead` ms ahead of the server's.
    pub(super) fn new(script: &'static Script, ahead: i64, partition: &Partition) -> Self {
        let version = RECORD_VERSION.to_string();
        Call {
            script,
            keys: Vec::new(),
            args: vec![ahead.to_string(), partition.prefix.clone(), version],
        }
    }

    /// Adds a key and gives its number, from 1.
    pub(super) fn key(&mut self, key: String) -> usize {
        self.keys.push(key);
        self.keys.len()
    }

    /// Adds a key.
    pub(super) fn with(mut self, key: String) -> Self {
        self.key(key);
        self
    }

    /// Adds an argument.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "numbers and texts alike, as they come"
    )]
    pub(super) fn arg(&mut self, arg: impl ToString) -> &mut Self {
        self.args.push(arg.to_string());
        self
    }

    /// The call by the script's hash, which is short.
    pub(super) fn by_hash(&self) -> Cmd {
        self.command("EVALSHA", &self.script.hash)
    }

    /// The call with the script's text, which the server keeps.
    pub(super) fn by_text(&self) -> Cmd {
        self.command("EVAL", &self.script.text)
    }

    fn command(&self, name: &str, script: &str) -> Cmd {
        let mut command = redis::cmd(name);
        command.arg(script).arg(self.keys.len());
        command.arg(&self.keys).arg(&self.args);
        command
    }
}
