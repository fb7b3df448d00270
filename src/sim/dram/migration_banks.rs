//! Banks that are taken for copies between channels, and the halves of MIGRATION
//! that go to them (UGPU, sections 4.2 and 4.3).
//!
//! A taken bank is kept from ordinary work as one is that a due refresh holds: only
//! a request that has opened its row is still served. Then the bank's row is closed
//! and the copy's row opened by offers on the row bus. A due refresh goes before that,
//! and may close the copy's row again; only once the copy has begun does it wait.

use super::channel::{Channel, Issued};
use super::device::CLOSED;
use super::queue::{KINDS, NONE, READ, WRITE};
use super::scheduler::Scheduler;
use super::turn::{COPYING, Pick, Turn};
use crate::config::Command;
use gpumodel_core::units::{to_u32, to_u64};

/// The banks of a channel that are taken.
#[derive(Clone, Debug, Default)]
pub(super) struct MigrationBanks {
    /// One bit each.
    pub(super) banks: u64,
    /// Those whose copy has begun: a due refresh waits for them.
    pub(super) begun: u64,
    /// Banks of the groups in which a copy has begun: requests that have not opened
    /// their row would keep the copy from the group's bus.
    pub(super) guarded: u64,
    /// By bank, the row that its copy needs; empty until a bank is taken.
    rows: Vec<u32>,
    /// A taken bank may have become ready since somebody asked.
    pub(super) stirred: bool,
}

impl<S: Scheduler> Channel<S> {
    /// True once after a bank may have become ready for its copy: then
    /// [`super::Copier::work`] is called at the same clock.
    pub fn take_stir(&mut self) -> bool {
        std::mem::take(&mut self.taken.stirred)
    }

    /// Takes a bank for a copy that needs `row` open, from clock `now` + 1 on.
    pub(super) fn take(&mut self, now: u64, bank: usize, row: u32) {
        self.taken.rows.resize(self.banks.len(), CLOSED);
        // As for requests: the highest row number stands for a closed bank.
        self.taken.rows[bank] = row & (u32::MAX >> 1);
        self.taken.banks |= 1 << bank;
        self.look_again(now, 1 << bank);
    }

    /// The clock from which on the bank itself allows `half` of a MIGRATION; `None`
    /// while its row is not open, is still needed, or must be closed for a refresh.
    pub(super) fn ready_at(&self, half: Command, bank: usize) -> Option<u64> {
        let open = self.device.open_row(bank) == self.taken.rows[bank];
        let free = self.banks[bank].opener == KINDS && self.held >> bank & 1 == 0;
        (open && free).then(|| self.device.earliest_own(half, bank))
    }

    /// The copy of a ready bank begins: from now on only time passes until its end.
    pub(super) fn begin(&mut self, now: u64, bank: usize) {
        self.taken.begun |= 1 << bank;
        self.guard(now);
    }

    /// The copy of a bank is over.
    pub(super) fn release(&mut self, now: u64, bank: usize) {
        self.taken.banks &= !(1 << bank);
        self.taken.begun &= !(1 << bank);
        self.guard(now);
        self.look_again(now, 1 << bank);
    }

    /// Guards the groups in which copies have begun.
    fn guard(&mut self, now: u64) {
        let before = self.taken.guarded;
        let begun = |bank: &usize| self.taken.begun >> bank & 1 == 1;
        let groups = (0..self.banks.len()).filter(begun).map(|bank| self.shape.group(bank));
        self.taken.guarded = groups.fold(0, |banks, group| banks | group);
        self.look_again(now, before ^ self.taken.guarded);
    }

    /// What `banks` offer, and what comes next, is found anew after clock `now`.
    fn look_again(&mut self, now: u64, banks: u64) {
        self.board.stale |= banks;
        self.outdated = [true; 2];
        self.wake = self.wake.min(now + 1);
    }

    /// The first clock at which a part of a MIGRATION is legal.
    pub(super) fn migration_at(&self, part: Command, bank: usize) -> u64 {
        self.device.earliest(part, bank)
    }

    /// Sends a part of a MIGRATION at `clock`, which is still to come: what this
    /// channel sends then finds its buses taken.
    pub(super) fn migrate(&mut self, part: Command, bank: usize, column: u32, clock: u64) {
        let through = part == Command::MigrateThrough;
        let bank = if through { self.device.banks_beside(bank).start } else { bank };
        let row = if through { 0 } else { self.device.open_row(bank) };
        self.device.issue(part, bank, row, clock);
        if let Some(log) = &mut self.log {
            log.push(Issued { clock, command: part, bank: to_u32(bank), row, column });
        }
        if through {
            self.counters.lent_clocks += self.shape.migration_clocks;
        } else {
            self.counters.migrations += 1;
            self.banks[bank].used = clock;
        }
        self.look_again(clock - 1, 0);
    }

    /// Offers of the banks whose row is not yet the copy's.
    pub(super) fn weigh_copies(&self, from: u64, turn: &mut Turn) {
        let mut banks = self.taken.banks & !self.held;
        while banks != 0 {
            let bank = banks.trailing_zeros() as usize;
            banks &= banks - 1;
            let open = self.device.open_row(bank);
            if open == self.taken.rows[bank] || self.banks[bank].opener != KINDS {
                continue;
            }
            let closed = open == CLOSED;
            let command = if closed { Command::Activate } else { Command::Precharge };
            let time = self.device.earliest(command, bank).max(from);
            let rank = COPYING | to_u64(bank);
            turn.offer(time, Pick { command, bank, kind: READ, entry: NONE, rank });
        }
    }

    /// The row that is opened for the copy of a bank.
    pub(super) fn copied_row(&self, bank: usize) -> u32 {
        self.taken.rows[bank]
    }

    /// A row was opened for a copy; requests that need it may wait.
    pub(super) fn after_copy_activate(&mut self, bank: usize, row: u32, clock: u64) {
        self.counters.activates += 1;
        self.counters.copy_activates += 1;
        let note = &mut self.banks[bank];
        (note.opener, note.served, note.used) = (KINDS, 0, clock);
        self.open |= 1 << bank;
        self.queue.find_hit(bank, READ, row);
        self.queue.find_hit(bank, WRITE, row);
        self.taken.stirred = true;
    }
}
