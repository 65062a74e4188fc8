//! What a client is sent after `hello` (PROTOCOL 2 and 4): the welcome with replay or snapshot,
//! then every durable frame once and in order, streamed text, replies and pings.
//!
//! One thing is written at a time, and between two of them the timers are looked at, so that a
//! long replay to a slow reader holds up neither pings nor the end of a token.

use std::collections::VecDeque;
use std::future::pending;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use askwell_shared::code::Code;
use askwell_shared::ports::{Events, Fault};
use tokio::sync::mpsc::Receiver;
use tokio::time::{Instant, sleep, sleep_until};

use super::close::Close;
use super::cursor::{Meets, Resume, hole, meets, why_snapshot};
use super::frames::{self, DEADLINE_S, PING_S};
use super::{Connection, Outgoing, Sink, snapshot, write};
use crate::auth;
use crate::hub::{Item, Lane};
use crate::refusal::Refusal;

/// Frames of the log that are read at once.
const PAGE: usize = 64;
/// A store that does not answer a new socket for so long closes it: another node may do better.
const PATIENCE: Duration = Duration::from_secs(5);
/// Between two tries to read the store.
const PAUSE: Duration = Duration::from_millis(500);
/// A client may ask for frames again this often (PROTOCOL 4.2).
const RESYNC: Duration = Duration::from_secs(5);

/// The writing direction of one socket.
struct Outbound<'a> {
    connection: &'a Arc<Connection>,
    sink: &'a mut Sink,
    lane: &'a Lane,
    /// The life of the store that the client was welcomed to.
    epoch: String,
    /// All frames up to this one are sent or in `waiting`'s snapshot.
    sent: u64,
    /// To be written, in this order.
    waiting: VecDeque<Waiting>,
    /// The log has frames after `waiting` that the lane has not.
    behind: bool,
    /// The lane may hold something.
    look: bool,
    /// The newest head that the lane told: the log must have it.
    expected: u64,
    resynced: Option<Instant>,
}

/// Something to be written.
enum Waiting {
    /// A frame or streamed text.
    Item(Item),
    /// A part of a snapshot.
    Part(String),
}

type Page = Pin<Box<dyn Future<Output = Events> + Send>>;

/// Serves until the socket must end.
pub(super) async fn run(
    connection: &Arc<Connection>,
    sink: &mut Sink,
    lane: &Lane,
    outgoing: Receiver<Outgoing>,
    resume: Option<&Resume>,
) -> Close {
    let mut outbound = Outbound {
        connection,
        sink,
        lane,
        epoch: String::new(),
        sent: 0,
        waiting: VecDeque::new(),
        behind: false,
        look: true,
        expected: 0,
        resynced: None,
    };
    let served = match outbound.welcome(resume).await {
        Ok(()) => outbound.live(outgoing).await,
        Err(close) => Err(close),
    };
    match served {
        Err(close) => close,
        Ok(()) => Close::DRAIN,
    }
}

