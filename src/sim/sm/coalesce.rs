//! From lane addresses to 32-byte sectors of 128-byte lines, and to passes over
//! the shared-memory banks.

use std::ops::Range;

use crate::config::{BankConflicts, SharedSpec};
use gpumodel_core::isa::{Access, AddressMode};
use gpumodel_core::units::{SECTOR_BYTES, WARP_LANES, to_u8, to_u32, to_u64, to_usize};

/// Bytes of the line in which the sectors of one request lie.
pub(crate) const LINE_BYTES: u64 = 128;

/// Start of the addresses that stand for local memory; above every real one.
pub(crate) const LOCAL_BASE: u64 = 1 << 48;

const WORD_BYTES: u64 = 4;

/// The sectors of one line that one warp instruction touches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LineRequest {
    /// Byte address over [`LINE_BYTES`].
    pub(crate) line: u64,
    /// Touched sectors, bit 0 is the lowest address.
    pub(crate) sectors: u8,
    /// Its page has been looked up in the TLB.
    pub(crate) translated: bool,
    /// Touched bytes of each sector.
    pub(crate) bytes: [u32; 4],
    /// Look-ups of its slice beyond the first that each sector takes.
    pub(crate) more_turns: [u8; 4],
}

impl LineRequest {
    /// A request for all of a line.
    #[inline]
    fn whole(line: u64) -> Self {
        Self { line, sectors: 0b1111, bytes: [u32::MAX; 4], ..Self::default() }
    }

    /// Byte addresses of the touched sectors.
    pub(crate) fn sectors(&self) -> impl Iterator<Item = u64> {
        let (first, touched) = (self.line * LINE_BYTES, self.sectors);
        (0..4)
            .filter(move |sector| touched >> sector & 1 == 1)
            .map(move |s| first + s * SECTOR_BYTES)
    }

    /// The first request for what is touched of the sectors `left` (not none).
    #[inline]
    pub(crate) fn request(&self, left: u8, reach: Reach) -> SectorRequest {
        let first = self.line * LINE_BYTES;
        let sector = left.trailing_zeros();
        let address = first + u64::from(sector) * SECTOR_BYTES;
        let bytes = self.bytes[to_usize(sector)];
        match reach {
            Reach::Sector => self.sectors_alike(address, bytes, 1 << sector),
            Reach::WholeLine => self.whole_line(left),
            Reach::Block { sectors, alike } => {
                let block = u8::MAX >> (8 - sectors) << (sector & !(sectors - 1));
                let mask = if alike { left & block & self.alike(bytes) } else { left & block };
                self.sectors_alike(address, bytes, mask)
            }
        }
    }

    /// The request for the sectors `mask`, of each of which `bytes` are touched; `address` is the
    /// lowest one's.
    #[inline]
    fn sectors_alike(&self, address: u64, bytes: u32, mask: u8) -> SectorRequest {
        SectorRequest { address, bytes, sectors: 1, mask, more_turns: self.more_turns(mask) }
    }

    /// The request for what is touched of the whole line. Out of line: else all others would
    /// gather its words too, ahead of a loop over their requests.
    #[inline(never)]
    fn whole_line(&self, left: u8) -> SectorRequest {
        let bytes = self.bytes.iter().rev().fold(0, |all, &part| all << 8 | words(part));
        let (address, sectors) = (self.line * LINE_BYTES, to_u8(left.count_ones()));
        SectorRequest { address, bytes, sectors, mask: left, more_turns: self.more_turns(left) }
    }

    /// Look-ups beyond the first of each of some sectors.
    #[inline]
    fn more_turns(&self, sectors: u8) -> u8 {
        if self.more_turns == [0; 4] {
            return 0;
        }
        (0..4).filter(|&sector| sectors >> sector & 1 == 1).map(|s| self.more_turns[s]).sum()
    }

    /// The sectors of which `bytes` are touched.
    fn alike(&self, bytes: u32) -> u8 {
        let alike = (0..4).filter(|&sector| self.bytes[sector] == bytes);
        alike.fold(0, |all, sector| all | 1 << sector)
    }
}

/// What one request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// A sector of 32 bytes.
    Sector,
    /// A whole line.
    WholeLine,
    /// The touched sectors of an aligned block of a line.
    Block {
        /// Sectors of the block: a power of two.
        sectors: u32,
        /// Only those of which the same bytes are touched.
        alike: bool,
    },
}

/// The words of a sector of which a byte is among `bytes`.
fn words(bytes: u32) -> u32 {
    match bytes {
        0 => 0,
        u32::MAX => 0xff,
        _ => (0..8).filter(|word| bytes >> (4 * word) & 0xf != 0).map(|word| 1 << word).sum(),
    }
}

