//! Sums and products over named parameters: `tCL + tBL + 2 - tWL`.

use std::collections::BTreeMap;

/// Evaluates `text` over whole numbers; `*` and `/` bind tighter than `+` and
/// `-`, and a division must leave no rest.
///
/// # Errors
/// A sentence that says what is wrong; an unknown name is [`Fault::Name`].
pub(super) fn evaluate(text: &str, values: &BTreeMap<String, i64>) -> Result<i64, Fault> {
    let words = words(text)?;
    let mut total: i64 = 0;
    let mut at = 0;
    let mut plus = true;
    loop {
        let (product, next) = product(&words, at, values)?;
        let sum = if plus { total.checked_add(product) } else { total.checked_sub(product) };
        total = sum.ok_or_else(too_large)?;
        plus = match words.get(next).map(String::as_str) {
            None => return Ok(total),
            Some("+") => true,
            Some("-") => false,
            Some(other) => return Err(Fault::Sentence(format!("`{other}` after a term"))),
        };
        at = next + 1;
    }
}

/// The names in `text`, for finding parameters that nothing uses.
pub(super) fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|word| word.starts_with(|c: char| c.is_alphabetic()))
}

/// Why an expression has no value.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// A name that no parameter has.
    Name(String),
    /// Anything else, in words.
    Sentence(String),
}

fn too_large() -> Fault {
    Fault::Sentence("a number beyond 64 bits".to_owned())
}

fn words(text: &str) -> Result<Vec<String>, Fault> {
    let mut words: Vec<String> = Vec::new();
    let mut open = false;
    for letter in text.chars() {
        match letter {
            ' ' => open = false,
            '+' | '-' | '*' | '/' => {
                words.push(letter.to_string());
                open = false;
            }
            _ if letter.is_ascii_alphanumeric() || letter == '_' => {
                match words.last_mut() {
                    Some(word) if open => word.push(letter),
                    _ => words.push(letter.to_string()),
                }
                open = true;
            }
            _ => return Err(Fault::Sentence(format!("`{letter}` in an expression"))),
        }
    }
    Ok(words)
}

/// The product that starts at word `at`, and the word after it.
fn product(
    words: &[String],
    at: usize,
    values: &BTreeMap<String, i64>,
) -> Result<(i64, usize), Fault> {
    let mut total = factor(words, at, values)?;
    let mut next = at + 1;
    while let Some(sign @ ("*" | "/")) = words.get(next).map(String::as_str) {
        let value = factor(words, next + 1, values)?;
        total = match sign {
            "*" => total.checked_mul(value).ok_or_else(too_large)?,
            _ if total.checked_rem(value) == Some(0) => total / value,
            _ => return Err(Fault::Sentence(format!("{total} / {value} is no whole number"))),
        };
        next += 2;
    }
    Ok((total, next))
}

fn factor(words: &[String], at: usize, values: &BTreeMap<String, i64>) -> Result<i64, Fault> {
    let word = words.get(at).ok_or_else(|| Fault::Sentence("an end after a sign".to_owned()))?;
    if let Some(&value) = values.get(word) {
        return Ok(value);
    }
    if word.starts_with(|c: char| c.is_ascii_digit()) {
        return word.parse().map_err(|_| Fault::Sentence(format!("`{word}` is no number")));
    }
    Err(Fault::Name(word.clone()))
}

#[cfg(test)]
mod tests {
    use super::{Fault, evaluate};
    use std::collections::BTreeMap;

    #[test]
    fn products_bind_before_sums() {
        let values = BTreeMap::from([("tCL".to_owned(), 14), ("tWL".to_owned(), 2)]);
        assert_eq!(evaluate("tCL + 2 * 3 - tWL", &values), Ok(18));
        assert_eq!(evaluate("tCL / tWL", &values), Ok(7));
        assert_eq!(evaluate("tCX", &values), Err(Fault::Name("tCX".to_owned())));
        assert!(evaluate("tCL +", &values).is_err());
        assert!(evaluate("tCL tWL", &values).is_err());
        assert!(evaluate("tCL / 4", &values).is_err());
    }

    #[test]
    fn the_least_number_has_no_counterpart() {
        let values = BTreeMap::from([("least".to_owned(), i64::MIN), ("one".to_owned(), -1)]);
        for text in ["least / one", "least * one", "0 - least", "least - 1"] {
            assert!(matches!(evaluate(text, &values), Err(Fault::Sentence(_))), "{text}");
        }
        assert_eq!(evaluate("one - least", &values), Ok(i64::MAX));
    }
}
