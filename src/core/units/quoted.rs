//! What was found, in errors.

/// `bytes` as one shortened, printable, quoted line.
#[must_use]
pub fn quoted(bytes: &[u8]) -> String {
    const LONGEST: usize = 60;
    if bytes.is_empty() {
        return "nothing".to_owned();
    }
    let mut end = bytes.len().min(LONGEST);
    let dots = if bytes.len() > LONGEST { "…" } else { "" };
    // Not within a character, of which all bytes but the first are 0b10xx_xxxx.
    let goes_on = |at: usize| bytes.get(at).is_some_and(|byte| byte >> 6 == 0b10);
    while goes_on(end) && end + 3 > LONGEST {
        end -= 1;
    }
    format!("`{}{dots}`", String::from_utf8_lossy(&bytes[..end]).escape_debug())
}

/// What was typed as it was, or [`quoted`] where it is long or not printable.
#[must_use]
pub fn shown(typed: &str) -> String {
    let plain = typed.len() <= 80 && typed.chars().all(|letter| matches!(letter, ' '..='~'));
    if plain { typed.to_owned() } else { quoted(typed.as_bytes()) }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn what_was_found_is_one_short_line() {
        assert_eq!(quoted(b""), "nothing");
        assert_eq!(quoted(b"a\nb"), "`a\\nb`");
        let long = quoted(&[b'x'; 100_000]);
        assert!(long.ends_with("x…`") && long.chars().count() == 63, "{long}");
        let cut = quoted(&[&[b'x'; 59], "é€".as_bytes()].concat());
        assert!(cut.ends_with("x…`") && cut.chars().count() == 62, "{cut}");
        assert!(quoted(&[0x80; 100]).ends_with("\u{fffd}…`"), "what is no text");
    }
}
