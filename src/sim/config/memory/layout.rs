//! The address layout of a GPGPU-Sim configuration: a letter for each address bit, and
//! the functions that spread channels, sub-partitions and banks. The rules are those of
//! GPGPU-Sim's `addrdec.cc` (letters, channels that are no power of two), `hashing.cc`
//! (index functions) and `dram.cc` (banks and their groups).

use serde::{Deserialize, Serialize};

use super::address_bits::polynomial_image;
use super::mapping::ADDRESS_BITS;
use gpumodel_core::units::{to_u32, to_usize};

/// The name in `dram.mapping` of the machine's own layout.
pub(in crate::config) const LAYOUT: &str = "layout";

/// An address layout in the terms of GPGPU-Sim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Layout {
    /// The lowest address bit of the channel number, which lies inside the other bits: the
    /// address above it modulo the channels, and `bits` count without it. Absent: the
    /// letters `D` are the channel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel_bit: Option<u32>,
    /// 64 letters, one per address bit, highest first: `R` row, `B` bank, `C` column, `S`
    /// byte of a burst (part of the column), `D` channel, `0` none. Points and bars between
    /// them count nothing. Bits without a meaning are dropped, as the simulator does: addresses
    /// that differ in them alone share a row. Of others, with linear and xor partition indexing
    /// no two meet in one place of a channel; random ones, PAE and a polynomial over channels
    /// that are no power of two may send two to one row and column.
    pub bits: String,
    /// How upper bits choose the channel and the L2 slice, a sub-partition.
    pub partition_index: PartitionIndex,
    /// First number of the random draws of `partition_index = "random"`; absent: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// How bits of the row choose the bank.
    pub bank_index: BankIndex,
    /// Which bits of the bank number are its bank group.
    pub bank_group: BankGroupBits,
}

/// How upper address bits choose the channel and the L2 slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PartitionIndex {
    /// Not at all.
    Linear,
    /// XOR of the channel and the next higher bits; a power of two of channels.
    Xor,
    /// Irreducible-polynomial hash (Rau, ISCA 1991) of channel and slice together, modulo their
    /// number; 16, 32 or 64 of them with the channels rounded up to a power of two.
    Ipoly,
    /// Page address entropy (Liu et al., ISCA 2018), as GPGPU-Sim has it for 32 channels.
    Pae,
    /// A random channel and slice for every block of an address, always the same one for a seed.
    Random,
}

/// How bits of the row choose the bank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BankIndex {
    /// Not at all.
    Linear,
    /// XOR of the bank and the low bits of the row.
    Xor,
    /// Irreducible-polynomial hash of the row; 16, 32 or 64 banks.
    Ipoly,
}

/// Which bits of the bank number are its bank group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BankGroupBits {
    /// The lowest.
    Low,
    /// The highest.
    High,
}

/// What a layout needs of its machine.
#[derive(Clone, Copy, Debug)]
pub(in crate::config) struct Shape {
    /// Memory channels.
    pub(in crate::config) channels: u32,
    /// L2 slices per channel.
    pub(in crate::config) slices: u32,
    /// Bytes of a request to a slice, which lies where its first byte does: 32 or 128.
    pub(in crate::config) request_bytes: u32,
    /// Bank groups of a channel.
    pub(in crate::config) bank_groups: u32,
    /// Banks of a group.
    pub(in crate::config) banks_per_group: u32,
}

/// Why a layout does not fit a machine: what was expected and found, by the part that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::config) enum Unfit {
    /// The letters, or the channel bit.
    Bits(String),
    /// The channels.
    Channels(String),
    /// The slices per channel.
    Slices(String),
    /// The index function of channels and slices.
    Partition(String),
    /// The index function of banks.
    BankIndex(String),
    /// The banks and their groups.
    Banks(String),
}

impl Unfit {
    /// What was expected and found.
    pub(in crate::config) fn text(&self) -> &str {
        match self {
            Self::Bits(text)
            | Self::Channels(text)
            | Self::Slices(text)
            | Self::Partition(text)
            | Self::BankIndex(text)
            | Self::Banks(text) => text,
        }
    }
}

/// The address bits of each letter, lowest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Letters {
    pub(super) channel: Vec<u32>,
    pub(super) row: Vec<u32>,
    pub(super) bank: Vec<u32>,
    /// `C` and `S`.
    pub(super) column: Vec<u32>,
}

/// Letters of a layout: one for each bit of the simulator's addresses.
const LETTERS: u32 = 64;

impl Letters {
    /// Reads `bits`, highest first.
    pub(super) fn read(bits: &str) -> Result<Self, String> {
        let written: Vec<char> = bits.chars().filter(|c| !matches!(c, '.' | '|' | ' ')).collect();
        if to_u32(written.len()) != LETTERS {
            return Err(format!("{LETTERS} letters R, B, C, S, D or 0, found {}", written.len()));
        }
        let mut letters = Self::default();
        for (bit, letter) in (0..).zip(written.into_iter().rev()) {
            match letter.to_ascii_uppercase() {
                'D' => letters.channel.push(bit),
                'R' => letters.row.push(bit),
                'B' => letters.bank.push(bit),
                'C' | 'S' => letters.column.push(bit),
                '0' => {}
                _ => return Err(format!("letters R, B, C, S, D or 0, found `{letter}`")),
            }
        }
        Ok(letters)
    }
}

