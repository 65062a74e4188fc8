use super::*;
use crate::ask::reading::tests::anything;
use proptest::prelude::*;

fn json_of(text: &str) -> Value {
    json::parse(text.as_bytes()).unwrap()
}

/// An input as a model may send it, and what is shown of it.
#[track_caller]
fn shown(input: &str, expected: &str) {
    assert_eq!(read(&json_of(input)), Ok(json_of(expected)), "{input}");
}

/// An input that asks nobody, and words that the model must find in the text.
#[track_caller]
fn refused(input: &str, words: &[&str]) {
    let text = read(&json_of(input)).unwrap_err();
    for word in words {
        assert!(text.contains(word), "{input}: {text:?} lacks {word:?}");
    }
}

/// An input, one answer (or none at all), and what the model reads or the rule at its place.
#[track_caller]
fn check(input: &str, data: Option<&str>, expected: Result<&str, (&str, &str)>) {
    let input = read(&json_of(input)).unwrap();
    let data = data.map(json_of);
    let found = fit(&input, data.as_ref()).map(|answer| tells(&answer));
    match expected {
        Ok(text) => assert_eq!(found.as_deref(), Ok(text), "{data:?}"),
        Err((pointer, rule)) => {
            assert_eq!(found, Err(vec![Misfit::at(pointer, rule)]), "{data:?}");
        }
    }
}

const SIZES: &str = r#"{"question": "Size?", "choices": ["S", "M", "L"]}"#;
const OPEN: &str = r#"{"question": "A name for it?"}"#;

#[test]
fn the_offer_is_a_schema_that_takes_what_is_read() {
    let offer = offer();
    assert_eq!(offer.name, "question");
    assert_eq!(crate::ask::input::check_schema(&offer.parameters), Ok(()));
    for input in [SIZES, OPEN, r#"{"question": "?", "shape": {}}"#] {
        let input = json_of(input);
        let checked = crate::ask::input::check_input(&offer.parameters, &input);
        assert_eq!(checked, Ok(()), "{input}");
    }
}

#[test]
fn what_is_right_is_shown_as_it_is() {
    shown(SIZES, SIZES);
    shown(OPEN, OPEN);
    let both = r#"{"question": "n?", "choices": [1, 2.50], "shape": {"type": "number"}}"#;
    shown(both, both);
    let odd = r#"{"question": " x ", "choices": [null, "", 0, "0", false, [], {}]}"#;
    shown(odd, odd);
}

