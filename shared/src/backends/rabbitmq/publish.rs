//! What this process says: hints, each confirmed; news and streamed text, as well as they go.
//!
//! One owner for each channel. Hints go out in batches, and a batch waits for all its confirms:
//! the client may hand a returned message to the wrong one of several confirms that come at once,
//! but never to one of another batch. What was returned is known by its id.

use std::collections::{HashSet, VecDeque};
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt;
use futures_util::future::join_all;
use futures_util::stream::FuturesOrdered;
use lapin::options::{BasicPublishOptions, ConfirmSelectOptions};
use lapin::types::{AMQPValue, FieldArray, FieldTable};
use lapin::{BasicProperties, Channel, Confirmation};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout};

use super::broker_session::{Ended, LATE, Role, Session, Standing, in_time};
use super::message;
use super::topology::{self, EVENTS, JOBS, LATER, gateway_key};
use crate::ports::{Delta, Fault, News};

/// Hints that may wait for their batch.
const HINTS: usize = 4_096;

/// Hints of one batch. More gains nothing (measured: 16 to 64 is enough), less wastes most.
const BATCH: usize = 64;

/// How long a hint waits for its confirm before its giver is told that it was not taken. Shorter
/// than what ends a session: a person may wait for the giver.
const PUT_WAIT: Duration = Duration::from_secs(2);

/// News and pieces of text that may wait.
const WAITING: usize = 1_024;

/// Streamed text is dropped where less room than this is left, so that commits find some.
const ROOM: usize = WAITING / 2;

/// News and pieces of text that may be unconfirmed.
const WINDOW: usize = 256;

/// How long a commit with an ask waits for room.
const ROOM_WAIT: Duration = Duration::from_secs(1);

/// News of an ask that a lost session did not confirm are sent again if they are younger than
/// this; afterwards every gateway has found them by comparing heads (PROTOCOL 4).
const AGAIN: Duration = Duration::from_secs(10);

/// The header that counts how often a hint was given back.
pub(super) const TRIES: &str = "tries";

/// Persistent, as AMQP numbers it.
const PERSISTENT: u8 = 2;

/// The ends of the two queues; what is put in is sent by the [`Outgoing`] role.
#[derive(Clone)]
pub(super) struct Publisher {
    name: Arc<str>,
    ids: Arc<AtomicU64>,
    hints: mpsc::Sender<HintOut>,
    events: mpsc::Sender<EventOut>,
    standing: Arc<Standing>,
}

struct HintOut {
    exchange: &'static str,
    key: &'static str,
    id: String,
    tries: u32,
    body: Vec<u8>,
    told: oneshot::Sender<Result<(), &'static str>>,
}

struct EventOut {
    keys: Vec<String>,
    gateways: Vec<String>,
    body: Vec<u8>,
    persistent: bool,
    /// Until when it is worth sending again.
    again: Option<Instant>,
}

/// A publisher and the role that does its work.
pub(super) fn role(name: &str) -> (Publisher, Outgoing) {
    let (put_hint, hints) = mpsc::channel(HINTS);
    let (put_event, events) = mpsc::channel(WAITING);
    let publisher = Publisher {
        name: Arc::from(name),
        ids: Arc::default(),
        hints: put_hint,
        events: put_event,
        standing: Arc::new(Standing::new("publish")),
    };
    let outgoing = Outgoing {
        hints,
        events,
        sent: VecDeque::new(),
    };
    (publisher, outgoing)
}

impl Publisher {
    /// How the publishing session stands.
    pub(super) fn standing(&self) -> &Arc<Standing> {
        &self.standing
    }

    /// Gives a hint to some worker.
    pub(super) async fn hint(&self, key: &'static str, body: Vec<u8>) -> Result<(), Fault> {
        self.put(JOBS, key, 0, body).await
    }

    /// Puts a hint that was delivered here once more at the end of its queue.
    pub(super) async fn put_again(
        &self,
        key: &'static str,
        body: Vec<u8>,
        tries: u32,
    ) -> Result<(), Fault> {
        self.put(JOBS, key, tries, body).await
    }

    /// Gives a hint to some worker a little later. `tries` counts this time too.
    pub(super) async fn give_back(
        &self,
        key: &'static str,
        body: Vec<u8>,
        tries: u32,
    ) -> Result<(), Fault> {
        self.put(LATER, key, tries, body).await
    }

