//! Line texts that were parsed before: most lines differ from an earlier one
//! only in mask and addresses, so comparing bytes stands in for parsing.

use std::collections::HashMap;

use crate::store::records::AddressList;
use gpumodel_core::isa::AddressMode;
use gpumodel_core::units::{to_u32, to_usize};

/// No entry.
pub(super) const NONE: u32 = u32::MAX;
/// Most entries that are tried for one program counter.
const TRIES: usize = 4;

/// The text of one static instruction.
#[derive(Debug)]
pub(super) struct Entry {
    /// Up to the mask.
    head: Box<[u8]>,
    /// From the mask's end to the width; without a width to the line's end.
    body: Box<[u8]>,
    /// From the end of the addresses to the line's end; empty without a width.
    rest: Box<[u8]>,
    /// The tail in `body` or `rest`.
    pub(super) tail: Box<[u8]>,
    /// The static's number in the batch.
    pub(super) number: u32,
    /// The line carries addresses.
    pub(super) addressed: bool,
    /// The entry that followed last time.
    pub(super) next: u32,
    /// Another entry with the same head.
    sibling: u32,
}

/// The texts of a line in an entry's parts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parts<'a> {
    pub(super) head: &'a [u8],
    pub(super) body: &'a [u8],
    pub(super) rest: &'a [u8],
    pub(super) tail: &'a [u8],
}

/// A line that an entry explains.
#[derive(Clone, Copy, Debug)]
pub(super) struct Match {
    pub(super) entry: u32,
    pub(super) mask: u32,
    pub(super) lines: Option<AddressList>,
    /// Bytes of the line, its end included.
    pub(super) bytes: usize,
}

/// Entries by the text before the mask.
#[derive(Debug, Default)]
pub(super) struct LineCache {
    pub(super) entries: Vec<Entry>,
    heads: HashMap<Box<[u8]>, u32>,
}

impl LineCache {
    /// Finds the line at the start of `text`, `guess` first. Differences go to
    /// `deltas`.
    #[inline]
    pub(super) fn find(
        &self,
        text: &[u8],
        guess: u32,
        fields: usize,
        deltas: &mut Vec<i64>,
    ) -> Option<Match> {
        if let Some(found) = self.matches(guess, text, deltas) {
            return Some(found);
        }
        let mut entry = *self.heads.get(head(text, fields)?)?;
        for _ in 0..TRIES {
            if let Some(found) = self.matches(entry, text, deltas) {
                return Some(found);
            }
            entry = self.entries.get(to_usize(entry))?.sibling;
        }
        None
    }

    #[inline]
    fn matches(&self, number: u32, text: &[u8], deltas: &mut Vec<i64>) -> Option<Match> {
        let entry = self.entries.get(to_usize(number))?;
        let rest = text.strip_prefix(&*entry.head)?;
        let (digits, rest) = rest.split_first_chunk()?;
        let mask = mask(digits)?;
        let mut rest = rest.strip_prefix(&*entry.body)?;
        let mut lines = None;
        if entry.addressed {
            let start = deltas.len();
            let end = addresses(rest, mask, deltas)
                .and_then(|(found, rest)| Some((found, rest.strip_prefix(&*entry.rest)?)));
            let Some((found, left)) = end else {
                deltas.truncate(start);
                return None;
            };
            lines = Some(found);
            rest = left;
        }
        Some(Match { entry: number, mask, lines, bytes: text.len() - rest.len() })
    }

    /// The entry with these texts, whatever comes after its addresses.
    pub(super) fn known(&self, parts: Parts<'_>) -> Option<u32> {
        let mut number = self.heads.get(parts.head).copied()?;
        for _ in 0..TRIES {
            let entry = self.entries.get(to_usize(number))?;
            if *entry.body == *parts.body {
                return Some(number);
            }
            number = entry.sibling;
        }
        None
    }

