//! Control bits: what the compiler decided about the issue of an instruction.
//!
//! From Volta on each instruction of 128 bits has its own, at the places that are published in
//! Jia et al., "Dissecting the NVidia Turing T4 GPU via Microbenchmarking" (arXiv 1903.07486).

/// The control bits of an instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ControlBits {
    /// Cycles before the warp's next instruction.
    pub stall: u8,
    /// The scheduler may turn to another warp.
    pub yields: bool,
    /// The barrier that is set until the results are written.
    pub write_barrier: Option<u8>,
    /// The barrier that is set until the sources are read.
    pub read_barrier: Option<u8>,
    /// One bit for each of the six barriers that the instruction waits for.
    pub waits: u8,
    /// One bit for each source that stays in the operand cache.
    pub reuse: u8,
}

impl ControlBits {
    /// Those in an encoding, its lower half first.
    #[must_use]
    pub fn read(encoding: [u64; 2]) -> Self {
        let field = |first: u32, bits: u32| {
            let value = encoding[1] >> (first - 64) & ((1 << bits) - 1);
            u8::try_from(value).unwrap_or(0)
        };
        let barrier = |first| Some(field(first, 3)).filter(|&number| number < 7);
        Self {
            stall: field(105, 4),
            yields: field(109, 1) == 0,
            write_barrier: barrier(110),
            read_barrier: barrier(113),
            waits: field(116, 6),
            reuse: field(122, 3),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ControlBits;
    use crate::sass::text::lines;

    const TEXT: &str = include_str!("../../../tests/data/trace_run/kernels.sass");

    #[test]
    fn fields_lie_where_they_are_published() {
        let bits = ControlBits::read([0x0000_5a00_0704_8625, 0x040f_e200_078e_0205]);
        let expected = ControlBits { stall: 1, reuse: 1, ..ControlBits::default() };
        assert_eq!(bits, expected);
        // A load that sets barrier 2 and waits for 0 and 1, of a word that is made here.
        let upper = (3 | 2 << 5 | 7 << 8 | 0b11 << 11) << 41;
        let bits = ControlBits::read([0, upper]);
        assert_eq!((bits.stall, bits.yields, bits.waits), (3, true, 0b11));
        assert_eq!((bits.write_barrier, bits.read_barrier), (Some(2), None));
    }

    #[test]
    fn the_disassembler_says_reuse_where_the_bits_do() {
        let shown = |code: &str| code.contains(".reuse");
        let codes = TEXT.lines().filter(|line| line.contains(';'));
        let all = lines(TEXT).unwrap();
        assert_eq!(codes.clone().count(), all.len());
        for (code, line) in codes.zip(&all) {
            let bits = ControlBits::read(line.encoding);
            assert_eq!(bits.reuse != 0, shown(code), "{code}");
        }
    }

    #[test]
    fn who_uses_what_is_loaded_waits_for_its_barrier() {
        let all = lines(TEXT).unwrap();
        let mut loads = 0;
        for (index, line) in all.iter().enumerate().filter(|(_, line)| line.name() == "LDG") {
            let barrier = ControlBits::read(line.encoding).write_barrier.unwrap();
            let user = all[index + 1..].iter().find(|user| {
                user.operands.iter().skip(1).any(|one| one.value == line.operands[0].value)
            });
            if let Some(user) = user {
                let waits = |line: &crate::sass::text::Line| {
                    ControlBits::read(line.encoding).waits >> barrier & 1 == 1
                };
                let place = all.iter().position(|one| one.pc == user.pc).unwrap();
                assert!(all[index + 1..=place].iter().any(waits), "PC {:#x}", user.pc);
                loads += 1;
            }
        }
        assert!(loads > 5);
    }
}
