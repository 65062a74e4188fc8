//! The strict reader: one JSON value, no key twice, bounded nesting, every digit kept.
//!
//! It is our own because `serde_json` keeps the last of two equal keys silently, recurses, and
//! under `arbitrary_precision` takes an object with its private key for a number.

use serde_json::{Map, Number, Value};

use super::{clip, push_pointer};

/// How deep lists and objects may stand in each other. `serde_json` reads 128 levels; the
/// difference is for the records that a value is stored in.
pub const MAX_NESTING: usize = 100;

/// Keys by which `serde_json` marks its own numbers and raw values while it deserialises.
const PRIVATE: &str = "$serde_json::private::";

/// Why bytes are no JSON value of ours (T0006). It names the place, and never holds a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
pub struct JsonFault {
    detail: String,
}

impl JsonFault {
    /// One sentence for the sender, with the place as a byte or a JSON pointer.
    pub fn detail(&self) -> &str {
        &self.detail
    }
}

/// Reads one JSON value, which must be the whole input.
///
/// # Errors
/// Not UTF-8, not JSON (RFC 8259), a lone surrogate, a key twice in one object (SPEC 3.6), a key
/// that is reserved, or nested deeper than [`MAX_NESTING`].
pub fn parse(bytes: &[u8]) -> Result<Value, JsonFault> {
    let text = std::str::from_utf8(bytes).map_err(|error| JsonFault {
        detail: format!("invalid UTF-8 at byte {}", error.valid_up_to()),
    })?;
    Reader {
        text,
        at: 0,
        open: Vec::new(),
    }
    .document()
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    open: Vec<Open>,
}

/// A list or object whose end has not been met.
enum Open {
    List(Vec<Value>),
    Object {
        map: Map<String, Value>,
        key: String,
    },
}

impl Reader<'_> {
    fn document(mut self) -> Result<Value, JsonFault> {
        loop {
            if let Some(value) = self.begin()?
                && let Some(whole) = self.close(value)?
            {
                return Ok(whole);
            }
        }
    }

    /// Reads a value that holds no other, or opens one that does.
    fn begin(&mut self) -> Result<Option<Value>, JsonFault> {
        match self.next_mark() {
            Some(mark @ (b'[' | b'{')) => {
                if self.open.len() == MAX_NESTING {
                    return Err(self.fault(&format!("nested deeper than {MAX_NESTING}")));
                }
                self.at += 1;
                if mark == b'[' {
                    if self.next_mark() == Some(b']') {
                        self.at += 1;
                        return Ok(Some(Value::Array(Vec::new())));
                    }
                    self.open.push(Open::List(Vec::new()));
                    return Ok(None);
                }
                if self.next_mark() == Some(b'}') {
                    self.at += 1;
                    return Ok(Some(Value::Object(Map::new())));
                }
                let map = Map::new();
                let key = self.key(&map)?;
                self.open.push(Open::Object { map, key });
                Ok(None)
            }
            Some(b'"') => Ok(Some(Value::String(self.string()?))),
            Some(b'-' | b'0'..=b'9') => self.number().map(Some),
            _ => {
                for (word, value) in [
                    ("true", Value::Bool(true)),
                    ("false", Value::Bool(false)),
                    ("null", Value::Null),
                ] {
                    if self.rest().starts_with(word.as_bytes()) {
                        self.at += word.len();
                        return Ok(Some(value));
                    }
                }
                Err(self.fault("a value is expected"))
            }
        }
    }

    /// Gives a finished value to what is open around it, and closes all that ends with it; the
    /// whole value when nothing is left open.
    fn close(&mut self, value: Value) -> Result<Option<Value>, JsonFault> {
        let mut value = value;
        loop {
            let mark = self.next_mark();
            match self.open.pop() {
                None if mark.is_none() => return Ok(Some(value)),
                None => return Err(self.fault("the value has ended, but more follows")),
                Some(Open::List(mut items)) => {
                    items.push(value);
                    match mark {
                        Some(b',') => {
                            self.at += 1;
                            self.open.push(Open::List(items));
                            return Ok(None);
                        }
                        Some(b']') => value = Value::Array(items),
                        _ => return Err(self.fault("`,` or `]` is expected")),
                    }
                }
                Some(Open::Object { mut map, key }) => {
                    map.insert(key, value);
                    match mark {
                        Some(b',') => {
                            self.at += 1;
                            let key = self.key(&map)?;
                            self.open.push(Open::Object { map, key });
                            return Ok(None);
                        }
                        Some(b'}') => value = Value::Object(map),
                        _ => return Err(self.fault("`,` or `}` is expected")),
                    }
                }
            }
            self.at += 1;
        }
    }

    /// Reads a key and its colon; `map` is the object so far.
    fn key(&mut self, map: &Map<String, Value>) -> Result<String, JsonFault> {
        if self.next_mark() != Some(b'"') {
            return Err(self.fault("a key is expected"));
        }
        let key = self.string()?;
        if key.starts_with(PRIVATE) {
            return Err(self.fault("this key is reserved"));
        }
        if map.contains_key(&key) {
            let mut pointer = self.pointer();
            push_pointer(&mut pointer, &key);
            return Err(JsonFault {
                detail: format!(
                    "the key at {} stands twice in its object",
                    clip(&pointer, 200)
                ),
            });
        }
        if self.next_mark() != Some(b':') {
            return Err(self.fault("`:` is expected"));
        }
        self.at += 1;
        Ok(key)
    }

    fn string(&mut self) -> Result<String, JsonFault> {
        let start = self.at;
        let bytes = self.text.as_bytes();
        let mut escaped = false;
        self.at += 1;
        loop {
            match bytes.get(self.at) {
                Some(b'"') => break,
                Some(b'\\') => {
                    escaped = true;
                    self.at += 2;
                }
                Some(0..=0x1f) => return Err(self.fault("a control character in a string")),
                Some(_) => self.at += 1,
                None => {
                    self.at = bytes.len();
                    return Err(self.fault("a string has no end"));
                }
            }
        }
        self.at += 1;
        let quoted = &self.text[start..self.at];
        if !escaped {
            return Ok(quoted[1..quoted.len() - 1].to_owned());
        }
        serde_json::from_str(quoted).map_err(|_| JsonFault {
            detail: format!(
                "the string at byte {start} holds a wrong escape or half of a surrogate pair"
            ),
        })
    }

    fn number(&mut self) -> Result<Value, JsonFault> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        self.text[start..self.at]
            .parse::<Number>()
            .map(Value::Number)
            .map_err(|_| self.fault("not a number"))
    }

    fn digits(&mut self) -> Result<(), JsonFault> {
        let count = self
            .rest()
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        if count == 0 {
            return Err(self.fault("a digit is expected"));
        }
        self.at += count;
        Ok(())
    }

    /// The next byte that is no white space, which stays unread.
    fn next_mark(&mut self) -> Option<u8> {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
        self.peek()
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn rest(&self) -> &[u8] {
        &self.text.as_bytes()[self.at..]
    }

    /// The place of the innermost open object.
    fn pointer(&self) -> String {
        let mut pointer = String::new();
        for open in &self.open {
            match open {
                Open::List(items) => push_pointer(&mut pointer, &items.len().to_string()),
                Open::Object { key, .. } => push_pointer(&mut pointer, key),
            }
        }
        pointer
    }

    fn fault(&self, what: &str) -> JsonFault {
        JsonFault {
            detail: format!("not JSON at byte {}: {what}", self.at),
        }
    }
}
