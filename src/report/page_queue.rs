//! The part of a report's page that is about queues.

use std::fmt::Write as _;

use super::escape;
use super::page::table;
use super::queue_rows::{Section, sections};
use crate::results::Analysis;

/// Rows up to which a table is open at once.
const OPEN: usize = 40;

/// The tables of the queues of `analysis`; long ones are folded.
pub(super) fn queues(text: &mut String, analysis: &Analysis) {
    for section in sections(analysis) {
        let folded = section.rows.len() > OPEN || section.title.starts_with("Schedule");
        if folded {
            let _ = writeln!(text, "<details>\n<summary>{}</summary>", escape(&section.title));
        } else {
            let _ = writeln!(text, "<h3>{}</h3>", escape(&section.title));
        }
        body(text, section);
        if folded {
            *text += "</details>\n";
        }
    }
}

fn body(text: &mut String, section: Section) {
    if !section.rows.is_empty() {
        let names: Vec<&str> = section.header.iter().map(String::as_str).collect();
        let cells = |row: Vec<String>| row.iter().map(|cell| escape(cell)).collect();
        table(text, &names, section.rows.into_iter().map(cells));
    }
    for note in section.notes {
        let _ = writeln!(text, "<p class=\"soft\">{}.</p>", escape(note.trim_end_matches('.')));
    }
}
