//! The transitions of DESIGN 6 row by row, then random sequences of events.

use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};
use uuid::Uuid;

use super::*;
use crate::agent::Limits;
use crate::ask::{By, Kind, Outcome};
use crate::caller::Starter;
use crate::thread::Thread;
use crate::transcript::{CallEnd, JournalEntry, Message, Usage};
use crate::wire::Frame;

fn limits() -> Limits {
    Limits {
        ask: Duration::from_secs(100),
        ..Limits::default()
    }
}

fn start(number: u128) -> Start {
    Start {
        id: RunId::new(1, Uuid::from_u128(number)),
        starter: Starter {
            sub: "ada".into(),
            system: false,
        },
        agent: "asker".into(),
        revision: "r1".into(),
        pinned: false,
        tell_expiry: false,
        thread: None,
        input: json!("a T-shirt, please"),
    }
}

fn by() -> By {
    By {
        sub: "ada".into(),
        device: None,
    }
}

fn asking(tool: &str, id: &str) -> SavedCall {
    let kind = match tool {
        "question" => Kind::Question,
        "ask_question" => Kind::AskQuestion,
        _ => Kind::Approval,
    };
    SavedCall {
        call: format!("c-{id}"),
        tool: tool.into(),
        input: json!({"question": "Which size?"}),
        plan: Plan::Ask {
            kind,
            id: id.into(),
            input: json!({"question": "Which size?", "choices": ["S", "M", "L"]}),
            questions: 1,
            editable: None,
        },
    }
}

fn calling(tool: &str, id: &str) -> SavedCall {
    SavedCall {
        call: format!("c-{id}"),
        tool: tool.into(),
        input: json!({"q": id}),
        plan: Plan::Call,
    }
}

fn turn(text: &str, calls: Vec<SavedCall>) -> Event {
    Event::TurnSaved(SavedTurn {
        text: text.into(),
        calls,
        raw: None,
        usage: Usage {
            tokens_in: 10,
            tokens_out: 5,
            estimated: false,
        },
        limits: limits(),
    })
}

fn leased(nonce: &str) -> Event {
    Event::Leased {
        nonce: nonce.into(),
        until: Millis(10_000),
    }
}

fn answer(ask: &str, data: Value) -> Event {
    Event::Settled {
        ask: ask.into(),
        outcome: Outcome::Answered,
        data: Some(data),
        reason: None,
        by: by(),
        cmd: Some("cmd-1".into()),
    }
}

fn refuse(ask: &str) -> Event {
    Event::Settled {
        ask: ask.into(),
        outcome: Outcome::Refused,
        data: None,
        reason: None,
        by: by(),
        cmd: None,
    }
}

/// Follows a run over events and keeps what a store would keep.
struct Trail {
    run: Run,
    journal: Vec<JournalEntry>,
    messages: Vec<Message>,
    frames: Vec<Frame>,
}

impl Trail {
    fn new() -> Self {
        let moved = Run::start(start(1), true, 0, Millis(0));
        let mut trail = Trail {
            run: moved.run.clone(),
            journal: Vec::new(),
            messages: Vec::new(),
            frames: Vec::new(),
        };
        trail.take(moved);
        trail
    }

    fn take(&mut self, moved: Moved) {
        self.run = moved.run;
        self.messages.extend(moved.messages);
        self.frames.extend(moved.frames);
        for entry in moved.journal {
            self.journal.retain(|known| known.step != entry.step);
            self.journal.push(entry);
        }
    }

    fn then(mut self, event: Event, now: i64) -> Self {
        let moved = self.run.apply(event, Millis(now)).unwrap();
        self.take(moved);
        self
    }

    fn late(&self, event: Event, now: i64) -> Late {
        self.run.apply(event, Millis(now)).unwrap_err()
    }

    fn result(&self, step: &str) -> Option<String> {
        let entry = self.journal.iter().find(|entry| entry.step == step)?;
        entry.result.clone()
    }

    fn names(&self) -> Vec<String> {
        self.frames
            .iter()
            .map(|frame| match frame {
                Frame::RunStatus { status, .. } => format!("run.status {status}"),
                Frame::RunTool { state, .. } => format!("run.tool {state}"),
                frame => frame.name().to_owned(),
            })
            .collect()
    }
}

