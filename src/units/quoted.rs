//! What was found, in errors.

/// `bytes` as one shortened, printable, quoted line.
#[must_use]
pub fn quoted(bytes: &[u8]) -> String {
    const LONGEST: usize = 60;
    if bytes.is_empty() {
        return "nothing".to_owned();
    }
    let shown = &bytes[..bytes.len().min(LONGEST)];
    let dots = if bytes.len() > LONGEST { "…" } else { "" };
    format!("`{}{dots}`", String::from_utf8_lossy(shown).escape_debug())
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
    }
}
