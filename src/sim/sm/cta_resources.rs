//! What an SM has to hand out to CTAs: slots by number, registers and shared memory
//! as contiguous ranges, so that what lies between CTAs of different sizes may be
//! too small for either (Warped-Slicer, fig. 2a).

use std::ops::Range;

use gpumodel_core::isa::Launch;

use crate::config::Machine;

/// Where a CTA's storage lies on its SM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    register: u32,
    shared_byte: u32,
}

/// The part of an SM from which a CTA may take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) registers: Range<u32>,
    pub(crate) shared_bytes: Range<u32>,
}

impl Bounds {
    /// All of an SM of `machine`.
    pub(crate) fn whole(machine: &Machine) -> Self {
        Self { registers: 0..machine.sm.registers, shared_bytes: 0..machine.shared.bytes }
    }
}

/// What is free on one SM.
#[derive(Clone, Debug)]
pub(crate) struct CtaResources {
    ctas: u32,
    warps: u32,
    registers: Storage,
    shared_bytes: Storage,
}

impl CtaResources {
    /// All of an SM.
    pub(crate) fn whole(machine: &Machine) -> Self {
        let pooled = machine.quirks.pools_storage;
        Self {
            ctas: machine.sm.max_ctas,
            warps: machine.sm.max_warps,
            registers: Storage::new(machine.sm.registers, pooled),
            shared_bytes: Storage::new(machine.shared.bytes, pooled),
        }
    }

    /// Where one more CTA would lie within `bounds`, the lowest place of all.
    pub(crate) fn place(&self, need: &Need, bounds: &Bounds) -> Option<Place> {
        if self.ctas == 0 || self.warps < need.warps {
            return None;
        }
        Some(Place {
            register: self.registers.find(need.registers, &bounds.registers)?,
            shared_byte: self.shared_bytes.find(need.shared_bytes, &bounds.shared_bytes)?,
        })
    }

    /// Takes a CTA's need at a place that [`CtaResources::place`] gave.
    pub(crate) fn take(&mut self, need: &Need, place: Place) {
        self.ctas -= 1;
        self.warps -= need.warps;
        self.registers.take(place.register, need.registers);
        self.shared_bytes.take(place.shared_byte, need.shared_bytes);
    }

    /// Gives a CTA's need back.
    pub(crate) fn give_back(&mut self, need: &Need, place: Place) {
        self.ctas += 1;
        self.warps += need.warps;
        self.registers.give_back(place.register, need.registers);
        self.shared_bytes.give_back(place.shared_byte, need.shared_bytes);
    }

    /// Free warp slots: how the dispatcher compares SMs.
    pub(crate) fn free_warps(&self) -> u32 {
        self.warps
    }
}

/// The place of what lies in several pieces.
const SCATTERED: u32 = u32::MAX;

/// One storage of an SM.
#[derive(Clone, Debug)]
struct Storage {
    whole: u32,
    free: u32,
    /// Taken ranges, first and length, in order.
    taken: Vec<(u32, u32)>,
    /// What is free need not be in one piece.
    pooled: bool,
}

impl Storage {
    fn new(whole: u32, pooled: bool) -> Self {
        Self { whole, free: whole, taken: Vec::new(), pooled }
    }

    /// The lowest free place of `length` within `bounds`.
    fn find(&self, length: u32, bounds: &Range<u32>) -> Option<u32> {
        if length == 0 {
            return Some(0);
        }
        if self.free < length {
            return None;
        }
        let mut first = bounds.start;
        for &(start, span) in &self.taken {
            if start + span <= first {
                continue;
            }
            if start >= first.saturating_add(length) {
                break;
            }
            first = start + span;
        }
        let fits = first.saturating_add(length) <= bounds.end;
        let scattered = self.pooled && *bounds == (0..self.whole);
        fits.then_some(first).or(scattered.then_some(SCATTERED))
    }

    fn take(&mut self, first: u32, length: u32) {
        self.free -= length;
        if length > 0 && first != SCATTERED {
            let place = self.taken.partition_point(|&(start, _)| start < first);
            self.taken.insert(place, (first, length));
        }
    }

