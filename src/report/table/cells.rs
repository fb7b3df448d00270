//! A table: columns with names, and rows of as many cells; for a terminal and as CSV.

use super::layout;
use crate::format::{brief, csv, percent};

/// What stands where there is no value.
pub(crate) const NONE: &str = "–";

/// A table. A terminal shows it without frames, numbers to the right; CSV has every digit.
#[derive(Clone, Debug, Default)]
pub struct Table {
    pub(super) columns: Vec<Head>,
    rows: Vec<Vec<Cell>>,
    /// Columns are left out before texts are wrapped.
    pub(super) in_lines: bool,
}

/// What is said of a column as a whole.
#[derive(Clone, Debug)]
pub(super) struct Head {
    pub(super) name: String,
    /// Text, which a terminal aligns to the left and wraps.
    pub(super) left: bool,
    /// Its turn to be left out of a narrow terminal; `None`: it always stays.
    pub(super) dropped: Option<usize>,
}

/// A column of a table: its name, and the cell of an item.
pub type Column<T> = (&'static str, fn(&T) -> Cell);

/// A cell of a table.
#[derive(Clone, Debug)]
pub enum Cell {
    /// A text.
    Text(String),
    /// A text that a terminal cuts to so many characters.
    Cut(String, usize),
    /// A scheme, which a terminal breaks before its settings.
    Scheme(String),
    /// A text, and on a page a longer one to point at.
    Titled(String, String),
    /// A text, and words behind it that are not in CSV.
    Noted(String, String),
    /// A count.
    Count(u64),
    /// A number with so many decimals.
    Number(f64, usize),
    /// A part of a whole, 0 to 1: shown in percent.
    Share(Option<f64>),
    /// A number, and how it is shown.
    Shown(f64, String),
}

impl<T: ToString> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Self {
        Self::Text(value.map_or_else(|| NONE.into(), |value| value.to_string()))
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl Cell {
    /// A number with `places` decimals, where there is one.
    #[must_use]
    pub fn number(value: Option<f64>, places: usize) -> Self {
        value.map_or_else(|| Self::Text(NONE.into()), |value| Self::Number(value, places))
    }

    /// A count, where there is one.
    #[must_use]
    pub fn count(value: Option<u64>) -> Self {
        value.map_or_else(|| Self::Text(NONE.into()), Self::Count)
    }

    pub(crate) fn terminal(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Cut(text, most) => brief(text, *most),
            Self::Scheme(name) => scheme_lines(name),
            Self::Titled(text, _) => brief(text, 36),
            Self::Noted(text, note) => format!("{text} {note}"),
            Self::Count(count) => count.to_string(),
            Self::Number(value, places) => format!("{value:.places$}"),
            Self::Share(share) => percent(*share),
            Self::Shown(_, text) => text.clone(),
        }
    }

    /// With every digit and every letter; empty for no value.
    fn csv(&self) -> String {
        match self {
            Self::Text(text) if text == NONE => String::new(),
            Self::Titled(label, name) if name.is_empty() => label.clone(),
            Self::Text(text)
            | Self::Cut(text, _)
            | Self::Scheme(text)
            | Self::Noted(text, _)
            | Self::Titled(_, text) => text.clone(),
            Self::Count(count) => count.to_string(),
            Self::Number(value, _) | Self::Shown(value, _) => value.to_string(),
            Self::Share(share) => share.map(|share| share.to_string()).unwrap_or_default(),
        }
    }
}

/// The scheme `name` whole, in lines that begin at a setting.
fn scheme_lines(name: &str) -> String {
    const LINE: usize = 36;
    let mut text = String::new();
    let mut length = 0;
    for (place, part) in brief(name, 400).split(':').enumerate() {
        let more = part.chars().count() + 1;
        if place > 0 && length + more > LINE {
            text.push('\n');
            length = 0;
        }
        if place > 0 {
            text.push(':');
        }
        text.push_str(part);
        length += more;
    }
    text
}

impl Table {
    /// A row for each of `items`; the first column is text.
    pub fn new<T>(columns: &[Column<T>], items: impl IntoIterator<Item = T>) -> Self {
        let row = |item: T| columns.iter().map(|(_, cell)| cell(&item)).collect();
        Self::of_cells(columns.iter().map(|(name, _)| *name), items.into_iter().map(row))
    }

    /// Rows of cells under `header`.
    pub(crate) fn of_cells<S: Into<String>>(
        header: impl IntoIterator<Item = S>,
        rows: impl IntoIterator<Item = Vec<Cell>>,
    ) -> Self {
        let head = |name: S| Head { name: name.into(), left: false, dropped: None };
        let columns = header.into_iter().map(head).collect();
        Self { columns, rows: rows.into_iter().collect(), in_lines: false }.left(&[0])
    }

    /// Rows of texts under `header`.
    pub(crate) fn of_texts<S: Into<String>>(
        header: impl IntoIterator<Item = S>,
        rows: impl IntoIterator<Item = Vec<String>>,
    ) -> Self {
        let row = |row: Vec<String>| row.into_iter().map(Cell::Text).collect();
        Self::of_cells(header, rows.into_iter().map(row))
    }

    /// The same with text in the columns `left`, by their places.
    #[must_use]
    pub fn left(mut self, left: &[usize]) -> Self {
        for (place, column) in self.columns.iter_mut().enumerate() {
            column.left = left.contains(&place);
        }
        self
    }

    /// The same with one line per row where a terminal has room for the columns that always
    /// stay: others are left out before texts are wrapped.
    #[must_use]
    pub fn in_lines(self) -> Self {
        Self { in_lines: true, ..self }
    }

    /// The same, where a narrow terminal leaves out the columns called `names`, the first of
    /// them first.
    #[must_use]
    pub fn dropping(mut self, names: &[&str]) -> Self {
        for column in &mut self.columns {
            column.dropped = names.iter().position(|name| *name == column.name);
        }
        self
    }

    /// The same without the columns called `names`.
    #[must_use]
    pub fn without(mut self, names: &[&str]) -> Self {
        while let Some(at) = self.columns.iter().position(|one| names.contains(&&*one.name)) {
            self.columns.remove(at);
            self.rows.iter_mut().for_each(|row| drop(row.remove(at)));
        }
        self
    }

    /// The same behind a column of text called `name`, which says `value` in every row.
    pub(crate) fn behind(mut self, name: &str, value: &str) -> Self {
        let head = Head { name: name.to_owned(), left: true, dropped: None };
        self.columns.insert(0, head);
        self.rows.iter_mut().for_each(|row| row.insert(0, value.into()));
        self
    }

    /// The same under the names `header`.
    pub(crate) fn named(mut self, header: &[&str]) -> Self {
        for (column, name) in self.columns.iter_mut().zip(header) {
            column.name = (*name).to_owned();
        }
        self
    }

    /// The same with the column `name` called `other`.
    pub(crate) fn renamed(mut self, name: &str, other: &str) -> Self {
        for column in self.columns.iter_mut().filter(|column| column.name == name) {
            other.clone_into(&mut column.name);
        }
        self
    }

    /// The rows of `tables` that have the same columns, under one another.
    pub(crate) fn joined(tables: impl IntoIterator<Item = Self>) -> Self {
        let mut tables = tables.into_iter();
        let mut all = tables.next().unwrap_or_default();
        all.rows.extend(tables.flat_map(|table| table.rows));
        all
    }

    /// The number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether it has no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The names of the columns.
    pub(crate) fn header(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|column| column.name.as_str())
    }

    pub(crate) fn rows(&self) -> &[Vec<Cell>] {
        &self.rows
    }

    /// As plain text, at most `width` characters wide as far as its numbers allow: headers and
    /// texts are wrapped, then columns are left out, which a line below names. `None`: any width.
    #[must_use]
    pub fn terminal(&self, width: Option<usize>) -> String {
        layout::terminal(self, width)
    }

    /// As CSV: shares from 0 to 1, numbers without prefixes, names of columns in lower case with `_`
    /// between words.
    #[must_use]
    pub fn csv(&self) -> String {
        let header: Vec<String> = self.header().map(key).collect();
        csv(&header.join(","), self.rows.iter().map(|row| row.iter().map(Cell::csv)))
    }
}

