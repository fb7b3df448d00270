//! The address map of a GPGPU-Sim layout on one machine: letters and index functions to the
//! packed word that each address bit is XORed onto.

use super::address_bits::{HASH, PARTS, SLICE, mask};
use super::address_map::{AddressMap, Parts, Split, Spread, divide, free_bits};
use super::layout::{LAYOUT, Layout, Letters, PartitionIndex, SECTOR_SHIFT, Shape, Unfit};
use super::mapping::ADDRESS_BITS;
use gpumodel_core::units::{to_u32, to_usize};

/// Positions of column, bank group, bank and row among the parts.
const COLUMN: usize = 0;
const BANK_GROUP: usize = 2;
const BANK: usize = 3;
const ROW: usize = 4;

/// Most bits of a row.
const ROW_BITS: usize = 32;

/// Most bits of the packed word.
const WORD_BITS: u32 = 64;

/// First number of random draws where a layout has none: that of the simulator's `srand`.
const SEED: u64 = 1;

impl Layout {
    /// The map of this layout on a machine.
    pub(in crate::config) fn map(&self, shape: &Shape) -> Result<AddressMap, Unfit> {
        if !(1..=1024).contains(&shape.channels) {
            return Err(Unfit::Channels(format!("1 to 1024 channels, found {}", shape.channels)));
        }
        if !shape.slices.is_power_of_two() || shape.slices > 1024 {
            let found = shape.slices;
            let text = format!("a power of two of sub-partitions up to 1024, found {found}");
            return Err(Unfit::Slices(text));
        }
        let letters = self.letters(shape)?;
        self.check_partition(shape)?;
        let bank_bits = self.bank_bits(shape, letters.bank.len())?;
        Wires::new(self, shape, letters, bank_bits).map()
    }
}

/// A layout on its way to a map.
struct Wires<'a> {
    layout: &'a Layout,
    shape: &'a Shape,
    letters: Letters,
    /// Bits of the bank number, those that only the row makes included.
    bank_bits: u32,
    split: Split,
    /// Address bits of the column, of which sectors have an access each.
    column: Vec<u32>,
    /// Address bits of the row.
    row: Vec<u32>,
}

impl<'a> Wires<'a> {
    fn new(layout: &'a Layout, shape: &'a Shape, letters: Letters, bank_bits: u32) -> Self {
        let seen = |bits: &[u32]| -> Vec<u32> {
            bits.iter().copied().filter(|&bit| bit < ADDRESS_BITS).collect()
        };
        let split = match layout.channel_bit {
            Some(bit) => divide(bit, shape.channels),
            None => Split::Bits(seen(&letters.channel)),
        };
        // The address without its channel ends earlier, but not below the channel's bit.
        let usable = (ADDRESS_BITS - free_bits(&split)).max(layout.channel_bit.unwrap_or(0));
        let outside = |bit: &u32| *bit >= SECTOR_SHIFT;
        let column = seen(&letters.column).into_iter().filter(outside).collect();
        let mut row = letters.row.clone();
        row.retain(|bit| *bit < usable);
        row.truncate(ROW_BITS);
        Self { layout, shape, letters, bank_bits, split, column, row }
    }

    fn map(self) -> Result<AddressMap, Unfit> {
        let widths = self.widths();
        if widths.iter().sum::<u32>() > WORD_BITS || widths.iter().any(|width| *width > 32) {
            let text = "fewer letters B and C, or fewer channels: their bits exceed 64";
            return Err(Unfit::Bits(text.to_owned()));
        }
        let images: Vec<u64> = (0..64).map(|bit| self.image(bit, &widths)).collect();
        let fields = mask(widths[..SLICE].iter().sum::<u32>().min(63));
        let covered = (0..64).filter(|&bit| images[to_usize(bit)] & fields != 0);
        let covered = covered.fold(0_u64, |all, bit| all | 1 << bit);
        let request = self.shape.request_bytes.ilog2();
        let whole = self.layout.keeps_requests(&self.letters, self.shape);
        let hidden = if whole { SECTOR_SHIFT } else { request };
        let taken = match &self.split {
            Split::Bits(bits) => bits.iter().fold(0, |taken, bit| taken | 1 << bit),
            Split::Insert(..) | Split::Divide(..) => 0,
        };
        Ok(AddressMap::of_parts(Parts {
            name: LAYOUT.to_owned(),
            counts: (self.shape.channels, self.shape.slices),
            spread: self.spread(),
            seen: mask(ADDRESS_BITS) & !mask(hidden),
            request_bits: if whole { 0 } else { request - SECTOR_SHIFT },
            widths,
            images,
            offset_bits: SECTOR_SHIFT,
            covered,
            slice: self.slice().to_vec(),
            taken,
            split: self.split,
        }))
    }

