//! The table of keywords against the drafts' own meta-schemas, and our checker against another.

use jsonschema::Draft;
use proptest::prelude::*;
use serde_json::json;

use super::*;

const DRAFTS: [(&str, Draft); 5] = [
    ("http://json-schema.org/draft-04/schema#", Draft::Draft4),
    ("http://json-schema.org/draft-06/schema#", Draft::Draft6),
    ("http://json-schema.org/draft-07/schema#", Draft::Draft7),
    (
        "https://json-schema.org/draft/2019-09/schema",
        Draft::Draft201909,
    ),
    (
        "https://json-schema.org/draft/2020-12/schema",
        Draft::Draft202012,
    ),
];

/// Keywords of all drafts, but for those that the profile keeps out or that no meta-schema knows
/// in every draft in which we look into them (`$defs`).
const KEYWORDS: &[&str] = &[
    "title",
    "description",
    "default",
    "examples",
    "readOnly",
    "writeOnly",
    "deprecated",
    "$comment",
    "format",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    "type",
    "enum",
    "const",
    "multipleOf",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "minLength",
    "maxLength",
    "pattern",
    "items",
    "prefixItems",
    "additionalItems",
    "minItems",
    "maxItems",
    "uniqueItems",
    "contains",
    "minContains",
    "maxContains",
    "unevaluatedItems",
    "required",
    "minProperties",
    "maxProperties",
    "properties",
    "patternProperties",
    "additionalProperties",
    "propertyNames",
    "unevaluatedProperties",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "definitions",
    "unknown",
];

fn values() -> Vec<Value> {
    [
        "null",
        "true",
        "false",
        "0",
        "1",
        "2.0",
        "1.5",
        "-1",
        "\"\"",
        "\"a\"",
        "\"string\"",
        "\"integer\"",
        "[]",
        "[\"a\"]",
        "[\"a\",\"a\"]",
        "[\"a\",\"b\"]",
        "[1,2]",
        "[{}]",
        "[true]",
        "[{\"type\":\"null\"},{}]",
        "[\"string\",\"null\"]",
        "[\"string\",\"string\"]",
        "{}",
        "{\"a\":{}}",
        "{\"a\":true}",
        "{\"a\":[]}",
        "{\"a\":[\"b\"]}",
        "{\"a\":[\"b\",\"b\"]}",
        "{\"a\":1}",
        "{\"type\":\"string\"}",
        "{\"type\":\"text\"}",
        "{\"a\":{\"minimum\":\"1\"}}",
    ]
    .iter()
    .map(|text| read(text))
    .collect()
}

/// Each keyword with each value in each draft: refused exactly where the meta-schema refuses it,
/// or where the profile goes beyond.
#[test]
fn the_table_of_keywords_is_the_meta_schemas() {
    for (name, _) in DRAFTS {
        for keyword in KEYWORDS {
            for value in values() {
                // The limit beside a draft-04 flag, and a known keyword at the top.
                if name.contains("draft-04") && value == read("2.0") {
                    // Read by value here as everywhere; that meta-schema goes by the spelling.
                    continue;
                }
                let mut schema = json!({ "$schema": name, "minimum": 1, "maximum": 1 });
                schema[*keyword] = value;
                let meets = jsonschema::meta::is_valid(&schema);
                match Shape::parse(&schema) {
                    Ok(_) => assert!(meets, "{schema} is taken"),
                    Err(fault) => {
                        let beyond = fault.to_string().contains("no answer fits")
                            || fault.to_string().contains("empty `enum`");
                        assert!(!meets || beyond, "{schema}\n  {fault}");
                    }
                }
            }
        }
    }
}

