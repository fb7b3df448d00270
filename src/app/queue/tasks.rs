//! The simulations that queues need. Each runs once, and its result depends only on its key. The
//! pool has the applications of queues, ready to run in any combination.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::AtomicU64;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_128;

use gpumodel_core::contract::{
    DispatchOrder, Facts, GroupProbe, GroupProbeResult, LawBroken, Plan, PlanDraft, Probe,
    ProbeResult, Profile, Share,
};
use gpumodel_core::units::{AppId, Cycle, SECTOR_BYTES, to_u16, to_u64};
use gpumodel_feed::{Mix, StoreFeed};
use gpumodel_policy::Choice;
use gpumodel_report::results::{AppRecord, ShareRecord};
use gpumodel_sim::Outcome;

use crate::cache::{DiskCache, Kind};
use crate::corun::runner::{Decision, MixRunner};
use crate::run_context::facts;
use crate::{App, EndWhen, Ending, RunContext, RunError};

/// A simulation.
#[derive(Clone, Debug)]
pub(super) enum Task {
    /// A probe: one application alone under a plan.
    Solo { app: usize, plan: Box<Plan>, window: Option<Cycle> },
    /// Applications together, each on its own SMs.
    Pair(GroupProbe),
    /// The members of a group under a scheme; with `restarts`, one that ends early is started
    /// again.
    Group { apps: Vec<usize>, within: Choice, restarts: bool },
}

/// The result of a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum TaskResult {
    Solo(ProbeResult),
    Pair(GroupProbeResult),
    Group(GroupOutcome),
}

/// The result of a group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct GroupOutcome {
    /// Cycles until its last member ended.
    pub(super) cycles: Cycle,
    /// End cycle of each member.
    pub(super) ends: Vec<Cycle>,
    /// Thread instructions of each member up to the end of the group, repeated runs included.
    pub(super) thread_instructions: Vec<u64>,
    /// The divisions of the SMs.
    pub(super) shares: Vec<ShareRecord>,
}

impl Task {
    /// The cache key of the result, a hash of everything that the result depends on.
    pub(super) fn key(&self, pool: &Pool<'_>) -> u128 {
        let (apps, what) = match self {
            Self::Solo { app, plan, window } => {
                let plan = serde_json::to_string(plan).expect("a plan is plain data");
                (std::slice::from_ref(app), format!("alone {plan} {window:?}"))
            }
            Self::Pair(probe) => (&probe.apps[..], format!("pair {:?}", probe.sms)),
            Self::Group { apps, within, restarts } => {
                let settings: Vec<String> = within
                    .settings()
                    .iter()
                    .map(|(name, value)| format!("{name}={value}"))
                    .collect();
                // The reasons of its shares contain the names.
                let names: Vec<&str> = apps.iter().map(|&app| pool.name(app)).collect();
                let scheme = (within.row().name, settings.join(" "));
                (&apps[..], format!("group {scheme:?} {names:?} {restarts}"))
            }
        };
        let build = [env!("CARGO_PKG_VERSION"), env!("GPUMODEL_BUILD")].join(" ");
        let mut words = vec![build, pool.ctx.resolved.hash.clone(), pool.ctx.filter(), what];
        words.extend(apps.iter().map(|&app| pool.content(app)));
        xxh3_128(words.join("\n").as_bytes())
    }

    /// The tasks whose results it needs.
    pub(super) fn dependencies(&self, pool: &Pool<'_>) -> Result<Vec<Self>, RunError> {
        let Self::Group { apps, within, .. } = self else { return Ok(Vec::new()) };
        let facts = pool.facts(apps);
        let asked = probes(within, &facts)?;
        asked.iter().filter_map(|probe| solo_task(pool, apps, within, probe).transpose()).collect()
    }

    /// The least number of warp instructions to run.
    pub(super) fn size(&self, pool: &Pool<'_>) -> u64 {
        let apps = match self {
            Self::Solo { app, .. } => std::slice::from_ref(app),
            Self::Pair(probe) => &probe.apps,
            Self::Group { apps, .. } => apps,
        };
        apps.iter().map(|&app| pool.instructions(app).0).sum()
    }

