//! Queues of applications, worked off group by group.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use gpumodel_core::units::Cycle;

/// One queue under one scheme.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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
    /// are `given` to the others, or what the scheme does without being asked (`scheme`).
    pub early_finishers: String,
    /// From cycle 0 to the end of the last group (C_T).
    pub cycles: Cycle,
    /// Thread instructions of all jobs (I_T).
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
    /// beside one of class `j`, against alone on as many SMs (S of j on i).
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
pub struct PairRecord {
    /// Both.
    pub apps: [String; 2],
    /// How many times as long each took, against alone on as many SMs.
    pub slowdown: [f64; 2],
}

/// A published slow-down.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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