impl Outbound<'_> {
    /// Reads where the client goes on, and welcomes it.
    async fn welcome(&mut self, resume: Option<&Resume>) -> Result<(), Close> {
        let mut why = "new";
        if let Some(resume) = resume {
            let (store, owner) = (&self.connection.gateway.ports.store, &self.connection.owner);
            let events = patiently(|| store.events_after(owner, resume.seq, PAGE));
            let events = events.await?;
            if let Some(reason) = why_snapshot(resume, &events) {
                why = reason;
            } else {
                self.epoch.clone_from(&events.epoch);
                self.sent = resume.seq;
                self.greet(events.head, None).await?;
                self.replay(events);
                return Ok(());
            }
        }
        self.snapshot(Some(why)).await
    }

    async fn greet(&mut self, seq: u64, why: Option<&str>) -> Result<(), Close> {
        let signed = self.connection.signed.borrow().clone();
        let caller = &signed.caller;
        let welcome = frames::welcome(&self.epoch, seq, why, &caller.sub, &caller.roles);
        write(self.sink, welcome).await
    }

    /// Puts the owner's state before everything else that is to be written; with a reason, after
    /// the welcome.
    async fn snapshot(&mut self, why: Option<&str>) -> Result<(), Close> {
        let (store, owner) = (&self.connection.gateway.ports.store, &self.connection.owner);
        let state = patiently(|| store.snapshot(owner)).await?;
        match why {
            Some(_) => self.epoch.clone_from(&state.epoch),
            None if self.epoch != state.epoch => return Err(Close::DRAIN),
            None => {}
        }
        self.sent = state.seq;
        self.behind = false;
        self.look = true;
        self.waiting = snapshot::parts(&state)
            .into_iter()
            .map(Waiting::Part)
            .collect();
        match why {
            Some(_) => self.greet(state.seq, why).await,
            None => Ok(()),
        }
    }

    fn replay(&mut self, events: Events) {
        let last = events.frames.last().map_or(self.sent, |(seq, _)| *seq);
        self.behind = last < events.head;
        self.look = true;
        let frames = events.frames.into_iter();
        self.waiting
            .extend(frames.map(|(seq, frame)| Waiting::Item(Item::Frame(seq, frame))));
    }

    /// Writes what comes, until the process stops and the last reply is written.
    async fn live(&mut self, mut outgoing: Receiver<Outgoing>) -> Result<(), Close> {
        let connection = self.connection;
        let stop = &connection.gateway.stop;
        let mut signed = connection.signed.subscribe();
        let mut ends = Instant::now() + signed.borrow_and_update().closes_in(auth::now());
        let mut ping_at = Instant::now() + Duration::from_secs(PING_S);
        let mut deadline: Option<Instant> = None;
        let mut page: Option<Page> = None;
        loop {
            if self.waiting.is_empty() {
                if self.behind && page.is_none() {
                    page = Some(self.read_page());
                } else if !self.behind && self.look {
                    self.take();
                }
            }
            tokio::select! {
                biased;
                () = sleep_until(ends) => return Err(Close::TOKEN),
                changed = signed.changed() => {
                    if changed.is_ok() {
                        let closes = signed.borrow_and_update().closes_in(auth::now());
                        ends = Instant::now() + closes;
                    }
                }
                () = until(deadline) => {
                    deadline = None;
                    // While the process stops nobody reads the pongs.
                    if !connection.was_answered() && !stop.is_cancelled() {
                        return Err(Close::NO_PONG);
                    }
                }
                () = sleep_until(ping_at) => {
                    connection.pinged.store(true, Ordering::Relaxed);
                    let head = self.lane.known_head().max(self.sent);
                    write(self.sink, frames::ping(head)).await?;
                    let now = Instant::now();
                    deadline = Some(now + Duration::from_secs(DEADLINE_S));
                    ping_at = now + Duration::from_secs(PING_S);
                }
                reply = outgoing.recv() => match reply {
                    None => return Ok(()),
                    Some(Outgoing::Frame(frame)) => write(self.sink, frame).await?,
                    Some(Outgoing::Resync(seq)) => {
                        page = None;
                        self.resync(seq).await?;
                    }
                },
                () = std::future::ready(()), if !self.waiting.is_empty() => {
                    self.write_next().await?;
                }
                events = read(&mut page), if self.waiting.is_empty() && page.is_some() => {
                    page = None;
                    self.turn(events).await?;
                }
                () = self.lane.woken(), if self.waiting.is_empty() && !self.behind => {
                    self.look = true;
                }
            }
        }
    }

    /// Takes what the lane holds. Where frames were dropped or never came, the log has them.
    fn take(&mut self) {
        self.look = false;
        let load = self.lane.take();
        let last = load.items.iter().rev().find_map(|item| match item {
            Item::Frame(seq, _) => Some(*seq),
            Item::Piece(_) => None,
        });
        self.expected = load.head;
        let reached = last.unwrap_or(0).max(self.sent);
        self.behind = load.overflowed || load.head > reached;
        self.waiting
            .extend(load.items.into_iter().map(Waiting::Item));
    }

    async fn write_next(&mut self) -> Result<(), Close> {
        match self.waiting.pop_front() {
            None => Ok(()),
            Some(Waiting::Part(part)) => write(self.sink, part).await,
            Some(Waiting::Item(Item::Piece(piece))) => {
                write(self.sink, frames::delta(&piece)).await
            }
            Some(Waiting::Item(Item::Frame(seq, frame))) => match meets(self.sent, seq) {
                Meets::Old => Ok(()),
                Meets::Next => {
                    self.sent = seq;
                    write(self.sink, &*frame).await
                }
                Meets::Gap => {
                    self.waiting.clear();
                    self.behind = true;
                    Ok(())
                }
            },
        }
    }

    fn read_page(&self) -> Page {
        let connection = self.connection.clone();
        let sent = self.sent;
        Box::pin(async move {
            let store = &connection.gateway.ports.store;
            loop {
                match store.events_after(&connection.owner, sent, PAGE).await {
                    Ok(events) => return events,
                    Err(fault) => tracing::warn!(%fault, "a log is read again"),
                }
                sleep(PAUSE).await;
            }
        })
    }

    /// Goes on with a page of the log; with the state where the log does not lead on.
    async fn turn(&mut self, events: Events) -> Result<(), Close> {
        // Another life of the store, or one that knows less than was told before: the client
        // learns so when it connects again.
        if events.epoch != self.epoch || events.head < self.expected {
            return Err(Close::DRAIN);
        }
        match hole(self.sent, &events) {
            Some("ahead") => Err(Close::DRAIN),
            Some(_) => self.snapshot(None).await,
            None => {
                self.replay(events);
                Ok(())
            }
        }
    }

    /// The client asks for everything after `seq` again.
    async fn resync(&mut self, seq: u64) -> Result<(), Close> {
        let now = Instant::now();
        if let Some(last) = self.resynced
            && now < last + RESYNC
        {
            let left = (last + RESYNC - now).as_millis();
            let refusal = Refusal {
                retry_ms: Some(u64::try_from(left).unwrap_or(u64::MAX)),
                ..Refusal::new(Code::T0008, "Frames may be asked for again once in 5 s.")
            };
            return write(self.sink, frames::error(None, &refusal)).await;
        }
        self.resynced = Some(now);
        if seq > self.sent {
            // It has what was never sent here: only the whole state can be right.
            return self.snapshot(None).await;
        }
        let snapshot_under_way = self
            .waiting
            .iter()
            .any(|waiting| matches!(waiting, Waiting::Part(_)));
        if !snapshot_under_way {
            self.waiting.clear();
            self.sent = seq;
            self.behind = true;
        }
        Ok(())
    }
}

/// A reading that is tried again for a while.
async fn patiently<T, F>(mut reading: impl FnMut() -> F) -> Result<T, Close>
where
    F: Future<Output = Result<T, Fault>>,
{
    let until = Instant::now() + PATIENCE;
    loop {
        match reading().await {
            Ok(found) => return Ok(found),
            Err(fault) if Instant::now() + PAUSE > until => {
                tracing::error!(%fault, "a socket is given up: the store cannot be reached");
                return Err(Close::OVERLOADED);
            }
            Err(fault) => tracing::debug!(%fault, "the store is tried again"),
        }
        sleep(PAUSE).await;
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => pending().await,
    }
}

async fn read(page: &mut Option<Page>) -> Events {
    match page {
        Some(page) => page.await,
        None => pending().await,
    }
}
