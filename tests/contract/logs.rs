//! An owner's log: dense, in order, and in agreement with snapshots (PROTOCOL 2, 4).

use std::collections::BTreeMap;
use std::sync::Arc;

use askwell_shared::caller::Starter;
use askwell_shared::id::{Owner, RunId};
use askwell_shared::ports::{Clock, Commit, Committer, Store};
use askwell_shared::run::{Event, Status};
use futures_util::future::join_all;
use serde_json::{Value, json};
use uuid::Uuid;

use super::fixture::{Subject, answer, done, fresh, owner, person, system};

/// Many commits of one owner at once leave no gap and no number twice; the frames of each stand
/// together, and each carries its number.
pub async fn frames_are_dense_under_concurrency(on: Subject) {
    let on = Arc::new(on);
    let ada = person();
    let lives = (0..25).map(|_| {
        let (on, ada) = (Arc::clone(&on), ada.clone());
        tokio::spawn(async move {
            let run = on.start(&ada).await;
            on.claim(&run.id).await;
            on.sweep(&run.id, Event::Cancelled).await;
        })
    });
    for life in join_all(lives).await {
        life.unwrap();
    }
    let store = &on.ports.store;
    let events = store.events_after(&owner(&ada), 0, 1_000).await.unwrap();
    assert_eq!(events.head, 25 * 4);
    let frames: Vec<Value> = events
        .frames
        .iter()
        .map(|(_, frame)| serde_json::from_str(frame).unwrap())
        .collect();
    for (place, ((seq, _), frame)) in events.frames.iter().zip(&frames).enumerate() {
        assert_eq!(*seq, place as u64 + 1);
        assert_eq!(frame["seq"], json!(seq));
        if frame["status"] == "queued" {
            assert_eq!(frames[place + 1]["run"], frame["run"], "one commit");
            assert_eq!(frames[place + 1]["type"], "run.message");
        }
    }
}

/// From the frame after the point, in order, no more than asked for.
pub async fn events_come_from_the_point_asked_for(on: Subject) {
    let ada = person();
    for _ in 0..3 {
        on.start(&ada).await;
    }
    let store = &on.ports.store;
    let seqs = async |after: u64, limit: usize| {
        let events = store.events_after(&owner(&ada), after, limit).await;
        let events = events.unwrap();
        assert_eq!((events.head, events.trimmed), (6, false));
        events
            .frames
            .iter()
            .map(|(seq, _)| *seq)
            .collect::<Vec<_>>()
    };
    assert_eq!(seqs(0, 100).await, [1, 2, 3, 4, 5, 6]);
    assert_eq!(seqs(2, 2).await, [3, 4]);
    assert_eq!(seqs(5, 0).await, [0_u64; 0]);
    assert_eq!(seqs(6, 100).await, [0_u64; 0]);
    assert_eq!(seqs(99, 100).await, [0_u64; 0], "ahead of the store");
    let nobody = store.events_after(&owner(&person()), 0, 9).await.unwrap();
    assert_eq!((nobody.head, nobody.trimmed), (0, false));
    assert!(nobody.frames.is_empty());
}

/// Starts so many runs in one commit: two frames each.
async fn flood(on: &Subject, starter: &Starter, runs: usize) {
    let now = on.now().await;
    let commit = Commit {
        owner: owner(starter),
        by: Committer::Sweeper,
        clock: Clock::Any,
        runs: (0..runs).map(|_| fresh(starter, now)).collect(),
        thread: None,
        ended: Vec::new(),
    };
    done(on.write(&commit).await);
}

/// Whoever asks for frames that are gone is told, and gets no hole.
pub async fn a_trimmed_log_says_so(on: Subject) {
    let ada = person();
    flood(&on, &ada, 700).await;
    flood(&on, &ada, 100).await;
    let store = &on.ports.store;
    let gone = store.events_after(&owner(&ada), 0, 10).await.unwrap();
    assert!(gone.trimmed);
    assert_eq!((gone.head, gone.frames.len()), (1_600, 0));
    let kept = store.events_after(&owner(&ada), 700, 2_000).await.unwrap();
    assert!(!kept.trimmed);
    let seqs: Vec<u64> = kept.frames.iter().map(|(seq, _)| *seq).collect();
    assert_eq!(seqs, (701..=1_600).collect::<Vec<_>>());
}

/// Trimming takes no number back.
pub async fn a_head_never_goes_back(on: Subject) {
    let ada = person();
    flood(&on, &ada, 700).await;
    on.start(&ada).await;
    let heads = on.ports.store.heads(&[owner(&ada)]).await.unwrap();
    assert_eq!(heads, [1_402]);
}

