//! Estimates time and memory of a sweep before it runs: rough, and with its basis.

use std::collections::{BTreeMap, BTreeSet};

use gpumodel_core::units::{Cycle, to_u64, with_causes};
use gpumodel_feed::StoreFeed;
use gpumodel_report::results::{CellEstimate, SweepEstimate, SweepFiles};

use super::{Cell, SweepInputs};
use crate::run_context::facts;
use crate::scheme::parse_scheme;
use crate::{EndWhen, Ending, RunError};

/// Warp instructions per millisecond on one core. Measured on shared virtual machines over
/// our workload models: 200 to 2000, fewer the more go to memory.
const INSTRUCTIONS_PER_MILLISECOND: u64 = 500;

/// Bytes of a machine and its records. Measured: 23 to 60 MB.
pub(super) const MACHINE_BYTES: u64 = 64 << 20;

/// Bytes in memory per warp instruction of an application whose chunks are in memory. Measured:
/// 16 to 20.
const BYTES_PER_INSTRUCTION: u64 = 24;

/// The most bytes of decoded chunks of an open store, besides those in use.
const STORE_BYTES: u64 = 256 << 20;

/// The basis of the estimate, as text.
const BASIS: &str = "0.5 million warp instructions per second and core (measured: 0.2 to 2, fewer \
    where more go to memory), as many runs per cell as its scheme asks for before it starts, and \
    each application alone once per machine; \
    a quarter of the issue slots used until the last cycle, where a plan says when that is, or for \
    a window for each application; 64 MB per machine at once and 24 bytes per warp instruction, at \
    most 256 MB for each application. Off by several times if applications restart, end early or wait much";

/// Bytes of running applications, without machines.
pub(super) fn bytes(inputs: &SweepInputs, apps: &[usize]) -> u64 {
    let app = |&app: &usize| {
        inputs.warp_instructions(app).saturating_mul(BYTES_PER_INSTRUCTION).min(STORE_BYTES)
    };
    apps.iter().map(app).fold(0, u64::saturating_add)
}

/// By cell: the most machines that run at once, which are the probes of its scheme. Their number
/// is taken from one mix of each size.
pub(super) fn machines_of(inputs: &SweepInputs, cells: &[Cell]) -> Vec<u64> {
    let mut known: BTreeMap<(usize, usize, &str), u64> = BTreeMap::new();
    let mut machines_of = Vec::with_capacity(cells.len());
    for cell in cells {
        // A scheme without valid probes does not run.
        let asked = || runs_before(inputs, cell).unwrap_or(0);
        let question = (cell.machine, cell.mix.len(), cell.scheme.as_str());
        let runs = *known.entry(question).or_insert_with(asked);
        machines_of.push(runs.max(1));
    }
    machines_of
}

/// One issue slot in so many is used in a run that ends at a cycle. Measured over pairs of our
/// workload models: 3 to 70 % are used.
const SLOTS_PER_INSTRUCTION: u64 = 4;

/// Warp instructions that a run of a mix executes.
pub(super) fn work(inputs: &SweepInputs, cell: &Cell) -> u64 {
    let all = cell.mix.iter().map(|&app| inputs.warp_instructions(app));
    let all = all.fold(0, u64::saturating_add);
    let machine = &inputs.machines[cell.machine].resolved.machine;
    let slots = machine.sm.schedulers * machine.sm.issue_width;
    let issued =
        (u64::from(machine.dispatch.sms) * u64::from(slots)).div_ceil(SLOTS_PER_INSTRUCTION);
    let plan = &inputs.plan;
    let end = last_cycle(plan.until, plan.window, cell.mix.len());
    let end = end.map(|cycles| cycles.saturating_mul(issued));
    end.map_or(all, |most| all.min(most))
}

/// The last cycle of a run of so many applications, if its end bounds it: with targets, at most
/// one window per application, unless they interfere much.
fn last_cycle(until: Ending, window: Option<Cycle>, apps: usize) -> Option<Cycle> {
    let windows = window.filter(|_| until.when == EndWhen::Targets);
    let windows = windows.map(|window| window.saturating_mul(to_u64(apps)));
    [until.cycles, windows].into_iter().flatten().min()
}

