//! How long a caller waits for the store (DESIGN 3).

use std::time::Duration;

use askwell_shared::ports::{Commit, Committing, Fault, Ports};
use rand::RngExt as _;
use tokio::time::{Instant, sleep_until};

use crate::refusal::Refusal;

/// Conflicts and faults are tried again for so long, then the caller gets a temporary T0011.
const PATIENCE: Duration = Duration::from_secs(5);

/// The longest pause between two tries.
const LONGEST_PAUSE: Duration = Duration::from_millis(250);

/// The patience for one call.
pub(super) struct Patience {
    until: Instant,
    pause: Duration,
}

impl Patience {
    pub(super) fn new() -> Self {
        Patience {
            until: Instant::now() + PATIENCE,
            pause: Duration::from_millis(4),
        }
    }

    /// Waits before another try: full jitter over a pause that doubles, so that twenty callers
    /// at one run do not meet again. T0011 when the time is up.
    pub(super) async fn again(&mut self) -> Result<(), Refusal> {
        let pause = self.pause.mul_f64(rand::rng().random_range(0.0..1.0));
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        let at = Instant::now() + pause;
        if at > self.until {
            return Err(Refusal::store_away());
        }
        sleep_until(at).await;
        Ok(())
    }

    /// A reading that is tried again as long as the patience lasts.
    pub(super) async fn read<T, F>(&mut self, mut reading: impl FnMut() -> F) -> Result<T, Refusal>
    where
        F: Future<Output = Result<T, Fault>>,
    {
        loop {
            match reading().await {
                Ok(found) => return Ok(found),
                Err(fault) => self.after(&fault).await?,
            }
        }
    }

    /// Commits; an ambiguous fault is repeated with the same op, so that what was written the
    /// first time is found and not written twice.
    pub(super) async fn commit(
        &mut self,
        ports: &Ports,
        commit: &Commit,
    ) -> Result<Committing, Refusal> {
        loop {
            match ports.commit(commit).await {
                Ok(reply) => return Ok(reply),
                Err(fault) => self.after(&fault).await?,
            }
        }
    }

    async fn after(&mut self, fault: &Fault) -> Result<(), Refusal> {
        tracing::debug!(%fault, "the store is tried again");
        self.again().await.inspect_err(|_| {
            tracing::error!(%fault, "the store cannot be reached");
        })
    }
}
