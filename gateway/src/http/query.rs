//! The query of an address.

use axum::extract::{FromRequestParts, Query as Raw};
use axum::http::Uri;
use axum::http::request::Parts;

use crate::auth::looks_like_jwt;
use crate::refusal::Refusal;

/// Names and values of a query, decoded.
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    /// The value of this name, which may be there once.
    pub(super) fn one(&self, name: &str) -> Result<Option<String>, Refusal> {
        let mut values = self.0.iter().filter(|(key, _)| key == name);
        match (values.next(), values.next()) {
            (found, None) => Ok(found.map(|(_, value)| value.clone())),
            _ => Err(Refusal::malformed(format!(
                "The field {name} is there twice."
            ))),
        }
    }
}

impl<S: Sync> FromRequestParts<S> for Query {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refusal> {
        pairs(&parts.uri)
            .map(Query)
            .ok_or_else(|| Refusal::malformed("The query cannot be read."))
    }
}

/// Whether a value of the query looks like a token: addresses are kept in logs and histories.
pub(super) fn holds_token(uri: &Uri) -> bool {
    pairs(uri)
        .unwrap_or_default()
        .iter()
        .any(|(_, value)| looks_like_jwt(value))
}

fn pairs(uri: &Uri) -> Option<Vec<(String, String)>> {
    Raw::<Vec<(String, String)>>::try_from_uri(uri)
        .ok()
        .map(|Raw(pairs)| pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_in_an_address_is_seen_however_it_is_written() {
        for (uri, found) in [
            ("/v1/ws?token=eyJ.abc.def", true),
            ("/v1/ws?x=1&ticket=eyJ%2Eabc%2Edef", true),
            ("/v1/ws?access_token=eyJ.abc.", true),
            ("/v1/ws", false),
            ("/v1/runs?agent=asker&limit=5", false),
            ("/v1/runs?cursor=MTc5Njow", false),
        ] {
            assert_eq!(holds_token(&uri.parse().unwrap()), found, "{uri}");
        }
    }

    #[test]
    fn a_name_is_there_once() {
        let query = Query(pairs(&"/x?a=1&b=2&b=3".parse().unwrap()).unwrap());
        assert_eq!(query.one("a").unwrap().as_deref(), Some("1"));
        assert_eq!(query.one("c").unwrap(), None);
        assert!(query.one("b").is_err());
    }
}
