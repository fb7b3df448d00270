//! Global memory as a CTA sees it that runs together with others: its writes wait in pages of
//! its own, and what it read is remembered, until it is known that no earlier CTA wrote there.

use rustc_hash::FxHashMap;

use super::access::{WarpAccess, Words};
use super::memory::Memory;
use super::system::Printed;

/// Bytes of a page.
const PAGE: usize = 1024;
/// Words of a page: what is read and written is remembered by word.
const WORDS: usize = PAGE / 4;
/// Bytes of what a CTA prints that wait here, at most.
const MOST_PRINTED: usize = 1 << 20;
/// One bit per word.
type Bits = [u64; WORDS / 64];

/// What a CTA read and wrote of a page.
#[derive(Clone, Debug)]
struct Page {
    number: u64,
    /// Words that were read before they were written here.
    read: Bits,
    written: Bits,
    /// The words written; empty before the first.
    data: Vec<u8>,
}

/// The writes of a CTA, and what it read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Buffer {
    pages: Vec<Page>,
    places: FxHashMap<u64, usize>,
    /// The page used last.
    last: usize,
    /// What it prints, and bytes of that.
    printed: Vec<Printed>,
    printed_bytes: usize,
}

/// Words that CTAs wrote, by page.
#[derive(Debug, Default)]
pub(crate) struct Written(FxHashMap<u64, Bits>);

fn bit(word: usize) -> (usize, u64) {
    (word / 64, 1 << (word % 64))
}

fn has(bits: &Bits, word: usize) -> bool {
    let (at, bit) = bit(word);
    bits[at] & bit != 0
}

fn set(bits: &mut Bits, word: usize) {
    let (at, bit) = bit(word);
    bits[at] |= bit;
}

/// The bits of words `first` to `last` in each part of [`Bits`].
fn span(first: usize, last: usize) -> impl Iterator<Item = (usize, u64)> + Clone {
    (first / 64..=last / 64).map(move |at| {
        let from = if at == first / 64 { first % 64 } else { 0 };
        let to = if at == last / 64 { last % 64 } else { 63 };
        (at, u64::MAX << from & u64::MAX >> (63 - to))
    })
}

/// Sets the bits of words `first` to `last`.
fn set_all(bits: &mut Bits, first: usize, last: usize) {
    span(first, last).for_each(|(at, mask)| bits[at] |= mask);
}

/// Sets the bits of the words of an access, all in one page, which begins at `offset` there.
fn set_words(bits: &mut Bits, access: &WarpAccess<'_>, offset: usize) {
    if access.is_contiguous() || access.is_one() {
        return set_all(bits, offset / 4, (offset + access.span() - 1) / 4);
    }
    for lane in super::lanes::each(access.mask()) {
        let (_, offset, _) = first_part(access.places()[lane], 1);
        set_all(bits, offset / 4, (offset + access.bytes() - 1) / 4);
    }
}

/// The part of `address..address + length` in its first page: page, offset and bytes.
fn first_part(address: u64, length: usize) -> (u64, usize, usize) {
    let offset = usize::try_from(address % PAGE as u64).unwrap_or(0);
    (address / PAGE as u64, offset, length.min(PAGE - offset))
}

impl Buffer {
    #[inline]
    fn page(&mut self, number: u64) -> &mut Page {
        if self.pages.get(self.last).is_none_or(|page| page.number != number) {
            let next = self.pages.len();
            self.last = *self.places.entry(number).or_insert(next);
            if self.last == next {
                let bits = Bits::default();
                self.pages.push(Page { number, read: bits, written: bits, data: Vec::new() });
            }
        }
        &mut self.pages[self.last]
    }

    /// Reads from `address` on; none when it is not all allocated.
    pub(crate) fn read(
        &mut self,
        memory: &dyn Memory,
        address: u64,
        into: &mut [u8],
    ) -> Option<()> {
        memory.read(address, into)?;
        let (mut address, mut into) = (address, into);
        while !into.is_empty() {
            let (number, offset, length) = first_part(address, into.len());
            let (part, rest) = into.split_at_mut(length);
            self.page(number).read(offset, part);
            (address, into) = (address.wrapping_add(length as u64), rest);
        }
        Some(())
    }

