//! Numbers at the start of a text, eight digits at a time: a word of eight bytes is checked
//! and converted as a whole, so that no branch depends on a digit.
//!
//! Where one of these finds no number there may still be one: spellings that tracers do not
//! use are left to the full parser ([`super::line`]).

use gpumodel_core::units::to_usize;

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x80 * ONES;
/// Longest decimal number that surely fits.
const MOST_DECIMAL: usize = 18;

/// The first eight bytes, the first one lowest.
#[inline]
fn word(text: &[u8]) -> Option<u64> {
    text.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
}

/// Bit 7 of each byte of `word` that is not among `first` to `last`, which are ASCII.
#[inline]
const fn outside(word: u64, first: u64, last: u64) -> u64 {
    // With bit 7 cleared no sum leaves its byte.
    let low = word & !HIGH;
    let from_first = low + (0x80 - first) * ONES;
    let after_last = low + (0x7f - last) * ONES;
    (!from_first | after_last | word) & HIGH
}

/// Bytes before the first one that is marked in bit 7.
#[inline]
const fn before(marks: u64) -> u32 {
    marks.trailing_zeros() / 8
}

/// Bytes of `word` before the first one that is no lower-case hexadecimal digit.
#[inline]
const fn hexadecimal_digits(word: u64) -> u32 {
    before(outside(word, 0x30, 0x39) & outside(word, 0x61, 0x66))
}

/// The value of the first `count` bytes, 1 to 8 hexadecimal digits.
#[inline]
const fn hexadecimal_value(word: u64, count: u32) -> u64 {
    let nibbles = (word & (0x0f * ONES)) + 9 * (word >> 6 & ONES);
    let lowest_first = (nibbles << (64 - 8 * count)).swap_bytes();
    let bytes = (lowest_first | lowest_first >> 4) & 0x00ff_00ff_00ff_00ff;
    let halves = (bytes | bytes >> 8) & 0x0000_ffff_0000_ffff;
    (halves | halves >> 16) & 0xffff_ffff
}

/// The value of the first `count` bytes, 1 to 8 decimal digits.
#[inline]
const fn decimal_value(word: u64, count: u32) -> u64 {
    const EVERY_FOURTH: u64 = 0x0000_00ff_0000_00ff;
    let digits = (word ^ (0x30 * ONES)) << (64 - 8 * count);
    let pairs = digits.wrapping_mul(10).wrapping_add(digits >> 8);
    let high = (pairs & EVERY_FOURTH).wrapping_mul(100 + (1_000_000 << 32));
    let low = (pairs >> 16 & EVERY_FOURTH).wrapping_mul(1 + (10_000 << 32));
    high.wrapping_add(low) >> 32
}

/// Eight lower-case hexadecimal digits.
#[inline]
pub(super) fn mask(digits: [u8; 8]) -> Option<u32> {
    const ALL: u64 = u64::from_le_bytes(*b"ffffffff");
    let word = u64::from_le_bytes(digits);
    if word == ALL {
        return Some(u32::MAX);
    }
    (hexadecimal_digits(word) == 8).then(|| hexadecimal_value(word, 8).try_into().ok())?
}

/// Up to 16 hexadecimal digits, and how many there are.
#[inline(always)]
pub(super) fn hexadecimal(text: &[u8]) -> Option<(u64, usize)> {
    let Some(&[first, second]) = text.as_chunks::<8>().0.first_chunk() else {
        return hexadecimal_slowly(text);
    };
    let [first, second] = [first, second].map(u64::from_le_bytes);
    let count = match hexadecimal_digits(first) {
        0 => return None,
        8 => hexadecimal_digits(second),
        count => return Some((hexadecimal_value(first, count), to_usize(count))),
    };
    let high = hexadecimal_value(first, 8);
    match count {
        0 => Some((high, 8)),
        8 if text.get(16).is_some_and(u8::is_ascii_hexdigit) => None,
        8 => Some((high << 32 | hexadecimal_value(second, 8), 16)),
        _ => Some((high << (4 * count) | hexadecimal_value(second, count), 8 + to_usize(count))),
    }
}

