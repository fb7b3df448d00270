//! Queues of applications, run group by group under every requested scheme.
//!
//! The queues of a request advance together in rounds: each names the tasks that it needs, and
//! every task runs once, on any thread. Results are kept in the cache folder, so that an
//! interrupted request resumes.

mod file;
mod generate;
mod record;
mod schedule;
mod tasks;

use std::path::Path;

use gpumodel_core::contract::{Job, Profile, QueueFacts};
use gpumodel_core::units::{Cycle, to_u64};
use gpumodel_policy::queue::{CLASSES, QueueChoice, published_classes};
use gpumodel_report::results::{Analysis, AppRecord};

use crate::run_context::peaks;
use crate::{App, RunContext, RunError};
use generate::Generate;
use schedule::Schedule;
use tasks::{Pool, TaskResults, profile};

pub(crate) use file::QueueFile;
pub use file::QueueFileError;
pub(crate) use generate::Draws;

/// The default schemes of a queue: those that ILP-SMRA compares.
pub(crate) const DEFAULT_SCHEMES: [&str; 4] = ["even-queue", "profile-based", "ilp", "ilp-smra"];

/// A queue with its jobs.
pub(super) struct Queue {
    pub(super) name: String,
    pub(super) distribution: Option<String>,
    pub(super) seed: u64,
    pub(super) jobs: Vec<Job>,
}

/// Runs the queues of `file` under each of `schemes` and adds them to `analysis`, which has the
/// solo runs of `apps`. Results are kept in the folder `cache`.
pub(crate) fn queues(
    ctx: &RunContext<'_>,
    file: &QueueFile,
    (schemes, cache): (&[QueueChoice], &Path),
    apps: &[App],
    analysis: &mut Analysis,
) -> Result<(), RunError> {
    let pool = Pool::new(ctx, apps)?;
    let facts = queue_facts(ctx, file, &analysis.solo);
    if facts.group_size > usize::from(facts.sms) {
        return Err(RunError::TooFewSms { group_size: facts.group_size, sms: facts.sms });
    }
    let classes = published_classes(&facts);
    let queues = queues_of(file, &facts, &classes)?;
    let mut schedules = Vec::new();
    for queue in &queues {
        for choice in schemes {
            let facts = QueueFacts { jobs: queue.jobs.clone(), ..facts.clone() };
            schedules.push((queue, Schedule::new(&queue.name, choice.clone(), facts)?));
        }
    }
    let mut results = TaskResults::new(cache);
    loop {
        let mut needed = Vec::new();
        for (_, schedule) in &mut schedules {
            needed.extend(schedule.advance(&pool, &results)?);
        }
        if needed.is_empty() {
            break;
        }
        results.compute(&pool, needed)?;
    }
    record::add(analysis, &pool, &schedules, &classes);
    Ok(())
}

/// The facts of any queue of these applications.
fn queue_facts(ctx: &RunContext<'_>, file: &QueueFile, solo: &[AppRecord]) -> QueueFacts {
    let machine = &ctx.resolved.machine;
    let peaks = peaks(ctx.resolved, ctx.memory);
    let lanes =
        f64::from(u32::try_from(gpumodel_core::units::WARP_LANES).expect("a warp has 32 lanes"));
    let given = |name: &str| {
        let class = file.classes.get(name)?;
        CLASSES.iter().position(|known| known == class)
    };
    let profiles = solo.iter().map(|row| {
        let profile = profile(row, machine.clocks.core_mhz);
        Profile { given_class: given(&profile.name), ..profile }
    });
    QueueFacts {
        sms: machine.dispatch.sms,
        group_size: file.group_size,
        peak_dram_gb_per_s: peaks.peak_dram_gb_per_s,
        peak_ipc: peaks.peak_warp_instructions_per_cycle * lanes,
        apps: profiles.collect::<Vec<Profile>>(),
        jobs: Vec::new(),
        given: file.interference.clone(),
    }
}

/// The queue that the file lists, or those that it generates.
fn queues_of(
    file: &QueueFile,
    facts: &QueueFacts,
    classes: &[usize],
) -> Result<Vec<Queue>, RunError> {
    let Some(generate) = &file.generate else {
        let index = |name: &str| facts.apps.iter().position(|app| app.name == name);
        let job = |entry: &file::Entry| {
            let app = index(&entry.app).expect("the file was checked");
            Job { app, arrival: entry.arrival }
        };
        let mut jobs: Vec<Job> = file.order.iter().map(job).collect();
        jobs.sort_by_key(|job| job.arrival);
        let name = file.name.clone();
        return Ok(vec![Queue { name, distribution: None, seed: 0, jobs }]);
    };
    let mut queues = Vec::new();
    for distribution in &generate.distributions {
        for &seed in &generate.seeds {
            queues.push(generated(generate, distribution, seed, classes, facts)?);
        }
    }
    Ok(queues)
}

fn generated(
    generate: &Generate,
    distribution: &str,
    seed: u64,
    classes: &[usize],
    facts: &QueueFacts,
) -> Result<Queue, RunError> {
    let pools: Vec<Vec<usize>> = (0..CLASSES.len()).map(|class| members(classes, class)).collect();
    let dominant = CLASSES.iter().position(|class| *class == distribution);
    let counts = generate::counts(dominant, pools.len(), generate.length);
    let index = generate::DISTRIBUTIONS.iter().position(|results| *results == distribution);
    // Queues of one seed and several distributions are drawn differently.
    let generated = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ to_u64(index.unwrap_or(0));
    let queue = generate::queue(&counts, &pools, generated).map_err(|class| RunError::NoClass {
        distribution: distribution.to_owned(),
        class: CLASSES[class],
        classes: record::list(classes, facts),
    })?;
    let arrival: Cycle = 0;
    Ok(Queue {
        name: format!("{distribution}/{seed}"),
        distribution: Some(distribution.to_owned()),
        seed,
        jobs: queue.into_iter().map(|app| Job { app, arrival }).collect(),
    })
}

fn members(classes: &[usize], class: usize) -> Vec<usize> {
    (0..classes.len()).filter(|&app| classes[app] == class).collect()
}