/// One reading for many owners, those without a log too.
pub async fn heads_come_in_the_order_asked_for(on: Subject) {
    let (ada, bob) = (person(), person());
    on.start(&ada).await;
    on.start(&bob).await;
    on.start(&bob).await;
    let owners = [owner(&bob), owner(&person()), owner(&ada)];
    let heads = on.ports.store.heads(&owners).await.unwrap();
    assert_eq!(heads, [4, 0, 2]);
    assert_eq!(on.ports.store.heads(&[]).await.unwrap(), [0_u64; 0]);
}

/// A person, and each run of a backend of the same name.
pub async fn owners_of_one_name_have_their_own_logs(on: Subject) {
    let shop = system();
    let twin = Starter {
        system: false,
        ..shop.clone()
    };
    let runs = [on.start(&shop).await, on.start(&shop).await];
    on.start(&twin).await;
    on.claim(&runs[0].id).await;
    let owners = [runs[0].owner(), runs[1].owner(), owner(&twin)];
    let heads = on.ports.store.heads(&owners).await.unwrap();
    assert_eq!(heads, [3, 2, 2]);
    let snapshot = on.ports.store.snapshot(&owners[0]).await.unwrap();
    assert_eq!(snapshot.runs.len(), 1);
    assert_eq!(snapshot.runs[0].run, runs[0].id);
    let nobody = Owner::System(RunId::new(3, Uuid::nil()));
    let snapshot = on.ports.store.snapshot(&nobody).await.unwrap();
    assert_eq!((snapshot.seq, snapshot.runs.len()), (0, 0));
}

/// A client's state: live runs with status and revision, and open asks by run, step and repeat.
#[derive(Debug, Default, PartialEq)]
struct Screen {
    runs: BTreeMap<String, (String, u64)>,
    asks: Vec<String>,
}

impl Screen {
    fn show(&mut self, frame: &Value) {
        let text = |name: &str| frame[name].as_str().unwrap_or_default().to_owned();
        let ask = |of: &Value| format!("{} {} {}", of["run"], of["step"], of["repeat"]);
        match text("type").as_str() {
            "run.status" => {
                let status = text("status");
                if Status::parse(&status).unwrap().is_live() {
                    let rev = frame["rev"].as_u64().unwrap();
                    self.runs.insert(text("run"), (status, rev));
                } else {
                    self.runs.remove(&text("run"));
                }
            }
            "ask.opened" => self.asks.push(ask(&frame["ask"])),
            "ask.settled" => self.asks.retain(|open| *open != ask(frame)),
            _ => {}
        }
    }

    async fn of_snapshot(store: &dyn Store, owner: &Owner) -> (u64, Self) {
        let snapshot = store.snapshot(owner).await.unwrap();
        let mut screen = Screen::default();
        for run in snapshot.runs {
            let status = (run.status.to_owned(), run.rev);
            screen.runs.insert(run.run.to_string(), status);
        }
        for ask in snapshot.asks {
            let (run, step) = (json!(ask.run), json!(ask.step));
            screen.asks.push(format!("{run} {step} {}", ask.repeat));
        }
        screen.asks.sort();
        (snapshot.seq, screen)
    }
}

/// A snapshot shows what the frames up to its `seq` show, whatever is committed meanwhile
/// (PROTOCOL 6, I5).
pub async fn a_snapshot_agrees_with_its_seq_while_commits_go_on(on: Subject) {
    let on = Arc::new(on);
    let ada = person();
    let lives = (0..12).map(|_| {
        let (on, ada) = (Arc::clone(&on), ada.clone());
        tokio::spawn(async move {
            let run = on.waiting(&ada, 1).await;
            let settled = answer(&run.asks[0].id, &ada, json!("M"), "c");
            on.sweep(&run.id, settled).await;
            let second = on.waiting(&ada, 2).await;
            on.sweep(&second.id, Event::Cancelled).await;
        })
    });
    let lives = tokio::spawn(join_all(lives));
    let mut seen = Vec::new();
    while !lives.is_finished() {
        seen.push(Screen::of_snapshot(&*on.ports.store, &owner(&ada)).await);
    }
    for life in lives.await.unwrap() {
        life.unwrap();
    }
    seen.push(Screen::of_snapshot(&*on.ports.store, &owner(&ada)).await);
    let events = on.ports.store.events_after(&owner(&ada), 0, 10_000).await;
    let frames = events.unwrap().frames;
    let mut screen = Screen::default();
    let mut shown = 0;
    for (seq, expected) in seen {
        while shown < seq {
            let frame = &frames[usize::try_from(shown).unwrap()].1;
            screen.show(&serde_json::from_str(frame).unwrap());
            shown += 1;
        }
        screen.asks.sort();
        // A revision can rise without a frame (a settlement leaves `running` as it is), so the
        // snapshot's may be ahead of the last frame's; here every change has one.
        assert_eq!(screen, expected, "at {seq}");
    }
}
