//! Hints within one process: a bounded queue.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use futures_util::stream;
use tokio::sync::Notify;

use crate::ports::{Ack, Fault, Hint, Hints, Incoming, Taken};

/// Hints that may wait. What does not fit comes back through the store's `ready` index.
const WAITING: usize = 10_000;

#[derive(Default)]
struct Queue {
    waiting: Mutex<(VecDeque<Hint>, bool)>,
    changed: Notify,
}

impl Queue {
    /// The hints, and whether the backend is closed.
    fn lock(&self) -> MutexGuard<'_, (VecDeque<Hint>, bool)> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn next(&self) -> Option<Hint> {
        let mut changed = pin!(self.changed.notified());
        loop {
            // Before looking, so that no change is missed between.
            changed.as_mut().enable();
            {
                let mut waiting = self.lock();
                if let Some(hint) = waiting.0.pop_front() {
                    return Some(hint);
                }
                if waiting.1 {
                    return None;
                }
            }
            changed.as_mut().await;
            changed.set(self.changed.notified());
        }
    }
}

/// Hands each hint to one taker.
#[derive(Default)]
pub(super) struct LocalHints {
    queue: Arc<Queue>,
}

#[async_trait]
impl Hints for LocalHints {
    async fn put(&self, hint: Hint) -> Result<(), Fault> {
        {
            let mut waiting = self.queue.lock();
            if waiting.0.len() >= WAITING {
                return Err(Fault::new("hint", "the queue of hints is full"));
            }
            waiting.0.push_back(hint);
        }
        // All, not one: a taker that has no free slot does not look, and the hint must not wait
        // for it while another could take it.
        self.queue.changed.notify_waiters();
        Ok(())
    }

    /// There is one worker; the store's `ready` index brings the run back.
    async fn later(&self, _: Taken) {}

    fn take(&self) -> Incoming<Taken> {
        let queue = Arc::clone(&self.queue);
        Box::pin(stream::unfold(queue, |queue| async move {
            let hint = queue.next().await?;
            // What is dropped undone comes back in the same way as what is lost: through `ready`.
            let ack = Ack::none();
            Some((Taken { hint, ack }, queue))
        }))
    }

    fn reachable(&self) -> bool {
        true
    }
}

impl Drop for LocalHints {
    fn drop(&mut self) {
        self.queue.lock().1 = true;
        self.queue.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::StreamExt;
    use uuid::Uuid;

    use super::*;
    use crate::id::RunId;
    use crate::ports::HintKind;

    fn hint(rev: u64) -> Hint {
        Hint {
            run: RunId::new(0, Uuid::nil()),
            rev,
            agent: "asker".into(),
            revision: None,
            kind: HintKind::Start,
            settlement: None,
        }
    }

    #[tokio::test]
    async fn a_full_queue_says_so_and_keeps_what_it_has() {
        let hints = LocalHints::default();
        for rev in 0..WAITING as u64 {
            hints.put(hint(rev)).await.unwrap();
        }
        hints.put(hint(0)).await.unwrap_err();
        let mut taken = hints.take();
        assert_eq!(taken.next().await.unwrap().hint.rev, 0);
        hints.put(hint(7)).await.unwrap();
        drop(hints);
        let rest: Vec<Taken> = taken.collect().await;
        assert_eq!(rest.len(), WAITING);
    }

    #[tokio::test]
    async fn a_taker_that_does_not_look_holds_up_no_other() {
        let hints = LocalHints::default();
        let mut idle = hints.take();
        assert!(futures_util::poll!(idle.next()).is_pending());
        hints.put(hint(1)).await.unwrap();
        assert_eq!(hints.take().next().await.unwrap().hint.rev, 1);
    }
}
