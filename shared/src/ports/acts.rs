//! What every process does with the three ports together: commit, then tell and hint.

use std::sync::Arc;
use std::time::Duration;

use super::{Clock, Commit, Committer, Committing, Fault, Hint, News, Ports, Settled};
use crate::id::Owner;
use crate::run::{Moved, Run};
use crate::time::Millis;

/// How long a caller's `ok` waits for the second copy of a settlement (DESIGN 5).
pub const SECOND_COPY_WAIT: Duration = Duration::from_secs(1);

impl Ports {
    /// Commits, and where that is done tells the screens and hints what has become due.
    ///
    /// The order is the promise: nobody is told of what is not durable.
    pub async fn commit(&self, commit: &Commit) -> Result<Committing, Fault> {
        let reply = self.store.commit(commit).await?;
        if let Committing::Done(committed) = &reply {
            let runs = commit.runs.iter();
            let told = runs.map(|moved| (&moved.run, moved.frames.as_slice()));
            let told: Vec<_> = told.collect();
            self.tell(&commit.owner, &told, committed.seq, &committed.online)
                .await;
            let settled = Settled::of(commit);
            if let Some((run, settled)) = settled.clone() {
                self.second_copy(run, settled).await;
            }
            for moved in &commit.runs {
                // The settlement's message is the hint of its run.
                if settled
                    .as_ref()
                    .is_none_or(|(run, _)| run.id != moved.run.id)
                {
                    self.hint(&moved.run, committed.now).await;
                }
            }
        }
        Ok(reply)
    }

    /// Commits a change of one run, with its thread where the run has ended: the thread's next
    /// run becomes head in the same commit.
    pub async fn commit_move(
        &self,
        by: Committer,
        clock: Clock,
        moved: Moved,
    ) -> Result<Committing, Fault> {
        let Some(name) = &moved.run.thread else {
            return self.commit(&Commit::of(by, clock, moved)).await;
        };
        if moved.run.status.is_live() {
            return self.commit(&Commit::of(by, clock, moved)).await;
        }
        let owner = moved.run.owner();
        let Some(thread) = self.store.thread(&owner, name).await?.value else {
            return Ok(Committing::Conflict);
        };
        let mut second = None;
        if thread.head() == Some(&moved.run.id)
            && let Some(next) = thread.second()
        {
            second = self.store.load(next, None).await?.value.run;
        }
        let now = moved.run.updated;
        match thread.end(moved, second.as_ref(), now) {
            Ok(moved) => self.commit(&Commit::of_thread(by, clock, moved)).await,
            Err(_) => Ok(Committing::Conflict),
        }
    }

    /// Hints a run that a worker could claim now.
    pub async fn hint(&self, run: &Run, now: Millis) {
        if run.claim(now) == crate::run::Claim::Free
            && let Err(fault) = self.hints.put(Hint::of(run)).await
        {
            // The store's `ready` index brings the run back; the backend has said that it is away.
            tracing::debug!(run = %run.id, %fault, "hint not taken");
            if let Err(fault) = self.store.unhinted(&run.id).await {
                tracing::debug!(run = %run.id, %fault, "the run waits for its next hint");
            }
        }
    }

    /// Puts a settlement where it stands a second time. `ok` follows after at most
    /// [`SECOND_COPY_WAIT`], with or without it: the store has it.
    async fn second_copy(&self, run: &Run, settled: Settled) {
        let hint = Hint {
            settlement: Some(Box::new(settled)),
            ..Hint::of(run)
        };
        match tokio::time::timeout(SECOND_COPY_WAIT, self.hints.put(hint)).await {
            Ok(Ok(())) => {}
            Ok(Err(fault)) => tracing::warn!(run = %run.id, %fault, "settlement not taken"),
            Err(_) => tracing::warn!(run = %run.id, "settlement not confirmed in time"),
        }
    }

    /// Tells an owner's screens of frames, by run, of which the last has `seq`.
    pub async fn tell(
        &self,
        owner: &Owner,
        told: &[(&Run, &[crate::wire::Frame])],
        seq: u64,
        online: &[String],
    ) {
        if let Some(news) = News::of(owner, told, seq) {
            self.feed.publish(Arc::new(news), online).await;
        }
    }
}

impl News {
    /// The news of frames, by run, of which the last has `seq`; `None` where there are none.
    fn of(owner: &Owner, told: &[(&Run, &[crate::wire::Frame])], seq: u64) -> Option<Self> {
        let frames: Vec<(&Run, &crate::wire::Frame)> = told
            .iter()
            .flat_map(|(run, frames)| frames.iter().map(move |frame| (*run, frame)))
            .collect();
        let (first, _) = frames.first()?;
        let mut keys: Vec<String> = Vec::new();
        for (run, frame) in &frames {
            let key = format!("{}.{}", frame.kind(), run.agent);
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        let from = (seq + 1).saturating_sub(frames.len() as u64);
        Some(News {
            owner: owner.clone(),
            run: first.id.clone(),
            agent: first.agent.clone(),
            keys,
            frames: frames
                .iter()
                .zip(from..)
                .map(|((_, frame), seq)| {
                    let text = crate::wire::with_seq(&frame.text(), seq);
                    (seq, Arc::from(text))
                })
                .collect(),
        })
    }
}
