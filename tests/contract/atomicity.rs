//! A commit is written whole or not at all, whoever else commits.

use std::sync::Arc;
use std::time::Duration;

use askwell_shared::id::new_nonce;
use askwell_shared::ports::{Clock, Commit, Committer, Committing};
use askwell_shared::run::{Event, Run};
use askwell_shared::time::Millis;
use futures_util::future::join_all;
use serde_json::json;

use super::fixture::{
    LONG, Subject, answer, beginning, calling, command, done, fresh, last_turn, page, person,
};

/// A commit on an older revision leaves run, asks, log, lists, command and all else as it was.
pub async fn a_conflict_writes_nothing(on: Subject) {
    let ada = person();
    let run = on.waiting(&ada, 2).await;
    let now = on.now().await;
    let write = command(&ada, Some(&run.id));
    let settled = answer(&run.asks[0].id, &ada, json!("M"), &write.key.cmd);
    let late = run.apply(settled, now).unwrap();
    let other = answer(&run.asks[1].id, &ada, json!("S"), "other");
    on.sweep(&run.id, other).await;

    let before = on.picture(&ada, &[&run.id]).await;
    let by = Committer::Caller(write.clone());
    let commit = Commit::of(by, Clock::Any, late);
    assert_eq!(on.write(&commit).await, Committing::Conflict);
    assert_eq!(on.picture(&ada, &[&run.id]).await, before);
    let command = on.ports.store.command(&write.key).await.unwrap().value;
    assert_eq!(command, None);
}

/// What a worker without the right brings is not kept.
pub async fn a_lost_commit_writes_nothing(on: Subject) {
    let ada = person();
    let run = on.start(&ada).await;
    let mut held = on.claim_for(&run.id, Duration::ZERO).await;
    on.sweep(&run.id, Event::Reclaimed).await;
    let before = on.picture(&ada, &[&run.id]).await;
    let now = on.now().await;
    for event in [last_turn("x"), calling(&["look"])] {
        let moved = held.run.apply(event, now).unwrap();
        assert_eq!(on.write(&held.commit(moved)).await, Committing::Lost);
    }
    assert_eq!(on.picture(&ada, &[&run.id]).await, before);
}

/// What comes at the wrong time is not kept, nor its command.
pub async fn an_untimely_commit_writes_nothing(on: Subject) {
    let ada = person();
    let run = on.waiting(&ada, 1).await;
    let now = on.now().await;
    let write = command(&ada, Some(&run.id));
    let settled = answer(&run.asks[0].id, &ada, json!("M"), &write.key.cmd);
    let moved = run.apply(settled, now).unwrap();
    let before = on.picture(&ada, &[&run.id]).await;
    for clock in [Clock::Before(Millis(1)), Clock::From(now.after(LONG))] {
        let by = Committer::Caller(write.clone());
        let reply = on.write(&Commit::of(by, clock, moved.clone())).await;
        assert!(matches!(reply, Committing::Untimely(_)), "{reply:?}");
    }
    assert_eq!(on.picture(&ada, &[&run.id]).await, before);
    let command = on.ports.store.command(&write.key).await.unwrap().value;
    assert_eq!(command, None);
}

/// A repeated command changes nothing, even where it could.
pub async fn a_known_command_writes_nothing(on: Subject) {
    let ada = person();
    let run = on.waiting(&ada, 2).await;
    let write = command(&ada, Some(&run.id));
    let now = on.now().await;
    let first = answer(&run.asks[0].id, &ada, json!("M"), &write.key.cmd);
    let moved = run.apply(first, now).unwrap();
    let by = Committer::Caller(write.clone());
    done(on.write(&Commit::of(by, Clock::Any, moved.clone())).await);
    let before = on.picture(&ada, &[&run.id]).await;
    let second = answer(&run.asks[1].id, &ada, json!("M"), &write.key.cmd);
    let moved = moved.run.apply(second, now).unwrap();
    let by = Committer::Caller(write);
    let reply = on.write(&Commit::of(by, Clock::Any, moved)).await;
    assert!(matches!(reply, Committing::Known(_)));
    assert_eq!(on.picture(&ada, &[&run.id]).await, before);
}

/// A run is made once.
pub async fn a_start_of_an_id_that_is_taken_conflicts(on: Subject) {
    let ada = person();
    let run = on.start(&ada).await;
    let before = on.picture(&ada, &[&run.id]).await;
    let mut start = beginning(&ada, None);
    start.id = run.id.clone();
    let moved = Run::start(start, true, 0, on.now().await);
    let commit = Commit::of(Committer::Sweeper, Clock::Any, moved);
    assert_eq!(on.write(&commit).await, Committing::Conflict);
    assert_eq!(on.picture(&ada, &[&run.id]).await, before);
    // Nor does a change make a run that is not there.
    let missing = fresh(&ada, on.now().await).run;
    let moved = missing.apply(Event::Cancelled, on.now().await).unwrap();
    let commit = Commit::of(Committer::Sweeper, Clock::Any, moved);
    assert_eq!(on.write(&commit).await, Committing::Conflict);
    assert_eq!(on.picture(&ada, &[&run.id]).await, before);
}

