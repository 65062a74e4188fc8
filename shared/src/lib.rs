//! Askwell's domain, ports and backends, in reading order:
//!
//! - [`code`]: the one table of codes.
//! - [`ask`]: the kinds of ask, their input and what answers it.

pub mod ask;
pub mod code;
