//! A machine file being written: sections of sourced values, in order.

use std::fmt::{Display, Write as _};

use gpumodel_core::toml::SourceKind;

/// The text so far.
#[derive(Debug, Default)]
pub(super) struct Sheet {
    text: String,
}

impl Sheet {
    /// A comment, a line for each of the text's. Control characters, which TOML
    /// does not allow there, are replaced.
    pub(super) fn comment(&mut self, text: &str) {
        for line in text.lines() {
            self.line(&format!("# {line}").replace(char::is_control, "\u{fffd}"));
        }
    }

    /// A comment after an empty line.
    pub(super) fn note(&mut self, text: &str) {
        self.line("");
        self.comment(text);
    }

    /// A plain word that needs no source.
    pub(super) fn word(&mut self, key: &str, value: &str) {
        self.line(&format!("{key} = {}", quoted(value)));
    }

    /// Opens a section.
    pub(super) fn section(&mut self, name: &str) {
        self.line(&format!("\n[{name}]"));
    }

    /// A value that a file or the simulator's source states.
    pub(super) fn published(&mut self, key: &str, value: impl Display, source: &str) {
        self.leaf(key, &value, SourceKind::Published, source);
    }

    /// A chosen word that a file or the simulator's source states.
    pub(super) fn choice(&mut self, key: &str, value: &str, source: &str) {
        self.leaf(key, &quoted(value), SourceKind::Published, source);
    }

    /// A value that is known in another way.
    pub(super) fn leaf(&mut self, key: &str, value: &dyn Display, kind: SourceKind, source: &str) {
        self.line(&format!("{key} = {{ value = {value}, {kind} = {} }}", quoted(source)));
    }

    /// The whole text.
    pub(super) fn finish(self) -> String {
        self.text
    }

    fn line(&mut self, line: &str) {
        writeln!(self.text, "{line}").expect("a String takes everything");
    }
}

/// A TOML string.
fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}
