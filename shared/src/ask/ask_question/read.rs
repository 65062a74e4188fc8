//! A model's input to `ask_question`, lenient where nothing is lost (SPEC 3.2).

use crate::ask::reading::{self, fault};
use serde_json::{Map, Value, json};
use std::collections::HashSet;

/// Checks a model's input and gives it the one form in which it is shown and answered: a list of
/// questions, each with an id, its text and choices of `{label, value}`.
///
/// # Errors
/// What is wrong, as the tool's answer to the model; nobody is asked then (SPEC 3.1).
pub fn read(input: &Value) -> Result<Value, String> {
    let given = listed(input)?;
    let mut questions = Vec::new();
    for (n, question) in given.iter().enumerate() {
        questions.push(read_question(question, &format!("/questions/{n}"))?);
    }
    name(&mut questions)?;
    let shown = json!({ "questions": questions });
    reading::within_bounds(&shown)?;
    Ok(shown)
}

/// The list of questions; a bare question, in place of the list or of the whole, is a list of one.
fn listed(input: &Value) -> Result<Vec<Value>, String> {
    let whole = reading::object(input, "")?;
    match reading::field(&whole, "questions") {
        Some(one @ Value::Object(_)) => Ok(vec![one.clone()]),
        Some(many) => reading::list(many, "/questions", "questions"),
        None if whole.contains_key("question") => Ok(vec![Value::Object(whole)]),
        None => Err(fault(
            "/questions",
            "is missing; it must be a list of questions.",
        )),
    }
}

fn read_question(question: &Value, at: &str) -> Result<Map<String, Value>, String> {
    let given = reading::object(question, at)?;
    let mut shown = Map::new();
    if let Some(id) = reading::optional_text(&given, at, "id")? {
        shown.insert("id".to_owned(), id.into());
    }
    let text = reading::text(&given, at, "question")?;
    shown.insert("question".to_owned(), text.into());
    if let Some(header) = reading::optional_text(&given, at, "header")? {
        shown.insert("header".to_owned(), header.into());
    }
    match reading::field(&given, "multiple") {
        None => {}
        Some(Value::Bool(multiple)) => {
            shown.insert("multiple".to_owned(), (*multiple).into());
        }
        Some(other) => {
            return Err(fault(
                &format!("{at}/multiple"),
                format!("must be true or false, not {}.", reading::kind(other)),
            ));
        }
    }
    shown.insert("choices".to_owned(), read_choices(&given, at)?.into());
    Ok(shown)
}

fn read_choices(question: &Map<String, Value>, at: &str) -> Result<Vec<Value>, String> {
    let at = format!("{at}/choices");
    let Some(given) = reading::field(question, "choices") else {
        return Err(fault(
            &at,
            "is missing; give at least one likely answer. The person can answer in their own \
             words all the same.",
        ));
    };
    let mut values = Vec::new();
    let mut shown = Vec::new();
    for (n, choice) in reading::list(given, &at, "choices")?.iter().enumerate() {
        let at = format!("{at}/{n}");
        let choice = read_choice(choice, &at)?;
        let value = choice.get("value").cloned();
        if values.contains(&value) {
            return Err(fault(
                &format!("{at}/value"),
                "is the value of another choice too; values must be unique within a question.",
            ));
        }
        values.push(value);
        shown.push(Value::Object(choice));
    }
    Ok(shown)
}

/// A choice; a text is label and value in one.
fn read_choice(choice: &Value, at: &str) -> Result<Map<String, Value>, String> {
    let mut shown = Map::new();
    // A text that is the JSON of a whole choice is one, or a person would read raw JSON.
    let given = match reading::wanted(choice, is_choice) {
        Some(Value::Object(given)) => given,
        _ => match choice {
            Value::String(text) if reading::is_blank(text) => {
                return Err(fault(at, "must not be blank."));
            }
            Value::String(text) => {
                shown.insert("label".to_owned(), text.clone().into());
                shown.insert("value".to_owned(), text.clone().into());
                return Ok(shown);
            }
            other => reading::object(other, at)?,
        },
    };
    let label = reading::text(&given, at, "label")?;
    shown.insert("label".to_owned(), label.into());
    let value = reading::text(&given, at, "value")?;
    shown.insert("value".to_owned(), value.into());
    if let Some(description) = reading::optional_text(&given, at, "description")? {
        shown.insert("description".to_owned(), description.into());
    }
    Ok(shown)
}

fn is_choice(value: &Value) -> bool {
    ["label", "value"]
        .iter()
        .all(|name| value.get(name).is_some_and(Value::is_string))
}

/// Checks that the given ids are unique, and names the questions that have none: `q` and the
/// question's place, or the next number that is free.
fn name(questions: &mut [Map<String, Value>]) -> Result<(), String> {
    let mut taken = HashSet::new();
    for (n, question) in questions.iter().enumerate() {
        if let Some(Value::String(id)) = question.get("id")
            && !taken.insert(id.clone())
        {
            return Err(fault(
                &format!("/questions/{n}/id"),
                "is the id of another question too; ids must be unique.",
            ));
        }
    }
    for (n, question) in questions.iter_mut().enumerate() {
        if question.contains_key("id") {
            continue;
        }
        let mut number = n + 1;
        while !taken.insert(format!("q{number}")) {
            number += 1;
        }
        question.shift_insert(0, "id".to_owned(), format!("q{number}").into());
    }
    Ok(())
}

#[cfg(test)]
mod tests;
