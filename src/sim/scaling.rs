//! Counters of a part as counters of the whole.

use crate::counters::{CacheCounts, ConstantCounts, FetchCounts, KernelCounts};

impl KernelCounts {
    /// Adds what another run of the same launch counted; times stay this one's.
    pub fn join(&mut self, other: &Self) {
        self.ctas_started += other.ctas_started;
        self.ctas_retired += other.ctas_retired;
        self.ctas_killed += other.ctas_killed;
        self.lost_instructions += other.lost_instructions;
        self.warp_instructions += other.warp_instructions;
        self.added_instructions += other.added_instructions;
        self.workers += other.workers;
        self.tasks += other.tasks;
        self.thread_instructions += other.thread_instructions;
        self.by_unit.iter_mut().zip(other.by_unit).for_each(|(own, more)| *own += more);
        self.unknown_opcodes += other.unknown_opcodes;
        self.generic_accesses += other.generic_accesses;
        self.shared_passes += other.shared_passes;
        let none = CacheCounts::default();
        self.l1.grow(&none, &other.l1);
        self.l2.grow(&none, &other.l2);
        self.fetch.grow(&FetchCounts::default(), &other.fetch);
        self.fetch.l2.grow(&none, &other.fetch.l2);
        self.constant.grow(&ConstantCounts::default(), &other.constant);
        self.constant.l2.grow(&none, &other.constant.l2);
        self.translation.join(&other.translation);
        self.dram_reads += other.dram_reads;
        self.dram_writes += other.dram_writes;
        self.row_hits += other.row_hits;
        self.row_misses += other.row_misses;
        self.stalls.iter_mut().zip(other.stalls).for_each(|(own, more)| *own += more);
        self.slot_cycles += other.slot_cycles;
        self.held_slots += other.held_slots;
        self.assumed_barriers += other.assumed_barriers;
        self.assumed_waits += other.assumed_waits;
    }

    /// Divides the DRAM's accesses into hits and misses of rows as before.
    fn share_rows(&mut self) {
        let accesses = self.dram_reads + self.dram_writes;
        let before = self.row_hits + self.row_misses;
        #[allow(clippy::cast_precision_loss, reason = "counts are below 2^53")]
        let factor = if before == 0 { 0.0 } else { accesses as f64 / before as f64 };
        self.row_hits = product(self.row_hits, factor).min(accesses);
        self.row_misses = if before == 0 { 0 } else { accesses - self.row_hits };
    }

    /// Sets the instructions to what the trace says; the mix follows.
    pub fn settle_instructions(&mut self, warps: u64, threads: u64) {
        let mixed: u64 = self.by_unit.iter().sum();
        if let Some(largest) = self.by_unit.iter_mut().max() {
            *largest = (*largest + warps).saturating_sub(mixed);
        }
        self.warp_instructions = warps;
        self.thread_instructions = threads;
    }

    /// The counters of a whole launch from those of `runs` samples of it that have
    /// one part in `factor` of its instructions together. Counts that grow with the
    /// CTAs are multiplied; the L2's misses of code and constants, which all CTAs
    /// share, are taken once.
    pub fn extrapolate(&mut self, factor: f64, runs: u64) {
        let shared = self.fetch.l2.misses() + self.constant.l2.misses();
        let times = |count: &mut u64| *count = product(*count, factor);
        for cache in [&mut self.l1, &mut self.l2, &mut self.fetch.l2, &mut self.constant.l2] {
            let reads = [&mut cache.read_hits, &mut cache.read_merges, &mut cache.read_misses];
            let writes = [&mut cache.write_hits, &mut cache.write_merges, &mut cache.write_misses];
            reads.into_iter().chain(writes).for_each(times);
        }
        for cache in [&mut self.fetch.l2, &mut self.constant.l2] {
            let misses = product(cache.read_misses, 1.0 / factor) / runs;
            cache.read_hits += cache.read_misses.saturating_sub(misses);
            cache.read_misses = misses;
        }
        self.growing().into_iter().for_each(times);
        self.by_unit.iter_mut().for_each(times);
        let own = self.dram_reads.saturating_sub(shared);
        self.dram_reads = product(own, factor) + shared.min(self.dram_reads) / runs;
        self.share_rows();
    }

    /// The counts that grow with the CTAs, but for those by unit, of the L1 and L2, and of
    /// reads from DRAM.
    fn growing(&mut self) -> [&mut u64; 18] {
        let fetch = &mut self.fetch;
        let constant = &mut self.constant;
        [
            &mut self.warp_instructions,
            &mut self.thread_instructions,
            &mut self.unknown_opcodes,
            &mut self.generic_accesses,
            &mut self.assumed_barriers,
            &mut self.assumed_waits,
            &mut fetch.inner_lines,
            &mut fetch.inner_misses,
            &mut fetch.inner_merges,
            &mut fetch.outer_lines,
            &mut fetch.outer_misses,
            &mut constant.accesses,
            &mut constant.without_address,
            &mut constant.passes,
            &mut constant.misses,
            &mut constant.merges,
            &mut constant.outer_misses,
            &mut self.dram_writes,
        ]
    }
}

#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "counts are below 2^53 and factors positive"
)]
fn product(count: u64, factor: f64) -> u64 {
    (count as f64 * factor).round() as u64
}

#[cfg(test)]
mod tests {
    use crate::counters::KernelCounts;

    #[test]
    fn counts_grow_but_code_is_fetched_once() {
        let mut counts =
            KernelCounts { warp_instructions: 10, dram_reads: 108, ..Default::default() };
        counts.l2.read_misses = 100;
        counts.fetch.l2.read_hits = 2;
        counts.fetch.l2.read_misses = 8;
        let other = counts.clone();
        counts.join(&other);
        counts.extrapolate(8.0, 2);
        assert_eq!(counts.warp_instructions, 160);
        assert_eq!(counts.l2.read_misses, 1600);
        assert_eq!(counts.fetch.l2.read_misses, 8);
        assert_eq!(counts.fetch.l2.accesses(), 160);
        assert_eq!(counts.dram_reads, 1608);
    }
}