#[test]
fn the_trace_of_the_protocol() {
    let trail = Trail::new()
        .then(leased("a"), 1)
        .then(turn("Which size?", vec![asking("question", "ask_1")]), 2)
        .then(answer("ask_1", json!("M")), 3)
        .then(leased("b"), 4)
        .then(turn("M it is.", vec![]), 5);
    assert_eq!(
        trail.names(),
        [
            "run.status queued",
            "run.message",
            "run.status running",
            "run.message",
            "ask.opened",
            "run.status waiting",
            "ask.settled",
            "run.status queued",
            "run.status running",
            "run.message",
            "run.status succeeded",
        ]
    );
    assert_eq!(trail.result("question 1.1").as_deref(), Some("M"));
    assert_eq!(trail.run.output.as_deref(), Some("M it is."));
    assert_eq!(trail.run.rev, 6);
    assert_eq!(trail.run.usage.tokens_out, 10);
}

#[test]
fn a_sibling_runs_while_the_person_thinks() {
    let trail = Trail::new().then(leased("a"), 1).then(
        turn(
            "",
            vec![calling("lookup", "1"), asking("question", "ask_1")],
        ),
        2,
    );
    assert_eq!(trail.run.status, Status::Running);
    assert_eq!(
        trail.names()[3..],
        ["run.message", "ask.opened", "run.tool started"]
    );
    let ended = || Event::CallEnded {
        call: 0,
        text: "9 to 5".into(),
        failed: false,
    };
    // First the tool, then the answer.
    let tool_first = Trail::new()
        .then(leased("a"), 1)
        .then(
            turn(
                "",
                vec![calling("lookup", "1"), asking("question", "ask_1")],
            ),
            2,
        )
        .then(ended(), 3);
    assert_eq!(tool_first.run.status, Status::Waiting);
    assert_eq!(tool_first.run.lease, None);
    let tool_first = tool_first.then(answer("ask_1", json!("M")), 4);
    assert_eq!(tool_first.run.status, Status::Queued);
    // First the answer: it changes no status, and the holder goes on under its lease.
    let answer_first = trail.then(answer("ask_1", json!("M")), 3);
    assert_eq!(answer_first.run.status, Status::Running);
    assert!(answer_first.run.lease.is_some());
    assert_eq!(answer_first.names().last().unwrap(), "ask.settled");
    let answer_first = answer_first.then(ended(), 4);
    assert_eq!(answer_first.run.status, Status::Running);
    assert_eq!(answer_first.run.next(), Next::Model);
}

#[test]
fn steps_count_by_tool_within_a_turn() {
    let trail = Trail::new().then(leased("a"), 1).then(
        turn(
            "",
            vec![
                asking("question", "a"),
                calling("lookup", "1"),
                asking("question", "b"),
            ],
        ),
        2,
    );
    let steps: Vec<&str> = trail
        .run
        .calls
        .iter()
        .map(|call| call.step.as_str())
        .collect();
    assert_eq!(steps, ["question 1.1", "lookup 1.1", "question 1.2"]);
}

#[test]
fn limits_end_a_turn_with_calls_before_anyone_is_asked() {
    type Set = fn(&mut Limits);
    let cases: [(&str, Set, &str); 3] = [
        (
            "steps",
            |limits| limits.steps = Some(1),
            "limit steps of 1 reached",
        ),
        (
            "out",
            |limits| limits.tokens_out = Some(5),
            "limit perRun.tokensOut of 5 reached",
        ),
        (
            "in",
            |limits| limits.tokens_in = Some(10),
            "limit perRun.tokensIn of 10 reached",
        ),
    ];
    for (name, set, reason) in cases {
        let mut few = limits();
        set(&mut few);
        let reached = |calls: Vec<SavedCall>| {
            Event::TurnSaved(SavedTurn {
                text: "t".into(),
                calls,
                raw: None,
                usage: Usage {
                    tokens_in: 10,
                    tokens_out: 5,
                    estimated: false,
                },
                limits: few.clone(),
            })
        };
        let held = || Trail::new().then(leased("a"), 1);
        let failed = held().then(reached(vec![asking("question", "a"), calling("t", "1")]), 2);
        assert_eq!(failed.run.reason.as_deref(), Some(reason), "{name}");
        assert_eq!(failed.run.status, Status::Failed);
        assert!(failed.run.asks.is_empty());
        assert!(failed.journal.is_empty());
        // Still over: the same reason again. With more room the saved turn goes on.
        let retried = |limits: Limits| Event::Retried {
            limits,
            head: true,
            ids: vec!["x".into(), "y".into()],
        };
        let still = failed.then(retried(few.clone()), 3);
        assert_eq!(still.run.status, Status::Failed);
        assert_eq!(still.run.reason.as_deref(), Some(reason));
        let again = still.then(retried(limits()), 4).then(leased("b"), 5);
        assert_eq!(again.run.next(), Next::Plan);
        // A turn that only talks has ended the run anyway.
        let said = held().then(reached(vec![]), 2);
        assert_eq!(said.run.status, Status::Succeeded, "{name}");
    }
}

