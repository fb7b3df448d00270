//! What one scheme gains over another, by the measure that a paper prints.

use gpumodel_core::units::Cycle;

use super::statistics::mean;
use super::{CoRun, DecisionRecord, MovedSoFar};
use crate::format::float;

/// How schemes are compared. A gain is what the first has more, 0 where they are equal;
/// better is positive except where the name says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// STP (UGPU eq. 3).
    Stp,
    /// Thread instructions of all per cycle.
    Ipc,
    /// The least normalised progress.
    Fairness,
    /// ANTT, better where it is smaller: the other's over the own (UGPU, section 6).
    Antt,
    /// ANTT, worse where it is larger: the own over the other's (ARCS 2018).
    AnttIncrease,
    /// From the first arrival to the last end: the other's over the own.
    Makespan,
    /// The makespan without what the host of the last application spends on messages and
    /// compilation: the other's over the own (Slate, section V).
    KernelTime,
    /// Energy of the whole for each thread instruction: the own over the other's, negative
    /// where it is saved.
    Energy,
    /// The same of the memory.
    MemoryEnergy,
    /// The same of the GPU without its memory.
    GpuEnergy,
    /// Energy per cycle without leakage, constant and background power: the own over the
    /// other's (Warped-Slicer, section V.G).
    DynamicPower,
    /// Misses of the L1 over its accesses: the own over the other's.
    L1MissRate,
    /// Accesses of the L2: the own over the other's.
    L2Accesses,
    /// I_T over C_T of a queue (ILP-SMRA).
    Throughput,
    /// IPC of a queue's applications, each over itself, then the mean.
    AppIpc,
    /// The mean share of an epoch in which SMs were vacated or pages under way, in each
    /// epoch the largest of any application (UGPU, Fig. 12a). Of one scheme alone.
    Reallocation,
    /// The same of the worst epoch.
    WorstReallocation,
    /// What the memory took of the energy (UGPU, section 6.3). Of one scheme alone.
    MemoryShare,
    /// The part of the mixes whose application with the high priority kept what it was
    /// promised (UGPU, Fig. 16). Of one scheme alone.
    Promises,
    /// The part of the mixes in which both schemes give every application as many CTAs per
    /// SM, but for one (Warped-Slicer, section IV). Not a gain.
    SamePartition,
}

/// By name in `models/papers`, with words for the header of a column.
const NAMES: [(Measure, &str, &str); 20] = [
    (Measure::Stp, "stp", "STP"),
    (Measure::Ipc, "ipc", "IPC"),
    (Measure::Fairness, "fairness", "minimum speedup"),
    (Measure::Antt, "antt", "ANTT"),
    (Measure::AnttIncrease, "antt-increase", "ANTT (worse)"),
    (Measure::Makespan, "makespan", "makespan"),
    (Measure::KernelTime, "kernel-time", "kernel time"),
    (Measure::Energy, "energy", "energy"),
    (Measure::MemoryEnergy, "memory-energy", "memory energy"),
    (Measure::GpuEnergy, "gpu-energy", "energy without memory"),
    (Measure::DynamicPower, "dynamic-power", "dynamic power"),
    (Measure::L1MissRate, "l1-miss-rate", "L1 miss rate"),
    (Measure::L2Accesses, "l2-accesses", "L2 accesses"),
    (Measure::Throughput, "throughput", "throughput"),
    (Measure::AppIpc, "app-ipc", "IPC by application"),
    (Measure::Reallocation, "reallocation", "share of an epoch"),
    (Measure::WorstReallocation, "worst-reallocation", "share of the worst epoch"),
    (Measure::MemoryShare, "memory-share", "memory's share of energy"),
    (Measure::Promises, "promises", "promises kept"),
    (Measure::SamePartition, "same-partition", "within one CTA"),
];