/// What one look-up of a cache asks for: a sector of the cache, of 32 bytes or a
/// whole line, or several sectors of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SectorRequest {
    /// Byte address of its start.
    pub(crate) address: u64,
    /// What is touched of each sector of the cache, one bit for each 1/32.
    pub(crate) bytes: u32,
    /// Touched sectors of 32 bytes of each sector of the cache.
    pub(crate) sectors: u8,
    /// Their bits in [`LineRequest::sectors`].
    pub(crate) mask: u8,
    /// Look-ups of their slice beyond one for each of them.
    pub(crate) more_turns: u8,
}

impl SectorRequest {
    /// Its part for some of its sectors of a line, none or the lowest first.
    #[inline]
    pub(crate) fn part(self, mask: u8) -> Self {
        if mask == 0 {
            return Self { mask, ..self };
        }
        let up = u64::from(mask.trailing_zeros() - self.mask.trailing_zeros());
        Self { mask, address: self.address + up * SECTOR_BYTES, ..self }
    }
}

/// Merges the active lanes' accesses of `width` bytes into `out`, in order of
/// first touch by lane. `out` is cleared first.
pub(crate) fn coalesce(access: &Access, width: u64, out: &mut Vec<LineRequest>) {
    out.clear();
    let width = width.max(1);
    let lanes = u64::from(access.mask.count_ones());
    let dense = access.mode == AddressMode::Stride
        && (access.stride == 0 || access.stride.unsigned_abs() == width);
    if dense && lanes > 0 {
        let span = if access.stride == 0 { width } else { lanes * width };
        let start = if access.stride < 0 {
            access.base.wrapping_sub(width * (lanes - 1))
        } else {
            access.base
        };
        return match whole_lines(start, span) {
            Some(lines) => out.extend(lines.map(LineRequest::whole)),
            None => touch_range(start, span, out),
        };
    }
    for (_, address) in access.active() {
        touch_range(address, width, out);
    }
}

/// Sets how many turns at their slices the `lines` of an atomic take, where `together` lanes
/// change one word at once (not 0): each sector as many as its word with most lanes.
pub(crate) fn take_turns(access: &Access, together: u32, lines: &mut [LineRequest]) {
    let alike = access.mode != AddressMode::Stride || access.stride == 0;
    if !alike || access.mask.count_ones() <= together {
        return;
    }
    let mut words = [0; 32];
    let mut count = 0;
    for (word, (_, address)) in words.iter_mut().zip(access.active()) {
        *word = address;
        count += 1;
    }
    let words = &mut words[..count];
    words.sort_unstable();
    for lanes in words.chunk_by(|one, next| one == next) {
        let more = (to_u32(lanes.len()) - 1) / together;
        let sector = to_usize(lanes[0] % LINE_BYTES / SECTOR_BYTES);
        let of_word = lines.iter_mut().find(|line| line.line == lanes[0] / LINE_BYTES);
        if let Some(line) = of_word {
            line.more_turns[sector] = line.more_turns[sector].max(to_u8(more));
        }
    }
}

/// The lines of a range of bytes, where it consists of whole ones.
#[inline]
fn whole_lines(start: u64, span: u64) -> Option<Range<u64>> {
    let end = start.checked_add(span)?;
    let whole = (start | end).is_multiple_of(LINE_BYTES);
    whole.then_some(start / LINE_BYTES..end / LINE_BYTES)
}

/// Adds a range of bytes, which lies behind all others or in a line of its own.
pub(crate) fn touch_in_order(start: u64, span: u64, out: &mut Vec<LineRequest>) {
    touch(start, span, out, |line, out| {
        if out.last().is_none_or(|last| last.line != line) {
            out.push(LineRequest { line, ..LineRequest::default() });
        }
        out.last_mut().expect("it has a line now")
    });
}

fn touch_range(start: u64, span: u64, out: &mut Vec<LineRequest>) {
    touch(start, span, out, slot_of);
}

fn touch(
    start: u64,
    span: u64,
    out: &mut Vec<LineRequest>,
    slot_of: impl Fn(u64, &mut Vec<LineRequest>) -> &mut LineRequest,
) {
    let mut address = start;
    let end = start.saturating_add(span);
    while address < end {
        let sector_end = (address / SECTOR_BYTES + 1).saturating_mul(SECTOR_BYTES).min(end);
        let line = address / LINE_BYTES;
        let sector = to_usize(address / SECTOR_BYTES % (LINE_BYTES / SECTOR_BYTES));
        let first = to_u32(address % SECTOR_BYTES);
        let count = to_u32(sector_end - address);
        let bytes = if count >= 32 { u32::MAX } else { ((1_u32 << count) - 1) << first };
        let request = slot_of(line, out);
        request.sectors |= 1 << sector;
        request.bytes[sector] |= bytes;
        if sector_end == u64::MAX {
            return;
        }
        address = sector_end;
    }
}