#[cold]
fn hexadecimal_slowly(text: &[u8]) -> Option<(u64, usize)> {
    let count = text.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let digits = std::str::from_utf8(&text[..count]).ok()?;
    (count <= 16).then(|| Some((u64::from_str_radix(digits, 16).ok()?, count)))?
}

/// A sign perhaps and up to 18 decimal digits, and how many bytes they are.
#[inline(always)] // into loops over many
pub(super) fn signed(text: &[u8]) -> Option<(i64, usize)> {
    let Some(word) = word(text) else { return signed_slowly(text) };
    let sign = u32::from(word & 0xff == u64::from(b'-'));
    // The end is what a reader of several numbers waits for: it is found without the sign.
    let bytes = before(outside(word, 0x30, 0x39) & !(0x80 * u64::from(sign)));
    if bytes == 8 {
        // More digits may follow.
        return signed_slowly(text);
    }
    if bytes == sign {
        return None;
    }
    let value = decimal_value(word >> (8 * sign), bytes - sign).cast_signed();
    let negative = -i64::from(sign);
    Some(((value ^ negative) - negative, to_usize(bytes)))
}

#[cold]
fn signed_slowly(text: &[u8]) -> Option<(i64, usize)> {
    let sign = usize::from(text.starts_with(b"-"));
    let count = text[sign..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let digits = std::str::from_utf8(&text[..sign + count]).ok()?;
    (count <= MOST_DECIMAL).then(|| Some((digits.parse().ok()?, sign + count)))?
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{hexadecimal, mask, signed};

    /// Digits, bytes next to them in ASCII and with bit 7, and what stands between numbers.
    const BYTES: &[u8] = b"0123456789abcdefABCDEF-+ \n/:`gx@G\0\x7f\x80\xb0\xb9\xe1\xff";

    fn leading(text: &[u8], is_digit: impl Fn(&u8) -> bool) -> &str {
        let count = text.iter().take_while(|byte| is_digit(byte)).count();
        std::str::from_utf8(&text[..count]).unwrap()
    }

    fn text() -> impl Strategy<Value = Vec<u8>> {
        let digits = prop::collection::vec(prop::sample::select(&BYTES[..16]), 0..20);
        let rest = prop::collection::vec(prop::sample::select(BYTES), 0..20);
        let sign = prop::sample::select(vec![&b""[..], b"-", b"--", b" "]);
        (sign, digits, rest).prop_map(|(sign, digits, rest)| [sign, &digits, &rest].concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..Default::default() })]

        #[test]
        fn numbers_are_those_of_the_standard_library(text in text()) {
            if let Some((value, bytes)) = hexadecimal(&text) {
                let digits = leading(&text[..bytes], u8::is_ascii_hexdigit);
                prop_assert_eq!(digits.len(), bytes);
                prop_assert_eq!(value, u64::from_str_radix(digits, 16).unwrap());
                // Lower-case digits that follow would be part of it.
                let end = text.get(bytes);
                prop_assert!(!end.is_some_and(|byte| b"0123456789abcdef".contains(byte)));
            } else {
                let digits = leading(&text, u8::is_ascii_hexdigit);
                let lower = digits.starts_with(|one: char| !one.is_ascii_uppercase());
                prop_assert!(!lower || digits.len() > 16, "{}", digits);
            }
            if let Some((value, bytes)) = signed(&text) {
                let number = std::str::from_utf8(&text[..bytes]).unwrap();
                prop_assert_eq!(value, number.parse::<i64>().unwrap());
                prop_assert!(!text.get(bytes).is_some_and(u8::is_ascii_digit));
            } else {
                let digits = text.strip_prefix(b"-").unwrap_or(&text);
                let digits = leading(digits, u8::is_ascii_digit);
                prop_assert!(digits.is_empty() || digits.len() > 18, "{}", digits);
            }
            if let Some(digits) = text.first_chunk::<8>() {
                let lower = digits.iter().all(|byte| b"0123456789abcdef".contains(byte));
                let number = std::str::from_utf8(digits).ok().filter(|_| lower);
                let number = number.map(|number| u32::from_str_radix(number, 16).unwrap());
                prop_assert_eq!(mask(*digits), number);
            }
        }
    }
}
