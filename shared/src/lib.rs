//! Askwell's domain, ports and backends, in reading order:
//!
//! - [`code`]: the one table of codes.
//! - [`caller`]: who speaks, and what they may do to whose run.
//! - [`json`]: JSON read strictly and compared by value.
//! - [`shape`]: the profile of shapes, checked within bounded work.
//! - [`ask`]: the kinds of ask, their input and what answers it.
//! - [`agent`]: what an agent is, and when it may not be one.
//! - [`url`]: addresses in the configuration.
//! - [`config`]: configuration and the agents file, checked at start.

pub mod agent;
pub mod ask;
pub mod caller;
pub mod code;
pub mod config;
pub mod json;
pub mod url;
