//! What is no shape of the profile, and that the fault says where and why.

use super::*;

#[track_caller]
fn check(text: &str, said: &str) {
    let fault = Shape::parse(&read(text)).expect_err(text).to_string();
    assert!(fault.contains(said), "{text}\n  {fault}\n  lacks: {said}");
    assert!(fault.chars().count() <= 602, "{fault}");
}

#[test]
fn what_is_no_schema_at_all() {
    for (text, said) in [
        ("null", "leave `shape` out"),
        ("\"a date\"", "must be a JSON Schema"),
        ("7", "must be a JSON Schema"),
        ("[{\"type\":\"string\"}]", "must be a JSON Schema"),
        ("false", "no answer fits"),
        (r#"{"size":{"type":"string"}}"#, "if `size` is a property"),
        (
            r#"{"size":"string","count":"integer"}"#,
            "if `size` is a property",
        ),
        (
            r#"{"properties":["size"]}"#,
            "at /properties: `properties` must be an object",
        ),
    ] {
        check(text, said);
    }
}

#[test]
fn what_plainly_takes_nothing() {
    for text in [
        r#"{"allOf":[{"type":"string"},false]}"#,
        r#"{"anyOf":[false,false]}"#,
        r#"{"oneOf":[false]}"#,
        r#"{"not":true}"#,
        r#"{"not":{}}"#,
        r##"{"$ref":"#/$defs/none","$defs":{"none":false}}"##,
    ] {
        check(text, "no answer fits");
    }
    check(r#"{"enum":[]}"#, "empty `enum`");
    check(
        r#"{"properties":{"a":{"enum":[]}}}"#,
        "/properties/a/enum: an empty `enum`",
    );
}

#[test]
fn slips_that_models_make() {
    for (text, said) in [
        (
            r#"{"type":"String"}"#,
            "at /type: `type` must be one of null",
        ),
        (r#"{"type":"date"}"#, "in small letters"),
        (r#"{"type":[]}"#, "`type` must be"),
        (r#"{"type":["string","string"]}"#, "`type` must be"),
        (r#"{"type":["string","int"]}"#, "`type` must be"),
        (r#"{"type":{"a":1}}"#, "`type` must be"),
        (r#"{"type":null}"#, "`type` must be"),
        (
            r#"{"properties":{"a":{"type":"int"}}}"#,
            "at /properties/a/type",
        ),
        (
            r#"{"properties":{"a":"string"}}"#,
            "at /properties/a: here a schema is expected",
        ),
        (
            r#"{"properties":{"a":{"required":true}}}"#,
            "stands at the object",
        ),
        (r#"{"required":"a"}"#, "list of different property names"),
        (
            r#"{"required":["a","b","a"]}"#,
            "list of different property names",
        ),
        (r#"{"required":[1]}"#, "list of different property names"),
        (r#"{"enum":"a,b"}"#, "`enum` must be a list"),
        (r#"{"enum":{"a":1}}"#, "`enum` must be a list"),
        (r#"{"minimum":"0"}"#, "`minimum` must be a number"),
        (r#"{"maximum":null}"#, "`maximum` must be a number"),
        (r#"{"minLength":-1}"#, "whole number of at least 0"),
        (r#"{"maxItems":1.5}"#, "whole number of at least 0"),
        (r#"{"minItems":"1"}"#, "whole number of at least 0"),
        (r#"{"multipleOf":0}"#, "a number above 0"),
        (r#"{"multipleOf":-0.5}"#, "a number above 0"),
        (r#"{"uniqueItems":"yes"}"#, "true or false"),
        (r#"{"items":[{"type":"string"}]}"#, "`prefixItems`"),
        (
            r#"{"items":"string"}"#,
            "at /items: here a schema is expected",
        ),
        (
            r#"{"prefixItems":{"type":"string"}}"#,
            "a list of at least one schema",
        ),
        (r#"{"anyOf":[]}"#, "a list of at least one schema"),
        (
            r#"{"allOf":{"type":"string"}}"#,
            "a list of at least one schema",
        ),
        (
            r#"{"oneOf":["string","null"]}"#,
            "at /oneOf/0: here a schema is expected",
        ),
        (
            r#"{"minimum":1,"exclusiveMinimum":true}"#,
            "the limit itself",
        ),
        (r#"{"title":["a"]}"#, "`title` must be text"),
        (r#"{"description":7}"#, "`description` must be text"),
        (r#"{"examples":"a"}"#, "`examples` must be a list"),
        (r#"{"format":true}"#, "`format` must be text"),
        (r#"{"pattern":5}"#, "`pattern` must be text"),
        (
            r#"{"additionalProperties":"no"}"#,
            "at /additionalProperties",
        ),
        (r#"{"dependentRequired":{"a":"b"}}"#, "`dependentRequired`"),
        (r#"{"not":[{"type":"string"}]}"#, "`not` must be one schema"),
        (r#"{"$defs":{"a":3}}"#, "at /$defs/a"),
        (r#"{"$defs":[]}"#, "`$defs` must be an object"),
    ] {
        check(text, said);
    }
}

#[test]
fn other_drafts() {
    let with = |draft: &str, rest: &str| format!(r#"{{"$schema":"{draft}",{rest}}}"#);
    for draft in [
        "https://json-schema.org/draft/next/schema",
        "http://json-schema.org/draft-03/schema#",
        "http://json-schema.org/schema#",
        "http://schema.invalid/mine",
        "json-schema.org/draft-07/schema",
        "draft-07",
        "",
    ] {
        check(&with(draft, r#""type":"string""#), "is unknown");
    }
    check(r#"{"$schema":7}"#, "must be text");
    let four = "http://json-schema.org/draft-04/schema#";
    check(&with(four, r#""exclusiveMinimum":true"#), "needs `minimum`");
    check(
        &with(four, r#""exclusiveMinimum":3,"minimum":1"#),
        "true or false",
    );
    check(
        &with(four, r#""required":[]"#),
        "list of different property names",
    );
    check(
        &with(four, r#""properties":{"a":true}"#),
        "a schema is an object",
    );
    check(&with(four, r#""id":"x""#), "names for shapes");
    check(
        &with(
            "https://json-schema.org/draft/2020-12/schema",
            &format!(r#""items":{{"$schema":"{four}"}}"#),
        ),
        "another draft",
    );
}

#[test]
fn references_that_leave_the_shape() {
    for reference in [
        "https://schema.invalid/a.json",
        "http://127.0.0.1:1/a.json",
        "file:///a.json",
        "a.json",
        "/a",
        "a.json#/b",
        "?a",
        "urn:a:b",
        "",
        "//schema.invalid/a",
        "https://json-schema.org/draft/2020-12/schema",
    ] {
        check(&format!(r#"{{"$ref":"{reference}"}}"#), "is not allowed");
        let below = format!(r#"{{"properties":{{"a":{{"$ref":"{reference}"}}}}}}"#);
        check(&below, "at /properties/a/$ref: the reference");
    }
}

#[test]
fn references_to_no_schema() {
    for reference in [
        "#/$defs/b",
        "#/$defs",
        "#/",
        "#/enum/0",
        "#/const",
        "#/default",
        "#/examples/0",
        "#/note/inner",
        "#/properties",
        "#/properties/$ref/$ref",
        "#/allOf/00",
        "#/allOf/1",
        "#/allOf/-",
        "#/$defs/a~2",
        "#/%zz",
        "#/%ff",
        "#/$defs/a/",
    ] {
        let text = format!(
            r#"{{"properties":{{"p":{{"$ref":"{reference}"}},"$ref":{{"type":"string"}}}},
                "enum":[{{"type":"string"}}],"const":{{"type":"string"}},"default":{{}},
                "examples":[{{}}],"note":{{"inner":{{}}}},"allOf":[{{}}],"$defs":{{"a":{{}}}}}}"#
        );
        check(&text, "names no schema in this shape");
    }
    check(r##"{"$ref":"#a","$defs":{"a":{}}}"##, "names an anchor");
    check(r#"{"$ref":7}"#, "`$ref` must be text");
    check(
        &format!(r##"{{"$ref":"#/{}"}}"##, "x".repeat(9000)),
        "names no schema",
    );
}

#[test]
fn names_and_dynamic_references() {
    for keyword in [
        "$id",
        "$anchor",
        "$dynamicAnchor",
        "$dynamicRef",
        "$recursiveRef",
        "$recursiveAnchor",
    ] {
        check(
            &format!(r##"{{"type":"object","{keyword}":"#a"}}"##),
            keyword,
        );
        let below = format!(r#"{{"items":{{"{keyword}":"https://schema.invalid/"}}}}"#);
        check(&below, &format!("at /items/{keyword}"));
        let seven = "http://json-schema.org/draft-07/schema#";
        check(
            &format!(r##"{{"$schema":"{seven}","{keyword}":"#a"}}"##),
            keyword,
        );
    }
}

#[test]
fn shapes_that_never_end() {
    for text in [
        r##"{"$ref":"#"}"##,
        r##"{"allOf":[{"$ref":"#"}],"type":"string"}"##,
        r##"{"anyOf":[{"type":"string"},{"$ref":"#"}]}"##,
        r##"{"oneOf":[{"type":"string"},{"$ref":"#"}]}"##,
        r##"{"not":{"$ref":"#"}}"##,
        r##"{"if":{"$ref":"#"},"then":{}}"##,
        r##"{"if":{},"then":{"$ref":"#"}}"##,
        r##"{"if":{},"else":{"$ref":"#"}}"##,
        r##"{"dependentSchemas":{"a":{"$ref":"#"}}}"##,
        r##"{"properties":{"a":{"$ref":"#/properties/a"}}}"##,
        r##"{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}"##,
        // Never used, and yet part of the shape.
        r##"{"type":"string","$defs":{"a":{"allOf":[{"$ref":"#/$defs/a"}]}}}"##,
    ] {
        check(text, "never ends");
    }
}

#[test]
fn patterns_beyond_the_linear_engine() {
    for (pattern, said) in [
        ("^(?=.*[a-z]).+$", "look-ahead"),
        ("^(?!x)", "look-ahead"),
        ("(?<=a)b", "look-behind"),
        ("(?<!a)b", "look-behind"),
        (r"^(a)\\1$", "back-references"),
        (r"^(?<x>a)\\k<x>$", "back-references"),
        ("(", "no regular expression"),
        ("[z-a]", "no regular expression"),
        ("*a", "no regular expression"),
        ("^((x{1,90}){1,90}){1,90}$", "counted repeats"),
        (r"^(\\p{L}{1,900}y){1,900}$", "counted repeats"),
        ("(a{99999999})z", "counted repeats"),
    ] {
        let text = format!(r#"{{"properties":{{"a":{{"pattern":"{pattern}"}}}}}}"#);
        check(&text, said);
        check(&text, "at /properties/a/pattern");
        let text = format!(r#"{{"patternProperties":{{"{pattern}":{{}}}}}}"#);
        check(&text, said);
    }
    check(
        &format!(r#"{{"pattern":"{}"}}"#, "a".repeat(257)),
        "at most 256",
    );
    let long = "a".repeat(257);
    check(
        &format!(r#"{{"patternProperties":{{"{long}":true}}}}"#),
        "at most 256",
    );
}

#[test]
fn bounds_over_the_whole_shape() {
    let nest = |n: usize| format!("{}{{}}{}", r#"{"items":"#.repeat(n), "}".repeat(n));
    shape(&nest(8));
    check(&nest(9), "deeper in each other than 8");
    // Depth follows no reference, and data has none.
    shape(r##"{"properties":{"a":{"items":{"items":{"items":{"items":{"$ref":"#"}}}}}}}"##);
    shape(&format!(r#"{{"const":{}}}"#, nest(60)));

    let properties = |n: usize, word: &str| {
        let all: Vec<_> = (0..n).map(|n| format!(r#""{word}{n}":true"#)).collect();
        all.join(",")
    };
    shape(&format!(r#"{{"properties":{{{}}}}}"#, properties(100, "p")));
    check(
        &format!(r#"{{"properties":{{{}}}}}"#, properties(101, "p")),
        "100 properties",
    );
    check(
        &format!(
            r#"{{"properties":{{{}}},"items":{{"properties":{{{}}}}}}}"#,
            properties(50, "p"),
            properties(51, "q")
        ),
        "100 properties",
    );

    let values = |n: usize| {
        format!(
            "[{}]",
            (0..n).map(|n| n.to_string()).collect::<Vec<_>>().join(",")
        )
    };
    shape(&format!(r#"{{"enum":{}}}"#, values(200)));
    check(&format!(r#"{{"enum":{}}}"#, values(201)), "200 enum values");
    check(
        &format!(
            r#"{{"anyOf":[{{"enum":{}}},{{"enum":{}}}]}}"#,
            values(150),
            values(51)
        ),
        "200 enum values",
    );

    let bytes = |n: usize| format!(r#"{{"title":"{}"}}"#, "t".repeat(n - 12));
    shape(&bytes(16 * 1024));
    check(&bytes(16 * 1024 + 1), "at most 16384");
    // White space is not counted: the bound is on the shape, not on how it was sent.
    shape(&format!("{}{}", " ".repeat(20_000), bytes(16 * 1024)));
}
