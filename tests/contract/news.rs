//! Hints and the feed, and how [`Ports`](askwell_shared::ports::Ports) uses them.

use std::collections::BTreeSet;

use askwell_shared::ports::{Clock, Commit, Committer, Committing, Heard, HintKind, News, Taken};
use askwell_shared::run::Event;
use futures_util::StreamExt;
use futures_util::future::{Either, select};

use super::fixture::{Subject, fresh, person};

/// Two takers, twenty hints: each is taken, none by both.
pub async fn a_hint_goes_to_one_taker(on: Subject) {
    let now = on.now().await;
    let mut put = BTreeSet::new();
    for _ in 0..20 {
        let hint = askwell_shared::ports::Hint::of(&fresh(&person(), now).run);
        put.insert(hint.run.clone());
        on.ports.hints.put(hint).await.unwrap();
    }
    let (mut one, mut two) = (on.ports.hints.take(), on.ports.hints.take());
    let mut taken = BTreeSet::new();
    for _ in 0..20 {
        let Taken { hint, ack } = match select(one.next(), two.next()).await {
            Either::Left((taken, _)) | Either::Right((taken, _)) => taken.unwrap(),
        };
        ack.done();
        assert!(taken.insert(hint.run), "taken twice");
    }
    assert_eq!(taken, put);
}

/// Waits for the news of a run's owner.
async fn news(
    heard: &mut askwell_shared::ports::Incoming<Heard>,
    owner: &askwell_shared::id::Owner,
) -> std::sync::Arc<News> {
    loop {
        match heard.next().await.unwrap() {
            Heard::News(news) if news.owner == *owner => return news,
            _ => {}
        }
    }
}

/// With the frames as the log has them.
pub async fn every_subscriber_hears_of_a_commit(on: Subject) {
    let (mut one, mut two) = (on.ports.feed.subscribe(), on.ports.feed.subscribe());
    let moved = fresh(&person(), on.now().await);
    let owner = moved.run.owner();
    let commit = Commit::of(Committer::Sweeper, Clock::Any, moved);
    on.ports.commit(&commit).await.unwrap();
    let events = on.ports.store.events_after(&owner, 0, 10).await.unwrap();
    for heard in [&mut one, &mut two] {
        let news = news(heard, &owner).await;
        assert_eq!(news.frames, events.frames);
    }
}

/// Nor is anyone hinted.
pub async fn nobody_hears_of_what_was_not_written(on: Subject) {
    let ada = person();
    let run = on.start(&ada).await;
    let late = run.apply(Event::Cancelled, on.now().await).unwrap();
    let stalled = Event::Stalled {
        reason: "no worker".into(),
    };
    on.sweep(&run.id, stalled).await;
    let mut heard = on.ports.feed.subscribe();
    let commit = Commit::of(Committer::Sweeper, Clock::Any, late);
    let reply = on.ports.commit(&commit).await.unwrap();
    assert_eq!(reply, Committing::Conflict);
    // The next that is heard is the next that was written.
    let now = on.now().await;
    let cancelled = on.load(&run.id).await.apply(Event::Cancelled, now).unwrap();
    let commit = Commit::of(Committer::Sweeper, Clock::Any, cancelled);
    on.ports.commit(&commit).await.unwrap();
    let news = news(&mut heard, &run.owner()).await;
    let last = on.ports.store.heads(&[run.owner()]).await.unwrap()[0];
    assert_eq!(news.frames.last().unwrap().0, last);
}

/// A run that a worker could claim now is hinted after its commit.
pub async fn who_commits_hints_what_is_due(on: Subject) {
    let mut hints = on.ports.hints.take();
    let moved = fresh(&person(), on.now().await);
    let run = moved.run.id.clone();
    let commit = Commit::of(Committer::Sweeper, Clock::Any, moved);
    on.ports.commit(&commit).await.unwrap();
    let Taken { hint, ack } = hints.next().await.unwrap();
    ack.done();
    assert_eq!((hint.run, hint.kind), (run, HintKind::Start));
}