#[test]
fn beyond_the_limit_of_asks_nobody_is_asked() {
    let mut few = limits();
    few.asks = 1;
    let event = Event::TurnSaved(SavedTurn {
        text: String::new(),
        calls: vec![asking("question", "a"), asking("question", "b")],
        raw: None,
        usage: Usage::default(),
        limits: few,
    });
    let trail = Trail::new().then(leased("a"), 1).then(event, 2);
    assert_eq!(trail.run.open_asks().count(), 1);
    assert_eq!(
        trail.result("question 1.2").as_deref(),
        Some("No more questions may be asked in this run.")
    );
}

#[test]
fn refused_and_expired_read_the_same_and_are_recorded_apart() {
    let asked = || {
        Trail::new()
            .then(leased("a"), 1)
            .then(turn("", vec![asking("question", "ask_1")]), 2)
    };
    let refused = asked().then(refuse("ask_1"), 3);
    let expired = asked().then(
        Event::Expired {
            ask: "ask_1".into(),
        },
        200_000,
    );
    for (trail, outcome) in [(refused, Outcome::Refused), (expired, Outcome::Expired)] {
        assert_eq!(
            trail.result("question 1.1").as_deref(),
            Some("The person refused this.")
        );
        let settled = trail.run.asks[0].settled.as_ref().unwrap();
        assert_eq!(settled.outcome, outcome);
        assert_eq!(trail.run.status, Status::Queued);
    }
    // At the deadline an answer is late, and before it nothing expires.
    let deadline = 100_002;
    assert_eq!(
        asked().late(answer("ask_1", json!("M")), deadline),
        Late::Past("ask_1".into())
    );
    assert_eq!(
        asked().late(
            Event::Expired {
                ask: "ask_1".into()
            },
            deadline - 1
        ),
        Late::NotNow
    );
}

#[test]
fn a_cancelled_run_keeps_nothing_open_and_takes_nothing_more() {
    let trail = Trail::new()
        .then(leased("a"), 1)
        .then(
            turn("", vec![asking("question", "a"), asking("question", "b")]),
            2,
        )
        .then(answer("a", json!("M")), 3)
        .then(Event::Cancelled, 4);
    assert_eq!(trail.run.status, Status::Cancelled);
    assert_eq!(trail.run.indexes(), Indexes::default());
    assert!(matches!(
        trail.late(answer("b", json!("M")), 5),
        Late::Settled(_)
    ));
    for event in [
        Event::Cancelled,
        leased("b"),
        turn("x", vec![]),
        Event::Reclaimed,
        Event::Released,
    ] {
        assert_eq!(trail.late(event, 6), Late::Over);
    }
}

#[test]
fn a_lost_worker_costs_attempts_until_the_run_is_set_aside() {
    let mut trail = Trail::new();
    let mut waits = Vec::new();
    for attempt in 1..=5 {
        let now = 1_000_000 * attempt;
        let lease = Event::Leased {
            nonce: "n".into(),
            until: Millis(now + 10),
        };
        trail = trail.then(lease, now);
        assert_eq!(trail.late(Event::Reclaimed, now + 9), Late::NotNow);
        trail = trail.then(Event::Reclaimed, now + 10);
        waits.push(trail.run.not_before.0 - (now + 10));
    }
    assert_eq!(waits[..4], [0, 1_000, 5_000, 25_000]);
    assert_eq!(trail.run.status, Status::Failed);
    assert_eq!(trail.run.reason.as_deref(), Some(SET_ASIDE));
}

