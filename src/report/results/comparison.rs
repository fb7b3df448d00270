//! Records against a reference table: pairs, errors, what was left out, and records that cannot be
//! compared as they are.
//!
//! Several records that answer one row would count twice, and one name may be that of several
//! applications.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::slice;

use gpumodel_core::units::quoted;
use serde::{Deserialize, Serialize};

use super::check::pretty;
use super::quantity::mean_slots;
use super::{
    Analysis, AppRecord, ErrorUnit, KernelRecord, Launches, MachineRecord, Quantity, RecordError,
    ReferenceRow, ReferenceTable, Summary, last_component,
};
use crate::format::float;

/// Value of [`Comparison::schema`].
pub const COMPARISON_SCHEMA: &str = "gpumodel.comparison/1";

/// Names in an error message.
const NAMED: usize = 5;

/// Records against one reference table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Always [`COMPARISON_SCHEMA`].
    pub schema: String,
    /// File name of the reference table.
    pub reference: String,
    /// Programs that made the records, each once.
    pub programs: BTreeSet<String>,
    /// Machines of the records with their hashes.
    pub machines: BTreeMap<String, String>,
    /// One entry per reference row that a record answers, in record order.
    pub rows: Vec<ComparedRow>,
    /// The table's cycles include launch latency, which is taken off both sides.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub without_launch: bool,
    /// Errors over the rows, one entry per quantity with at least one pair.
    pub summary: Vec<Summary>,
    /// What was compared and what was left out.
    pub coverage: Coverage,
    /// The reference is a profile of a card: rows are single launches, or means over the
    /// launches of a kernel.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub profile: bool,
    /// What a reader has to know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// One reference row and the record's answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ComparedRow {
    /// Machine name as the record has it.
    pub machine: String,
    /// Application name.
    pub trace: String,
    /// Launches compared.
    pub launches: String,
    /// Kernel name as traced, where the row is about one launch or kernel.
    pub kernel: Option<String>,
    /// Line of the row in the reference table.
    pub line: u64,
    /// A launch of it was extrapolated from a part of its CTAs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sampled: bool,
    /// The values of both sides.
    pub pairs: BTreeMap<Quantity, Pair>,
}

/// A value of both sides. Rates are 0 to 1; other units as the quantity says.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pair {
    /// The record's value.
    pub model: f64,
    /// The reference's value.
    pub reference: f64,
    /// Percent or percentage points, by the quantity; absent where the
    /// reference is 0 and the model is not.
    pub error: Option<f64>,
    /// Whether the error counts in the summary.
    pub counted: bool,
}

/// What was compared and what was left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coverage {
    /// Rows of the table for the machines of the records.
    pub reference_rows: usize,
    /// Those rows that were compared.
    pub compared_rows: usize,
    /// `trace (launches)` of the rows that no record answers.
    pub rows_without_record: Vec<String>,
    /// `machine trace` of the records that no row is about.
    pub records_without_row: Vec<String>,
    /// Records whose launches are not those of a row, with the reason.
    pub not_comparable: Vec<String>,
}

impl Comparison {
    /// Compares every application of `analyses` with the rows of `table` for its
    /// machine and name.
    ///
    /// `launch_cycles` is the launch latency of one launch in a table whose
    /// cycles include it; `None` takes the latency of the record's own machine.
    #[must_use]
    pub fn new(analyses: &[Analysis], table: &ReferenceTable, launch_cycles: Option<u64>) -> Self {
        let mut rows = Vec::new();
        let mut coverage = Coverage::default();
        let mut answered = BTreeSet::new();
        for analysis in analyses {
            for app in &analysis.solo {
                let mut known = false;
                for row in rows_about(table, &analysis.machine, &app.app) {
                    known = true;
                    match compare(row, analysis, app, launch_cycles) {
                        Ok(compared) => {
                            answered.insert((row.machine.as_str(), row.line));
                            rows.push(compared);
                        }
                        Err(reason) => coverage.not_comparable.push(reason),
                    }
                }
                if !known {
                    let name = format!("{} {}", analysis.machine.name, app.app);
                    coverage.records_without_row.push(name);
                }
            }
        }
        coverage.count(analyses, table, &answered);
        let with_launch = |row: &ReferenceRow| row.includes_launch && launch_cycles != Some(0);
        Self {
            schema: COMPARISON_SCHEMA.into(),
            without_launch: table.rows.iter().any(with_launch),
            reference: file_name(table),
            programs: analyses.iter().map(|a| a.program.clone()).collect(),
            machines: analyses
                .iter()
                .map(|a| (a.machine.name.clone(), a.machine.hash.clone()))
                .collect(),
            summary: Quantity::ALL.iter().filter_map(|&q| Summary::of(q, &rows)).collect(),
            rows,
            coverage,
            profile: table.unmatched.is_some(),
            notes: table.unmatched.as_ref().map_or_else(Vec::new, |rest| rest.notes.clone()),
        }
    }

