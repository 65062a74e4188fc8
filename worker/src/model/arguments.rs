//! From the text that a model wrote as a call's arguments to the input of a tool.
//!
//! Nothing is mended: half of a list of choices looks exactly like a list that the model meant. What
//! is undone is only what loses nothing, repeats and double encoding.

use askwell_shared::json;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// How deep local references in a tool's schema are followed.
const REFERENCE_HOPS: usize = 8;

/// Told to the model when the provider says that it stopped at its limit.
const CUT_OFF: &str = "The arguments of this call were cut off before they ended, so the call was \
    not made. Make it again with all of its arguments, shorter if need be.";

/// One input read from the pieces of a call.
#[derive(Debug, PartialEq)]
pub(crate) struct Read {
    /// What stands for it in the history that goes back: readable JSON in any case, since a provider
    /// refuses every later request over a single unreadable call.
    pub(crate) history: String,
    /// An object, or what the model is told.
    pub(crate) input: Result<Value, String>,
}

/// Reads `raw` as the input of a tool whose parameters are `schema`: an object, its JSON, or that
/// encoded once more; nothing, `null` and blank text are `{}`. A text is decoded where the schema
/// wants a list or an object and no text, if it is the JSON of exactly that, and only once.
///
/// The error is what the model is told.
pub fn decode_input(schema: &Value, raw: &Value) -> Result<Value, String> {
    object_in(raw).map(|input| decode_fields(schema, schema, input))
}

/// Whether `pieces` already make up one JSON object.
pub(crate) fn is_whole(pieces: &[String]) -> bool {
    let text = pieces.concat();
    text.trim_start().starts_with('{') && serde_json::from_str::<IgnoredAny>(&text).is_ok()
}

/// Whether no piece says anything yet.
pub(crate) fn is_blank(pieces: &[String]) -> bool {
    pieces.iter().all(|piece| piece.trim().is_empty())
}

/// Reads the pieces of one call: one input, or several where a stream glued different objects
/// together. `cut` says that the provider stopped at its limit: then only what is plainly whole
/// counts.
pub(crate) fn read(pieces: &[String], cut: bool) -> Vec<Read> {
    if is_blank(pieces) {
        return vec![if cut {
            Read::unreadable(CUT_OFF)
        } else {
            Read::empty()
        }];
    }
    let joined = pieces.concat();
    if let Ok(value) = json::parse(joined.as_bytes()) {
        return vec![Read::one(&joined, &value, cut)];
    }
    // Where the text really was cut, a piece that looks like a repeat may be a nested object.
    let folded = if cut {
        joined.clone()
    } else {
        fold_repeats(pieces)
    };
    if let Ok(value) = json::parse(folded.as_bytes()) {
        return vec![Read::one(&folded, &value, cut)];
    }
    if let Some(several) = read_several(&folded, cut).or_else(|| read_several(&joined, cut)) {
        return several;
    }
    vec![Read::unreadable(&unreadable(&joined, cut))]
}

impl Read {
    fn empty() -> Self {
        Self {
            history: "{}".to_owned(),
            input: Ok(Value::Object(Map::new())),
        }
    }

    fn unreadable(told: &str) -> Self {
        Self {
            history: "{}".to_owned(),
            input: Err(told.to_owned()),
        }
    }

    fn one(text: &str, value: &Value, cut: bool) -> Self {
        match encoded_object(value.clone()) {
            Ok(_) if cut && value.is_null() => Self::unreadable(CUT_OFF),
            Ok(_) if value.is_object() => Self {
                history: text.trim().to_owned(),
                input: Ok(value.clone()),
            },
            Ok(input) => Self {
                history: input.to_string(),
                input: Ok(input),
            },
            Err(told) => Self::unreadable(&told),
        }
    }
}

/// Joins pieces, letting one that repeats all that came before it take its place.
fn fold_repeats(pieces: &[String]) -> String {
    let mut folded = String::new();
    for piece in pieces {
        if piece.starts_with(folded.as_str()) {
            folded.clone_from(piece);
        } else {
            folded.push_str(piece);
        }
    }
    folded
}

/// Reads objects that follow one another, each different one once. An empty one beside others is
/// the placeholder with which some streams open a call. A last one may be cut off.
fn read_several(text: &str, cut: bool) -> Option<Vec<Read>> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Box<RawValue>>();
    let mut found: Vec<Value> = Vec::new();
    let mut rest = None;
    while let Some(value) = values.next() {
        if let Ok(value) = value {
            let object = encoded_object(json::parse(value.get().as_bytes()).ok()?).ok()?;
            if !found.iter().any(|known| json::equal(known, &object)) {
                found.push(object);
            }
        } else {
            let left = text[values.byte_offset()..].trim_start();
            if !left.starts_with('{') {
                return None;
            }
            rest = Some(Read::unreadable(&unreadable(left, cut)));
            break;
        }
    }
    if found.is_empty() {
        return None;
    }
    if found.len() > 1 || rest.is_some() {
        found.retain(|object| object.as_object().is_some_and(|fields| !fields.is_empty()));
    }
    let read = found.into_iter().map(|object| Read {
        history: object.to_string(),
        input: Ok(object),
    });
    Some(read.chain(rest).collect())
}

