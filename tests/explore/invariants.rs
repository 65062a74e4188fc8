//! What must hold between two states, in each state, and where nothing more happens (SPEC 5).

use std::collections::VecDeque;

use askwell_shared::ask::{Kind, Outcome};
use askwell_shared::run::{CallState, Run, Status};
use askwell_shared::transcript::{CallEnd, Message, Transcript};

use crate::broken::{Broken, Invariant, must};
use crate::client::{answer_of, command_of};
use crate::hold::Hold;
use crate::kept::Kept;
use crate::rules::{Rules, Want, idempotent, run_id};
use crate::store::Record;
use crate::world::World;

/// What no step may do.
pub(crate) fn between(before: &World, after: &World) -> Result<(), Broken> {
    for known in &before.store.runs {
        let record = after.store.record(&known.run.id);
        let Some(record) = record else {
            return must(false, Invariant::EndedStays, || known.run.id.to_string());
        };
        if !known.is(record) {
            changed(known, record)?;
        }
    }
    Ok(())
}

fn changed(before: &Record, after: &Record) -> Result<(), Broken> {
    let (was, is) = (&before.run, &after.run);
    for (number, ask) in was.asks.iter().enumerate() {
        let now = is.asks.get(number);
        let kept = now.is_some_and(|now| {
            now.id == ask.id && (ask.settled.is_none() || ask.settled == now.settled)
        });
        must(kept, Invariant::SettledOnce, || {
            format!("{ask:?}, then {now:?}")
        })?;
    }
    let retried = was.status == Status::Failed && matches!(is.status, Status::Queued);
    let stays = was.status.is_live() || retried || **was == **is;
    must(stays, Invariant::EndedStays, || {
        format!("{was:?}, then {is:?}", was = **was, is = **is)
    })?;

    let (was, is) = (&before.transcript, &after.transcript);
    let appended = is.messages.starts_with(&was.messages);
    must(appended, Invariant::TurnOnce, || {
        format!("{:?}, then {:?}", was.messages, is.messages)
    })?;
    for entry in was.journal.iter().filter(|entry| entry.result.is_some()) {
        must(is.journal.contains(entry), Invariant::OneResult, || {
            format!("{entry:?} has changed in {:?}", is.journal)
        })?;
    }
    Ok(())
}

/// What every state must be like. What is as it was `before` is not looked at again.
pub(crate) fn in_state(before: &World, world: &World, rules: &Rules) -> Result<(), Broken> {
    let known = |record: &Kept<Record>| before.store.runs.iter().any(|known| known.is(record));
    let told = |world: &World| -> Vec<(bool, bool)> {
        let clients = world.clients.iter();
        clients
            .map(|client| (client.ok.is_some(), client.too_late))
            .collect()
    };
    let heard = told(before) != told(world);
    let changed =
        before.store.runs.len() != world.store.runs.len() || !world.store.runs.iter().all(known);
    if !heard && !changed {
        return Ok(());
    }
    for record in &world.store.runs {
        if !known(record) {
            turns(record)?;
            indexes(record)?;
        }
        if record.run.status == Status::Succeeded {
            answers_used(record, world, rules)?;
        }
        turned_away(record, world)?;
    }
    thread(world)
}

fn turns(record: &Record) -> Result<(), Broken> {
    let mut texts: Vec<&str> = Vec::new();
    for message in &record.transcript.messages {
        let Message::Assistant { turn, text, .. } = message else {
            continue;
        };
        let once = *turn as usize == texts.len() + 1 && !texts.contains(&text.as_str());
        must(once, Invariant::TurnOnce, || {
            format!("{:?}", record.transcript.messages)
        })?;
        texts.push(text);
    }
    must(
        texts.len() == record.run.turn as usize,
        Invariant::TurnOnce,
        || format!("{} turns of {}", texts.len(), record.run.turn),
    )
}

fn to_do(run: &Run) -> bool {
    let asleep = |state: &CallState| matches!(state, CallState::Asking { .. } | CallState::Done);
    !run.calls.iter().all(|call| asleep(&call.state))
}

fn indexes(record: &Record) -> Result<(), Broken> {
    let run = &record.run;
    let open = run.open_asks().count();
    let queued = matches!(run.status, Status::Queued | Status::Stalled);
    let agree = run.lease.is_some() == (run.status == Status::Running)
        && record.lease.is_some() == run.lease.is_some()
        && record.ready.is_some() == (run.head && queued)
        && run.indexes().open.len() == open
        && run.indexes().live == run.status.is_live()
        && (open == 0 || run.status.is_live())
        && (run.status != Status::Waiting || (run.head && open > 0 && !to_do(run)))
        && (record.ready.is_none() || to_do(run) || open == 0);
    must(agree, Invariant::Indexes, || {
        format!(
            "{:?}, lease {:?}, ready {:?}",
            **run, record.lease, record.ready
        )
    })
}

/// What was said to be accepted stands in the journal, and nothing else at its step.
fn answers_used(record: &Record, world: &World, rules: &Rules) -> Result<(), Broken> {
    for (number, client) in world.clients.iter().enumerate() {
        let (Want::Answer(run, step, repeat)
        | Want::Approve(run, step, repeat)
        | Want::Refuse(run, step, repeat)) = rules.people[number]
        else {
            continue;
        };
        if client.ok.is_none() || run_id(run) != record.run.id {
            continue;
        }
        let journal = &record.transcript.journal;
        let at_step = journal.iter().filter(|entry| entry.step == step);
        let at_step: Vec<_> = at_step.collect();
        let [entry] = at_step[..] else {
            return must(false, Invariant::OneResult, || {
                format!("{step}: {at_step:?}")
            });
        };
        let used = match rules.people[number] {
            Want::Answer(..) => entry.result == Some(answer_of(number)),
            Want::Refuse(..) => entry.state == CallEnd::Failed,
            // A call that was made and then asked about again has used this leave.
            _ => {
                let mut asks = record.run.asks.iter().filter(|ask| ask.step == step);
                entry.state == CallEnd::Done || asks.any(|ask| ask.repeat > repeat)
            }
        };
        must(used, Invariant::AnswerUsed, || format!("{entry:?}"))?;
    }
    results(&record.run, &record.transcript)
}