impl Measure {
    /// The measure of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        NAMES.iter().find(|row| row.1 == name).map(|row| row.0)
    }

    /// Every name, for messages.
    #[must_use]
    pub fn names() -> String {
        NAMES.map(|row| row.1).join(", ")
    }

    /// In words, as the header of a column.
    #[must_use]
    pub fn words(self) -> &'static str {
        NAMES.iter().find(|row| row.0 == self).map_or("", |row| row.2)
    }

    /// What is compared is a share of a whole, not a gain.
    pub(crate) fn is_share(self) -> bool {
        self.of_one() || self == Self::SamePartition
    }

    /// It says something of a scheme by itself.
    #[must_use]
    pub fn of_one(self) -> bool {
        matches!(
            self,
            Self::Reallocation | Self::WorstReallocation | Self::MemoryShare | Self::Promises
        )
    }

    /// The share that a run has, 0 to 1; `None`: this is no measure of one scheme, or the
    /// record does not say.
    #[must_use]
    pub fn share(self, run: &CoRun) -> Option<f64> {
        match self {
            Self::Reallocation => mean(&EpochShares::of(run)?.most()),
            Self::WorstReallocation => EpochShares::of(run)?.most().into_iter().reduce(f64::max),
            Self::MemoryShare => {
                let energy = run.energy.as_ref()?;
                Some(energy.memory_joules() / energy.total_joules()).filter(|part| part.is_finite())
            }
            Self::Promises => run.met_qos_target().map(part),
            _ => None,
        }
    }

    /// `own` over `base`, 1 where they are equal; `None`: one of them does not have it, or
    /// it has no bound. Of partitions: 2 where they are the same, 1 where not. Queues are
    /// compared by [`gains`](super::gains).
    #[must_use]
    pub fn ratio(self, own: &CoRun, base: &CoRun) -> Option<f64> {
        let of = |value: fn(&CoRun) -> Option<f64>| Some((value(own)?, value(base)?));
        let (over, under) = match self {
            Self::Stp => of(|run| Some(run.stp))?,
            Self::Ipc => of(|run| Some(run.ipc_throughput))?,
            Self::Fairness => of(|run| Some(run.fairness_min_speedup))?,
            Self::AnttIncrease => of(|run| Some(run.antt))?,
            Self::Antt => swapped(of(|run| Some(run.antt))?),
            Self::Makespan => swapped(of(makespan)?),
            Self::KernelTime => swapped(of(kernel_time)?),
            Self::Energy => of(|run| Some(run.energy_joules / work(run)?))?,
            Self::MemoryEnergy => {
                of(|run| Some(run.energy.as_ref()?.memory_joules() / work(run)?))?
            }
            Self::GpuEnergy => of(|run| {
                let energy = run.energy.as_ref()?;
                Some((energy.total_joules() - energy.memory_joules()) / work(run)?)
            })?,
            Self::DynamicPower => of(dynamic_power)?,
            Self::L1MissRate => of(|run| Some(1.0 - run.l1.hit_rate()?))?,
            Self::L2Accesses => of(|run| Some(crate::format::float(run.l2.accesses)))?,
            Self::SamePartition => return Some(1.0 + part(same_partition(own, base)?)),
            _ => return None,
        };
        let ratio = over / under;
        (under > 0.0 && over >= 0.0 && ratio.is_finite()).then_some(ratio)
    }
}

/// All or nothing.
fn part(yes: bool) -> f64 {
    f64::from(u8::from(yes))
}

/// Whether the first divisions of every SM that both decided on differ by a CTA per
/// application at most; `None`: one of them divided none.
fn same_partition(own: &CoRun, base: &CoRun) -> Option<bool> {
    let (own, base) = (first_partition(own)?, first_partition(base)?);
    let near = |(own, base): (&u32, &u32)| own.abs_diff(*base) <= 1;
    Some(own.len() == base.len() && own.iter().zip(&base).all(near))
}

/// CTAs per SM by application, as first decided on from curves.
pub(crate) fn first_partition(run: &CoRun) -> Option<Vec<u32>> {
    let known = |decision: &&DecisionRecord| !decision.curves.is_empty();
    let first = run.decisions.iter().find(known)?;
    Some(first.curves.iter().map(|curve| curve.chosen).collect())
}

/// Thread instructions of all applications.
fn work(run: &CoRun) -> Option<f64> {
    run.work().map(crate::format::float)
}

/// Joules per cycle that are neither of the time alone nor of the memory's background.
fn dynamic_power(run: &CoRun) -> Option<f64> {
    let energy = run.energy.as_ref()?;
    let moved = energy.total_joules() - energy.static_joules - energy.dram_static_joules;
    (run.cycles > 0).then(|| moved / crate::format::float(run.cycles))
}

fn swapped((own, base): (f64, f64)) -> (f64, f64) {
    (base, own)
}

fn makespan(run: &CoRun) -> Option<f64> {
    run.makespan().map(crate::format::float)
}

fn kernel_time(run: &CoRun) -> Option<f64> {
    let last = run.apps.iter().max_by_key(|app| app.end_cycle)?;
    let host = last.host.unwrap_or_default();
    let spent = host.communication_cycles.saturating_add(host.compilation_cycles);
    Some(makespan(run)? - crate::format::float(spent))
}

