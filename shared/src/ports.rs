//! The ports: what the store, the hints and the feed promise (DESIGN 3). Backends keep these
//! promises; one contract suite holds them to it.
//!
//! Every reply of the store carries its `now`, the only clock that decides anything.

mod acts;
mod commit;
mod hint;
mod keep;
mod taken;
mod verdict;

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::Stream;

pub use acts::SECOND_COPY_WAIT;
pub use commit::{
    Clock, CommandKey, CommandRecord, CommandWrite, Commit, Committed, Committer, Committing,
};
pub use hint::{Hint, HintKind, Settled};
pub use keep::{
    AGENT_KEPT, COMMAND_KEPT, ENDED_KEPT, FAILED_KEPT, FRAMES_KEPT, HINT_AGAIN, THREAD_KEPT,
    push_wait,
};
pub use taken::{Ack, Taken};
pub use verdict::{LastOp, Standing, verdict};

use crate::agent::Announcement;
use crate::ask::Ask;
use crate::caller::Starter;
use crate::id::{Owner, RunId};
use crate::run::{Run, Status, Token};
use crate::thread::Thread;
use crate::time::Millis;
use crate::transcript::Transcript;

/// Our fault, not the caller's: retried, logged once at the edge, shown as T0011 without detail.
#[derive(Debug, thiserror::Error)]
#[error("{op}: {source}")]
pub struct Fault {
    /// What was tried.
    pub op: &'static str,
    /// What went wrong.
    #[source]
    pub source: Box<dyn std::error::Error + Send + Sync>,
}

impl Fault {
    /// A fault of `op`.
    pub fn new(
        op: &'static str,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Fault {
            op,
            source: source.into(),
        }
    }
}

/// The three ports, as one backend gives them.
#[derive(Clone)]
pub struct Ports {
    /// The truth.
    pub store: Arc<dyn Store>,
    /// "This run may be claimable."
    pub hints: Arc<dyn Hints>,
    /// "This has happened."
    pub feed: Arc<dyn Feed>,
}

/// A reply and the store's clock when it was made.
#[derive(Debug, Clone, PartialEq)]
pub struct At<T> {
    /// The store's clock.
    pub now: Millis,
    /// The reply.
    pub value: T,
}

/// The reply to a claim.
#[derive(Debug, Clone, PartialEq)]
pub enum Leasing {
    /// The run is yours.
    Leased(Box<Leased>),
    /// Another worker holds it.
    Held,
    /// Nothing is to be done for it (or it is gone).
    NotClaimable,
    /// Not before then.
    NotYet(Millis),
}

/// A run that was claimed.
#[derive(Debug, Clone, PartialEq)]
pub struct Leased {
    /// The run, `running`, with its asks.
    pub run: Run,
    /// Its conversation.
    pub transcript: Transcript,
    /// The owner's head after the claim.
    pub seq: u64,
    /// The frames of the claim.
    pub frames: Vec<crate::wire::Frame>,
    /// The gateways where the owner is online.
    pub online: Vec<String>,
}

/// What a caller's command finds.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// The run with its asks.
    pub run: Option<Run>,
    /// The command, if it was carried out before.
    pub command: Option<CommandRecord>,
}

/// Whose asks or runs are listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Whose {
    /// What this starter started.
    Of(Starter),
    /// Everybody's (ops).
    All,
}

/// A page of a list, newest first.
#[derive(Debug, Clone, PartialEq)]
pub struct Page {
    /// Whose.
    pub whose: Whose,
    /// Only this agent's.
    pub agent: Option<String>,
    /// Only in this thread (runs).
    pub thread: Option<String>,
    /// Only with one of these statuses (runs); empty: all.
    pub statuses: Vec<Status>,
    /// At most so many.
    pub limit: usize,
    /// After this item of the page before: its time and id.
    pub after: Option<(Millis, String)>,
}

/// The durable frames after a point.
#[derive(Debug, Clone, PartialEq)]
pub struct Events {
    /// Which life of the store this is: numbers of another do not compare.
    pub epoch: String,
    /// The owner's head.
    pub head: u64,
    /// The frames, with their `seq`, from the one asked for without a gap.
    pub frames: Vec<(u64, Arc<str>)>,
    /// Frames after the point are no longer kept: read the state instead.
    pub trimmed: bool,
}