#[test]
fn an_unknown_outcome_is_asked_about_and_counts_against_no_limit() {
    let crashed = || {
        Trail::new()
            .then(leased("a"), 1)
            .then(turn("", vec![calling("mail", "1")]), 2)
            .then(Event::Reclaimed, 20_000)
            .then(leased("b"), 20_001)
            .then(
                Event::RedoAsked {
                    calls: vec![(0, "ask_r".into())],
                    wait: Duration::from_secs(100),
                },
                20_002,
            )
    };
    let trail = crashed();
    assert_eq!(trail.run.status, Status::Waiting);
    assert_eq!(trail.run.asked, 0);
    let ask = &trail.run.asks[0];
    assert_eq!((ask.step.as_str(), ask.repeat), ("mail 1.1", 1));
    let refused = crashed().then(refuse("ask_r"), 20_003);
    assert_eq!(
        refused.result("mail 1.1").as_deref(),
        Some("It is not known whether this was done; it was not done again.")
    );
    let granted = Event::Settled {
        ask: "ask_r".into(),
        outcome: Outcome::Answered,
        data: None,
        reason: None,
        by: by(),
        cmd: None,
    };
    let again = crashed().then(granted, 20_003).then(leased("c"), 20_004);
    assert_eq!(again.run.next(), Next::Calls);
    let again = again.then(Event::CallsStarted(vec![0]), 20_005);
    assert_eq!(again.run.calls[0].state, CallState::Started { attempt: 2 });
}

#[test]
fn an_approval_runs_the_call_with_the_edited_input() {
    let trail = Trail::new()
        .then(leased("a"), 1)
        .then(turn("", vec![asking("refund", "ask_1")]), 2)
        .then(answer("ask_1", json!({"order": "7"})), 3)
        .then(leased("b"), 4);
    assert_eq!(trail.run.calls[0].state, CallState::Ready);
    assert_eq!(trail.run.calls[0].input, json!({"order": "7"}));
    assert_eq!(trail.result("refund 1.1"), None);
}

#[test]
fn retry_opens_anew_what_the_failure_closed() {
    let trail = Trail::new()
        .then(leased("a"), 1)
        .then(
            turn("", vec![asking("question", "a"), calling("mail", "1")]),
            2,
        )
        .then(
            Event::Failed {
                reason: "model: 500".into(),
            },
            3,
        );
    assert_eq!(
        trail.run.asks[0].settled.as_ref().unwrap().outcome,
        Outcome::Cancelled
    );
    let trail = trail.then(
        Event::Retried {
            limits: limits(),
            head: true,
            ids: vec!["a2".into(), "b2".into()],
        },
        4,
    );
    let open: Vec<(&str, u32)> = trail
        .run
        .open_asks()
        .map(|ask| (ask.step.as_str(), ask.repeat))
        .collect();
    assert_eq!(open, [("question 1.1", 2)]);
    assert_eq!(trail.run.status, Status::Queued);
    assert!(matches!(
        trail.run.find_ask("question 1.1", 1, Millis(5)),
        Err(Late::Settled(_))
    ));
    assert!(trail.run.find_ask("question 1.1", 2, Millis(5)).is_ok());
    assert_eq!(
        trail.run.find_ask("question 1.1", 3, Millis(5)),
        Err(Late::Unknown)
    );
}

#[test]
fn threads_go_one_at_a_time() {
    let owner = start(1).starter;
    let thread = Thread::new(Owner::of(&owner, &start(1).id), "t".into());
    let named = |number| Start {
        thread: Some("t".into()),
        ..start(number)
    };
    let queue = crate::agent::OnMessage::Queue;
    let first = thread
        .start(named(1), queue, None, None, Millis(0))
        .unwrap();
    let head = first.runs[0].run.clone();
    let second = first
        .thread
        .start(named(2), queue, Some(&head), None, Millis(1))
        .unwrap();
    let behind = second.runs[0].run.clone();
    assert_eq!(behind.claim(Millis(2)), Claim::NotClaimable);
    assert_eq!(behind.indexes().ready, None);
    let ended = head.apply(Event::Cancelled, Millis(3)).unwrap();
    let moved = second.thread.end(ended, Some(&behind), Millis(3)).unwrap();
    let promoted = &moved.runs[1].run;
    assert_eq!(promoted.claim(Millis(4)), Claim::Free);
    assert_eq!(promoted.earlier, Some(1));
    assert_eq!(moved.ended, [(head.id.clone(), 0)]);
}