fn any_leaf() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!(true)),
        prop::sample::select(vec![
            "null", "boolean", "integer", "number", "string", "array", "object"
        ])
        .prop_map(|name| json!({ "type": name })),
        prop::collection::vec(any_answer(), 1..4).prop_map(|values| json!({ "enum": values })),
        (-2..3).prop_map(|n| json!({ "minimum": n })),
        (-2..3).prop_map(|n| json!({ "exclusiveMaximum": n })),
        (0..3).prop_map(|n| json!({ "minItems": n })),
        (0..3).prop_map(|n| json!({ "maxProperties": n })),
        (0..3).prop_map(|n| json!({ "maxLength": n })),
        Just(json!({ "uniqueItems": true })),
        Just(json!({ "required": ["a"] })),
        Just(json!({ "pattern": "^a" })),
        Just(json!({ "dependentRequired": { "a": ["b"] } })),
    ]
}

fn any_shape() -> impl Strategy<Value = Value> {
    any_leaf().prop_recursive(3, 20, 4, |inner| {
        let list = prop::collection::vec(inner.clone(), 1..4);
        let keyword = prop_oneof![
            list.clone().prop_map(|list| json!({ "allOf": list })),
            list.clone().prop_map(|list| json!({ "anyOf": list })),
            list.clone().prop_map(|list| json!({ "oneOf": list })),
            inner.clone().prop_map(|one| json!({ "not": one })),
            (inner.clone(), inner.clone(), inner.clone())
                .prop_map(|(a, b, c)| json!({ "if": a, "then": b, "else": c })),
            inner
                .clone()
                .prop_map(|one| json!({ "properties": { "a": one } })),
            inner
                .clone()
                .prop_map(|one| json!({ "patternProperties": { "[ab]": one } })),
            inner
                .clone()
                .prop_map(|one| json!({ "propertyNames": one })),
            inner
                .clone()
                .prop_map(|one| json!({ "dependentSchemas": { "a": one } })),
            inner.clone().prop_map(|one| json!({ "contains": one })),
            inner
                .clone()
                .prop_map(|one| json!({ "contains": one, "minContains": 0, "maxContains": 1 })),
            list.clone().prop_map(|list| json!({ "prefixItems": list })),
            inner.clone().prop_map(|one| json!({ "items": one })),
            Just(json!({ "additionalProperties": false })),
            Just(json!({ "items": { "$ref": "#" } })),
            Just(json!({ "properties": { "b": { "$ref": "#" } } })),
            inner
                .clone()
                .prop_map(|one| json!({ "unevaluatedItems": one })),
            Just(json!({ "unevaluatedProperties": false })),
            Just(json!({ "unevaluatedItems": false })),
        ];
        prop::collection::vec(keyword, 1..4).prop_map(|parts| {
            let mut whole = serde_json::Map::new();
            for part in parts {
                if let Value::Object(part) = part {
                    whole.extend(part);
                }
            }
            Value::Object(whole)
        })
    })
}

fn any_answer() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        (-3..4).prop_map(|n| json!(n)),
        Just(json!(1.5)),
        "[ab]{0,3}".prop_map(Value::String),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::vec((prop::sample::select(vec!["a", "b", "c"]), inner), 0..4)
                .prop_map(|entries| {
                    Value::Object(
                        entries
                            .into_iter()
                            .map(|(k, v)| (k.to_owned(), v))
                            .collect(),
                    )
                }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn another_validator_says_the_same(schema in any_shape(), answers in prop::collection::vec(any_answer(), 6)) {
        // What takes nothing is refused by us and by nobody else.
        if let Ok(shape) = Shape::parse(&schema) {
            let other = jsonschema::options().with_draft(Draft::Draft202012).build(&schema).unwrap();
            for answer in answers {
                let misfits = shape.check(&answer);
                prop_assert_eq!(misfits.is_ok(), other.is_valid(&answer), "{} {} {:?}", schema, answer, misfits);
                prop_assert!(misfits.err().is_none_or(|misfits| !misfits.is_empty()));
            }
        }
    }

    /// Whatever is handed in as a shape is read or refused.
    #[test]
    fn anything_is_read_or_refused(schema in any_answer(), keyword in prop::sample::select(KEYWORDS)) {
        let _ = Shape::parse(&schema);
        let _ = Shape::parse(&json!({ keyword: schema }));
    }
}
