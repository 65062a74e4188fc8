//! The worlds. Each is as small as its subject allows: all of its states are visited.

use askwell_shared::agent::OnMessage;
use askwell_shared::id::RunId;

use crate::rules::{Budget, Call, Rules, Want, run_id};

fn world(script: fn(&RunId, u32) -> &'static [Call], people: &[Want], budget: Budget) -> Rules {
    Rules {
        runs: 1,
        threaded: false,
        on_message: OnMessage::Queue,
        script,
        ask_ticks: 4,
        people: people.to_vec(),
        workers: 2,
        budget,
        mistake: None,
    }
}

/// Two asks in one turn, answered over two gateways, with a lost reply and a crash.
pub(crate) fn two_asks() -> Rules {
    let script = |_: &RunId, turn| match turn {
        1 => &[Call::Question, Call::Question][..],
        _ => &[],
    };
    let people = [
        Want::Answer(1, "question 1.1", 1),
        Want::Answer(1, "question 1.2", 1),
    ];
    let budget = Budget {
        replies: 1,
        crashes: 1,
        gateways: 1,
        repeats: 1,
        hints: 1,
        ..Budget::default()
    };
    world(script, &people, budget)
}

/// Two answers that differ, beside a call, over a lease that is renewed or runs out.
pub(crate) fn racing_answers() -> Rules {
    let script = |_: &RunId, turn| match turn {
        1 => &[Call::Question, Call::Look][..],
        _ => &[],
    };
    let people = [
        Want::Answer(1, "question 1.1", 1),
        Want::Answer(1, "question 1.1", 1),
    ];
    let budget = Budget {
        ticks: 1,
        renewals: 1,
        ..Budget::default()
    };
    world(script, &people, budget)
}

/// A worker that stands still in a call that is not idempotent while its lease runs out, and
/// goes on later.
pub(crate) fn standing_still() -> Rules {
    let script = |_: &RunId, turn| match turn {
        1 => &[Call::Question, Call::Pay][..],
        _ => &[],
    };
    let people = [
        Want::Answer(1, "question 1.1", 1),
        Want::Approve(1, "pay 1.1", 1),
    ];
    let budget = Budget {
        ticks: 2,
        ..Budget::default()
    };
    world(script, &people, budget)
}

fn thread(on_message: OnMessage, cancelled: u8) -> Rules {
    let script = |run: &RunId, turn| {
        if *run == run_id(1) && turn == 1 {
            &[Call::Question][..]
        } else {
            &[]
        }
    };
    let people = [
        Want::Answer(1, "question 1.1", 1),
        Want::Cancel(cancelled),
        Want::Start,
    ];
    let budget = Budget {
        hints: 1,
        ..Budget::default()
    };
    Rules {
        runs: 2,
        threaded: true,
        on_message,
        ..world(script, &people, budget)
    }
}

/// A thread of two runs whose head waits and is answered, cancelled or superseded.
pub(crate) fn superseded_thread() -> Rules {
    thread(OnMessage::Supersede, 1)
}

/// A thread in which a start queues and the next run may be cancelled before its turn comes.
pub(crate) fn queueing_thread() -> Rules {
    thread(OnMessage::Queue, 2)
}

/// Runs that end at once, while replies are lost and leases run out.
pub(crate) fn ends_of_unknown_outcome() -> Rules {
    let budget = Budget {
        replies: 1,
        ticks: 1,
        ..Budget::default()
    };
    Rules {
        runs: 2,
        threaded: true,
        ..world(|_, _| &[], &[Want::Start], budget)
    }
}

/// Workers' replies are lost while an ask is settled.
pub(crate) fn unknown_outcome() -> Rules {
    let script = |_: &RunId, turn| match turn {
        1 => &[Call::Question, Call::Look][..],
        _ => &[],
    };
    let people = [Want::Answer(1, "question 1.1", 1), Want::Cancel(1)];
    let budget = Budget {
        replies: 2,
        crashes: 1,
        doubles: 1,
        ..Budget::default()
    };
    world(script, &people, budget)
}

/// An answer and a refusal at about the deadline.
pub(crate) fn deadline() -> Rules {
    let script = |_: &RunId, turn| match turn {
        1 => &[Call::Question][..],
        _ => &[],
    };
    let people = [
        Want::Answer(1, "question 1.1", 1),
        Want::Refuse(1, "question 1.1", 1),
    ];
    let budget = Budget {
        ticks: 2,
        replies: 1,
        ..Budget::default()
    };
    Rules {
        ask_ticks: 1,
        ..world(script, &people, budget)
    }
}

/// The model fails a run that is retried, in a thread where another waits.
pub(crate) fn retried() -> Rules {
    let script = |run: &RunId, turn| {
        if *run == run_id(1) && turn == 1 {
            &[Call::Question, Call::Pay][..]
        } else {
            &[]
        }
    };
    let people = [Want::Retry(1), Want::Answer(1, "question 1.1", 1)];
    let budget = Budget {
        failures: 1,
        crashes: 1,
        gateways: 1,
        ..Budget::default()
    };
    Rules {
        runs: 2,
        threaded: true,
        ..world(script, &people, budget)
    }
}

/// A run that is lost five times, and retried.
pub(crate) fn set_aside() -> Rules {
    let script = |_: &RunId, turn| match turn {
        1 => &[Call::Question, Call::Look][..],
        _ => &[],
    };
    let people = [
        Want::Answer(1, "question 1.1", 1),
        Want::Retry(1),
        Want::Answer(1, "question 1.1", 2),
    ];
    let budget = Budget {
        crashes: 5,
        ..Budget::default()
    };
    Rules {
        workers: 1,
        ..world(script, &people, budget)
    }
}

/// A call that needs approval beside an ask, with a crash and an answer to either first.
pub(crate) fn approval() -> Rules {
    let script = |_: &RunId, turn| match turn {
        1 => &[Call::Send, Call::Question][..],
        _ => &[],
    };
    let people = [
        Want::Answer(1, "question 1.1", 1),
        Want::Approve(1, "send 1.1", 1),
        Want::Refuse(1, "send 1.1", 2),
    ];
    let budget = Budget {
        crashes: 1,
        replies: 1,
        ..Budget::default()
    };
    world(script, &people, budget)
}

/// A model that is away for a while, and a worker that drains, beside an answer.
pub(crate) fn given_back() -> Rules {
    let script = |_: &RunId, turn| match turn {
        1 => &[Call::Question, Call::Look][..],
        _ => &[],
    };
    let people = [Want::Answer(1, "question 1.1", 1)];
    let budget = Budget {
        pauses: 1,
        drains: 1,
        stalls: 1,
        ticks: 1,
        ..Budget::default()
    };
    world(script, &people, budget)
}