/// An owner's state at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    /// The store's clock.
    pub now: Millis,
    /// Which life of the store this is.
    pub epoch: String,
    /// The owner's head: all frames up to it are in this state, none after it.
    pub seq: u64,
    /// Open asks, oldest first.
    pub asks: Vec<Ask>,
    /// Live runs, oldest first.
    pub runs: Vec<crate::wire::LiveRun>,
}

/// An agent as the store knows it.
#[derive(Debug, Clone, PartialEq)]
pub struct Known {
    /// What a worker announced.
    pub announcement: Announcement,
    /// When this revision was announced by a worker that started; the newest decides access,
    /// limits and `onMessage` (SPEC 2).
    pub announced: Millis,
    /// When a worker with it was last seen.
    pub seen: Millis,
}

/// An agent with a worker seen within this time is live (SPEC 2).
pub const LIVE_WITHIN: Duration = Duration::from_secs(15);

impl Known {
    /// Whether a worker with this revision is alive.
    pub fn is_live(&self, now: Millis) -> bool {
        now.since(self.seen) < LIVE_WITHIN
    }
}

/// What is due in a partition. Whoever takes it acts on it; each action checks the state again.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Due {
    /// Runs that need a hint. Taking them moves them back, so that one process hints each.
    pub ready: Vec<RunId>,
    /// Open asks past their deadline.
    pub asks: Vec<(RunId, String)>,
    /// Runs whose lease is over.
    pub leases: Vec<RunId>,
}

/// The truth. A commit is atomic; a reply is given only when it is durable.
#[async_trait]
pub trait Store: Send + Sync {
    /// How many partitions [`Store::take_due`] knows.
    fn partitions(&self) -> u8;

    /// A run with its asks, and whether a command was carried out before: one reading.
    async fn load(&self, run: &RunId, command: Option<&CommandKey>) -> Result<At<Found>, Fault>;

    /// Whether a command was carried out before.
    async fn command(&self, key: &CommandKey) -> Result<At<Option<CommandRecord>>, Fault>;

    /// Claims a run for `ttl`. The same nonce again, within `ttl`, gets the same lease. A lease
    /// that is over is not taken from its holder here: only the sweeper does that.
    async fn lease(&self, run: &RunId, nonce: &str, ttl: Duration) -> Result<At<Leasing>, Fault>;

    /// Makes a lease hold for `ttl` from now, and says at which gateways the owner is online;
    /// `None`: the right is gone. A lease that is over is not renewed, even where nobody took it
    /// away yet: a sweeper that has seen it over may be about to.
    async fn renew(
        &self,
        run: &RunId,
        token: &Token,
        ttl: Duration,
    ) -> Result<At<Option<Vec<String>>>, Fault>;

    /// Says that these owners are online at a gateway ([`Feed::name`]) for `ttl` from now. It
    /// counts in every commit, lease and renewal after it; it is never taken back, only let run
    /// out.
    async fn arrive(&self, gateway: &str, owners: &[Owner], ttl: Duration) -> Result<(), Fault>;

    /// Writes one transition, or says why not. Checked in this order: is the op known, the
    /// token, the revisions, the clock. The same op gets the same reply.
    async fn commit(&self, commit: &Commit) -> Result<Committing, Fault>;

    /// The conversation of a run.
    async fn transcript(&self, run: &RunId) -> Result<At<Transcript>, Fault>;

    /// A thread, if it was ever used and is still kept.
    async fn thread(&self, owner: &Owner, name: &str) -> Result<At<Option<Thread>>, Fault>;

    /// The conversations of a thread's ended runs numbered below `before`, oldest first.
    async fn earlier(
        &self,
        owner: &Owner,
        name: &str,
        before: u64,
    ) -> Result<Vec<Transcript>, Fault>;

    /// Open asks, newest first; those of a page's own agent only.
    async fn open_asks(&self, page: &Page) -> Result<At<Vec<Ask>>, Fault>;

    /// Runs without their asks' records, newest first.
    async fn runs(&self, page: &Page) -> Result<At<Vec<Run>>, Fault>;

    /// The owner's frames after `seq`, at most `limit`.
    async fn events_after(&self, owner: &Owner, seq: u64, limit: usize) -> Result<Events, Fault>;

    /// The owner's state and head: one reading.
    async fn snapshot(&self, owner: &Owner) -> Result<Snapshot, Fault>;

    /// The heads of these owners, in their order.
    async fn heads(&self, owners: &[Owner]) -> Result<Vec<u64>, Fault>;

    /// Says that a worker with these agents is alive; `fresh` when it has just started.
    async fn announce(&self, agents: &[Announcement], fresh: bool) -> Result<(), Fault>;

