//! Published values that stand beside what is found.

use std::collections::BTreeMap;

use serde::Deserialize;

use gpumodel_core::units::message_in_words;
use gpumodel_report::results::{InterferenceRecord, PublishedSlowdown};
use gpumodel_sim::config::{Models, SpecError};

/// Slow-downs as ILP-SMRA prints them (Fig. 2, and the text about it).
#[derive(Clone, Debug, Default)]
pub(super) struct Published(Vec<PublishedSlowdown>);

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

impl Published {
    /// Reads what the model files say.
    pub(super) fn load(models: &Models) -> Result<Self, SpecError> {
        let text = models.text("papers", PAPER)?;
        let raw: Raw = toml::from_str(&text.text).map_err(|error| SpecError::Paper {
            file: text.origin.clone(),
            message: message_in_words(error.to_string().trim_end()),
        })?;
        let rows = raw.interference.slowdown.iter();
        let entries = rows.flat_map(|(disturbs, row)| {
            row.iter().map(move |(suffers, &entry)| slowdown(disturbs, suffers, entry))
        });
        Ok(Self(entries.collect()))
    }

    /// Puts them beside what was found, where it is about the same classes.
    pub(super) fn beside(&self, record: &mut InterferenceRecord) {
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
    use super::Published;

    #[test]
    fn what_the_paper_prints_is_there() {
        let published = Published::load(&crate::models(None).unwrap()).unwrap();
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
