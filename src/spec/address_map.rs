//! A mapping made for one machine: address to location and back, a bijection.
//!
//! Inside a channel a location is a linear function of the address bits over
//! GF(2): one table look-up per address byte gives all its parts at once.

use super::mapping::{ADDRESS_BITS, FIELDS, Hash, Interleave, Location, Mapping};
use super::memory::MemoryStandard;
use super::memory_error::MemoryError;
use crate::units::{to_u32, to_usize};

/// Address bytes that the tables cover.
const BYTES: usize = 6;

/// Primitive polynomials of degree 1 to 12 without their leading term.
const POLYNOMIALS: [u64; 12] =
    [0b1, 0b11, 0b11, 0b11, 0b101, 0b11, 0b11, 0b11101, 0b1_0001, 0b1001, 0b101, 0b101_0011];

/// An address mapping of one machine.
#[derive(Clone, Debug)]
pub struct AddressMap {
    name: String,
    channels: u32,
    slices: u32,
    split: Split,
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
    hashed: bool,
}

/// [`FIELDS`], the raw slice, the hash.
const PARTS: usize = FIELDS.len() + 2;
const SLICE: usize = FIELDS.len();
const HASH: usize = FIELDS.len() + 1;

/// How the channel is split off.
#[derive(Clone, Debug)]
enum Split {
    /// Bits inserted at a position: shift and number.
    Insert(u32, u32),
    /// Remainder: shift, count and the reciprocal 2^64 / count, rounded up.
    Divide(u32, u64, u64),
    /// A list of address bits.
    Bits(Vec<u32>),
}

impl AddressMap {
    /// See [`Mapping::for_machine`].
    pub(super) fn new(mapping: &Mapping, channels: u32, slices: u32) -> Result<Self, MemoryError> {
        let unfit =
            |problem: String| MemoryError::Inconsistent { name: mapping.name.clone(), problem };
        if channels == 0 || channels > 1024 {
            return Err(unfit(format!("expected 1 to 1024 channels, found {channels}")));
        }
        let slice_bits = slices.checked_ilog2().filter(|_| slices.is_power_of_two());
        let listed = slice_bits.and_then(|bits| mapping.slice.get(..to_usize(bits)));
        let slice = listed.ok_or_else(|| {
            unfit(format!(
                "expected slices per channel to be a power of two up to 2^{}, found {slices}",
                mapping.slice.len()
            ))
        })?;
        let (split, taken) = split(mapping, channels).map_err(unfit)?;
        let usable = !taken & mask(ADDRESS_BITS - free_bits(&split));
        let lanes = Lanes { mapping, slice, usable, ports: channels * slices };
        let (shifts, masks, widths) = lanes.layout().map_err(unfit)?;
        let image = |bit: u32| lanes.image(bit, &shifts);
        let images: Vec<u64> = (0..64).map(image).collect();
        let packed: u32 = widths.iter().take(FIELDS.len()).sum();
        let (inverse, covered) = invert(&images, packed, usable).map_err(unfit)?;
        Ok(Self {
            name: mapping.name.clone(),
            channels,
            slices,
            split,
            shifts,
            masks,
            tables: tables(&images),
            inverse,
            offset_bits: covered.trailing_zeros(),
            covered,
            hashed: widths[HASH] > 0,
        })
    }

    /// Channels of the machine.
    #[must_use]
    pub fn channels(&self) -> u32 {
        self.channels
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
        let (mut channel, rest) = self.split.apart(address & mask(ADDRESS_BITS));
        let bytes = rest.to_le_bytes();
        let mut word = 0;
        for (table, byte) in self.tables.iter().zip(bytes) {
            word ^= table[usize::from(byte)];
        }
        let mut slice = self.part(word, SLICE);
        if self.hashed {
            let index = self.spread(channel * self.slices + slice, self.part(word, HASH));
            (channel, slice) = (index / self.slices, index & (self.slices - 1));
        }
        Location {
            channel,
            slice,
            pseudo_channel: self.part(word, 1),
            bank_group: self.part(word, 2),
            bank: self.part(word, 3),
            row: self.part(word, 4),
            column: self.part(word, 0),
        }
    }

