//! What the promises are tested with: a fresh store, and the life of a run in short words.

use std::any::Any;
use std::time::Duration;

use askwell_shared::agent::{Access, Announcement, Limits, OnMessage, Upgrade};
use askwell_shared::ask::{Ask, By, Kind, Outcome};
use askwell_shared::caller::Starter;
use askwell_shared::id::{Owner, RunId, new_ask_id, new_nonce, partition_for};
use askwell_shared::ports::{
    Clock, CommandKey, CommandWrite, Commit, Committed, Committer, Committing, Events, Leased,
    Leasing, Page, Ports, Snapshot, Whose,
};
use askwell_shared::run::{Event, Moved, Plan, Run, SavedCall, SavedTurn, Start, Token};
use askwell_shared::thread::Thread;
use askwell_shared::time::Millis;
use askwell_shared::transcript::{Transcript, Usage};
use serde_json::{Value, json};
use uuid::Uuid;

/// Longer than any test takes.
pub const LONG: Duration = Duration::from_mins(10);

/// A backend under test.
pub struct Subject {
    /// Its ports.
    pub ports: Ports,
    /// Moves the store's clock on; `None` where nobody can.
    pub travel: Option<Box<dyn Fn(Duration) + Send + Sync>>,
    /// What must live as long as the test (a folder, a server).
    pub keep: Box<dyn Any + Send + Sync>,
}

/// All that a store shows of one owner and of some runs: equal before and after what writes
/// nothing.
#[derive(Debug, PartialEq)]
pub struct Picture {
    events: Events,
    snapshot: Snapshot,
    runs: Vec<Run>,
    asks: Vec<Ask>,
    whole: Vec<(Option<Run>, Transcript)>,
    thread: Option<Thread>,
    earlier: Vec<Transcript>,
}

/// A worker that holds a run.
pub struct Held {
    /// The run as the worker knows it.
    pub run: Run,
    /// Its right.
    pub token: Token,
    /// Its last op.
    pub op: u64,
}

/// A person of their own for each call, so that tests can share a store.
pub fn person() -> Starter {
    Starter {
        sub: format!("ada-{}", Uuid::new_v4().simple()),
        system: false,
    }
}

/// A backend of its own for each call.
pub fn system() -> Starter {
    Starter {
        sub: format!("shop-{}", Uuid::new_v4().simple()),
        system: true,
    }
}

/// Whose log a run of `starter` is in, where that is a person.
pub fn owner(starter: &Starter) -> Owner {
    Owner::Person(starter.sub.clone())
}

/// What a new run of `starter` starts with.
pub fn beginning(starter: &Starter, thread: Option<&str>) -> Start {
    let partition = partition_for(starter, &new_nonce());
    Start {
        id: RunId::new(partition, Uuid::now_v7()),
        starter: starter.clone(),
        agent: "asker".to_owned(),
        revision: "r1".to_owned(),
        pinned: false,
        tell_expiry: false,
        thread: thread.map(str::to_owned),
        input: json!("a T-shirt, please"),
    }
}

/// A new run of `starter`, not yet written.
pub fn fresh(starter: &Starter, now: Millis) -> Moved {
    Run::start(beginning(starter, None), true, 0, now)
}

/// A caller's command with an id of its own.
pub fn command(caller: &Starter, run: Option<&RunId>) -> CommandWrite {
    CommandWrite {
        key: CommandKey {
            caller: caller.clone(),
            run: run.cloned(),
            cmd: new_nonce(),
        },
        digest: "d1".to_owned(),
        reply: json!({"ok": true}),
    }
}

/// A turn that asks `asks` questions at once.
pub fn asking(asks: usize, limits: Limits) -> Event {
    let input = json!({"question": "Which size?", "choices": ["S", "M", "L"]});
    let calls = (0..asks).map(|number| SavedCall {
        call: format!("call_{number}"),
        tool: "question".to_owned(),
        input: input.clone(),
        plan: Plan::Ask {
            kind: Kind::Question,
            id: new_ask_id(),
            input: input.clone(),
            questions: 1,
            editable: None,
        },
    });
    turn("Let me ask.", calls.collect(), limits)
}

/// A turn without calls, which ends the run well.
pub fn last_turn(text: &str) -> Event {
    turn(text, Vec::new(), Limits::default())
}

/// A turn that calls `tools` that need nobody.
pub fn calling(tools: &[&str]) -> Event {
    let calls = tools.iter().enumerate().map(|(number, tool)| SavedCall {
        call: format!("call_{number}"),
        tool: (*tool).to_owned(),
        input: json!({}),
        plan: Plan::Call,
    });
    turn("", calls.collect(), Limits::default())
}

fn turn(text: &str, calls: Vec<SavedCall>, limits: Limits) -> Event {
    Event::TurnSaved(SavedTurn {
        text: text.to_owned(),
        calls,
        raw: None,
        usage: Usage::default(),
        limits,
    })
}

/// The answer of `by` to an ask.
pub fn answer(ask: &str, by: &Starter, data: Value, cmd: &str) -> Event {
    Event::Settled {
        ask: ask.to_owned(),
        outcome: Outcome::Answered,
        data: Some(data),
        reason: None,
        by: By {
            sub: by.sub.clone(),
            device: None,
        },
        cmd: Some(cmd.to_owned()),
    }
}

