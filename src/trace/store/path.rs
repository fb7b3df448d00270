//! A warp's way through the code: segment after segment, repeats counted.
//!
//! One number per step: the chunk's own segment number, doubled, plus one when
//! the segment repeats; then a second number says how often beyond twice.

use super::varint;

/// Appends the path `steps`.
pub(super) fn encode(steps: &[u32], out: &mut Vec<u8>) {
    for run in steps.chunk_by(|a, b| a == b) {
        let step = u64::from(run[0]) << 1;
        if let Some(more) = run.len().checked_sub(2) {
            varint::put(out, step | 1);
            varint::put(out, gpumodel_core::units::to_u64(more));
        } else {
            varint::put(out, step);
        }
    }
}

/// A position in a path that ends before byte `end`.
#[derive(Clone, Debug)]
pub(super) struct Path {
    at: usize,
    end: usize,
    step: u32,
    repeats: u64,
}

impl Path {
    /// The path in bytes `at..end` of a chunk.
    pub(super) const fn new(at: usize, end: usize) -> Self {
        Self { at, end, step: 0, repeats: 0 }
    }

    /// The next step, as the chunk's own segment number.
    #[inline]
    pub(super) fn next(&mut self, bytes: &[u8]) -> Option<u32> {
        self.run(bytes, 1).map(|(step, _)| step)
    }

    /// How often the last step comes again at once.
    #[inline]
    pub(super) const fn repeats(&self) -> u64 {
        self.repeats
    }

    /// The next step and how often it comes in a row, at most `most` of them.
    pub(super) fn run(&mut self, bytes: &[u8], most: u64) -> Option<(u32, u64)> {
        if self.repeats == 0 {
            if self.at >= self.end {
                return None;
            }
            let token = varint::get(bytes, &mut self.at);
            self.step = u32::try_from(token >> 1).unwrap_or(u32::MAX);
            self.repeats = 1;
            if token & 1 == 1 {
                self.repeats = varint::get(bytes, &mut self.at).saturating_add(2);
            }
        }
        let count = self.repeats.min(most);
        self.repeats -= count;
        Some((self.step, count))
    }
}

#[cfg(test)]
mod tests {
    use super::{Path, encode};

    #[test]
    fn paths_survive() {
        let steps = [0, 1, 1, 1, 2, 2, 300, 0, 0, 0, 0];
        let mut bytes = Vec::new();
        encode(&steps, &mut bytes);
        let mut path = Path::new(0, bytes.len());
        let read: Vec<u32> = std::iter::from_fn(|| path.next(&bytes)).collect();
        assert_eq!(read, steps);
        let mut path = Path::new(0, bytes.len());
        let repeats: Vec<u64> =
            std::iter::from_fn(|| path.next(&bytes).map(|_| path.repeats())).collect();
        assert_eq!(repeats, [0, 2, 1, 0, 1, 0, 0, 3, 2, 1, 0]);
    }
}
