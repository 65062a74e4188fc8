//! An accepted answer stands in two places, the store and its message (DESIGN 5). Where the store
//! has lost it, as after a failover to a replica that was behind, the message brings it back.

use askwell_shared::id::RunId;
use askwell_shared::ports::{
    Clock, CommandKey, CommandWrite, Commit, Committer, Committing, Fault, Ports, Settled,
};
use askwell_shared::run::{Event, Run};

/// How often a settlement is decided again after a conflict, before it is left to the message's
/// next delivery.
const TRIES: u32 = 10;

/// Commits a settlement again where its very ask is open; `true` where the store had lost it.
///
/// It counts only from the run's starter, and is judged by the time at which it was accepted: a
/// deadline that has passed since does no harm to it.
///
/// # Errors
/// The store cannot be reached: the message must stay where it is.
pub async fn restore(ports: &Ports, run: &RunId, settled: &Settled) -> Result<bool, Fault> {
    for _ in 0..TRIES {
        let Some(found) = ports.store.load(run, None).await?.value.run else {
            return Ok(false);
        };
        let Some(commit) = again(&found, settled) else {
            return Ok(false);
        };
        match ports.commit(&commit).await? {
            Committing::Done(_) => {
                tracing::warn!(%run, step = settled.step, "the store had lost an accepted answer");
                return Ok(true);
            }
            Committing::Conflict => {}
            Committing::Known(_) | Committing::Lost | Committing::Untimely(_) => return Ok(false),
        }
    }
    Err(Fault::new("restore", "the run changes too fast"))
}

/// The commit that settles the ask again; `None` where the store needs none.
fn again(run: &Run, settled: &Settled) -> Option<Commit> {
    let settlement = &settled.settlement;
    let ask = run.ask(&settled.ask).filter(|ask| ask.is_open())?;
    let by = settlement
        .by
        .clone()
        .filter(|by| by.sub == run.starter.sub)?;
    let event = Event::Settled {
        ask: ask.id.clone(),
        outcome: settlement.outcome,
        data: settlement.data.clone(),
        reason: settlement.reason.clone(),
        by,
        cmd: settlement.cmd.clone(),
    };
    let moved = run.apply(event, settlement.at).ok()?;
    let command = CommandWrite {
        key: CommandKey {
            caller: run.starter.clone(),
            run: Some(run.id.clone()),
            cmd: settlement.cmd.clone()?,
        },
        digest: settled.digest.clone(),
        reply: settled.reply.clone(),
    };
    Some(Commit::of(Committer::Caller(command), Clock::Any, moved))
}
