//! The embedded store survives kill -9: what it acknowledged is there, and its folder opens.
#![allow(clippy::unwrap_used, reason = "what cannot be set up fails the test")]

use std::any::Any;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use askwell_shared::agent::Limits;
use askwell_shared::backends::embedded;
use askwell_shared::caller::Starter;
use askwell_shared::id::{RunId, new_nonce};
use askwell_shared::ports::{Clock, Commit, Committer};
use askwell_tests::contract::Subject;
use askwell_tests::contract::fixture::{answer, asking, command, done, owner};
use serde_json::{Value, json};
use tempfile::tempdir;

/// Names the folder to the child that [`the_child_commits_until_it_is_killed`] is.
const FOLDER: &str = "ASKWELL_TEST_KILL_FOLDER";

fn subject(folder: &Path) -> Subject {
    Subject {
        ports: embedded::open(folder, embedded::system_clock()).unwrap(),
        travel: None,
        keep: Box::new(()) as Box<dyn Any + Send + Sync>,
    }
}

fn ada(number: usize) -> Starter {
    Starter {
        sub: format!("ada-{number}"),
        system: false,
    }
}

/// Says that a commit was acknowledged: the run, its revision, the owner's head, and the data
/// of the answer it held.
fn say(run: &RunId, rev: u64, person: usize, seq: u64, data: &Value) {
    let line = json!({"run": run, "rev": rev, "person": person, "seq": seq, "data": data});
    let mut out = std::io::stdout().lock();
    writeln!(out, "ack {line}").unwrap();
    out.flush().unwrap();
}

/// One person's runs, each from its start to its answer.
async fn live(on: &Subject, person: usize) {
    let ada = ada(person);
    loop {
        let run = on.start(&ada).await;
        let heads = on.ports.store.heads(&[owner(&ada)]).await.unwrap();
        say(&run.id, run.rev, person, heads[0], &Value::Null);
        let mut held = on.claim(&run.id).await;
        say(&run.id, held.run.rev, person, 0, &Value::Null);
        let reply = on.work(&mut held, asking(1, Limits::default())).await;
        say(&run.id, held.run.rev, person, reply.seq, &Value::Null);

        let write = command(&ada, Some(&run.id));
        let data = json!(new_nonce());
        let ask = &held.run.asks[0].id;
        let settled = answer(ask, &ada, data.clone(), &write.key.cmd);
        let moved = held.run.apply(settled, on.now().await).unwrap();
        let rev = moved.run.rev;
        let commit = Commit::of(Committer::Caller(write), Clock::Any, moved);
        let reply = done(on.write(&commit).await);
        say(&run.id, rev, person, reply.seq, &data);
    }
}

/// Not a test of its own: [`what_was_acknowledged_outlives_kill_9`] starts it as a process.
#[test]
fn the_child_commits_until_it_is_killed() {
    let Some(folder) = std::env::var_os(FOLDER) else {
        return;
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .build()
        .unwrap();
    runtime.block_on(async {
        let on = Arc::new(subject(Path::new(&folder)));
        let lives = (0..8).map(|person| {
            let on = Arc::clone(&on);
            tokio::spawn(async move { live(&on, person).await })
        });
        futures_util::future::join_all(lives).await;
    });
}

/// A process that no failing test leaves behind.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

fn start(folder: &Path) -> Killed {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["the_child_commits_until_it_is_killed", "--exact"])
        .arg("--nocapture")
        .env(FOLDER, folder)
        .stdout(Stdio::piped())
        .spawn();
    Killed(child.unwrap())
}

/// The acknowledgement in a line of the child's output, where there is a whole one.
fn ack(line: &str) -> Option<Value> {
    serde_json::from_str(line.split_once("ack ")?.1).ok()
}

/// Checks one acknowledged commit.
async fn check(on: &Subject, ack: &Value) {
    let id = RunId::parse(ack["run"].as_str().unwrap()).unwrap();
    let run = on.load(&id).await;
    assert!(run.rev >= ack["rev"].as_u64().unwrap(), "{ack}");
    if !ack["data"].is_null() {
        let settled = run.asks[0].settled.as_ref().unwrap();
        assert_eq!(settled.data.as_ref(), Some(&ack["data"]), "{ack}");
        let key = askwell_shared::ports::CommandKey {
            caller: run.starter.clone(),
            run: Some(id),
            cmd: settled.cmd.clone().unwrap(),
        };
        let record = on.ports.store.command(&key).await.unwrap().value;
        assert_eq!(record.unwrap().seq, ack["seq"].as_u64().unwrap());
    }
    let person = usize::try_from(ack["person"].as_u64().unwrap()).unwrap();
    let heads = on.ports.store.heads(&[owner(&ada(person))]).await.unwrap();
    assert!(heads[0] >= ack["seq"].as_u64().unwrap(), "{ack}");
}

/// In several rounds over one folder, each killed at another moment.
#[tokio::test]
async fn what_was_acknowledged_outlives_kill_9() {
    let folder = tempdir().unwrap();
    let mut acks = Vec::new();
    for round in 0..6 {
        let mut child = start(folder.path());
        let mut lines = BufReader::new(child.0.stdout.take().unwrap()).lines();
        let moment = acks.len() + 1 + usize::from(uuid::Uuid::new_v4().as_bytes()[0]);
        while acks.len() < moment {
            acks.extend(ack(&lines.next().unwrap().unwrap()));
        }
        let second = embedded::open(folder.path(), embedded::system_clock());
        assert!(
            matches!(second, Err(embedded::OpenFault::Locked { .. })),
            "the child has the folder"
        );
        // SIGKILL on Unix.
        child.0.kill().unwrap();
        child.0.wait().unwrap();
        // What it said before it died, but for a line that it did not finish.
        acks.extend(lines.map_while(Result::ok).filter_map(|line| ack(&line)));

        let on = subject(folder.path());
        for ack in &acks {
            check(&on, ack).await;
        }
        for person in 0..8 {
            let owner = owner(&ada(person));
            let head = on
                .ports
                .store
                .heads(std::slice::from_ref(&owner))
                .await
                .unwrap()[0];
            let from = head.saturating_sub(1_000);
            let events = on.ports.store.events_after(&owner, from, 2_000).await;
            let events = events.unwrap();
            let seqs: Vec<u64> = events.frames.iter().map(|(seq, _)| *seq).collect();
            assert_eq!(seqs, (from + 1..=head).collect::<Vec<_>>(), "round {round}");
        }
        // Nothing that is left open belongs to a worker that is gone.
        let due = on.ports.store.take_due(0, 1_000).await.unwrap().value;
        let page = askwell_shared::ports::Page {
            whose: askwell_shared::ports::Whose::All,
            statuses: vec![askwell_shared::run::Status::Running],
            ..askwell_tests::contract::fixture::page(&ada(0))
        };
        let running = on.ports.store.runs(&page).await.unwrap().value;
        assert_eq!(due.leases.len(), running.len());
    }
}
