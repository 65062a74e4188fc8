//! What only the embedded backend promises: its folder, its groups, its return after a crash.
//! The contract of the ports is tested in the crate of tests, on every backend.

use std::fs;
use std::path::Path;

use serde_json::json;
use tempfile::tempdir;
use uuid::Uuid;

use super::*;
use crate::caller::Starter;
use crate::ports::{Clock, Committer};
use crate::run::{Moved, RECORD_VERSION, Start};

fn fresh(now: Millis) -> Moved {
    let start = Start {
        id: RunId::new(0, Uuid::now_v7()),
        starter: Starter {
            sub: "ada".into(),
            system: false,
        },
        agent: "asker".into(),
        revision: "r1".into(),
        pinned: false,
        tell_expiry: false,
        thread: None,
        input: json!("hi"),
    };
    Run::start(start, true, 0, now)
}

fn commit_of(moved: Moved) -> Commit {
    Commit::of(Committer::Sweeper, Clock::Any, moved)
}

/// A clock that stands still.
fn at(now: i64) -> Now {
    Arc::new(move || Millis(now))
}

fn database(folder: &Path) -> rusqlite::Connection {
    rusqlite::Connection::open(folder.join("askwell.db")).unwrap()
}

#[test]
fn the_systems_clock_never_goes_back() {
    let now = system_clock();
    let mut last = now();
    assert!(last > Millis(1_700_000_000_000));
    for _ in 0..1_000 {
        let next = now();
        assert!(next >= last);
        last = next;
    }
}

#[test]
fn one_process_has_the_folder_and_gives_it_back() {
    let parent = tempdir().unwrap();
    let folder = parent.path().join("new").join("data");
    let ports = open(&folder, at(1)).unwrap();
    let second = open(&folder, at(1)).unwrap_err();
    assert!(matches!(&second, OpenFault::Locked { path } if *path == folder));
    assert!(second.to_string().contains("another process"), "{second}");
    drop(ports);
    drop(open(&folder, at(1)).unwrap());
}

