//! The linear part of an address mapping: which parts of a location each address
//! bit is XORed onto, as matrices over GF(2). Knows no channel arithmetic.

use super::mapping::{FIELDS, Hash, Mapping};
use gpumodel_core::units::{to_u32, to_usize};

/// Address bytes that the tables cover.
pub(super) const BYTES: usize = 6;

/// Primitive polynomials of degree 1 to 12 without their leading term.
const POLYNOMIALS: [u64; 12] =
    [0b1, 0b11, 0b11, 0b11, 0b101, 0b11, 0b11, 0b11101, 0b1_0001, 0b1001, 0b101, 0b101_0011];

/// [`FIELDS`], the raw slice, the hash.
pub(super) const PARTS: usize = FIELDS.len() + 2;
/// Position of the raw slice.
pub(super) const SLICE: usize = FIELDS.len();
/// Position of the hash.
pub(super) const HASH: usize = FIELDS.len() + 1;

/// The lowest `bits` bits.
pub(super) const fn mask(bits: u32) -> u64 {
    (1 << bits) - 1
}

/// What a single address bit does to the packed word.
pub(super) struct Lanes<'a> {
    pub(super) mapping: &'a Mapping,
    pub(super) slice: &'a [u32],
    /// Bits of the channel-free address.
    pub(super) usable: u64,
    /// Slices of all channels.
    pub(super) ports: u32,
}

impl Lanes<'_> {
    /// The bits of part `part` that this machine's addresses have.
    fn bits(&self, part: usize) -> impl Iterator<Item = u32> {
        let list = if part == SLICE { self.slice } else { self.mapping.fields[part].as_slice() };
        list.iter().copied().filter(|bit| self.usable >> bit & 1 == 1)
    }

    /// Shift and width of every part.
    pub(super) fn layout(&self) -> Result<([u32; PARTS], [u32; PARTS]), String> {
        let (mut shifts, mut widths) = ([0; PARTS], [0; PARTS]);
        let mut at = 0;
        for part in 0..PARTS {
            let width =
                if part == HASH { self.hash_width()? } else { to_u32(self.bits(part).count()) };
            if width > 32 || at + width > 64 {
                return Err("a part has more than 32 bits, or all have more than 64".to_owned());
            }
            if self.mapping.xor.get(part).is_some_and(|list| list.len() > to_usize(width)) {
                return Err(format!("xor.{0} has more bits than fields.{0}", FIELDS[part]));
            }
            shifts[part] = at.min(63);
            widths[part] = width;
            at += width;
        }
        Ok((shifts, widths))
    }

    fn hash_width(&self) -> Result<u32, String> {
        let spreads = self.mapping.hash != Hash::None || !self.mapping.channel_xor.is_empty();
        if !spreads || self.ports == 1 {
            return Ok(0);
        }
        let width = self.ports.next_power_of_two().ilog2();
        if to_usize(width) > POLYNOMIALS.len() {
            return Err(format!("a hash spreads over at most 2^{} slices", POLYNOMIALS.len()));
        }
        Ok(width)
    }

    /// The parts of the packed word that address bit `bit` is XORed onto.
    pub(super) fn image(&self, bit: u32, shifts: &[u32; PARTS]) -> u64 {
        if self.usable.checked_shr(bit).unwrap_or(0) & 1 == 0 {
            return 0;
        }
        let mut word = 0;
        for (part, shift) in shifts.iter().enumerate().take(SLICE + 1) {
            let xored = self.mapping.xor.get(part).into_iter().flatten().copied();
            for at in positions(self.bits(part), bit).chain(positions(xored, bit)) {
                word ^= 1 << (shift + at);
            }
        }
        word | self.hash_image(bit) << shifts[HASH]
    }

    fn hash_image(&self, bit: u32) -> u64 {
        let width = self.hash_width().unwrap_or(0);
        if width == 0 {
            return 0;
        }
        self.upper_image(bit, width) ^ self.channel_image(bit)
    }

    /// The bits of the channel, above those of the slice, that bit `bit` is XORed onto.
    fn channel_image(&self, bit: u32) -> u64 {
        let lists = (self.slice.len()..).zip(&self.mapping.channel_xor);
        lists.fold(0, |image, (at, list)| image | u64::from(list.contains(&bit)) << at)
    }

    /// The bits of channel and slice that bit `bit` of the upper ones is hashed onto.
    fn upper_image(&self, bit: u32, width: u32) -> u64 {
        let (from, bits) = match self.mapping.hash {
            Hash::None => return 0,
            Hash::Polynomial(from, bits) | Hash::Fold(from, bits) => (from, bits),
        };
        // A slice bit chooses the slice; hashing it onto itself would lose it.
        if bit < from || bit >= from + bits || self.slice.contains(&bit) {
            return 0;
        }
        if matches!(self.mapping.hash, Hash::Fold(..)) {
            return 1 << ((bit - from) % width);
        }
        polynomial_image(width, bit - from)
    }
}

/// The remainder of x^(`width` + `upper`) by the polynomial of degree `width` (1 to 12): the
/// bits of a hash of so many bits that bit `upper` of what lies above is XORed onto.
pub(super) fn polynomial_image(width: u32, upper: u32) -> u64 {
    let polynomial = POLYNOMIALS[to_usize(width - 1)];
    // x^width first, then one factor of x per address bit.
    let times_x = |power: u64| {
        let next = power << 1;
        if next >> width & 1 == 1 { (next & mask(width)) ^ polynomial } else { next }
    };
    (0..upper).fold(polynomial, |power, _| times_x(power))
}

/// Where `bit` stands in a list.
fn positions(list: impl Iterator<Item = u32>, bit: u32) -> impl Iterator<Item = u32> {
    list.zip(0..).filter(move |(own, _)| *own == bit).map(|(_, at)| at)
}

/// The packed word of every byte value at every byte of an address.
pub(super) fn tables(images: &[u64]) -> Box<[[u64; 256]; BYTES]> {
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
pub(super) fn invert(images: &[u64], packed: u32, usable: u64) -> Result<(Vec<u64>, u64), String> {
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
