//! Askwell's domain, ports and backends, in reading order:
//!
//! - [`code`]: the one table of codes. [`caller`]: who speaks, and who may do what.
//! - [`agent`]: what an agent is. [`config`]: settings and the file of agents.
//! - [`json`], [`time`], [`id`]: values, points in time, ids and owners.
//! - [`ask`]: a wait for a person: kinds, inputs, answers. [`shape`]: what an answer may be asked
//!   to be.
//! - [`run`], [`thread`], [`transcript`]: the state machine. It does no I/O and reads no clock.
//! - [`wire`]: frames and records as they are sent.
//! - [`program`]: what both programs do alike.
//! - [`ports`]: what the store, the hints and the feed promise. [`sweep`]: what is due.
//! - [`backends`]: who keeps those promises, and the one place that picks.

pub mod agent;
pub mod ask;
pub mod backends;
pub mod caller;
pub mod code;
pub mod config;
pub mod id;
pub mod json;
pub mod ports;
pub mod program;
pub mod run;
pub mod shape;
pub mod sweep;
pub mod thread;
pub mod time;
pub mod transcript;
pub mod url;
pub mod wire;
