//! Machines, memories and plans for tests.

use crate::config::{
    AddressMap, Command, Location, Mapping, MemoryStandard, Models, PageChannels, Resolved,
};
use gpumodel_core::contract::{AppFacts, Facts, Plan, PlanDraft, Share};
use gpumodel_core::units::AppId;

use crate::Outcome;

/// The machine that most tests run on, with some keys set.
pub(crate) fn machine(set: &[(&str, &str)]) -> Resolved {
    named("accelsim-qv100", set)
}

/// The machine `name` without address translation, with some keys set, and without instruction
/// caches unless one of their keys is set.
pub(crate) fn named(name: &str, set: &[(&str, &str)]) -> Resolved {
    let mut resolved = translating(name, set);
    resolved.machine.translation = None;
    if !set.iter().any(|(key, _)| key.starts_with("fetch.")) {
        resolved.machine.fetch = None;
    }
    resolved
}

/// As [`named`], with caches of sectors of 32 bytes.
pub(crate) fn sectored(name: &str, set: &[(&str, &str)]) -> Resolved {
    let sectors = [("l1.cache.sector_bytes", "32"), ("l2.cache.sector_bytes", "32")];
    named(name, &[&sectors, set].concat())
}

/// The memory of a machine and where addresses lie in it.
pub(crate) fn memory_of(resolved: &Resolved) -> (MemoryStandard, AddressMap) {
    let machine = &resolved.machine;
    let standard = MemoryStandard::load(
        &machine.dram.standard,
        &gpumodel_models::builtin(),
        &machine.dram.timing,
    )
    .unwrap();
    let slices = machine.l2.slices / machine.dram.channels;
    let mapping = Mapping::load(&machine.dram.mapping, &gpumodel_models::builtin()).unwrap();
    (standard, mapping.for_machine(machine.dram.channels, slices).unwrap())
}

/// The first address at a place, whatever its slice.
pub(crate) fn address_of(mapping: &AddressMap, place: Location) -> u64 {
    let of_slice = |slice| Location { slice, ..place };
    let mut places = (0..mapping.slices()).map(of_slice);
    let found = places.find(|&place| mapping.locate(mapping.address(place)) == place);
    mapping.address(found.expect("every place has an address"))
}

/// Clocks from one command to another of the same bank.
pub(crate) fn gap(standard: &MemoryStandard, from: Command, to: Command) -> u64 {
    let pairs = standard.gaps.iter().filter(|gap| gap.window == 1);
    let waits = pairs.filter(|gap| (gap.from, gap.to) == (from, to)).map(|gap| gap.wait);
    u64::from(waits.max().expect("the standard has a sentence on the pair"))
}

/// Cycles from the first CTA to the end.
pub(crate) fn kernel_cycles(outcome: &Outcome) -> u64 {
    outcome.kernels[0].end - outcome.kernels[0].first_cta
}

/// Any machine as it is, with some keys set.
pub(crate) fn translating(name: &str, set: &[(&str, &str)]) -> Resolved {
    let overrides: Vec<_> = set.iter().map(|&(k, v)| (k.to_owned(), v.to_owned())).collect();
    Models::builtin().machine(name, &overrides).unwrap()
}

/// The groups of channels that a machine's pages lie in.
pub(crate) fn channel_groups(resolved: &Resolved) -> Vec<Vec<u32>> {
    let (_, map) = memory_of(resolved);
    let pages = resolved.machine.translation.as_ref();
    let pages = pages.and_then(|spec| PageChannels::of(&map, spec.page_bytes));
    pages.map_or_else(Vec::new, |pages| pages.groups().to_vec())
}

/// The facts of `apps` applications without kernels.
pub(crate) fn facts(resolved: &Resolved, apps: u16) -> Facts {
    let machine = &resolved.machine;
    Facts {
        sms: machine.dispatch.sms,
        max_ctas_per_sm: machine.sm.max_ctas,
        max_warps_per_sm: machine.sm.max_warps,
        registers_per_sm: machine.sm.registers,
        shared_bytes_per_sm: machine.shared.bytes,
        register_unit: machine.sm.register_unit,
        shared_unit_bytes: machine.shared.unit_bytes,
        shared_reserved_bytes: machine.shared.reserved_bytes_per_cta,
        channels: machine.dram.channels,
        channel_groups: channel_groups(resolved),
        channel_bytes: 1 << 29,
        page_bytes: machine.translation.as_ref().map_or(0, |spec| spec.page_bytes),
        pages_follow: machine.translation.as_ref().is_some_and(|spec| !spec.ideal),
        core_mhz: machine.clocks.core_mhz,
        peak_dram_gb_per_s: 1.0,
        peak_l2_gb_per_s: 1.0,
        peak_sm_port_gb_per_s: 1.0,
        peak_ipc_per_sm: 128.0,
        schedulers_per_sm: machine.sm.schedulers,
        apps: (0..apps)
            .map(|app| AppFacts {
                app: AppId(app),
                name: format!("a{app}"),
                arrival: 0,
                kernels: vec![],
            })
            .collect(),
    }
}

/// A plan that gives every application all SMs and places.
pub(crate) fn whole(resolved: &Resolved, apps: u16) -> Plan {
    let facts = facts(resolved, apps);
    let quota = Share::Quota(vec![facts.max_ctas_per_sm; usize::from(facts.sms)]);
    let shares = vec![quota; usize::from(apps)];
    Plan::new(&facts, PlanDraft { shares, ..PlanDraft::default() }).unwrap()
}
