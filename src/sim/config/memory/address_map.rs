//! A mapping made for one machine: address to location and back, a bijection.
//!
//! Inside a channel a location is a linear function of the address bits over
//! GF(2): one table look-up per address byte gives all its parts at once.

use super::MemoryStandard;
use super::address_bits::{BYTES, HASH, Lanes, PARTS, SLICE, invert, mask, tables};
use super::layout::{draw, pae};
use super::mapping::{ADDRESS_BITS, FIELDS, Interleave, Location, Mapping};
use std::sync::Arc;

use crate::config::error::SpecError;
use gpumodel_core::units::{to_u32, to_usize};

/// An address mapping of one machine.
#[derive(Clone, Debug)]
pub struct AddressMap {
    name: String,
    channels: u32,
    /// Channels that exist: fewer than [`AddressMap::channels`] on a part of a machine.
    kept: u32,
    /// The lowest bit that chooses the channel: pieces of two to this many bytes
    /// stay together.
    grain: u32,
    slices: u32,
    /// Slices per channel are two to this.
    slice_bits: u32,
    spread: Spread,
    split: Split,
    /// Address bits that choose a place.
    seen: u64,
    /// A request of two to this many accesses lies where its first one does, whatever the
    /// bits inside it say; 0: these follow the other rules.
    request_bits: u32,
    /// Where each of [`FIELDS`], the raw slice and the hash lie in a packed word.
    shifts: [u32; PARTS],
    masks: [u32; PARTS],
    /// XOR of `tables[b][byte b of the address]` is the packed word.
    tables: Box<[[u64; 256]; BYTES]>,
    /// Address bits that a packed field bit stands for.
    inverse: Vec<u64>,
    /// Bits below the lowest field bit: bytes within an access.
    offset_bits: u32,
    /// Bits of the channel-free address that fields are made of.
    covered: u64,
    /// Bits that choose the slice, and those of the channel where they stay in the
    /// address: highest first.
    choosing: Vec<u32>,
    /// The same for parts of the machine that applications may own, by their channels.
    parts: Vec<Arc<AddressMap>>,
}

/// How channel and slice, numbered together, are spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spread {
    /// Not at all.
    None,
    /// XOR of the hash; all slices are a power of two.
    Xor,
    /// The sum with the hash, modulo the slices.
    Add,
    /// XOR of the hash, modulo the slices: several numbers may become one.
    XorModulo,
    /// The channel of [`pae`], then XOR of the hash.
    Pae,
    /// Drawn for the address above this bit, from this first number on.
    Random(u32, u64),
}

/// How the channel is split off.
#[derive(Clone, Debug)]
pub(super) enum Split {
    /// Bits inserted at a position: shift and number.
    Insert(u32, u32),
    /// Remainder: shift, count and the reciprocal 2^64 / count, rounded up.
    Divide(u32, u64, u64),
    /// A list of address bits.
    Bits(Vec<u32>),
}

/// The linear part of a map and what belongs to it, put together elsewhere.
pub(super) struct Parts {
    pub(super) name: String,
    /// Channels and slices per channel.
    pub(super) counts: (u32, u32),
    pub(super) spread: Spread,
    pub(super) split: Split,
    /// See the fields of [`AddressMap`].
    pub(super) seen: u64,
    pub(super) request_bits: u32,
    /// Bits of each part of the packed word.
    pub(super) widths: [u32; PARTS],
    /// The packed word of each bit of the address without its channel.
    pub(super) images: Vec<u64>,
    pub(super) offset_bits: u32,
    pub(super) covered: u64,
    /// Bits of the slice in the address without its channel, and those of the channel where they
    /// stay in it.
    pub(super) slice: Vec<u32>,
    pub(super) taken: u64,
}

impl AddressMap {
    /// The map of `parts`; it has no inverse.
    pub(super) fn of_parts(parts: Parts) -> Self {
        let (mut shifts, mut at) = ([0; PARTS], 0);
        for (shift, width) in shifts.iter_mut().zip(parts.widths) {
            (*shift, at) = (at.min(63), at + width);
        }
        let (channels, slices) = parts.counts;
        Self {
            name: parts.name,
            channels,
            kept: channels,
            grain: grain(&parts.split).unwrap_or(0),
            slices,
            slice_bits: slices.ilog2(),
            spread: parts.spread,
            split: parts.split,
            seen: parts.seen,
            request_bits: parts.request_bits,
            shifts,
            masks: parts.widths.map(|width| to_u32(mask(width))),
            tables: tables(&parts.images),
            inverse: Vec::new(),
            offset_bits: parts.offset_bits,
            covered: parts.covered,
            choosing: choosing(&parts.slice, parts.taken),
            parts: Vec::new(),
        }
    }

