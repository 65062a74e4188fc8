use super::*;

const NOW: f64 = 1_000_000.0;

fn auth() -> Auth {
    Auth::new(b"a secret", None, None).unwrap()
}

fn signed(claims: &Value) -> String {
    sign(Algorithm::HS256, claims, b"a secret")
}

fn sign(algorithm: Algorithm, claims: &Value, secret: &[u8]) -> String {
    let key = EncodingKey::from_secret(secret).unwrap();
    encode(&Header::new(algorithm), claims, &key).unwrap()
}

#[test]
fn a_token_of_ours_is_good_until_it_expires() {
    let roles = vec!["staff".to_owned()];
    let hour = Duration::from_hours(1);
    let token = auth().issue("ann", &roles, hour, NOW).unwrap();
    let found = auth().check(&token, NOW).unwrap();
    assert_eq!(found.caller.sub, "ann");
    assert_eq!(found.caller.roles, roles);
    assert!(!found.caller.system);
    assert!(auth().check(&token, NOW + 3604.0).is_ok());
    assert!(auth().check(&token, NOW + 3606.0).is_err());
    assert_eq!(found.closes_in(NOW), hour + GRACE);
    assert_eq!(found.closes_in(NOW + 5000.0), Duration::ZERO);
}

#[test]
fn every_claim_is_checked() {
    let exp = NOW + 60.0;
    let long = "s".repeat(257);
    for (claims, good) in [
        (json!({"sub": "ann", "exp": exp}), true),
        (json!({"sub": "ann", "exp": exp, "roles": []}), true),
        (json!({"sub": "ann", "exp": exp, "nbf": NOW + 2.0}), true),
        (json!({"sub": "ann", "exp": exp, "extra": {"a": 1.5}}), true),
        (json!({"sub": "ann"}), false),
        (json!({"sub": "ann", "exp": "1000060"}), false),
        (json!({"sub": "ann", "exp": null}), false),
        (json!({"sub": "ann", "exp": NOW - 60.0}), false),
        (json!({"sub": "ann", "exp": exp, "nbf": NOW + 60.0}), false),
        (json!({"sub": "ann", "exp": exp, "nbf": "now"}), false),
        (json!({"exp": exp}), false),
        (json!({"sub": "", "exp": exp}), false),
        (json!({"sub": 7, "exp": exp}), false),
        (json!({"sub": long, "exp": exp}), false),
        (json!({"sub": "ann", "exp": exp, "roles": "ops"}), false),
        (json!({"sub": "ann", "exp": exp, "roles": [1]}), false),
        (
            json!({"sub": "shop", "exp": exp, "roles": ["system", "ops"]}),
            false,
        ),
        (json!(["ann"]), false),
    ] {
        let found = auth().check(&signed(&claims), NOW);
        assert_eq!(found.is_ok(), good, "{claims}");
        if let Err(refusal) = found {
            assert_eq!(refusal, Refusal::not_signed_in());
        }
    }
}

#[test]
fn only_our_algorithm_and_secret_serve() {
    let claims = json!({"sub": "ann", "exp": NOW + 60.0});
    let other_secret = sign(Algorithm::HS256, &claims, b"another");
    let other_algorithm = sign(Algorithm::HS512, &claims, b"a secret");
    let good = signed(&claims);
    let body = good.rsplit_once('.').unwrap().0;
    let payload = body.split_once('.').unwrap().1;
    // {"alg":"none"}
    let none = format!("eyJhbGciOiJub25lIn0.{payload}.");
    for bad in [
        other_secret.as_str(),
        other_algorithm.as_str(),
        &format!("{body}."),
        &none,
        "",
        "x",
        "a.b.c",
    ] {
        assert!(auth().check(bad, NOW).is_err(), "{bad}");
    }
    assert!(auth().check(&good, NOW).is_ok());
}

#[test]
fn a_claim_twice_is_no_token() {
    let header = body_of("{\"alg\":\"HS256\"}");
    let payload = body_of("{\"sub\":\"ann\",\"sub\":\"bob\",\"exp\":1000060}");
    let message = format!("{header}.{payload}");
    let key = EncodingKey::from_secret(b"a secret").unwrap();
    let signature = jsonwebtoken::crypto::sign(message.as_bytes(), &key, Algorithm::HS256).unwrap();
    assert!(
        auth()
            .check(&format!("{message}.{signature}"), NOW)
            .is_err()
    );
}

fn body_of(json: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(json)
}

#[test]
fn audience_and_issuer_are_checked_where_set() {
    let strict = Auth::new(b"a secret", Some("app".into()), Some("us".into())).unwrap();
    let exp = NOW + 60.0;
    for (aud, iss, good) in [
        (json!("app"), json!("us"), true),
        (json!(["other", "app"]), json!("us"), true),
        (json!("other"), json!("us"), false),
        (json!([]), json!("us"), false),
        (json!("app"), json!("them"), false),
        (json!("app"), json!(["us"]), false),
        (json!(null), json!("us"), false),
    ] {
        let claims = json!({"sub": "ann", "exp": exp, "aud": aud, "iss": iss});
        assert_eq!(
            strict.check(&signed(&claims), NOW).is_ok(),
            good,
            "{claims}"
        );
    }
    let plain = signed(&json!({"sub": "ann", "exp": exp}));
    assert!(strict.check(&plain, NOW).is_err());
    let own = strict
        .issue("ann", &[], Duration::from_mins(1), NOW)
        .unwrap();
    assert!(strict.check(&own, NOW).is_ok());
}

#[test]
fn the_header_is_a_bearer_header() {
    assert_eq!(bearer("Bearer abc"), Some("abc"));
    assert_eq!(bearer("bearer  abc "), Some("abc"));
    for bad in ["abc", "Bearer", "Bearer ", "Basic abc"] {
        assert_eq!(bearer(bad), None, "{bad}");
    }
}

#[test]
fn what_looks_like_a_token_is_known() {
    for token in ["eyJ.abc.def", "eyJ.abc.", " a-b.c_d.e= "] {
        assert!(looks_like_jwt(token), "{token}");
    }
    for other in [
        "", "..", "a.b", "a.b.c.d", ".b.c", "a b.c.d", "1.5", "MTc5Njow",
    ] {
        assert!(!looks_like_jwt(other), "{other}");
    }
}
