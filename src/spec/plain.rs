//! TOML files of users that describe no hardware: read as strictly, without sources.

use std::path::Path;

use serde::de::DeserializeOwned;

use super::decode::decode;
use super::error::SpecError;
use super::models::read_text;
use super::tree::Node;

/// Reads the file at `path` as a `T`: a key that `T` does not have is refused with the
/// nearest one that it has.
///
/// # Errors
/// [`SpecError::Read`], [`SpecError::TooLarge`], [`SpecError::Syntax`],
/// [`SpecError::UnknownKey`], [`SpecError::Value`] and [`SpecError::Missing`], with file
/// and line.
pub fn read_plain<T: DeserializeOwned>(path: &Path) -> Result<T, SpecError> {
    let text = read_text(path)?;
    decode(&Node::read(&path.display().to_string(), &text)?)
}
