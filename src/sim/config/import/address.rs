//! The address layout of an imported machine: `-gpgpu_mem_addr_mapping`, or the old
//! `-gpgpu_mem_address_mask`, with the index functions of channels and banks.

use super::Sheet;
use super::dram::Timing;
use super::levels::{Levels, SECTOR};
use super::options::{Entry, Options};
use crate::config::error::SpecError;
use crate::config::memory::layout::{LAYOUT, Shape, Unfit};
use crate::config::{BankGroupBits, BankIndex, Layout, PartitionIndex};

/// The layouts that `models/memory/mappings` describes: bits of the address without the
/// channel, channels, sub-partitions, `-gpgpu_memory_partition_indexing`.
const MAPPINGS: [(&str, u32, u32, u32, &str); 5] = [
    (HBM_BITS, 32, 2, 2, "accelsim-qv100"),
    (GDDR_BITS, 40, 4, 0, "accelsim-a100"),
    (GDDR_BITS, 16, 2, 2, "accelsim-rtx3070"),
    (GDDR_BITS, 12, 2, 0, "accelsim-rtx2060"),
    (GDDR_BITS, 12, 2, 4, "accelsim-titanx"),
];

/// The layout of the HBM configurations.
const HBM_BITS: &str = "RRRRRRRRRRRRRBBBCCCBCCCSSSSS";

/// The layout of the GDDR configurations and the older A100.
const GDDR_BITS: &str = "RRRRRRRRRRRRRBBBCCCCBCCSSSSS";

/// The channel bit of both.
const CHANNEL_BIT: u32 = 8;

/// Channel bit, bank, row and column of the masks (`addrdec.cc`,
/// `linear_to_raw_address_translation::init`).
const MASKS: [(u32, u32, u64, u64, u64); 13] = [
    (0, 10, 0x300, 0x7ff_e000, 0x1cff),
    (1, 13, 0x1800, 0x7ff_e000, 0x7ff),
    (2, 11, 0x1800, 0x7ff_e000, 0x7ff),
    (3, 11, 0x1800, 0xfff_e000, 0x7ff),
    (5, 5, 0x1800, 0x7ff_e000, 0x7ff),
    (6, 6, 0x1800, 0x7ff_e000, 0x7ff),
    (14, 14, 0x1800, 0x7ff_e000, 0x7ff),
    (15, 15, 0x1800, 0x7ff_e000, 0x7ff),
    (16, 16, 0x1800, 0x7ff_e000, 0x7ff),
    (100, 1, 0x3, 0x7ff_e000, 0x1ffc),
    (103, 3, 0x3, 0x7ff_e000, 0x1ffc),
    (106, 6, 0x1800, 0x7ff_e000, 0x7ff),
    (160, 6, 0x300, 0x7ff_e000, 0x1cff),
];

/// What the options say of addresses.
struct Entries {
    /// The text of the mapping, or the mask.
    bits: Entry,
    partition: Entry,
    bank: Entry,
    group: Entry,
    channels: Entry,
    slices: Entry,
}

/// A layout that the machine file will name or hold.
pub(super) struct Found {
    entries: Entries,
    layout: Layout,
    /// The mapping file that describes it.
    named: Option<&'static str>,
    /// Bytes that a miss of the L2 fetches.
    pub(super) fetch_bytes: u32,
}

/// Reads the layout of the channels.
pub(super) fn find(
    options: &mut Options,
    levels: &Levels,
    timing: &Timing,
) -> Result<Found, SpecError> {
    let entries = Entries::read(options);
    let (channel_bit, bits) = entries.bits()?;
    let layout = Layout {
        channel_bit,
        bits,
        partition_index: entries.partition()?,
        seed: None,
        bank_index: entries.bank()?,
        bank_group: entries.group()?,
    };
    let (channels, slices) = (entries.channels.number()?, entries.slices.number()?);
    let shape = Shape {
        channels,
        slices,
        request_bytes: levels.sector_bytes,
        bank_groups: timing.value("nbkgrp"),
        banks_per_group: timing.value("nbk") / timing.value("nbkgrp").max(1),
    };
    layout.map(&shape).map_err(|unfit| entries.refuse(timing, &unfit))?;
    let named = named(&layout, &shape);
    let line = Shape { request_bytes: levels.fetch_bytes, ..shape };
    // Lines that the layout spreads are fetched by sector, each in its place.
    let together = levels.sector_bytes != SECTOR || layout.keeps_together(&line);
    let fetch_bytes = if together { levels.fetch_bytes } else { SECTOR };
    Ok(Found { entries, layout, named, fetch_bytes })
}

/// The mapping file of a layout, if one describes it.
fn named(layout: &Layout, shape: &Shape) -> Option<&'static str> {
    let letters = layout.bits.replace('.', "");
    let letters = letters.trim_start_matches('0');
    let kind = match layout.partition_index {
        PartitionIndex::Linear => 0,
        PartitionIndex::Ipoly => 2,
        PartitionIndex::Random => 4,
        PartitionIndex::Xor | PartitionIndex::Pae => return None,
    };
    let usual = layout.channel_bit == Some(CHANNEL_BIT)
        && layout.bank_index == BankIndex::Linear
        && layout.bank_group == BankGroupBits::Low
        && (shape.bank_groups, shape.banks_per_group) == (4, 4);
    let key = (letters, shape.channels, shape.slices, kind);
    let known = MAPPINGS.iter().find(|row| (row.0, row.1, row.2, row.3) == key);
    known.filter(|_| usual).map(|row| row.4)
}

