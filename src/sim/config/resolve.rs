//! From a name to a machine that needs no further checks.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::Path;

use serde::Serialize;
use serde_json::Value;
use xxhash_rust::xxh3::xxh3_128;

use gpumodel_core::models::{ModelFileError, read_text};
use gpumodel_core::toml::{
    Content, Node, Place, Provenance, Source, SourceKind, TomlError, dotted,
};

use super::check::{self, Problem};
use super::error::SpecError;
use super::isa_table::IsaTable;
use super::link::Link;
use super::machine::Machine;
use super::memory::file::{COMMON, LONGEST_CHAIN, is_file, text_and_base};
use super::memory::layout::LAYOUT;
use super::models::Models;

/// A machine with everything that belongs to it.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// The machine.
    pub machine: Machine,
    /// Its opcode table.
    pub isa: IsaTable,
    /// Where each number is from, by dotted key. Keys without an entry hold the
    /// default that `Machine` documents.
    pub provenance: Provenance,
    /// The `--set` words of this run, key to value.
    pub overrides: BTreeMap<String, String>,
    /// xxh3-128 in hex of the machine with its overrides, its opcode table and
    /// the texts of its memory standard and address mapping: equal hashes mean
    /// equal hardware. Sources and descriptions do not count.
    pub hash: String,
}

/// Words at the top of a machine file that describe it and need no source.
const DESCRIBING: [&str; 4] = ["name", "reference_name", "description", "isa"];

impl Models {
    /// The machine `name_or_path`: a name in `models/gpus`, or a file. Each
    /// override is a dotted key and a value, typed as the value it replaces.
    ///
    /// # Errors
    /// Everything in [`SpecError`]; [`SpecError::Inconsistent`] lists every
    /// failed check.
    pub fn machine(
        &self,
        name_or_path: impl AsRef<OsStr>,
        overrides: &[(String, String)],
    ) -> Result<Resolved, SpecError> {
        consistent(self.examine(name_or_path, overrides)?)
    }

    /// As [`Models::machine`], with overrides that stand in a file, which says where.
    ///
    /// # Errors
    /// As [`Models::machine`].
    pub fn machine_set_by_file(
        &self,
        name_or_path: impl AsRef<OsStr>,
        overrides: &[(String, String)],
    ) -> Result<Resolved, SpecError> {
        consistent(self.examined(name_or_path, overrides, "")?)
    }

    /// As [`Models::machine`], but hands back the failed checks and the numbers
    /// without a source with the machine instead of refusing it.
    ///
    /// # Errors
    /// When the file cannot be read as a machine at all.
    pub fn examine(
        &self,
        name_or_path: impl AsRef<OsStr>,
        overrides: &[(String, String)],
    ) -> Result<(Resolved, Vec<Problem>), SpecError> {
        self.examined(name_or_path, overrides, OPTION)
    }

    /// As [`Models::examine`], of the text of a machine file that `origin` names.
    ///
    /// # Errors
    /// When the text cannot be read as a machine at all.
    pub fn examine_text(
        &self,
        origin: &str,
        text: &str,
    ) -> Result<(Resolved, Vec<Problem>), SpecError> {
        let node = Node::read_sourced(origin, text)?;
        self.examined_tree(origin, self.with_bases("gpus", origin, node)?, &[])
    }

    /// The same with what stands before each override where it was typed.
    fn examined(
        &self,
        name_or_path: impl AsRef<OsStr>,
        overrides: &[(String, String)],
        option: &str,
    ) -> Result<(Resolved, Vec<Problem>), SpecError> {
        let (name, mut tree) = self.machine_tree(name_or_path.as_ref())?;
        let linked = tree.entries().is_some_and(|entries| entries.contains_key("link"));
        for (key, value) in overrides {
            if !linked && key.starts_with("link.") {
                let word = format!("{option}{key}={value}");
                return Err(SpecError::NoLink { word, machine: name });
            }
            set(&mut tree, (key, value), option)?;
        }
        self.examined_tree(&name, tree, overrides)
    }

