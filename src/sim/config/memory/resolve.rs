//! From a memory file's words to clocks and checked sentences.

use std::collections::{BTreeMap, BTreeSet};

use super::MemoryStandard;
use super::command::{Command, gaps};
use super::controller::ControllerOptions;
use super::file::{Leaf, MemoryFile};
use crate::config::error::SpecError;
use gpumodel_core::expression::{EvaluateError, Expression};
use gpumodel_core::toml::{Place, TomlError};

/// Organisation keys of a standard; `migration_bytes` only where it has MIGRATION.
const ORGANISATION: [&str; 9] = [
    "clock_mhz",
    "pseudo_channels",
    "bank_groups",
    "banks_per_group",
    "rows",
    "columns",
    "bytes_per_access",
    "separate_buses",
    "migration_bytes",
];

/// Values that the controller needs, besides the organisation.
const USED: [&str; 5] =
    ["act_clocks", "read_clocks", "burst_clocks", "refresh_interval", "refresh_bank_interval"];

/// Most banks of one channel: the controller keeps them in one machine word.
const MOST_BANKS: i64 = 64;

/// Most bytes of one channel: as many as an address has.
const MOST_BYTES: i64 = 1 << 47;

/// Longest duration in clocks.
const LONGEST: i64 = 1 << 30;

/// Makes the standard of `file` with `overrides` in the file's units.
///
/// # Errors
/// Any [`SpecError`] about keys, values or sentences.
pub(super) fn resolve(
    file: &MemoryFile,
    overrides: &BTreeMap<String, f64>,
) -> Result<MemoryStandard, SpecError> {
    let mut numbers = numbers(file)?;
    replace(file, &mut numbers, overrides)?;
    let clock_mhz = numbers.get("clock_mhz").map_or(0.0, |number| number.value);
    let clock_khz = whole(clock_mhz * 1e3)
        .filter(|khz| (1..=100_000_000).contains(khz))
        .ok_or_else(|| unfit(file, "`clock_mhz` must lie between 0.001 and 100000"))?;
    let mut parameters = BTreeMap::new();
    for (name, number) in &numbers {
        if name != "clock_mhz" {
            parameters.insert(name.clone(), number.clocks(name, clock_mhz)?);
        }
    }
    derive(file, &mut parameters)?;
    bounded(file, &parameters)?;
    standard(file, clock_khz.unsigned_abs(), parameters)
}

fn unfit(file: &MemoryFile, problem: &str) -> SpecError {
    SpecError::InconsistentMemory { name: file.name.clone(), problem: problem.to_owned() }
}

/// A number of a file with its unit.
struct Number {
    value: f64,
    nanoseconds: bool,
    place: Place,
}

impl Number {
    fn new(leaf: &Leaf, key: &str, nanoseconds: bool) -> Result<Self, SpecError> {
        let value = match leaf.text.as_str() {
            "true" => Some(1.0),
            "false" => Some(0.0),
            text => text.replace('_', "").parse::<f64>().ok().filter(|value| value.is_finite()),
        };
        let value = value.ok_or_else(|| {
            SpecError::value(&leaf.place, key, "a number", format!("`{}`", leaf.text))
        })?;
        Ok(Self { value, nanoseconds, place: leaf.place.clone() })
    }

    /// Whole clocks: nanoseconds are rounded up, as the standards ask.
    fn clocks(&self, key: &str, clock_mhz: f64) -> Result<i64, SpecError> {
        let clocks = if self.nanoseconds {
            (self.value * clock_mhz / 1e3 - 1e-6).ceil()
        } else {
            self.value
        };
        whole(clocks).filter(|clocks| (0..=LONGEST).contains(clocks)).ok_or_else(|| {
            let expected = format!("a whole number of clocks or things from 0 to {LONGEST}");
            SpecError::value(&self.place, key, expected, self.value.to_string())
        })
    }
}

/// The whole number that `value` is, when it is one.
#[allow(clippy::cast_possible_truncation)] // checked: whole and inside the range of exact floats
fn whole(value: f64) -> Option<i64> {
    let near = value.round();
    ((value - near).abs() < 1e-6 && near.abs() < 9e15).then_some(near as i64)
}

