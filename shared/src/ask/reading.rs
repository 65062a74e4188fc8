//! What the question tools share when they read a model's input.
//!
//! Every error here is a text for the model: the place as a JSON pointer into its input, then the
//! rule, so that its next call can be right.

use crate::json;
use serde_json::{Map, Value};

/// The most bytes of JSON that a whole ask shows (ours): with its frame around it, it stays under
/// the 64 KiB of a frame.
pub(super) const MOST_BYTES: usize = 32 * 1024;

/// How deep a shown input may be nested (ours): frames and records around it come on top, and
/// whatever reads those stops at [`json::MAX_NESTING`].
pub(super) const MOST_NESTING: usize = 64;

/// The most questions of an ask, and the most choices of a question (SPEC 3.1; ours for 3.2).
pub(super) const MOST_ENTRIES: usize = 100;

/// Whether a reader would see nothing in `text`: white space, control characters and the
/// characters that Unicode draws with no ink.
pub(super) fn is_blank(text: &str) -> bool {
    text.chars().all(|c| {
        c.is_whitespace()
            || c.is_control()
            || matches!(
                c,
                '\u{ad}'
                    | '\u{34f}'
                    | '\u{61c}'
                    | '\u{115f}'
                    | '\u{1160}'
                    | '\u{17b4}'
                    | '\u{17b5}'
                    | '\u{180b}'..='\u{180f}'
                    | '\u{200b}'..='\u{200f}'
                    | '\u{202a}'..='\u{202e}'
                    | '\u{2060}'..='\u{206f}'
                    | '\u{2800}'
                    | '\u{3164}'
                    | '\u{fe00}'..='\u{fe0f}'
                    | '\u{feff}'
                    | '\u{ffa0}'
            )
    })
}

/// A fault at `pointer`, in words for the model. `rule` goes on from the place: "must be text."
pub(super) fn fault(pointer: &str, rule: impl std::fmt::Display) -> String {
    let place = if pointer.is_empty() {
        "the input"
    } else {
        pointer
    };
    format!("Nobody was asked: {place} {rule}")
}

/// `value`, or what it says where it is a text of JSON that is exactly what is wanted.
///
/// Models send lists and objects as text now and then. A text is decoded once, and only where the
/// tool's schema wants no text, so a text that a person is to read is never taken apart.
pub(super) fn wanted(value: &Value, is: fn(&Value) -> bool) -> Option<Value> {
    if is(value) {
        return Some(value.clone());
    }
    let decoded = json::parse(value.as_str()?.as_bytes()).ok()?;
    is(&decoded).then_some(decoded)
}

/// The object at `pointer`.
pub(super) fn object(value: &Value, pointer: &str) -> Result<Map<String, Value>, String> {
    match wanted(value, Value::is_object) {
        Some(Value::Object(object)) => Ok(object),
        _ => Err(fault(
            pointer,
            format!("must be an object, not {}.", kind(value)),
        )),
    }
}

/// The list at `pointer`, of 1 to [`MOST_ENTRIES`] `entries`.
pub(super) fn list(value: &Value, pointer: &str, entries: &str) -> Result<Vec<Value>, String> {
    let Some(Value::Array(list)) = wanted(value, Value::is_array) else {
        return Err(fault(
            pointer,
            format!("must be a list of {entries}, not {}.", kind(value)),
        ));
    };
    if list.is_empty() || list.len() > MOST_ENTRIES {
        return Err(fault(
            pointer,
            format!(
                "must hold 1 to {MOST_ENTRIES} {entries}, not {}.",
                list.len()
            ),
        ));
    }
    Ok(list)
}

/// A field that may be left out; models write `null` for that as well.
pub(super) fn field<'a>(object: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    object.get(name).filter(|value| !value.is_null())
}

/// A field that may be left out and is text; blank counts as left out.
pub(super) fn optional_text(
    object: &Map<String, Value>,
    pointer: &str,
    name: &str,
) -> Result<Option<String>, String> {
    match field(object, name) {
        None => Ok(None),
        Some(Value::String(text)) if is_blank(text) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(other) => Err(fault(
            &format!("{pointer}/{name}"),
            format!("must be text, not {}.", kind(other)),
        )),
    }
}

/// A field that must be text which is not blank.
pub(super) fn text(
    object: &Map<String, Value>,
    pointer: &str,
    name: &str,
) -> Result<String, String> {
    if let Some(text) = optional_text(object, pointer, name)? {
        return Ok(text);
    }
    let rule = match object.get(name) {
        Some(Value::String(_)) => "must not be blank.",
        _ => "is missing; it must be text.",
    };
    Err(fault(&format!("{pointer}/{name}"), rule))
}

/// Refuses an input that is too large to be shown, or nested too deeply to be read back from a
/// store or a frame, which decoding a field can make of one that was not.
pub(super) fn within_bounds(shown: &Value) -> Result<(), String> {
    let bytes = shown.to_string().len();
    if bytes > MOST_BYTES {
        return Err(fault(
            "",
            format!("is {bytes} bytes of JSON; at most {MOST_BYTES} can be shown. Ask for less."),
        ));
    }
    if json::measure(shown).nesting > MOST_NESTING {
        return Err(fault(
            "",
            format!("is nested too deeply; at most {MOST_NESTING} levels can be shown."),
        ));
    }
    Ok(())
}

/// The kind of a value, in words.
pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    /// Any JSON, with the words of the question tools in it more often than chance has them.
    pub(in crate::ask) fn anything() -> impl Strategy<Value = Value> {
        let words = prop_oneof![
            Just("low".to_owned()),
            Just("Low".to_owned()),
            Just("q1".to_owned()),
            Just("q2".to_owned()),
            Just(" ".to_owned()),
            Just("[\"low\",\"high\"]".to_owned()),
            Just("{\"label\":\"Low\",\"value\":\"low\"}".to_owned()),
            ".{0,6}",
        ];
        let keys = proptest::sample::select(vec![
            "question",
            "questions",
            "choices",
            "shape",
            "id",
            "label",
            "value",
            "description",
            "header",
            "multiple",
            "answers",
            "answer",
            "choice",
            "custom",
            "questionId",
            "type",
            "other",
        ]);
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            Just(json!("object")),
            words.prop_map(Value::from),
        ];
        leaf.prop_recursive(5, 64, 6, move |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                proptest::collection::vec((keys.clone(), inner), 0..6).prop_map(|fields| {
                    fields
                        .into_iter()
                        .map(|(key, value)| (key.to_owned(), value))
                        .collect::<Map<_, _>>()
                        .into()
                }),
            ]
        })
    }

    #[test]
    fn blank_is_what_a_reader_cannot_see() {
        for text in ["", " ", "\t\r\n", "\u{200b}", "\u{a0}\u{feff}", "\u{2003}"] {
            assert!(is_blank(text), "{text:?}");
        }
        for text in [".", " x ", "0", "\u{200b}a", "無"] {
            assert!(!is_blank(text), "{text:?}");
        }
    }

    #[test]
    fn text_is_decoded_once_and_only_into_what_is_wanted() {
        assert_eq!(wanted(&json!("[1]"), Value::is_array), Some(json!([1])));
        assert_eq!(wanted(&json!("{}"), Value::is_array), None);
        assert_eq!(wanted(&json!("\"[1]\""), Value::is_array), None);
        assert_eq!(wanted(&json!("S, M or L"), Value::is_array), None);
        assert_eq!(wanted(&json!("[1"), Value::is_array), None);
    }
}
