//! Where a number is from.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

/// How well a number is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SourceKind {
    /// Printed by the maker, in a paper or in a configuration file.
    Published,
    /// Taken on the part itself.
    Measured,
    /// Chosen so that the model meets measured data, which the source names.
    Fitted,
    /// Known from no source; the text gives the reason for this value.
    Assumed,
    /// Given on the command line for one run.
    Set,
}

impl SourceKind {
    /// The kinds that a file may use, the best known first.
    pub const IN_FILES: [Self; 4] = [Self::Published, Self::Measured, Self::Fitted, Self::Assumed];

    /// The word in files and tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Published => "published",
            Self::Measured => "measured",
            Self::Fitted => "fitted",
            Self::Assumed => "assumed",
            Self::Set => "set",
        }
    }

    /// The kind that a key of a file names.
    #[must_use]
    pub fn of_key(key: &str) -> Option<Self> {
        Self::IN_FILES.into_iter().find(|kind| kind.name() == key)
    }
}

impl fmt::Display for SourceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Where one number is from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Source {
    /// How well it is known.
    pub kind: SourceKind,
    /// The document, data set or reason.
    pub text: String,
}

/// The source of every number of a description, by dotted key
/// (`l1.cache.sets`).
pub type Provenance = BTreeMap<String, Source>;