#[test]
fn a_waiting_head_makes_room_where_its_agent_says_so() {
    let owner = start(1).starter;
    let thread = Thread::new(Owner::of(&owner, &start(1).id), "t".into());
    let named = |number| Start {
        thread: Some("t".into()),
        ..start(number)
    };
    let supersede = crate::agent::OnMessage::Supersede;
    let first = thread
        .start(named(1), supersede, None, None, Millis(0))
        .unwrap();
    let running = first.runs[0].run.apply(leased("a"), Millis(1)).unwrap().run;
    // A head that does not wait is left alone.
    let queued = first
        .thread
        .start(named(2), supersede, Some(&running), None, Millis(2))
        .unwrap();
    assert_eq!(queued.runs.len(), 1);
    let waiting = running
        .apply(turn("", vec![asking("question", "a")]), Millis(3))
        .unwrap()
        .run;
    let second = queued.runs[0].run.clone();
    let moved = queued
        .thread
        .start(
            named(3),
            supersede,
            Some(&waiting),
            Some(&second),
            Millis(4),
        )
        .unwrap();
    let states: Vec<(Status, bool)> = moved
        .runs
        .iter()
        .map(|moved| (moved.run.status, moved.run.head))
        .collect();
    assert_eq!(
        states,
        [
            (Status::Cancelled, true),
            (Status::Queued, true),
            (Status::Queued, false)
        ]
    );
    let settled = moved.runs[0].run.asks[0].settled.as_ref().unwrap();
    assert_eq!(settled.outcome, Outcome::Superseded);
    assert_eq!(moved.runs[0].run.reason.as_deref(), Some("superseded"));
}

/// What a random world does next; most of it does not apply, which must then change nothing.
fn some_event() -> impl Strategy<Value = (u8, usize, u16)> {
    (0_u8..14, 0_usize..4, 1_u16..60)
}

fn event_of(kind: u8, pick: usize, run: &Run, fresh: &mut u32, now: i64) -> Event {
    let ask = run
        .asks
        .get(pick % run.asks.len().max(1))
        .map_or_else(|| "none".to_owned(), |ask| ask.id.clone());
    *fresh += 1;
    let fresh = *fresh;
    match kind {
        0 | 1 => Event::Leased {
            nonce: format!("n{fresh}"),
            until: Millis(now + 50),
        },
        2 | 3 => {
            let all = [
                asking("question", &format!("a{fresh}")),
                calling("mail", &fresh.to_string()),
                asking("refund", &format!("b{fresh}")),
                calling("lookup", &fresh.to_string()),
            ];
            turn("text", all[..=pick].to_vec())
        }
        4 => turn("the end", vec![]),
        5 => Event::CallEnded {
            call: pick,
            text: format!("result {fresh}"),
            failed: pick == 2,
        },
        6 | 7 => answer(&ask, json!(format!("answer {fresh}"))),
        8 => refuse(&ask),
        9 => Event::Expired { ask },
        10 => Event::Reclaimed,
        11 => Event::CallsStarted(vec![pick]),
        12 => Event::RedoAsked {
            calls: vec![(pick, format!("r{fresh}"))],
            wait: Duration::from_secs(1),
        },
        _ => match pick {
            0 => Event::Cancelled,
            1 => Event::Failed {
                reason: "model: 500".into(),
            },
            2 => Event::Released,
            _ => Event::Retried {
                limits: limits(),
                head: true,
                ids: (0..4).map(|number| format!("x{fresh}-{number}")).collect(),
            },
        },
    }
}

