//! Active masks and paths of a warp as runs.
//!
//! Masks: one token per run of equal masks. Three bits say which of the last seven
//! masks (most recent first) or, as 7, that four bytes follow; five bits say the
//! length less one, or, as 31, that a number follows with the length less 32.
//!
//! Paths, the segments that a warp executes: one number per step, the chunk's own segment
//! number, doubled, plus one when the segment repeats; then a second number says how often
//! beyond twice.

use gpumodel_core::units::to_u64;

use super::varint;

/// How many recent masks a token can name.
const RECENT: usize = 7;
/// The token index of a mask that follows in full.
const SPELLED: u8 = 7;
/// The length field of a run whose length follows.
const LONG: u64 = 31;

/// The recent masks, most recent first.
#[derive(Clone, Copy, Debug)]
struct Recent([u32; RECENT]);

impl Recent {
    const START: Self = Self([u32::MAX, 0, 0xffff, 1, 0, 0, 0]);

    /// Moves the mask at `index` to the front.
    fn touch(&mut self, index: usize) {
        self.0[..=index].rotate_right(1);
    }

    /// Puts a new mask at the front; the oldest goes.
    fn push(&mut self, mask: u32) {
        self.0.rotate_right(1);
        self.0[0] = mask;
    }
}

/// Appends the `runs` of masks: each mask, which is not that of the run before, and how often
/// it comes.
pub(super) fn encode_masks(runs: &[(u32, u64)], out: &mut Vec<u8>) {
    let mut recent = Recent::START;
    for &(mask, count) in runs {
        let length = count - 1;
        let known = recent.0.iter().position(|&recent| recent == mask);
        let index = known.map_or(SPELLED, |i| varint::low_byte(to_u64(i)));
        out.push(index << 5 | varint::low_byte(length.min(LONG)));
        if let Some(at) = known {
            recent.touch(at);
        } else {
            out.extend_from_slice(&mask.to_le_bytes());
            recent.push(mask);
        }
        if length >= LONG {
            varint::put(out, length - LONG);
        }
    }
}

/// A position in a mask stream. Beyond the end of the stream masks are 0.
#[derive(Clone, Debug)]
pub(super) struct Masks {
    at: usize,
    left: u64,
    recent: Recent,
}

impl Masks {
    /// The stream that starts at byte `at` of a chunk.
    pub(super) const fn new(at: usize) -> Self {
        Self { at, left: 0, recent: Recent::START }
    }

    /// The mask of the next instruction, without passing it.
    #[inline]
    pub(super) fn peek(&self, bytes: &[u8]) -> u32 {
        if self.left > 0 {
            return self.recent.0[0];
        }
        let mut ahead = self.clone();
        ahead.refill(bytes);
        ahead.recent.0[0]
    }

    /// The mask of the next instruction, with its run entered.
    #[inline]
    fn enter(&mut self, bytes: &[u8]) -> u32 {
        if self.left == 0 {
            self.refill(bytes);
        }
        self.recent.0[0]
    }

    /// Passes one instruction and returns its mask.
    #[inline]
    pub(super) fn next(&mut self, bytes: &[u8]) -> u32 {
        let mask = self.enter(bytes);
        self.left -= 1;
        mask
    }

    /// Passes `count` instructions and gives their active lanes, summed.
    #[inline]
    pub(super) fn skip(&mut self, bytes: &[u8], mut count: u64) -> u64 {
        let mut lanes = 0;
        while count > 0 {
            let mask = self.enter(bytes);
            let step = self.left.min(count);
            lanes += step * u64::from(mask.count_ones());
            self.left -= step;
            count -= step;
        }
        lanes
    }

    fn refill(&mut self, bytes: &[u8]) {
        let Some(&token) = bytes.get(self.at) else {
            self.recent.push(0);
            self.left = u64::MAX;
            return;
        };
        self.at += 1;
        let index = token >> 5;
        if index == SPELLED {
            let spelled = bytes.get(self.at..).and_then(<[u8]>::first_chunk);
            self.recent.push(u32::from_le_bytes(spelled.copied().unwrap_or_default()));
            self.at += 4;
        } else {
            self.recent.touch(usize::from(index));
        }
        let length = u64::from(token & 31);
        self.left = length + 1;
        if length == LONG {
            self.left = self.left.saturating_add(varint::get(bytes, &mut self.at));
        }
    }
}

/// Appends the path `steps`.
pub(super) fn encode_path(steps: &[u32], out: &mut Vec<u8>) {
    for run in steps.chunk_by(|a, b| a == b) {
        let step = u64::from(run[0]) << 1;
        if let Some(more) = run.len().checked_sub(2) {
            varint::put(out, step | 1);
            varint::put(out, to_u64(more));
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
    use super::{Masks, Path, encode_masks, encode_path};
    use gpumodel_core::units::to_u64;

    #[test]
    fn runs_survive_and_sum() {
        let mut masks = vec![u32::MAX; 100];
        masks.extend([0, 5, u32::MAX, 5, 7, 8, 9, 10, 11, 12, 13, 0xffff_0000]);
        let runs: Vec<(u32, u64)> =
            masks.chunk_by(|a, b| a == b).map(|run| (run[0], to_u64(run.len()))).collect();
        let mut bytes = Vec::new();
        encode_masks(&runs, &mut bytes);
        let mut reader = Masks::new(0);
        for &mask in &masks {
            assert_eq!((reader.peek(&bytes), reader.next(&bytes)), (mask, mask));
        }
        let lanes: u64 = masks.iter().map(|m| u64::from(m.count_ones())).sum();
        assert_eq!(Masks::new(0).skip(&bytes, 1_000), lanes);
    }

    #[test]
    fn paths_survive() {
        let steps = [0, 1, 1, 1, 2, 2, 300, 0, 0, 0, 0];
        let mut bytes = Vec::new();
        encode_path(&steps, &mut bytes);
        let mut path = Path::new(0, bytes.len());
        let read: Vec<u32> = std::iter::from_fn(|| path.next(&bytes)).collect();
        assert_eq!(read, steps);
        let mut path = Path::new(0, bytes.len());
        let repeats: Vec<u64> =
            std::iter::from_fn(|| path.next(&bytes).map(|_| path.repeats())).collect();
        assert_eq!(repeats, [0, 2, 1, 0, 1, 0, 0, 3, 2, 1, 0]);
    }
}
