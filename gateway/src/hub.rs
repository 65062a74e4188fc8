//! Who is connected to this process, and how news reach them. Gateways hold no state of asks:
//! what a socket missed, it reads from the store.

mod lane;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use askwell_shared::id::Owner;
use askwell_shared::ports::{Fault, Heard, Incoming, Ports, Store};
use futures_util::StreamExt as _;
use tokio::sync::Notify;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

pub use lane::{Item, Lane, Load, Piece};

/// How often the heads of connected owners are compared with the store (PROTOCOL 4.3).
const COMPARE: Duration = Duration::from_secs(10);

/// How often while the feed is known to be down.
const COMPARE_UNHEARD: Duration = Duration::from_secs(1);

/// For how long an owner is written down as online here; rewritten at a third (DESIGN 4).
const PRESENCE: Duration = Duration::from_mins(1);

/// The sockets of this process, by owner.
#[derive(Default)]
pub struct Hub {
    owners: Mutex<HashMap<Owner, Vec<Arc<Lane>>>>,
}

/// Writes down that these owners are online at this gateway. Done before anything is read for a
/// socket (PROTOCOL 4.1): what is committed after it is told to this gateway.
pub async fn arrive(ports: &Ports, owners: &[Owner]) -> Result<(), Fault> {
    ports
        .store
        .arrive(ports.feed.name(), owners, PRESENCE)
        .await
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
        let mut tick = interval(COMPARE_UNHEARD);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut compared = Instant::now();
        let mut present = Instant::now();
        loop {
            let missed = tokio::select! {
                _ = tick.tick() => false,
                () = missed.notified() => true,
            };
            // A new session of the feed hears only what is sent from now on, and only of owners
            // that are known to be here: presence first, then heads.
            if missed || present.elapsed() >= PRESENCE / 3 {
                present = Instant::now();
                self.be_present(ports).await;
            }
            if missed || !ports.feed.listening() || compared.elapsed() >= COMPARE {
                compared = Instant::now();
                self.compare(&*ports.store).await;
            }
        }
    }

    async fn be_present(&self, ports: &Ports) {
        let owners: Vec<Owner> = self.owners().keys().cloned().collect();
        if owners.is_empty() {
            return;
        }
        if let Err(fault) = arrive(ports, &owners).await {
            tracing::warn!(%fault, "presence was not written");
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
            run: askwell_shared::id::RunId::new(0, uuid::Uuid::nil()),
            agent: "asker".into(),
            keys: Vec::new(),
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
