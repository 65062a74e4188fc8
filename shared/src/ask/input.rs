//! A tool's input against the tool's own schema.
//!
//! Such a schema is configuration, or comes from a server that the configuration names, and is
//! trusted; the shapes that a model writes are not, and are bounded by [`crate::shape`]. Nothing
//! is ever fetched for either.

use crate::code::Misfit;
use jsonschema::Validator;
use serde_json::Value;

/// The most places that are named of one input: more help nobody.
const MOST_MISFITS: usize = 20;

/// The longest pointer that is named, in bytes. A longer one is cut to a parent, because its
/// names are the sender's and a reply does not carry them back at any length.
const LONGEST_POINTER: usize = 256;

/// The most characters of one broken rule as a model reads it: a schema's list of values may be
/// long.
const LONGEST_RULE: usize = 400;

/// Checks at start that `schema` can be used at all.
///
/// # Errors
/// What is wrong with it, for whoever configured the tool.
pub fn check_schema(schema: &Value) -> Result<(), String> {
    compile(schema).map(drop)
}

/// Checks a tool's `input` against the tool's `schema` (JSON Schema, 2020-12 unless it names
/// another draft).
///
/// # Errors
/// The places that do not fit, at most 20, each with the failed keyword; the one rule `schema`
/// where the schema itself cannot be used, so that a tool never runs unchecked.
pub fn check_input(schema: &Value, input: &Value) -> Result<(), Vec<Misfit>> {
    let validator = compile(schema).map_err(|_| vec![Misfit::at("", "schema")])?;
    let mut misfits: Vec<Misfit> = Vec::new();
    for fault in validator.iter_errors(input) {
        let misfit = Misfit::at(
            named(fault.instance_path().as_str()),
            fault.kind().keyword(),
        );
        if !misfits.contains(&misfit) {
            misfits.push(misfit);
        }
        if misfits.len() == MOST_MISFITS {
            break;
        }
    }
    if misfits.is_empty() {
        Ok(())
    } else {
        Err(misfits)
    }
}

/// Checks a tool's `input` for a model, which reads what the schema wants: its names may be told,
/// values are not repeated.
///
/// # Errors
/// What the tool answers the model in place of running.
pub fn check_for_model(schema: &Value, input: &Value) -> Result<(), String> {
    let validator = compile(schema).map_err(|_| tell("its schema is unusable"))?;
    let places: Vec<String> = validator
        .iter_errors(input)
        .take(MOST_MISFITS)
        .map(|fault| {
            let pointer = fault.instance_path().as_str();
            let place = match named(pointer) {
                "" => "the input",
                place => place,
            };
            let rule: String = fault
                .masked()
                .to_string()
                .chars()
                .take(LONGEST_RULE)
                .collect();
            format!("{place}: {rule}")
        })
        .collect();
    if places.is_empty() {
        Ok(())
    } else {
        Err(tell(&places.join("; ")))
    }
}

fn tell(places: &str) -> String {
    format!("The input does not fit this tool: {places}. Nothing was done.")
}

/// The places of `misfits`, in words.
pub(super) fn places(misfits: &[Misfit]) -> String {
    let places: Vec<String> = misfits
        .iter()
        .map(|Misfit { pointer, rule, .. }| {
            let place = if pointer.is_empty() {
                "the whole"
            } else {
                pointer.as_str()
            };
            match words(rule) {
                Some(words) => format!("{place} {words} ({rule})"),
                None => format!("{place} breaks the rule {rule}"),
            }
        })
        .collect();
    places.join("; ")
}

fn words(rule: &str) -> Option<&'static str> {
    Some(match rule {
        "required" => "lacks a property that is required",
        "type" => "is of the wrong type",
        "enum" | "const" | "choices" => "is none of the allowed values",
        "additionalProperties" | "unevaluatedProperties" | "unknown" => "holds an unknown property",
        "minimum" | "exclusiveMinimum" => "is too small",
        "maximum" | "exclusiveMaximum" => "is too large",
        "minLength" | "minItems" | "minProperties" => "is too short",
        "maxLength" | "maxItems" | "maxProperties" => "is too long",
        "blank" => "is blank",
        "uniqueItems" | "twice" => "holds something twice",
        "schema" => "cannot be checked, because the tool's own schema is unusable",
        _ => return None,
    })
}

