//! Hints that arrive. A delivery is acknowledged right after its run was claimed, not after the
//! work; what finds no free slot is put again for others (DESIGN 5).

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt;
use futures_util::future::{BoxFuture, join_all};
use futures_util::stream::FuturesUnordered;
use lapin::message::Delivery;
use lapin::options::{
    BasicAckOptions, BasicCancelOptions, BasicConsumeOptions, BasicQosOptions, BasicRejectOptions,
};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{Acker, Channel, Consumer};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use super::broker_session::{Ended, LATE, Role, Session, in_time};
use super::message::{self, RESUME, START};
use super::publish::{Publisher, TRIES};
use super::shelf::{Debt, Delivered, Shelf};
use super::{GIVEN_BACK, topology};
use crate::ports::Fault;

/// Deliveries of each queue that wait here: as few as keep a worker busy.
const PREFETCH: u16 = 4;

/// After so long without a free slot nothing is consumed until there is one.
const NO_SLOT: Duration = Duration::from_millis(250);

/// How often hints are tried to be put again that the broker did not take.
const PUT_AGAIN: Duration = Duration::from_secs(5);

/// The role that consumes hints.
pub(super) struct Jobs {
    shelf: Arc<Shelf>,
    publisher: Publisher,
    /// Messages that were set aside so far.
    set_aside: u64,
}

/// One queue and its consumer.
struct Line {
    key: &'static str,
    queue: &'static str,
    channel: Channel,
    consumer: Consumer,
}

type Tell = mpsc::UnboundedSender<(Debt, bool)>;

/// What is owed to the broker in one session.
struct Debts {
    tell: Tell,
    heard: mpsc::UnboundedReceiver<(Debt, bool)>,
    /// Hints that were dropped undone, on their way to another worker.
    going: FuturesUnordered<BoxFuture<'static, (Debt, Result<(), Fault>)>>,
}

impl Jobs {
    pub(super) fn new(shelf: Arc<Shelf>, publisher: Publisher) -> Self {
        Jobs {
            shelf,
            publisher,
            set_aside: 0,
        }
    }

    async fn consume(&mut self, session: &Session<'_>) -> Result<Infallible, Ended> {
        let channel = session.channel().await?;
        in_time("declaring", topology::jobs(&channel)).await?;
        let mut resume = Line::open(session, RESUME, topology::RESUME_QUEUE).await?;
        let mut start = Line::open(session, START, topology::START_QUEUE).await?;
        let (tell, heard) = mpsc::unbounded_channel();
        let mut debts = Debts {
            tell,
            heard,
            going: FuturesUnordered::new(),
        };
        session.begin();
        loop {
            self.take_in(&mut resume, &mut start, &mut debts).await?;
            for line in [&mut resume, &mut start] {
                self.stop(line, &debts.tell).await?;
            }
            self.rest(&mut debts).await?;
            for line in [&mut resume, &mut start] {
                line.consumer = consumer(&line.channel, line.queue).await?;
            }
        }
    }

    /// Lays deliveries on the shelf until no slot is free.
    async fn take_in(
        &mut self,
        resume: &mut Line,
        start: &mut Line,
        debts: &mut Debts,
    ) -> Result<(), Ended> {
        let lies = Arc::clone(&self.shelf);
        loop {
            tokio::select! {
                biased;
                ended = debts.pay(&self.publisher) => ended?,
                delivery = resume.consumer.next() => {
                    self.lay_down(resume.key, delivery, &debts.tell).await?;
                }
                delivery = start.consumer.next() => {
                    self.lay_down(start.key, delivery, &debts.tell).await?;
                }
                () = lies.quiet(NO_SLOT) => return Ok(()),
            }
        }
    }

    async fn lay_down(
        &mut self,
        key: &'static str,
        delivery: Option<lapin::Result<Delivery>>,
        tell: &Tell,
    ) -> Result<(), Ended> {
        // A stream that ends says that the broker has cancelled the consumer: the queue is gone.
        let delivery = delivery.ok_or_else(|| Ended::because("the consumer was cancelled"))??;
        let hint = match message::read_hint(&delivery.data) {
            Ok(hint) => hint,
            Err(why) => {
                self.set_aside += 1;
                tracing::error!(
                    %why,
                    queue = key,
                    message = ?delivery.properties.message_id(),
                    set_aside = self.set_aside,
                    "a message on the queue of hints is none of ours: set aside"
                );
                return reject(&delivery.acker).await;
            }
        };
        let headers = delivery.properties.headers().as_ref();
        let tries = headers.and_then(|headers| headers.inner().get(TRIES));
        self.shelf.put(Delivered {
            hint,
            debt: Debt {
                acker: delivery.acker,
                key,
                body: delivery.data,
                tries: tries.map_or(0, number),
            },
            hears: tell.clone(),
        });
        Ok(())
    }

