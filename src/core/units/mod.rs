//! Cycles, clocks, bytes, addresses, ids and seeds: the types that every other crate uses.
//!
//! Imports nothing of the project. Independent of any GPU.

mod dim;
mod id;
mod messages;
mod number;
mod output;
mod output_folder;

pub use dim::Dim3;
pub use id::{AppId, JobId, KernelId, SmId, sorted_mix};
pub use messages::{
    counted, did_you_mean, in_words, message_in_words, nearest, quoted, shown, with_causes,
};
pub use number::{ByteCount, to_u8, to_u16, to_u32, to_u64, to_usize};
pub use output::{
    OpenStream, Scratch, WholeFile, WholeFolder, check_writable, is_stream, remove_unfinished,
};
pub use output_folder::{FolderPurpose, remove_if_only_marked};

/// A point in time or a duration in cycles of the SM clock, unless a name says
/// otherwise (`_dram_cycles`, `_l2_cycles`).
pub type Cycle = u64;

/// Bytes of one sector: the unit in which caches and DRAM count accesses.
pub const SECTOR_BYTES: u64 = 32;

/// Threads of one warp, on every NVIDIA GPU so far.
pub const WARP_LANES: usize = 32;

/// How a part's clock runs against the SM clock, as two frequencies in kHz.
///
/// The conversion between clock domains is exact. Edges are counted from a common edge at
/// cycle 0. Both directions are integer arithmetic, so results never depend on rounding of floats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockRatio {
    part_khz: u64,
    core_khz: u64,
}

impl ClockRatio {
    /// A part at `part_khz`, counted in cycles of an SM clock at `core_khz`; both above zero.
    ///
    /// # Panics
    /// When a frequency is zero: model files are checked for that at the door.
    #[must_use]
    pub fn new(part_khz: u64, core_khz: u64) -> Self {
        assert!(part_khz > 0 && core_khz > 0, "a clock of 0 kHz never ticks");
        Self { part_khz, core_khz }
    }

    /// The first edge of the part's clock at or after the core cycle `core`.
    #[must_use]
    #[inline]
    pub fn part_edge_at_or_after(self, core: Cycle) -> u64 {
        wide_mul_div_ceil(core, self.part_khz, self.core_khz)
    }

    /// The first core cycle at or after edge `part` of the part's clock.
    #[must_use]
    #[inline]
    pub fn core_cycle_at_or_after(self, part: u64) -> Cycle {
        wide_mul_div_ceil(part, self.core_khz, self.part_khz)
    }

    /// True when both clocks tick together.
    #[must_use]
    pub fn is_unity(self) -> bool {
        self.part_khz == self.core_khz
    }
}

#[inline]
fn wide_mul_div_ceil(value: u64, numerator: u64, denominator: u64) -> u64 {
    if numerator == denominator {
        return value;
    }
    if let Some(product) = value.checked_mul(numerator) {
        return product.div_ceil(denominator);
    }
    let wide = (u128::from(value) * u128::from(numerator)).div_ceil(u128::from(denominator));
    u64::try_from(wide).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::ClockRatio;

    #[test]
    fn edges_round_up_in_both_directions() {
        let dram = ClockRatio::new(850_000, 1_132_000);
        assert_eq!(dram.part_edge_at_or_after(0), 0);
        assert_eq!(dram.part_edge_at_or_after(4), 4);
        assert_eq!(dram.core_cycle_at_or_after(3), 4);
        for core in 0..10_000 {
            let edge = dram.part_edge_at_or_after(core);
            assert!(dram.core_cycle_at_or_after(edge) >= core);
        }
    }
}