/// Runs of two owners are never in one commit.
pub async fn a_commit_of_another_owners_run_is_a_fault(on: Subject) {
    let (ada, bob) = (person(), person());
    let now = on.now().await;
    let mut commit = Commit::of(Committer::Sweeper, Clock::Any, fresh(&ada, now));
    commit.runs.push(fresh(&bob, now));
    on.ports.store.commit(&commit).await.unwrap_err();
    for starter in [&ada, &bob] {
        let runs = on.ports.store.runs(&page(starter)).await.unwrap().value;
        assert_eq!(runs, []);
    }
}

/// Of 200 commits on one revision that come together, exactly one is written.
pub async fn one_of_two_hundred_wins(on: Subject) {
    let on = Arc::new(on);
    let ada = person();
    let run = on.waiting(&ada, 1).await;
    let now = on.now().await;
    let head = on.ports.store.heads(&[run.owner()]).await.unwrap()[0];
    let commits = (0..200).map(|number| {
        let write = command(&ada, Some(&run.id));
        let ask = &run.asks[0].id;
        let settled = answer(ask, &ada, json!(number), &write.key.cmd);
        let moved = run.apply(settled, now).unwrap();
        let commit = Commit::of(Committer::Caller(write), Clock::Any, moved);
        let on = Arc::clone(&on);
        tokio::spawn(async move { (number, on.write(&commit).await) })
    });
    let replies: Vec<_> = join_all(commits).await;
    let mut winners = Vec::new();
    for reply in replies {
        match reply.unwrap() {
            (number, Committing::Done(committed)) => winners.push((number, committed.seq)),
            (_, reply) => assert_eq!(reply, Committing::Conflict),
        }
    }
    assert_eq!(winners.len(), 1);
    let kept = on.load(&run.id).await;
    assert_eq!(kept.rev, run.rev + 1);
    let data = kept.asks[0].settled.clone().unwrap().data;
    assert_eq!(data, Some(json!(winners[0].0)));
    assert_eq!(winners[0].1, head + 2, "ask.settled and run.status, once");
}

/// Twenty answers at one moment to one run all find their place (DESIGN 3).
pub async fn twenty_answers_all_go_through(on: Subject) {
    let on = Arc::new(on);
    let ada = person();
    let run = on.waiting(&ada, 20).await;
    let answers = run.asks.iter().map(|ask| {
        let (on, ada) = (Arc::clone(&on), ada.clone());
        let (id, ask) = (run.id.clone(), ask.id.clone());
        tokio::spawn(async move {
            loop {
                let now = on.now().await;
                let cmd = new_nonce();
                let settled = answer(&ask, &ada, json!("M"), &cmd);
                let moved = on.load(&id).await.apply(settled, now).unwrap();
                let commit = Commit::of(Committer::Sweeper, Clock::Any, moved);
                match on.write(&commit).await {
                    Committing::Conflict => {}
                    reply => return done(reply),
                }
            }
        })
    });
    for reply in join_all(answers).await {
        reply.unwrap();
    }
    let kept = on.load(&run.id).await;
    assert_eq!(kept.rev, run.rev + 20);
    assert_eq!(kept.open_asks().count(), 0);
}

/// Commits that come together with ones that fail are written all the same.
pub async fn a_bad_commit_spoils_no_other(on: Subject) {
    let on = Arc::new(on);
    let ada = person();
    let stale = on.start(&ada).await;
    let now = on.now().await;
    let late = stale.apply(Event::Cancelled, now).unwrap();
    on.sweep(&stale.id, Event::Cancelled).await;
    let (bob, stranger) = (person(), person());
    let commits = (0..90).map(|number| {
        let commit = match number % 3 {
            0 => Commit::of(Committer::Sweeper, Clock::Any, late.clone()),
            1 => Commit::of(Committer::Sweeper, Clock::Any, fresh(&bob, now)),
            _ => {
                let mut commit = Commit::of(Committer::Sweeper, Clock::Any, fresh(&bob, now));
                commit.runs.push(fresh(&stranger, now));
                commit
            }
        };
        let on = Arc::clone(&on);
        tokio::spawn(async move { (number % 3, on.ports.store.commit(&commit).await) })
    });
    for reply in join_all(commits).await {
        match reply.unwrap() {
            (0, reply) => assert_eq!(reply.unwrap(), Committing::Conflict),
            (1, reply) => drop(done(reply.unwrap())),
            (_, reply) => drop(reply.unwrap_err()),
        }
    }
    let runs = on.ports.store.runs(&page(&bob)).await.unwrap().value;
    assert_eq!(runs.len(), 30);
    let runs = on.ports.store.runs(&page(&stranger)).await.unwrap().value;
    assert_eq!(runs, []);
}
