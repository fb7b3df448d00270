//! "Did you mean": the known name that a mistyped one is closest to.

/// The name among `known` with the smallest edit distance to `word`, the first
/// of equals; `None` when none is within half of the longer name's length.
#[must_use]
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let (distance, name) = known
        .into_iter()
        .map(|name| (edit_distance(word, name), name))
        .min_by_key(|&(distance, _)| distance)?;
    let longer = name.chars().count().max(word.chars().count());
    (distance * 2 <= longer).then(|| name.to_owned())
}

/// Levenshtein distance: insertions, deletions and replacements of characters.
fn edit_distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (done, c) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = done + 1;
        for (column, &other) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(c != other);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn near_names_are_offered_and_far_ones_are_not() {
        let known = ["registers", "shared_bytes", "stream"];
        assert_eq!(nearest("regsters", known).as_deref(), Some("registers"));
        assert_eq!(nearest("steram", known).as_deref(), Some("stream"));
        assert_eq!(nearest("zzzzzz", known), None);
        assert_eq!(nearest("", []), None);
    }
}
