//! What every opcode of an architecture does: rows of `models/isa/*.toml`.
//!
//! Knows opcode text and classes, nothing of pipelines beyond their names.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use gpumodel_core::isa::{Effect, Listing, ObjectStep, Opcode, Space, Unit};
use gpumodel_core::toml::{Node, Place, SourceKind, TomlError, dotted};
use gpumodel_core::units::{did_you_mean, nearest};

use super::error::SpecError;
use super::machine::Machine;
use super::matrix::MatrixMultiply;
use super::models::Models;

/// The opcodes of one architecture.
#[derive(Clone, Debug, Serialize)]
pub struct IsaTable {
    /// Stem of the file in `models/isa`.
    pub name: String,
    /// Opcode root (`LDG`) to its class.
    roots: BTreeMap<String, Row>,
    /// Rules on the dotted parts, the least specific first.
    modifiers: Vec<(Pattern, Row)>,
    /// Class of an opcode that the table does not list, longest prefix first;
    /// the last has the empty prefix.
    prefixes: Vec<(String, Row)>,
    /// The table of a later architecture, for instructions that this one lacks.
    later: Option<Box<IsaTable>>,
}

/// What a class says of its opcodes, or a modifier rule changes in them.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    /// Opcode roots (a class) or patterns over dotted parts (a modifier rule).
    #[serde(default, skip_serializing)]
    opcodes: Vec<String>,
    /// The execution unit.
    #[serde(default, deserialize_with = "unit", serialize_with = "unit_name")]
    unit: Option<Unit>,
    /// What it does; `compute` where a class says nothing.
    effect: Option<EffectName>,
    /// The memory that the effect touches.
    space: Option<SpaceName>,
    /// Cycles from issue until a dependent instruction may issue.
    latency_cycles: Option<u32>,
    /// Cycles for which a unit's issue port is taken.
    initiation_cycles: Option<u32>,
    /// Multiply-adds per scheduler and cycle of a matrix multiply, in place of
    /// `initiation_cycles`: the work follows from the shape in the opcode.
    multiply_adds_per_cycle: Option<u32>,
    /// False: the architecture lacks the instruction; the timing is that of its work.
    native: Option<bool>,
    /// Consecutive 32-bit registers of each listed destination.
    registers_per_destination: Option<u8>,
    /// Goes past the L1.
    bypasses_l1: Option<bool>,
    /// Cycles from its issue before the warp may issue again.
    hold_cycles: Option<u32>,
    /// Its result is a predicate, ready after its latency.
    writes_predicate: Option<bool>,
    /// It waits for the predicate written last.
    reads_predicate: Option<bool>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum EffectName {
    Compute,
    Load,
    Store,
    Atomic,
    Reduction,
    AsyncCopy,
    AsyncCommit,
    AsyncWait,
    Barrier,
    Arrive,
    ClusterArrive,
    ClusterWait,
    Fence,
    MatrixGroup,
    BulkLoad,
    BulkStore,
    BulkReduction,
    ObjectInit,
    ObjectArriveExpect,
    ObjectArrive,
    ObjectArriveTimes,
    ObjectLeave,
    ObjectExpect,
    ObjectComplete,
    ObjectArriveAfterCopies,
    ObjectWait,
    MatrixWait,
    SetRegisters,
    Exit,
    Branch,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum SpaceName {
    Global,
    Shared,
    Local,
    Constant,
    Texture,
    Generic,
}

/// A file of `models/isa` as written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(rename = "description")]
    _description: String,
    /// The table of a later architecture, whose instructions are recognised.
    later: Option<String>,
    classes: BTreeMap<String, Row>,
    #[serde(default)]
    modifiers: BTreeMap<String, Row>,
    prefixes: BTreeMap<String, String>,
}

