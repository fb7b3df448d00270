//! Records of pairs of applications that divide SMs and memory channels: promises,
//! looks at the end of epochs, and what has moved up to each.

use gpumodel::report::results::{
    Analysis, CoRun, CoRunApp, DecisionRecord, EnergyRecord, MigrationRecord, MovedSoFar, SCHEMA,
};

use crate::shown::small;
use crate::shown_study::name;

/// Cycles between two looks.
pub(crate) const EPOCH: u64 = 5_000_000;

/// An application that keeps `progress` of the `solo` thread instructions per cycle
/// that it has alone.
pub(crate) fn kept(app: &str, solo: f64, progress: f64) -> CoRunApp {
    CoRunApp {
        app: app.into(),
        ipc: solo * progress,
        solo_ipc: solo,
        slowdown: 1.0 / progress,
        normalized_progress: progress,
        ..CoRunApp::default()
    }
}

/// Two applications under `scheme` with its settings.
pub(crate) fn shared(scheme: &str, settings: &[(&str, &str)], apps: [CoRunApp; 2]) -> CoRun {
    CoRun {
        scheme: scheme.into(),
        parameters: settings.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect(),
        stp: apps.iter().map(|app| app.normalized_progress).sum(),
        antt: apps.iter().map(|app| app.slowdown).sum::<f64>() / 2.0,
        apps: apps.into(),
        ..CoRun::default()
    }
}

/// A start, and a look at the end of every epoch; each row says for how many cycles of
/// its epoch both applications had vacated SMs and pages under way.
pub(crate) fn looks(epochs: &[[(u64, u64); 2]]) -> Vec<DecisionRecord> {
    let mut sum = [MovedSoFar::default(); 2];
    let start = DecisionRecord { wake: "start".into(), ..DecisionRecord::default() };
    let look = |(count, epoch): (u64, &[(u64, u64); 2])| {
        for (app, (vacating, moving)) in sum.iter_mut().zip(epoch) {
            app.vacating_cycles += vacating;
            app.moving_cycles += moving;
            app.pages_moved += moving / 1000;
        }
        let reported = sum.iter().any(|app| app.pages_moved > 0);
        let moved = if reported { sum.to_vec() } else { Vec::new() };
        let (cycle, wake) = (count * EPOCH, "as asked".into());
        DecisionRecord { cycle, wake, moved, ..DecisionRecord::default() }
    };
    std::iter::once(start).chain((1..).zip(epochs).map(look)).collect()
}

/// `run` with that many thread instructions and joules, of the GPU and of its memory.
pub(crate) fn costly(mut run: CoRun, instructions: u64, [gpu, memory]: [f64; 2]) -> CoRun {
    run.apps[0].all_thread_instructions = instructions;
    run.energy_joules = gpu + memory;
    run.energy =
        Some(EnergyRecord { static_joules: gpu, dram_joules: memory, ..EnergyRecord::default() });
    run
}

/// `run` with private channels and with `looks` at its epochs.
pub(crate) fn divided(mut run: CoRun, looks: Vec<DecisionRecord>) -> CoRun {
    let last = looks.last().map(|look| look.moved.clone()).unwrap_or_default();
    for (place, app) in run.apps.iter_mut().enumerate() {
        let moved = last.get(place).copied().unwrap_or_default();
        app.migration = Some(MigrationRecord {
            pages_moved: moved.pages_moved,
            moving_cycles: moved.moving_cycles,
            vacating_cycles: moved.vacating_cycles,
            ..MigrationRecord::default()
        });
    }
    run.decisions = looks;
    run
}

/// The record of one mix.
pub(crate) fn mix(coruns: Vec<CoRun>) -> Analysis {
    Analysis {
        schema: SCHEMA.into(),
        program: "gpumodel 0.1.0".into(),
        machine: small().machine,
        coruns,
        ..Analysis::default()
    }
}

/// Mixes of a memory-bound application with a compute-bound one, which has the high
/// priority, under the schemes of UGPU's comparison.
pub(crate) fn mixes(count: u32, long: bool) -> Vec<Analysis> {
    (0..count).map(|place| one(place, long)).collect()
}

fn one(place: u32, long: bool) -> Analysis {
    let (memory, compute) = (name(place % 10, long), name(10 + place / 10, long));
    let vary = |factor: u32| f64::from((place * factor) % 13) / 100.0;
    let run = |scheme: &str, settings: &[(&str, &str)], memory_keeps: f64, compute_keeps: f64| {
        let apps = [kept(&memory, 400.0, memory_keeps), kept(&compute, 4000.0, compute_keeps)];
        let spent = [30.0 + 10.0 * compute_keeps, 4.0 + 8.0 * memory_keeps];
        costly(shared(scheme, settings, apps), 1_000_000_000 + u64::from(place), spent)
    };
    let promise = [("target", "0.75"), ("high", "0")];
    let cycles = |percent: u32, factor: u32| {
        u64::from(percent * (4 + (place * factor) % 9) / 8) * EPOCH / 100
    };
    let moved = |slow: u32| {
        let some = |share| [(cycles(2, 3) / share, cycles(slow, 5) / share), (0, 0)];
        let back = [(0, cycles(slow, 7) / 3), (cycles(4, 5), cycles(slow / 2, 3))];
        looks(&[[(0, 0); 2], some(1), some(2), [(0, 0); 2], back])
    };
    let ugpu = |scheme, gain: f64, slow| {
        divided(run(scheme, &[], 0.52 + vary(5) + gain, 0.71 + vary(7) + gain / 2.0), moved(slow))
    };
    mix(vec![
        run("bp", &[], 0.49 + vary(3), 0.52 + vary(11) / 3.0),
        run("qos-mps-share", &promise, 0.47 + vary(7), 0.69 + vary(5)),
        run("qos-bp", &promise, 0.24 + vary(4), 0.76 + vary(2) / 6.0),
        ugpu("ugpu-soft", 0.02, 40),
        ugpu("ugpu", 0.1, 8),
    ])
}
