//! Askwell's domain, ports and backends, in reading order:
//!
//! - [`code`]: the one table of codes.

pub mod code;