    /// Stops consuming, and lays down what was under way.
    async fn stop(&mut self, line: &mut Line, tell: &Tell) -> Result<(), Ended> {
        let tag = line.consumer.tag();
        let options = BasicCancelOptions::default();
        in_time("cancelling", line.channel.basic_cancel(tag, options)).await?;
        loop {
            match timeout(LATE, line.consumer.next()).await {
                Ok(None) => return Ok(()),
                Ok(delivery) => self.lay_down(line.key, delivery, tell).await?,
                Err(_) => return Err(Ended::because("a cancelled consumer goes on")),
            }
        }
    }

    /// Puts again what lies here, for others, until a slot is free.
    async fn rest(&self, debts: &mut Debts) -> Result<(), Ended> {
        self.put_again().await?;
        loop {
            tokio::select! {
                biased;
                ended = debts.pay(&self.publisher) => ended?,
                () = self.shelf.wanted() => return Ok(()),
                () = sleep(PUT_AGAIN), if self.shelf.holds_deliveries() => {
                    self.put_again().await?;
                }
            }
        }
    }

    async fn put_again(&self) -> Result<(), Ended> {
        let back = self.shelf.take_back();
        let put = back.into_iter().map(|delivered| async {
            let Debt {
                key, body, tries, ..
            } = &delivered.debt;
            let put = self.publisher.put_again(key, body.clone(), *tries).await;
            (delivered, put)
        });
        for (delivered, put) in join_all(put).await {
            match put {
                Ok(()) => acknowledge(&delivered.debt.acker).await?,
                // It stays: the next free slot here takes it, or the next try.
                Err(_) => self.shelf.put(delivered),
            }
        }
        Ok(())
    }
}

#[async_trait]
impl Role for Jobs {
    async fn serve(&mut self, session: &Session<'_>) -> Ended {
        match self.consume(session).await {
            Ok(never) => match never {},
            Err(ended) => ended,
        }
    }

    /// The broker delivers again what was not acknowledged.
    fn ended(&mut self) {
        self.shelf.take_back();
    }
}

impl Line {
    async fn open(
        session: &Session<'_>,
        key: &'static str,
        queue: &'static str,
    ) -> Result<Self, Ended> {
        let channel = session.channel().await?;
        let qos = channel.basic_qos(PREFETCH, BasicQosOptions::default());
        in_time("prefetch", qos).await?;
        let consumer = consumer(&channel, queue).await?;
        Ok(Line {
            key,
            queue,
            channel,
            consumer,
        })
    }
}

async fn consumer(channel: &Channel, queue: &str) -> Result<Consumer, Ended> {
    let options = BasicConsumeOptions::default();
    let consumer = channel.basic_consume(queue.into(), "".into(), options, FieldTable::default());
    in_time("consuming", consumer).await
}

impl Debts {
    /// Acknowledges one hint that was acted on, or gives back one that was not.
    async fn pay(&mut self, publisher: &Publisher) -> Result<(), Ended> {
        tokio::select! {
            Some((debt, done)) = self.heard.recv() => {
                if done {
                    return acknowledge(&debt.acker).await;
                }
                let publisher = publisher.clone();
                self.going.push(Box::pin(async move {
                    let tries = debt.tries + 1;
                    let given = if tries > GIVEN_BACK {
                        tracing::warn!(tries, "a hint was never acted on: dropped");
                        Ok(())
                    } else {
                        publisher.give_back(debt.key, debt.body.clone(), tries).await
                    };
                    (debt, given)
                }));
                Ok(())
            }
            Some((debt, given)) = self.going.next() => {
                // Undone and not to be given back: with the session's end the broker has it again.
                given.map_err(|fault| Ended::Fault(fault.into()))?;
                acknowledge(&debt.acker).await
            }
        }
    }
}

async fn acknowledge(acker: &Acker) -> Result<(), Ended> {
    settle("acknowledging", acker.ack(BasicAckOptions::default())).await
}

/// Sets a message aside, at its first delivery.
async fn reject(acker: &Acker) -> Result<(), Ended> {
    let options = BasicRejectOptions { requeue: false };
    settle("setting aside", acker.reject(options)).await
}

async fn settle(
    what: &str,
    settled: impl Future<Output = lapin::Result<bool>>,
) -> Result<(), Ended> {
    if in_time(what, settled).await? {
        return Ok(());
    }
    // The client says so without an error; the delivery belongs to a channel that is gone.
    Err(Ended::because(format!("{what} came too late")))
}

fn number(value: &AMQPValue) -> u32 {
    match value {
        AMQPValue::LongUInt(number) => *number,
        AMQPValue::LongInt(number) => u32::try_from(*number).unwrap_or(0),
        AMQPValue::LongLongInt(number) => u32::try_from(*number).unwrap_or(u32::MAX),
        _ => 0,
    }
}
