//! Does every machine run applications under every scheme, to the end, whole and within
//! the rules? Are equal applications equal?
//!
//! The kernels are `sharing/…` in `tests/data/kernels.txt`.

use std::path::{Path, PathBuf};

use gpumodel::app::{AnalyzeRequest, AppName, Unwatched, analyze};
use gpumodel::core::units::Dim3;
use gpumodel::policy::{Row, TABLE};
use gpumodel::report::results::{Analysis, CoRun, CoRunApp};

use crate::common::small_files::kernel_store;

/// Every scheme for several applications, with phases as short as the kernels are.
pub(crate) const SCHEMES: [&str; 15] = [
    "sequential",
    "left-over",
    "fcfs",
    "even",
    "spatial",
    "warped-slicer:warmup=200:settle=100:window=300:delay=50",
    "oracle:most=2",
    "smra:t_c=2000:rest=1",
    "profile-based:step=24:window=500",
    "cuda:slice_us=20:switch_us=0.1",
    "time-slicing:quantum_us=20:switch_us=0.1",
    "mps-leftover",
    "mps-share",
    "cd-search:epoch=5000:step=2:min_sms=1",
    "qos-mps-share:window=500",
];

/// Those under which kernels run as workers.
pub(crate) const WORKERS: [&str; 4] = [
    "pt",
    "sim:latency_us=0.2:window=1000",
    "slate:task=3:relaunch_us=0.1",
    "slate:task=1:split=saturate:window=300:communication=0:compilation=0:memory_high=1",
];

/// The kernel as a store in `folder`.
pub(crate) fn store(folder: &Path, kernel: &str) -> PathBuf {
    kernel_store(folder, &format!("sharing/{kernel}"))
}

/// Each kernel as a separate application, called `0`, `1`, ... by place.
fn apps(folder: &Path, kernels: &[&str]) -> Vec<AppName> {
    let app = |(place, kernel): (usize, &&str)| AppName {
        name: place.to_string(),
        path: store(folder, kernel),
    };
    kernels.iter().enumerate().map(app).collect()
}

/// A request for `apps` together under `schemes`.
pub(crate) fn together(apps: &[AppName], machine: &str, schemes: &[&str]) -> AnalyzeRequest {
    AnalyzeRequest {
        schemes: schemes.iter().map(|&scheme| scheme.to_owned()).collect(),
        ..AnalyzeRequest::new(apps.to_vec(), machine, Path::new("/no/such/folder"))
    }
}

fn run(request: &AnalyzeRequest) -> Analysis {
    analyze(request, &Unwatched).unwrap_or_else(|error| panic!("{:?}: {error:?}", request.machine))
}

fn close(found: f64, expected: f64, share: f64) -> bool {
    (found / expected - 1.0).abs() <= share
}

#[allow(clippy::cast_precision_loss, reason = "runs are below 2^53 cycles")]
fn float(count: u64) -> f64 {
    count as f64
}

/// All of its CTAs ran once, and its work equals its work alone.
fn whole(app: &CoRunApp, alone: &gpumodel::report::results::AppRecord, context: &str) {
    assert!(app.finished && app.runs == 1 && app.killed_ctas == 0, "{context}: {app:?}");
    let ctas = |grid: Dim3| grid.count();
    let started: Vec<u64> = app.kernels.iter().map(|kernel| kernel.ctas).collect();
    let expected: Vec<u64> = alone.kernels.iter().map(|kernel| ctas(kernel.grid)).collect();
    assert_eq!(started, expected, "{context}: CTAs by launch");
    assert_eq!(app.warp_instructions, alone.warp_instructions, "{context}");
    assert_eq!(app.thread_instructions, alone.thread_instructions, "{context}");
    match &app.workers {
        None => assert_eq!(app.l1.accesses, alone.l1.accesses, "{context}: sectors asked for"),
        Some(workers) => {
            assert!(workers.workers > 0 && workers.tasks > 0, "{context}: {workers:?}");
            assert!(workers.added_instructions > 0, "{context}: {workers:?}");
        }
    }
    assert!(app.slowdown.is_finite() && app.slowdown > 0.85, "{context}: {}", app.slowdown);
    let causes: f64 = app.stall_fractions.values().sum();
    assert!((causes - 1.0).abs() < 1e-3, "{context}: causes sum to {causes}");
    for kernel in &app.kernels {
        assert!(kernel.start_cycle >= app.arrival_cycle, "{context}: {kernel:?}");
        let span = kernel.start_cycle < kernel.end_cycle && kernel.end_cycle <= app.end_cycle;
        assert!(span, "{context}: {kernel:?} of {app:?}");
    }
}

