//! What a commit promises: its content, its repetition and the order of its checks.

use askwell_shared::agent::Limits;
use askwell_shared::ports::{Clock, CommandKey, Commit, Committer, Committing};
use askwell_shared::run::{CallState, Event, Status, Token};
use askwell_shared::time::Millis;
use askwell_shared::transcript::Message;
use serde_json::{Value, json};

use super::fixture::{
    Held, LONG, Subject, answer, asking, beginning, calling, command, done, fresh, last_turn,
    owner, page, person, system,
};

/// A start writes the run, its message, its command and its frames.
pub async fn a_start_is_written_whole(on: Subject) {
    let ada = person();
    let moved = fresh(&ada, on.now().await);
    let run = moved.run.clone();
    let write = command(&ada, None);
    let by = Committer::Caller(write.clone());
    let reply = done(on.write(&Commit::of(by, Clock::Any, moved.clone())).await);
    assert_eq!(reply.seq, 2);

    let store = &on.ports.store;
    let found = store.load(&run.id, Some(&write.key)).await.unwrap().value;
    assert_eq!(found.run, Some(run.clone()));
    let record = found.command.unwrap();
    assert_eq!((record.digest, record.seq), (write.digest, 2));
    assert_eq!(record.reply, write.reply);
    let transcript = store.transcript(&run.id).await.unwrap().value;
    assert_eq!(transcript.messages, moved.messages);
    assert!(transcript.journal.is_empty());
    let events = store.events_after(&owner(&ada), 0, 10).await.unwrap();
    let types: Vec<Value> = events
        .frames
        .iter()
        .map(|(_, frame)| serde_json::from_str::<Value>(frame).unwrap()["type"].clone())
        .collect();
    assert_eq!(types, ["run.status", "run.message"]);
    assert_eq!(store.runs(&page(&ada)).await.unwrap().value, [run]);
}

/// Numbers keep their digits, texts their characters and objects their order (SPEC 3.6).
pub async fn values_come_back_as_they_were_sent(on: Subject) {
    let ada = person();
    let text = r#"{"z":1.10,"a":100000000000000000000000000000,"e":1E400,"t":"é\u0000\u2028\"😀"}"#;
    let input: Value = serde_json::from_str(text).unwrap();
    let mut start = beginning(&ada, None);
    start.input = input.clone();
    let now = on.now().await;
    let moved = askwell_shared::run::Run::start(start, true, 0, now);
    let id = moved.run.id.clone();
    done(
        on.write(&Commit::of(Committer::Sweeper, Clock::Any, moved))
            .await,
    );
    let kept = on.load(&id).await.input;
    assert_eq!(kept.to_string(), input.to_string());
}

/// An answer of `null` is kept apart from no answer.
pub async fn an_answer_of_null_is_not_no_answer(on: Subject) {
    let ada = person();
    let run = on.waiting(&ada, 2).await;
    let null = answer(&run.asks[0].id, &ada, Value::Null, "c1");
    on.sweep(&run.id, null).await;
    on.sweep(&run.id, Event::Cancelled).await;
    let asks = on.load(&run.id).await.asks;
    let data = |number: usize| asks[number].settled.clone().unwrap().data;
    assert_eq!(data(0), Some(Value::Null));
    assert_eq!(data(1), None);
}

/// A worker that repeats a commit gets the reply it missed, and nothing is written twice.
pub async fn the_same_op_gets_the_same_reply(on: Subject) {
    let ada = person();
    let run = on.start(&ada).await;
    let mut held = on.claim(&run.id).await;
    let now = on.now().await;
    let moved = held.run.apply(asking(1, Limits::default()), now).unwrap();
    // The run waits now: the lease is gone, the op is not.
    let commit = held.commit(moved);
    let first = on.write(&commit).await;
    let before = on.picture(&ada, &[&run.id]).await;
    assert_eq!(on.write(&commit).await, first);
    done(first);
    assert_eq!(on.picture(&ada, &[&run.id]).await, before);
}

/// The reply is still there when somebody else ended the run meanwhile.
pub async fn the_same_op_gets_the_same_reply_after_a_cancel(on: Subject) {
    let ada = person();
    let run = on.start(&ada).await;
    let mut held = on.claim(&run.id).await;
    let now = on.now().await;
    let moved = held.run.apply(calling(&["look"]), now).unwrap();
    held.run = moved.run.clone();
    let commit = held.commit(moved);
    let first = on.write(&commit).await;
    on.sweep(&run.id, Event::Cancelled).await;
    assert_eq!(on.write(&commit).await, first);
    // The next op is another commit, and its right is gone.
    let next = held.run.apply(last_turn("x"), now);
    assert!(next.is_err(), "the call has no result yet");
    let next = Event::CallEnded {
        call: 0,
        text: "found".into(),
        failed: false,
    };
    let next = held.run.apply(next, now).unwrap();
    assert_eq!(on.write(&held.commit(next)).await, Committing::Lost);
}

