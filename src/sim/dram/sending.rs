//! Sending: one clock of the controller, and what a sent command changes.

use super::channel::{Channel, Done, Issued};
use super::device::CLOSED;
use super::queue::{KINDS, NONE, READ, WRITE};
use super::scheduler::Scheduler;
use super::turn::{COLUMN, Pick, ROW, Turn};
use crate::config::{Command, PagePolicy};
use gpumodel_core::units::to_u32;

impl<S: Scheduler> Channel<S> {
    /// One clock: at most one command per bus, column bus first.
    pub(super) fn step(&mut self, clock: u64, done: &mut Vec<Done>) {
        self.settle(clock);
        if self.board.stale != 0 || self.outdated != [false; 2] {
            self.plan(clock);
        }
        let [column, row] = self.turns;
        if column.time <= clock {
            self.send(column.pick, clock, done);
            if row.time <= clock {
                self.send_beside(column.pick.bank, row.pick, clock, done);
            }
        } else if row.time <= clock {
            self.send(row.pick, clock, done);
        } else {
            self.rest(clock);
            return;
        }
        self.look_ahead(clock);
    }

    /// Who is served changes when refreshes become due or writes are drained.
    fn settle(&mut self, clock: u64) {
        if self.held != 0 || self.refresh.soonest() <= clock {
            let held = self.refresh.due(clock).fold(0, |held, due| held | due.mask());
            if held != self.held {
                self.held = held;
                self.forget_plan();
            }
        }
        if self.drain.settle(clock, self.queue.sizes()) {
            self.forget_plan();
        }
    }

    /// Everything must be looked at anew; all other banks offer nothing.
    pub(super) fn forget_plan(&mut self) {
        let idle = self.options.page_policy == PagePolicy::Timeout;
        self.board.stale |= self.busy | if idle { self.open } else { 0 };
        self.outdated = [true; 2];
    }

    /// The row command `wanted` beside a column command that was just sent to
    /// `bank`, or another one that is legal now.
    fn send_beside(&mut self, bank: usize, wanted: Pick, clock: u64, done: &mut Vec<Done>) {
        let legal = self.device.earliest(wanted.command, wanted.bank) <= clock;
        if wanted.bank != bank && legal {
            self.send(wanted, clock, done);
            return;
        }
        self.note_stale();
        self.turns[ROW] = self.best(ROW, u64::MAX, Turn::NEVER, clock);
        let Turn { time, pick } = self.turns[ROW];
        if time <= clock {
            self.send(pick, clock, done);
        }
    }

    /// After sending: what comes next, and when.
    fn look_ahead(&mut self, clock: u64) {
        if self.drain.change(clock, self.queue.sizes()) || self.stage() || self.held != 0 {
            self.forget_plan();
            self.wake = clock + 1;
            return;
        }
        for bus in [COLUMN, ROW] {
            let Turn { time, pick } = self.turns[bus];
            let stays = |time| self.device.earliest(pick.command, pick.bank) <= time;
            self.outdated[bus] |= !self.steady || time <= clock || time != u64::MAX && !stays(time);
        }
        self.plan(clock + 1);
        self.rest(clock);
    }

    /// Nothing is left to do at `clock`.
    pub(super) fn rest(&mut self, clock: u64) {
        let next = self.turns[COLUMN].time.min(self.turns[ROW].time);
        self.wake = next.min(self.refresh.next(clock));
    }