#[cfg(unix)]
#[test]
fn the_folder_is_for_its_user_alone() {
    use std::os::unix::fs::PermissionsExt;
    let parent = tempdir().unwrap();
    let folder = parent.path().join("data");
    drop(open(&folder, at(1)).unwrap());
    let mode = fs::metadata(&folder).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[test]
fn what_is_no_store_is_left_alone() {
    let folder = tempdir().unwrap();
    let text = "x".repeat(5_000);
    fs::write(folder.path().join("askwell.db"), &text).unwrap();
    let fault = open(folder.path(), at(1)).unwrap_err();
    assert!(matches!(fault, OpenFault::Unreadable { .. }), "{fault}");
    let kept = fs::read_to_string(folder.path().join("askwell.db")).unwrap();
    assert_eq!(kept, text);

    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let fault = open(&file, at(1)).unwrap_err();
    assert!(matches!(fault, OpenFault::Unreadable { .. }), "{fault}");
}

#[test]
fn a_folder_of_a_newer_version_is_left_alone() {
    let folder = tempdir().unwrap();
    drop(open(folder.path(), at(1)).unwrap());
    let newer = database(folder.path());
    newer.pragma_update(None, "user_version", 99).unwrap();
    drop(newer);
    let fault = open(folder.path(), at(1)).unwrap_err();
    let OpenFault::Version { found, known, .. } = fault else {
        panic!("{fault}");
    };
    assert_eq!((found, known), (99, 1));
}

#[tokio::test]
async fn the_next_process_finds_all_and_every_lease_run_out() {
    let folder = tempdir().unwrap();
    let ports = open(folder.path(), at(1_000_000)).unwrap();
    let (held, ready) = (fresh(Millis(1)), fresh(Millis(1)));
    for moved in [&held, &ready] {
        let reply = ports.store.commit(&commit_of(moved.clone())).await.unwrap();
        assert!(matches!(reply, Committing::Done(_)));
    }
    let long = Duration::from_hours(1);
    let lease = ports.store.lease(&held.run.id, "n", long).await.unwrap();
    assert!(matches!(lease.value, Leasing::Leased(_)));
    let due = ports.store.take_due(0, 10).await.unwrap().value;
    assert_eq!(
        (due.ready, due.leases.len()),
        (vec![ready.run.id.clone()], 0)
    );
    let owner = held.run.owner();
    let before = ports.store.events_after(&owner, 0, 10).await.unwrap();
    drop(ports);

    let ports = open(folder.path(), at(1_000_001)).unwrap();
    let after = ports.store.events_after(&owner, 0, 10).await.unwrap();
    assert_eq!(after, before, "the epoch as well");
    let due = ports.store.take_due(0, 10).await.unwrap().value;
    assert_eq!(due.leases, std::slice::from_ref(&held.run.id));
    // It was hinted, but nobody is left who heard that.
    assert_eq!(due.ready, [ready.run.id]);
    let found = ports.store.load(&held.run.id, None).await.unwrap();
    let run = found.value.run.unwrap();
    let reclaimed = run.apply(crate::run::Event::Reclaimed, found.now).unwrap();
    let reply = ports.store.commit(&commit_of(reclaimed)).await.unwrap();
    assert!(matches!(reply, Committing::Done(_)));
}

#[test]
fn two_folders_are_two_lives() {
    let (one, two) = (tempdir().unwrap(), tempdir().unwrap());
    let epoch = |folder: &Path| {
        drop(open(folder, at(1)).unwrap());
        let text = "SELECT value FROM meta WHERE name = 'epoch'";
        let found: rusqlite::Result<String> =
            database(folder).query_row(text, [], |row| row.get(0));
        found.unwrap()
    };
    assert_ne!(epoch(one.path()), epoch(two.path()));
}

#[tokio::test]
async fn a_record_of_a_newer_version_is_left_alone() {
    let folder = tempdir().unwrap();
    let ports = open(folder.path(), at(1_000_000)).unwrap();
    let (newer, other) = (fresh(Millis(1)), fresh(Millis(1)));
    for moved in [&newer, &other] {
        ports.store.commit(&commit_of(moved.clone())).await.unwrap();
    }
    drop(ports);
    let id = &newer.run.id;
    let changed = database(folder.path()).execute(
        "UPDATE runs SET v = ?2, header = '{\"v\": 2}' WHERE id = ?1",
        rusqlite::params![id.as_str(), RECORD_VERSION + 1],
    );
    assert_eq!(changed.unwrap(), 1);

    let ports = open(folder.path(), at(1_000_000)).unwrap();
    let store = &ports.store;
    let faults = [
        store.load(id, None).await.unwrap_err(),
        store
            .lease(id, "n", Duration::from_secs(1))
            .await
            .unwrap_err(),
        store
            .commit(&commit_of(
                newer
                    .run
                    .apply(crate::run::Event::Cancelled, Millis(2))
                    .unwrap(),
            ))
            .await
            .unwrap_err(),
    ];
    for fault in faults {
        let text = fault.to_string();
        assert!(
            text.contains("version 2") && text.contains(id.as_str()),
            "{text}"
        );
    }
    let due = store.take_due(0, 10).await.unwrap().value;
    assert_eq!(due.ready, std::slice::from_ref(&other.run.id));
    let snapshot = store.snapshot(&other.run.owner()).await.unwrap();
    assert_eq!(snapshot.runs.len(), 1);
    drop((ports, snapshot));
    let kept: String = database(folder.path())
        .query_row(
            "SELECT header FROM runs WHERE id = ?1",
            [id.as_str()],
            |row| row.get(0),
        )
        .unwrap();
    assert_eq!(kept, "{\"v\": 2}");
}

/// A writer over a table of numbers, for what no commit does by itself.
fn numbers() -> (tempfile::TempDir, Writer) {
    let folder = tempdir().unwrap();
    let connection = database(folder.path());
    connection
        .execute_batch(
            "PRAGMA foreign_keys = ON; \
             CREATE TABLE numbers (n INTEGER PRIMARY KEY); \
             CREATE TABLE links (n REFERENCES numbers (n) DEFERRABLE INITIALLY DEFERRED);",
        )
        .unwrap();
    let writer = Writer::start(connection).unwrap();
    (folder, writer)
}

fn kept(folder: &Path) -> Vec<i64> {
    let connection = database(folder);
    let mut numbers = connection
        .prepare("SELECT n FROM numbers ORDER BY n")
        .unwrap();
    let rows = numbers.query_map([], |row| row.get(0)).unwrap();
    rows.collect::<Result<_, _>>().unwrap()
}

/// Adds `n`, then does `more`.
async fn add(writer: &Writer, n: i64, more: &'static str) -> Result<(), Fault> {
    writer
        .change("add", move |connection| {
            connection.execute("INSERT INTO numbers VALUES (?1)", [n])?;
            connection.execute_batch(more)?;
            Ok(())
        })
        .await
}

/// Holds the writer back until the returned sender is dropped, so that what follows is a group.
async fn hold(writer: &Arc<Writer>) -> std::sync::mpsc::Sender<()> {
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let (began, running) = tokio::sync::oneshot::channel();
    let held = Arc::clone(writer);
    tokio::spawn(async move {
        let held = held.change("hold", move |_| {
            began.send(()).ok();
            wait.recv().ok();
            Ok(())
        });
        held.await
    });
    running.await.unwrap();
    go
}

#[tokio::test]
async fn a_change_that_fails_half_way_leaves_nothing_and_spoils_nobody() {
    let (folder, writer) = numbers();
    let writer = Arc::new(writer);
    let go = hold(&writer).await;
    let mut changes = std::pin::pin!(futures_util::future::join3(
        add(&writer, 1, ""),
        add(&writer, 2, "INSERT INTO nowhere VALUES (1)"),
        add(&writer, 3, ""),
    ));
    // All three wait now.
    assert!(futures_util::poll!(changes.as_mut()).is_pending());
    drop(go);
    let (one, two, three) = changes.await;
    one.unwrap();
    let fault = two.unwrap_err();
    assert!(fault.to_string().contains("nowhere"), "{fault}");
    three.unwrap();
    assert_eq!(kept(folder.path()), [1, 3]);
}

#[tokio::test]
async fn a_group_whose_commit_fails_is_told_so_as_a_whole() {
    let (folder, writer) = numbers();
    let writer = Arc::new(writer);
    let go = hold(&writer).await;
    let mut changes = std::pin::pin!(futures_util::future::join3(
        add(&writer, 1, ""),
        // Only the end of the transaction finds that there is no 99.
        add(&writer, 2, "INSERT INTO links VALUES (99)"),
        add(&writer, 3, ""),
    ));
    // All three wait now.
    assert!(futures_util::poll!(changes.as_mut()).is_pending());
    drop(go);
    let (one, two, three) = changes.await;
    for reply in [one, two, three] {
        reply.unwrap_err();
    }
    assert_eq!(kept(folder.path()), [0_i64; 0]);
    add(&writer, 4, "").await.unwrap();
    assert_eq!(kept(folder.path()), [4]);
}

#[tokio::test]
async fn a_transaction_that_ends_early_fails_its_group() {
    let (folder, writer) = numbers();
    let writer = Arc::new(writer);
    let go = hold(&writer).await;
    let mut changes = std::pin::pin!(futures_util::future::join3(
        add(&writer, 1, ""),
        // What SQLite does by itself on a full disk.
        add(&writer, 2, "ROLLBACK; SELECT no_such_column"),
        add(&writer, 3, ""),
    ));
    // All three wait now.
    assert!(futures_util::poll!(changes.as_mut()).is_pending());
    drop(go);
    let (one, two, three) = changes.await;
    for reply in [one, two, three] {
        reply.unwrap_err();
    }
    assert_eq!(kept(folder.path()), [0_i64; 0]);
    add(&writer, 4, "").await.unwrap();
    assert_eq!(kept(folder.path()), [4]);
}