    /// All agents that are known, each revision by itself.
    async fn agents(&self) -> Result<At<Vec<Known>>, Fault>;

    /// What is due in a partition, at most `limit` of each kind. Ready runs are moved back in
    /// the same change: by 5 s, then 30 s, then twice as long each time, at most 5 min.
    async fn take_due(&self, partition: u8, limit: usize) -> Result<At<Due>, Fault>;

    /// A run's hint was not taken: where it still needs one, it is due again 2 s from now at the
    /// latest, and this hint does not count among those that space the next (DESIGN 5).
    async fn unhinted(&self, run: &RunId) -> Result<(), Fault>;

    /// Drops what has been kept long enough (SPEC 5): ended runs, commands, threads, agents.
    async fn forget(&self, partition: u8) -> Result<(), Fault>;

    /// Whether new runs may be started. Where it says no, what is there goes on and is answered;
    /// a start is refused with T0012.
    async fn room(&self) -> Result<bool, Fault>;
}

/// A stream of `T` that ends when its backend is closed.
pub type Incoming<T> = Pin<Box<dyn Stream<Item = T> + Send>>;

/// Carries hints. It may lose, double, delay and reorder them: the store's `ready` index brings
/// every run back that still needs one.
#[async_trait]
pub trait Hints: Send + Sync {
    /// Gives a hint to some worker. `Ok` only when the backend has taken it; an answer comes
    /// within a few seconds whatever the backend does. A process that takes hints itself and has
    /// been without the backend's server for long gives the hint to its own taker, which claims
    /// the run from the store.
    async fn put(&self, hint: Hint) -> Result<(), Fault>;

    /// Gives back a hint that this worker cannot act on, since it has not the agent: another
    /// worker gets it a little later, a few times at most.
    async fn later(&self, taken: Taken);

    /// The hints for this process. Each hint goes to one taker, which says [`Ack::done`] right
    /// after it has claimed the run or learned that it cannot. Whoever drops one without that
    /// gives it to another worker, a little later.
    fn take(&self) -> Incoming<Taken>;

    /// Whether a hint that is put now is likely to find a worker. Where it is not, whoever sweeps
    /// does so seldom, so that a process which can act comes first.
    fn reachable(&self) -> bool;
}

/// What has happened to an owner's runs in one commit.
#[derive(Debug, Clone, PartialEq)]
pub struct News {
    /// Whose.
    pub owner: Owner,
    /// The run; of a commit of several, the first that has a frame.
    pub run: RunId,
    /// Its agent.
    pub agent: String,
    /// What kinds of frames of which agents there are, each once, as `ask.opened.<agent>`
    /// (PROTOCOL 7): other consumers choose by them.
    pub keys: Vec<String>,
    /// The frames of the commit, each with its `seq`.
    pub frames: Vec<(u64, Arc<str>)>,
}

/// A piece of text that streams in (PROTOCOL 2, `run.delta`).
#[derive(Debug, Clone, PartialEq)]
pub struct Delta {
    /// Whose.
    pub owner: Owner,
    /// The run.
    pub run: RunId,
    /// The turn.
    pub turn: u32,
    /// Which try of the model call; a new one replaces the old.
    pub attempt: u64,
    /// Where the piece begins, in UTF-16 units.
    pub offset: u64,
    /// The piece.
    pub text: String,
}

/// What a subscriber of the feed gets.
#[derive(Debug, Clone, PartialEq)]
pub enum Heard {
    /// A commit.
    News(Arc<News>),
    /// Streamed text.
    Delta(Arc<Delta>),
    /// Something may have been missed: compare heads with the store.
    Missed,
}

/// Tells screens what has happened. At most once: whoever needs all reads the store.
#[async_trait]
pub trait Feed: Send + Sync {
    /// What this process is called in the `to` of others, the same for its life.
    fn name(&self) -> &str;

    /// Tells the gateways in `to` of a commit.
    async fn publish(&self, news: Arc<News>, to: &[String]);

    /// Tells the gateways in `to` of streamed text; the first to be dropped.
    fn stream(&self, delta: Arc<Delta>, to: &[String]);

    /// All that is told to this process from now on, bounded: what does not fit is dropped and
    /// said so by [`Heard::Missed`].
    fn subscribe(&self) -> Incoming<Heard>;

    /// Whether what others tell arrives here now. Where it does not, subscribers read the store
    /// the more often (PROTOCOL 4).
    fn listening(&self) -> bool;
}

impl fmt::Debug for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Ports")
    }
}
