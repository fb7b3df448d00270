//! The context that all runs of one analysis share, and the facts that schemes get before a run
//! starts.

use serde::Serialize;
use serde::de::DeserializeOwned;

use gpumodel_core::contract::{AppFacts, Facts, KernelFacts};
use gpumodel_core::units::{AppId, Cycle, to_u16};
use gpumodel_feed::StoreFeed;
use gpumodel_report::results::{AppRecord, MachineRecord};
use gpumodel_sim::config::{Machine, Resolved};
use gpumodel_sim::{End, Gpu, Load, Need, Program, Setup, machine_facts};
use gpumodel_trace::Filter;

use crate::cache::profiles::Profiles;
use crate::cache::results::ResultCache;
use crate::memory::Memory;
use crate::record::notes::Notes;
use crate::solo::solo;
use crate::{AnalyzeRequest, App, EventDetail, RunError, SampleRequest, Watch};

/// The context that all runs of one analysis share.
pub(super) struct RunContext<'a> {
    pub(super) resolved: &'a Resolved,
    pub(super) memory: &'a Memory,
    pub(super) watch: &'a dyn Watch,
    pub(super) profiles: Profiles,
    pub(super) seed: u64,
    pub(super) sample: Option<SampleRequest>,
    pub(super) fast_forward: bool,
    pub(super) hot: usize,
    pub(super) events: EventDetail,
    filter: &'a Filter,
    /// Cached results; `None`: everything is computed.
    results: Option<&'a ResultCache>,
    /// There are more threads than runs, probes of schemes apart.
    threads_idle: bool,
}

impl<'a> RunContext<'a> {
    /// The context of the runs of `request` on a machine.
    pub(super) fn new(
        request: &'a AnalyzeRequest,
        (resolved, memory): (&'a Resolved, &'a Memory),
        watch: &'a dyn Watch,
        results: Option<&'a ResultCache>,
    ) -> Self {
        let profiles = results.map_or_else(|| Profiles::new(&request.cache), ResultCache::profiles);
        // Sweeps, whose results are cached, have many cells, and queues have many members.
        let few = results.is_none() && request.queue.is_none();
        let runs = request.apps.len() + request.schemes.len();
        let AnalyzeRequest { seed, sample, fast_forward, hot, events, ref filter, .. } = *request;
        Self {
            resolved,
            memory,
            watch,
            profiles,
            seed,
            sample,
            fast_forward,
            hot,
            events,
            filter,
            results,
            threads_idle: few && runs < rayon::current_num_threads(),
        }
    }

    /// A machine that uses idle threads, where there are any.
    pub(super) fn on_threads<'m>(&self, gpu: Gpu<'m>) -> Gpu<'m> {
        if self.threads_idle { gpu.with_all_threads() } else { gpu }
    }

    /// A machine with the memory of this context, ready to run `apps` until `end`.
    pub(super) fn setup<'m>(
        &'m self,
        machine: &'m Machine,
        apps: Vec<Load>,
        end: End,
    ) -> Setup<'m> {
        let (standard, mapping) = (&self.memory.standard, self.memory.map.clone());
        Setup { machine, standard, mapping, apps, end, part: None }
    }

    /// The cached result of `work`, or the one that it computes. `key_parts` name everything
    /// that the result depends on, except build, machine and filter.
    pub(super) fn cached<T: Serialize + DeserializeOwned>(
        &self,
        key_parts: impl FnOnce() -> Vec<String>,
        work: impl FnOnce() -> Result<T, RunError>,
    ) -> Result<T, RunError> {
        let Some(results) = self.results else { return work() };
        let mut all = vec![self.resolved.hash.clone(), self.filter()];
        all.extend(self.fast_forward.then(|| String::from("fast-forward")));
        all.extend(key_parts());
        results.get_or_compute(&all, work)
    }

    /// The record of a solo run, with notes on its assumptions.
    pub(super) fn solo(&self, app: &App) -> Result<(AppRecord, Vec<String>), RunError> {
        let key_parts = || vec![String::from("solo"), app.name.clone(), app.store.content_hash()];
        self.cached(key_parts, || {
            let mut notes = Notes::default();
            let row = solo(self, app, &mut notes)?;
            Ok((row, notes.into_sentences()))
        })
    }

    /// The filter of launches and CTAs as text.
    pub(super) fn filter(&self) -> String {
        format!("{:?}", self.filter.words())
    }

    /// Warp instructions of an application that the filter selects.
    pub(super) fn selected_instructions(&self, app: &App) -> u64 {
        let chosen = (0..app.store.kernel_count()).filter(|&kernel| self.chooses(app, kernel));
        chosen.map(|kernel| app.store.kernel(kernel).warp_instructions()).sum()
    }

    /// Whether the filter selects a kernel of an application's store.
    pub(super) fn chooses(&self, app: &App, kernel: usize) -> bool {
        self.filter.takes(&app.store.kernel(kernel).launch())
    }
}

/// The facts of applications on a machine: their names, launches and arrivals.
pub(super) fn facts(ctx: &RunContext<'_>, apps: &[(&str, &StoreFeed<'_>, Cycle)]) -> Facts {
    let machine = &ctx.resolved.machine;
    let app = |(index, &(name, feed, arrival)): (usize, &(&str, &StoreFeed<'_>, Cycle))| {
        let kernels = feed.programs().iter().enumerate();
        let kernels =
            kernels.map(|(index, program)| kernel(machine, program, feed.warp_instructions(index)));
        AppFacts {
            app: AppId(to_u16(index)),
            name: name.to_owned(),
            arrival,
            kernels: kernels.collect(),
        }
    };
    Facts { apps: apps.iter().enumerate().map(app).collect(), ..without_apps(machine, ctx.memory) }
}

fn without_apps(machine: &Machine, memory: &Memory) -> Facts {
    machine_facts(machine, &memory.standard, &memory.map, memory.peak_gb_per_s)
}

fn kernel(machine: &Machine, program: &Program, warp_instructions: u64) -> KernelFacts {
    let need = Need::of(&program.launch, machine);
    KernelFacts {
        name: program.launch.name.clone(),
        ctas: program.ctas,
        threads_per_cta: u32::try_from(program.launch.block.count()).unwrap_or(u32::MAX),
        warps_per_cta: need.warps,
        registers_per_thread: program.launch.registers,
        shared_bytes: program.launch.shared_bytes,
        registers_per_cta: need.registers,
        shared_bytes_per_cta: need.shared_bytes,
        ctas_per_sm: need.fits(machine).0,
        warp_instructions,
    }
}

/// The machine in a record: name, hash and the peak rates of its description.
pub(super) fn peaks(resolved: &Resolved, memory: &Memory) -> MachineRecord {
    let machine = &resolved.machine;
    let facts = without_apps(machine, memory);
    let issue = u32::from(machine.dispatch.sms) * machine.sm.schedulers * machine.sm.issue_width;
    MachineRecord {
        name: machine.name.clone(),
        reference_name: machine.reference_name.clone(),
        hash: resolved.hash.clone(),
        sms: u64::from(machine.dispatch.sms),
        core_mhz: machine.clocks.core_mhz,
        peak_dram_gb_per_s: memory.peak_gb_per_s,
        peak_l2_gb_per_s: facts.peak_l2_gb_per_s,
        peak_warp_instructions_per_cycle: f64::from(issue),
    }
}
