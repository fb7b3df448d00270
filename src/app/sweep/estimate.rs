//! What a sweep will take, before it runs: rough, and it says what it rests on.

use std::collections::{BTreeMap, BTreeSet};

use gpumodel_core::units::{Cycle, to_u64, with_causes};
use gpumodel_report::results::{CellEstimate, SweepEstimate};

use super::super::error::RunError;
use super::super::facts::facts;
use super::super::schemes::chosen;
use super::super::until::{Until, Who};
use super::stock::{Cell, Stock};
use gpumodel_feed::StoreFeed;

/// Warp instructions per millisecond on one core. Measured on shared virtual machines over
/// our workload models: 200 to 2000, fewer the more go to memory.
pub(super) const INSTRUCTIONS_PER_MILLISECOND: u64 = 500;

/// Bytes that a machine and its records take. Measured: 23 to 60 MB.
pub(super) const MACHINE_BYTES: u64 = 64 << 20;

/// Bytes of an application in memory per warp instruction, as far as its chunks are
/// held. Measured: 16 to 20.
const BYTES_PER_INSTRUCTION: u64 = 24;

/// Bytes of decoded chunks that an open store holds at most, besides those in use.
const STORE_BYTES: u64 = 256 << 20;

/// What it rests on, for people.
const BASIS: &str = "0.5 million warp instructions per second and core (measured: 0.2 to 2, fewer \
    where more go to memory), as many runs per cell as its scheme asks for before it starts, and \
    each application alone once per machine; \
    a quarter of the issue slots used until the last cycle, where a plan says when that is, or for \
    a window for each application; 64 MB per machine at once and 24 bytes per warp instruction, at \
    most 256 MB for each application. Off by several times where applications restart, end \
    early, or wait much";

/// Bytes that applications take while they run, without machines.
pub(super) fn bytes(stock: &Stock, apps: &[usize]) -> u64 {
    let app = |&app: &usize| {
        stock.warp_instructions(app).saturating_mul(BYTES_PER_INSTRUCTION).min(STORE_BYTES)
    };
    apps.iter().map(app).fold(0, u64::saturating_add)
}

/// By cell: how many machines it runs at once at most, which are those that its scheme
/// asks for. How many that is is asked of one mix of a size and taken for all.
pub(super) fn machines_of(stock: &Stock, cells: &[Cell]) -> Vec<u64> {
    let mut known: BTreeMap<(usize, usize, &str), u64> = BTreeMap::new();
    let mut machines_of = Vec::with_capacity(cells.len());
    for cell in cells {
        // What cannot be asked cannot run either.
        let asked = || runs_before(stock, cell).unwrap_or(0);
        let question = (cell.machine, cell.mix.len(), cell.scheme.as_str());
        let runs = *known.entry(question).or_insert_with(asked);
        machines_of.push(runs.max(1));
    }
    machines_of
}

/// One issue slot in so many is used, where a run ends after so many cycles. Measured over
/// pairs of our workload models: 3 to 70 % are.
const SLOTS_PER_INSTRUCTION: u64 = 4;

/// Warp instructions of the applications of a mix, as far as a run of them goes.
pub(super) fn work(stock: &Stock, cell: &Cell) -> u64 {
    let all = cell.mix.iter().map(|&app| stock.warp_instructions(app));
    let all = all.fold(0, u64::saturating_add);
    let machine = &stock.machines[cell.machine].resolved.machine;
    let slots = machine.sm.schedulers * machine.sm.issue_width;
    let issued =
        (u64::from(machine.dispatch.sms) * u64::from(slots)).div_ceil(SLOTS_PER_INSTRUCTION);
    let plan = &stock.plan;
    let end = last_cycle(plan.until, plan.window, cell.mix.len());
    let end = end.map(|cycles| cycles.saturating_mul(issued));
    end.map_or(all, |most| all.min(most))
}

