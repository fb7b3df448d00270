//! The slow-downs that classes of applications cause each other, as a paper prints them.

use std::collections::BTreeMap;

use serde::Deserialize;

use gpumodel_core::models::ModelFiles;

use super::file::{PaperError, read};
use crate::results::{InterferenceRecord, PublishedSlowdown};

/// Slow-downs as ILP-SMRA prints them (Fig. 2, and the text about it).
#[derive(Clone, Debug, Default)]
pub struct PublishedSlowdowns(Vec<PublishedSlowdown>);

/// What of the paper's file is read here.
#[derive(Deserialize)]
struct Raw {
    interference: Interference,
}

#[derive(Deserialize)]
struct Interference {
    slowdown: BTreeMap<String, BTreeMap<String, Entry>>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(untagged)]
enum Entry {
    Value(f64),
    Range([f64; 2]),
}

const PAPER: &str = "ilp-smra";

impl PublishedSlowdowns {
    /// Reads what the model files say.
    ///
    /// # Errors
    /// Those of [`Paper::load`](super::Paper::load).
    pub fn load(models: &ModelFiles) -> Result<Self, PaperError> {
        let raw: Raw = read(models, PAPER)?;
        let rows = raw.interference.slowdown.iter();
        let entries = rows.flat_map(|(disturbs, row)| {
            row.iter().map(move |(suffers, &entry)| slowdown(disturbs, suffers, entry))
        });
        Ok(Self(entries.collect()))
    }

    /// Adds them to what the model gives, where it is about the same classes.
    pub fn add_to(&self, record: &mut InterferenceRecord) {
        let known = |class: &String| record.classes.contains(class);
        if self.0.iter().all(|one| known(&one.disturbs) && known(&one.suffers)) {
            record.published.clone_from(&self.0);
        }
    }
}

fn slowdown(disturbs: &str, suffers: &str, entry: Entry) -> PublishedSlowdown {
    let (low, high) = match entry {
        Entry::Value(value) => (value, value),
        Entry::Range([low, high]) => (low, high),
    };
    PublishedSlowdown { disturbs: disturbs.to_owned(), suffers: suffers.to_owned(), low, high }
}

#[cfg(test)]
mod tests {
    use super::PublishedSlowdowns;

    #[test]
    fn what_the_paper_prints_is_there() {
        let published = PublishedSlowdowns::load(&gpumodel_models::builtin()).unwrap();
        let of = |disturbs: &str, suffers: &str| {
            let found = published.0.iter().find(|o| o.disturbs == disturbs && o.suffers == suffers);
            found.map(|one| (one.low, one.high))
        };
        assert_eq!(of("MC", "M"), Some((2.05, 2.05)));
        assert_eq!(of("A", "C"), Some((1.50, 1.51)), "within the row and the column");
        assert_eq!(of("M", "M"), None);
        assert!(published.0.iter().all(|one| one.low <= one.high));
    }
}
