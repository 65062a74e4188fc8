//! The keywords of each draft and what their values must be: the drafts' meta-schemas as a table,
//! so that a fault can be told in words that a model understands.

use serde_json::Value;

use super::ShapeFault;
use crate::json;

/// A draft of JSON Schema, oldest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Draft {
    D4,
    D6,
    D7,
    D2019,
    D2020,
}

use Draft::{D4, D6, D7, D2019, D2020};

/// What a keyword's value must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Not in the profile; the reason.
    Refused(&'static str),
    Anything,
    Text,
    Flag,
    List,
    Number,
    /// A number above zero.
    Step,
    /// A whole number of at least zero.
    Count,
    /// A list of different strings; with `true`, of at least one.
    Names(bool),
    /// An object of such lists.
    NamesMap,
    /// An object of booleans.
    FlagMap,
    Type,
    /// A list; the meta-schemas in use today let values stand twice in every draft.
    Enum,
    Pattern,
    Reference,
    Schema,
    /// A boolean, even where the draft has no boolean schemas, or a schema.
    SchemaOrFlag,
    /// At least one schema.
    Schemas,
    /// A schema, or a list of at least one.
    Items,
    SchemaMap,
    /// Schemas by pattern.
    PatternMap,
    /// A schema or a list of names, by property; with `true`, of at least one.
    Dependencies(bool),
}

/// A keyword in a range of drafts.
pub(super) struct Row {
    pub(super) name: &'static str,
    since: Draft,
    until: Draft,
    pub(super) kind: Kind,
}

const fn row(name: &'static str, since: Draft, until: Draft, kind: Kind) -> Row {
    Row {
        name,
        since,
        until,
        kind,
    }
}

const NO_ID: Kind = Kind::Refused(
    "names for shapes are not allowed; use `$ref` with a place in this shape, such as `#/$defs/a`",
);
const NO_DYNAMIC: Kind = Kind::Refused(
    "dynamic references are not allowed; use `$ref` with a place in this shape, such as `#/$defs/a`",
);

const TABLE: &[Row] = &[
    row("$schema", D4, D2020, Kind::Text),
    row("$id", D4, D2020, NO_ID),
    row("id", D4, D4, NO_ID),
    row("$anchor", D4, D2020, NO_ID),
    row("$dynamicAnchor", D4, D2020, NO_ID),
    row("$dynamicRef", D4, D2020, NO_DYNAMIC),
    row("$recursiveRef", D4, D2020, NO_DYNAMIC),
    row("$recursiveAnchor", D4, D2020, NO_DYNAMIC),
    row("$ref", D4, D2020, Kind::Reference),
    row("$defs", D4, D2020, Kind::SchemaMap),
    row("definitions", D4, D2020, Kind::SchemaMap),
    row("$vocabulary", D2019, D2020, Kind::FlagMap),
    row("$comment", D7, D2020, Kind::Text),
    row("title", D4, D2020, Kind::Text),
    row("description", D4, D2020, Kind::Text),
    row("default", D4, D2020, Kind::Anything),
    row("examples", D6, D2020, Kind::List),
    row("deprecated", D2019, D2020, Kind::Flag),
    row("readOnly", D7, D2020, Kind::Flag),
    row("writeOnly", D7, D2020, Kind::Flag),
    row("format", D4, D2020, Kind::Text),
    row("contentEncoding", D7, D2020, Kind::Text),
    row("contentMediaType", D7, D2020, Kind::Text),
    row("contentSchema", D2019, D2020, Kind::Schema),
    row("type", D4, D2020, Kind::Type),
    row("enum", D4, D2020, Kind::Enum),
    row("const", D6, D2020, Kind::Anything),
    row("multipleOf", D4, D2020, Kind::Step),
    row("minimum", D4, D2020, Kind::Number),
    row("maximum", D4, D2020, Kind::Number),
    row("exclusiveMinimum", D4, D4, Kind::Flag),
    row("exclusiveMaximum", D4, D4, Kind::Flag),
    row("exclusiveMinimum", D6, D2020, Kind::Number),
    row("exclusiveMaximum", D6, D2020, Kind::Number),
    row("minLength", D4, D2020, Kind::Count),
    row("maxLength", D4, D2020, Kind::Count),
    row("pattern", D4, D2020, Kind::Pattern),
    row("items", D4, D2019, Kind::Items),
    row("items", D2020, D2020, Kind::Schema),
    row("prefixItems", D2020, D2020, Kind::Schemas),
    row("additionalItems", D4, D2019, Kind::SchemaOrFlag),
    row("minItems", D4, D2020, Kind::Count),
    row("maxItems", D4, D2020, Kind::Count),
    row("uniqueItems", D4, D2020, Kind::Flag),
    row("contains", D6, D2020, Kind::Schema),
    row("minContains", D2019, D2020, Kind::Count),
    row("maxContains", D2019, D2020, Kind::Count),
    row("unevaluatedItems", D2019, D2020, Kind::Schema),
    row("required", D4, D4, Kind::Names(true)),
    row("required", D6, D2020, Kind::Names(false)),
    row("minProperties", D4, D2020, Kind::Count),
    row("maxProperties", D4, D2020, Kind::Count),
    row("properties", D4, D2020, Kind::SchemaMap),
    row("patternProperties", D4, D2020, Kind::PatternMap),
    row("additionalProperties", D4, D2020, Kind::SchemaOrFlag),
    row("propertyNames", D6, D2020, Kind::Schema),
    row("unevaluatedProperties", D2019, D2020, Kind::Schema),
    row("dependencies", D4, D4, Kind::Dependencies(true)),
    row("dependencies", D6, D2020, Kind::Dependencies(false)),
    row("dependentRequired", D2019, D2020, Kind::NamesMap),
    row("dependentSchemas", D2019, D2020, Kind::SchemaMap),
    row("allOf", D4, D2020, Kind::Schemas),
    row("anyOf", D4, D2020, Kind::Schemas),
    row("oneOf", D4, D2020, Kind::Schemas),
    row("not", D4, D2020, Kind::Schema),
    row("if", D7, D2020, Kind::Schema),
    row("then", D7, D2020, Kind::Schema),
    row("else", D7, D2020, Kind::Schema),
];

