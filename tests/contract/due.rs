//! What the sweeper is given.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use askwell_shared::agent::Limits;
use askwell_shared::id::RunId;
use askwell_shared::ports::{Due, HINT_AGAIN, Store};
use askwell_shared::run::Event;
use askwell_shared::time::Millis;
use futures_util::future::join_all;
use serde_json::json;

use super::fixture::{LONG, Subject, answer, asking, person};

/// All that is due now.
pub(super) async fn take(on: &Subject) -> Due {
    take_all(&*on.ports.store).await
}

async fn take_all(store: &dyn Store) -> Due {
    let mut all = Due::default();
    for partition in 0..store.partitions() {
        let due = store.take_due(partition, 1_000).await.unwrap().value;
        all.ready.extend(due.ready);
        all.asks.extend(due.asks);
        all.leases.extend(due.leases);
    }
    all
}

/// A moment at which what was committed has waited for its own hint long enough.
async fn a_while_ago(on: &Subject) -> Millis {
    Millis(on.now().await.0 - 60_000)
}

/// Four sweepers at once: each run is hinted by one of them, and not again at once.
pub async fn a_ready_run_is_hinted_by_one_sweeper(on: Subject) {
    let past = a_while_ago(&on).await;
    let mut started = Vec::new();
    for _ in 0..20 {
        started.push(on.start_at(&person(), past).await.id);
    }
    let sweepers = (0..4).map(|_| {
        let store = Arc::clone(&on.ports.store);
        tokio::spawn(async move { take_all(&*store).await.ready })
    });
    let mut hinted: BTreeMap<RunId, usize> = BTreeMap::new();
    for ready in join_all(sweepers).await {
        for run in ready.unwrap() {
            *hinted.entry(run).or_default() += 1;
        }
    }
    for run in &started {
        assert_eq!(hinted.get(run), Some(&1), "{run}");
    }
    let again = take(&on).await.ready;
    assert!(!started.iter().any(|run| again.contains(run)));
}

