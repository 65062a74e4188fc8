//! The backends, and the one place that picks between them.

pub mod embedded;
mod fan_out;
pub mod rabbitmq;
pub mod redis;

use std::path::PathBuf;

use crate::config::Mode;
use crate::ports::Ports;
use crate::url::Url;

/// Which backend keeps the runs.
#[derive(Debug, Clone)]
pub enum Choice {
    /// Everything in this process, on SQLite in this folder.
    Embedded {
        /// The data folder; made if it is missing.
        folder: PathBuf,
    },
    /// The store on Redis, hints and feed over RabbitMQ, for many processes.
    Distributed {
        /// Redis.
        redis: Url,
        /// RabbitMQ.
        amqp: Url,
    },
}

/// A backend that cannot be opened: a fault of the configuration or of the machine, which trying
/// again does not mend. It names the setting.
#[derive(Debug, thiserror::Error)]
pub enum OpenFault {
    /// The embedded one.
    #[error("ASKWELL_DATA (--data): {0}")]
    Embedded(#[from] embedded::OpenFault),
    /// The store on Redis.
    #[error("ASKWELL_REDIS_URL (--redis-url): {0}")]
    Redis(#[from] redis::OpenFault),
    /// RabbitMQ.
    #[error("ASKWELL_AMQP_URL (--amqp-url): {0}")]
    RabbitMq(#[from] rabbitmq::BadUrl),
}

impl From<&Mode> for Choice {
    fn from(mode: &Mode) -> Self {
        match mode {
            Mode::Embedded { data } => Choice::Embedded {
                folder: data.clone(),
            },
            Mode::Gateway { amqp, redis } => Choice::Distributed {
                redis: redis.clone(),
                amqp: amqp.clone(),
            },
        }
    }
}

/// Opens the ports of the chosen backend. A server that cannot be reached is no fault: it is
/// tried for ever.
pub async fn open(choice: Choice) -> Result<Ports, OpenFault> {
    match choice {
        Choice::Embedded { folder } => {
            let path = folder.clone();
            // Opening reads and syncs files, which must not hold up a worker of the runtime.
            let opened = tokio::task::spawn_blocking(move || {
                embedded::open(&folder, embedded::system_clock())
            });
            let opened = opened
                .await
                .unwrap_or_else(|panic| Err(embedded::OpenFault::unreadable(&path, panic)));
            Ok(opened?)
        }
        Choice::Distributed { redis, amqp } => {
            let broker = rabbitmq::open(&amqp)?;
            let store = redis::open(redis.expose()).await?;
            Ok(Ports {
                store,
                hints: broker.hints,
                feed: broker.feed,
            })
        }
    }
}