/// Organisation and timing leaves by their bare names.
fn numbers(file: &MemoryFile) -> Result<BTreeMap<String, Number>, SpecError> {
    let mut numbers = BTreeMap::new();
    for (key, leaf) in &file.leaves {
        let (section, name) = key.split_once('.').unwrap_or(("", key));
        let known = match section {
            "organisation" => ORGANISATION.contains(&name),
            "timing" | "timing_ns" => true,
            "controller" => continue,
            _ => false,
        };
        if !known {
            let sections = ["organisation", "timing", "timing_ns", "controller", "derived"];
            let known = ORGANISATION.into_iter().chain(sections);
            return Err(SpecError::unknown(&leaf.place, key, known));
        }
        numbers.insert(name.to_owned(), Number::new(leaf, key, section == "timing_ns")?);
    }
    Ok(numbers)
}

fn replace(
    file: &MemoryFile,
    numbers: &mut BTreeMap<String, Number>,
    overrides: &BTreeMap<String, f64>,
) -> Result<(), SpecError> {
    for (key, &value) in overrides {
        // An override of a derived organisation key replaces its expression.
        let derived = file.expressions.contains_key(&format!("derived.{key}"));
        if let Some(number) = numbers.get_mut(key) {
            number.value = value;
            number.place = Place::new("--set", 0);
        } else if derived {
            let number = Number { value, nanoseconds: false, place: Place::new("--set", 0) };
            numbers.insert(key.clone(), number);
        } else {
            let known = numbers.keys().map(String::as_str);
            let place = Place::new(format!("--set for {}", file.name), 0);
            return Err(SpecError::unknown(&place, key, known));
        }
    }
    Ok(())
}

/// Evaluates the `[derived]` expressions, in any order that works, and refuses
/// parameters that nothing uses.
fn derive(file: &MemoryFile, parameters: &mut BTreeMap<String, i64>) -> Result<(), SpecError> {
    let mut waiting: Vec<(&str, &Leaf)> = Vec::new();
    for (key, expression) in &file.expressions {
        let Some(("derived", name)) = key.split_once('.') else {
            let (place, found) = (expression.place.clone(), format!("`{}`", expression.text));
            return Err(TomlError::Source { place, key: key.clone(), found }.into());
        };
        if !parameters.contains_key(name) {
            waiting.push((name, expression));
        }
    }
    while !waiting.is_empty() {
        let before = waiting.len();
        let mut left = Vec::new();
        for (name, expression) in waiting {
            match evaluate(&expression.text, parameters) {
                Ok(value) => drop(parameters.insert(name.to_owned(), value)),
                Err(fault) => left.push((name, expression, fault)),
            }
        }
        if left.len() == before {
            // An unknown name may be that of another expression, which has the real cause.
            let cause = left.iter().find(|(.., fault)| matches!(fault, Fault::Invalid(_)));
            if let Some((name, expression, fault)) = cause.or(left.first()) {
                let place = file.place_for(&expression.place);
                return Err(fault.at(&place, name, &expression.text, parameters));
            }
        }
        waiting = left.into_iter().map(|(name, expression, _)| (name, expression)).collect();
    }
    unused(file, parameters)
}

/// Why an expression has no value.
pub(super) enum Fault {
    /// A name that no parameter has.
    Name(String),
    /// Anything else, in words.
    Invalid(String),
}

impl Fault {
    /// The error of the expression `text` of `key` at `place`.
    pub(super) fn at(
        &self,
        place: &Place,
        key: &str,
        text: &str,
        parameters: &BTreeMap<String, i64>,
    ) -> SpecError {
        match self {
            Self::Name(name) => {
                SpecError::unknown(place, name, parameters.keys().map(String::as_str))
            }
            Self::Invalid(problem) => {
                SpecError::value(place, key, SUM, format!("`{text}`: {problem}"))
            }
        }
    }
}

/// What an expression is.
pub(super) const SUM: &str = "a sum of parameters such as \"tCL + tBL + 2 - tWL\"";

/// The value of the expression `text` over `parameters`.
pub(super) fn evaluate(text: &str, parameters: &BTreeMap<String, i64>) -> Result<i64, Fault> {
    let expression = Expression::parse(text).map_err(|error| Fault::Invalid(error.to_string()))?;
    expression.evaluate(&|name| parameters.get(name).copied()).map_err(|error| match error {
        EvaluateError::Name(name) => Fault::Name(name),
        other => Fault::Invalid(other.to_string()),
    })
}

