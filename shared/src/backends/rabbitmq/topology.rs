//! Exchanges and queues. Arguments of a queue cannot be changed: another set of them means another
//! name, hence the `.v1`. The same declares work on RabbitMQ 3.10 and 4.x.

use lapin::options::{ExchangeDeclareOptions, QueueBindOptions, QueueDeclareOptions};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{Channel, ExchangeKind, Result};

use super::message::{RESUME, START};

/// Hints, by the keys `start` and `resume`.
pub(super) const JOBS: &str = "askwell.jobs";

/// Hints that wait a second; they keep their key, by which they go back to [`JOBS`].
pub(super) const LATER: &str = "askwell.later";

/// News and streamed text.
pub(super) const EVENTS: &str = "askwell.events";

/// Hints of new runs.
pub(super) const START_QUEUE: &str = "askwell.start.v1";

/// Hints of runs that go on: a person waits.
pub(super) const RESUME_QUEUE: &str = "askwell.resume.v1";

const LATER_QUEUE: &str = "askwell.later.v1";
const DEAD: &str = "askwell.dead";
const DEAD_QUEUE: &str = "askwell.dead.v1";

/// How long a hint waits that a worker gave back.
const LATER_MS: i32 = 1_000;

/// Deliveries of one message before it is set aside. A net only: the store counts attempts. Always
/// given and positive, since its default and `-1` mean different things on different brokers.
const DELIVERIES: i32 = 20;

const HINTS_KEPT: i32 = 1_000_000;
const DEAD_KEPT: i32 = 100_000;
const NEWS_KEPT: i32 = 10_000;

/// Declares what hints need. The queues for what is set aside come first: at-least-once dead
/// letters pile up where they have nowhere to go.
pub(super) async fn jobs(channel: &Channel) -> Result<()> {
    exchange(channel, DEAD, ExchangeKind::Fanout).await?;
    let dead = quorum([("x-max-length", AMQPValue::LongInt(DEAD_KEPT))]);
    queue(channel, DEAD_QUEUE, DEAD, &[""], dead).await?;

    exchange(channel, JOBS, ExchangeKind::Direct).await?;
    for (name, key) in [(RESUME_QUEUE, RESUME), (START_QUEUE, START)] {
        let hints = quorum(dead_letters_to(DEAD));
        queue(channel, name, JOBS, &[key], hints).await?;
    }

    exchange(channel, LATER, ExchangeKind::Direct).await?;
    let mut later = quorum(dead_letters_to(JOBS));
    later.insert("x-message-ttl".into(), AMQPValue::LongInt(LATER_MS));
    queue(channel, LATER_QUEUE, LATER, &[RESUME, START], later).await
}

/// Declares what news needs.
pub(super) async fn events(channel: &Channel) -> Result<()> {
    exchange(channel, EVENTS, ExchangeKind::Topic).await
}

/// The key by which a gateway is told.
pub(super) fn gateway_key(gateway: &str) -> String {
    format!("gw.{gateway}")
}

/// Declares a gateway's own queue for one session: `name` must be new, since the broker may hold
/// the one of a lost session for a while, and it is gone with the connection.
pub(super) async fn listen(channel: &Channel, name: &str, key: &str) -> Result<()> {
    let options = QueueDeclareOptions {
        exclusive: true,
        auto_delete: true,
        ..QueueDeclareOptions::default()
    };
    let mut arguments = FieldTable::default();
    // The newest matters most; what is dropped is found by comparing heads.
    arguments.insert("x-max-length".into(), AMQPValue::LongInt(NEWS_KEPT));
    arguments.insert("x-overflow".into(), text("drop-head"));
    channel
        .queue_declare(name.into(), options, arguments)
        .await?;
    bind(channel, name, EVENTS, key).await
}

fn text(text: &str) -> AMQPValue {
    AMQPValue::LongString(text.into())
}

fn quorum<'a>(more: impl IntoIterator<Item = (&'a str, AMQPValue)>) -> FieldTable {
    let mut arguments = FieldTable::default();
    arguments.insert("x-queue-type".into(), text("quorum"));
    arguments.insert("x-delivery-limit".into(), AMQPValue::LongInt(DELIVERIES));
    for (name, value) in more {
        arguments.insert(name.into(), value);
    }
    arguments
}

/// At-least-once dead letters need `reject-publish`, and a bound.
fn dead_letters_to(exchange: &str) -> [(&'static str, AMQPValue); 4] {
    [
        ("x-dead-letter-exchange", text(exchange)),
        ("x-dead-letter-strategy", text("at-least-once")),
        ("x-overflow", text("reject-publish")),
        ("x-max-length", AMQPValue::LongInt(HINTS_KEPT)),
    ]
}

async fn exchange(channel: &Channel, name: &str, kind: ExchangeKind) -> Result<()> {
    let options = ExchangeDeclareOptions {
        durable: true,
        ..ExchangeDeclareOptions::default()
    };
    channel
        .exchange_declare(name.into(), kind, options, FieldTable::default())
        .await
}

async fn queue(
    channel: &Channel,
    name: &str,
    exchange: &str,
    keys: &[&str],
    arguments: FieldTable,
) -> Result<()> {
    channel
        .queue_declare(name.into(), QueueDeclareOptions::durable(), arguments)
        .await?;
    for key in keys {
        bind(channel, name, exchange, key).await?;
    }
    Ok(())
}

async fn bind(channel: &Channel, queue: &str, exchange: &str, key: &str) -> Result<()> {
    let options = QueueBindOptions::default();
    channel
        .queue_bind(
            queue.into(),
            exchange.into(),
            key.into(),
            options,
            FieldTable::default(),
        )
        .await
}
