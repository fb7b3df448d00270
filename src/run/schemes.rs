//! The schemes by name, for those who list them and those who run them.

use std::collections::BTreeMap;

use crate::scheme::{self, Scheme};

use super::error::RunError;

/// One scheme as the command line lists it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchemeRow {
    /// The name that `--scheme` takes.
    pub name: &'static str,
    /// Where it is from.
    pub paper: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
}

/// Every scheme, in the order of the table of schemes.
#[must_use]
pub fn schemes() -> Vec<SchemeRow> {
    let row =
        |row: &scheme::Row| SchemeRow { name: row.name, paper: row.paper, summary: row.summary };
    scheme::TABLE.iter().map(row).collect()
}

/// A scheme as it was asked for.
pub(super) struct Chosen {
    pub(super) name: String,
    /// Its parameters, defaults included.
    pub(super) parameters: BTreeMap<String, String>,
}

/// The scheme that `typed` names, as `name` or `name:key=value:key=value`.
///
/// # Errors
/// When there is none, or it has no such parameter or value.
pub(super) fn chosen(typed: &str) -> Result<(Chosen, Box<dyn Scheme>), RunError> {
    let choice = scheme::Choice::parse(typed)?;
    let parameters = choice.settings().iter();
    let parameters = parameters.map(|(name, value)| (name.to_owned(), value.to_string())).collect();
    Ok((Chosen { name: choice.row().name.to_owned(), parameters }, choice.make()))
}
