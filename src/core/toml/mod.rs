//! Strict TOML: a file as a tree of values that know their line and, in model files, their
//! source.
//!
//! [`Node::read`] reads a text, [`Node::read_sourced`] a model file whose numbers say where
//! they are from. [`Node::decode`] turns the tree into a type that serde knows;
//! [`Entry`] and [`Section`] read it key by key. Both refuse unknown keys with the nearest
//! known one, and every [`TomlError`] names file, line and key.

mod decode;
mod error;
mod section;

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use ::toml::Spanned;
use ::toml::de::{DeTable, DeValue};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::models::read_text;

pub use error::{Place, TomlError};
pub use section::{Entry, Section};

/// One value of a file.
#[derive(Clone, Debug)]
pub struct Node {
    /// Where it stands; of a value with a key, where the key does.
    pub place: Place,
    /// Where the number is from, when it says so.
    pub source: Option<Source>,
    /// The value.
    pub content: Content,
    /// Byte in the file, for the order of keys.
    offset: usize,
}

/// What a value is.
#[derive(Clone, Debug)]
pub enum Content {
    /// Keys and values.
    Table(BTreeMap<String, Node>),
    /// Values in order.
    List(Vec<Node>),
    /// A string.
    Text(String),
    /// A whole number.
    Integer(i64),
    /// A number with a fraction.
    Float(f64),
    /// Yes or no.
    Flag(bool),
}

impl Content {
    /// The value in words, for messages.
    #[must_use]
    pub fn describe(&self) -> String {
        match self {
            Self::Table(_) => "a section".to_owned(),
            Self::List(items) => format!("a list of {}", items.len()),
            Self::Text(text) => format!("\"{}\"", text.escape_debug()),
            Self::Integer(value) => value.to_string(),
            Self::Float(value) => value.to_string(),
            Self::Flag(value) => value.to_string(),
        }
    }
}

/// Reads the file at `path` as a `T`, without sources, and returns its tree too.
///
/// # Errors
/// [`TomlError`], with file and line.
pub fn read_file<T: DeserializeOwned>(path: &Path) -> Result<(T, Node), TomlError> {
    let node = Node::read(&path.display().to_string(), &read_text(path)?)?;
    Ok((node.decode()?, node))
}

impl Node {
    /// Reads `text`; `file` names it in errors.
    ///
    /// # Errors
    /// [`TomlError::Syntax`] when the text is no TOML, [`TomlError::Value`] for dates and
    /// numbers beyond 64 bits.
    pub fn read(file: &str, text: &str) -> Result<Self, TomlError> {
        Reader::new(file, text, false).read(text)
    }

    /// Reads the `text` of a model file. A value written `{ value = …, published = "…" }`
    /// becomes one leaf with its source.
    ///
    /// # Errors
    /// Those of [`Node::read`], and [`TomlError::Source`] when a leaf names no source or
    /// several.
    pub fn read_sourced(file: &str, text: &str) -> Result<Self, TomlError> {
        Reader::new(file, text, true).read(text)
    }

    /// A value that stands in no file, as of a command line.
    #[must_use]
    pub fn new(place: Place, source: Option<Source>, content: Content) -> Self {
        Self { place, source, content, offset: 0 }
    }

    /// The value as a `T`.
    ///
    /// # Errors
    /// [`TomlError::UnknownKey`], [`TomlError::Value`] or [`TomlError::Missing`].
    pub fn decode<'de, T: serde::Deserialize<'de>>(&'de self) -> Result<T, TomlError> {
        decode::decode(self)
    }

