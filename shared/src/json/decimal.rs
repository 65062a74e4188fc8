//! Exact decimal numbers of any length, for equality and the numeric keywords of a shape.

use std::cmp::Ordering;

use serde_json::Number;

/// An exact number: `digits` times ten to the power of `exponent`, in lowest form, so that equal
/// numbers are equal records. Zero has no digits and no sign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Decimal {
    negative: bool,
    /// ASCII digits, neither beginning nor ending with `0`.
    digits: Vec<u8>,
    exponent: Exponent,
}

/// A power of ten. `Far` begins at 10^36, beyond what an `i128` can add up safely: an exponent may
/// be written with thousands of digits, and is then kept as text.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Exponent {
    Near(i128),
    Far { negative: bool, digits: String },
}

const FAR: u128 = 10_u128.pow(36);
/// Digits taken off the end of a far exponent to add a small number to it.
const TAIL: usize = 18;
const TAIL_VALUE: i128 = 10_i128.pow(18);

impl Decimal {
    /// The value of a JSON number.
    pub(crate) fn of(number: &Number) -> Self {
        Self::read(number.as_str())
    }

    fn read(text: &str) -> Self {
        let (negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        // One character at a time is a search by words, which a pair of them is not.
        let (mantissa, power) = text
            .split_once('e')
            .or_else(|| text.split_once('E'))
            .unwrap_or((text, ""));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        // Long numbers are copied as slices: an answer may hold one of tens of thousands of digits.
        let mut digits = whole.trim_start_matches('0').as_bytes().to_vec();
        let fraction_digits = if digits.is_empty() {
            fraction.trim_start_matches('0')
        } else {
            fraction
        };
        digits.extend_from_slice(fraction_digits.as_bytes());
        let written = digits.len();
        let idle = digits
            .iter()
            .rev()
            .take_while(|digit| **digit == b'0')
            .count();
        digits.truncate(written - idle);
        if digits.is_empty() {
            return Decimal {
                negative: false,
                digits,
                exponent: Exponent::Near(0),
            };
        }
        let shift = as_i128(written - digits.len()) - as_i128(fraction.len());
        Decimal {
            negative,
            digits,
            exponent: Exponent::read(power).plus(shift),
        }
    }

    /// Appends the one text that all equal numbers share.
    pub(crate) fn push_to(&self, out: &mut String) {
        if self.digits.is_empty() {
            out.push('0');
            return;
        }
        if self.negative {
            out.push('-');
        }
        out.extend(self.digits.iter().map(|digit| char::from(*digit)));
        match &self.exponent {
            Exponent::Near(0) => {}
            Exponent::Near(power) => {
                out.push('e');
                out.push_str(&power.to_string());
            }
            Exponent::Far { negative, digits } => {
                out.push_str(if *negative { "e-" } else { "e" });
                out.push_str(digits);
            }
        }
    }

    /// Whether it is a whole number, however written: `3.0` is.
    pub(crate) fn is_whole(&self) -> bool {
        match &self.exponent {
            Exponent::Near(power) => *power >= 0,
            Exponent::Far { negative, .. } => !negative,
        }
    }

    pub(crate) fn is_positive(&self) -> bool {
        !self.negative && !self.digits.is_empty()
    }

    /// The number as a count of things; beyond `u64` it is `u64::MAX`, which no count reaches.
    /// `None` where it is negative or no whole number.
    pub(crate) fn as_count(&self) -> Option<u64> {
        if self.negative || !self.is_whole() {
            return None;
        }
        let mut count: u64 = 0;
        for digit in &self.digits {
            count = count
                .saturating_mul(10)
                .saturating_add(u64::from(digit - b'0'));
        }
        let zeros = match &self.exponent {
            Exponent::Near(power) => u32::try_from(*power).unwrap_or(u32::MAX),
            Exponent::Far { .. } => u32::MAX,
        };
        Some(count.saturating_mul(10_u64.saturating_pow(zeros)))
    }

    /// Whether it is a whole multiple of `step`, exactly.
    pub(crate) fn is_multiple_of(&self, step: &Decimal) -> bool {
        if self.digits.is_empty() {
            return true;
        }
        let Some(zeros) = self.zeros_over(step) else {
            // The step ends in a higher power of ten than this number does.
            return false;
        };
        let digits = self
            .digits
            .iter()
            .copied()
            .chain(std::iter::repeat_n(b'0', zeros));
        match step.small_digits() {
            Some(divisor) => {
                digits.fold(0_u128, |rest, digit| {
                    (rest * 10 + u128::from(digit - b'0')) % divisor
                }) == 0
            }
            None => divides_evenly(digits, &step.digits),
        }
    }

    /// The work of [`Self::is_multiple_of`], in units of some fifty machine operations.
    pub(crate) fn multiple_cost(&self, step: &Decimal) -> u64 {
        let length = (self.digits.len() + self.zeros_over(step).unwrap_or(0)) as u64;
        match step.small_digits() {
            Some(_) => length / 8,
            None => length * (step.digits.len() as u64) / 8,
        }
    }

    /// How many zeros to append to this number's digits, so that both count in the step's last
    /// place. A divisor of n digits has fewer than 4n factors 2 and 5, and zeros beyond those
    /// change nothing: `1e400` by `3e-400` stays cheap.
    fn zeros_over(&self, step: &Decimal) -> Option<usize> {
        let most = step.digits.len() * 4;
        let zeros = match (&self.exponent, &step.exponent) {
            (Exponent::Near(a), Exponent::Near(b)) => a - b,
            (a, b) => match a.cmp(b) {
                Ordering::Less => return None,
                // Of two far ones the difference may be small, but then it is exact below.
                Ordering::Equal => 0,
                Ordering::Greater => a.exceeds(b, most),
            },
        };
        if zeros < 0 {
            return None;
        }
        Some(usize::try_from(zeros).map_or(most, |zeros| zeros.min(most)))
    }

    fn small_digits(&self) -> Option<u128> {
        // Below 10^30 the product by ten stays within an u128.
        (self.digits.len() <= 30).then(|| {
            self.digits
                .iter()
                .fold(0, |value, digit| value * 10 + u128::from(digit - b'0'))
        })
    }
}

/// Long division for a divisor of many digits: only the remainder is kept.
fn divides_evenly(digits: impl Iterator<Item = u8>, divisor: &[u8]) -> bool {
    const BASE: u64 = 1_000_000_000;
    // Limbs from the lowest, one more than the divisor needs, for the digit brought down.
    let mut limbs: Vec<u64> = divisor
        .rchunks(9)
        .map(|chunk| {
            chunk
                .iter()
                .fold(0, |value, digit| value * 10 + u64::from(digit - b'0'))
        })
        .collect();
    limbs.push(0);
    let mut rest = vec![0_u64; limbs.len()];
    for digit in digits {
        let mut carry = u64::from(digit - b'0');
        for limb in &mut rest {
            let value = *limb * 10 + carry;
            *limb = value % BASE;
            carry = value / BASE;
        }
        while rest.iter().rev().ge(limbs.iter().rev()) {
            let mut borrow = 0;
            for (limb, other) in rest.iter_mut().zip(&limbs) {
                let other = other + borrow;
                borrow = u64::from(*limb < other);
                *limb = *limb + borrow * BASE - other;
            }
        }
    }
    rest.iter().all(|limb| *limb == 0)
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        let sign = |number: &Decimal| i8::from(number.is_positive()) - i8::from(number.negative);
        let signs = sign(self).cmp(&sign(other));
        if signs != Ordering::Equal || self.digits.is_empty() {
            return signs;
        }
        let top = |number: &Decimal| number.exponent.clone().plus(as_i128(number.digits.len()));
        let size = top(self)
            .cmp(&top(other))
            .then_with(|| self.digits.cmp(&other.digits));
        if self.negative { size.reverse() } else { size }
    }
}