/// Shares of the epochs of a run, 0 to 1, by application and epoch: from the beginning to
/// the first look of the scheme, from look to look, and from the last one to the end.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EpochShares {
    /// Epochs; without the last where the record does not say what had moved at the end.
    pub epochs: usize,
    /// In which the application held more CTAs than its share on some SM; empty: the
    /// record does not say.
    pub vacating: Vec<Vec<f64>>,
    /// In which pages of it were under way.
    pub moving: Vec<Vec<f64>>,
}

/// What had moved up to a cycle, by application; empty: nothing.
type Mark<'a> = (Cycle, &'a [MovedSoFar]);

impl EpochShares {
    /// Those of `run`; `None` where no channels were owned, or the scheme never looked.
    #[must_use]
    pub fn of(run: &CoRun) -> Option<Self> {
        let is_timed = |decision: &&DecisionRecord| decision.is_timed();
        let looks: Vec<&DecisionRecord> = run.decisions.iter().filter(is_timed).collect();
        let reported = looks.iter().any(|look| !look.moved.is_empty());
        let mut owners = run.apps.iter().filter_map(|app| app.migration);
        if looks.is_empty() || !reported && owners.clone().count() == 0 {
            return None;
        }
        let marks = marks(run, &looks);
        let of = |cycles: fn(&MovedSoFar) -> Cycle| -> Vec<Vec<f64>> {
            (0..run.apps.len()).map(|app| shares(&marks, app, cycles)).collect()
        };
        let moving = of(|moved| moved.moving_cycles);
        let epochs = moving.first().map_or(0, Vec::len);
        // Looks tell nothing as long as no page has moved, though SMs may have.
        let known = reported || owners.all(|owner| owner.vacating_cycles == 0);
        let vacating = if known { of(|moved| moved.vacating_cycles) } else { Vec::new() };
        (epochs > 0).then_some(Self { epochs, vacating, moving })
    }

    /// By epoch: the largest share of any application, SMs or pages. Both together take at
    /// least that.
    #[must_use]
    pub fn most(&self) -> Vec<f64> {
        let apps = || self.vacating.iter().chain(&self.moving);
        (0..self.epochs).map(|epoch| apps().map(|app| app[epoch]).fold(0.0, f64::max)).collect()
    }
}

