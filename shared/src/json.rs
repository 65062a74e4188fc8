//! JSON as it crosses a border: read strictly, compared by value, digested (SPEC 3.6).
//!
//! Nothing here goes through `f64`: numbers keep their digits, and two numbers are equal when
//! their values are, whatever their length. All walks are iterative, so that no input can
//! exhaust a stack.

mod decimal;
mod parse;

use std::fmt::Write as _;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

pub(crate) use decimal::Decimal;
pub use parse::{JsonFault, MAX_NESTING, parse};

/// Whether two values are the same JSON value: `1`, `1.0` and `1e0` are one number, a boolean is
/// never a number, and the order of an object's keys means nothing (SPEC 3.1).
pub fn equal(a: &Value, b: &Value) -> bool {
    let mut pairs = vec![(a, b)];
    while let Some(pair) = pairs.pop() {
        match pair {
            (Value::Null, Value::Null) => {}
            (Value::Bool(a), Value::Bool(b)) if a == b => {}
            (Value::String(a), Value::String(b)) if a == b => {}
            (Value::Number(a), Value::Number(b)) if a == b || Decimal::of(a) == Decimal::of(b) => {}
            (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
                pairs.extend(a.iter().zip(b));
            }
            (Value::Object(a), Value::Object(b)) if a.len() == b.len() => {
                for (key, value) in a {
                    let Some(other) = b.get(key) else {
                        return false;
                    };
                    pairs.push((value, other));
                }
            }
            _ => return false,
        }
    }
    true
}

/// One text for all equal values: keys sorted, numbers as `<digits>e<exponent>` without idle
/// zeros, no white space. It is JSON itself.
pub fn canonical(value: &Value) -> String {
    enum Part<'a> {
        Value(&'a Value),
        Key(&'a str),
        Mark(char),
    }
    let mut out = String::new();
    let mut parts = vec![Part::Value(value)];
    while let Some(part) = parts.pop() {
        match part {
            Part::Mark(mark) => out.push(mark),
            Part::Key(key) => {
                push_string(&mut out, key);
                out.push(':');
            }
            Part::Value(Value::Null) => out.push_str("null"),
            Part::Value(Value::Bool(flag)) => out.push_str(if *flag { "true" } else { "false" }),
            Part::Value(Value::Number(number)) => Decimal::of(number).push_to(&mut out),
            Part::Value(Value::String(text)) => push_string(&mut out, text),
            Part::Value(Value::Array(items)) => {
                out.push('[');
                parts.push(Part::Mark(']'));
                for (n, item) in items.iter().enumerate().rev() {
                    parts.push(Part::Value(item));
                    if n > 0 {
                        parts.push(Part::Mark(','));
                    }
                }
            }
            Part::Value(Value::Object(map)) => {
                out.push('{');
                parts.push(Part::Mark('}'));
                let mut entries: Vec<_> = map.iter().collect();
                entries.sort_unstable_by_key(|(key, _)| key.as_str());
                for (n, (key, value)) in entries.into_iter().enumerate().rev() {
                    parts.push(Part::Value(value));
                    parts.push(Part::Key(key));
                    if n > 0 {
                        parts.push(Part::Mark(','));
                    }
                }
            }
        }
    }
    out
}

fn push_string(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            c if c < ' ' => {
                // Writing to a String cannot fail.
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

/// SHA-256 of the canonical text, in hex: equal values have equal digests (PROTOCOL 3, the body
/// of a command).
pub fn digest(value: &Value) -> String {
    let hash = Sha256::digest(canonical(value).as_bytes());
    let mut hex = String::with_capacity(64);
    for byte in hash {
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}

/// What a model reads (SPEC 3.1): text as it is, anything else as compact JSON.
pub fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The size of a value, in the terms of the bounds of SPEC 3.5.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Measure {
    /// Values in it, itself included.
    pub(crate) nodes: u64,
    /// Lists and objects around its innermost value.
    pub(crate) nesting: usize,
    /// Characters of its longest number.
    pub(crate) longest_number: usize,
}

/// Measures a value; iterative, like everything here.
pub(crate) fn measure(value: &Value) -> Measure {
    let mut found = Measure {
        nodes: 0,
        nesting: 0,
        longest_number: 0,
    };
    let mut rest = vec![(value, 0)];
    while let Some((value, around)) = rest.pop() {
        found.nodes += 1;
        found.nesting = found.nesting.max(around);
        match value {
            Value::Number(number) => {
                found.longest_number = found.longest_number.max(number.as_str().len());
            }
            Value::Array(items) => rest.extend(items.iter().map(|item| (item, around + 1))),
            Value::Object(map) => rest.extend(map.values().map(|value| (value, around + 1))),
            _ => {}
        }
    }
    found
}

/// Appends one token to a JSON pointer (RFC 6901).
pub(crate) fn push_pointer(pointer: &mut String, token: &str) {
    pointer.push('/');
    for c in token.chars() {
        match c {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            c => pointer.push(c),
        }
    }
}

/// A text cut to `limit` characters, with `…` where something is missing.
pub(crate) fn clip(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

#[cfg(test)]
mod tests;