    async fn put(
        &self,
        exchange: &'static str,
        key: &'static str,
        tries: u32,
        body: Vec<u8>,
    ) -> Result<(), Fault> {
        let refused = |why: &'static str| Err(Fault::new("hint", why));
        if !self.standing.is_serving() {
            return refused("there is no session with the broker");
        }
        let number = self.ids.fetch_add(1, Ordering::Relaxed);
        let (told, hears) = oneshot::channel();
        let hint = HintOut {
            exchange,
            key,
            id: format!("{}-{number}", self.name),
            tries,
            body,
            told,
        };
        if self.hints.try_send(hint).is_err() {
            return refused("too many hints wait for the broker");
        }
        match timeout(PUT_WAIT, hears).await {
            Ok(Ok(Ok(()))) => Ok(()),
            Ok(Ok(Err(why))) => refused(why),
            Ok(Err(_)) => refused("the session with the broker ended before the confirm"),
            Err(_) => refused("not confirmed in time"),
        }
    }

    /// Tells of a commit. Without a session it is left to the comparing of heads.
    pub(super) async fn news(&self, news: &News, to: &[String]) {
        if !self.standing.is_serving() {
            return;
        }
        let Ok(body) = message::write_news(news) else {
            return;
        };
        let asks = news.keys.iter().any(|key| key.starts_with("ask."));
        let event = EventOut {
            keys: news.keys.clone(),
            gateways: to.iter().map(|name| gateway_key(name)).collect(),
            body,
            persistent: true,
            again: asks.then(|| Instant::now() + AGAIN),
        };
        let taken = if asks {
            self.events.send_timeout(event, ROOM_WAIT).await.is_ok()
        } else {
            self.events.try_send(event).is_ok()
        };
        if !taken {
            tracing::debug!(run = %news.run, "news dropped: the broker is slow");
        }
    }

    /// Tells of streamed text where there is room.
    pub(super) fn delta(&self, delta: &Delta, to: &[String]) {
        let Some((first, others)) = to.split_first() else {
            return;
        };
        if !self.standing.is_serving() || self.events.capacity() < ROOM {
            return;
        }
        if let Ok(body) = message::write_delta(delta) {
            let _ = self.events.try_send(EventOut {
                // For gateways alone: nobody else chooses by these keys.
                keys: vec![gateway_key(first)],
                gateways: others.iter().map(|name| gateway_key(name)).collect(),
                body,
                persistent: false,
                again: None,
            });
        }
    }
}

/// The role that publishes.
pub(super) struct Outgoing {
    hints: mpsc::Receiver<HintOut>,
    events: mpsc::Receiver<EventOut>,
    /// News that are not yet confirmed, in the order in which they were sent.
    sent: VecDeque<EventOut>,
}

#[async_trait]
impl Role for Outgoing {
    async fn serve(&mut self, session: &Session<'_>) -> Ended {
        let (hints, events) = match channels(session).await {
            Ok(channels) => channels,
            Err(ended) => return ended,
        };
        session.begin();
        let Outgoing {
            hints: put_hints,
            events: put_events,
            sent,
        } = self;
        let ended = tokio::select! {
            ended = send_hints(&hints, put_hints, session) => ended,
            ended = send_events(&events, put_events, sent, session) => ended,
        };
        match ended {
            Ok(never) => match never {},
            Err(ended) => ended,
        }
    }

    /// Whoever still waits is told, by dropping the other end.
    fn ended(&mut self) {
        while self.hints.try_recv().is_ok() {}
        while let Ok(event) = self.events.try_recv() {
            self.sent.push_back(event);
        }
        let now = Instant::now();
        self.sent
            .retain(|event| event.again.is_some_and(|until| now < until));
    }
}

async fn channels(session: &Session<'_>) -> Result<(Channel, Channel), Ended> {
    let (hints, events) = (session.channel().await?, session.channel().await?);
    in_time("declaring", topology::jobs(&hints)).await?;
    in_time("declaring", topology::events(&events)).await?;
    for channel in [&hints, &events] {
        let confirms = channel.confirm_select(ConfirmSelectOptions::default());
        in_time("confirms", confirms).await?;
    }
    Ok((hints, events))
}

fn late(what: &str) -> Ended {
    Ended::because(format!("{what}: no confirm within {LATE:?}"))
}

async fn send_hints(
    channel: &Channel,
    put: &mut mpsc::Receiver<HintOut>,
    session: &Session<'_>,
) -> Result<Infallible, Ended> {
    let mut batch = Vec::with_capacity(BATCH);
    loop {
        if put.recv_many(&mut batch, BATCH).await == 0 {
            return Err(Ended::because("nobody publishes any more"));
        }
        timeout(LATE, send_batch(channel, &mut batch))
            .await
            .map_err(|_| late("hints"))??;
        session.prove();
    }
}