    /// Refuses a comparison without a single row, or of a profile without a single number.
    ///
    /// # Errors
    /// [`RecordError::Table`] with the names on both sides.
    pub fn answered(&self, table: &ReferenceTable) -> Result<(), RecordError> {
        if !self.rows.is_empty() {
            let compared = self.rows.iter().any(|row| !row.pairs.is_empty());
            let found = "expected a metric that records have, as `Elapsed Cycles`, `Duration` or \
                         `dram__bytes_read.sum`, found none";
            return if compared || !self.profile {
                Ok(())
            } else {
                Err(RecordError::table(&table.path, 1, found))
            };
        }
        let machines: BTreeSet<&str> = table.rows.iter().map(|row| row.machine.as_str()).collect();
        let left = [&self.coverage.records_without_row[..], &self.coverage.not_comparable].concat();
        let more = left.len().saturating_sub(NAMED);
        let found = left[..left.len() - more].join("; ");
        let found = if more > 0 { format!("{found} and {more} more") } else { found };
        let message = format!(
            "expected a row about one of the records ({}), found rows about the machines {}; name an application as the table does with `analyze NAME=APP`",
            found,
            machines.into_iter().collect::<Vec<_>>().join(", ")
        );
        Err(RecordError::table(&table.path, 1, message))
    }

    /// Refuses a row with fewer cycles than its launches are said to take: less than nothing
    /// would be left of it to compare.
    ///
    /// # Errors
    /// [`RecordError::Table`] with the row.
    pub fn launches_fit(&self, table: &ReferenceTable) -> Result<(), RecordError> {
        for row in &self.rows {
            let beyond = row.pairs.get(&Quantity::CyclesBeyondLaunch);
            let beyond = beyond.map_or(0.0, |pair| pair.reference);
            if beyond < 0.0 {
                let (name, missing) = (row.label(), -beyond);
                let message = format!(
                    "expected at least the cycles that the launches of {name} take to start, found {missing} fewer; say with --launch-cycles how many of the table's cycles each takes, 0 where none"
                );
                return Err(RecordError::table(&table.path, row.line, message));
            }
        }
        Ok(())
    }

    /// What says how fast both sides were: cycles, or times where the reference has no cycles.
    #[must_use]
    pub fn speed(&self) -> Quantity {
        let has = |quantity| self.rows.iter().any(|row| row.pairs.contains_key(&quantity));
        if has(Quantity::Duration) && !has(Quantity::CyclesBeyondLaunch) {
            Quantity::Duration
        } else {
            Quantity::CyclesBeyondLaunch
        }
    }

    /// The document as pretty JSON with a final newline: same input, same bytes.
    ///
    /// # Panics
    /// Never: the types have string keys only, which JSON can always say.
    #[must_use]
    pub fn to_json(&self) -> String {
        pretty(self)
    }
}

impl Coverage {
    fn count(
        &mut self,
        analyses: &[Analysis],
        table: &ReferenceTable,
        answered: &BTreeSet<(&str, u64)>,
    ) {
        let ours = |row: &&ReferenceRow| analyses.iter().any(|a| is_machine(row, &a.machine));
        self.reference_rows = table.rows.iter().filter(ours).count();
        self.compared_rows = answered.len();
        self.rows_without_record = table
            .rows
            .iter()
            .filter(ours)
            .filter(|row| !answered.contains(&(row.machine.as_str(), row.line)))
            .map(|row| match &row.launches {
                Launches::All => row.trace.clone(),
                some => format!("{} (launches {some})", row.trace),
            })
            .collect();
        let unmatched = table.unmatched.iter().flat_map(|rest| &rest.launches).cloned();
        self.rows_without_record.extend(unmatched);
        self.reference_rows += table.unmatched.as_ref().map_or(0, |rest| rest.launches.len());
    }
}

