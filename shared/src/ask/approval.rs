//! What may be sent along with an approval (SPEC 3.3).

use super::input::check_input;
use crate::code::Misfit;
use serde_json::Value;

/// Checks the data of an approval, or of a `redo`, which is never editable. No data approves the
/// call as it stands; on an editable tool data is the input to be used instead, and comes back.
///
/// # Errors
/// Where the data does not fit `schema`, the tool's schema of its input, or `unknown` where
/// nothing may be changed; the ask still waits (T0002).
pub fn fit(
    editable: bool,
    schema: Option<&Value>,
    data: Option<&Value>,
) -> Result<Option<Value>, Vec<Misfit>> {
    let Some(data) = data else {
        return Ok(None);
    };
    if !editable {
        return Err(vec![Misfit::at("", "unknown")]);
    }
    match schema {
        Some(schema) => check_input(schema, data)?,
        // Without a schema there is one thing left that every tool's input is: an object.
        None if !data.is_object() => return Err(vec![Misfit::at("", "type")]),
        None => {}
    }
    Ok(Some(data.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[allow(
        clippy::needless_pass_by_value,
        reason = "the rows of a table read better without references"
    )]
    fn check(editable: bool, data: Option<Value>, expected: Result<Option<Value>, (&str, &str)>) {
        let schema = json!({
            "type": "object",
            "properties": {"order": {"type": "string"}, "cents": {"type": "integer"}},
            "required": ["order"],
            "additionalProperties": false
        });
        let found = fit(editable, Some(&schema), data.as_ref());
        let expected = expected.map_err(|(pointer, rule)| vec![Misfit::at(pointer, rule)]);
        assert_eq!(found, expected, "editable {editable}, {data:?}");
    }

    #[test]
    fn an_approval_needs_no_data() {
        check(false, None, Ok(None));
        check(true, None, Ok(None));
    }

    #[test]
    fn only_an_editable_tool_takes_data() {
        for data in [json!(null), json!({}), json!({"order": "7"}), json!("yes")] {
            check(false, Some(data), Err(("", "unknown")));
        }
        let other = json!({"order": "7", "cents": 5});
        check(true, Some(other.clone()), Ok(Some(other)));
    }

    #[test]
    fn the_new_input_fits_the_tools_schema() {
        check(true, Some(json!(null)), Err(("", "type")));
        check(true, Some(json!({})), Err(("", "required")));
        check(true, Some(json!({"order": 7})), Err(("/order", "type")));
        check(
            true,
            Some(json!({"order": "7", "secret": "x"})),
            Err(("", "additionalProperties")),
        );
    }

    #[test]
    fn without_a_schema_the_input_is_still_an_object() {
        assert_eq!(
            fit(true, None, Some(&json!({"a": 1}))),
            Ok(Some(json!({"a": 1})))
        );
        assert_eq!(
            fit(true, None, Some(&json!([]))),
            Err(vec![Misfit::at("", "type")])
        );
    }
}