/// The estimate of `cells`, which have these indices in the plan. Cells that were measured
/// with this cache folder take their measured time, and others the rate of their scheme.
/// The sums are those of the cells that have not ended in `files` and have an estimate.
pub(super) fn estimate(
    inputs: &SweepInputs,
    (indices, cells): (&[usize], &[Cell]),
    threads: usize,
    files: &SweepFiles,
) -> SweepEstimate {
    let estimated = indices.iter().zip(cells);
    let mut estimates: Vec<CellEstimate> =
        estimated.map(|(&index, cell)| unmeasured(inputs, (index, cell), threads, files)).collect();
    let known: Vec<Option<u64>> =
        estimates.iter().map(|one| inputs.times.micros(&one.cell.key)).collect();
    let (rates, measured) = rates(&known, &estimates);
    for (one, known) in estimates.iter_mut().zip(known) {
        one.core_milliseconds = match known {
            Some(micros) => micros.div_ceil(1000),
            None => rate(&rates, &one.cell.scheme).of(one.core_milliseconds),
        };
    }
    let counts = |one: &CellEstimate| one.ended.is_none() && one.is_estimated();
    let open = estimates.iter().zip(cells).filter(|(one, _)| counts(one));
    let (open, open_cells): (Vec<&CellEstimate>, Vec<&Cell>) = open.unzip();
    let alone_milliseconds = alone(inputs, &open_cells);
    let sum = open.iter().map(|one| one.core_milliseconds).fold(0, u64::saturating_add);
    let longest = open.iter().map(|one| one.core_milliseconds).max().unwrap_or(0);
    let core_seconds = sum.saturating_add(alone_milliseconds).div_ceil(1000);
    let threads = to_u64(threads);
    SweepEstimate {
        core_seconds,
        alone_milliseconds,
        threads,
        seconds: (core_seconds / threads.max(1)).max(longest.div_ceil(1000)),
        memory_bytes: open.iter().map(|one| one.memory_bytes).max().unwrap_or(0),
        basis: basis(measured),
        other_builds: BTreeMap::new(),
        cells: estimates,
    }
}

/// The estimate of a cell from its warp instructions.
fn unmeasured(
    inputs: &SweepInputs,
    (index, cell): (usize, &Cell),
    threads: usize,
    files: &SweepFiles,
) -> CellEstimate {
    let unconverted = inputs.unconverted(&cell.mix);
    let before = if unconverted.is_empty() { runs_before(inputs, cell) } else { Ok(0) };
    let (before, refused) = match before {
        Ok(before) => (before, None),
        Err(error) => (0, Some(with_causes(&error).join(": "))),
    };
    let runs = before + 1;
    let machines = before.clamp(1, to_u64(threads.max(1))).saturating_mul(MACHINE_BYTES);
    let alone = cell.mix.iter().map(|&app| inputs.warp_instructions(app));
    let key = &cell.record.key;
    CellEstimate {
        number: to_u64(index + 1),
        cell: cell.record.clone(),
        runs,
        core_milliseconds: milliseconds(work(inputs, cell).saturating_mul(runs)),
        alone_milliseconds: milliseconds(alone.fold(0, u64::saturating_add)),
        memory_bytes: bytes(inputs, &cell.mix).saturating_add(machines),
        ended: files.has_ended(key).then(|| files.record(key).is_file()),
        refused,
        unconverted,
    }
}

/// Milliseconds of one core for so many warp instructions.
fn milliseconds(warp_instructions: u64) -> u64 {
    warp_instructions.div_ceil(INSTRUCTIONS_PER_MILLISECOND)
}

/// The number of probes that a scheme runs before it starts.
fn runs_before(inputs: &SweepInputs, cell: &Cell) -> Result<u64, RunError> {
    let request = inputs.request(cell);
    let (ctx, apps) = inputs.ctx(&request, cell.machine, &cell.mix)?;
    let feed = |app| StoreFeed::new(app, |_| true, ctx.resolved).map_err(RunError::from);
    let feeds = apps.iter().map(|app| feed(&app.store)).collect::<Result<Vec<_>, _>>()?;
    let arrivals = request.arrivals(&apps)?;
    let named = apps.iter().zip(&feeds).zip(arrivals);
    let named: Vec<_> = named.map(|((app, feed), at)| (app.name.as_str(), feed, at)).collect();
    let (name, scheme) = parse_scheme(&request.schemes[0], &request.apps)?;
    let probes = scheme.probes(&facts(&ctx, &named));
    Ok(to_u64(probes.map_err(|source| RunError::law(&name.name, source))?.len()))
}

/// Measured and estimated microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Rate {
    measured: u64,
    estimated: u64,
}

impl Rate {
    fn add(&mut self, measured: u64, estimated: u64) {
        self.measured = self.measured.saturating_add(measured);
        self.estimated = self.estimated.saturating_add(estimated);
    }

