#![allow(
    clippy::needless_pass_by_value,
    reason = "the rows of a table read better without references"
)]

use super::*;
use crate::ask::ask_question::read;
use crate::ask::reading::tests::anything;
use proptest::prelude::*;

/// Three questions: `p` takes one choice, `m` several, `t` has one label twice.
fn input() -> Value {
    let choice = |label: &str, value: &str| json!({"label": label, "value": value});
    let input = json!({"questions": [
        {"id": "p", "question": "How urgent?",
            "choices": [choice("Low", "low"), choice("Other", "other"), choice("low", "lowest")]},
        {"id": "m", "question": "Which channels?", "multiple": true,
            "choices": [choice("E-mail", "email"), choice("Phone", "phone")]},
        {"id": "t", "question": "Which branch?",
            "choices": [choice("Main", "main-1"), choice("Main", "main-2")]},
    ]});
    read(&input).unwrap()
}

/// One answer to question `n`, and the answer filled in or the rule at its place.
#[track_caller]
fn check(n: u32, answer: &Value, expected: Result<Value, (&str, &str)>) {
    let input = input();
    let id = ["p", "m", "t"][n as usize - 1];
    let found = fit_one(&input, n, Some(answer));
    let expected = match expected {
        Ok(mut filled) => {
            filled["questionId"] = id.into();
            Ok((id.to_owned(), filled))
        }
        Err((pointer, rule)) => Err(vec![Misfit {
            question: Some(id.to_owned()),
            ..Misfit::at(pointer, rule)
        }]),
    };
    assert_eq!(found, expected, "{answer}");
}

#[test]
fn the_choice_or_the_text_of_one_means_that_choice() {
    let low = || Ok(json!({"answer": "Low", "choice": "low"}));
    check(1, &json!({"choice": "low"}), low());
    check(1, &json!({"answer": "Low"}), low());
    check(1, &json!({"answer": "Low", "choice": "low"}), low());
    // A value goes before another choice's label of the same text.
    check(1, &json!({"answer": "low"}), low());
    let kept = json!({"answer": "low", "choice": "low"});
    check(1, &kept, Ok(kept.clone()));
    let other = json!({"answer": "other", "choice": "other"});
    check(1, &other, Ok(other.clone()));
    check(
        1,
        &json!({"answer": "Low", "custom": false, "note": {"any": 1}}),
        Ok(json!({"answer": "Low", "choice": "low", "custom": false})),
    );
    check(
        1,
        &json!({"choice": "low", "custom": false}),
        Ok(json!({"answer": "Low", "choice": "low", "custom": false})),
    );
}

#[test]
fn other_text_is_the_persons_own() {
    let own = |text: &str| Ok(json!({"answer": text, "custom": true}));
    check(
        1,
        &json!({"answer": "by Friday", "custom": true}),
        own("by Friday"),
    );
    check(1, &json!({"answer": "by Friday"}), own("by Friday"));
    // No trimming and no folding: these are no choice.
    check(1, &json!({"answer": "Low "}), own("Low "));
    check(1, &json!({"answer": "LOW"}), own("LOW"));
    // Said to be custom, so it is no choice whatever it reads.
    check(1, &json!({"answer": "low", "custom": true}), own("low"));
    check(1, &json!({"answer": "Low", "custom": true}), own("Low"));
    // A label of two choices, and a choice of another question, mean none here.
    check(3, &json!({"answer": "Main"}), own("Main"));
    check(3, &json!({"answer": "low"}), own("low"));
    check(
        3,
        &json!({"answer": "main-2"}),
        Ok(json!({"answer": "Main", "choice": "main-2"})),
    );
    check(
        3,
        &json!({"answer": "Main", "choice": "main-2"}),
        Ok(json!({"answer": "Main", "choice": "main-2"})),
    );
    check(
        1,
        &json!({"answer": "x", "custom": false}),
        Err(("/answer", "choices")),
    );
    check(
        3,
        &json!({"answer": "Main", "custom": false}),
        Err(("/answer", "choices")),
    );
}