    fn give_back(&mut self, first: u32, length: u32) {
        self.free += length;
        if length > 0 && first != SCATTERED {
            self.taken.retain(|&(start, _)| start != first);
        }
    }
}

/// What one CTA of a launch takes of an SM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Need {
    /// Warp slots.
    pub warps: u32,
    /// Registers, after allocation granularity.
    pub registers: u32,
    /// Shared bytes, after allocation granularity.
    pub shared_bytes: u32,
}

/// What limits the CTAs of a launch on an SM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Warp slots.
    Warps,
    /// CTA slots.
    Ctas,
    /// Registers.
    Registers,
    /// Shared memory.
    Shared,
}

impl Limit {
    /// The name in records.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Warps => "warps",
            Self::Ctas => "ctas",
            Self::Registers => "registers",
            Self::Shared => "shared",
        }
    }
}

impl Need {
    /// What a CTA of `launch` takes on `machine`: registers per warp and shared
    /// bytes per CTA are rounded up to the machine's allocation units (CUDA
    /// occupancy rules).
    #[must_use]
    pub fn of(launch: &Launch, machine: &Machine) -> Self {
        let warps = launch.warps_per_cta();
        let unit = u64::from(machine.sm.register_unit.max(1));
        let per_warp = (u64::from(launch.registers) * 32).div_ceil(unit) * unit;
        let shared =
            u64::from(launch.shared_bytes) + u64::from(machine.shared.reserved_bytes_per_cta);
        let shared_unit = u64::from(machine.shared.unit_bytes.max(1));
        Self {
            warps,
            registers: u32::try_from(per_warp * u64::from(warps)).unwrap_or(u32::MAX),
            shared_bytes: u32::try_from(shared.div_ceil(shared_unit) * shared_unit)
                .unwrap_or(u32::MAX),
        }
    }

    /// CTAs that an empty SM holds, and what limits them.
    #[must_use]
    pub fn fits(&self, machine: &Machine) -> (u32, Limit) {
        let over = |have: u32, need: u32| have.checked_div(need).unwrap_or(u32::MAX);
        let limits = [
            (machine.sm.max_ctas, Limit::Ctas),
            (over(machine.sm.max_warps, self.warps), Limit::Warps),
            (over(machine.sm.registers, self.registers), Limit::Registers),
            (over(machine.shared.bytes, self.shared_bytes), Limit::Shared),
        ];
        limits.into_iter().min_by_key(|&(count, _)| count).unwrap_or((0, Limit::Ctas))
    }
}

#[cfg(test)]
mod tests {
    use super::Storage;

    #[test]
    fn what_lies_between_two_ctas_may_be_too_small() {
        let mut storage = Storage::new(8, false);
        let all = 0..8;
        for first in [0, 2, 4, 6] {
            assert_eq!(storage.find(2, &all), Some(first));
            storage.take(first, 2);
        }
        storage.give_back(0, 2);
        storage.give_back(4, 2);
        assert_eq!(storage.find(4, &all), None, "free but in two pieces");
        assert_eq!(storage.find(2, &all), Some(0));
        assert_eq!(storage.find(2, &(2..8)), Some(4));
        assert_eq!(storage.find(2, &(5..8)), None);
        storage.give_back(2, 2);
        assert_eq!(storage.find(4, &all), Some(0), "neighbours join");
    }

    #[test]
    fn a_pool_needs_no_single_piece() {
        let mut storage = Storage::new(8, true);
        for first in [0, 2, 4, 6] {
            storage.take(first, 2);
        }
        storage.give_back(0, 2);
        storage.give_back(4, 2);
        let scattered = storage.find(4, &(0..8)).unwrap();
        storage.take(scattered, 4);
        assert_eq!(storage.find(1, &(0..8)), None);
        storage.give_back(scattered, 4);
        assert_eq!(storage.find(2, &(0..8)), Some(0));
    }

    #[test]
    fn nothing_fits_anywhere() {
        let mut storage = Storage::new(0, false);
        assert_eq!(storage.find(0, &(0..0)), Some(0));
        storage.take(0, 0);
        storage.give_back(0, 0);
        assert_eq!(storage.find(1, &(0..0)), None);
    }
}
