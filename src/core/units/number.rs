//! Conversions between widths of whole numbers, and counts of bytes.

use std::str::FromStr;

/// Narrows to `u8`.
///
/// # Panics
/// When the value does not fit: the caller promised that it does.
#[must_use]
#[track_caller]
pub fn to_u8<T: TryInto<u8> + Copy + std::fmt::Debug>(value: T) -> u8 {
    value.try_into().unwrap_or_else(|_| panic!("{value:?} does not fit 8 bits"))
}

/// Narrows to `u16`.
///
/// # Panics
/// When the value does not fit: the caller promised that it does.
#[must_use]
#[track_caller]
pub fn to_u16<T: TryInto<u16> + Copy + std::fmt::Debug>(value: T) -> u16 {
    value.try_into().unwrap_or_else(|_| panic!("{value:?} does not fit 16 bits"))
}

/// Narrows to `u32`.
///
/// # Panics
/// When the value does not fit: the caller promised that it does.
#[must_use]
#[track_caller]
pub fn to_u32<T: TryInto<u32> + Copy + std::fmt::Debug>(value: T) -> u32 {
    value.try_into().unwrap_or_else(|_| panic!("{value:?} does not fit 32 bits"))
}

/// Widens to `u64`.
///
/// # Panics
/// When the value is negative: the caller promised that it is not.
#[must_use]
#[track_caller]
pub fn to_u64<T: TryInto<u64> + Copy + std::fmt::Debug>(value: T) -> u64 {
    value.try_into().unwrap_or_else(|_| panic!("{value:?} does not fit 64 bits"))
}

/// Converts to `usize`.
///
/// # Panics
/// When the value does not fit: the caller promised that it does.
#[must_use]
#[track_caller]
pub fn to_usize<T: TryInto<usize> + Copy + std::fmt::Debug>(value: T) -> usize {
    value.try_into().unwrap_or_else(|_| panic!("{value:?} does not fit a usize"))
}

/// A number of bytes: `4096`, `64K`, `512M`, `2G`, with or without `B` or `iB`;
/// K, M, G and T are powers of 1024.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteCount(pub u64);

impl FromStr for ByteCount {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("expected a size such as `512M` or `2G`, found `{text}`");
        let plain = text.trim();
        let end = plain.find(|c: char| !c.is_ascii_digit()).unwrap_or(plain.len());
        let (digits, unit) = plain.split_at(end);
        let shift = match unit.trim().to_ascii_uppercase().as_str() {
            "" | "B" => 0,
            "K" | "KB" | "KIB" => 10,
            "M" | "MB" | "MIB" => 20,
            "G" | "GB" | "GIB" => 30,
            "T" | "TB" | "TIB" => 40,
            _ => return Err(wrong()),
        };
        let bytes = digits.parse::<u64>().ok().and_then(|count| count.checked_mul(1 << shift));
        bytes.map(Self).ok_or_else(wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::ByteCount;

    #[test]
    fn units_are_powers_of_1024() {
        let count = |text: &str| text.parse::<ByteCount>().ok().map(|count| count.0);
        assert_eq!(count("4096"), Some(4096));
        assert_eq!(count("512M"), Some(512 << 20));
        assert_eq!((count("2GiB"), count("2 gb")), (Some(2 << 30), Some(2 << 30)));
        for wrong in ["", "M", "-1M", "1.5G", "1X", "99999999T"] {
            assert_eq!(count(wrong), None, "{wrong}");
        }
    }
}
