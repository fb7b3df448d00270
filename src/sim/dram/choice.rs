//! Choosing: which commands could be sent for the waiting requests, and when.

use std::ops::Range;

use super::channel::Channel;
use super::device::CLOSED;
use super::queue::{Entry, KINDS, NONE, READ, WRITE};
use super::refresh::Due;
use super::scheduler::{Candidate, Scheduler};
use super::turn::{
    ACCESSES, CLASSES, CLOSINGS, COLUMN, COMMANDS, IDLE, MAINTENANCE, OPENER, OPENINGS, ORDINARY,
    Offer, Pick, Turn, kind_of,
};
use crate::config::{Command, PagePolicy};
use gpumodel_core::units::{to_u32, to_u64};

impl<S: Scheduler> Channel<S> {
    /// Renews the next command of each bus as far as banks have changed; from
    /// clock `from` on. What was chosen stays the choice while its own clock
    /// stays, since no other candidate of an unchanged bank becomes legal earlier.
    pub(super) fn plan(&mut self, from: u64) {
        let changed = self.note_stale();
        if self.taken.banks != 0 {
            self.outdated = [true; 2];
        }
        for bus in COLUMN..=self.shape.row_bus {
            let shaken = changed >> self.turns[bus].pick.bank & 1 == 1;
            if self.outdated[bus] || shaken || self.in_order && changed != 0 {
                self.outdated[bus] = false;
                self.turns[bus] = self.best(bus, u64::MAX, Turn::NEVER, from);
            } else if changed & self.offering(bus) != 0 {
                self.turns[bus] = self.best(bus, changed, self.turns[bus], from);
            }
        }
    }

    /// The better of `turn` and the candidates of `banks` for a bus.
    pub(super) fn best(&self, bus: usize, banks: u64, mut turn: Turn, from: u64) -> Turn {
        if self.in_order {
            self.first_in_order(bus, from, &mut turn);
        } else {
            for class in self.classes(bus) {
                let offering = self.board.offering[class] & banks;
                if offering != 0 {
                    self.weigh(class, offering, from, &mut turn);
                }
            }
        }
        if bus == self.shape.row_bus {
            self.weigh_idle(self.board.idle & banks, from, &mut turn);
            if self.held != 0 {
                for due in self.refresh.due(from) {
                    self.weigh_refresh(due, from, &mut turn);
                }
            }
            if self.taken.banks != 0 {
                self.weigh_copies(from, &mut turn);
            }
        }
        turn
    }

    /// Banks that offer any command for a bus.
    #[inline]
    fn offering(&self, bus: usize) -> u64 {
        let classes = &self.board.offering[self.classes(bus)];
        classes.iter().fold(self.board.idle, |any, banks| any | banks)
    }

    /// The classes of commands that go over a bus.
    #[inline]
    fn classes(&self, bus: usize) -> Range<usize> {
        match (self.shape.row_bus, bus) {
            (COLUMN, _) => 0..CLASSES,
            (_, COLUMN) => ACCESSES..OPENINGS,
            (_, _) => OPENINGS..CLASSES,
        }
    }

    /// Candidates of one class. Most are not next: the gates of the pseudo
    /// channel tell so without a look at the banks.
    fn weigh(&self, class: usize, mut offering: u64, from: u64, turn: &mut Turn) {
        let command = COMMANDS[class];
        let grouped = self.device.is_grouped(command);
        let offers = self.board.offers(class);
        let (mut best, mut least, mut winner) = (turn.time, turn.pick.rank, usize::MAX);
        while offering != 0 {
            let lane = self.device.lane(offering.trailing_zeros() as usize);
            let mut banks = offering & lane.banks;
            offering &= !lane.banks;
            let bound = self.device.earliest_outside(command, lane).max(from);
            while banks != 0 && bound <= best {
                let bank = banks.trailing_zeros() as usize;
                banks &= banks - 1;
                let Offer { ready, rank, .. } = offers[bank];
                let mut time = ready.max(bound);
                if grouped {
                    time = time.max(self.device.earliest_group(command, bank));
                }
                if (time, rank) < (best, least) {
                    (best, least, winner) = (time, rank, bank);
                }
            }
        }
        if winner != usize::MAX {
            *turn = Turn { time: best, pick: self.pick(class, winner) };
        }
    }

    #[inline]
    fn pick(&self, class: usize, bank: usize) -> Pick {
        let Offer { entry, rank, .. } = self.board.offers(class)[bank];
        Pick { command: COMMANDS[class], bank, kind: kind_of(class), entry, rank }
    }

    /// A bank offers the command of a class for a request.
    #[inline]
    fn offer(&mut self, bank: usize, class: usize, entry: u32) {
        let (command, kind) = (COMMANDS[class], kind_of(class));
        let Entry { token, sequence, .. } = *self.queue.entry(entry);
        let (write, column) = (kind == WRITE, command.is_column());
        let candidate = Candidate { token, write, column, bank: to_u32(bank), sequence };
        let opener = column && self.banks[bank].opener == kind;
        let weight = if opener { OPENER } else { ORDINARY };
        let rank = weight | self.scheduler.rank(&candidate);
        let ready = self.device.earliest_own(command, bank);
        self.board.note(bank, class, Offer { entry, ready, rank });
    }