    /// See [`Mapping::for_machine`].
    pub(super) fn new(mapping: &Mapping, channels: u32, slices: u32) -> Result<Self, SpecError> {
        let unfit =
            |problem: String| SpecError::InconsistentMemory { name: mapping.name.clone(), problem };
        if channels == 0 || channels > 1024 {
            return Err(unfit(format!("expected 1 to 1024 channels, found {channels}")));
        }
        let slice = slice_bits(mapping, slices).map_err(unfit)?;
        let (split, taken) = split(mapping, channels).map_err(unfit)?;
        let dropped = mapping.dropped.iter().fold(0, |bits, bit| bits | 1 << bit);
        let usable = !taken & !dropped & mask(ADDRESS_BITS - free_bits(&split));
        let lanes = Lanes { mapping, slice, usable, ports: channels * slices };
        let (shifts, widths) = lanes.layout().map_err(unfit)?;
        let image = |bit: u32| lanes.image(bit, &shifts);
        let images: Vec<u64> = (0..64).map(image).collect();
        let packed: u32 = widths.iter().take(FIELDS.len()).sum();
        let (inverse, covered) = invert(&images, packed, usable).map_err(unfit)?;
        if covered == 0 {
            return Err(unfit("expected bits of a column, bank or row, found none".to_owned()));
        }
        let chosen = grain(&split).into_iter().chain(slice.iter().copied()).min();
        let images = whole(images, covered.trailing_zeros(), chosen).map_err(unfit)?;
        let spread = match widths[HASH] {
            0 => Spread::None,
            _ if (channels * slices).is_power_of_two() => Spread::Xor,
            _ => Spread::Add,
        };
        let parts = Parts {
            name: mapping.name.clone(),
            counts: (channels, slices),
            spread,
            split,
            seen: mask(ADDRESS_BITS),
            request_bits: 0,
            widths,
            images,
            offset_bits: covered.trailing_zeros(),
            covered,
            slice: slice.to_vec(),
            taken,
        };
        Ok(Self { inverse, ..Self::of_parts(parts) })
    }

    /// The same map for a part of the machine that has only `kept` of its channels:
    /// what lay in several channels side by side lies in one kept channel, at the
    /// addresses next to each other that it lacks when only a share of the kernel's
    /// CTAs run. So a sample of the CTAs finds as many banks busy, rows open and sets
    /// full as all of them do in the whole machine. Several addresses meet in one
    /// place: [`AddressMap::address`] is no inverse any more.
    ///
    /// # Panics
    /// When `kept` is 0 or does not divide the channels.
    #[must_use]
    pub fn folded(self, kept: u32) -> Self {
        assert!(kept > 0 && self.channels.is_multiple_of(kept), "{kept} of {}", self.channels);
        Self { kept, ..self }
    }

    /// The same with the maps of parts of the machine.
    pub(super) fn with_parts(self, parts: Vec<Arc<Self>>) -> Self {
        Self { parts, ..self }
    }

    /// The map of a part of the machine with so many channels; `None`: it has no such part.
    pub(crate) fn for_part(&self, channels: u32) -> Option<&Arc<Self>> {
        self.parts.iter().find(|part| part.channels == channels)
    }

    /// Channels of the machine.
    #[must_use]
    pub fn channels(&self) -> u32 {
        self.channels
    }

    /// The address bits that are the channel, lowest first; `None` where it is hashed,
    /// a remainder or folded.
    pub(super) fn channel_bits(&self) -> Option<Vec<u32>> {
        match &self.split {
            _ if self.spread != Spread::None || self.kept != self.channels => None,
            Split::Insert(shift, bits) => Some((*shift..shift + bits).collect()),
            Split::Divide(..) => None,
            Split::Bits(bits) => Some(bits.clone()),
        }
    }

    /// L2 slices per channel.
    #[must_use]
    pub fn slices(&self) -> u32 {
        self.slices
    }

    /// Bytes of the smallest piece that keeps its address bits together: an access.
    #[must_use]
    pub fn access_bytes(&self) -> u64 {
        1 << self.offset_bits
    }