/// The cycle by which a run of so many applications is over, where its end says something
/// of it: work of a window each takes as many windows at most, unless they disturb each
/// other much.
fn last_cycle(until: Until, window: Option<Cycle>, apps: usize) -> Option<Cycle> {
    let windows = window.filter(|_| until.who == Who::Targets);
    let windows = windows.map(|window| window.saturating_mul(to_u64(apps)));
    [until.cycles, windows].into_iter().flatten().min()
}

/// The estimate of `cells` of a plan, which are those at `places`.
pub(super) fn estimate(
    stock: &Stock,
    (places, cells): (&[usize], &[Cell]),
    threads: usize,
) -> SweepEstimate {
    let one = |(&place, cell): (&usize, &Cell)| {
        let (before, refused) = match runs_before(stock, cell) {
            Ok(before) => (before, None),
            Err(error) => (0, Some(with_causes(&error).join(": "))),
        };
        let runs = before + 1;
        let work = work(stock, cell).saturating_mul(runs);
        let machines = before.clamp(1, to_u64(threads.max(1))).saturating_mul(MACHINE_BYTES);
        CellEstimate {
            number: to_u64(place + 1),
            cell: cell.record.clone(),
            runs,
            core_milliseconds: work.div_ceil(INSTRUCTIONS_PER_MILLISECOND),
            alone_milliseconds: milliseconds_alone(stock, &cell.mix),
            memory_bytes: bytes(stock, &cell.mix).saturating_add(machines),
            ended: None,
            refused,
        }
    };
    let alone_milliseconds = alone(stock, cells);
    let cells: Vec<CellEstimate> = places.iter().zip(cells).map(one).collect();
    let sum = cells.iter().map(|cell| cell.core_milliseconds).fold(0, u64::saturating_add);
    let longest = cells.iter().map(|cell| cell.core_milliseconds).max().unwrap_or(0);
    let core_seconds = sum.saturating_add(alone_milliseconds).div_ceil(1000);
    SweepEstimate {
        core_seconds,
        alone_milliseconds,
        threads: to_u64(threads),
        seconds: (core_seconds / to_u64(threads.max(1))).max(longest.div_ceil(1000)),
        memory_bytes: cells.iter().map(|cell| cell.memory_bytes).max().unwrap_or(0),
        basis: BASIS.to_owned(),
        other_builds: BTreeMap::new(),
        cells,
    }
}

/// Milliseconds of one core for every application of `cells` alone, once per machine.
fn alone(stock: &Stock, cells: &[Cell]) -> u64 {
    let mut known = BTreeSet::new();
    let apps = cells.iter().flat_map(|cell| cell.mix.iter().map(|&app| (cell.machine, app)));
    let apps: Vec<usize> = apps.filter(|&one| known.insert(one)).map(|(_, app)| app).collect();
    milliseconds_alone(stock, &apps)
}

fn milliseconds_alone(stock: &Stock, apps: &[usize]) -> u64 {
    let all = apps.iter().map(|&app| stock.warp_instructions(app));
    all.fold(0, u64::saturating_add).div_ceil(INSTRUCTIONS_PER_MILLISECOND)
}

/// Runs that a scheme asks for before it starts.
fn runs_before(stock: &Stock, cell: &Cell) -> Result<u64, RunError> {
    let request = stock.request(cell);
    let (bench, apps) = stock.bench(&request, cell.machine, &cell.mix)?;
    let feed = |app| StoreFeed::new(app, |_| true, bench.resolved).map_err(RunError::from);
    let feeds = apps.iter().map(|app| feed(&app.store)).collect::<Result<Vec<_>, _>>()?;
    let arrivals = request.arrivals(&apps)?;
    let named = apps.iter().zip(&feeds).zip(arrivals);
    let named: Vec<_> = named.map(|((app, feed), at)| (app.name.as_str(), feed, at)).collect();
    let (name, scheme) = chosen(&request.schemes[0], &request.apps)?;
    let probes = scheme.probes(&facts(&bench, &named));
    Ok(to_u64(probes.map_err(|source| RunError::law(&name.name, source))?.len()))
}

#[cfg(test)]
mod tests {
    use super::last_cycle;

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
}
