//! Assertions: the keywords that look at one value and at nothing below it by a schema.

use std::collections::HashSet;

use serde_json::Value;

use super::format::Format;
use super::frame::{Budget, Exhausted, Instance};
use super::pattern::Pattern;
use crate::json::{self, Decimal};

/// An assertion, and the keyword that is named when it fails.
#[derive(Debug)]
pub(super) struct Assertion {
    pub(super) keyword: &'static str,
    pub(super) test: Test,
}

/// What is asserted.
#[derive(Debug)]
pub(super) enum Test {
    /// A set of the bits of `keyword::type_bit`.
    Type(u8),
    Enum(Vec<Value>),
    Minimum(Decimal),
    Maximum(Decimal),
    Above(Decimal),
    Below(Decimal),
    MultipleOf(Decimal),
    MinLength(u64),
    MaxLength(u64),
    Pattern(Pattern),
    Format(Format),
    MinItems(u64),
    MaxItems(u64),
    Unique,
    MinProperties(u64),
    MaxProperties(u64),
    Required(Vec<String>),
    Dependent(Vec<(String, Vec<String>)>),
}

impl Test {
    /// Whether a value holds it; values of other types than it speaks of hold everything.
    pub(super) fn holds(&self, at: Instance<'_>, budget: &mut Budget) -> Result<bool, Exhausted> {
        match (self, at) {
            (Test::Type(set), _) => {
                budget.take(budget.number_cost)?;
                Ok(types(at) & set != 0)
            }
            (Test::Enum(values), _) => {
                budget.take(values.len() as u64 * budget.number_cost)?;
                Ok(values.iter().any(|value| match at {
                    Instance::Value(other) => json::equal(value, other),
                    Instance::Name(name) => value.as_str() == Some(name),
                }))
            }
            (Test::Required(names), Instance::Value(Value::Object(map))) => {
                budget.take(names.len() as u64)?;
                Ok(names.iter().all(|name| map.contains_key(name)))
            }
            (Test::Dependent(rules), Instance::Value(Value::Object(map))) => {
                budget.take(rules.iter().map(|(_, names)| 1 + names.len() as u64).sum())?;
                Ok(rules.iter().all(|(key, names)| {
                    !map.contains_key(key) || names.iter().all(|name| map.contains_key(name))
                }))
            }
            (Test::MinProperties(n), Instance::Value(Value::Object(map))) => {
                Ok(map.len() as u64 >= *n)
            }
            (Test::MaxProperties(n), Instance::Value(Value::Object(map))) => {
                Ok(map.len() as u64 <= *n)
            }
            (Test::MinItems(n), Instance::Value(Value::Array(items))) => {
                Ok(items.len() as u64 >= *n)
            }
            (Test::MaxItems(n), Instance::Value(Value::Array(items))) => {
                Ok(items.len() as u64 <= *n)
            }
            (Test::Unique, Instance::Value(Value::Array(items))) => unique(items, budget),
            (_, Instance::Value(Value::Number(number))) => {
                budget.take(budget.number_cost)?;
                self.holds_for_number(&Decimal::of(number), budget)
            }
            _ => match at.as_str() {
                Some(text) => self.holds_for_text(at, text, budget),
                None => Ok(true),
            },
        }
    }

    fn holds_for_number(&self, number: &Decimal, budget: &mut Budget) -> Result<bool, Exhausted> {
        Ok(match self {
            Test::Minimum(limit) => number >= limit,
            Test::Maximum(limit) => number <= limit,
            Test::Above(limit) => number > limit,
            Test::Below(limit) => number < limit,
            Test::MultipleOf(step) => {
                budget.take(number.multiple_cost(step))?;
                number.is_multiple_of(step)
            }
            _ => true,
        })
    }

    fn holds_for_text(
        &self,
        at: Instance<'_>,
        text: &str,
        budget: &mut Budget,
    ) -> Result<bool, Exhausted> {
        match self {
            Test::MinLength(n) | Test::MaxLength(n) => {
                budget.take(1 + text.len() as u64 / 64)?;
                let length = text.chars().count() as u64;
                Ok(if matches!(self, Test::MinLength(_)) {
                    length >= *n
                } else {
                    length <= *n
                })
            }
            Test::Pattern(pattern) => {
                budget.take(pattern.cost(text))?;
                Ok(at.with_value(|value| pattern.matches(value)))
            }
            Test::Format(format) => {
                budget.take(1 + text.len() as u64 / 16)?;
                Ok(at.with_value(|value| format.holds(value)))
            }
            _ => Ok(true),
        }
    }
}

/// The types that a value has: a whole number is an integer too.
fn types(at: Instance<'_>) -> u8 {
    match at {
        Instance::Name(_) | Instance::Value(Value::String(_)) => 1 << 4,
        Instance::Value(Value::Null) => 1,
        Instance::Value(Value::Bool(_)) => 1 << 1,
        Instance::Value(Value::Number(number)) => {
            u8::from(Decimal::of(number).is_whole()) << 2 | 1 << 3
        }
        Instance::Value(Value::Array(_)) => 1 << 5,
        Instance::Value(Value::Object(_)) => 1 << 6,
    }
}

fn unique(items: &[Value], budget: &mut Budget) -> Result<bool, Exhausted> {
    let mut seen = HashSet::with_capacity(items.len());
    for item in items {
        // One text for all equal values makes this a matter of the list's size, not its square.
        let text = json::canonical(item);
        budget.take(1 + text.len() as u64 / 16)?;
        if !seen.insert(text) {
            return Ok(false);
        }
    }
    Ok(true)
}
