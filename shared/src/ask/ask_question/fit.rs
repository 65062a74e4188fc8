//! Answers to `ask_question`: which fit, and what is filled in (SPEC 3.2).

use crate::ask::reading;
use crate::code::Misfit;
use serde_json::{Map, Value, json};

/// The most places that are named of one answer: more help nobody.
const MOST_MISFITS: usize = 100;

/// What answers to a question are checked against.
struct Asked<'a> {
    id: &'a str,
    multiple: bool,
    choices: Vec<Choice<'a>>,
}

#[derive(Clone, Copy)]
struct Choice<'a> {
    label: &'a str,
    value: &'a str,
}

/// Checks a whole answer to `input`, which is as [`read`](super::read()) gave it, and returns it
/// filled in, `answers` in the order of the questions.
///
/// # Errors
/// Every place that does not fit, at most 100; the ask still waits (T0002). A question without an
/// answer is named by its id, at `/answers`.
pub fn fit(input: &Value, data: Option<&Value>) -> Result<Value, Vec<Misfit>> {
    let given = match data {
        None => return Err(vec![Misfit::at("", "required")]),
        Some(Value::Object(whole)) => match whole.get("answers") {
            None => return Err(vec![Misfit::at("", "required")]),
            Some(Value::Array(answers)) => answers,
            Some(_) => return Err(vec![Misfit::at("/answers", "type")]),
        },
        Some(_) => return Err(vec![Misfit::at("", "type")]),
    };
    let asked = asked(input);
    let mut answered: Vec<Option<Value>> = vec![None; asked.len()];
    let mut named = vec![false; asked.len()];
    let mut misfits = Vec::new();
    for (n, answer) in given.iter().enumerate() {
        let at = format!("/answers/{n}");
        let of = match which(&asked, answer, &at) {
            Ok(of) if named[of] => Err(misfit(&asked[of], format!("{at}/questionId"), "twice")),
            other => other,
        };
        match of {
            Ok(of) => {
                named[of] = true;
                match fit_answer(&asked[of], answer, &at) {
                    Ok(filled) => answered[of] = Some(filled),
                    Err(found) => misfits.extend(found),
                }
            }
            Err(found) => misfits.push(found),
        }
    }
    for (question, named) in asked.iter().zip(named) {
        if !named {
            misfits.push(misfit(question, "/answers".to_owned(), "required"));
        }
    }
    if misfits.is_empty() {
        let answers: Vec<Value> = answered.into_iter().flatten().collect();
        return Ok(json!({ "answers": answers }));
    }
    misfits.truncate(MOST_MISFITS);
    Err(misfits)
}

/// Checks a draft: the one answer to question `n`, counted from 1. Returns the question's id and
/// the answer filled in, `questionId` too where it was left out.
///
/// # Errors
/// Every place that does not fit, as pointers into the one answer: `unknown` at the whole for an
/// `n` out of range, and at `/questionId` for another question's id (T0002).
pub fn fit_one(
    input: &Value,
    n: u32,
    data: Option<&Value>,
) -> Result<(String, Value), Vec<Misfit>> {
    let asked = asked(input);
    let question = usize::try_from(n)
        .ok()
        .and_then(|n| asked.get(n.checked_sub(1)?))
        .ok_or_else(|| vec![Misfit::at("", "unknown")])?;
    let one = |pointer: &str, rule| Err(vec![misfit(question, pointer.to_owned(), rule)]);
    let Some(data) = data else {
        return one("", "required");
    };
    match data.get("questionId") {
        None => {}
        Some(Value::String(id)) if id == question.id => {}
        Some(Value::String(_)) => return one("/questionId", "unknown"),
        Some(_) => return one("/questionId", "type"),
    }
    let filled = fit_answer(question, data, "")?;
    Ok((question.id.to_owned(), filled))
}

/// The whole answer made of `drafts`, by question id, when every question has one.
pub fn gather(input: &Value, drafts: &Map<String, Value>) -> Option<Value> {
    let asked = asked(input);
    let answers: Option<Vec<&Value>> = asked.iter().map(|asked| drafts.get(asked.id)).collect();
    // No question, no answer: an input that cannot be read is never settled by itself.
    let answers = answers.filter(|answers| !answers.is_empty())?;
    Some(json!({ "answers": answers }))
}

fn asked(input: &Value) -> Vec<Asked<'_>> {
    let questions = input.get("questions").and_then(Value::as_array);
    questions
        .into_iter()
        .flatten()
        .map(|question| Asked {
            id: text(question, "id"),
            multiple: question.get("multiple") == Some(&Value::Bool(true)),
            choices: question
                .get("choices")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .map(|choice| Choice {
                    label: text(choice, "label"),
                    value: text(choice, "value"),
                })
                .collect(),
        })
        .collect()
}

fn text<'a>(object: &'a Value, name: &str) -> &'a str {
    object.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Which question an answer names. An unknown id is not repeated in the misfit: it is the
/// answer's own text.
fn which(asked: &[Asked<'_>], answer: &Value, at: &str) -> Result<usize, Misfit> {
    let Value::Object(answer) = answer else {
        return Err(Misfit::at(at, "type"));
    };
    match answer.get("questionId") {
        None => Err(Misfit::at(at, "required")),
        Some(Value::String(id)) => asked
            .iter()
            .position(|asked| asked.id == id)
            .ok_or_else(|| Misfit::at(format!("{at}/questionId"), "unknown")),
        Some(_) => Err(Misfit::at(format!("{at}/questionId"), "type")),
    }
}

fn misfit(asked: &Asked<'_>, pointer: String, rule: &str) -> Misfit {
    Misfit {
        question: Some(asked.id.to_owned()),
        ..Misfit::at(pointer, rule)
    }
}

/// What an answer says, its types checked; unknown keys are ignored.
struct Said<'a> {
    answer: Option<&'a str>,
    chosen: Vec<Choice<'a>>,
    custom: Option<bool>,
}