    /// Remembers a line; returns its entry.
    pub(super) fn learn(&mut self, parts: Parts<'_>, number: u32, addressed: bool) -> u32 {
        let new = to_u32(self.entries.len());
        let sibling = self.heads.insert(parts.head.into(), new).unwrap_or(NONE);
        self.entries.push(Entry {
            head: parts.head.into(),
            body: parts.body.into(),
            rest: parts.rest.into(),
            tail: parts.tail.into(),
            number,
            addressed,
            next: NONE,
            sibling,
        });
        new
    }
}

/// The text of the first `fields` fields with the space after them.
fn head(text: &[u8], fields: usize) -> Option<&[u8]> {
    let mut spaces = text.iter().take(64).enumerate().filter(|(_, byte)| **byte == b' ');
    let (end, _) = spaces.nth(fields.checked_sub(1)?)?;
    Some(&text[..=end])
}

/// Eight hexadecimal digits.
#[inline]
fn mask(digits: &[u8; 8]) -> Option<u32> {
    match digits {
        b"ffffffff" => return Some(u32::MAX),
        b"00000000" => return Some(0),
        _ => {}
    }
    let mut value = 0;
    for &digit in digits {
        value = value << 4 | u32::from(nibble(digit)?);
    }
    Some(value)
}

#[inline]
const fn nibble(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}

/// Address mode and addresses with single spaces, as tracers write them; any
/// other spelling is left to the full parser.
#[inline]
fn addresses<'a>(
    text: &'a [u8],
    mask: u32,
    deltas: &mut Vec<i64>,
) -> Option<(AddressList, &'a [u8])> {
    let lanes = mask.count_ones();
    let (&mode, rest) = text.strip_prefix(b" ")?.split_first()?;
    let none =
        AddressList { mode: AddressMode::Stride, base: 0, stride: 0, deltas: 0, delta_count: 0 };
    if mode == b'0' && lanes == 0 {
        return Some((AddressList { mode: AddressMode::List, ..none }, rest));
    }
    let start = to_u32(deltas.len());
    let (base, mut rest) = address(rest)?;
    if mode == b'1' {
        let (stride, rest) = signed(rest)?;
        return Some((AddressList { base, stride, ..none }, rest));
    }
    let mut last = base;
    for _ in 1..lanes.max(1) {
        let delta;
        if mode == b'0' {
            let next;
            (next, rest) = address(rest)?;
            delta = next.wrapping_sub(last).cast_signed();
            last = next;
        } else {
            (delta, rest) = signed(rest)?;
        }
        deltas.push(delta);
    }
    let mode = match mode {
        b'0' => AddressMode::List,
        b'2' => AddressMode::Delta,
        _ => return None,
    };
    let delta_count = u8::try_from(lanes.max(1) - 1).ok()?;
    Some((AddressList { mode, base, stride: 0, deltas: start, delta_count }, rest))
}

/// ` 0x` and up to 16 digits.
#[inline]
fn address(text: &[u8]) -> Option<(u64, &[u8])> {
    let digits = text.strip_prefix(b" 0x")?;
    let mut value = 0;
    let mut count = 0;
    while let Some(digit) = digits.get(count).copied().and_then(nibble) {
        value = value << 4 | u64::from(digit);
        count += 1;
    }
    (1..=16).contains(&count).then(|| (value, &digits[count..]))
}

/// A space, a sign perhaps, and up to 18 digits.
#[inline]
fn signed(text: &[u8]) -> Option<(i64, &[u8])> {
    let text = text.strip_prefix(b" ")?;
    let digits = text.strip_prefix(b"-");
    let (negative, digits) = digits.map_or((false, text), |digits| (true, digits));
    let mut value = 0_i64;
    let mut count = 0;
    while let Some(&digit @ b'0'..=b'9') = digits.get(count) {
        if count == 18 {
            return None;
        }
        value = value * 10 + i64::from(digit - b'0');
        count += 1;
    }
    (count > 0).then(|| (if negative { -value } else { value }, &digits[count..]))
}
