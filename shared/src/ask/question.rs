//! The engine's own tool `question` (SPEC 3.1): one question, with choices, a shape or neither.

use super::ToolOffer;
use super::input::places;
use super::reading::{self, fault};
use crate::code::Misfit;
use crate::json;
use crate::shape::Shape;
use serde_json::{Map, Value, json};

/// The tool's name, which no tool of an agent may bear.
pub const NAME: &str = "question";

/// The tool as the model is offered it.
pub fn offer() -> ToolOffer {
    ToolOffer {
        name: NAME.to_owned(),
        description: "Asks the person you work for one question, and waits for the answer, which \
            is the result. Use it when you cannot go on without something that only the person \
            can tell or decide. Give `choices` for a decision between known answers, `shape` for \
            an answer with parts or of a certain type, and neither for free text. The person may \
            refuse to answer; the result says so then."
            .to_owned(),
        parameters: json!({
            "type": "object",
            "properties": {
                "question": {
                    "type": "string",
                    "description": "The question as the person reads it. It must make sense by \
                        itself."
                },
                "choices": {
                    "type": "array",
                    "minItems": 1,
                    "maxItems": reading::MOST_ENTRIES,
                    "items": {
                        "description": "One possible answer, best a short text; any JSON value. \
                            No two may be equal."
                    },
                    "description": "The person gives exactly one of these, and nothing else. \
                        Leave it out where other answers are possible."
                },
                "shape": {
                    "type": "object",
                    "description": "A JSON Schema that the answer must fit, such as \
                        {\"type\":\"object\",\"properties\":{\"count\":{\"type\":\"number\"}},\
                        \"required\":[\"count\"]}. Keep it small: at most 16 KiB, 8 levels, \
                        100 properties; references only within it. With `choices` too, each \
                        choice must fit it."
                }
            },
            "required": ["question"],
            "additionalProperties": false
        }),
    }
}

/// Checks a model's input and keeps what is shown of it: the known fields, decoded where they
/// came as text of JSON. A field that is `null` is left out.
///
/// # Errors
/// What is wrong, as the tool's answer to the model; nobody is asked then (SPEC 3.1).
pub fn read(input: &Value) -> Result<Value, String> {
    let given = reading::object(input, "")?;
    let mut shown = Map::new();
    let question = reading::text(&given, "", "question")?;
    shown.insert("question".to_owned(), question.into());
    if let Some(choices) = reading::field(&given, "choices") {
        let choices = reading::list(choices, "/choices", "answers to choose from")?;
        shown.insert("choices".to_owned(), choices.into());
    }
    if let Some(shape) = reading::field(&given, "shape") {
        shown.insert("shape".to_owned(), schema(shape)?);
    }
    let shown = Value::Object(shown);
    reading::within_bounds(&shown)?;
    distinct(choices(&shown))?;
    if let Some(shape) = shown.get("shape") {
        let shape = Shape::parse(shape).map_err(|f| fault("/shape", format!("is refused: {f}")))?;
        every_choice_fits(choices(&shown), &shape)?;
    }
    Ok(shown)
}

/// Checks an answer to `input`, which is as [`read`] gave it, and returns the answer.
///
/// # Errors
/// Where it does not fit; the ask still waits (T0002).
pub fn fit(input: &Value, data: Option<&Value>) -> Result<Value, Vec<Misfit>> {
    let Some(data) = data else {
        return Err(vec![Misfit::at("", "required")]);
    };
    let choices = choices(input);
    if !choices.is_empty() {
        // Every choice fits the shape, so one that is chosen needs no second look.
        return if choices.iter().any(|choice| json::equal(choice, data)) {
            Ok(data.clone())
        } else {
            Err(vec![Misfit::at("", "choices")])
        };
    }
    if let Some(shape) = input.get("shape") {
        // It was parsed before anybody was asked; one that no longer parses takes no answer.
        let shape = Shape::parse(shape).map_err(|_| vec![Misfit::at("", "shape")])?;
        return shape.check(data).map(|()| data.clone());
    }
    match data {
        Value::String(text) if reading::is_blank(text) => Err(vec![Misfit::at("", "blank")]),
        Value::String(_) => Ok(data.clone()),
        _ => Err(vec![Misfit::at("", "type")]),
    }
}

/// What the tool answers the model: text as it is, anything else as JSON.
pub fn tells(data: &Value) -> String {
    json::text(data)
}

fn choices(input: &Value) -> &[Value] {
    input
        .get("choices")
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// The shape as given, or as its text of JSON says. Other values than text go to the profile as
/// they are, which says best what is wrong with them.
fn schema(shape: &Value) -> Result<Value, String> {
    if !shape.is_string() {
        return Ok(shape.clone());
    }
    reading::wanted(shape, Value::is_object)
        .ok_or_else(|| fault("/shape", "must be a JSON Schema, an object, not text."))
}

fn distinct(choices: &[Value]) -> Result<(), String> {
    for (n, choice) in choices.iter().enumerate() {
        if let Some(first) = choices[..n].iter().position(|c| json::equal(c, choice)) {
            return Err(fault(
                &format!("/choices/{n}"),
                format!("equals /choices/{first}; no two choices may be equal."),
            ));
        }
    }
    Ok(())
}

fn every_choice_fits(choices: &[Value], shape: &Shape) -> Result<(), String> {
    for (n, choice) in choices.iter().enumerate() {
        if let Err(misfits) = shape.check(choice) {
            return Err(fault(
                &format!("/choices/{n}"),
                format!("does not fit the shape: {}.", places(&misfits)),
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
