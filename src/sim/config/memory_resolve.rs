//! From a memory file's words to clocks and checked sentences.

use std::collections::{BTreeMap, BTreeSet};

use super::memory::MemoryStandard;
use super::memory_command::Command;
use super::memory_error::MemoryError;
use super::memory_expression::{Fault, evaluate, names};
use super::memory_file::{Leaf, MemoryFile};
use super::memory_gap;
use super::memory_policy::ControllerOptions;
use gpumodel_core::units::nearest;

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

/// Values that the controller asks for, besides the organisation.
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
/// Any [`MemoryError`] about keys, values or sentences.
pub(super) fn resolve(
    file: &MemoryFile,
    overrides: &BTreeMap<String, f64>,
) -> Result<MemoryStandard, MemoryError> {
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

fn unfit(file: &MemoryFile, problem: &str) -> MemoryError {
    MemoryError::Inconsistent { name: file.name.clone(), problem: problem.to_owned() }
}

/// A number of a file with its unit.
struct Number {
    value: f64,
    nanoseconds: bool,
    place: String,
}

impl Number {
    fn new(leaf: &Leaf, key: &str, nanoseconds: bool) -> Result<Self, MemoryError> {
        let value = match leaf.text.as_str() {
            "true" => Some(1.0),
            "false" => Some(0.0),
            text => text.replace('_', "").parse::<f64>().ok().filter(|value| value.is_finite()),
        };
        let value = value.ok_or_else(|| MemoryError::Value {
            place: leaf.place.clone(),
            key: key.to_owned(),
            expected: "a number".to_owned(),
            found: format!("`{}`", leaf.text),
        })?;
        Ok(Self { value, nanoseconds, place: leaf.place.clone() })
    }

    /// Whole clocks: nanoseconds are rounded up, as the standards ask.
    fn clocks(&self, key: &str, clock_mhz: f64) -> Result<i64, MemoryError> {
        let clocks = if self.nanoseconds {
            (self.value * clock_mhz / 1e3 - 1e-6).ceil()
        } else {
            self.value
        };
        whole(clocks).filter(|clocks| (0..=LONGEST).contains(clocks)).ok_or_else(|| {
            MemoryError::Value {
                place: self.place.clone(),
                key: key.to_owned(),
                expected: format!("a whole number of clocks or things from 0 to {LONGEST}"),
                found: self.value.to_string(),
            }
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
fn numbers(file: &MemoryFile) -> Result<BTreeMap<String, Number>, MemoryError> {
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
            return Err(MemoryError::UnknownKey {
                place: leaf.place.clone(),
                key: key.clone(),
                nearest: nearest(name, known),
            });
        }
        numbers.insert(name.to_owned(), Number::new(leaf, key, section == "timing_ns")?);
    }
    Ok(numbers)
}

fn replace(
    file: &MemoryFile,
    numbers: &mut BTreeMap<String, Number>,
    overrides: &BTreeMap<String, f64>,
) -> Result<(), MemoryError> {
    for (key, &value) in overrides {
        // An override of a derived organisation key replaces its expression.
        let derived = file.expressions.contains_key(&format!("derived.{key}"));
        if let Some(number) = numbers.get_mut(key) {
            number.value = value;
            "--set".clone_into(&mut number.place);
        } else if derived {
            let number = Number { value, nanoseconds: false, place: "--set".to_owned() };
            numbers.insert(key.clone(), number);
        } else {
            let known = numbers.keys().map(String::as_str);
            return Err(MemoryError::UnknownKey {
                place: format!("--set for {}", file.name),
                key: key.clone(),
                nearest: nearest(key, known),
            });
        }
    }
    Ok(())
}

/// Evaluates the `[derived]` expressions, in any order that works, and refuses
/// parameters that nothing uses.
fn derive(file: &MemoryFile, parameters: &mut BTreeMap<String, i64>) -> Result<(), MemoryError> {
    let mut waiting: Vec<(&str, &(String, String))> = Vec::new();
    for (key, expression) in &file.expressions {
        let Some(("derived", name)) = key.split_once('.') else {
            let (place, found) = (expression.1.clone(), format!("`{}`", expression.0));
            return Err(MemoryError::Source { place, key: key.clone(), found });
        };
        if !parameters.contains_key(name) {
            waiting.push((name, expression));
        }
    }
    while !waiting.is_empty() {
        let before = waiting.len();
        let mut left = Vec::new();
        for (name, expression) in waiting {
            match evaluate(&expression.0, parameters) {
                Ok(value) => drop(parameters.insert(name.to_owned(), value)),
                Err(fault) => left.push((name, expression, fault)),
            }
        }
        if left.len() == before {
            // What another expression waits for is told by that one.
            let cause = left.iter().find(|(.., fault)| matches!(fault, Fault::Sentence(_)));
            if let Some((name, expression, fault)) = cause.or(left.first()) {
                return Err(faulty(file, (name, expression, fault), parameters));
            }
        }
        waiting = left.into_iter().map(|(name, expression, _)| (name, expression)).collect();
    }
    unused(file, parameters)
}

fn faulty(
    file: &MemoryFile,
    (key, (text, place), fault): (&str, &(String, String), &Fault),
    parameters: &BTreeMap<String, i64>,
) -> MemoryError {
    let place = file.told(place);
    match fault {
        Fault::Name(name) => MemoryError::UnknownKey {
            place,
            key: name.clone(),
            nearest: nearest(name, parameters.keys().map(String::as_str)),
        },
        Fault::Sentence(problem) => MemoryError::Value {
            place,
            key: key.to_owned(),
            expected: "a sum of parameters such as \"tCL + tBL + 2 - tWL\"".to_owned(),
            found: format!("`{text}`: {problem}"),
        },
    }
}

/// Refuses timing parameters that no sentence and no expression names.
fn unused(file: &MemoryFile, parameters: &BTreeMap<String, i64>) -> Result<(), MemoryError> {
    let mut used: BTreeSet<&str> = ORGANISATION.into_iter().chain(USED).collect();
    for (text, _) in file.expressions.values() {
        used.extend(names(text));
    }
    for row in &file.rows {
        used.extend(row.words.get("wait").into_iter().flatten().flat_map(|text| names(text)));
    }
    for (key, leaf) in &file.leaves {
        let (section, name) = key.split_once('.').unwrap_or(("", key));
        if section.starts_with("timing") && !used.contains(name) {
            return Err(MemoryError::UnknownKey {
                place: leaf.place.clone(),
                key: key.clone(),
                nearest: nearest(name, used.into_iter().filter(|u| parameters.contains_key(*u))),
            });
        }
    }
    Ok(())
}

/// Refuses a channel of more bytes than addresses can name.
fn bounded(file: &MemoryFile, parameters: &BTreeMap<String, i64>) -> Result<(), MemoryError> {
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
) -> Result<MemoryStandard, MemoryError> {
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
        gaps: memory_gap::gaps(file, &parameters, separate_buses, &command_clocks)?,
        controller: controller(file)?,
        parameters,
        sources: file.leaves.iter().map(|(k, leaf)| (k.clone(), leaf.source.clone())).collect(),
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

fn controller(file: &MemoryFile) -> Result<ControllerOptions, MemoryError> {
    let mut controller = ControllerOptions::default();
    for (key, leaf) in &file.leaves {
        if let Some(("controller", name)) = key.split_once('.') {
            controller.set(&leaf.place, name, &leaf.text)?;
        }
    }
    Ok(controller)
}
