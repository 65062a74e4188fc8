//! Which hosts and origins are served: pure rules over header values (PROTOCOL 1, SPEC 8).

/// What the door lets in.
#[derive(Debug, Clone)]
pub struct Door {
    /// Origins whose pages may open sockets, as browsers write them.
    pub origins: Vec<String>,
    /// Development mode: the server's own origin may too, and only local hosts are served.
    pub development: bool,
}

impl Door {
    /// Whether a request with this `Host` is answered. In development mode only names of this
    /// machine are, so that a page elsewhere whose name was pointed here gets nothing.
    pub fn host(&self, host: Option<&str>) -> bool {
        !self.development || host.is_some_and(is_local)
    }

    /// Whether a page of this origin may speak to us; `None`: no page sent it.
    pub fn origin(&self, origin: Option<&str>, host: Option<&str>) -> bool {
        let Some(origin) = origin else {
            return true;
        };
        let own = || host.is_some_and(|host| origin == format!("http://{host}"));
        self.origins.iter().any(|known| known == origin) || (self.development && own())
    }
}

/// Whether a `Host` names this machine, with or without a port.
fn is_local(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        // The last colon of a bare IPv6 address is no port's.
        Some((name, port)) if !name.is_empty() && !host.ends_with(']') => {
            if port.is_empty() || !port.bytes().all(|byte| byte.is_ascii_digit()) {
                return false;
            }
            name
        }
        _ => host,
    };
    name.eq_ignore_ascii_case("localhost") || name == "127.0.0.1" || name == "[::1]"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn door(development: bool, origins: &[&str]) -> Door {
        Door {
            origins: origins.iter().map(ToString::to_string).collect(),
            development,
        }
    }

    #[test]
    fn in_development_only_local_hosts_are_served() {
        let door = door(true, &[]);
        for host in [
            "localhost",
            "localhost:8080",
            "LOCALHOST:1",
            "127.0.0.1",
            "127.0.0.1:65535",
            "[::1]",
            "[::1]:8080",
        ] {
            assert!(door.host(Some(host)), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "localhost.evil.example",
            "localhost:8080.evil.example",
            "localhost@evil.example",
            "127.0.0.1.evil.example:80",
            "127.0.0.2",
            "0.0.0.0:8080",
            "::1",
            "[::1].evil.example",
            "localhost:",
            "localhost.",
        ] {
            assert!(!door.host(Some(host)), "{host}");
        }
        assert!(!door.host(None));
    }

    #[test]
    fn with_a_secret_any_host_is_served() {
        assert!(door(false, &[]).host(Some("chat.example")));
    }

    #[test]
    fn origins_are_compared_exactly() {
        let door = door(false, &["https://chat.example"]);
        assert!(door.origin(Some("https://chat.example"), Some("api.example")));
        assert!(door.origin(None, Some("api.example")));
        for other in [
            "http://chat.example",
            "https://chat.example:444",
            "https://chat.example.evil.example",
            "https://api.example",
            "http://api.example",
            "null",
            "",
        ] {
            assert!(!door.origin(Some(other), Some("api.example")), "{other}");
        }
    }

    #[test]
    fn in_development_the_own_page_may_connect() {
        let door = door(true, &[]);
        let host = Some("localhost:8080");
        assert!(door.origin(Some("http://localhost:8080"), host));
        for other in [
            "http://localhost:3000",
            "http://127.0.0.1:8080",
            "https://localhost:8080",
            "http://evil.example",
            "null",
        ] {
            assert!(!door.origin(Some(other), host), "{other}");
        }
    }
}
