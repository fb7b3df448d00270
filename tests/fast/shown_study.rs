//! Records of studies: applications alone under schemes with one setting after
//! another, and pairs of applications.

use gpumodel::report::results::{
    Analysis, AppRecord, CacheCounters, CoRun, CoRunApp, DramCounters, HostTime, KernelRecord,
    SCHEMA, UnitShares, WorkersRecord,
};

use crate::shown::small;

const NAMES: [&str; 7] = ["BO", "FD", "LM", "MD", "NB", "PF", "TP"];

/// The name of application `app`; long ones are longer than a figure has room for.
pub(crate) fn name(app: u32, long: bool) -> String {
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