    /// Address bits of the slice: the lowest of the bank number.
    fn slice(&self) -> &[u32] {
        let bits = to_usize(self.shape.slices.ilog2()).min(self.letters.bank.len());
        &self.letters.bank[..bits]
    }

    /// Bits of each part of the packed word.
    fn widths(&self) -> [u32; PARTS] {
        let (group, inner) = self.layout.bank_widths(self.shape, self.bank_bits);
        let mut widths = [0; PARTS];
        widths[COLUMN] = to_u32(self.column.len());
        (widths[BANK_GROUP], widths[BANK]) = (group, inner);
        widths[ROW] = to_u32(self.row.len());
        widths[SLICE] = to_u32(self.slice().len());
        widths[HASH] = match self.layout.partition_index {
            PartitionIndex::Linear | PartitionIndex::Random => 0,
            _ => self.shape.channels.next_power_of_two().ilog2() + self.shape.slices.ilog2(),
        };
        widths
    }

    /// The packed word that bit `bit` of the address without its channel is XORed onto.
    fn image(&self, bit: u32, widths: &[u32; PARTS]) -> u64 {
        if bit >= ADDRESS_BITS {
            return 0;
        }
        let mut parts = [0_u64; PARTS];
        let place = |bits: &[u32]| bits.iter().position(|own| *own == bit).map(to_u32);
        let one = |at: Option<u32>| at.map_or(0, |at| 1_u64 << at);
        parts[COLUMN] = one(place(&self.column));
        parts[ROW] = one(place(&self.row));
        parts[SLICE] = one(place(self.slice()));
        let written = one(place(&self.letters.bank));
        let hashed =
            place(&self.letters.row).map_or(0, |at| self.layout.bank_image(self.shape, at));
        (parts[BANK_GROUP], parts[BANK]) = self.bank_parts(written ^ u64::from(hashed));
        let from = self.layout.upper_from(self.shape);
        if widths[HASH] > 0 && bit >= from {
            parts[HASH] = self.layout.partition_image(self.shape, bit - from).into();
        }
        let mut at = 0;
        parts.into_iter().zip(widths).fold(0, |word, (part, width)| {
            let placed = part.checked_shl(at).unwrap_or(0);
            at += width;
            word | placed
        })
    }

    /// Bits of the bank number as those of the group and of the bank in it.
    fn bank_parts(&self, number: u64) -> (u64, u64) {
        use super::layout::BankGroupBits::{High, Low};
        let (group, inner) = self.layout.bank_widths(self.shape, self.bank_bits);
        match self.layout.bank_group {
            Low => (number & mask(group), number >> group),
            High => (number >> inner, number & mask(inner)),
        }
    }

    fn spread(&self) -> Spread {
        match self.layout.partition_index {
            PartitionIndex::Linear => Spread::None,
            PartitionIndex::Xor => Spread::Xor,
            PartitionIndex::Ipoly => Spread::XorModulo,
            PartitionIndex::Pae => Spread::Pae,
            PartitionIndex::Random => {
                let bit = self.layout.channel_bit.unwrap_or(0);
                let from = bit.saturating_sub(self.shape.slices.ilog2());
                Spread::Random(from, self.layout.seed.unwrap_or(SEED))
            }
        }
    }
}

#[cfg(test)]
#[path = "layout_tests.rs"]
mod tests;
