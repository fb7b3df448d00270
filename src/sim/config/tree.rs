//! A model file as a tree of values that know their line and their source.

use std::collections::BTreeMap;
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{Place, SpecError};
use super::source::{Kind, Provenance, Source};

/// One value of a model file.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    /// Where it stands.
    pub(crate) place: Place,
    /// Where the number is from, when it says so.
    pub(crate) source: Option<Source>,
    /// The value.
    pub(crate) content: Content,
}

/// What a value is.
#[derive(Clone, Debug)]
pub(crate) enum Content {
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
    pub(crate) fn describe(&self) -> String {
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

impl Node {
    /// Reads the text of a model file. A value written
    /// `{ value = …, published = "…" }` becomes one leaf with its source.
    ///
    /// # Errors
    /// [`SpecError::Syntax`] when the text is no TOML, [`SpecError::Source`] when
    /// a leaf names no source or several, [`SpecError::Value`] for dates and
    /// numbers beyond 64 bits.
    pub(crate) fn read(file: &str, text: &str) -> Result<Self, SpecError> {
        let lines = Lines::new(file, text);
        let parsed = DeTable::parse(text).map_err(|error| SpecError::Syntax {
            place: lines.place(error.span().map_or(0, |span| span.start)),
            message: error.message().trim().to_owned(),
        })?;
        lines.table("", parsed.span().start, parsed.get_ref())
    }

    /// The entries, when this is a section.
    pub(crate) fn entries(&self) -> Option<&BTreeMap<String, Self>> {
        match &self.content {
            Content::Table(entries) => Some(entries),
            _ => None,
        }
    }

    /// The entries, when this is a section, to change.
    pub(crate) fn entries_mut(&mut self) -> Option<&mut BTreeMap<String, Self>> {
        match &mut self.content {
            Content::Table(entries) => Some(entries),
            _ => None,
        }
    }

    /// The text, when this is a string.
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.content {
            Content::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Fills in from `base` what this one does not say, section by section.
    pub(crate) fn inherit(&mut self, base: Self) {
        let (Content::Table(own), Content::Table(inherited)) = (&mut self.content, base.content)
        else {
            return;
        };
        // A row that names its source does not also take over the base's.
        let is_source = |key: &str| Kind::IN_FILES.iter().any(|kind| kind.name() == key);
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

    /// Collects the source of every leaf below, and the keys of the leaves that
    /// name none.
    pub(crate) fn sources(&self, key: &str, found: &mut Provenance, silent: &mut Vec<Silent>) {
        match (&self.content, &self.source) {
            (Content::Table(entries), None) => {
                for (name, node) in entries {
                    node.sources(&dotted(key, name), found, silent);
                }
            }
            (_, Some(source)) => {
                found.insert(key.to_owned(), source.clone());
            }
            (content, None) => silent.push(Silent {
                place: self.place.clone(),
                key: key.to_owned(),
                found: content.describe(),
            }),
        }
    }
}

/// A leaf that names no source.
#[derive(Clone, Debug)]
pub(crate) struct Silent {
    /// Where it stands.
    pub(crate) place: Place,
    /// Its dotted key.
    pub(crate) key: String,
    /// Its value in words.
    pub(crate) found: String,
}

impl From<Silent> for SpecError {
    fn from(silent: Silent) -> Self {
        Self::Source { place: silent.place, key: silent.key, found: silent.found }
    }
}

/// `section.key`, or `key` at the top.
pub(crate) fn dotted(section: &str, key: &str) -> String {
    if section.is_empty() { key.to_owned() } else { format!("{section}.{key}") }
}

/// A file's name and where its lines start.
struct Lines {
    file: Arc<str>,
    starts: Vec<usize>,
}

impl Lines {
    fn new(file: &str, text: &str) -> Self {
        let starts = text.bytes().enumerate().filter(|&(_, b)| b == b'\n').map(|(at, _)| at + 1);
        Self { file: Arc::from(file), starts: std::iter::once(0).chain(starts).collect() }
    }

    fn place(&self, offset: usize) -> Place {
        let line = self.starts.partition_point(|&start| start <= offset);
        Place::new(self.file.clone(), u32::try_from(line).unwrap_or(u32::MAX))
    }

    fn table(&self, key: &str, at: usize, table: &DeTable<'_>) -> Result<Node, SpecError> {
        if table.contains_key("value") {
            return self.leaf(key, at, table);
        }
        let mut entries = BTreeMap::new();
        for (name, value) in table {
            let mut node = self.node(&dotted(key, name.get_ref()), value)?;
            node.place = self.place(name.span().start);
            entries.insert(name.get_ref().to_string(), node);
        }
        Ok(Node { place: self.place(at), source: None, content: Content::Table(entries) })
    }

    /// `{ value = …, published = "…" }`.
    fn leaf(&self, key: &str, at: usize, table: &DeTable<'_>) -> Result<Node, SpecError> {
        let mut sources = Vec::new();
        let mut content = None;
        for (name, value) in table {
            let kind = Kind::IN_FILES.into_iter().find(|kind| kind.name() == name.get_ref());
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
            (1, source) if !nested => Ok(Node { place: self.place(at), source, content }),
            (1, _) => Err(self.no_source(key, at, "a section as the value")),
            (count, _) => Err(self.no_source(key, at, &format!("{count} sources"))),
        }
    }

    fn no_source(&self, key: &str, at: usize, found: &str) -> SpecError {
        SpecError::Source { place: self.place(at), key: key.to_owned(), found: found.to_owned() }
    }

    fn node(&self, key: &str, value: &Spanned<DeValue<'_>>) -> Result<Node, SpecError> {
        let at = value.span().start;
        let refuse = |found: &str| SpecError::Value {
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
        Ok(Node { place: self.place(at), source: None, content })
    }
}

#[cfg(test)]
mod tests {
    use super::Node;

    #[test]
    fn a_leaf_has_exactly_one_source() {
        let text = "[l1]\nbanks = { value = 4, published = \"a\", assumed = \"b\" }\n";
        let error = Node::read("m.toml", text).unwrap_err().to_string();
        assert!(error.starts_with("m.toml:2: `l1.banks`"), "{error}");
        assert!(error.contains("found 2 sources"), "{error}");
        for bare in
            ["{ value = 4 }", "{ value = 4, published = \" \" }", "{ value = 4, by = \"x\" }"]
        {
            assert!(Node::read("m", &format!("a = {bare}")).is_err(), "{bare}");
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
