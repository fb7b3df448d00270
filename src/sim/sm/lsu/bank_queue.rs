//! Sectors that wait at the end of an L1 bank's pipeline.
//!
//! Where the L1's banks work in order, a sector for which there is no entry stays
//! at the end of its bank's pipeline, which fills up behind it; other banks continue.

use std::collections::VecDeque;

use gpumodel_core::units::{Cycle, to_usize};

use crate::gpu::shared_state::SharedState;
use crate::sm::Sm;
use crate::sm::coalesce::SectorRequest;
use crate::sm::lsu::queue::{Entry, Route};
use crate::sm::lsu::{Outcome, Wait};

/// One sector of an instruction.
#[derive(Debug)]
struct QueuedSector {
    /// Its instruction, without lines.
    entry: Entry,
    sector_request: SectorRequest,
}

/// The banks' pipelines, as far as they are held up.
#[derive(Debug, Default)]
pub(in crate::sm) struct L1BankQueues {
    waiting: Vec<VecDeque<QueuedSector>>,
    held: usize,
}

impl L1BankQueues {
    /// Pipelines of `banks` banks in which nothing waits.
    pub(in crate::sm) fn new(banks: u32) -> Self {
        Self { waiting: (0..banks).map(|_| VecDeque::new()).collect(), held: 0 }
    }
}

impl Sm {
    /// Looks a sector up, or lets it wait in its bank's pipeline.
    pub(in crate::sm) fn banked_sector(
        &mut self,
        entry: &Entry,
        sector_request: SectorRequest,
        lookup: Cycle,
        shared_state: &mut SharedState,
    ) -> Outcome {
        if self.params.l1_bank_bytes == 0 || !matches!(entry.route, Route::Cached(_)) {
            return self.sector(entry, sector_request, lookup, shared_state);
        }
        let bank = self.bank_of(sector_request.address);
        if self.lsu.banks.waiting[bank].is_empty() {
            let outcome = self.sector(entry, sector_request, lookup, shared_state);
            if outcome.wait != Some(Wait::Entry) {
                return outcome;
            }
        }
        if self.lsu.banks.waiting[bank].len() as u64 >= self.params.l1_latency {
            return Outcome::waits(sector_request, Wait::Entry);
        }
        self.lsu.banks.held += 1;
        self.lsu.banks.waiting[bank]
            .push_back(QueuedSector { entry: entry.bare(), sector_request });
        Outcome { sent: 1, ..Outcome::default() }
    }

    /// The bank of the L1 that holds an address.
    pub(in crate::sm) fn bank_of(&self, address: u64) -> usize {
        let bank = address / self.params.l1_bank_bytes % u64::from(self.params.l1_banks);
        to_usize(bank)
    }

    /// Lets the sectors at the ends of the pipelines try again.
    pub(in crate::sm) fn retry_held(&mut self, shared_state: &mut SharedState) {
        if self.lsu.banks.held == 0 {
            return;
        }
        for bank in 0..self.lsu.banks.waiting.len() {
            while let Some(held) = self.lsu.banks.waiting[bank].pop_front() {
                if !self.retry_sector(&held, shared_state) {
                    self.lsu.banks.waiting[bank].push_front(held);
                    break;
                }
                self.lsu.banks.held -= 1;
            }
        }
    }

    /// Looks a sector up that has waited; false when it must continue waiting.
    fn retry_sector(&mut self, held: &QueuedSector, shared_state: &mut SharedState) -> bool {
        let now = shared_state.queue.now();
        let entry = &held.entry;
        // It has passed the pipeline.
        let lookup = now.saturating_sub(self.params.l1_latency);
        let outcome = self.look_up(entry, held.sector_request, lookup, shared_state);
        if outcome.wait.is_some() {
            return false;
        }
        if outcome.known != 0 {
            self.answered(entry.operation, 1, outcome.known, shared_state);
        }
        true
    }
}