    /// The whole file, to read key by key.
    #[must_use]
    pub fn root(&self) -> Entry<'_> {
        Entry::new(String::new(), self)
    }

    /// The entries, when this is a section.
    #[must_use]
    pub fn entries(&self) -> Option<&BTreeMap<String, Self>> {
        match &self.content {
            Content::Table(entries) => Some(entries),
            _ => None,
        }
    }

    /// The entries, when this is a section, to change.
    pub fn entries_mut(&mut self) -> Option<&mut BTreeMap<String, Self>> {
        match &mut self.content {
            Content::Table(entries) => Some(entries),
            _ => None,
        }
    }

    /// The text, when this is a string.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match &self.content {
            Content::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The line of the value at the path `keys` (of an item of a list its position from 0),
    /// or of the last value on the way that exists; `None` when even the first does not.
    #[must_use]
    pub fn line(&self, keys: &[String]) -> Option<u32> {
        let (mut node, mut line) = (self, None);
        for key in keys {
            let next = match &node.content {
                Content::Table(entries) => entries.get(key),
                Content::List(items) => key.parse::<usize>().ok().and_then(|at| items.get(at)),
                _ => None,
            };
            let Some(next) = next else { break };
            (node, line) = (next, Some(next.place.line()));
        }
        line
    }

    /// Fills in from `base` what this one does not say, section by section.
    pub fn inherit(&mut self, base: Self) {
        let (Content::Table(own), Content::Table(inherited)) = (&mut self.content, base.content)
        else {
            return;
        };
        // A row that names its source does not also inherit that of the base.
        let is_source = |key: &str| SourceKind::of_key(key).is_some();
        let sourced = own.keys().any(|key| is_source(key));
        for (key, value) in inherited {
            if sourced && is_source(&key) {
                continue;
            }
            match own.get_mut(&key) {
                Some(node) => node.inherit(value),
                None => {
                    own.insert(key, value);
                }
            }
        }
    }

    /// Collects the source of every leaf below `key`, and the leaves that name none.
    pub fn sources(&self, key: &str, found: &mut Provenance, unsourced: &mut Vec<Unsourced>) {
        match (&self.content, &self.source) {
            (Content::Table(entries), None) => {
                for (name, node) in entries {
                    node.sources(&dotted(key, name), found, unsourced);
                }
            }
            (_, Some(source)) => {
                found.insert(key.to_owned(), source.clone());
            }
            (content, None) => unsourced.push(Unsourced {
                place: self.place.clone(),
                key: key.to_owned(),
                found: content.describe(),
            }),
        }
    }
}

/// A leaf that names no source.
#[derive(Clone, Debug)]
pub struct Unsourced {
    /// Where it stands.
    pub place: Place,
    /// Its dotted key.
    pub key: String,
    /// Its value in words.
    pub found: String,
}

impl From<Unsourced> for TomlError {
    fn from(Unsourced { place, key, found }: Unsourced) -> Self {
        Self::Source { place, key, found }
    }
}

/// `section.key`, or `key` at the top.
#[must_use]
pub fn dotted(section: &str, key: &str) -> String {
    if section.is_empty() { key.to_owned() } else { format!("{section}.{key}") }
}

/// A file's name, where its lines start, and whether its values have sources.
struct Reader {
    file: std::sync::Arc<str>,
    lines: Vec<usize>,
    sourced: bool,
}

impl Reader {
    fn new(file: &str, text: &str, sourced: bool) -> Self {
        let starts = text.bytes().enumerate().filter(|&(_, b)| b == b'\n').map(|(at, _)| at + 1);
        Self { file: file.into(), lines: std::iter::once(0).chain(starts).collect(), sourced }
    }

    fn read(&self, text: &str) -> Result<Node, TomlError> {
        let parsed = DeTable::parse(text).map_err(|error| TomlError::Syntax {
            place: self.place(error.span().map_or(0, |span| span.start)),
            message: error.message().trim().to_owned(),
        })?;
        self.table("", parsed.span().start, parsed.get_ref())
    }

    fn place(&self, offset: usize) -> Place {
        let line = self.lines.partition_point(|&start| start <= offset);
        Place::new(self.file.clone(), u32::try_from(line).unwrap_or(u32::MAX))
    }

    fn table(&self, key: &str, at: usize, table: &DeTable<'_>) -> Result<Node, TomlError> {
        if self.sourced && table.contains_key("value") {
            return self.leaf(key, at, table);
        }
        let mut entries = BTreeMap::new();
        for (name, value) in table {
            let mut node = self.node(&dotted(key, name.get_ref()), value)?;
            node.offset = name.span().start;
            node.place = self.place(node.offset);
            entries.insert(name.get_ref().to_string(), node);
        }
        Ok(self.plain(at, Content::Table(entries)))
    }

    fn plain(&self, at: usize, content: Content) -> Node {
        Node { place: self.place(at), source: None, content, offset: at }
    }

    /// `{ value = …, published = "…" }`.
    fn leaf(&self, key: &str, at: usize, table: &DeTable<'_>) -> Result<Node, TomlError> {
        let mut sources = Vec::new();
        let mut content = None;
        for (name, value) in table {
            let kind = SourceKind::of_key(name.get_ref());
            match (name.get_ref().as_ref(), kind, value.get_ref()) {
                ("value", ..) => content = Some(self.node(key, value)?.content),
                (_, Some(kind), DeValue::String(text)) if !text.trim().is_empty() => {
                    sources.push(Source { kind, text: text.to_string() });
                }
                (other, ..) => return Err(self.no_source(key, at, &format!("`{other}`"))),
            }
        }
        let content = content.expect("a leaf is a table that has a value");
        let nested = match &content {
            Content::Table(_) => true,
            Content::List(items) => items.iter().any(|item| item.source.is_some()),
            _ => false,
        };
        match (sources.len(), sources.pop()) {
            (1, source) if !nested => Ok(Node { source, ..self.plain(at, content) }),
            (1, _) => Err(self.no_source(key, at, "a section as the value")),
            (count, _) => Err(self.no_source(key, at, &format!("{count} sources"))),
        }
    }

