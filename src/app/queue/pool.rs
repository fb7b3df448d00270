//! The applications of queues, ready to run in any combination.

use gpumodel_core::contract::{Facts, Profile};
use gpumodel_core::units::SECTOR_BYTES;
use gpumodel_feed::{Mix, StoreFeed};
use gpumodel_report::results::AppRecord;

use crate::corun::runner::MixRunner;
use crate::facts::facts;
use crate::{App, EndWhen, Ending, RunContext, RunError};

/// Applications with their feeds.
pub(super) struct Pool<'a> {
    pub(super) ctx: &'a RunContext<'a>,
    apps: &'a [App],
    feeds: Vec<StoreFeed<'a>>,
}

impl<'a> Pool<'a> {
    /// A pool of `apps`.
    pub(super) fn new(ctx: &'a RunContext<'a>, apps: &'a [App]) -> Result<Self, RunError> {
        let feed = |app: &'a App| {
            let feed = StoreFeed::new(&app.store, |k| ctx.chooses(app, k), ctx.resolved)?;
            match (0..feed.programs().len()).any(|index| feed.memory_only(index)) {
                true => Err(RunError::NoTimes(app.name.clone())),
                false => Ok(feed),
            }
        };
        let feeds = apps.iter().map(feed).collect::<Result<_, RunError>>()?;
        Ok(Self { ctx, apps, feeds })
    }

    /// The name of an application.
    pub(super) fn name(&self, app: usize) -> &'a str {
        &self.apps[app].name
    }

    /// Identifies the instructions of an application: its store and the selected launches.
    pub(super) fn content(&self, app: usize) -> String {
        self.feeds[app].content()
    }

    /// Warp and thread instructions of an application.
    pub(super) fn instructions(&self, app: usize) -> (u64, u64) {
        let feed = &self.feeds[app];
        let launches = (0..feed.programs().len()).map(|index| feed.instructions(index));
        launches.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    }

    /// The facts of applications that run together from the start; a repeated one gets a number.
    pub(super) fn facts(&self, apps: &[usize]) -> Facts {
        let names: Vec<String> =
            (0..apps.len()).map(|index| self.distinct_name(apps, index)).collect();
        let named = names.iter().zip(apps).map(|(name, &app)| (name.as_str(), &self.feeds[app], 0));
        facts(self.ctx, &named.collect::<Vec<_>>())
    }

    fn distinct_name(&self, apps: &[usize], index: usize) -> String {
        let before = apps[..index].iter().filter(|&&app| app == apps[index]).count();
        let name = self.name(apps[index]);
        if before == 0 { name.to_owned() } else { format!("{name} ({})", before + 1) }
    }

    /// A runner of applications until all have finished; with `relaunch`, early finishers relaunch
    /// meanwhile.
    pub(super) fn runner(&'a self, apps: &[usize], relaunch: bool) -> MixRunner<'a> {
        let names: Vec<&str> = apps.iter().map(|&app| self.name(app)).collect();
        let when = if relaunch { EndWhen::FirstRun } else { EndWhen::All };
        MixRunner {
            ctx: self.ctx,
            names: names.join(" + "),
            mix: Mix::new(apps.iter().map(|&app| &self.feeds[app]).collect()),
            facts: self.facts(apps),
            until: Ending { when, cycles: None },
            targets: vec![None; apps.len()],
            // Tasks have their own sizes.
            expected: None,
        }
    }
}

/// The metrics that classify an application, from its solo run without launch latency.
pub(super) fn profile(row: &AppRecord, core_mhz: f64) -> Profile {
    let (mut memory, mut compute) = (0, 0);
    for (unit, &count) in row.kernels.iter().flat_map(|kernel| &kernel.instruction_mix) {
        let kind = if unit == gpumodel_core::isa::Unit::Memory.name() {
            &mut memory
        } else {
            &mut compute
        };
        *kind += count;
    }
    let cycles = (row.cycles - row.launch_cycles.min(row.cycles)).max(1);
    let per = |count: u64, whole: u64| count as f64 / whole.max(1) as f64;
    let gb_per_s = |bytes: u64| per(bytes, cycles) * core_mhz / 1000.0;
    Profile {
        name: row.app.clone(),
        cycles,
        ipc: per(row.thread_instructions, cycles),
        dram_gb_per_s: gb_per_s(row.dram.bytes()),
        l2_to_l1_gb_per_s: gb_per_s(row.l2.reads * SECTOR_BYTES),
        memory_to_compute: per(memory, compute),
        given_class: None,
    }
}
