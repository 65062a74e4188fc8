//! Which answers fit, and where those that do not are told to differ.

use super::*;

/// Rows of an answer and its misfits, comma-separated; none where it fits.
#[track_caller]
fn check(text: &str, rows: &[(&str, &str)]) {
    let shape = shape(text);
    for (answer, expected) in rows {
        assert_eq!(
            misfits(&shape, answer).join(", "),
            *expected,
            "{text}\n  {answer}"
        );
    }
}

#[test]
fn numbers_by_value() {
    check(
        r#"{"type":"number","multipleOf":0.05}"#,
        &[
            ("4.35", ""),
            ("1.15", ""),
            ("4.36", " multipleOf"),
            ("123456789.95", ""),
            ("\"4.35\"", " type"),
            ("0", ""),
        ],
    );
    check(
        r#"{"type":"integer"}"#,
        &[
            ("7.0", ""),
            ("70e-1", ""),
            ("-0.0", ""),
            ("1e400", ""),
            ("7.5", " type"),
            ("\"7\"", " type"),
            ("false", " type"),
            ("1e-400", " type"),
        ],
    );
    check(
        r#"{"const":0}"#,
        &[
            ("-0.0", ""),
            ("0e9", ""),
            ("false", " const"),
            ("null", " const"),
            ("\"\"", " const"),
        ],
    );
    check(
        r#"{"enum":[12345678901234567890123,"2",{"a":1}]}"#,
        &[
            ("12345678901234567890123", ""),
            ("12345678901234567890123.0", ""),
            ("12345678901234567890124", " enum"),
            ("2", " enum"),
            ("{\"a\":1.0}", ""),
            ("{\"a\":true}", " enum"),
        ],
    );
    check(
        r#"{"minimum":12345678901234567890123,"exclusiveMaximum":12345678901234567890125}"#,
        &[
            ("12345678901234567890122.9", " minimum"),
            ("12345678901234567890123", ""),
            ("12345678901234567890124.9", ""),
            ("12345678901234567890125", " exclusiveMaximum"),
        ],
    );
    check(
        r#"{"uniqueItems":true}"#,
        &[
            ("[0,false,null,\"\",[],{}]", ""),
            ("[2,2.0]", " uniqueItems"),
            ("[{\"a\":1,\"b\":2},{\"b\":2e0,\"a\":1}]", " uniqueItems"),
            ("[\"1\",1]", ""),
        ],
    );
    check(
        r#"{"minItems":1.0,"maxItems":1e999999999}"#,
        &[("[]", " minItems"), ("[1]", "")],
    );
}

