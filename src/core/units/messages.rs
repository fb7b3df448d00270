//! Words of messages: quoted input, the nearest known name, what serde expects, and the causes
//! of an error.

use std::error::Error;

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

/// How many there are of `thing`, one of which it names: `1 launch`, `2 launches`.
#[must_use]
pub fn counted(count: u64, thing: &str) -> String {
    let ending = match thing {
        _ if count == 1 => "",
        thing if thing.ends_with("ch") => "es",
        _ => "s",
    };
    format!("{count} {thing}{ending}")
}

/// The name among `known` that begins with `word` or whose words do with its letters, else
/// the one with the smallest edit distance to it, or to its beginning; the first of equals. `None`
/// when even that one shares less than half of its letters. Capital letters are as small ones.
#[must_use]
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let small = word.to_lowercase();
    let cost = |name: &str| {
        let name = name.to_lowercase();
        let begins = small.len() >= SHORTEST_BEGINNING && name.starts_with(&small);
        let short = !small.is_empty() && small == initials(&name);
        if begins || short { 0 } else { misspelt(&small, &name) }
    };
    let (cost, name) =
        known.into_iter().map(|name| (cost(name), name)).min_by_key(|&(cost, _)| cost)?;
    (cost * 2 <= name.chars().count().max(word.chars().count())).then(|| name.to_owned())
}

/// ` (did you mean NAME?)` for a message about `word`, or nothing where none of `known` is near.
#[must_use]
pub fn did_you_mean<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(word, known).map_or_else(String::new, |name| format!(" (did you mean {name}?)"))
}

/// Letters from which on a beginning counts as the name.
const SHORTEST_BEGINNING: usize = 3;

/// The first letters of the words of a name with hyphens; of one word nothing.
fn initials(name: &str) -> String {
    let words = if name.contains('-') { name } else { "" };
    words.split('-').filter_map(|word| word.chars().next()).collect()
}

/// The edit distance from `word` to `name`, or one more than that to its beginning, of which `word`
/// must share more than half: `qso` is near `qos-bp`.
fn misspelt(word: &str, name: &str) -> usize {
    let letters = word.chars().count();
    let beginning: String = name.chars().take(letters).collect();
    let (whole, part) = (distance(word, name), distance(word, &beginning));
    let counts = letters >= SHORTEST_BEGINNING && part * 2 < letters;
    if counts { whole.min(part + 1) } else { whole }
}

/// Letters to insert, remove or replace, or neighbours to swap, to get from one word to the other.
/// Words are cut at 64 letters: names are shorter.
fn distance(from: &str, to: &str) -> usize {
    let [from, to] = [from, to].map(|word| word.chars().take(64).collect::<String>());
    strsim::osa_distance(&from, &to)
}

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

/// What `error` says, then what its causes say. An error leaves it to its causes to say
/// what they are, so that nothing stands there twice.
#[must_use]
pub fn with_causes(error: &dyn Error) -> Vec<String> {
    let mut words = vec![error.to_string()];
    let mut cause = error.source();
    while let Some(inner) = cause {
        words.push(inner.to_string());
        cause = inner.source();
    }
    words
}

#[cfg(test)]
mod tests {
    use super::{did_you_mean, in_words, message_in_words, nearest, quoted};

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

    #[test]
    fn a_word_like_nothing_has_no_neighbour() {
        let known = ["latency_cycles", "banks", "queue"];
        assert_eq!(nearest("latency_cyles", known).as_deref(), Some("latency_cycles"));
        assert_eq!(nearest("latency", known).as_deref(), Some("latency_cycles"));
        assert_eq!(nearest("zzzz", known), None);
        assert_eq!(did_you_mean("latency", known), " (did you mean latency_cycles?)");
        assert_eq!(did_you_mean("zzzz", known), "");
        assert_eq!(did_you_mean("", known), "");
    }

    #[test]
    fn initials_stand_for_a_name_of_several_words() {
        let known = ["arcs", "ilp-smra", "slate", "warped-slicer"];
        assert_eq!(nearest("WS", known).as_deref(), Some("warped-slicer"));
        assert_eq!(nearest("is", known).as_deref(), Some("ilp-smra"));
        assert_eq!(nearest("w", known), None);
    }

    #[test]
    fn a_misspelt_beginning_stands_for_a_longer_name() {
        let known = ["bp", "sim", "solo", "qos-bp", "qos-ugpu", "warped-slicer"];
        assert_eq!(nearest("qso", known).as_deref(), Some("qos-bp"), "two letters are swapped");
        assert_eq!(nearest("wrape", known).as_deref(), Some("warped-slicer"));
        assert_eq!(nearest("qxy", known), None, "one letter of three is not enough");
    }

    #[test]
    fn capital_letters_are_as_small_ones() {
        let known = ["a100", "gtx-1080", "v100"];
        assert_eq!(nearest("V100", known).as_deref(), Some("v100"));
        assert_eq!(nearest("GTX", known).as_deref(), Some("gtx-1080"));
        assert_eq!(nearest("trcd", ["tRP", "tRCDRD"]).as_deref(), Some("tRCDRD"));
    }

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
        let message = message_in_words(&long);
        assert!(message.len() < 1000 && message.ends_with("é…\nunknown field"), "{message}");
    }
}
