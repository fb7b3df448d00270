//! A memory file as text: found, read, checked for its grammar, and merged with
//! the file that it inherits from. Knows no meaning of any number.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::memory_error::MemoryError;
use super::memory_shipped::{COMMON, Folder};
use gpumodel_core::models::ModelFiles;
use gpumodel_core::units::nearest;

/// Largest memory file that is read, in bytes.
const LARGEST_FILE: u64 = 1 << 20;

/// Longest chain of `base` files.
pub(super) const LONGEST_CHAIN: usize = 8;

/// The words that say where a number is from.
const SOURCES: [&str; 4] = ["published", "measured", "fitted", "assumed"];

/// A value that says where it is from: `{ value = 14, published = "…" }`.
#[derive(Clone, Debug)]
pub(super) struct Leaf {
    /// The value as text: `14`, `true`, `open`.
    pub(super) text: String,
    /// Which of `published`, `measured`, `fitted`, `assumed`, and the source.
    pub(super) source: (String, String),
    /// File and line.
    pub(super) place: String,
}

/// One `[[gap]]` row or expression, still in words.
#[derive(Clone, Debug)]
pub(super) struct Row {
    /// The keys of the row with their values as text lists.
    pub(super) words: BTreeMap<String, Vec<String>>,
    /// File and line.
    pub(super) place: String,
}

/// A file merged with its bases.
#[derive(Clone, Debug, Default)]
pub(super) struct MemoryFile {
    /// The file's stem.
    pub(super) name: String,
    /// The file as users know it.
    pub(super) origin: String,
    /// One sentence: which part this is.
    pub(super) description: String,
    /// `section.key` to leaf.
    pub(super) leaves: BTreeMap<String, Leaf>,
    /// `section.key` to an expression and its place.
    pub(super) expressions: BTreeMap<String, (String, String)>,
    /// `[[gap]]` rows, the base's first.
    pub(super) rows: Vec<Row>,
}

impl MemoryFile {
    /// `place` in an error; where it is in a file that this one inherits from, with this
    /// one's name too, as what is wrong with it may be of this one.
    pub(super) fn told(&self, place: &str) -> String {
        let own = place.starts_with(&self.origin);
        if own { place.to_owned() } else { format!("{place} (for {})", self.origin) }
    }

    /// Reads `name` (a stem under `models/`, or a path) and its bases.
    ///
    /// # Errors
    /// Any [`MemoryError`] but `Inconsistent`.
    pub(super) fn load(
        folder: Folder,
        name: &str,
        models: &ModelFiles,
    ) -> Result<Self, MemoryError> {
        let mut chain = Vec::new();
        let mut files = Vec::new();
        let mut next = Some(name.to_owned());
        while let Some(name) = next {
            if chain.contains(&name) || chain.len() == LONGEST_CHAIN {
                chain.push(name.clone());
                return Err(MemoryError::BaseLoop { place: name, chain: chain.join(" -> ") });
            }
            let found = find(folder, &name, models);
            let (place, text) = found.map_err(|error| unread(error, files.last()))?;
            let (file, base) = Reader::new(&place, &text).file(&name)?;
            chain.push(name);
            files.push(Self { origin: place, ..file });
            next = base;
        }
        let own = files.remove(0);
        Ok(files.into_iter().fold(own, Self::inherit))
    }

    /// Fills in from `base` what this one does not say.
    fn inherit(mut self, base: Self) -> Self {
        for (key, leaf) in base.leaves {
            // A time in clocks replaces the base's time in nanoseconds, and the reverse.
            let other = match key.split_once('.') {
                Some(("timing", name)) => format!("timing_ns.{name}"),
                Some(("timing_ns", name)) => format!("timing.{name}"),
                _ => String::new(),
            };
            if !self.leaves.contains_key(&other) {
                self.leaves.entry(key).or_insert(leaf);
            }
        }
        for (key, expression) in base.expressions {
            self.expressions.entry(key).or_insert(expression);
        }
        let own = std::mem::replace(&mut self.rows, base.rows);
        self.rows.extend(own);
        self
    }
}

/// Whether a standard or a mapping is named by its file.
pub(super) fn is_file(name: &str) -> bool {
    name.contains(['/', '\\']) || Path::new(name).extension().is_some_and(|e| e == "toml")
}

/// The text of a standard or a mapping that is named by its file, and the name of its base;
/// `None`: it cannot be read.
pub(super) fn text_and_base(name: &str) -> Option<(String, Option<String>)> {
    let text = read(Path::new(name)).ok()?;
    let (_, base) = Reader::new(name, &text).file(name).ok()?;
    Some((text, base))
}

/// Where the text of `name` is, and the text.
fn find(folder: Folder, name: &str, models: &ModelFiles) -> Result<(String, String), MemoryError> {
    if is_file(name) {
        return Ok((name.to_owned(), read(Path::new(name))?));
    }
    if let Some(found) = models.named(folder.path(), name) {
        return Ok((found.origin.clone(), found.text.clone().into_owned()));
    }
    let mut names = models.names(folder.path());
    names.retain(|name| *name != COMMON);
    Err(MemoryError::NoFile {
        folder: folder.path(),
        name: name.to_owned(),
        nearest: nearest(name, names.iter().copied()),
        known: names.join(", "),
    })
}

/// Why a base cannot be read, with the file that names it.
fn unread(error: MemoryError, by: Option<&MemoryFile>) -> MemoryError {
    match (error, by) {
        (MemoryError::Read { path, source }, Some(by)) => MemoryError::Value {
            place: by.origin.clone(),
            key: "base".to_owned(),
            expected: "a file that can be read".to_owned(),
            found: format!("`{}` ({source})", path.display()),
        },
        (error, _) => error,
    }
}

