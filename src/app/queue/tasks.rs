//! Pieces of work that queues need: each is done once, whatever asks for it, and its
//! answer follows from what its key names.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::AtomicU64;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_128;

use gpumodel_core::contract::{
    DispatchOrder, Facts, GroupProbe, GroupProbeResult, LawBroken, Plan, PlanDraft, Probe,
    ProbeResult, Share,
};
use gpumodel_core::units::{AppId, Cycle, to_u16, to_u64};
use gpumodel_policy::Choice;
use gpumodel_report::results::ShareRecord;
use gpumodel_sim::Outcome;

use crate::cache::{DiskCache, Kind};
use crate::corun::runner::{Decision, Stage};
use crate::error::RunError;
use crate::queue::pool::Pool;

/// A piece of work.
#[derive(Clone, Debug)]
pub(super) enum Work {
    /// One application alone under a plan that a scheme asks about.
    Alone { app: usize, plan: Box<Plan>, window: Option<Cycle> },
    /// Applications together, each on SMs of its own.
    Pair(GroupProbe),
    /// The members of a group under a scheme.
    Group { apps: Vec<usize>, within: Choice },
}

/// What a piece of work gives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Answer {
    Alone(ProbeResult),
    Pair(GroupProbeResult),
    Group(GroupOutcome),
}

/// The run of a group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct GroupOutcome {
    /// Until its last member ended.
    pub(super) cycles: Cycle,
    /// By member: when it ended.
    pub(super) ends: Vec<Cycle>,
    /// How the SMs were divided.
    pub(super) shares: Vec<ShareRecord>,
}

impl Work {
    /// What the answer is kept under: it changes with everything that the answer
    /// depends on.
    pub(super) fn key(&self, pool: &Pool<'_>) -> u128 {
        let (apps, what) = match self {
            Self::Alone { app, plan, window } => {
                let plan = serde_json::to_string(plan).expect("a plan is plain data");
                (std::slice::from_ref(app), format!("alone {plan} {window:?}"))
            }
            Self::Pair(probe) => (&probe.apps[..], format!("pair {:?}", probe.sms)),
            Self::Group { apps, within } => {
                let settings: Vec<String> = within
                    .settings()
                    .iter()
                    .map(|(name, value)| format!("{name}={value}"))
                    .collect();
                // The reasons of its shares name them.
                let names: Vec<&str> = apps.iter().map(|&app| pool.name(app)).collect();
                let scheme = (within.row().name, settings.join(" "));
                (&apps[..], format!("group {scheme:?} {names:?}"))
            }
        };
        let build = [env!("CARGO_PKG_VERSION"), env!("GPUMODEL_BUILD")].join(" ");
        let mut words = vec![build, pool.bench.resolved.hash.clone(), pool.bench.filter(), what];
        words.extend(apps.iter().map(|&app| pool.content(app)));
        xxh3_128(words.join("\n").as_bytes())
    }

    /// What must be known before it is done.
    pub(super) fn needs(&self, pool: &Pool<'_>) -> Result<Vec<Self>, RunError> {
        let Self::Group { apps, within } = self else { return Ok(Vec::new()) };
        let facts = pool.facts(apps);
        let asked = probes(within, &facts)?;
        asked.iter().filter_map(|probe| alone(pool, apps, within, probe).transpose()).collect()
    }

    /// Warp instructions to be run, at least.
    pub(super) fn size(&self, pool: &Pool<'_>) -> u64 {
        let apps = match self {
            Self::Alone { app, .. } => std::slice::from_ref(app),
            Self::Pair(probe) => &probe.apps,
            Self::Group { apps, .. } => apps,
        };
        apps.iter().map(|&app| pool.instructions(app).0).sum()
    }

