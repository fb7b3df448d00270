//! What one scheme gains over another, by the measure that a paper prints.

use super::CoRun;

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
    /// The makespan without what the host of who ends last spends on messages and
    /// compilation: the other's over the own (Slate, section V).
    KernelTime,
    /// Energy of the whole for each thread instruction: the own over the other's, negative
    /// where it is saved.
    Energy,
    /// The same of the memory.
    MemoryEnergy,
    /// I_T over C_T of a queue (ILP-SMRA).
    Throughput,
    /// IPC of a queue's applications, each over itself, then the mean.
    AppIpc,
}

/// By name in `models/papers`.
const NAMES: [(&str, Measure); 11] = [
    ("stp", Measure::Stp),
    ("ipc", Measure::Ipc),
    ("fairness", Measure::Fairness),
    ("antt", Measure::Antt),
    ("antt-increase", Measure::AnttIncrease),
    ("makespan", Measure::Makespan),
    ("kernel-time", Measure::KernelTime),
    ("energy", Measure::Energy),
    ("memory-energy", Measure::MemoryEnergy),
    ("throughput", Measure::Throughput),
    ("app-ipc", Measure::AppIpc),
];

impl Measure {
    /// The measure of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        NAMES.iter().find(|(known, _)| *known == name).map(|&(_, measure)| measure)
    }

    /// Every name, for people.
    #[must_use]
    pub fn names() -> String {
        NAMES.map(|(name, _)| name).join(", ")
    }

    /// In words, as the header of a column.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Stp => "STP",
            Self::Ipc => "IPC",
            Self::Fairness => "minimum speedup",
            Self::Antt => "ANTT",
            Self::AnttIncrease => "ANTT (worse)",
            Self::Makespan => "makespan",
            Self::KernelTime => "kernel time",
            Self::Energy => "energy",
            Self::MemoryEnergy => "memory energy",
            Self::Throughput => "throughput",
            Self::AppIpc => "IPC by application",
        }
    }

    /// `own` over `base`, 1 where they are equal; `None`: one of them does not have it, or
    /// it has no bound. Queues are compared by [`gains`](super::gains).
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
            Self::Throughput | Self::AppIpc => return None,
        };
        let ratio = over / under;
        (under > 0.0 && over >= 0.0 && ratio.is_finite()).then_some(ratio)
    }
}

/// Thread instructions of all applications.
fn work(run: &CoRun) -> Option<f64> {
    let work = run.apps.iter().map(|app| app.all_thread_instructions);
    let work = work.fold(0, u64::saturating_add);
    (work > 0).then(|| super::quantity::float(work))
}

fn swapped((own, base): (f64, f64)) -> (f64, f64) {
    (base, own)
}

/// From the first arrival to the last end; `None` where somebody did not finish.
fn makespan(run: &CoRun) -> Option<f64> {
    let whole = run.apps.iter().all(|app| app.finished && !app.memory_only);
    let first = run.apps.iter().map(|app| app.arrival_cycle).min()?;
    let last = run.apps.iter().map(|app| app.end_cycle).max()?;
    last.checked_sub(first).filter(|_| whole).map(super::quantity::float)
}

fn kernel_time(run: &CoRun) -> Option<f64> {
    let last = run.apps.iter().max_by_key(|app| app.end_cycle)?;
    let host = last.host.unwrap_or_default();
    let spent = host.communication_cycles.saturating_add(host.compilation_cycles);
    Some(makespan(run)? - super::quantity::float(spent))
}

#[cfg(test)]
mod tests {
    use super::Measure;
    use crate::record::{CoRun, CoRunApp, HostTime};

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
        // Who is starved has lost everything.
        assert_eq!(Measure::Antt.ratio(&run(1.0, f64::INFINITY, 9), &slow), Some(0.0));
        let mut cut = run(1.0, 1.0, 50);
        cut.apps[0].finished = false;
        assert_eq!(Measure::Makespan.ratio(&cut, &slow), None);
    }

    #[test]
    fn every_name_is_a_measure() {
        for name in Measure::names().split(", ") {
            assert!(!Measure::named(name).unwrap().words().is_empty());
        }
        assert_eq!(Measure::named("speed"), None);
    }
}
