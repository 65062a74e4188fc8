//! The store on Redis where the contract does not reach: lost replies, frozen and restarted
//! servers, servers that are unfit, and what a claim leaves behind.
#![allow(clippy::unwrap_used, reason = "what cannot be set up fails the test")]

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use askwell_shared::agent::{Limits, OnMessage};
use askwell_shared::backends::{embedded, redis};
use askwell_shared::caller::Starter;
use askwell_shared::id::{Owner, RunId, partition_for};
use askwell_shared::ports::{
    Clock, Commit, Committer, Committing, Fault, Leased, Page, Ports, Store, Whose,
};
use askwell_shared::run::{Event, Run, Status};
use askwell_shared::thread::Thread;
use askwell_shared::wire::with_seq;
use askwell_tests::contract::Subject;
use askwell_tests::contract::fixture::{
    Held, LONG, answer, asking, beginning, calling, command, done, fresh, last_turn, leased, owner,
    page, person, system,
};
use askwell_tests::proxy::{Proxy, Swallow};
use askwell_tests::servers::Redis;
use futures_util::future::join_all;
use serde_json::json;
use uuid::Uuid;

fn subject(store: Arc<dyn Store>) -> Subject {
    Subject {
        ports: Ports {
            store,
            hints: embedded::local_hints(),
            feed: embedded::local_feed(),
        },
        travel: None,
        keep: Box::new(()),
    }
}

async fn open(url: &str) -> Subject {
    subject(redis::open(url).await.unwrap())
}

/// A store behind a proxy, and the server beside it.
async fn behind_proxy() -> (Redis, Proxy, Subject) {
    let server = Redis::start().await.unwrap();
    let proxy = Proxy::start(server.port()).await.unwrap();
    let on = open(&format!("redis://{}/", proxy.address())).await;
    (server, proxy, on)
}

