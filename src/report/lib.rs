//! Tables, figures and pages from records alone.
//!
//! Knows no machine and no trace: whatever it shows is in the record. Same
//! record, same bytes.

mod cause;
mod chart;
mod corun_notes;
mod document;
mod error;
pub mod figure;
mod folder;
mod grid;
mod group;
mod machine;
mod mix;
mod mix_label;
mod name;
mod number;
mod page;
pub mod paper;
mod profile;
mod queue;
mod queue_rows;
pub mod results;
mod solo_notes;
mod solo_run;
pub mod table;
mod values;

pub use error::ReportError;
pub use folder::{RECORD, write_all};
pub use name::plain_name;
pub use page::{Of, PageFigure, page};

/// `text` with the characters that XML and HTML give a meaning written as entities.
#[must_use]
pub fn escape(text: &str) -> String {
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
