//! The folders of memory files.

/// The file that all standards build on, and that is none.
pub(super) const COMMON: &str = "common";

/// A folder of memory files under `models/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Folder {
    /// Memory standards.
    Memory,
    /// Address mappings.
    Mappings,
}

impl Folder {
    /// The folder's path under `models/`.
    pub(super) fn path(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Mappings => "memory/mappings",
        }
    }
}
