//! Whether there is memory for one more cell.
//!
//! Approximate: estimates may be off by several times, and what others are about to take is
//! unknown.

use sysinfo::System;

/// The part of it that cells may take, in tenths: the program and others need some.
const TENTHS: u64 = 8;

/// Bytes of which cells take `cells` where only the whole is bounded.
pub(super) fn for_cells(cells: u64) -> u64 {
    cells.div_ceil(TENTHS).saturating_mul(10)
}

/// The memory that the cells of this process may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    most: u64,
}

impl Room {
    /// Room for a process that runs no cell so far, in what is free now; at most `most` bytes.
    pub(super) fn new(most: Option<u64>) -> Self {
        Self { most: most.unwrap_or(u64::MAX).min(of_free(free())) }
    }

    /// Whether there is room for cells of `all` bytes, where the next one of them takes `one`.
    pub(super) fn fits(self, all: u64, one: u64) -> bool {
        all <= self.most && one <= of_free(free())
    }
}

fn of_free(free: u64) -> u64 {
    free / 10 * TENTHS
}

/// Bytes that this machine, and the group of processes that this one is in, have free; no
/// bound where the system does not say.
fn free() -> u64 {
    let mut system = System::new();
    system.refresh_memory();
    let machine = system.available_memory();
    let group = system.cgroup_limits().map_or(u64::MAX, |limits| limits.free_memory);
    if machine == 0 { u64::MAX } else { machine.min(group) }
}

#[cfg(test)]
mod tests {
    use super::{Room, for_cells};

    #[test]
    fn cells_take_no_more_than_is_given_or_free() {
        let room = Room::new(Some(1000));
        assert!(room.fits(1000, 10) && !room.fits(1001, 10));
        let free = Room::new(None);
        assert!(free.most > 0 && !free.fits(free.most.saturating_add(1), 0));
        assert!(!free.fits(0, u64::MAX), "more than any machine has");
        assert_eq!(for_cells(800), 1000);
    }
}