    /// With order kept, of all ordinary candidates only the first counts.
    fn first_in_order(&self, bus: usize, from: u64, turn: &mut Turn) {
        let mut first = Turn::NEVER;
        let mut first_class = 0;
        for class in 0..CLASSES {
            let mut banks = self.board.offering[class];
            while banks != 0 {
                let bank = banks.trailing_zeros() as usize;
                banks &= banks - 1;
                let pick = self.pick(class, bank);
                let time = self.device.earliest(pick.command, bank).max(from);
                if pick.rank < ORDINARY {
                    if self.classes(bus).contains(&class) {
                        turn.offer(time, pick);
                    }
                } else if pick.rank < first.pick.rank {
                    first = Turn { time, pick };
                    first_class = class;
                }
            }
        }
        if self.classes(bus).contains(&first_class) {
            turn.offer(first.time, first.pick);
        }
    }

    /// Rows that nothing has used for long.
    fn weigh_idle(&self, mut banks: u64, from: u64, turn: &mut Turn) {
        while banks != 0 {
            let bank = banks.trailing_zeros() as usize;
            banks &= banks - 1;
            let command = Command::Precharge;
            let idle = self.banks[bank].used + to_u64(self.options.page_timeout);
            let time = idle.max(self.device.earliest(command, bank)).max(from);
            let rank = IDLE | to_u64(bank);
            turn.offer(time, Pick { command, bank, kind: READ, entry: NONE, rank });
        }
    }

    /// The next command of a due refresh; requests that opened a row and copies that
    /// have begun go first.
    fn weigh_refresh(&self, due: Due, from: u64, turn: &mut Turn) {
        let banks = due.bank..due.bank + due.banks;
        let copying = self.taken.begun & due.mask() != 0;
        if copying || self.banks[banks].iter().any(|note| note.opener != KINDS) {
            return;
        }
        let open = self.open & due.mask() != 0;
        let command = match (due.banks, open) {
            (1, true) => Command::Precharge,
            (1, false) => Command::RefreshBank,
            (_, true) => Command::PrechargeAll,
            (_, false) => Command::RefreshAll,
        };
        let time = self.device.earliest(command, due.bank).max(from);
        let rank = MAINTENANCE | to_u64(due.lane);
        turn.offer(time, Pick { command, bank: due.bank, kind: due.lane, entry: NONE, rank });
    }

    /// Notes anew what the changed banks offer; answers which banks those are.
    pub(super) fn note_stale(&mut self) -> u64 {
        let changed = std::mem::take(&mut self.board.stale);
        let mut banks = changed;
        while banks != 0 {
            self.note(banks.trailing_zeros() as usize);
            banks &= banks - 1;
        }
        changed
    }

    fn note(&mut self, bank: usize) {
        self.board.clear(bank);
        let held = (self.held | self.taken.banks) >> bank & 1 == 1;
        let open = self.device.open_row(bank);
        if open == CLOSED {
            if !held {
                self.note_openings(bank);
            }
            return;
        }
        let guarded = held || self.taken.guarded >> bank & 1 == 1;
        for kind in [READ, WRITE] {
            self.note_access(bank, kind, guarded);
        }
        if !held && self.banks[bank].opener == KINDS && self.may_close(bank) {
            self.note_closings(bank, open);
        }
    }

    #[inline]
    fn note_access(&mut self, bank: usize, kind: usize, guarded: bool) {
        let list = self.queue.list(bank, kind);
        if list.hit == NONE {
            return;
        }
        if self.banks[bank].opener != kind {
            let overtakes = self.in_order && list.hit != list.head;
            if guarded || overtakes || !self.drain.serves(kind) {
                return;
            }
        }
        self.offer(bank, ACCESSES + kind, list.hit);
    }

    fn note_openings(&mut self, bank: usize) {
        for kind in [READ, WRITE] {
            let head = self.queue.list(bank, kind).first();
            if head != NONE && self.drain.serves(kind) {
                self.offer(bank, OPENINGS + kind, head);
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
    fn note_closings(&mut self, bank: usize, open: u32) {
        for kind in [READ, WRITE] {
            let list = self.queue.list(bank, kind);
            if list.first() == NONE || !self.drain.serves(kind) {
                continue;
            }
            let miss = if self.options.row_hit_first || self.in_order {
                // Older hits keep the row open; younger ones until the cap.
                let capped = self.in_order || self.banks[bank].served >= self.options.hit_cap;
                let closes = list.hit != list.head && (list.hit == NONE || capped);
                if closes { list.head } else { NONE }
            } else {
                self.queue.first_miss(bank, kind, open)
            };
            if miss != NONE {
                self.offer(bank, CLOSINGS + kind, miss);
            }
        }
        if self.options.page_policy == PagePolicy::Timeout {
            let hits = [READ, WRITE].map(|kind| self.queue.list(bank, kind).hit);
            if hits == [NONE; KINDS] {
                self.board.idle |= 1 << bank;
            }
        }
    }
}