    /// Runs it, with the results of its dependencies.
    pub(super) fn run(
        &self,
        pool: &Pool<'_>,
        results: &TaskResults,
    ) -> Result<TaskResult, RunError> {
        match self {
            Self::Solo { app, plan, window } => {
                let runner = pool.runner(&[*app], false);
                let (apps, plan) = (vec![AppId(0)], plan.as_ref().clone());
                let probe = Probe { apps, plan, window: *window, race: false };
                Ok(TaskResult::Solo(runner.probe(&probe, &AtomicU64::new(Cycle::MAX))?))
            }
            Self::Pair(probe) => Ok(TaskResult::Pair(pair(pool, probe)?)),
            Self::Group { apps, within, restarts } => {
                Ok(TaskResult::Group(group(pool, (apps, *restarts), within, results)?))
            }
        }
    }
}

fn law(within: &Choice) -> impl Fn(LawBroken) -> RunError {
    let scheme = within.row().name.to_owned();
    move |source| RunError::Law { scheme: scheme.clone(), source }
}

fn probes(within: &Choice, facts: &Facts) -> Result<Vec<Probe>, RunError> {
    within.make().probes(facts).map_err(law(within))
}

/// The task of a probe of a single member of a group; it does not depend on the other members.
fn solo_task(
    pool: &Pool<'_>,
    apps: &[usize],
    within: &Choice,
    probe: &Probe,
) -> Result<Option<Task>, RunError> {
    let [member] = probe.apps[..] else { return Ok(None) };
    let app = apps[member.index()];
    let plan = probe.plan.of_one(&pool.facts(&[app]), member).map_err(law(within))?;
    Ok(Some(Task::Solo { app, plan: Box::new(plan), window: probe.window }))
}

/// Runs the members of a group under a scheme; one that ends early may be started again.
fn group(
    pool: &Pool<'_>,
    (apps, restarts): (&[usize], bool),
    within: &Choice,
    results: &TaskResults,
) -> Result<GroupOutcome, RunError> {
    let runner = pool.runner(apps, restarts && apps.len() > 1);
    let best = AtomicU64::new(Cycle::MAX);
    let mut probe_results = Vec::new();
    for probe in probes(within, &runner.facts)? {
        probe_results.push(match solo_task(pool, apps, within, &probe)? {
            Some(task) => {
                let mut result = results.solo(task.key(pool)).clone();
                result.apps[0].app = probe.apps[0];
                result
            }
            None => runner.probe(&probe, &best)?,
        });
    }
    let mut scheme = within.make();
    let (outcome, decisions) =
        runner.run_scheme(within.row().name, scheme.as_mut(), &probe_results)?;
    let executed = |member: usize| {
        if !restarts {
            return pool.instructions(apps[member]).1;
        }
        let launches = &outcome.totals[runner.mix.launches(member)];
        launches.iter().map(|launch| launch.thread_instructions).sum()
    };
    Ok(GroupOutcome {
        cycles: outcome.apps.iter().map(|app| app.end).max().unwrap_or(0),
        ends: outcome.apps.iter().map(|app| app.end).collect(),
        thread_instructions: (0..apps.len()).map(executed).collect(),
        shares: shares(&runner, &outcome, &decisions),
    })
}

/// The divisions of the SMs, at each change.
fn shares(runner: &MixRunner<'_>, outcome: &Outcome, decisions: &[Decision]) -> Vec<ShareRecord> {
    let members = (0..runner.facts.apps.len()).map(|member| AppId(to_u16(member)));
    let mut changes: Vec<ShareRecord> = Vec::new();
    for decision in decisions {
        let since = decision.cycle + decision.plan.delay();
        let held = |app: AppId| {
            let quotas = (0..usize::from(runner.facts.sms)).map(|sm| decision.plan.quota(app, sm));
            to_u64(quotas.filter(|&quota| quota > 0).count())
        };
        let sms: Vec<u64> = members.clone().map(held).collect();
        let same = changes.last().is_some_and(|last| last.sms == sms);
        if !same && since < outcome.cycles {
            let reason = decision.plan.reason().to_owned();
            changes.push(ShareRecord { since_begin_cycles: since, sms, reason });
        }
    }
    changes
}

