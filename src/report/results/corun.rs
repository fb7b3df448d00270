//! The applications together under one scheme.

use std::collections::BTreeMap;

use gpumodel_core::units::{Cycle, to_u64, to_usize};
use serde::{Deserialize, Serialize};

use super::{
    CacheCounters, DramCounters, FastForwardRecord, LinkRecord, RunEvents, UtilizationRecord,
};

/// The applications together under one scheme. [`CoRun::judge`] fills what
/// compares them with running alone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CoRun {
    /// Scheme name.
    pub scheme: String,
    /// Scheme parameters, defaults included.
    pub parameters: BTreeMap<String, String>,
    /// The end condition as typed.
    pub until: String,
    /// Length of the run.
    pub cycles: Cycle,
    /// One row per application, in the order in which they were named.
    pub apps: Vec<CoRunApp>,
    /// Sum of normalised progress (UGPU eq. 3).
    pub stp: f64,
    /// Mean of solo IPC over shared IPC (UGPU eq. 4); infinite, `null` in JSON, where
    /// an application made no progress.
    #[serde(with = "finite_or_null")]
    #[cfg_attr(test, schemars(with = "Option<f64>"))]
    pub antt: f64,
    /// Smallest normalised progress.
    pub fairness_min_speedup: f64,
    /// Harmonic mean of normalised progress; 0 where an application made none.
    #[serde(default)]
    pub harmonic_speedup: f64,
    /// Thread instructions of all applications per cycle of the run.
    pub ipc_throughput: f64,
    /// Until the last application finished; 0 where one did not finish.
    pub makespan_cycles: Cycle,
    /// Sum of solo makespans over the shared makespan; 0 where there is none.
    pub makespan_speedup: f64,
    /// L1 totals of the run, all applications together.
    #[serde(default)]
    pub l1: CacheCounters,
    /// L2 totals.
    #[serde(default)]
    pub l2: CacheCounters,
    /// DRAM totals.
    #[serde(default)]
    pub dram: DramCounters,
    /// How busy units and stores of the SMs were; absent: the record does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub utilization: Option<UtilizationRecord>,
    /// Energy of the run; 0 where the machine has no energy table.
    pub energy_joules: f64,
    /// Where that energy went; absent where the machine has no energy table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy: Option<EnergyRecord>,
    /// CTAs that were dropped before their end: to start again, or with their
    /// application as it reached its target. Workers count as one each.
    #[serde(default)]
    pub killed_ctas: u64,
    /// Every decision of the scheme, in order.
    pub decisions: Vec<DecisionRecord>,
    /// By application, what had moved up to the end of all its runs; absent: all shared
    /// all, or the record does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved: Option<Vec<MovedSoFar>>,
    /// CTAs of each application on each SM over time; absent: not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub residency: Option<ResidencyRecord>,
    /// What these numbers lean on, each once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// What only [`trace_events`](crate::trace_events) shows; no part of the document.
    #[serde(skip)]
    pub events: RunEvents,
}

