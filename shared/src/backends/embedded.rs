//! All three ports on SQLite, in one process: durable, with nothing to install (DESIGN 3).
//!
//! One thread writes and groups the changes that wait in one transaction; others read, each on
//! its own connection. The folder is locked: what this process does not know has not happened.

mod commit;
mod feed;
mod folder;
mod hints;
mod read;
mod readers;
mod rows;
mod sweep;
mod writer;

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;

pub use folder::OpenFault;

use crate::agent::Announcement;
use crate::ask::Ask;
use crate::id::{Owner, RunId};
use crate::ports::{
    At, CommandKey, CommandRecord, Commit, Committing, Due, Events, Fault, Feed, Found, Hints,
    Known, Leasing, Page, Ports, Snapshot, Store,
};
use crate::run::{Run, Token};
use crate::thread::Thread;
use crate::time::Millis;
use crate::transcript::Transcript;

use folder::Folder;
use readers::Readers;
use writer::Writer;

/// Threads that read. Reading is short, and little of it waits for the disk.
const READERS: usize = 4;

/// The clock of a store.
pub type Now = Arc<dyn Fn() -> Millis + Send + Sync>;

/// The system's clock, which never goes back within this process.
pub fn system_clock() -> Now {
    let latest = AtomicI64::new(i64::MIN);
    Arc::new(move || {
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let now = i64::try_from(since.as_millis()).unwrap_or(i64::MAX);
        Millis(latest.fetch_max(now, Ordering::Relaxed).max(now))
    })
}

/// Opens the data folder and makes it where it is missing. Every lease counts as run out. The
/// folder stays locked until the last user of the ports has dropped them, which waits for what
/// is being written.
pub fn open(folder: &Path, now: Now) -> Result<Ports, OpenFault> {
    let unreadable = |fault: Box<dyn Error + Send + Sync>| OpenFault::unreadable(folder, fault);
    let (opened, writer) = Folder::open(folder)?;
    let readers = (0..READERS)
        .map(|_| opened.reader())
        .collect::<Result<Vec<_>, _>>()
        .map_err(|fault| unreadable(fault.into()))?;
    let store = Embedded {
        writer: Writer::start(writer).map_err(|fault| unreadable(fault.into()))?,
        readers: Readers::start(readers).map_err(|fault| unreadable(fault.into()))?,
        now,
        folder: opened,
    };
    Ok(Ports {
        store: Arc::new(store),
        hints: local_hints(),
        feed: local_feed(),
    })
}

/// Hints within this process, for a store that others than this backend keep.
pub fn local_hints() -> Arc<dyn Hints> {
    Arc::new(hints::LocalHints::default())
}

/// The feed within this process, for a store that others than this backend keep.
pub fn local_feed() -> Arc<dyn Feed> {
    Arc::new(feed::LocalFeed::default())
}

