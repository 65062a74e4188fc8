//! Reads TOML value by value, so that whatever is wrong is told with its file, line and key.

use std::time::Duration;

use serde_json::{Map, Number, Value};
use toml::Spanned;
use toml::de::{DeInteger, DeTable, DeValue};

use super::duration;
use super::fault::ConfigFault;

/// The text of a file and its name, from which places are told.
pub(super) struct Document<'a> {
    file: &'a str,
    text: &'a str,
}

impl<'a> Document<'a> {
    pub(super) fn new(file: &'a str, text: &'a str) -> Self {
        Document { file, text }
    }

    pub(super) fn parse(&self) -> Result<Spanned<DeTable<'a>>, ConfigFault> {
        DeTable::parse(self.text).map_err(|fault| {
            let at = fault.span().map_or(0, |span| span.start);
            let rule = fault
                .message()
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" ");
            self.fault(at, "", rule)
        })
    }

    fn fault(&self, at: usize, key: &str, rule: impl Into<String>) -> ConfigFault {
        let before = &self.text.as_bytes()[..at.min(self.text.len())];
        ConfigFault::File {
            file: self.file.to_owned(),
            line: before.split(|&byte| byte == b'\n').count(),
            key: key.to_owned(),
            rule: rule.into(),
        }
    }
}

/// A table and where it is.
#[derive(Clone)]
pub(super) struct Section<'a> {
    document: &'a Document<'a>,
    path: String,
    at: usize,
    table: &'a DeTable<'a>,
}

/// A value and where it is; the line is that of its key.
#[derive(Clone)]
pub(super) struct Item<'a> {
    document: &'a Document<'a>,
    path: String,
    at: usize,
    value: &'a DeValue<'a>,
}

fn joined(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}

impl<'a> Section<'a> {
    pub(super) fn root(document: &'a Document<'a>, table: &'a DeTable<'a>) -> Self {
        Section {
            document,
            path: String::new(),
            at: 0,
            table,
        }
    }

    /// Refuses every key but these.
    pub(super) fn only(&self, known: &[&str]) -> Result<(), ConfigFault> {
        let unknown = |(key, _): &(&str, Item<'_>)| !known.contains(key);
        match self.entries().into_iter().find(unknown) {
            Some((_, item)) => {
                let rule = format!("unknown key; known here: {}", known.join(", "));
                Err(item.fault(rule))
            }
            None => Ok(()),
        }
    }

    /// The entries in the order of the file, which the map itself does not keep.
    pub(super) fn entries(&self) -> Vec<(&'a str, Item<'a>)> {
        let mut entries: Vec<_> = self
            .table
            .iter()
            .map(|(key, value)| {
                let item = Item {
                    document: self.document,
                    path: joined(&self.path, key.get_ref()),
                    at: key.span().start,
                    value: value.get_ref(),
                };
                (key.get_ref().as_ref(), item)
            })
            .collect();
        entries.sort_by_key(|(_, item)| item.at);
        entries
    }

    pub(super) fn get(&self, name: &str) -> Option<Item<'a>> {
        let (key, value) = self.table.get_key_value(name)?;
        Some(Item {
            document: self.document,
            path: joined(&self.path, name),
            at: key.span().start,
            value: value.get_ref(),
        })
    }

    pub(super) fn need(&self, name: &str) -> Result<Item<'a>, ConfigFault> {
        self.get(name)
            .ok_or_else(|| self.fault_at(name, "is missing"))
    }

    /// A fault at `place`, a path of keys below this table. The line is that of the deepest key of
    /// the path that is there.
    pub(super) fn fault_at(&self, place: &str, rule: impl Into<String>) -> ConfigFault {
        let mut at = self.at;
        let mut keys = place.split('.');
        let mut inner = keys.next().and_then(|key| self.get(key));
        while let Some(item) = inner {
            at = item.at;
            inner = keys.next().and_then(|key| item.below(key));
        }
        self.document.fault(at, &joined(&self.path, place), rule)
    }
}