/// The keyword of that name in a draft; anything else is unknown there and ignored.
pub(super) fn lookup(name: &str, draft: Draft) -> Option<&'static Row> {
    TABLE
        .iter()
        .find(|row| row.name == name && row.since <= draft && draft <= row.until)
}

/// The draft that a shape names, 2020-12 when it names none.
pub(super) fn draft(shape: &Value) -> Result<Draft, ShapeFault> {
    let map = match shape {
        Value::Object(map) => map,
        Value::Bool(_) => return Ok(D2020),
        Value::Null => {
            return Err(ShapeFault::at(
                "",
                "it is null; leave `shape` out to ask for text",
            ));
        }
        _ => {
            return Err(ShapeFault::at(
                "",
                "it must be a JSON Schema, that is an object such as {\"type\":\"number\"}",
            ));
        }
    };
    match map.get("$schema") {
        None => Ok(D2020),
        Some(Value::String(name)) => named_draft(name).ok_or_else(|| unknown_draft("", name)),
        Some(_) => Err(ShapeFault::at("/$schema", "it must be text")),
    }
}

/// The draft of a `$schema`: http or https, with or without the empty fragment.
fn named_draft(name: &str) -> Option<Draft> {
    let rest = name
        .strip_prefix("https://")
        .or_else(|| name.strip_prefix("http://"))?;
    match rest.strip_suffix('#').unwrap_or(rest) {
        "json-schema.org/draft-04/schema" => Some(D4),
        "json-schema.org/draft-06/schema" => Some(D6),
        "json-schema.org/draft-07/schema" => Some(D7),
        "json-schema.org/draft/2019-09/schema" => Some(D2019),
        "json-schema.org/draft/2020-12/schema" => Some(D2020),
        _ => None,
    }
}

/// Refuses a `$schema` further down that names another draft: one shape is read by one draft.
pub(super) fn same_draft(pointer: &str, name: &str, draft: Draft) -> Result<(), ShapeFault> {
    match named_draft(name) {
        Some(named) if named == draft => Ok(()),
        Some(_) => Err(ShapeFault::at(
            pointer,
            "`$schema` names another draft than the shape's top",
        )),
        None => Err(unknown_draft(pointer, name)),
    }
}

fn unknown_draft(pointer: &str, name: &str) -> ShapeFault {
    ShapeFault::at(
        pointer,
        format!(
            "`$schema` `{}` is unknown; leave it out for 2020-12, or name draft-04, draft-06, \
             draft-07, 2019-09 or 2020-12",
            json::clip(name, 80)
        ),
    )
}

/// Refuses a map of properties that was meant as a shape: as a schema it would take anything.
pub(super) fn not_a_property_map(shape: &Value) -> Result<(), ShapeFault> {
    let Value::Object(map) = shape else {
        return Ok(());
    };
    if map
        .keys()
        .any(|key| TABLE.iter().any(|row| row.name == key))
    {
        return Ok(());
    }
    let like_a_property = |value: &Value| match value {
        Value::Object(_) => true,
        Value::String(name) => type_bit(name).is_some(),
        _ => false,
    };
    match map.iter().find(|(_, value)| like_a_property(value)) {
        None => Ok(()),
        Some((key, _)) => Err(ShapeFault::at(
            "",
            format!(
                "it has no keyword of JSON Schema; if `{}` is a property, write \
                 {{\"type\":\"object\",\"properties\":{{...}}}}",
                json::clip(key, 80)
            ),
        )),
    }
}

/// The names of `type`, each with its bit in a set of types.
const TYPES: [&str; 7] = [
    "null", "boolean", "integer", "number", "string", "array", "object",
];

/// The bit of a type's name.
pub(super) fn type_bit(name: &str) -> Option<u8> {
    TYPES
        .iter()
        .position(|known| *known == name)
        .map(|at| 1 << at)
}