/// Tries until it goes well; a test that hangs here fails by its limit.
async fn at_last<T>(limit: Duration, mut tried: impl AsyncFnMut() -> Result<T, Fault>) -> T {
    let tries = async {
        loop {
            if let Ok(value) = tried().await {
                return value;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(limit, tries).await.unwrap()
}

/// The worker that was given a claim.
fn held(claim: Leased) -> Held {
    Held {
        token: claim.run.lease.clone().unwrap().token,
        run: claim.run,
        op: 0,
    }
}

/// Has every connection up, so that what is sent next is sent, not held back by a greeting.
async fn warm(on: &Subject) {
    for _ in 0..8 {
        at_last(LONG, async || on.ports.store.agents().await).await;
    }
}

/// The script writes what the pure function decides: run, frame and log entry.
#[tokio::test]
async fn a_claim_is_what_the_state_machine_decides() {
    let server = Redis::start().await.unwrap();
    let on = open(&server.url()).await;
    let shop = system();
    let mut start = beginning(&shop, None);
    // Digits, an empty list and an empty object: what Lua's JSON would change.
    start.input = serde_json::from_str(r#"{"n":1.10,"big":1E400,"l":[],"o":{}}"#).unwrap();
    let sent = start.input.to_string();
    let moved = Run::start(start, true, 0, on.now().await);
    let id = moved.run.id.clone();
    done(
        on.write(&Commit::of(Committer::Sweeper, Clock::Any, moved))
            .await,
    );
    let stalled = Event::Stalled {
        reason: "no worker has r1".into(),
    };
    on.sweep(&id, stalled).await;
    // New, stalled, and after an answer.
    for round in 0..3 {
        let before = on.load(&id).await;
        let nonce = format!("n{round}");
        let reply = on.ports.store.lease(&id, &nonce, LONG).await.unwrap();
        let until = reply.now.after(LONG);
        let expected = before.apply(Event::Leased { nonce, until }, reply.now);
        let expected = expected.unwrap();
        let claim = leased(reply.value);
        assert_eq!(claim.run, expected.run);
        assert_eq!(claim.frames, expected.frames);
        assert_eq!(on.load(&id).await, expected.run);
        let owner = expected.run.owner();
        let store = &on.ports.store;
        let log = store.events_after(&owner, claim.seq - 1, 9).await.unwrap();
        let frame = with_seq(&expected.frames[0].text(), claim.seq);
        assert_eq!(log.frames, [(claim.seq, Arc::from(frame))]);
        assert_eq!(claim.run.input.to_string(), sent);

        let mut held = held(claim);
        on.work(&mut held, asking(1, Limits::default())).await;
        let asked = held.run.asks.last().unwrap().id.clone();
        on.sweep(&id, answer(&asked, &shop, json!("M"), "c")).await;
    }
}

/// The reply is lost after the script ran: the same op gets it, and nothing is done twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_op_gets_the_reply_that_was_lost() {
    let (_server, proxy, on) = behind_proxy().await;
    let ada = person();
    let store = &on.ports.store;
    let run = on.start(&ada).await;

    warm(&on).await;
    proxy.swallow(Swallow::ToClient);
    store.lease(&run.id, "n1", LONG).await.unwrap_err();
    proxy.swallow(Swallow::Nothing);
    let claim = at_last(LONG, async || store.lease(&run.id, "n1", LONG).await).await;
    let claim = leased(claim.value);
    assert_eq!((claim.run.fence, claim.seq), (1, 3));

    let mut held = held(claim);
    let moved = held.run.apply(asking(2, Limits::default()), on.now().await);
    let moved = moved.unwrap();
    held.run = moved.run.clone();
    let commit = held.commit(moved);
    warm(&on).await;
    proxy.swallow(Swallow::ToClient);
    store.commit(&commit).await.unwrap_err();
    proxy.swallow(Swallow::Nothing);
    let reply = at_last(LONG, async || store.commit(&commit).await).await;
    assert_eq!(done(reply).seq, 7);

    // The server knows the script by now: else the lost reply could be that it does not.
    let answered = async |number: usize| {
        let write = command(&ada, Some(&run.id));
        let ask = &held.run.asks[number].id;
        let settled = answer(ask, &ada, json!("M"), &write.key.cmd);
        let moved = on.load(&run.id).await.apply(settled, on.now().await);
        Commit::of(Committer::Caller(write), Clock::Any, moved.unwrap())
    };
    assert_eq!(done(on.write(&answered(0).await).await).seq, 8);

    let commit = answered(1).await;
    warm(&on).await;
    proxy.swallow(Swallow::ToClient);
    store.commit(&commit).await.unwrap_err();
    proxy.swallow(Swallow::Nothing);
    let reply = at_last(LONG, async || store.commit(&commit).await).await;
    let Committing::Known(record) = reply else {
        panic!("carried out twice: {reply:?}")
    };
    assert_eq!(record.seq, 10);
    assert_eq!(store.heads(&[owner(&ada)]).await.unwrap(), [10]);
}

/// Every script that timed out ran when the server went on; the same op answers the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_timed_out_on_a_frozen_server_was_done_once() {
    let server = Redis::start().await.unwrap();
    let on = open(&server.url()).await;
    let now = on.now().await;
    let starts: Vec<Commit> = (0..20)
        .map(|_| {
            let ada = person();
            let by = Committer::Caller(command(&ada, None));
            Commit::of(by, Clock::Any, fresh(&ada, now))
        })
        .collect();
    warm(&on).await;
    server.process().freeze().unwrap();
    let frozen = std::time::Instant::now();
    let replies = join_all(starts.iter().map(|start| on.ports.store.commit(start))).await;
    assert!(replies.iter().all(Result::is_err));
    tokio::time::sleep(Duration::from_secs(5).saturating_sub(frozen.elapsed())).await;
    server.process().thaw().unwrap();
    for start in &starts {
        let store = &on.ports.store;
        let reply = at_last(Duration::from_secs(5), async || store.commit(start).await).await;
        // The repetition may overtake the first one, which the server reads from its own socket.
        match reply {
            Committing::Known(record) => assert_eq!(record.seq, 2),
            reply => assert_eq!(done(reply).seq, 2),
        }
        let heads = store.heads(std::slice::from_ref(&start.owner)).await;
        assert_eq!(heads.unwrap(), [2]);
        let runs = store.runs(&everything(&start.owner)).await.unwrap().value;
        assert_eq!(runs.len(), 1);
    }
}

fn everything(owner: &Owner) -> Page {
    let Owner::Person(sub) = owner else {
        panic!("{owner:?} is no person")
    };
    page(&Starter {
        sub: sub.clone(),
        system: false,
    })
}

/// A restart keeps everything that was acknowledged; its life is another.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_keeps_everything() {
    let mut server = Redis::start().await.unwrap();
    let on = open(&server.url()).await;
    let ada = person();
    let waiting = on.waiting(&ada, 2).await;
    let running = on.start(&ada).await;
    let held = on.claim(&running.id).await;
    let store = &on.ports.store;
    let before = store.snapshot(&owner(&ada)).await.unwrap();
    let whole = on.load(&waiting.id).await;
    server.kill().await.unwrap();
    assert!(store.snapshot(&owner(&ada)).await.is_err());
    server.restart().await.unwrap();
    let limit = Duration::from_secs(5);
    let after = at_last(limit, async || store.snapshot(&owner(&ada)).await).await;
    assert_eq!((&after.asks, &after.runs), (&before.asks, &before.runs));
    assert_eq!(after.seq, before.seq);
    assert_ne!(after.epoch, before.epoch);
    let events = store.events_after(&owner(&ada), 0, 100).await.unwrap();
    assert_eq!(events.epoch, after.epoch);
    assert_eq!(events.frames.len() as u64, after.seq);
    assert_eq!(on.load(&waiting.id).await, whole);
    assert_eq!(on.load(&running.id).await, held.run);
    let renewed = store.renew(&running.id, &held.token, LONG).await.unwrap();
    assert!(renewed.value.is_some(), "a lease outlives the server");
}

/// Connections that are cut are replaced without anyone's help, and nobody is told.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cut_connection_is_replaced() {
    let (server, proxy, on) = behind_proxy().await;
    let ada = person();
    for _ in 0..3 {
        on.start(&ada).await;
        proxy.cut().await.unwrap();
        on.start(&ada).await;
        server
            .command(&["CLIENT", "KILL", "TYPE", "normal"])
            .await
            .unwrap();
        on.start(&ada).await;
    }
    let heads = on.ports.store.heads(&[owner(&ada)]).await.unwrap();
    assert_eq!(heads, [18]);
}

