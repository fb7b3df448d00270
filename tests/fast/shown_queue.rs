//! Records of queues for the tests that show them.

use gpumodel::report::results::{
    Analysis, ClassifiedRecord, GroupRecord, InterferenceRecord, JobRecord, MatchingRecord,
    PairRecord, PatternRecord, PublishedSlowdown, QueueRun, SCHEMA, ShareRecord, ThresholdRecord,
};

use crate::shown::small;

const CLASSES: [&str; 4] = ["M", "MC", "C", "A"];
const SCHEMES: [&str; 4] = ["even-queue", "profile-based", "ilp", "ilp-smra"];

/// The contents of a made-up record of queues.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    pub(crate) jobs: u64,
    pub(crate) group: u64,
    pub(crate) schemes: usize,
    pub(crate) distributions: usize,
    pub(crate) seeds: u64,
}

pub(crate) const TWENTY: Size = Size { jobs: 20, group: 2, schemes: 4, distributions: 1, seeds: 1 };

/// A record of queues of `size`; classes, slow-downs and patterns included.
pub(crate) fn queued(size: Size) -> Analysis {
    let mut queues = Vec::new();
    for distribution in ["equal", "M", "MC", "C", "A"].iter().take(size.distributions) {
        for seed in 1..=size.seeds {
            for scheme in 0..size.schemes {
                queues.push(run(size, distribution, seed, scheme));
            }
        }
    }
    Analysis {
        schema: SCHEMA.into(),
        program: "gpumodel 0.1.0".into(),
        machine: small().machine,
        queues,
        interference: vec![interference(size.jobs)],
        ..Analysis::default()
    }
}

fn app(job: u64) -> String {
    ["suite/BLK", "suite/HS", "suite/a-long-name-of-an-application", "suite/JPEG"]
        [usize::try_from(job % 4).unwrap()]
    .to_string()
        + &format!("{}", job / 4)
}

fn class(job: u64) -> String {
    CLASSES[usize::try_from(job % 4).unwrap()].into()
}

/// Cycles of a job: its own, and how the scheme changes it.
fn length(job: u64, seed: u64, scheme: usize) -> u64 {
    let own = 40_000 + (job * 7_919 + seed * 104_729) % 61 * 1000;
    own * [100, 82, 88, 75][scheme % 4] / 100
}

fn run(size: Size, distribution: &str, seed: u64, scheme: usize) -> QueueRun {
    let name = SCHEMES[scheme % 4];
    let mut order: Vec<u64> = (0..size.jobs).collect();
    if name.starts_with("ilp") {
        order.sort_unstable_by_key(|job| (job * 11 + 3) % size.jobs.max(1) * 100 + job);
    }
    let mut run = QueueRun {
        queue: format!("{distribution}-{seed}"),
        distribution: Some(distribution.into()),
        seed,
        scheme: name.into(),
        parameters: [("variant".to_string(), (scheme / 4).to_string())].into(),
        within: "spatial".into(),
        group_size: size.group,
        early_finishers: "idle".into(),
        jobs: (0..size.jobs).map(job).collect(),
        ..QueueRun::default()
    };
    for members in order.chunks(usize::try_from(size.group).unwrap()) {
        group(&mut run, members, seed, scheme);
    }
    run.cycles = run.groups.last().map_or(0, |group| group.end_cycle);
    run.thread_instructions = size.jobs * 10_000_000;
    run.throughput_ipc = float(run.thread_instructions) / float(run.cycles.max(1));
    run.mean_job_ipc = run.jobs.iter().map(|job| job.ipc).sum::<f64>() / float(size.jobs.max(1));
    if name.starts_with("ilp") {
        run.matchings = vec![matching(size)];
        run.groups.iter_mut().for_each(|group| group.pattern = Some(1));
    }
    run
}

fn job(number: u64) -> JobRecord {
    let class = Some(class(number));
    JobRecord { app: app(number), class, thread_instructions: 10_000_000, ..JobRecord::default() }
}