impl IsaTable {
    /// Reads `models/isa/<name>.toml` with everything that it inherits.
    ///
    /// # Errors
    /// [`SpecError`] with file and line: among others when an opcode stands in
    /// two classes, a class names no source, or no prefix rule is left for an
    /// unknown opcode.
    pub fn load(models: &Models, name: &str) -> Result<Self, SpecError> {
        let (mut table, later) = Self::load_own(models, name)?;
        if let Some(later) = later.filter(|later| later != name) {
            table.later = Some(Box::new(Self::load_own(models, &later)?.0));
        }
        Ok(table)
    }

    /// The table without a later one, and the name of that.
    fn load_own(models: &Models, name: &str) -> Result<(Self, Option<String>), SpecError> {
        let mut tree = models.tree("isa", name)?;
        for section in ["classes", "modifiers"] {
            strip_sources(&mut tree, section)?;
        }
        let file: File = tree.decode()?;
        let mut modifiers = Vec::new();
        for row in file.modifiers.values() {
            modifiers.extend(row.opcodes.iter().map(|text| (Pattern::new(text), row.rule())));
        }
        modifiers.sort_by_key(|(pattern, _)| pattern.literals());
        let roots = roots(&tree, &file.classes)?;
        let prefixes = prefixes(&tree, &file)?;
        let table = Self { name: name.to_owned(), roots, modifiers, prefixes, later: None };
        Ok((table, file.later))
    }

    /// The class and timing of the opcode `text` (dotted SASS) on `machine`.
    ///
    /// Timing comes from the table's own figure for the opcode where it has one,
    /// else from the machine's unit, and always from a unit that overrides the
    /// table. A matrix multiply without a latency of its own takes that of its unit, and
    /// the time by which it occupies the unit longer than the unit's own: measured ones are up
    /// to 15 % longer (A100: m16n8k16 24.7 cycles for 22; Sun et al. 2022, arXiv 2206.02874).
    ///
    /// # Panics
    /// When the machine lacks a unit: a checked machine has every unit that its
    /// table uses.
    #[must_use]
    pub fn opcode(&self, machine: &Machine, text: &str) -> Opcode {
        let (row, listing) = self.row_on(machine, text);
        let unit = row.unit.expect("a class has a unit");
        let spec = machine.units.get(unit.name()).expect("a checked machine has all units");
        let rate = row.multiply_adds_per_cycle.filter(|_| !spec.overrides_isa);
        let matrix = rate.and_then(|rate| Some((MatrixMultiply::of(text)?, rate)));
        let own = |own: Option<u32>| own.filter(|_| !spec.overrides_isa);
        let cycles = matrix.map(|(multiply, rate)| multiply.cycles(rate));
        let initiation_cycles =
            cycles.or(own(row.initiation_cycles)).unwrap_or(spec.initiation_cycles);
        let of_unit = match cycles {
            Some(cycles) if matrix.is_some_and(|(multiply, _)| multiply.is_group()) => cycles,
            Some(cycles) => spec.latency_cycles + cycles.saturating_sub(spec.initiation_cycles),
            None => spec.latency_cycles,
        };
        let registers = matrix.map(|(multiply, _)| multiply.registers());
        Opcode {
            unit,
            effect: row.effect(),
            latency_cycles: own(row.latency_cycles).unwrap_or(of_unit),
            initiation_cycles,
            registers_per_destination: row.registers_per_destination.or(registers).unwrap_or(1),
            bypasses_l1: row.bypasses_l1.unwrap_or(false),
            hold_cycles: row.hold_cycles.unwrap_or(0),
            writes_predicate: row.writes_predicate.unwrap_or(false),
            reads_predicate: row.reads_predicate.unwrap_or(false),
            shared_operand_cycles: matrix
                .map_or(0, |(multiply, _)| multiply.shared_operand_cycles()),
            listing,
        }
    }