/// Sends a batch and tells each giver what became of their hint. Whoever is not told has a hint of
/// unknown fate; they are told so when the batch is dropped.
async fn send_batch(channel: &Channel, batch: &mut Vec<HintOut>) -> Result<(), Ended> {
    let mut confirms = Vec::with_capacity(batch.len());
    for hint in batch.iter() {
        let mut headers = FieldTable::default();
        if hint.tries > 0 {
            headers.insert(TRIES.into(), AMQPValue::LongUInt(hint.tries));
        }
        let properties = BasicProperties::default()
            .with_content_type("application/json".into())
            .with_delivery_mode(PERSISTENT)
            .with_message_id(hint.id.as_str().into())
            .with_type("askwell.hint".into())
            .with_headers(headers);
        let options = BasicPublishOptions {
            mandatory: true,
            ..BasicPublishOptions::default()
        };
        let (exchange, key) = (hint.exchange.into(), hint.key.into());
        let sent = channel.basic_publish(exchange, key, options, &hint.body, properties);
        confirms.push(sent.await?);
    }
    let confirms = join_all(confirms).await;
    let mut returned: HashSet<String> = HashSet::new();
    let mut outcomes = Vec::with_capacity(batch.len());
    let mut broken = None;
    for confirm in confirms {
        let (taken, message) = match confirm {
            Ok(Confirmation::Ack(message)) => (true, message),
            Ok(Confirmation::Nack(message)) => (false, message),
            Ok(Confirmation::NotRequested) => (false, None),
            Err(fault) => {
                broken = Some(fault);
                (false, None)
            }
        };
        outcomes.push(taken);
        let id = message.and_then(|message| message.properties.message_id().clone());
        returned.extend(id.map(String::from));
    }
    if let Some(fault) = broken {
        // Some may have been taken, but with a confirm missing a return may be missing as well.
        batch.clear();
        return Err(fault.into());
    }
    let unroutable = !returned.is_empty();
    for (hint, taken) in batch.drain(..).zip(outcomes) {
        let outcome = if returned.contains(&hint.id) {
            Err("the queue is not there")
        } else if taken {
            Ok(())
        } else {
            Err("the queue takes no more")
        };
        let _ = hint.told.send(outcome);
    }
    if unroutable {
        // The next session declares the queues anew.
        return Err(Ended::because("a queue is missing"));
    }
    Ok(())
}

async fn send_events(
    channel: &Channel,
    put: &mut mpsc::Receiver<EventOut>,
    sent: &mut VecDeque<EventOut>,
    session: &Session<'_>,
) -> Result<Infallible, Ended> {
    let mut confirms = FuturesOrdered::new();
    for event in sent.iter() {
        let confirm = send_event(channel, event).await?;
        confirms.push_back(timeout(LATE, confirm));
    }
    loop {
        tokio::select! {
            biased;
            Some(confirm) = confirms.next(), if !confirms.is_empty() => {
                confirm.map_err(|_| late("news"))??;
                sent.pop_front();
                session.prove();
            }
            event = put.recv(), if confirms.len() < WINDOW => {
                let Some(event) = event else {
                    return Err(Ended::because("nobody publishes any more"));
                };
                // Before it is sent: this may be dropped while it is.
                sent.push_back(event);
                if let Some(event) = sent.back() {
                    let confirm = send_event(channel, event).await?;
                    confirms.push_back(timeout(LATE, confirm));
                }
            }
        }
    }
}

async fn send_event(channel: &Channel, event: &EventOut) -> Result<lapin::PublisherConfirm, Ended> {
    let list = |keys: &[String]| {
        let keys = keys.iter();
        let keys = keys.map(|key| AMQPValue::LongString(key.as_str().into()));
        AMQPValue::FieldArray(FieldArray::from(keys.collect::<Vec<_>>()))
    };
    let (key, others) = match event.keys.split_first() {
        Some((key, others)) => (key.as_str(), others),
        None => ("", &[][..]),
    };
    let mut headers = FieldTable::default();
    if !others.is_empty() {
        headers.insert("CC".into(), list(others));
    }
    if !event.gateways.is_empty() {
        headers.insert("BCC".into(), list(&event.gateways));
    }
    let kind = if event.persistent { "news" } else { "delta" };
    let properties = BasicProperties::default()
        .with_content_type("application/json".into())
        .with_delivery_mode(if event.persistent { PERSISTENT } else { 1 })
        .with_type(format!("askwell.{kind}").into())
        .with_headers(headers);
    let options = BasicPublishOptions::default();
    let sent = channel.basic_publish(EVENTS.into(), key.into(), options, &event.body, properties);
    in_time("news", sent).await
}