/// Decisions follow each other, and no SM holds more CTAs than it has slots.
fn lawful(run: &CoRun, slots: u32, context: &str) {
    let cycles: Vec<u64> = run.decisions.iter().map(|decision| decision.cycle).collect();
    assert!(cycles.is_sorted() && cycles[0] == 0, "{context}: {cycles:?}");
    assert!(run.decisions.iter().all(|decision| !decision.reason.is_empty()), "{context}");
    let residency = run.residency.as_ref().unwrap();
    let most = residency.rows.iter().map(|row| row.sm).max().unwrap();
    for sm in 0..=most {
        let rows: Vec<_> = residency.rows.iter().filter(|row| row.sm == sm).collect();
        let intervals = rows.iter().map(|row| row.ctas.len()).max().unwrap_or(0);
        for interval in 0..intervals {
            let held: f64 = rows.iter().filter_map(|row| row.ctas.get(interval)).sum();
            assert!(held <= f64::from(slots) + 1e-6, "{context}: {held} CTAs on SM {sm}");
        }
    }
}

fn sound(analysis: &Analysis, slots: u32) {
    let sequence: u64 = analysis.solo.iter().map(|app| app.cycles).sum();
    for run in &analysis.coruns {
        let context = format!("{} on {}", run.scheme, analysis.machine.name);
        run.apps.iter().zip(&analysis.solo).for_each(|(app, solo)| whole(app, solo, &context));
        lawful(run, slots, &context);
        let last = run.apps.iter().map(|app| app.end_cycle).max();
        assert_eq!((Some(run.makespan_cycles), Some(run.cycles)), (last, last), "{context}");
        // No application waits longer than all of them take alone, plus the cost of sharing;
        // for kernels as short as these a worker's tasks cost as much as the blocks.
        // Where DRAM banks hold their request, more streams at once open rows more often.
        let holds = analysis.machine.name.starts_with("warped-slicer");
        let most = match (run.apps[0].workers.is_some(), holds) {
            (true, _) => 6.0,
            (false, true) => 1.5,
            (false, false) => 1.3,
        };
        assert!(float(run.cycles) < most * float(sequence), "{context}: {} cycles", run.cycles);
        let shares: f64 = run.apps.iter().map(|app| app.dram_share).sum();
        assert!((shares - 1.0).abs() < 1e-9, "{context}: DRAM shares sum to {shares}");
        let bytes: u64 = run.apps.iter().map(|app| app.dram.bytes()).sum();
        assert_eq!(bytes, run.dram.bytes(), "{context}: bytes of all are those of the run");
    }
    let text = analysis.to_json();
    let again = Analysis::from_json(text.as_bytes(), Path::new("record")).unwrap();
    assert_eq!(again.to_json(), text, "{}", analysis.machine.name);
}

#[test]
fn every_scheme_runs_on_every_machine() {
    let set = [&SCHEMES[..], &WORKERS].concat();
    // The second mix, of equal kernels, runs under schemes for three on these only.
    let twice = ["titan-xp", "ugpu", "v100", "warped-slicer"];
    let is_set = |row: &&Row| set.iter().any(|scheme| scheme.split(':').next() == Some(row.name));
    let elsewhere = |row: &&Row| row.name == "solo" || row.channels || row.instances;
    // Schemes without settings above run with their defaults.
    let others: Vec<&Row> =
        TABLE.iter().filter(|row| !elsewhere(row)).filter(|row| !is_set(row)).collect();
    let folder = tempfile::tempdir().unwrap();
    let models = gpumodel::models();
    let mixes =
        [apps(folder.path(), &["maths", "copy", "tile"]), apps(folder.path(), &["tile"; 2])];
    for machine in models.machine_names() {
        let slots = models.machine(machine, &[]).unwrap().machine.sm.max_ctas;
        for mix in &mixes {
            let again = mix.len() == 2 && !twice.contains(&machine);
            let fits = |row: &&&Row| row.serves(mix.len()) && !(again && row.serves(3));
            let served = others.iter().filter(fits).map(|row| row.name);
            let set = if again { &[] } else { &set[..] };
            let all: Vec<&str> = set.iter().copied().chain(served).collect();
            if all.is_empty() {
                continue;
            }
            let analysis = run(&together(mix, machine, &all));
            assert_eq!(analysis.coruns.len(), all.len(), "{machine}: {all:?}");
            sound(&analysis, slots);
        }
    }
}

#[test]
fn the_record_is_the_same_on_one_and_two_threads() {
    let folder = tempfile::tempdir().unwrap();
    let mix = apps(folder.path(), &["copy", "tile", "maths"]);
    for machine in ["warped-slicer", "a100", "accelsim-rtx2060"] {
        let request = together(&mix, machine, &[&SCHEMES[..], &WORKERS].concat());
        let [one, two] = [1, 2].map(|threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| run(&request).to_json())
        });
        assert!(one == two, "{machine}");
    }
}

#[test]
fn a_single_application_under_a_scheme_is_as_fast_as_alone() {
    let folder = tempfile::tempdir().unwrap();
    let mut schemes = SCHEMES.to_vec();
    schemes.push("solo");
    for machine in ["warped-slicer", "ugpu", "v100", "accelsim-qv100"] {
        for kernel in ["copy", "tile"] {
            let analysis = run(&together(&apps(folder.path(), &[kernel]), machine, &schemes));
            assert_eq!(analysis.coruns.len(), schemes.len(), "one application is a run too");
            for run in &analysis.coruns {
                let (slowdown, stp) = (run.apps[0].slowdown, run.stp);
                let found = format!("{} on {machine}: {slowdown}, {stp}", run.scheme);
                assert!(close(slowdown, 1.0, 0.01) && close(stp, 1.0, 0.01), "{found}");
            }
        }
    }
}