    /// Scales `milliseconds` of an estimate.
    fn of(self, milliseconds: u64) -> u64 {
        let scaled = u128::from(milliseconds) * u128::from(self.measured);
        let scaled = scaled / u128::from(self.estimated.max(1));
        u64::try_from(scaled).unwrap_or(u64::MAX)
    }
}

/// Measured over estimated time, by scheme and (`""`) over all; and the number of measured cells.
fn rates(known: &[Option<u64>], cells: &[CellEstimate]) -> (BTreeMap<String, Rate>, u64) {
    let mut rates: BTreeMap<String, Rate> = BTreeMap::new();
    let mut measured = 0;
    for (one, known) in cells.iter().zip(known) {
        let Some(took) = *known else { continue };
        let estimated = one.core_milliseconds.saturating_mul(1000);
        for name in [one.cell.scheme.as_str(), ""] {
            rates.entry(name.to_owned()).or_default().add(took, estimated);
        }
        measured += 1;
    }
    (rates, measured)
}

/// The rate of a scheme; if none of its cells was measured, that of all; if no cell was, 1.
fn rate(rates: &BTreeMap<String, Rate>, scheme: &str) -> Rate {
    let unmeasured = Rate { measured: 1, estimated: 1 };
    *rates.get(scheme).or_else(|| rates.get("")).unwrap_or(&unmeasured)
}

/// Milliseconds of one core for the solo runs of `cells` that are not in this cache folder, once
/// per machine.
fn alone(inputs: &SweepInputs, cells: &[&Cell]) -> u64 {
    let apps = cells.iter().flat_map(|cell| cell.mix.iter().map(|&app| (cell.machine, app)));
    let apps: BTreeSet<(usize, usize)> = apps.collect();
    let mut rate = Rate::default();
    let mut unknown = 0_u64;
    for (machine, app) in apps {
        let thought = milliseconds(inputs.warp_instructions(app));
        match inputs.times.micros(&inputs.solo_name(machine, app)) {
            Some(took) => rate.add(took, thought.saturating_mul(1000)),
            None => unknown = unknown.saturating_add(thought),
        }
    }
    if rate == Rate::default() { unknown } else { rate.of(unknown) }
}

/// What the estimate rests on.
fn basis(measured: u64) -> String {
    if measured == 0 {
        return BASIS.to_owned();
    }
    let were = if measured == 1 { "cell was" } else { "cells were" };
    format!(
        "what {measured} {were} measured to take with this cache folder, and for the others on \
         what cells of their scheme took over an estimate: {BASIS}"
    )
}

#[cfg(test)]
mod tests {
    use gpumodel_report::results::CellRecord;

    use super::{CellEstimate, Rate, last_cycle, rate, rates};

    #[test]
    fn a_run_is_over_with_its_windows_or_its_last_cycle() {
        for (until, window, last) in [
            ("targets", Some(200), Some(600)),
            ("targets,cycles=500", Some(200), Some(500)),
            ("targets,cycles=900", Some(200), Some(600)),
            // A window that only sets what is compared ends nothing.
            ("cycles=900", Some(200), Some(900)),
            ("first-run", None, None),
        ] {
            let until_read = until.parse().unwrap();
            assert_eq!(last_cycle(until_read, window, 3), last, "{until}");
        }
    }

    fn cell(key: &str, scheme: &str, core_milliseconds: u64) -> CellEstimate {
        let (key, scheme) = (key.to_owned(), scheme.to_owned());
        let cell = CellRecord { key, scheme, ..CellRecord::default() };
        CellEstimate { cell, core_milliseconds, ..CellEstimate::default() }
    }

    #[test]
    fn a_scheme_has_the_rate_of_its_cells_and_others_that_of_all() {
        let known = [Some(1_000_000), Some(500_000), None];
        let cells = [cell("a", "even", 4000), cell("b", "spart", 1000), cell("c", "even", 8000)];
        let (found, measured) = rates(&known, &cells);
        assert_eq!(measured, 2);
        assert_eq!(rate(&found, "even").of(8000), 2000);
        assert_eq!(rate(&found, "spart").of(8000), 4000);
        assert_eq!(rate(&found, "left-over").of(1000), 300);
        assert_eq!(rate(&rates(&[None; 3], &cells).0, "even").of(1234), 1234);
    }

    #[test]
    fn an_estimate_of_nothing_scales_to_nothing_and_no_rate_overflows() {
        let rate = Rate { measured: u64::MAX, estimated: 0 };
        assert_eq!((rate.of(0), rate.of(u64::MAX)), (0, u64::MAX));
    }
}
