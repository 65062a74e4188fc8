//! Clients of a gateway as tests need them: tokens, HTTP, and sockets that lose no frame.
//!
//! Everything waits at most [`LIMIT`] and fails with what came instead, so that no test hangs.

mod http;
mod socket;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Result;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde_json::json;

pub use http::{Http, Reply};
pub use socket::{Client, Offer, Shook};

/// How long anything is waited for.
pub const LIMIT: Duration = Duration::from_secs(15);

/// A token as a backend of somebody's own would make it. `ttl` may be negative: expired.
///
/// # Errors
/// An empty secret.
pub fn token(secret: &str, sub: &str, roles: &[&str], ttl: i64) -> Result<String> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    let expires = i64::try_from(now)?.saturating_add(ttl);
    let claims = json!({ "sub": sub, "roles": roles, "exp": expires });
    let key = EncodingKey::from_secret(secret.as_bytes())?;
    Ok(encode(&Header::new(Algorithm::HS256), &claims, &key)?)
}