/// Refuses timing parameters that no sentence and no expression names.
fn unused(file: &MemoryFile, parameters: &BTreeMap<String, i64>) -> Result<(), SpecError> {
    let mut used: BTreeSet<&str> = ORGANISATION.into_iter().chain(USED).collect();
    let waits = file.rows.iter().filter_map(|row| row.words.get("wait")).flatten();
    let texts = file.expressions.values().map(|leaf| &leaf.text).chain(waits);
    let parsed: Vec<Expression> = texts.filter_map(|text| Expression::parse(text).ok()).collect();
    used.extend(parsed.iter().flat_map(Expression::names));
    for (key, leaf) in &file.leaves {
        let (section, name) = key.split_once('.').unwrap_or(("", key));
        if section.starts_with("timing") && !used.contains(name) {
            let known = used.into_iter().filter(|name| parameters.contains_key(*name));
            return Err(SpecError::unknown(&leaf.place, key, known));
        }
    }
    Ok(())
}

/// Refuses a channel of more bytes than addresses can name.
fn bounded(file: &MemoryFile, parameters: &BTreeMap<String, i64>) -> Result<(), SpecError> {
    let counts = ["pseudo_channels", "bank_groups", "banks_per_group", "rows", "columns"];
    let count = |name: &str| parameters.get(name).copied().unwrap_or(1).max(1);
    let bytes = counts.map(count).into_iter().fold(count("bytes_per_access"), i64::saturating_mul);
    if bytes > MOST_BYTES {
        return Err(unfit(
            file,
            "a channel holds at most 2^47 bytes: expected fewer rows or columns",
        ));
    }
    Ok(())
}

fn standard(
    file: &MemoryFile,
    clock_khz: u64,
    parameters: BTreeMap<String, i64>,
) -> Result<MemoryStandard, SpecError> {
    let need = |name: &str, low: i64| {
        let value = parameters.get(name).copied();
        value.filter(|value| (low..=LONGEST).contains(value)).ok_or_else(|| {
            unfit(file, &format!("`{name}` must be given and at least {low}, found {value:?}"))
        })
    };
    let count = |name: &str, low: i64| need(name, low).map(gpumodel_core::units::to_u32);
    let banks = need("pseudo_channels", 1)?.saturating_mul(need("bank_groups", 1)?);
    if banks.saturating_mul(need("banks_per_group", 1)?) > MOST_BANKS {
        return Err(unfit(file, &format!("a channel may have at most {MOST_BANKS} banks")));
    }
    let migrates = parameters.contains_key("migration_bytes");
    let migration = |name: &str| if migrates { count(name, 1) } else { Ok(0) };
    let command_clocks = command_clocks(count("act_clocks", 1)?, migration("mig_clocks")?);
    let separate_buses = need("separate_buses", 0)? != 0;
    Ok(MemoryStandard {
        name: file.name.clone(),
        description: file.description.clone(),
        clock_khz,
        pseudo_channels: count("pseudo_channels", 1)?,
        bank_groups: count("bank_groups", 1)?,
        banks_per_group: count("banks_per_group", 1)?,
        rows: count("rows", 1)?,
        columns: count("columns", 1)?,
        bytes_per_access: count("bytes_per_access", 1)?,
        separate_buses,
        command_clocks,
        read_clocks: count("read_clocks", 1)?,
        burst_clocks: count("burst_clocks", 1)?,
        migration_bytes: migration("migration_bytes")?,
        migration_clocks: migration("migration_clocks")?,
        refresh_interval: count("refresh_interval", 2)?,
        refresh_bank_interval: count("refresh_bank_interval", 1)?,
        gaps: gaps(file, &parameters, separate_buses, &command_clocks)?,
        controller: controller(file)?,
        parameters,
    })
}

/// Clocks for which each command takes its bus; commands that a standard lacks take one.
fn command_clocks(activate: u32, migration: u32) -> [u32; Command::COUNT] {
    Command::ALL.map(|command| match command {
        Command::Activate => activate,
        _ if command.is_migration() => migration.max(1),
        _ => 1,
    })
}

fn controller(file: &MemoryFile) -> Result<ControllerOptions, SpecError> {
    let mut controller = ControllerOptions::default();
    for (key, leaf) in &file.leaves {
        if let Some(("controller", name)) = key.split_once('.') {
            controller.set(&leaf.place, name, &leaf.text)?;
        }
    }
    Ok(controller)
}