/// One application within a co-run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CoRunApp {
    /// Application name.
    pub app: String,
    /// Cycles of its reported run: from its arrival to its end, or to the end of the
    /// co-run where it did not finish.
    pub cycles: Cycle,
    /// When it arrived.
    #[serde(default)]
    pub arrival_cycle: Cycle,
    /// When its reported run ended, or the co-run where it did not finish.
    #[serde(default)]
    pub end_cycle: Cycle,
    /// It finished, or reached its instruction target, at least once.
    #[serde(default)]
    pub finished: bool,
    /// Completed runs: more than 1 where early finishers are started again.
    #[serde(default)]
    pub runs: u64,
    /// Some launch comes from a log of accesses alone: no time is modelled.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub memory_only: bool,
    /// Warp instructions of its reported run.
    #[serde(default)]
    pub warp_instructions: u64,
    /// Active lanes summed over them.
    #[serde(default)]
    pub thread_instructions: u64,
    /// Thread instructions of all its runs in the co-run, the reported one among them.
    #[serde(default)]
    pub all_thread_instructions: u64,
    /// Thread instructions per cycle of its reported run.
    pub ipc: f64,
    /// The same alone on the machine, over the same work.
    #[serde(default)]
    pub solo_ipc: f64,
    /// Solo IPC over shared IPC; infinite, `null` in JSON, without progress.
    #[serde(with = "finite_or_null")]
    #[cfg_attr(test, schemars(with = "Option<f64>"))]
    pub slowdown: f64,
    /// Shared IPC over solo IPC.
    pub normalized_progress: f64,
    /// L2 misses per thousand warp instructions.
    pub mpki_warp: f64,
    /// L2 misses per thousand thread instructions.
    pub mpki_thread: f64,
    /// What was passed over; absent where every cycle was simulated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fast_forward: Option<FastForwardRecord>,
    /// Copies and page faults of its reported run; absent where they take no time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<LinkRecord>,
    /// L1 totals of its reported run.
    #[serde(default)]
    pub l1: CacheCounters,
    /// L2 totals.
    #[serde(default)]
    pub l2: CacheCounters,
    /// DRAM totals.
    #[serde(default)]
    pub dram: DramCounters,
    /// Its part of the bytes that all applications moved over the DRAM pins, 0 to 1.
    #[serde(default)]
    pub dram_share: f64,
    /// Share of the slot-cycles of its schedulers by cause; sums to 1. Empty: the
    /// record does not say.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub stall_fractions: BTreeMap<String, f64>,
    /// SMs held at the end.
    pub sms: u64,
    /// CTAs per SM held at the end.
    pub ctas_per_sm: u64,
    /// Memory channels held at the end.
    pub channels: u64,
    /// SMs that plans gave it, the mean over its reported run: none while it waited, and
    /// neither those that it still had to vacate nor those that it had beyond its share as
    /// the last one; absent: all took turns, or the record does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_sms: Option<f64>,
    /// Memory channels, the same way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_channels: Option<f64>,
    /// Its CTAs that were dropped before their end, as [`CoRun::killed_ctas`].
    #[serde(default)]
    pub killed_ctas: u64,
    /// What it cost that channels were its own; absent: all shared all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub migration: Option<MigrationRecord>,
    /// Its kernels ran as workers; absent: as written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workers: Option<WorkersRecord>,
    /// Where its time went; absent: the record does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostTime>,
    /// Its launches, in start order.
    pub kernels: Vec<CoRunKernel>,
}

/// One launch within a co-run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CoRunKernel {
    /// Kernel name.
    pub name: String,
    /// Position in the trace's launch list, from 1; 0: the record does not say.
    #[serde(default)]
    pub launch: u32,
    /// When its launch began.
    pub start_cycle: Cycle,
    /// When its last CTA retired, or the end of the co-run.
    pub end_cycle: Cycle,
    /// CTAs that it completed.
    #[serde(default)]
    pub ctas: u64,
}

impl CoRun {
    /// Thread instructions of all applications in all their runs; `None` where nothing was
    /// executed, or the record does not say.
    #[must_use]
    pub fn work(&self) -> Option<u64> {
        let work = self.apps.iter().map(|app| app.all_thread_instructions);
        Some(work.fold(0, u64::saturating_add)).filter(|&work| work > 0)
    }

    /// From the first arrival to the last end; `None` where an application did not finish.
    pub(crate) fn makespan(&self) -> Option<Cycle> {
        let whole = self.apps.iter().all(|app| app.finished && !app.memory_only);
        let first = self.apps.iter().map(|app| app.arrival_cycle).min()?;
        let last = self.apps.iter().map(|app| app.end_cycle).max()?;
        last.checked_sub(first).filter(|_| whole)
    }

    /// Whether pages moved or SMs were waited for.
    pub(crate) fn moved_anything(&self) -> bool {
        let moved = |app: &CoRunApp| app.migration.is_some_and(|moved| moved.cost_anything());
        self.apps.iter().any(moved)
    }