/// The name of a column in CSV: `DRAM GB/s` is `dram_gb_per_s`.
fn key(name: &str) -> String {
    let name = name.to_lowercase().replace('/', " per ").replace('%', " percent ");
    let words = name.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("_")
}

#[cfg(test)]
mod tests {
    use super::{Cell, Column, Table, key};

    #[test]
    fn csv_has_every_digit_and_names_without_signs() {
        let columns: [Column<f64>; 5] = [
            ("of", |_| Cell::Cut("a, long name".into(), 3)),
            ("DRAM GB/s", |value| Cell::Number(*value, 1)),
            ("L1 hit", |value| Cell::Share(Some(*value))),
            ("energy (J)", |value| Cell::Shown(*value, "0.1 J".into())),
            ("none", |_| Cell::number(None, 1)),
        ];
        let text = Table::new(&columns, [0.123_45]).csv();
        let line =
            "of,dram_gb_per_s,l1_hit,energy_j,none\n\"a, long name\",0.12345,0.12345,0.12345,\n";
        assert_eq!(text, line);
        assert_eq!(key("mean |e| (%)"), "mean_e_percent");
    }

    #[test]
    fn tables_join_behind_what_they_are_of() {
        let one = |of: &str| Table::of_texts(["x"], [vec!["1".into()]]).behind("of", of);
        assert_eq!(Table::joined([one("a"), one("b")]).csv(), "of,x\na,1\nb,1\n");
        assert!(Table::joined([]).is_empty());
    }
}
