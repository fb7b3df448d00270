//! Where a kernel's code lies: cache lines by instruction.
//!
//! Lines are numbered over all the code of a run, so that two kernels never
//! share one. The order and the neighbours of lines are those of the PCs; a gap
//! that no warp executes is kept as long as the prefetcher can reach into it.

use crate::config::Fetch;
use gpumodel_core::isa::Instruction;
use gpumodel_core::units::to_usize;

/// The line of every instruction of one code.
#[derive(Debug)]
pub(crate) struct CodeLines {
    of: Vec<u32>,
    end: u32,
}

impl CodeLines {
    /// The lines of `code`, from number `first` on; none without instruction
    /// caches.
    pub(super) fn new(spec: Option<&Fetch>, code: &[Instruction], first: u32) -> Self {
        let Some(spec) = spec else { return Self { of: Vec::new(), end: first } };
        let line = |instruction: &Instruction| instruction.pc / u64::from(spec.line_bytes);
        let mut distinct: Vec<u64> = code.iter().map(line).collect();
        distinct.sort_unstable();
        distinct.dedup();
        let longest = u64::from(spec.prefetch_lines) + 1;
        let mut numbers = Vec::with_capacity(distinct.len());
        let (mut number, mut before) = (first, distinct.first().copied().unwrap_or(0));
        for &line in &distinct {
            number += u32::try_from((line - before).min(longest)).expect("a prefetch is short");
            numbers.push(number);
            before = line;
        }
        let place = |wanted: u64| distinct.partition_point(|&line| line < wanted);
        let of = code.iter().map(|instruction| numbers[place(line(instruction))]).collect();
        Self { of, end: numbers.last().map_or(first, |last| last + 1) }
    }

    /// The line of an instruction.
    pub(crate) fn of(&self, instruction: u32) -> u32 {
        self.of[to_usize(instruction)]
    }

    /// One past the last line.
    pub(crate) fn end(&self) -> u32 {
        self.end
    }

    /// How many of `count` instructions from `first` on, one after the other, are
    /// in lines that are `there`, which is asked for their place and their line.
    pub(crate) fn run(&self, first: u32, count: u32, there: impl Fn(u32, u32) -> bool) -> u32 {
        let lines = &self.of[to_usize(first)..to_usize(first + count)];
        let missing = (0..).zip(lines).find(|&(place, &line)| !there(place, line));
        missing.map_or(count, |(place, _)| place)
    }
}

#[cfg(test)]
mod tests {
    use super::CodeLines;
    use crate::config::Models;
    use gpumodel_core::isa::Instruction;

    fn code(pcs: &[u64]) -> Vec<Instruction> {
        let one = |&pc: &u64| Instruction {
            pc,
            opcode: 0,
            destinations: Box::default(),
            sources: Box::default(),
            width: 0,
            immediates: Box::default(),
            line: None,
        };
        pcs.iter().map(one).collect()
    }

    #[test]
    fn lines_follow_the_pcs_a_long_gap_is_cut_and_two_codes_share_none() {
        let machine = Models::builtin().machine("v100", &[]).unwrap().machine;
        let spec = machine.fetch.unwrap();
        let far = 1 << 60;
        let lines = CodeLines::new(Some(&spec), &code(&[0x100, 0, 0x10, 0x110, far]), 7);
        let cut = 9 + spec.prefetch_lines + 1;
        assert_eq!((0..5).map(|i| lines.of(i)).collect::<Vec<_>>(), [9, 7, 7, 9, cut]);
        assert_eq!(lines.end(), cut + 1);
        let other = CodeLines::new(Some(&spec), &code(&[0, 0x10]), lines.end());
        assert_eq!((other.of(0), other.of(1), other.end()), (cut + 1, cut + 1, cut + 2));
        assert_eq!(lines.run(0, 5, |_, line| line < 9), 0);
        assert_eq!(lines.run(1, 4, |_, line| line < 9), 2);
    }
}