/// A hint that nobody took does not count: the run is due again soon, and only where it needs one.
pub async fn a_hint_that_was_not_taken_comes_again_soon(on: Subject) {
    let past = a_while_ago(&on).await;
    let run = on.start_at(&person(), past).await.id;
    let claimed = on.start_at(&person(), past).await.id;
    assert!(take(&on).await.ready.contains(&run));
    on.claim(&claimed).await;
    for run in [&run, &claimed, &RunId::new(0, uuid::Uuid::nil())] {
        on.ports.store.unhinted(run).await.unwrap();
    }
    let set_back = on.now().await;
    loop {
        // Taking it before its time would move it back once more.
        let ready = take(&on).await.ready;
        assert!(!ready.contains(&claimed));
        if ready.contains(&run) {
            break;
        }
        let waited = on.now().await.since(set_back);
        assert!(waited < HINT_AGAIN + Duration::from_secs(1), "{waited:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Who committed hints first; the sweeper waits for that, and for `notBefore`.
pub async fn a_ready_run_is_not_due_before_its_time(on: Subject) {
    let new = on.start(&person()).await.id;
    let mut held = on.claim(&on.start(&person()).await.id).await;
    let until = on.now().await.after(LONG);
    on.work(&mut held, Event::Postponed { until, tries: 1 })
        .await;
    let ready = take(&on).await.ready;
    assert!(!ready.contains(&new));
    assert!(!ready.contains(&held.run.id));
}

/// A claimed, a waiting and an ended run.
pub async fn a_run_that_needs_no_hint_is_not_due(on: Subject) {
    let ada = person();
    let past = a_while_ago(&on).await;
    let claimed = on.start_at(&ada, past).await.id;
    on.claim(&claimed).await;
    let ended = on.start_at(&ada, past).await.id;
    on.sweep(&ended, Event::Cancelled).await;
    let waiting = on.start_at(&ada, past).await.id;
    let mut held = on.claim(&waiting).await;
    on.work(&mut held, asking(1, Limits::default())).await;
    let due = take(&on).await;
    for run in [&claimed, &ended, &waiting] {
        assert!(!due.ready.contains(run), "{run}");
    }
    // Nor is a run released a moment ago, whatever its age.
    let released = on.start_at(&ada, past).await.id;
    let mut held = on.claim(&released).await;
    on.work(&mut held, Event::Released).await;
    assert!(!take(&on).await.ready.contains(&released));
}

/// From its deadline on, until somebody settles it; each time anew, since no one has to act.
pub async fn an_ask_is_due_at_its_deadline(on: Subject) {
    let ada = person();
    let run = on.start(&ada).await;
    let mut held = on.claim(&run.id).await;
    let soon = Limits {
        ask: Duration::from_millis(1),
        ..Limits::default()
    };
    on.work(&mut held, asking(2, soon)).await;
    let later = on.waiting(&ada, 1).await;
    while on.now().await < held.run.asks[0].deadline {
        tokio::task::yield_now().await;
    }
    let asks = take(&on).await.asks;
    for ask in &held.run.asks {
        assert!(asks.contains(&(run.id.clone(), ask.id.clone())));
    }
    assert!(asks.iter().all(|(due, _)| *due != later.id));
    let expired = Event::Expired {
        ask: held.run.asks[0].id.clone(),
    };
    on.sweep(&run.id, expired).await;
    let asks: Vec<_> = take(&on).await.asks;
    let left: Vec<_> = asks.iter().filter(|(due, _)| *due == run.id).collect();
    assert_eq!(left, [&(run.id.clone(), held.run.asks[1].id.clone())]);
    // An answer takes an ask out as well.
    let early = answer(&later.asks[0].id, &ada, json!("M"), "c");
    on.sweep(&later.id, early).await;
    on.sweep(&run.id, Event::Cancelled).await;
    let asks = take(&on).await.asks;
    assert!(
        asks.iter()
            .all(|(due, _)| *due != later.id && *due != run.id)
    );
}

/// From its end on, unless it is renewed or given up.
pub async fn a_lease_is_due_at_its_end(on: Subject) {
    let ada = person();
    let over = on.claim_for(&on.start(&ada).await.id, Duration::ZERO).await;
    let renewed = on.claim(&on.start(&ada).await.id).await;
    let fresh = on.claim(&on.start(&ada).await.id).await;
    let mut released = on.claim_for(&on.start(&ada).await.id, Duration::ZERO).await;
    on.work(&mut released, Event::Released).await;
    let store = &on.ports.store;
    let reply = store.renew(&renewed.run.id, &renewed.token, LONG).await;
    assert!(reply.unwrap().value.is_some());
    let leases = take(&on).await.leases;
    assert!(leases.contains(&over.run.id));
    for held in [&renewed, &fresh, &released] {
        assert!(!leases.contains(&held.run.id));
    }
    let run = on.sweep(&over.run.id, Event::Reclaimed).await;
    assert_eq!(run.attempts, 1);
    assert!(!take(&on).await.leases.contains(&over.run.id));
}

/// A crowd of due runs comes in portions, the longest due first.
pub async fn no_more_than_the_limit_is_taken(on: Subject) {
    let ada = person();
    let past = a_while_ago(&on).await;
    let mut started = Vec::new();
    for number in 0..5 {
        started.push(
            on.start_at(&ada, past.after(Duration::from_secs(number)))
                .await
                .id,
        );
    }
    // One person's runs share a partition.
    let partition = started[0].partition() % on.ports.store.partitions();
    let mut taken = Vec::new();
    for size in [2, 2, 1, 0] {
        let due = on.ports.store.take_due(partition, 2).await.unwrap().value;
        assert_eq!(due.ready.len(), size);
        taken.extend(due.ready);
    }
    assert_eq!(taken, started);
}
