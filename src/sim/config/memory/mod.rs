//! A memory standard, resolved: inheritance merged, times in clocks, sentences
//! evaluated, checked. Knows no controller state and no address.

mod address_bits;
mod address_map;
mod command;
mod controller;
pub(super) mod file;
pub(super) mod layout;
mod layout_map;
mod mapping;
mod page_channels;
mod resolve;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::sync::Arc;

use gpumodel_core::models::ModelFiles;

use super::error::SpecError;
use super::machine::Machine;
use file::{COMMON, Folder, MemoryFile};
use layout::{LAYOUT, Shape};

pub use address_map::AddressMap;
pub use command::{Command, Gap, Level};
pub use controller::{ControllerOptions, Order, PagePolicy, Refresh};
pub use layout::{BankGroupBits, BankIndex, Layout, PartitionIndex};
pub use mapping::{Location, Mapping};
pub use page_channels::PageChannels;

/// One memory device with its controller's defaults: what a channel is made of.
///
/// All durations are clocks of the command clock.
#[derive(Clone, Debug, PartialEq)]
pub struct MemoryStandard {
    /// Name: the file's stem.
    pub name: String,
    /// One sentence: which part this is.
    pub description: String,
    /// Command clock in kHz.
    pub clock_khz: u64,
    /// Pseudo channels of a channel: each with its own banks and data bus, all
    /// on the same command buses.
    pub pseudo_channels: u32,
    /// Bank groups of a pseudo channel.
    pub bank_groups: u32,
    /// Banks of a bank group.
    pub banks_per_group: u32,
    /// Rows of a bank.
    pub rows: u32,
    /// Accesses of a row.
    pub columns: u32,
    /// Bytes of one access (one RD or WR).
    pub bytes_per_access: u32,
    /// Row and column commands have a bus each.
    pub separate_buses: bool,
    /// Clocks for which a command takes its bus, by [`Command::index`].
    pub command_clocks: [u32; Command::COUNT],
    /// Clocks from the first clock of RD to the last data beat's end.
    pub read_clocks: u32,
    /// Clocks for which one access takes the data bus of its pseudo channel.
    pub burst_clocks: u32,
    /// Bytes that one MIGRATION moves, a column; 0 where the standard has none.
    pub migration_bytes: u32,
    /// Clocks from the first clock of MIGRATION until its column is in the other
    /// bank; 0 where the standard has none.
    pub migration_clocks: u32,
    /// Clocks between refreshes of all banks of a pseudo channel.
    pub refresh_interval: u32,
    /// Clocks between refreshes of single banks of a pseudo channel.
    pub refresh_bank_interval: u32,
    /// The sentences of the standard, one command each way, bus times included.
    pub gaps: Vec<Gap>,
    /// The controller's default options.
    pub controller: ControllerOptions,
    /// Every named parameter as it was used, overrides included.
    pub parameters: BTreeMap<String, i64>,
}

impl AddressMap {
    /// The map of `machine` with channels of `standard`: that of its own layout, or of the
    /// mapping that it names.
    ///
    /// # Errors
    /// [`SpecError`]: a mapping that cannot be read, or that does not fit the channels.
    pub fn of_machine(
        machine: &Machine,
        standard: &MemoryStandard,
        models: &ModelFiles,
    ) -> Result<Self, SpecError> {
        let (channels, slices) = (machine.dram.channels, machine.l2.slices / machine.dram.channels);
        let layout = machine.dram.layout.as_ref().filter(|_| machine.dram.mapping == LAYOUT);
        let Some(layout) = layout else {
            let mapping = Mapping::load(&machine.dram.mapping, models)?;
            let map = mapping.for_machine(channels, slices)?;
            map.fits(standard)?;
            let parts = instance_channels(machine).into_iter();
            let parts = parts.map(|channels| mapping.for_machine(channels, slices).map(Arc::new));
            return Ok(map.with_parts(parts.collect::<Result<_, _>>()?));
        };
        let unfit = |problem: String| SpecError::InconsistentMemory {
            name: format!("dram.layout of {}", machine.name),
            problem: format!("expected {problem}"),
        };
        if standard.pseudo_channels != 1 {
            let found = standard.pseudo_channels;
            return Err(unfit(format!("a standard with one pseudo channel, found {found}")));
        }
        let shape = Shape {
            channels,
            slices,
            request_bytes: machine.l2.cache.sector_bytes,
            bank_groups: standard.bank_groups,
            banks_per_group: standard.banks_per_group,
        };
        layout.map(&shape).map_err(|error| unfit(error.text().into()))
    }
}

/// Numbers of channels that instances of `machine` have, each once.
fn instance_channels(machine: &Machine) -> BTreeSet<u32> {
    let facts = machine.mig.as_ref().and_then(|mig| mig.facts(machine));
    let of = |mig: gpumodel_core::contract::MigFacts| {
        let each = machine.dram.channels / mig.memory_slices.max(1);
        let counts = mig.profiles.into_iter().map(move |profile| profile.memory_slices * each);
        counts.filter(|&channels| (1..=machine.dram.channels).contains(&channels))
    };
    facts.into_iter().flat_map(of).collect()
}

impl MemoryStandard {
    /// Reads the standard `name` (a stem in `models/memory`, or a path) and replaces the
    /// parameters named in `overrides`, in the unit of the file.
    ///
    /// # Errors
    /// Any [`SpecError`]: an unreadable file, an unknown key, a value without
    /// source or out of range, or a memory that does not fit together.
    pub fn load(
        name: impl AsRef<OsStr>,
        models: &ModelFiles,
        overrides: &BTreeMap<String, f64>,
    ) -> Result<Self, SpecError> {
        let file = MemoryFile::load(Folder::Memory, name.as_ref(), models)?;
        resolve::resolve(&file, overrides)
    }

    /// The names of the standards; `common` holds their shared sentences and is none.
    pub fn names(models: &ModelFiles) -> impl Iterator<Item = &str> {
        models.names(Folder::Memory.path()).into_iter().filter(|name| *name != COMMON)
    }

    /// Banks of the whole channel.
    #[must_use]
    pub fn banks(&self) -> u32 {
        self.pseudo_channels * self.bank_groups * self.banks_per_group
    }

    /// Bytes that the channel's data buses move in one clock at most.
    #[must_use]
    pub fn peak_bytes_per_clock(&self) -> f64 {
        f64::from(self.pseudo_channels) * f64::from(self.bytes_per_access)
            / f64::from(self.burst_clocks)
    }

    /// Bytes that the channel holds.
    #[must_use]
    pub fn channel_bytes(&self) -> u64 {
        u64::from(self.banks())
            * u64::from(self.rows)
            * u64::from(self.columns)
            * u64::from(self.bytes_per_access)
    }

    /// A parameter of the standard in clocks (or a count), by its name.
    #[must_use]
    pub fn parameter(&self, name: &str) -> Option<i64> {
        self.parameters.get(name).copied()
    }
}