    /// The same of a tree that holds its overrides.
    fn examined_tree(
        &self,
        name: &str,
        mut tree: Node,
        overrides: &[(String, String)],
    ) -> Result<(Resolved, Vec<Problem>), SpecError> {
        complete(&mut tree, name);
        let machine: Machine = tree.decode().map_err(|error| match error {
            missing @ TomlError::Missing { .. } => SpecError::Incomplete(Box::new(missing)),
            other => other.into(),
        })?;
        let isa = IsaTable::load(self, &machine.isa)
            .map_err(|error| error.named_at(place_of(&tree, "isa"), "isa"))?;
        self.check_memory_names(&machine, &tree)?;
        let mut provenance = Provenance::new();
        let mut problems = unsourced(&tree, &mut provenance);
        problems.extend(check::problems(&machine, &isa));
        let hash = self.hash(&machine, &isa);
        let overrides = overrides.iter().cloned().collect();
        Ok((Resolved { machine, isa, provenance, overrides, hash }, problems))
    }

    fn machine_tree(&self, typed: &OsStr) -> Result<(String, Node), SpecError> {
        let (path, shown) = (Path::new(typed), typed.to_string_lossy());
        let name_or_path = &*shown;
        let is_name = self.machine_names().contains(&name_or_path);
        if !is_name && (path.is_dir() || (is_path(name_or_path) && !path.exists())) {
            let (kind, why) = if path.is_dir() {
                (ErrorKind::IsADirectory, "it is a folder, not the file of a machine")
            } else {
                (ErrorKind::NotFound, "there is no such file")
            };
            let source = std::io::Error::new(kind, why);
            return Err(ModelFileError::Read { path: path.to_path_buf(), source }.into());
        }
        if is_name || !path.is_file() {
            return Ok((name_or_path.to_owned(), self.tree("gpus", name_or_path)?));
        }
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let node = Node::read_sourced(name_or_path, &read_text(path)?)?;
        // A file may refine the built-in machine of the same name: only `base`
        // words of carried files can close a circle.
        let node = self.with_bases("gpus", name_or_path, node)?;
        Ok((name, node))
    }

    /// Refuses an unknown memory standard or address mapping. Those named by
    /// their files are read when the memory is put together.
    fn check_memory_names(&self, machine: &Machine, tree: &Node) -> Result<(), SpecError> {
        let (standard, mapping) = (&machine.dram.standard, &machine.dram.mapping);
        for (key, folder, name) in
            [("dram.standard", "memory", standard), ("dram.mapping", "memory/mappings", mapping)]
        {
            let place = place_of(tree, key);
            if folder == "memory" && name == COMMON {
                let found = format!("`{COMMON}`, which only standards build on");
                return Err(SpecError::value(place, key, "a memory standard, as hbm2", found));
            }
            if folder == "memory/mappings" && name == LAYOUT {
                if machine.dram.layout.is_none() {
                    let found = format!("`{LAYOUT}`, and no section [dram.layout]");
                    return Err(SpecError::value(place, key, "a mapping, as volta", found));
                }
            } else if !is_file(name) {
                self.text(folder, name).map_err(|error| error.named_at(place, key))?;
            }
        }
        Ok(())
    }

    fn hash(&self, machine: &Machine, isa: &IsaTable) -> String {
        let mut bare = machine.clone();
        bare.description.clear();
        // A link that takes no time changes nothing.
        bare.link = bare.link.filter(Link::is_used);
        bare.mig = bare.mig.filter(|mig| !mig.profiles.is_empty());
        let mut bytes = serde_json::to_vec(&(bare, isa)).expect("plain data has a JSON form");
        for (folder, name) in
            [("memory", &machine.dram.standard), ("memory/mappings", &machine.dram.mapping)]
        {
            let mut next = Some(name.clone());
            // A longer chain is refused when the memory is put together.
            for _ in 0..LONGEST_CHAIN {
                let Some((text, base)) = next.and_then(|name| self.memory_text(folder, &name))
                else {
                    break;
                };
                bytes.extend_from_slice(text.as_bytes());
                next = base;
            }
        }
        format!("{:032x}", xxh3_128(&bytes))
    }

    /// What a memory file adds to the hash, and the name of its base; `None`: it cannot be
    /// read, which who puts the memory together says.
    fn memory_text(&self, folder: &str, name: &str) -> Option<(Cow<'_, str>, Option<String>)> {
        if is_file(name) {
            let (text, base) = text_and_base(name)?;
            // Its length keeps it apart from the text behind it.
            return Some((Cow::Owned(format!("{}\n{text}", text.len())), base));
        }
        let found = self.file(&format!("{folder}/{name}.toml"))?;
        let base = Node::read_sourced(&found.origin, &found.text)
            .ok()
            .and_then(|node| node.entries()?.get("base")?.text().map(str::to_owned));
        Some((Cow::Borrowed(&*found.text), base))
    }
}

