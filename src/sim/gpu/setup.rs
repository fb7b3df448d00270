//! What a run is made of, and the parts made from it.

use std::sync::Arc;

use crate::config::{AddressMap, Machine, MemoryStandard, PageChannels};
use gpumodel_core::units::{AppId, Cycle, KernelId, to_u16, to_u32, to_u64};

use crate::gpu::app::{Command, End, Load};
use crate::gpu::error::MachineError;
use crate::gpu::feed::{Feed, Program};
use crate::gpu::grid::{ClusterOrder, Grid};
use crate::gpu::link::HostLink;
use crate::gpu::shared_state::{SharedState, Windows};
use crate::gpu::workers::WorkerPool;
use crate::interval::Profile;
use crate::memory::MemorySystem;
use crate::memory::PresumedL2Hits;
use crate::mmu::Mmu;
use crate::mmu::address_space;
use crate::sm::Need;

/// What a run is made of.
#[derive(Debug)]
pub struct Setup<'a> {
    /// The machine.
    pub machine: &'a Machine,
    /// Its memory.
    pub standard: &'a MemoryStandard,
    /// Where addresses lie.
    pub mapping: AddressMap,
    /// What each application has to do.
    pub apps: Vec<Load>,
    /// When the run is over.
    pub end: End,
    /// What the run is a part of; `None`: it is whole.
    pub part: Option<Part>,
}

/// What a run that stands for more than itself must know of the rest: a few CTAs
/// of a launch on a few of the SMs and channels, or some launches of a list.
#[derive(Clone, Debug)]
pub struct Part {
    /// Cycles from one CTA's hand-out to the next (1: a whole machine's).
    pub pace: Cycle,
    /// What the rest brings into the L2.
    pub presumed_l2_hits: PresumedL2Hits,
}

/// Which application each launch belongs to; launches are numbered over all lists.
pub(crate) fn app_of_kernels(apps: &[Load]) -> Vec<AppId> {
    let mut owners: Vec<(KernelId, AppId)> = Vec::new();
    for (app, load) in apps.iter().enumerate() {
        for command in &load.commands {
            if let Command::Launch { kernel, .. } = command {
                owners.push((*kernel, AppId(to_u16(app))));
            }
        }
    }
    owners.sort_unstable_by_key(|&(kernel, _)| kernel);
    debug_assert!(owners.iter().enumerate().all(|(k, &(kernel, _))| kernel.index() == k));
    owners.into_iter().map(|(_, app)| app).collect()
}

/// The grid of every launch.
///
/// # Errors
/// [`MachineError::CtaTooLarge`] when a launch can never start.
pub(crate) fn grids(
    machine: &Machine,
    feed: &dyn Feed,
    app_of: &[AppId],
) -> Result<Vec<Grid>, MachineError> {
    let program = |kernel| feed.program(KernelId(to_u32(kernel)));
    let one = |(kernel, &app)| {
        let mut grid = grid(machine, app, program(kernel))?;
        if let Some(worker) = feed.worker(KernelId(to_u32(kernel))) {
            let (worker, (fits, _)) = (Arc::clone(worker), grid.need.fits(machine));
            grid.worker_pool = Some(WorkerPool::new(worker, to_u32(kernel), fits, machine));
        }
        Ok(grid)
    };
    app_of.iter().enumerate().map(one).collect()
}

fn grid(machine: &Machine, app: AppId, program: &Program) -> Result<Grid, MachineError> {
    let need = Need::of(&program.launch, machine);
    let (fits, limit) = need.fits(machine);
    if fits == 0 {
        return Err(MachineError::CtaTooLarge {
            kernel: program.launch.name.clone(),
            machine: machine.name.clone(),
            warps: need.warps,
            registers: need.registers,
            shared_bytes: need.shared_bytes,
            limit: limit.name(),
        });
    }
    let mut grid = Grid::new(app, need, program.ctas, fits, machine);
    if machine.cluster.is_some() {
        grid.clusters = ClusterOrder::of(&program.launch, program.ctas);
    }
    Ok(grid)
}

/// The way to memory; `part`: the rest of what the run is a part of.
fn memory_system(
    machine: &Machine,
    (standard, mapping): (&MemoryStandard, AddressMap),
    part: Option<&Part>,
) -> MemorySystem {
    let mut memory_system = MemorySystem::new(machine, standard, mapping);
    let rest = part.map(|part| &part.presumed_l2_hits).filter(|set| !set.is_empty());
    memory_system.presumed_l2_hits = rest.cloned();
    memory_system
}

/// The shared side of a run; launches with the same code share one profile. `part`: as
/// [`Setup::part`].
pub(crate) fn shared_state(
    machine: &Machine,
    feed: &dyn Feed,
    (apps, app_of): (usize, &[AppId]),
    memory: (&MemoryStandard, AddressMap),
    part: Option<&Part>,
) -> SharedState {
    let (standard, _) = memory;
    let memory_system = memory_system(machine, memory, part);
    let kernels = app_of.len();
    let mut profiles: Vec<Profile> = Vec::new();
    let mut owners: Vec<&Program> = Vec::new();
    let mut profile_of = Vec::with_capacity(kernels);
    let mut windows = Vec::with_capacity(kernels);
    for (kernel, app) in app_of.iter().enumerate() {
        let program = feed.program(KernelId(to_u32(kernel)));
        let same = |other: &&Program| std::sync::Arc::ptr_eq(&other.code, &program.code);
        let place = owners.iter().position(same).unwrap_or_else(|| {
            owners.push(program);
            let first_line = profiles.last().map_or(0, |last| last.lines().end());
            profiles.push(Profile::new(machine, program, first_line));
            profiles.len() - 1
        });
        profile_of.push(to_u32(place));
        windows.push(Windows {
            generic: program.launch.windows(),
            cluster: program.launch.cluster_ctas(),
            tag: address_space::tag(app.0),
        });
    }
    debug_assert_eq!(to_u64(profile_of.len()), to_u64(kernels));
    let pages = machine.translation.as_ref();
    let pages = pages.and_then(|spec| PageChannels::of(memory_system.mapping(), spec.page_bytes));
    let mmu = Mmu::new(machine, pages, apps);
    let mut shared_state =
        SharedState::new(memory_system, mmu, profiles, profile_of, windows, app_of);
    shared_state.link = HostLink::new(machine, standard, apps).map(Box::new);
    shared_state.spans = part.map(|_| Vec::new());
    shared_state
}
