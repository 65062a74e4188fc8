//! What a world is made of: its script, its people, its faults, and a mistake planted in it.

use std::time::Duration;

use askwell_shared::agent::{Limits, OnMessage};
use askwell_shared::id::RunId;
use uuid::Uuid;

/// The coarse time of every world. A lease holds for one tick, the grace of hints is one too.
pub(crate) const TICK: Duration = Duration::from_secs(2);

/// A world's rules.
#[derive(Clone)]
pub(crate) struct Rules {
    /// Runs that have been started when it begins.
    pub(crate) runs: u8,
    /// Whether these and all started later are in one thread.
    pub(crate) threaded: bool,
    /// What a start does while the head waits.
    pub(crate) on_message: OnMessage,
    /// What the model calls in a turn of a run; no call ends the run.
    pub(crate) script: fn(run: &RunId, turn: u32) -> &'static [Call],
    /// How many ticks an ask waits.
    pub(crate) ask_ticks: u32,
    /// What people do, each once, whenever they like.
    pub(crate) people: Vec<Want>,
    /// How many workers there are.
    pub(crate) workers: usize,
    /// How often what may happen does.
    pub(crate) budget: Budget,
    /// A mistake planted around the real functions.
    pub(crate) mistake: Option<Mistake>,
}

impl Rules {
    pub(crate) fn limits(&self) -> Limits {
        Limits {
            ask: TICK * self.ask_ticks,
            ..Limits::default()
        }
    }

    pub(crate) fn with(mut self, mistake: Mistake) -> Self {
        self.mistake = Some(mistake);
        self
    }
}

/// A call of the scripted model.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Call {
    /// Of the tool `question`.
    Question,
    /// Of `send`, which needs approval.
    Send,
    /// Of `look`, which is idempotent.
    Look,
    /// Of `pay`, which is not.
    Pay,
}

impl Call {
    pub(crate) fn tool(self) -> &'static str {
        match self {
            Call::Question => "question",
            Call::Send => "send",
            Call::Look => "look",
            Call::Pay => "pay",
        }
    }
}

/// Whether a tool may be made again without asking.
pub(crate) fn idempotent(tool: &str) -> bool {
    tool == "look"
}

/// What a person wants. The answer of a person is a text that only this one gives.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Want {
    /// To answer the ask at a step.
    Answer(u8, &'static str, u32),
    /// To approve a call or a redo.
    Approve(u8, &'static str, u32),
    /// To refuse an ask.
    Refuse(u8, &'static str, u32),
    /// To cancel a run.
    Cancel(u8),
    /// To go on with a failed run.
    Retry(u8),
    /// To start another run, in the thread if there is one.
    Start,
}

/// How often what may happen does.
#[derive(Debug, Clone, Copy, Default, Hash)]
pub(crate) struct Budget {
    /// The clock ticks though something else could be done.
    pub(crate) ticks: u8,
    /// A worker's or gateway's commit or claim is carried out, but the reply is lost.
    pub(crate) replies: u8,
    /// A worker drops all it has.
    pub(crate) crashes: u8,
    /// A hint is lost.
    pub(crate) hints: u8,
    /// A hint comes twice.
    pub(crate) doubles: u8,
    /// A gateway dies after its commit; the client sends its command again by the other.
    pub(crate) gateways: u8,
    /// A client sends again what was answered already.
    pub(crate) repeats: u8,
    /// A worker renews its lease.
    pub(crate) renewals: u8,
    /// The model gives no turn now.
    pub(crate) pauses: u8,
    /// The model gives no turn ever.
    pub(crate) failures: u8,
    /// A worker drains.
    pub(crate) drains: u8,
    /// The sweeper finds no live worker for a due run.
    pub(crate) stalls: u8,
}

/// A mistake that an exploration must find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mistake {
    /// An ask settled while its run is running makes the run `queued`.
    SettledWhileRunningQueues,
    /// Neither the store nor the worker that reads again looks at the token.
    NoTokenCheck,
    /// A run started in a thread is head at once.
    TwoHeads,
    /// Other writers overwrite the slot of a worker's newest op.
    SharedOpSlot,
    /// Nobody looks whether an ask still waits.
    NoOpenCheck,
    /// The sweeper does not hint again.
    NoHintAgain,
    /// Commands are not kept.
    CommandsIgnored,
    /// A lease that is over is renewed, though the sweeper may have read it.
    LateRenewal,
    /// Calls of an earlier hold are made again without asking.
    NoRedo,
}

/// The id of run `number`.
pub(crate) fn run_id(number: u8) -> RunId {
    RunId::new(1, Uuid::from_u128(number.into()))
}
