//! The harness itself: servers that come back with their data, and leave nothing behind.
#![allow(clippy::unwrap_used, reason = "a test's own functions fail the test")]

use std::fs;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use askwell_tests::process::exists;
use askwell_tests::proxy::{Proxy, Swallow};
use askwell_tests::servers::{Rabbit, Redis};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

const LIMIT: Duration = Duration::from_secs(20);

/// Long enough for a reply on loopback, so that none coming means that none was passed on.
const SILENCE: Duration = Duration::from_millis(300);

#[tokio::test]
async fn redis_survives_a_kill_with_its_data() {
    let mut redis = Redis::start().await.unwrap();
    redis.command(&["SET", "kept", "yes"]).await.unwrap();
    let (port, first) = (redis.port(), redis.process().pid());
    redis.kill().await.unwrap();
    assert!(redis.command(&["PING"]).await.is_err());

    redis.restart().await.unwrap();
    assert_eq!(redis.port(), port);
    assert_eq!(redis.command(&["GET", "kept"]).await.unwrap(), "yes");
    assert!(redis.command(&["NO-SUCH-COMMAND"]).await.is_err());

    redis.process().freeze().unwrap();
    redis.stop().await.unwrap();
    let second = redis.process().pid();
    drop(redis);
    assert!(!exists(first) && !exists(second));
}

#[tokio::test]
async fn two_redis_know_nothing_of_each_other() {
    let (a, b) = tokio::try_join!(Redis::start(), Redis::start()).unwrap();
    a.command(&["SET", "of", "a"]).await.unwrap();
    assert_eq!(b.command(&["GET", "of"]).await.unwrap(), "");
}

#[tokio::test]
async fn rabbit_comes_back_with_its_data_and_leaves_no_process() {
    let mut rabbit = Rabbit::start().await.unwrap();
    let first = rabbit.process().pid();
    let epmd = rabbit.epmd().pid();
    assert!(greets(rabbit.port()).await);
    for server in [rabbit.process(), rabbit.epmd()] {
        let at = listening(server.pid());
        assert!(!at.is_empty());
        let private =
            |at: &SocketAddr| at.ip().is_loopback() && (20_000..32_000).contains(&at.port());
        assert!(at.iter().all(private), "{at:?}");
    }
    rabbit.ctl(&["add_vhost", "kept"]).await.unwrap();

    rabbit.alarm(true).await.unwrap();
    let alarms = rabbit.ctl(&["eval", "rabbit_alarm:get_alarms()."]).await;
    assert!(alarms.unwrap().contains("memory"));
    rabbit.alarm(false).await.unwrap();
    let alarms = rabbit.ctl(&["eval", "rabbit_alarm:get_alarms()."]).await;
    assert_eq!(alarms.unwrap(), "[]");

    rabbit.kill().await.unwrap();
    assert!(!greets(rabbit.port()).await);
    rabbit.restart().await.unwrap();
    assert!(greets(rabbit.port()).await);
    let vhosts = rabbit.ctl(&["list_vhosts"]).await.unwrap();
    assert!(vhosts.lines().any(|line| line == "kept"), "{vhosts}");

    rabbit.process().freeze().unwrap();
    assert!(timeout(SILENCE, greets(rabbit.port())).await.is_err());
    rabbit.stop().await.unwrap();
    let second = rabbit.process().pid();
    assert!(exists(epmd));
    drop(rabbit);
    assert!(!exists(first) && !exists(second) && !exists(epmd));
}

