//! The tables of `reports/data`, which `reports/draw` writes, and the places of their tables
//! in texts.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, Error};

/// A run of a table that `reports/runs.jq` makes.
#[derive(Debug, Deserialize)]
pub(crate) struct Run {
    pub(crate) machine: String,
    #[serde(deserialize_with = "settings")]
    pub(crate) overrides: BTreeMap<String, String>,
    /// The applications, with ` + ` between them.
    pub(crate) mix: String,
    pub(crate) scheme: String,
    #[serde(deserialize_with = "settings")]
    pub(crate) parameters: BTreeMap<String, String>,
    /// Version of the program.
    pub(crate) build: String,
    pub(crate) makespan_cycles: f64,
    pub(crate) stp: f64,
    pub(crate) antt: f64,
    pub(crate) fairness_min_speedup: f64,
    /// Of all runs of all applications.
    pub(crate) thread_instructions: f64,
    pub(crate) energy_joules: f64,
    /// By application, held at the end.
    #[serde(deserialize_with = "joined")]
    pub(crate) sms: Vec<u32>,
    #[serde(deserialize_with = "joined")]
    pub(crate) channels: Vec<u32>,
    #[serde(deserialize_with = "joined")]
    pub(crate) ipc: Vec<f64>,
    /// Why the scheme decided first as it did.
    pub(crate) first_reason: String,
}

/// Values by application, with ` + ` between them.
fn joined<'de, D: Deserializer<'de>, T: FromStr<Err: Display>>(
    from: D,
) -> Result<Vec<T>, D::Error> {
    let text = String::deserialize(from)?;
    text.split(" + ").map(|value| value.parse().map_err(D::Error::custom)).collect()
}

/// `key=value`, with `:` between them.
fn settings<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<String, String>, D::Error> {
    let text = String::deserialize(from)?;
    let setting = |part: &str| {
        let (key, value) = part.split_once('=').ok_or_else(|| D::Error::custom("expected ="))?;
        Ok((key.to_owned(), value.to_owned()))
    };
    text.split(':').filter(|part| !part.is_empty()).map(setting).collect()
}

impl Run {
    /// The scheme with the parameters in which it differs from others of its name in `runs`.
    pub(crate) fn label(&self, runs: &[Self]) -> String {
        let differs = |key: &String, value: &String| {
            let same = runs.iter().filter(|other| other.scheme == self.scheme);
            same.map(|other| other.parameters.get(key)).any(|other| other != Some(value))
        };
        let own = self.parameters.iter().filter(|(key, value)| differs(key, value));
        own.fold(self.scheme.clone(), |name, (key, value)| format!("{name}:{key}={value}"))
    }
}

/// Texts in their order, each once.
pub(crate) fn distinct<T: PartialEq>(texts: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut found = Vec::new();
    for text in texts {
        if !found.contains(&text) {
            found.push(text);
        }
    }
    found
}

/// The folder `reports`.
pub(crate) fn reports() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("reports")
}

/// The rows of `reports/data/NAME.csv`.
pub(crate) fn rows<T: DeserializeOwned>(name: &str) -> Vec<T> {
    let path = reports().join("data").join(format!("{name}.csv"));
    let rows = csv::Reader::from_path(&path).unwrap().into_deserialize();
    rows.map(|row| row.unwrap_or_else(|error| panic!("{name}: {error}"))).collect()
}

/// Checks that `table` stands between the lines `<!-- NAME -->` and `<!-- end NAME -->` of the
/// text at `path`; with `BLESS` set, writes it there.
pub(crate) fn hold_table(path: &Path, name: &str, table: &str) {
    let mut text = fs::read_to_string(path).unwrap();
    let (open, close) = (format!("<!-- {name} -->\n"), format!("<!-- end {name} -->"));
    let begin = text.find(&open).expect("a place for the table") + open.len();
    let end = text.find(&close).expect("its end");
    if std::env::var_os("BLESS").is_some() {
        text.replace_range(begin..end, table);
        fs::write(path, &text).unwrap();
    } else {
        assert_eq!(&text[begin..end], table, "BLESS=1 writes {name} again");
    }
}
