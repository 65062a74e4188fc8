//! Askwell's domain, ports and backends, in reading order:
//!
//! - [`code`]: the one table of codes.
//! - [`json`]: JSON read strictly and compared by value.
//! - [`shape`]: the profile of shapes, checked within bounded work.

pub mod code;
pub mod json;
pub mod shape;
