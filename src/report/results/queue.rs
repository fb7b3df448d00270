//! Queues of applications that run group by group, and what a scheme gains over another on the same
//! queues: throughput and IPC of the applications as shares of the baseline's (ILP-SMRA, Fig. 3
//! and 4).

use std::collections::{BTreeMap, BTreeSet};

use gpumodel_core::units::Cycle;
use serde::{Deserialize, Serialize};

use super::statistics::{confidence_interval, mean};

/// One queue under one scheme.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct QueueRun {
    /// Which queue: its distribution and seed, or the file's name.
    pub queue: String,
    /// How classes are distributed in it: `equal`, `M`, `MC`, `C` or `A` (the class
    /// that dominates); `None`: the user wrote it down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distribution: Option<String>,
    /// Seed of the queue; 0 where it was written down.
    #[serde(default)]
    pub seed: u64,
    /// Scheme name.
    pub scheme: String,
    /// The scheme with what the user has set otherwise than the defaults; empty: the
    /// record does not say.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub label: String,
    /// Scheme parameters, defaults included, also those of the scheme within groups.
    pub parameters: BTreeMap<String, String>,
    /// The scheme under which members of a group share the machine.
    pub within: String,
    /// Applications that run together at most (N_G).
    pub group_size: u64,
    /// What becomes of the SMs of a member that ends before its group: they stay `idle`,
    /// are `given` to the others, run the member again until all have ended once (`restart`), or
    /// what the scheme does without being asked (`scheme`).
    pub early_finishers: String,
    /// From cycle 0 to the end of the last group (C_T).
    pub cycles: Cycle,
    /// Thread instructions of all jobs (I_T), repeated runs included.
    pub thread_instructions: u64,
    /// I_T over C_T.
    pub throughput_ipc: f64,
    /// Mean of the jobs' IPC.
    pub mean_job_ipc: f64,
    /// The jobs in order of arrival.
    pub jobs: Vec<JobRecord>,
    /// The groups in the order in which they ran.
    pub groups: Vec<GroupRecord>,
    /// What each grouping decided: one where all had arrived at cycle 0.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub matchings: Vec<MatchingRecord>,
}

/// One place in a queue.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct JobRecord {
    /// Application name; a queue may hold it several times.
    pub app: String,
    /// Its class, where the queue's applications were classified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// When it arrived.
    pub arrival_cycle: Cycle,
    /// When its group began.
    pub start_cycle: Cycle,
    /// When it ended.
    pub end_cycle: Cycle,
    /// `end_cycle - start_cycle`.
    pub cycles: Cycle,
    /// Thread instructions.
    pub thread_instructions: u64,
    /// Thread instructions per cycle of its run.
    pub ipc: f64,
    /// The position of its group in [`QueueRun::groups`].
    pub group: u64,
}

/// Jobs that ran together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GroupRecord {
    /// When it began.
    pub start_cycle: Cycle,
    /// When its last member ended.
    pub end_cycle: Cycle,
    /// Its members by their positions in [`QueueRun::jobs`], in the order in which
    /// they lie on the SMs.
    pub jobs: Vec<u64>,
    /// The pattern that it follows, by its position in
    /// [`MatchingRecord::patterns`] of the matching in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<u64>,
    /// SMs that each member was allowed, whenever that changed, the first at the
    /// group's begin.
    pub shares: Vec<ShareRecord>,
}

/// How the SMs are divided from some cycle on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ShareRecord {
    /// Cycles since the group began.
    pub since_begin_cycles: Cycle,
    /// SMs by member, in the order of [`GroupRecord::jobs`]: those on which the
    /// plan lets it start CTAs; 0 once it has ended and its SMs are given away.
    pub sms: Vec<u64>,
    /// Why, in the scheme's words.
    pub reason: String,
}

/// One grouping: the program and its solution.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MatchingRecord {
    /// When it was decided.
    pub cycle: Cycle,
    /// Classes in the order of [`PatternRecord::counts`], `idle` last where places
    /// stay free.
    pub classes: Vec<String>,
    /// Applications of each class that waited.
    pub waiting: Vec<u64>,
    /// Every pattern that was weighed; empty where the grouping weighs none.
    pub patterns: Vec<PatternRecord>,
    /// The sum of the groups' efficiencies (eq. 4).
    pub objective: f64,
    /// Why, in the grouping's words.
    pub reason: String,
}

