//! A tree of TOML values, read key by key.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::{Content, Node, Place, TomlError, dotted};
use crate::units::nearest;

/// A value with the dotted key by which errors name it.
#[derive(Clone, Debug)]
pub struct Entry<'a> {
    key: String,
    node: &'a Node,
}

impl<'a> Entry<'a> {
    pub(super) fn new(key: String, node: &'a Node) -> Self {
        Self { key, node }
    }

    /// The last word of its key.
    #[must_use]
    pub fn name(&self) -> &str {
        self.key.rsplit_once('.').map_or(&self.key, |(_, name)| name)
    }

    /// Where it stands.
    #[must_use]
    pub fn place(&self) -> &'a Place {
        &self.node.place
    }

    /// The value itself.
    #[must_use]
    pub fn content(&self) -> &'a Content {
        &self.node.content
    }

    /// The error of a value that is not what was `expected`.
    #[must_use]
    pub fn wrong(&self, expected: impl Into<String>) -> TomlError {
        TomlError::Value {
            place: self.node.place.clone(),
            key: self.key.clone(),
            expected: expected.into(),
            found: self.node.content.describe(),
            nearest: None,
        }
    }

    /// The text.
    ///
    /// # Errors
    /// [`TomlError::Value`] for anything but a string.
    pub fn text(&self) -> Result<&'a str, TomlError> {
        self.node.text().ok_or_else(|| self.wrong("a string"))
    }

    /// The number.
    ///
    /// # Errors
    /// [`TomlError::Value`] for anything but a whole number in `range`.
    pub fn integer(&self, range: RangeInclusive<i64>) -> Result<i64, TomlError> {
        match &self.node.content {
            Content::Integer(value) if range.contains(value) => Ok(*value),
            _ if range == (0..=i64::MAX) => Err(self.wrong("a whole number from 0 on")),
            _ => Err(self.wrong(format!("{} to {}", range.start(), range.end()))),
        }
    }

    /// True or false.
    ///
    /// # Errors
    /// [`TomlError::Value`] for anything else.
    pub fn flag(&self) -> Result<bool, TomlError> {
        match &self.node.content {
            Content::Flag(flag) => Ok(*flag),
            _ => Err(self.wrong("true or false")),
        }
    }

    /// The items of a list with one item at least.
    ///
    /// # Errors
    /// [`TomlError::Value`] for anything else.
    pub fn items(&self) -> Result<Vec<Self>, TomlError> {
        match &self.node.content {
            Content::List(items) if !items.is_empty() => {
                Ok(items.iter().map(|node| Self::new(self.key.clone(), node)).collect())
            }
            _ => Err(self.wrong("a list that is not empty")),
        }
    }

    /// The entries of a section whose keys are the user's own, in the order of the file.
    ///
    /// # Errors
    /// [`TomlError::Value`] for anything but a section.
    pub fn entries(&self) -> Result<Vec<Self>, TomlError> {
        let entries = self.node.entries().ok_or_else(|| self.wrong("a section"))?;
        let entry = |(name, node): (&String, &'a Node)| Self::new(dotted(&self.key, name), node);
        let mut entries: Vec<Self> = entries.iter().map(entry).collect();
        entries.sort_by_key(|entry| entry.node.offset);
        Ok(entries)
    }

    /// The section, which may have the keys in `known` and no other.
    ///
    /// # Errors
    /// [`TomlError::Value`] for anything but a section, [`TomlError::UnknownKey`].
    pub fn section(&self, known: &[&str]) -> Result<Section<'a>, TomlError> {
        let entries = self.node.entries().ok_or_else(|| self.wrong("a section"))?;
        let unknown = entries.iter().find(|(name, _)| !known.contains(&name.as_str()));
        if let Some((name, node)) = unknown {
            return Err(TomlError::UnknownKey {
                place: node.place.clone(),
                key: dotted(&self.key, name),
                nearest: nearest(name, known.iter().copied()),
            });
        }
        Ok(Section { entry: self.clone(), entries })
    }
}

/// A section all of whose keys are known.
#[derive(Clone, Debug)]
pub struct Section<'a> {
    entry: Entry<'a>,
    entries: &'a BTreeMap<String, Node>,
}

impl<'a> Section<'a> {
    /// Where it begins.
    #[must_use]
    pub fn place(&self) -> &'a Place {
        self.entry.place()
    }

    /// The value of `key`, when it has one.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<Entry<'a>> {
        let entry = |node| Entry::new(dotted(&self.entry.key, key), node);
        self.entries.get(key).map(entry)
    }

    /// The value of `key`.
    ///
    /// # Errors
    /// [`TomlError::Missing`].
    pub fn require(&self, key: &str) -> Result<Entry<'a>, TomlError> {
        self.get(key).ok_or_else(|| TomlError::Missing {
            place: self.place().clone(),
            key: dotted(&self.entry.key, key),
        })
    }

    /// The text of `key`.
    ///
    /// # Errors
    /// [`TomlError::Missing`], [`TomlError::Value`].
    pub fn text(&self, key: &str) -> Result<&'a str, TomlError> {
        self.require(key)?.text()
    }

    /// The number of `key`, or `default` where the key is missing.
    ///
    /// # Errors
    /// [`TomlError::Value`].
    pub fn integer_or(
        &self,
        default: i64,
        key: &str,
        range: RangeInclusive<i64>,
    ) -> Result<i64, TomlError> {
        self.get(key).map_or(Ok(default), |entry| entry.integer(range))
    }

    /// The flag of `key`; false where the key is missing.
    ///
    /// # Errors
    /// [`TomlError::Value`].
    pub fn flag(&self, key: &str) -> Result<bool, TomlError> {
        self.get(key).map_or(Ok(false), |entry| entry.flag())
    }

    /// The entries of the section `key` in the order of the file; none where it is missing.
    ///
    /// # Errors
    /// [`TomlError::Value`].
    pub fn entries(&self, key: &str) -> Result<Vec<Entry<'a>>, TomlError> {
        self.get(key).map_or(Ok(Vec::new()), |entry| entry.entries())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Node, TomlError};

    const KNOWN: &[&str] = &["count", "names", "deep"];

    fn error(text: &str) -> String {
        let node = Node::read("f.toml", text).unwrap();
        let read = || -> Result<(), TomlError> {
            let section = node.root().section(KNOWN)?;
            section.require("count")?.integer(1..=9)?;
            section.require("deep")?.section(&["flag"])?.flag("flag")?;
            section.require("names")?.items().map(|_| ())
        };
        read().unwrap_err().to_string()
    }

    #[test]
    fn errors_name_file_line_key_and_what_was_expected() {
        assert_eq!(error("\ncuont = 1"), "f.toml:2: unknown key `cuont`; did you mean `count`?");
        assert_eq!(error("deep = {}"), "f.toml:1: `count` is missing");
        assert_eq!(error("count = 10"), "f.toml:1: `count`: expected 1 to 9, found 10");
        assert_eq!(
            error("count = 1\n[deep]\nflag = 'x'"),
            "f.toml:3: `deep.flag`: expected true or false, found \"x\""
        );
        assert_eq!(
            error("count = 1\nnames = []\n[deep]"),
            "f.toml:2: `names`: expected a list that is not empty, found a list of 0"
        );
    }

    #[test]
    fn entries_come_in_the_order_of_the_file() {
        let node = Node::read("f", "z = 1\na = 2\nm = { value = 3 }").unwrap();
        let entries = node.root().entries().unwrap();
        let names: Vec<&str> = entries.iter().map(super::Entry::name).collect();
        assert_eq!(names, ["z", "a", "m"]);
    }
}
