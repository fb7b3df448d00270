//! Line texts that were parsed before: most lines differ from an earlier one
//! only in mask and addresses, so comparing bytes stands in for parsing.

use std::cmp::Ordering;
use std::ops::Range;

use rustc_hash::FxHashMap;

use super::digits;
use super::line;
use crate::store::lanes;
use crate::store::records::{AddressList, Texts};
use crate::store::varint::low_byte;
use gpumodel_core::isa::{AddressMode, MOST_IMMEDIATES};
use gpumodel_core::units::{WARP_LANES, to_u32, to_usize};

/// No entry.
pub(super) const NONE: u32 = u32::MAX;
/// Most entries: a bound on memory.
const MOST: usize = 1 << 16;
/// Most entries that are tried for one program counter.
const TRIES: usize = 4;
/// Bytes that are compared at once up to the width, where the mask must lie.
const FIRST: usize = 64;
/// Bytes in which the fields before a mask must end.
const LONGEST_HEAD: usize = FIRST - 8;

/// The text of one static instruction.
#[derive(Debug)]
pub(super) struct Entry {
    /// Up to the width with any mask; without a width as [`Entry::rest`].
    start: Pattern<{ FIRST / 8 }>,
    /// The first byte of the mask.
    mask: usize,
    /// The line carries addresses.
    pub(super) addressed: bool,
    /// From the end of the addresses to the tail or, without one, the line's end.
    rest: Pattern<2>,
    /// What followed the base of the last addresses with a stride, the rest included, and
    /// that stride.
    after_base: Option<(Pattern<2>, i64)>,
    last: LastList,
    /// How many immediates the line has.
    immediates: usize,
    /// A tail, up to the line's end.
    tail: Option<Pattern<2>>,
    /// The same without the line's end.
    tail_text: Box<[u8]>,
    /// Its number in the texts of the piece, where it is there.
    tail_number: Option<u32>,
    /// The static's number.
    pub(super) number: u32,
    /// The piece has such a line.
    pub(super) seen: bool,
    /// The entry that followed last time.
    pub(super) next: u32,
    /// Another entry with the same text before the mask.
    sibling: u32,
}

/// The differences of an instruction's last access in the piece.
#[derive(Debug, Default)]
struct LastList {
    text: Vec<u8>,
    /// Where each one ends in the text; none when there is no such access.
    ends: Vec<u16>,
    /// Index of the first one.
    deltas: u32,
}

/// A line and where its parts are.
#[derive(Clone, Debug)]
pub(super) struct Parts<'a> {
    pub(super) line: &'a [u8],
    /// The mask's first byte.
    pub(super) mask: usize,
    /// From the width's end to that of the addresses, where there are any.
    pub(super) addresses: Option<Range<usize>>,
    /// The tail's first byte, where there is one.
    pub(super) tail: Option<usize>,
    /// How many immediates the line has.
    pub(super) immediates: usize,
}

/// Entries by the text before the mask. They outlive the piece of text that taught them; what
/// they say of its arrays does not.
#[derive(Debug, Default)]
pub(super) struct LineCache {
    pub(super) entries: Vec<Entry>,
    heads: FxHashMap<Box<[u8]>, u32>,
}

impl LineCache {
    /// Nothing more is learnt.
    pub(super) fn full(&self) -> bool {
        self.entries.len() >= MOST
    }

    /// Forgets what entries know of the piece that was parsed last.
    pub(super) fn begin(&mut self) {
        for entry in &mut self.entries {
            (entry.seen, entry.tail_number) = (false, None);
            entry.last.forget();
        }
    }

    /// The entries whose lines start as `text` does up to the mask, which `fields` fields come
    /// before; the newest first.
    pub(super) fn like(&self, text: &[u8], fields: usize) -> [u32; TRIES] {
        head(text, fields).map_or([NONE; TRIES], |head| self.with_head(head))
    }

    /// The newest entries with this text before the mask, and [`NONE`] after the last.
    fn with_head(&self, head: &[u8]) -> [u32; TRIES] {
        let mut next = self.heads.get(head).copied().unwrap_or(NONE);
        [(); TRIES].map(|()| {
            let sibling = self.entries.get(to_usize(next)).map_or(NONE, |entry| entry.sibling);
            std::mem::replace(&mut next, sibling)
        })
    }

    /// The entry with these texts, whatever comes after its addresses.
    pub(super) fn known(&self, parts: &Parts<'_>) -> Option<u32> {
        let explains = |entry: &Entry| entry.explains(parts);
        let like = self.with_head(&parts.line[..parts.mask]).into_iter();
        like.take_while(|&entry| entry != NONE)
            .find(|&entry| self.entries.get(to_usize(entry)).is_some_and(explains))
    }