/// One pattern of classes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PatternRecord {
    /// Applications of each class (P_k).
    pub counts: Vec<u32>,
    /// What a group of it is worth (e_k, eq. 3).
    pub efficiency: f64,
    /// Groups that follow it (L_k).
    pub groups: u64,
}

/// What a scheme for queues knew of the applications before it grouped them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct InterferenceRecord {
    /// The schemes that lean on it.
    pub schemes: Vec<String>,
    /// Names of the classes.
    pub classes: Vec<String>,
    /// The bounds of the classes; empty where every application is a class.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub thresholds: Vec<ThresholdRecord>,
    /// The applications with their metrics and classes.
    pub apps: Vec<ClassifiedRecord>,
    /// `slowdown[j][i]`: how many times as long an application of class `i` takes
    /// next to one of class `j`, against alone on as many SMs (S of j on i).
    pub slowdown: Vec<Vec<f64>>,
    /// The pairs that were run to find it; empty where the user gave it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pairs: Vec<PairRecord>,
    /// The same as it was published, where it was; a row or a column of the paper's
    /// figure may be known only within a range.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub published: Vec<PublishedSlowdown>,
}

/// A bound of the classification.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ThresholdRecord {
    /// Its name in the paper.
    pub name: String,
    /// Which metric is compared with it, with its unit.
    pub metric: String,
    /// Its value.
    pub value: f64,
}

/// An application's metrics alone on the machine, and its class.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ClassifiedRecord {
    /// Application name.
    pub app: String,
    /// Bytes over the DRAM pins (MB).
    pub dram_gb_per_s: f64,
    /// Bytes read from the L2 by the SMs (L2->L1).
    pub l2_to_l1_gb_per_s: f64,
    /// Memory instructions over all others (R).
    pub memory_to_compute: f64,
    /// Thread instructions per cycle (IPC).
    pub ipc: f64,
    /// Its class.
    pub class: String,
    /// It fits the rule of the class; otherwise that class is the nearest.
    pub fits: bool,
    /// Why, in one sentence.
    pub reason: String,
}

/// Two applications that were run together to find their slow-downs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PairRecord {
    /// Both.
    pub apps: [String; 2],
    /// How many times as long each took, against alone on as many SMs.
    pub slowdown: [f64; 2],
}

/// A published slow-down.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PublishedSlowdown {
    /// The class that disturbs.
    pub disturbs: String,
    /// The class that suffers.
    pub suffers: String,
    /// Its value, or the lowest that it may be.
    pub low: f64,
    /// Its value, or the highest that it may be.
    pub high: f64,
}

/// How sure intervals are.
const CONFIDENCE: f64 = 0.95;

/// A run and what its scheme is called.
#[derive(Clone, Copy, Debug)]
pub struct NamedRun<'a> {
    /// The scheme, with the parameters in which it differs from others of its kind.
    pub name: &'a str,
    /// The run.
    pub run: &'a QueueRun,
}

/// Which queues a gain is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Over {
    /// All queues of a distribution of classes, one for each seed.
    Distribution(String),
    /// A queue that the user wrote down, by its name.
    Queue(String),
    /// The mean of all before it.
    Average,
}

/// A scheme against the baseline on some queues.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueGain {
    /// Its name.
    pub scheme: String,
    /// On which queues.
    pub over: Over,
    /// How many queues both have run.
    pub queues: u64,
    /// Throughput over the baseline's: I_T / C_T, all of a queue.
    pub throughput: Option<Gain>,
    /// Mean IPC of the jobs over the baseline's (ratio of means).
    pub ipc: Option<Gain>,
    /// Mean over the jobs of what the mean IPC of their application is over its own under
    /// the baseline (mean of ratios).
    pub job_ipc: Option<Gain>,
}

/// A ratio, 1 where there is no difference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gain {
    /// The mean over seeds.
    pub mean: f64,
    /// Both ends of the interval that holds it with 95 %, by Student's t; `None` of
    /// fewer than two seeds.
    pub interval: Option<(f64, f64)>,
}

/// The ratios of one run: throughput, IPC, IPC job by job.
type Ratios = [Option<f64>; 3];

/// Ratios by scheme, queues and seed.
struct Table {
    schemes: Vec<String>,
    overs: Vec<Over>,
    cells: BTreeMap<(usize, usize), BTreeMap<u64, Ratios>>,
}