/// What stands before an override on the command line.
const OPTION: &str = "--set ";

/// Refuses a machine with failed checks.
fn consistent((resolved, problems): (Resolved, Vec<Problem>)) -> Result<Resolved, SpecError> {
    if problems.is_empty() {
        return Ok(resolved);
    }
    Err(SpecError::Inconsistent { machine: resolved.machine.name, problems })
}

/// Whether a machine is named by its file.
fn is_path(text: &str) -> bool {
    text.contains('/') || text.to_ascii_lowercase().ends_with(".toml")
}

/// Where the dotted `key` stands in a tree, or the section that should hold it.
fn place_of<'a>(tree: &'a Node, key: &str) -> &'a Place {
    let mut node = tree;
    for step in key.split('.') {
        match node.entries().and_then(|entries| entries.get(step)) {
            Some(next) => node = next,
            None => break,
        }
    }
    &node.place
}

/// Gives the describing words their defaults.
fn complete(tree: &mut Node, stem: &str) {
    let place = tree.place.clone();
    let Some(entries) = tree.entries_mut() else { return };
    let word = |text: String| Node::new(place, None, Content::Text(text));
    let name = entries.entry("name".to_owned()).or_insert_with(|| word(stem.to_owned())).clone();
    entries.entry("reference_name".to_owned()).or_insert(name);
}

/// Collects the sources; a number without one is a problem.
fn unsourced(tree: &Node, provenance: &mut Provenance) -> Vec<Problem> {
    let mut silent = Vec::new();
    tree.sources("", provenance, &mut silent);
    silent.retain(|leaf| !DESCRIBING.contains(&leaf.key.as_str()));
    silent
        .into_iter()
        .map(|leaf| Problem::new("every number says where it is from", TomlError::from(leaf)))
        .collect()
}

/// Puts one override, typed after `option`, into the tree. Whether the key exists and takes
/// the value shows when the tree is decoded.
fn set(tree: &mut Node, (key, value): (&str, &str), option: &str) -> Result<(), SpecError> {
    let word = format!("{option}{key}={value}");
    if key.split('.').any(str::is_empty) {
        return Err(SpecError::Override { word });
    }
    let place = Place::new(word, 0);
    let mut node = tree;
    for step in key.split('.') {
        let Some(entries) = node.entries_mut() else {
            let key = key.to_owned();
            return Err(SpecError::from(TomlError::UnknownKey { place, key, nearest: None }));
        };
        node = entries
            .entry(step.to_owned())
            .or_insert_with(|| Node::new(place.clone(), None, Content::Table(BTreeMap::new())));
    }
    let content = match node.content {
        Content::Text(_) => Content::Text(value.to_owned()),
        _ => typed(value),
    };
    let source = Source { kind: SourceKind::Set, text: "the command line of this run".to_owned() };
    *node = Node::new(place, Some(source), content);
    Ok(())
}

/// A value as TOML would read it; a bare word is a string.
fn typed(value: &str) -> Content {
    let parsed = Node::read_sourced("--set", &format!("v = {value}"))
        .ok()
        .filter(|_| !value.contains('\n'))
        .and_then(|mut node| node.entries_mut()?.remove("v"));
    parsed.map_or_else(|| Content::Text(value.to_owned()), |node| node.content)
}

/// One value of a machine.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Listed {
    /// The dotted key, as `--set` takes it.
    pub key: String,
    /// The value.
    pub value: Value,
    /// Where it is from; `None` for describing words and documented defaults.
    #[serde(flatten)]
    pub source: Option<Source>,
}

impl Resolved {
    /// Every value of the machine in the order of its description.
    ///
    /// # Panics
    /// Never: a machine is plain data and has a JSON form.
    #[must_use]
    pub fn listing(&self) -> Vec<Listed> {
        let machine = serde_json::to_value(&self.machine).expect("plain data has a JSON form");
        let mut rows = Vec::new();
        self.collect("", machine, &mut rows);
        rows
    }

    fn collect(&self, key: &str, value: Value, rows: &mut Vec<Listed>) {
        match value {
            Value::Object(entries) => {
                for (name, inner) in entries {
                    self.collect(&dotted(key, &name), inner, rows);
                }
            }
            value => {
                let source = self.provenance.get(key).cloned();
                rows.push(Listed { key: key.to_owned(), value, source });
            }
        }
    }
}
