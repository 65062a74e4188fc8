//! Broker sessions: one connection from its making to its first fault. Nothing is recovered; what
//! has failed in any way is dropped whole and made anew (DESIGN 5).

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::{Stream, StreamExt};
use lapin::uri::{AMQPScheme, AMQPUri};
use lapin::{Channel, Connection, ConnectionProperties, Event};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

/// The most time for anything that the broker is to answer.
pub(super) const LATE: Duration = Duration::from_secs(5);

/// The pause between sessions, in full jitter.
const PAUSE_MS: std::ops::Range<u64> = 100..2_000;

/// How long the connection that an alarm has blocked is kept, before the alarm's end may have been
/// missed. A new one would be blocked at its first message.
const BLOCKED: Duration = Duration::from_mins(1);

/// What a role does with a connection.
#[async_trait]
pub(super) trait Role: Send + 'static {
    /// Declares, consumes, says `begin`, serves. It returns only for a fault, and may
    /// be dropped at any point.
    async fn serve(&mut self, session: &Session<'_>) -> Ended;

    /// The connection is gone, or there is none.
    fn ended(&mut self);
}

/// Why a session ended.
#[derive(Debug)]
pub(super) enum Ended {
    Fault(Box<dyn std::error::Error + Send + Sync>),
    /// The broker takes nothing from this connection (memory or disk alarm).
    Blocked,
}

impl Ended {
    pub(super) fn because(reason: impl Into<String>) -> Self {
        Ended::Fault(reason.into().into())
    }
}

impl From<lapin::Error> for Ended {
    fn from(fault: lapin::Error) -> Self {
        Ended::Fault(fault.into())
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ended::Fault(fault) => fault.fmt(f),
            Ended::Blocked => f.write_str("an alarm of the broker blocks the connection"),
        }
    }
}

/// Waits for an answer of the broker, at most [`LATE`].
pub(super) async fn in_time<T>(
    what: &str,
    answer: impl Future<Output = lapin::Result<T>>,
) -> Result<T, Ended> {
    match timeout(LATE, answer).await {
        Ok(answer) => Ok(answer?),
        Err(_) => Err(Ended::because(format!("{what}: no answer within {LATE:?}"))),
    }
}

/// How a role stands with the broker, for all to see.
pub(super) struct Standing {
    role: &'static str,
    state: Mutex<State>,
}

struct State {
    serving: bool,
    /// The last session was blocked by an alarm. Under it the broker takes connections all the
    /// same, so that only a confirmed message proves that it is over.
    blocked: bool,
    away_since: Instant,
    /// It was said that the broker is away.
    told: bool,
}

impl Standing {
    pub(super) fn new(role: &'static str) -> Self {
        Standing {
            role,
            state: Mutex::new(State {
                serving: false,
                blocked: false,
                away_since: Instant::now(),
                told: false,
            }),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a session serves now.
    pub(super) fn is_serving(&self) -> bool {
        self.lock().serving
    }

    /// For how long there has been no session; zero while one serves.
    pub(super) fn away(&self) -> Duration {
        let state = self.lock();
        if state.serving {
            Duration::ZERO
        } else {
            state.away_since.elapsed()
        }
    }

    fn begin(&self) {
        let mut state = self.lock();
        state.serving = true;
        if !state.blocked {
            self.back(&mut state);
        }
    }

    /// The broker has taken a message.
    pub(super) fn prove(&self) {
        let mut state = self.lock();
        if state.serving && std::mem::take(&mut state.blocked) {
            self.back(&mut state);
        }
    }

    fn back(&self, state: &mut State) {
        if std::mem::take(&mut state.told) {
            tracing::info!(role = self.role, "the broker is back");
        }
    }

    fn end(&self, why: &Ended) {
        let mut state = self.lock();
        if std::mem::take(&mut state.serving) && !state.blocked {
            state.away_since = Instant::now();
        }
        state.blocked |= matches!(why, Ended::Blocked);
        if std::mem::replace(&mut state.told, true) {
            tracing::debug!(role = self.role, %why, "no session with the broker yet");
        } else {
            tracing::warn!(role = self.role, %why, "no session with the broker, trying on");
        }
    }
}

/// A connection, while it is good.
pub(super) struct Session<'a> {
    connection: &'a Connection,
    standing: &'a Standing,
}

impl Session<'_> {
    /// A new channel.
    pub(super) async fn channel(&self) -> Result<Channel, Ended> {
        in_time("a channel", self.connection.create_channel()).await
    }