/// The gains of every scheme of `runs` over `baseline`, a name or a scheme: by scheme
/// in order of first appearance, by distribution or queue, then over all of them where
/// there are several. Queues are the same when name, distribution, seed and group size
/// are; runs are to be of one machine and one group size. A queue that did not run
/// under the baseline has no gain; of two runs of a queue under one name the first
/// counts. The average weighs distributions alike; its interval is over seeds, where
/// every distribution has the same ones.
#[must_use]
pub fn gains(runs: &[NamedRun<'_>], baseline: &str) -> Vec<QueueGain> {
    let table = Table::new(runs, baseline);
    let mut gains = Vec::new();
    for (place, scheme) in table.schemes.iter().enumerate() {
        let own: Vec<(&Over, &BTreeMap<u64, Ratios>)> = (0..table.overs.len())
            .filter_map(|over| Some((&table.overs[over], table.cells.get(&(place, over))?)))
            .collect();
        gains.extend(own.iter().map(|(over, seeds)| {
            let of = |metric| {
                let values: Option<Vec<f64>> = seeds.values().map(|r| r[metric]).collect();
                Gain::of(&values?)
            };
            QueueGain::new(scheme, (*over).clone(), seeds.len(), of)
        }));
        if own.len() > 1 {
            let lists: Vec<_> = own.iter().map(|(_, seeds)| *seeds).collect();
            let queues = lists.iter().map(|seeds| seeds.len()).sum();
            gains.push(QueueGain::new(scheme, Over::Average, queues, |m| average(&lists, m)));
        }
    }
    gains
}

impl QueueGain {
    fn new(scheme: &str, over: Over, queues: usize, of: impl Fn(usize) -> Option<Gain>) -> Self {
        Self {
            scheme: scheme.into(),
            over,
            queues: gpumodel_core::units::to_u64(queues),
            throughput: of(0),
            ipc: of(1),
            job_ipc: of(2),
        }
    }
}

impl Gain {
    fn of(values: &[f64]) -> Option<Self> {
        Some(Self { mean: mean(values)?, interval: confidence_interval(values, CONFIDENCE) })
    }
}

/// The mean over distributions, of means over seeds; the interval over seeds, of means
/// over distributions.
fn average(lists: &[&BTreeMap<u64, Ratios>], metric: usize) -> Option<Gain> {
    let of = |seeds: &BTreeMap<u64, Ratios>| {
        let values: Option<Vec<f64>> = seeds.values().map(|ratios| ratios[metric]).collect();
        mean(&values?)
    };
    let means: Option<Vec<f64>> = lists.iter().map(|seeds| of(seeds)).collect();
    let mean_of_means = mean(&means?)?;
    let alike = lists.windows(2).all(|two| two[0].keys().eq(two[1].keys()));
    let at = |seed: &u64| {
        let values: Option<Vec<f64>> = lists.iter().map(|seeds| seeds.get(seed)?[metric]).collect();
        mean(&values?)
    };
    let by_seed: Option<Vec<f64>> = lists.first()?.keys().map(at).collect();
    let interval = by_seed.filter(|_| alike).and_then(|v| confidence_interval(&v, CONFIDENCE));
    Some(Gain { mean: mean_of_means, interval })
}

impl Table {
    fn new(runs: &[NamedRun<'_>], baseline: &str) -> Self {
        let mut table = Self { schemes: Vec::new(), overs: Vec::new(), cells: BTreeMap::new() };
        let mut seen = BTreeSet::new();
        for named in runs {
            let run = named.run;
            let queue = (named.name, &run.queue, &run.distribution, run.seed, run.group_size);
            let Some(base) = base(runs, run, baseline).filter(|_| seen.insert(queue)) else {
                continue;
            };
            let over = match &run.distribution {
                Some(distribution) => Over::Distribution(distribution.clone()),
                None => Over::Queue(run.queue.clone()),
            };
            let over = place(&mut table.overs, over);
            let scheme = place(&mut table.schemes, named.name.to_string());
            let ratios = ratios(run, base);
            table.cells.entry((scheme, over)).or_default().entry(run.seed).or_insert(ratios);
        }
        table
    }
}

/// The place of `item` in `list`, at its end where it is new.
fn place<T: PartialEq>(list: &mut Vec<T>, item: T) -> usize {
    list.iter().position(|other| *other == item).unwrap_or_else(|| {
        list.push(item);
        list.len() - 1
    })
}

/// The same queue under the baseline, best with the same rule for early finishers.
fn base<'a>(runs: &[NamedRun<'a>], run: &QueueRun, baseline: &str) -> Option<&'a QueueRun> {
    let key = |run: &QueueRun| (run.queue.clone(), run.distribution.clone(), run.seed);
    let same = |other: &QueueRun| key(other) == key(run) && other.group_size == run.group_size;
    let named = |n: &&NamedRun<'a>| n.name == baseline || n.run.scheme == baseline;
    let found: Vec<&QueueRun> =
        runs.iter().filter(named).map(|n| n.run).filter(|r| same(r)).collect();
    let alike = found.iter().find(|other| other.early_finishers == run.early_finishers);
    alike.or(found.first()).copied()
}