/// The request of `line`, made if absent; neighbours usually share the last one.
fn slot_of(line: u64, out: &mut Vec<LineRequest>) -> &mut LineRequest {
    let position = out.iter().rposition(|request| request.line == line);
    let position = position.unwrap_or_else(|| {
        out.push(LineRequest { line, ..LineRequest::default() });
        out.len() - 1
    });
    &mut out[position]
}

/// Passes over the banks of `shared` that one warp instruction takes; at least 1
/// when a lane is active, 0 otherwise.
///
/// A bank delivers one word per pass, to every lane that wants it: the passes
/// are the distinct words of the busiest bank. A full warp of 64-bit words takes
/// two, of 128-bit words four; lanes that read the same words share them.
pub(crate) fn bank_passes(access: &Access, width: u64, shared: &SharedSpec) -> u32 {
    let (bank_bytes, words) = words_of_lane(width, shared);
    let firsts = || access.active().map(|(_, address)| quotient(address, bank_bytes));
    if is_run(firsts(), words, shared.banks.clamp(1, 64).into()) {
        return 1;
    }
    let mut seen = BankWords::new(shared.banks);
    for first in firsts() {
        for word in first..first.saturating_add(words) {
            seen.insert(word);
        }
    }
    seen.busiest()
}

/// Cycles in which the registers of a load of `width` bytes per lane come back, see
/// [`SharedSpec::return_bytes`]; 0 without that bound.
pub(crate) fn return_cycles(access: &Access, width: u32, shared: &SharedSpec) -> u32 {
    if shared.return_bytes == 0 {
        return 0;
    }
    let cycles = (width.div_ceil(4) * to_u32(LINE_BYTES)).div_ceil(shared.return_bytes);
    if returns_packed(access, width, shared) { cycles.div_ceil(2) } else { cycles }
}

/// Whether two registers of a load of `width` bytes per lane come back as one, see
/// [`SharedSpec::packs_returns`].
pub(crate) fn returns_packed(access: &Access, width: u32, shared: &SharedSpec) -> bool {
    shared.packs_returns && width > 4 && is_paired(access)
}

/// Whether all active lanes want what their neighbours want, or all what the lanes next but one
/// want.
fn is_paired(access: &Access) -> bool {
    let mut addresses = [None; WARP_LANES];
    for (lane, address) in access.active() {
        addresses[to_usize(lane)] = Some(address);
    }
    let alike = |apart: usize| {
        (0..addresses.len()).all(|lane| match (addresses[lane], addresses[lane ^ apart]) {
            (Some(one), Some(other)) => one == other,
            _ => true,
        })
    };
    alike(1) || alike(2)
}

/// Passes that the distinct words of the access would need if they were spread evenly over the
/// banks.
#[cold]
pub(crate) fn fewest_passes(access: &Access, width: u64, shared: &SharedSpec) -> u32 {
    let (bank_bytes, words) = words_of_lane(width, shared);
    let firsts = access.active().map(|(_, address)| quotient(address, bank_bytes));
    let mut all: Vec<u64> = firsts.flat_map(|first| first..first.saturating_add(words)).collect();
    all.sort_unstable();
    all.dedup();
    to_u32(all.len().div_ceil(to_usize(shared.banks.clamp(1, 64))))
}

/// Bytes of a bank's word, and the words of a lane that conflict.
fn words_of_lane(width: u64, shared: &SharedSpec) -> (u64, u64) {
    let bank_bytes = u64::from(shared.bank_bytes.max(1));
    let words = match shared.conflicts {
        BankConflicts::AllWords => width.div_ceil(bank_bytes).clamp(1, 4),
        BankConflicts::FirstWord => 1,
    };
    (bank_bytes, words)
}

/// Sectors of 32 bytes that a warp instruction touches which accesses `width` bytes per lane, in
/// local memory where it is `local`.
#[must_use]
pub fn access_sectors(access: &Access, width: u64, local: bool) -> u32 {
    let mut lines = Vec::new();
    match local {
        true => interleave_local(access, width, 0, &mut lines),
        false => coalesce(access, width, &mut lines),
    }
    lines.iter().map(|line| line.sectors.count_ones()).sum()
}

