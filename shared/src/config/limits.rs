//! `ASKWELL_LIMITS`: what callers of a gateway may use (SPEC 8, protocol 4.5).

/// What callers may use. Rates are of one owner on one node; `sockets` is of one node, and the
/// gateway caps it below its limit of open files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewayLimits {
    /// Commands a second.
    pub commands: u32,
    /// Commands at once, before the rate applies.
    pub burst: u32,
    /// Commands a second of a system token.
    pub system_commands: u32,
    /// Sockets of one person.
    pub sockets_per_user: u32,
    /// Sockets from one address.
    pub sockets_per_address: u32,
    /// Sockets of the node.
    pub sockets: u32,
}

impl Default for GatewayLimits {
    fn default() -> Self {
        GatewayLimits {
            commands: 5,
            burst: 20,
            system_commands: 1000,
            sockets_per_user: 20,
            sockets_per_address: 100,
            sockets: 50_000,
        }
    }
}

impl GatewayLimits {
    /// Reads `commands=5,burst=20`; keys left out keep their default. The error is the rule that
    /// is not met.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut limits = GatewayLimits::default();
        let mut seen = Vec::new();
        for entry in text.split(',') {
            let (key, value) = entry
                .split_once('=')
                .ok_or("must be a comma-separated list of key=number")?;
            let (key, value) = (key.trim(), value.trim());
            let place = match key {
                "commands" => &mut limits.commands,
                "burst" => &mut limits.burst,
                "systemCommands" => &mut limits.system_commands,
                "socketsPerUser" => &mut limits.sockets_per_user,
                "socketsPerAddress" => &mut limits.sockets_per_address,
                "sockets" => &mut limits.sockets,
                _ => {
                    return Err(format!(
                        "unknown key {key}; known are commands, burst, systemCommands, \
                         socketsPerUser, socketsPerAddress, sockets"
                    ));
                }
            };
            if seen.contains(&key) {
                return Err(format!("{key} is there twice"));
            }
            seen.push(key);
            *place = match value.parse() {
                Ok(0) | Err(_) => {
                    return Err(format!("{key} must be a number from 1 to {}", u32::MAX));
                }
                Ok(number) => number,
            };
        }
        Ok(limits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_keeps_its_default() {
        let all = "commands=5,burst=20,systemCommands=1000,socketsPerUser=20,\
                   socketsPerAddress=100,sockets=50000";
        assert_eq!(GatewayLimits::parse(all), Ok(GatewayLimits::default()));
        let some = GatewayLimits::parse("commands=50, sockets = 7").unwrap();
        let expected = GatewayLimits {
            commands: 50,
            sockets: 7,
            ..GatewayLimits::default()
        };
        assert_eq!(some, expected);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, rule) in [
            ("commands", "key=number"),
            ("commands=5,", "key=number"),
            ("comands=5", "unknown key comands"),
            ("Commands=5", "unknown key Commands"),
            ("burst=0", "burst must be a number from 1"),
            ("burst=-1", "burst must be a number from 1"),
            ("burst=", "burst must be a number from 1"),
            ("burst=4294967296", "burst must be a number from 1"),
            ("burst=1,burst=2", "burst is there twice"),
        ] {
            let fault = GatewayLimits::parse(text).unwrap_err();
            assert!(fault.contains(rule), "{text}: {fault}");
        }
    }
}
