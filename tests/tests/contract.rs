//! Every backend keeps the contract of the ports.
#![allow(
    clippy::unwrap_used,
    reason = "a store that cannot be opened fails the test"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use askwell_shared::backends::{embedded, redis};
use askwell_shared::ports::Ports;
use askwell_shared::time::Millis;
use askwell_tests::contract::Subject;
use askwell_tests::servers::Redis;
use tempfile::tempdir;

/// A fresh store of the embedded backend, with a clock that can be moved on.
async fn open_embedded() -> Subject {
    let folder = tempdir().unwrap();
    let moved = Arc::new(AtomicI64::new(0));
    let (system, offset) = (embedded::system_clock(), Arc::clone(&moved));
    let now = Arc::new(move || Millis(system().0 + offset.load(Ordering::SeqCst)));
    let path = folder.path().to_owned();
    let opened = tokio::task::spawn_blocking(move || embedded::open(&path, now));
    Subject {
        ports: opened.await.unwrap().unwrap(),
        travel: Some(Box::new(move |time: Duration| {
            let time = i64::try_from(time.as_millis()).unwrap();
            moved.fetch_add(time, Ordering::SeqCst);
        })),
        keep: Box::new(folder),
    }
}

/// A fresh store on a Redis of its own, with hints and feed of this process.
async fn open_redis() -> Subject {
    let server = Redis::start().await.unwrap();
    let ahead = Arc::new(AtomicI64::new(0));
    let store = redis::open_ahead(&server.url(), Arc::clone(&ahead)).await;
    Subject {
        ports: Ports {
            store: store.unwrap(),
            hints: embedded::local_hints(),
            feed: embedded::local_feed(),
        },
        travel: Some(Box::new(move |time: Duration| {
            let time = i64::try_from(time.as_millis()).unwrap();
            ahead.fetch_add(time, Ordering::SeqCst);
        })),
        keep: Box::new(server),
    }
}

mod redis_backend {
    askwell_tests::contract!(crate::open_redis);
    askwell_tests::contract_over_time!(crate::open_redis);
}

mod embedded_backend {
    askwell_tests::contract!(crate::open_embedded);
    askwell_tests::contract_over_time!(crate::open_embedded);
}

/// A promise that nobody lists is tested by nobody.
#[test]
fn every_promise_is_listed() {
    let list = include_str!("../contract/suite.rs");
    let modules = [
        include_str!("../contract/atomicity.rs"),
        include_str!("../contract/commits.rs"),
        include_str!("../contract/due.rs"),
        include_str!("../contract/leases.rs"),
        include_str!("../contract/lists.rs"),
        include_str!("../contract/logs.rs"),
        include_str!("../contract/news.rs"),
        include_str!("../contract/over_time.rs"),
        include_str!("../contract/threads.rs"),
    ];
    let listed: Vec<&str> = list
        .split(|char: char| !char.is_ascii_alphanumeric() && char != '_')
        .collect();
    for line in modules.iter().flat_map(|module| module.lines()) {
        let Some(rest) = line.strip_prefix("pub async fn ") else {
            continue;
        };
        let name = rest.split('(').next().unwrap_or_default();
        assert!(listed.contains(&name), "{name}");
    }
}
