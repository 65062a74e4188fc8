#![allow(
    clippy::needless_pass_by_value,
    reason = "the rows of a table read better without references"
)]

use super::*;
use crate::ask::reading::tests::anything;
use proptest::prelude::*;

/// An input as a model may send it, and the questions that are shown.
#[track_caller]
fn shown(input: Value, expected: Value) {
    assert_eq!(
        read(&input),
        Ok(json!({ "questions": expected })),
        "{input}"
    );
}

/// An input that asks nobody, and words that the model must find in the text.
#[track_caller]
fn refused(input: Value, words: &[&str]) {
    let text = read(&input).unwrap_err();
    for word in words {
        assert!(text.contains(word), "{input}: {text:?} lacks {word:?}");
    }
}

fn priority() -> Value {
    json!({
        "id": "p",
        "question": "How urgent?",
        "choices": [{"label": "Low", "value": "low"}, {"label": "High", "value": "high"}]
    })
}

/// One question with the given fields in place of, or beside, those of [`priority`].
fn with(fields: Value) -> Value {
    let mut question = priority();
    for (key, value) in fields.as_object().unwrap() {
        question[key] = value.clone();
    }
    json!({"questions": [question]})
}

#[test]
fn the_contract_is_shown_as_it_is() {
    shown(json!({"questions": [priority()]}), json!([priority()]));
    let full = json!({
        "id": "c",
        "question": "Which channels?",
        "header": "Channel",
        "multiple": true,
        "choices": [{"label": "E-mail", "value": "email", "description": "within a day"}]
    });
    shown(
        json!({"questions": [priority(), full]}),
        json!([priority(), full]),
    );
}

#[test]
fn one_question_need_not_be_a_list() {
    shown(json!({"questions": priority()}), json!([priority()]));
    shown(priority(), json!([priority()]));
}

#[test]
fn lists_and_objects_may_come_as_their_text() {
    let list = json!([priority()]).to_string();
    shown(json!({"questions": list}), json!([priority()]));
    let whole = json!({"questions": [priority()]}).to_string();
    shown(json!(whole), json!([priority()]));
    shown(
        json!({"questions": [priority().to_string()]}),
        json!([priority()]),
    );
    let choices = priority()["choices"].to_string();
    shown(with(json!({"choices": choices})), json!([priority()]));
    let encoded = json!([json!({"label": "Low", "value": "low"}).to_string()]);
    shown(
        with(json!({"choices": encoded})),
        with(json!({"choices": [{"label": "Low", "value": "low"}]}))["questions"].clone(),
    );
    // Once, into exactly what is wanted, and never a text that a person reads.
    refused(
        json!({"questions": priority().to_string()}),
        &["/questions", "list"],
    );
    refused(
        json!({"questions": json!(list).to_string()}),
        &["/questions", "list"],
    );
    let question = json!({"question": "[\"x\"]", "choices": ["[\"x\"]", "{\"a\":1}", "2"]});
    let kept = read(&question).unwrap();
    assert_eq!(kept["questions"][0]["question"], "[\"x\"]");
    assert_eq!(kept["questions"][0]["choices"][0]["label"], "[\"x\"]");
    assert_eq!(kept["questions"][0]["choices"][1]["value"], "{\"a\":1}");
}

#[test]
fn texts_are_label_and_value_in_one() {
    let mixed = json!(["Low", {"label": "High", "value": "high"}]);
    let choices = json!([{"label": "Low", "value": "Low"}, {"label": "High", "value": "high"}]);
    shown(
        with(json!({"choices": mixed})),
        with(json!({"choices": choices}))["questions"].clone(),
    );
}

