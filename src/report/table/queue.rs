//! Queues of applications: classes, slow-downs, patterns, runs and schedules.

use std::fmt::Write as _;

use super::{brief, words};
use crate::queue_rows::sections;
use crate::results::Analysis;

/// Columns of words.
const TEXT: [&str; 3] = ["scheme", "members", "rule"];

/// The queues of `analysis` as text: what their applications are, the patterns that
/// were weighed, every queue under every scheme, what schemes gain, and of a single
/// queue who ran with whom. Empty without queues.
#[must_use]
pub fn queue(analysis: &Analysis) -> String {
    let mut text = String::new();
    for section in sections(analysis) {
        let _ = writeln!(text, "{}", brief(&section.title, 110));
        if !section.rows.is_empty() {
            let reported: Vec<bool> =
                section.header.iter().map(|name| TEXT.contains(&name.as_str())).collect();
            text += &words(section.header, section.rows, |column| column == 0 || reported[column]);
        }
        for note in &section.notes {
            let _ = writeln!(text, "  {}", brief(note, 400));
        }
        text.push('\n');
    }
    text
}
