//! Profiles of NVIDIA's tools as reference tables: Nsight Compute's CSV pages, and the kernel
//! times of Nsight Systems.
//!
//! A profile names no machine of ours and no application: its launches are matched with those of
//! the records, in order, by kernel name and by the extents of grid and block.

mod counters;
mod metrics;
mod ncu;
mod nsys;
mod pairing;
mod sheet;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use gpumodel_core::units::quoted;

pub use self::counters::{CountedLaunch, Counter, CounterCheck, CounterRow};
use self::metrics::Values;
use self::pairing::{Launch, in_order};
use self::sheet::{Sheet, Wrong, decode};
use super::{
    Analysis, AppRecord, Launches, MachineRecord, Quantity, RecordError, ReferenceRow,
    ReferenceTable, last_component,
};
use crate::format::{brief, plain_name};

/// CTAs of a grid, or threads of a block.
type Extent = [u32; 3];

/// Names in a message.
const NAMED: usize = 5;

/// SM clocks that differ by more than this part are not those of one run.
const CLOCK: f64 = 0.03;

/// A launch of a profile, or the mean of several launches of one kernel.
#[derive(Clone, Debug)]
struct Profiled {
    line: u64,
    /// The process, as far as the profile tells processes apart.
    process: String,
    /// The name of its program.
    program: String,
    kernel: String,
    grid: Option<Extent>,
    block: Option<Extent>,
    /// Launches of which it is the mean; `None`: it is one launch.
    launches: Option<f64>,
    values: Values,
}

/// What the profile says that is in no row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Unmatched {
    /// Launches that no record holds, each with its line.
    pub launches: Vec<String>,
    /// What a reader of the comparison has to know.
    pub notes: Vec<String>,
}

/// The profile in the file at `path` as a table about `records`; `None` if it is none.
///
/// # Errors
/// [`RecordError`] with the line and column of the first thing wrong.
pub(super) fn read(
    path: &Path,
    bytes: &[u8],
    records: &[Analysis],
) -> Result<Option<ReferenceTable>, RecordError> {
    let wrong = |Wrong { line, message }: Wrong| RecordError::table(path, line, message);
    refuse_report(path, bytes).map_err(wrong)?;
    let text = decode(bytes);
    let launches = if let Some(sheet) = Sheet::find(&text, ncu::is_header) {
        sheet.and_then(|sheet| ncu::read(&sheet))
    } else if let Some(sheet) = Sheet::find(&text, nsys::is_header) {
        sheet.and_then(|sheet| nsys::read(&sheet))
    } else if let Some(line) = text.lines().find(|line| line.starts_with("==ERROR==")) {
        Err(Wrong::at(1, format!("Nsight Compute has failed: {}", brief(line, 200))))
    } else {
        return Ok(None);
    };
    Matching::new(path, records).table(&launches.map_err(wrong)?).map(Some)
}

/// The reports of both tools are no tables; says which command makes one.
fn refuse_report(path: &Path, bytes: &[u8]) -> Result<(), Wrong> {
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into());
    let ends = |ending: &str| name.ends_with(ending);
    let stem = name.split('.').next().unwrap_or("card");
    let command = if ends(".nsys-rep") || ends(".qdrep") || bytes.starts_with(b"SQLite format 3") {
        format!("nsys stats --report cuda_gpu_trace --format csv {name} > {stem}.csv")
    } else if ends(".ncu-rep") || ends(".ncu-repz") || bytes.starts_with(b"NVR\0") {
        format!("ncu --import {name} --page raw --csv > {stem}.csv")
    } else {
        return Ok(());
    };
    Err(Wrong::at(1, format!("expected CSV, found a report; make it with `{command}`")))
}

/// Launches of a profile against applications of records.
struct Matching<'r> {
    path: &'r Path,
    /// Applications by machine, and the launches of each.
    apps: Vec<(&'r MachineRecord, &'r AppRecord, Vec<Launch>)>,
    rows: Vec<ReferenceRow>,
    unmatched: Unmatched,
}