fn compile(schema: &Value) -> Result<Validator, String> {
    jsonschema::options()
        .offline()
        .build(schema)
        .map_err(|fault| fault.to_string())
}

fn named(pointer: &str) -> &str {
    let mut pointer = pointer;
    while pointer.len() > LONGEST_POINTER {
        pointer = pointer.rfind('/').map_or("", |end| &pointer[..end]);
    }
    pointer
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(schema: &Value, input: &str, expected: &[(&str, &str)]) {
        let input: Value = serde_json::from_str(input).unwrap();
        let found = check_input(schema, &input).err().unwrap_or_default();
        let expected: Vec<Misfit> = expected
            .iter()
            .map(|(pointer, rule)| Misfit::at(*pointer, *rule))
            .collect();
        assert_eq!(found, expected, "{input}");
    }

    #[test]
    fn every_place_is_named_with_its_rule() {
        let schema = json!({
            "type": "object",
            "properties": {
                "to": {"type": "array", "items": {"type": "string", "minLength": 1}},
                "n": {"type": "integer", "minimum": 1}
            },
            "required": ["to"],
            "additionalProperties": false
        });
        check(&schema, r#"{"to": ["a"], "n": 5}"#, &[]);
        check(&schema, r#"{"to": ["a"], "n": 5.0}"#, &[]);
        check(&schema, r#"{"to": ["a"], "n": 5e0}"#, &[]);
        check(&schema, r#"{"to": [], "n": "5"}"#, &[("/n", "type")]);
        check(&schema, r#"{"to": [], "n": 0}"#, &[("/n", "minimum")]);
        check(&schema, r#"{"n": 2}"#, &[("", "required")]);
        check(&schema, "null", &[("", "type")]);
        check(
            &schema,
            r#"{"to": ["", 3], "secret": 1}"#,
            &[
                ("/to/0", "minLength"),
                ("/to/1", "type"),
                ("", "additionalProperties"),
            ],
        );
    }

    #[test]
    fn numbers_beyond_a_float_do_no_harm() {
        let schema = json!({"type": "number", "multipleOf": 1, "maximum": 10});
        let input: Value = serde_json::from_str("1e400").unwrap();
        let _ = check_input(&schema, &input);
        check(&json!({"type": "number"}), "1e400", &[]);
    }

    #[test]
    fn a_schema_that_cannot_be_used_lets_nothing_through() {
        for schema in [
            json!({"type": "int"}),
            json!({"$ref": "#/$defs/none"}),
            json!({"$ref": "http://localhost:1/elsewhere"}),
            json!("a number"),
        ] {
            check(&schema, "{}", &[("", "schema")]);
            assert!(check_schema(&schema).is_err(), "{schema}");
        }
        assert_eq!(check_schema(&json!({})), Ok(()));
    }

    #[test]
    fn replies_stay_small_whatever_is_sent() {
        let schema = json!({"additionalProperties": {"type": "array", "items": false}});
        let long = "k".repeat(5000);
        check(&schema, &json!({ long: 1 }).to_string(), &[("", "type")]);
        let many = json!({"a": vec![0; 500]});
        let misfits = check_input(&schema, &many).unwrap_err();
        assert_eq!(misfits.len(), MOST_MISFITS);
    }

    #[test]
    fn the_model_is_told_the_places_and_no_value() {
        let schema = json!({
            "type": "object",
            "properties": {"n": {"type": "integer"}, "size": {"enum": ["S", "M"]}},
            "required": ["order"]
        });
        let input = json!({"n": "a planted value", "size": "XL"});
        let told = check_for_model(&schema, &input).unwrap_err();
        for part in ["order", "/n: ", "integer", "/size: ", "\"M\""] {
            assert!(told.contains(part), "{part}: {told}");
        }
        assert!(!told.contains("planted") && !told.contains("XL"), "{told}");
        assert_eq!(check_for_model(&schema, &json!({"order": 1})), Ok(()));
        assert!(check_for_model(&json!({"type": "int"}), &json!({})).is_err());
    }
}