/// A server that forgot the scripts is told them again.
#[tokio::test]
async fn forgotten_scripts_are_sent_again() {
    let server = Redis::start().await.unwrap();
    let on = open(&server.url()).await;
    let ada = person();
    on.start(&ada).await;
    server.command(&["SCRIPT", "FLUSH"]).await.unwrap();
    let run = on.start(&ada).await;
    on.claim(&run.id).await;
}

/// A store that is not there yet is no fault: it serves when it is.
#[tokio::test]
async fn a_server_that_comes_late_is_waited_for() {
    let mut server = Redis::start().await.unwrap();
    server.kill().await.unwrap();
    let on = open(&server.url()).await;
    let ada = person();
    on.ports.store.heads(&[owner(&ada)]).await.unwrap_err();
    server.restart().await.unwrap();
    on.start(&ada).await;
}

async fn refused(server: &Redis) -> String {
    match redis::open(&server.url()).await {
        Ok(_) => panic!("opened"),
        Err(fault) => fault.to_string(),
    }
}

/// A server that drops keys when it is full is named and not used, found at the start or later.
#[tokio::test]
async fn a_server_that_evicts_is_refused() {
    let server = Redis::start().await.unwrap();
    let on = open(&server.url()).await;
    let policy = ["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"];
    server.command(&policy).await.unwrap();
    let fault = refused(&server).await;
    assert!(fault.contains("maxmemory-policy") && fault.contains("allkeys-lru"));
    assert!(fault.contains("noeviction"), "{fault}");
    // Who holds connections already learns it at the next one.
    server
        .command(&["CLIENT", "KILL", "TYPE", "normal"])
        .await
        .unwrap();
    let fault = on.ports.store.agents().await.unwrap_err();
    assert!(fault.to_string().contains("maxmemory-policy"), "{fault}");
}

/// A store that is laid out otherwise is left alone.
#[tokio::test]
async fn a_store_laid_out_otherwise_is_refused() {
    let server = Redis::start().await.unwrap();
    open(&server.url()).await;
    for (field, other, ours) in [
        ("partitions", "32", "64"),
        ("hash", "crc16", "sha256/first-byte"),
        ("v", "2", "1"),
    ] {
        let set = ["HSET", "aw:{meta}", field];
        server
            .command(&[&set[..], &[other]].concat())
            .await
            .unwrap();
        let fault = refused(&server).await;
        assert!(fault.contains(field) && fault.contains(other), "{fault}");
        server.command(&[&set[..], &[ours]].concat()).await.unwrap();
    }
    open(&server.url()).await;
    assert!(redis::open("http://127.0.0.1/").await.is_err());
}