#[test]
fn keywords_of_their_draft() {
    let with = |draft: &str, rest: &str| format!(r#"{{"$schema":"{draft}",{rest}}}"#);
    let seven = "http://json-schema.org/draft-07/schema#";
    check(
        &with(
            seven,
            r#""items":[{"type":"boolean"}],"additionalItems":{"type":"null"}"#,
        ),
        &[
            ("[true,null]", ""),
            ("[]", ""),
            ("[1]", "/0 type"),
            ("[true,null,3]", "/2 type"),
        ],
    );
    check(
        &with(
            "http://json-schema.org/draft-04/schema",
            r#""maximum":9,"exclusiveMaximum":true"#,
        ),
        &[("8.9", ""), ("9.0", " exclusiveMaximum")],
    );
    check(
        &with(
            "https://json-schema.org/draft-06/schema#",
            r#""const":1,"if":true,"then":false"#,
        ),
        &[("1", ""), ("2", " const")],
    );
    check(
        &with("http://json-schema.org/draft-04/schema#", r#""const":1"#),
        &[("2", "")],
    );
    check(
        &with(
            seven,
            r#""dependencies":{"a":["b"],"c":{"required":["d"]}}"#,
        ),
        &[
            ("{}", ""),
            ("{\"a\":1}", " dependencies"),
            ("{\"c\":1}", " required"),
            ("{\"c\":1,\"d\":1}", ""),
        ],
    );
    check(
        r#"{"dependentRequired":{"a":["b"]},"dependentSchemas":{"c":{"required":["d"]}}}"#,
        &[
            ("{\"a\":1}", " dependentRequired"),
            ("{\"a\":1,\"b\":1}", ""),
            ("{\"c\":1}", " required"),
        ],
    );
    // A note in this draft.
    check(
        r#"{"type":"array","additionalItems":false}"#,
        &[("[1]", "")],
    );
    // Up to draft-07 a reference stands alone; since then what is beside it counts.
    let beside =
        r##""definitions":{"a":{"type":"string"}},"$ref":"#/definitions/a","maxLength":1"##;
    check(&with(seven, beside), &[("\"ab\"", ""), ("1", " type")]);
    check(
        &format!("{{{beside}}}"),
        &[("\"ab\"", " maxLength"), ("1", " type")],
    );
    for draft in [
        "https://json-schema.org/draft/2019-09/schema",
        "http://json-schema.org/draft/2020-12/schema#",
    ] {
        check(
            &with(draft, r#""contains":{"const":1},"maxContains":1"#),
            &[
                ("[2]", " contains"),
                ("[1,1]", " maxContains"),
                ("[1,2]", ""),
            ],
        );
    }
}

#[test]
fn formats_listed_are_asserted_and_others_are_notes() {
    for (format, fits, misfit) in [
        ("email", "me@host.example", "me at host"),
        ("uri", "mailto:me@host.example", "host.example"),
        ("date", "2028-02-29", "2027-02-29"),
        ("time", "23:59:59Z", "noon"),
        ("date-time", "2030-01-31T08:00:00+01:00", "2030-01-31"),
        ("uuid", "3b241101-e2bb-4255-8caf-4136c566a962", "3b241101"),
        ("ipv4", "192.0.2.7", "192.0.2.256"),
        ("ipv6", "2001:db8::7", "2001:db8:::7"),
        ("hostname", "a-b.example", "-a.example"),
    ] {
        for draft in [
            "",
            r#""$schema":"http://json-schema.org/draft-04/schema#","#,
        ] {
            let text = format!(r#"{{{draft}"format":"{format}"}}"#);
            let shape = shape(&text);
            assert!(
                misfits(&shape, &format!("\"{fits}\"")).is_empty(),
                "{text} {fits}"
            );
            assert_eq!(
                misfits(&shape, &format!("\"{misfit}\"")),
                [" format"],
                "{text}"
            );
            assert!(misfits(&shape, "17").is_empty(), "only text has a format");
        }
    }
    for note in [
        "regex",
        "duration",
        "json-pointer",
        "idn-email",
        "iri",
        "uri-reference",
        "int64",
        "phone",
        "password",
        "EMAIL",
        "",
    ] {
        check(
            &format!(r#"{{"format":"{note}"}}"#),
            &[("\"(\"", ""), ("\"\"", "")],
        );
    }
}

#[test]
fn unknown_keywords_are_notes() {
    check(
        r#"{"type":"object","properties":{"a":{"type":"string","nullable":true,"min":3,"optional":true}},"count":{"type":"number"}}"#,
        &[
            ("{}", ""),
            ("{\"a\":\"x\"}", ""),
            ("{\"a\":null}", "/a type"),
            ("{\"count\":\"x\"}", ""),
        ],
    );
    check("{}", &[("null", ""), ("[1]", "")]);
    check("true", &[("null", "")]);
}

#[test]
fn names_of_properties_are_data() {
    check(
        r#"{"properties":{"$ref":{"type":"string"},"$id":{"type":"integer"},"__proto__":{"type":"null"},"enum":{},"a/b~c":{"const":1}},"required":["toString"]}"#,
        &[
            (
                "{\"toString\":0,\"$ref\":\"#/x\",\"$id\":1,\"__proto__\":null,\"enum\":[]}",
                "",
            ),
            (
                "{\"toString\":0,\"$ref\":1,\"$id\":\"a\",\"__proto__\":1}",
                "/$ref type, /$id type, /__proto__ type",
            ),
            ("{\"toString\":0,\"a/b~c\":2}", "/a~1b~0c const"),
            ("{}", " required"),
        ],
    );
    check(
        r#"{"enum":[{"$ref":"https://schema.invalid"},{"$id":"x"}],"default":{"$anchor":1},"examples":[{"type":"int"}]}"#,
        &[
            ("{\"$ref\":\"https://schema.invalid\"}", ""),
            ("{\"$id\":\"x\"}", ""),
            ("{}", " enum"),
        ],
    );
    check(
        r##"{"$defs":{"a/b":{"type":"string"},"c~d":{"type":"null"},"e%f g":{"type":"integer"}},"prefixItems":[{"$ref":"#/$defs/a~1b"},{"$ref":"#/$defs/c~0d"},{"$ref":"#/$defs/e%25f%20g"},{"$ref":"#/prefixItems/0"}]}"##,
        &[
            ("[\"x\",null,3,\"y\"]", ""),
            ("[1,1,\"z\",1]", "/0 type, /1 type, /2 type, /3 type"),
        ],
    );
}

#[test]
fn closed_objects() {
    let a =
        r#"{"properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}"#;
    let b = a.replace("\"a\"", "\"b\"");
    // No answer fits, but it is a shape of the profile: it is asked, and can be refused.
    check(
        &format!(r#"{{"allOf":[{a},{b}]}}"#),
        &[
            ("{\"a\":\"x\"}", " required,  additionalProperties"),
            ("{\"a\":\"x\",\"b\":\"y\"}", " additionalProperties"),
        ],
    );
    // An unknown property is named by its parent, however it is called.
    check(
        r#"{"properties":{"a":{"additionalProperties":false}},"additionalProperties":{"type":"null"},"maxProperties":3}"#,
        &[
            (
                "{\"a\":{\"secret\":1,\"other\":2}}",
                "/a additionalProperties",
            ),
            ("{\"x\":1}", "/x type"),
        ],
    );
    check(
        r#"{"allOf":[{"properties":{"a":true}},{"patternProperties":{"^b":true}}],"unevaluatedProperties":false}"#,
        &[
            ("{\"a\":1,\"b1\":2}", ""),
            ("{\"c\":1}", " unevaluatedProperties"),
        ],
    );
    check(
        r#"{"anyOf":[{"required":["a"],"properties":{"a":true}},{"required":["b"],"properties":{"b":true}}],"unevaluatedProperties":false}"#,
        &[
            ("{\"a\":1,\"b\":2}", ""),
            ("{\"a\":1,\"c\":2}", " unevaluatedProperties"),
            ("{}", " anyOf"),
        ],
    );
    check(
        r#"{"prefixItems":[true],"contains":{"const":7},"unevaluatedItems":{"type":"string"}}"#,
        &[("[1,7,\"x\"]", ""), ("[1,7,8]", "/2 type")],
    );
    check(
        r#"{"propertyNames":{"maxLength":2}}"#,
        &[("{\"ab\":1}", ""), ("{\"secret\":1}", " propertyNames")],
    );
    check(
        r#"{"properties":{"a":false},"items":false}"#,
        &[
            ("{\"a\":1}", "/a properties"),
            ("[1]", " items"),
            ("[]", ""),
        ],
    );
}

#[test]
fn branches() {
    check(
        r#"{"if":{"required":["a"]},"then":{"required":["b"]},"else":{"maxProperties":1}}"#,
        &[
            ("{\"a\":1}", " required"),
            ("{\"a\":1,\"b\":1}", ""),
            ("{\"c\":1}", ""),
            ("{\"c\":1,\"d\":1}", " maxProperties"),
        ],
    );
    check(
        r#"{"oneOf":[{"type":"integer"},{"minimum":10}]}"#,
        &[
            ("3", ""),
            ("10.5", ""),
            ("12", " oneOf"),
            ("1.5", " oneOf"),
            ("\"x\"", ""),
        ],
    );
    check(
        r#"{"anyOf":[{"type":"null"},{"minLength":2,"type":"string"}]}"#,
        &[("null", ""), ("\"a\"", " anyOf")],
    );
    check(
        r#"{"not":{"enum":["a"]}}"#,
        &[("\"a\"", " not"), ("\"b\"", "")],
    );
}

#[test]
fn recursion_through_a_property_or_an_item() {
    let tree = r##"{"type":"object","properties":{"word":{"type":"string"},"below":{"type":"array","items":{"$ref":"#"}}},"required":["word"]}"##;
    check(
        tree,
        &[
            (
                r#"{"word":"a","below":[{"word":"b"},{"word":"c","below":[]}]}"#,
                "",
            ),
            (
                r#"{"word":"a","below":[{"word":"b","below":[{"below":[]}]}]}"#,
                "/below/0/below/0 required",
            ),
        ],
    );
    // A sum of sums: branches over a recursive reference are fine for a checker that counts.
    check(
        r##"{"anyOf":[{"type":"number"},{"type":"array","items":{"$ref":"#"},"minItems":2}]}"##,
        &[("[1,[2,3],[[4,5],6]]", ""), ("[1,[2,[3]]]", " anyOf")],
    );
    for text in [
        r##"{"patternProperties":{"^a":{"$ref":"#"}},"type":"object"}"##,
        r##"{"additionalProperties":{"$ref":"#"},"type":"object"}"##,
        r##"{"unevaluatedProperties":{"$ref":"#"},"type":"object"}"##,
    ] {
        check(
            text,
            &[
                ("{\"a\":{\"a\":{}}}", ""),
                ("{\"a\":{\"a\":1}}", "/a/a type"),
            ],
        );
    }
    for text in [
        r##"{"prefixItems":[{"$ref":"#"}],"type":"array"}"##,
        r##"{"unevaluatedItems":{"$ref":"#"},"type":"array"}"##,
    ] {
        check(text, &[("[[[]]]", ""), ("[[1]]", "/0/0 type")]);
    }
    check(
        r##"{"contains":{"$ref":"#"},"minContains":0,"type":["array","null"]}"##,
        &[("[[null,1]]", ""), ("1", " type")],
    );
}

#[test]
fn patterns_in_linear_time() {
    check(
        r#"{"pattern":"^(?:[a-z]+)+$"}"#,
        &[
            ("\"abc\"", ""),
            (
                "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa?\"",
                " pattern",
            ),
        ],
    );
    check(
        r#"{"pattern":"b"}"#,
        &[("\"abc\"", ""), ("\"ac\"", " pattern"), ("3", "")],
    );
    // The dialect of JavaScript: `\d` and `\w` are ASCII, `$` is the very end.
    check(
        r#"{"pattern":"^\\d+$"}"#,
        &[
            ("\"12\"", ""),
            ("\"\u{0664}\"", " pattern"),
            ("\"12\\n\"", " pattern"),
        ],
    );
    check(
        r#"{"pattern":"^\\w+$"}"#,
        &[("\"a_1\"", ""), ("\"\u{e9}\"", " pattern")],
    );
    check(
        r#"{"pattern":"^\\p{L}{1,40}$"}"#,
        &[("\"\u{e9}t\u{e9}\"", ""), ("\"1\"", " pattern")],
    );
    check(
        r#"{"minLength":2,"maxLength":2}"#,
        &[
            ("\"\u{1f600}\u{1f600}\"", ""),
            ("\"\u{1f600}\"", " minLength"),
        ],
    );
}

#[test]
fn misfits_are_few_and_echo_nothing() {
    let closed = shape(r#"{"items":{"type":"string"}}"#);
    let many = format!("[{}]", vec!["1"; 500].join(","));
    assert_eq!(misfits(&closed, &many).len(), MAX_MISFITS);

    let secret = "s3cret".repeat(100);
    let inner = shape(r#"{"additionalProperties":{"additionalProperties":{"type":"null"}}}"#);
    // A place too long to tell is told by the nearest one above it.
    assert_eq!(
        misfits(&inner, &format!(r#"{{"a":{{"{secret}":1}}}}"#)),
        ["/a type"]
    );
}
