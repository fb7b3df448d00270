//! Pieces of work of a sweep, in the order in which they are begun.

use std::collections::{BTreeSet, VecDeque};

use super::folder::SweepFolder;
use super::stock::{Cell, Stock};

/// A piece of work.
#[derive(Clone, Copy, Debug)]
pub(super) enum Job {
    /// An application alone on the machine of a cell.
    Alone {
        cell: usize,
        app: usize,
    },
    Cell(usize),
}

/// The open cells in order, and before them what they need. Those that a process was about
/// when it ended come last, and what they need with them: if they end this one too, for want
/// of memory or by a defect, all others have their records.
pub(super) fn waiting(
    stock: &Stock,
    folder: &SweepFolder,
    cells: &[Cell],
    open: Vec<usize>,
) -> VecDeque<Job> {
    let ended = |&at: &usize| {
        let cell = &cells[at];
        let alone = |&app: &usize| stock.name_alone(cell.machine, app);
        folder.was_abandoned(&cell.record.key)
            || cell.mix.iter().map(alone).any(|name| folder.was_abandoned(&name))
    };
    let (last, first): (Vec<usize>, Vec<usize>) = open.into_iter().partition(ended);
    let mut jobs: VecDeque<Job> = alone(cells, &first).into();
    jobs.extend(first.into_iter().chain(last).map(Job::Cell));
    jobs
}

/// Each application of the open cells on its machine, the first ones first.
fn alone(cells: &[Cell], open: &[usize]) -> Vec<Job> {
    let mut known = BTreeSet::new();
    let mut jobs = Vec::new();
    for &cell in open {
        for &app in &cells[cell].mix {
            if known.insert((cells[cell].machine, app)) {
                jobs.push(Job::Alone { cell, app });
            }
        }
    }
    jobs
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Duration;

    use super::super::super::watch::Unwatched;
    use super::super::plan::Plan;
    use super::{Cell, Job, Stock, SweepFolder, waiting};

    const PLAN: &str = "machines = ['warped-slicer']\nschemes = ['even', 'left-over']\n\
        [apps]\na = 'synth:saxpy'\nb = 'synth:compute'\n[mixes]\nlists = [['a'], ['b']]\n";

    /// The cells of [`PLAN`] in the order in which they run when a process has ended that had
    /// `claimed` something, and how many applications run alone before.
    fn order(claimed: impl Fn(&Stock, &[Cell]) -> Option<String>) -> (Vec<usize>, usize) {
        let place = tempfile::tempdir().unwrap();
        let (root, path) = (place.path(), place.path().join("plan.toml"));
        let expiry = Duration::from_secs(60);
        fs::write(&path, PLAN).unwrap();
        let plan = Plan::read(&path).unwrap();
        let stock = Stock::new(plan, None, root, expiry, &Unwatched).unwrap();
        let cells = stock.cells().unwrap();
        if let Some(key) = claimed(&stock, &cells) {
            fs::create_dir_all(root.join("claims")).unwrap();
            fs::write(root.join("claims").join(format!("{key}.claim")), "far~b~1~7~1\n").unwrap();
        }
        let folder = SweepFolder::open(root, expiry).unwrap();
        let jobs = waiting(&stock, &folder, &cells, (0..cells.len()).collect());
        let cell = |job: &Job| match job {
            Job::Cell(at) => Some(*at),
            Job::Alone { .. } => None,
        };
        let order: Vec<usize> = jobs.iter().filter_map(cell).collect();
        let alone = jobs.len() - order.len();
        (order, alone)
    }

    #[test]
    fn what_a_process_was_about_when_it_ended_comes_last() {
        assert_eq!(order(|_, _| None), (vec![0, 1, 2, 3], 2));
        let (cells, alone) = order(|_, cells| Some(cells[1].record.key.clone()));
        assert_eq!((cells, alone), (vec![0, 2, 3, 1], 2));
        // It had come no further than an application alone: all cells with that are last.
        let (cells, alone) =
            order(|stock, cells| Some(stock.name_alone(cells[0].machine, cells[0].mix[0])));
        assert_eq!((cells, alone), (vec![2, 3, 0, 1], 1));
    }
}
