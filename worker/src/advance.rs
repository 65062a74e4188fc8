//! One run from its claim until nothing is left to do for a worker: decide, act, commit.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, RwLock};
use std::time::{Duration, Instant};

use futures_util::future::{BoxFuture, FutureExt as _};
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use tokio_util::sync::CancellationToken;

use askwell_shared::agent::Limits;
use askwell_shared::ask::{Ask, texts};
use askwell_shared::id::{new_ask_id, new_nonce};
use askwell_shared::ports::{Hint, Leased, Leasing, Ports, Taken};
use askwell_shared::run::{Call, CallState, Event, Late, Next, SavedTurn, Status};
use askwell_shared::time::Millis;
use askwell_shared::transcript::{Message, Transcript};

use crate::agents::{Agents, Loaded};
use crate::deltas::{Deltas, Streaming};
use crate::driver::{NoTurn, Turn, TurnCall, TurnView};
use crate::hold::{Hold, NotCommitted};
use crate::plan::plan;
use crate::restore::restore;
use crate::tools::CallContext;

/// Tries of one model call before the run fails (SPEC 4).
const MODEL_TRIES: u32 = 5;

/// A wait above this gives the worker back.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Calls of one turn that run side by side.
const SIDE_BY_SIDE: usize = 8;

/// What advancing a run needs to know of its worker.
pub struct Context {
    /// The ports.
    pub ports: Ports,
    /// The agents this worker has.
    pub agents: Agents,
    /// For how long a run is claimed.
    pub lease: Duration,
    /// Limits as the revision announced last has them (SPEC 2), by agent.
    pub limits: RwLock<BTreeMap<String, Limits>>,
    /// Cancelled when the worker drains.
    pub stop: CancellationToken,
}

impl Context {
    /// The agent of a hint, if this worker may go on with its runs.
    pub fn agent_for(&self, hint: &Hint) -> Option<&Arc<Loaded>> {
        let agent = self.agents.get(&hint.agent)?;
        let fits = hint
            .revision
            .as_ref()
            .is_none_or(|revision| *revision == agent.revision);
        fits.then_some(agent)
    }

    fn limits(&self, agent: &Loaded) -> Limits {
        let newest = self.limits.read().ok();
        newest
            .and_then(|newest| newest.get(&agent.agent.name).cloned())
            .unwrap_or_else(|| agent.agent.limits.clone())
    }
}

/// Claims the run of a hint and advances it as far as a worker can.
pub async fn advance(context: &Context, taken: Taken) {
    let Some(agent) = context.agent_for(&taken.hint) else {
        context.ports.hints.later(taken).await;
        return;
    };
    let Taken { hint, ack } = taken;
    let hint = &hint;
    let asked = Instant::now();
    let claimed = claim(context, hint).await;
    if let Some(settled) = &hint.settlement {
        let waits = |leased: &Leased| leased.run.ask(&settled.ask).is_some_and(Ask::is_open);
        let unseen = claimed.as_ref().is_none_or(|(_, leased)| waits(leased));
        if unseen && let Err(fault) = restore(&context.ports, &hint.run, settled).await {
            // Not acknowledged: the message comes again.
            tracing::warn!(run = %hint.run, %fault, "a settlement could not be compared");
            return;
        }
    }
    // From here on the lease, or the `ready` index, stands for the run: the hint is used up.
    ack.done();
    let Some((now, leased)) = claimed else {
        return;
    };
    let owner = leased.run.owner();
    let told = [(&leased.run, leased.frames.as_slice())];
    context
        .ports
        .tell(&owner, &told, leased.seq, &leased.online)
        .await;
    tracing::debug!(run = %hint.run, "claimed");
    let hold = Hold::new(context.ports.clone(), leased, now, asked, context.lease);
    let mut step = Step {
        context,
        agent,
        lost: hold.lost(),
        hold,
        intents: BTreeSet::new(),
    };
    step.go_on().await;
    tracing::debug!(run = %hint.run, status = step.hold.run.status.name(), "given back");
}

/// Asks for the lease, with the same nonce while the answer is not known.
async fn claim(context: &Context, hint: &Hint) -> Option<(Millis, Leased)> {
    let nonce = new_nonce();
    let until = Instant::now() + context.lease;
    loop {
        let reply = context
            .ports
            .store
            .lease(&hint.run, &nonce, context.lease)
            .await;
        match reply {
            Ok(at) => {
                return match at.value {
                    Leasing::Leased(leased) => Some((at.now, *leased)),
                    Leasing::Held | Leasing::NotClaimable | Leasing::NotYet(_) => None,
                };
            }
            Err(fault) if Instant::now() < until => {
                tracing::debug!(run = %hint.run, %fault, "claim not answered, again");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            Err(fault) => {
                tracing::warn!(run = %hint.run, %fault, "claim given up");
                return None;
            }
        }
    }
}

type Ended = (usize, Result<String, String>);

/// A held run on its way.
struct Step<'a> {
    context: &'a Context,
    agent: &'a Arc<Loaded>,
    hold: Hold,
    lost: CancellationToken,
    /// Calls whose intent this very hold has journalled: their outcome is known here.
    intents: BTreeSet<usize>,
}