    /// What the table says of `text` on `machine`, and how it knows it. An instruction that only
    /// a later architecture lists, on a unit that the machine has, does what it does there at
    /// the time of that unit here.
    fn row_on(&self, machine: &Machine, text: &str) -> (Row, Listing) {
        let own = self.row(text);
        if self.lists(text) {
            let native = own.native.unwrap_or(true);
            return (own, if native { Listing::Own } else { Listing::OtherArchitecture });
        }
        let later = self.later.as_ref().filter(|later| later.lists(text));
        let Some(mut row) = later.map(|later| later.row(text).without_timing()) else {
            return (own, Listing::Prefix);
        };
        self.apply_modifiers(text, &mut row);
        let has_unit = row.unit.is_some_and(|unit| machine.units.contains_key(unit.name()));
        if has_unit { (row, Listing::OtherArchitecture) } else { (own, Listing::Prefix) }
    }

    /// True when the table itself lists the opcode `text`.
    #[must_use]
    pub fn lists(&self, text: &str) -> bool {
        self.roots.contains_key(text.split('.').next().unwrap_or_default())
    }

    /// True when `text` is an instruction of the architecture.
    #[must_use]
    pub fn is_native(&self, text: &str) -> bool {
        self.lists(text) && self.row(text).native.unwrap_or(true)
    }

    /// The unit that a rule on the first letters gives the opcode `text`; `None`: the table
    /// lists it.
    #[must_use]
    pub fn guess(&self, text: &str) -> Option<Unit> {
        if self.lists(text) {
            return None;
        }
        self.row(text).unit
    }

    /// The units that the table's rows use, each once, in [`Unit::ALL`] order.
    #[must_use]
    pub fn units(&self) -> Vec<Unit> {
        let rows = self.roots.values().chain(self.modifiers.iter().map(|(_, row)| row));
        let used: Vec<Unit> = rows
            .chain(self.prefixes.iter().map(|(_, row)| row))
            .filter_map(|row| row.unit)
            .collect();
        Unit::ALL.into_iter().filter(|unit| used.contains(unit)).collect()
    }

    /// The opcode roots that the table lists, in order.
    pub fn opcodes(&self) -> impl Iterator<Item = &str> {
        self.roots.keys().map(String::as_str)
    }

    /// What the table says of the opcode `text`, by a rule on its first letters where it
    /// does not list it.
    fn row(&self, text: &str) -> Row {
        let root = text.split('.').next().unwrap_or_default();
        let mut row = self.roots.get(root).unwrap_or_else(|| self.by_prefix(root)).clone();
        self.apply_modifiers(text, &mut row);
        row
    }

    fn apply_modifiers(&self, text: &str, row: &mut Row) {
        for (pattern, change) in &self.modifiers {
            if pattern.matches(text) {
                row.change(change);
            }
        }
    }

    fn by_prefix(&self, root: &str) -> &Row {
        let rule = self.prefixes.iter().find(|(prefix, _)| root.starts_with(prefix.as_str()));
        &rule.expect("the empty prefix is a prefix of everything").1
    }
}

impl Row {
    /// What the row says, without the opcodes that it says it of.
    fn rule(&self) -> Self {
        Self { opcodes: Vec::new(), ..self.clone() }
    }

    /// The same without what only the architecture of its table knows.
    fn without_timing(self) -> Self {
        let (latency_cycles, initiation_cycles, hold_cycles) = (None, None, None);
        Self {
            latency_cycles,
            initiation_cycles,
            multiply_adds_per_cycle: None,
            hold_cycles,
            ..self
        }
    }

