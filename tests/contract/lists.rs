//! Lists: newest first, by starter, paged without holes or doubles.

use std::time::Duration;

use askwell_shared::caller::Starter;
use askwell_shared::ports::{Clock, Commit, Committer, Page, Whose};
use askwell_shared::run::{Event, Run, Status};
use askwell_shared::time::Millis;
use serde_json::json;

use super::fixture::{
    Subject, announcement, answer, asking, beginning, done, fresh, last_turn, owner, page, person,
    system,
};

/// More than any of these tests starts, others that share the store included.
const MANY: usize = 10_000;

/// The ids of open asks, page by page.
async fn asks(on: &Subject, mut page: Page) -> Vec<(Millis, String)> {
    let mut ids = Vec::new();
    loop {
        let asks = on.ports.store.open_asks(&page).await.unwrap().value;
        assert!(asks.len() <= page.limit);
        let Some(last) = asks.last() else {
            return ids;
        };
        page.after = Some((last.opened, last.id.clone()));
        ids.extend(asks.into_iter().map(|ask| (ask.opened, ask.id)));
        assert!(ids.len() <= MANY, "pages without end");
    }
}

/// The ids of runs, page by page.
async fn runs(on: &Subject, mut page: Page) -> Vec<String> {
    let mut ids = Vec::new();
    loop {
        let runs = on.ports.store.runs(&page).await.unwrap().value;
        assert!(runs.len() <= page.limit);
        let Some(last) = runs.last() else {
            return ids;
        };
        page.after = Some((last.created, last.id.to_string()));
        ids.extend(runs.into_iter().map(|run| run.id.to_string()));
        assert!(ids.len() <= MANY, "pages without end");
    }
}

fn pages_of(starter: &Starter, limit: usize) -> Page {
    Page {
        limit,
        ..page(starter)
    }
}

/// By the time they were opened, then by id; in pages as in one.
pub async fn open_asks_are_listed_newest_first(on: Subject) {
    let ada = person();
    let mut opened = Vec::new();
    for asks in [1, 3, 2] {
        let run = on.waiting(&ada, asks).await;
        opened.extend(run.asks.into_iter().map(|ask| (ask.opened, ask.id)));
    }
    opened.sort();
    opened.reverse();
    for limit in [1, 2, 100] {
        assert_eq!(asks(&on, pages_of(&ada, limit)).await, opened);
    }
    let none = Page {
        agent: Some("another".into()),
        ..page(&ada)
    };
    assert_eq!(asks(&on, none).await, []);
    let some = Page {
        agent: Some("asker".into()),
        whose: Whose::All,
        ..page(&ada)
    };
    let all = asks(&on, some).await;
    assert!(opened.iter().all(|ask| all.contains(ask)));
}

/// However they ended.
pub async fn settled_asks_are_not_listed(on: Subject) {
    let ada = person();
    let run = on.waiting(&ada, 3).await;
    let settled = answer(&run.asks[1].id, &ada, json!("M"), "c");
    on.sweep(&run.id, settled).await;
    let open: Vec<String> = asks(&on, page(&ada))
        .await
        .into_iter()
        .map(|ask| ask.1)
        .collect();
    assert_eq!(open.len(), 2);
    assert!(!open.contains(&run.asks[1].id));
    on.sweep(&run.id, Event::Cancelled).await;
    assert_eq!(asks(&on, page(&ada)).await, []);
    assert_eq!(on.load(&run.id).await.asks.len(), 3, "they are kept");
}

/// By the time they were started, then by id, where many start at one moment.
pub async fn runs_are_listed_newest_first(on: Subject) {
    let ada = person();
    let now = on.now().await;
    let mut started = Vec::new();
    for back in [3, 0, 0, 1, 0, 2] {
        let created = Millis(now.0 - back);
        let run = on.start_at(&ada, created).await;
        started.push((created, run.id.to_string()));
    }
    started.sort();
    let expected: Vec<String> = started.into_iter().rev().map(|run| run.1).collect();
    for limit in [1, 2, 4, 100] {
        assert_eq!(runs(&on, pages_of(&ada, limit)).await, expected);
    }
}

