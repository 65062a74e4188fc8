//! Approve and refuse (SPEC 3.6).

use askwell_shared::ask::{Ask, By, Fitted, Kind, Outcome};
use askwell_shared::caller::may_settle;
use askwell_shared::code::Misfit;
use askwell_shared::id::RunId;
use askwell_shared::ports::{Clock, Commit, Committer, Committing};
use askwell_shared::run::{Event, Late, Run};
use askwell_shared::time::Millis;
use serde_json::{Map, Value};

use super::command::Answer;
use super::patience::Patience;
use super::{Calls, Done, Speaker, Write};
use crate::refusal::Refusal;

/// What the caller says to an ask.
pub(super) enum Verdict {
    /// An answer, whole or to question `n`.
    Answer {
        /// Which question, from 1.
        n: Option<u32>,
        /// The answer.
        data: Option<Value>,
    },
    /// A refusal.
    Refusal {
        /// For the record.
        reason: Option<String>,
    },
}

impl Calls {
    pub(super) async fn settle(
        &self,
        speaker: &Speaker,
        run: &RunId,
        write: &Write,
        at: &Answer,
        verdict: &Verdict,
    ) -> Result<Done, Refusal> {
        let mut patience = Patience::new();
        let store = &self.ports.store;
        loop {
            let reading = || store.load(run, Some(&write.key));
            let loaded = patience.read(reading).await?;
            let now = loaded.now;
            let found = loaded.value;

            let starter = found.run.as_ref().map(|run| &run.starter);
            may_settle(&speaker.caller, starter).map_err(Refusal::of)?;
            if let Some(record) = found.command {
                return write.known(record);
            }
            let run = found.run.ok_or_else(Refusal::not_found)?;
            let ask = match run.find_ask(&at.step, at.repeat, now) {
                Ok(ask) => ask,
                Err(Late::Past(ask)) => {
                    self.expire(&run, &ask, now, &mut patience).await?;
                    continue;
                }
                Err(late) => return Err(refused(&late)),
            };

            let (event, reply) = self.decide(speaker, write, ask, verdict).await?;
            let moved = match run.apply(event, now) {
                Ok(moved) => moved,
                Err(Late::NotNow | Late::Past(_)) => {
                    patience.again().await?;
                    continue;
                }
                Err(late) => return Err(refused(&late)),
            };
            let by = Committer::Caller(write.with(&reply));
            let commit = Commit::of(by, Clock::Before(ask.deadline), moved);
            match patience.commit(&self.ports, &commit).await? {
                Committing::Done(committed) => {
                    let seq = committed.seq;
                    return Ok(Done { reply, seq });
                }
                Committing::Known(record) => return write.known(record),
                // Untimely: the next reading finds the deadline passed.
                Committing::Conflict | Committing::Lost | Committing::Untimely(_) => {
                    patience.again().await?;
                }
            }
        }
    }

    async fn decide(
        &self,
        speaker: &Speaker,
        write: &Write,
        ask: &Ask,
        verdict: &Verdict,
    ) -> Result<(Event, Map<String, Value>), Refusal> {
        let mut reply = Map::new();
        reply.insert("run".into(), ask.run.as_str().into());
        reply.insert("step".into(), ask.step.as_str().into());
        reply.insert("repeat".into(), ask.repeat.into());
        let settled = |outcome, data, reason| Event::Settled {
            ask: ask.id.clone(),
            outcome,
            data,
            reason,
            by: By {
                sub: speaker.caller.sub.clone(),
                device: speaker.device.clone(),
            },
            cmd: Some(write.key.cmd.clone()),
        };
        let event = match verdict {
            Verdict::Refusal { reason } => {
                reply.insert("outcome".into(), "refused".into());
                settled(Outcome::Refused, None, reason.clone())
            }
            Verdict::Answer { n, data } => {
                match fit(ask, *n, data.clone()).await.map_err(Refusal::misfit)? {
                    Fitted::Settles(data) => {
                        reply.insert("outcome".into(), "answered".into());
                        settled(Outcome::Answered, data, None)
                    }
                    Fitted::Draft {
                        n,
                        question,
                        answer,
                    } => Event::Drafted {
                        ask: ask.id.clone(),
                        n,
                        question,
                        answer,
                    },
                }
            }
        };
        Ok((event, reply))
    }

    /// Settles an ask whose deadline has passed and that nobody has swept yet. Whatever comes of
    /// it, the caller reads again: another may have been faster.
    async fn expire(
        &self,
        run: &Run,
        ask: &str,
        now: Millis,
        patience: &mut Patience,
    ) -> Result<(), Refusal> {
        let expired = Event::Expired {
            ask: ask.to_owned(),
        };
        let deadline = run.ask(ask).map_or(now, |ask| ask.deadline);
        if let Ok(moved) = run.apply(expired, now) {
            let commit = Commit::of(Committer::Sweeper, Clock::From(deadline), moved);
            if let Committing::Done(_) = patience.commit(&self.ports, &commit).await? {
                return Ok(());
            }
        }
        patience.again().await
    }
}

/// The check of an answer; away from the threads that serve sockets where a shape makes it long.
async fn fit(ask: &Ask, n: Option<u32>, data: Option<Value>) -> Result<Fitted, Vec<Misfit>> {
    let by_schema =
        ask.editable.is_some() || (ask.kind == Kind::Question && ask.input.get("shape").is_some());
    if !by_schema {
        return ask.fit(n, data.as_ref());
    }
    let ask = ask.clone();
    let checked = tokio::task::spawn_blocking(move || ask.fit(n, data.as_ref())).await;
    checked.unwrap_or_else(|panicked| {
        tracing::error!(%panicked, "the check of an answer broke off");
        Err(vec![Misfit::at("", "size")])
    })
}

fn refused(late: &Late) -> Refusal {
    match late {
        Late::Settled(settlement) => Refusal::settled(settlement),
        _ => Refusal::not_found(),
    }
}
