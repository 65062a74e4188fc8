//! News that arrives at a gateway: one exclusive, bounded, freshly named queue for each session.

use std::convert::Infallible;
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::{FutureExt, StreamExt};
use lapin::Acker;
use lapin::message::Delivery;
use lapin::options::{BasicAckOptions, BasicConsumeOptions, BasicQosOptions};
use lapin::types::FieldTable;
use uuid::Uuid;

use super::broker_session::{Ended, Role, Session, in_time};
use super::{message, topology};
use crate::backends::fan_out::FanOut;
use crate::ports::Heard;

/// Deliveries under way. They are passed on at once, into queues that are bounded by themselves.
const PREFETCH: u16 = 256;

/// Deliveries that are acknowledged together at most.
const TOGETHER: u16 = 64;

/// The role that listens.
pub(super) struct Events {
    name: String,
    heard: Arc<FanOut>,
}

impl Events {
    pub(super) fn new(name: &str, heard: Arc<FanOut>) -> Self {
        Events {
            name: name.to_owned(),
            heard,
        }
    }

    async fn listen(&self, session: &Session<'_>) -> Result<Infallible, Ended> {
        let channel = session.channel().await?;
        in_time("declaring", topology::events(&channel)).await?;
        let key = topology::gateway_key(&self.name);
        let queue = format!("askwell.{key}.{}", Uuid::new_v4().simple());
        in_time("declaring", topology::listen(&channel, &queue, &key)).await?;
        let qos = channel.basic_qos(PREFETCH, BasicQosOptions::default());
        in_time("prefetch", qos).await?;
        let options = BasicConsumeOptions::default();
        let consumer =
            channel.basic_consume(queue.into(), "".into(), options, FieldTable::default());
        let mut consumer = in_time("consuming", consumer).await?;
        session.begin();
        // What was told before this queue was bound went past it.
        self.heard.tell(&Heard::Missed);
        let mut unreadable = false;
        loop {
            let mut last = self.hear(consumer.next().await, &mut unreadable)?;
            let mut together = 1;
            while together < TOGETHER
                && let Some(delivery) = consumer.next().now_or_never()
            {
                last = self.hear(delivery, &mut unreadable)?;
                together += 1;
            }
            let options = BasicAckOptions { multiple: true };
            if !in_time("acknowledging", last.ack(options)).await? {
                return Err(Ended::because("acknowledging came too late"));
            }
        }
    }

    fn hear(
        &self,
        delivery: Option<lapin::Result<Delivery>>,
        unreadable: &mut bool,
    ) -> Result<Acker, Ended> {
        let delivery = delivery.ok_or_else(|| Ended::because("the consumer was cancelled"))??;
        match message::read_event(&delivery.data) {
            Ok(heard) => self.heard.tell(&heard),
            Err(why) => {
                if !std::mem::replace(unreadable, true) {
                    tracing::warn!(%why, "news cannot be read; screens are repaired from the store");
                }
                self.heard.tell(&Heard::Missed);
            }
        }
        Ok(delivery.acker)
    }
}

#[async_trait]
impl Role for Events {
    async fn serve(&mut self, session: &Session<'_>) -> Ended {
        match self.listen(session).await {
            Ok(never) => match never {},
            Err(ended) => ended,
        }
    }

    fn ended(&mut self) {}
}