    /// Reads for the lanes of a warp, when all their places are in one part of a page of which
    /// nothing or everything was written here, else none.
    #[inline]
    pub(crate) fn read_access(
        &mut self,
        memory: &dyn Memory,
        access: &WarpAccess<'_>,
        into: &mut Words,
    ) -> Option<()> {
        let number = access.lowest() / PAGE as u64;
        let (_, offset, whole) = first_part(access.lowest(), access.span());
        if whole < access.span() {
            return None;
        }
        let page = self.page(number);
        let mut here = span(offset / 4, (offset + whole - 1) / 4);
        if !page.data.is_empty() && here.clone().any(|(at, mask)| page.written[at] & mask != 0) {
            let all = here.all(|(at, mask)| page.written[at] & mask == mask);
            return all.then(|| access.read(&&page.data[offset..], into))?;
        }
        memory.read_access(access, into)?;
        set_words(&mut page.read, access, offset);
        Some(())
    }

    /// Writes for the lanes of a warp, when all their places are in one page and of whole words;
    /// else none, and nothing is written.
    #[inline]
    pub(crate) fn write_access(
        &mut self,
        memory: &dyn Memory,
        access: &WarpAccess<'_>,
        from: &Words,
    ) -> Option<()> {
        let (number, offset, whole) = first_part(access.lowest(), access.span());
        let one_page = whole == access.span() && access.bytes() >= 4;
        if !one_page || !memory.has(access.lowest(), whole) {
            return None;
        }
        let page = self.page(number);
        page.prepare();
        access.write(&mut &mut page.data[offset..], from)?;
        set_words(&mut page.written, access, offset);
        Some(())
    }

    /// Writes from `address` on; none when it is not all allocated.
    pub(crate) fn write(&mut self, memory: &dyn Memory, address: u64, from: &[u8]) -> Option<()> {
        if !memory.has(address, from.len()) {
            return None;
        }
        let (mut address, mut from) = (address, from);
        while !from.is_empty() {
            let (number, offset, length) = first_part(address, from.len());
            let (part, rest) = from.split_at(length);
            self.page(number).write(memory, offset, part)?;
            (address, from) = (address.wrapping_add(length as u64), rest);
        }
        Some(())
    }

    /// Prints when it is known that no earlier CTA wrote what it read. An error where a CTA
    /// prints much: it then runs again, alone, where nothing has to wait.
    pub(crate) fn print(&mut self, printed: Vec<Printed>) -> Result<(), String> {
        self.printed_bytes += printed.iter().map(Printed::bytes).sum::<usize>();
        if self.printed_bytes > MOST_PRINTED {
            return Err("it prints more than waits for other CTAs".into());
        }
        self.printed.extend(printed);
        Ok(())
    }

    /// Whether it read what is `written`.
    pub(crate) fn read_any(&self, written: &Written) -> bool {
        self.pages.iter().any(|page| {
            let others = written.0.get(&page.number);
            others.is_some_and(|bits| bits.iter().zip(&page.read).any(|(one, two)| one & two != 0))
        })
    }

    /// Writes all of it to `memory`, and notes where in `written`.
    pub(crate) fn commit(self, memory: &dyn Memory, written: &mut Written) -> Option<()> {
        for page in self.pages.iter().filter(|page| !page.data.is_empty()) {
            let bits = written.0.entry(page.number).or_default();
            bits.iter_mut().zip(&page.written).for_each(|(all, one)| *all |= one);
            let mut word = 0;
            while word < WORDS {
                let first = word;
                while word < WORDS && has(&page.written, word) {
                    word += 1;
                }
                if word > first {
                    let start = page.number * PAGE as u64 + 4 * first as u64;
                    memory.write(start, &page.data[4 * first..4 * word])?;
                }
                word += 1;
            }
        }
        memory.print(&self.printed);
        Some(())
    }
}

impl Page {
    /// Replaces the bytes of `into` that were written here.
    #[inline]
    fn read(&mut self, offset: usize, into: &mut [u8]) {
        let (first, last) = (offset / 4, (offset + into.len() - 1) / 4);
        for word in first..=last {
            if !has(&self.written, word) {
                set(&mut self.read, word);
                continue;
            }
            let (start, end) = ((4 * word).max(offset), (4 * word + 4).min(offset + into.len()));
            into[start - offset..end - offset].copy_from_slice(&self.data[start..end]);
        }
    }

