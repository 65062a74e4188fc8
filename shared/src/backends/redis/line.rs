//! Connections: few long-lived ones that all calls share, each replaced after an error, and
//! others that one caller has to itself while it waits for replicas.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use deadpool_redis::redis::aio::MultiplexedConnection;
use deadpool_redis::redis::{self, AsyncConnectionConfig, Cmd, RedisError, Value};
use deadpool_redis::{Connection, Manager, Pool, Runtime};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::greet::{self, Greeting};
use super::script::Call;
use super::{Broken, OpenFault};

/// How long a reply may take (DESIGN 4). A script that took longer may have run all the same.
const RESPONSE: Duration = Duration::from_secs(2);

/// Connections that all share. Each carries any number of calls at once; more of them let large
/// replies not hold up small ones.
const LINES: usize = 4;

/// Connections for callers that wait for replicas, which nobody else may use meanwhile.
const WAITERS: usize = 16;

/// How many replicas must have what a caller is told is safe, and how long that may take, in ms
/// (DESIGN 4).
const WAIT: (usize, u64) = (1, 200);

/// A connection that was made and found fit.
#[derive(Clone)]
struct Line {
    connection: MultiplexedConnection,
    /// The store's life when it was made.
    epoch: Arc<str>,
    /// Which connection of its place this is.
    number: u64,
}

#[derive(Default)]
struct Place {
    line: Option<Line>,
    made: u64,
    /// When the newest try failed, and why.
    failed: Option<(Instant, Arc<Broken>)>,
}

/// All connections to the store.
pub(super) struct Lines {
    /// Its connections leave it as soon as they are made.
    maker: Pool,
    places: [Mutex<Place>; LINES],
    next: AtomicUsize,
    waiters: Pool,
    /// Whether the server is configured to have replicas.
    replicated: AtomicBool,
}

/// A reply, and the life of the store that gave it.
pub(super) struct Reply {
    pub(super) value: Value,
    pub(super) epoch: Arc<str>,
}

impl Lines {
    /// Prepares connections to `url`; none is made yet.
    pub(super) fn new(url: &str) -> Result<Self, OpenFault> {
        let pool = |size: usize| {
            let config = AsyncConnectionConfig::new()
                .set_connection_timeout(Some(RESPONSE))
                .set_response_timeout(Some(RESPONSE));
            let manager = Manager::new_with_config(url, config).map_err(OpenFault::Url)?;
            // Without limits of its own the pool waits for ever.
            Pool::builder(manager)
                .max_size(size)
                .wait_timeout(Some(RESPONSE))
                .create_timeout(Some(RESPONSE))
                .recycle_timeout(Some(RESPONSE))
                .runtime(Runtime::Tokio1)
                .build()
                .map_err(|fault| OpenFault::Pool(fault.into()))
        };
        Ok(Lines {
            maker: pool(LINES)?,
            places: Default::default(),
            next: AtomicUsize::new(0),
            waiters: pool(WAITERS)?,
            replicated: AtomicBool::new(false),
        })
    }

    /// Makes a connection, to see whether the store is fit.
    pub(super) async fn check(&self) -> Result<(), Broken> {
        let (connection, greeting) = self.connect().await?;
        self.take(&mut *self.places[0].lock().await, connection, greeting);
        Ok(())
    }

    /// Whether a caller is answered only once a replica has what it wrote.
    pub(super) fn replicated(&self) -> bool {
        self.replicated.load(Ordering::Relaxed)
    }

    /// Calls a script.
    pub(super) async fn call(&self, call: &Call) -> Result<Reply, Broken> {
        match self.send(&call.by_hash()).await {
            Err(Broken::Redis(error)) if error.code() == Some("NOSCRIPT") => {
                self.send(&call.by_text()).await
            }
            reply => reply,
        }
    }

