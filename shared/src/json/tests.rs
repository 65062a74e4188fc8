use proptest::prelude::*;
use serde_json::{Map, Number};

use super::*;

fn read(text: &str) -> Value {
    parse(text.as_bytes()).unwrap_or_else(|fault| panic!("{text}: {fault}"))
}

#[track_caller]
fn check_refused(bytes: &[u8], said: &str) {
    let fault = parse(bytes).expect_err("must be refused");
    assert!(fault.detail().contains(said), "{fault}");
}

#[test]
fn one_value_is_read_whole() {
    for text in [
        "null",
        " true\n",
        "-0",
        "[]",
        "{}",
        "[1,[2,{\"a\":{}}],\"x\"]",
        r#"{"a":"\u00e9\ud83d\ude00\n","":0}"#,
        "123456789012345678901234567890.123456789012345678901",
    ] {
        let ours = read(text);
        let theirs: Value = serde_json::from_str(text).unwrap();
        assert_eq!(ours, theirs, "{text}");
    }
    assert_eq!(
        read("12345678901234567890123.10").to_string(),
        "12345678901234567890123.10",
        "every digit is kept"
    );
}

#[test]
fn what_is_not_one_value_is_refused() {
    for text in [
        "",
        " ",
        "1 2",
        "[1,]",
        "[,1]",
        "{\"a\":1,}",
        "{\"a\"}",
        "{a:1}",
        "{1:1}",
        "01",
        "1.",
        ".5",
        "+1",
        "-",
        "1e",
        "1e+",
        "NaN",
        "nul",
        "truex",
        "'a'",
        "\"a",
        "\"\\x\"",
        "\"a\nb\"",
        "[",
        "{",
        "[1",
        "{\"a\":",
        "]",
        "\u{feff}1",
        "[1}",
        "{\"a\":1]",
        "\"\\",
        "0x1",
        "// 1\n1",
    ] {
        check_refused(text.as_bytes(), "byte");
    }
    check_refused(b"\"\xff\"", "UTF-8 at byte 1");
    check_refused(br#""\ud800""#, "surrogate");
    check_refused(br#"["\udc00\ud800"]"#, "surrogate");
}

#[test]
fn a_key_twice_is_refused_at_its_place() {
    check_refused(br#"{"a":1,"a":2}"#, "/a stands twice");
    check_refused(
        br#"{"a":[0,{"b/c":1,"b\u002fc":1}]}"#,
        "/a/1/b~1c stands twice",
    );
    read(r#"[{"a":1},{"a":1,"b":{"a":1}}]"#);
    let long = format!("{{\"{0}\":1,\"{0}\":2}}", "k".repeat(9000));
    assert!(parse(long.as_bytes()).unwrap_err().detail().len() < 400);
}

#[test]
fn the_private_keys_of_the_json_library_are_refused() {
    check_refused(br#"{"$serde_json::private::Number":"1"}"#, "reserved");
    check_refused(br#"[{"$serde_json::private::RawValue":"1"}]"#, "reserved");
    check_refused(
        br#"{"x":0,"\u0024serde_json::private::Number":7}"#,
        "reserved",
    );
    assert!(read(r#"{"$serde_json":"1"}"#).is_object());
}

#[test]
fn faults_never_echo_a_value() {
    for text in [
        r#"{"a":"secret" x}"#,
        r#"["secret"#,
        "secret",
        r#"["secret\x"]"#,
    ] {
        let fault = parse(text.as_bytes()).unwrap_err();
        assert!(!fault.detail().contains("secret"), "{fault}");
    }
}

#[test]
fn nesting_is_bounded_and_no_small_stack_overflows() {
    let run = std::thread::Builder::new().stack_size(256 * 1024);
    let done = run.spawn(|| {
        let nested = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
        let deepest = read(&nested(MAX_NESTING));
        assert!(equal(&deepest, &deepest.clone()));
        assert_eq!(canonical(&deepest), nested(MAX_NESTING));
        assert_eq!(text(&deepest), nested(MAX_NESTING));
        check_refused(nested(MAX_NESTING + 1).as_bytes(), "nested deeper");
        check_refused("[".repeat(60_000).as_bytes(), "nested deeper");
        check_refused("{\"a\":".repeat(10_000).as_bytes(), "nested deeper");
    });
    done.unwrap().join().unwrap();
}

#[track_caller]
fn check_equal(a: &str, b: &str, expected: bool) {
    let (a, b) = (read(a), read(b));
    assert_eq!(equal(&a, &b), expected, "{a} {b}");
    assert_eq!(equal(&b, &a), expected, "{b} {a}");
    assert_eq!(canonical(&a) == canonical(&b), expected, "{a} {b}");
    assert_eq!(digest(&a) == digest(&b), expected, "{a} {b}");
}

#[test]
fn equality_is_by_value() {
    for (a, b) in [
        ("1", "1.0"),
        ("1", "10e-1"),
        ("-0", "0.000e7"),
        ("100", "1E2"),
        ("0.10", "1e-1"),
        ("1e999999999", "10e999999998"),
        ("0e99999999999999999999", "0"),
        ("12345678901234567890123", "12345678901234567890123.0"),
        (
            "1e1000000000000000000000000000000000000000000",
            "10e999999999999999999999999999999999999999999",
        ),
        (
            "1e-1000000000000000000000000000000000000000000",
            "0.1e-999999999999999999999999999999999999999999",
        ),
        (
            "1e1000000000000000000000000000000000000",
            "10e999999999999999999999999999999999999",
        ),
        (r#"{"a":1,"b":[2]}"#, r#"{"b":[2.0],"a":1e0}"#),
        (r#""é""#, r#""\u00e9""#),
    ] {
        check_equal(a, b, true);
    }
    for (a, b) in [
        ("1", "true"),
        ("0", "false"),
        ("0", "null"),
        ("1", "\"1\""),
        ("1", "-1"),
        ("12345678901234567890123", "12345678901234567890124"),
        ("0.1", "0.1000000000000000055511151231257827"),
        ("1e999999999", "1e999999998"),
        ("1e400", "1e401"),
        (
            "1e1000000000000000000000000000000000000000001",
            "10e999999999999999999999999999999999999999999",
        ),
        ("[1,2]", "[2,1]"),
        ("[]", "{}"),
        ("{}", r#"{"a":null}"#),
        (r#"{"a":null}"#, r#"{"b":null}"#),
        (r#""a""#, r#""a ""#),
        (r#"["a","b"]"#, r#"["a,b"]"#),
        (r#"["a\",\"b"]"#, r#"["a","b"]"#),
    ] {
        check_equal(a, b, false);
    }
}

#[test]
fn numbers_of_many_digits_are_compared_whole() {
    let digits = "7".repeat(50_000);
    check_equal(&digits, &format!("{digits}.000"), true);
    check_equal(&digits, &format!("{digits}.0001"), false);
    let power = "9".repeat(20_000);
    check_equal(&format!("1e{power}"), &format!("1.0e{power}"), true);
    check_equal(&format!("1e{power}"), &format!("1e-{power}"), false);
    // One more than a power of only nines carries through all of them.
    check_equal(
        &format!("10e{power}"),
        &format!("1e1{}", "0".repeat(20_000)),
        true,
    );
}

#[track_caller]
fn decimal(text: &str) -> Decimal {
    Decimal::of(&text.parse::<Number>().unwrap())
}

#[test]
fn numbers_are_ordered_by_value() {
    let rising = [
        "-1e99999999999999999999999999999999999999999",
        "-1e400",
        "-12",
        "-1.5",
        "-1e-400",
        "0",
        "1e-99999999999999999999999999999999999999999",
        "1e-400",
        "0.01",
        "1.49",
        "1.5",
        "9",
        "10",
        "10.0001",
        "1e400",
        "1e401",
        "1e99999999999999999999999999999999999999999",
    ];
    for (n, a) in rising.iter().enumerate() {
        for (m, b) in rising.iter().enumerate() {
            assert_eq!(decimal(a).cmp(&decimal(b)), n.cmp(&m), "{a} {b}");
        }
    }
}

#[test]
fn multiples_are_exact() {
    let long = format!("1{}7", "0".repeat(60));
    let twice = format!("2{}14", "0".repeat(59));
    let far = "1e99999999999999999999999999999999999999999";
    for (number, step, expected) in [
        ("19.99", "0.01", true),
        ("1070468.14", "0.01", true),
        ("1.005", "0.01", false),
        ("0", "7", true),
        ("-9", "3", true),
        ("1", "1e-400", true),
        ("1e400", "1e-400", true),
        ("1e400", "3e-400", false),
        ("3e400", "3e-400", true),
        ("1e-400", "1e400", false),
        ("1e-400", "1", false),
        ("5", "10", false),
        ("1e3", "8", true),
        ("1e2", "8", false),
        ("0.75", "0.5", false),
        (far, "1024", true),
        (far, "3", false),
        ("1", far, false),
        (&twice, &long, true),
        (&long, &twice, false),
        (&format!("{twice}0"), &long, true),
        (&format!("{twice}1"), &long, false),
    ] {
        assert_eq!(
            decimal(number).is_multiple_of(&decimal(step)),
            expected,
            "{number} {step}"
        );
    }
    let cost = decimal("1e999999999").multiple_cost(&decimal("1e-999999999"));
    assert!(cost < 100, "{cost}");
}

#[test]
fn a_count_beyond_all_counts_is_the_largest() {
    assert_eq!(decimal("2.0").as_count(), Some(2));
    assert_eq!(decimal("3e2").as_count(), Some(300));
    assert_eq!(decimal("1e999999999").as_count(), Some(u64::MAX));
    assert_eq!(decimal("0e5").as_count(), Some(0));
    assert_eq!(decimal("0.5").as_count(), None);
    assert_eq!(decimal("-1").as_count(), None);
}

#[test]
fn a_model_reads_text_bare_and_the_rest_as_json() {
    assert_eq!(text(&read("\"a \\\"b\\\"\"")), "a \"b\"");
    assert_eq!(
        text(&read(r#"{ "b": 1.50, "a": [null] }"#)),
        r#"{"b":1.50,"a":[null]}"#
    );
}

fn any_json() -> impl Strategy<Value = Value> {
    let number = (any::<i32>(), -40_i32..40)
        .prop_map(|(digits, power)| Value::Number(format!("{digits}e{power}").parse().unwrap()));
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        number,
        "[a\"\\\\,]{0,3}".prop_map(Value::String),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::vec(("[ab:]{0,2}", inner), 0..4)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

/// The same value, written in another way.
fn rewritten(value: &Value) -> Value {
    match value {
        Value::Number(number) => {
            let (mantissa, power) = number.as_str().split_once('e').unwrap();
            let power: i64 = power.parse().unwrap();
            Value::Number(
                format!("{mantissa}.00e{power}")
                    .replace("00e", "000e")
                    .parse()
                    .unwrap(),
            )
        }
        Value::Array(items) => items.iter().map(rewritten).collect(),
        Value::Object(map) => {
            let turned: Map<_, _> = map
                .iter()
                .rev()
                .map(|(key, value)| (key.clone(), rewritten(value)))
                .collect();
            Value::Object(turned)
        }
        other => other.clone(),
    }
}

proptest! {
    #[test]
    fn equal_values_have_one_canonical_text(a in any_json(), b in any_json()) {
        prop_assert_eq!(equal(&a, &b), canonical(&a) == canonical(&b));
        let again = rewritten(&a);
        prop_assert!(equal(&a, &again));
        prop_assert_eq!(canonical(&a), canonical(&again));
        let read = parse(canonical(&a).as_bytes()).unwrap();
        prop_assert!(equal(&a, &read));
    }

    #[test]
    fn the_reader_agrees_with_serde_json(text in "[\\[\\]{}:,\"a0-9.eE+\\- tru\\\\]{0,12}") {
        let theirs: Result<Value, _> = serde_json::from_str(&text);
        match parse(text.as_bytes()) {
            Ok(ours) => prop_assert_eq!(ours, theirs.unwrap()),
            Err(fault) => prop_assert!(theirs.is_err() || fault.detail().contains("twice")),
        }
    }

    #[test]
    fn multiples_agree_with_whole_numbers(number in -100_000_i64..100_000, step in 1_i64..1000, power in -20_i64..20) {
        let a = decimal(&format!("{number}e{power}"));
        let b = decimal(&format!("{step}e{power}"));
        prop_assert_eq!(a.is_multiple_of(&b), number % step == 0);
        prop_assert_eq!(a.cmp(&b), number.cmp(&step));
    }
}
