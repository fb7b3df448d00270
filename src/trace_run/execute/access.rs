//! The places of one memory access of a warp, looked at once for all its lanes.

use gpumodel_core::units::WARP_LANES;

use super::lanes::{Lanes, Lanes64};
use super::vector::Vector;

/// Words of the widest access of a lane.
const MOST_WORDS: usize = 4;

/// Words of each lane, part by part: as many as a lane's bytes take.
pub type Words = [Lanes];

/// An access of the lanes of a mask, each to some bytes at its place.
#[derive(Clone, Copy, Debug)]
pub struct WarpAccess<'a> {
    places: &'a Lanes64,
    mask: u32,
    bytes: usize,
    lowest: u64,
    highest: u64,
    contiguous: bool,
}

impl<'a> WarpAccess<'a> {
    /// The access of the lanes of `mask`; none when there is no lane, or one is not at a
    /// multiple of `bytes`.
    #[inline]
    pub(crate) fn new(
        places: &'a Lanes64,
        mask: u32,
        bytes: usize,
        vector: Vector,
    ) -> Option<Self> {
        if mask == 0 {
            return None;
        }
        let [lowest, highest, all, apart] = vector.bounds(places, mask, bytes as u64);
        let contiguous = mask == u32::MAX && apart == 0;
        let access = Self { places, mask, bytes, lowest, highest, contiguous };
        (all & (bytes as u64 - 1) == 0).then_some(access)
    }

    /// The place of each lane; of lanes that do not take part it has no meaning.
    #[must_use]
    pub fn places(&self) -> &'a Lanes64 {
        self.places
    }

    /// The lanes that take part.
    #[must_use]
    pub fn mask(&self) -> u32 {
        self.mask
    }

    /// Bytes of each lane: 1, 2, 4, 8 or 16.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The first byte of the lowest lane.
    #[must_use]
    pub fn lowest(&self) -> u64 {
        self.lowest
    }

    /// From the first byte of the lowest lane to the last one of the highest.
    #[must_use]
    pub fn span(&self) -> usize {
        usize::try_from(self.highest - self.lowest)
            .map_or(usize::MAX, |s| s.saturating_add(self.bytes))
    }

    /// All 32 lanes take part, each right after the one before it.
    #[must_use]
    pub fn is_contiguous(&self) -> bool {
        self.contiguous
    }

    /// All lanes are at one place.
    #[must_use]
    pub fn is_one(&self) -> bool {
        self.lowest == self.highest
    }

    /// Fills `into` from `memory`, which begins at [`WarpAccess::lowest`]; none when it ends
    /// before the last lane.
    #[inline]
    pub fn read(&self, memory: &impl Readable, into: &mut Words) -> Option<()> {
        match self.bytes {
            4 if self.contiguous => {
                let all: [u8; 128] = memory.load(0)?;
                for (word, bytes) in into[0].iter_mut().zip(all.as_chunks::<4>().0) {
                    *word = u32::from_le_bytes(*bytes);
                }
            }
            4 if self.is_one() => into[0] = [u32::from_le_bytes(memory.load(0)?); 32],
            1 => self.read_each(memory, into, |[a]: [u8; 1]| [a.into()])?,
            2 => self.read_each(memory, into, |b| [u16::from_le_bytes(b).into()])?,
            4 => self.read_each(memory, into, |b| [u32::from_le_bytes(b)])?,
            8 => self.read_each(memory, into, words::<8, 2>)?,
            _ => self.read_each(memory, into, words::<16, 4>)?,
        }
        Some(())
    }

    #[inline]
    fn read_each<const BYTES: usize, const WORDS: usize>(
        &self,
        memory: &impl Readable,
        into: &mut Words,
        words: impl Fn([u8; BYTES]) -> [u32; WORDS],
    ) -> Option<()> {
        if self.mask == u32::MAX {
            for lane in 0..WARP_LANES {
                let words = words(memory.load(self.offset(lane))?);
                words.into_iter().zip(&mut *into).for_each(|(word, part)| part[lane] = word);
            }
            return Some(());
        }
        for lane in super::lanes::each(self.mask) {
            let words = words(memory.load(self.offset(lane))?);
            words.into_iter().zip(&mut *into).for_each(|(word, part)| part[lane] = word);
        }
        Some(())
    }

    #[inline]
    fn offset(&self, lane: usize) -> usize {
        usize::try_from(self.places[lane % WARP_LANES].wrapping_sub(self.lowest))
            .unwrap_or(usize::MAX)
    }

    /// Writes `from` to `memory`, which begins at [`WarpAccess::lowest`], lane after lane; none
    /// when it ends before the last lane.
    #[inline]
    pub fn write(&self, memory: &mut impl Writable, from: &Words) -> Option<()> {
        match self.bytes {
            4 if self.contiguous => {
                let mut all = [0; 128];
                for (bytes, word) in all.as_chunks_mut::<4>().0.iter_mut().zip(&from[0]) {
                    *bytes = word.to_le_bytes();
                }
                memory.store(0, all)
            }
            1 => self.write_each(memory, from, |[word]: [u32; 1]| [word.to_le_bytes()[0]]),
            2 => self.write_each(memory, from, |[word]: [u32; 1]| {
                let [a, b, _, _] = word.to_le_bytes();
                [a, b]
            }),
            4 => self.write_each(memory, from, |[word]: [u32; 1]| word.to_le_bytes()),
            8 => self.write_each(memory, from, to_bytes::<8, 2>),
            _ => self.write_each(memory, from, to_bytes::<16, 4>),
        }
    }

    #[inline]
    fn write_each<const BYTES: usize, const WORDS: usize>(
        &self,
        memory: &mut impl Writable,
        from: &Words,
        to_bytes: impl Fn([u32; WORDS]) -> [u8; BYTES],
    ) -> Option<()> {
        for lane in super::lanes::each(self.mask) {
            let words = std::array::from_fn(|part| from[part % MOST_WORDS][lane]);
            memory.store(self.offset(lane), to_bytes(words))?;
        }
        Some(())
    }
}