impl<'a> Item<'a> {
    fn below(&self, key: &str) -> Option<Item<'a>> {
        match self.value {
            DeValue::Table(_) => self.section().ok()?.get(key),
            DeValue::Array(_) => self.list().ok()?.into_iter().nth(key.parse().ok()?),
            _ => None,
        }
    }

    pub(super) fn fault(&self, rule: impl Into<String>) -> ConfigFault {
        self.document.fault(self.at, &self.path, rule)
    }

    pub(super) fn text(&self) -> Result<&'a str, ConfigFault> {
        let text = self.value.as_str();
        text.ok_or_else(|| self.fault("must be a text in quotes"))
    }

    pub(super) fn flag(&self) -> Result<bool, ConfigFault> {
        let flag = self.value.as_bool();
        flag.ok_or_else(|| self.fault("must be true or false"))
    }

    /// A whole number of at least 0.
    pub(super) fn whole<N: TryFrom<u64>>(&self) -> Result<N, ConfigFault> {
        let whole = self
            .value
            .as_integer()
            .ok_or_else(|| self.fault("must be a whole number"))?;
        if whole.as_str().starts_with('-') {
            return Err(self.fault("must be greater than 0"));
        }
        u64::from_str_radix(whole.as_str(), whole.radix())
            .ok()
            .and_then(|number| N::try_from(number).ok())
            .ok_or_else(|| self.fault("is too large"))
    }

    pub(super) fn duration(&self) -> Result<Duration, ConfigFault> {
        match self.value {
            DeValue::String(text) => duration::parse(text).map_err(|rule| self.fault(rule)),
            DeValue::Integer(whole) if whole.as_str() == "0" => Ok(Duration::ZERO),
            _ => Err(self.fault(duration::RULE)),
        }
    }

    /// The value of the first pair whose text this is.
    pub(super) fn one_of<T: Copy>(&self, known: &[(&str, T)]) -> Result<T, ConfigFault> {
        let text = self.text()?;
        let found = known.iter().find(|(name, _)| *name == text);
        found.map(|(_, value)| *value).ok_or_else(|| {
            let names: Vec<_> = known.iter().map(|(name, _)| *name).collect();
            self.fault(format!("must be one of {}", names.join(", ")))
        })
    }

    pub(super) fn section(&self) -> Result<Section<'a>, ConfigFault> {
        let table = self.value.as_table();
        let table = table.ok_or_else(|| self.fault("must be a table"))?;
        Ok(Section {
            document: self.document,
            path: self.path.clone(),
            at: self.at,
            table,
        })
    }

    pub(super) fn list(&self) -> Result<Vec<Item<'a>>, ConfigFault> {
        let array = self.value.as_array();
        let array = array.ok_or_else(|| self.fault("must be a list"))?;
        let items = array.iter().enumerate().map(|(index, value)| Item {
            document: self.document,
            path: joined(&self.path, &index.to_string()),
            at: value.span().start,
            value: value.get_ref(),
        });
        Ok(items.collect())
    }

    pub(super) fn texts(&self) -> Result<Vec<&'a str>, ConfigFault> {
        self.list()?.iter().map(Item::text).collect()
    }

    /// The value as JSON. Keys keep the order of the file and numbers their digits.
    pub(super) fn json(&self) -> Result<Value, ConfigFault> {
        Ok(match self.value {
            DeValue::String(text) => Value::from(text.as_ref()),
            DeValue::Boolean(flag) => Value::from(*flag),
            DeValue::Integer(whole) => self.number(&decimal(whole))?,
            DeValue::Float(float) => self.number(float.as_str())?,
            DeValue::Datetime(_) => {
                let rule = "JSON has no dates and times; write it as a text in quotes";
                return Err(self.fault(rule));
            }
            DeValue::Array(_) => {
                let items = self.list()?;
                Value::Array(items.iter().map(Item::json).collect::<Result<_, _>>()?)
            }
            DeValue::Table(_) => {
                let mut object = Map::new();
                for (key, item) in self.section()?.entries() {
                    object.insert(key.to_owned(), item.json()?);
                }
                Value::Object(object)
            }
        })
    }

    fn number(&self, text: &str) -> Result<Value, ConfigFault> {
        let number: Result<Number, _> = text.trim_start_matches('+').parse();
        number
            .map(Value::Number)
            .map_err(|_| self.fault("must be a number that JSON has"))
    }
}

fn decimal(whole: &DeInteger<'_>) -> String {
    // Digits of another base that do not fit stay as they are, and are then no JSON number.
    match whole.radix() {
        10 => whole.as_str().to_owned(),
        radix => u128::from_str_radix(whole.as_str(), radix)
            .map_or_else(|_| whole.to_string(), |number| number.to_string()),
    }
}
