//! A commit as one call of the script: what has to hold, then what is written. The indexes come
//! from [`Run::indexes`] alone.

use std::collections::HashMap;
use std::time::Duration;

use super::keys::{Partition, ask_text, starter_text, thread_text};
use super::log::Entry;
use super::record::{Parts, command, command_text, token_text};
use super::script::{COMMIT, COMMIT_ALWAYS, Call};
use super::{Broken, text};
use crate::id::{Owner, RunId};
use crate::ports::{
    COMMAND_KEPT, Clock, Commit, Committed, Committer, Committing, ENDED_KEPT, FAILED_KEPT,
    FRAMES_KEPT,
};
use crate::run::{Moved, Run, Status};
use crate::thread::Thread;
use crate::time::Millis;

/// A commit in the making.
struct Writing<'a> {
    call: Call,
    partition: &'a Partition,
    /// The numbers of keys that were named already.
    keys: HashMap<String, usize>,
    /// Commands that the script carries out as they are.
    writes: Vec<Write>,
}

struct Write {
    command: &'static str,
    key: usize,
    args: Vec<String>,
}

/// The call that writes a commit.
pub(super) fn call(commit: &Commit, ahead: i64) -> Result<Call, Broken> {
    let partition = Partition::of_owner(&commit.owner);
    for moved in &commit.runs {
        let run = &moved.run;
        if run.owner() != commit.owner || run.id.partition() != commit.owner.partition() {
            return Err(Broken::Stranger(run.id.clone()));
        }
    }
    let script = if frees(commit) {
        &COMMIT_ALWAYS
    } else {
        &COMMIT
    };
    let mut writing = Writing {
        call: Call::new(script, ahead, &partition),
        partition: &partition,
        keys: HashMap::new(),
        writes: Vec::new(),
    };
    for key in [
        partition.owner("head", &commit.owner),
        partition.owner("log", &commit.owner),
        partition.owner("online", &commit.owner),
        partition.index("leases"),
    ] {
        writing.key(key);
    }
    writing.conditions(commit);
    writing.frames(commit);
    writing.asks_and_journal(commit)?;
    for moved in &commit.runs {
        writing.run(moved)?;
    }
    if let Some(thread) = &commit.thread {
        writing.thread(thread, &commit.ended)?;
    }
    writing.listed();
    if let Committer::Caller(write) = &commit.by {
        let kept_with = commit.settled_by_command();
        let kept = kept_with.map_or(millis(COMMAND_KEPT), |_| 0);
        writing.call.arg(kept);
        writing.call.arg(command_text(&write.digest, &write.reply));
        if let Some(run) = kept_with {
            let key = writing.key(partition.run("cmds", run));
            writing.call.arg(key);
        }
    }
    Ok(writing.call)
}

/// Whether a commit may be written where the memory is full: what people decide, and what ends
/// runs, which frees memory in the end.
fn frees(commit: &Commit) -> bool {
    let by_caller = matches!(commit.by, Committer::Caller(_));
    let ends = commit.runs.iter().any(|moved| !moved.run.status.is_live());
    let starts = commit.runs.iter().any(|moved| is_new(&moved.run));
    (by_caller || ends) && !starts
}

fn is_new(run: &Run) -> bool {
    run.rev == 1
}

