//! The order of a starter's runs in one thread (SPEC 2): one at a time, oldest first.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::agent::OnMessage;
use crate::id::{Owner, RunId};
use crate::run::{Event, Late, Moved, Run, Start, Status};
use crate::time::Millis;

/// A thread of one owner. Its `rev` is a condition of every start, end and cancel in it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Thread {
    /// The record's version.
    pub v: u32,
    /// Raised by one with each change.
    pub rev: u64,
    /// Whose it is.
    pub owner: Owner,
    /// Its name, the owner's own.
    pub name: String,
    /// Its live runs; the first is the head.
    pub queue: VecDeque<RunId>,
    /// The number of the next run that ends.
    pub next: u64,
    /// When its last run ended, while none is live.
    pub idle_since: Option<Millis>,
}

/// A change of a thread and of runs in it: one commit.
#[derive(Debug, Clone, PartialEq)]
pub struct ThreadMoved {
    /// The thread after it, `rev` raised by one.
    pub thread: Thread,
    /// Runs that ended, with their numbers among the ended.
    pub ended: Vec<(RunId, u64)>,
    /// The runs that changed, in the order in which screens are told.
    pub runs: Vec<Moved>,
}

impl Thread {
    /// A thread that nobody has used yet.
    pub fn new(owner: Owner, name: String) -> Self {
        Thread {
            v: crate::run::RECORD_VERSION,
            rev: 0,
            owner,
            name,
            queue: VecDeque::new(),
            next: 0,
            idle_since: None,
        }
    }

    /// The run that goes on now.
    pub fn head(&self) -> Option<&RunId> {
        self.queue.front()
    }

    /// The run that becomes head when the present one ends.
    pub fn second(&self) -> Option<&RunId> {
        self.queue.get(1)
    }

    /// Starts a run in this thread. `head` and `second` are the runs of those names, loaded;
    /// `on_message` is that of the head's agent.
    pub fn start(
        &self,
        start: Start,
        on_message: OnMessage,
        head: Option<&Run>,
        second: Option<&Run>,
        now: Millis,
    ) -> Result<ThreadMoved, Late> {
        let mut thread = self.raised();
        let mut ended = Vec::new();
        let mut runs = Vec::new();
        if let Some(head) = head
            && head.status == Status::Waiting
            && on_message == OnMessage::Supersede
        {
            runs.push(head.apply(Event::Superseded, now)?);
            ended.push(thread.leave(&head.id));
            runs.extend(thread.promote(second, now)?);
        }
        let first = thread.queue.is_empty();
        thread.queue.push_back(start.id.clone());
        thread.idle_since = None;
        runs.push(Run::start(start, first, thread.next, now));
        Ok(ThreadMoved {
            thread,
            ended,
            runs,
        })
    }

    /// A run of this thread has ended: the next becomes head. `second` is the run that
    /// [`Thread::second`] names, loaded.
    pub fn end(
        &self,
        ended: Moved,
        second: Option<&Run>,
        now: Millis,
    ) -> Result<ThreadMoved, Late> {
        let mut thread = self.raised();
        let was_head = thread.head() == Some(&ended.run.id);
        let number = thread.leave(&ended.run.id);
        let mut runs = vec![ended];
        if was_head {
            runs.extend(thread.promote(second, now)?);
        }
        if thread.queue.is_empty() {
            thread.idle_since = Some(now);
        }
        Ok(ThreadMoved {
            thread,
            ended: vec![number],
            runs,
        })
    }

    /// A failed run of this thread is retried: it joins the end. `retry` gets whether it is
    /// head at once.
    pub fn rejoin(
        &self,
        run: &Run,
        retry: impl FnOnce(bool) -> Event,
        now: Millis,
    ) -> Result<ThreadMoved, Late> {
        let mut thread = self.raised();
        let moved = run.apply(retry(thread.queue.is_empty()), now)?;
        if moved.run.status.is_live() {
            thread.queue.push_back(run.id.clone());
            thread.idle_since = None;
        }
        Ok(ThreadMoved {
            thread,
            ended: Vec::new(),
            runs: vec![moved],
        })
    }

    fn raised(&self) -> Thread {
        let mut thread = self.clone();
        thread.rev += 1;
        thread
    }

    fn leave(&mut self, run: &RunId) -> (RunId, u64) {
        self.queue.retain(|live| live != run);
        let number = self.next;
        self.next += 1;
        (run.clone(), number)
    }

    fn promote(&mut self, second: Option<&Run>, now: Millis) -> Result<Option<Moved>, Late> {
        let Some(head) = self.head() else {
            return Ok(None);
        };
        match second {
            Some(run) if run.id == *head => {
                let earlier = self.next;
                run.apply(Event::Headed { earlier }, now).map(Some)
            }
            // The one who loaded the runs saw another thread than this: read again.
            _ => Err(Late::NotNow),
        }
    }
}