    /// Where `address` lies. Address bits from 47 up are ignored.
    #[must_use]
    #[inline]
    pub fn locate(&self, address: u64) -> Location {
        let (channel, slice, word) = self.place(address);
        Location {
            channel,
            slice,
            pseudo_channel: self.part(word, 1),
            bank_group: self.part(word, 2),
            bank: self.part(word, 3),
            row: self.part(word, 4),
            column: self.column(word, address),
        }
    }

    /// Channel and slice of `address`, as in [`AddressMap::locate`].
    #[must_use]
    pub fn slice_of(&self, address: u64) -> (u32, u32) {
        let (channel, slice, _) = self.place(address);
        (channel, slice)
    }

    /// Channel and slice of `address`, and the packed word of the other parts.
    #[inline]
    fn place(&self, address: u64) -> (u32, u32, u64) {
        let (mut channel, rest) = self.split.apart(address & self.seen);
        let mut word = self.word(rest);
        let mut slice = self.part(word, SLICE);
        if self.spread != Spread::None {
            let index = channel << self.slice_bits | slice;
            let index = self.spread(index, self.part(word, HASH), address & self.seen);
            (channel, slice) = (index >> self.slice_bits, index & (self.slices - 1));
        }
        if self.kept != self.channels {
            let turn = self.part(word, 4).wrapping_mul(0x9e37_79b1) >> 16;
            word ^= self.word(u64::from(channel / self.kept) << self.grain);
            channel = (channel + turn) % self.kept;
        }
        (channel, slice, word)
    }

    /// The access within the row.
    #[inline]
    fn column(&self, word: u64, address: u64) -> u32 {
        let column = self.part(word, 0);
        if self.request_bits == 0 {
            return column;
        }
        let inside = address >> self.offset_bits & mask(self.request_bits);
        column << self.request_bits | to_u32(inside)
    }

    /// Whether every aligned block of `bytes` lies in one row, its accesses side by side
    /// from a multiple of their number on. Blocks are tried along every address bit.
    #[must_use]
    pub fn keeps_whole(&self, bytes: u64) -> bool {
        let access = self.access_bytes();
        let mut starts = (0..ADDRESS_BITS).map(|bit| (1 << bit) / bytes * bytes);
        let together = |start: u64| {
            let first = self.locate(start);
            (0..bytes / access).all(|part| {
                let column = first.column | to_u32(part);
                first.column.is_multiple_of(to_u32(bytes / access).max(1))
                    && self.locate(start + part * access) == Location { column, ..first }
            })
        };
        starts.all(together)
    }

    /// Whether every aligned block of `bytes` lies in one slice. Blocks are tried along every
    /// address bit.
    #[must_use]
    pub fn keeps_in_slice(&self, bytes: u64) -> bool {
        let slice = |address| {
            let Location { channel, slice, .. } = self.locate(address);
            (channel, slice)
        };
        let mut starts = (0..ADDRESS_BITS).map(|bit| (1 << bit) / bytes * bytes);
        starts.all(|start| {
            let accesses =
                (0..bytes / self.access_bytes().min(bytes)).map(|n| n * self.access_bytes());
            accesses.into_iter().all(|inside| slice(start + inside) == slice(start))
        })
    }

    /// Whether [`AddressMap::within_slice`] moves the bits of an address, each on its own.
    pub(crate) fn divides_linearly(&self) -> bool {
        match self.split {
            Split::Insert(..) | Split::Bits(_) => true,
            Split::Divide(..) => false,
        }
    }

    /// `address` without what chooses channel and slice: addresses of one slice
    /// stay apart and, among themselves, in order.
    #[must_use]
    pub fn within_slice(&self, address: u64) -> u64 {
        let (_, rest) = self.split.apart(address & self.seen);
        let without = |rest: u64, &bit: &u32| (rest >> (bit + 1)) << bit | rest & mask(bit);
        self.choosing.iter().fold(rest, without)
    }