    /// Sends a command. Where the connection was found closed it is sent once more over another:
    /// every script gives the same arguments the same answer.
    pub(super) async fn send(&self, command: &Cmd) -> Result<Reply, Broken> {
        let place = self.next.fetch_add(1, Ordering::Relaxed) % LINES;
        let mut again = true;
        loop {
            let mut line = self.line(place).await.map_err(Broken::Shared)?;
            match command.query_async::<Value>(&mut line.connection).await {
                Ok(value) => {
                    return Ok(Reply {
                        value,
                        epoch: line.epoch,
                    });
                }
                Err(error) => {
                    if spoils(&error) {
                        self.replace(place, line.number).await;
                    }
                    if !(again && error.is_connection_dropped()) {
                        return Err(error.into());
                    }
                    again = false;
                }
            }
        }
    }

    /// Calls a script on a connection of its own, then waits until a replica has what it wrote.
    /// The same call again waits again, also where the script has nothing left to write.
    pub(super) async fn call_and_wait(&self, call: &Call) -> Result<Value, Broken> {
        let mut connection = self
            .waiters
            .get()
            .await
            .map_err(|fault| Broken::Pool(fault.into()))?;
        let mut reply = call.by_hash().query_async::<Value>(&mut connection).await;
        if matches!(&reply, Err(error) if error.code() == Some("NOSCRIPT")) {
            reply = call.by_text().query_async(&mut connection).await;
        }
        let mut wait = redis::cmd("WAIT");
        wait.arg(WAIT.0).arg(WAIT.1);
        let done = match reply {
            Ok(reply) => wait
                .query_async::<usize>(&mut connection)
                .await
                .map(|count| (reply, count)),
            Err(error) => Err(error),
        };
        match done {
            Ok((_, count)) if count < WAIT.0 => Err(Broken::Unsafe { count }),
            Ok((reply, _)) => Ok(reply),
            Err(error) => {
                if spoils(&error) {
                    drop(Connection::take(connection));
                }
                Err(error.into())
            }
        }
    }

    /// The connection of a place; made where there is none. Who waited for another's try that
    /// failed gets its failure, so that many callers do not try one after the other.
    async fn line(&self, place: usize) -> Result<Line, Arc<Broken>> {
        let asked = Instant::now();
        let mut place = self.places[place].lock().await;
        if let Some(line) = &place.line {
            return Ok(line.clone());
        }
        if let Some((when, why)) = &place.failed
            && *when >= asked
        {
            return Err(Arc::clone(why));
        }
        match self.connect().await {
            Ok((connection, greeting)) => Ok(self.take(&mut place, connection, greeting)),
            Err(why) => {
                let why = Arc::new(why);
                place.failed = Some((Instant::now(), Arc::clone(&why)));
                Err(why)
            }
        }
    }

    async fn connect(&self) -> Result<(MultiplexedConnection, Greeting), Broken> {
        let made = self.maker.get().await;
        let mut connection = made
            .map(Connection::take)
            .map_err(|fault| Broken::Pool(fault.into()))?;
        let greeting = greet::greet(&mut connection).await?;
        Ok((connection, greeting))
    }

    fn take(
        &self,
        place: &mut Place,
        connection: MultiplexedConnection,
        greeting: Greeting,
    ) -> Line {
        self.replicated
            .store(greeting.replicated, Ordering::Relaxed);
        place.made += 1;
        place.failed = None;
        let line = Line {
            connection,
            epoch: greeting.epoch,
            number: place.made,
        };
        place.line = Some(line.clone());
        line
    }

    /// Gives up a connection, unless another has taken its place already.
    async fn replace(&self, place: usize, number: u64) {
        let mut place = self.places[place].lock().await;
        if place
            .line
            .as_ref()
            .is_some_and(|line| line.number == number)
        {
            place.line = None;
        }
    }
}

/// Whether a connection is given up after this error: anything but a refusal by a server that is
/// the right one. Replies that come too late would be waited for, on a connection that is cut
/// without a word for ever.
fn spoils(error: &RedisError) -> bool {
    match error.code() {
        Some(code) => matches!(code, "READONLY" | "MASTERDOWN" | "UNBLOCKED" | "NOAUTH"),
        None => true,
    }
}
