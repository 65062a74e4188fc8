//! The feed within one process.

use std::sync::Arc;

use async_trait::async_trait;

use crate::backends::fan_out::FanOut;
use crate::ports::{Delta, Feed, Heard, Incoming, News};

/// Tells all subscribers in this process, whoever `to` names: there is one process.
#[derive(Default)]
pub(super) struct LocalFeed {
    subscribers: FanOut,
}

#[async_trait]
impl Feed for LocalFeed {
    fn name(&self) -> &'static str {
        "embedded"
    }

    async fn publish(&self, news: Arc<News>, _to: &[String]) {
        self.subscribers.tell(&Heard::News(news));
    }

    fn stream(&self, delta: Arc<Delta>, _to: &[String]) {
        self.subscribers.tell(&Heard::Delta(delta));
    }

    fn subscribe(&self) -> Incoming<Heard> {
        self.subscribers.subscribe()
    }

    fn listening(&self) -> bool {
        true
    }
}
