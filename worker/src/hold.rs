//! A run that this worker holds: its lease kept, its commits made once.

use std::time::{Duration, Instant};

use rand::RngExt as _;
use tokio_util::sync::CancellationToken;

use askwell_shared::id::{Owner, RunId};
use askwell_shared::ports::{Clock, Committer, Committing, Leased, Ports};
use askwell_shared::run::{Event, Late, Run, Token};
use askwell_shared::time::Millis;
use askwell_shared::transcript::{JournalEntry, Transcript};

/// The worker's right is gone, or can no longer be relied on: everything is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the lease is gone")]
pub struct Lost;

/// Why an event was not committed.
#[derive(Debug, Clone, PartialEq)]
pub enum NotCommitted {
    /// The right is gone.
    Lost,
    /// The run has changed so that the event does not apply any more: decide again.
    Late(Late),
}

impl From<Lost> for NotCommitted {
    fn from(_: Lost) -> Self {
        NotCommitted::Lost
    }
}

/// A run that this worker holds.
pub struct Hold {
    ports: Ports,
    /// The run as this worker last saw it.
    pub run: Run,
    /// Its conversation.
    pub transcript: Transcript,
    token: Token,
    op: u64,
    clock: StoreClock,
    online: Vec<String>,
    lost: CancellationToken,
}

/// The store's clock, carried on by this process's monotonic one.
#[derive(Debug, Clone, Copy)]
struct StoreClock {
    told: Millis,
    at: Instant,
}

impl StoreClock {
    fn now(self) -> Millis {
        self.told.after(self.at.elapsed())
    }
}

impl Hold {
    /// Takes over a lease that was just given at `now`. The lease is renewed in the background
    /// until the hold is dropped; `lost` is cancelled when it can no longer be relied on.
    pub fn new(ports: Ports, leased: Leased, now: Millis, asked: Instant, ttl: Duration) -> Self {
        let lost = CancellationToken::new();
        let token = leased
            .run
            .lease
            .as_ref()
            .map_or_else(no_right, |lease| lease.token.clone());
        tokio::spawn(keep(
            ports.clone(),
            leased.run.id.clone(),
            token.clone(),
            ttl,
            asked + ttl,
            lost.clone(),
        ));
        Hold {
            ports,
            run: leased.run,
            transcript: leased.transcript,
            token,
            op: 0,
            clock: StoreClock {
                told: now,
                at: Instant::now(),
            },
            online: leased.online,
            lost,
        }
    }

    /// Cancelled when the lease can no longer be relied on.
    pub fn lost(&self) -> CancellationToken {
        self.lost.clone()
    }

    /// The store's clock.
    pub fn now(&self) -> Millis {
        self.clock.now()
    }

    /// The number of the lease.
    pub fn fence(&self) -> u64 {
        self.token.fence
    }

    /// Whose the run is, and where they are online.
    pub fn audience(&self) -> (Owner, Vec<String>) {
        (self.run.owner(), self.online.clone())
    }

    /// Commits an event: decided on the newest state, repeated with the same op while the
    /// outcome is not known, decided again after a conflict.
    pub async fn commit(&mut self, event: Event) -> Result<(), NotCommitted> {
        self.op += 1;
        loop {
            let moved = self
                .run
                .apply(event.clone(), self.now())
                .map_err(NotCommitted::Late)?;
            let by = Committer::Worker {
                run: self.run.id.clone(),
                token: self.token.clone(),
                op: self.op,
            };
            if self.lost.is_cancelled() {
                return Err(NotCommitted::Lost);
            }
            let reply = self.ports.commit_move(by, Clock::Any, moved.clone()).await;
            match reply {
                Ok(Committing::Done(done)) => {
                    self.clock = StoreClock {
                        told: done.now,
                        at: Instant::now(),
                    };
                    self.online = done.online;
                    self.run = moved.run;
                    self.transcript.messages.extend(moved.messages);
                    note(&mut self.transcript.journal, moved.journal);
                    return Ok(());
                }
                Ok(Committing::Conflict) => self.reload().await?,
                Ok(Committing::Lost | Committing::Known(_) | Committing::Untimely(_)) => {
                    self.lost.cancel();
                    return Err(NotCommitted::Lost);
                }
                Err(fault) => {
                    tracing::debug!(run = %self.run.id, %fault, "commit not answered, again");
                    self.pause().await?;
                }
            }
        }
    }

    async fn reload(&mut self) -> Result<(), Lost> {
        loop {
            match self.ports.store.load(&self.run.id, None).await {
                Ok(found) => {
                    let run = found.value.run.filter(|run| {
                        run.lease.as_ref().map(|lease| &lease.token) == Some(&self.token)
                    });
                    self.clock = StoreClock {
                        told: found.now,
                        at: Instant::now(),
                    };
                    let Some(run) = run else {
                        self.lost.cancel();
                        return Err(Lost);
                    };
                    // What others wrote meanwhile are settlements: their results are in the
                    // journal by the time a turn is made, since that is read anew.
                    let journal = run.rev != self.run.rev;
                    self.run = run;
                    if journal {
                        self.read_again().await?;
                    }
                    return Ok(());
                }
                Err(_) => self.pause().await?,
            }
        }
    }

    async fn read_again(&mut self) -> Result<(), Lost> {
        loop {
            match self.ports.store.transcript(&self.run.id).await {
                Ok(found) => {
                    self.transcript = found.value;
                    return Ok(());
                }
                Err(_) => self.pause().await?,
            }
        }
    }

    /// Waits a moment with jitter, no longer than the lease can be relied on.
    async fn pause(&self) -> Result<(), Lost> {
        let wait = Duration::from_millis(rand::rng().random_range(20..200));
        tokio::select! {
            () = self.lost.cancelled() => Err(Lost),
            () = tokio::time::sleep(wait) => Ok(()),
        }
    }
}

/// A token that no lease has: a store that leased without one gets no commit.
fn no_right() -> Token {
    Token {
        fence: 0,
        nonce: String::new(),
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        // Ends the renewing.
        self.lost.cancel();
    }
}

/// Writes entries into a journal, each at the place of its step.
fn note(journal: &mut Vec<JournalEntry>, entries: Vec<JournalEntry>) {
    for entry in entries {
        match journal.iter_mut().find(|known| known.step == entry.step) {
            Some(known) => *known = entry,
            None => journal.push(entry),
        }
    }
}

/// Renews a lease at a third of its time. By this process's own clock it is over when `ttl` has
/// passed since the last renewal that was answered was *asked* for.
async fn keep(
    ports: Ports,
    run: RunId,
    token: Token,
    ttl: Duration,
    mut until: Instant,
    lost: CancellationToken,
) {
    let mut wait = ttl / 3;
    loop {
        let ended = tokio::time::sleep_until(until.into());
        tokio::select! {
            () = lost.cancelled() => return,
            () = ended => break,
            () = tokio::time::sleep(wait) => {}
        }
        let asked = Instant::now();
        let renewed = tokio::select! {
            () = lost.cancelled() => return,
            () = tokio::time::sleep_until(until.into()) => break,
            renewed = ports.store.renew(&run, &token, ttl) => renewed,
        };
        match renewed {
            Ok(at) if at.value.is_some() => {
                until = asked + ttl;
                wait = ttl / 3;
            }
            Ok(_) => break,
            Err(fault) => {
                tracing::debug!(%run, %fault, "lease not renewed, again");
                wait = Duration::from_millis(200).min(ttl / 10);
            }
        }
    }
    lost.cancel();
}