fn file_name(table: &ReferenceTable) -> String {
    table.path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into())
}

fn is_machine(row: &ReferenceRow, machine: &MachineRecord) -> bool {
    row.machine == machine.name || row.machine == machine.reference_name
}

/// The rows of `table` about the application `app` on `machine`: those of its name, else those
/// of the last component of its name.
fn rows_about<'t>(
    table: &'t ReferenceTable,
    machine: &MachineRecord,
    app: &str,
) -> Vec<&'t ReferenceRow> {
    let about = |name: &str| {
        let rows = table.rows.iter().filter(|row| row.trace == name && is_machine(row, machine));
        rows.collect::<Vec<_>>()
    };
    let whole = about(app);
    if whole.is_empty() { about(last_component(app)) } else { whole }
}

fn compare(
    row: &ReferenceRow,
    analysis: &Analysis,
    app: &AppRecord,
    launch_cycles: Option<u64>,
) -> Result<ComparedRow, String> {
    let machine = &analysis.machine;
    if let Some(ctas) = analysis.filters.get("ctas") {
        return Err(format!("{} {}: only its CTAs {ctas} ran", machine.name, app.app));
    }
    let chosen = choose(row, app)?;
    let (mut sums, count) = (sum(row, app, &chosen), float(chosen.len()));
    if !row.includes_launch {
        sums.launch_cycles = 0;
    }
    let latency = match (row.includes_launch, launch_cycles) {
        (false, _) => 0.0,
        (true, Some(each)) => float(each) * count,
        (true, None) => float(sums.launch_cycles),
    };
    let share = if row.mean_per_launch { count } else { 1.0 };
    let pair = |quantity: Quantity| {
        let reference = quantity.of_reference(row, latency)?;
        let model = if quantity == Quantity::AchievedOccupancy {
            achieved_occupancy(app, &chosen)?
        } else {
            quantity.of_model(&sums, machine.core_mhz)?
        };
        let model = model / if quantity.adds_up() { share } else { 1.0 };
        Some((quantity, Pair::new(quantity, model, reference)))
    };
    let one = (row.kernel.is_some() || chosen.len() == 1).then(|| chosen[0].name.clone());
    Ok(ComparedRow {
        machine: machine.name.clone(),
        trace: app.app.clone(),
        launches: row.launches.to_string(),
        kernel: one,
        line: row.line,
        sampled: chosen.iter().any(|kernel| kernel.is_sampled()),
        pairs: Quantity::ALL.iter().filter_map(|&q| pair(q)).collect(),
    })
}

/// Launches of the kernel `name`, plain or mangled, where there are any; else those whose
/// names hold it.
fn named<'a>(launches: Vec<&'a KernelRecord>, name: &str) -> Vec<&'a KernelRecord> {
    let mangled = format!("{}{name}", name.len());
    let begins = |whole: &str, at| !whole[..at].ends_with(|c: char| c.is_ascii_digit());
    let is = |launch: &&KernelRecord| {
        let whole = &launch.name;
        whole == name || whole.match_indices(&mangled).any(|(at, _)| begins(whole, at))
    };
    let exact: Vec<_> = launches.iter().copied().filter(is).collect();
    if !exact.is_empty() {
        return exact;
    }
    launches.into_iter().filter(|launch| launch.name.contains(name)).collect()
}

/// The launches of `app` that `row` is about, at least one; or why there are none.
fn choose<'a>(row: &ReferenceRow, app: &'a AppRecord) -> Result<Vec<&'a KernelRecord>, String> {
    let mut chosen = row.launches.select(&app.kernels);
    if let Some(kernel) = &row.kernel {
        chosen = named(chosen, kernel);
        if chosen.is_empty() {
            return Err(format!(
                "{}: line {} is about the kernel {}, the record holds none of that name",
                app.app,
                row.line,
                quoted(kernel.as_bytes())
            ));
        }
    }
    let found = gpumodel_core::units::to_u64(chosen.len());
    match row.launch_count {
        Some(expected) if expected != found => Err(format!(
            "{}: line {} is about {expected} launches ({}), the record holds {found} of them",
            app.app, row.line, row.launches
        )),
        Some(1) if row.name_start.as_ref().is_some_and(|n| !chosen[0].name.starts_with(n)) => {
            Err(format!(
                "{}: launch {} is `{}` in line {}, `{}` in the record",
                app.app,
                row.launches,
                row.name_start.as_deref().unwrap_or_default(),
                row.line,
                chosen[0].name
            ))
        }
        _ if chosen.is_empty() => Err(format!("{}: the record holds no launch", app.app)),
        _ => Ok(chosen),
    }
}

