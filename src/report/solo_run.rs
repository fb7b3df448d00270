//! Co-runs of one application: runs of it alone under a scheme, one after another
//! with a setting changed.

use gpumodel_core::units::{Cycle, to_u64};

use super::format::float;
use super::machine::machine_tails;
use super::mix::{apart, names};
use super::results::last_component;
use crate::group_by;
use crate::results::{Analysis, AppRecord, CoRun, CoRunApp};

/// A run of one application alone under a scheme.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SoloRun<'a> {
    /// The record that holds it.
    pub(crate) record: &'a Analysis,
    /// The run.
    pub(crate) run: &'a CoRun,
    /// The application.
    pub(crate) app: &'a CoRunApp,
}

impl<'a> SoloRun<'a> {
    /// The run of `record` as one of an application alone; `None` where several
    /// applications share the machine, or no time is modelled.
    pub(crate) fn new(record: &'a Analysis, run: &'a CoRun) -> Option<Self> {
        let [app] = &run.apps[..] else { return None };
        (!app.memory_only && app.cycles > 0).then_some(Self { record, run, app })
    }

    /// It ran to its end: a target of instructions may be less than the application.
    pub(crate) fn is_whole(&self) -> bool {
        self.app.finished && !self.run.until.starts_with("targets")
    }

    /// The setting `key` of the scheme as a number; `None` where it has no such.
    pub(crate) fn setting(&self, key: &str) -> Option<u32> {
        self.run.parameters.get(key)?.parse().ok()
    }

    /// SMs that it held; where the record does not say, those that were set, at most all.
    pub(crate) fn held_sms(&self) -> Option<u32> {
        let all = self.record.machine.sms;
        let set = self.setting("sms").filter(|&sms| sms > 0);
        let set = set.map_or(all, |sms| all.min(sms.into()));
        let held = if self.app.sms > 0 { self.app.sms } else { set };
        u32::try_from(held).ok().filter(|&sms| sms > 0)
    }

    /// CTAs that an SM held at most: what was set, as far as it fits.
    pub(crate) fn held_ctas(&self) -> Option<u32> {
        let Some(set) = self.setting("ctas").filter(|&ctas| ctas > 0) else {
            return self.resident();
        };
        let fits = u32::try_from(self.app.ctas_per_sm).ok().filter(|&ctas| ctas > 0);
        Some(fits.map_or(set, |fits| set.min(fits)))
    }

    /// CTAs that an SM holds where the scheme sets no bound: of workers no more than come
    /// for a launch.
    fn resident(&self) -> Option<u32> {
        let held = self.app.ctas_per_sm;
        let launches = to_u64(self.app.kernels.len()).saturating_mul(self.record.machine.sms);
        let came = self.app.workers.as_ref().map(|workers| workers.workers);
        let came = came.filter(|&came| came > 0 && launches > 0);
        let most = came.map_or(held, |came| came.div_ceil(launches).min(held));
        u32::try_from(most).ok().filter(|&most| most > 0)
    }

    /// The same application without a scheme.
    pub(crate) fn solo(&self) -> Option<&'a AppRecord> {
        let solo = self.record.solo.iter().find(|solo| solo.app == self.app.app)?;
        (!solo.memory_only && solo.cycles > 0).then_some(solo)
    }

    /// Seconds per cycle; `None` where the record does not know the clock.
    pub(crate) fn seconds_per_cycle(&self) -> Option<f64> {
        let megahertz = self.record.machine.core_mhz;
        (megahertz > 0.0).then(|| 1e-6 / megahertz)
    }

    fn key(&self) -> (&'a str, &'a str) {
        (&self.record.machine.hash, &self.app.app)
    }
}

/// Cycles in which a launch of `solo` had begun and not ended.
pub(crate) fn kernel_cycles(solo: &AppRecord) -> Cycle {
    let mut spans: Vec<(Cycle, Cycle)> =
        solo.kernels.iter().map(|kernel| (kernel.start_cycle, kernel.end_cycle)).collect();
    spans.sort_unstable();
    let (mut sum, mut until) = (0_u64, 0);
    for (start, end) in spans {
        sum = sum.saturating_add(end.saturating_sub(start.max(until)));
        until = until.max(end);
    }
    sum
}

/// Runs of one application on one machine.
#[derive(Clone, Debug)]
pub(crate) struct Subject<'a> {
    /// What to call it.
    pub(crate) label: String,
    /// Its runs, in record order.
    pub(crate) runs: Vec<SoloRun<'a>>,
}

/// `runs` by application and machine, in order of first appearance.
pub(crate) fn subjects<'a>(runs: &[SoloRun<'a>]) -> Vec<Subject<'a>> {
    let (keys, runs): (Vec<_>, Vec<_>) =
        group_by(runs.iter().map(|run| (run.key(), *run))).into_iter().unzip();
    let records: Vec<&Analysis> =
        runs.iter().map(|runs: &Vec<SoloRun<'_>>| runs[0].record).collect();
    let words = machine_tails(&records);
    let labels =
        keys.iter().zip(words).map(|(key, words)| last_component(key.1).to_owned() + &words);
    let labels = apart(labels.collect());
    labels.into_iter().zip(runs).map(|(label, runs)| Subject { label, runs }).collect()
}

/// Runs of one application that differ in one setting alone.
#[derive(Clone, Debug)]
pub(crate) struct Sweep<'a> {
    /// The scheme, with what tells it from other sweeps of the application.
    pub(crate) scheme: String,
    /// Runs by what they held, which each has once.
    pub(crate) points: Points<'a>,
    /// Runs that held as much as one of the points.
    pub(crate) repeats: usize,
}

