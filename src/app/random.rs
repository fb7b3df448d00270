//! Random numbers for mixes and queues.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use gpumodel_core::units::{to_u64, to_usize};

/// A sequence of random numbers that depends only on its seed.
#[derive(Clone, Debug)]
pub(super) struct Draws {
    seed: u64,
    count: u64,
}

impl Draws {
    /// The sequence of `seed`.
    pub(super) fn new(seed: u64) -> Self {
        Self { seed, count: 0 }
    }

    /// A number below `bound`, which is above 0. The bias is below 2^-40 for the
    /// lengths that a queue may have.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        self.count += 1;
        let random = u128::from(xxh3_64_with_seed(&self.count.to_le_bytes(), self.seed));
        let scaled = (random * u128::from(to_u64(bound))) >> 64;
        to_usize(u64::try_from(scaled).expect("below a bound of 64 bits"))
    }
}
