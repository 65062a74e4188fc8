//! One worker at a time advances a run.

use std::sync::Arc;
use std::time::Duration;

use askwell_shared::id::{RunId, new_nonce};
use askwell_shared::ports::{Clock, Commit, Committer, Leasing};
use askwell_shared::run::{Event, Run, Status, Token};
use futures_util::future::join_all;
use serde_json::json;
use uuid::Uuid;

use super::fixture::{
    LONG, Subject, answer, beginning, done, last_turn, leased, owner, page, person, system,
};

/// A claim gives the run as it is now, its conversation and its frame.
pub async fn a_claim_makes_the_run_running(on: Subject) {
    for starter in [person(), system()] {
        let run = on.start(&starter).await;
        let nonce = new_nonce();
        let reply = on.ports.store.lease(&run.id, &nonce, LONG).await.unwrap();
        let now = reply.now;
        let claim = leased(reply.value);
        assert_eq!(claim.run.status, Status::Running);
        assert_eq!(claim.run.rev, run.rev + 1);
        let lease = claim.run.lease.clone().unwrap();
        assert_eq!(lease.token, Token { fence: 1, nonce });
        assert_eq!(lease.until, now.after(LONG));
        assert_eq!(claim.transcript.messages.len(), 1);
        assert_eq!(claim.seq, 3);
        let names: Vec<_> = claim
            .frames
            .iter()
            .map(askwell_shared::wire::Frame::name)
            .collect();
        assert_eq!(names, ["run.status"]);
        assert_eq!(on.load(&run.id).await, claim.run);
        let store = &on.ports.store;
        let events = store.events_after(&run.owner(), 2, 10).await.unwrap();
        assert_eq!((events.head, events.frames.len()), (3, 1));
        assert!(events.frames[0].1.contains("\"running\""));
    }
}

/// A worker that repeats its claim gets what it missed.
pub async fn the_same_nonce_gets_the_same_lease(on: Subject) {
    let ada = person();
    let run = on.start(&ada).await;
    let store = &on.ports.store;
    let first = store.lease(&run.id, "n1", LONG).await.unwrap().value;
    // Others of this owner commit meanwhile: the claim keeps its own seq.
    on.start(&ada).await;
    let before = on.picture(&ada, &[&run.id]).await;
    assert_eq!(store.lease(&run.id, "n1", LONG).await.unwrap().value, first);
    assert_eq!(on.picture(&ada, &[&run.id]).await, before);
    assert_eq!(leased(first).run.fence, 1);
    // A lease that is over is given to nobody, its own nonce included.
    let over = on.start(&ada).await.id;
    leased(
        store
            .lease(&over, "n2", Duration::ZERO)
            .await
            .unwrap()
            .value,
    );
    let again = store.lease(&over, "n2", LONG).await.unwrap().value;
    assert_eq!(again, Leasing::Held);
}

/// Who holds a run is asked by nobody else.
pub async fn another_worker_is_held_off(on: Subject) {
    let ada = person();
    let run = on.start(&ada).await;
    on.claim(&run.id).await;
    let before = on.picture(&ada, &[&run.id]).await;
    let reply = on.ports.store.lease(&run.id, "other", LONG).await.unwrap();
    assert_eq!(reply.value, Leasing::Held);
    assert_eq!(on.picture(&ada, &[&run.id]).await, before);
}

/// Of 32 workers that claim one run together, one gets it.
pub async fn of_many_claims_one_wins(on: Subject) {
    let ada = person();
    let run = on.start(&ada).await;
    let claims = (0..32).map(|number| {
        let (store, run) = (Arc::clone(&on.ports.store), run.id.clone());
        tokio::spawn(async move { store.lease(&run, &format!("n{number}"), LONG).await })
    });
    let mut winners = 0;
    for reply in join_all(claims).await {
        match reply.unwrap().unwrap().value {
            Leasing::Leased(_) => winners += 1,
            other => assert_eq!(other, Leasing::Held),
        }
    }
    assert_eq!(winners, 1);
    assert_eq!(on.load(&run.id).await.fence, 1);
}

/// A lease that is over is not taken by a claim, and its holder may still commit; but it is not
/// renewed, since a sweeper that has seen it over may be about to take it away.
pub async fn a_lease_that_is_over_stays_its_holders(on: Subject) {
    let ada = person();
    let run = on.start(&ada).await;
    let mut held = on.claim_for(&run.id, Duration::ZERO).await;
    let store = &on.ports.store;
    let other = store.lease(&run.id, "other", LONG).await.unwrap().value;
    assert_eq!(other, Leasing::Held);
    let renewed = store.renew(&run.id, &held.token, LONG).await;
    assert!(renewed.unwrap().value.is_none());
    on.work(&mut held, last_turn("Done.")).await;
    assert_eq!(on.load(&run.id).await.status, Status::Succeeded);
}