/// A record that a newer program wrote is a fault, and stays as it is.
#[tokio::test]
async fn a_newer_record_is_left_alone() {
    let server = Redis::start().await.unwrap();
    let on = open(&server.url()).await;
    let ada = person();
    let run = on.start(&ada).await;
    let other = on.start(&ada).await;
    let key = format!("aw:{{p{:02}}}:run:{}", run.id.partition(), run.id);
    server.command(&["HSET", &key, "v", "9"]).await.unwrap();
    let before = server.command(&["HGETALL", &key]).await.unwrap();
    let store = &on.ports.store;
    let fault = store.load(&run.id, None).await.unwrap_err();
    assert!(fault.to_string().contains("version 9"), "{fault}");
    store.lease(&run.id, "n", LONG).await.unwrap_err();
    let moved = run.apply(Event::Cancelled, on.now().await).unwrap();
    let commit = Commit::of(Committer::Sweeper, Clock::Any, moved);
    store.commit(&commit).await.unwrap_err();
    assert_eq!(server.command(&["HGETALL", &key]).await.unwrap(), before);
    // Lists and snapshots show the others.
    let runs = store.runs(&page(&ada)).await.unwrap().value;
    assert_eq!(runs, std::slice::from_ref(&other));
    let snapshot = store.snapshot(&owner(&ada)).await.unwrap();
    assert_eq!(snapshot.runs.len(), 1);
    assert_eq!(snapshot.runs[0].run, other.id);
}

/// Where the memory is full nothing is half done: starts are refused whole, answers and cancels
/// go on.
#[tokio::test]
async fn a_full_memory_refuses_starts_and_lets_people_end_things() {
    let server = Redis::start().await.unwrap();
    let on = open(&server.url()).await;
    let store = &on.ports.store;
    let ada = person();
    let waiting = on.waiting(&ada, 1).await;
    let cancelled = on.waiting(&ada, 1).await;
    let mut finishing = on.claim(&on.start(&ada).await.id).await;
    assert!(store.room().await.unwrap());
    server
        .command(&["CONFIG", "SET", "maxmemory", "1mb"])
        .await
        .unwrap();
    // One look at the memory serves for a second.
    let full = async || {
        if store.room().await? {
            Err(Fault::new("room", "not full yet"))
        } else {
            Ok(())
        }
    };
    at_last(Duration::from_secs(10), full).await;

    let before = on.picture(&ada, &[&waiting.id]).await;
    let by = Committer::Caller(command(&ada, None));
    let start = Commit::of(by, Clock::Any, fresh(&ada, on.now().await));
    let fault = store.commit(&start).await.unwrap_err();
    assert!(fault.to_string().contains("OOM"), "{fault}");
    assert_eq!(on.picture(&ada, &[&waiting.id]).await, before);

    let write = command(&ada, Some(&waiting.id));
    let settled = answer(&waiting.asks[0].id, &ada, json!("M"), &write.key.cmd);
    let moved = waiting.apply(settled, on.now().await).unwrap();
    let by = Committer::Caller(write);
    done(on.write(&Commit::of(by, Clock::Any, moved)).await);
    on.sweep(&cancelled.id, Event::Cancelled).await;
    let renewed = store.renew(&finishing.run.id, &finishing.token, LONG).await;
    assert!(renewed.unwrap().value.is_some());
    on.work(&mut finishing, last_turn("Done.")).await;
    store.lease(&waiting.id, "n", LONG).await.unwrap_err();

    server
        .command(&["CONFIG", "SET", "maxmemory", "0"])
        .await
        .unwrap();
    done(on.write(&start).await);
    on.claim(&waiting.id).await;
}

