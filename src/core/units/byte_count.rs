//! Sizes in bytes as people type them.

use std::str::FromStr;

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