/// Passes over the banks of `shared` beyond those that so many words need anyhow.
#[must_use]
pub fn bank_conflicts(access: &Access, width: u64, shared: &SharedSpec) -> u32 {
    bank_passes(access, width, shared).saturating_sub(fewest_passes(access, width, shared))
}

/// Whether lanes whose words begin at `firsts`, `words` each, read one word of each of
/// `banks` at most as they follow each other: one word for all, or word after word.
fn is_run(mut firsts: impl Iterator<Item = u64>, words: u64, banks: u64) -> bool {
    let Some(first) = firsts.next() else { return false };
    let mut last = first;
    let follows = firsts.all(|word| {
        let step = word.wrapping_sub(std::mem::replace(&mut last, word));
        step <= 1
    });
    follows && last - first + words <= banks
}

/// `value / by`, which is nearly always a power of two and then needs no division.
fn quotient(value: u64, by: u64) -> u64 {
    if by.is_power_of_two() { value >> by.trailing_zeros() } else { value / by }
}

/// Distinct words by bank.
struct BankWords {
    banks: u64,
    words: [u64; 128],
    count: usize,
    load: [u8; 64],
}

impl BankWords {
    fn new(banks: u32) -> Self {
        Self { banks: u64::from(banks.clamp(1, 64)), words: [0; 128], count: 0, load: [0; 64] }
    }

    fn insert(&mut self, word: u64) {
        let bank = to_usize(word - quotient(word, self.banks) * self.banks);
        let known = self.load[bank] > 0 && self.words[..self.count].contains(&word);
        if !known && self.count < self.words.len() {
            self.words[self.count] = word;
            self.count += 1;
            self.load[bank] += 1;
        }
    }

    fn busiest(&self) -> u32 {
        u32::from(self.load.iter().copied().max().unwrap_or(0))
    }
}