/// Presence counts in commits, claims and renewals until it runs out.
#[tokio::test]
async fn presence_is_told_until_it_runs_out() {
    let server = Redis::start().await.unwrap();
    let on = open(&server.url()).await;
    let store = &on.ports.store;
    let (ada, shop) = (person(), system());
    let its = fresh(&shop, on.now().await);
    let owners = [owner(&ada), its.run.owner(), owner(&person())];
    store.arrive("g1", &owners, LONG).await.unwrap();
    store.arrive("g2", &owners[..1], LONG).await.unwrap();
    store
        .arrive("g3", &owners, Duration::from_millis(1))
        .await
        .unwrap();
    let ran_out = on.now().await.after(Duration::from_millis(5));
    while on.now().await < ran_out {
        tokio::task::yield_now().await;
    }
    let moved = fresh(&ada, on.now().await);
    let id = moved.run.id.clone();
    let commit = Commit::of(Committer::Sweeper, Clock::Any, moved);
    assert_eq!(done(on.write(&commit).await).online, ["g1", "g2"]);
    let claim = leased(store.lease(&id, "n", LONG).await.unwrap().value);
    assert_eq!(claim.online, ["g1", "g2"]);
    let token = claim.run.lease.unwrap().token;
    let renewed = store.renew(&id, &token, LONG).await.unwrap().value;
    assert_eq!(renewed.unwrap(), ["g1", "g2"]);
    let commit = Commit::of(Committer::Sweeper, Clock::Any, its);
    assert_eq!(done(on.write(&commit).await).online, ["g1"]);
    let stranger = Commit::of(
        Committer::Sweeper,
        Clock::Any,
        fresh(&person(), on.now().await),
    );
    assert_eq!(done(on.write(&stranger).await).online, [""; 0]);
    // A shorter one of the same gateway takes nothing back.
    store
        .arrive("g1", &owners[1..2], Duration::from_millis(1))
        .await
        .unwrap();
    let claim = store.lease(&commit.runs[0].run.id, "n", LONG).await;
    assert_eq!(leased(claim.unwrap().value).online, ["g1"]);
}

/// What was forgotten leaves nothing but the head and log of a person, and in that log a gap that
/// is told.
#[tokio::test]
async fn what_is_forgotten_leaves_nothing() {
    let server = Redis::start().await.unwrap();
    let ahead = Arc::new(AtomicI64::new(0));
    let store = redis::open_ahead(&server.url(), Arc::clone(&ahead)).await;
    let on = subject(store.unwrap());
    let store = &on.ports.store;
    let (ada, shop) = (person(), system());
    for starter in [&ada, &shop] {
        let run = on.waiting(starter, 2).await;
        let write = command(starter, Some(&run.id));
        let settled = answer(&run.asks[0].id, starter, json!("M"), &write.key.cmd);
        let moved = run.apply(settled, on.now().await).unwrap();
        let by = Committer::Caller(write);
        done(on.write(&Commit::of(by, Clock::Any, moved)).await);
        on.sweep(&run.id, Event::Cancelled).await;
        // With a journal, and ended by its worker.
        let run = on.start(starter).await;
        let mut held = on.claim(&run.id).await;
        on.work(&mut held, calling(&["look"])).await;
        let reason = "model: 400".to_owned();
        on.work(&mut held, Event::Failed { reason }).await;
    }
    let thread = Thread::new(owner(&ada), "chat".to_owned());
    let start = beginning(&ada, Some("chat"));
    let now = on.now().await;
    let moved = thread.start(start, OnMessage::Queue, None, None, now);
    let moved = moved.unwrap();
    let run = moved.runs[0].run.clone();
    let commit = Commit::of_thread(Committer::Sweeper, Clock::Any, moved.clone());
    done(on.write(&commit).await);
    let cancelled = run.apply(Event::Cancelled, now).unwrap();
    let moved = moved.thread.end(cancelled, None, now).unwrap();
    done(
        on.write(&Commit::of_thread(Committer::Sweeper, Clock::Any, moved))
            .await,
    );
    let head = store.heads(&[owner(&ada)]).await.unwrap();

    ahead.fetch_add(31 * 24 * 60 * 60 * 1_000, Ordering::SeqCst);
    for _ in 0..2 {
        for partition in 0..store.partitions() {
            store.forget(partition).await.unwrap();
        }
    }
    let keys = server.command(&["KEYS", "*"]).await.unwrap();
    let kind = |key: &str| key.split(':').nth(2).unwrap_or(key).to_owned();
    let mut left: Vec<String> = keys.lines().map(kind).collect();
    // Commands that settled nothing go by the server's own clock, which nobody moved.
    left.retain(|kind| kind != "cmd");
    left.sort();
    assert_eq!(left, ["aw:{meta}", "head", "log"], "{keys}");
    assert_eq!(store.heads(&[owner(&ada)]).await.unwrap(), head);
    let events = store.events_after(&owner(&ada), 0, 1_000).await.unwrap();
    assert!(events.trimmed && events.frames.is_empty());
    for key in keys.lines().filter(|key| kind(key) == "cmd") {
        let left = server.command(&["PTTL", key]).await.unwrap();
        assert!(left.parse::<i64>().unwrap() > 0, "{key}");
    }
}