impl<'r> Matching<'r> {
    fn new(path: &'r Path, records: &'r [Analysis]) -> Self {
        let apps =
            records.iter().flat_map(|record| record.solo.iter().map(move |app| (record, app)));
        let apps = apps.map(|(record, app)| {
            (&record.machine, app, app.kernels.iter().map(Launch::recorded).collect())
        });
        Self { path, apps: apps.collect(), rows: Vec::new(), unmatched: Unmatched::default() }
    }

    fn table(mut self, profiled: &[Profiled]) -> Result<ReferenceTable, RecordError> {
        let machines: BTreeMap<(&str, &str), &MachineRecord> =
            self.apps.iter().map(|(m, ..)| ((m.name.as_str(), m.hash.as_str()), *m)).collect();
        let mut processes: Vec<(&str, Vec<&Profiled>)> = Vec::new();
        for launch in profiled {
            match processes.iter_mut().find(|(name, _)| *name == launch.process) {
                Some((_, launches)) => launches.push(launch),
                None => processes.push((&launch.process, vec![launch])),
            }
        }
        for machine in machines.into_values() {
            for (_, launches) in &processes {
                let (means, single) =
                    launches.iter().partition::<Vec<&Profiled>, _>(|l| l.launches.is_some());
                self.launches(machine, &single);
                means.iter().for_each(|mean| self.mean(machine, mean));
            }
            self.clock(machine, profiled);
        }
        if self.rows.is_empty() {
            return Err(self.nothing(profiled));
        }
        let path = self.path.to_path_buf();
        Ok(ReferenceTable { path, rows: self.rows, unmatched: Some(self.unmatched) })
    }

    /// Rows about the launches of one process: those of the application that most of them are.
    fn launches(&mut self, machine: &MachineRecord, profiled: &[&Profiled]) {
        let Some(first) = profiled.first() else { return };
        let ours: Vec<Launch> = profiled.iter().map(|launch| Launch::profiled(launch)).collect();
        let mut best: Option<(usize, usize, Vec<Option<usize>>)> = None;
        for (place, (of, app, theirs)) in self.apps.iter().enumerate() {
            if !is_same(of, machine) {
                continue;
            }
            let found = in_order(&ours, theirs);
            let named = is_program(&first.program, &app.app);
            let count = 2 * found.iter().flatten().count() + usize::from(named);
            if best.as_ref().is_none_or(|(most, ..)| count > *most) {
                best = Some((count, place, found));
            }
        }
        let Some((_, place, found)) = best else { return };
        let (_, app, theirs) = &self.apps[place];
        for ((launch, key), found) in profiled.iter().zip(&ours).zip(found) {
            let Some(found) = found else {
                let resized = theirs.iter().any(|other| key.is_resized(other));
                self.unmatched.launches.push(missing(launch, resized));
                continue;
            };
            let number = app.kernels[found].launch;
            let order = u32::try_from(found + 1).unwrap_or(u32::MAX);
            let launches = Launches::one(if number == 0 { order } else { number });
            self.rows.push(row(machine, app, launch, launches));
        }
    }

