//! Shapes and answers made to hurt: each ends within its budget, on a small stack. A budget is
//! counted in visits, so these tests measure no time.

use super::*;

/// Runs on the stack of a quarter of a mebibyte, an eighth of what an async worker has.
fn on_a_small_stack(run: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new()
        .stack_size(256 * 1024)
        .spawn(run)
        .unwrap()
        .join()
        .unwrap();
}

#[track_caller]
fn check(text: &str, answer: &str, expected: &[&str]) {
    assert_eq!(
        misfits(&shape(text), answer),
        expected,
        "{}",
        json::clip(text, 300)
    );
}

fn nested(n: usize, inner: &str) -> String {
    format!("{}{inner}{}", "[".repeat(n), "]".repeat(n))
}

#[test]
fn a_long_chain_of_references() {
    on_a_small_stack(|| {
        let chain = |links: usize, more: &str| {
            let all: Vec<_> = (0..links)
                .map(|n| format!(r##""{n}":{{"$ref":"#/$defs/{}"{more}}},"##, n + 1))
                .collect();
            let all = all.concat();
            format!(r##"{{"$ref":"#/$defs/0","$defs":{{{all}"{links}":{{"type":"null"}}}}}}"##)
        };
        check(&chain(550, ""), "null", &[]);
        check(&chain(550, ""), "1", &[" type"]);
        // Links that are met again at each level of the answer.
        let down = chain(250, r#","type":"array""#)
            .replace(r#"{"type":"null"}"#, r##"{"items":{"$ref":"#"}}"##);
        check(&down, &nested(100, ""), &[]);
        let fault = Shape::parse(&read(&chain(5000, ""))).unwrap_err();
        assert!(fault.to_string().contains("at most 16384"), "{fault}");
    });
}

#[test]
fn ladders_of_references() {
    let ladder = |rungs: usize, keyword: &str| {
        let all: Vec<_> = (0..rungs)
            .map(|n| {
                let next = format!(r##"{{"$ref":"#/$defs/{}"}}"##, n + 1);
                format!(r#""{n}":{{"{keyword}":[{next},{next}]}},"#)
            })
            .collect();
        let all = all.concat();
        format!(r##"{{"$ref":"#/$defs/0","$defs":{{{all}"{rungs}":{{"type":"null"}}}}}}"##)
    };
    for keyword in ["allOf", "anyOf", "oneOf"] {
        let fault = Shape::parse(&read(&ladder(30, keyword))).unwrap_err();
        assert!(fault.to_string().contains("references inlined"), "{fault}");
    }
    check(&ladder(10, "allOf"), "null", &[]);
    check(&ladder(10, "anyOf"), "1", &[" anyOf"]);
    // The shape times the answer is too much, before anything is visited.
    let wide = format!("[{}]", vec!["1"; 1000].join(","));
    check(&ladder(10, "allOf"), &wide, &[" size"]);
}

#[test]
fn equal_branches_over_a_recursive_reference() {
    on_a_small_stack(|| {
        let branch = r##"{"type":"array","items":{"$ref":"#"}}"##;
        let three = format!(r#"{{"anyOf":[{branch},{branch},{branch}]}}"#);
        check(&three, &nested(4, "1"), &[" anyOf"]);
        check(&three, &nested(14, "1"), &[" size"]);
        check(&three, &nested(99, "1"), &[" size"]);
        check(&three, &nested(99, ""), &[]);
        // Without a combinator: one property claimed by several keywords.
        let claimed = r##"{"type":"object","properties":{"a":{"$ref":"#"}},"patternProperties":{"a":{"$ref":"#"},"^a":{"$ref":"#"}},"not":{"required":["b"]}}"##;
        let deep =
            |n: usize, inner: &str| format!("{}{inner}{}", r#"{"a":"#.repeat(n), "}".repeat(n));
        check(claimed, &deep(3, "{}"), &[]);
        check(claimed, &deep(60, "{}"), &[" size"]);
        let items = r##"{"type":"array","prefixItems":[{"$ref":"#"}],"contains":{"$ref":"#"},"minContains":0,"unevaluatedItems":{"$ref":"#"}}"##;
        check(items, &nested(60, ""), &[" size"]);
        let names = r##"{"allOf":[{"unevaluatedProperties":{"$ref":"#"}},{"unevaluatedProperties":{"$ref":"#"}}]}"##;
        check(names, &deep(60, "{}"), &[" size"]);
    });
}

#[test]
fn deep_answers_and_deep_data() {
    on_a_small_stack(|| {
        let deepest = nested(json::MAX_NESTING, "");
        check(r##"{"items":{"$ref":"#"},"type":"array"}"##, &deepest, &[]);
        check(
            &format!(r#"{{"const":{}}}"#, nested(90, "1")),
            &nested(90, "1.0"),
            &[],
        );
        check(
            &format!(r#"{{"const":{}}}"#, nested(90, "1")),
            &nested(90, "2"),
            &[" const"],
        );
        check(
            r#"{"uniqueItems":true}"#,
            &format!("[{0},{0}]", nested(90, "")),
            &[" uniqueItems"],
        );
        // One that comes from elsewhere than our reader.
        let too_deep = (0..400).fold(Value::Null, |value, _| Value::Array(vec![value]));
        assert!(Shape::parse(&too_deep).is_err());
        let misfits = shape("{}").check(&too_deep).unwrap_err();
        assert_eq!(misfits, [Misfit::at("", "size")]);
    });
}

#[test]
fn numbers_of_absurd_size() {
    check(r#"{"multipleOf":1e-400}"#, "1", &[]);
    check(r#"{"multipleOf":3e-400}"#, "1e400", &[" multipleOf"]);
    check(r#"{"multipleOf":1e400}"#, "1", &[" multipleOf"]);
    check(
        r#"{"multipleOf":7e-999999999999}"#,
        "1e999999999999",
        &[" multipleOf"],
    );
    check(
        r#"{"maximum":1e999999999,"type":"integer"}"#,
        "1e1000000000",
        &[" maximum"],
    );
    check(r#"{"const":1e999999999}"#, "10e999999998", &[]);
    let long = "9".repeat(60_000);
    check(
        r#"{"type":"integer","multipleOf":9,"minimum":0}"#,
        &long,
        &[],
    );
    check(
        r#"{"type":"integer","multipleOf":7}"#,
        &format!("{long}1"),
        &[" multipleOf"],
    );
    check(r#"{"maxLength":1e999999999}"#, "\"a\"", &[]);

    // Many long divisions, and many comparisons with a long number.
    let divisor = format!("1{}3", "0".repeat(8000));
    check(&format!(r#"{{"multipleOf":{divisor}}}"#), &long, &[" size"]);
    let consts = vec![r#"{"not":{"const":7}}"#; 100].join(",");
    check(&format!(r#"{{"allOf":[{consts}]}}"#), &long, &[]);
    let values = (0..200)
        .map(|n| n.to_string())
        .collect::<Vec<_>>()
        .join(",");
    let same = vec![r##"{"$ref":"#/$defs/e"}"##; 600].join(",");
    let many = format!(r#"{{"anyOf":[{same}],"$defs":{{"e":{{"enum":[{values}]}}}}}}"#);
    check(&many, &long, &[" size"]);
}

#[test]
fn wide_answers() {
    let numbers = (0..12_000)
        .map(|n| n.to_string())
        .collect::<Vec<_>>()
        .join(",");
    check(
        r#"{"uniqueItems":true,"items":{"type":"integer"}}"#,
        &format!("[{numbers}]"),
        &[],
    );
    check(
        r#"{"uniqueItems":true}"#,
        &format!("[{numbers},11999.0]"),
        &[" uniqueItems"],
    );
    check(
        r#"{"contains":{"const":11999}}"#,
        &format!("[{numbers}]"),
        &[],
    );
    let lists = vec![r##"{"$ref":"#/$defs/u"}"##; 80].join(",");
    let many = format!(r#"{{"allOf":[{lists}],"$defs":{{"u":{{"uniqueItems":true}}}}}}"#);
    check(&many, &format!("[{numbers}]"), &[" size"]);
    let again = vec![r#"{"unevaluatedItems":{"type":"integer"}}"#; 40].join(",");
    check(
        &format!(r#"{{"allOf":[{again}]}}"#),
        &format!("[{numbers}]"),
        &[" size"],
    );

    let object: Vec<_> = (0..6000).map(|n| format!(r#""k{n}":0"#)).collect();
    let object = format!("{{{}}}", object.join(","));
    check(
        r#"{"additionalProperties":{"type":"integer"},"propertyNames":{"pattern":"^k"}}"#,
        &object,
        &[],
    );
    let patterns: Vec<_> = (0..100)
        .map(|n| format!(r#""{n}$":{{"const":0}}"#))
        .collect();
    let patterns = format!(r#"{{"patternProperties":{{{}}}}}"#, patterns.join(","));
    check(&patterns, &object, &[" size"]);
    let dependent: Vec<_> = (0..400)
        .map(|n| format!(r#""k{n}":{{"type":"object"}}"#))
        .collect();
    let dependent = format!(r#"{{"dependentSchemas":{{{}}}}}"#, dependent.join(","));
    check(&dependent, &object, &[" size"]);
    check(&dependent, r#"{"k1":0,"k2":0}"#, &[]);
}

#[test]
fn long_texts() {
    let text = format!("\"{}\"", "ab".repeat(30_000));
    check(
        r#"{"minLength":60000,"maxLength":60000,"pattern":"^(?:ab)+$"}"#,
        &text,
        &[],
    );
    // No automaton of this one is small: the larger the pattern, the more a text costs.
    let dense = r#"{"pattern":"(?:\\p{L}|b)*a(?:\\p{L}|b){20}c"}"#;
    check(dense, &text, &[" size"]);
    check(dense, r#""abab""#, &[" pattern"]);
    let patterns = (0..300).map(|n| format!(r#"{{"pattern":"^[ab]{{{n}}}"}}"#));
    let patterns = format!(
        r#"{{"allOf":[{}]}}"#,
        patterns.collect::<Vec<_>>().join(",")
    );
    check(&patterns, &text, &[" size"]);
    let formats = vec![r#"{"anyOf":[{"format":"email"},true]}"#; 350].join(",");
    check(&format!(r#"{{"allOf":[{formats}]}}"#), &text, &[" size"]);
}

#[test]
fn the_work_is_shape_nodes_times_answer_nodes() {
    let shape = shape(r##"{"items":{"$ref":"#/$defs/a"},"$defs":{"a":{"items":{"$ref":"#"}}}}"##);
    // The list, its items, and what they refer to; the reference back is one more.
    assert_eq!(shape.inlined, 5);
    let list = |n: usize| Value::Array(vec![Value::Null; n]);
    assert!(shape.check(&list(199_999)).is_ok());
    assert_eq!(
        shape.check(&list(200_000)),
        Err(vec![Misfit::at("", "size")])
    );
}