    /// The first address of the access at `location`: the inverse of
    /// [`AddressMap::locate`]. The slice follows from the other parts.
    ///
    /// # Panics
    /// For the map of a [`Layout`](super::Layout), which may send two addresses to one place.
    #[must_use]
    pub fn address(&self, location: Location) -> u64 {
        assert!(!self.inverse.is_empty(), "the layout of {} has no inverse", self.name);
        let parts = [
            location.column,
            location.pseudo_channel,
            location.bank_group,
            location.bank,
            location.row,
        ];
        let word =
            parts.iter().zip(self.shifts).fold(0, |w, (p, shift)| w | u64::from(*p) << shift);
        let bits = self.inverse.iter().enumerate().filter(|(at, _)| word >> at & 1 == 1);
        let rest = bits.fold(0, |rest, (_, bits)| rest ^ bits);
        let bytes = rest.to_le_bytes();
        let image = self.tables.iter().zip(bytes).fold(0, |w, (t, b)| w ^ t[usize::from(b)]);
        let mut channel = location.channel;
        if self.spread != Spread::None {
            let index = location.channel * self.slices + location.slice;
            channel = self.gather(index, self.part(image, HASH)) / self.slices;
        }
        self.split.together(channel, rest)
    }

    /// Checks that every location of this map exists in a channel of `standard`
    /// (rows beyond the standard's wrap and are not refused).
    ///
    /// # Errors
    /// [`SpecError::InconsistentMemory`] that names the part that does not fit.
    pub fn fits(&self, standard: &MemoryStandard) -> Result<(), SpecError> {
        let limits = [
            ("pseudo_channel", 1, standard.pseudo_channels),
            ("bank_group", 2, standard.bank_groups),
            ("bank", 3, standard.banks_per_group),
        ];
        for (field, part, limit) in limits {
            if self.masks[part] >= limit {
                return Err(SpecError::InconsistentMemory {
                    name: self.name.clone(),
                    problem: format!(
                        "its {field} runs to {}, {} has {limit}: choose a mapping made for it",
                        self.masks[part], standard.name
                    ),
                });
            }
        }
        Ok(())
    }

    /// The packed parts of a channel-free address.
    #[inline]
    fn word(&self, rest: u64) -> u64 {
        let bytes = rest.to_le_bytes();
        let mut word = 0;
        for (table, byte) in self.tables.iter().zip(bytes) {
            word ^= table[usize::from(byte)];
        }
        word
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation)] // masked to at most 32 bits
    fn part(&self, word: u64, part: usize) -> u32 {
        (word >> self.shifts[part]) as u32 & self.masks[part]
    }

    #[inline]
    fn spread(&self, index: u32, hash: u32, address: u64) -> u32 {
        let ports = self.channels * self.slices;
        match self.spread {
            Spread::None => index,
            Spread::Xor => index ^ hash,
            Spread::Add => (index + hash) % ports,
            Spread::XorModulo => (index ^ hash) % ports,
            Spread::Pae => {
                let slice = index & (self.slices - 1);
                (pae(index >> self.slice_bits) << self.slice_bits | slice) ^ hash
            }
            Spread::Random(from, seed) => to_u32(draw(seed, address >> from) % u64::from(ports)),
        }
    }

    fn gather(&self, index: u32, hash: u32) -> u32 {
        let ports = self.channels * self.slices;
        match self.spread {
            Spread::Xor => index ^ hash,
            _ => (index + ports - hash % ports) % ports,
        }
    }

    /// Bits of the channel-free address that name an access.
    #[must_use]
    pub fn covered_bits(&self) -> u64 {
        self.covered
    }
}

impl Split {
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // a channel is below 1024, a quotient below 2^47
    fn apart(&self, address: u64) -> (u32, u64) {
        match self {
            Self::Insert(shift, bits) => {
                let above = address >> shift;
                ((above & mask(*bits)) as u32, (above >> bits) << shift | address & mask(*shift))
            }
            Self::Divide(shift, count, reciprocal) => {
                let above = address >> shift;
                let quotient = ((u128::from(above) * u128::from(*reciprocal)) >> 64) as u64;
                let channel = (above - quotient * count) as u32;
                (channel, quotient << shift | address & mask(*shift))
            }
            Self::Bits(bits) => {
                let gathered = bits.iter().enumerate();
                let channel =
                    gathered.fold(0, |c, (at, bit)| c | ((address >> bit & 1) as u32) << at);
                (channel, address)
            }
        }
    }

    fn together(&self, channel: u32, rest: u64) -> u64 {
        let channel = u64::from(channel);
        match self {
            Self::Insert(shift, bits) => {
                ((rest >> shift) << bits | channel) << shift | rest & mask(*shift)
            }
            Self::Divide(shift, count, _) => {
                ((rest >> shift) * count + channel) << shift | rest & mask(*shift)
            }
            Self::Bits(bits) => {
                bits.iter().enumerate().fold(rest, |a, (at, bit)| a | (channel >> at & 1) << bit)
            }
        }
    }
}