fn object_in(raw: &Value) -> Result<Value, String> {
    match raw {
        Value::String(text) if !text.trim().is_empty() => {
            encoded_object(json::parse(text.as_bytes()).map_err(|_| unreadable(text, false))?)
        }
        other => bare_object(other.clone()),
    }
}

fn encoded_object(value: Value) -> Result<Value, String> {
    match value {
        Value::String(text) if !text.trim().is_empty() => {
            bare_object(json::parse(text.as_bytes()).map_err(|_| unreadable(&text, false))?)
        }
        other => bare_object(other),
    }
}

fn bare_object(value: Value) -> Result<Value, String> {
    let kind = match value {
        Value::Object(_) => return Ok(value),
        Value::Null => return Ok(Value::Object(Map::new())),
        Value::String(text) if text.trim().is_empty() => return Ok(Value::Object(Map::new())),
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Number(_) => "a number",
        Value::Bool(_) => "true or false",
    };
    Err(format!(
        "The arguments of this call must be one JSON object, not {kind}, so the call was not made."
    ))
}

/// What the model is told about `text`, which [`json::parse`] does not take.
fn unreadable(text: &str, cut: bool) -> String {
    let ends_early = |error: serde_json::Error| error.is_eof();
    if cut {
        CUT_OFF.to_owned()
    } else if serde_json::from_str::<IgnoredAny>(text).is_err_and(ends_early) {
        "The arguments of this call stop in the middle, so the call was not made. They were cut off \
         or are no JSON. Make it again with all of its arguments as one JSON object."
            .to_owned()
    } else {
        let why = json::parse(text.as_bytes()).err();
        let why = why.map_or_else(String::new, |fault| format!(" ({})", fault.detail()));
        format!(
            "The arguments of this call could not be read as JSON{why}, so the call was not made. \
             Make it again with one JSON object."
        )
    }
}

fn decode_fields(root: &Value, schema: &Value, value: Value) -> Value {
    let schema = resolve(root, schema);
    match value {
        Value::String(text) => decode_text(root, schema, text),
        Value::Object(fields) => {
            let decoded = fields.into_iter().map(|(name, value)| {
                match schema.get("properties").and_then(|all| all.get(&name)) {
                    Some(field) => (name, decode_fields(root, field, value)),
                    None => (name, value),
                }
            });
            Value::Object(decoded.collect())
        }
        Value::Array(items) => match schema.get("items") {
            Some(item) => {
                let decoded = items.into_iter();
                Value::Array(
                    decoded
                        .map(|value| decode_fields(root, item, value))
                        .collect(),
                )
            }
            None => Value::Array(items),
        },
        other => other,
    }
}

fn decode_text(root: &Value, schema: &Value, text: String) -> Value {
    let Some(kinds) = kinds_of(root, schema, REFERENCE_HOPS) else {
        return Value::String(text);
    };
    if kinds.contains(&"string") {
        return Value::String(text);
    }
    match json::parse(text.as_bytes()) {
        Ok(value) if value.is_array() && kinds.contains(&"array") => value,
        Ok(value) if value.is_object() && kinds.contains(&"object") => value,
        _ => Value::String(text),
    }
}

/// The types that a schema names, or `None` where it may take any.
fn kinds_of<'a>(root: &'a Value, schema: &'a Value, hops: usize) -> Option<Vec<&'a str>> {
    let hops = hops.checked_sub(1)?;
    let schema = resolve(root, schema);
    match schema.get("type") {
        Some(Value::String(kind)) => return Some(vec![kind]),
        Some(Value::Array(kinds)) => return Some(kinds.iter().filter_map(Value::as_str).collect()),
        _ => {}
    }
    if let Some(all) = schema.get("allOf").and_then(Value::as_array) {
        return all.iter().find_map(|part| kinds_of(root, part, hops));
    }
    let any = schema.get("anyOf").or_else(|| schema.get("oneOf"))?;
    let mut kinds = Vec::new();
    for part in any.as_array()? {
        kinds.extend(kinds_of(root, part, hops)?);
    }
    Some(kinds)
}

