//! The first reading of a shape: every subschema found and given a number, every keyword's value
//! checked against its draft, every bound of SPEC 3.5 held.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::keyword::{self, Draft, Kind, Row};
use super::{MAX_DEPTH, MAX_ENUM_VALUES, MAX_PROPERTIES, ShapeFault};
use crate::json::{self, Decimal};

/// A subschema and the numbers of those right below it.
#[derive(Debug)]
pub(super) struct Found<'a> {
    pub(super) pointer: String,
    pub(super) schema: &'a Value,
    depth: usize,
    pub(super) one: HashMap<&'static str, usize>,
    pub(super) many: HashMap<&'static str, Vec<usize>>,
    pub(super) named: HashMap<&'static str, Vec<(&'a str, usize)>>,
}

/// All subschemas of a shape, itself the first.
#[derive(Debug)]
pub(super) struct Survey<'a> {
    pub(super) draft: Draft,
    pub(super) found: Vec<Found<'a>>,
    /// Where subschemas stand. Only what is in here can be referred to: text inside `enum`,
    /// `const` or an unknown keyword is data.
    pub(super) places: HashMap<String, usize>,
    properties: usize,
    enum_values: usize,
}

/// Reads the whole shape.
pub(super) fn survey(shape: &Value, draft: Draft) -> Result<Survey<'_>, ShapeFault> {
    let mut survey = Survey {
        draft,
        found: Vec::new(),
        places: HashMap::new(),
        properties: 0,
        enum_values: 0,
    };
    survey.add(String::new(), shape, 0)?;
    let mut at = 0;
    // A list of work instead of recursion; it grows by what each subschema holds.
    while at < survey.found.len() {
        if let Value::Object(map) = survey.found[at].schema {
            for (key, value) in map {
                if let Some(row) = keyword::lookup(key, draft) {
                    survey.keyword(at, row, value)?;
                }
            }
            survey.draft_04_limits(at, map)?;
        }
        at += 1;
    }
    Ok(survey)
}

impl<'a> Survey<'a> {
    fn add(
        &mut self,
        pointer: String,
        schema: &'a Value,
        depth: usize,
    ) -> Result<usize, ShapeFault> {
        match schema {
            Value::Object(_) => {}
            Value::Bool(_) if self.draft > Draft::D4 => {}
            Value::Bool(_) => {
                return Err(ShapeFault::at(
                    &pointer,
                    "in draft-04 a schema is an object",
                ));
            }
            _ => {
                return Err(ShapeFault::at(
                    &pointer,
                    "here a schema is expected, that is an object such as {\"type\":\"string\"}",
                ));
            }
        }
        if depth > MAX_DEPTH {
            return Err(ShapeFault::at(
                &pointer,
                format!("subschemas stand deeper in each other than {MAX_DEPTH}"),
            ));
        }
        let number = self.found.len();
        self.places.insert(pointer.clone(), number);
        self.found.push(Found {
            pointer,
            schema,
            depth,
            one: HashMap::new(),
            many: HashMap::new(),
            named: HashMap::new(),
        });
        Ok(number)
    }

    fn below(
        &mut self,
        at: usize,
        tokens: &[&str],
        schema: &'a Value,
    ) -> Result<usize, ShapeFault> {
        let pointer = place(&self.found[at].pointer, tokens);
        let depth = self.found[at].depth + 1;
        self.add(pointer, schema, depth)
    }

    fn keyword(&mut self, at: usize, row: &Row, value: &'a Value) -> Result<(), ShapeFault> {
        let pointer = place(&self.found[at].pointer, &[row.name]);
        let must = |what: &str| {
            let hint = hint(row.name, value);
            Err(ShapeFault::at(
                &pointer,
                format!("`{}` must be {what}{hint}", row.name),
            ))
        };
        match (row.kind, value) {
            (Kind::Refused(reason), _) => {
                return Err(ShapeFault::at(
                    &pointer,
                    format!("`{}`: {reason}", row.name),
                ));
            }
            (Kind::Text, Value::String(name)) if row.name == "$schema" => {
                keyword::same_draft(&pointer, name, self.draft)?;
            }
            (Kind::Anything, _)
            | (Kind::Text | Kind::Pattern | Kind::Reference, Value::String(_))
            | (Kind::Flag, Value::Bool(_))
            | (Kind::List, Value::Array(_))
            | (Kind::Number, Value::Number(_)) => {}
            (Kind::Text | Kind::Pattern | Kind::Reference, _) => return must("text"),
            (Kind::Flag, _) => return must("true or false"),
            (Kind::List, _) => return must("a list"),
            (Kind::Number, _) => return must("a number"),
            (Kind::Step, Value::Number(number)) if Decimal::of(number).is_positive() => {}
            (Kind::Step, _) => return must("a number above 0"),
            (Kind::Count, Value::Number(number)) if Decimal::of(number).as_count().is_some() => {}
            (Kind::Count, _) => return must("a whole number of at least 0"),
            (Kind::Names(some), value) if names(value, some) => {}
            (Kind::Names(_), _) => return must("a list of different property names"),
            (Kind::NamesMap, Value::Object(map)) if map.values().all(|v| names(v, false)) => {}
            (Kind::NamesMap, _) => return must("an object of lists of different property names"),
            (Kind::FlagMap, Value::Object(map)) if map.values().all(Value::is_boolean) => {}
            (Kind::FlagMap, _) => return must("an object of booleans"),
            (Kind::Type, value) if types(value) => {}
            (Kind::Type, _) => {
                return must(
                    "one of null, boolean, integer, number, string, array, object (in small \
                     letters), or a list of different ones",
                );
            }
            (Kind::Enum, Value::Array(values)) => self.enumeration(&pointer, values)?,
            (Kind::Enum, _) => return must("a list of the allowed values"),
            (kind, value) => return self.schemas(at, row.name, kind, value, &pointer),
        }
        Ok(())
    }

