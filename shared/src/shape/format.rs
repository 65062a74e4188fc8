//! The formats that are asserted (SPEC 3.5); every other `format` is a note.

use std::collections::HashMap;
use std::sync::LazyLock;

use jsonschema::{Draft, Validator};
use serde_json::{Value, json};

const ASSERTED: [&str; 9] = [
    "email",
    "uri",
    "date",
    "time",
    "date-time",
    "uuid",
    "ipv4",
    "ipv6",
    "hostname",
];

static ENGINES: LazyLock<HashMap<&'static str, Validator>> = LazyLock::new(|| {
    ASSERTED
        .into_iter()
        .filter_map(|name| {
            // By the newest draft whatever the shape's: older ones do not know all the names.
            let engine = jsonschema::options()
                .with_draft(Draft::Draft202012)
                .should_validate_formats(true)
                .build(&json!({ "format": name }))
                .ok()?;
            Some((name, engine))
        })
        .collect()
});

/// A format to assert.
#[derive(Debug, Clone, Copy)]
pub(super) struct Format(&'static Validator);

impl Format {
    /// The format of that name, if it is one of the asserted.
    pub(super) fn named(name: &str) -> Option<Self> {
        ENGINES.get(name).map(Format)
    }

    pub(super) fn holds(self, text: &Value) -> bool {
        self.0.is_valid(text)
    }
}
