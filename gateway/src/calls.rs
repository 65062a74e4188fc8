//! The domain calls, the same for HTTP and sockets: start, approve, refuse, cancel, retry, reads.
//!
//! Each follows the order of SPEC 3.6: who, known command, which ask, still waits, fit. Nothing
//! is said to be done before it is durable.

mod agents;
mod change;
mod command;
mod patience;
mod read;
mod settle;
mod start;

use std::sync::Arc;

use askwell_shared::caller::Caller;
use askwell_shared::code::Code;
use askwell_shared::id::RunId;
use askwell_shared::ports::{CommandKey, CommandRecord, CommandWrite, Ports};
use serde_json::{Map, Value};

use crate::refusal::Refusal;

use agents::Agents;
pub use command::{Answer, Command, Start};
pub use read::{AskFilter, RunFilter};

/// Everything that a caller can have done, over the ports.
pub struct Calls {
    ports: Ports,
    agents: Agents,
}

/// Who speaks, and from which device.
#[derive(Debug, Clone)]
pub struct Speaker {
    /// The caller of the token.
    pub caller: Arc<Caller>,
    /// The device as the client named it.
    pub device: Option<String>,
}

/// What a command did.
#[derive(Debug, Clone, PartialEq)]
pub struct Done {
    /// The reply's own fields.
    pub reply: Map<String, Value>,
    /// The last `seq` of its commit.
    pub seq: u64,
}

impl Done {
    /// The whole reply, as HTTP shows it.
    pub fn into_value(self) -> Value {
        let mut reply = self.reply;
        reply.insert("seq".into(), self.seq.into());
        Value::Object(reply)
    }
}

impl Calls {
    /// The calls over these ports.
    pub fn new(ports: Ports) -> Self {
        let agents = Agents::new(ports.store.clone());
        Calls { ports, agents }
    }

    /// Whether the store answers now.
    pub async fn ready(&self) -> bool {
        self.agents.refresh().await.is_ok()
    }

    /// Carries out a command, or gives the recorded reply of one that was carried out before.
    pub async fn command(
        &self,
        speaker: &Speaker,
        cmd: &str,
        command: Command,
    ) -> Result<Done, Refusal> {
        let digest = command.digest();
        let caller = &*speaker.caller;
        let write = |run: Option<&RunId>| Write {
            key: CommandKey {
                caller: caller.as_starter(),
                run: run.cloned(),
                cmd: cmd.to_owned(),
            },
            digest,
        };
        let target = |run: &str| RunId::parse(run).ok_or_else(Refusal::not_found);
        match command {
            Command::Start(start) => self.start(caller, &write(None), start).await,
            Command::Approve { run, at, n, data } => {
                let run = target(&run)?;
                let verdict = settle::Verdict::Answer { n, data };
                self.settle(speaker, &run, &write(Some(&run)), &at, &verdict)
                    .await
            }
            Command::Refuse { run, at, reason } => {
                let run = target(&run)?;
                let verdict = settle::Verdict::Refusal { reason };
                self.settle(speaker, &run, &write(Some(&run)), &at, &verdict)
                    .await
            }
            Command::Cancel { run } => {
                let run = target(&run)?;
                let write = write(Some(&run));
                self.change(caller, &run, &write, change::Change::Cancel)
                    .await
            }
            Command::Retry { run } => {
                let run = target(&run)?;
                let write = write(Some(&run));
                self.change(caller, &run, &write, change::Change::Retry)
                    .await
            }
        }
    }
}

/// What a command is kept under.
struct Write {
    key: CommandKey,
    digest: String,
}

impl Write {
    fn with(&self, reply: &Map<String, Value>) -> CommandWrite {
        CommandWrite {
            key: self.key.clone(),
            digest: self.digest.clone(),
            reply: Value::Object(reply.clone()),
        }
    }

    /// The reply of a command that was carried out before.
    fn known(&self, record: CommandRecord) -> Result<Done, Refusal> {
        if record.digest != self.digest {
            return Err(Refusal::other_body());
        }
        match record.reply {
            Value::Object(reply) => Ok(Done {
                reply,
                seq: record.seq,
            }),
            // Only a record of another program's making has no object.
            _ => Err(Refusal::of(Code::T0004)),
        }
    }
}