    /// Has room for writes.
    fn prepare(&mut self) {
        if self.data.is_empty() {
            self.data = vec![0; PAGE];
        }
    }

    #[inline]
    fn write(&mut self, memory: &dyn Memory, offset: usize, from: &[u8]) -> Option<()> {
        self.prepare();
        let end = offset + from.len();
        for word in offset / 4..=(end - 1) / 4 {
            let whole = 4 * word >= offset && 4 * word + 4 <= end;
            if !whole && !has(&self.written, word) {
                // The other bytes of the word stay as they are, so they are read.
                let start = self.number * PAGE as u64 + 4 * word as u64;
                memory.read(start, &mut self.data[4 * word..4 * word + 4])?;
                set(&mut self.read, word);
            }
            set(&mut self.written, word);
        }
        self.data[offset..end].copy_from_slice(from);
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Buffer, Written};
    use crate::execute::vector::Vector;
    use crate::execute::{HostMemory, Lanes, Memory, WarpAccess, each, low};

    /// Writes and reads with accesses of warps where `together`, else lane by lane, in several
    /// patterns; the memory after it, and what was read.
    fn patterns(together: bool) -> (Vec<u8>, Vec<Lanes>) {
        let memory = HostMemory::new(0, 8192);
        memory.write(0, &(0..=255).cycle().take(8192).collect::<Vec<u8>>()).unwrap();
        let (mut buffer, mut seen) = (Buffer::default(), Vec::new());
        for (step, first, mask) in
            [(4, 1024, u32::MAX), (8, 1100, 0x0f0f_0f0f), (4, 900, u32::MAX), (12, 1024, u32::MAX)]
        {
            let places: [u64; 32] = std::array::from_fn(|lane| first + step * lane as u64);
            let access = WarpAccess::new(&places, mask, 4, Vector::default()).unwrap();
            let mut words =
                [std::array::from_fn(|lane| u32::try_from(first).unwrap() + low(lane as u64))];
            let mut got = [[0; 32]];
            let read = together && buffer.read_access(&memory, &access, &mut got).is_some();
            for lane in each(mask).filter(|_| !read) {
                let mut bytes = [0; 4];
                buffer.read(&memory, places[lane], &mut bytes).unwrap();
                got[0][lane] = u32::from_le_bytes(bytes);
            }
            seen.push(std::array::from_fn(|lane| got[0][lane] * (mask >> lane & 1)));
            words[0].iter_mut().zip(&got[0]).for_each(|(word, got)| *word ^= got);
            let written = together && buffer.write_access(&memory, &access, &words).is_some();
            assert_eq!(written, together && first >= 1024);
            for lane in each(mask).filter(|_| !written) {
                buffer.write(&memory, places[lane], &words[0][lane].to_le_bytes()).unwrap();
            }
        }
        let mut written = Written::default();
        buffer.commit(&memory, &mut written).unwrap();
        let mut bytes = vec![0; 8192];
        memory.read(0, &mut bytes).unwrap();
        (bytes, seen)
    }

    #[test]
    fn an_access_of_a_warp_is_what_its_lanes_do() {
        assert_eq!(patterns(true), patterns(false));
    }

    #[test]
    fn writes_wait_and_reads_of_what_others_wrote_are_found() {
        let memory = HostMemory::new(0, 8192);
        memory.write(2040, &[7; 16]).unwrap();
        let (mut one, mut two, mut three) =
            (Buffer::default(), Buffer::default(), Buffer::default());
        one.write(&memory, 2046, &[1, 2, 3, 4]).unwrap();
        let mut bytes = [0; 8];
        one.read(&memory, 2044, &mut bytes).unwrap();
        assert_eq!(bytes, [7, 7, 1, 2, 3, 4, 7, 7]);
        two.read(&memory, 2048, &mut bytes[..4]).unwrap();
        assert_eq!(bytes[..4], [7; 4]);
        three.read(&memory, 2036, &mut bytes).unwrap();
        let mut written = Written::default();
        assert!(!one.read_any(&written));
        one.commit(&memory, &mut written).unwrap();
        assert!(two.read_any(&written) && !three.read_any(&written));
        memory.read(2044, &mut bytes).unwrap();
        assert_eq!(bytes, [7, 7, 1, 2, 3, 4, 7, 7]);
        assert_eq!(two.write(&memory, 8190, &[0; 4]), None);
    }
}