    /// Whether it ran under the scheme `name:key=value`: with these parameters, whatever
    /// the others were.
    pub(crate) fn is_under(&self, typed: &str) -> bool {
        let mut words = typed.split(':');
        let has = |word: &str| {
            let (key, value) = word.split_once('=').unwrap_or((word, ""));
            self.parameters.get(key).is_some_and(|found| found == value)
        };
        words.next() == Some(self.scheme.as_str()) && words.all(has)
    }
}

/// Resident CTAs by SM and application on a grid of equal intervals.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ResidencyRecord {
    /// Length of an interval; the last one may end later than the run.
    pub interval_cycles: Cycle,
    /// One row per SM and application that was ever there, by SM, then application.
    pub rows: Vec<ResidencyRow>,
}

/// One application on one SM.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ResidencyRow {
    /// Which SM.
    pub sm: u32,
    /// Position of the application in [`super::CoRun::apps`].
    pub app_index: u32,
    /// Resident CTAs in each interval from cycle 0 on, mean over the interval; none
    /// after the end of the list.
    pub ctas: Vec<f64>,
}

impl ResidencyRecord {
    /// Most intervals of a record.
    pub const INTERVALS: usize = 128;
}

/// An application whose kernels ran as workers that pull tasks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WorkersRecord {
    /// Thread blocks of a task.
    pub task_blocks: u64,
    /// Registers of a thread, of the launch that has most.
    pub registers: u64,
    /// Shared bytes of a CTA, of the launch that has most.
    pub shared_bytes: u64,
    /// The same of the kernels as written.
    pub registers_as_written: u64,
    /// The same of the kernels as written.
    pub shared_bytes_as_written: u64,
    /// Workers that came, over all instances of all launches.
    pub workers: u64,
    /// Tasks that they took.
    pub tasks: u64,
    /// Warp instructions that the form has added.
    pub added_instructions: u64,
}

/// Where an application's time from arrival to end went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct HostTime {
    /// In which a launch of it had begun and not ended: launch latency, and waits at the
    /// block scheduler or for a time slice, included.
    pub kernel_cycles: Cycle,
    /// Messages to the client that launches its kernels.
    pub communication_cycles: Cycle,
    /// Rewriting and compiling its kernels.
    pub compilation_cycles: Cycle,
    /// The rest: it held no share, or waited for an answer.
    pub waiting_cycles: Cycle,
}

/// Energy in joules by what took it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct EnergyRecord {
    /// Leakage and constant power of the GPU without its memory.
    pub static_joules: f64,
    /// Background power of the memory.
    pub dram_static_joules: f64,
    /// Instructions of threads, register file included.
    pub instructions_joules: f64,
    /// Look-ups of L1 and shared memory.
    pub l1_joules: f64,
    /// Sectors over the crossbar.
    pub interconnect_joules: f64,
    /// Look-ups of the L2.
    pub l2_joules: f64,
    /// Sectors over the pins of the memory.
    pub dram_joules: f64,
    /// Activates of DRAM rows.
    pub activates_joules: f64,
    /// Columns of pages that the memory copied itself.
    #[serde(default)]
    pub migrations_joules: f64,
}

impl EnergyRecord {
    /// What the memory took: background, pins, activates and copies of its own.
    #[must_use]
    pub fn memory_joules(&self) -> f64 {
        self.dram_static_joules + self.dram_joules + self.activates_joules + self.migrations_joules
    }

    /// The sum of all parts.
    #[must_use]
    pub fn total_joules(&self) -> f64 {
        self.static_joules
            + self.dram_static_joules
            + self.instructions_joules
            + self.l1_joules
            + self.interconnect_joules
            + self.l2_joules
            + self.dram_joules
            + self.activates_joules
            + self.migrations_joules
    }
}

