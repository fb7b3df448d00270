//! The memory channels of an imported machine: standard, timing and bandwidth.

use std::collections::BTreeMap;

use gpumodel_core::toml::SourceKind;

use super::Sheet;
use super::address;
use super::levels::Levels;
use super::options::{Entry, Options};
use crate::config::error::SpecError;

/// Longest DRAM time in clocks, and most banks, that an option may state.
const LONGEST: u32 = 100_000;

/// Banks of a channel at most.
const MOST_BANKS: u32 = 64;

/// Places of a queue without limit: more than requests can be in flight.
const UNLIMITED: u32 = 1 << 20;

/// Timing parameters in the order of the old form, with the simulator's default where it has one
/// (`gpu-sim.h`, `memory_config::init`).
const TIMING: [(&str, Option<u32>); 14] = [
    ("nbk", None),
    ("CCD", None),
    ("RRD", None),
    ("RCD", None),
    ("RAS", None),
    ("RP", None),
    ("RC", None),
    ("CL", None),
    ("WL", None),
    ("CDLR", None),
    ("WR", None),
    ("nbkgrp", Some(1)),
    ("CCDL", Some(0)),
    ("RTPL", Some(0)),
];

/// Writes `[dram]`, its timing and, where no mapping file describes it, its address layout.
pub(super) fn dram(
    options: &mut Options,
    sheet: &mut Sheet,
    levels: &Levels,
) -> Result<(), SpecError> {
    let channels = options.or("-gpgpu_n_mem", "8");
    let dual = options.or("-dram_dual_bus_interface", "0");
    sheet.section("dram");
    let standard = if dual.flag()? { "accelsim-hbm" } else { "accelsim-gddr" };
    sheet.choice("standard", standard, &dual.cite());
    sheet.published("channels", channels.within(1..=1024)?, &channels.cite());
    let timing = Timing::read(options.or("-gpgpu_dram_timing_opt", DEFAULT_TIMING))?;
    let found = address::find(options, levels, &timing)?;
    found.write_name(sheet);
    let bus = Bus::read(options, found.fetch_bytes)?;
    bus.write_peak(sheet)?;
    let latency = options.or("-dram_latency", "30");
    sheet.published("latency_cycles", latency.within(0..=99_999)?, &latency.cite());
    let queue = options.or("-gpgpu_frfcfs_dram_sched_queue_size", "0");
    let places = match queue.within(0..=UNLIMITED)? {
        0 => UNLIMITED,
        places => places,
    };
    sheet.published("queue", places, &queue.cite());
    sheet.section("dram.timing");
    timing.write(sheet, &bus);
    bus.write(sheet);
    found.write_layout(sheet);
    Ok(())
}

/// The simulator's default for `-gpgpu_dram_timing_opt`.
const DEFAULT_TIMING: &str = "4:2:8:12:21:13:34:9:4:5:13:1:0:0";

/// `-gpgpu_dram_timing_opt`.
pub(super) struct Timing {
    pub(super) entry: Entry,
    /// In the order in which they are written.
    written: Vec<(String, u32)>,
    values: BTreeMap<String, u32>,
}

impl Timing {
    fn read(entry: Entry) -> Result<Self, SpecError> {
        let ordered = !entry.value.contains('=');
        let parts = entry.value.split([':', ' ', ';']).map(str::trim).filter(|p| !p.is_empty());
        let mut written = Vec::new();
        for (at, part) in parts.enumerate() {
            let named = if ordered {
                TIMING.get(at).map(|(name, _)| (*name, part))
            } else {
                part.split_once('=')
            };
            let (name, value) = named.unwrap_or((part, ""));
            let value: u32 =
                value.parse().ok().filter(|value| *value <= LONGEST).ok_or_else(|| {
                    entry.refuse("NAME=CLOCKS, separated by colons, up to 100000")
                })?;
            if !TIMING.iter().any(|(known, _)| *known == name) {
                let known = TIMING.map(|(known, _)| known).join(", ");
                return Err(entry.refuse(&format!("the names {known} instead of {name}")));
            }
            written.push((name.to_owned(), value));
        }
        let mut values: BTreeMap<String, u32> = BTreeMap::new();
        for (name, value) in &written {
            if values.insert(name.clone(), *value).is_some() {
                return Err(entry.refuse(&format!("{name} once")));
            }
        }
        let timing = Self { entry, written, values };
        timing.check()?;
        Ok(timing)
    }

    fn check(&self) -> Result<(), SpecError> {
        for (name, default) in TIMING {
            if default.is_none() && !self.values.contains_key(name) {
                return Err(self.entry.refuse(&format!("{name}=CLOCKS among them")));
            }
        }
        let (banks, groups) = (self.value("nbk"), self.value("nbkgrp"));
        if !(1..=MOST_BANKS).contains(&banks) {
            return Err(self.entry.refuse(&format!("nbk from 1 to {MOST_BANKS} banks")));
        }
        if groups == 0 || !banks.is_multiple_of(groups) || !groups.is_power_of_two() {
            let text = format!("nbkgrp to be a power of two that divides the {banks} banks");
            return Err(self.entry.refuse(&text));
        }
        Ok(())
    }

    /// A parameter, or the simulator's default for it.
    pub(super) fn value(&self, name: &str) -> u32 {
        let default = TIMING.iter().find(|(known, _)| *known == name).and_then(|row| row.1);
        self.values.get(name).copied().or(default).unwrap_or(0)
    }