    /// The key that a class still lacks: each has a unit, and a space where its
    /// effect reaches memory.
    fn lacks(&self) -> Option<&'static str> {
        let reaches = matches!(
            self.effect,
            Some(EffectName::Load | EffectName::Store | EffectName::Atomic | EffectName::Reduction)
        );
        if self.unit.is_none() {
            return Some("unit");
        }
        (reaches && self.space.is_none()).then_some("space")
    }

    /// Takes over what `change` says.
    fn change(&mut self, change: &Self) {
        self.unit = change.unit.or(self.unit);
        self.effect = change.effect.or(self.effect);
        self.space = change.space.or(self.space);
        if change.multiply_adds_per_cycle.is_some() {
            (self.initiation_cycles, self.registers_per_destination) = (None, None);
        }
        if change.initiation_cycles.is_some() {
            self.multiply_adds_per_cycle = None;
        }
        self.latency_cycles = change.latency_cycles.or(self.latency_cycles);
        self.initiation_cycles = change.initiation_cycles.or(self.initiation_cycles);
        self.multiply_adds_per_cycle =
            change.multiply_adds_per_cycle.or(self.multiply_adds_per_cycle);
        self.native = change.native.or(self.native);
        self.registers_per_destination =
            change.registers_per_destination.or(self.registers_per_destination);
        self.bypasses_l1 = change.bypasses_l1.or(self.bypasses_l1);
        self.hold_cycles = change.hold_cycles.or(self.hold_cycles);
        self.writes_predicate = change.writes_predicate.or(self.writes_predicate);
        self.reads_predicate = change.reads_predicate.or(self.reads_predicate);
    }

    fn space(&self) -> Space {
        match self.space {
            // Only effects without a space have none.
            Some(SpaceName::Global) | None => Space::Global,
            Some(SpaceName::Shared) => Space::Shared,
            Some(SpaceName::Local) => Space::Local,
            Some(SpaceName::Constant) => Space::Constant,
            Some(SpaceName::Texture) => Space::Texture,
            Some(SpaceName::Generic) => Space::Generic,
        }
    }

    fn effect(&self) -> Effect {
        let space = self.space();
        match self.effect {
            Some(EffectName::Compute) | None => Effect::Compute,
            Some(EffectName::Load) => Effect::Load(space),
            Some(EffectName::Store) => Effect::Store(space),
            Some(EffectName::Atomic) => Effect::Atomic(space),
            Some(EffectName::Reduction) => Effect::Reduction(space),
            Some(EffectName::AsyncCopy) => Effect::AsyncCopy,
            Some(EffectName::AsyncCommit) => Effect::AsyncCommit,
            Some(EffectName::AsyncWait) => Effect::AsyncWait,
            Some(EffectName::Barrier) => Effect::Barrier,
            Some(EffectName::Arrive) => Effect::Arrive,
            Some(EffectName::ClusterArrive) => Effect::ClusterArrive,
            Some(EffectName::ClusterWait) => Effect::ClusterWait,
            Some(EffectName::Fence) => Effect::Fence,
            Some(EffectName::MatrixGroup) => Effect::MatrixGroup,
            Some(EffectName::BulkLoad) => Effect::BulkLoad,
            Some(EffectName::BulkStore) => Effect::BulkStore,
            Some(EffectName::BulkReduction) => Effect::BulkReduction,
            Some(EffectName::ObjectInit) => Effect::Object(ObjectStep::Init),
            Some(EffectName::ObjectArriveExpect) => Effect::Object(ObjectStep::ArriveExpect),
            Some(EffectName::ObjectArrive) => Effect::Object(ObjectStep::Arrive),
            Some(EffectName::ObjectArriveTimes) => Effect::Object(ObjectStep::ArriveTimes),
            Some(EffectName::ObjectLeave) => Effect::Object(ObjectStep::Leave),
            Some(EffectName::ObjectExpect) => Effect::Object(ObjectStep::Expect),
            Some(EffectName::ObjectComplete) => Effect::Object(ObjectStep::Complete),
            Some(EffectName::ObjectArriveAfterCopies) => {
                Effect::Object(ObjectStep::ArriveAfterCopies)
            }
            Some(EffectName::ObjectWait) => Effect::Object(ObjectStep::Wait),
            Some(EffectName::MatrixWait) => Effect::MatrixWait,
            Some(EffectName::SetRegisters) => Effect::SetRegisters,
            Some(EffectName::Exit) => Effect::Exit,
            Some(EffectName::Branch) => Effect::Branch,
        }
    }
}