/// A gateway's commit between two of a worker's leaves the worker's op alone.
pub async fn other_writers_leave_the_op_alone(on: Subject) {
    let ada = person();
    let mut held = on.asking_beside_a_call(&ada).await;
    let now = on.now().await;
    let ended = Event::CallEnded {
        call: 1,
        text: "found".into(),
        failed: false,
    };
    let moved = held.run.apply(ended, now).unwrap();
    let commit = held.commit(moved.clone());
    let first = on.write(&commit).await;
    let ask = moved.run.asks[0].id.clone();
    on.sweep(&moved.run.id, answer(&ask, &ada, json!("M"), "c1"))
        .await;
    on.claim(&moved.run.id).await;
    assert_eq!(on.write(&commit).await, first);
}

/// Neither an older fence nor the same fence with another nonce may commit (SPEC 1).
pub async fn a_worker_without_the_right_is_lost(on: Subject) {
    let ada = person();
    let run = on.start(&ada).await;
    let mut old = on.claim_for(&run.id, std::time::Duration::ZERO).await;
    on.sweep(&run.id, Event::Reclaimed).await;
    let new = on.claim(&run.id).await;
    assert_eq!(new.token.fence, old.token.fence + 1);
    let now = on.now().await;
    let forged = Token {
        fence: new.token.fence,
        nonce: old.token.nonce.clone(),
    };
    for token in [old.token.clone(), forged] {
        let mut worker = Held {
            run: new.run.clone(),
            token,
            op: 0,
        };
        let moved = worker.run.apply(last_turn("x"), now).unwrap();
        assert_eq!(on.write(&worker.commit(moved)).await, Committing::Lost);
    }
    let moved = old.run.apply(last_turn("x"), now).unwrap();
    assert_eq!(on.write(&old.commit(moved)).await, Committing::Lost);
    assert_eq!(on.load(&run.id).await, new.run);
    // Of a run that nobody wrote nobody has the right.
    let mut nobody = Held {
        run: fresh(&ada, now).run,
        ..new
    };
    nobody.run.status = Status::Running;
    let moved = nobody.run.apply(last_turn("x"), now).unwrap();
    assert_eq!(on.write(&nobody.commit(moved)).await, Committing::Lost);
}

/// A caller that repeats a command gets the record, whatever it sends this time.
pub async fn a_known_command_is_not_carried_out_again(on: Subject) {
    let ada = person();
    let write = command(&ada, None);
    let now = on.now().await;
    let start = |write: &askwell_shared::ports::CommandWrite| {
        let by = Committer::Caller(write.clone());
        Commit::of(by, Clock::Any, fresh(&ada, now))
    };
    let seq = done(on.write(&start(&write)).await).seq;
    let mut other = write.clone();
    other.digest = "d2".into();
    other.reply = json!({"another": 1});
    for again in [&write, &other] {
        let Committing::Known(record) = on.write(&start(again)).await else {
            panic!("carried out again")
        };
        assert_eq!(record.digest, write.digest);
        assert_eq!((record.reply, record.seq), (write.reply.clone(), seq));
    }
    let found = on.ports.store.command(&write.key).await.unwrap().value;
    assert_eq!(found.unwrap().digest, write.digest);
    let runs = on.ports.store.runs(&page(&ada)).await.unwrap().value;
    assert_eq!(runs.len(), 1);
}

/// One id used by another caller or about another run is another command.
pub async fn commands_are_known_by_caller_run_and_id(on: Subject) {
    let ada = person();
    let run = on.start(&ada).await;
    let write = command(&ada, Some(&run.id));
    let now = on.now().await;
    let stalled = Event::Stalled {
        reason: "no worker".into(),
    };
    let moved = run.apply(stalled, now).unwrap();
    let by = Committer::Caller(write.clone());
    done(on.write(&Commit::of(by, Clock::Any, moved)).await);

    let key = &write.key;
    let twin = askwell_shared::caller::Starter {
        system: true,
        ..ada.clone()
    };
    let others = [
        CommandKey {
            run: None,
            ..key.clone()
        },
        CommandKey {
            caller: person(),
            ..key.clone()
        },
        CommandKey {
            caller: twin,
            ..key.clone()
        },
        CommandKey {
            cmd: format!("{}x", key.cmd),
            ..key.clone()
        },
    ];
    for other in others {
        let found = on.ports.store.command(&other).await.unwrap().value;
        assert_eq!(found, None, "{other:?}");
    }
    assert!(on.ports.store.command(key).await.unwrap().value.is_some());
}

