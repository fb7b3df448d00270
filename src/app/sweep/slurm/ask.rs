//! What a job asks for: memory and time.

use std::fmt;

use serde::{Deserialize, Serialize};

use gpumodel_core::units::to_u64;
use gpumodel_report::results::{CellEstimate, SweepEstimate};

use super::super::room;
use super::request::SlurmRequest;
use super::scripts::Task;

/// Times of cells may be off so much: requests are as many times the estimate.
const TIME_FACTOR: u64 = 4;

/// Seconds of a task beside its cells: stores are made, machines are read.
const TASK_SECONDS: u64 = 600;

/// Bytes of a process beside its cells.
const PROCESS_BYTES: u64 = 256 << 20;

/// Memory that was too little is doubled up to so many times the estimate.
const MOST_MEMORY: u64 = 16;

/// Time that was too little is doubled up to a week, in minutes.
const MOST_MINUTES: u64 = 7 * 24 * 60;

/// Memory and time of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Ask {
    pub(super) megabytes: u64,
    pub(super) minutes: u64,
}

/// Why a task that was lost has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Cause {
    /// There was too little of it, or so it seems.
    Memory,
    /// There was too little of it.
    Time,
    /// Somebody has cancelled it.
    Cancelled,
    /// None of these, as where its node failed or others went before, or nobody says.
    #[default]
    Other,
}

impl Cause {
    /// Whether there was too little of something.
    pub(super) fn short(self) -> bool {
        matches!(self, Self::Memory | Self::Time)
    }
}

impl Ask {
    /// The larger one of each.
    pub(super) fn at_least(self, other: Self) -> Self {
        let (megabytes, minutes) = (other.megabytes, other.minutes);
        Self { megabytes: self.megabytes.max(megabytes), minutes: self.minutes.max(minutes) }
    }

    /// What a cell needs after a task that had `lost` was lost for `cause`: twice what there
    /// was too little of, within bounds. This is what it needed before, `estimated` what it
    /// takes by the estimate.
    pub(super) fn after(self, lost: Self, cause: Cause, estimated: Self) -> Self {
        let doubled = |had: u64, most: u64| had.max(had.saturating_mul(2).min(most));
        let had = lost.at_least(estimated);
        match cause {
            Cause::Memory => {
                let most = estimated.megabytes.saturating_mul(MOST_MEMORY);
                let megabytes = doubled(had.megabytes, most);
                self.at_least(Self { megabytes, minutes: 0 })
            }
            Cause::Time => {
                let minutes = doubled(had.minutes, MOST_MINUTES);
                self.at_least(Self { megabytes: 0, minutes })
            }
            Cause::Cancelled | Cause::Other => self,
        }
    }
}

impl fmt::Display for Ask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}M of memory and {} minutes", self.megabytes, self.minutes)
    }
}

impl SlurmRequest {
    /// What a job asks for: `seconds` are those of its cells, `bytes` those of the largest
    /// one on one machine, of which it runs as many at once as it has threads.
    pub(super) fn ask(&self, seconds: u64, bytes: u64) -> Ask {
        let all = bytes.saturating_mul(to_u64(self.threads));
        let cells = self.memory_bytes.map_or(all, |most| all.min(most.max(bytes)));
        // A job takes a part of its memory for cells where nobody says how much.
        let bytes = room::for_cells(cells).saturating_add(PROCESS_BYTES);
        let seconds = seconds.saturating_mul(TIME_FACTOR).saturating_add(TASK_SECONDS);
        Ask { megabytes: bytes.div_ceil(1 << 20), minutes: seconds.div_ceil(60) }
    }

    /// What any of some tasks asks for.
    pub(super) fn ask_of(&self, tasks: &[Task<'_>], estimate: &SweepEstimate) -> Ask {
        self.ask(self.longest(tasks, estimate), largest(tasks))
    }

    /// Seconds of the longest of some tasks.
    pub(super) fn longest(&self, tasks: &[Task<'_>], estimate: &SweepEstimate) -> u64 {
        let seconds = |task: &Task<'_>| self.seconds(task, estimate.alone_milliseconds);
        tasks.iter().map(seconds).max().unwrap_or(0)
    }

    /// Seconds that a task takes. Any task may have to run the applications of its cells
    /// alone, which take `alone` milliseconds at most.
    fn seconds(&self, task: Task<'_>, alone: u64) -> u64 {
        let sum =
            |of: fn(&CellEstimate) -> u64| task.iter().map(|c| of(c)).fold(0, u64::saturating_add);
        let alone = sum(|cell| cell.alone_milliseconds).min(alone);
        let all = sum(|cell| cell.core_milliseconds).saturating_add(alone);
        let longest = task.iter().map(|cell| cell.core_milliseconds).max().unwrap_or(0);
        (all / to_u64(self.threads)).max(longest).div_ceil(1000)
    }
}

/// Bytes of the largest cell.
fn largest(tasks: &[Task<'_>]) -> u64 {
    tasks.iter().copied().flatten().map(|cell| cell.memory_bytes).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::{Ask, Cause};

    const fn ask(megabytes: u64, minutes: u64) -> Ask {
        Ask { megabytes, minutes }
    }

    #[test]
    fn what_there_was_too_little_of_is_doubled_within_bounds() {
        let (none, own) = (Ask::default(), ask(500, 20));
        assert_eq!(none.after(ask(800, 60), Cause::Memory, own), ask(1600, 0));
        assert_eq!(none.after(ask(800, 60), Cause::Time, own), ask(0, 120));
        assert_eq!(none.after(ask(800, 60), Cause::Other, own), none);
        assert_eq!(ask(1600, 0).after(ask(1600, 60), Cause::Time, own), ask(1600, 120));
        // A list of jobs that does not say what was asked for: by the estimate.
        assert_eq!(none.after(none, Cause::Memory, own), ask(1000, 0));
        // Sixteen times the estimate and a week, unless there was more before.
        assert_eq!(none.after(ask(5000, 60), Cause::Memory, own), ask(8000, 0));
        assert_eq!(none.after(ask(9000, 60), Cause::Memory, own), ask(9000, 0));
        assert_eq!(none.after(ask(9000, 9000), Cause::Time, own), ask(0, 10080));
        assert_eq!(none.after(ask(9000, 20000), Cause::Time, own), ask(0, 20000));
    }
}