/// Each filter by itself and together.
pub async fn runs_are_found_by_agent_thread_and_status(on: Subject) {
    let ada = person();
    let now = on.now().await;
    let mut ids = Vec::new();
    for (agent, thread) in [("a", None), ("a", Some("chat")), ("b", Some("chat"))] {
        let mut start = beginning(&ada, thread);
        start.agent = agent.to_owned();
        let moved = Run::start(start, true, 0, now);
        ids.push(moved.run.id.to_string());
        done(
            on.write(&Commit::of(Committer::Sweeper, Clock::Any, moved))
                .await,
        );
    }
    let mut last = on
        .claim(&askwell_shared::id::RunId::parse(&ids[2]).unwrap())
        .await;
    on.work(&mut last, last_turn("Done.")).await;
    let find = async |agent: Option<&str>, thread: Option<&str>, statuses: &[Status]| {
        let page = Page {
            agent: agent.map(str::to_owned),
            thread: thread.map(str::to_owned),
            statuses: statuses.to_vec(),
            ..page(&ada)
        };
        let mut found = runs(&on, page).await;
        found.sort_by_key(|id| ids.iter().position(|kept| kept == id));
        found
    };
    assert_eq!(find(None, None, &[]).await, ids);
    assert_eq!(find(Some("a"), None, &[]).await, ids[..2]);
    assert_eq!(find(None, Some("chat"), &[]).await, ids[1..]);
    assert_eq!(find(None, None, &[Status::Succeeded]).await, ids[2..]);
    let live = [Status::Queued, Status::Running];
    assert_eq!(find(None, None, &live).await, ids[..2]);
    assert_eq!(find(Some("a"), Some("chat"), &live).await, ids[1..2]);
    assert_eq!(find(Some("b"), None, &live).await, [""; 0]);
    // Several statuses are one list, everybody's as well.
    let some = Page {
        statuses: vec![Status::Succeeded, Status::Queued, Status::Queued],
        limit: 2,
        ..page(&ada)
    };
    let hers = runs(&on, some.clone()).await;
    assert_eq!(hers.len(), 3);
    let all = Page {
        whose: Whose::All,
        ..some
    };
    let mut all = runs(&on, all).await;
    all.retain(|run| ids.contains(run));
    assert_eq!(all, hers);
}

/// A page goes on where the one before it ended, though newer runs have come.
pub async fn pages_stay_in_place_while_runs_are_added(on: Subject) {
    let ada = person();
    let now = on.now().await;
    for back in 0..6 {
        on.start_at(&ada, Millis(now.0 - back)).await;
    }
    let before = runs(&on, page(&ada)).await;
    let mut half = pages_of(&ada, 3);
    let first = on.ports.store.runs(&half).await.unwrap().value;
    on.start_at(&ada, now.after(Duration::from_secs(1))).await;
    half.after = Some((first[2].created, first[2].id.to_string()));
    let second = on.ports.store.runs(&half).await.unwrap().value;
    let seen: Vec<String> = first
        .iter()
        .chain(&second)
        .map(|run| run.id.to_string())
        .collect();
    assert_eq!(seen, before);
}

/// A person and a backend of one name are two; ops see both.
pub async fn nobody_sees_what_others_started(on: Subject) {
    let ada = person();
    let twin = Starter {
        system: true,
        ..ada.clone()
    };
    let hers = on.waiting(&ada, 1).await;
    let its = on.waiting(&twin, 1).await;
    on.waiting(&system(), 1).await;
    assert_eq!(runs(&on, page(&ada)).await, [hers.id.to_string()]);
    assert_eq!(runs(&on, page(&twin)).await, [its.id.to_string()]);
    assert_eq!(asks(&on, page(&ada)).await[0].1, hers.asks[0].id);
    assert_eq!(asks(&on, page(&twin)).await.len(), 1);
    let all = Page {
        whose: Whose::All,
        ..page(&ada)
    };
    let seen = runs(&on, all).await;
    assert!(seen.contains(&hers.id.to_string()) && seen.contains(&its.id.to_string()));
    let snapshot = on.ports.store.snapshot(&owner(&ada)).await.unwrap();
    assert_eq!(snapshot.asks, hers.asks);
    // A run that is only in somebody's hand is nobody's yet.
    let unwritten = fresh(&ada, on.now().await);
    let asked = unwritten.run.apply(
        asking(1, askwell_shared::agent::Limits::default()),
        on.now().await,
    );
    assert!(asked.is_err());
}

/// Each revision by itself; only a worker that starts makes a revision the newest.
pub async fn agents_are_known_by_revision(on: Subject) {
    let store = &on.ports.store;
    let name = person().sub;
    let (one, two) = (announcement(&name, "r1"), announcement(&name, "r2"));
    store
        .announce(std::slice::from_ref(&one), true)
        .await
        .unwrap();
    store
        .announce(std::slice::from_ref(&two), true)
        .await
        .unwrap();
    let known = async || {
        let agents = store.agents().await.unwrap();
        let mut known: Vec<_> = agents
            .value
            .into_iter()
            .filter(|known| known.announcement.name == name)
            .collect();
        known.sort_by(|a, b| a.announcement.revision.cmp(&b.announcement.revision));
        assert!(known.iter().all(|known| known.is_live(agents.now)));
        known
    };
    let before = known().await;
    assert_eq!(before.len(), 2);
    assert_eq!(before[0].announcement, one);
    let mut changed = one.clone();
    changed.description = "new words".into();
    store
        .announce(std::slice::from_ref(&changed), false)
        .await
        .unwrap();
    let after = known().await;
    assert_eq!(after[0].announcement, changed);
    assert_eq!(after[0].announced, before[0].announced);
    assert!(after[0].seen >= before[0].seen);
    assert_eq!(after[1], before[1]);
    store.announce(&[one, two], true).await.unwrap();
    let fresh = known().await;
    assert!(fresh[0].announced >= after[0].seen);
    assert_eq!(fresh[0].announced, fresh[0].seen);
}
