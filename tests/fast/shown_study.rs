//! Records of studies: applications alone under schemes with one setting after another, and
//! pairs of applications; on slices of several sizes, alone and in pairs; pairs that divide SMs
//! and memory channels: promises, looks at the end of epochs, and what has moved up to each.

use gpumodel::report::results::{
    Analysis, AppRecord, CacheCounters, CoRun, CoRunApp, DecisionRecord, DramCounters,
    EnergyRecord, HostTime, KernelRecord, MigrationRecord, MovedSoFar, SCHEMA, UnitShares,
    WorkersRecord,
};

use crate::shown::small;

const NAMES: [&str; 7] = ["BO", "FD", "LM", "MD", "NB", "PF", "TP"];

/// The name of application `app`; long ones are longer than a figure has room for.
fn name(app: u32, long: bool) -> String {
    let short = NAMES[usize::try_from(app % 7).unwrap()];
    match (long, app / 7) {
        (true, _) => format!("suite/{short}-an-application-with-a-long-name-{app}"),
        (false, 0) => format!("suite/{short}"),
        (false, round) => format!("suite/{short}{round}"),
    }
}

/// Cycles of application `app` alone on the whole machine.
pub(crate) fn cycles(app: u32) -> u64 {
    100_000 + 7_000 * u64::from(app)
}

/// A share from 0.05 to 1 that depends on both.
fn share(app: u32, place: u32) -> f64 {
    f64::from((app * 37 + place * 23) % 20 + 1) / 20.0
}

fn shares(app: u32, names: &[&str]) -> UnitShares {
    let own = names.iter().zip(0..).map(|(name, place)| ((*name).to_string(), share(app, place)));
    own.collect()
}

fn solo(app: u32, long: bool) -> AppRecord {
    let kernel = KernelRecord {
        name: format!("_Z7kernel{}v", app % 10),
        cycles: cycles(app),
        end_cycle: cycles(app),
        launch_cycles: 1_000,
        issue_slot_utilization: Some(share(app, 3)),
        residence: Some(shares(app, &["cta_slots", "registers", "shared", "threads"])),
        activity: Some(shares(app, &["dram", "fp32", "fp64", "int", "l1", "l2", "sfu", "shared"])),
        ..KernelRecord::default()
    };
    let kernels = vec![kernel];
    AppRecord { app: name(app, long), cycles: cycles(app), kernels, ..AppRecord::default() }
}

/// Application `app` alone under `scheme` for `cycles`.
pub(crate) fn alone(app: &AppRecord, scheme: &str, setting: (&str, u32), cycles: u64) -> CoRun {
    let host = HostTime { kernel_cycles: cycles, ..HostTime::default() };
    let sectors = CacheCounters { accesses: 1_000_000, ..CacheCounters::default() };
    let run = CoRunApp {
        app: app.app.clone(),
        cycles,
        end_cycle: cycles,
        finished: true,
        ctas_per_sm: 8,
        l1: sectors,
        dram: DramCounters { read_sectors: 500_000, ..DramCounters::default() },
        host: Some(host),
        ..CoRunApp::default()
    };
    CoRun {
        scheme: scheme.into(),
        parameters: [(setting.0.to_string(), setting.1.to_string())].into(),
        until: "all".into(),
        cycles,
        makespan_cycles: cycles,
        apps: vec![run],
        ..CoRun::default()
    }
}

/// The record of application `app` alone: SMs, CTAs, workers, tasks and hosts.
pub(crate) fn studied(app: u32, long: bool) -> Analysis {
    let solo = solo(app, long);
    let whole = cycles(app);
    let mut coruns = Vec::new();
    for sms in [1, 2, 4, 8, 12, 0] {
        let used = u64::from(if sms == 0 { 16 } else { sms }).min(6 + u64::from(app % 7));
        coruns.push(alone(&solo, "solo", ("sms", sms), whole * 16 / used));
    }
    for ctas in [1, 2, 3, 4, 6, 0] {
        let some = u64::from(if ctas == 0 { 8 } else { ctas });
        // Six CTAs of every other application are slower than four.
        let slower = if some == 6 && app.is_multiple_of(2) { 2 } else { 0 };
        let cycles = whole * 102 / 100 * 8 / (some - slower).min(5 + u64::from(app % 3));
        coruns.push(as_workers(alone(&solo, "pt", ("ctas", ctas), cycles), app));
    }
    for task in [1, 2, 5, 10, 100] {
        let own = whole / 40 * u64::from(app % 7);
        let cycles = own + whole / 10 * (9 + 4 / u64::from(task) + u64::from(task / 25));
        coruns.push(as_workers(alone(&solo, "slate", ("task", task), cycles), app));
    }
    for (scheme, [communication, compilation, waiting]) in
        [("cuda", [0, 0, 9]), ("mps-leftover", [2, 0, 9]), ("slate", [4, 2, 9])]
    {
        let mut run = alone(&solo, scheme, ("slice", 1), whole * 2);
        run.apps[0].host = Some(HostTime {
            kernel_cycles: whole,
            communication_cycles: whole * communication / 100,
            compilation_cycles: whole * compilation / 100,
            waiting_cycles: whole * waiting / 100,
        });
        coruns.push(run);
    }
    record(vec![solo], coruns)
}

fn as_workers(mut run: CoRun, app: u32) -> CoRun {
    run.apps[0].workers = Some(WorkersRecord {
        registers: 30 + u64::from(app % 5),
        registers_as_written: 25,
        ..WorkersRecord::default()
    });
    run
}

