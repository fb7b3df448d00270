//! Names with lists of settings, multiplied out: `name:key=1,2:other=a,b`.

use gpumodel_core::units::{quoted, shown};

/// A name with settings, each of one value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) name: String,
    pub(super) settings: Vec<(String, String)>,
}

/// Every combination of the values in `typed`, the last list fastest.
///
/// # Errors
/// What was expected where a part has no `=`, a list has an empty place, or a key
/// comes twice.
pub(super) fn combinations(typed: &str) -> Result<Vec<Named>, String> {
    let mut parts = typed.split(':');
    let name = parts.next().unwrap_or_default().trim().to_owned();
    if name.is_empty() {
        return Err(format!("expected a name, found {}", quoted(typed.as_bytes())));
    }
    let mut all = vec![Named { name, settings: Vec::new() }];
    for part in parts {
        let found = || quoted(part.as_bytes());
        let (key, values) = part
            .split_once('=')
            .ok_or_else(|| format!("expected key=value after the colon, found {}", found()))?;
        let (key, values) = (key.trim(), list(values));
        if all[0].settings.iter().any(|(known, _)| known == key) {
            return Err(format!("{} comes twice in {}", shown(key), quoted(typed.as_bytes())));
        }
        if key.is_empty() || values.iter().any(|value| value.is_empty()) {
            return Err(format!("expected key=value or key=value,value, found {}", found()));
        }
        if all.len().saturating_mul(values.len()) > MOST {
            return Err(format!("expected at most {MOST} combinations in one word"));
        }
        let with = |one: &Named, value: &str| {
            let mut one = one.clone();
            one.settings.push((key.to_owned(), value.to_owned()));
            one
        };
        all = all.iter().flat_map(|one| values.iter().map(move |v| with(one, v))).collect();
    }
    Ok(all)
}

/// Combinations of one word at most.
const MOST: usize = 10_000;

/// The values between commas; those within brackets or quotes divide nothing.
fn list(values: &str) -> Vec<&str> {
    let (mut found, mut from, mut depth, mut quoted) = (Vec::new(), 0, 0_i32, false);
    for (at, letter) in values.char_indices() {
        match letter {
            '"' => quoted = !quoted,
            '[' | '{' if !quoted => depth += 1,
            ']' | '}' if !quoted => depth -= 1,
            ',' if depth == 0 && !quoted => {
                found.push(values[from..at].trim());
                from = at + 1;
            }
            _ => {}
        }
    }
    found.push(values[from..].trim());
    found
}

#[cfg(test)]
mod tests {
    use super::combinations;

    fn told(typed: &str) -> Vec<String> {
        let word = |(key, value): &(String, String)| format!("{key}={value}");
        let all = combinations(typed).unwrap().into_iter();
        all.map(|one| {
            let words: Vec<String> = one.settings.iter().map(word).collect();
            format!("{}|{}", one.name, words.join("|"))
        })
        .collect()
    }

    #[test]
    fn lists_multiply_out() {
        assert_eq!(told("even"), ["even|"]);
        assert_eq!(told("w:a=1, 2:b=x,y"), ["w|a=1|b=x", "w|a=1|b=y", "w|a=2|b=x", "w|a=2|b=y"]);
        assert_eq!(told("m:k=[1,2],[3]"), ["m|k=[1,2]", "m|k=[3]"]);
    }

    #[test]
    fn what_is_no_setting_is_refused() {
        for wrong in ["", ":a=1", "w:a", "w:a=", "w:a=1,,2", "w:=1", "w:a=1:a=2"] {
            assert!(combinations(wrong).is_err(), "{wrong}");
        }
        let many = format!(
            "w:a={0}:b={0}:c={0}",
            (0..30).map(|n| n.to_string()).collect::<Vec<_>>().join(",")
        );
        assert!(combinations(&many).unwrap_err().contains("at most"));
    }

    #[test]
    fn long_words_are_cut_in_errors() {
        let long = "\u{7f}é".repeat(5000);
        for wrong in [format!("w:{long}=1:{long}=2"), format!("w:{long}"), format!(":{long}")] {
            let error = combinations(&wrong).unwrap_err();
            assert!(error.len() < 500, "{} bytes: {error}", error.len());
        }
    }
}