#[tokio::test]
async fn a_proxy_cuts_refuses_and_loses() {
    let redis = Redis::start().await.unwrap();
    let proxy = Proxy::start(redis.port()).await.unwrap();
    let mut client = TcpStream::connect(proxy.address()).await.unwrap();
    assert!(pings(&mut client).await);
    assert_eq!(proxy.counts().open, 1);

    proxy.refuse(true).await.unwrap();
    assert!(TcpStream::connect(proxy.address()).await.is_err());
    assert!(pings(&mut client).await, "what is up stays up");
    proxy.refuse(false).await.unwrap();

    let mut other = TcpStream::connect(proxy.address()).await.unwrap();
    assert!(pings(&mut other).await);
    proxy.cut().await.unwrap();
    assert_eq!(proxy.counts().open, 0);
    assert!(!pings(&mut client).await && !pings(&mut other).await);

    let mut client = TcpStream::connect(proxy.address()).await.unwrap();
    assert!(pings(&mut client).await, "new connections are taken");
    for way in [Swallow::ToServer, Swallow::ToClient, Swallow::Both] {
        let before = proxy.counts().swallowed;
        proxy.swallow(way);
        assert!(timeout(SILENCE, pings(&mut client)).await.is_err());
        assert!(proxy.counts().swallowed > before);
        assert_eq!(proxy.counts().open, 1, "a half-open connection is up");
    }
    proxy.swallow(Swallow::Nothing);
    assert!(pings(&mut client).await);

    proxy.delay(SILENCE);
    let began = tokio::time::Instant::now();
    assert!(pings(&mut client).await);
    assert!(began.elapsed() >= 2 * SILENCE);

    proxy.delay(Duration::ZERO);
    drop(client);
    proxy.until(LIMIT, |counts| counts.open == 0).await.unwrap();
}

#[tokio::test]
async fn a_half_open_connection_does_not_tell_its_end() {
    let redis = Redis::start().await.unwrap();
    let proxy = Proxy::start(redis.port()).await.unwrap();
    let mut client = TcpStream::connect(proxy.address()).await.unwrap();
    assert!(pings(&mut client).await);
    proxy.swallow(Swallow::Both);
    redis.kill().await.unwrap();
    assert!(timeout(SILENCE, client.read(&mut [0; 1])).await.is_err());
    proxy.swallow(Swallow::Nothing);
    let end = timeout(LIMIT, client.read(&mut [0; 1])).await.unwrap();
    assert!(matches!(end, Ok(0) | Err(_)));
}

/// Whether a broker answers the protocol header with its first method frame.
async fn greets(port: u16) -> bool {
    let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)).await else {
        return false;
    };
    let mut frame = [0; 1];
    stream.write_all(b"AMQP\x00\x00\x09\x01").await.is_ok()
        && stream.read_exact(&mut frame).await.is_ok()
        && frame == [1]
}

/// Whether Redis answers a ping on this connection.
async fn pings(stream: &mut TcpStream) -> bool {
    let mut reply = [0; 7];
    stream.write_all(b"PING\r\n").await.is_ok()
        && stream.read_exact(&mut reply).await.is_ok()
        && &reply == b"+PONG\r\n"
}

/// The TCP addresses on which a process listens, from the kernel's tables.
fn listening(pid: u32) -> Vec<SocketAddr> {
    let sockets: Vec<String> = fs::read_dir(format!("/proc/{pid}/fd"))
        .unwrap()
        .filter_map(|entry| fs::read_link(entry.ok()?.path()).ok())
        .map(|target| target.to_string_lossy().into_owned())
        .collect();
    let tables = ["tcp", "tcp6"]
        .map(|table| fs::read_to_string(format!("/proc/{pid}/net/{table}")).unwrap_or_default());
    let mut found = Vec::new();
    for line in tables.iter().flat_map(|table| table.lines().skip(1)) {
        let fields: Vec<&str> = line.split_whitespace().collect();
        // State 0A is LISTEN; field 9 is the socket's inode.
        if fields[3] != "0A" || !sockets.contains(&format!("socket:[{}]", fields[9])) {
            continue;
        }
        let (ip, port) = fields[1].split_once(':').unwrap();
        let port = u16::from_str_radix(port, 16).unwrap();
        // Each word of 32 bits is printed in the machine's own order of bytes.
        let bytes: Vec<u8> = (0..ip.len() / 8)
            .map(|word| u32::from_str_radix(&ip[word * 8..word * 8 + 8], 16).unwrap())
            .flat_map(u32::to_ne_bytes)
            .collect();
        found.push(match <[u8; 4]>::try_from(bytes.as_slice()) {
            Ok(v4) => SocketAddr::from((Ipv4Addr::from(v4), port)),
            Err(_) => {
                SocketAddr::from((Ipv6Addr::from(<[u8; 16]>::try_from(bytes).unwrap()), port))
            }
        });
    }
    found
}