/// The store's clock decides, not the caller's (SPEC 3.6).
pub async fn an_answer_at_its_deadline_is_late(on: Subject) {
    let ada = person();
    let run = on.waiting(&ada, 1).await;
    let now = on.now().await;
    let moved = run
        .apply(answer(&run.asks[0].id, &ada, json!("M"), "c1"), now)
        .unwrap();
    // Its deadline is the present moment: not before it any more.
    let late = Commit::of(Committer::Sweeper, Clock::Before(now), moved.clone());
    let reply = on.write(&late).await;
    assert!(matches!(reply, Committing::Untimely(at) if at >= now));
    let clock = Clock::Before(now.after(LONG));
    done(
        on.write(&Commit::of(Committer::Sweeper, clock, moved))
            .await,
    );
}

/// What may be done from a time on is not done before it.
pub async fn an_expiry_waits_for_its_time(on: Subject) {
    let ada = person();
    let run = on.waiting(&ada, 1).await;
    let deadline = run.asks[0].deadline;
    let expired = Event::Expired {
        ask: run.asks[0].id.clone(),
    };
    let moved = run.apply(expired, deadline).unwrap();
    let early = Commit::of(Committer::Sweeper, Clock::From(deadline), moved.clone());
    assert!(matches!(on.write(&early).await, Committing::Untimely(now) if now < deadline));
    let due = Clock::From(on.now().await);
    done(on.write(&Commit::of(Committer::Sweeper, due, moved)).await);
}

/// Op known, then token, then revision, then clock.
pub async fn checks_come_in_their_order(on: Subject) {
    let ada = person();
    let run = on.start(&ada).await;
    let mut held = on.claim(&run.id).await;
    let now = on.now().await;
    let never = Clock::Before(Millis(0));

    // Known comes before all others.
    let moved = held.run.apply(calling(&["look"]), now).unwrap();
    let mut commit = held.commit(moved.clone());
    let first = on.write(&commit).await;
    commit.clock = never;
    assert_eq!(on.write(&commit).await, first);

    // The token comes before the revision and the clock.
    let mut stranger = Held {
        run: moved.run.clone(),
        token: Token {
            fence: 99,
            nonce: "x".into(),
        },
        op: 0,
    };
    let mut lost = stranger.commit(moved.clone());
    lost.clock = never;
    assert_eq!(on.write(&lost).await, Committing::Lost);

    // The revision comes before the clock.
    let mut conflict = held.commit(moved.clone());
    conflict.clock = never;
    assert_eq!(on.write(&conflict).await, Committing::Conflict);

    // A known command comes before the revision.
    let write = command(&ada, Some(&run.id));
    let by = Committer::Caller(write);
    let cancelled = on.load(&run.id).await.apply(Event::Cancelled, now).unwrap();
    let mut commit = Commit::of(by, Clock::Any, cancelled);
    done(on.write(&commit).await);
    commit.clock = never;
    assert!(matches!(on.write(&commit).await, Committing::Known(_)));
}

/// A call's result takes the place of its intent in the journal.
pub async fn the_journal_keeps_the_order_of_first_writing(on: Subject) {
    let ada = person();
    let run = on.start(&ada).await;
    let mut held = on.claim(&run.id).await;
    on.work(&mut held, calling(&["one", "two"])).await;
    for call in [1, 0] {
        let ended = Event::CallEnded {
            call,
            text: format!("result {call}"),
            failed: false,
        };
        on.work(&mut held, ended).await;
    }
    assert!(
        held.run
            .calls
            .iter()
            .all(|call| call.state == CallState::Done)
    );
    on.work(&mut held, last_turn("Done.")).await;
    let transcript = on.ports.store.transcript(&run.id).await.unwrap().value;
    let journal: Vec<_> = transcript
        .journal
        .iter()
        .map(|entry| (entry.tool.as_str(), entry.result.as_deref()))
        .collect();
    assert_eq!(
        journal,
        [("one", Some("result 0")), ("two", Some("result 1"))]
    );
    let turns: Vec<u32> = transcript
        .messages
        .iter()
        .map(|message| match message {
            Message::User { .. } => 0,
            Message::Assistant { turn, .. } => *turn,
        })
        .collect();
    assert_eq!(turns, [0, 1, 2]);
    let other = on.start(&system()).await;
    let transcript = on.ports.store.transcript(&other.id).await.unwrap().value;
    assert_eq!(transcript.messages.len(), 1, "of its own run only");
}
