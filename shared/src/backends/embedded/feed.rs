//! The feed within one process: a bounded queue for each subscriber.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use async_trait::async_trait;
use futures_util::stream;
use tokio::sync::Notify;

use crate::ports::{Delta, Feed, Heard, Incoming, News};

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

/// Tells all subscribers in this process, whoever `to` names: there is one process.
#[derive(Default)]
pub(super) struct LocalFeed {
    subscribers: Mutex<Vec<Weak<Subscriber>>>,
}

impl LocalFeed {
    fn tell(&self, heard: &Heard) {
        self.lock().retain(|subscriber| {
            let subscriber = subscriber.upgrade();
            if let Some(subscriber) = &subscriber {
                subscriber.tell(heard.clone());
            }
            subscriber.is_some()
        });
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Weak<Subscriber>>> {
        self.subscribers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Feed for LocalFeed {
    fn name(&self) -> &'static str {
        "embedded"
    }

    async fn publish(&self, news: Arc<News>, _to: &[String]) {
        self.tell(&Heard::News(news));
    }

    fn stream(&self, delta: Arc<Delta>, _to: &[String]) {
        self.tell(&Heard::Delta(delta));
    }

    fn subscribe(&self) -> Incoming<Heard> {
        let subscriber = Arc::new(Subscriber::default());
        self.lock().push(Arc::downgrade(&subscriber));
        Box::pin(stream::unfold(subscriber, |subscriber| async move {
            let heard = subscriber.next().await?;
            Some((heard, subscriber))
        }))
    }
}

impl Drop for LocalFeed {
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

    fn news(seq: u64) -> Arc<News> {
        Arc::new(News {
            owner: Owner::Person("ada".into()),
            frames: vec![(seq, Arc::from("{}"))],
        })
    }

    fn delta() -> Arc<Delta> {
        Arc::new(Delta {
            owner: Owner::Person("ada".into()),
            run: RunId::new(0, Uuid::nil()),
            turn: 1,
            attempt: 1,
            offset: 0,
            text: "a".into(),
        })
    }

    #[tokio::test]
    async fn an_overflow_is_said_once_where_it_happened_and_then_it_goes_on() {
        let feed = LocalFeed::default();
        let mut heard = feed.subscribe();
        let most = WAITING as u64;
        for seq in 0..most + 5 {
            feed.publish(news(seq), &[]).await;
        }
        for seq in 0..most {
            assert_eq!(heard.next().await, Some(Heard::News(news(seq))));
        }
        feed.publish(news(99), &[]).await;
        assert_eq!(heard.next().await, Some(Heard::Missed));
        assert_eq!(heard.next().await, Some(Heard::News(news(99))));
        drop(feed);
        assert_eq!(heard.next().await, None);
    }

    #[tokio::test]
    async fn streamed_text_leaves_room_for_commits() {
        let feed = LocalFeed::default();
        let mut heard = feed.subscribe();
        for _ in 0..WAITING * 2 {
            feed.stream(delta(), &[]);
        }
        feed.publish(news(1), &[]).await;
        for _ in 0..DELTAS {
            assert_eq!(heard.next().await, Some(Heard::Delta(delta())));
        }
        assert_eq!(heard.next().await, Some(Heard::News(news(1))));
    }

    #[tokio::test]
    async fn who_has_gone_is_forgotten() {
        let feed = LocalFeed::default();
        drop(feed.subscribe());
        feed.publish(news(1), &[]).await;
        assert!(feed.lock().is_empty());
    }
}