/// Upper bits that the simulator's polynomial hash of so many places takes: its equations
/// for 16, 32 and 64 end there (`hashing.cc`, `ipoly_hash_function`).
fn polynomial_bits(places: u32) -> Option<u32> {
    match places {
        16 => Some(13),
        32 => Some(15),
        64 => Some(19),
        _ => None,
    }
}

/// The upper bits XORed onto each bit of the channel by `PAE_hash_function` of `hashing.cc`.
const PAE_UPPER: [&[u32]; 5] =
    [&[0, 5, 9, 10, 13], &[1, 6, 11, 12], &[2, 7, 8, 9, 14], &[3, 8, 10, 11], &[4, 5, 8, 9, 12]];

/// The bits of the channel that make each bit of its new number there, as masks. Two of
/// them cancel out in three of the equations, so several channels become one.
const PAE_CHANNEL: [u32; 5] = [0b0_1000, 0b0_1100, 0b0_0110, 0b0_0100, 0b1_0011];

/// The channel that page address entropy makes of `channel` where all upper bits are 0.
pub(super) fn pae(channel: u32) -> u32 {
    let bit = |mask: &u32| (channel & mask).count_ones() & 1;
    (0..).zip(&PAE_CHANNEL).fold(0, |new, (at, mask)| new | bit(mask) << at)
}