/// Runs by what they held.
type Points<'a> = Vec<(u32, SoloRun<'a>)>;

/// The sweeps of `runs` over the setting `key`, each of at least two points, which lie at
/// what a run `held`: a run that is set more than exists has all.
pub(crate) fn sweeps<'a>(
    runs: &[SoloRun<'a>],
    key: &str,
    held: impl Fn(&SoloRun<'a>) -> Option<u32>,
) -> Vec<Sweep<'a>> {
    let found = runs.iter().filter_map(|run| {
        let held = run.setting(key).and_then(|_| held(run))?;
        let mut rest = run.run.parameters.clone();
        rest.remove(key);
        Some(((run.run.scheme.as_str(), rest), (held, *run)))
    });
    let sweep = |(scheme, runs): (_, Points<'a>)| {
        let mut points: Points<'a> = Vec::new();
        for (held, run) in &runs {
            if points.iter().all(|point| point.0 != *held) {
                points.push((*held, *run));
            }
        }
        points.sort_by_key(|point| point.0);
        let repeats = runs.len() - points.len();
        (points.len() > 1).then_some((scheme, points, repeats))
    };
    let found: Vec<_> = group_by(found).into_iter().filter_map(sweep).collect();
    let names = names(found.iter().map(|((name, rest), ..)| (*name, rest)).collect());
    let named = names.into_iter().zip(found);
    named.map(|(scheme, (_, points, repeats))| Sweep { scheme, points, repeats }).collect()
}

/// Bytes of `sectors` over the time of `run` in GB/s; `None` without a clock.
pub(crate) fn gb_per_s(run: &SoloRun<'_>, sectors: u64) -> Option<f64> {
    let bytes = float(sectors) * float(gpumodel_core::units::SECTOR_BYTES);
    Some(bytes / (float(run.app.cycles) * run.seconds_per_cycle()?) / 1e9)
}

#[cfg(test)]
mod tests {
    use super::{SoloRun, kernel_cycles, subjects, sweeps};
    use crate::results::{Analysis, AppRecord, CoRun, CoRunApp, KernelRecord};

    fn run(scheme: &str, settings: &[(&str, &str)]) -> CoRun {
        let app = CoRunApp { app: "a".into(), cycles: 9, finished: true, ..CoRunApp::default() };
        CoRun {
            scheme: scheme.into(),
            parameters: settings.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect(),
            apps: vec![app],
            ..CoRun::default()
        }
    }

    #[test]
    fn a_sweep_changes_one_setting() {
        let pt = |ctas, task| run("pt", &[("ctas", ctas), ("task", task)]);
        let mut record = Analysis {
            coruns: vec![pt("4", "1"), pt("2", "1"), pt("0", "1"), pt("2", "1"), pt("2", "5")],
            ..Analysis::default()
        };
        record.coruns.extend([pt("3", "5"), run("solo", &[("ctas", "1")]), run("even", &[])]);
        record.coruns[2].apps[0].ctas_per_sm = 8;
        let mut partial = run("solo", &[("ctas", "2")]);
        partial.until = "targets".into();
        record.coruns.push(partial);
        let all: Vec<_> =
            record.coruns.iter().filter_map(|run| SoloRun::new(&record, run)).collect();
        let all: Vec<_> = all.into_iter().filter(SoloRun::is_whole).collect();
        assert_eq!(all.len(), 8);
        let subjects = subjects(&all);
        assert_eq!((subjects.len(), subjects[0].label.as_str()), (1, "a"));
        let sweeps = sweeps(&subjects[0].runs, "ctas", SoloRun::held_ctas);
        let reported: Vec<(&str, Vec<u32>)> = sweeps
            .iter()
            .map(|s| (s.scheme.as_str(), s.points.iter().map(|point| point.0).collect()))
            .collect();
        assert_eq!(reported, [("pt:task=1", vec![2, 4, 8]), ("pt:task=5", vec![2, 3])]);
        assert_eq!(sweeps.iter().map(|sweep| sweep.repeats).collect::<Vec<_>>(), [1, 0]);
    }

    #[test]
    fn a_run_lies_at_what_it_held() {
        let set = |ctas: &str, sms: &str, held: (u64, u64)| {
            let mut run = run("solo", &[("ctas", ctas), ("sms", sms)]);
            (run.apps[0].ctas_per_sm, run.apps[0].sms) = held;
            run
        };
        let mut record = Analysis {
            coruns: vec![set("4", "100", (4, 15)), set("99", "3", (16, 3)), set("9", "0", (0, 0))],
            ..Analysis::default()
        };
        record.machine.sms = 15;
        let all: Vec<_> =
            record.coruns.iter().filter_map(|run| SoloRun::new(&record, run)).collect();
        let held: Vec<_> = all.iter().map(|run| (run.held_ctas(), run.held_sms())).collect();
        // The last record does not say.
        let some = |(ctas, sms): (u32, u32)| (Some(ctas), Some(sms));
        assert_eq!(held, [(4, 15), (16, 3), (9, 15)].map(some));
    }

    #[test]
    fn overlapping_launches_count_once() {
        let kernel = |start_cycle, end_cycle| KernelRecord {
            start_cycle,
            end_cycle,
            ..KernelRecord::default()
        };
        let kernels = vec![kernel(50, 90), kernel(10, 30), kernel(20, 40), kernel(60, 70)];
        assert_eq!(kernel_cycles(&AppRecord { kernels, ..AppRecord::default() }), 70);
    }
}
