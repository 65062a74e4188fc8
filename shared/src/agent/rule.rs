//! Rules that several parts of an agent share, and how a broken one is told.

use crate::url::Url;

/// A rule that is not met, and where: `place` is a path of keys as in the agents file, such as
/// `limits.ask`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    /// Where, below what is checked; empty for the whole of it.
    pub place: String,
    /// The rule, as the rest of a sentence: `must be greater than 0`.
    pub rule: String,
}

impl Broken {
    /// The rule `rule` is not met at `place`.
    pub fn at(place: impl Into<String>, rule: impl Into<String>) -> Self {
        Broken {
            place: place.into(),
            rule: rule.into(),
        }
    }

    /// The same, seen from above `place`.
    #[must_use]
    pub fn below(mut self, place: &str) -> Self {
        self.place = match self.place.as_str() {
            "" => place.to_owned(),
            inner => format!("{place}.{inner}"),
        };
        self
    }
}

/// Checks a name of an agent, a tool, a model or a server: `[A-Za-z0-9_-]{1,64}` (SPEC 2).
pub fn check_name(name: &str) -> Result<(), String> {
    let fits = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
    if (1..=64).contains(&name.len()) && name.bytes().all(fits) {
        Ok(())
    } else {
        Err("a name must be 1 to 64 of A-Z, a-z, 0-9, `_` and `-`".to_owned())
    }
}

/// An address without a password: secrets are named by environment variable (SPEC 7).
pub(super) fn check_plain_url(text: &str) -> Result<(), String> {
    let url = Url::parse(text, &["http", "https"])?;
    if url.has_user() {
        return Err("must hold no user or password".to_owned());
    }
    Ok(())
}

/// A secret that was written where its variable's name belongs is not repeated in the rule.
pub(super) fn check_env_name(name: &str) -> Result<(), String> {
    let fits = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    if name.is_empty() || name.as_bytes()[0].is_ascii_digit() || !name.bytes().all(fits) {
        return Err("must be the name of an environment variable".to_owned());
    }
    Ok(())
}

/// Durations are whole milliseconds on the wire and in the digest of a definition.
pub(super) mod milliseconds {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(in crate::agent) fn serialize<S: Serializer>(
        value: &Duration,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.serialize_u64(u64::try_from(value.as_millis()).unwrap_or(u64::MAX))
    }

    pub(in crate::agent) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Duration, D::Error> {
        u64::deserialize(from).map(Duration::from_millis)
    }
}
