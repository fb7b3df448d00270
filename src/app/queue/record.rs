//! The records of queues.

use gpumodel_core::contract::{Findings, QueueFacts};
use gpumodel_core::units::to_u64;
use gpumodel_policy::queue::CLASSES;
use gpumodel_report::results::{
    Analysis, ClassifiedRecord, GroupRecord, InterferenceRecord, JobRecord, MatchingRecord,
    PairRecord, PatternRecord, QueueRun, ThresholdRecord,
};

use super::schedule::{CompletedGroup, GroupingDecision};
use super::{Pool, Queue, Schedule};
use crate::ratio;

/// Adds the records of all schedules and of the interference that their groupings measured.
pub(super) fn add(
    analysis: &mut Analysis,
    pool: &Pool<'_>,
    schedules: &[(&Queue, Schedule)],
    classes: &[usize],
) {
    for (queue, schedule) in schedules {
        analysis.queues.push(run(pool, queue, schedule, classes));
        let Some(findings) = schedule.grouping.findings() else { continue };
        let scheme = schedule.choice.to_string();
        let record = interference(findings, &schedule.facts);
        let same = |other: &&mut InterferenceRecord| {
            InterferenceRecord { schemes: Vec::new(), ..(*other).clone() } == record
        };
        match analysis.interference.iter_mut().find(same) {
            Some(other) if other.schemes.contains(&scheme) => {}
            Some(other) => other.schemes.push(scheme),
            None => {
                analysis.interference.push(InterferenceRecord { schemes: vec![scheme], ..record });
            }
        }
    }
}

/// Every application with its class, as text.
pub(super) fn list(classes: &[usize], facts: &QueueFacts) -> String {
    let named = classes.iter().zip(&facts.apps);
    let named = named.map(|(&class, app)| format!("{} is {}", app.name, CLASSES[class]));
    named.collect::<Vec<_>>().join(", ")
}

fn run(pool: &Pool<'_>, queue: &Queue, schedule: &Schedule, classes: &[usize]) -> QueueRun {
    let (mut jobs, groups) = (jobs(schedule, classes), groups(schedule));
    let works = schedule.facts.jobs.iter().map(|job| pool.instructions(job.app).1);
    for (job, threads) in jobs.iter_mut().zip(works) {
        job.thread_instructions = threads;
        job.ipc = ratio(threads, job.cycles);
    }
    let parameters = schedule.choice.settings();
    let executed = |one: &CompletedGroup| one.outcome.thread_instructions.iter().sum::<u64>();
    let thread_instructions = schedule.groups.iter().map(executed).sum();
    let ipcs: f64 = jobs.iter().map(|job| job.ipc).sum();
    let count = jobs.len().max(1) as f64;
    QueueRun {
        queue: queue.name.clone(),
        distribution: queue.distribution.clone(),
        seed: queue.seed,
        scheme: schedule.choice.name().to_owned(),
        label: schedule.choice.to_string(),
        parameters: parameters.map(|(name, value)| (name.to_owned(), value.to_string())).collect(),
        within: schedule.choice.within().row().name.to_owned(),
        group_size: to_u64(schedule.facts.group_size),
        early_finishers: schedule
            .choice
            .early_finishers()
            .unwrap_or_else(|| String::from("scheme")),
        cycles: schedule.now,
        thread_instructions,
        throughput_ipc: ratio(thread_instructions, schedule.now),
        mean_job_ipc: ipcs / count,
        jobs,
        groups,
        matchings: matchings(schedule),
    }
}

/// The jobs, without instruction counts.
fn jobs(schedule: &Schedule, classes: &[usize]) -> Vec<JobRecord> {
    let record = |job: &gpumodel_core::contract::Job| JobRecord {
        app: schedule.facts.apps[job.app].name.clone(),
        class: Some(CLASSES[classes[job.app]].to_owned()),
        arrival_cycle: job.arrival,
        ..JobRecord::default()
    };
    let mut jobs: Vec<JobRecord> = schedule.facts.jobs.iter().map(record).collect();
    for (number, completed) in schedule.groups.iter().enumerate() {
        for (job, &cycles) in completed.group.jobs.iter().zip(&completed.outcome.ends) {
            let job = &mut jobs[job.index()];
            job.start_cycle = completed.start;
            job.end_cycle = completed.start + cycles;
            job.cycles = cycles;
            job.group = to_u64(number);
        }
    }
    jobs
}

fn groups(schedule: &Schedule) -> Vec<GroupRecord> {
    let record = |completed: &CompletedGroup| GroupRecord {
        start_cycle: completed.start,
        end_cycle: completed.start + completed.outcome.cycles,
        jobs: completed.group.jobs.iter().map(|job| to_u64(job.index())).collect(),
        pattern: completed.group.pattern.map(to_u64),
        shares: completed.outcome.shares.clone(),
    };
    schedule.groups.iter().map(record).collect()
}

/// The decisions of a grouping; none if it uses no patterns.
fn matchings(schedule: &Schedule) -> Vec<MatchingRecord> {
    let Some(findings) = schedule.grouping.findings() else { return Vec::new() };
    schedule.decisions.iter().map(|decision| matching(decision, findings)).collect()
}

fn matching(decision: &GroupingDecision, findings: &Findings) -> MatchingRecord {
    let used = decision.patterns.iter().map(|pattern| PatternRecord {
        counts: pattern.counts.clone(),
        efficiency: pattern.efficiency,
        groups: pattern.groups,
    });
    let patterns: Vec<PatternRecord> = used.collect();
    let locations = patterns.first().map_or(findings.classes.len(), |one| one.counts.len());
    let mut classes = findings.classes.clone();
    classes.resize(locations, String::from("idle"));
    let mut waiting = vec![0; findings.classes.len()];
    for (one, jobs) in findings.classified.iter().zip(&decision.waiting) {
        waiting[one.class] += jobs;
    }
    let worth = |pattern: &PatternRecord| pattern.efficiency * pattern.groups as f64;
    MatchingRecord {
        cycle: decision.cycle,
        waiting,
        classes,
        objective: patterns.iter().map(worth).sum(),
        patterns,
        reason: decision.reason.clone(),
    }
}

fn interference(findings: &Findings, facts: &QueueFacts) -> InterferenceRecord {
    let threshold = |one: &gpumodel_core::contract::Threshold| ThresholdRecord {
        name: one.name.clone(),
        metric: one.metric.clone(),
        value: one.value,
    };
    let classified = |one: &gpumodel_core::contract::Classified| {
        let app = &facts.apps[one.app];
        ClassifiedRecord {
            app: app.name.clone(),
            dram_gb_per_s: app.dram_gb_per_s,
            l2_to_l1_gb_per_s: app.l2_to_l1_gb_per_s,
            memory_to_compute: app.memory_to_compute,
            ipc: app.ipc,
            class: findings.classes[one.class].clone(),
            fits: one.fits,
            reason: one.reason.clone(),
        }
    };
    let pair = |pair: &gpumodel_core::contract::PairFound| PairRecord {
        apps: pair.apps.map(|app| facts.apps[app].name.clone()),
        slowdown: pair.slowdown,
    };
    InterferenceRecord {
        schemes: Vec::new(),
        classes: findings.classes.clone(),
        thresholds: findings.thresholds.iter().map(threshold).collect(),
        apps: findings.classified.iter().map(classified).collect(),
        slowdown: findings.slowdown.clone(),
        pairs: findings.pairs.iter().map(pair).collect(),
        published: Vec::new(),
    }
}
