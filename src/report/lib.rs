//! Tables, figures and pages from records alone.
//!
//! Knows no machine and no trace: whatever it shows is in the record. Same
//! record, same bytes.

mod chart;
mod document;
mod error;
pub mod figure;
mod format;
mod kernels;
mod look;
mod machine;
mod mix;
mod notes;
mod page;
pub mod paper;
mod queue;
pub mod results;
mod solo_run;
pub mod table;
mod trace_events;

pub use error::ReportError;
pub use format::plain_name;
pub use look::scheme_look;
pub use page::{Of, PageFigure, RECORD, benchmark_files, page, write_all};
pub use trace_events::trace_events;

/// Each of `items` once, in the order in which they first come.
fn distinct<T: PartialEq>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut found = Vec::new();
    for item in items {
        if !found.contains(&item) {
            found.push(item);
        }
    }
    found
}

/// The values of `items` by key, in the order in which the keys first come.
fn group_by<K: PartialEq, V>(items: impl IntoIterator<Item = (K, V)>) -> Vec<(K, Vec<V>)> {
    let mut groups: Vec<(K, Vec<V>)> = Vec::new();
    for (key, value) in items {
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, values)) => values.push(value),
            None => groups.push((key, vec![value])),
        }
    }
    groups
}

/// `text` with the characters that XML and HTML give a meaning written as entities.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}