/// Lists over all partitions: every page in its order, none twice, none left out.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_of_many_partitions_are_merged() {
    let server = Redis::start().await.unwrap();
    let on = open(&server.url()).await;
    let shop = system();
    let now = on.now().await;
    let mut expected = Vec::new();
    for number in 0..300 {
        let created = now.after(Duration::from_millis(number % 7));
        let mut start = beginning(&shop, None);
        if number > 150 {
            // A crowd in one partition.
            start.id = RunId::new(5, Uuid::now_v7());
        }
        let moved = Run::start(start, true, 0, created);
        expected.push((created, moved.run.id.to_string()));
        let commit = Commit::of(Committer::Sweeper, Clock::Any, moved);
        done(on.write(&commit).await);
    }
    expected.sort();
    expected.reverse();
    for (whose, limit) in [
        (Whose::Of(shop.clone()), 7),
        (Whose::All, 100),
        (Whose::All, 1_000),
    ] {
        let mut page = Page {
            whose,
            limit,
            ..page(&shop)
        };
        let mut seen = Vec::new();
        loop {
            let runs = on.ports.store.runs(&page).await.unwrap().value;
            let Some(last) = runs.last() else { break };
            page.after = Some((last.created, last.id.to_string()));
            seen.extend(runs.iter().map(|run| (run.created, run.id.to_string())));
        }
        assert_eq!(seen, expected);
    }
}

/// With Cluster on, every script stays within one slot: the life of a person's run in a thread
/// and of a system's, lists, and the sweeper.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_script_stays_within_a_slot() {
    let server = Redis::start_with(&["--cluster-enabled", "yes"])
        .await
        .unwrap();
    let slots = ["CLUSTER", "ADDSLOTSRANGE", "0", "16383"];
    server.command(&slots).await.unwrap();
    loop {
        let state = server.command(&["CLUSTER", "INFO"]).await.unwrap();
        if state.contains("cluster_state:ok") {
            break;
        }
    }
    let on = open(&server.url()).await;
    let store = &on.ports.store;
    let (ada, shop) = (person(), system());
    for starter in [&ada, &shop] {
        let write = command(starter, None);
        let mut start = beginning(starter, None);
        start.id = RunId::new(partition_for(starter, &write.key.cmd), Uuid::now_v7());
        let moved = Run::start(start, true, 0, on.now().await);
        let id = moved.run.id.clone();
        let commit = Commit::of(Committer::Caller(write), Clock::Any, moved);
        done(on.write(&commit).await);
        let mut held = on.claim(&id).await;
        on.work(&mut held, asking(2, Limits::default())).await;
        let write = command(starter, Some(&id));
        let settled = answer(&held.run.asks[0].id, starter, json!("M"), &write.key.cmd);
        let moved = held.run.apply(settled, on.now().await).unwrap();
        let commit = Commit::of(Committer::Caller(write), Clock::Any, moved.clone());
        done(on.write(&commit).await);
        store.snapshot(&moved.run.owner()).await.unwrap();
        on.sweep(&id, Event::Cancelled).await;
        assert_eq!(store.runs(&page(starter)).await.unwrap().value.len(), 1);
    }
    let all = Page {
        whose: Whose::All,
        ..page(&ada)
    };
    assert_eq!(store.runs(&all).await.unwrap().value.len(), 2);
    let owners = [owner(&ada), owner(&person()), owner(&person())];
    store.heads(&owners[..1]).await.unwrap();
    store.arrive("g", &owners, LONG).await.unwrap();
    for partition in 0..store.partitions() {
        store.take_due(partition, 10).await.unwrap();
        store.forget(partition).await.unwrap();
    }
}