fn ratios(run: &QueueRun, base: &QueueRun) -> Ratios {
    let ratio = |own: f64, base: f64| (base > 0.0 && own.is_finite()).then(|| own / base);
    [
        ratio(run.throughput_ipc, base.throughput_ipc),
        ratio(run.mean_job_ipc, base.mean_job_ipc),
        job_ratio(&run.jobs, &base.jobs),
    ]
}

/// The mean over the jobs of what the mean IPC of their application is over its own
/// under the baseline: which of several jobs of one application ran with whom makes no
/// difference. Jobs without instructions have none. `None` where the jobs are not the
/// same.
fn job_ratio(own: &[JobRecord], base: &[JobRecord]) -> Option<f64> {
    if own.len() != base.len() || own.iter().zip(base).any(|(a, b)| a.app != b.app) {
        return None;
    }
    let mut sums: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
    for (own, base) in own.iter().zip(base) {
        let sum = sums.entry(&own.app).or_default();
        *sum = (sum.0 + own.ipc, sum.1 + base.ipc);
    }
    let ratio = |job: &JobRecord| {
        let (own, base) = sums[job.app.as_str()];
        (base > 0.0).then(|| own / base)
    };
    mean(&own.iter().filter_map(ratio).collect::<Vec<f64>>())
}

#[cfg(test)]
mod tests {
    use super::{Gain, NamedRun, Over, QueueGain, gains};
    use crate::results::{JobRecord, QueueRun};

    fn run(scheme: &str, of: &str, seed: u64, throughput: f64, jobs: [f64; 2]) -> QueueRun {
        let job =
            |(app, ipc): (&str, f64)| JobRecord { app: app.into(), ipc, ..JobRecord::default() };
        QueueRun {
            queue: format!("{of}-{seed}"),
            distribution: Some(of.into()),
            seed,
            scheme: scheme.into(),
            group_size: 2,
            throughput_ipc: throughput,
            mean_job_ipc: jobs.iter().sum::<f64>() / 2.0,
            jobs: [("a", jobs[0]), ("b", jobs[1])].map(job).into(),
            ..QueueRun::default()
        }
    }

    fn of(runs: &[QueueRun], baseline: &str) -> Vec<QueueGain> {
        let named: Vec<NamedRun<'_>> =
            runs.iter().map(|run| NamedRun { name: &run.scheme, run }).collect();
        gains(&named, baseline)
    }

    fn close(gain: Option<Gain>, mean: f64, interval: Option<(f64, f64)>) {
        let gain = gain.unwrap();
        assert!((gain.mean - mean).abs() < 1e-9, "{gain:?}");
        assert_eq!(gain.interval.is_some(), interval.is_some(), "{gain:?}");
        if let (Some((low, high)), Some(expected)) = (gain.interval, interval) {
            assert!(
                (low - expected.0).abs() < 1e-5 && (high - expected.1).abs() < 1e-5,
                "{gain:?}"
            );
        }
    }

    #[test]
    fn which_of_two_jobs_of_an_application_ran_with_whom_makes_no_difference() {
        let mut runs =
            [run("base", "q", 1, 1.0, [1.0, 4.0]), run("other", "q", 1, 1.0, [4.0, 1.0])];
        for job in runs.iter_mut().flat_map(|run| &mut run.jobs) {
            job.app = "a".into();
        }
        let gains = of(&runs, "base");
        close(gains.iter().find(|gain| gain.scheme == "other").unwrap().job_ipc, 1.0, None);
    }