#[test]
fn a_choice_and_other_text_both_stand() {
    let both = Ok(json!({"answer": "low, but call", "choice": "low", "custom": true}));
    check(
        1,
        &json!({"answer": "low, but call", "choice": "low", "custom": true}),
        both.clone(),
    );
    check(
        1,
        &json!({"answer": "low, but call", "choice": "low"}),
        both,
    );
    check(
        1,
        &json!({"answer": "low, but call", "choice": "low", "custom": false}),
        Err(("/answer", "choices")),
    );
    // Another choice's text beside a choice is text, not that other choice.
    check(
        1,
        &json!({"answer": "Other", "choice": "low"}),
        Ok(json!({"answer": "Other", "choice": "low", "custom": true})),
    );
    check(
        1,
        &json!({"answer": "Low", "choice": "low", "custom": true}),
        Ok(json!({"answer": "Low", "choice": "low", "custom": true})),
    );
}

#[test]
fn one_answer_that_says_nothing_or_wrongly() {
    for (answer, pointer, rule) in [
        (json!({}), "", "required"),
        (json!({"custom": false}), "", "required"),
        (json!({"custom": true}), "", "required"),
        (json!({"choice": "low", "custom": true}), "", "required"),
        (json!({"answer": ""}), "/answer", "blank"),
        (json!({"answer": "", "custom": true}), "/answer", "blank"),
        (
            json!({"answer": " \u{200b}", "choice": "low"}),
            "/answer",
            "blank",
        ),
        (json!({"answer": null}), "/answer", "type"),
        (json!({"answer": 5}), "/answer", "type"),
        (
            json!({"answer": {"text": "x"}, "custom": true}),
            "/answer",
            "type",
        ),
        (json!({"answer": "x", "custom": "yes"}), "/custom", "type"),
        (json!({"answer": "x", "custom": null}), "/custom", "type"),
        (json!({"choice": 1}), "/choice", "type"),
        (json!({"choice": null}), "/choice", "type"),
        (json!({"choice": ["low"]}), "/choice", "type"),
        (json!({"choice": "Low"}), "/choice", "choices"),
        (
            json!({"answer": "low", "choice": "high"}),
            "/choice",
            "choices",
        ),
        (
            json!({"answer": "x", "choice": "high", "custom": true}),
            "/choice",
            "choices",
        ),
        (json!({"choices": ["low"]}), "/choices", "unknown"),
        (
            json!({"answer": "Low", "choices": []}),
            "/choices",
            "unknown",
        ),
        (json!("Low"), "", "type"),
        (json!(["Low"]), "", "type"),
        (json!(null), "", "type"),
    ] {
        check(1, &answer, Err((pointer, rule)));
    }
}

#[test]
fn several_choices_are_joined_by_their_labels() {
    let both = || Ok(json!({"answer": "Phone, E-mail", "choices": ["phone", "email"]}));
    check(2, &json!({"choices": ["phone", "email"]}), both());
    check(
        2,
        &json!({"answer": "Phone, E-mail", "choices": ["phone", "email"]}),
        both(),
    );
    let kept = json!({"answer": "phone", "choices": ["phone"]});
    check(2, &kept, Ok(kept.clone()));
    check(
        2,
        &json!({"answer": "after six", "choices": ["phone"]}),
        Ok(json!({"answer": "after six", "choices": ["phone"], "custom": true})),
    );
    for text in ["email", "E-mail", "by post"] {
        let own = json!({"answer": text, "custom": true});
        check(2, &json!({"answer": text}), Ok(own.clone()));
        check(2, &own, Ok(own.clone()));
        check(
            2,
            &json!({"answer": text, "custom": false}),
            Err(("/answer", "choices")),
        );
    }
}

#[test]
fn several_choices_that_are_wrong() {
    for (answer, pointer, rule) in [
        (json!({}), "", "required"),
        (json!({"choices": []}), "/choices", "required"),
        (
            json!({"answer": "x", "choices": []}),
            "/choices",
            "required",
        ),
        (json!({"choices": "email"}), "/choices", "type"),
        (json!({"choices": null}), "/choices", "type"),
        (json!({"choices": ["email", 1]}), "/choices/1", "type"),
        (
            json!({"choices": ["email", "fax"]}),
            "/choices/1",
            "choices",
        ),
        (
            json!({"choices": ["email", "phone", "email"]}),
            "/choices/2",
            "twice",
        ),
        (json!({"choice": "email"}), "/choice", "unknown"),
        (
            json!({"choices": ["email"], "custom": true}),
            "",
            "required",
        ),
        (
            json!({"answer": "x", "choices": ["email"], "custom": false}),
            "/answer",
            "choices",
        ),
    ] {
        check(2, &answer, Err((pointer, rule)));
    }
}