#[test]
fn the_scheme_for_one_application_refuses_two() {
    let folder = tempfile::tempdir().unwrap();
    let request = together(&apps(folder.path(), &["copy", "tile"]), "warped-slicer", &["solo"]);
    let error = analyze(&request, &Unwatched).unwrap_err().to_string();
    assert!(error.contains("solo") && error.contains("sequential"), "{error}");
}

#[test]
fn schemes_that_give_channels_refuse_machines_whose_pages_lie_in_all_of_them() {
    let folder = tempfile::tempdir().unwrap();
    let mix = apps(folder.path(), &["copy", "tile"]);
    let owners: Vec<&Row> = TABLE.iter().filter(|row| row.channels).collect();
    assert!(owners.len() > 9, "{}", owners.len());
    for row in owners {
        let refused = analyze(&together(&mix, "warped-slicer", &[row.name]), &Unwatched);
        let error = refused.unwrap_err();
        let cause = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
        assert!(error.to_string().starts_with(&format!("scheme {} gives", row.name)), "{error}");
        assert!(cause.contains("keeps a page in some of them"), "{cause}");
    }
}

/// An instance shares nothing: next to a stream a kernel takes as long as in an empty machine,
/// but for where its addresses lie.
#[test]
fn instances_do_not_disturb_each_other() {
    let folder = tempfile::tempdir().unwrap();
    for machine in ["a100", "h100"] {
        let alone = |kernel: &str, profile: &str| {
            let scheme = format!("mig:profiles={profile}");
            let mix = apps(folder.path(), &[kernel]);
            run(&together(&mix, machine, &[&scheme])).coruns[0].apps[0].clone()
        };
        let mix = apps(folder.path(), &["copy", "tile"]);
        let both = run(&together(&mix, machine, &["mig:profiles=4g+3g"])).coruns.remove(0);
        let parts = [("copy", "4g"), ("tile", "3g")].map(|(kernel, part)| alone(kernel, part));
        for (one, other) in both.apps.iter().zip(&parts) {
            assert_eq!((one.sms, one.channels), (other.sms, other.channels), "{machine}");
            assert!(close(float(one.cycles), float(other.cycles), 0.02), "{machine} {}", one.app);
        }
        assert_eq!(both.apps[0].channels, both.apps[1].channels, "half of the channels each");
    }
}

#[test]
fn the_schemes_for_two_applications_refuse_three() {
    let folder = tempfile::tempdir().unwrap();
    let mix = apps(folder.path(), &["copy", "tile", "maths"]);
    for scheme in ["bp-bs", "bp-sb"] {
        let error =
            analyze(&together(&mix, "ugpu", &[scheme]), &Unwatched).unwrap_err().to_string();
        assert!(error.contains(scheme) && error.contains("between 2 applications"), "{error}");
    }
}

#[test]
fn identical_applications_progress_equally() {
    let folder = tempfile::tempdir().unwrap();
    // 192 CTAs of each: 16 SMs hold 4 and 4 in six waves, or 8 SMs 8 of each in three.
    let schemes = ["fcfs", "even", "spatial", SCHEMES[5]];
    let analysis =
        run(&together(&apps(folder.path(), &["copy"; 2]), "warped-slicer-1400", &schemes));
    for run in &analysis.coruns {
        let [one, other] = [0, 1].map(|app: usize| float(run.apps[app].cycles));
        // Samples of two alike applications come from different SMs.
        let share = if run.scheme.starts_with("warped-slicer") { 0.15 } else { 0.02 };
        assert!(close(one, other, share), "{}: {one} and {other}", run.scheme);
    }
}

#[test]
fn streams_share_bandwidth_by_demand_and_the_smaller_share_suffers_more() {
    let folder = tempfile::tempdir().unwrap();
    let mix = apps(folder.path(), &["stream", "trickle"]);
    let mut request = together(&mix, "warped-slicer-1400", &["fcfs", "even"]);
    request.until = "cycles=20000".parse().unwrap();
    let analysis = run(&request);
    let alone =
        |app: usize| float(analysis.solo[app].dram.bytes()) / float(analysis.solo[app].cycles);
    assert!(
        close(alone(0), alone(1), 0.15),
        "either saturates the DRAM: {} {}",
        alone(0),
        alone(1)
    );
    for run in &analysis.coruns {
        let [stream, trickle] = [&run.apps[0], &run.apps[1]];
        // 24 warps against 8 on every SM, with as many loads under way in each.
        assert!((0.70..0.80).contains(&stream.dram_share), "{}", stream.dram_share);
        assert!(trickle.slowdown > 2.0 * stream.slowdown, "{trickle:?} {stream:?}");
    }
}