/// One application's pages, and what moving them and its SMs took. Present where
/// channels were owned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MigrationRecord {
    /// Pages that it touched.
    pub pages: u64,
    /// Pages that moved, again and again where they did.
    pub pages_moved: u64,
    /// Bytes of those.
    pub bytes_moved: u64,
    /// How often its channels changed while it had pages.
    pub channel_changes: u64,
    /// Cycles during which pages of it were under way; it runs on meanwhile.
    pub moving_cycles: Cycle,
    /// Cycles during which its SMs asked for nothing, as channels changed hands.
    pub resting_cycles: Cycle,
    /// Cycles during which it held more CTAs than its share on some SM.
    pub vacating_cycles: Cycle,
}

impl MigrationRecord {
    /// True where pages moved, or SMs were waited for.
    fn cost_anything(&self) -> bool {
        self.pages_moved > 0 || self.resting_cycles > 0 || self.vacating_cycles > 0
    }
}

/// The same of one application up to a decision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MovedSoFar {
    /// Pages that have moved.
    pub pages_moved: u64,
    /// Cycles during which pages were under way.
    pub moving_cycles: Cycle,
    /// Cycles during which it held more CTAs than its share on some SM.
    pub vacating_cycles: Cycle,
}

/// One decision of a scheme.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DecisionRecord {
    /// When it was taken.
    pub cycle: Cycle,
    /// Why the scheme was asked.
    pub wake: String,
    /// The plan it answered.
    pub plan: serde_json::Value,
    /// The scheme's reason.
    pub reason: String,
    /// What it knew of the applications' speed against their CTAs; empty where it
    /// did not ask.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub curves: Vec<CurveRecord>,
    /// By application, what had moved up to here; empty where nothing ever had.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moved: Vec<MovedSoFar>,
}

impl DecisionRecord {
    /// How many SMs and memory channels the plan gives an application, by its place;
    /// `None` where it has the same on all SMs, or channels have no owners.
    #[must_use]
    pub fn slice(&self, app: usize) -> Option<(u64, u64)> {
        let quotas = self.plan.get("shares")?.get(app)?.as_array()?;
        let sms = quotas.iter().filter(|quota| quota.as_u64().is_some_and(|ctas| ctas > 0));
        let channels = self.plan.get("channels")?.get(app)?.as_array()?;
        Some((to_u64(sms.count()), to_u64(channels.len())))
    }
}

/// Speed of one application against its CTAs per SM. Values are by the number of
/// CTAs, the first for 1; `null` where that number was not sampled.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CurveRecord {
    /// Application name.
    pub app: String,
    /// Instructions per cycle of one SM, as the scheme estimates them.
    pub ipc: Vec<Option<f64>>,
    /// The same over the application's largest.
    pub normalized: Vec<Option<f64>>,
    /// CTAs per SM that it was given; 0: the decision was another one.
    pub chosen: u32,
}

impl CoRun {
    /// The part of its speed alone that the scheme promised the application with the high
    /// priority; `None`: it promised nothing.
    #[must_use]
    pub fn qos_target(&self) -> Option<f64> {
        let target: f64 = self.parameters.get("target")?.parse().ok()?;
        target.is_finite().then_some(target)
    }

    /// The place of the application with the high priority that the user named;
    /// `None`: none was named, or the scheme promises nothing.
    fn given_priority_app(&self) -> Option<usize> {
        let place: usize = self.parameters.get("high")?.parse().ok()?;
        self.qos_target().and(place.checked_sub(1))
    }

    /// The one that the scheme put first itself.
    pub(crate) fn chosen_priority_app(&self) -> Option<usize> {
        self.parameters.get("high")?;
        let order = self.decisions.first()?.plan.get("order")?;
        Some(to_usize(order.get("priority")?.get(0)?.as_u64()?))
    }

    /// The place of the application that was promised something, named or chosen; `None`:
    /// nothing was promised, or it is not known to which.
    pub(crate) fn priority_app(&self) -> Option<usize> {
        self.qos_target()?;
        self.given_priority_app().or_else(|| self.chosen_priority_app())
    }

