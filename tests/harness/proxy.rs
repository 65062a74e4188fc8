//! A TCP proxy of our own between a program and a server, for the ways in which networks fail.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{sleep, timeout};

use crate::ports;

/// A proxy on a loopback port, before one server. Dropping it ends all its connections.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    faults: watch::Sender<Faults>,
    counts: watch::Sender<Counts>,
    orders: mpsc::Sender<Order>,
    serving: JoinHandle<()>,
}

/// Which bytes a half-open connection loses. The connection itself stays up, and its end is not
/// passed on in that direction either: the peer hears nothing at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Swallow {
    /// None: everything is passed on.
    #[default]
    Nothing,
    /// What the client sends.
    ToServer,
    /// What the server sends.
    ToClient,
    /// Both.
    Both,
}

/// What went through since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Connections that were taken.
    pub accepted: u64,
    /// Connections that are up now.
    pub open: u64,
    /// Bytes passed on to the server.
    pub to_server: u64,
    /// Bytes passed on to the client.
    pub to_client: u64,
    /// Bytes that were swallowed.
    pub swallowed: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Faults {
    delay: Duration,
    swallow: Swallow,
}

#[derive(Debug)]
enum Order {
    Refuse(bool, oneshot::Sender<io::Result<()>>),
    Cut(oneshot::Sender<()>),
}

