//! What is wrong with a configuration, in one line.

use std::fmt::{self, Write as _};

/// Why a binary does not start: it prints this line and exits 2 (SPEC 8). It never repeats a
/// value, which may be a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConfigFault {
    /// A variable or flag.
    Setting {
        /// Its names: `ASKWELL_LEASE (--lease)`.
        name: String,
        /// The rule that is not met, as the rest of a sentence.
        rule: String,
    },
    /// A place in a file.
    File {
        /// The file, as it was named.
        file: String,
        /// The line, from 1.
        line: usize,
        /// The path of keys to the place; empty where the file cannot be read as TOML.
        key: String,
        /// The rule that is not met, as the rest of a sentence.
        rule: String,
    },
}

impl fmt::Display for ConfigFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            ConfigFault::Setting { name, rule } => format!("{name}: {rule}"),
            ConfigFault::File {
                file,
                line,
                key,
                rule,
            } if key.is_empty() => format!("{file}:{line}: {rule}"),
            ConfigFault::File {
                file,
                line,
                key,
                rule,
            } => format!("{file}:{line}: {key}: {rule}"),
        };
        // Keys and names are the file's own words and may hold a line break.
        text.chars().try_for_each(|c| {
            if c.is_control() {
                write!(f, "{}", c.escape_default())
            } else {
                f.write_char(c)
            }
        })
    }
}

impl std::error::Error for ConfigFault {}
