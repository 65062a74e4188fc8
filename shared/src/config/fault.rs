//! What is wrong with a configuration, in one line.

use std::fmt;

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
        match self {
            ConfigFault::Setting { name, rule } => write!(f, "{name}: {rule}"),
            ConfigFault::File {
                file,
                line,
                key,
                rule,
            } => {
                write!(f, "{file}:{line}: ")?;
                if !key.is_empty() {
                    write!(f, "{key}: ")?;
                }
                f.write_str(rule)
            }
        }
    }
}

impl std::error::Error for ConfigFault {}
