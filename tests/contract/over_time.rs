//! Promises that take minutes to months, for stores whose clock can be moved.

use std::time::Duration;

use askwell_shared::ports::{Clock, Commit, Committer};
use askwell_shared::run::Event;
use serde_json::json;

use super::due::take;
use super::fixture::{
    Subject, announcement, answer, command, done, last_turn, owner, page, person, system,
};
use super::threads;

const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);

async fn forget(on: &Subject) {
    let store = &on.ports.store;
    for partition in 0..store.partitions() {
        store.forget(partition).await.unwrap();
    }
}

async fn is_there(on: &Subject, run: &askwell_shared::id::RunId) -> bool {
    let found = on.ports.store.load(run, None).await.unwrap();
    found.value.run.is_some()
}

/// After 5 s, 30 s, then twice as long each time, at most 5 min (DESIGN 5).
pub async fn hints_are_repeated_ever_less_often(on: Subject) {
    let run = on.start(&person()).await.id;
    let mut wait = Duration::from_secs(2);
    for next in [5, 30, 60, 120, 240, 300, 300] {
        on.travel(wait.saturating_sub(Duration::from_millis(500)));
        assert!(!take(&on).await.ready.contains(&run), "before {wait:?}");
        on.travel(Duration::from_millis(500));
        assert!(take(&on).await.ready.contains(&run), "after {wait:?}");
        wait = Duration::from_secs(next);
    }
}

/// A run that changed is hinted as soon as a new one.
pub async fn a_commit_begins_the_hints_anew(on: Subject) {
    let run = on.start(&person()).await.id;
    for wait in [2, 5, 30] {
        on.travel(Duration::from_secs(wait));
        assert!(take(&on).await.ready.contains(&run));
    }
    let stalled = Event::Stalled {
        reason: "no worker".into(),
    };
    on.sweep(&run, stalled).await;
    for wait in [2, 5, 30] {
        on.travel(Duration::from_secs(wait));
        assert!(take(&on).await.ready.contains(&run), "after {wait} s");
    }
}

/// A run that waits for months, with its asks, its log and its thread.
pub async fn live_things_are_never_forgotten(on: Subject) {
    let ada = person();
    let waiting = on.waiting(&ada, 2).await.id;
    let queued = threads::start(&on, &ada).await.id;
    let running = on.start(&ada).await.id;
    on.claim(&running).await;
    let runs = [&waiting, &queued, &running];
    let before = on.picture(&ada, &runs).await;
    on.travel(400 * DAY);
    forget(&on).await;
    assert_eq!(on.picture(&ada, &runs).await, before);
}

/// 7 days, a failed one 30 (SPEC 5), with all that belongs to it.
pub async fn ended_runs_are_forgotten_in_their_time(on: Subject) {
    let (ada, shop) = (person(), system());
    let cancelled = on.waiting(&ada, 1).await.id;
    on.sweep(&cancelled, Event::Cancelled).await;
    let mut ended = on.claim(&on.start(&shop).await.id).await;
    on.work(&mut ended, last_turn("Done.")).await;
    let mut failed = on.claim(&on.start(&ada).await.id).await;
    let reason = "model: 400".to_owned();
    on.work(&mut failed, Event::Failed { reason }).await;

    on.travel(6 * DAY + 23 * HOUR);
    forget(&on).await;
    for run in [&cancelled, &ended.run.id, &failed.run.id] {
        assert!(is_there(&on, run).await, "{run}");
    }
    on.travel(2 * HOUR);
    forget(&on).await;
    assert!(!is_there(&on, &cancelled).await);
    assert!(!is_there(&on, &ended.run.id).await);
    assert!(is_there(&on, &failed.run.id).await);
    let store = &on.ports.store;
    let gone = store.transcript(&cancelled).await.unwrap().value;
    assert_eq!(gone, askwell_shared::transcript::Transcript::default());
    assert_eq!(store.runs(&page(&shop)).await.unwrap().value, []);
    let log = store.events_after(&ended.run.owner(), 0, 10).await.unwrap();
    assert_eq!((log.head, log.frames.len()), (0, 0), "it goes with its run");

    on.travel(23 * DAY);
    forget(&on).await;
    assert!(!is_there(&on, &failed.run.id).await);
}

