//! Tables that papers print, with what our runs give of them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A table that a paper prints.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PublishedTable {
    /// Its key in the paper's file.
    pub name: String,
    /// What it is about.
    pub title: String,
    /// Where it is printed.
    pub published: String,
    /// The schemes that its lists are of, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub schemes: Vec<String>,
    /// Its values.
    pub values: Vec<PublishedValue>,
    /// Why ours is missing where it is; absent: no run has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unmodelled: Option<String>,
}

/// A value of such a table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PublishedValue {
    /// The row: an application, several with ` + ` between them, a class; empty: none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub row: String,
    /// Where the row stands, by keys with their units.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub at: BTreeMap<String, f64>,
    /// The column, with its unit.
    pub column: String,
    /// What is printed.
    pub published: Quoted,
    /// Ours; absent: no run has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modelled: Option<Quoted>,
}

/// What stands in a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Quoted {
    /// A number.
    Number(f64),
    /// Several: of schemes, of applications, or both ends of a range.
    Numbers(Vec<f64>),
    /// A word.
    Text(String),
    /// Several.
    Texts(Vec<String>),
}

impl Default for Quoted {
    fn default() -> Self {
        Self::Texts(Vec::new())
    }
}