/// What a worker announces of an agent.
pub fn announcement(name: &str, revision: &str) -> Announcement {
    Announcement {
        v: Announcement::VERSION,
        name: name.to_owned(),
        revision: revision.to_owned(),
        access: vec![Access::SignedIn],
        description: String::new(),
        limits: Limits::default(),
        on_message: OnMessage::Queue,
        questions: true,
        ask_question: false,
        tell_expiry: false,
        upgrade: Upgrade::Newest,
        tools: std::collections::BTreeMap::default(),
    }
}

/// All of a starter's, up to 1,000.
pub fn page(starter: &Starter) -> Page {
    Page {
        whose: Whose::Of(starter.clone()),
        agent: None,
        thread: None,
        statuses: Vec::new(),
        limit: 1_000,
        after: None,
    }
}

/// The reply of a commit that must be durable.
pub fn done(reply: Committing) -> Committed {
    match reply {
        Committing::Done(committed) => committed,
        other => panic!("not done: {other:?}"),
    }
}

/// The claim that must have been granted.
pub fn leased(reply: Leasing) -> Leased {
    match reply {
        Leasing::Leased(leased) => *leased,
        other => panic!("not leased: {other:?}"),
    }
}

impl Subject {
    /// The store's clock.
    pub async fn now(&self) -> Millis {
        let nobody = RunId::new(0, Uuid::nil());
        self.ports.store.load(&nobody, None).await.unwrap().now
    }

    /// Moves the store's clock on.
    pub fn travel(&self, time: Duration) {
        self.travel.as_ref().unwrap()(time);
    }

    /// Writes a commit.
    pub async fn write(&self, commit: &Commit) -> Committing {
        self.ports.store.commit(commit).await.unwrap()
    }

    /// Starts a run.
    pub async fn start(&self, starter: &Starter) -> Run {
        let now = self.now().await;
        self.start_at(starter, now).await
    }

    /// Starts a run that says it was started at `now`.
    pub async fn start_at(&self, starter: &Starter, now: Millis) -> Run {
        let moved = fresh(starter, now);
        let run = moved.run.clone();
        let by = Committer::Caller(command(starter, None));
        done(self.write(&Commit::of(by, Clock::Any, moved)).await);
        run
    }

    /// The run as the store has it.
    pub async fn load(&self, run: &RunId) -> Run {
        let found = self.ports.store.load(run, None).await.unwrap();
        found.value.run.unwrap()
    }

    /// Claims a run.
    pub async fn claim(&self, run: &RunId) -> Held {
        self.claim_for(run, LONG).await
    }

    /// Claims a run for `ttl`.
    pub async fn claim_for(&self, run: &RunId, ttl: Duration) -> Held {
        let reply = self.ports.store.lease(run, &new_nonce(), ttl).await;
        let run = leased(reply.unwrap().value).run;
        let token = run.lease.clone().unwrap().token;
        Held { run, token, op: 0 }
    }

    /// Commits an event as the worker that holds a run.
    pub async fn work(&self, held: &mut Held, event: Event) -> Committed {
        let now = self.now().await;
        let moved = held.run.apply(event, now).unwrap();
        held.run = moved.run.clone();
        let commit = held.commit(moved);
        done(self.write(&commit).await)
    }

    /// Commits an event as the sweeper, whatever the store holds.
    pub async fn sweep(&self, run: &RunId, event: Event) -> Run {
        let now = self.now().await;
        let moved = self.load(run).await.apply(event, now).unwrap();
        let run = moved.run.clone();
        let commit = Commit::of(Committer::Sweeper, Clock::Any, moved);
        done(self.write(&commit).await);
        run
    }

    /// A run that waits for a person, with so many asks.
    pub async fn waiting(&self, starter: &Starter, asks: usize) -> Run {
        let run = self.start(starter).await;
        let mut held = self.claim(&run.id).await;
        self.work(&mut held, asking(asks, Limits::default())).await;
        held.run
    }

    /// A run that is running with one ask open beside a call that goes on.
    pub async fn asking_beside_a_call(&self, starter: &Starter) -> Held {
        let run = self.start(starter).await;
        let mut held = self.claim(&run.id).await;
        let Event::TurnSaved(mut turn) = asking(1, Limits::default()) else {
            unreachable!()
        };
        let Event::TurnSaved(calls) = calling(&["look"]) else {
            unreachable!()
        };
        turn.calls.extend(calls.calls);
        turn.calls[1].call = "call_1".into();
        self.work(&mut held, Event::TurnSaved(turn)).await;
        held
    }

    /// What the store shows of `starter` (a person) and of these runs.
    pub async fn picture(&self, starter: &Starter, runs: &[&RunId]) -> Picture {
        let store = &self.ports.store;
        let owner = owner(starter);
        let mut whole = Vec::new();
        for run in runs {
            let found = store.load(run, None).await.unwrap().value.run;
            whole.push((found, store.transcript(run).await.unwrap().value));
        }
        let mut snapshot = store.snapshot(&owner).await.unwrap();
        snapshot.now = Millis(0);
        Picture {
            events: store.events_after(&owner, 0, 10_000).await.unwrap(),
            snapshot,
            runs: store.runs(&page(starter)).await.unwrap().value,
            asks: store.open_asks(&page(starter)).await.unwrap().value,
            whole,
            thread: store.thread(&owner, "chat").await.unwrap().value,
            earlier: store.earlier(&owner, "chat", u64::MAX >> 1).await.unwrap(),
        }
    }
}

impl Held {
    /// The worker's next commit.
    pub fn commit(&mut self, moved: Moved) -> Commit {
        self.op += 1;
        let by = Committer::Worker {
            run: moved.run.id.clone(),
            token: self.token.clone(),
            op: self.op,
        };
        Commit::of(by, Clock::Any, moved)
    }
}
