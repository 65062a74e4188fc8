//! What changes runs: claims, renewals and commits.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::commit::{self, millis};
use super::keys::Partition;
use super::record::{self, Parts};
use super::{Broken, Redis, script};
use crate::id::RunId;
use crate::ports::{At, Commit, Committer, Committing, FRAMES_KEPT, Leased, Leasing};
use crate::run::{Run, Token};
use crate::wire::Frame;

impl Redis {
    pub(super) async fn claim(
        &self,
        run: &RunId,
        nonce: &str,
        ttl: Duration,
    ) -> Result<At<Leasing>, Broken> {
        let partition = Partition::of_run(run);
        let mut call = self.script(&script::LEASE, &partition);
        for kind in ["run", "header", "asks", "msgs", "steps"] {
            call.key(partition.run(kind, run));
        }
        call.key(partition.index("ready"));
        call.key(partition.index("leases"));
        call.arg(run).arg(nonce).arg(millis(ttl)).arg(FRAMES_KEPT);
        let mut parts = self.ask(&call).await?;
        let now = parts.now()?;
        let value = match parts.text()?.as_str() {
            "leased" => {
                let claim = parts.text()?;
                Leasing::Leased(Box::new(leased(run, &claim, &mut parts)?))
            }
            "held" => Leasing::Held,
            "none" => Leasing::NotClaimable,
            "early" => Leasing::NotYet(parts.now()?),
            "newer" => return Err(commit::newer(&mut parts)?),
            other => return Err(Broken::Damaged(format!("the script says {other}"))),
        };
        Ok(At { now, value })
    }

    pub(super) async fn prolong(
        &self,
        run: &RunId,
        token: &Token,
        ttl: Duration,
    ) -> Result<At<Option<Vec<String>>>, Broken> {
        let partition = Partition::of_run(run);
        let mut call = self
            .script(&script::RENEW, &partition)
            .with(partition.run("run", run))
            .with(partition.index("leases"));
        call.arg(run)
            .arg(record::token_text(token))
            .arg(millis(ttl));
        let mut parts = self.ask(&call).await?;
        let now = parts.now()?;
        let value = match parts.text()?.as_str() {
            "held" => Some(parts.texts()?),
            "newer" => return Err(commit::newer(&mut parts)?),
            _ => None,
        };
        Ok(At { now, value })
    }

    pub(super) async fn write(&self, commit: &Commit) -> Result<Committing, Broken> {
        let call = commit::call(commit, self.ahead.load(Ordering::Relaxed))?;
        let by_caller = matches!(commit.by, Committer::Caller(_));
        let value = if by_caller && self.lines.replicated() {
            self.lines.call_and_wait(&call).await?
        } else {
            self.lines.call(&call).await?.value
        };
        commit::reply(value)
    }
}

/// The claim that the script made, or made before for the same nonce.
fn leased(id: &RunId, claim: &str, parts: &mut Parts) -> Result<Leased, Broken> {
    let damaged = || Broken::Damaged(format!("the claim of {id} cannot be read"));
    let (rev, seq) = claim.split_once(' ').ok_or_else(damaged)?;
    let mut run = record::run(parts.value(), || format!("run {id}"))?.ok_or_else(damaged)?;
    run.asks = record::asks(parts.list()?)?;
    // A run keeps its agent, thread and status while it is held: the claim's frame follows.
    let at_claim = Run {
        rev: rev.parse().map_err(|_| damaged())?,
        ..run.clone()
    };
    Ok(Leased {
        transcript: record::transcript(parts.list()?, parts.list()?)?,
        run,
        seq: seq.parse().map_err(|_| damaged())?,
        frames: vec![Frame::status(&at_claim)],
        online: parts.texts()?,
    })
}
