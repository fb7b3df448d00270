//! What is wrong with a plan or a queue, and where in it.

use std::path::Path;

/// A file, with its line where that is known.
pub(super) fn at(path: &Path, line: Option<u32>) -> String {
    let line = line.map_or_else(String::new, |line| format!(":{line}"));
    format!("{}{line}", path.display())
}

/// A value that no file of its kind can have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    /// The keys that lead to it, of items of lists their places from 0.
    pub(super) keys: Vec<String>,
    /// Key, what was expected and what was found.
    pub(super) message: String,
}

impl Wrong {
    /// Something wrong with the value of `key`.
    pub(super) fn of(key: &str, message: impl Into<String>) -> Self {
        Self { keys: vec![key.to_owned()], message: message.into() }
    }

    /// The same, of the item at `place` of the list.
    pub(super) fn item(mut self, place: usize) -> Self {
        self.keys.push(place.to_string());
        self
    }

    /// The same, of the value of `key` in it.
    pub(super) fn within(mut self, key: &str) -> Self {
        self.keys.push(key.to_owned());
        self
    }
}