/// Later runs of a thread see its earlier ones, however old.
pub async fn a_threads_runs_stay_as_long_as_the_thread(on: Subject) {
    let ada = person();
    let first = threads::start(&on, &ada).await;
    threads::end(&on, &ada, &first, "one", on.now().await).await;
    on.travel(6 * DAY);
    let second = threads::start(&on, &ada).await;
    on.travel(6 * DAY);
    forget(&on).await;
    assert!(is_there(&on, &first.id).await, "its thread lives");
    threads::end(&on, &ada, &second, "two", on.now().await).await;
    on.travel(6 * DAY + 23 * HOUR);
    forget(&on).await;
    let store = &on.ports.store;
    let earlier = store.earlier(&owner(&ada), "chat", 9).await.unwrap();
    assert_eq!(earlier.len(), 2);
    on.travel(2 * HOUR);
    // Once for the thread, once for the runs that it kept.
    forget(&on).await;
    forget(&on).await;
    let thread = store.thread(&owner(&ada), "chat").await.unwrap().value;
    assert_eq!(thread, None);
    for run in [&first.id, &second.id] {
        assert!(!is_there(&on, run).await, "{run}");
    }
    // The name begins anew.
    let third = threads::start(&on, &ada).await;
    assert_eq!(third.earlier, Some(0));
}

/// 48 hours, but as long as the ask where it settled one (PROTOCOL 3).
pub async fn commands_are_forgotten_but_not_an_asks(on: Subject) {
    let ada = person();
    let run = on.waiting(&ada, 2).await;
    let settling = command(&ada, Some(&run.id));
    let now = on.now().await;
    let settled = answer(&run.asks[0].id, &ada, json!("M"), &settling.key.cmd);
    let moved = run.apply(settled, now).unwrap();
    let drafted = Event::Drafted {
        ask: run.asks[1].id.clone(),
        n: 1,
        question: "q1".into(),
        answer: json!({}),
    };
    let drafting = command(&ada, Some(&run.id));
    let draft = moved.run.apply(drafted, now).unwrap();
    for (write, moved) in [(&settling, moved), (&drafting, draft)] {
        let by = Committer::Caller(write.clone());
        done(on.write(&Commit::of(by, Clock::Any, moved)).await);
    }
    let store = &on.ports.store;
    let known = async |write: &askwell_shared::ports::CommandWrite| {
        let found = store.command(&write.key).await.unwrap();
        found.value.is_some()
    };
    on.travel(47 * HOUR);
    forget(&on).await;
    assert!(known(&settling).await && known(&drafting).await);
    on.travel(2 * HOUR);
    forget(&on).await;
    assert!(known(&settling).await);
    assert!(!known(&drafting).await);
    on.sweep(&run.id, Event::Cancelled).await;
    on.travel(8 * DAY);
    forget(&on).await;
    assert!(!known(&settling).await, "the ask is gone");
}

/// A client that comes back after years is not told old numbers.
pub async fn a_persons_head_outlives_their_runs(on: Subject) {
    let ada = person();
    let run = on.start(&ada).await.id;
    on.sweep(&run, Event::Cancelled).await;
    on.travel(100 * DAY);
    forget(&on).await;
    assert!(!is_there(&on, &run).await);
    on.start(&ada).await;
    let heads = on.ports.store.heads(&[owner(&ada)]).await.unwrap();
    assert_eq!(heads, [5]);
}

/// Not live after 15 s, gone 30 days after it was last seen (SPEC 2).
pub async fn agents_are_forgotten_in_their_time(on: Subject) {
    let name = person().sub;
    let (old, new) = (announcement(&name, "r1"), announcement(&name, "r2"));
    let store = &on.ports.store;
    store.announce(&[old, new.clone()], true).await.unwrap();
    let known = async || {
        let agents = store.agents().await.unwrap();
        let known = agents.value.into_iter();
        let known = known.filter(|known| known.announcement.name == name);
        known
            .map(|known| (known.is_live(agents.now), known.announcement.revision))
            .collect::<Vec<_>>()
    };
    on.travel(Duration::from_secs(20));
    assert!(known().await.iter().all(|(live, _)| !live));
    on.travel(29 * DAY);
    store.announce(&[new], false).await.unwrap();
    on.travel(2 * DAY);
    forget(&on).await;
    assert_eq!(known().await, [(false, "r2".to_owned())]);
}
