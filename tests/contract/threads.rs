//! A thread and its runs change together.

use askwell_shared::agent::OnMessage;
use askwell_shared::caller::Starter;
use askwell_shared::ports::{Clock, Commit, Committer, Committing};
use askwell_shared::run::{Event, Run, Status};
use askwell_shared::thread::{Thread, ThreadMoved};
use askwell_shared::time::Millis;
use askwell_shared::transcript::Message;

use super::fixture::{Subject, asking, beginning, done, last_turn, owner, person};

/// The thread as the store has it, or a new one.
async fn thread(on: &Subject, starter: &Starter) -> Thread {
    let owner = owner(starter);
    let found = on.ports.store.thread(&owner, "chat").await.unwrap().value;
    found.unwrap_or_else(|| Thread::new(owner, "chat".to_owned()))
}

/// Decides a start in the thread, with the runs that the store has.
async fn starting(on: &Subject, starter: &Starter, rule: OnMessage) -> ThreadMoved {
    let thread = thread(on, starter).await;
    let mut runs = Vec::new();
    for run in thread.queue.iter().take(2) {
        runs.push(on.load(run).await);
    }
    let start = beginning(starter, Some("chat"));
    let now = on.now().await;
    thread
        .start(start, rule, runs.first(), runs.get(1), now)
        .unwrap()
}

/// Starts a run in the thread `chat`.
pub(super) async fn start(on: &Subject, starter: &Starter) -> Run {
    let moved = starting(on, starter, OnMessage::Queue).await;
    let run = moved.runs[0].run.clone();
    let commit = Commit::of_thread(Committer::Sweeper, Clock::Any, moved);
    done(on.write(&commit).await);
    run
}

/// Ends the head of the thread well, at `now`.
pub(super) async fn end(on: &Subject, starter: &Starter, run: &Run, text: &str, now: Millis) {
    let mut held = on.claim(&run.id).await;
    let ended = held.run.apply(last_turn(text), now).unwrap();
    let commit = held.commit(ended.clone());
    let thread = thread(on, starter).await;
    let second = match thread.second() {
        Some(second) => Some(on.load(second).await),
        None => None,
    };
    let moved = thread.end(ended, second.as_ref(), now).unwrap();
    let commit = Commit::of_thread(commit.by, Clock::Any, moved);
    done(on.write(&commit).await);
}

fn texts(messages: &[Message]) -> Vec<&str> {
    messages
        .iter()
        .map(|message| match message {
            Message::User { text } | Message::Assistant { text, .. } => text.as_str(),
        })
        .collect()
}

/// A thread is there from its first start on, with its runs in order.
pub async fn a_start_makes_the_thread(on: Subject) {
    let ada = person();
    let name = owner(&ada);
    let none = on.ports.store.thread(&name, "chat").await.unwrap().value;
    assert_eq!(none, None);
    let first = start(&on, &ada).await;
    let second = start(&on, &ada).await;
    let kept = thread(&on, &ada).await;
    assert_eq!(kept.queue, [first.id.clone(), second.id.clone()]);
    assert_eq!(kept.rev, 2);
    assert!(on.load(&first.id).await.head);
    assert!(!on.load(&second.id).await.head);
}

/// Superseding ends the head, makes the next one head and appends the new one, at once.
pub async fn a_supersede_is_one_commit(on: Subject) {
    let ada = person();
    let head = start(&on, &ada).await;
    let next = start(&on, &ada).await;
    let mut worker = on.claim(&head.id).await;
    on.work(
        &mut worker,
        asking(2, askwell_shared::agent::Limits::default()),
    )
    .await;
    let seq = on.ports.store.heads(&[owner(&ada)]).await.unwrap()[0];
    let moved = starting(&on, &ada, OnMessage::Supersede).await;
    let new = moved.runs[2].run.id.clone();
    let frames: usize = moved.runs.iter().map(|run| run.frames.len()).sum();
    let commit = Commit::of_thread(Committer::Sweeper, Clock::Any, moved);
    let reply = done(on.write(&commit).await);
    assert_eq!(reply.seq, seq + frames as u64);
    let ended = on.load(&head.id).await;
    assert_eq!(ended.status, Status::Cancelled);
    assert_eq!(ended.open_asks().count(), 0);
    assert!(on.load(&next.id).await.head);
    let kept = thread(&on, &ada).await;
    assert_eq!(kept.queue, [next.id.clone(), new]);
    let ada = owner(&ada);
    let earlier = on.ports.store.earlier(&ada, "chat", kept.next).await;
    assert_eq!(earlier.unwrap().len(), 1);
}