impl Step<'_> {
    async fn go_on(&mut self) {
        loop {
            let done = match self.hold.run.next() {
                Next::Model => self.turn().await,
                Next::Plan => self.decide_saved().await,
                Next::Calls => self.calls().await,
                Next::Nothing if self.hold.run.status == Status::Running => {
                    self.hold.commit(Event::Released).await
                }
                Next::Nothing => return,
            };
            match done {
                // `NotNow`: what others did meanwhile is on the run by now; look again.
                Ok(()) | Err(NotCommitted::Late(Late::NotNow)) => {}
                Err(NotCommitted::Lost | NotCommitted::Late(_)) => return,
            }
            if self.context.stop.is_cancelled() && self.hold.run.status == Status::Running {
                let _ = self.hold.commit(Event::Released).await;
                return;
            }
        }
    }

    /// Makes the next turn and saves it with what is to happen to its calls.
    async fn turn(&mut self) -> Result<(), NotCommitted> {
        let earlier = self.earlier().await?;
        let mut tries = self.hold.run.tries;
        loop {
            let made = tokio::select! {
                biased;
                () = self.lost.cancelled() => return Err(NotCommitted::Lost),
                () = self.context.stop.cancelled() => {
                    return self.hold.commit(Event::Released).await;
                }
                made = self.one_try(&earlier, tries) => made,
            };
            let (reason, after) = match made {
                Ok(turn) => return self.save(turn).await,
                Err(NoTurn::Never { reason }) => {
                    return self.hold.commit(Event::Failed { reason }).await;
                }
                Err(NoTurn::Again { reason, after }) => (reason, after),
            };
            tries += 1;
            tracing::info!(run = %self.hold.run.id, tries, reason, "the model gave no turn");
            if tries >= MODEL_TRIES {
                return self.hold.commit(Event::Failed { reason }).await;
            }
            let pause = Duration::from_millis(500 << (tries - 1).min(3));
            let pause = after.map_or(pause, |after| after.max(Duration::from_millis(1)));
            if pause > LONGEST_PAUSE {
                let until = self.hold.now().after(pause);
                return self.hold.commit(Event::Postponed { until, tries }).await;
            }
            tokio::select! {
                () = self.lost.cancelled() => return Err(NotCommitted::Lost),
                () = self.context.stop.cancelled() => {
                    return self.hold.commit(Event::Released).await;
                }
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    async fn one_try(&self, earlier: &[Transcript], tries: u32) -> Result<Turn, NoTurn> {
        let (owner, online) = self.hold.audience();
        let to = Streaming {
            owner,
            online,
            run: self.hold.run.id.clone(),
            turn: self.hold.run.turn + 1,
            // Larger with each lease and each try within one, whatever worker has it.
            attempt: self.hold.fence() * u64::from(MODEL_TRIES) + u64::from(tries),
        };
        let deltas = Deltas::start(self.context.ports.feed.clone(), to);
        let view = TurnView {
            agent: self.agent,
            run: &self.hold.run,
            transcript: &self.hold.transcript,
            earlier,
        };
        let made = self
            .agent
            .driver
            .turn(&view, &mut |piece| deltas.push(piece))
            .await;
        deltas.finish().await;
        made
    }

    /// The thread's earlier conversations. Without the store there is no turn.
    async fn earlier(&self) -> Result<Vec<Transcript>, NotCommitted> {
        let run = &self.hold.run;
        let (Some(thread), Some(before)) = (&run.thread, run.earlier) else {
            return Ok(Vec::new());
        };
        loop {
            let read = self
                .context
                .ports
                .store
                .earlier(&run.owner(), thread, before)
                .await;
            if let Ok(earlier) = read {
                return Ok(earlier);
            }
            tokio::select! {
                () = self.lost.cancelled() => return Err(NotCommitted::Lost),
                () = tokio::time::sleep(Duration::from_millis(200)) => {}
            }
        }
    }

    async fn save(&mut self, turn: Turn) -> Result<(), NotCommitted> {
        let mut calls = Vec::with_capacity(turn.calls.len());
        for call in turn.calls {
            calls.push(plan(self.agent, call).await);
        }
        let event = Event::TurnSaved(SavedTurn {
            text: turn.text,
            calls,
            raw: turn.raw,
            usage: turn.usage,
            limits: self.context.limits(self.agent),
        });
        self.hold.commit(event).await?;
        self.intents = self.started().collect();
        Ok(())
    }

    /// Decides the calls of a turn that was saved at a limit.
    async fn decide_saved(&mut self) -> Result<(), NotCommitted> {
        let calls = match self.hold.transcript.messages.last() {
            Some(Message::Assistant { calls, .. }) => calls.clone(),
            _ => Vec::new(),
        };
        let mut plans = Vec::with_capacity(calls.len());
        for call in calls {
            let call = TurnCall {
                call: call.call,
                tool: call.tool,
                input: Ok(call.input),
            };
            plans.push(plan(self.agent, call).await.plan);
        }
        let limits = self.context.limits(self.agent);
        self.hold.commit(Event::Planned { plans, limits }).await?;
        self.intents = self.started().collect();
        Ok(())
    }

    fn started(&self) -> impl Iterator<Item = usize> {
        let calls = self.hold.run.calls.iter().enumerate();
        calls.filter_map(|(number, call)| {
            matches!(call.state, CallState::Started { .. }).then_some(number)
        })
    }

    /// Makes the calls that need nobody, side by side, until each has its result.
    async fn calls(&mut self) -> Result<(), NotCommitted> {
        let mut running: FuturesUnordered<BoxFuture<'static, Ended>> = FuturesUnordered::new();
        let mut spawned: BTreeSet<usize> = BTreeSet::new();
        loop {
            if self.hold.run.status != Status::Running {
                return Ok(());
            }
            if !self.context.stop.is_cancelled() {
                self.clear_up(&spawned).await?;
            }
            let waiting: Vec<usize> = self
                .started()
                .filter(|number| self.intents.contains(number) && !spawned.contains(number))
                .take(SIDE_BY_SIDE.saturating_sub(running.len()))
                .collect();
            for number in waiting {
                spawned.insert(number);
                running.push(self.call(number));
            }
            let ended = tokio::select! {
                biased;
                () = self.lost.cancelled() => return Err(NotCommitted::Lost),
                ended = running.next() => ended,
            };
            let Some((call, result)) = ended else {
                return Ok(());
            };
            let failed = result.is_err();
            let text = result.unwrap_or_else(|text| text);
            self.hold
                .commit(Event::CallEnded { call, text, failed })
                .await?;
        }
    }

    /// Journals intents for calls that may be made, and settles what to do about calls of an
    /// earlier hold whose outcome is not known (SPEC 5).
    async fn clear_up(&mut self, spawned: &BTreeSet<usize>) -> Result<(), NotCommitted> {
        let mut start = Vec::new();
        let mut redo = Vec::new();
        let mut gone = Vec::new();
        for (number, call) in self.hold.run.calls.iter().enumerate() {
            let unknown = match call.state {
                CallState::Ready => false,
                CallState::Started { .. } => {
                    if self.intents.contains(&number) || spawned.contains(&number) {
                        continue;
                    }
                    true
                }
                _ => continue,
            };
            match self.agent.tools.get(&call.tool) {
                None => gone.push((number, texts::tool_gone(&call.tool))),
                Some(tool) if unknown && !tool.spec().idempotent => {
                    redo.push((number, new_ask_id()));
                }
                Some(_) => start.push(number),
            }
        }
        for (call, text) in gone {
            let failed = true;
            self.hold
                .commit(Event::CallEnded { call, text, failed })
                .await?;
        }
        if !redo.is_empty() {
            let wait = self.context.limits(self.agent).ask;
            self.hold
                .commit(Event::RedoAsked { calls: redo, wait })
                .await?;
        }
        if !start.is_empty() {
            self.hold.commit(Event::CallsStarted(start.clone())).await?;
            self.intents.extend(start);
        }
        Ok(())
    }

    fn call(&self, number: usize) -> BoxFuture<'static, Ended> {
        let Call {
            tool,
            step,
            input,
            attempts,
            ..
        } = self.hold.run.calls[number].clone();
        let context = CallContext {
            key: format!("{}/{step}", self.hold.run.id),
            attempt: attempts,
        };
        let Some(tool_at_hand) = self.agent.tools.get(&tool).cloned() else {
            return async move { (number, Err(texts::tool_gone(&tool))) }.boxed();
        };
        async move { (number, tool_at_hand.call(&input, &context).await) }.boxed()
    }
}