    fn no_source(&self, key: &str, at: usize, found: &str) -> TomlError {
        TomlError::Source { place: self.place(at), key: key.to_owned(), found: found.to_owned() }
    }

    fn node(&self, key: &str, value: &Spanned<DeValue<'_>>) -> Result<Node, TomlError> {
        let at = value.span().start;
        let refuse = |found: &str| TomlError::Value {
            place: self.place(at),
            key: key.to_owned(),
            expected: "a number of at most 64 bits, a string, true or false, or a list".to_owned(),
            found: found.to_owned(),
            nearest: None,
        };
        let content = match value.get_ref() {
            DeValue::Table(table) => return self.table(key, at, table),
            DeValue::Array(items) => {
                let nodes = items.iter().map(|item| self.node(key, item));
                Content::List(nodes.collect::<Result<_, _>>()?)
            }
            DeValue::String(text) => Content::Text(text.to_string()),
            DeValue::Boolean(flag) => Content::Flag(*flag),
            DeValue::Integer(digits) => Content::Integer(
                i64::from_str_radix(digits.as_str(), digits.radix())
                    .map_err(|_| refuse(digits.as_str()))?,
            ),
            DeValue::Float(digits) => {
                let number = digits.as_str().parse::<f64>().ok().filter(|n| n.is_finite());
                Content::Float(number.ok_or_else(|| refuse(digits.as_str()))?)
            }
            DeValue::Datetime(date) => return Err(refuse(&date.to_string())),
        };
        Ok(self.plain(at, content))
    }
}

/// How well a number is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SourceKind {
    /// Printed by the maker, in a paper or in a configuration file.
    Published,
    /// Taken on the part itself.
    Measured,
    /// Chosen so that the model meets measured data, which the source names.
    Fitted,
    /// Known from no source; the text gives the reason for this value.
    Assumed,
    /// Given on the command line for one run.
    Set,
}

impl SourceKind {
    /// The kinds that a file may use, the best known first.
    pub const IN_FILES: [Self; 4] = [Self::Published, Self::Measured, Self::Fitted, Self::Assumed];

    /// The word in files and tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Published => "published",
            Self::Measured => "measured",
            Self::Fitted => "fitted",
            Self::Assumed => "assumed",
            Self::Set => "set",
        }
    }

    /// The kind that a key of a file names.
    #[must_use]
    pub fn of_key(key: &str) -> Option<Self> {
        Self::IN_FILES.into_iter().find(|kind| kind.name() == key)
    }
}

impl fmt::Display for SourceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Where one number is from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Source {
    /// How well it is known.
    pub kind: SourceKind,
    /// The document, data set or reason.
    pub text: String,
}

/// The source of every number of a description, by dotted key
/// (`l1.cache.sets`).
pub type Provenance = BTreeMap<String, Source>;

#[cfg(test)]
mod tests {
    use super::Node;

    #[test]
    fn a_leaf_has_exactly_one_source() {
        let text = "[l1]\nbanks = { value = 4, published = \"a\", assumed = \"b\" }\n";
        let error = Node::read_sourced("m.toml", text).unwrap_err().to_string();
        assert!(error.starts_with("m.toml:2: `l1.banks`"), "{error}");
        assert!(error.contains("found 2 sources"), "{error}");
        for bare in
            ["{ value = 4 }", "{ value = 4, published = \" \" }", "{ value = 4, by = \"x\" }"]
        {
            assert!(Node::read_sourced("m", &format!("a = {bare}")).is_err(), "{bare}");
        }
    }

    #[test]
    fn broken_text_names_its_line() {
        let error = Node::read("m.toml", "a = 1\nb = = 2\n").unwrap_err().to_string();
        assert!(error.starts_with("m.toml:2: not TOML"), "{error}");
    }

    #[test]
    fn a_section_inherits_key_by_key() {
        let mut own = Node::read("own", "[a]\nx = 1\n").unwrap();
        own.inherit(Node::read("base", "[a]\nx = 2\ny = 3\n[b]\nz = 4\n").unwrap());
        let a = own.entries().unwrap()["a"].entries().unwrap();
        assert_eq!(a["x"].content.describe(), "1");
        assert_eq!(a["y"].place.to_string(), "base:3");
        assert!(own.entries().unwrap().contains_key("b"));
    }
}