    #[test]
    fn ratios_of_means_and_means_of_ratios_differ() {
        let runs = [
            run("even-queue", "M", 1, 100.0, [10.0, 40.0]),
            run("ilp", "M", 1, 120.0, [20.0, 40.0]),
        ];
        let gains = of(&runs, "even-queue");
        assert_eq!(gains.len(), 2);
        assert_eq!((gains[1].scheme.as_str(), gains[1].queues), ("ilp", 1));
        assert_eq!(gains[1].over, Over::Distribution("M".into()));
        close(gains[0].throughput, 1.0, None);
        close(gains[1].throughput, 1.2, None);
        // Means 25 and 30; jobs twice as fast and the same.
        close(gains[1].ipc, 1.2, None);
        close(gains[1].job_ipc, 1.5, None);
    }

    #[test]
    fn seeds_have_an_interval_and_distributions_an_average() {
        let mut runs = Vec::new();
        for (of, ratios) in [("M", [1.1, 1.3]), ("A", [1.4, 1.8])] {
            for (seed, ratio) in (1..).zip(ratios) {
                runs.push(run("even-queue", of, seed, 50.0, [1.0, 1.0]));
                runs.push(run("ilp", of, seed, 50.0 * ratio, [1.0, 1.0]));
            }
        }
        let gains: Vec<QueueGain> =
            of(&runs, "even-queue").into_iter().filter(|gain| gain.scheme == "ilp").collect();
        // t of 1 degree at 95 % is 12.706205; deviations of two are half their distance.
        let reach = 12.706_205;
        close(gains[0].throughput, 1.2, Some((1.2 - 0.1 * reach, 1.2 + 0.1 * reach)));
        close(gains[1].throughput, 1.6, Some((1.6 - 0.2 * reach, 1.6 + 0.2 * reach)));
        // By seed 1.25 and 1.55.
        assert_eq!((gains[2].queues, &gains[2].over), (4, &Over::Average));
        close(gains[2].throughput, 1.4, Some((1.4 - 0.15 * reach, 1.4 + 0.15 * reach)));
    }

    #[test]
    fn other_seeds_leave_the_average_without_an_interval() {
        let mut runs = Vec::new();
        for (of, seed, ratio) in [("M", 1, 1.0), ("M", 2, 2.0), ("A", 1, 3.0), ("A", 3, 4.0)] {
            runs.push(run("even-queue", of, seed, 10.0, [1.0, 1.0]));
            runs.push(run("ilp", of, seed, 10.0 * ratio, [1.0, 1.0]));
        }
        let gains = of(&runs, "even-queue");
        close(gains.last().unwrap().throughput, 2.5, None);
    }

    #[test]
    fn a_queue_without_the_baseline_has_no_gain() {
        let mut runs = vec![
            run("even-queue", "M", 1, 10.0, [1.0, 1.0]),
            run("ilp", "M", 1, 20.0, [1.0, 0.0]),
            run("ilp", "A", 1, 30.0, [1.0, 1.0]),
        ];
        let gains = of(&runs, "even-queue");
        assert_eq!(gains.len(), 2, "{gains:?}");
        close(gains[1].throughput, 2.0, None);
        assert!(of(&runs, "smra").is_empty());
        runs[0].jobs[0].app = "b".into();
        runs[0].throughput_ipc = 0.0;
        let gains = of(&runs, "even-queue");
        assert_eq!((gains[1].throughput, gains[1].job_ipc), (None, None), "not the same jobs");
    }

    #[test]
    fn the_baseline_has_the_same_rule_for_early_finishers() {
        let with = |rule: &str, run: QueueRun| QueueRun { early_finishers: rule.into(), ..run };
        let runs = [
            with("idle", run("even-queue", "M", 1, 10.0, [1.0, 1.0])),
            with("given", run("even-queue", "M", 1, 20.0, [1.0, 1.0])),
            with("given", run("ilp", "M", 1, 30.0, [1.0, 1.0])),
        ];
        let named: Vec<NamedRun<'_>> = ["even:idle", "even:given", "ilp"]
            .iter()
            .zip(&runs)
            .map(|(name, run)| NamedRun { name, run })
            .collect();
        close(gains(&named, "even-queue")[2].throughput, 1.5, None);
        close(gains(&named, "even:idle")[2].throughput, 3.0, None);
    }
}