fn resolve<'a>(root: &'a Value, mut schema: &'a Value) -> &'a Value {
    for _ in 0..REFERENCE_HOPS {
        let target = schema.get("$ref").and_then(Value::as_str);
        let pointer = target.and_then(|target| target.strip_prefix('#'));
        match pointer.and_then(|pointer| root.pointer(pointer)) {
            Some(found) => schema = found,
            None => break,
        }
    }
    schema
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_input_is_an_object_however_often_encoded() {
        let rows = [
            (json!({ "a": 1 }), Ok(json!({ "a": 1 }))),
            (json!(" {\"a\": 1} "), Ok(json!({ "a": 1 }))),
            (json!("\"{\\\"a\\\":1}\""), Ok(json!({ "a": 1 }))),
            (json!(null), Ok(json!({}))),
            (json!(""), Ok(json!({}))),
            (json!(" \n"), Ok(json!({}))),
            (json!("null"), Ok(json!({}))),
            (json!("\"\""), Ok(json!({}))),
            (json!("[\"a\"]"), Err("not a list")),
            (json!(["a"]), Err("not a list")),
            (json!("7"), Err("not a number")),
            (json!("\"\\\"{}\\\"\""), Err("not text")),
            (json!("{a: 'b'}"), Err("could not be read")),
            (json!("{\"a\":1}}"), Err("could not be read")),
            (json!("{\"a\":1,\"a\":2}"), Err("could not be read")),
            (
                json!("{\"$serde_json::private::Number\":\"1\"}"),
                Err("could not be read"),
            ),
            (json!("{\"a\":"), Err("stop in the middle")),
        ];
        for (raw, expected) in rows {
            match (decode_input(&json!({}), &raw), expected) {
                (Ok(input), Ok(expected)) => assert_eq!(input, expected, "{raw}"),
                (Err(told), Err(part)) => assert!(told.contains(part), "{raw}: {told}"),
                (got, _) => panic!("{raw}: {got:?}"),
            }
        }
    }

    #[test]
    fn a_text_is_decoded_only_where_the_schema_wants_a_list_or_an_object() {
        let schema = json!({
            "type": "object",
            "properties": {
                "text": { "type": "string" },
                "any": {},
                "list": { "type": "array", "items": {} },
                "maybe": { "type": ["array", "string"] },
                "object": { "anyOf": [{ "type": "null" }, { "$ref": "#/$defs/point" }] },
                "rows": { "type": "array", "items": { "$ref": "#/$defs/point" } },
            },
            "$defs": { "point": { "type": "object", "properties": { "at": { "type": "array" } } } },
        });
        let rows = [
            (json!({ "text": "[1]" }), json!({ "text": "[1]" })),
            (json!({ "any": "[1]" }), json!({ "any": "[1]" })),
            (json!({ "other": "[1]" }), json!({ "other": "[1]" })),
            (json!({ "maybe": "[1]" }), json!({ "maybe": "[1]" })),
            (json!({ "list": "[\"[2]\"]" }), json!({ "list": ["[2]"] })),
            (
                json!({ "list": ["[2]", "3"] }),
                json!({ "list": ["[2]", "3"] }),
            ),
            (json!({ "list": "a, b" }), json!({ "list": "a, b" })),
            (
                json!({ "list": "{\"a\":1}" }),
                json!({ "list": "{\"a\":1}" }),
            ),
            (json!({ "list": "\"[1]\"" }), json!({ "list": "\"[1]\"" })),
            (
                json!({ "object": "{\"a\":1}" }),
                json!({ "object": { "a": 1 } }),
            ),
            (
                json!({ "rows": ["{\"at\":\"[1]\"}"] }),
                json!({ "rows": [{ "at": "[1]" }] }),
            ),
            (
                json!({ "rows": [{ "at": "[1]" }] }),
                json!({ "rows": [{ "at": [1] }] }),
            ),
        ];
        for (raw, expected) in rows {
            assert_eq!(decode_input(&schema, &raw), Ok(expected), "{raw}");
        }
    }

    #[test]
    fn numbers_keep_their_digits() {
        let input = decode_input(&json!({}), &json!("{\"cents\":1.50}")).unwrap();
        assert_eq!(input.to_string(), "{\"cents\":1.50}");
    }

    #[test]
    fn a_schema_that_refers_to_itself_ends() {
        let schema = json!({ "$ref": "#" });
        assert_eq!(
            decode_input(&schema, &json!({ "a": "[1]" })),
            Ok(json!({ "a": "[1]" }))
        );
        let looped = json!({ "properties": { "a": { "anyOf": [{ "$ref": "#/properties/a" }] } } });
        assert_eq!(
            decode_input(&looped, &json!({ "a": "[1]" })),
            Ok(json!({ "a": "[1]" }))
        );
    }
}
