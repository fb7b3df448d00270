//! The room of an SM: what there is, what CTAs take, and parts of it.

use gpumodel_core::contract::{Facts, KernelFacts, Region};
use gpumodel_core::units::{WARP_LANES, to_u64};

use super::solve::Amount;

/// What one SM has.
pub(super) fn of_sm(facts: &Facts) -> Amount {
    Amount {
        registers: u64::from(facts.registers_per_sm),
        shared_bytes: u64::from(facts.shared_bytes_per_sm),
        threads: u64::from(facts.max_warps_per_sm) * to_u64(WARP_LANES),
        warps: u64::from(facts.max_warps_per_sm),
        cta_slots: u64::from(facts.max_ctas_per_sm),
    }
}

/// What one CTA of a launch takes.
pub(super) fn of_cta(kernel: &KernelFacts) -> Amount {
    Amount {
        registers: u64::from(kernel.registers_per_cta),
        shared_bytes: u64::from(kernel.shared_bytes_per_cta),
        threads: u64::from(kernel.threads_per_cta),
        warps: u64::from(kernel.warps_per_cta),
        cta_slots: 1,
    }
}

/// The most of each resource that a CTA of any of the launches takes.
pub(super) fn of_any<'a>(kernels: impl IntoIterator<Item = &'a KernelFacts>) -> Amount {
    kernels.into_iter().map(of_cta).fold(Amount::default(), Amount::most)
}

/// The least of each resource that a CTA of some launch takes, a slot at least.
pub(super) fn of_least<'a>(kernels: impl IntoIterator<Item = &'a KernelFacts>) -> Amount {
    let slot = Amount { cta_slots: 1, ..Amount::default() };
    kernels.into_iter().map(of_cta).reduce(Amount::least).unwrap_or(slot)
}

/// What a region holds.
pub(super) fn of_region(region: &Region) -> Amount {
    Amount {
        registers: u64::from(region.registers),
        shared_bytes: u64::from(region.shared_bytes),
        threads: u64::from(region.warps) * to_u64(WARP_LANES),
        warps: u64::from(region.warps),
        cta_slots: u64::from(region.ctas),
    }
}

/// Part `place` of `parts` equal ones of an SM; what cannot be divided goes to
/// the first.
pub(super) fn equal_part(facts: &Facts, place: u32, parts: u32) -> Region {
    let begin = |total: u32, place: u32| {
        let begin = (u64::from(total) * u64::from(place)).div_ceil(u64::from(parts));
        u32::try_from(begin).expect("a part lies within the whole")
    };
    let length = |total: u32| begin(total, place + 1) - begin(total, place);
    Region {
        first_register: begin(facts.registers_per_sm, place),
        registers: length(facts.registers_per_sm),
        first_shared_byte: begin(facts.shared_bytes_per_sm, place),
        shared_bytes: length(facts.shared_bytes_per_sm),
        warps: length(facts.max_warps_per_sm),
        ctas: length(facts.max_ctas_per_sm),
    }
}

/// Regions side by side from the low end, as large as the amounts; `None` when
/// they do not all fit an SM.
pub(super) fn side_by_side(facts: &Facts, amounts: &[Amount]) -> Option<Vec<Region>> {
    let (mut left, mut first) = (of_sm(facts), Amount::default());
    let small = |amount: u64| u32::try_from(amount).expect("it fits an SM");
    let mut regions = Vec::with_capacity(amounts.len());
    for &amount in amounts {
        left = left.minus(amount)?;
        regions.push(Region {
            first_register: small(first.registers),
            registers: small(amount.registers),
            first_shared_byte: small(first.shared_bytes),
            shared_bytes: small(amount.shared_bytes),
            warps: small(amount.warps),
            ctas: small(amount.cta_slots),
        });
        first = first.plus(amount);
    }
    Some(regions)
}
