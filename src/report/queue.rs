//! What figures and tables of queues share: names of schemes, classes in their order,
//! and runs that may be compared.

use std::collections::BTreeSet;

use super::look::CLASSES;
use super::machine::machine_tails;
use super::results::last_component;
use crate::group_by;
use crate::results::{
    Analysis, JobRecord, MachineRecord, NamedRun, Over, QueueGain, QueueRun, gains,
};

/// The scheme that others are compared with where none is named.
pub(crate) const BASELINE: &str = "even-queue";

/// Queue runs of one machine and one group size.
#[derive(Clone, Debug)]
pub(crate) struct Panel<'a> {
    /// The machine.
    pub(crate) machine: &'a MachineRecord,
    /// What tells it from the machines of other panels.
    words: String,
    /// Applications that run together at most (N_G).
    pub(crate) group_size: u64,
    /// By run: its scheme, with the parameters in which it differs from others.
    pub(crate) names: Vec<String>,
    /// The runs in the order of the records.
    pub(crate) runs: Vec<&'a QueueRun>,
}

/// The queue runs of `records`, those that may be compared in one panel each.
pub(crate) fn panels<'a>(records: &'a [Analysis]) -> Vec<Panel<'a>> {
    let all = records.iter().flat_map(|record| record.queues.iter().map(move |run| (record, run)));
    let key = |(record, run): (&'a Analysis, &'a QueueRun)| {
        ((run.group_size, record.machine.hash.as_str()), (record, run))
    };
    let panels: Vec<Vec<_>> = group_by(all.map(key)).into_iter().map(|(_, runs)| runs).collect();
    let firsts: Vec<&Analysis> = panels.iter().map(|runs| runs[0].0).collect();
    let panel = |(runs, words): (Vec<(&'a Analysis, &'a QueueRun)>, String)| {
        let (machine, group_size) = (&runs[0].0.machine, runs[0].1.group_size);
        let runs: Vec<&QueueRun> = runs.into_iter().map(|(_, run)| run).collect();
        Panel { machine, words, group_size, names: scheme_names(&runs), runs }
    };
    let words = machine_tails(&firsts);
    panels.into_iter().zip(words).map(panel).collect()
}

impl<'a> Panel<'a> {
    /// The runs with the names of their schemes.
    pub(crate) fn named(&self) -> Vec<NamedRun<'_>> {
        self.names.iter().zip(&self.runs).map(|(name, run)| NamedRun { name, run }).collect()
    }

    /// Names of the queues in order of first appearance.
    pub(crate) fn queues(&self) -> Vec<&'a str> {
        let mut seen = BTreeSet::new();
        self.runs.iter().map(|run| run.queue.as_str()).filter(|name| seen.insert(*name)).collect()
    }

    /// The runs of the queue called `queue`, one for each name.
    pub(crate) fn of(&self, queue: &str) -> Vec<NamedRun<'_>> {
        let mut seen = BTreeSet::new();
        let own = self.named().into_iter().filter(|named| named.run.queue == queue);
        own.filter(|named| seen.insert(named.name)).collect()
    }

    /// What runs gain over `baseline`.
    pub(crate) fn gains(&self, baseline: &str) -> Vec<QueueGain> {
        gains(&self.named(), baseline)
    }

    /// What it is about, in a few words.
    pub(crate) fn title(&self) -> String {
        format!("{} at a time{}", self.group_size, self.words)
    }
}

/// One name for each of `runs`: what the record calls the scheme, or else the scheme with
/// the parameters in which runs of it differ; what becomes of early finishers counts as
/// one.
fn scheme_names(runs: &[&QueueRun]) -> Vec<String> {
    const RULE: &str = "early_finishers";
    let value = |run: &QueueRun, key: &str| match key {
        RULE => Some(run.early_finishers.clone()),
        key => run.parameters.get(key).cloned(),
    };
    let name = |run: &&QueueRun| {
        let same: Vec<_> = runs.iter().filter(|other| other.scheme == run.scheme).collect();
        let reported = !run.label.is_empty();
        let keys =
            run.parameters.keys().map(String::as_str).filter(|key| *key != RULE && !reported);
        let alike = |other: &&&&QueueRun| !reported || other.label == run.label;
        let differs = |key: &&str| {
            same.iter().filter(alike).any(|other| value(other, key) != value(run, key))
        };
        let words = keys.chain([RULE]).filter(differs);
        let words = words.map(|key| format!(":{key}={}", value(run, key).unwrap_or_default()));
        let name = if reported { &run.label } else { &run.scheme };
        name.clone() + &words.collect::<String>()
    };
    runs.iter().map(name).collect()
}

/// The class of a job: its own, or what schemes of the record know of its application.
pub(crate) fn class_of<'a>(record: &'a Analysis, job: &'a JobRecord) -> Option<&'a str> {
    let known = || {
        let apps = record.interference.iter().flat_map(|known| &known.apps);
        apps.into_iter().find(|app| app.app == job.app).map(|app| app.class.as_str())
    };
    job.class.as_deref().or_else(known)
}

/// The classes of the jobs of `runs`, behind the others that the record knows,
/// so that a class has the same place for every queue of the record.
pub(crate) fn classes<'a>(record: &'a Analysis, runs: &[&'a QueueRun]) -> Vec<&'a str> {
    let jobs = runs.iter().flat_map(|run| &run.jobs);
    let used: BTreeSet<&str> = jobs.filter_map(|job| class_of(record, job)).collect();
    let names = record.interference.iter().map(|known| &known.classes);
    let met = names.filter(|names| names.iter().any(|class| used.contains(class.as_str())));
    let met: BTreeSet<&str> = met.flatten().map(String::as_str).collect();
    let four = CLASSES.iter().map(|(class, _)| *class);
    // All four where one of them is present: a class keeps its fill in every figure.
    let some = four.clone().any(|class| used.contains(class));
    let four = four.filter(|_| some);
    let mut seen = BTreeSet::new();
    four.chain(met).chain(used).filter(|class| seen.insert(*class)).collect()
}

/// The name of an application without its suite.
pub(crate) fn job_name(job: &JobRecord) -> &str {
    last_component(&job.app)
}

/// What a gain is about, for readers.
pub(crate) fn over_name(over: &Over) -> &str {
    match over {
        Over::Distribution(name) | Over::Queue(name) => name,
        Over::Average => "average",
    }
}