/// A renewal is no change of the run: nobody conflicts with it.
pub async fn a_renewal_moves_the_end_and_nothing_else(on: Subject) {
    let ada = person();
    let run = on.start(&ada).await;
    let mut held = on.claim(&run.id).await;
    let events = on.ports.store.events_after(&owner(&ada), 0, 100).await;
    let longer = LONG + LONG;
    let renewed = on.ports.store.renew(&run.id, &held.token, longer).await;
    let renewed = renewed.unwrap();
    assert!(renewed.value.is_some());
    let mut expected = held.run.clone();
    expected.lease.as_mut().unwrap().until = renewed.now.after(longer);
    assert_eq!(on.load(&run.id).await, expected);
    let runs = on.ports.store.runs(&page(&ada)).await.unwrap().value;
    assert_eq!(runs[0].lease, expected.lease);
    let after = on.ports.store.events_after(&owner(&ada), 0, 100).await;
    assert_eq!(after.unwrap(), events.unwrap());
    on.work(&mut held, last_turn("Done.")).await;
}

/// A commit that was decided before a renewal does not take the renewal back.
pub async fn who_writes_with_old_knowledge_does_not_shorten_a_lease(on: Subject) {
    let ada = person();
    let mut held = on.asking_beside_a_call(&ada).await;
    let id = held.run.id.clone();
    let longer = LONG + LONG;
    let renewed = on.ports.store.renew(&id, &held.token, longer).await;
    let until = renewed.unwrap().now.after(longer);
    // The worker itself, then a gateway, both of which know the first end.
    on.work(&mut held, Event::CallsStarted(vec![1])).await;
    assert_eq!(on.load(&id).await.lease.unwrap().until, until);
    let settled = answer(&held.run.asks[0].id, &ada, json!("M"), "c1");
    let moved = held.run.apply(settled, on.now().await).unwrap();
    let commit = Commit::of(Committer::Sweeper, Clock::Any, moved);
    done(on.write(&commit).await);
    assert_eq!(on.load(&id).await.lease.unwrap().until, until);
}

/// Neither an old token nor one for a run that nobody holds is renewed.
pub async fn only_the_holder_renews(on: Subject) {
    let ada = person();
    let run = on.start(&ada).await;
    let old = on.claim_for(&run.id, Duration::ZERO).await.token;
    on.sweep(&run.id, Event::Reclaimed).await;
    let store = &on.ports.store;
    let renew = async |run: &RunId, token: &Token| {
        let reply = store.renew(run, token, LONG).await;
        reply.unwrap().value.is_some()
    };
    assert!(!renew(&run.id, &old).await, "nobody holds it");
    let new = on.claim(&run.id).await.token;
    assert!(!renew(&run.id, &old).await, "another holds it");
    assert!(renew(&run.id, &new).await);
    on.sweep(&run.id, Event::Cancelled).await;
    assert!(!renew(&run.id, &new).await, "it is over");
    let nobody = RunId::new(0, Uuid::nil());
    assert!(!renew(&nobody, &new).await, "there is none");
}

/// A run that was put off is not claimed before its time.
pub async fn nobody_claims_before_the_time(on: Subject) {
    let ada = person();
    let run = on.start(&ada).await;
    let mut held = on.claim(&run.id).await;
    let until = on.now().await.after(LONG);
    on.work(&mut held, Event::Postponed { until, tries: 1 })
        .await;
    let reply = on.ports.store.lease(&run.id, "n", LONG).await.unwrap();
    assert_eq!(reply.value, Leasing::NotYet(until));
}

/// Runs that wait, that have ended, that are not head, and that there are not.
pub async fn what_is_not_to_be_done_is_not_claimable(on: Subject) {
    let ada = person();
    let waiting = on.waiting(&ada, 1).await.id;
    let ended = on.start(&ada).await.id;
    on.sweep(&ended, Event::Cancelled).await;
    let now = on.now().await;
    let behind = Run::start(beginning(&ada, Some("chat")), false, 0, now);
    let commit = Commit::of(Committer::Sweeper, Clock::Any, behind.clone());
    done(on.write(&commit).await);
    let missing = RunId::new(0, Uuid::nil());
    for run in [waiting, ended, behind.run.id, missing] {
        let reply = on.ports.store.lease(&run, "n", LONG).await.unwrap();
        assert_eq!(reply.value, Leasing::NotClaimable, "{run}");
    }
}

/// A run that nobody could take goes on by itself when one can (SPEC 2).
pub async fn a_stalled_run_may_be_claimed(on: Subject) {
    let run = on.start(&person()).await;
    let stalled = Event::Stalled {
        reason: "no worker".into(),
    };
    on.sweep(&run.id, stalled).await;
    let held = on.claim(&run.id).await;
    assert_eq!(held.run.reason, None);
}

/// The holder learns of an answer by a conflict, not by losing its right.
pub async fn an_answer_to_a_running_run_leaves_the_lease(on: Subject) {
    let ada = person();
    let mut held = on.asking_beside_a_call(&ada).await;
    let id = held.run.id.clone();
    let settled = answer(&held.run.asks[0].id, &ada, json!("M"), "c1");
    let run = on.sweep(&id, settled).await;
    assert_eq!(run.lease.as_ref().unwrap().token, held.token);
    let now = on.now().await;
    let ended = || Event::CallEnded {
        call: 1,
        text: "found".into(),
        failed: false,
    };
    let moved = held.run.apply(ended(), now).unwrap();
    let late = on.write(&held.commit(moved)).await;
    assert_eq!(late, askwell_shared::ports::Committing::Conflict);
    held.run = run;
    on.work(&mut held, ended()).await;
}