impl Writing<'_> {
    fn key(&mut self, key: String) -> usize {
        if let Some(number) = self.keys.get(&key) {
            return *number;
        }
        let number = self.call.key(key.clone());
        self.keys.insert(key, number);
        number
    }

    fn run_key(&mut self, kind: &str, run: &RunId) -> usize {
        self.key(self.partition.run(kind, run))
    }

    /// Op, token, revisions and clock, in the order in which the script checks them.
    fn conditions(&mut self, commit: &Commit) {
        match &commit.by {
            Committer::Worker { run, token, op } => {
                let key = self.run_key("run", run);
                let token = token_text(token);
                self.call.arg("worker").arg(key).arg(token).arg(op);
            }
            Committer::Caller(write) => {
                let key = Partition::of_command(&write.key).command(&write.key);
                let key = self.key(key);
                self.call.arg("caller").arg(key);
            }
            Committer::Sweeper => {
                self.call.arg("sweeper");
            }
        }
        self.call.arg(commit.runs.len());
        for Moved { run, .. } in &commit.runs {
            let key = self.run_key("run", &run.id);
            let lease = run.lease.as_ref();
            let token = lease.map_or_else(String::new, |lease| token_text(&lease.token));
            let until = lease.map_or(0, |lease| lease.until.0);
            let args = self.call.arg(key).arg(&run.id).arg(before(run.rev));
            args.arg(token).arg(until);
        }
        self.call.arg(usize::from(commit.thread.is_some()));
        if let Some(thread) = &commit.thread {
            let key = self.partition.thread("thread", &thread.owner, &thread.name);
            let key = self.key(key);
            self.call.arg(key).arg(before(thread.rev));
        }
        let (clock, when) = match commit.clock {
            Clock::Any => ("any", Millis(0)),
            Clock::Before(end) => ("before", end),
            Clock::From(start) => ("from", start),
        };
        self.call.arg(clock).arg(when.0);
    }

    fn frames(&mut self, commit: &Commit) {
        let frames: usize = commit.runs.iter().map(|moved| moved.frames.len()).sum();
        self.call.arg(frames).arg(FRAMES_KEPT);
        for moved in &commit.runs {
            let id = &moved.run.id;
            for frame in &moved.frames {
                match Entry::of(frame, moved) {
                    Entry::Text(text) => self.call.arg("f").arg(text),
                    Entry::Ask(number) => self.call.arg("a").arg(format!("{id} {number}")),
                    Entry::Status(status, rev) => {
                        self.call.arg("s").arg(format!("{id} {status} {rev}"))
                    }
                    Entry::Message(place) => {
                        let messages = self.run_key("msgs", id);
                        self.call.arg("m").arg(id).arg(messages).arg(place)
                    }
                };
            }
        }
    }

    fn asks_and_journal(&mut self, commit: &Commit) -> Result<(), Broken> {
        let asks = commit.runs.iter().flat_map(|moved| {
            let numbers = moved.asks.iter();
            numbers.filter_map(move |number| Some((moved, *number, moved.run.asks.get(*number)?)))
        });
        let asks: Vec<_> = asks.collect();
        self.call.arg(asks.len());
        for (moved, number, ask) in asks {
            let key = self.run_key("asks", &moved.run.id);
            self.call.arg(key).arg(number).arg(text(ask)?);
        }
        let journal = commit.runs.iter();
        let journal =
            journal.flat_map(|moved| moved.journal.iter().map(move |entry| (moved, entry)));
        let journal: Vec<_> = journal.collect();
        self.call.arg(journal.len());
        for (moved, entry) in journal {
            let key = self.run_key("steps", &moved.run.id);
            self.call.arg(key).arg(&entry.step).arg(text(entry)?);
        }
        Ok(())
    }

    fn write(&mut self, command: &'static str, key: String, args: impl Into<Vec<String>>) {
        let key = self.key(key);
        self.writes.push(Write {
            command,
            key,
            args: args.into(),
        });
    }

    /// Puts a member into an index, or takes it out.
    fn index(&mut self, key: String, member: &str, score: Option<Millis>) {
        match score {
            Some(score) => self.write("ZADD", key, [score.0.to_string(), member.to_owned()]),
            None => self.write("ZREM", key, [member.to_owned()]),
        }
    }

    fn run(&mut self, moved: &Moved) -> Result<(), Broken> {
        let run = &moved.run;
        let (partition, id) = (self.partition, run.id.as_str());
        let owner = run.owner();
        let key = partition.run("run", &run.id);
        let mut fields: Vec<(&str, String)> = vec![
            ("v", run.v.to_string()),
            ("rev", run.rev.to_string()),
            ("status", run.status.name().to_owned()),
            ("head", u8::from(run.head).to_string()),
            ("nb", run.not_before.0.to_string()),
            ("fence", run.fence.to_string()),
        ];
        if is_new(run) {
            fields.push(("o", owner.key()));
            fields.push(("s", starter_text(&run.starter)));
            fields.push(("a", run.agent.clone()));
            fields.extend(run.thread.clone().map(|thread| ("t", thread)));
        }
        let fields: Vec<String> = fields
            .into_iter()
            .flat_map(|(name, value)| [name.to_owned(), value])
            .collect();
        self.write("HSET", key.clone(), fields);
        if !is_new(run) {
            // A claim that stood beside the header is in the header now; hints begin anew.
            self.write("HDEL", key, ["up".to_owned(), "pushes".to_owned()]);
        }
        self.write("SET", partition.run("header", &run.id), [text(run)?]);
        if !moved.messages.is_empty() {
            let messages = moved.messages.iter().map(text);
            let messages: Vec<String> = messages.collect::<Result<_, _>>()?;
            self.write("RPUSH", partition.run("msgs", &run.id), messages);
        }
        let indexes = run.indexes();
        self.index(partition.index("ready"), id, indexes.ready);
        self.lists(run, &owner, indexes.live);
        for number in &moved.asks {
            let Some(ask) = run.asks.get(*number) else {
                continue;
            };
            let member = ask_text(&ask.id, &run.id, *number);
            let due = indexes.open.iter().find(|(open, _)| *open == ask.id);
            let opened = due.map(|_| ask.opened);
            let due = due.map(|(_, deadline)| *deadline);
            // By its deadline, an ask is found with its run at the end.
            self.index(partition.index("due"), &due_text(&ask.id, &run.id), due);
            for list in [
                partition.index("open"),
                partition.open_of_agent(&ask.agent),
                partition.starter("open", &run.starter),
            ] {
                self.index(list, &member, opened);
            }
        }
        Ok(())
    }

    /// The lists of runs, and when an ended one goes.
    fn lists(&mut self, run: &Run, owner: &Owner, live: bool) {
        let (partition, id) = (self.partition, run.id.as_str());
        if is_new(run) {
            self.index(partition.index("runs"), id, Some(run.created));
            let list = partition.starter("runs", &run.starter);
            self.index(list, id, Some(run.created));
        }
        if matches!(owner, Owner::Person(_)) {
            let created = live.then_some(run.created);
            self.index(partition.owner("live", owner), id, created);
        }
        let kept = match run.status {
            Status::Failed => FAILED_KEPT,
            _ => ENDED_KEPT,
        };
        let goes = run.ended.filter(|_| !live).map(|ended| ended.after(kept));
        // A running run was live before as well.
        if goes.is_some() || !(is_new(run) || run.status == Status::Running) {
            self.index(partition.index("ended"), id, goes);
        }
    }

    fn thread(&mut self, thread: &Thread, ended: &[(RunId, u64)]) -> Result<(), Broken> {
        let partition = self.partition;
        let fields = [
            ("v", thread.v.to_string()),
            ("rev", thread.rev.to_string()),
            ("h", text(thread)?),
        ];
        let fields: Vec<String> = fields
            .into_iter()
            .flat_map(|(name, value)| [name.to_owned(), value])
            .collect();
        let key = partition.thread("thread", &thread.owner, &thread.name);
        self.write("HSET", key, fields);
        let name = thread_text(&thread.owner, &thread.name);
        self.index(partition.index("idle"), &name, thread.idle_since);
        for (run, number) in ended {
            let past = partition.thread("past", &thread.owner, &thread.name);
            // One that was retried keeps its first place.
            let args = ["NX".to_owned(), number.to_string(), run.to_string()];
            self.write("ZADD", past, args);
        }
        Ok(())
    }

    fn listed(&mut self) {
        self.call.arg(self.writes.len());
        for write in std::mem::take(&mut self.writes) {
            self.call.arg(write.args.len()).arg(write.command);
            self.call.arg(write.key);
            for arg in write.args {
                self.call.arg(arg);
            }
        }
    }
}

