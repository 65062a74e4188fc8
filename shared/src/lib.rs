//! Askwell's domain, ports and backends, in reading order:
//!
//! - [`code`]: the one table of codes.
//! - [`caller`]: who speaks, and what they may do to whose run.
//! - [`agent`]: what an agent is, and when it may not be one.
//! - [`url`]: addresses in the configuration.
//! - [`config`]: configuration and the agents file, checked at start.

pub mod agent;
pub mod caller;
pub mod code;
pub mod config;
pub mod url;