/// Counters and cycles summed over `chosen`; the whole run's own cycles where
/// the row is about every launch, because launches may overlap.
fn sum(row: &ReferenceRow, app: &AppRecord, chosen: &[&KernelRecord]) -> KernelRecord {
    let mut sums = KernelRecord::default();
    chosen.iter().for_each(|kernel| sums.add(kernel));
    (sums.stall_fractions, sums.held_slot_fraction) = mean_slots(chosen);
    let same = |of: fn(&KernelRecord) -> (f64, u32)| chosen.iter().all(|k| of(k) == of(chosen[0]));
    if same(|kernel| (kernel.occupancy, kernel.registers)) {
        (sums.occupancy, sums.registers) = (chosen[0].occupancy, chosen[0].registers);
    }
    if row.launches == Launches::All && row.kernel.is_none() && !row.mean_per_launch {
        sums.cycles = app.cycles;
        sums.launch_cycles = app.launch_cycles;
    }
    sums
}

/// Intervals of the timeline that a launch has to fill, so that those at its ends weigh little.
const INTERVALS: f64 = 10.0;

/// The mean of the warps on an SM while it held any, over its warp slots, of one launch with no
/// other next to it; `None` where the timeline is too coarse for it.
fn achieved_occupancy(app: &AppRecord, chosen: &[&KernelRecord]) -> Option<f64> {
    let &[kernel] = chosen else { return None };
    let (start, end) = (kernel.start_cycle.saturating_add(kernel.launch_cycles), kernel.end_cycle);
    let meets = |other: &&KernelRecord| other.start_cycle < end && other.end_cycle > start;
    if kernel.ctas_per_sm == 0 || app.kernels.iter().filter(meets).count() != 1 {
        return None;
    }
    let (mut cycles, mut ctas, mut longest) = (0.0, 0.0, 0.0_f64);
    for interval in &app.timeline {
        let from = interval.start_cycle.max(start);
        let part = float(interval.end_cycle.min(end).saturating_sub(from));
        let length = float(interval.end_cycle.saturating_sub(interval.start_cycle));
        if part > 0.0 {
            longest = longest.max(length);
            cycles += part;
            ctas += interval.resident_ctas * length.min(part);
        }
    }
    let sms = float(app.by_sm.len());
    let held = sms * cycles * kernel.held_slot_fraction?;
    let warps = kernel.occupancy / f64::from(kernel.ctas_per_sm);
    (held > 0.0 && cycles >= INTERVALS * longest).then(|| (ctas / held * warps).min(1.0))
}

impl Pair {
    /// Both values with the error of `quantity`.
    fn new(quantity: Quantity, model: f64, reference: f64) -> Self {
        let error = match quantity.unit() {
            ErrorUnit::Points => Some(100.0 * (model - reference)),
            ErrorUnit::Percent if reference > 0.0 => Some(100.0 * (model - reference) / reference),
            ErrorUnit::Percent => (model == reference).then_some(0.0),
        };
        let counted = error.is_some() && reference >= quantity.least_reference();
        Self { model, reference, error, counted }
    }
}

/// Characters of a hash that stand in a name.
const SHOWN: usize = 8;

/// By name of an application that is several: the hash of each store, with the first cell
/// that it is in. Records that are no cells do not count: their user lists them.
type StoresByApp = BTreeMap<String, BTreeMap<String, String>>;

fn stores_by_app(records: &[Analysis]) -> StoresByApp {
    let mut stores = StoresByApp::new();
    for record in records {
        let Some(cell) = &record.cell else { continue };
        for app in &record.solo {
            let known = stores.entry(app.app.clone()).or_default();
            known.entry(app.store_hash.clone()).or_insert_with(|| cell.key.clone());
        }
    }
    stores.retain(|_, hashes| hashes.len() > 1);
    stores
}

