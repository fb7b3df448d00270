//! TOML files of users that describe no hardware: read as strictly, without sources.

use std::path::Path;

use serde::de::DeserializeOwned;

use super::decode::decode;
use super::error::SpecError;
use super::tree::{Content, Node};
use gpumodel_core::models::read_text;

/// Where the keys of a file stand.
#[derive(Clone, Debug)]
pub struct KeyLines(Node);

impl KeyLines {
    /// The line of the value to which `keys` lead, which for items of lists are their places
    /// from 0; that of the last one of them that there is. `None`: there is not even the
    /// first.
    #[must_use]
    pub fn line(&self, keys: &[String]) -> Option<u32> {
        let (mut node, mut line) = (&self.0, None);
        for key in keys {
            let next = match &node.content {
                Content::Table(entries) => entries.get(key),
                Content::List(items) => key.parse::<usize>().ok().and_then(|at| items.get(at)),
                _ => None,
            };
            let Some(next) = next else { break };
            (node, line) = (next, Some(next.place.line()));
        }
        line
    }
}

/// Reads the file at `path` as a `T`: a key that `T` does not have is refused with the
/// nearest one that it has.
///
/// # Errors
/// [`SpecError::File`], and those of [`plain`].
pub fn read_plain<T: DeserializeOwned>(path: &Path) -> Result<(T, KeyLines), SpecError> {
    plain(path, &read_text(path)?)
}

/// Reads the `text` of the file at `path` as a `T`, as [`read_plain`].
///
/// # Errors
/// [`SpecError::Syntax`], [`SpecError::UnknownKey`] and [`SpecError::Value`], with file and
/// line.
pub fn plain<T: DeserializeOwned>(path: &Path, text: &str) -> Result<(T, KeyLines), SpecError> {
    let node = Node::read(&path.display().to_string(), text)?;
    let value = decode(&node).map_err(|error| match error {
        // No number of such a file is described with the models.
        SpecError::Missing { place, key } => SpecError::Value {
            place,
            key,
            expected: String::from("a value"),
            found: String::from("nothing"),
            nearest: None,
        },
        other => other,
    })?;
    Ok((value, KeyLines(node)))
}