/// A whole answer, and its misfits as (question, pointer, rule).
#[track_caller]
fn misfits(data: Option<Value>, expected: &[(Option<&str>, &str, &str)]) {
    let expected: Vec<Misfit> = expected
        .iter()
        .map(|(question, pointer, rule)| Misfit {
            question: question.map(str::to_owned),
            ..Misfit::at(*pointer, *rule)
        })
        .collect();
    assert_eq!(fit(&input(), data.as_ref()), Err(expected), "{data:?}");
}

#[test]
fn a_whole_answer_comes_back_in_the_order_of_the_questions() {
    let data = json!({"note": "any", "answers": [
        {"questionId": "t", "answer": "neither"},
        {"questionId": "m", "choices": ["email"], "extra": 1},
        {"questionId": "p", "choice": "low"},
    ]});
    let filled = json!({"answers": [
        {"questionId": "p", "answer": "Low", "choice": "low"},
        {"questionId": "m", "answer": "E-mail", "choices": ["email"]},
        {"questionId": "t", "answer": "neither", "custom": true},
    ]});
    assert_eq!(fit(&input(), Some(&data)), Ok(filled.clone()));
    assert_eq!(fit(&input(), Some(&filled)), Ok(filled.clone()));
    let told = crate::ask::ask_question::tells(&filled);
    assert_eq!(serde_json::from_str::<Value>(&told).unwrap(), filled);
}

#[test]
fn every_question_is_answered_exactly_once() {
    let (p, m, t) = (
        json!({"questionId": "p", "choice": "low"}),
        json!({"questionId": "m", "choices": ["email"]}),
        json!({"questionId": "t", "answer": "x"}),
    );
    misfits(None, &[(None, "", "required")]);
    misfits(Some(json!(null)), &[(None, "", "type")]);
    misfits(Some(json!([p, m, t])), &[(None, "", "type")]);
    misfits(Some(json!({})), &[(None, "", "required")]);
    misfits(
        Some(json!({"answers": {"p": "low"}})),
        &[(None, "/answers", "type")],
    );
    misfits(
        Some(json!({"answers": []})),
        &[
            (Some("p"), "/answers", "required"),
            (Some("m"), "/answers", "required"),
            (Some("t"), "/answers", "required"),
        ],
    );
    misfits(
        Some(json!({"answers": [p, t]})),
        &[(Some("m"), "/answers", "required")],
    );
    misfits(
        Some(json!({"answers": [p, m, p, t]})),
        &[(Some("p"), "/answers/2/questionId", "twice")],
    );
    misfits(
        Some(json!({"answers": [p, m, t, {"questionId": "zz", "choice": "low"}]})),
        &[(None, "/answers/3/questionId", "unknown")],
    );
    misfits(
        Some(json!({"answers": [p, m, t, {"choice": "low"}, {"questionId": 1}, "x"]})),
        &[
            (None, "/answers/3", "required"),
            (None, "/answers/4/questionId", "type"),
            (None, "/answers/5", "type"),
        ],
    );
    // An answer that does not fit is not missing as well.
    misfits(
        Some(json!({"answers": [p, {"questionId": "m", "choices": ["fax"]}, t]})),
        &[(Some("m"), "/answers/1/choices/0", "choices")],
    );
}

#[test]
fn a_flood_of_misfits_is_cut() {
    let data = json!({"answers": vec![1; 5000]});
    assert_eq!(fit(&input(), Some(&data)).unwrap_err().len(), MOST_MISFITS);
    let data = json!({"choices": vec![1; 5000]});
    let found = fit_one(&input(), 2, Some(&data)).unwrap_err();
    assert_eq!(found.len(), MOST_MISFITS);
}

