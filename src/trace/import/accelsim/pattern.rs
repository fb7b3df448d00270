//! Texts that lines are compared with: as words of eight bytes, all at once, for a call of
//! `memcmp` costs more than comparing most of them.

use std::ops::Range;

use gpumodel_core::units::to_u32;

/// What the first bytes of a text must be; `WORDS` times eight of them are compared at once,
/// and the others, which few texts have, one after the other.
#[derive(Clone, Debug)]
pub(super) struct Pattern<const WORDS: usize> {
    words: [u64; WORDS],
    /// The bits of them that count.
    masks: [u64; WORDS],
    beyond: Box<[u8]>,
    /// Bytes in all.
    pub(super) len: usize,
}

impl<const WORDS: usize> Pattern<WORDS> {
    /// `text`, whatever stands in `hole`, which lies within the words.
    pub(super) fn new(text: &[u8], hole: Range<usize>) -> Self {
        let mut words = Self::padded(text).map(u64::from_le_bytes);
        let mut masks = [0; WORDS];
        for (index, mask) in masks.iter_mut().enumerate() {
            let bytes = to_u32(text.len().saturating_sub(8 * index).min(8));
            *mask = u64::MAX.checked_shr(u64::BITS - 8 * bytes).unwrap_or(0);
        }
        for at in hole {
            masks[at / 8] &= !(0xff << (8 * (at % 8)));
        }
        for (word, mask) in words.iter_mut().zip(masks) {
            *word &= mask;
        }
        let beyond = text.get(8 * WORDS..).unwrap_or_default().into();
        Self { words, masks, beyond, len: text.len() }
    }

    /// The first bytes of `text`, with zeros after its end.
    #[inline(never)]
    fn padded(text: &[u8]) -> [[u8; 8]; WORDS] {
        let mut chunks = [[0; 8]; WORDS];
        let count = text.len().min(8 * WORDS);
        chunks.as_flattened_mut()[..count].copy_from_slice(&text[..count]);
        chunks
    }

    /// True when `text` starts with this.
    #[inline(always)]
    pub(super) fn starts(&self, text: &[u8]) -> bool {
        let same = match text.as_chunks().0.first_chunk() {
            Some(chunks) => self.same(chunks),
            None => self.same(&Self::padded(text)),
        };
        same && text.len() >= self.len && (self.beyond.is_empty() || self.goes_on(text))
    }

    #[inline(always)]
    fn same(&self, chunks: &[[u8; 8]; WORDS]) -> bool {
        let mut differing = 0;
        for ((chunk, mask), word) in chunks.iter().zip(&self.masks).zip(&self.words) {
            differing |= u64::from_le_bytes(*chunk) & mask ^ word;
        }
        differing == 0
    }

    #[cold]
    fn goes_on(&self, text: &[u8]) -> bool {
        text[8 * WORDS..].starts_with(&self.beyond)
    }
}

#[cfg(test)]
mod tests {
    use super::Pattern;

    #[test]
    fn every_byte_counts_but_those_in_the_hole() {
        for length in 0..40 {
            let text: Vec<u8> = (0..length).map(|at| b'a' + at % 26).collect();
            let hole = 3..usize::from(length).min(7);
            let pattern = Pattern::<2>::new(&text, hole.clone());
            for follows in [0, 1, 30] {
                let long = [&*text, &vec![b'z'; follows]].concat();
                assert!(pattern.starts(&long), "{length} {follows}");
                for at in 0..text.len() {
                    let mut other = long.clone();
                    other[at] ^= 0x80;
                    assert_eq!(pattern.starts(&other), hole.contains(&at), "{length} {at}");
                }
            }
            if let Some((_, short)) = text.split_last() {
                assert!(!pattern.starts(short), "{length}");
            }
        }
    }

    #[test]
    fn a_text_that_ends_early_is_not_filled_up() {
        assert!(!Pattern::<2>::new(b"ab\0", 0..0).starts(b"ab"));
    }
}
