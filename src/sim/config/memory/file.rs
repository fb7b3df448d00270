//! A memory file: found, read, and merged with the file that it inherits from. Knows no
//! meaning of any number.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;

use gpumodel_core::models::{ModelFileError, ModelFiles, read_text};
use gpumodel_core::toml::{Content, Node, Place, TomlError, dotted};
use gpumodel_core::units::nearest;

use crate::config::error::SpecError;

/// Longest chain of `base` files.
pub(in crate::config) const LONGEST_CHAIN: usize = 8;

/// The file that all standards build on, and that is none.
pub(in crate::config) const COMMON: &str = "common";

/// A folder of memory files under `models/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Folder {
    /// Memory standards.
    Memory,
    /// Address mappings.
    Mappings,
}

impl Folder {
    /// The folder's path under `models/`.
    pub(super) fn path(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Mappings => "memory/mappings",
        }
    }
}

/// A value with its source, or an expression.
#[derive(Clone, Debug)]
pub(super) struct Leaf {
    /// The value as text: `14`, `true`, `open`.
    pub(super) text: String,
    pub(super) place: Place,
}

/// One `[[gap]]` row, still in words.
#[derive(Clone, Debug)]
pub(super) struct Row {
    /// The keys of the row with their values as text lists.
    pub(super) words: BTreeMap<String, Vec<String>>,
    pub(super) place: Place,
}

/// A file merged with its bases.
#[derive(Clone, Debug, Default)]
pub(super) struct MemoryFile {
    /// The file's stem.
    pub(super) name: String,
    /// The file as users know it.
    origin: String,
    /// One sentence: which part this is.
    pub(super) description: String,
    /// `section.key` to a value.
    pub(super) leaves: BTreeMap<String, Leaf>,
    /// `section.key` to an expression.
    pub(super) expressions: BTreeMap<String, Leaf>,
    /// `[[gap]]` rows, the base's first.
    pub(super) rows: Vec<Row>,
}

impl MemoryFile {
    /// `place` for an error: if it is in a file that this one inherits from, with this
    /// one's name too, as its own values may be wrong.
    pub(super) fn place_for(&self, place: &Place) -> Place {
        if place.file() == self.origin {
            return place.clone();
        }
        Place::new(format!("{place} (for {})", self.origin), 0)
    }

