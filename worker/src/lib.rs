//! Askwell's worker: claims runs, advances them, gives them back. In reading order:
//!
//! - [`serve`]: a slot for each run, announcing, sweeping, drain.
//! - [`mod@advance`]: one claimed run: decide, act, commit; [`hold`]: its lease and its commits.
//! - [`driver`]: who decides the turns; the engine's loop over a model. [`plan`]: what is to
//!   happen to a turn's calls.
//! - [`model`], [`tools`], [`guards`]: what agents are made of; [`agents`]: made ready.
//! - [`restore`]: an accepted answer that the store lost. [`deltas`]: streamed text.
//!
//! A worker keeps nothing that another could need: whatever is not in the store is lost with it
//! and made again.

pub mod advance;
pub mod agents;
pub mod deltas;
pub mod driver;
pub mod guards;
pub mod hold;
pub mod model;
pub mod plan;
pub mod restore;
pub mod tools;

use std::collections::BTreeMap;
use std::sync::{Arc, RwLock};
use std::time::Duration;

use futures_util::StreamExt as _;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use askwell_shared::agent::{Announcement, Limits};
use askwell_shared::ports::{Fault, Ports};
use askwell_shared::sweep::Sweeper;

use advance::{Context, advance};
use agents::Agents;

/// How often a worker says that it is alive; a third of the time after which it counts as gone.
const ANNOUNCE_EVERY: Duration = Duration::from_secs(5);

/// How a worker works.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Runs that are advanced at once.
    pub concurrency: usize,
    /// For how long a run is claimed; renewed at a third.
    pub lease: Duration,
}

/// Works until `stop` is cancelled, then drains: it claims no more runs, aborts model calls,
/// lets tool calls end, and gives every run back. `ready` is called once the agents are
/// announced.
pub async fn serve(
    ports: Ports,
    agents: Agents,
    options: Options,
    stop: CancellationToken,
    ready: impl FnOnce() + Send,
) {
    let context = Arc::new(Context {
        ports: ports.clone(),
        agents,
        lease: options.lease,
        limits: RwLock::new(BTreeMap::new()),
        stop: stop.clone(),
    });
    if announce_until_heard(&context).await {
        ready();
    }
    let background = CancellationToken::new();
    let announcing = tokio::spawn({
        let (context, background) = (context.clone(), background.clone());
        async move { background.run_until_cancelled(announcing(&context)).await }
    });
    let sweeping = tokio::spawn({
        let background = background.clone();
        let sweeper = Sweeper::new(ports.clone());
        async move { background.run_until_cancelled(sweeper.run()).await }
    });

    let slots = Arc::new(Semaphore::new(options.concurrency));
    let runs = TaskTracker::new();
    let mut hints = ports.hints.take();
    loop {
        // A slot first: a hint that is taken is a hint that is worked on.
        let slot = tokio::select! {
            () = stop.cancelled() => break,
            slot = slots.clone().acquire_owned() => slot,
        };
        let Ok(slot) = slot else { break };
        let taken = tokio::select! {
            () = stop.cancelled() => break,
            taken = hints.next() => taken,
        };
        let Some(taken) = taken else { break };
        let context = context.clone();
        runs.spawn(async move {
            advance(&context, taken).await;
            drop(slot);
        });
    }
    drop(hints);
    runs.close();
    runs.wait().await;
    background.cancel();
    let _ = announcing.await;
    let _ = sweeping.await;
}

async fn announce(context: &Context, fresh: bool) -> Result<(), Fault> {
    let mine: Vec<Announcement> = context
        .agents
        .values()
        .map(|loaded| loaded.agent.announcement())
        .collect();
    context.ports.store.announce(&mine, fresh).await?;
    let known = context.ports.store.agents().await?.value;
    let mut newest: BTreeMap<String, (i64, Limits)> = BTreeMap::new();
    for agent in known {
        let announced = agent.announced.0;
        let held = newest.get(&agent.announcement.name);
        if held.is_none_or(|(at, _)| *at < announced) {
            let limits = agent.announcement.limits;
            newest.insert(agent.announcement.name, (announced, limits));
        }
    }
    if let Ok(mut limits) = context.limits.write() {
        *limits = newest
            .into_iter()
            .map(|(name, (_, limits))| (name, limits))
            .collect();
    }
    Ok(())
}

/// Announces afresh until the store has heard it; `false` when the worker stops first.
async fn announce_until_heard(context: &Context) -> bool {
    let mut told = false;
    loop {
        match announce(context, true).await {
            Ok(()) => return true,
            Err(fault) if !told => {
                tracing::warn!(%fault, "the store cannot be reached, trying on");
                told = true;
            }
            Err(_) => {}
        }
        tokio::select! {
            () = context.stop.cancelled() => return false,
            () = tokio::time::sleep(Duration::from_millis(500)) => {}
        }
    }
}

async fn announcing(context: &Context) {
    let mut tick = tokio::time::interval(ANNOUNCE_EVERY);
    tick.tick().await;
    loop {
        tick.tick().await;
        if let Err(fault) = announce(context, false).await {
            tracing::debug!(%fault, "not announced");
        }
    }
}
