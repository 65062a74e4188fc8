//! The store on Redis (DESIGN 4): one script per transition, in one of 64 partitions.
//!
//! A run's header is JSON that Lua never reads: what scripts decide by stands beside it in fields
//! of a hash, and a claim changes only those. Small hashes without long values take a fifth of
//! the memory of others, so the header has a key of its own.
//!
//! A call that failed may have been carried out: the same call gets the same answer.

mod change;
mod commit;
mod greet;
mod keys;
mod line;
mod list;
mod log;
mod read;
mod record;
mod script;
mod sweep;

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use deadpool_redis::redis::RedisError;
use serde::Serialize;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::agent::Announcement;
use crate::ask::Ask;
use crate::id::{Owner, PARTITIONS, RunId};
use crate::ports::{
    At, CommandKey, CommandRecord, Commit, Committing, Due, Events, Fault, Found, Known, Leasing,
    Page, Snapshot, Store,
};
use crate::run::{Run, Token};
use crate::thread::Thread;
use crate::transcript::Transcript;

use keys::Partition;
use line::Lines;
use list::{Kind, page};
use record::Parts;
use script::{Call, Script};

/// Records of a kind that one sweep drops at most, so that no commit waits long behind it.
const DROPPED: usize = 500;

/// When a run that a live thread keeps is looked at again.
const LOOK_AGAIN: Duration = Duration::from_hours(24);

/// How much of the memory may be used before no new run is started (SPEC 5), in hundredths.
const ROOM: u64 = 80;

/// For how long one look at the memory serves.
const MEMORY_LOOK: Duration = Duration::from_secs(1);