impl Entries {
    fn read(options: &mut Options) -> Self {
        let bits = match options.find("-gpgpu_mem_addr_mapping") {
            Some(bits) => bits,
            None => options.or("-gpgpu_mem_address_mask", "0"),
        };
        Self {
            bits,
            partition: options.or("-gpgpu_memory_partition_indexing", "0"),
            bank: options.or("-dram_bnk_indexing_policy", "0"),
            group: options.or("-dram_bnkgrp_indexing_policy", "0"),
            channels: options.or("-gpgpu_n_mem", "8"),
            slices: options.or("-gpgpu_n_sub_partition_per_mchannel", "1"),
        }
    }

    /// The channel bit and the letters.
    fn bits(&self) -> Result<(Option<u32>, String), SpecError> {
        if self.bits.key == "-gpgpu_mem_address_mask" {
            return self.mask();
        }
        let (channel, letters) = match self.bits.value.split_once(';') {
            Some((channel, letters)) => (channel, letters),
            None => ("", self.bits.value.as_str()),
        };
        let bit = match channel.trim().strip_prefix("dramid@") {
            Some(bit) => Some(bit.parse().map_err(|_| self.bits.refuse(TEXT))?),
            None if channel.trim().is_empty() => None,
            None => return Err(self.bits.refuse(TEXT)),
        };
        Ok((bit, letters.replace(' ', "")))
    }

    /// Those of a mask.
    fn mask(&self) -> Result<(Option<u32>, String), SpecError> {
        let mask: u32 = self.bits.number()?;
        let row = MASKS.iter().find(|row| row.0 == mask).ok_or_else(|| {
            let known = MASKS.map(|row| row.0.to_string()).join(", ");
            self.bits.refuse(&format!("one of {known}, or -gpgpu_mem_addr_mapping"))
        })?;
        let (_, channel_bit, bank, rows, column) = *row;
        let letter = |bit: u32| match 1_u64 << bit {
            one if one & bank != 0 => 'B',
            one if one & rows != 0 => 'R',
            one if one & column != 0 => 'C',
            _ => '0',
        };
        Ok((Some(channel_bit), (0..64).rev().map(letter).collect()))
    }

    fn partition(&self) -> Result<PartitionIndex, SpecError> {
        match self.partition.number::<u32>()? {
            0 => Ok(PartitionIndex::Linear),
            1 => Ok(PartitionIndex::Xor),
            2 => Ok(PartitionIndex::Ipoly),
            3 => Ok(PartitionIndex::Pae),
            4 => Ok(PartitionIndex::Random),
            5 => Err(self.partition.refuse(
                "0 to 4: what a custom index function (5) does is not in the configuration",
            )),
            _ => Err(self.partition.refuse("0 linear, 1 xor, 2 IPoly, 3 PAE or 4 random")),
        }
    }

    fn bank(&self) -> Result<BankIndex, SpecError> {
        match self.bank.number::<u32>()? {
            0 => Ok(BankIndex::Linear),
            1 => Ok(BankIndex::Xor),
            2 => Ok(BankIndex::Ipoly),
            _ => Err(self.bank.refuse("0 linear, 1 xor or 2 IPoly")),
        }
    }

    fn group(&self) -> Result<BankGroupBits, SpecError> {
        match self.group.number::<u32>()? {
            0 => Ok(BankGroupBits::High),
            1 => Ok(BankGroupBits::Low),
            _ => Err(self.group.refuse("0 higher bits or 1 lower bits")),
        }
    }

    /// The error at the option that a layout does not fit by.
    fn refuse(&self, timing: &Timing, unfit: &Unfit) -> SpecError {
        let entry = match unfit {
            Unfit::Bits(_) => &self.bits,
            Unfit::Channels(_) => &self.channels,
            Unfit::Slices(_) => &self.slices,
            Unfit::Partition(_) => &self.partition,
            Unfit::BankIndex(_) => &self.bank,
            Unfit::Banks(_) => &timing.entry,
        };
        entry.refuse(unfit.text())
    }
}

/// What a mapping is.
const TEXT: &str = "an address layout dramid@BIT;LETTERS with a letter per address bit";

impl Found {
    /// Writes the name of the mapping into `[dram]`.
    pub(super) fn write_name(&self, sheet: &mut Sheet) {
        let source = format!("{}; {}", self.entries.bits.cite(), self.entries.partition.cite());
        sheet.choice("mapping", self.named.unwrap_or(LAYOUT), &source);
    }

    /// Writes `[dram.layout]` where no mapping file describes the layout.
    pub(super) fn write_layout(&self, sheet: &mut Sheet) {
        if self.named.is_some() {
            return;
        }
        let (entries, layout) = (&self.entries, &self.layout);
        let bits = entries.bits.cite();
        sheet.section("dram.layout");
        if let Some(bit) = layout.channel_bit {
            sheet.published("channel_bit", bit, &bits);
        }
        sheet.choice("bits", &layout.bits, &bits);
        let partition = match layout.partition_index {
            PartitionIndex::Linear => "linear",
            PartitionIndex::Xor => "xor",
            PartitionIndex::Ipoly => "ipoly",
            PartitionIndex::Pae => "pae",
            PartitionIndex::Random => "random",
        };
        sheet.choice("partition_index", partition, &entries.partition.cite());
        if layout.partition_index == PartitionIndex::Random {
            sheet.published("seed", 1, "GPGPU-Sim addrdec.cc: srand(1)");
        }
        let bank = match layout.bank_index {
            BankIndex::Linear => "linear",
            BankIndex::Xor => "xor",
            BankIndex::Ipoly => "ipoly",
        };
        sheet.choice("bank_index", bank, &entries.bank.cite());
        let group = match layout.bank_group {
            BankGroupBits::Low => "low",
            BankGroupBits::High => "high",
        };
        sheet.choice("bank_group", group, &entries.group.cite());
    }
}
