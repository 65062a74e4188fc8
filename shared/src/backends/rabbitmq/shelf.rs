//! Where hints lie until a taker with a free slot comes for them: delivered ones, at most as many
//! as are prefetched, and this worker's own.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::stream;
use lapin::Acker;
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, sleep_until};

use crate::ports::{Ack, Fault, Hint, HintKind, Incoming, Taken};

/// This worker's own hints that may lie here.
const OWN: usize = 1_024;

/// A hint that the broker delivered.
pub(super) struct Delivered {
    pub(super) hint: Hint,
    /// What must reach the broker for it, now or later.
    pub(super) debt: Debt,
    /// Where the session hears what became of it.
    pub(super) hears: mpsc::UnboundedSender<(Debt, bool)>,
}

/// A delivery that is not yet acknowledged.
pub(super) struct Debt {
    pub(super) acker: Acker,
    pub(super) key: &'static str,
    pub(super) body: Vec<u8>,
    /// How often it was given back before.
    pub(super) tries: u32,
}

enum Item {
    Delivered(Delivered),
    Own(Hint),
}

#[derive(Default)]
pub(super) struct Shelf {
    lying: Mutex<Lying>,
    /// For takers: something lies here, or all is closed.
    changed: Notify,
    /// For the session: a taker has come, or has left.
    demand: Notify,
}

struct Lying {
    resume: VecDeque<Item>,
    start: VecDeque<Item>,
    own: usize,
    takers: usize,
    waiting: usize,
    /// When a taker last came, left or took something.
    asked: Instant,
    closed: bool,
}

impl Default for Lying {
    fn default() -> Self {
        Lying {
            resume: VecDeque::new(),
            start: VecDeque::new(),
            own: 0,
            takers: 0,
            waiting: 0,
            asked: Instant::now(),
            closed: false,
        }
    }
}

impl Lying {
    fn of(&mut self, kind: HintKind) -> &mut VecDeque<Item> {
        match kind {
            HintKind::Resume => &mut self.resume,
            HintKind::Start => &mut self.start,
        }
    }

    fn pop(&mut self) -> Option<Taken> {
        // A person waits for what resumes.
        let item = self.resume.pop_front().or_else(|| self.start.pop_front())?;
        self.asked = Instant::now();
        Some(match item {
            Item::Own(hint) => {
                self.own -= 1;
                let ack = Ack::none();
                Taken { hint, ack }
            }
            Item::Delivered(Delivered { hint, debt, hears }) => {
                let ack = Ack::new(debt.tries, move |done| {
                    // Without its session the broker delivers it again.
                    let _ = hears.send((debt, done));
                });
                Taken { hint, ack }
            }
        })
    }
}

impl Shelf {
    fn lock(&self) -> MutexGuard<'_, Lying> {
        self.lying.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The hints, for one taker.
    pub(super) fn take(self: &Arc<Self>) -> Incoming<Taken> {
        self.lock().takers += 1;
        let taker = Taker(Arc::clone(self));
        Box::pin(stream::unfold(taker, |at| async move {
            let hint = at.0.next().await?;
            Some((hint, at))
        }))
    }

    /// Whether anybody in this process takes hints.
    pub(super) fn has_takers(&self) -> bool {
        self.lock().takers > 0
    }

    async fn next(&self) -> Option<Taken> {
        let mut changed = pin!(self.changed.notified());
        let mut waiting = None;
        loop {
            // Before looking, so that no change is missed between.
            changed.as_mut().enable();
            {
                let mut lying = self.lock();
                if let Some(taken) = lying.pop() {
                    return Some(taken);
                }
                if lying.closed {
                    return None;
                }
            }
            waiting.get_or_insert_with(|| Waiting::new(self));
            changed.as_mut().await;
            changed.set(self.changed.notified());
        }
    }

    /// Lays down a hint of this process's own.
    pub(super) fn put_own(&self, hint: Hint) -> Result<(), Fault> {
        {
            let mut lying = self.lock();
            if lying.own >= OWN {
                return Err(Fault::new("hint", "too many hints wait for this worker"));
            }
            lying.own += 1;
            lying.of(hint.kind).push_back(Item::Own(hint));
        }
        self.changed.notify_waiters();
        Ok(())
    }

    /// Lays down what was delivered.
    pub(super) fn put(&self, delivered: Delivered) {
        let kind = delivered.hint.kind;
        let item = Item::Delivered(delivered);
        self.lock().of(kind).push_back(item);
        self.changed.notify_waiters();
    }