    /// Does it, knowing what it needs.
    pub(super) fn run(&self, pool: &Pool<'_>, known: &Known) -> Result<Answer, RunError> {
        match self {
            Self::Alone { app, plan, window } => {
                let stage = pool.stage(&[*app], false);
                let (apps, plan) = (vec![AppId(0)], plan.as_ref().clone());
                let probe = Probe { apps, plan, window: *window, race: false };
                Ok(Answer::Alone(stage.probe(&probe, &AtomicU64::new(Cycle::MAX))?))
            }
            Self::Pair(probe) => Ok(Answer::Pair(pair(pool, probe)?)),
            Self::Group { apps, within } => Ok(Answer::Group(group(pool, apps, within, known)?)),
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

/// A probe of one member of a group as a piece of work of its own, where it is one: it
/// is the same whoever the other members are.
fn alone(
    pool: &Pool<'_>,
    apps: &[usize],
    within: &Choice,
    probe: &Probe,
) -> Result<Option<Work>, RunError> {
    let [member] = probe.apps[..] else { return Ok(None) };
    let app = apps[member.index()];
    let plan = probe.plan.of_one(&pool.facts(&[app]), member).map_err(law(within))?;
    Ok(Some(Work::Alone { app, plan: Box::new(plan), window: probe.window }))
}

/// Runs the members of a group under a scheme.
fn group(
    pool: &Pool<'_>,
    apps: &[usize],
    within: &Choice,
    known: &Known,
) -> Result<GroupOutcome, RunError> {
    let stage = pool.stage(apps, false);
    let best = AtomicU64::new(Cycle::MAX);
    let mut answers = Vec::new();
    for probe in probes(within, &stage.facts)? {
        answers.push(match alone(pool, apps, within, &probe)? {
            Some(work) => {
                let mut answer = known.alone(work.key(pool)).clone();
                answer.apps[0].app = probe.apps[0];
                answer
            }
            None => stage.probe(&probe, &best)?,
        });
    }
    let mut scheme = within.make();
    let (outcome, decisions) = stage.under(within.row().name, scheme.as_mut(), &answers)?;
    Ok(GroupOutcome {
        cycles: outcome.apps.iter().map(|app| app.end).max().unwrap_or(0),
        ends: outcome.apps.iter().map(|app| app.end).collect(),
        shares: shares(&stage, &outcome, &decisions),
    })
}

/// The division of the SMs whenever it changed.
fn shares(stage: &Stage<'_>, outcome: &Outcome, decisions: &[Decision]) -> Vec<ShareRecord> {
    let members = (0..stage.facts.apps.len()).map(|member| AppId(to_u16(member)));
    let mut changes: Vec<ShareRecord> = Vec::new();
    for decision in decisions {
        let since = decision.cycle + decision.plan.delay();
        let held = |app: AppId| {
            let quotas = (0..usize::from(stage.facts.sms)).map(|sm| decision.plan.quota(app, sm));
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

/// Runs applications side by side, each on SMs of its own.
fn pair(pool: &Pool<'_>, probe: &GroupProbe) -> Result<GroupProbeResult, RunError> {
    let stage = pool.stage(&probe.apps, probe.apps.len() > 1);
    let full = stage.facts.max_ctas_per_sm;
    let mut first = 0;
    let share = |&sms: &u16| {
        let own = first..first + usize::from(sms);
        first = own.end;
        let quota = |sm| if own.contains(&sm) { full } else { 0 };
        Share::Quota((0..usize::from(stage.facts.sms)).map(quota).collect())
    };
    let draft = PlanDraft {
        shares: probe.sms.iter().map(share).collect(),
        order: DispatchOrder::RoundRobin,
        ..PlanDraft::default()
    };
    let law = |source| RunError::Law { scheme: String::from("of a pair"), source };
    let plan = Plan::new(&stage.facts, draft).map_err(law)?;
    let apps: Vec<AppId> = stage.facts.apps.iter().map(|app| app.app).collect();
    let probe = Probe { apps, plan, window: None, race: false };
    let result = stage.probe(&probe, &AtomicU64::new(Cycle::MAX))?;
    Ok(GroupProbeResult {
        cycles: result.apps.iter().map(|app| app.cycles).collect(),
        warp_instructions: result.apps.iter().map(|app| app.warp_instructions).collect(),
    })
}

/// Answers by the keys of the work.
#[derive(Debug)]
pub(super) struct Known {
    answers: BTreeMap<u128, Answer>,
    cache: DiskCache,
}

impl Known {
    /// Nothing but what is kept in the folder `cache`.
    pub(super) fn new(cache: &Path) -> Self {
        Self { answers: BTreeMap::new(), cache: DiskCache::new(cache) }
    }

    /// The outcome of a group, where it is known.
    pub(super) fn group(&self, key: u128) -> Option<&GroupOutcome> {
        match self.answers.get(&key)? {
            Answer::Group(outcome) => Some(outcome),
            other => unreachable!("the key of a group led to {other:?}"),
        }
    }

    /// The answer to a probe of applications on SMs of their own, where it is known.
    pub(super) fn pair(&self, key: u128) -> Option<&GroupProbeResult> {
        match self.answers.get(&key)? {
            Answer::Pair(result) => Some(result),
            other => unreachable!("the key of a pair led to {other:?}"),
        }
    }

    /// The answer to a probe of one application, which has been found out before.
    pub(super) fn alone(&self, key: u128) -> &ProbeResult {
        match &self.answers[&key] {
            Answer::Alone(result) => result,
            other => unreachable!("the key of a probe led to {other:?}"),
        }
    }

    /// Finds out everything in `work`, and before that what it needs: each once, on
    /// all threads. What is found is kept at once, so that a run that is ended can go
    /// on where it was.
    pub(super) fn find(&mut self, pool: &Pool<'_>, work: Vec<Work>) -> Result<(), RunError> {
        let open = self.unknown(pool, work);
        let needs: Vec<Vec<Work>> =
            open.par_iter().map(|(_, work)| work.needs(pool)).collect::<Result<_, _>>()?;
        let needs = self.unknown(pool, needs.into_iter().flatten().collect());
        self.work_off(pool, needs)?;
        self.work_off(pool, open)
    }

    /// What of `work` nobody has done, each once and with its key.
    fn unknown(&mut self, pool: &Pool<'_>, work: Vec<Work>) -> Vec<(u128, Work)> {
        let mut keys = BTreeSet::new();
        let mut open = Vec::new();
        for work in work {
            let key = work.key(pool);
            if self.answers.contains_key(&key) || !keys.insert(key) {
                continue;
            }
            match self.cache.find(Kind::Groups, key) {
                Some(answer) => {
                    self.answers.insert(key, answer);
                }
                None => open.push((key, work)),
            }
        }
        open
    }

    fn work_off(&mut self, pool: &Pool<'_>, mut open: Vec<(u128, Work)>) -> Result<(), RunError> {
        // Long ones first, so that no thread is left with one at the end.
        open.sort_by_key(|(key, work)| (std::cmp::Reverse(work.size(pool)), *key));
        pool.bench.watch.running().begin(open.iter().map(|(_, work)| work.size(pool)).sum());
        let answers: Vec<Result<(u128, Answer), RunError>> = open
            .par_iter()
            .with_max_len(1)
            .map(|(key, work)| {
                let answer = work.run(pool, self)?;
                self.cache.keep(Kind::Groups, *key, &answer);
                Ok((*key, answer))
            })
            .collect();
        for answer in answers {
            let (key, answer) = answer?;
            self.answers.insert(key, answer);
        }
        Ok(())
    }
}
