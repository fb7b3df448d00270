//! A resolved machine as rows of key, value and source, for people and scripts.

use serde::Serialize;
use serde_json::Value;

use super::resolve::Resolved;
use super::source::Source;
use super::tree::dotted;

/// One value of a machine.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Listed {
    /// The dotted key, as `--set` takes it.
    pub key: String,
    /// The value.
    pub value: Value,
    /// Where it is from; `None` for describing words and documented defaults.
    #[serde(flatten)]
    pub source: Option<Source>,
}

impl Resolved {
    /// Every value of the machine in the order of its description.
    ///
    /// # Panics
    /// Never: a machine is plain data and has a JSON form.
    #[must_use]
    pub fn listing(&self) -> Vec<Listed> {
        let machine = serde_json::to_value(&self.machine).expect("plain data has a JSON form");
        let mut rows = Vec::new();
        self.collect("", machine, &mut rows);
        rows
    }

    fn collect(&self, key: &str, value: Value, rows: &mut Vec<Listed>) {
        match value {
            Value::Object(entries) => {
                for (name, inner) in entries {
                    self.collect(&dotted(key, &name), inner, rows);
                }
            }
            value => {
                let source = self.provenance.get(key).cloned();
                rows.push(Listed { key: key.to_owned(), value, source });
            }
        }
    }
}
