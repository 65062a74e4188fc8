//! What advances Askwell's runs, in reading order:
//!
//! - [`model`]: the language models behind providers' dialects.

pub mod model;
