//! Reading typed fields out of what a client sent: a wrong type is T0006 and names the field,
//! never its value. Unknown fields are left alone, and `null` counts as left out but for `data`
//! and `input`.

use serde_json::{Map, Value};

use crate::refusal::Refusal;

/// The fields of a request or frame.
pub(crate) struct Fields<'a>(pub(crate) &'a Map<String, Value>);

impl Fields<'_> {
    /// A text that must be there.
    pub(crate) fn text(&self, name: &str) -> Result<String, Refusal> {
        self.optional_text(name)?
            .ok_or_else(|| Refusal::malformed(format!("The field {name} is missing.")))
    }

    /// A text that may be left out.
    pub(crate) fn optional_text(&self, name: &str) -> Result<Option<String>, Refusal> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(wrong(name, "a text")),
        }
    }

    /// A whole number that may be left out; what is out of range becomes the end of the range,
    /// which no ask has either.
    pub(crate) fn optional_count(&self, name: &str) -> Result<Option<u32>, Refusal> {
        let number = match self.0.get(name) {
            None | Some(Value::Null) => return Ok(None),
            Some(Value::Number(number)) => number,
            Some(_) => return Err(wrong(name, "a whole number")),
        };
        if let Some(count) = number.as_u64() {
            return Ok(Some(u32::try_from(count).unwrap_or(u32::MAX)));
        }
        match number.as_f64() {
            Some(float) if float.fract() == 0.0 && float <= 0.0 => Ok(Some(0)),
            Some(float) if float.fract() == 0.0 && float < f64::from(u32::MAX) => {
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "it is whole and in range"
                )]
                let count = float as u32;
                Ok(Some(count))
            }
            Some(float) if float.fract() == 0.0 => Ok(Some(u32::MAX)),
            _ => Err(wrong(name, "a whole number")),
        }
    }

    /// The number of a frame.
    pub(crate) fn seq(&self, name: &str) -> Result<u64, Refusal> {
        self.0
            .get(name)
            .and_then(Value::as_u64)
            .ok_or_else(|| wrong(name, "a whole number"))
    }

    /// A truth value with a default.
    pub(crate) fn flag(&self, name: &str, default: bool) -> Result<bool, Refusal> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(default),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(_) => Err(wrong(name, "true or false")),
        }
    }

    /// A list of texts that may be left out.
    pub(crate) fn texts(&self, name: &str) -> Result<Vec<String>, Refusal> {
        let list = match self.0.get(name) {
            None | Some(Value::Null) => return Ok(Vec::new()),
            Some(Value::Array(list)) => list,
            Some(_) => return Err(wrong(name, "a list of texts")),
        };
        list.iter()
            .map(|item| item.as_str().map(str::to_owned))
            .collect::<Option<_>>()
            .ok_or_else(|| wrong(name, "a list of texts"))
    }

    /// Any value, `null` among them; `None` where the key is left out.
    pub(crate) fn any(&self, name: &str) -> Option<Value> {
        self.0.get(name).cloned()
    }
}

fn wrong(name: &str, rule: &str) -> Refusal {
    Refusal::malformed(format!("The field {name} must be {rule}."))
}

/// A command's id: 1 to 128 visible ASCII characters (PROTOCOL 3).
pub(crate) fn check_cmd(cmd: &str) -> Result<(), Refusal> {
    if (1..=128).contains(&cmd.len()) && cmd.bytes().all(|byte| byte.is_ascii_graphic()) {
        Ok(())
    } else {
        Err(Refusal::malformed(
            "A command id must be 1 to 128 visible ASCII characters.",
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(json: &str) -> Result<Option<u32>, Refusal> {
        let map: Map<String, Value> = serde_json::from_str(json).unwrap();
        Fields(&map).optional_count("n")
    }

    #[test]
    fn counts_are_read_by_value() {
        assert_eq!(count(r"{}"), Ok(None));
        assert_eq!(count(r#"{"n":null}"#), Ok(None));
        assert_eq!(count(r#"{"n":2}"#), Ok(Some(2)));
        assert_eq!(count(r#"{"n":2.0}"#), Ok(Some(2)));
        assert_eq!(count(r#"{"n":-7}"#), Ok(Some(0)));
        assert_eq!(count(r#"{"n":1e30}"#), Ok(Some(u32::MAX)));
        assert_eq!(count(r#"{"n":18446744073709551616}"#), Ok(Some(u32::MAX)));
        for bad in [r#"{"n":1.5}"#, r#"{"n":"1"}"#, r#"{"n":true}"#] {
            let refusal = count(bad).unwrap_err();
            assert!(refusal.detail.contains("field n"), "{bad}");
        }
    }

    #[test]
    fn command_ids_are_visible_ascii() {
        assert!(check_cmd("0190-\"x\"").is_ok());
        assert!(check_cmd(&"a".repeat(128)).is_ok());
        for bad in ["", "a b", "\u{e9}", "a\n", &"a".repeat(129)] {
            assert!(check_cmd(bad).is_err(), "{bad:?}");
        }
    }
}