fn fit_answer(asked: &Asked<'_>, answer: &Value, at: &str) -> Result<Value, Vec<Misfit>> {
    let said = say(asked, answer, at)?;
    let one = |place: &str, rule| Err(vec![misfit(asked, format!("{at}{place}"), rule)]);
    if said.answer.is_some_and(reading::is_blank) {
        return one("/answer", "blank");
    }
    if said.custom == Some(true) {
        return match said.answer {
            Some(text) => Ok(filled(asked, text, &said.chosen, Some(true))),
            None => one("", "required"),
        };
    }
    match (said.answer, said.chosen.as_slice()) {
        (None, []) => one("", "required"),
        (None, chosen) => Ok(filled(
            asked,
            &joined(chosen, |c| c.label),
            chosen,
            said.custom,
        )),
        (Some(text), []) => match meant(asked, text) {
            Some(choice) => Ok(filled(asked, choice.label, &[choice], said.custom)),
            None if said.custom == Some(false) => one("/answer", "choices"),
            None => Ok(filled(asked, text, &[], Some(true))),
        },
        (Some(text), chosen) => {
            let same = text == joined(chosen, |c| c.label) || text == joined(chosen, |c| c.value);
            match (same, said.custom) {
                (true, custom) => Ok(filled(asked, text, chosen, custom)),
                (false, Some(false)) => one("/answer", "choices"),
                (false, _) => Ok(filled(asked, text, chosen, Some(true))),
            }
        }
    }
}

/// Reads an answer's fields. `choice` on a question with `multiple`, and `choices` on one without,
/// are refused rather than ignored: what the person chose would be lost.
fn say<'a>(asked: &Asked<'a>, answer: &'a Value, at: &str) -> Result<Said<'a>, Vec<Misfit>> {
    let Value::Object(answer) = answer else {
        return Err(vec![misfit(asked, at.to_owned(), "type")]);
    };
    let mut said = Said {
        answer: None,
        chosen: Vec::new(),
        custom: None,
    };
    let mut misfits = Vec::new();
    let mut wrong = |place: &str, rule| misfits.push(misfit(asked, format!("{at}{place}"), rule));
    match answer.get("answer") {
        None => {}
        Some(Value::String(text)) => said.answer = Some(text),
        Some(_) => wrong("/answer", "type"),
    }
    match answer.get("custom") {
        None => {}
        Some(Value::Bool(custom)) => said.custom = Some(*custom),
        Some(_) => wrong("/custom", "type"),
    }
    match answer.get("choice") {
        None => {}
        Some(_) if asked.multiple => wrong("/choice", "unknown"),
        Some(given) => match chosen(asked, given) {
            Ok(choice) => said.chosen.push(choice),
            Err(rule) => wrong("/choice", rule),
        },
    }
    match answer.get("choices") {
        None => {}
        Some(_) if !asked.multiple => wrong("/choices", "unknown"),
        Some(Value::Array(given)) if given.is_empty() => wrong("/choices", "required"),
        Some(Value::Array(given)) => {
            for (n, given) in given.iter().enumerate() {
                match chosen(asked, given) {
                    Ok(choice) if said.chosen.iter().any(|c| c.value == choice.value) => {
                        wrong(&format!("/choices/{n}"), "twice");
                    }
                    Ok(choice) => said.chosen.push(choice),
                    Err(rule) => wrong(&format!("/choices/{n}"), rule),
                }
            }
        }
        Some(_) => wrong("/choices", "type"),
    }
    if misfits.is_empty() {
        Ok(said)
    } else {
        misfits.truncate(MOST_MISFITS);
        Err(misfits)
    }
}

fn chosen<'a>(asked: &Asked<'a>, given: &Value) -> Result<Choice<'a>, &'static str> {
    let value = given.as_str().ok_or("type")?;
    let choice = asked.choices.iter().find(|choice| choice.value == value);
    choice.copied().ok_or("choices")
}

/// The choice that a text alone means: the one of that value, or the only one of that label. With
/// `multiple`, text alone is always the person's own.
fn meant<'a>(asked: &Asked<'a>, text: &str) -> Option<Choice<'a>> {
    if asked.multiple {
        return None;
    }
    let choices = &asked.choices;
    if let Some(choice) = choices.iter().find(|choice| choice.value == text) {
        return Some(*choice);
    }
    let mut labelled = choices.iter().filter(|choice| choice.label == text);
    match (labelled.next(), labelled.next()) {
        (Some(choice), None) => Some(*choice),
        _ => None,
    }
}

fn joined<'a>(chosen: &[Choice<'a>], part: fn(&Choice<'a>) -> &'a str) -> String {
    chosen.iter().map(part).collect::<Vec<_>>().join(", ")
}

fn filled(asked: &Asked<'_>, answer: &str, chosen: &[Choice<'_>], custom: Option<bool>) -> Value {
    let mut filled = Map::new();
    filled.insert("questionId".to_owned(), asked.id.into());
    filled.insert("answer".to_owned(), answer.into());
    if asked.multiple && !chosen.is_empty() {
        let values: Vec<&str> = chosen.iter().map(|choice| choice.value).collect();
        filled.insert("choices".to_owned(), values.into());
    } else if let [choice] = chosen {
        filled.insert("choice".to_owned(), choice.value.into());
    }
    if let Some(custom) = custom {
        filled.insert("custom".to_owned(), custom.into());
    }
    Value::Object(filled)
}

#[cfg(test)]
mod tests;
