//! Durations as people write them: `500ms`, `30s`, `15m`, `24h`, `7d` (SPEC 7).

use std::time::Duration;

/// What a duration must look like, as the rest of a sentence.
pub const RULE: &str = "must be a duration such as 500ms, 30s, 15m, 24h or 7d";

/// Reads a whole number with its unit; `0` needs none. The error is the rule that is not met.
pub fn parse(text: &str) -> Result<Duration, String> {
    let end = text.find(|c: char| !c.is_ascii_digit());
    let (digits, unit) = text.split_at(end.unwrap_or(text.len()));
    if digits.is_empty() {
        return Err(RULE.to_owned());
    }
    let millis_per_unit: u64 = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        "" if digits.bytes().all(|b| b == b'0') => 1,
        _ => return Err(RULE.to_owned()),
    };
    let millis = digits.parse().ok().and_then(|count: u64| {
        // Beyond this a time that far from now can no longer be counted in milliseconds.
        count.checked_mul(millis_per_unit)
    });
    millis
        .map(Duration::from_millis)
        .ok_or_else(|| "is too long".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_whole_numbers_with_a_unit() {
        for (text, millis) in [
            ("500ms", 500),
            ("30s", 30_000),
            ("15m", 900_000),
            ("24h", 86_400_000),
            ("7d", 604_800_000),
            ("4294967296ms", 4_294_967_296),
            ("0s", 0),
            ("0", 0),
            ("18446744073709551615ms", u64::MAX),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in [
            "", "s", "30", "30 s", " 30s", "30s ", "-30s", "+30s", "1.5s", "1h30m", "30S", "30sec",
            "1w", "٣s", "1e3s",
        ] {
            assert_eq!(parse(text), Err(RULE.to_owned()), "{text}");
        }
        for text in [
            "18446744073709551616ms",
            "213503982335d",
            "99999999999999999999s",
        ] {
            assert_eq!(parse(text), Err("is too long".to_owned()), "{text}");
        }
    }
}