/// Why a Redis cannot be the store. Trying again does not help.
#[derive(Debug, thiserror::Error)]
pub enum OpenFault {
    /// The address cannot be read.
    #[error("the address of Redis cannot be read: {0}")]
    Url(#[source] RedisError),
    /// Its connections cannot be prepared.
    #[error("connections to Redis cannot be prepared: {0}")]
    Pool(#[source] Box<dyn Error + Send + Sync>),
    /// It drops what it holds when its memory is full.
    #[error(
        "maxmemory-policy of Redis is {policy}, which drops runs when its memory is full: it must be noeviction"
    )]
    Evicting {
        /// Its policy.
        policy: String,
    },
    /// Its keys lie on several nodes, which this program does not look for.
    #[error("Redis Cluster of {nodes} nodes: name one Redis, with replicas for its safety")]
    Sharded {
        /// How many.
        nodes: usize,
    },
    /// It was laid out by a program that differs from this one.
    #[error("the store in Redis has {what} {found}, this program has {known}")]
    Layout {
        /// In what they differ.
        what: &'static str,
        /// What the store has.
        found: String,
        /// What this program has.
        known: String,
    },
}

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
enum Broken {
    #[error(transparent)]
    Redis(#[from] RedisError),
    #[error(transparent)]
    Unfit(#[from] OpenFault),
    #[error("a record cannot be read: {0}")]
    Json(#[from] serde_json::Error),
    #[error("the data is damaged: {0}")]
    Damaged(String),
    #[error("{what} has a record of version {v}, newer than this program; it is left alone")]
    Newer { what: String, v: u32 },
    #[error("a commit is of one owner in one partition, but {0} is not")]
    Stranger(RunId),
    #[error("the server's role is {0}, not master")]
    Role(String),
    #[error("no connection for waiting: {0}")]
    Pool(#[source] Box<dyn Error + Send + Sync>),
    #[error("written, but {count} replicas have it")]
    Unsafe { count: usize },
    #[error("no connection: {0}")]
    Shared(Arc<Broken>),
}

/// Opens the store at `url` (`redis://` or `rediss://`). One that cannot be reached is no fault:
/// every call tries again.
pub async fn open(url: &str) -> Result<Arc<dyn Store>, OpenFault> {
    open_ahead(url, Arc::default()).await
}

/// As [`open`], by a clock that is so many ms ahead of the server's: for tests of what takes
/// days.
pub async fn open_ahead(url: &str, ahead: Arc<AtomicI64>) -> Result<Arc<dyn Store>, OpenFault> {
    let store = Redis {
        lines: Lines::new(url)?,
        ahead,
        room: Mutex::new(None),
    };
    match store.lines.check().await {
        Ok(()) => {}
        Err(Broken::Unfit(fault)) => return Err(fault),
        Err(broken) => tracing::warn!(%broken, "Redis cannot be used yet"),
    }
    Ok(Arc::new(store))
}

struct Redis {
    lines: Lines,
    ahead: Arc<AtomicI64>,
    room: Mutex<Option<(Instant, bool)>>,
}

/// A record as JSON text.
fn text(record: &impl Serialize) -> Result<String, Broken> {
    Ok(serde_json::to_string(record)?)
}

/// Names what failed.
fn fault(op: &'static str) -> impl Fn(Broken) -> Fault {
    move |broken| Fault::new(op, broken)
}

impl Redis {
    fn script(&self, script: &'static Script, partition: &Partition) -> Call {
        Call::new(script, self.ahead.load(Ordering::Relaxed), partition)
    }

    async fn ask(&self, call: &Call) -> Result<Parts, Broken> {
        Parts::of(self.lines.call(call).await?.value)
    }
}

#[async_trait]
impl Store for Redis {
    fn partitions(&self) -> u8 {
        PARTITIONS
    }

    async fn load(&self, run: &RunId, command: Option<&CommandKey>) -> Result<At<Found>, Fault> {
        self.load_run(run, command).await.map_err(fault("load"))
    }

    async fn command(&self, key: &CommandKey) -> Result<At<Option<CommandRecord>>, Fault> {
        self.load_command(key).await.map_err(fault("command"))
    }

    async fn lease(&self, run: &RunId, nonce: &str, ttl: Duration) -> Result<At<Leasing>, Fault> {
        self.claim(run, nonce, ttl).await.map_err(fault("lease"))
    }

    async fn renew(
        &self,
        run: &RunId,
        token: &Token,
        ttl: Duration,
    ) -> Result<At<Option<Vec<String>>>, Fault> {
        self.prolong(run, token, ttl).await.map_err(fault("renew"))
    }

    async fn arrive(&self, gateway: &str, owners: &[Owner], ttl: Duration) -> Result<(), Fault> {
        self.note_presence(gateway, owners, ttl)
            .await
            .map_err(fault("arrive"))
    }

    async fn commit(&self, commit: &Commit) -> Result<Committing, Fault> {
        self.write(commit).await.map_err(fault("commit"))
    }

    async fn transcript(&self, run: &RunId) -> Result<At<Transcript>, Fault> {
        self.conversation(run).await.map_err(fault("transcript"))
    }

    async fn thread(&self, owner: &Owner, name: &str) -> Result<At<Option<Thread>>, Fault> {
        self.load_thread(owner, name).await.map_err(fault("thread"))
    }

    async fn earlier(
        &self,
        owner: &Owner,
        name: &str,
        before: u64,
    ) -> Result<Vec<Transcript>, Fault> {
        self.past(owner, name, before)
            .await
            .map_err(fault("earlier"))
    }

    async fn open_asks(&self, wanted: &Page) -> Result<At<Vec<Ask>>, Fault> {
        let read = async {
            let At { now, value } = page(self, Kind::Asks, wanted).await?;
            let value = record::asks(value)?;
            Ok(At { now, value })
        };
        read.await.map_err(fault("open asks"))
    }

    async fn runs(&self, wanted: &Page) -> Result<At<Vec<Run>>, Fault> {
        let read = async {
            let At { now, value } = page(self, Kind::Runs, wanted).await?;
            let mut runs = Vec::with_capacity(value.len());
            for run in value {
                runs.extend(record::run(run, || "a run".to_owned())?);
            }
            Ok(At { now, value: runs })
        };
        read.await.map_err(fault("runs"))
    }

    async fn events_after(&self, owner: &Owner, seq: u64, limit: usize) -> Result<Events, Fault> {
        self.frames(owner, seq, limit)
            .await
            .map_err(fault("events"))
    }

    async fn snapshot(&self, owner: &Owner) -> Result<Snapshot, Fault> {
        self.state(owner).await.map_err(fault("snapshot"))
    }

    async fn heads(&self, owners: &[Owner]) -> Result<Vec<u64>, Fault> {
        self.all_heads(owners).await.map_err(fault("heads"))
    }

    async fn announce(&self, agents: &[Announcement], fresh: bool) -> Result<(), Fault> {
        self.note_agents(agents, fresh)
            .await
            .map_err(fault("announce"))
    }

    async fn agents(&self) -> Result<At<Vec<Known>>, Fault> {
        self.known_agents().await.map_err(fault("agents"))
    }

    async fn take_due(&self, partition: u8, limit: usize) -> Result<At<Due>, Fault> {
        self.take(partition, limit)
            .await
            .map_err(fault("take what is due"))
    }

    async fn unhinted(&self, run: &RunId) -> Result<(), Fault> {
        self.set_back(run).await.map_err(fault("set back a hint"))
    }

    async fn forget(&self, partition: u8) -> Result<(), Fault> {
        self.drop_old(partition).await.map_err(fault("forget"))
    }

    async fn room(&self) -> Result<bool, Fault> {
        self.has_room().await.map_err(fault("room"))
    }
}
