//! Addresses in the configuration: checked at start by name, host and port, and shown without
//! their passwords.

use std::fmt;
use std::net::Ipv6Addr;

/// An absolute URL with a host. `Debug` and `Display` leave out user, password and query, which
/// may hold secrets.
#[derive(Clone, PartialEq, Eq)]
pub struct Url {
    text: String,
    scheme: String,
    host: String,
    port: Option<u16>,
    path: String,
    has_user: bool,
    has_query: bool,
}

impl Url {
    /// Reads `text` as a URL of one of `schemes`. The error is the rule that was broken; it never
    /// repeats the text, which may hold a password.
    pub fn parse(text: &str, schemes: &[&str]) -> Result<Self, String> {
        let scheme_rule = || format!("must be a URL that begins with {}", listed(schemes));
        if text.contains(|c: char| c.is_whitespace() || c.is_control()) {
            return Err("must be a URL without blanks".to_owned());
        }
        let (scheme, rest) = text.split_once("://").ok_or_else(scheme_rule)?;
        let scheme = scheme.to_ascii_lowercase();
        if !schemes.contains(&scheme.as_str()) {
            return Err(scheme_rule());
        }
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, tail) = rest.split_at(end);
        // A password may hold an unescaped `@`; the host begins after the last one.
        let (user, address) = match authority.rsplit_once('@') {
            Some((user, address)) => (Some(user), address),
            None => (None, authority),
        };
        let (host, port) = host_and_port(address)?;
        let path_end = tail.find(['?', '#']).unwrap_or(tail.len());
        Ok(Url {
            text: text.to_owned(),
            scheme,
            host: host.to_ascii_lowercase(),
            port,
            path: tail[..path_end].to_owned(),
            has_user: user.is_some(),
            has_query: path_end < tail.len(),
        })
    }

    /// The whole text, with what is secret in it: for the client that connects, never for a log.
    pub fn expose(&self) -> &str {
        &self.text
    }

    /// The scheme, in lower case.
    pub fn scheme(&self) -> &str {
        &self.scheme
    }

    /// The host, in lower case; an IPv6 address in brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port, where one is written.
    pub fn port(&self) -> Option<u16> {
        self.port
    }

    /// The path as it is written; empty or beginning with `/`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Whether a user or password is written in it.
    pub fn has_user(&self) -> bool {
        self.has_user
    }

    /// Whether a query or fragment follows the path.
    pub fn has_query(&self) -> bool {
        self.has_query
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme, self.host)?;
        if let Some(port) = self.port {
            write!(f, ":{port}")?;
        }
        f.write_str(&self.path)
    }
}

impl fmt::Debug for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Url({self})")
    }
}

fn host_and_port(address: &str) -> Result<(&str, Option<u16>), String> {
    let (host, port) = if address.starts_with('[') {
        let end = address.find(']').ok_or("must have a `]` after its host")?;
        if address[1..end].parse::<Ipv6Addr>().is_err() {
            return Err("must have an IPv6 address between `[` and `]`".to_owned());
        }
        (&address[..=end], address[end + 1..].strip_prefix(':'))
    } else {
        match address.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (address, None),
        }
    };
    if host.is_empty() {
        return Err("must have a host".to_owned());
    }
    let named = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_');
    if !host.starts_with('[') && !host.chars().all(named) {
        return Err("must have a host of letters, digits, `.`, `-` and `_`".to_owned());
    }
    if host.len() + port.map_or(0, |port| port.len() + 1) != address.len() {
        return Err("must have a port after its host, if anything".to_owned());
    }
    let port = match port {
        None => None,
        Some(port) if port.bytes().all(|b| b.is_ascii_digit()) => match port.parse() {
            Ok(0) | Err(_) => return Err("must have a port from 1 to 65535".to_owned()),
            Ok(port) => Some(port),
        },
        Some(_) => return Err("must have a port from 1 to 65535".to_owned()),
    };
    Ok((host, port))
}

fn listed(schemes: &[&str]) -> String {
    let schemes: Vec<_> = schemes.iter().map(|s| format!("{s}://")).collect();
    schemes.join(" or ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_a_url() {
        for (text, shown) in [
            ("amqp://rabbit", "amqp://rabbit"),
            ("AMQP://Rabbit:5672/%2f", "amqp://rabbit:5672/%2f"),
            (
                "amqp://me:p@ss@rabbit:5672/v?heartbeat=5",
                "amqp://rabbit:5672/v",
            ),
            ("amqp://[::1]:5672", "amqp://[::1]:5672"),
        ] {
            let url = Url::parse(text, &["amqp", "amqps"]).unwrap();
            assert_eq!(url.to_string(), shown);
            assert_eq!(url.expose(), text);
            assert!(!format!("{url:?}").contains("p@ss"));
        }
    }

    #[test]
    fn what_is_no_url_and_why() {
        for (text, rule) in [
            ("rabbit", "amqp:// or amqps://"),
            ("redis://rabbit", "amqp:// or amqps://"),
            ("amqp:rabbit", "amqp:// or amqps://"),
            ("amqp://", "must have a host"),
            ("amqp://:5672", "must have a host"),
            ("amqp:///vhost", "must have a host"),
            ("amqp://me:secret@", "must have a host"),
            ("amqp://rabbit:", "port"),
            ("amqp://rabbit:0", "port"),
            ("amqp://rabbit:65536", "port"),
            ("amqp://rabbit:+5", "port"),
            ("amqp://rabbit:5672x", "port"),
            ("amqp://[::1", "]"),
            ("amqp://[::1]5672", "port"),
            ("amqp://[nine]", "IPv6"),
            ("amqp://ra bbit", "blanks"),
            ("amqp://ra,bbit", "host of letters"),
        ] {
            let fault = Url::parse(text, &["amqp", "amqps"]).unwrap_err();
            assert!(fault.contains(rule), "{text}: {fault}");
            assert!(!fault.contains("secret"), "{fault}");
        }
    }
}