/// Runs applications together, each on its own SMs.
fn pair(pool: &Pool<'_>, probe: &GroupProbe) -> Result<GroupProbeResult, RunError> {
    let runner = pool.runner(&probe.apps, probe.apps.len() > 1);
    let full = runner.facts.max_ctas_per_sm;
    let mut first = 0;
    let share = |&sms: &u16| {
        let own = first..first + usize::from(sms);
        first = own.end;
        let quota = |sm| if own.contains(&sm) { full } else { 0 };
        Share::Quota((0..usize::from(runner.facts.sms)).map(quota).collect())
    };
    let draft = PlanDraft {
        shares: probe.sms.iter().map(share).collect(),
        order: DispatchOrder::RoundRobin,
        ..PlanDraft::default()
    };
    let law = |source| RunError::Law { scheme: String::from("of a pair"), source };
    let plan = Plan::new(&runner.facts, draft).map_err(law)?;
    let apps: Vec<AppId> = runner.facts.apps.iter().map(|app| app.app).collect();
    let probe = Probe { apps, plan, window: None, race: false };
    let result = runner.probe(&probe, &AtomicU64::new(Cycle::MAX))?;
    Ok(GroupProbeResult {
        cycles: result.apps.iter().map(|app| app.cycles).collect(),
        warp_instructions: result.apps.iter().map(|app| app.warp_instructions).collect(),
    })
}

/// Results of tasks by key, of this run and of earlier ones.
#[derive(Debug)]
pub(super) struct TaskResults {
    by_key: BTreeMap<u128, TaskResult>,
    cache: DiskCache,
}

impl TaskResults {
    /// The results in the folder `cache`.
    pub(super) fn new(cache: &Path) -> Self {
        Self { by_key: BTreeMap::new(), cache: DiskCache::new(cache) }
    }

    /// The result of a group, if it is known.
    pub(super) fn group(&self, key: u128) -> Option<&GroupOutcome> {
        match self.by_key.get(&key)? {
            TaskResult::Group(outcome) => Some(outcome),
            other => unreachable!("the key of a group has {other:?}"),
        }
    }

    /// The result of a pair, if it is known.
    pub(super) fn pair(&self, key: u128) -> Option<&GroupProbeResult> {
        match self.by_key.get(&key)? {
            TaskResult::Pair(result) => Some(result),
            other => unreachable!("the key of a pair has {other:?}"),
        }
    }

    /// The result of a solo probe, which must be known.
    pub(super) fn solo(&self, key: u128) -> &ProbeResult {
        match &self.by_key[&key] {
            TaskResult::Solo(result) => result,
            other => unreachable!("the key of a probe has {other:?}"),
        }
    }

    /// Runs the unknown ones of `tasks` and their dependencies, each once, on all threads. Each
    /// result is stored at once, so that an interrupted run resumes.
    pub(super) fn compute(&mut self, pool: &Pool<'_>, task: Vec<Task>) -> Result<(), RunError> {
        let open = self.unknown(pool, task);
        let dependencies: Vec<Vec<Task>> =
            open.par_iter().map(|(_, task)| task.dependencies(pool)).collect::<Result<_, _>>()?;
        let dependencies = self.unknown(pool, dependencies.into_iter().flatten().collect());
        self.run_tasks(pool, dependencies)?;
        self.run_tasks(pool, open)
    }

    /// The tasks without a known result, each once and with its key.
    fn unknown(&mut self, pool: &Pool<'_>, task: Vec<Task>) -> Vec<(u128, Task)> {
        let mut keys = BTreeSet::new();
        let mut open = Vec::new();
        for task in task {
            let key = task.key(pool);
            if self.by_key.contains_key(&key) || !keys.insert(key) {
                continue;
            }
            match self.cache.get_json(Kind::Groups, key) {
                Some(result) => {
                    self.by_key.insert(key, result);
                }
                None => open.push((key, task)),
            }
        }
        open
    }

    fn run_tasks(&mut self, pool: &Pool<'_>, mut open: Vec<(u128, Task)>) -> Result<(), RunError> {
        // Long tasks first, so that none runs alone at the end.
        open.sort_by_key(|(key, task)| (std::cmp::Reverse(task.size(pool)), *key));
        pool.ctx.watch.running().begin(open.iter().map(|(_, task)| task.size(pool)).sum());
        let probe_results: Vec<Result<(u128, TaskResult), RunError>> = open
            .par_iter()
            .with_max_len(1)
            .map(|(key, task)| {
                let result = task.run(pool, self)?;
                self.cache.put_json(Kind::Groups, *key, &result);
                Ok((*key, result))
            })
            .collect();
        for result in probe_results {
            let (key, result) = result?;
            self.by_key.insert(key, result);
        }
        Ok(())
    }
}

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