    /// Remembers a line of the static `number`; returns its entry, or [`NONE`] when it is full
    /// or more comes before the mask than tracers write.
    pub(super) fn learn(&mut self, parts: &Parts<'_>, number: u32) -> u32 {
        let Parts { line, mask, .. } = *parts;
        if self.full() || mask > LONGEST_HEAD {
            return NONE;
        }
        let new = to_u32(self.entries.len());
        let sibling = self.heads.insert(line[..mask].into(), new).unwrap_or(NONE);
        let rest = parts.addresses.as_ref().map_or(&[][..], |at| &line[at.end..parts.known()]);
        self.entries.push(Entry {
            start: Pattern::new(&line[..parts.start()], mask..mask + 8),
            mask,
            addressed: parts.addresses.is_some(),
            rest: Pattern::new(rest, 0..0),
            after_base: None,
            last: LastList::default(),
            immediates: parts.immediates,
            tail: parts.tail.map(|at| Pattern::new(&line[at..], 0..0)),
            tail_text: parts.tail.map_or(&[][..], |at| line::without_end(&line[at..])).into(),
            tail_number: None,
            number,
            seen: false,
            next: NONE,
            sibling,
        });
        new
    }
}

impl Parts<'_> {
    /// The end of what an entry compares first.
    fn start(&self) -> usize {
        self.addresses.as_ref().map_or(self.known(), |addresses| addresses.start)
    }

    /// The end of the known fields.
    fn known(&self) -> usize {
        self.tail.unwrap_or(self.line.len())
    }
}

impl Entry {
    /// It is the entry of a line with these parts, whatever comes after the addresses.
    fn explains(&self, parts: &Parts<'_>) -> bool {
        // Tails that count as immediates.
        let open = self.immediates > MOST_IMMEDIATES;
        let tail = parts.tail.map(|at| &parts.line[at..]);
        let same_tail = || self.tail.as_ref().zip(tail).is_none_or(|(own, tail)| own.starts(tail));
        self.addressed == parts.addresses.is_some()
            && self.start.len == parts.start()
            && self.start.starts(parts.line)
            && (!open || same_tail())
    }

    /// The mask of the line at the start of `text` and the bytes up to the width, or up to the
    /// tail where there is no width.
    #[inline(always)]
    pub(super) fn start(&self, text: &[u8]) -> Option<(u32, usize)> {
        if !self.start.starts(text) {
            return None;
        }
        let mask = digits::mask(*text[self.mask..].first_chunk()?)?;
        Some((mask, self.start.len))
    }

    /// Address mode and addresses with single spaces, as tracers write them, and the rest;
    /// any other spelling is left to the full parser. Returns the bytes of both.
    #[inline(always)]
    pub(super) fn access(
        &mut self,
        text: &[u8],
        mask: u32,
        deltas: &mut Vec<i64>,
    ) -> Option<(AddressList, usize)> {
        let [b' ', mode, addresses @ ..] = text else { return None };
        match mode {
            b'0' => return self.listed(addresses, mask, deltas).map(|(list, n)| (list, 2 + n)),
            b'1' | b'2' => {}
            _ => return None,
        }
        let (base, bytes) = address(addresses)?;
        let after = &addresses[bytes..];
        let (list, more) = match mode {
            b'1' => self.stride(after)?,
            _ => self.differences(after, lanes::delta_count(mask), deltas)?,
        };
        Some((AddressList { base, ..list }, 2 + bytes + more))
    }

    /// A stride and the rest.
    #[inline(always)]
    fn stride(&mut self, text: &[u8]) -> Option<(AddressList, usize)> {
        let list = |stride| {
            let mode = AddressMode::Stride;
            AddressList { mode, base: 0, stride, deltas: 0, delta_count: 0 }
        };
        if let Some((last, stride)) = &self.after_base
            && last.starts(text)
        {
            return Some((list(*stride), last.len));
        }
        let (stride, bytes) = difference(text)?;
        if !self.rest.starts(&text[bytes..]) {
            return None;
        }
        let bytes = bytes + self.rest.len;
        self.after_base = Some((Pattern::new(&text[..bytes], 0..0), stride));
        Some((list(stride), bytes))
    }

    /// `further` differences, which go to `deltas` unless they are there, and the rest.
    #[inline(never)]
    fn differences(
        &mut self,
        text: &[u8],
        further: u32,
        deltas: &mut Vec<i64>,
    ) -> Option<(AddressList, usize)> {
        let (mode, delta_count) = (AddressMode::Delta, low_byte(u64::from(further)));
        let further = to_usize(further);
        let list = |deltas| AddressList { mode, base: 0, stride: 0, deltas, delta_count };
        let bytes = self.last.same(text, further);
        if let Some(bytes) = bytes
            && self.rest.starts(&text[bytes..])
        {
            return Some((list(self.last.deltas), bytes + self.rest.len));
        }
        let mut found = [0; WARP_LANES];
        let (mut ends, mut end) = ([0; WARP_LANES], 0);
        for (delta, place) in found.iter_mut().zip(&mut ends).take(further) {
            let (value, bytes) = difference(&text[end..])?;
            (*delta, end) = (value, end + bytes);
            *place = end;
        }
        if !self.rest.starts(&text[end..]) {
            return None;
        }
        let start = to_u32(deltas.len());
        deltas.extend_from_slice(&found[..further]);
        self.last.set(&text[..end], &ends[..further], start);
        Some((list(start), end + self.rest.len))
    }