#[test]
fn a_draft_is_of_its_own_question() {
    let misfit = |question: Option<&str>, pointer: &str, rule: &str| {
        Err(vec![Misfit {
            question: question.map(str::to_owned),
            ..Misfit::at(pointer, rule)
        }])
    };
    let input = input();
    let low = json!({"questionId": "p", "choice": "low"});
    assert!(fit_one(&input, 1, Some(&low)).is_ok());
    for n in [0, 4, u32::MAX] {
        assert_eq!(fit_one(&input, n, Some(&low)), misfit(None, "", "unknown"));
    }
    let other = misfit(Some("m"), "/questionId", "unknown");
    assert_eq!(fit_one(&input, 2, Some(&low)), other);
    assert_eq!(fit_one(&input, 1, None), misfit(Some("p"), "", "required"));
    let number = json!({"questionId": 1, "choice": "low"});
    let of_type = misfit(Some("p"), "/questionId", "type");
    assert_eq!(fit_one(&input, 1, Some(&number)), of_type);
}

#[test]
fn drafts_are_a_whole_answer_when_the_last_is_there() {
    let input = input();
    let mut drafts = Map::new();
    let rows = [
        (2, json!({"choices": ["email"]})),
        (3, json!({"answer": "x"})),
        (1, json!({"choice": "low"})),
    ];
    for (n, answer) in rows {
        assert_eq!(gather(&input, &drafts), None);
        let (id, draft) = fit_one(&input, n, Some(&answer)).unwrap();
        drafts.insert(id, draft);
    }
    let whole = gather(&input, &drafts).unwrap();
    assert_eq!(fit(&input, Some(&whole)), Ok(whole.clone()));
    assert_eq!(whole["answers"][0]["questionId"], "p");
    assert_eq!(gather(&json!({}), &drafts), None);
}

fn answer() -> impl Strategy<Value = Value> {
    let texts = prop_oneof![
        Just(json!("low")),
        Just(json!("Low")),
        Just(json!("E-mail, Phone")),
        Just(json!("Main")),
        Just(json!(" ")),
        Just(json!("own words")),
    ];
    let values = prop_oneof![
        Just(json!("low")),
        Just(json!("other")),
        Just(json!("main-1")),
        Just(json!("none"))
    ];
    let several = proptest::collection::vec(
        prop_oneof![Just("email"), Just("phone"), Just("none")],
        0..3,
    );
    (
        proptest::option::of(texts),
        proptest::option::weighted(0.4, values),
        proptest::option::weighted(0.4, several),
        proptest::option::of(any::<bool>()),
    )
        .prop_map(|(answer, choice, choices, custom)| {
            let mut fields = Map::new();
            fields.extend(answer.map(|answer| ("answer".to_owned(), answer)));
            fields.extend(choice.map(|choice| ("choice".to_owned(), choice)));
            fields.extend(choices.map(|choices| ("choices".to_owned(), json!(choices))));
            fields.extend(custom.map(|custom| ("custom".to_owned(), json!(custom))));
            Value::Object(fields)
        })
}

proptest! {
    #[test]
    fn what_was_filled_in_fits_as_it_is(n in 1u32..4, answer in answer()) {
        let input = input();
        if let Ok((id, filled)) = fit_one(&input, n, Some(&answer)) {
            prop_assert_eq!(fit_one(&input, n, Some(&filled)), Ok((id, filled.clone())));
            // Own words stay own words, and are never blank.
            let text = filled["answer"].as_str().unwrap();
            prop_assert!(!reading::is_blank(text));
            if answer.get("custom") == Some(&json!(true)) {
                prop_assert_eq!(&filled["custom"], &json!(true));
                prop_assert_eq!(filled.get("choice"), answer.get("choice"));
                prop_assert_eq!(filled.get("choices"), answer.get("choices"));
                prop_assert_eq!(&filled["answer"], &answer["answer"]);
            }
        }
    }

    #[test]
    fn nothing_panics(asked in anything(), data in anything(), n in 0u32..4) {
        for input in [&asked, &input()] {
            if let Ok(answer) = fit(input, Some(&data)) {
                prop_assert_eq!(fit(input, Some(&answer)), Ok(answer));
            }
            let _ = fit_one(input, n, Some(&data));
            let _ = gather(input, data.as_object().unwrap_or(&Map::new()));
        }
    }
}
