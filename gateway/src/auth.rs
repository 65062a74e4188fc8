//! Tokens: JWTs with a shared secret (HS256), read and made (SPEC 8, PROTOCOL 1). Keys by URL
//! (JWKS) and single-use tickets get their place beside this.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use askwell_shared::caller::Caller;
use askwell_shared::json;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation, decode, encode};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::fields::Fields;
use crate::refusal::Refusal;

/// How far clocks may differ, in seconds.
const LEEWAY: f64 = 5.0;

/// A socket with an expired token is closed so long after `exp`: time for a refresh, and within
/// the 25 s of PROTOCOL 1 with room for a slow write.
pub const GRACE: Duration = Duration::from_secs(15);

/// The longest `sub`, in characters.
const LONGEST_SUB: usize = 256;

/// Checks and makes tokens.
pub struct Auth {
    read: DecodingKey,
    write: EncodingKey,
    validation: Validation,
    audience: Option<String>,
    issuer: Option<String>,
}

/// A token that was found good.
#[derive(Debug, Clone, PartialEq)]
pub struct Signed {
    /// Who speaks.
    pub caller: Caller,
    /// `exp`, in seconds since 1970.
    pub expires: f64,
}

impl Signed {
    /// Whether it is expired at `now` (seconds since 1970), the leeway included.
    pub fn is_expired(&self, now: f64) -> bool {
        now > self.expires + LEEWAY
    }

    /// The time from `now` until a socket with this token must be closed.
    pub fn closes_in(&self, now: f64) -> Duration {
        let left = self.expires + GRACE.as_secs_f64() - now;
        // Beyond a year nothing needs a timer, and `exp` may be any number.
        Duration::from_secs_f64(left.clamp(0.0, 366.0 * 86_400.0))
    }
}

/// Seconds since 1970 by this machine's clock, as tokens count.
pub fn now() -> f64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0.0, |since| since.as_secs_f64())
}

impl Auth {
    /// Tokens of this secret. `audience` and `issuer`, where given, must be named by a token.
    ///
    /// # Errors
    /// The secret is empty.
    pub fn new(
        secret: &[u8],
        audience: Option<String>,
        issuer: Option<String>,
    ) -> Result<Self, String> {
        let read = DecodingKey::from_secret(secret).map_err(|_| "is empty".to_owned())?;
        let write = EncodingKey::from_secret(secret).map_err(|_| "is empty".to_owned())?;
        // The library checks algorithm and signature; the claims are checked below, strictly and
        // with the time passed in.
        let mut validation = Validation::new(Algorithm::HS256);
        validation.required_spec_claims.clear();
        validation.validate_exp = false;
        validation.validate_aud = false;
        Ok(Auth {
            read,
            write,
            validation,
            audience,
            issuer,
        })
    }

    /// Checks a token at `now` (seconds since 1970).
    ///
    /// # Errors
    /// T0009, which does not say why.
    pub fn check(&self, token: &str, now: f64) -> Result<Signed, Refusal> {
        let decoded = decode::<Box<RawValue>>(token, &self.read, &self.validation);
        let payload = decoded.map_err(|_| Refusal::not_signed_in())?.claims;
        let claims = json::parse(payload.get().as_bytes()).ok();
        claims
            .as_ref()
            .and_then(Value::as_object)
            .and_then(|claims| self.claims(claims, now))
            .ok_or_else(Refusal::not_signed_in)
    }

    fn claims(&self, claims: &Map<String, Value>, now: f64) -> Option<Signed> {
        let time = |name: &str| claims.get(name).map(Value::as_f64);
        let expires = time("exp").flatten()?;
        if !expires.is_finite() {
            return None;
        }
        match time("nbf") {
            None => {}
            Some(Some(not_before)) if not_before <= now + LEEWAY => {}
            Some(_) => return None,
        }
        if let Some(audience) = &self.audience
            && !names(claims.get("aud"), audience)
        {
            return None;
        }
        if let Some(issuer) = &self.issuer
            && claims.get("iss").and_then(Value::as_str) != Some(issuer)
        {
            return None;
        }
        let sub = claims.get("sub")?.as_str()?;
        if sub.is_empty() || sub.chars().count() > LONGEST_SUB {
            return None;
        }
        let roles = Fields(claims).texts("roles").ok()?;
        let signed = Signed {
            caller: Caller::of_token(sub, roles).ok()?,
            expires,
        };
        (!signed.is_expired(now)).then_some(signed)
    }

    /// Makes a token for `sub` that holds for `ttl` from `now` (seconds since 1970).
    ///
    /// # Errors
    /// The sentence says what is wrong with the subject or the roles.
    pub fn issue(
        &self,
        sub: &str,
        roles: &[String],
        ttl: Duration,
        now: f64,
    ) -> Result<String, String> {
        if sub.is_empty() || sub.chars().count() > LONGEST_SUB {
            return Err(format!("must be 1 to {LONGEST_SUB} characters"));
        }
        Caller::of_token(sub, roles.to_vec())
            .map_err(|_| "the role system goes with no role of ops".to_owned())?;
        let issued = whole(now);
        let mut claims = json!({
            "sub": sub,
            "roles": roles,
            "iat": issued,
            "exp": issued.saturating_add(ttl.as_secs()),
        });
        if let Some(audience) = &self.audience {
            claims["aud"] = audience.as_str().into();
        }
        if let Some(issuer) = &self.issuer {
            claims["iss"] = issuer.as_str().into();
        }
        encode(&Header::new(Algorithm::HS256), &claims, &self.write)
            .map_err(|fault| fault.to_string())
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "seconds since 1970, cut to whole ones"
)]
fn whole(seconds: f64) -> u64 {
    seconds.max(0.0) as u64
}

/// Whether `aud`, one text or a list of them, names `audience` (RFC 7519, 4.1.3).
fn names(aud: Option<&Value>, audience: &str) -> bool {
    match aud {
        Some(Value::String(one)) => one == audience,
        Some(Value::Array(list)) => list.iter().any(|one| one.as_str() == Some(audience)),
        _ => false,
    }
}

/// The token of an `Authorization` header (RFC 6750, 2.1).
pub(crate) fn bearer(header: &str) -> Option<&str> {
    let (scheme, token) = header.split_once(' ')?;
    scheme
        .eq_ignore_ascii_case("bearer")
        .then(|| token.trim())
        .filter(|token| !token.is_empty())
}

/// Whether a value is shaped like a JWT: three base64url parts, the last perhaps empty. Such a
/// thing in an address ends up in logs and histories, so it is not even read (PROTOCOL 1).
pub(crate) fn looks_like_jwt(value: &str) -> bool {
    let parts: Vec<&str> = value.trim().split('.').collect();
    let base64url = |part: &&str| {
        part.bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'='))
    };
    parts.len() == 3 && !parts[0].is_empty() && !parts[1].is_empty() && parts.iter().all(base64url)
}

#[cfg(test)]
mod tests;