/// The bits that choose among so many slices per channel.
fn slice_bits(mapping: &Mapping, slices: u32) -> Result<&[u32], String> {
    let bits = slices.checked_ilog2().filter(|_| slices.is_power_of_two());
    let listed = bits.and_then(|bits| mapping.slice.get(..to_usize(bits)));
    listed.ok_or_else(|| {
        format!(
            "expected slices per channel to be a power of two up to 2^{}, found {slices}",
            mapping.slice.len()
        )
    })
}

/// The bits of `slice` and of `taken`, highest first.
fn choosing(slice: &[u32], taken: u64) -> Vec<u32> {
    let channel = (0..ADDRESS_BITS).filter(|bit| taken >> bit & 1 == 1);
    let mut bits: Vec<u32> = slice.iter().copied().chain(channel).collect();
    bits.sort_unstable_by(|a, b| b.cmp(a));
    bits
}

/// The channel as the remainder of the address above bit `shift`.
pub(super) fn divide(shift: u32, channels: u32) -> Split {
    if channels.is_power_of_two() {
        return Split::Insert(shift, channels.ilog2());
    }
    let count = u64::from(channels);
    Split::Divide(shift, count, u64::MAX / count + 1)
}

/// The channel split, and the address bits that it takes for itself.
fn split(mapping: &Mapping, channels: u32) -> Result<(Split, u64), String> {
    match &mapping.interleave {
        Interleave::Divide(_) if !mapping.channel_xor.is_empty() => {
            Err("xor.channel needs interleave.channel, not interleave.shift".to_owned())
        }
        Interleave::Divide(shift) => Ok((divide(*shift, channels), 0)),
        Interleave::Bits(bits) => {
            let count = bits.len();
            let named = u32::try_from(count).ok().and_then(|count| 1_u32.checked_shl(count));
            if named != Some(channels) {
                return Err(format!(
                    "its channel bits name 2^{count} channels, the machine has {channels}"
                ));
            }
            let taken = bits.iter().fold(0_u64, |taken, bit| taken | 1 << bit);
            if to_usize(taken.count_ones()) != count {
                return Err("its channel bits name one bit twice".to_owned());
            }
            check_channel_xor(mapping, count, taken)?;
            Ok((Split::Bits(bits.clone()), taken))
        }
    }
}

/// Checks what is XORed onto `count` channel bits, which are `taken`.
fn check_channel_xor(mapping: &Mapping, count: usize, taken: u64) -> Result<(), String> {
    let lists = &mapping.channel_xor;
    if !lists.is_empty() && lists.len() != count {
        return Err(format!(
            "expected a list in xor.channel for each of its {count} channel bits, found {}",
            lists.len()
        ));
    }
    match lists.iter().flatten().find(|bit| taken >> **bit & 1 == 1) {
        Some(bit) => Err(format!(
            "xor.channel has address bit {bit}, which is a channel bit: two channels would become one"
        )),
        None => Ok(()),
    }
}

/// The lowest address bit that chooses a channel, where there are several.
fn grain(split: &Split) -> Option<u32> {
    match split {
        Split::Insert(_, 0) => None,
        Split::Insert(shift, _) | Split::Divide(shift, ..) => Some(*shift),
        Split::Bits(bits) => bits.iter().copied().min(),
    }
}

/// `images` for accesses of two to the power of `access` bytes that lie in one place:
/// `chosen`, the lowest bit that chooses channel or slice, is not inside one, and bits
/// that are do not count in a hash.
fn whole(mut images: Vec<u64>, access: u32, chosen: Option<u32>) -> Result<Vec<u64>, String> {
    if let Some(bit) = chosen.filter(|bit| *bit < access) {
        return Err(format!(
            "address bit {bit} chooses a channel or slice, but the lowest bit of column, bank \
             and row is {access}: an access would lie in several"
        ));
    }
    images[..to_usize(access)].fill(0);
    Ok(images)
}

/// Bits by which the channel-free address is shorter than the address.
pub(super) fn free_bits(split: &Split) -> u32 {
    match split {
        Split::Insert(_, bits) => *bits,
        Split::Divide(_, count, _) => count.ilog2(),
        Split::Bits(_) => 0,
    }
}
