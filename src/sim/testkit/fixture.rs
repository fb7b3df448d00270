//! Machines, memories and plans for tests.

use crate::config::{AddressMap, Command, Location, MemoryStandard, Models, Resolved};
use gpumodel_core::contract::{AppFacts, Facts, Plan, PlanDraft, Share};
use gpumodel_core::units::AppId;

use crate::{Outcome, machine_facts};

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
    let map = AddressMap::of_machine(machine, &standard, &gpumodel_models::builtin()).unwrap();
    (standard, map)
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

/// The facts of `apps` applications without kernels.
pub(crate) fn facts(resolved: &Resolved, apps: u16) -> Facts {
    let (standard, map) = memory_of(resolved);
    let app =
        |app| AppFacts { app: AppId(app), name: format!("a{app}"), arrival: 0, kernels: vec![] };
    let machine = machine_facts(&resolved.machine, &standard, &map, 1.0);
    Facts { apps: (0..apps).map(app).collect(), ..machine }
}

/// A plan that gives every application all SMs and places.
pub(crate) fn whole(resolved: &Resolved, apps: u16) -> Plan {
    let facts = facts(resolved, apps);
    let quota = Share::Quota(vec![facts.max_ctas_per_sm; usize::from(facts.sms)]);
    let shares = vec![quota; usize::from(apps)];
    Plan::new(&facts, PlanDraft { shares, ..PlanDraft::default() }).unwrap()
}
