//! Reading the tables of a sweep: which cells a table names.
//!
//! The form is told from the content. A table need not be what the sweep wrote: rows may
//! have been taken out, put in another order or given more columns.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use super::{RecordError, TABLE_FORMS};
use gpumodel_core::units::to_u64;

/// The column that says which cell a row is of.
const KEY: &str = "key";

/// What Parquet begins with.
const PARQUET: &[u8] = b"PAR1";

/// The cells that the table in `bytes` names, each once, in the order of its rows; `None`:
/// it is no table, and `path`, its name for error messages, does not say that it is one.
///
/// # Errors
/// When a row does not say its cell, or the table cannot be read.
pub fn cells_of_table(bytes: &[u8], path: &Path) -> Result<Option<Vec<String>>, RecordError> {
    let first = bytes.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let keys = if bytes.starts_with(PARQUET) {
        of_columns(bytes, path)?
    } else if key_of(first).is_some() {
        of_lines(bytes, path)?
    } else if let Some(column) = place(first) {
        of_csv(bytes, column, path)?
    } else {
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        if !TABLE_FORMS.contains(&ending) {
            return Ok(None);
        }
        let message =
            format!("expected a table of `gpumodel sweep`, with a column {KEY} in line 1");
        return Err(RecordError::table(path, 1, message));
    };
    let mut known = BTreeSet::new();
    Ok(Some(keys.into_iter().filter(|key| known.insert(key.clone())).collect()))
}

/// The cell of a row in JSON; `None`: the line is none.
fn key_of(line: &[u8]) -> Option<String> {
    let row: Value = serde_json::from_slice(line).ok()?;
    row.get(KEY)?.as_str().filter(|key| !key.is_empty()).map(str::to_owned)
}

fn of_lines(bytes: &[u8], path: &Path) -> Result<Vec<String>, RecordError> {
    let lines = bytes.split(|&byte| byte == b'\n').enumerate();
    let lines = lines.filter(|(_, line)| !line.trim_ascii().is_empty());
    let key = |(at, line): (usize, &[u8])| {
        let message = format!("expected a JSON object with a text {KEY}");
        key_of(line).ok_or_else(|| RecordError::table(path, to_u64(at + 1), message))
    };
    lines.map(key).collect()
}

/// The place of the column with the cells, where `line` names columns.
fn place(line: &[u8]) -> Option<usize> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(line);
    let names = reader.records().next()?.ok()?;
    names.iter().position(|name| name.trim_start_matches('\u{feff}') == KEY)
}

fn of_csv(bytes: &[u8], column: usize, path: &Path) -> Result<Vec<String>, RecordError> {
    let mut reader = csv::Reader::from_reader(bytes);
    let mut keys = Vec::new();
    for row in reader.records() {
        let row = row.map_err(|error| {
            let line = error.position().map_or(1, csv::Position::line);
            RecordError::table(path, line, error.to_string())
        })?;
        let line = row.position().map_or(1, csv::Position::line);
        let key = row.get(column).filter(|key| !key.is_empty());
        let empty = || RecordError::table(path, line, format!("expected a cell in column {KEY}"));
        keys.push(key.ok_or_else(empty)?.to_owned());
    }
    Ok(keys)
}

#[cfg(feature = "parquet")]
fn of_columns(bytes: &[u8], path: &Path) -> Result<Vec<String>, RecordError> {
    super::columnar::texts(bytes, KEY)
        .map_err(|message| RecordError::Parquet { path: path.to_path_buf(), message })
}

#[cfg(not(feature = "parquet"))]
fn of_columns(_: &[u8], path: &Path) -> Result<Vec<String>, RecordError> {
    let message = String::from(
        "this program was built without the cargo feature `parquet`; give the CSV file next to it",
    );
    Err(RecordError::Parquet { path: path.to_path_buf(), message })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::cells_of_table;

    fn read(name: &str, text: &str) -> Result<Option<Vec<String>>, String> {
        cells_of_table(text.as_bytes(), Path::new(name)).map_err(|error| error.to_string())
    }

    fn keys(keys: &[&str]) -> Result<Option<Vec<String>>, String> {
        Ok(Some(keys.iter().map(ToString::to_string).collect()))
    }

    #[test]
    fn rows_name_their_cells_whoever_wrote_them() {
        assert_eq!(read("a", "key,stp\nx,1\ny,2\nx,3\n"), keys(&["x", "y"]));
        assert_eq!(read("a", "\"\",\"key\"\r\n\"0\",\"x\"\r\n"), keys(&["x"]));
        assert_eq!(read("a", "\u{feff}key\nx\n"), keys(&["x"]));
        assert_eq!(read("a", "{\"key\":\"x\",\"stp\":1}\n\n{\"key\":\"y\"}"), keys(&["x", "y"]));
        assert_eq!(read("a", "key,stp\n"), keys(&[]));
    }

    #[test]
    fn what_names_no_cells_is_said_with_its_line() {
        assert_eq!(read("a.json", "{\n  \"schema\": \"s\"\n}"), Ok(None));
        for (name, text, words) in [
            ("a.csv", "mix,stp\n", "a.csv:1: expected a table of `gpumodel sweep`, with a column"),
            ("a.jsonl", "", "a.jsonl:1: expected a table"),
            ("a", "key,stp\nx,1\n,2\n", "a:3: expected a cell in column key"),
            ("a", "key,stp\nx\n", "a:2: CSV error"),
            ("a", "{\"key\":\"x\"}\n{\"key\":5}\n", "a:2: expected a JSON object"),
            ("a", "PAR1", "a: cannot read Parquet: "),
        ] {
            let said = read(name, text).unwrap_err();
            assert!(said.starts_with(words), "{said}");
        }
    }
}
