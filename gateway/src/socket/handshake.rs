//! Which subprotocol is chosen and where the token comes from, before the upgrade (PROTOCOL 1).

use crate::auth;
use crate::refusal::Refusal;

/// The one subprotocol that is spoken.
pub(super) const PROTOCOL: &str = "askwell.v1";

/// How a token stands in an offered subprotocol, for browsers, which can send no header.
const BEARER: &str = "bearer.";

/// What a handshake comes to.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Chosen<'a> {
    /// The subprotocol is echoed: it was offered.
    pub(super) echo: bool,
    /// The token of the header or of the offer; without one it comes in `hello`.
    pub(super) token: Option<&'a str>,
}

/// Chooses from all `Sec-WebSocket-Protocol` and `Authorization` headers. Only [`PROTOCOL`] is
/// ever echoed; names are compared exactly; a token is never part of a refusal.
pub(super) fn choose<'a>(
    offers: &[&'a str],
    authorization: &[&'a str],
) -> Result<Chosen<'a>, Refusal> {
    let offered: Vec<&str> = offers
        .iter()
        .flat_map(|offer| offer.split(','))
        .map(str::trim)
        .filter(|offer| !offer.is_empty())
        .collect();
    let echo = offered.contains(&PROTOCOL);
    if !echo && (!offered.is_empty() || authorization.is_empty()) {
        return Err(Refusal::malformed(format!(
            "The subprotocol {PROTOCOL} must be offered, or an Authorization header be sent."
        )));
    }
    let mut tokens = Vec::new();
    for header in authorization {
        tokens.push(auth::bearer(header).ok_or_else(Refusal::not_signed_in)?);
    }
    tokens.extend(
        offered
            .iter()
            .filter_map(|offer| offer.strip_prefix(BEARER)),
    );
    if tokens.len() > 1 {
        return Err(Refusal::malformed("Only one token may be sent."));
    }
    Ok(Chosen {
        echo,
        token: tokens.first().copied(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_offers_the_subprotocol_gets_it_and_no_token_back() {
        for offers in [
            vec!["askwell.v1, bearer.eyJ.abc.def"],
            vec!["bearer.eyJ.abc.def, askwell.v1"],
            vec!["askwell.v1", "bearer.eyJ.abc.def"],
            vec!["chat,askwell.v1 ,bearer.eyJ.abc.def"],
        ] {
            let chosen = choose(&offers, &[]).unwrap();
            assert!(chosen.echo, "{offers:?}");
            assert_eq!(chosen.token, Some("eyJ.abc.def"), "{offers:?}");
        }
        let plain = choose(&["askwell.v1"], &[]).unwrap();
        assert_eq!((plain.echo, plain.token), (true, None));
    }

    #[test]
    fn a_header_needs_no_subprotocol() {
        let chosen = choose(&[], &["Bearer eyJ.abc.def"]).unwrap();
        assert_eq!((chosen.echo, chosen.token), (false, Some("eyJ.abc.def")));
        let both = choose(&["askwell.v1"], &["Bearer eyJ.abc.def"]).unwrap();
        assert_eq!((both.echo, both.token), (true, Some("eyJ.abc.def")));
    }

    #[test]
    fn what_cannot_be_echoed_is_refused() {
        type Headers<'a> = &'a [&'a str];
        let rows: [(Headers, Headers, &str); 9] = [
            (&[], &[], "T0006"),
            (&["bearer.eyJ.abc.def"], &[], "T0006"),
            (&["chat"], &[], "T0006"),
            (&["ASKWELL.V1, bearer.eyJ.abc.def"], &[], "T0006"),
            (&["askwell.v2"], &[], "T0006"),
            (&["chat"], &["Bearer eyJ.abc.def"], "T0006"),
            (&["askwell.v1, bearer.a.b.c, bearer.d.e.f"], &[], "T0006"),
            (&["askwell.v1, bearer.a.b.c"], &["Bearer a.b.c"], "T0006"),
            (&["askwell.v1"], &["Basic abc"], "T0009"),
        ];
        for (offers, headers, code) in rows {
            let refusal = choose(offers, headers).unwrap_err();
            assert_eq!(refusal.code.name(), code, "{offers:?} {headers:?}");
            assert!(!refusal.detail.contains("eyJ"), "{offers:?}");
        }
    }
}
