//! What a CTA takes of an SM.

use crate::config::Machine;
use gpumodel_core::isa::Launch;

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