    /// A row about all launches of one kernel.
    fn mean(&mut self, machine: &MachineRecord, mean: &Profiled) {
        let ours = Launch::profiled(mean);
        let mut found = false;
        for (of, app, theirs) in self.apps.iter().filter(|(of, ..)| is_same(of, machine)) {
            let is = |place: &usize| ours.is_kernel(&theirs[*place]);
            let places: Vec<usize> = (0..theirs.len()).filter(is).collect();
            if places.is_empty() {
                continue;
            }
            found = true;
            let position = |place: &usize| {
                let order = u32::try_from(place + 1).unwrap_or(u32::MAX);
                let number = app.kernels[*place].launch;
                if number == 0 { order } else { number }
            };
            let ranges = places.iter().map(|place| position(place)..=position(place)).collect();
            self.rows.push(row(of, app, mean, Launches::Ranges(ranges)));
            let launches = mean.launches.unwrap_or_default();
            #[allow(clippy::cast_precision_loss, reason = "launches of a program")]
            if (launches - places.len() as f64).abs() > 0.5 {
                self.unmatched.notes.push(format!(
                    "line {}: {launches} launches of {} in the profile, {} in the record of {}: means are compared",
                    mean.line, shown(&mean.kernel), places.len(), app.app
                ));
            }
        }
        if !found {
            self.unmatched.launches.push(missing(mean, false));
        }
    }

    /// Notes a profile of another clock than the record's.
    fn clock(&mut self, machine: &MachineRecord, profiled: &[Profiled]) {
        let clocks: Vec<f64> = profiled.iter().filter_map(|one| one.values.sm_hertz()).collect();
        let Some(mean) = super::statistics::mean(&clocks) else { return };
        let (card, model) = (mean / 1e6, machine.core_mhz);
        if model > 0.0 && (card / model - 1.0).abs() > CLOCK {
            self.unmatched.notes.push(format!(
                "the card ran at {card:.0} MHz, the record of {} at {model:.0}: the DRAM is faster or slower against the SMs; analyze with --set clocks.core_mhz={card:.0}, or profile with --clock-control none",
                machine.name
            ));
        }
    }

    fn nothing(&self, profiled: &[Profiled]) -> RecordError {
        let list = |names: BTreeSet<String>| {
            let more = names.len().saturating_sub(NAMED);
            let tail = if more > 0 { format!(" and {more} more") } else { String::new() };
            names.into_iter().take(NAMED).collect::<Vec<_>>().join(", ") + &tail
        };
        let theirs = profiled.iter().map(|launch| shown(&launch.kernel)).collect();
        let ours = self.apps.iter().flat_map(|(_, app, _)| &app.kernels);
        let ours = ours.map(|kernel| shown(&kernel.name)).collect();
        let resized = self.unmatched.launches.first().map_or("", String::as_str);
        let line = profiled.first().map_or(1, |launch| launch.line);
        let message = format!(
            "expected a launch of the records (kernels {}), found the kernels {} ({resized}); profile the program whose trace was analysed, with the same inputs",
            list(ours),
            list(theirs)
        );
        RecordError::table(self.path, line, message)
    }
}

fn is_same(one: &MachineRecord, other: &MachineRecord) -> bool {
    one.name == other.name && one.hash == other.hash
}

/// Whether `app` is called by the program.
fn is_program(program: &str, app: &str) -> bool {
    let stem = program.rsplit(['/', '\\']).next().unwrap_or_default();
    let stem = stem.strip_suffix(".exe").unwrap_or(stem);
    !stem.is_empty() && (app.split('/').any(|part| part == stem) || last_component(app) == stem)
}

/// A kernel's name for a message.
fn shown(name: &str) -> String {
    quoted(brief(&plain_name(name), 60).as_bytes())
}

fn missing(launch: &Profiled, resized: bool) -> String {
    let why = if resized { " with another grid or block" } else { "" };
    format!("line {}: {}{why}", launch.line, shown(&launch.kernel))
}

fn row(
    machine: &MachineRecord,
    app: &AppRecord,
    one: &Profiled,
    launches: Launches,
) -> ReferenceRow {
    let mut measured = one.values.quantities();
    let cycles = measured.remove(&Quantity::CyclesBeyondLaunch);
    ReferenceRow {
        machine: machine.name.clone(),
        trace: app.app.clone(),
        line: one.line,
        launches,
        kernel: one.launches.map(|_| plain_name(&one.kernel)),
        mean_per_launch: true,
        cycles,
        measured,
        ..ReferenceRow::default()
    }
}
