//! The known name that a misspelt one most likely means.

/// The name among `known` that begins with `word` or whose words do with its letters, else
/// the one with the smallest edit distance to it, the first of equals; `None` when even that one shares
/// less than half of its letters. Capital letters are as small ones.
#[must_use]
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let small = word.to_lowercase();
    let cost = |name: &str| {
        let name = name.to_lowercase();
        let begins = small.len() >= SHORTEST_BEGINNING && name.starts_with(&small);
        let short = !small.is_empty() && small == initials(&name);
        if begins || short { 0 } else { distance(&small, &name) }
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

/// Letters to insert, remove or replace to get from one word to the other. Words are cut at 64
/// letters: names are shorter.
fn distance(from: &str, to: &str) -> usize {
    let [from, to] = [from, to].map(|word| word.chars().take(64).collect::<String>());
    strsim::levenshtein(&from, &to)
}

#[cfg(test)]
mod tests {
    use super::{did_you_mean, nearest};

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
    fn capital_letters_are_as_small_ones() {
        let known = ["a100", "gtx-1080", "v100"];
        assert_eq!(nearest("V100", known).as_deref(), Some("v100"));
        assert_eq!(nearest("GTX", known).as_deref(), Some("gtx-1080"));
        assert_eq!(nearest("trcd", ["tRP", "tRCDRD"]).as_deref(), Some("tRCDRD"));
    }
}