/// Bytes that can be read.
pub trait Readable {
    /// `N` bytes from `at` on; none when there are fewer.
    fn load<const N: usize>(&self, at: usize) -> Option<[u8; N]>;
}

/// Bytes that can be written.
pub trait Writable {
    /// Writes bytes from `at` on; none when there are fewer.
    fn store<const N: usize>(&mut self, at: usize, bytes: [u8; N]) -> Option<()>;
}

impl Readable for &[u8] {
    #[inline]
    fn load<const N: usize>(&self, at: usize) -> Option<[u8; N]> {
        self.get(at..)?.first_chunk().copied()
    }
}

impl Writable for &mut [u8] {
    #[inline]
    fn store<const N: usize>(&mut self, at: usize, bytes: [u8; N]) -> Option<()> {
        *self.get_mut(at..)?.first_chunk_mut()? = bytes;
        Some(())
    }
}

#[inline]
fn words<const BYTES: usize, const WORDS: usize>(bytes: [u8; BYTES]) -> [u32; WORDS] {
    std::array::from_fn(|word| {
        let at = 4 * word;
        u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
    })
}

#[inline]
fn to_bytes<const BYTES: usize, const WORDS: usize>(words: [u32; WORDS]) -> [u8; BYTES] {
    std::array::from_fn(|byte| words[byte / 4].to_le_bytes()[byte % 4])
}

#[cfg(test)]
mod tests {
    use gpumodel_core::units::to_u32;

    use super::WarpAccess;
    use crate::execute::vector::Vector;

    /// Writes with an access, reads it back, and compares both with a loop over the lanes.
    fn check<const WORDS: usize>(places: &[u64; 32], mask: u32, bytes: usize) {
        let access = WarpAccess::new(places, mask, bytes, Vector::default()).unwrap();
        let from: [[u32; 32]; WORDS] = std::array::from_fn(|part| {
            std::array::from_fn(|lane| to_u32(0x0101_0101 * lane + part))
        });
        let lowest = usize::try_from(access.lowest()).unwrap();
        let mut memory = vec![0xee_u8; 4096];
        let mut expected = memory.clone();
        for lane in (0..32).filter(|lane| mask >> lane & 1 == 1) {
            let all: Vec<u8> = from.iter().flat_map(|part| part[lane].to_le_bytes()).collect();
            let at = usize::try_from(places[lane]).unwrap();
            expected[at..at + bytes].copy_from_slice(&all[..bytes]);
        }
        access.write(&mut &mut memory[lowest..], &from).unwrap();
        assert_eq!(memory, expected);
        let mut into = [[0; 32]; WORDS];
        access.read(&&memory[lowest..], &mut into).unwrap();
        for lane in (0..32).filter(|lane| mask >> lane & 1 == 1) {
            let at = usize::try_from(places[lane]).unwrap();
            let all: Vec<u8> = into.iter().flat_map(|part| part[lane].to_le_bytes()).collect();
            assert_eq!(all[..bytes], expected[at..at + bytes], "lane {lane}");
        }
        // Memory that ends too early is refused.
        assert!(access.read(&&memory[lowest..lowest + access.span() - 1], &mut into).is_none());
    }

    #[test]
    fn an_access_is_what_its_lanes_do_one_after_the_other() {
        for mask in [u32::MAX, 0xffff, 1 << 31, 0x8421_1248] {
            for (step, first) in [(1, 0), (0, 64), (3, 16), (31, 2)] {
                let places = |bytes: u64| {
                    std::array::from_fn(|lane| bytes * (first + lane as u64 * step % 97))
                };
                check::<1>(&places(1), mask, 1);
                check::<1>(&places(2), mask, 2);
                check::<1>(&places(4), mask, 4);
                check::<2>(&places(8), mask, 8);
                check::<4>(&places(16), mask, 16);
            }
        }
    }

    #[test]
    fn lanes_at_no_multiple_go_alone() {
        let places = std::array::from_fn(|lane| 4 * lane as u64 + u64::from(lane == 5));
        assert!(WarpAccess::new(&places, u32::MAX, 4, Vector::default()).is_none());
        assert!(WarpAccess::new(&places, !(1 << 5), 4, Vector::default()).is_some());
        assert!(WarpAccess::new(&places, 0, 4, Vector::default()).is_none());
    }
}