fn record(solo: Vec<AppRecord>, coruns: Vec<CoRun>) -> Analysis {
    let mut machine = small().machine;
    machine.sms = 16;
    Analysis {
        schema: SCHEMA.into(),
        program: "gpumodel 0.1.0".into(),
        machine,
        solo,
        coruns,
        ..Analysis::default()
    }
}

/// `apps` applications, a record each.
pub(crate) fn apart(apps: u32, long: bool) -> Vec<Analysis> {
    (0..apps).map(|app| studied(app, long)).collect()
}

/// The runs of [`apart`] that say where an application's time went.
pub(crate) fn hosted(apps: u32, long: bool) -> Vec<Analysis> {
    let mut records = apart(apps, long);
    for record in &mut records {
        record.coruns.retain(|run| run.parameters.contains_key("slice"));
    }
    records
}

/// Two applications together for `span`, the second `late`.
pub(crate) fn pair(apps: &[AppRecord; 2], scheme: &str, late: u64, span: u64) -> CoRun {
    let app = |(solo, arrival_cycle, end_cycle): (&AppRecord, u64, u64)| CoRunApp {
        app: solo.app.clone(),
        cycles: end_cycle.saturating_sub(arrival_cycle),
        arrival_cycle,
        end_cycle,
        finished: true,
        ..CoRunApp::default()
    };
    let apps = [(&apps[0], 10, span), (&apps[1], 10 + late, span + 10)].map(app).into();
    CoRun { scheme: scheme.into(), apps, makespan_cycles: span + 10, ..CoRun::default() }
}

/// Pairs of applications, each in both orders of arrival: two records per mix.
pub(crate) fn pairs(mixes: usize, long: bool) -> Vec<Analysis> {
    let both = (0..12).flat_map(|first| (first + 1..12).map(move |second| (first, second)));
    let mix = |(first, second): (u32, u32)| {
        let order = |(a, b): (u32, u32)| {
            let apps = [solo(a, long), solo(b, long)];
            let whole = cycles(a) + cycles(b);
            let run = |scheme: &str, percent: u64| pair(&apps, scheme, 500, whole * percent / 100);
            let gain = u64::from((3 * a + b) % 11);
            let coruns = vec![run("sequential", 100), run("pt", 97), run("sim", 96 - gain)];
            record(apps.to_vec(), coruns)
        };
        [order((first, second)), order((second, first))]
    };
    both.take(mixes).flat_map(mix).collect()
}

/// Instructions per cycle of application `app` on a slice: bound by its SMs, or by its
/// channels and then by its SMs.
fn ipc(app: u32, sms: u32, channels: u32) -> f64 {
    let compute = f64::from(sms) * 60.0;
    let memory = f64::from(channels) * f64::from(40 + 13 * (app % 7));
    if app.is_multiple_of(2) { compute } else { compute.min(memory) }
}

fn on(app: u32, long: bool, (sms, channels): (u32, u32)) -> CoRunApp {
    CoRunApp {
        app: name(app, long),
        cycles: 1_000_000,
        end_cycle: 1_000_000,
        ipc: ipc(app, sms, channels),
        sms: sms.into(),
        channels: channels.into(),
        ..CoRunApp::default()
    }
}

/// A run under `bp` whose first application has a slice of that size.
fn under(apps: Vec<CoRunApp>, (sms, channels): (u32, u32)) -> CoRun {
    let setting = |(key, value): (&str, u32)| (key.to_string(), value.to_string());
    CoRun {
        scheme: "bp".into(),
        parameters: [("sms", sms), ("channels", channels), ("high", 1)].map(setting).into(),
        until: "cycles=1000000".into(),
        cycles: 1_000_000,
        apps,
        ..CoRun::default()
    }
}

/// `apps` applications alone, a record each, with 40 SMs and some channels, and with 16
/// channels and some SMs.
pub(crate) fn sliced(apps: u32, long: bool) -> Vec<Analysis> {
    let record = |app| {
        let by_channels = [4, 8, 16, 24, 32].map(|channels| (40, channels));
        let by_sms = [20, 60, 80].map(|sms| (sms, 16));
        let all = by_channels.into_iter().chain(by_sms);
        let coruns = all.map(|size| under(vec![on(app, long, size)], size)).collect();
        Analysis { coruns, machine: small().machine, ..Analysis::default() }
    };
    (0..apps).map(record).collect()
}

/// A pair whose first application has every size of slice but one, the second the rest.
pub(crate) fn surface(apps: [u32; 2], long: bool) -> Analysis {
    let mut coruns = Vec::new();
    for sms in [20, 40, 60] {
        for channels in [8, 16, 24].into_iter().filter(|&channels| (sms, channels) != (60, 8)) {
            let (own, rest) = ((sms, channels), (80 - sms, 32 - channels));
            let mut run = under(vec![on(apps[0], long, own), on(apps[1], long, rest)], own);
            let share =
                |(app, size): (u32, (u32, u32))| ipc(app, size.0, size.1) / ipc(app, 80, 32);
            run.stp = share((apps[0], own)) + share((apps[1], rest));
            run.antt = 2.0 / run.stp;
            coruns.push(run);
        }
    }
    Analysis { coruns, machine: small().machine, ..Analysis::default() }
}

/// `pairs` such pairs, a record each.
pub(crate) fn surfaces(pairs: u32, long: bool) -> Vec<Analysis> {
    (0..pairs).map(|pair| surface([2 * pair + 1, 2 * pair], long)).collect()
}

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
