//! Hints and the feed over RabbitMQ (DESIGN 5). In reading order:
//!
//! - `topology`: exchanges and queues, declared at the begin of every session.
//! - `broker_session`: one connection and its life; connect, serve, drop, again, for ever.
//! - `message`: what stands in messages.
//! - `publish`: hints, confirmed; news and streamed text. `jobs`: hints that arrive, by way of the
//!   `shelf`, where takers find them. `events`: news that arrives.
//!
//! Nothing here decides anything, and nothing here must arrive: hints come again from the store's
//! `ready` index, and screens are repaired from the store.

mod broker_session;
mod events;
mod jobs;
mod message;
mod publish;
mod shelf;
mod topology;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use lapin::uri::AMQPUri;
use tokio::sync::watch;
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::backends::fan_out::FanOut;
use crate::ports::{Delta, Fault, Feed, Heard, Hint, Hints, Incoming, News, Taken};
use crate::url::Url;

use broker_session::{Standing, supervise};
use publish::Publisher;
use shelf::Shelf;

/// After so long without the broker a worker takes its own hints: it claims `ready` runs from the
/// store directly (DESIGN 5).
const ALONE_AFTER: Duration = Duration::from_secs(10);

/// How often a hint is given back before it is dropped; the `ready` index brings its run back.
const GIVEN_BACK: u32 = 5;

/// The broker's address, which lapin cannot read.
#[derive(Debug, thiserror::Error)]
#[error("the broker's URL: {0}")]
pub struct BadUrl(String);

/// Hints and the feed, as one broker carries them.
pub struct RabbitMq {
    /// "This run may be claimable."
    pub hints: Arc<dyn Hints>,
    /// "This has happened."
    pub feed: Arc<dyn Feed>,
}

/// Makes both ports and begins to connect. A broker that is away is no fault: it is tried for
/// ever, and told in one line when that begins and one when it ends. Must be called within a
/// runtime. Hints are consumed once somebody takes them, news once somebody subscribes.
pub fn open(url: &Url) -> Result<RabbitMq, BadUrl> {
    let mut uri: AMQPUri = url.expose().parse().map_err(BadUrl)?;
    // The server's default is 60 s, with which a dead peer is noticed after two minutes.
    uri.query.heartbeat.get_or_insert(10);
    let uri = Arc::new(uri);
    let name = Uuid::new_v4().simple().to_string();
    let (taking, takes) = watch::channel(false);
    let (hearing, hears) = watch::channel(false);
    let (jobs, events) = (
        Arc::new(Standing::new("jobs")),
        Arc::new(Standing::new("events")),
    );
    let shelf = Arc::new(Shelf::default());
    let told = Arc::new(FanOut::default());
    let mut roles = JoinSet::new();
    let (publisher, outgoing) = publish::role(&name);
    let always = watch::channel(true).1;
    roles.spawn(supervise(
        Arc::clone(&uri),
        Arc::clone(publisher.standing()),
        always,
        outgoing,
    ));
    let incoming = jobs::Jobs::new(Arc::clone(&shelf), publisher.clone());
    roles.spawn(supervise(
        Arc::clone(&uri),
        Arc::clone(&jobs),
        takes,
        incoming,
    ));
    let listener = events::Events::new(&name, Arc::clone(&told));
    roles.spawn(supervise(uri, Arc::clone(&events), hears, listener));
    let broker = Arc::new(Broker {
        name,
        publisher,
        jobs,
        events,
        shelf,
        told,
        taking,
        hearing,
        _roles: roles,
    });
    Ok(RabbitMq {
        hints: Arc::clone(&broker) as Arc<dyn Hints>,
        feed: broker,
    })
}

/// Both ports. Dropping the last of them ends the sessions and the streams.
struct Broker {
    name: String,
    publisher: Publisher,
    jobs: Arc<Standing>,
    events: Arc<Standing>,
    shelf: Arc<Shelf>,
    told: Arc<FanOut>,
    taking: watch::Sender<bool>,
    hearing: watch::Sender<bool>,
    _roles: JoinSet<()>,
}

impl Broker {
    /// Whether this process takes hints and has been without the broker for long.
    fn alone(&self) -> bool {
        let away = |standing: &Standing| standing.away() >= ALONE_AFTER;
        self.shelf.has_takers() && (away(&self.jobs) || away(self.publisher.standing()))
    }
}

#[async_trait]
impl Hints for Broker {
    async fn put(&self, hint: Hint) -> Result<(), Fault> {
        if self.alone() {
            return self.shelf.put_own(hint);
        }
        let body = message::write_hint(&hint).map_err(|fault| Fault::new("hint", fault))?;
        self.publisher.hint(message::key(hint.kind), body).await
    }

    async fn later(&self, taken: Taken) {
        let Taken { hint, ack } = taken;
        let tries = ack.tries() + 1;
        if let Ok(body) = message::write_hint(&hint) {
            let given = self
                .publisher
                .give_back(message::key(hint.kind), body, tries)
                .await;
            if let Err(fault) = given {
                tracing::debug!(run = %hint.run, %fault, "hint dropped");
            }
        }
        // Whatever became of it: the `ready` index brings the run back.
        ack.done();
    }

    fn take(&self) -> Incoming<Taken> {
        self.taking.send_replace(true);
        self.shelf.take()
    }

    fn reachable(&self) -> bool {
        self.publisher.standing().is_serving() || self.alone()
    }
}

#[async_trait]
impl Feed for Broker {
    fn name(&self) -> &str {
        &self.name
    }

    async fn publish(&self, news: Arc<News>, to: &[String]) {
        self.publisher.news(&news, to).await;
    }

    fn stream(&self, delta: Arc<Delta>, to: &[String]) {
        self.publisher.delta(&delta, to);
    }

    fn subscribe(&self) -> Incoming<Heard> {
        self.hearing.send_replace(true);
        self.told.subscribe()
    }

    fn listening(&self) -> bool {
        self.events.is_serving()
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.shelf.close();
    }
}