    fn write(&self, sheet: &mut Sheet, bus: &Bus) {
        let at = format!("{} {}", self.entry.line(), self.entry.key);
        for (name, value) in &self.written {
            self.write_one(sheet, bus, name, *value, &format!("{at} {name}={value}"));
        }
        for (name, default) in TIMING {
            if let Some(value) = default.filter(|_| !self.values.contains_key(name)) {
                let source = format!("GPGPU-Sim's default {name}={value}");
                self.write_one(sheet, bus, name, value, &source);
            }
        }
        let command = self.value("RCD").saturating_sub(self.value("WL").saturating_add(1));
        let source = "GPGPU-Sim memory_config::init: tRCDWR = tRCD - (WL + 1)";
        sheet.published("RCDWR", command, source);
    }

    fn write_one(&self, sheet: &mut Sheet, bus: &Bus, name: &str, value: u32, source: &str) {
        let bursts = if matches!(name, "CCD" | "CCDL") { bus.bursts } else { 1 };
        if bursts == 1 {
            sheet.published(name, value, source);
            return;
        }
        let source = format!("{source}, for the {bursts} bursts of a request");
        sheet.published(name, u64::from(value) * u64::from(bursts), &source);
    }
}

/// The data bus of a channel and what a request takes of it.
struct Bus {
    width: Entry,
    beats: Entry,
    ratio: Entry,
    devices: Entry,
    /// Bytes that a request moves, an access of the model.
    request_bytes: u32,
    /// Bytes of one burst on all devices.
    burst_bytes: u32,
    /// Bursts of a request.
    bursts: u32,
    /// Clocks of the bus for one burst.
    burst_clocks: u32,
}

impl Bus {
    fn read(options: &mut Options, request_bytes: u32) -> Result<Self, SpecError> {
        let width = options.or("-gpgpu_dram_buswidth", "4");
        let beats = options.or("-gpgpu_dram_burst_length", "4");
        let ratio = options.or("-dram_data_command_freq_ratio", "2");
        let devices = options.or("-gpgpu_n_mem_per_ctrlr", "1");
        for (entry, most) in [(&beats, 1024), (&ratio, 1024), (&devices, 1024)] {
            entry.within(1..=most)?;
        }
        let [bus, burst] = [&ratio, &beats]
            .map(|entry| width.product(&[width.number()?, entry.number()?, devices.number()?]));
        bus?;
        width.within(1..=1 << 20)?;
        let burst_bytes = burst?;
        // The simulator's integer division; a burst shorter than a clock still takes one.
        let burst_clocks = (beats.number::<u32>()? / ratio.number::<u32>()?).max(1);
        let bursts = request_bytes.div_ceil(burst_bytes);
        Ok(Self { width, beats, ratio, devices, request_bytes, burst_bytes, bursts, burst_clocks })
    }

    /// Whether a request is a burst whose clocks are its beats over the ratio.
    fn plain(&self) -> bool {
        let whole = |beats: u32, ratio: u32| beats / ratio * ratio == beats;
        let numbers = (self.beats.number(), self.ratio.number());
        self.burst_bytes == self.request_bytes
            && matches!(numbers, (Ok(beats), Ok(ratio)) if whole(beats, ratio))
    }

    /// Writes the bytes of a channel and memory clock.
    fn write_peak(&self, sheet: &mut Sheet) -> Result<(), SpecError> {
        let [width, beats, ratio, devices] =
            [&self.width, &self.beats, &self.ratio, &self.devices].map(Entry::cite);
        let clocks = self.bursts * self.burst_clocks;
        let bytes = self.request_bytes / clocks;
        if bytes == 0 || bytes * clocks != self.request_bytes {
            return Err(self.beats.refuse(&format!(
                "bursts that move the {} bytes of a request in whole bytes per clock, found {} of \
                 {} clocks",
                self.request_bytes, self.bursts, self.burst_clocks
            )));
        }
        if self.plain() {
            let source = format!("{width} x {ratio} x {devices}");
            sheet.published("channel_bytes_per_clock", bytes, &source);
            return Ok(());
        }
        let source = format!(
            "{} bytes of a request in {} bursts of {} clocks: {width} x {beats} x {devices}, {ratio}",
            self.request_bytes, self.bursts, self.burst_clocks
        );
        sheet.published("channel_bytes_per_clock", bytes, &source);
        Ok(())
    }

    /// Writes the bus among the timing parameters.
    fn write(&self, sheet: &mut Sheet) {
        let devices: u32 = self.devices.number().unwrap_or(1);
        let width = self.width.number::<u32>().unwrap_or(1) * devices;
        let source = match devices {
            1 => self.width.cite(),
            _ => format!("{} x {}", self.width.cite(), self.devices.cite()),
        };
        sheet.published("bus_bytes", width, &source);
        for (key, entry) in [("burst_length", &self.beats), ("data_command_ratio", &self.ratio)] {
            sheet.published(key, entry.number::<u32>().unwrap_or(1), &entry.cite());
        }
        if self.plain() {
            return;
        }
        let source = format!(
            "GPGPU-Sim dram_t: a request of {} bytes takes {} bursts of {}, used or not",
            self.request_bytes, self.bursts, self.burst_bytes
        );
        sheet.leaf("bytes_per_access", &self.request_bytes, SourceKind::Published, &source);
        sheet.leaf("burst", &(self.bursts * self.burst_clocks), SourceKind::Published, &source);
    }
}