/// Why a change or a reading failed.
#[derive(Debug, thiserror::Error)]
enum Broken {
    #[error(transparent)]
    Sql(#[from] rusqlite::Error),
    #[error("a record cannot be read: {0}")]
    Json(#[from] serde_json::Error),
    #[error("the data is damaged: {0}")]
    Damaged(Box<dyn Error + Send + Sync>),
    #[error("{what} has a record of version {v}, newer than this program; it is left alone")]
    Newer { what: String, v: u32 },
    #[error("a commit is of one owner, but {0} is another's")]
    Owner(RunId),
}

struct Embedded {
    // In this order: the threads end before the folder's lock is given back.
    writer: Writer,
    readers: Readers,
    now: Now,
    folder: Folder,
}

#[async_trait]
impl Store for Embedded {
    fn partitions(&self) -> u8 {
        1
    }

    async fn load(&self, run: &RunId, command: Option<&CommandKey>) -> Result<At<Found>, Fault> {
        let (now, run, command) = (self.now.clone(), run.clone(), command.cloned());
        self.readers
            .read("load", move |connection| {
                let value = Found {
                    run: rows::load(connection, &run)?,
                    command: command
                        .map(|key| rows::command(connection, &key))
                        .transpose()?
                        .flatten(),
                };
                Ok(At { now: now(), value })
            })
            .await
    }

    async fn command(&self, key: &CommandKey) -> Result<At<Option<CommandRecord>>, Fault> {
        let (now, key) = (self.now.clone(), key.clone());
        self.readers
            .read("command", move |connection| {
                let value = rows::command(connection, &key)?;
                Ok(At { now: now(), value })
            })
            .await
    }

    async fn lease(&self, run: &RunId, nonce: &str, ttl: Duration) -> Result<At<Leasing>, Fault> {
        let (clock, run, nonce) = (self.now.clone(), run.clone(), nonce.to_owned());
        self.writer
            .change("lease", move |connection| {
                let now = clock();
                let value = commit::lease(connection, &run, nonce, ttl, now)?;
                Ok(At { now, value })
            })
            .await
    }

    async fn renew(
        &self,
        run: &RunId,
        token: &Token,
        ttl: Duration,
    ) -> Result<At<Option<Vec<String>>>, Fault> {
        let (clock, run, token) = (self.now.clone(), run.clone(), token.clone());
        self.writer
            .change("renew", move |connection| {
                let now = clock();
                let held = commit::renew(connection, &run, &token, now, now.after(ttl))?;
                let value = held.then(Vec::new);
                Ok(At { now, value })
            })
            .await
    }

    /// There is one gateway, and the feed tells it everything.
    async fn arrive(&self, _: &str, _: &[Owner], _: Duration) -> Result<(), Fault> {
        Ok(())
    }

    async fn commit(&self, commit: &Commit) -> Result<Committing, Fault> {
        let (now, commit) = (self.now.clone(), commit.clone());
        self.writer
            .change("commit", move |connection| {
                commit::commit(connection, &commit, now())
            })
            .await
    }

    async fn transcript(&self, run: &RunId) -> Result<At<Transcript>, Fault> {
        let (now, run) = (self.now.clone(), run.clone());
        self.readers
            .read("transcript", move |connection| {
                let value = rows::transcript(connection, &run)?;
                Ok(At { now: now(), value })
            })
            .await
    }

    async fn thread(&self, owner: &Owner, name: &str) -> Result<At<Option<Thread>>, Fault> {
        let (now, owner, name) = (self.now.clone(), owner.clone(), name.to_owned());
        self.readers
            .read("thread", move |connection| {
                let value = rows::thread(connection, &owner, &name)?;
                Ok(At { now: now(), value })
            })
            .await
    }

    async fn earlier(
        &self,
        owner: &Owner,
        name: &str,
        before: u64,
    ) -> Result<Vec<Transcript>, Fault> {
        let (owner, name) = (owner.clone(), name.to_owned());
        self.readers
            .read("earlier", move |connection| {
                read::earlier(connection, &owner, &name, before)
            })
            .await
    }

    async fn open_asks(&self, page: &Page) -> Result<At<Vec<Ask>>, Fault> {
        let (now, page) = (self.now.clone(), page.clone());
        self.readers
            .read("open asks", move |connection| {
                let value = read::open_asks(connection, &page)?;
                Ok(At { now: now(), value })
            })
            .await
    }

    async fn runs(&self, page: &Page) -> Result<At<Vec<Run>>, Fault> {
        let (now, page) = (self.now.clone(), page.clone());
        self.readers
            .read("runs", move |connection| {
                let value = read::runs(connection, &page)?;
                Ok(At { now: now(), value })
            })
            .await
    }

    async fn events_after(&self, owner: &Owner, seq: u64, limit: usize) -> Result<Events, Fault> {
        let (epoch, owner) = (self.folder.epoch.clone(), owner.clone());
        self.readers
            .read("events", move |connection| {
                read::events(connection, &epoch, &owner, seq, limit)
            })
            .await
    }

    async fn snapshot(&self, owner: &Owner) -> Result<Snapshot, Fault> {
        let (now, epoch) = (self.now.clone(), self.folder.epoch.clone());
        let owner = owner.clone();
        self.readers
            .read("snapshot", move |connection| {
                read::snapshot(connection, &epoch, &owner, now())
            })
            .await
    }

    async fn heads(&self, owners: &[Owner]) -> Result<Vec<u64>, Fault> {
        let owners = owners.to_vec();
        self.readers
            .read("heads", move |connection| read::heads(connection, &owners))
            .await
    }

    async fn announce(&self, agents: &[Announcement], fresh: bool) -> Result<(), Fault> {
        let (now, agents) = (self.now.clone(), agents.to_vec());
        self.writer
            .change("announce", move |connection| {
                sweep::announce(connection, &agents, fresh, now())
            })
            .await
    }

    async fn agents(&self) -> Result<At<Vec<Known>>, Fault> {
        let now = self.now.clone();
        self.readers
            .read("agents", move |connection| {
                let value = read::agents(connection)?;
                Ok(At { now: now(), value })
            })
            .await
    }

    async fn take_due(&self, _partition: u8, limit: usize) -> Result<At<Due>, Fault> {
        let clock = self.now.clone();
        self.writer
            .change("take what is due", move |connection| {
                let now = clock();
                let value = sweep::take_due(connection, limit, now)?;
                Ok(At { now, value })
            })
            .await
    }

    async fn unhinted(&self, run: &RunId) -> Result<(), Fault> {
        let (clock, run) = (self.now.clone(), run.clone());
        self.writer
            .change("set back a hint", move |connection| {
                sweep::unhinted(connection, &run, clock())
            })
            .await
    }

    async fn forget(&self, _partition: u8) -> Result<(), Fault> {
        let now = self.now.clone();
        self.writer
            .change("forget", move |connection| sweep::forget(connection, now()))
            .await
    }

    /// A full disk is a fault of the commit that meets it.
    async fn room(&self) -> Result<bool, Fault> {
        Ok(true)
    }
}

#[cfg(test)]
mod tests;
