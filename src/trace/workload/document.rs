//! Strict reading of a TOML table: known keys only, every fault at its byte.
//! Knows nothing of workloads.

use std::ops::RangeInclusive;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use gpumodel_core::units::nearest;

use super::error::Fault;

/// One table of the file with the keys that it may have.
pub(super) struct Keys<'a> {
    table: &'a DeTable<'a>,
    /// What the table is, for messages.
    place: String,
    /// Byte of the table.
    at: usize,
}

impl<'a> Keys<'a> {
    /// Opens `table`; a key that is not among `known` is a fault that names the
    /// nearest known one.
    pub(super) fn new(
        table: &'a DeTable<'a>,
        at: usize,
        place: &str,
        known: &[&str],
    ) -> Result<Self, Fault> {
        for key in table.keys() {
            let name = key.get_ref().as_ref();
            if !known.contains(&name) {
                let hint = match nearest(name, known.iter().copied()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("known are {}", known.join(", ")),
                };
                let what = format!("unknown key `{name}` in {place}; {hint}");
                return Err(Fault::new(key.span().start, what));
            }
        }
        Ok(Self { table, place: place.to_owned(), at })
    }

    /// Byte of the table.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// The value of `key`, if it is there.
    pub(super) fn get(&self, key: &str) -> Option<&'a Spanned<DeValue<'a>>> {
        self.table.get(key)
    }

    /// The value of `key`, which must be there.
    pub(super) fn require(&self, key: &str) -> Result<&'a Spanned<DeValue<'a>>, Fault> {
        self.get(key)
            .ok_or_else(|| Fault::new(self.at, format!("{} has no key `{key}`", self.place)))
    }

    /// A text that must be there.
    pub(super) fn text(&self, key: &str) -> Result<&'a str, Fault> {
        text(self.require(key)?, key)
    }

    /// An integer in `range`, or `default` where the key is missing.
    pub(super) fn integer(
        &self,
        key: &str,
        range: RangeInclusive<i64>,
        default: i64,
    ) -> Result<i64, Fault> {
        let Some(value) = self.get(key) else { return Ok(default) };
        let found = integer(value, key)?;
        if range.contains(&found) {
            return Ok(found);
        }
        let (low, high) = (range.start(), range.end());
        let what = format!("`{key}` is {found}, expected {low} to {high}");
        Err(Fault::new(value.span().start, what))
    }

    /// A flag, false where the key is missing.
    pub(super) fn flag(&self, key: &str) -> Result<bool, Fault> {
        let Some(value) = self.get(key) else { return Ok(false) };
        value.get_ref().as_bool().ok_or_else(|| mismatch(value, key, "true or false"))
    }

    /// The entries of the table at `key` in file order; none where it is missing.
    pub(super) fn entries(&self, key: &str) -> Result<Vec<Entry<'a>>, Fault> {
        let Some(value) = self.get(key) else { return Ok(Vec::new()) };
        let table =
            value.get_ref().as_table().ok_or_else(|| mismatch(value, key, "a table of names"))?;
        let mut entries: Vec<Entry> = table
            .iter()
            .map(|(name, value)| Entry {
                name: name.get_ref().as_ref(),
                at: name.span().start,
                value,
            })
            .collect();
        entries.sort_by_key(|entry| entry.at);
        Ok(entries)
    }

    /// The items of the array at `key`, which must be there and not be empty.
    pub(super) fn items(&self, key: &str) -> Result<Vec<&'a Spanned<DeValue<'a>>>, Fault> {
        let value = self.require(key)?;
        let array = value.get_ref().as_array().ok_or_else(|| mismatch(value, key, "an array"))?;
        if array.is_empty() {
            return Err(Fault::new(value.span().start, format!("`{key}` is empty")));
        }
        Ok(array.iter().collect())
    }
}

/// One named entry of a table.
pub(super) struct Entry<'a> {
    /// The key.
    pub(super) name: &'a str,
    /// Byte of the key.
    pub(super) at: usize,
    /// Its value.
    pub(super) value: &'a Spanned<DeValue<'a>>,
}

/// The text in `value`.
pub(super) fn text<'a>(value: &'a Spanned<DeValue<'a>>, key: &str) -> Result<&'a str, Fault> {
    value.get_ref().as_str().ok_or_else(|| mismatch(value, key, "a text"))
}

/// The integer in `value`.
pub(super) fn integer(value: &Spanned<DeValue<'_>>, key: &str) -> Result<i64, Fault> {
    let found = value.get_ref().as_integer().ok_or_else(|| mismatch(value, key, "an integer"))?;
    i64::from_str_radix(found.as_str(), found.radix())
        .map_err(|e| Fault::new(value.span().start, format!("`{key}` is {found}: {e}")))
}

/// The fault of a value of the wrong type.
pub(super) fn mismatch(value: &Spanned<DeValue<'_>>, key: &str, expected: &str) -> Fault {
    let found = value.get_ref().type_str();
    Fault::new(
        value.span().start,
        format!("`{key}` is {} {found}, expected {expected}", article(found)),
    )
}

fn article(word: &str) -> &'static str {
    if word.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" }
}