/// Puts the beginning of the store's hash after the names of applications that are several
/// in the cells among `records`.
pub fn disambiguate_apps(records: &mut [Analysis]) {
    let known = stores_by_app(records);
    if known.is_empty() {
        return;
    }
    for record in records.iter_mut().filter(|record| record.cell.is_some()) {
        let of = |app: &AppRecord| {
            let hash: String = app.store_hash.chars().take(SHOWN).collect();
            known.contains_key(&app.app).then(|| (app.app.clone(), format!("{} ({hash})", app.app)))
        };
        let names: BTreeMap<String, String> = record.solo.iter().filter_map(of).collect();
        let solo = record.solo.iter_mut().map(|app| &mut app.app);
        let together = record.coruns.iter_mut().flat_map(|run| &mut run.apps);
        for name in solo.chain(together.map(|app| &mut app.app)) {
            if let Some(reported) = names.get(name) {
                name.clone_from(reported);
            }
        }
    }
}

/// Refuses to put applications of one name that are several in the cells among `records`
/// against rows of `table` about that name.
///
/// # Errors
/// [`RecordError::AmbiguousApp`] with two of the cells.
pub fn refuse_ambiguous_apps(
    records: &[Analysis],
    table: &ReferenceTable,
) -> Result<(), RecordError> {
    let asked: BTreeSet<&str> = table.rows.iter().map(|row| row.trace.as_str()).collect();
    let is_asked = |name: &str| asked.contains(name) || asked.contains(last_component(name));
    let several = stores_by_app(records).into_iter().find(|(name, _)| is_asked(name));
    match several {
        None => Ok(()),
        Some((app, stores)) => {
            let stores = stores.into_iter().take(2).map(|(hash, cell)| format!("{hash} in {cell}"));
            let stores = stores.collect::<Vec<_>>().join(", ");
            Err(RecordError::AmbiguousApp { app, stores })
        }
    }
}

/// Refuses `records` of one machine as it is set that answer the same row of `table`;
/// `from` says what each of them was read from. The same machine otherwise set is another.
///
/// # Errors
/// [`RecordError::DuplicateRow`] with the two and the row.
pub fn refuse_duplicate_rows(
    records: &[Analysis],
    from: &[PathBuf],
    table: &ReferenceTable,
) -> Result<(), RecordError> {
    let mut answered = BTreeMap::new();
    for (record, other) in records.iter().zip(from) {
        let machine = &record.machine;
        for row in Comparison::new(slice::from_ref(record), table, None).rows {
            let key = (row.line, machine.name.as_str(), machine.hash.as_str());
            if let Some(one) = answered.insert(key, other) {
                return Err(RecordError::DuplicateRow {
                    table: table.path.clone(),
                    line: row.line,
                    row: format!("{} {}", row.machine, row.trace),
                    both: Box::new([one.clone(), other.clone()]),
                });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::disambiguate_apps;
    use crate::results::{Analysis, AppRecord, CellRecord, CoRun, CoRunApp};

    fn record(cell: bool, stores: [(&str, &str); 2]) -> Analysis {
        let solo = stores.map(|(app, hash)| AppRecord {
            app: app.into(),
            store_hash: hash.into(),
            ..AppRecord::default()
        });
        let apps = stores.map(|(app, _)| CoRunApp { app: app.into(), ..CoRunApp::default() });
        Analysis {
            cell: cell.then(CellRecord::default),
            solo: solo.into(),
            coruns: vec![CoRun { apps: apps.into(), ..CoRun::default() }],
            ..Analysis::default()
        }
    }

    #[test]
    fn only_names_that_are_several_in_cells_are_told_apart() {
        let mut records = [
            record(true, [("a", "123456789"), ("b", "x")]),
            record(true, [("a", "923456789"), ("b", "x")]),
            record(false, [("a", "523456789"), ("b", "y")]),
        ];
        disambiguate_apps(&mut records);
        let names = |record: &Analysis| -> Vec<String> {
            let alone = record.solo.iter().map(|app| app.app.clone());
            alone.chain(record.coruns[0].apps.iter().map(|app| app.app.clone())).collect()
        };
        assert_eq!(names(&records[0]), ["a (12345678)", "b", "a (12345678)", "b"]);
        assert_eq!(names(&records[1]), ["a (92345678)", "b", "a (92345678)", "b"]);
        assert_eq!(names(&records[2]), ["a", "b", "a", "b"]);
    }
}
