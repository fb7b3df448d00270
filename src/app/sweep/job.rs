//! Pieces of work of a sweep, in the order in which they are begun.

use std::collections::{BTreeSet, VecDeque};

use super::stock::Cell;

/// A piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Job {
    /// An application alone on the machine of a cell.
    Alone {
        cell: usize,
        app: usize,
    },
    Cell(usize),
}

/// The open cells in order, and before them each of their applications on its machine, the
/// first ones first.
pub(super) fn waiting(cells: &[Cell], open: Vec<usize>) -> VecDeque<Job> {
    let mut known = BTreeSet::new();
    let mut jobs = VecDeque::new();
    for &cell in &open {
        for &app in &cells[cell].mix {
            if known.insert((cells[cell].machine, app)) {
                jobs.push_back(Job::Alone { cell, app });
            }
        }
    }
    jobs.extend(open.into_iter().map(Job::Cell));
    jobs
}