fn read(path: &Path) -> Result<String, MemoryError> {
    let refuse = |source| MemoryError::Read { path: path.to_path_buf(), source };
    let bytes = fs::metadata(path).map_err(refuse)?.len();
    if bytes > LARGEST_FILE {
        let path = path.to_path_buf();
        return Err(MemoryError::TooLarge { path, bytes, limit: LARGEST_FILE });
    }
    fs::read_to_string(path).map_err(refuse)
}

/// Reads one file's text.
struct Reader<'a> {
    file: &'a str,
    text: &'a str,
}

impl<'a> Reader<'a> {
    fn new(file: &'a str, text: &'a str) -> Self {
        Self { file, text }
    }

    /// File and line of a byte offset.
    fn place(&self, offset: usize) -> String {
        let before = self.text.as_bytes().iter().take(offset);
        format!("{}:{}", self.file, before.filter(|&&byte| byte == b'\n').count() + 1)
    }

    fn wrong(&self, at: usize, key: &str, expected: &str, found: &str) -> MemoryError {
        MemoryError::Value {
            place: self.place(at),
            key: key.to_owned(),
            expected: expected.to_owned(),
            found: found.to_owned(),
        }
    }

    /// The file and the name of its base.
    fn file(&self, name: &str) -> Result<(MemoryFile, Option<String>), MemoryError> {
        let parsed = DeTable::parse(self.text).map_err(|error| MemoryError::Syntax {
            place: self.place(error.span().map_or(0, |span| span.start)),
            message: error.message().trim().to_owned(),
        })?;
        let mut file = MemoryFile::default();
        name.rsplit(['/', '\\'])
            .next()
            .unwrap_or(name)
            .trim_end_matches(".toml")
            .clone_into(&mut file.name);
        let mut base = None;
        for (key, value) in parsed.get_ref() {
            let at = value.span().start;
            match (key.get_ref().as_ref(), value.get_ref()) {
                ("description", DeValue::String(text)) => file.description = text.to_string(),
                ("base", DeValue::String(text)) => base = Some(text.to_string()),
                ("gap" | "xor", DeValue::Array(rows)) => {
                    for row in rows {
                        file.rows.push(self.row(key.get_ref(), row)?);
                    }
                }
                (section, DeValue::Table(table)) => self.section(&mut file, section, table)?,
                (key, other) => {
                    let expected = "a section, or the text of `description` or `base`";
                    return Err(self.wrong(at, key, expected, &describe(other)));
                }
            }
        }
        Ok((file, base))
    }

    fn section(
        &self,
        file: &mut MemoryFile,
        section: &str,
        table: &DeTable<'_>,
    ) -> Result<(), MemoryError> {
        for (name, value) in table {
            let key = format!("{section}.{}", name.get_ref());
            let at = name.span().start;
            match value.get_ref() {
                DeValue::Table(leaf) => {
                    file.leaves.insert(key.clone(), self.leaf(&key, at, leaf)?);
                }
                DeValue::String(text) => {
                    file.expressions.insert(key, (text.to_string(), self.place(at)));
                }
                other => {
                    let (place, found) = (self.place(at), describe(other));
                    return Err(MemoryError::Source { place, key, found });
                }
            }
        }
        Ok(())
    }

    fn leaf(&self, key: &str, at: usize, table: &DeTable<'_>) -> Result<Leaf, MemoryError> {
        let refuse = |found: String| MemoryError::Source {
            place: self.place(at),
            key: key.to_owned(),
            found,
        };
        let mut text = None;
        let mut sources = Vec::new();
        for (name, value) in table {
            match (name.get_ref().as_ref(), value.get_ref()) {
                ("value", value) => {
                    text = Some(scalar(value).ok_or_else(|| refuse(describe(value)))?);
                }
                (kind, DeValue::String(from)) if SOURCES.contains(&kind) && !from.is_empty() => {
                    sources.push((kind.to_owned(), from.to_string()));
                }
                (other, _) => return Err(refuse(format!("`{other}`"))),
            }
        }
        let count = sources.len();
        match (text, sources.pop()) {
            (Some(text), Some(source)) if count == 1 => {
                Ok(Leaf { text, source, place: self.place(at) })
            }
            (None, _) => Err(refuse("no value".to_owned())),
            _ => Err(refuse(format!("{count} sources"))),
        }
    }

    fn row(&self, section: &str, row: &Spanned<DeValue<'_>>) -> Result<Row, MemoryError> {
        let at = row.span().start;
        let DeValue::Table(table) = row.get_ref() else {
            return Err(self.wrong(at, section, "a row of keys", &describe(row.get_ref())));
        };
        let mut words = BTreeMap::new();
        for (name, value) in table {
            let list = match value.get_ref() {
                DeValue::Array(items) => items.iter().map(|item| scalar(item.get_ref())).collect(),
                single => scalar(single).map(|word| vec![word]),
            };
            let expected = "a word, a number or a list of them";
            let list = list.ok_or_else(|| {
                self.wrong(name.span().start, name.get_ref(), expected, "a table")
            })?;
            words.insert(name.get_ref().to_string(), list);
        }
        Ok(Row { words, place: self.place(at) })
    }
}

/// A string, number or flag as text.
fn scalar(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Boolean(flag) => Some(flag.to_string()),
        DeValue::Integer(digits) if digits.radix() == 10 => Some(digits.as_str().to_owned()),
        DeValue::Float(digits) => Some(digits.as_str().to_owned()),
        _ => None,
    }
}

fn describe(value: &DeValue<'_>) -> String {
    match value {
        DeValue::Table(_) => "a section".to_owned(),
        DeValue::Array(items) => format!("a list of {}", items.len()),
        other => scalar(other).unwrap_or_else(|| "another kind of value".to_owned()),
    }
}
