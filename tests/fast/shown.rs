//! Records for the tests that show them: the committed one, and one with more of
//! everything.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use gpumodel::report::results::{
    Analysis, AppRecord, CacheCounters, CoRun, CoRunApp, CoRunKernel, CurveRecord, DecisionRecord,
    DramCounters, Interval, KernelRecord, ResidencyRecord, ResidencyRow, SCHEMA,
};

/// A file of `tests/data/report`.
pub(crate) fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/report").join(name)
}

/// The committed record.
pub(crate) fn small() -> Analysis {
    Analysis::read(&data("record.json")).unwrap()
}

/// Numbers that look random and are the same every time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }
}

/// `launches` launches of kernels with long names on four streams.
pub(crate) fn crowded(launches: u32) -> Analysis {
    let mut dice = Dice(u64::from(launches));
    let mut ends = [0_u64; 4];
    let mut app =
        AppRecord { app: "real/a_network_with_a_long_name".into(), ..AppRecord::default() };
    for launch in 1..=launches {
        let stream = usize::try_from(launch % 4).unwrap();
        let cycles = 5_000 + dice.roll(60_000) * dice.roll(10);
        let kernel = kernel(&mut dice, launch, ends[stream], cycles);
        ends[stream] += cycles;
        app.timeline.push(Interval {
            start_cycle: kernel.start_cycle,
            end_cycle: kernel.end_cycle,
            warp_instructions: kernel.warp_instructions,
            dram_sectors: kernel.dram.read_sectors,
            resident_ctas: 8.0,
        });
        app.l1 += kernel.l1;
        app.kernels.push(kernel);
    }
    app.cycles = ends.into_iter().max().unwrap();
    Analysis {
        schema: SCHEMA.into(),
        program: "gpumodel 0.1.0".into(),
        machine: small().machine,
        solo: vec![app],
        ..Analysis::default()
    }
}

fn kernel(dice: &mut Dice, launch: u32, start_cycle: u64, cycles: u64) -> KernelRecord {
    let accesses = dice.roll(1_000_000);
    let cache =
        CacheCounters { accesses, hits: dice.roll(accesses + 1), ..CacheCounters::default() };
    let causes =
        ["issued", "barrier", "long_memory", "short_raw", "execution", "ibuffer", "pipe", "idle"];
    let weights: Vec<f64> =
        causes.iter().map(|_| f64::from(u32::try_from(dice.roll(100)).unwrap()) + 1.0).collect();
    let sum: f64 = weights.iter().sum();
    let stalls = causes.iter().zip(&weights).map(|(c, w)| ((*c).to_string(), w / sum));
    let variant = dice.roll(30);
    let (few, many) = (dice.roll(16), dice.roll(18));
    let (instructions, sectors) = (1 + dice.roll(16 << few), dice.roll(2 << many));
    KernelRecord {
        name: match variant % 3 {
            0 => format!("void library::kernel_with_a_long_name<{variant}, float & \"half\">(int)"),
            1 => format!("a_kernel_of_the_library_that_has_a_name_of_many_words_{variant}"),
            _ => format!("_ZN7library6detail6stage{}ILi4EEvPf", variant % 10),
        },
        id: launch,
        launch,
        stream: u64::from(launch % 4) * 4_000_000_000,
        start_cycle,
        end_cycle: start_cycle + cycles,
        cycles,
        launch_cycles: 5_000,
        warp_instructions: instructions,
        thread_instructions: dice.roll(1 << 24),
        occupancy: 0.5,
        l1: cache,
        l2: cache,
        dram: DramCounters { read_sectors: sectors, ..DramCounters::default() },
        stall_fractions: stalls.collect::<BTreeMap<_, _>>(),
        ..KernelRecord::default()
    }
}

/// A record of `apps` applications that ran together on `sms` SMs under `schemes`
/// schemes, with numbers for every figure of co-runs.
pub(crate) fn together(apps: u32, sms: u32, schemes: u32) -> Analysis {
    let mut dice = Dice(u64::from(apps * 1000 + sms * 10 + schemes));
    let mut record = crowded(2);
    record.machine.sms = u64::from(sms);
    let solo = record.solo[0].clone();
    record.solo = (0..apps).map(|app| AppRecord { app: app_name(app), ..solo.clone() }).collect();
    record.coruns = (0..schemes).map(|scheme| corun(&mut dice, apps, sms, scheme)).collect();
    record
}

fn app_name(app: u32) -> String {
    format!("suite/application-{app}")
}

fn part(dice: &mut Dice) -> f64 {
    f64::from(u32::try_from(dice.roll(1000)).unwrap()) / 1000.0 + 0.001
}

fn corun(dice: &mut Dice, apps: u32, sms: u32, scheme: u32) -> CoRun {
    let cycles = 100_000 + dice.roll(100_000);
    let curve = |app: u32, dice: &mut Dice| CurveRecord {
        app: app_name(app),
        ipc: (0..8).map(|ctas| (ctas != 3).then(|| part(dice))).collect(),
        normalized: Vec::new(),
        chosen: 1 + app % 8,
    };
    // SMs and channels go from application to application.
    let quotas = |app| (0..sms).map(|sm| u32::from(sm % apps == app) * 8).collect::<Vec<_>>();
    let channels: Vec<[u32; 2]> = (0..apps).map(|app| [2 * app, 2 * app + 1]).collect();
    let shares: Vec<_> = (0..apps).map(quotas).collect();
    let decision = DecisionRecord {
        plan: serde_json::json!({ "shares": shares, "channels": channels, "delay": 0 }),
        reason: "the smaller loss".into(),
        curves: (0..apps).map(|app| curve(app, dice)).collect(),
        ..DecisionRecord::default()
    };
    let grid = ResidencyRecord {
        interval_cycles: cycles.div_ceil(128),
        rows: (0..sms * apps)
            .map(|place| ResidencyRow {
                sm: place / apps,
                app_index: place % apps,
                ctas: (0..128).map(|_| part(dice) * 4.0).collect(),
            })
            .collect(),
    };
    CoRun {
        scheme: ["left-over", "warped-slicer", "spatial"][usize::try_from(scheme % 3).unwrap()]
            .into(),
        parameters: [("variant".to_string(), (scheme / 3).to_string())].into(),
        cycles,
        makespan_cycles: cycles,
        apps: (0..apps).map(|app| corun_app(dice, app, cycles)).collect(),
        stp: part(dice),
        antt: part(dice) + 1.0,
        ipc_throughput: 1000.0 * part(dice),
        decisions: vec![decision],
        residency: Some(grid),
        ..CoRun::default()
    }
}

fn corun_app(dice: &mut Dice, app: u32, cycles: u64) -> CoRunApp {
    let weights = ["issued", "barrier", "short_raw", "idle"].map(|cause| (cause, part(dice)));
    let sum: f64 = weights.iter().map(|(_, weight)| weight).sum();
    let progress = part(dice);
    CoRunApp {
        app: app_name(app),
        cycles,
        finished: true,
        slowdown: progress.recip(),
        normalized_progress: progress,
        stall_fractions: weights.map(|(cause, weight)| (cause.to_string(), weight / sum)).into(),
        kernels: vec![CoRunKernel { end_cycle: cycles, ..CoRunKernel::default() }],
        ..CoRunApp::default()
    }
}