#[test]
fn what_a_model_slips_on_is_put_right() {
    shown(
        r#"{"question": "Size?", "choices": ["S", "M", "L"], "n": 1}"#,
        SIZES,
    );
    shown(
        r#"{"question": "Size?", "choices": "[\"S\", \"M\", \"L\"]"}"#,
        SIZES,
    );
    shown(r#""{\"question\": \"A name for it?\"}""#, OPEN);
    shown(
        r#"{"question": "A name for it?", "choices": null, "shape": null}"#,
        OPEN,
    );
    shown(
        r#"{"question": "n?", "shape": "{\"type\": \"integer\"}"}"#,
        r#"{"question": "n?", "shape": {"type": "integer"}}"#,
    );
}

#[test]
fn texts_that_look_like_json_stay_texts() {
    let looks = r#"{"question": "{\"a\":1}", "choices": ["[\"x\"]", "2"]}"#;
    shown(looks, looks);
    check(looks, Some(r#""2""#), Ok("2"));
    check(looks, Some("2"), Err(("", "choices")));
    let curly = r#"{"question": "Wirklich „alles“?", "choices": ["ja", "nein"]}"#;
    shown(curly, curly);
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    refused("null", &["the input", "object", "null"]);
    refused(r#""Size?""#, &["the input", "object", "text"]);
    refused("{}", &["/question", "missing"]);
    refused(r#"{"question": null}"#, &["/question", "missing"]);
    refused(r#"{"question": " \t"}"#, &["/question", "blank"]);
    refused(r#"{"question": "\u200b"}"#, &["/question", "blank"]);
    refused(r#"{"question": 5}"#, &["/question", "text", "a number"]);
    refused(
        r#"{"question": "?", "choices": []}"#,
        &["/choices", "1 to 100"],
    );
    refused(
        r#"{"question": "?", "choices": "S, M or L"}"#,
        &["/choices", "list", "text"],
    );
    refused(
        r#"{"question": "?", "choices": {"a": 1}}"#,
        &["/choices", "list"],
    );
    refused(
        r#"{"question": "?", "choices": ["a", 1, 1.0]}"#,
        &["/choices/2", "/choices/1", "equal"],
    );
    refused(
        r#"{"question": "?", "choices": [{"a": 1, "b": 2}, {"b": 2.0, "a": 1}]}"#,
        &["/choices/1", "/choices/0"],
    );
    refused(
        r#"{"question": "?", "shape": "a number"}"#,
        &["/shape", "text"],
    );
    refused(r#"{"question": "?", "shape": "[]"}"#, &["/shape", "text"]);
    refused(r#"{"question": "?", "shape": []}"#, &["/shape"]);
    refused(
        r#"{"question": "?", "shape": {"type": "int"}}"#,
        &["/shape"],
    );
    refused(
        r#"{"question": "?", "choices": [1, "2"], "shape": {"type": "integer"}}"#,
        &["/choices/1", "shape", "type"],
    );
}

#[test]
fn bounds_are_told() {
    let many: Vec<usize> = (0..=100).collect();
    let input = json!({"question": "?", "choices": many});
    let text = read(&input).unwrap_err();
    assert!(text.contains("/choices") && text.contains("101"), "{text}");
    let input = json!({"question": "x".repeat(reading::MOST_BYTES)});
    let text = read(&input).unwrap_err();
    assert!(text.contains("32768"), "{text}");
    let deep = "[".repeat(70) + &"]".repeat(70);
    let text = read(&json!({"question": "?", "choices": [deep, "a"]})).map(|_| ());
    assert_eq!(text, Ok(()), "a text is not decoded inside the list");
    let text = read(&json!({"question": "?", "choices": format!("[{deep}]")})).unwrap_err();
    assert!(text.contains("deep") && text.contains("64"), "{text}");
    let hundred: Vec<usize> = (0..100).collect();
    assert!(read(&json!({"question": "?", "choices": hundred})).is_ok());
}

#[test]
fn a_choice_is_compared_as_json() {
    check(SIZES, Some(r#""M""#), Ok("M"));
    check(SIZES, None, Err(("", "required")));
    for other in [
        "null",
        r#""""#,
        r#"" ""#,
        "[]",
        "{}",
        r#""M ""#,
        r#""m""#,
        r#"["M"]"#,
        r#"{"answer": "M"}"#,
        r#"{"data": "M"}"#,
        r#"{"answer": "XL", "custom": true}"#,
        "1",
        r#""XL""#,
    ] {
        check(SIZES, Some(other), Err(("", "choices")));
    }
    let mixed = r#"{"question": "?", "choices": [1, "1", null, true, {"a": [1, 2]}]}"#;
    for (data, told) in [
        ("1", "1"),
        ("1.0", "1.0"),
        (r#""1""#, "1"),
        ("null", "null"),
        ("true", "true"),
        (r#"{"a": [1.0, 2]}"#, r#"{"a":[1.0,2]}"#),
    ] {
        check(mixed, Some(data), Ok(told));
    }
    for other in ["2", r#""true""#, r#"{"a": [2, 1]}"#, "false"] {
        check(mixed, Some(other), Err(("", "choices")));
    }
}

#[test]
fn an_open_question_takes_text_that_says_something() {
    check(OPEN, None, Err(("", "required")));
    check(OPEN, Some("null"), Err(("", "type")));
    check(OPEN, Some("5"), Err(("", "type")));
    check(OPEN, Some(r#""""#), Err(("", "blank")));
    check(OPEN, Some(r#""  \n""#), Err(("", "blank")));
    check(OPEN, Some(r#""\u200b""#), Err(("", "blank")));
    // No text means a refusal, and none is trimmed or decoded.
    for text in [
        "Heron",
        "no",
        "skip",
        "The person refused this.",
        " a ",
        "{\"a\":1}",
    ] {
        check(OPEN, Some(&json!(text).to_string()), Ok(text));
    }
}

#[test]
fn a_shape_takes_what_fits() {
    let count = r#"{"question": "n?", "shape": {"type": "object",
        "properties": {"count": {"type": "integer", "minimum": 1},
            "price": {"type": "number"}, "note": {"type": "string"}},
        "required": ["count"]}}"#;
    check(count, None, Err(("", "required")));
    check(count, Some("null"), Err(("", "type")));
    check(count, Some("3"), Err(("", "type")));
    check(count, Some("{}"), Err(("", "required")));
    for wrong in [
        r#""5""#,
        r#""""#,
        r#""50abc""#,
        r#""0x10""#,
        r#""５""#,
        "null",
        "true",
    ] {
        let data = format!(r#"{{"count": {wrong}}}"#);
        check(count, Some(&data), Err(("/count", "type")));
    }
    check(count, Some(r#"{"count": 0}"#), Err(("/count", "minimum")));
    for wrong in [r#""""#, "null"] {
        let data = format!(r#"{{"count": 5, "price": {wrong}}}"#);
        check(count, Some(&data), Err(("/price", "type")));
    }
    check(count, Some(r#"{"count": 5}"#), Ok(r#"{"count":5}"#));
    check(count, Some(r#"{"count": 5.0}"#), Ok(r#"{"count":5.0}"#));
    check(
        count,
        Some(r#"{"count": 5, "note": ""}"#),
        Ok(r#"{"count":5,"note":""}"#),
    );
    let budget = r#"{"question": "?", "shape": {"type": ["number", "null"]}}"#;
    check(budget, None, Err(("", "required")));
    check(budget, Some("null"), Ok("null"));
    let text = r#"{"question": "?", "shape": {"type": "string"}}"#;
    check(text, Some(r#""""#), Ok(""));
}

#[test]
fn numbers_keep_their_digits() {
    let n = r#"{"question": "?", "shape": {"type": "number"}}"#;
    check(n, Some("19.990"), Ok("19.990"));
    check(
        n,
        Some("123456789012345678901234567890"),
        Ok("123456789012345678901234567890"),
    );
}

proptest! {
    #[test]
    fn nothing_panics_and_what_was_read_reads_the_same(input in anything(), data in anything()) {
        let _ = fit(&input, Some(&data));
        if let Ok(shown) = read(&input) {
            prop_assert_eq!(read(&shown), Ok(shown.clone()));
            for data in choices(&shown).iter().chain([&data]) {
                if let Ok(answer) = fit(&shown, Some(data)) {
                    prop_assert_eq!(fit(&shown, Some(&answer)), Ok(answer));
                }
            }
        }
    }

    #[test]
    fn every_choice_and_no_other_text_is_taken(picked in "[SML]|[a-z]{0,3}") {
        let input = json_of(SIZES);
        let taken = fit(&input, Some(&json!(picked))).is_ok();
        prop_assert_eq!(taken, ["S", "M", "L"].contains(&picked.as_str()));
    }
}