impl Proxy {
    /// Listens on a free port of 127.0.0.1 and passes everything on to `port` of 127.0.0.1. The
    /// server need not be up: a client's connection then ends at once.
    ///
    /// # Errors
    /// When no port can be listened on.
    pub async fn start(port: u16) -> Result<Self> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, ports::free()?));
        let listener = TcpListener::bind(address).await?;
        let (faults, _) = watch::channel(Faults::default());
        let (counts, _) = watch::channel(Counts::default());
        let (orders, taken) = mpsc::channel(1);
        let link = Link {
            server: SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
            faults: faults.subscribe(),
            counts: counts.clone(),
        };
        let serving = tokio::spawn(serve(listener, address, Arc::new(link), taken));
        Ok(Self {
            address,
            faults,
            counts,
            orders,
            serving,
        })
    }

    /// Where clients connect; the same for the proxy's whole life.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The port where clients connect.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Ends every connection that is up, on both sides; new ones are still taken.
    ///
    /// # Errors
    /// When the proxy has ended.
    pub async fn cut(&self) -> Result<()> {
        let (done, ended) = oneshot::channel();
        self.orders.send(Order::Cut(done)).await?;
        Ok(ended.await?)
    }

    /// While on, new connections are refused as if nobody listened; those that are up stay.
    ///
    /// # Errors
    /// When the port cannot be taken again.
    pub async fn refuse(&self, on: bool) -> Result<()> {
        let (done, ended) = oneshot::channel();
        self.orders.send(Order::Refuse(on, done)).await?;
        ended
            .await?
            .with_context(|| format!("the proxy's {}", self.address))
    }

    /// Holds back every piece for `delay`, in both directions; zero is off.
    pub fn delay(&self, delay: Duration) {
        self.faults.send_modify(|faults| faults.delay = delay);
    }

    /// Makes every connection, present and new, half-open or whole again.
    pub fn swallow(&self, swallow: Swallow) {
        self.faults.send_modify(|faults| faults.swallow = swallow);
    }

    /// What went through so far.
    pub fn counts(&self) -> Counts {
        *self.counts.borrow()
    }

    /// Waits until the counts are as `wanted` says.
    ///
    /// # Errors
    /// When they are not within `limit`; the error shows the counts.
    pub async fn until(&self, limit: Duration, wanted: impl Fn(&Counts) -> bool) -> Result<Counts> {
        let mut counts = self.counts.subscribe();
        let met = timeout(limit, counts.wait_for(|counts| wanted(counts))).await;
        match met {
            Ok(counts) => Ok(*counts?),
            Err(_) => anyhow::bail!("not within {limit:?}: {:?}", self.counts()),
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

#[derive(Debug)]
struct Link {
    server: SocketAddr,
    faults: watch::Receiver<Faults>,
    counts: watch::Sender<Counts>,
}

/// The port while it is refused: bound, so that nobody else gets it, but not listening.
enum Door {
    Open(TcpListener),
    Shut(TcpSocket),
}

async fn serve(
    listener: TcpListener,
    address: SocketAddr,
    link: Arc<Link>,
    mut orders: mpsc::Receiver<Order>,
) {
    let mut door = Door::Open(listener);
    let mut connections = JoinSet::new();
    loop {
        let accepted = async {
            match &door {
                Door::Open(listener) => listener.accept().await,
                Door::Shut(_) => std::future::pending().await,
            }
        };
        tokio::select! {
            order = orders.recv() => match order {
                Some(Order::Cut(done)) => {
                    connections.shutdown().await;
                    let _ = done.send(());
                }
                Some(Order::Refuse(on, done)) => {
                    let turned = turn(door, on, address);
                    let (next, result) = match turned {
                        Ok(next) => (next, Ok(())),
                        Err(error) => {
                            let _ = done.send(Err(error));
                            return;
                        }
                    };
                    door = next;
                    let _ = done.send(result);
                }
                None => return,
            },
            Ok((client, _)) = accepted => {
                connections.spawn(carry(client, link.clone()));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

fn turn(door: Door, refuse: bool, address: SocketAddr) -> io::Result<Door> {
    match door {
        Door::Open(listener) if refuse => {
            drop(listener);
            let socket = TcpSocket::new_v4()?;
            // The connections that are up, and those just ended, have the same local port.
            socket.set_reuseaddr(true)?;
            socket.bind(address)?;
            Ok(Door::Shut(socket))
        }
        Door::Shut(socket) if !refuse => Ok(Door::Open(socket.listen(128)?)),
        unchanged => Ok(unchanged),
    }
}

/// Counts a connection as open while it is carried, however it ends.
struct Open<'a>(&'a watch::Sender<Counts>);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|counts| counts.open -= 1);
    }
}

async fn carry(client: TcpStream, link: Arc<Link>) {
    link.counts.send_modify(|counts| {
        counts.accepted += 1;
        counts.open += 1;
    });
    let _open = Open(&link.counts);
    let Ok(server) = TcpStream::connect(link.server).await else {
        return;
    };
    // Else small frames wait for the acknowledgement of those before.
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    // An error in one direction ends both; an orderly end lets the other direction go on.
    let _ = tokio::try_join!(
        pump(from_client, to_server, &link, true),
        pump(from_server, to_client, &link, false),
    );
}

async fn pump(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    link: &Link,
    to_server: bool,
) -> io::Result<()> {
    let lost = |swallow| match swallow {
        Swallow::Nothing => false,
        Swallow::ToServer => to_server,
        Swallow::ToClient => !to_server,
        Swallow::Both => true,
    };
    let mut faults = link.faults.clone();
    let mut piece = vec![0; 64 * 1024];
    loop {
        let read = from.read(&mut piece).await;
        let delay = faults.borrow().delay;
        if !delay.is_zero() {
            sleep(delay).await;
        }
        let swallow = faults.borrow().swallow;
        let size = match read {
            Ok(size) if size > 0 => size,
            _ if lost(swallow) => {
                // The end itself is lost until the connection is whole again or cut.
                let _ = faults.wait_for(|faults| !lost(faults.swallow)).await;
                return to.shutdown().await;
            }
            Ok(_) => return to.shutdown().await,
            Err(error) => return Err(error),
        };
        let bytes = u64::try_from(size).unwrap_or(u64::MAX);
        if lost(swallow) {
            link.counts.send_modify(|counts| counts.swallowed += bytes);
            continue;
        }
        to.write_all(&piece[..size]).await?;
        link.counts.send_modify(|counts| {
            if to_server {
                counts.to_server += bytes;
            } else {
                counts.to_client += bytes;
            }
        });
    }
}
