//! What serde expects of a value, in words: it names types.

/// Types as serde calls them, and what a user may write there.
const WORDS: [(&str, &str); 16] = [
    ("u8", "a whole number from 0 to 255"),
    ("u16", "a whole number from 0 to 65535"),
    ("u32", "a whole number from 0 to 4294967295"),
    ("u64", "a whole number from 0 on"),
    ("u128", "a whole number from 0 on"),
    ("usize", "a whole number from 0 on"),
    ("i8", "a whole number from -128 to 127"),
    ("i16", "a whole number from -32768 to 32767"),
    ("i32", "a whole number from -2147483648 to 2147483647"),
    ("i64", "a whole number"),
    ("f32", "a number"),
    ("f64", "a number"),
    ("a boolean", "true or false"),
    ("a sequence", "a list"),
    ("a map", "a section"),
    ("a borrowed string", "a string"),
];

/// `expected` in words where it names a type.
#[must_use]
pub fn in_words(expected: &str) -> String {
    let one = |kind: &str| WORDS.iter().find(|(name, _)| *name == kind).map(|(_, words)| *words);
    if let Some(words) = one(expected) {
        return words.to_owned();
    }
    if let Some(words) = expected.strip_prefix("a nonzero ").and_then(one) {
        return format!("{words}, and not 0");
    }
    if expected.starts_with("struct ") { String::from("a section") } else { expected.to_owned() }
}

/// A message of serde's with what it expects in words and long lines cut, of which an
/// excerpt of a file may have some.
#[must_use]
pub fn message_in_words(message: &str) -> String {
    const LONGEST: usize = 400;
    let cut = |line: &str| match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    };
    words(message).split('\n').map(cut).collect::<Vec<_>>().join("\n")
}

fn words(message: &str) -> String {
    const BEFORE: &str = ", expected ";
    let Some((found, rest)) = message.split_once(BEFORE) else { return message.to_owned() };
    let ends = [rest.find(" at line "), rest.find('\n')].into_iter().flatten();
    let end = ends.min().unwrap_or(rest.len());
    let (expected, place) = rest.split_at(end);
    format!("{found}{BEFORE}{}{place}", in_words(expected))
}

#[cfg(test)]
mod tests {
    use super::{in_words, message_in_words};

    #[test]
    fn types_are_told_as_what_may_be_written() {
        assert_eq!(in_words("u16"), "a whole number from 0 to 65535");
        assert_eq!(in_words("a nonzero u64"), "a whole number from 0 on, and not 0");
        assert_eq!(in_words("struct Raw"), "a section");
        assert_eq!(in_words("one of a, b"), "one of a, b");
        for kind in [i64::from(u8::MAX), i64::from(u16::MAX), i64::from(u32::MAX)] {
            let bits = 64 - kind.leading_zeros();
            assert!(in_words(&format!("u{bits}")).ends_with(&format!("to {kind}")));
        }
    }

    #[test]
    fn messages_of_serde_name_no_type() {
        let error = serde_json::from_str::<Vec<u32>>("[1,\n-5]").unwrap_err().to_string();
        let words = "invalid value: integer `-5`, expected a whole number from 0 to 4294967295 at";
        assert!(message_in_words(&error).starts_with(words), "{error}");
        assert_eq!(message_in_words("EOF while parsing"), "EOF while parsing");
        let long = format!("1 |\n2 | {}\nunknown field", "é".repeat(9000));
        let told = message_in_words(&long);
        assert!(told.len() < 1000 && told.ends_with("é…\nunknown field"), "{told}");
    }
}