    /// The first address of the access at `location`: the inverse of
    /// [`AddressMap::locate`]. The slice follows from the other parts.
    #[must_use]
    pub fn address(&self, location: Location) -> u64 {
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
        if self.hashed {
            let index = location.channel * self.slices + location.slice;
            channel = self.gather(index, self.part(image, HASH)) / self.slices;
        }
        self.split.together(channel, rest)
    }

    /// Checks that every location of this map exists in a channel of `standard`
    /// (rows beyond the standard's wrap and are not refused).
    ///
    /// # Errors
    /// [`MemoryError::Inconsistent`] that names the part that does not fit.
    pub fn fits(&self, standard: &MemoryStandard) -> Result<(), MemoryError> {
        let limits = [
            ("pseudo_channel", 1, standard.pseudo_channels),
            ("bank_group", 2, standard.bank_groups),
            ("bank", 3, standard.banks_per_group),
        ];
        for (field, part, limit) in limits {
            if self.masks[part] >= limit {
                return Err(MemoryError::Inconsistent {
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

    #[inline]
    #[allow(clippy::cast_possible_truncation)] // masked to at most 32 bits
    fn part(&self, word: u64, part: usize) -> u32 {
        (word >> self.shifts[part]) as u32 & self.masks[part]
    }

    #[inline]
    fn spread(&self, index: u32, hash: u32) -> u32 {
        let ports = self.channels * self.slices;
        if ports.is_power_of_two() { index ^ hash } else { (index + hash) % ports }
    }

    fn gather(&self, index: u32, hash: u32) -> u32 {
        let ports = self.channels * self.slices;
        if ports.is_power_of_two() { index ^ hash } else { (index + ports - hash % ports) % ports }
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
                let quotient = (u128::from(above) * u128::from(*reciprocal) >> 64) as u64;
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

const fn mask(bits: u32) -> u64 {
    (1 << bits) - 1
}

/// The channel split, and the address bits that it takes for itself.
fn split(mapping: &Mapping, channels: u32) -> Result<(Split, u64), String> {
    match &mapping.interleave {
        Interleave::Divide(shift) if channels.is_power_of_two() => {
            Ok((Split::Insert(*shift, channels.ilog2()), 0))
        }
        Interleave::Divide(shift) => {
            let count = u64::from(channels);
            Ok((Split::Divide(*shift, count, u64::MAX / count + 1), 0))
        }
        Interleave::Bits(bits) => {
            if channels != 1 << bits.len() {
                return Err(format!(
                    "its channel bits name {} channels, the machine has {channels}",
                    1u64 << bits.len()
                ));
            }
            Ok((Split::Bits(bits.clone()), bits.iter().fold(0, |taken, bit| taken | 1 << bit)))
        }
    }
}

/// Bits by which the channel-free address is shorter than the address.
fn free_bits(split: &Split) -> u32 {
    match split {
        Split::Insert(_, bits) => *bits,
        Split::Divide(_, count, _) => count.ilog2(),
        Split::Bits(_) => 0,
    }
}

/// What a single address bit does to the packed word.
struct Lanes<'a> {
    mapping: &'a Mapping,
    slice: &'a [u32],
    /// Bits of the channel-free address.
    usable: u64,
    ports: u32,
}

impl Lanes<'_> {
    /// The bits of part `part` that this machine's addresses have.
    fn bits(&self, part: usize) -> impl Iterator<Item = u32> {
        let list = if part == SLICE { self.slice } else { self.mapping.fields[part].as_slice() };
        list.iter().copied().filter(|bit| self.usable >> bit & 1 == 1)
    }

    /// Shift, mask and width of every part.
    #[allow(clippy::type_complexity)]
    fn layout(&self) -> Result<([u32; PARTS], [u32; PARTS], [u32; PARTS]), String> {
        let (mut shifts, mut masks, mut widths) = ([0; PARTS], [0; PARTS], [0; PARTS]);
        let mut at = 0;
        for part in 0..PARTS {
            let width =
                if part == HASH { self.hash_width()? } else { to_u32(self.bits(part).count()) };
            if width > 32 || at + width > 64 {
                return Err("a part has more than 32 bits, or all have more than 64".to_owned());
            }
            shifts[part] = at.min(63);
            masks[part] = u32::try_from(mask(width)).expect("32 bits at most");
            widths[part] = width;
            at += width;
        }
        Ok((shifts, masks, widths))
    }

    fn hash_width(&self) -> Result<u32, String> {
        if self.mapping.hash == Hash::None || self.ports == 1 {
            return Ok(0);
        }
        if matches!(self.mapping.interleave, Interleave::Bits(_)) {
            return Err("a hash needs interleave.shift, not interleave.channel".to_owned());
        }
        let width = self.ports.next_power_of_two().ilog2();
        if to_usize(width) > POLYNOMIALS.len() {
            return Err(format!("a hash spreads over at most 2^{} slices", POLYNOMIALS.len()));
        }
        Ok(width)
    }

    fn image(&self, bit: u32, shifts: &[u32; PARTS]) -> u64 {
        if self.usable.checked_shr(bit).unwrap_or(0) & 1 == 0 {
            return 0;
        }
        let mut word = 0;
        for part in 0..=SLICE {
            let xored = self.mapping.xor.get(part).into_iter().flatten().copied();
            for source in
                [Box::new(self.bits(part)) as Box<dyn Iterator<Item = u32>>, Box::new(xored)]
            {
                for (at, own) in source.enumerate() {
                    word ^= u64::from(own == bit) << (shifts[part] + to_u32(at));
                }
            }
        }
        word | self.hash_image(bit) << shifts[HASH]
    }

    fn hash_image(&self, bit: u32) -> u64 {
        let width = self.hash_width().unwrap_or(0);
        let (from, bits) = match self.mapping.hash {
            Hash::None => return 0,
            Hash::Polynomial(from, bits) | Hash::Fold(from, bits) => (from, bits),
        };
        // A slice bit chooses the slice; hashing it onto itself would lose it.
        if width == 0 || bit < from || bit >= from + bits || self.slice.contains(&bit) {
            return 0;
        }
        if matches!(self.mapping.hash, Hash::Fold(..)) {
            return 1 << ((bit - from) % width);
        }
        let polynomial = POLYNOMIALS[to_usize(width - 1)];
        // x^width first, then one factor of x per address bit.
        let times_x = |power: u64| {
            let next = power << 1;
            if next >> width & 1 == 1 { (next & mask(width)) ^ polynomial } else { next }
        };
        (from..bit).fold(polynomial, |power, _| times_x(power))
    }
}

fn tables(images: &[u64]) -> Box<[[u64; 256]; BYTES]> {
    let mut tables = Box::new([[0; 256]; BYTES]);
    for (at, table) in tables.iter_mut().enumerate() {
        for (byte, word) in table.iter_mut().enumerate() {
            let bits = (0..8).filter(|bit| byte >> bit & 1 == 1);
            *word = bits.fold(0, |word, bit| word ^ images[at * 8 + bit]);
        }
    }
    tables
}

/// Gauss-Jordan over GF(2): which address bits a packed bit stands for, and the
/// address bits that the fields are made of.
fn invert(images: &[u64], packed: u32, usable: u64) -> Result<(Vec<u64>, u64), String> {
    let keep = if packed == 64 { u64::MAX } else { mask(packed) };
    let rows = images.iter().enumerate().map(|(bit, image)| (image & keep, 1u64 << bit));
    let mut rows: Vec<(u64, u64)> = rows.filter(|(image, _)| *image != 0).collect();
    let covered = rows.iter().fold(0, |covered, (_, bit)| covered | bit);
    let wanted = usable & !mask(covered.trailing_zeros().min(63));
    if covered & wanted != wanted {
        let missing = (wanted & !covered).trailing_zeros();
        return Err(format!("address bit {missing} chooses nothing: give it to a field"));
    }
    let mut inverse = Vec::new();
    for bit in 0..to_usize(packed) {
        let pivot = rows.iter().skip(bit).position(|(image, _)| image >> bit & 1 == 1);
        let Some(pivot) = pivot else {
            return Err(
                "two fields share an address bit, so two addresses meet in one place".to_owned()
            );
        };
        rows.swap(bit, bit + pivot);
        let (image, bits) = rows[bit];
        for (at, row) in rows.iter_mut().enumerate() {
            if at != bit && row.0 >> bit & 1 == 1 {
                *row = (row.0 ^ image, row.1 ^ bits);
            }
        }
    }
    if rows.len() != to_usize(packed) {
        return Err("more address bits than field bits: two addresses meet in one place".to_owned());
    }
    inverse.extend(rows.iter().map(|row| row.1));
    Ok((inverse, covered))
}