/// Where epochs begin and end.
fn marks<'a>(run: &'a CoRun, looks: &[&'a DecisionRecord]) -> Vec<Mark<'a>> {
    let start: Mark<'_> = (0, &[]);
    let looks = looks.iter().map(|look| (look.cycle, look.moved.as_slice()));
    let end = run.moved.as_ref().map(|moved| (run.cycles, moved.as_slice()));
    std::iter::once(start).chain(looks).chain(end).collect()
}

/// What application `app` spent of each epoch between two marks. What had vacated
/// before the first page moved counts to the epoch in which that did, as far as it
/// lasts.
fn shares(marks: &[Mark<'_>], app: usize, of: fn(&MovedSoFar) -> Cycle) -> Vec<f64> {
    let cycles = |moved: &[MovedSoFar]| moved.get(app).map_or(0, of);
    let share = |two: &[Mark<'_>]| {
        let [(since, before), (until, after)] = [two[0], two[1]];
        let length = until.checked_sub(since).filter(|length| *length > 0)?;
        let spent = cycles(after).saturating_sub(cycles(before));
        Some(float(spent.min(length)) / float(length))
    };
    marks.windows(2).filter_map(share).collect()
}

#[cfg(test)]
mod tests {
    use super::{EpochShares, Measure};
    use crate::results::{
        CoRun, CoRunApp, CurveRecord, DecisionRecord, EnergyRecord, HostTime, MovedSoFar,
    };

    #[test]
    fn who_is_faster_gains_by_every_measure() {
        let run = |stp: f64, antt: f64, end: u64| CoRun {
            stp,
            antt,
            apps: vec![
                CoRunApp { finished: true, arrival_cycle: 10, end_cycle: 60, ..Default::default() },
                CoRunApp { finished: true, end_cycle: end, ..Default::default() },
            ],
            ..CoRun::default()
        };
        let (fast, slow) = (run(1.5, 1.25, 100), run(1.0, 2.5, 200));
        let ratio = |measure: Measure| measure.ratio(&fast, &slow);
        assert_eq!(ratio(Measure::Stp), Some(1.5));
        assert_eq!(ratio(Measure::Antt), Some(2.0));
        assert_eq!(ratio(Measure::AnttIncrease), Some(0.5));
        assert_eq!(ratio(Measure::Makespan), Some(2.0));
        assert_eq!(ratio(Measure::KernelTime), Some(2.0));
        let mut hosted = fast.clone();
        let host =
            HostTime { communication_cycles: 15, compilation_cycles: 5, ..HostTime::default() };
        hosted.apps[1].host = Some(host);
        assert_eq!(Measure::KernelTime.ratio(&hosted, &slow), Some(2.5));
        // No energy table: no number.
        assert_eq!(ratio(Measure::Energy), None);
        // A starved application has lost everything.
        assert_eq!(Measure::Antt.ratio(&run(1.0, f64::INFINITY, 9), &slow), Some(0.0));
        let mut cut = run(1.0, 1.0, 50);
        cut.apps[0].finished = false;
        assert_eq!(Measure::Makespan.ratio(&cut, &slow), None);
    }

    #[test]
    fn shares_are_of_one_scheme_and_partitions_of_two() {
        let energy = EnergyRecord { static_joules: 3.0, dram_joules: 1.0, ..Default::default() };
        let run = |chosen: [u32; 2]| CoRun {
            energy: Some(energy),
            decisions: vec![
                DecisionRecord::default(),
                DecisionRecord {
                    curves: chosen
                        .map(|chosen| CurveRecord { chosen, ..Default::default() })
                        .into(),
                    ..DecisionRecord::default()
                },
            ],
            ..CoRun::default()
        };
        assert_eq!(Measure::MemoryShare.share(&run([1, 2])), Some(0.25));
        assert_eq!(Measure::Promises.share(&run([1, 2])), None);
        let same = |one, two| Measure::SamePartition.ratio(&run(one), &run(two));
        assert_eq!(same([2, 3], [3, 2]), Some(2.0));
        assert_eq!(same([2, 3], [4, 2]), Some(1.0));
        assert_eq!(Measure::SamePartition.ratio(&run([2, 3]), &CoRun::default()), None);
        let gpu = Measure::GpuEnergy;
        assert_eq!(gpu.ratio(&run([1, 2]), &run([1, 2])), None, "nothing was done");
        let worked = |work| {
            let app = CoRunApp { all_thread_instructions: work, ..CoRunApp::default() };
            CoRun { apps: vec![app], cycles: work, ..run([1, 2]) }
        };
        assert_eq!(gpu.ratio(&worked(1), &worked(2)), Some(2.0));
        assert_eq!(Measure::DynamicPower.ratio(&worked(2), &worked(1)), Some(0.5));
        assert!(Measure::SamePartition.is_share() && !Measure::SamePartition.of_one());
    }

    #[test]
    fn every_name_is_a_measure() {
        for name in Measure::names().split(", ") {
            assert!(!Measure::named(name).unwrap().words().is_empty());
        }
        assert_eq!(Measure::named("speed"), None);
    }

    fn moved(moving_cycles: u64, vacating_cycles: u64) -> Vec<MovedSoFar> {
        vec![MovedSoFar { moving_cycles, vacating_cycles, ..MovedSoFar::default() }]
    }

    #[test]
    fn an_epoch_has_what_was_spent_between_looks_beginning_and_end() {
        let look = |cycle, moving_cycles, vacating_cycles| DecisionRecord {
            cycle,
            wake: "as asked".into(),
            moved: moved(moving_cycles, vacating_cycles),
            ..DecisionRecord::default()
        };
        let run = CoRun {
            apps: vec![CoRunApp::default()],
            decisions: vec![look(100, 0, 0), look(200, 10, 30), look(400, 60, 30)],
            ..CoRun::default()
        };
        let found = EpochShares::of(&run).unwrap();
        assert_eq!((found.moving[0].clone(), found.epochs), (vec![0.0, 0.1, 0.25], 3));
        assert_eq!(found.vacating, [[0.0, 0.3, 0.0]]);
        assert_eq!(found.most(), [0.0, 0.3, 0.25]);
        let run = CoRun { cycles: 500, moved: Some(moved(140, 40)), ..run };
        let found = EpochShares::of(&run).unwrap();
        assert_eq!((found.moving[0].clone(), found.epochs), (vec![0.0, 0.1, 0.25, 0.8], 4));
        assert_eq!(found.vacating[0][3], 0.1);
        // A run that ends with its last look has no epoch behind it.
        let run = CoRun { cycles: 400, ..run };
        assert_eq!(EpochShares::of(&run).unwrap().epochs, 3);
        assert_eq!(EpochShares::of(&CoRun::default()), None);
    }
}