/// Opcode root to row; refuses an incomplete class and a root in two classes.
fn roots(tree: &Node, classes: &BTreeMap<String, Row>) -> Result<BTreeMap<String, Row>, SpecError> {
    let mut owner: BTreeMap<&str, &str> = BTreeMap::new();
    let mut found = BTreeMap::new();
    for (class, row) in classes {
        if let Some(key) = row.lacks() {
            let place = place_of(tree, "classes", class);
            return Err(TomlError::Missing { place, key: format!("classes.{class}.{key}") }.into());
        }
        for root in &row.opcodes {
            if let Some(other) = owner.insert(root, class) {
                let there = place_of(tree, "classes", other);
                return Err(SpecError::value(
                    &place_of(tree, "classes", class),
                    &format!("classes.{class}.opcodes"),
                    "every opcode in one class only",
                    format!("{root}, which class `{other}` also has ({there})"),
                ));
            }
            found.insert(root.clone(), row.rule());
        }
    }
    Ok(found)
}

/// Prefix rules, longest first; refuses unknown classes and a missing last rule.
fn prefixes(tree: &Node, file: &File) -> Result<Vec<(String, Row)>, SpecError> {
    let mut found = Vec::new();
    for (prefix, class) in &file.prefixes {
        let row = file.classes.get(class).ok_or_else(|| TomlError::Value {
            place: place_of(tree, "prefixes", prefix),
            key: dotted("prefixes", prefix),
            expected: "the name of a class".to_owned(),
            found: format!("\"{class}\""),
            nearest: nearest(class, file.classes.keys().map(String::as_str)),
        })?;
        found.push((prefix.clone(), row.rule()));
    }
    if !file.prefixes.contains_key("") {
        let key = "prefixes.\"\"".to_owned();
        return Err(TomlError::Missing { place: place_of(tree, "prefixes", ""), key }.into());
    }
    found.sort_by_key(|(prefix, _)| std::cmp::Reverse(prefix.len()));
    Ok(found)
}

fn place_of(tree: &Node, section: &str, key: &str) -> Place {
    let inside = tree.entries().and_then(|entries| entries.get(section));
    let exact = inside.and_then(|node| node.entries()?.get(key));
    exact.or(inside).unwrap_or(tree).place.clone()
}

/// Takes the source words out of every row of `section`; each row has one.
fn strip_sources(tree: &mut Node, section: &str) -> Result<(), SpecError> {
    let rows = tree.entries_mut().and_then(|entries| entries.get_mut(section)?.entries_mut());
    for (name, row) in rows.into_iter().flatten() {
        let place = row.place.clone();
        let Some(entries) = row.entries_mut() else { continue };
        let sources =
            SourceKind::IN_FILES.iter().filter_map(|kind| entries.remove(kind.name())).count();
        if sources != 1 {
            let (key, found) = (format!("{section}.{name}"), format!("{sources} sources"));
            return Err(TomlError::Source { place, key, found }.into());
        }
    }
    Ok(())
}

fn unit<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Unit>, D::Error> {
    let name = String::deserialize(from)?;
    let expected =
        "one of int, fp32, fp64, half, sfu, tensor, branch, texture, uniform, memory, control";
    Unit::from_name(&name)
        .map(Some)
        .ok_or_else(|| de::Error::invalid_value(de::Unexpected::Str(&name), &expected))
}

#[allow(clippy::ref_option, reason = "the shape that serde asks for")]
fn unit_name<S: Serializer>(unit: &Option<Unit>, to: S) -> Result<S::Ok, S::Error> {
    unit.map(Unit::name).serialize(to)
}

/// Dotted parts, where `*` stands for any number of parts, none included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pattern(Vec<String>);

impl Pattern {
    pub(super) fn new(text: &str) -> Self {
        Self(text.split('.').map(str::to_owned).collect())
    }

    /// Parts that are no `*`: how specific the pattern is.
    pub(super) fn literals(&self) -> usize {
        self.0.iter().filter(|part| *part != "*").count()
    }

