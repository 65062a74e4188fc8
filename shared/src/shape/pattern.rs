//! Patterns: written in the dialect of JavaScript, matched in linear time.

use jsonschema::{Draft, PatternOptions, Validator};
use serde_json::{Value, json};

/// The most characters of a pattern (SPEC 3.5).
pub(super) const MAX_CHARACTERS: usize = 256;

/// Compiled sizes, in KiB, that are tried in turn; the one that suffices tells how much work the
/// engine may have with each byte of a text.
const SIZES: [usize; 5] = [4, 16, 64, 256, 1024];

/// A pattern that a text is searched for.
#[derive(Debug)]
pub(super) struct Pattern {
    engine: Validator,
    kib: usize,
}

impl Pattern {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// The reason, for the model that wrote it.
    pub(super) fn new(source: &str) -> Result<Self, String> {
        let characters = source.chars().count();
        if characters > MAX_CHARACTERS {
            return Err(format!(
                "the pattern has {characters} characters, and at most {MAX_CHARACTERS} are allowed"
            ));
        }
        let schema = json!({ "pattern": source });
        for kib in SIZES {
            let limits = PatternOptions::regex()
                .size_limit(kib * 1024)
                .dfa_size_limit(1024 * 1024);
            let engine = jsonschema::options()
                .with_draft(Draft::Draft202012)
                .with_pattern_options(limits)
                .build(&schema);
            if let Ok(engine) = engine {
                return Ok(Pattern { engine, kib });
            }
        }
        Err(reason(source).to_owned())
    }

    /// Whether the text holds the pattern somewhere.
    pub(super) fn matches(&self, text: &Value) -> bool {
        self.engine.is_valid(text)
    }

    /// The work of a search, in visits. In the worst case the engine keeps all its states (about
    /// 40 in a KiB) for each byte; some 250 such steps count as one visit.
    pub(super) fn cost(&self, text: &str) -> u64 {
        1 + (text.len() * self.kib / 6) as u64
    }
}

fn reason(source: &str) -> &'static str {
    if ["(?=", "(?!", "(?<=", "(?<!"]
        .iter()
        .any(|mark| source.contains(mark))
    {
        "look-ahead and look-behind are not available; say it without them, or with several \
         patterns under `allOf`"
    } else if has_back_reference(source) {
        "back-references are not available"
    } else {
        "the pattern is no regular expression, or its counted repeats make it too large"
    }
}

fn has_back_reference(source: &str) -> bool {
    let mut escaped = false;
    source.chars().any(|c| {
        let found = escaped && (c.is_ascii_digit() && c != '0' || c == 'k');
        escaped = c == '\\' && !escaped;
        found
    })
}
