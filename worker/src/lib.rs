//! Worker.

pub mod model;
