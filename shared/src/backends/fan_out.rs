//! What is told, on its way to the subscribers of this process: a bounded queue for each.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use futures_util::stream;
use tokio::sync::Notify;

use crate::ports::{Heard, Incoming};

/// What may wait for one subscriber.
const WAITING: usize = 1_024;

/// Streamed text is dropped beyond this, so that commits find room.
const DELTAS: usize = WAITING / 2;

#[derive(Default)]
struct Subscriber {
    waiting: Mutex<(VecDeque<Heard>, bool)>,
    changed: Notify,
}

impl Subscriber {
    /// What waits, and whether the backend is closed.
    fn lock(&self) -> MutexGuard<'_, (VecDeque<Heard>, bool)> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, heard: Heard) {
        {
            let waiting = &mut self.lock().0;
            match &heard {
                // Not said: the store has nothing to repair it from, the turn's message does.
                Heard::Delta(_) if waiting.len() >= DELTAS => return,
                _ if waiting.len() < WAITING => waiting.push_back(heard),
                _ if waiting.back() == Some(&Heard::Missed) => return,
                _ => waiting.push_back(Heard::Missed),
            }
        }
        self.changed.notify_waiters();
    }

    async fn next(&self) -> Option<Heard> {
        let mut changed = pin!(self.changed.notified());
        loop {
            // Before looking, so that no change is missed between.
            changed.as_mut().enable();
            {
                let mut waiting = self.lock();
                if let Some(heard) = waiting.0.pop_front() {
                    return Some(heard);
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

/// Tells all subscribers in this process.
#[derive(Default)]
pub(super) struct FanOut {
    subscribers: Mutex<Vec<Weak<Subscriber>>>,
}

impl FanOut {
    pub(super) fn tell(&self, heard: &Heard) {
        self.lock().retain(|subscriber| {
            let subscriber = subscriber.upgrade();
            if let Some(subscriber) = &subscriber {
                subscriber.tell(heard.clone());
            }
            subscriber.is_some()
        });
    }

    pub(super) fn subscribe(&self) -> Incoming<Heard> {
        let subscriber = Arc::new(Subscriber::default());
        self.lock().push(Arc::downgrade(&subscriber));
        Box::pin(stream::unfold(subscriber, |subscriber| async move {
            let heard = subscriber.next().await?;
            Some((heard, subscriber))
        }))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Weak<Subscriber>>> {
        self.subscribers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for FanOut {
    fn drop(&mut self) {
        for subscriber in self.lock().iter().filter_map(Weak::upgrade) {
            subscriber.lock().1 = true;
            subscriber.changed.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::StreamExt;
    use uuid::Uuid;

    use super::*;
    use crate::id::{Owner, RunId};
    use crate::ports::{Delta, News};

    fn news(seq: u64) -> Heard {
        Heard::News(Arc::new(News {
            owner: Owner::Person("ada".into()),
            run: RunId::new(0, Uuid::nil()),
            agent: "asker".into(),
            keys: Vec::new(),
            frames: vec![(seq, Arc::from("{}"))],
        }))
    }

    fn delta() -> Heard {
        Heard::Delta(Arc::new(Delta {
            owner: Owner::Person("ada".into()),
            run: RunId::new(0, Uuid::nil()),
            turn: 1,
            attempt: 1,
            offset: 0,
            text: "a".into(),
        }))
    }

    #[tokio::test]
    async fn an_overflow_is_said_once_where_it_happened_and_then_it_goes_on() {
        let feed = FanOut::default();
        let mut heard = feed.subscribe();
        let most = WAITING as u64;
        for seq in 0..most + 5 {
            feed.tell(&news(seq));
        }
        for seq in 0..most {
            assert_eq!(heard.next().await, Some(news(seq)));
        }
        feed.tell(&news(99));
        assert_eq!(heard.next().await, Some(Heard::Missed));
        assert_eq!(heard.next().await, Some(news(99)));
        drop(feed);
        assert_eq!(heard.next().await, None);
    }

    #[tokio::test]
    async fn streamed_text_leaves_room_for_commits() {
        let feed = FanOut::default();
        let mut heard = feed.subscribe();
        for _ in 0..WAITING * 2 {
            feed.tell(&delta());
        }
        feed.tell(&news(1));
        for _ in 0..DELTAS {
            assert_eq!(heard.next().await, Some(delta()));
        }
        assert_eq!(heard.next().await, Some(news(1)));
    }

    #[tokio::test]
    async fn who_has_gone_is_forgotten() {
        let feed = FanOut::default();
        drop(feed.subscribe());
        feed.tell(&news(1));
        assert!(feed.lock().is_empty());
    }
}