/// The revision that must stand before one; -1, which never does, before none.
fn before(rev: u64) -> i128 {
    i128::from(rev) - 1
}

/// An ask in the index of deadlines.
pub(super) fn due_text(ask: &str, run: &RunId) -> String {
    format!("{ask} {run}")
}

/// A time in whole milliseconds, as scripts take it.
pub(super) fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

/// What the script says.
pub(super) fn reply(value: deadpool_redis::redis::Value) -> Result<Committing, Broken> {
    let mut parts = Parts::of(value)?;
    let said = parts.text()?;
    Ok(match said.as_str() {
        "done" => Committing::Done(Committed {
            now: parts.now()?,
            seq: parts.number()?,
            online: parts.texts()?,
        }),
        "known" => match command(parts.value())? {
            Some(record) => Committing::Known(record),
            None => return Err(Broken::Damaged("a known command is empty".into())),
        },
        "conflict" => Committing::Conflict,
        "lost" => Committing::Lost,
        "untimely" => Committing::Untimely(parts.now()?),
        "newer" => return Err(newer(&mut parts)?),
        other => return Err(Broken::Damaged(format!("the script says {other}"))),
    })
}

/// The fault of a record of a newer version.
pub(super) fn newer(parts: &mut Parts) -> Result<Broken, Broken> {
    Ok(Broken::Newer {
        what: parts.text()?,
        v: parts.number()?,
    })
}