/// What must hold of every run at every moment.
fn hold_invariants(trail: &Trail) {
    let run = &trail.run;
    let indexes = run.indexes();
    assert_eq!(indexes.live, run.status.is_live());
    assert_eq!(indexes.lease.is_some(), run.status == Status::Running);
    assert_eq!(
        indexes.ready.is_some(),
        matches!(run.status, Status::Queued | Status::Stalled) && run.head
    );
    if !run.status.is_live() {
        assert!(indexes.open.is_empty(), "an ended run has open asks");
    }
    if run.status == Status::Waiting {
        assert!(!indexes.open.is_empty(), "it waits for nothing");
        assert!(
            run.calls
                .iter()
                .all(|call| matches!(call.state, CallState::Asking { .. } | CallState::Done))
        );
    }
    // Every call of a turn gets exactly one result, and the model is next only when all have it.
    for call in &run.calls {
        let results = trail
            .journal
            .iter()
            .filter(|entry| entry.step == call.step && entry.result.is_some())
            .count();
        assert_eq!(results, usize::from(call.state == CallState::Done));
    }
    if run.next() == Next::Model {
        assert!(run.calls.iter().all(|call| call.state == CallState::Done));
    }
    // A call that waits has its open ask, and every open ask has its call.
    for ask in run.open_asks() {
        assert_eq!(
            run.calls[ask.call].state,
            CallState::Asking {
                ask: ask.id.clone()
            }
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_the_promises_hold(
        events in prop::collection::vec(some_event(), 1..60)
    ) {
        let mut trail = Trail::new();
        let mut now = 0;
        let mut fresh = 0;
        for (kind, pick, passed) in events {
            now += i64::from(passed);
            let before = trail.run.clone();
            let event = event_of(kind, pick, &before, &mut fresh, now);
            let accepted = match &event {
                Event::Settled { ask, outcome: Outcome::Answered, data, .. } => {
                    Some((ask.clone(), data.clone()))
                }
                _ => None,
            };
            let retried = matches!(event, Event::Retried { .. });
            let Ok(moved) = before.apply(event, Millis(now)) else { continue };
            prop_assert_eq!(moved.run.rev, before.rev + 1);
            // A terminal run never changes, but for a retry of a failed one.
            prop_assert!(before.status.is_live() || (retried && before.status == Status::Failed));
            // An ask settles once: what was settled stays as it was.
            for ask in before.asks.iter().filter(|ask| !ask.is_open()) {
                prop_assert_eq!(moved.run.ask(&ask.id), Some(ask));
            }
            // What changed of the asks is named for writing.
            for (number, ask) in moved.run.asks.iter().enumerate() {
                let same = before.asks.get(number) == Some(ask);
                prop_assert_eq!(same, !moved.asks.contains(&number));
            }
            trail.take(moved);
            // An accepted answer reaches the model: as a result, or as leave to call.
            if let Some((ask, data)) = accepted {
                let ask = trail.run.ask(&ask).unwrap().clone();
                if ask.kind == Kind::Question {
                    let told = data.as_ref().and_then(Value::as_str).map(str::to_owned);
                    prop_assert_eq!(trail.result(&ask.step), told);
                } else {
                    prop_assert_eq!(&trail.run.calls[ask.call].state, &CallState::Ready);
                }
            }
            hold_invariants(&trail);
        }
    }

    #[test]
    fn results_stand_in_the_order_of_the_calls(order in Just(vec![0_usize, 1, 2]).prop_shuffle()) {
        let calls = vec![asking("question", "a"), calling("mail", "1"), asking("question", "b")];
        let mut trail = Trail::new().then(leased("n"), 1).then(turn("", calls), 2);
        for number in order {
            trail = match number {
                0 => trail.then(answer("a", json!("A")), 3),
                2 => trail.then(answer("b", json!("B")), 3),
                _ => trail.then(
                    Event::CallEnded { call: 1, text: "sent".into(), failed: false },
                    3,
                ),
            };
        }
        let Some(Message::Assistant { calls, .. }) = trail.messages.last() else {
            panic!("no turn was saved");
        };
        let results: Vec<Option<String>> =
            calls.iter().map(|call| trail.result(&call.step)).collect();
        prop_assert_eq!(
            results,
            vec![Some("A".to_owned()), Some("sent".to_owned()), Some("B".to_owned())]
        );
        prop_assert!(trail.journal.iter().all(|entry| entry.state == CallEnd::Done));
    }
}
