//! A store that forgot an accepted answer gets it back from the answer's message, once.
#![allow(clippy::unwrap_used, reason = "a test's helpers may fail by panicking")]

use std::time::Duration;

use askwell_shared::agent::Limits;
use askwell_shared::ask::{By, Kind, Outcome, Settlement};
use askwell_shared::backends::{Choice, open};
use askwell_shared::caller::Starter;
use askwell_shared::id::RunId;
use askwell_shared::ports::{
    Clock, CommandKey, CommandWrite, Commit, Committer, Committing, Leasing, Ports, Settled,
};
use askwell_shared::run::{Event, Plan, Run, SavedCall, SavedTurn, Start, Status};
use askwell_shared::transcript::Usage;
use askwell_worker::restore::restore;
use serde_json::json;
use uuid::Uuid;

fn ada() -> Starter {
    Starter {
        sub: "ada".into(),
        system: false,
    }
}

/// A run that waits for its one ask, as a store that was rolled back has it.
async fn waiting(ports: &Ports) -> Run {
    let now = ports.store.agents().await.unwrap().now;
    let start = Start {
        id: RunId::new(1, Uuid::new_v4()),
        starter: ada(),
        agent: "asker".into(),
        revision: "r".into(),
        pinned: false,
        tell_expiry: false,
        thread: None,
        input: json!("go"),
    };
    let command = CommandWrite {
        key: CommandKey {
            caller: ada(),
            run: None,
            cmd: Uuid::new_v4().to_string(),
        },
        digest: "d".into(),
        reply: json!({}),
    };
    let moved = Run::start(start, true, 0, now);
    let id = moved.run.id.clone();
    let commit = Commit::of(Committer::Caller(command), Clock::Any, moved);
    assert!(matches!(
        ports.commit(&commit).await.unwrap(),
        Committing::Done(_)
    ));
    let leased = ports
        .store
        .lease(&id, "n", Duration::from_secs(30))
        .await
        .unwrap();
    let Leasing::Leased(leased) = leased.value else {
        panic!("not leased");
    };
    let turn = SavedTurn {
        text: String::new(),
        calls: vec![SavedCall {
            call: "c1".into(),
            tool: "question".into(),
            input: json!({"question": "Which?"}),
            plan: Plan::Ask {
                kind: Kind::Question,
                id: "ask_1".into(),
                input: json!({"question": "Which?"}),
                questions: 1,
                editable: None,
            },
        }],
        raw: None,
        usage: Usage::default(),
        limits: Limits::default(),
    };
    let moved = leased.run.apply(Event::TurnSaved(turn), now).unwrap();
    let by = Committer::Worker {
        run: id.clone(),
        token: leased.run.lease.unwrap().token,
        op: 1,
    };
    ports
        .commit(&Commit::of(by, Clock::Any, moved))
        .await
        .unwrap();
    ports
        .store
        .load(&id, None)
        .await
        .unwrap()
        .value
        .run
        .unwrap()
}

fn message(run: &Run, sub: &str, ask: &str) -> Settled {
    Settled {
        ask: ask.into(),
        step: "question 1.1".into(),
        repeat: 1,
        settlement: Settlement {
            outcome: Outcome::Answered,
            by: Some(By {
                sub: sub.into(),
                device: None,
            }),
            at: run.asks[0].opened,
            data: Some(json!("M")),
            reason: None,
            cmd: Some("c-1".into()),
        },
        digest: "d".into(),
        reply: json!({"run": run.id, "outcome": "answered"}),
    }
}

#[tokio::test]
async fn a_lost_answer_comes_back_and_is_known_by_its_command() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("data");
    let ports = open(Choice::Embedded { folder }).await.unwrap();
    let run = waiting(&ports).await;
    // Not from the starter, or to another ask: nothing.
    for wrong in [message(&run, "bob", "ask_1"), message(&run, "ada", "ask_2")] {
        assert!(!restore(&ports, &run.id, &wrong).await.unwrap());
    }
    let lost = message(&run, "ada", "ask_1");
    assert!(restore(&ports, &run.id, &lost).await.unwrap());
    let key = CommandKey {
        caller: ada(),
        run: Some(run.id.clone()),
        cmd: "c-1".into(),
    };
    let found = ports.store.load(&run.id, Some(&key)).await.unwrap().value;
    let again = found.run.unwrap();
    assert_eq!(again.status, Status::Queued);
    let settled = again.asks[0].settled.clone().unwrap();
    assert_eq!(settled, lost.settlement);
    assert_eq!(found.command.unwrap().digest, "d");
    // The same message once more, doubled by the broker: nothing.
    assert!(!restore(&ports, &run.id, &lost).await.unwrap());
    let same = ports
        .store
        .load(&run.id, None)
        .await
        .unwrap()
        .value
        .run
        .unwrap();
    assert_eq!(same, again);
}