/// Of a commit over several runs none is written where one has changed.
pub async fn a_conflict_in_the_second_run_writes_nothing(on: Subject) {
    let ada = person();
    let head = start(&on, &ada).await;
    let next = start(&on, &ada).await;
    let mut worker = on.claim(&head.id).await;
    on.work(
        &mut worker,
        asking(1, askwell_shared::agent::Limits::default()),
    )
    .await;
    let moved = starting(&on, &ada, OnMessage::Supersede).await;
    let new = moved.runs[2].run.id.clone();
    let stalled = Event::Stalled {
        reason: "no worker".into(),
    };
    on.sweep(&next.id, stalled).await;
    let runs = [&head.id, &next.id, &new];
    let before = on.picture(&ada, &runs).await;
    let commit = Commit::of_thread(Committer::Sweeper, Clock::Any, moved);
    assert_eq!(on.write(&commit).await, Committing::Conflict);
    assert_eq!(on.picture(&ada, &runs).await, before);
}

/// Two starts that saw the same thread: one of them decides again.
pub async fn a_conflict_in_the_thread_writes_nothing(on: Subject) {
    let ada = person();
    let head = start(&on, &ada).await;
    let late = starting(&on, &ada, OnMessage::Queue).await;
    let new = late.runs[0].run.id.clone();
    let other = start(&on, &ada).await;
    let runs = [&head.id, &other.id, &new];
    let before = on.picture(&ada, &runs).await;
    let commit = Commit::of_thread(Committer::Sweeper, Clock::Any, late);
    assert_eq!(on.write(&commit).await, Committing::Conflict);
    assert_eq!(on.picture(&ada, &runs).await, before);
}

/// A run's model sees what ended before it became head, oldest first, and nothing later.
pub async fn earlier_runs_come_in_the_order_of_their_ends(on: Subject) {
    let ada = person();
    let runs = [start(&on, &ada).await, start(&on, &ada).await];
    let last = start(&on, &ada).await;
    for (run, text) in runs.iter().zip(["one", "two"]) {
        end(&on, &ada, run, text, on.now().await).await;
    }
    let before = on.load(&last.id).await.earlier.unwrap();
    assert_eq!(before, 2);
    end(&on, &ada, &last, "three", on.now().await).await;
    let store = &on.ports.store;
    let earlier = store.earlier(&owner(&ada), "chat", before).await.unwrap();
    let said: Vec<_> = earlier
        .iter()
        .map(|transcript| texts(&transcript.messages)[1])
        .collect();
    assert_eq!(said, ["one", "two"]);
    assert_eq!(store.earlier(&owner(&ada), "chat", 0).await.unwrap(), []);
    let idle = thread(&on, &ada).await;
    assert!(idle.queue.is_empty() && idle.idle_since.is_some());
}

/// A thread's name is its owner's own.
pub async fn threads_of_one_name_belong_to_their_owners(on: Subject) {
    let (ada, bob) = (person(), person());
    let hers = start(&on, &ada).await;
    let his = start(&on, &bob).await;
    assert_eq!(
        thread(&on, &ada).await.queue,
        std::slice::from_ref(&hers.id)
    );
    assert_eq!(thread(&on, &bob).await.queue, std::slice::from_ref(&his.id));
    end(&on, &ada, &hers, "hers", on.now().await).await;
    let earlier = on.ports.store.earlier(&owner(&bob), "chat", 9).await;
    assert_eq!(earlier.unwrap(), []);
}