#[test]
fn a_missing_id_is_the_next_free_number() {
    let rows: [(&[Option<&str>], &[&str]); 5] = [
        (&[None, None], &["q1", "q2"]),
        (&[Some("a"), None], &["a", "q2"]),
        (&[None, Some("q1")], &["q2", "q1"]),
        (&[None, Some("q1"), None], &["q2", "q1", "q3"]),
        (&[Some(" "), Some("q2")], &["q1", "q2"]),
    ];
    for (given, expected) in rows {
        let questions: Vec<Value> = given
            .iter()
            .map(|id| json!({"id": id, "question": "?", "choices": ["a"]}))
            .collect();
        let shown = read(&json!({ "questions": questions })).unwrap();
        let ids: Vec<&Value> = shown["questions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|question| &question["id"])
            .collect();
        assert_eq!(ids, expected, "{given:?}");
    }
}

#[test]
fn what_says_nothing_is_left_out() {
    shown(
        with(json!({"header": " ", "multiple": null, "placeholder": "x"})),
        json!([priority()]),
    );
    let described = json!([{"label": "Low", "value": "low", "description": null, "icon": 1},
        {"label": "High", "value": "high", "description": ""}]);
    shown(with(json!({"choices": described})), json!([priority()]));
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    refused(Value::Null, &["the input", "object"]);
    refused(json!([priority()]), &["the input", "object"]);
    refused(json!({}), &["/questions", "missing"]);
    refused(json!({"questions": []}), &["/questions", "1 to 100"]);
    refused(json!({"questions": 3}), &["/questions", "list", "a number"]);
    refused(
        json!({"questions": "ask about size"}),
        &["/questions", "list", "text"],
    );
    refused(json!({"questions": ["Size?"]}), &["/questions/0", "object"]);
    refused(
        with(json!({"question": ""})),
        &["/questions/0/question", "blank"],
    );
    refused(
        with(json!({"question": null})),
        &["/questions/0/question", "missing"],
    );
    refused(with(json!({"id": 7})), &["/questions/0/id", "text"]);
    refused(with(json!({"header": 7})), &["/questions/0/header", "text"]);
    refused(
        with(json!({"multiple": "yes"})),
        &["/questions/0/multiple", "true or false"],
    );
    refused(
        json!({"questions": [priority(), priority()]}),
        &["/questions/1/id", "unique"],
    );
}

#[test]
fn wrong_choices_are_told_with_their_place() {
    let rows = [
        (json!(null), "/questions/0/choices", "missing"),
        (json!([]), "/questions/0/choices", "1 to 100"),
        (json!("low or high"), "/questions/0/choices", "list"),
        (json!([5]), "/questions/0/choices/0", "object"),
        (json!(["a", ""]), "/questions/0/choices/1", "blank"),
        (json!(["a", "a"]), "/questions/0/choices/1/value", "unique"),
        (
            json!([{"value": "a"}]),
            "/questions/0/choices/0/label",
            "missing",
        ),
        (
            json!([{"label": "a"}]),
            "/questions/0/choices/0/value",
            "missing",
        ),
        (
            json!([{"label": "a", "value": 1}]),
            "/questions/0/choices/0/value",
            "text",
        ),
        (
            json!(["a", {"label": "b", "value": "a"}]),
            "/questions/0/choices/1/value",
            "unique",
        ),
        (
            json!([{"label": "a", "value": "a", "description": 1}]),
            "/questions/0/choices/0/description",
            "text",
        ),
    ];
    for (choices, place, rule) in rows {
        refused(with(json!({"choices": choices})), &[place, rule]);
    }
    // One label for two values is no fault, nor one value in two questions.
    let twins = json!([{"label": "a", "value": "1"}, {"label": "a", "value": "2"}]);
    assert!(read(&with(json!({"choices": twins}))).is_ok());
    let mut other = priority();
    other["id"] = json!("other");
    assert!(read(&json!({"questions": [priority(), other]})).is_ok());
}

#[test]
fn bounds_are_told() {
    let question = |n: usize| json!({"question": "?", "choices": (0..n).map(|n| n.to_string()).collect::<Vec<_>>()});
    assert!(read(&question(100)).is_ok());
    refused(question(101), &["/questions/0/choices", "101"]);
    refused(
        json!({"questions": vec![question(1); 101]}),
        &["/questions", "101"],
    );
    assert!(read(&json!({"questions": vec![question(1); 100]})).is_ok());
    // Short texts that grow when each becomes a choice count as they are shown.
    refused(
        json!({"questions": vec![question(100); 20]}),
        &["the input", "32768"],
    );
}

proptest! {
    #[test]
    fn nothing_panics_and_what_was_read_reads_the_same(input in anything()) {
        if let Ok(shown) = read(&input) {
            prop_assert_eq!(read(&shown), Ok(shown));
        }
    }

    #[test]
    fn ids_are_unique_whichever_are_missing(
        ids in proptest::collection::vec(proptest::option::of("q[1-9]"), 1..9)
    ) {
        let given: HashSet<_> = ids.iter().flatten().collect();
        let unique = given.len() == ids.iter().flatten().count();
        let questions: Vec<Value> = ids
            .iter()
            .map(|id| json!({"id": id, "question": "?", "choices": ["a"]}))
            .collect();
        let shown = read(&json!({ "questions": questions }));
        prop_assert_eq!(shown.is_ok(), unique);
        if let Ok(shown) = shown {
            let named = shown["questions"].as_array().unwrap();
            let names: HashSet<_> = named.iter().map(|question| &question["id"]).collect();
            prop_assert_eq!(names.len(), ids.len());
        }
    }
}