    /// Whether the application with the high priority had what it was promised; `None`:
    /// nothing was promised, or it is not known.
    pub(crate) fn met_qos_target(&self) -> Option<bool> {
        let place = self.priority_app()?;
        let progress = self.apps.get(place)?.normalized_progress;
        progress.is_finite().then_some(progress >= self.qos_target()?)
    }
}

impl DecisionRecord {
    /// Why a scheme was asked whose cycle had come.
    pub const AS_ASKED: &str = "as asked";

    /// Whether it was taken at a cycle that the scheme had named.
    pub(crate) fn is_timed(&self) -> bool {
        self.wake == Self::AS_ASKED
    }

    /// The first cycle that its plan names for the next decision; `None`: it names none.
    fn next_timed(&self) -> Option<Cycle> {
        let wakes = self.plan.get("wake")?.as_array()?;
        wakes.iter().filter_map(|wake| wake.get("at")?.as_u64()).min()
    }
}

impl CoRun {
    /// The first cycle that the scheme named, where no such cycle ever came; `None`: one
    /// came, or it named none.
    pub(crate) fn missed_timed(&self) -> Option<Cycle> {
        let looked = self.decisions.iter().any(DecisionRecord::is_timed);
        let first = self.decisions.iter().find_map(DecisionRecord::next_timed);
        first.filter(|_| !looked)
    }
}

/// A number that may be infinite: `null` in JSON, which has no such number.
mod finite_or_null {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[allow(clippy::trivially_copy_pass_by_ref, reason = "the shape that serde asks for")]
    pub(super) fn serialize<S: Serializer>(value: &f64, to: S) -> Result<S::Ok, S::Error> {
        value.is_finite().then_some(*value).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
        Ok(Option::deserialize(from)?.unwrap_or(f64::INFINITY))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{CoRun, DecisionRecord};
    use crate::results::CoRunApp;

    #[test]
    fn a_slice_is_what_a_plan_gives_of_sms_and_channels() {
        let plan = json!({"shares": [[0, 4, 4], "waiting", 4], "channels": [[0, 1], [2], []]});
        let decision = DecisionRecord { plan, ..DecisionRecord::default() };
        assert_eq!(decision.slice(0), Some((2, 2)));
        assert_eq!([1, 2, 3].map(|app| decision.slice(app)), [None; 3]);
        assert_eq!(DecisionRecord::default().slice(0), None);
    }

    #[test]
    fn a_promise_is_kept_by_the_application_that_it_was_given_to() {
        let app = |normalized_progress| CoRunApp { normalized_progress, ..CoRunApp::default() };
        let run = |high: &str| CoRun {
            parameters: [
                ("target".to_owned(), "0.75".to_owned()),
                ("high".to_owned(), high.into()),
            ]
            .into(),
            apps: vec![app(0.5), app(0.8)],
            ..CoRun::default()
        };
        assert_eq!(run("1").met_qos_target(), Some(false));
        assert_eq!(run("2").met_qos_target(), Some(true));
        assert_eq!(run("0").met_qos_target(), None);
        assert_eq!(CoRun::default().met_qos_target(), None);
    }

    #[test]
    fn a_cycle_that_was_named_and_never_came_is_missed() {
        let decision = |wake: &str, asked| DecisionRecord {
            wake: wake.into(),
            plan: json!({ "wake": asked }),
            ..DecisionRecord::default()
        };
        let missed = |decisions: &[DecisionRecord]| {
            CoRun { decisions: decisions.to_vec(), ..CoRun::default() }.missed_timed()
        };
        let start = decision("start", json!(["kernel_end", { "at": 500 }]));
        let end = decision("b ends", json!([]));
        let look = decision("as asked", json!([{ "at": 1000 }]));
        assert_eq!(missed(&[start.clone(), end.clone()]), Some(500));
        assert_eq!(missed(&[start, look]), None, "the second one may be missed");
        assert_eq!(missed(&[end, DecisionRecord::default()]), None, "no decision was asked for");
    }
}
