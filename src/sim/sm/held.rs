//! Sectors that wait at the end of an L1 bank's pipeline.
//!
//! Where the L1's banks work in order, a sector for which there is no entry stays
//! at the end of its bank's pipeline, which fills up behind it; other banks go on.

use std::collections::VecDeque;

use gpumodel_core::units::{Cycle, to_usize};

use super::super::chip::Chip;
use super::super::coalesce::Piece;
use super::Sm;
use super::load_store::{Entry, Path};
use super::serve::Sector;

/// One sector of an instruction.
#[derive(Debug)]
struct Held {
    /// Its instruction, without lines.
    entry: Entry,
    piece: Piece,
}

/// The banks' pipelines, as far as they are held up.
#[derive(Debug, Default)]
pub(super) struct Banks {
    waiting: Vec<VecDeque<Held>>,
    held: usize,
}

impl Banks {
    /// Pipelines of `banks` banks in which nothing waits.
    pub(super) fn new(banks: u32) -> Self {
        Self { waiting: (0..banks).map(|_| VecDeque::new()).collect(), held: 0 }
    }
}

impl Sm {
    /// Looks a sector up, or lets it wait in its bank's pipeline.
    pub(super) fn banked_sector(
        &mut self,
        entry: &Entry,
        piece: Piece,
        lookup: Cycle,
        chip: &mut Chip,
    ) -> Sector {
        if self.params.l1_bank_bytes == 0 || !matches!(entry.path, Path::Cached(_)) {
            return self.sector(entry, piece, lookup, chip);
        }
        let bank = self.bank_of(piece.address);
        if self.banks.waiting[bank].is_empty() {
            let outcome = self.sector(entry, piece, lookup, chip);
            if !matches!(outcome, Sector::NoEntry) {
                return outcome;
            }
        }
        if self.banks.waiting[bank].len() as u64 >= self.params.l1_latency {
            return Sector::NoEntry;
        }
        self.banks.held += 1;
        self.banks.waiting[bank].push_back(Held { entry: entry.bare(), piece });
        Sector::Sent
    }

    /// The bank of the L1 that holds an address.
    pub(super) fn bank_of(&self, address: u64) -> usize {
        let bank = address / self.params.l1_bank_bytes % u64::from(self.params.l1_banks);
        to_usize(bank)
    }

    /// Lets the sectors at the ends of the pipelines try again.
    pub(super) fn retry_held(&mut self, chip: &mut Chip) {
        if self.banks.held == 0 {
            return;
        }
        for bank in 0..self.banks.waiting.len() {
            while let Some(held) = self.banks.waiting[bank].pop_front() {
                if !self.retry_sector(&held, chip) {
                    self.banks.waiting[bank].push_front(held);
                    break;
                }
                self.banks.held -= 1;
            }
        }
    }

    /// Looks a sector up that has waited; false when it must go on waiting.
    fn retry_sector(&mut self, held: &Held, chip: &mut Chip) -> bool {
        let now = chip.queue.now();
        let entry = &held.entry;
        // It has passed the pipeline.
        let lookup = now.saturating_sub(self.params.l1_latency);
        match self.look_up(entry, held.piece, lookup, chip) {
            Sector::Known(cycle) => self.answered(entry.operation, cycle, chip),
            Sector::NoEntry => return false,
            Sector::Sent | Sector::NoPort(_) => {}
        }
        true
    }
}