fn group(run: &mut QueueRun, members: &[u64], seed: u64, scheme: usize) {
    let start = run.groups.last().map_or(0, |group| group.end_cycle);
    let mut end = start;
    for &member in members {
        let cycles = length(member, seed, scheme);
        let job = &mut run.jobs[usize::try_from(member).unwrap()];
        (job.start_cycle, job.end_cycle, job.cycles) = (start, start + cycles, cycles);
        job.ipc = 10_000_000.0 / float(cycles);
        job.group = u64::try_from(run.groups.len()).unwrap();
        end = end.max(start + cycles);
    }
    let count = u64::try_from(members.len()).unwrap();
    let even: Vec<u64> = members.iter().map(|_| 60 / count).collect();
    let share = |since_begin_cycles, sms: &[u64], reason: &str| ShareRecord {
        since_begin_cycles,
        sms: sms.to_vec(),
        reason: reason.into(),
    };
    let mut shares = vec![share(0, &even, "evenly")];
    if scheme % 4 == 3 && count > 1 {
        let mut moved = even;
        for step in 1..=4 {
            (moved[0], moved[1]) = (moved[0] - 4, moved[1] + 4);
            shares.push(share(step * 8_000, &moved, "4 SMs to the second"));
        }
    }
    run.groups.push(GroupRecord {
        start_cycle: start,
        end_cycle: end,
        jobs: members.to_vec(),
        pattern: None,
        shares,
    });
}

fn matching(size: Size) -> MatchingRecord {
    let groups = size.jobs.div_ceil(size.group);
    let pattern = |counts: [u32; 4], efficiency, groups| PatternRecord {
        counts: counts.to_vec(),
        efficiency,
        groups,
    };
    MatchingRecord {
        cycle: 0,
        classes: CLASSES.map(String::from).to_vec(),
        waiting: vec![size.jobs / 4; 4],
        patterns: vec![pattern([2, 0, 0, 0], 0.31, 0), pattern([1, 0, 0, 1], 0.62, groups)],
        objective: 0.62 * float(groups),
        reason: "the largest sum of efficiencies".into(),
    }
}

fn interference(jobs: u64) -> InterferenceRecord {
    let classified = |job: u64| ClassifiedRecord {
        app: app(job),
        dram_gb_per_s: 10.0 * float(job),
        l2_to_l1_gb_per_s: 3.5 * float(job),
        memory_to_compute: 0.05 * float(job),
        ipc: 400.0 - float(job),
        class: class(job),
        fits: job % 5 != 4,
        reason: "R is 0.19, just below 0.2".into(),
    };
    let bound = |name: &str, metric: &str, value| ThresholdRecord {
        name: name.into(),
        metric: metric.into(),
        value,
    };
    InterferenceRecord {
        schemes: vec!["ilp".into(), "ilp-smra".into()],
        classes: CLASSES.map(String::from).to_vec(),
        thresholds: vec![bound("alpha", "MB GB/s", 97.5), bound("epsilon", "IPC", 384.0)],
        apps: (0..jobs.min(20)).map(classified).collect(),
        slowdown: vec![
            vec![2.83, 1.71, 1.55, 1.14],
            vec![2.11, 1.66, 1.52, 1.20],
            vec![1.70, 1.49, 1.57, 1.11],
            vec![1.44, 1.25, 1.16, 1.02],
        ],
        pairs: vec![PairRecord { apps: [app(0), app(1)], slowdown: [2.1, 1.7] }],
        published: published(),
    }
}

/// The paper's values of some cells.
fn published() -> Vec<PublishedSlowdown> {
    let reported = |disturbs: &str, suffers: &str, low, high| PublishedSlowdown {
        disturbs: disturbs.into(),
        suffers: suffers.into(),
        low,
        high,
    };
    vec![
        reported("C", "M", 1.76, 1.76),
        reported("M", "MC", 1.78, 1.78),
        reported("MC", "M", 2.05, 2.05),
        reported("M", "A", 1.06, 1.20),
        reported("A", "M", 1.06, 1.51),
        reported("M", "C", 1.50, 1.61),
    ]
}

#[allow(clippy::cast_precision_loss)] // counts of a made-up record
fn float(count: u64) -> f64 {
    count as f64
}