/// Keys that lie on several nodes would not be found: said at the start.
#[tokio::test]
async fn a_cluster_of_several_nodes_is_refused() {
    let settings = ["--cluster-enabled", "yes"];
    let (one, two) = (
        Redis::start_with(&settings).await.unwrap(),
        Redis::start_with(&settings).await.unwrap(),
    );
    for (server, from, to) in [(&one, "0", "8000"), (&two, "8001", "16383")] {
        let slots = ["CLUSTER", "ADDSLOTSRANGE", from, to];
        server.command(&slots).await.unwrap();
    }
    let port = two.port().to_string();
    let meet = ["CLUSTER", "MEET", "127.0.0.1", &port];
    one.command(&meet).await.unwrap();
    loop {
        let info = one.command(&["CLUSTER", "INFO"]).await.unwrap();
        if info.contains("cluster_size:2") {
            break;
        }
    }
    let fault = refused(&one).await;
    assert!(fault.contains("Cluster"), "{fault}");
}

/// A caller is told that all is well only when a replica has it; a repetition waits again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_waits_for_a_replica() {
    let server = Redis::start().await.unwrap();
    let replica = Redis::start().await.unwrap();
    let port = server.port().to_string();
    replica
        .command(&["REPLICAOF", "127.0.0.1", &port])
        .await
        .unwrap();
    while !server
        .command(&["INFO", "replication"])
        .await
        .unwrap()
        .contains("state=online")
    {}
    for (name, value) in [
        ("min-replicas-to-write", "1"),
        ("min-replicas-max-lag", "60"),
    ] {
        server
            .command(&["CONFIG", "SET", name, value])
            .await
            .unwrap();
    }
    let on = open(&server.url()).await;
    let ada = person();
    let run = on.waiting(&ada, 1).await;
    let write = command(&ada, Some(&run.id));
    let settled = answer(&run.asks[0].id, &ada, json!("M"), &write.key.cmd);
    let moved = run.apply(settled, on.now().await).unwrap();
    let commit = Commit::of(Committer::Caller(write), Clock::Any, moved);
    replica.process().freeze().unwrap();
    let store = &on.ports.store;
    for _ in 0..2 {
        let fault = store.commit(&commit).await.unwrap_err();
        assert!(fault.to_string().contains("0 replicas"), "{fault}");
    }
    replica.process().thaw().unwrap();
    let reply = at_last(LONG, async || store.commit(&commit).await).await;
    assert!(matches!(reply, Committing::Known(_)), "{reply:?}");
    let status = on.load(&run.id).await.status;
    assert_eq!(status, Status::Queued);

    // A replica is not the store.
    let other = open(&replica.url()).await;
    let fault = other.ports.store.agents().await.unwrap_err();
    assert!(fault.to_string().contains("slave"), "{fault}");
}

/// Printed, not judged: how long a claim and a commit take, and what a waiting run takes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_run_costs() {
    const RUNS: usize = 2_000;
    let server = Redis::start().await.unwrap();
    let everysec = ["CONFIG", "SET", "appendfsync", "everysec"];
    server.command(&everysec).await.unwrap();
    let on = open(&server.url()).await;
    let used = async || -> u64 {
        let info = server.command(&["INFO", "memory"]).await.unwrap();
        let used = info
            .lines()
            .find_map(|line| line.strip_prefix("used_memory:"));
        used.unwrap().trim().parse().unwrap()
    };
    on.waiting(&person(), 1).await;
    let (before, keys) = (used().await, server.command(&["DBSIZE"]).await.unwrap());
    let (mut claims, mut commits) = (Vec::new(), Vec::new());
    for number in 0..RUNS {
        let ada = Starter {
            sub: format!("ada-{}", number / 10),
            system: false,
        };
        let run = on.start(&ada).await;
        let start = std::time::Instant::now();
        let mut held = on.claim(&run.id).await;
        claims.push(start.elapsed());
        let moved = held.run.apply(asking(1, Limits::default()), on.now().await);
        let commit = held.commit(moved.unwrap());
        let start = std::time::Instant::now();
        done(on.write(&commit).await);
        commits.push(start.elapsed());
    }
    claims.sort();
    commits.sort();
    let bytes = (used().await - before) / RUNS as u64;
    let after = server.command(&["DBSIZE"]).await.unwrap();
    println!(
        "claim p50 {:?}, commit p50 {:?}; a waiting run: {bytes} bytes; keys {keys} -> {after}",
        claims[RUNS / 2],
        commits[RUNS / 2],
    );
}
