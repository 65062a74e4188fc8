//! The second reading of a shape: what the checker walks, with every reference resolved.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::ShapeFault;
use super::assertion::{Assertion, Test};
use super::format::Format;
use super::keyword::{self, Draft};
use super::pattern::Pattern;
use super::survey::{Found, Survey, survey};
use crate::json::{self, Decimal};

/// A subschema.
#[derive(Debug)]
pub(super) struct Node {
    /// Where it stands in the shape.
    pub(super) pointer: String,
    /// What `true` and `false` say of every value.
    pub(super) verdict: Option<bool>,
    pub(super) assertions: Vec<Assertion>,
    /// In the order in which they are applied: `unevaluated...` last, as it asks what the others
    /// have taken.
    pub(super) applies: Vec<Apply>,
}

/// A keyword that applies other nodes; they are named by their numbers.
#[derive(Debug)]
pub(super) enum Apply {
    /// `$ref`, or one of `allOf`.
    All(&'static str, usize),
    Any(Vec<usize>),
    One(Vec<usize>),
    Not(usize),
    If {
        test: usize,
        then: Option<usize>,
        otherwise: Option<usize>,
    },
    /// Applied where the property is there.
    Dependent(&'static str, String, usize),
    Properties {
        named: HashMap<String, usize>,
        patterns: Vec<(Pattern, usize)>,
        rest: Option<usize>,
    },
    Names(usize),
    Items {
        first: Vec<usize>,
        first_keyword: &'static str,
        rest: Option<usize>,
        rest_keyword: &'static str,
    },
    Contains {
        node: usize,
        least: u64,
        most: Option<u64>,
        /// Whether what matches counts as evaluated (since 2020-12).
        takes: bool,
    },
    UnevaluatedProperties(usize),
    UnevaluatedItems(usize),
}

/// Reads a shape into its nodes, the shape itself the first.
pub(super) fn nodes(shape: &Value, draft: Draft) -> Result<Vec<Node>, ShapeFault> {
    keyword::not_a_property_map(shape)?;
    let survey = survey(shape, draft)?;
    survey
        .found
        .iter()
        .map(|found| node(found, &survey))
        .collect()
}

impl Node {
    /// The nodes that are applied to the same value.
    pub(super) fn in_place(&self) -> Vec<usize> {
        let in_place = |apply: &&Apply| {
            matches!(
                apply,
                Apply::All(..)
                    | Apply::Any(_)
                    | Apply::One(_)
                    | Apply::Not(_)
                    | Apply::If { .. }
                    | Apply::Dependent(..)
            )
        };
        self.applies
            .iter()
            .filter(in_place)
            .flat_map(Apply::targets)
            .collect()
    }

    /// All nodes that are applied by this one.
    pub(super) fn targets(&self) -> Vec<usize> {
        self.applies.iter().flat_map(Apply::targets).collect()
    }

    /// Whether plainly every value fits.
    pub(super) fn takes_anything(&self) -> bool {
        self.verdict != Some(false) && self.assertions.is_empty() && self.applies.is_empty()
    }

    /// Whether it asks what other keywords have taken.
    pub(super) fn tracks(&self) -> bool {
        self.applies.iter().any(|apply| {
            matches!(
                apply,
                Apply::UnevaluatedProperties(_) | Apply::UnevaluatedItems(_)
            )
        })
    }
}

impl Apply {
    fn targets(&self) -> Vec<usize> {
        match self {
            Apply::All(_, node)
            | Apply::Not(node)
            | Apply::Dependent(_, _, node)
            | Apply::Names(node)
            | Apply::Contains { node, .. }
            | Apply::UnevaluatedProperties(node)
            | Apply::UnevaluatedItems(node) => vec![*node],
            Apply::Any(nodes) | Apply::One(nodes) => nodes.clone(),
            Apply::If {
                test,
                then,
                otherwise,
            } => [Some(*test), *then, *otherwise]
                .into_iter()
                .flatten()
                .collect(),
            Apply::Properties {
                named,
                patterns,
                rest,
            } => named
                .values()
                .copied()
                .chain(patterns.iter().map(|(_, node)| *node))
                .chain(*rest)
                .collect(),
            Apply::Items { first, rest, .. } => first.iter().copied().chain(*rest).collect(),
        }
    }
}

fn node(found: &Found<'_>, survey: &Survey<'_>) -> Result<Node, ShapeFault> {
    let mut node = Node {
        pointer: found.pointer.clone(),
        verdict: None,
        assertions: Vec::new(),
        applies: Vec::new(),
    };
    let map = match found.schema {
        Value::Object(map) => map,
        other => {
            node.verdict = other.as_bool();
            return Ok(node);
        }
    };
    if let Some(Value::String(reference)) = map.get("$ref") {
        let target = resolve(reference, &found.pointer, &survey.places)?;
        node.applies.push(Apply::All("$ref", target));
    }
    // Up to draft-07 a reference stands alone, whatever is written beside it. Patterns beside it
    // are still compiled, so that the shape meets its meta-schema.
    let alone = survey.draft <= Draft::D7 && map.contains_key("$ref");
    let mut beside = Vec::new();
    for (name, value) in map {
        if let Some(row) = keyword::lookup(name, survey.draft)
            && let Some((keyword, test)) = test(row.name, value, map, found, survey.draft)?
        {
            beside.push(Assertion { keyword, test });
        }
    }
    let patterns = patterns(found)?;
    if !alone {
        node.assertions = beside;
        applies(&mut node.applies, found, map, patterns, survey.draft);
    }
    Ok(node)
}

/// What a keyword asserts, and the keyword to name when it fails.
fn test(
    name: &'static str,
    value: &Value,
    map: &Map<String, Value>,
    found: &Found<'_>,
    draft: Draft,
) -> Result<Option<(&'static str, Test)>, ShapeFault> {
    // The survey has checked all types: what does not match here asserts nothing.
    let count = || match value {
        Value::Number(number) => Decimal::of(number).as_count().unwrap_or(u64::MAX),
        _ => u64::MAX,
    };
    let flag = |name: &str| map.get(name) == Some(&Value::Bool(true));
    let strings = |value: &Value| -> Vec<String> {
        value
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|item| item.as_str().map(str::to_owned))
            .collect()
    };
    let test = match (name, value) {
        ("type", Value::Array(names)) => Test::Type(
            names
                .iter()
                .filter_map(|name| name.as_str().and_then(keyword::type_bit))
                .fold(0, |set, bit| set | bit),
        ),
        ("type", Value::String(name)) => Test::Type(keyword::type_bit(name).unwrap_or(0)),
        ("enum", Value::Array(values)) => Test::Enum(values.clone()),
        ("const", value) => Test::Enum(vec![value.clone()]),
        ("multipleOf", Value::Number(number)) => Test::MultipleOf(Decimal::of(number)),
        ("minimum", Value::Number(number)) if draft == Draft::D4 && flag("exclusiveMinimum") => {
            return Ok(Some(("exclusiveMinimum", Test::Above(Decimal::of(number)))));
        }
        ("maximum", Value::Number(number)) if draft == Draft::D4 && flag("exclusiveMaximum") => {
            return Ok(Some(("exclusiveMaximum", Test::Below(Decimal::of(number)))));
        }
        ("minimum", Value::Number(number)) => Test::Minimum(Decimal::of(number)),
        ("maximum", Value::Number(number)) => Test::Maximum(Decimal::of(number)),
        ("exclusiveMinimum", Value::Number(number)) => Test::Above(Decimal::of(number)),
        ("exclusiveMaximum", Value::Number(number)) => Test::Below(Decimal::of(number)),
        ("minLength", _) => Test::MinLength(count()),
        ("maxLength", _) => Test::MaxLength(count()),
        ("pattern", Value::String(source)) => {
            let mut pointer = found.pointer.clone();
            json::push_pointer(&mut pointer, name);
            Test::Pattern(Pattern::new(source).map_err(|reason| ShapeFault::at(&pointer, reason))?)
        }
        ("format", Value::String(name)) => match Format::named(name) {
            Some(format) => Test::Format(format),
            None => return Ok(None),
        },
        ("minItems", _) => Test::MinItems(count()),
        ("maxItems", _) => Test::MaxItems(count()),
        ("uniqueItems", Value::Bool(true)) => Test::Unique,
        ("minProperties", _) => Test::MinProperties(count()),
        ("maxProperties", _) => Test::MaxProperties(count()),
        ("required", names) => Test::Required(strings(names)),
        ("dependentRequired", Value::Object(rules)) => Test::Dependent(
            rules
                .iter()
                .map(|(key, names)| (key.clone(), strings(names)))
                .collect(),
        ),
        ("dependencies", Value::Object(rules)) if draft <= Draft::D7 => Test::Dependent(
            rules
                .iter()
                .filter(|(_, names)| names.is_array())
                .map(|(key, names)| (key.clone(), strings(names)))
                .collect(),
        ),
        _ => return Ok(None),
    };
    Ok(Some((name, test)))
}

fn patterns(found: &Found<'_>) -> Result<Vec<(Pattern, usize)>, ShapeFault> {
    let mut patterns = Vec::new();
    for (source, node) in found.named.get("patternProperties").into_iter().flatten() {
        let pattern = Pattern::new(source).map_err(|reason| {
            let mut pointer = found.pointer.clone();
            json::push_pointer(&mut pointer, "patternProperties");
            json::push_pointer(&mut pointer, source);
            ShapeFault::at(&pointer, reason)
        })?;
        patterns.push((pattern, *node));
    }
    Ok(patterns)
}

fn applies(
    out: &mut Vec<Apply>,
    found: &Found<'_>,
    map: &Map<String, Value>,
    patterns: Vec<(Pattern, usize)>,
    draft: Draft,
) {
    let one = |name: &str| found.one.get(name).copied();
    let many = |name: &str| found.many.get(name).cloned();
    let named = |name: &str| found.named.get(name).into_iter().flatten();
    out.extend(
        many("allOf")
            .into_iter()
            .flatten()
            .map(|node| Apply::All("allOf", node)),
    );
    out.extend(many("anyOf").map(Apply::Any));
    out.extend(many("oneOf").map(Apply::One));
    out.extend(one("not").map(Apply::Not));
    out.extend(one("if").map(|test| Apply::If {
        test,
        then: one("then"),
        otherwise: one("else"),
    }));
    // `dependencies` was split in 2019-09 and is a note since.
    let dependent = if draft <= Draft::D7 {
        "dependencies"
    } else {
        "dependentSchemas"
    };
    out.extend(
        named(dependent).map(|(key, node)| Apply::Dependent(dependent, (*key).to_owned(), *node)),
    );
    let properties: HashMap<String, usize> = named("properties")
        .map(|(key, node)| ((*key).to_owned(), *node))
        .collect();
    let rest = one("additionalProperties");
    if !properties.is_empty() || !patterns.is_empty() || rest.is_some() {
        out.push(Apply::Properties {
            named: properties,
            patterns,
            rest,
        });
    }
    out.extend(one("propertyNames").map(Apply::Names));
    let (first, first_keyword, rest, rest_keyword) = if draft == Draft::D2020 {
        (many("prefixItems"), "prefixItems", one("items"), "items")
    } else if let Some(tuple) = many("items") {
        (
            Some(tuple),
            "items",
            one("additionalItems"),
            "additionalItems",
        )
    } else {
        (None, "items", one("items"), "items")
    };
    if first.is_some() || rest.is_some() {
        out.push(Apply::Items {
            first: first.unwrap_or_default(),
            first_keyword,
            rest,
            rest_keyword,
        });
    }
    let limit = |name: &str| match map.get(name) {
        Some(Value::Number(number)) if draft >= Draft::D2019 => Decimal::of(number).as_count(),
        _ => None,
    };
    out.extend(one("contains").map(|node| Apply::Contains {
        node,
        least: limit("minContains").unwrap_or(1),
        most: limit("maxContains"),
        takes: draft == Draft::D2020,
    }));
    out.extend(one("unevaluatedProperties").map(Apply::UnevaluatedProperties));
    out.extend(one("unevaluatedItems").map(Apply::UnevaluatedItems));
}

/// The subschema that a reference names: `#`, or a JSON pointer after it. Nothing else is ever
/// looked up, neither here nor later.
fn resolve(
    reference: &str,
    pointer: &str,
    places: &HashMap<String, usize>,
) -> Result<usize, ShapeFault> {
    let fault = |what: &str| {
        let mut place = pointer.to_owned();
        json::push_pointer(&mut place, "$ref");
        ShapeFault::at(
            &place,
            format!("the reference `{}` {what}", json::clip(reference, 80)),
        )
    };
    let Some(fragment) = reference.strip_prefix('#') else {
        return Err(fault(
            "is not allowed: it must be `#` or a place in this shape, such as `#/$defs/a`",
        ));
    };
    if fragment.is_empty() {
        return Ok(0);
    }
    if !fragment.starts_with('/') {
        return Err(fault("names an anchor, and only JSON pointers are allowed"));
    }
    let found = percent_decoded(fragment).and_then(|fragment| {
        let mut place = String::new();
        for token in fragment.split('/').skip(1) {
            json::push_pointer(&mut place, &token.replace("~1", "/").replace("~0", "~"));
        }
        places.get(&place).copied()
    });
    found.ok_or_else(|| fault("names no schema in this shape"))
}

/// The text behind `%` escapes (RFC 3986, 2.1), `None` where one is broken.
fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let high = char::from(rest.next()?).to_digit(16)?;
            let low = char::from(rest.next()?).to_digit(16)?;
            bytes.push(u8::try_from(high * 16 + low).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}
