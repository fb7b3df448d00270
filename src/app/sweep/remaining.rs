//! What is left of a sweep: which cells have ended, and what those took that were run.

use std::collections::{BTreeMap, BTreeSet};

use gpumodel_report::results::{CellEstimate, SweepEstimate, SweepFiles};

use super::estimate::INSTRUCTIONS_PER_MILLISECOND;
use super::stock::{Cell, Stock};

/// Microseconds in place of so many estimated ones.
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

    /// What `milliseconds` of the estimate are by this rate.
    fn of(self, milliseconds: u64) -> u64 {
        let scaled = u128::from(milliseconds) * u128::from(self.measured);
        let scaled = scaled / u128::from(self.estimated.max(1));
        u64::try_from(scaled).unwrap_or(u64::MAX)
    }
}

/// The estimate of `cells` with what the folder of the sweep and the cache folder know:
/// how cells have ended, what they took where they were run, and for the others of their
/// scheme the same rate. The sums are of what is left.
pub(super) fn remaining(
    mut estimate: SweepEstimate,
    stock: &Stock,
    cells: &[Cell],
    files: &SweepFiles,
) -> SweepEstimate {
    let known: Vec<Option<u64>> =
        estimate.cells.iter().map(|one| stock.seconds.micros(&one.cell.key)).collect();
    let (rates, measured) = rates(&known, &estimate.cells);
    for (one, known) in estimate.cells.iter_mut().zip(known) {
        one.core_milliseconds = match known {
            Some(micros) => micros.div_ceil(1000),
            None => rate(&rates, &one.cell.scheme).of(one.core_milliseconds),
        };
        one.ended = ended(files, &one.cell.key);
    }
    let open = estimate.cells.iter().zip(cells).filter(|(one, _)| one.ended.is_none());
    let (open, left): (Vec<&CellEstimate>, Vec<&Cell>) = open.unzip();
    let alone_milliseconds = alone(stock, &left);
    let sum = open.iter().map(|one| one.core_milliseconds).fold(0, u64::saturating_add);
    let longest = open.iter().map(|one| one.core_milliseconds).max().unwrap_or(0);
    let core_seconds = sum.saturating_add(alone_milliseconds).div_ceil(1000);
    let seconds = (core_seconds / estimate.threads.max(1)).max(longest.div_ceil(1000));
    let memory_bytes = open.iter().map(|one| one.memory_bytes).max().unwrap_or(0);
    let basis = basis(measured, &estimate.basis);
    SweepEstimate { core_seconds, alone_milliseconds, seconds, memory_bytes, basis, ..estimate }
}

/// How a cell ended, true for a record; `None`: it has not.
fn ended(files: &SweepFiles, key: &str) -> Option<bool> {
    files.has_ended(key).then(|| files.record(key).is_file())
}

/// What measured cells took over what was thought, by scheme and (`""`) of all; and how many
/// were measured.
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

/// The rate of a scheme: that of all where none of its cells was measured, and what was
/// thought where none was.
fn rate(rates: &BTreeMap<String, Rate>, scheme: &str) -> Rate {
    let as_thought = Rate { measured: 1, estimated: 1 };
    *rates.get(scheme).or_else(|| rates.get("")).unwrap_or(&as_thought)
}

/// Milliseconds of one core for every application of `cells` alone that has not been run
/// with this cache folder, once per machine.
fn alone(stock: &Stock, cells: &[&Cell]) -> u64 {
    let apps = cells.iter().flat_map(|cell| cell.mix.iter().map(|&app| (cell.machine, app)));
    let apps: BTreeSet<(usize, usize)> = apps.collect();
    let mut rate = Rate::default();
    let mut unknown = 0_u64;
    for (machine, app) in apps {
        let thought = stock.warp_instructions(app).div_ceil(INSTRUCTIONS_PER_MILLISECOND);
        match stock.seconds.micros(&stock.name_alone(machine, app)) {
            Some(took) => rate.add(took, thought.saturating_mul(1000)),
            None => unknown = unknown.saturating_add(thought),
        }
    }
    if rate == Rate::default() { unknown } else { rate.of(unknown) }
}

fn basis(measured: u64, otherwise: &str) -> String {
    if measured == 0 {
        return otherwise.to_owned();
    }
    let were = if measured == 1 { "cell was" } else { "cells were" };
    format!(
        "what {measured} {were} measured to take with this cache folder, and for the others on \
         what cells of their scheme took over an estimate: {otherwise}"
    )
}

#[cfg(test)]
mod tests {
    use super::{CellEstimate, Rate, rate, rates};
    use gpumodel_report::results::CellRecord;

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