impl Exponent {
    fn read(text: &str) -> Self {
        let (negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let text = text.trim_start_matches('0');
        if text.len() > 37 {
            return Exponent::Far {
                negative,
                digits: text.to_owned(),
            };
        }
        let size = text.parse::<i128>().unwrap_or(0);
        Exponent::Near(if negative { -size } else { size })
    }

    /// Adds the length of a text, which is far below 10^18.
    fn plus(self, small: i128) -> Self {
        match self {
            Exponent::Near(power) => {
                let sum = power + small;
                if sum.unsigned_abs() < FAR {
                    Exponent::Near(sum)
                } else {
                    Exponent::Far {
                        negative: sum < 0,
                        digits: sum.unsigned_abs().to_string(),
                    }
                }
            }
            Exponent::Far { negative, digits } => {
                let outward = if negative { -small } else { small };
                let (head, tail) = digits.split_at(digits.len().saturating_sub(TAIL));
                let tail = tail.parse::<i128>().unwrap_or(0) + outward;
                let mut head = head.to_owned();
                if tail.div_euclid(TAIL_VALUE) != 0 {
                    head = step(&head, tail > 0);
                }
                let tail = tail.rem_euclid(TAIL_VALUE);
                Exponent::Far {
                    negative,
                    digits: format!("{head}{tail:0TAIL$}")
                        .trim_start_matches('0')
                        .to_owned(),
                }
            }
        }
    }

    /// By how much it exceeds a smaller one, at most `most`.
    fn exceeds(&self, smaller: &Exponent, most: usize) -> i128 {
        let mut low = 0;
        let mut high = as_i128(most);
        // Search instead of a subtraction of long texts: `most` is small, and this never runs for
        // numbers that anybody writes.
        while low < high {
            let middle = (low + high + 1) / 2;
            if smaller.clone().plus(middle) <= *self {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        low
    }
}

/// The decimal text one up or one down; it is never zero.
fn step(digits: &str, up: bool) -> String {
    let (full, empty) = if up { (b'9', b'0') } else { (b'0', b'9') };
    let mut bytes = digits.as_bytes().to_vec();
    let mut carried = true;
    for digit in bytes.iter_mut().rev() {
        if *digit == full {
            *digit = empty;
        } else {
            *digit = if up { *digit + 1 } else { *digit - 1 };
            carried = false;
            break;
        }
    }
    if carried && up {
        bytes.insert(0, b'1');
    }
    bytes.into_iter().map(char::from).collect()
}

impl PartialOrd for Exponent {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Exponent {
    fn cmp(&self, other: &Self) -> Ordering {
        let far = |exponent: &Exponent| match exponent {
            Exponent::Near(_) => 0,
            Exponent::Far { negative: true, .. } => -1,
            Exponent::Far { .. } => 1,
        };
        far(self)
            .cmp(&far(other))
            .then_with(|| match (self, other) {
                (Exponent::Near(a), Exponent::Near(b)) => a.cmp(b),
                (
                    Exponent::Far {
                        negative,
                        digits: a,
                    },
                    Exponent::Far { digits: b, .. },
                ) => {
                    let size = a.len().cmp(&b.len()).then_with(|| a.cmp(b));
                    if *negative { size.reverse() } else { size }
                }
                _ => Ordering::Equal,
            })
    }
}

fn as_i128(length: usize) -> i128 {
    i128::try_from(length).unwrap_or(i128::MAX / 4)
}