    fn send(&mut self, pick: Pick, clock: u64, done: &mut Vec<Done>) {
        let Pick { bank, entry, .. } = pick;
        let command = self.closing(pick, clock);
        let (mut row, mut column) = (0, 0);
        if entry != NONE {
            self.scheduler.sent(to_u32(bank));
            row = self.queue.entry(entry).row;
            if command.is_column() {
                column = self.queue.entry(entry).column;
            }
        } else if command == Command::Activate {
            row = self.copied_row(bank);
        }
        self.board.stale |= if self.steady { 1 << bank } else { self.busy };
        self.device.issue(command, bank, row, clock);
        if let Some(log) = &mut self.log {
            log.push(Issued { clock, command, bank: to_u32(bank), row, column });
        }
        match command {
            Command::Activate if entry == NONE => self.after_copy_activate(bank, row, clock),
            Command::Activate => self.after_activate(pick, row, clock),
            Command::Precharge | Command::PrechargeAll => self.after_close(pick, command),
            Command::RefreshAll | Command::RefreshBank => {
                self.counters.refreshes += 1;
                self.refresh.sent(pick.kind);
            }
            _ => self.after_column(pick, command, clock, done),
        }
    }

    /// With closed pages the last access to a row closes it.
    fn closing(&self, pick: Pick, clock: u64) -> Command {
        if self.options.page_policy != PagePolicy::Closed || !pick.command.is_column() {
            return pick.command;
        }
        let closing = if pick.kind == READ { Command::ReadClose } else { Command::WriteClose };
        let other = self.queue.list(pick.bank, READ + WRITE - pick.kind).hit;
        let more = self.queue.hits_behind(pick.entry);
        let legal = self.device.earliest(closing, pick.bank) <= clock;
        if other == NONE && !more && legal { closing } else { pick.command }
    }

    fn after_activate(&mut self, pick: Pick, row: u32, clock: u64) {
        let Pick { bank, kind, entry, .. } = pick;
        self.counters.activates += 1;
        if !std::mem::replace(&mut self.queue.entry_mut(entry).touched, true) {
            self.counters.row_misses += 1;
        }
        let note = &mut self.banks[bank];
        (note.opener, note.served, note.used) = (kind, 0, clock);
        self.open |= 1 << bank;
        self.queue.find_hit(bank, READ, row);
        self.queue.find_hit(bank, WRITE, row);
        if self.options.opened_leaves_queue && self.options.bank_queue == 0 {
            self.queue.leave(kind, entry);
        }
    }

    fn after_close(&mut self, pick: Pick, command: Command) {
        self.counters.precharges += 1;
        if pick.entry != NONE {
            let touched = &mut self.queue.entry_mut(pick.entry).touched;
            if !std::mem::replace(touched, true) {
                self.counters.row_conflicts += 1;
            }
        }
        let one = pick.bank..pick.bank + 1;
        let all = command == Command::PrechargeAll;
        let banks = if all { self.device.banks_beside(pick.bank) } else { one };
        for bank in banks {
            self.open &= !(1 << bank);
            self.queue.forget_hits(bank);
            self.board.stale |= 1 << bank;
        }
    }

    fn after_column(&mut self, pick: Pick, command: Command, clock: u64, done: &mut Vec<Done>) {
        let Pick { bank, kind, entry, .. } = pick;
        if !self.queue.entry(entry).touched {
            self.counters.row_hits += 1;
        }
        let note = &mut self.banks[bank];
        if note.opener == kind {
            note.opener = KINDS;
            self.taken.stirred |= self.taken.banks != 0;
        }
        note.served += 1;
        note.used = clock;
        let write = kind == WRITE;
        let counter = if write { &mut self.counters.writes } else { &mut self.counters.reads };
        *counter += 1;
        self.counters.busy_clocks += self.shape.burst_clocks;
        let open = self.device.open_row(bank);
        self.queue.remove(bank, kind, entry, open);
        if open == CLOSED {
            debug_assert!(matches!(command, Command::ReadClose | Command::WriteClose));
            self.counters.precharges += 1;
            self.open &= !(1 << bank);
            self.queue.forget_hits(bank);
        }
        if self.queue.is_empty(bank) {
            self.busy &= !(1 << bank);
        }
        let end = if write { clock } else { clock + self.shape.read_clocks };
        self.finish(entry, write, end, done);
    }
}