/// An answer that was turned away as too late is nowhere.
fn turned_away(record: &Record, world: &World) -> Result<(), Broken> {
    let clients = world.clients.iter().enumerate();
    for (number, _) in clients.filter(|(_, client)| client.too_late) {
        let (cmd, answer) = (command_of(number), answer_of(number));
        let settled = record
            .run
            .asks
            .iter()
            .filter_map(|ask| ask.settled.as_ref());
        let unused = settled
            .into_iter()
            .all(|settled| settled.cmd.as_ref() != Some(&cmd));
        let mut journal = record.transcript.journal.iter();
        let unread = journal.all(|entry| entry.result.as_ref() != Some(&answer));
        must(unused && unread, Invariant::TurnedAway, || {
            format!("{cmd} in {:?}", record.run.asks)
        })?;
    }
    Ok(())
}

fn thread(world: &World) -> Result<(), Broken> {
    let Some(thread) = &world.store.thread else {
        return Ok(());
    };
    let runs = || world.store.runs.iter().map(|record| &record.run);
    let live = || runs().filter(|run| run.status.is_live());
    let heads: Vec<_> = live().filter(|run| run.head).map(|run| &run.id).collect();
    let at_work = |run: &&Kept<Run>| run.status == Status::Running || run.indexes().ready.is_some();
    let queued = |run: &Run| thread.queue.iter().filter(|id| **id == run.id).count();
    let agree = heads.len() <= 1
        && heads.first().copied() == thread.head()
        && live().filter(at_work).count() <= 1
        && live().all(|run| run.head || run.status == Status::Queued)
        && runs().all(|run| queued(run) == usize::from(run.status.is_live()));
    must(agree, Invariant::OneHead, || {
        let runs = runs().map(|run| (run.id.to_string(), run.status, run.head));
        format!("{:?}, {:?}", thread.queue, runs.collect::<Vec<_>>())
    })
}

/// Before a model call: each earlier call has its result, and answers are what was answered.
pub(crate) fn calling_the_model(hold: &Hold) -> Result<(), Broken> {
    results(&hold.run, &hold.transcript)
}

fn results(run: &Run, transcript: &Transcript) -> Result<(), Broken> {
    for message in &transcript.messages {
        let Message::Assistant { calls, .. } = message else {
            continue;
        };
        for call in calls {
            let entries = transcript.journal.iter();
            let entries: Vec<_> = entries.filter(|entry| entry.step == call.step).collect();
            let one = entries.len() == 1 && entries[0].result.is_some();
            must(one, Invariant::OneResult, || {
                format!("{}: {entries:?}", call.step)
            })?;
        }
    }
    for ask in run.asks.iter().filter(|ask| ask.kind == Kind::Question) {
        let settled = ask.settled.as_ref();
        let Some(settled) = settled.filter(|settled| settled.outcome == Outcome::Answered) else {
            continue;
        };
        let read = transcript
            .result(&ask.step)
            .and_then(|entry| entry.result.as_deref());
        let given = settled.data.as_ref().and_then(|data| data.as_str());
        must(read == given, Invariant::AnswerUsed, || {
            format!("{}: {given:?}, but {read:?}", ask.step)
        })?;
    }
    Ok(())
}

/// Before a call is made: it is not finished, and if it may have been made there is leave.
pub(crate) fn making(world: &World, hold: &Hold, call: usize) -> Result<(), Broken> {
    let call = &hold.run.calls[call];
    let Some(record) = world.store.record(&hold.run.id) else {
        return Ok(());
    };
    let holder = record.run.lease.as_ref().map(|lease| &lease.token);
    // A worker that was stopped before the call and has lost its lease is the window that remains.
    let finished = record.transcript.result(&call.step).is_some();
    must(
        !finished || holder != Some(&hold.token),
        Invariant::CallOnce,
        || format!("{} is made again though it is finished", call.step),
    )?;
    let key = (hold.run.id.clone(), call.step.clone());
    let made = world.made.get(&key).copied().unwrap_or_default();
    let granted = record.run.asks.iter().filter(|ask| {
        let settled = ask.settled.as_ref().map(|settled| settled.outcome);
        ask.step == call.step && ask.kind == Kind::Redo && settled == Some(Outcome::Answered)
    });
    must(
        idempotent(&call.tool) || usize::from(made) <= granted.count(),
        Invariant::CallOnce,
        || format!("{} is made again without leave", call.step),
    )
}

/// Where nothing more happens, every run has ended and no index holds one.
pub(crate) fn at_the_end(world: &World) -> Result<(), Broken> {
    for record in &world.store.runs {
        let run = &record.run;
        let over = !run.status.is_live()
            && record.ready.is_none()
            && record.lease.is_none()
            && run.indexes().open.is_empty();
        must(over, Invariant::NoDeadEnd, || format!("{:?}", **run))?;
    }
    let queue = world.store.thread.as_ref().map(|thread| &thread.queue);
    must(
        queue.is_none_or(VecDeque::is_empty),
        Invariant::NoDeadEnd,
        || format!("{queue:?} are left in the thread"),
    )
}
