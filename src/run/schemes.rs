//! The schemes by name, for those who list them.

use crate::scheme;

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
