//! Who is connected to this process, and how news reach them. Gateways hold no state of asks:
//! what a socket missed, it reads from the store.

mod lane;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use askwell_shared::id::Owner;
use askwell_shared::ports::{Heard, Incoming, Ports, Store};
use futures_util::StreamExt as _;
use tokio::sync::Notify;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

pub use lane::{Item, Lane, Load, Piece};

/// How often the heads of connected owners are compared with the store (PROTOCOL 4.3).
const COMPARE: Duration = Duration::from_secs(10);

/// The sockets of this process, by owner.
#[derive(Default)]
pub struct Hub {
    owners: Mutex<HashMap<Owner, Vec<Arc<Lane>>>>,
}

/// A socket's place in the hub, given up when it is dropped.
pub struct Registered {
    hub: Arc<Hub>,
    owner: Owner,
    lane: Arc<Lane>,
}

impl Registered {
    /// What arrives for the socket.
    pub fn lane(&self) -> &Lane {
        &self.lane
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        let mut owners = self.hub.owners();
        if let Some(lanes) = owners.get_mut(&self.owner) {
            lanes.retain(|lane| !Arc::ptr_eq(lane, &self.lane));
            if lanes.is_empty() {
                owners.remove(&self.owner);
            }
        }
    }
}

impl Hub {
    /// Registers a socket: from now on its lane gets all that is told of `owner`. Done before
    /// anything is read for it, so that nothing falls between (PROTOCOL 4.1).
    pub fn register(self: &Arc<Self>, owner: Owner, deltas: bool) -> Registered {
        let lane = Arc::new(Lane::new(deltas));
        let mut owners = self.owners();
        owners.entry(owner.clone()).or_default().push(lane.clone());
        Registered {
            hub: self.clone(),
            owner,
            lane,
        }
    }

    /// How many sockets are registered.
    pub fn sockets(&self) -> usize {
        self.owners().values().map(Vec::len).sum()
    }

    /// Passes on what the feed tells and compares heads, until `stop`. Neither waits for the
    /// other: a store that is slow to tell the heads holds up no news.
    pub async fn run(&self, ports: &Ports, feed: Incoming<Heard>, stop: CancellationToken) {
        let missed = Notify::new();
        let both = async { tokio::join!(self.follow(feed, &missed), self.watch(ports, &missed)) };
        tokio::select! {
            () = stop.cancelled() => {}
            _ = both => {}
        }
    }

    /// Passes on what the feed tells. Once it has ended, comparing is what is left.
    async fn follow(&self, mut feed: Incoming<Heard>, missed: &Notify) {
        while let Some(heard) = feed.next().await {
            if self.hear(&heard) {
                missed.notify_one();
            }
        }
        tracing::error!("the feed has ended");
    }

    async fn watch(&self, ports: &Ports, missed: &Notify) {
        let mut compare = interval(COMPARE);
        compare.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = compare.tick() => {}
                () = missed.notified() => {}
            }
            self.compare(&*ports.store).await;
        }
    }

    /// Passes on one message; `true` when heads must be compared now.
    fn hear(&self, heard: &Heard) -> bool {
        match heard {
            Heard::News(news) => {
                for lane in self.lanes(&news.owner) {
                    lane.push(&news.frames);
                }
                false
            }
            Heard::Delta(delta) => {
                for lane in self.lanes(&delta.owner) {
                    lane.stream(delta);
                }
                false
            }
            Heard::Missed => true,
        }
    }

    /// Tells every socket its owner's head, so that it reads what it has not got.
    async fn compare(&self, store: &dyn Store) {
        let owners: Vec<Owner> = self.owners().keys().cloned().collect();
        if owners.is_empty() {
            return;
        }
        match store.heads(&owners).await {
            Ok(heads) => {
                for (owner, head) in owners.iter().zip(heads) {
                    for lane in self.lanes(owner) {
                        lane.head(head);
                    }
                }
            }
            Err(fault) => tracing::warn!(%fault, "heads were not compared"),
        }
    }

    fn lanes(&self, owner: &Owner) -> Vec<Arc<Lane>> {
        self.owners().get(owner).cloned().unwrap_or_default()
    }

    fn owners(&self) -> MutexGuard<'_, HashMap<Owner, Vec<Arc<Lane>>>> {
        self.owners.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use askwell_shared::ports::News;

    fn owner(name: &str) -> Owner {
        Owner::Person(name.into())
    }

    fn news(name: &str, seq: u64) -> Heard {
        Heard::News(Arc::new(News {
            owner: owner(name),
            frames: vec![(seq, Arc::from("{}"))],
        }))
    }

    #[test]
    fn news_reach_their_owner_alone() {
        let hub = Arc::new(Hub::default());
        let one = hub.register(owner("ann"), true);
        let two = hub.register(owner("ann"), true);
        let other = hub.register(owner("bob"), true);
        assert!(!hub.hear(&news("ann", 1)));
        for (registered, expected) in [(&one, 1), (&two, 1), (&other, 0)] {
            let load = registered.lane().take();
            assert_eq!(load.items.len(), expected);
        }
        assert!(hub.hear(&Heard::Missed));
    }

    #[test]
    fn a_socket_that_is_gone_leaves_nothing_behind() {
        let hub = Arc::new(Hub::default());
        let one = hub.register(owner("ann"), true);
        let two = hub.register(owner("ann"), true);
        assert_eq!(hub.sockets(), 2);
        drop(one);
        assert_eq!(hub.sockets(), 1);
        drop(two);
        assert_eq!(hub.sockets(), 0);
        assert!(hub.owners().is_empty());
    }
}
