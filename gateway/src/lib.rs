//! Askwell's gateway, in reading order:
//!
//! - [`calls`]: the domain calls, independent of the transport; [`refusal`]: what a caller is told
//!   instead of a result.
//! - [`auth`]: tokens; [`door`]: hosts and origins.
//! - `http`, `socket`: the two ways in; [`hub`]: who is connected; `assets`: the page.
//! - [`token`]: `askwell token` and the development secret.
//!
//! A gateway holds no state of asks: any node serves anybody.

mod assets;
pub mod auth;
pub mod calls;
pub mod door;
mod fields;
mod http;
pub mod hub;
pub mod refusal;
mod socket;
pub mod token;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use askwell_shared::ports::Ports;
use axum::serve::ListenerExt as _;
use tokio::net::TcpListener;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use auth::Auth;
use calls::Calls;
use door::Door;
use hub::Hub;

/// What is left after so long when a gateway stops is dropped as by kill -9 (SPEC 8).
pub const DRAIN: Duration = Duration::from_secs(25);

/// What a gateway is made of.
pub struct Setup {
    /// Store, hints and feed.
    pub ports: Ports,
    /// Whose tokens are believed.
    pub auth: Auth,
    /// Which hosts and origins are served.
    pub door: Door,
    /// This process's name, as sockets are told.
    pub node: String,
}

/// A gateway at work.
pub(crate) struct Gateway {
    calls: Calls,
    ports: Ports,
    auth: Auth,
    door: Door,
    node: String,
    hub: Arc<Hub>,
    /// Sockets and commands under way.
    tracker: TaskTracker,
    stop: CancellationToken,
}

/// Serves on `listener` until `stop` is cancelled, then drains: it accepts nothing more, ends the
/// commands under way, closes its sockets 4201, and returns after at most [`DRAIN`].
///
/// # Errors
/// The listener fails.
pub async fn serve(listener: TcpListener, setup: Setup, stop: CancellationToken) -> io::Result<()> {
    let gateway = Arc::new(Gateway {
        calls: Calls::new(setup.ports.clone()),
        ports: setup.ports,
        auth: setup.auth,
        door: setup.door,
        node: setup.node,
        hub: Arc::new(Hub::default()),
        tracker: TaskTracker::new(),
        stop: stop.clone(),
    });
    // Listened to before the first socket is accepted, and until the last has ended.
    let feed = gateway.ports.feed.subscribe();
    let over = CancellationToken::new();
    let told = tokio::spawn({
        let (gateway, over) = (gateway.clone(), over.clone());
        async move { gateway.hub.run(&gateway.ports, feed, over).await }
    });

    let listener = listener.tap_io(|stream| {
        // A frame is one small packet; it must not wait for the next.
        let _ = stream.set_nodelay(true);
    });
    let router = http::router(gateway.clone());
    let serving = axum::serve(listener, router).with_graceful_shutdown({
        let stop = stop.clone();
        async move { stop.cancelled().await }
    });
    let serving = async move { serving.await };
    tokio::pin!(serving);
    let mut served = Ok(());
    let ended = tokio::select! {
        result = &mut serving => { served = result; true }
        () = stop.cancelled() => false,
    };
    let drained = timeout(DRAIN, async {
        if !ended {
            served = serving.await;
        }
        gateway.tracker.close();
        gateway.tracker.wait().await;
    });
    if drained.await.is_err() {
        tracing::warn!(sockets = gateway.hub.sockets(), "not all ended in time");
    }
    over.cancel();
    let _ = told.await;
    served
}
