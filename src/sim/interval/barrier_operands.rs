//! What a barrier instruction says of its barrier, as far as the trace tells.
//!
//! `BAR.SYNC id[, threads]`: either operand may be an immediate or a register,
//! whose value no trace has. Tracers list no immediates (before late version 4),
//! the last one (until version 5), or the first two.

use gpumodel_core::isa::Instruction;
use gpumodel_core::units::WARP_LANES;

/// Barriers of a CTA that have a number (PTX ISA, `barrier{.cta}`).
const NUMBERED: u8 = 16;

/// What a warp meets at a barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BarrierOperands {
    /// Which of the CTA's barriers: its number, or 16 and the warps it counts
    /// where the trace tells no more of it than this count.
    pub(crate) place: u8,
    /// Warps that must arrive; 0: all of the CTA that have not ended.
    pub(crate) warps: u16,
    /// The warp waits there; else it arrives and goes on.
    pub(crate) waits: bool,
    /// The number or the count is not the trace's word.
    pub(crate) assumed: bool,
}

impl BarrierOperands {
    /// The place at which a worker gets its task: beyond all that traces can name.
    pub(crate) const TASK: u8 = u8::MAX - 1;

    /// The barrier 0 of the whole CTA.
    pub(super) const fn whole(waits: bool) -> Self {
        Self { place: 0, warps: 0, waits, assumed: false }
    }

    /// Where the warps of a worker wait for their task.
    pub(super) const fn for_task() -> Self {
        Self { place: Self::TASK, warps: 0, waits: true, assumed: false }
    }

    /// In one word, for keeping; [`BarrierOperands::unpacked`] is its inverse.
    pub(super) const fn packed(self) -> u32 {
        let [low, high] = self.warps.to_le_bytes();
        u32::from_le_bytes([self.place, low, high, self.waits as u8 | (self.assumed as u8) << 1])
    }

    /// From its packed form; bits beyond are ignored.
    pub(super) const fn unpacked(word: u32) -> Self {
        let [place, low, high, flags] = word.to_le_bytes();
        let warps = u16::from_le_bytes([low, high]);
        Self { place, warps, waits: flags & 1 != 0, assumed: flags & 2 != 0 }
    }

    /// What `instruction` says.
    pub(super) fn of(instruction: &Instruction, waits: bool) -> Self {
        let registers = instruction.sources.iter().filter(|r| !r.is_constant()).count();
        let mut told = instruction.immediates.iter().map(|&value| Told::of(value));
        let (first, second) = (told.next(), told.next());
        match (registers, first, second) {
            (0, Some(Told::Number(place)), None) => Self { place, ..Self::whole(waits) },
            (0, Some(Told::Number(place)), Some(Told::Number(0))) => {
                Self { place, ..Self::whole(waits) }
            }
            (0, Some(Told::Number(place)), Some(Told::Warps(warps))) => {
                Self { place, warps, waits, assumed: false }
            }
            (_, Some(Told::Warps(warps)), _) => Self {
                place: NUMBERED.saturating_add(u8::try_from(warps).unwrap_or(u8::MAX)),
                warps,
                waits,
                assumed: true,
            },
            _ => Self { assumed: true, ..Self::whole(waits) },
        }
    }
}

/// An immediate of a barrier instruction: numbers are below 16, counts are
/// multiples of a warp's threads.
enum Told {
    Number(u8),
    Warps(u16),
    Nothing,
}

impl Told {
    fn of(value: i64) -> Self {
        let number = u8::try_from(value).ok().filter(|&number| number < NUMBERED);
        let lanes = u64::try_from(value).unwrap_or(0);
        let warps = u16::try_from(lanes.div_ceil(gpumodel_core::units::to_u64(WARP_LANES)));
        match (number, warps) {
            (Some(number), _) => Self::Number(number),
            (None, Ok(warps)) if warps > 0 => Self::Warps(warps),
            _ => Self::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::BarrierOperands;
    use gpumodel_core::isa::{Instruction, Register, RegisterFile};

    fn of(registers: u16, immediates: &[i64]) -> (u8, u16, bool) {
        let sources = (0..registers).map(|n| Register::new(RegisterFile::General, n).unwrap());
        let instruction = Instruction {
            pc: 0,
            opcode: 0,
            destinations: Box::default(),
            sources: sources.collect(),
            width: 0,
            immediates: immediates.into(),
            line: None,
        };
        let meeting = BarrierOperands::of(&instruction, true);
        (meeting.place, meeting.warps, meeting.assumed)
    }

    #[test]
    fn number_and_count_are_taken_where_the_trace_has_them() {
        assert_eq!(of(0, &[0, 0]), (0, 0, false), "BAR.SYNC 0");
        assert_eq!(of(0, &[3, 0]), (3, 0, false), "BAR.SYNC 3");
        assert_eq!(of(0, &[3, 96]), (3, 3, false), "BAR.SYNC 3, 96");
        assert_eq!(of(0, &[3, 100]), (3, 4, false), "a count is rounded up to warps");
        assert_eq!(of(0, &[0]), (0, 0, false), "one immediate: BAR.SYNC 0");
        assert_eq!(of(0, &[5]), (5, 0, false), "one immediate: BAR.SYNC 5");
    }

    #[test]
    fn the_packed_form_is_a_bijection() {
        for (place, warps, waits) in [(0, 0, true), (15, 32, false), (255, u16::MAX, true)] {
            for assumed in [true, false] {
                let meeting = BarrierOperands { place, warps, waits, assumed };
                assert_eq!(BarrierOperands::unpacked(meeting.packed()), meeting);
            }
        }
    }

    #[test]
    fn what_the_trace_leaves_out_is_assumed() {
        assert_eq!(of(0, &[]), (0, 0, true), "no immediates at all");
        assert_eq!(of(0, &[128]), (20, 4, true), "the last immediate is the count");
        assert_eq!(of(1, &[64, 0]), (18, 2, true), "BAR.SYNC R0, 64");
        assert_eq!(of(1, &[1]), (0, 0, true), "BAR.SYNC 1, R0: its count is not known");
        assert_eq!(of(2, &[0]), (0, 0, true), "BAR.SYNC R0, R1");
        assert_eq!(of(0, &[-1]), (0, 0, true));
    }
}