    /// All is set up: this role serves from now on.
    pub(super) fn begin(&self) {
        self.standing.begin();
    }

    /// See [`Standing::prove`].
    pub(super) fn prove(&self) {
        self.standing.prove();
    }
}

/// Keeps a role in session for ever, from the moment it is `wanted`.
pub(super) async fn supervise(
    uri: Arc<AMQPUri>,
    standing: Arc<Standing>,
    mut wanted: watch::Receiver<bool>,
    mut role: impl Role,
) {
    if wanted.wait_for(|wanted| *wanted).await.is_err() {
        return;
    }
    // A broker that is away before it is wanted is away for nobody.
    standing.lock().away_since = Instant::now();
    let mut door = Door { uri, hung: false };
    loop {
        let ended = match door.connect(standing.role).await {
            Ok(connection) => one(&connection, &standing, &mut role).await,
            Err(ended) => ended,
        };
        standing.end(&ended);
        role.ended();
        sleep(Duration::from_millis(rand::random_range(PAUSE_MS))).await;
    }
}

/// One session. The connection is dropped by the caller.
async fn one(connection: &Connection, standing: &Standing, role: &mut impl Role) -> Ended {
    // Listeners share one queue of events: there must be no other.
    let mut events = connection.events_listener();
    let session = Session {
        connection,
        standing,
    };
    let ended = tokio::select! {
        biased;
        ended = trouble(&mut events) => ended,
        ended = role.serve(&session) => ended,
    };
    if matches!(ended, Ended::Blocked) {
        standing.end(&ended);
        role.ended();
        let _ = timeout(BLOCKED, relief(&mut events)).await;
    }
    ended
}

/// Waits for what ends a session.
async fn trouble(events: &mut (impl Stream<Item = Event> + Unpin)) -> Ended {
    loop {
        match events.next().await {
            Some(Event::Error(fault)) => return fault.into(),
            Some(Event::ConnectionBlocked(_)) => return Ended::Blocked,
            Some(_) => {}
            None => return Ended::because("the connection has ended"),
        }
    }
}

/// Waits until the connection is no longer blocked, one way or the other.
async fn relief(events: &mut (impl Stream<Item = Event> + Unpin)) {
    loop {
        match events.next().await {
            Some(Event::Error(_) | Event::ConnectionUnblocked) | None => return,
            Some(_) => {}
        }
    }
}

struct Door {
    uri: Arc<AMQPUri>,
    /// The last try was not answered.
    hung: bool,
}

impl Door {
    async fn connect(&mut self, role: &str) -> Result<Connection, Ended> {
        if self.hung {
            self.knock().await?;
        }
        let properties =
            ConnectionProperties::default().with_connection_name(format!("askwell {role}").into());
        let uri = AMQPUri::clone(&self.uri);
        let connected = timeout(LATE, Connection::connect_uri(uri, properties)).await;
        self.hung = connected.is_err();
        match connected {
            Ok(connected) => Ok(connected?),
            Err(_) => Err(Ended::because(format!("no connection within {LATE:?}"))),
        }
    }

    /// Asks for the broker's first frame by ourselves: each try of lapin's that is not answered
    /// keeps a thread until the broker answers it after all.
    async fn knock(&self) -> Result<(), Ended> {
        let authority = &self.uri.authority;
        let answered = async {
            let address = (authority.host.as_str(), authority.port);
            let mut stream = TcpStream::connect(address).await?;
            // Under TLS the first word is not ours to say.
            if self.uri.scheme == AMQPScheme::AMQP {
                stream.write_all(b"AMQP\x00\x00\x09\x01").await?;
                stream.read_exact(&mut [0; 1]).await?;
            }
            std::io::Result::Ok(())
        };
        match timeout(LATE, answered).await {
            Ok(answered) => answered.map_err(|fault| Ended::Fault(fault.into())),
            Err(_) => Err(Ended::because(format!("no greeting within {LATE:?}"))),
        }
    }
}