    /// The address of every active lane, and the rest.
    #[inline(never)]
    fn listed(
        &self,
        text: &[u8],
        mask: u32,
        deltas: &mut Vec<i64>,
    ) -> Option<(AddressList, usize)> {
        let (mut found, mut last, mut bytes) = ([0; WARP_LANES], 0, 0);
        let mut base = 0;
        for lane in 0..to_usize(mask.count_ones()) {
            let (next, more) = address(&text[bytes..])?;
            match lane.checked_sub(1) {
                None => base = next,
                Some(before) => found[before] = next.wrapping_sub(last).cast_signed(),
            }
            (last, bytes) = (next, bytes + more);
        }
        if !self.rest.starts(&text[bytes..]) {
            return None;
        }
        let (mode, start) = (AddressMode::List, to_u32(deltas.len()));
        let further = lanes::delta_count(mask);
        deltas.extend_from_slice(&found[..to_usize(further)]);
        let delta_count = low_byte(u64::from(further));
        let list = AddressList { mode, base, stride: 0, deltas: start, delta_count };
        Some((list, bytes + self.rest.len))
    }

    /// The number of the tail at the start of `text` among `texts`, where the entry's lines
    /// have one, and its bytes up to the line's end; `None` when it is no tail of the entry.
    #[inline(always)]
    pub(super) fn end(&mut self, text: &[u8], texts: &mut Texts) -> Option<(Option<u32>, usize)> {
        let Some(tail) = &self.tail else { return Some((None, 0)) };
        if !tail.starts(text) {
            let (other, bytes) = self.other_tail(text)?;
            return Some((Some(texts.push(other)), bytes));
        }
        let number = self.tail_number.get_or_insert_with(|| texts.push(&self.tail_text));
        Some((Some(*number), tail.len))
    }

    /// A tail that is not the entry's and leaves the fields before it what they are, and the
    /// bytes up to the line's end.
    fn other_tail<'a>(&self, text: &'a [u8]) -> Option<(&'a [u8], usize)> {
        let bytes = line::bytes(text);
        let tail = line::without_end(&text[..bytes]);
        let first = *tail.first()?;
        let possible = match self.immediates.cmp(&MOST_IMMEDIATES) {
            // The tail may start with a further one.
            Ordering::Less => !first.is_ascii_digit() && first != b'-',
            Ordering::Equal => true,
            Ordering::Greater => false,
        };
        (possible && !first.is_ascii_whitespace()).then_some((tail, bytes))
    }
}

impl LastList {
    /// Bytes of the first `further` differences where `text` starts with just those.
    #[inline]
    fn same(&self, text: &[u8], further: usize) -> Option<usize> {
        let Some(last) = further.checked_sub(1) else { return Some(0) };
        let end = usize::from(*self.ends.get(last)?);
        let ended = text.get(end).is_some_and(|byte| !byte.is_ascii_digit());
        (ended && text[..end] == self.text[..end]).then_some(end)
    }

    /// Forgets the list, whose differences belong to another piece.
    fn forget(&mut self) {
        self.ends.clear();
        self.deltas = 0;
    }

    fn set(&mut self, text: &[u8], ends: &[usize], deltas: u32) {
        self.text.clear();
        self.text.extend_from_slice(text);
        self.ends.clear();
        // No more than 32 numbers of 20 bytes.
        self.ends.extend(ends.iter().filter_map(|&end| u16::try_from(end).ok()));
        self.deltas = deltas;
    }
}

/// The text of the first `fields` fields with the space after them.
fn head(text: &[u8], fields: usize) -> Option<&[u8]> {
    let mut spaces = text.iter().take(FIRST).enumerate().filter(|(_, byte)| **byte == b' ');
    let (end, _) = spaces.nth(fields.checked_sub(1)?)?;
    Some(&text[..=end])
}

/// ` 0x` and up to 16 digits.
#[inline(always)]
fn address(text: &[u8]) -> Option<(u64, usize)> {
    let (value, bytes) = digits::hexadecimal(text.strip_prefix(b" 0x")?)?;
    Some((value, 3 + bytes))
}

/// A space and a signed number.
#[inline(always)]
fn difference(text: &[u8]) -> Option<(i64, usize)> {
    let (value, bytes) = digits::signed(text.strip_prefix(b" ")?)?;
    Some((value, 1 + bytes))
}

/// A text that lines are compared with: what their first bytes must be. `WORDS` times eight of them
/// are compared at once, as words of eight bytes, for a call of `memcmp` costs more than comparing
/// most of them; the others, which few texts have, are compared one after the other.
#[derive(Clone, Debug)]
struct Pattern<const WORDS: usize> {
    words: [u64; WORDS],
    /// The bits of them that count.
    masks: [u64; WORDS],
    beyond: Box<[u8]>,
    /// Bytes in all.
    len: usize,
}

impl<const WORDS: usize> Pattern<WORDS> {
    /// `text`, whatever stands in `hole`, which lies within the words.
    fn new(text: &[u8], hole: Range<usize>) -> Self {
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
    fn starts(&self, text: &[u8]) -> bool {
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