    /// Reads `name` (a stem under `models/`, or a path) and its bases.
    ///
    /// # Errors
    /// Those of reading, and [`SpecError::BaseLoop`].
    pub(super) fn load(
        folder: Folder,
        name: &OsStr,
        models: &ModelFiles,
    ) -> Result<Self, SpecError> {
        let mut chain = Vec::new();
        let mut files: Vec<Self> = Vec::new();
        let mut next = Some(name.to_owned());
        while let Some(typed) = next {
            let name = typed.to_string_lossy().into_owned();
            if chain.contains(&name) || chain.len() == LONGEST_CHAIN {
                let place = Place::new(name.as_str(), 0);
                chain.push(name);
                return Err(SpecError::BaseLoop { place, chain: chain.join(" -> ") });
            }
            let found = find(folder, &typed, models);
            let (origin, text) = found.map_err(|error| unread(error, files.last()))?;
            let (file, base) = Self::parse(&origin, &name, &text)?;
            chain.push(name);
            files.push(file);
            next = base.map(OsString::from);
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

    /// The file `name` whose text is `text`, and the name of its base.
    fn parse(origin: &str, name: &str, text: &str) -> Result<(Self, Option<String>), SpecError> {
        let stem = name.rsplit(['/', '\\']).next().unwrap_or(name).trim_end_matches(".toml");
        let mut file = Self { name: stem.to_owned(), origin: origin.to_owned(), ..Self::default() };
        let mut base = None;
        let root = Node::read_sourced(origin, text)?;
        for (key, node) in root.entries().into_iter().flatten() {
            match (key.as_str(), &node.content) {
                ("description", Content::Text(text)) => file.description.clone_from(text),
                ("base", Content::Text(text)) => base = Some(text.clone()),
                ("gap" | "xor", Content::List(rows)) => {
                    let rows = rows.iter().map(|row| Row::read(key, row));
                    file.rows = rows.collect::<Result<_, _>>()?;
                }
                (_, Content::Table(entries)) => file.section(key, entries)?,
                _ => {
                    let expected = "a section, or the text of `description` or `base`";
                    return Err(refuse(node, key, expected));
                }
            }
        }
        Ok((file, base))
    }

    fn section(
        &mut self,
        section: &str,
        entries: &BTreeMap<String, Node>,
    ) -> Result<(), SpecError> {
        for (name, node) in entries {
            let (key, place) = (dotted(section, name), node.place.clone());
            match (scalar(&node.content), &node.source, &node.content) {
                (Some(text), Some(_), _) => drop(self.leaves.insert(key, Leaf { text, place })),
                (Some(text), None, Content::Text(_)) => {
                    self.expressions.insert(key, Leaf { text, place });
                }
                (_, _, content) => {
                    let found = match content {
                        Content::Table(_) => "no value".to_owned(),
                        other => other.describe(),
                    };
                    return Err(TomlError::Source { place, key, found }.into());
                }
            }
        }
        Ok(())
    }
}

impl Row {
    fn read(section: &str, row: &Node) -> Result<Self, SpecError> {
        let entries = row.entries().ok_or_else(|| refuse(row, section, "a row of keys"))?;
        let mut words = BTreeMap::new();
        for (name, node) in entries {
            let list: Option<Vec<String>> = match &node.content {
                Content::List(items) => items.iter().map(|item| scalar(&item.content)).collect(),
                single => scalar(single).map(|word| vec![word]),
            };
            let list =
                list.ok_or_else(|| refuse(node, name, "a word, a number or a list of them"))?;
            words.insert(name.clone(), list);
        }
        Ok(Self { words, place: row.place.clone() })
    }
}

/// Whether a standard or a mapping is named by its file.
pub(in crate::config) fn is_file(name: impl AsRef<OsStr>) -> bool {
    let name = name.as_ref();
    name.to_string_lossy().contains(['/', '\\'])
        || Path::new(name).extension().is_some_and(|e| e == "toml")
}

/// The text of a standard or a mapping that is named by its file, and the name of its base;
/// `None`: it cannot be read.
pub(in crate::config) fn text_and_base(name: &str) -> Option<(String, Option<String>)> {
    let text = read_text(Path::new(name)).ok()?;
    let (_, base) = MemoryFile::parse(name, name, &text).ok()?;
    Some((text, base))
}

/// Where the text of `name` is, and the text.
fn find(folder: Folder, typed: &OsStr, models: &ModelFiles) -> Result<(String, String), SpecError> {
    let name = &*typed.to_string_lossy();
    if is_file(typed) {
        return Ok((name.to_owned(), read_text(Path::new(typed))?));
    }
    if let Some(found) = models.named(folder.path(), name) {
        return Ok((found.origin.clone(), found.text.clone().into_owned()));
    }
    let mut names = models.names(folder.path());
    names.retain(|name| *name != COMMON);
    Err(SpecError::NoModel {
        folder: folder.path(),
        name: name.to_owned(),
        nearest: nearest(name, names.iter().copied()),
        known: names.join(", "),
    })
}

/// Why a base cannot be read, with the file that names it.
fn unread(error: SpecError, by: Option<&MemoryFile>) -> SpecError {
    let SpecError::Toml(toml) = &error else { return error };
    match (&**toml, by) {
        (TomlError::File(ModelFileError::Read { path, source }), Some(by)) => {
            let place = Place::new(by.origin.as_str(), 0);
            let found = format!("`{}` ({source})", path.display());
            SpecError::value(&place, "base", "a file that can be read", found)
        }
        _ => error,
    }
}

fn refuse(node: &Node, key: &str, expected: &str) -> SpecError {
    SpecError::value(&node.place, key, expected, node.content.describe())
}

/// A string, number or flag as text.
fn scalar(content: &Content) -> Option<String> {
    match content {
        Content::Text(text) => Some(text.clone()),
        Content::Flag(flag) => Some(flag.to_string()),
        Content::Integer(value) => Some(value.to_string()),
        Content::Float(value) => Some(value.to_string()),
        Content::Table(_) | Content::List(_) => None,
    }
}