/// A number that looks random for every `key`, always the same for a `seed` (the finaliser of
/// SplitMix64, Steele et al., OOPSLA 2014).
pub(super) fn draw(seed: u64, key: u64) -> u64 {
    let mut mixed = seed.wrapping_add(key.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

impl Layout {
    /// Checks the index function of channels and slices on a machine.
    pub(super) fn check_partition(&self, shape: &Shape) -> Result<(), Unfit> {
        let Shape { channels, slices, .. } = *shape;
        let binary = channels.is_power_of_two();
        let unfit = |needs: &str| {
            let found = format!("found {channels} channels of {slices} sub-partitions");
            Err(Unfit::Partition(format!("{needs}, {found}; or linear indexing")))
        };
        match self.partition_index {
            PartitionIndex::Xor if !binary => unfit("a power of two of channels for xor"),
            PartitionIndex::Pae if channels != 32 => unfit("32 channels for PAE"),
            // The simulator rounds one channel up to none.
            PartitionIndex::Ipoly
                if channels == 1 || polynomial_bits(self.polynomial_places(shape)).is_none() =>
            {
                unfit(
                    "16, 32 or 64 sub-partitions for IPoly, the channels rounded up to a power \
                     of two",
                )
            }
            PartitionIndex::Random if self.channel_bit.is_none() => {
                unfit("dramid@BIT for random indexing")
            }
            PartitionIndex::Random if self.channel_bit < slices.checked_ilog2() => {
                unfit("dramid@BIT not below the bits of the sub-partition for random indexing")
            }
            _ => Ok(()),
        }
    }

    /// Places of the polynomial hash.
    fn polynomial_places(&self, shape: &Shape) -> u32 {
        shape.channels.next_power_of_two().saturating_mul(shape.slices)
    }

    /// The bits of channel and slice together, slice lowest, that bit `upper` of the upper
    /// bits of an address is XORed onto.
    pub(super) fn partition_image(&self, shape: &Shape, upper: u32) -> u32 {
        let slice_bits = shape.slices.ilog2();
        match self.partition_index {
            PartitionIndex::Linear | PartitionIndex::Random => 0,
            PartitionIndex::Xor => {
                let own = upper < shape.channels.ilog2();
                if own { 1 << (slice_bits + upper) } else { 0 }
            }
            PartitionIndex::Ipoly => polynomial(self.polynomial_places(shape), upper),
            PartitionIndex::Pae => {
                let rows = (0..).zip(PAE_UPPER);
                let channel = rows
                    .fold(0, |new, (at, uppers)| new | u32::from(uppers.contains(&upper)) << at);
                channel << slice_bits
            }
        }
    }

    /// The lowest bit of the address without its channel that counts as an upper bit.
    pub(super) fn upper_from(&self, shape: &Shape) -> u32 {
        let (channel_bits, slice_bits) = (shape.channels.ilog2(), shape.slices.ilog2());
        match self.channel_bit {
            Some(bit) if shape.channels.is_power_of_two() => bit + slice_bits,
            Some(bit) => bit,
            // The simulator has -1 for the bit then, and the channel stays in the address.
            None => (channel_bits + slice_bits).saturating_sub(1),
        }
    }

    /// Checks banks and their groups: gives the bits of the bank number.
    pub(super) fn bank_bits(&self, shape: &Shape, letters: usize) -> Result<u32, Unfit> {
        let (groups, each) = (shape.bank_groups, shape.banks_per_group);
        let banks = groups * each;
        if !groups.is_power_of_two() {
            return Err(Unfit::Banks(format!("a power of two of bank groups, found {groups}")));
        }
        let written = to_u32(letters);
        let named = 1_u32.checked_shl(written).unwrap_or(u32::MAX);
        if named > banks {
            return Err(Unfit::Banks(format!(
                "at least the {named} banks that {written} letters B name, found {banks}"
            )));
        }
        let bits = match self.bank_index {
            BankIndex::Linear => written,
            BankIndex::Xor if !banks.is_power_of_two() => {
                let text = format!("a power of two of banks for xor, found {banks}");
                return Err(Unfit::BankIndex(text));
            }
            BankIndex::Ipoly if polynomial_bits(banks).is_none() => {
                return Err(Unfit::BankIndex(format!(
                    "16, 32 or 64 banks for IPoly, found {banks}"
                )));
            }
            BankIndex::Xor | BankIndex::Ipoly => banks.ilog2(),
        };
        let (group_bits, inner_bits) = self.bank_widths(shape, bits);
        if 1 << group_bits > groups || 1 << inner_bits > each {
            return Err(Unfit::Banks(format!(
                "{bits} bits of the bank number to fit {groups} groups of {each} banks: a power of \
                 two of banks in a group"
            )));
        }
        Ok(bits)
    }

    /// Bits of the group and of the bank inside it, of `bits` bits of the bank number.
    pub(super) fn bank_widths(&self, shape: &Shape, bits: u32) -> (u32, u32) {
        match self.bank_group {
            BankGroupBits::Low => {
                let group = bits.min(shape.bank_groups.ilog2());
                (group, bits - group)
            }
            BankGroupBits::High => {
                let inner = bits.min(shape.banks_per_group.ilog2());
                (bits - inner, inner)
            }
        }
    }

    /// The bits of the bank number that bit `row_bit` of the row, as written, is XORed onto.
    pub(super) fn bank_image(&self, shape: &Shape, row_bit: u32) -> u32 {
        let banks = shape.bank_groups * shape.banks_per_group;
        match self.bank_index {
            BankIndex::Linear => 0,
            BankIndex::Xor if row_bit < banks.ilog2() => 1 << row_bit,
            BankIndex::Xor => 0,
            BankIndex::Ipoly => polynomial(banks, row_bit),
        }
    }

    /// Whether the pieces of a request, of 32 bytes each, lie side by side in one row by the
    /// letters alone.
    pub(super) fn keeps_requests(&self, letters: &Letters, shape: &Shape) -> bool {
        // Random indexing takes blocks of the channel's size over the slices of a channel.
        let drawn = match self.partition_index {
            PartitionIndex::Random => shape.slices.ilog2(),
            _ => 0,
        };
        let mut inside = SECTOR_SHIFT..shape.request_bytes.ilog2();
        let below_channel = |bit: u32| self.channel_bit.is_none_or(|channel| channel > bit + drawn);
        inside.all(|bit| letters.column.contains(&bit) && below_channel(bit))
    }

    /// Whether a block of `request_bytes` lies side by side in one row of one slice.
    pub(in crate::config) fn keeps_together(&self, shape: &Shape) -> bool {
        Letters::read(&self.bits).is_ok_and(|letters| {
            let slice_above =
                letters.bank.first().is_none_or(|bit| 1 << bit >= shape.request_bytes);
            slice_above && self.keeps_requests(&letters, shape)
        })
    }

    /// Checks the letters and the channel bit against the channels of a machine.
    pub(super) fn letters(&self, shape: &Shape) -> Result<Letters, Unfit> {
        let letters = Letters::read(&self.bits).map_err(Unfit::Bits)?;
        match self.channel_bit {
            Some(bit) if bit >= ADDRESS_BITS => {
                Err(Unfit::Bits(format!("dramid@BIT below {ADDRESS_BITS}, found {bit}")))
            }
            Some(_) if !letters.channel.is_empty() => {
                Err(Unfit::Bits("either dramid@BIT or letters D, found both".to_owned()))
            }
            Some(_) => Ok(letters),
            None if !shape.channels.is_power_of_two() => {
                let found = shape.channels;
                Err(Unfit::Channels(format!(
                    "a power of two of channels for letters D, found {found}; or dramid@BIT"
                )))
            }
            None if letters.channel.len() > to_usize(shape.channels.ilog2()) => {
                Err(Unfit::Bits(format!(
                    "at most {} letters D for {} channels, found {}",
                    shape.channels.ilog2(),
                    shape.channels,
                    letters.channel.len()
                )))
            }
            None => Ok(letters),
        }
    }
}

/// Address bits inside a sector of 32 bytes: every request begins at one.
pub(super) const SECTOR_SHIFT: u32 = 5;

/// The bits of `places` places that bit `upper` is XORed onto by the simulator's polynomial.
fn polynomial(places: u32, upper: u32) -> u32 {
    let counts = polynomial_bits(places).is_some_and(|bits| upper < bits);
    if counts { to_u32(polynomial_image(places.ilog2(), upper)) } else { 0 }
}