    /// True when the opcode `text` has the pattern's shape.
    pub(super) fn matches(&self, text: &str) -> bool {
        // `reached[i]`: the parts read so far fit the first `i` parts of the pattern.
        let mut reached = vec![false; self.0.len() + 1];
        reached[0] = true;
        self.skip_stars(&mut reached);
        for part in text.split('.') {
            let mut next = vec![false; self.0.len() + 1];
            for (i, own) in self.0.iter().enumerate() {
                if own == "*" {
                    next[i + 1] |= reached[i + 1];
                } else if own == part {
                    next[i + 1] |= reached[i];
                }
            }
            self.skip_stars(&mut next);
            reached = next;
        }
        reached[self.0.len()]
    }

    fn skip_stars(&self, reached: &mut [bool]) {
        for (i, own) in self.0.iter().enumerate() {
            if own == "*" && reached[i] {
                reached[i + 1] = true;
            }
        }
    }
}

impl Serialize for Pattern {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&self.0.join("."))
    }
}

/// An opcode that is in no table of `models/isa`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unlisted {
    /// The opcode, as dotted SASS.
    pub opcode: String,
    /// The units on which the tables put it by its first letters, with ` or ` between them.
    pub units: String,
    /// The listed one that is spelt most alike, as ` (did you mean X?)`; empty: none is.
    pub hint: String,
}

impl Models {
    /// Those of `opcodes` that no table lists, in their order.
    ///
    /// # Errors
    /// When a table cannot be read.
    pub fn unlisted<'a>(
        &self,
        opcodes: impl IntoIterator<Item = &'a str>,
    ) -> Result<Vec<Unlisted>, SpecError> {
        let tables = self.names("isa").into_iter().map(|name| IsaTable::load(self, name));
        let tables: Vec<IsaTable> = tables.collect::<Result<_, _>>()?;
        let unlisted = |opcode: &str| {
            let units: Option<BTreeSet<&str>> =
                tables.iter().map(|table| table.guess(opcode).map(Unit::name)).collect();
            let root = opcode.split('.').next().unwrap_or_default();
            Some(Unlisted {
                opcode: opcode.to_owned(),
                units: units?.into_iter().collect::<Vec<_>>().join(" or "),
                hint: did_you_mean(root, tables.iter().flat_map(IsaTable::opcodes)),
            })
        };
        Ok(opcodes.into_iter().filter_map(unlisted).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::Pattern;

    #[test]
    fn stars_stand_for_any_number_of_parts() {
        let strong = Pattern::new("LDG.*.STRONG.*.GPU.*");
        assert!(strong.matches("LDG.E.STRONG.GPU"));
        assert!(strong.matches("LDG.E.64.STRONG.X.GPU.Y.Z"));
        assert!(!strong.matches("LDG.E.STRONG.SYS"));
        assert!(!strong.matches("STG.E.STRONG.GPU"));
        assert!(Pattern::new("F2F.F64.*").matches("F2F.F64.F32"));
        assert!(!Pattern::new("F2F.F64.*").matches("F2F.F32.F64"));
        assert!(Pattern::new("*").matches("X") && Pattern::new("X").matches("X"));
        assert!(!Pattern::new("X").matches("X.Y"));
    }
}

#[cfg(test)]
mod unlisted_tests {
    use super::Models;

    #[test]
    fn what_one_table_lists_is_listed() {
        let unlisted = Models::builtin().unlisted(["FFMA", "FFMAA.FTZ", "HGMMA.64x8x16", "QQ"]);
        let unlisted = unlisted.unwrap();
        let hints: Vec<(&str, &str)> =
            unlisted.iter().map(|one| (one.opcode.as_str(), one.hint.as_str())).collect();
        assert_eq!(hints, [("FFMAA.FTZ", " (did you mean FFMA?)"), ("QQ", "")]);
        assert_eq!(unlisted[0].units, "fp32");
    }
}