/// Where a lane's local-memory word lies: the hardware interleaves 4-byte words
/// by lane, so that lanes at the same offset touch one 128-byte line.
pub(crate) fn interleave_local(
    access: &Access,
    width: u64,
    warp_slot: u64,
    out: &mut Vec<LineRequest>,
) {
    /// Bytes of one warp's local memory: 32 lanes of the 16 MB window.
    const SPAN: u64 = 1 << 29;
    out.clear();
    let start = LOCAL_BASE + warp_slot * SPAN;
    for (lane, offset) in access.active() {
        let first = (offset & 0x00ff_ffff) / WORD_BYTES;
        for word in first..first + width.div_ceil(WORD_BYTES).max(1) {
            let address = start + (word * 32 + to_u64(lane)) * WORD_BYTES;
            touch_range(address, WORD_BYTES.min(width.max(1)), out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{
        LineRequest, bank_passes, coalesce, interleave_local, return_cycles, take_turns, to_u64,
    };
    use crate::config::{BankConflicts, SharedSpec};
    use gpumodel_core::isa::{Access, AddressMode};

    fn strided(base: u64, stride: i64) -> Access {
        Access { mask: u32::MAX, mode: AddressMode::Stride, base, stride, ..Access::default() }
    }

    fn sectors(access: &Access, width: u64) -> u32 {
        let mut out = Vec::new();
        coalesce(access, width, &mut out);
        out.iter().map(|r| r.sectors.count_ones()).sum()
    }

    #[test]
    fn a_full_warp_of_words_is_four_sectors_of_one_line() {
        let mut out = Vec::new();
        coalesce(&strided(0x1000, 4), 4, &mut out);
        let line = LineRequest {
            line: 0x20,
            sectors: 0b1111,
            bytes: [u32::MAX; 4],
            ..LineRequest::default()
        };
        assert_eq!(out, [line]);
        coalesce(&strided(0x107c, -4), 4, &mut out);
        assert_eq!(out, [line]);
    }

    #[test]
    fn lanes_of_one_word_take_turns_and_others_do_not() {
        let turns = |access: &Access, together| {
            let mut out = Vec::new();
            coalesce(access, 4, &mut out);
            take_turns(access, together, &mut out);
            out.iter().map(|line| line.more_turns).collect::<Vec<_>>()
        };
        assert_eq!(turns(&strided(0x1020, 0), 16), [[0, 1, 0, 0]]);
        assert_eq!(turns(&strided(0x1020, 0), 1), [[0, 31, 0, 0]]);
        assert_eq!(turns(&strided(0x1000, 4), 1), [[0; 4]]);
        // Word 0 has 3 lanes and word 1 two, in one sector; a word of another line has 27.
        let mut lanes = [0x2060; 32];
        lanes[..5].copy_from_slice(&[0x1000, 0x1000, 0x1000, 0x1004, 0x1004]);
        let mut listed = Access::default();
        listed.set(u32::MAX, &lanes);
        assert_eq!(turns(&listed, 1), [[2, 0, 0, 0], [0, 0, 0, 26]]);
        assert_eq!(turns(&listed, 2), [[1, 0, 0, 0], [0, 0, 0, 13]]);
    }

    #[test]
    fn strides_and_widths_touch_what_they_must() {
        assert_eq!(sectors(&strided(0x1000, 0), 4), 1);
        assert_eq!(sectors(&strided(0x1000, 32), 4), 32);
        assert_eq!(sectors(&strided(0x1000, 16), 16), 16);
        assert_eq!(sectors(&strided(0x101e, 4), 4), 5);
        assert_eq!(sectors(&Access::default(), 4), 0);
    }

    fn shared(conflicts: BankConflicts, bank_bytes: u32) -> SharedSpec {
        SharedSpec {
            bytes: 49_152,
            unit_bytes: 256,
            reserved_bytes_per_cta: 0,
            latency_cycles: 20,
            banks: 32,
            bank_bytes,
            conflicts,
            return_bytes: 0,
            packs_returns: false,
        }
    }

    #[test]
    fn a_register_returns_per_cycle_and_pairs_of_lanes_pack_two() {
        let mut spec = shared(BankConflicts::AllWords, 4);
        assert_eq!(return_cycles(&strided(0, 0), 16, &spec), 0, "no bound");
        spec.return_bytes = 128;
        let cycles = |spec: &SharedSpec, access: &Access, width| return_cycles(access, width, spec);
        assert_eq!([4, 8, 16].map(|width| cycles(&spec, &strided(0, 0), width)), [1, 2, 4]);
        spec.packs_returns = true;
        assert_eq!([4, 8, 16].map(|width| cycles(&spec, &strided(0, 0), width)), [1, 1, 2]);
        for (apart, expected) in [(1, 2), (2, 2), (4, 4)] {
            let mut access = Access::default();
            access.set(u32::MAX, &std::array::from_fn(|lane| 16 * to_u64(lane & !apart)));
            assert_eq!(cycles(&spec, &access, 16), expected, "{apart}");
        }
    }

    #[test]
    fn bank_conflicts_count_distinct_words() {
        let all = shared(BankConflicts::AllWords, 4);
        let passes = |stride, width| bank_passes(&strided(0, stride), width, &all);
        assert_eq!(passes(4, 4), 1);
        assert_eq!(passes(0, 4), 1);
        assert_eq!(passes(8, 4), 2);
        assert_eq!(passes(128, 4), 32);
        assert_eq!(passes(132, 4), 1);
        assert_eq!(passes(8, 8), 2);
        assert_eq!(passes(16, 16), 4);
        assert_eq!(passes(0, 16), 1);
        assert_eq!(passes(16, 8), 4);
        assert_eq!(bank_passes(&Access::default(), 4, &all), 0);
        assert_eq!(bank_passes(&strided(0, 16), 16, &shared(BankConflicts::FirstWord, 4)), 4);
        assert_eq!(bank_passes(&strided(0, 8), 8, &shared(BankConflicts::AllWords, 8)), 1);
    }

    #[test]
    fn every_stride_takes_as_many_passes_as_its_busiest_bank_has_words() {
        for bank_bytes in [4, 8] {
            let all = shared(BankConflicts::AllWords, bank_bytes);
            for (start, stride, width) in (0_u64..24)
                .flat_map(|start| (0..140).map(move |stride| (start, stride)))
                .flat_map(|(start, stride)| [4_u64, 8, 16].map(|width| (start, stride, width)))
            {
                let access = strided(start, stride);
                let (bank, words) = (u64::from(bank_bytes), width.div_ceil(bank_bytes.into()));
                let all_words: std::collections::BTreeSet<u64> =
                    access.active().flat_map(|(_, at)| at / bank..at / bank + words).collect();
                let of_bank = |bank| all_words.iter().filter(|word| *word % 32 == bank).count();
                let busiest = (0..32).map(of_bank).max().unwrap();
                let passes = bank_passes(&access, width, &all);
                assert_eq!(usize::try_from(passes).unwrap(), busiest, "{start} {stride} {width}");
            }
        }
    }

    #[test]
    fn equal_local_offsets_are_one_line() {
        let mut out = Vec::new();
        interleave_local(&strided(0xff_fbd0, 0), 4, 3, &mut out);
        assert_eq!(out.len(), 1);
        assert_eq!(out[0].sectors, 0b1111);
    }
}
