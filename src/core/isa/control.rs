//! Control bits: what the compiler decided about the issue of an instruction.
//!
//! From Volta on each instruction of 128 bits has its own, at the places that are published in
//! Jia et al., "Dissecting the NVidia Turing T4 GPU via Microbenchmarking" (arXiv 1903.07486).

/// The control bits of an instruction, and which of its listed sources are marked `.reuse`.
///
/// | bits | content |
/// |---|---|
/// | 0-3 | stall count: cycles from its issue before the warp may issue again |
/// | 4 | yield, inverted: 0 asks the scheduler to turn to another warp |
/// | 5-7 | write barrier, set until the results are written; 7: none |
/// | 8-10 | read barrier, set until the sources are read; 7: none |
/// | 11-16 | wait mask: one bit for each of six barriers that must be clear before its issue |
/// | 17-20 | reuse: one bit for each operand slot whose register stays in the operand cache |
/// | 21-31 | the same for the first eleven registers of [`super::Instruction::sources`] |
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ControlBits(u32);

/// Bits of the encoding, before those of the listed sources.
const ENCODED: u32 = 21;
/// No barrier.
const NO_BARRIER: u32 = 7;

impl ControlBits {
    /// Those in the upper half of an encoding of 128 bits; `marked` says of the listed sources
    /// in turn whether the disassembler shows `.reuse`.
    #[must_use]
    pub fn read(upper_half: u64, marked: impl Iterator<Item = bool>) -> Self {
        let encoded = u32::try_from(upper_half >> 41 & ((1 << ENCODED) - 1)).unwrap_or(0);
        let bits = marked.zip(ENCODED..32).map(|(mark, at)| u32::from(mark) << at);
        Self(bits.fold(encoded, |all, bit| all | bit))
    }

    /// From one word; [`ControlBits::packed`] is the inverse.
    #[must_use]
    pub const fn unpacked(word: u32) -> Self {
        Self(word)
    }

    /// As one word.
    #[must_use]
    pub const fn packed(self) -> u32 {
        self.0
    }

    const fn field(self, first: u32, bits: u32) -> u32 {
        self.0 >> first & ((1 << bits) - 1)
    }

    fn barrier(self, first: u32) -> Option<u8> {
        let number = self.field(first, 3);
        u8::try_from(number).ok().filter(|_| number < NO_BARRIER)
    }

    /// Cycles from its issue before the warp may issue its next instruction.
    #[must_use]
    pub const fn stall(self) -> u32 {
        self.field(0, 4)
    }

    /// The scheduler is asked to turn to another warp.
    #[must_use]
    pub const fn yields(self) -> bool {
        self.field(4, 1) == 0
    }

    /// The barrier that is set until the results are written: their latency varies.
    #[must_use]
    pub fn write_barrier(self) -> Option<u8> {
        self.barrier(5)
    }

    /// The barrier that is set until the sources are read.
    #[must_use]
    pub fn read_barrier(self) -> Option<u8> {
        self.barrier(8)
    }

    /// One bit for each of the six barriers that the instruction waits for.
    #[must_use]
    pub const fn waits(self) -> u32 {
        self.field(11, 6)
    }

    /// One bit for each operand slot whose register stays in the operand cache.
    #[must_use]
    pub const fn reuse(self) -> u32 {
        self.field(17, 4)
    }

    /// Whether the listed source of that index is marked `.reuse`.
    #[must_use]
    pub const fn marks(self, source: usize) -> bool {
        source < 11 && self.0 >> (ENCODED as usize + source) & 1 == 1
    }
}

#[cfg(test)]
mod tests {
    use super::ControlBits;

    #[test]
    fn fields_lie_where_they_are_published() {
        // IMAD.WIDE R4, R7.reuse, -0x5, c[0x0][0x168], as nvdisasm shows it.
        let bits = ControlBits::read(0x040f_e200_078e_0205, [true].into_iter());
        assert_eq!((bits.stall(), bits.yields(), bits.reuse(), bits.waits()), (1, false, 1, 0));
        assert_eq!((bits.write_barrier(), bits.read_barrier()), (None, None));
        assert_eq!([0, 1, 11].map(|source| bits.marks(source)), [true, false, false]);
        // A load that sets barrier 2 and waits for 0 and 1, of a word that is made here.
        let upper = (3 | 2 << 5 | 7 << 8 | 0b11 << 11) << 41;
        let bits = ControlBits::read(upper, std::iter::empty());
        assert_eq!((bits.stall(), bits.yields(), bits.waits()), (3, true, 0b11));
        assert_eq!((bits.write_barrier(), bits.read_barrier()), (Some(2), None));
        assert_eq!(ControlBits::unpacked(bits.packed()), bits);
    }
}