    /// Takes back all that was delivered and that nobody has taken.
    pub(super) fn take_back(&self) -> Vec<Delivered> {
        let mut lying = self.lock();
        let Lying { resume, start, .. } = &mut *lying;
        let mut back = Vec::new();
        for items in [resume, start] {
            for item in std::mem::take(items) {
                match item {
                    Item::Delivered(delivered) => back.push(delivered),
                    own @ Item::Own(_) => items.push_back(own),
                }
            }
        }
        back
    }

    /// Whether anything lies here that was delivered.
    pub(super) fn holds_deliveries(&self) -> bool {
        let lying = self.lock();
        let mut items = lying.resume.iter().chain(&lying.start);
        items.any(|item| matches!(item, Item::Delivered(_)))
    }

    /// Waits until a taker waits.
    pub(super) async fn wanted(&self) {
        while self.lock().waiting == 0 {
            self.demand.notified().await;
        }
    }

    /// Waits until nobody has wanted anything for `time`.
    pub(super) async fn quiet(&self, time: Duration) {
        loop {
            let until = {
                let lying = self.lock();
                (lying.waiting == 0).then(|| lying.asked + time)
            };
            match until {
                None => self.demand.notified().await,
                Some(until) if until <= Instant::now() => return,
                Some(until) => sleep_until(until).await,
            }
        }
    }

    /// Ends all streams.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_waiters();
    }
}

/// A stream of hints, while it is there.
struct Taker(Arc<Shelf>);

impl Drop for Taker {
    fn drop(&mut self) {
        self.0.lock().takers -= 1;
    }
}

/// A taker that looks and finds nothing: a free slot.
struct Waiting<'a>(&'a Shelf);

impl<'a> Waiting<'a> {
    fn new(shelf: &'a Shelf) -> Self {
        shelf.lock().waiting += 1;
        shelf.demand.notify_one();
        Waiting(shelf)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut lying = self.0.lock();
        lying.waiting -= 1;
        lying.asked = Instant::now();
        drop(lying);
        self.0.demand.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{FutureExt, StreamExt};
    use uuid::Uuid;

    use super::*;
    use crate::id::RunId;

    const WAIT: Duration = Duration::from_millis(50);

    fn hint(kind: HintKind, rev: u64) -> Hint {
        Hint {
            run: RunId::new(0, Uuid::nil()),
            rev,
            agent: "asker".into(),
            revision: None,
            kind,
            settlement: None,
        }
    }

    #[tokio::test]
    async fn what_resumes_is_taken_first() {
        let shelf = Arc::new(Shelf::default());
        shelf.put_own(hint(HintKind::Start, 1)).unwrap();
        shelf.put_own(hint(HintKind::Resume, 2)).unwrap();
        let mut takes = shelf.take();
        assert_eq!(takes.next().await.unwrap().hint.rev, 2);
        assert_eq!(takes.next().await.unwrap().hint.rev, 1);
        shelf.close();
        assert!(takes.next().await.is_none());
    }

    #[tokio::test]
    async fn it_is_quiet_when_nobody_waits_or_takes() {
        let shelf = Arc::new(Shelf::default());
        let mut takes = shelf.take();
        assert!(futures_util::poll!(takes.next()).is_pending());
        let quiet = shelf.quiet(Duration::ZERO);
        assert!(quiet.now_or_never().is_none(), "one waits");
        shelf.wanted().await;
        // Taken: the taker is busy, its slot no longer free.
        shelf.put_own(hint(HintKind::Start, 1)).unwrap();
        takes.next().await.unwrap();
        assert!(shelf.wanted().now_or_never().is_none());
        let since = Instant::now();
        shelf.quiet(WAIT).await;
        assert!(since.elapsed() >= WAIT);
        drop(takes);
        assert!(!shelf.has_takers());
    }

    #[tokio::test]
    async fn a_worker_keeps_no_more_of_its_own_than_it_may() {
        let shelf = Arc::new(Shelf::default());
        for rev in 0..OWN as u64 {
            shelf.put_own(hint(HintKind::Start, rev)).unwrap();
        }
        shelf.put_own(hint(HintKind::Start, 0)).unwrap_err();
        assert!(!shelf.holds_deliveries() && shelf.take_back().is_empty());
        shelf.take().next().await.unwrap();
        shelf.put_own(hint(HintKind::Start, 0)).unwrap();
    }
}
