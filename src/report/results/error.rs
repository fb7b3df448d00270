//! What can be wrong with a record or a reference table, said to the user.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// A record or reference table that could not be read, or a comparison that
/// could not be made. Every message names the file and what to do next.
#[derive(Debug, Error)]
pub enum RecordError {
    /// The file could not be read or written.
    #[error("cannot read {}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the file system said.
        source: io::Error,
    },
    /// The file is not the JSON that was expected.
    #[error("{}:{line}:{column}: not a record of `gpumodel analyze`: {message}", path.display())]
    Json {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// What was expected and found.
        message: String,
    },
    /// The file is a JSON document of another schema.
    #[error(
        "{}:{line}: expected schema \"{expected}\", found {found}; make the record with `gpumodel analyze APP --machine M --json FILE`",
        path.display()
    )]
    Schema {
        /// The file.
        path: PathBuf,
        /// Line of the `schema` key; 1 where there is none.
        line: usize,
        /// The schema this version reads.
        expected: &'static str,
        /// The schema of the file, quoted, or `none`.
        found: String,
    },
    /// The file is none of a sweep's folder.
    #[error("{}: not a file of `gpumodel sweep`: {message}", path.display())]
    Sweep {
        /// The file.
        path: PathBuf,
        /// What was expected and found.
        message: String,
    },
    /// A folder without what is read from folders.
    #[error(
        "{}: expected a folder of `gpumodel sweep`, with sweep.json, or of `gpumodel analyze --report`, with record.json; `gpumodel reproduce` keeps such folders in its parts",
        path.display()
    )]
    Folder {
        /// The folder.
        path: PathBuf,
    },
    /// A table names a cell that has no record in the folder of the table.
    #[error(
        "{}: expected the records of its cells in the same folder, found no {}; give a table in the folder of its sweep",
        path.display(), record.display()
    )]
    Beside {
        /// The table.
        path: PathBuf,
        /// The record.
        record: PathBuf,
    },
    /// Cells hold other applications under one name, and something is asked of the name.
    #[error(
        "{app} is not one application: its cells have the stores {stores}; give a table with the rows of one, as chosen from cells.csv by store_hashes"
    )]
    AmbiguousApp {
        /// The name.
        app: String,
        /// Hashes, each with a cell.
        stores: String,
    },
    /// Two records answer the same row of a reference table.
    #[error(
        "{}:{line}: {row} is in {} and in {}, so that this row would count twice; give one of them",
        table.display(), both[0].display(), both[1].display()
    )]
    DuplicateRow {
        /// The table.
        table: PathBuf,
        /// The line of the row, from 1.
        line: u64,
        /// Its machine and application.
        row: String,
        /// What the records were read from.
        both: Box<[PathBuf; 2]>,
    },
    /// A value contradicts the counting rules.
    #[error("{}: {key}: {message}; make the record again with `gpumodel analyze`", path.display())]
    Value {
        /// The file.
        path: PathBuf,
        /// Where in the document, e.g. `solo[0].kernels[2].l1`.
        key: String,
        /// What was expected and found.
        message: String,
    },
    /// A row of a reference table is wrong.
    #[error("{}:{line}: {message}", path.display())]
    Table {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: u64,
        /// What was expected, what was found, and what to do next.
        message: String,
    },
}

impl RecordError {
    /// A failure of the file system at `path`.
    #[must_use]
    pub fn file(path: &Path, source: io::Error) -> Self {
        Self::File { path: path.to_path_buf(), source }
    }

    /// A wrong row at `line` of the table at `path`.
    #[must_use]
    pub fn table(path: &Path, line: u64, message: impl Into<String>) -> Self {
        Self::Table { path: path.to_path_buf(), line, message: message.into() }
    }
}