    /// The keywords that hold schemas.
    fn schemas(
        &mut self,
        at: usize,
        name: &'static str,
        kind: Kind,
        value: &'a Value,
        pointer: &str,
    ) -> Result<(), ShapeFault> {
        let must = |what: &str| {
            let hint = hint(name, value);
            Err(ShapeFault::at(
                pointer,
                format!("`{name}` must be {what}{hint}"),
            ))
        };
        match (kind, value) {
            (Kind::Schemas | Kind::Items, Value::Array(items)) if !items.is_empty() => {
                let mut numbers = Vec::with_capacity(items.len());
                for (n, item) in items.iter().enumerate() {
                    numbers.push(self.below(at, &[name, &n.to_string()], item)?);
                }
                self.found[at].many.insert(name, numbers);
            }
            (Kind::Schemas, _) => return must("a list of at least one schema"),
            (Kind::Items, Value::Array(_)) => return must("a schema, or a list of at least one"),
            (Kind::SchemaMap | Kind::PatternMap | Kind::Dependencies(_), Value::Object(map)) => {
                if matches!(name, "properties" | "patternProperties") {
                    self.properties += map.len();
                    if self.properties > MAX_PROPERTIES {
                        return Err(ShapeFault::at(
                            pointer,
                            format!("the shape has more than {MAX_PROPERTIES} properties"),
                        ));
                    }
                }
                let mut numbers = Vec::with_capacity(map.len());
                for (key, schema) in map {
                    match (kind, schema) {
                        (Kind::Dependencies(some), Value::Array(_)) => {
                            if !names(schema, some) {
                                return must("an object of schemas or lists of property names");
                            }
                        }
                        _ => numbers.push((key.as_str(), self.below(at, &[name, key], schema)?)),
                    }
                }
                self.found[at].named.insert(name, numbers);
            }
            (Kind::SchemaMap | Kind::PatternMap, _) => {
                return must("an object that gives each name a schema");
            }
            (Kind::Dependencies(_), _) => return must("an object"),
            (Kind::Schema, Value::Array(_)) => return must("one schema"),
            (Kind::SchemaOrFlag, Value::Bool(_)) if self.draft == Draft::D4 => {
                // Not a schema in this draft, so nothing can refer to it.
                let number = self.found.len();
                let pointer = pointer.to_owned();
                self.found.push(Found {
                    pointer,
                    schema: value,
                    depth: self.found[at].depth + 1,
                    one: HashMap::new(),
                    many: HashMap::new(),
                    named: HashMap::new(),
                });
                self.found[at].one.insert(name, number);
            }
            _ => {
                let number = self.below(at, &[name], value)?;
                self.found[at].one.insert(name, number);
            }
        }
        Ok(())
    }

    fn enumeration(&mut self, pointer: &str, values: &[Value]) -> Result<(), ShapeFault> {
        if values.is_empty() {
            return Err(ShapeFault::at(pointer, "an empty `enum` takes no value"));
        }
        self.enum_values += values.len();
        if self.enum_values > MAX_ENUM_VALUES {
            return Err(ShapeFault::at(
                pointer,
                format!("the shape has more than {MAX_ENUM_VALUES} enum values"),
            ));
        }
        Ok(())
    }

    /// Draft-04: `exclusiveMinimum` says something about a `minimum` beside it.
    fn draft_04_limits(&self, at: usize, map: &Map<String, Value>) -> Result<(), ShapeFault> {
        for (flag, limit) in [
            ("exclusiveMinimum", "minimum"),
            ("exclusiveMaximum", "maximum"),
        ] {
            if self.draft == Draft::D4 && map.contains_key(flag) && !map.contains_key(limit) {
                return Err(ShapeFault::at(
                    &self.found[at].pointer,
                    format!("in draft-04 `{flag}` needs `{limit}` beside it"),
                ));
            }
        }
        Ok(())
    }
}

fn place(pointer: &str, tokens: &[&str]) -> String {
    let mut place = pointer.to_owned();
    for token in tokens {
        json::push_pointer(&mut place, token);
    }
    place
}

/// Whether a value is a list of different strings, with `some` of at least one.
fn names(value: &Value, some: bool) -> bool {
    let Value::Array(items) = value else {
        return false;
    };
    let mut seen = HashSet::new();
    (!some || !items.is_empty())
        && items
            .iter()
            .all(|item| item.as_str().is_some_and(|name| seen.insert(name)))
}

fn types(value: &Value) -> bool {
    let known = |value: &Value| value.as_str().and_then(keyword::type_bit).is_some();
    match value {
        Value::Array(_) => {
            names(value, true)
                && value
                    .as_array()
                    .is_some_and(|items| items.iter().all(known))
        }
        value => known(value),
    }
}

/// What the model probably meant, for the slips that models make most.
fn hint(name: &str, value: &Value) -> &'static str {
    match (name, value) {
        ("items", Value::Array(_)) => "; in 2020-12 a tuple is written as `prefixItems`",
        ("exclusiveMinimum" | "exclusiveMaximum", Value::Bool(_)) => {
            "; since draft-06 it is the limit itself"
        }
        ("required", Value::Bool(_)) => "; it stands at the object and names its properties",
        _ => "",
    }
}
