//! Choosing: which commands could be sent for the waiting requests, and when.

use super::channel::Channel;
use super::device::CLOSED;
use super::queue::{KINDS, NONE, READ, WRITE};
use super::refresh::Due;
use super::scan::{IDLE, MAINTENANCE, OPENER, ORDINARY, Pick, Scan};
use super::scheduler::{Candidate, Scheduler};
use crate::spec::{Command, PagePolicy};
use crate::units::{to_u32, to_u64};

impl<S: Scheduler> Channel<S> {
    /// Looks at the candidates of every bank that does not sleep at `clock`.
    pub(super) fn scan(&mut self, clock: u64) -> Scan {
        let in_order = self.scheduler.in_order();
        let mut scan = Scan::new(clock, self.shape.separate_buses, in_order);
        scan.next = self.refresh.next(clock);
        if self.held != 0 {
            for due in self.refresh.due(clock) {
                self.weigh_refresh(due, &mut scan);
            }
        }
        let mut banks = self.busy;
        if self.options.page_policy == PagePolicy::Timeout {
            banks |= self.open;
        }
        while banks != 0 {
            let bank = banks.trailing_zeros() as usize;
            banks &= banks - 1;
            let asleep = self.sleep[bank];
            if asleep > clock {
                scan.next = scan.next.min(asleep);
            } else {
                self.sleep[bank] = self.weigh(bank, &mut scan);
            }
        }
        scan.finish()
    }

    /// What one bank offers; the clock before which it has nothing new to offer.
    pub(super) fn weigh(&self, bank: usize, scan: &mut Scan) -> u64 {
        let before = std::mem::replace(&mut scan.next, u64::MAX);
        let ready = std::mem::replace(&mut scan.ready, false);
        let held = self.held >> bank & 1 == 1;
        let open = self.device.open_row(bank);
        if open == CLOSED {
            if !held {
                self.weigh_activate(bank, scan);
            }
        } else {
            for kind in [READ, WRITE] {
                self.weigh_column(bank, kind, held, scan);
            }
            if !held && self.banks[bank].opener == KINDS && self.may_close(bank) {
                self.weigh_close(bank, open, scan);
            }
        }
        let sleep = if scan.ready { 0 } else { scan.next };
        scan.next = scan.next.min(before);
        scan.ready |= ready;
        sleep
    }

    #[inline]
    fn weigh_column(&self, bank: usize, kind: usize, held: bool, scan: &mut Scan) {
        let list = self.queue.list(bank, kind);
        if list.hit == NONE {
            return;
        }
        let opener = self.banks[bank].opener == kind;
        if !opener && (held || !self.drain.serves(kind)) {
            return;
        }
        if scan.in_order && !opener && list.hit != list.head {
            return;
        }
        let command = if kind == READ { Command::Read } else { Command::Write };
        let class = if opener { OPENER } else { ORDINARY };
        self.offer((bank, kind), list.hit, command, class, scan);
    }

    fn weigh_activate(&self, bank: usize, scan: &mut Scan) {
        for kind in [READ, WRITE] {
            let head = self.queue.list(bank, kind).first();
            if head != NONE && self.drain.serves(kind) {
                self.offer((bank, kind), head, Command::Activate, ORDINARY, scan);
            }
        }
    }

    /// False when the oldest request of each kind hits the open row, or there is
    /// none, and nothing else could ask for another row.
    #[inline]
    fn may_close(&self, bank: usize) -> bool {
        let waits = |kind| {
            let list = self.queue.list(bank, kind);
            list.first() != list.hit
        };
        self.closes_early || waits(READ) || waits(WRITE)
    }

    /// Closing the open row: for a request that needs another one, or because
    /// nothing has used it for long.
    fn weigh_close(&self, bank: usize, open: u32, scan: &mut Scan) {
        for kind in [READ, WRITE] {
            let list = self.queue.list(bank, kind);
            if list.first() == NONE || !self.drain.serves(kind) {
                continue;
            }
            let in_order = scan.in_order;
            let miss = if self.options.row_hit_first || in_order {
                // Older hits keep the row open; younger ones until the cap.
                let capped = in_order || self.banks[bank].served >= self.options.hit_cap;
                let closes = list.hit != list.head && (list.hit == NONE || capped);
                if closes { list.head } else { NONE }
            } else {
                self.queue.first_miss(bank, kind, open)
            };
            if miss != NONE {
                self.offer((bank, kind), miss, Command::Precharge, ORDINARY, scan);
            }
        }
        if self.options.page_policy == PagePolicy::Timeout {
            let hits = [READ, WRITE].map(|kind| self.queue.list(bank, kind).hit);
            if hits == [NONE; KINDS] {
                let idle = self.banks[bank].used + to_u64(self.options.page_timeout);
                let time = idle.max(self.device.earliest(Command::Precharge, bank));
                let rank = IDLE | to_u64(bank);
                let command = Command::Precharge;
                scan.offer(time, Pick { command, bank, kind: READ, entry: NONE, rank });
            }
        }
    }

    /// The next command of a due refresh; requests that opened a row go first.
    fn weigh_refresh(&self, due: Due, scan: &mut Scan) {
        let banks = due.bank..due.bank + due.banks;
        if self.banks[banks].iter().any(|note| note.opener != KINDS) {
            return;
        }
        let open = self.open & due.mask() != 0;
        let command = match (due.banks, open) {
            (1, true) => Command::Precharge,
            (1, false) => Command::RefreshBank,
            (_, true) => Command::PrechargeAll,
            (_, false) => Command::RefreshAll,
        };
        let time = self.device.earliest(command, due.bank);
        let rank = MAINTENANCE | to_u64(due.lane);
        scan.offer(time, Pick { command, bank: due.bank, kind: due.lane, entry: NONE, rank });
    }

    /// A command for the request `at`. Most candidates are not ready: the bound
    /// of the pseudo channel tells so without a look at the bank.
    #[inline]
    fn offer(
        &self,
        (bank, kind): (usize, usize),
        at: u32,
        command: Command,
        class: u64,
        scan: &mut Scan,
    ) {
        let bound = self.device.earliest_outside(command, bank);
        if bound > scan.clock && !scan.in_order {
            scan.sleep_until(bound);
            return;
        }
        let time = self.device.earliest(command, bank);
        if time > scan.clock && !scan.in_order {
            scan.sleep_until(time);
            return;
        }
        let entry = self.queue.entry(at);
        let candidate = Candidate {
            token: entry.token,
            write: kind == WRITE,
            column: command.is_column(),
            bank: to_u32(bank),
            sequence: entry.sequence,
        };
        let rank = class | self.scheduler.rank(&candidate);
        scan.offer(time, Pick { command, bank, kind, entry: at, rank });
    }
}
