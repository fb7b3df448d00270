//! Does a co-run end under every scheme, arrival and end condition?

use std::path::{Path, PathBuf};

use gpumodel::app::{AnalyzeRequest, AppName, RunError, Unwatched, analyze};
use gpumodel::report::results::{Analysis, CoRun};
use gpumodel::sim::MachineError;
use proptest::prelude::*;

use crate::sharing::{store, together};

/// Words of a scheme with random settings.
fn any_scheme() -> impl Strategy<Value = String> {
    let plain = ["sequential", "left-over", "fcfs", "even", "spatial"].map(String::from);
    prop_oneof![
        proptest::sample::select(plain.to_vec()),
        (1_u32..6).prop_map(|most| format!("oracle:most={most}")),
        any_slicer(),
        any_workers(),
    ]
}

/// Schemes in software, in a few of their settings.
fn any_workers() -> impl Strategy<Value = String> {
    let slices = (0.05_f64..20.0, 0.0_f64..1.0);
    prop_oneof![
        (1_u64..5, 0_u64..4).prop_map(|(task, ctas)| format!("pt:task={task}:ctas={ctas}")),
        (0.0_f64..5.0, 0_u64..4000, 1_u64..4)
            .prop_map(|(us, window, task)| format!("sim:latency_us={us:.3}:window={window}:task={task}")),
        (1_u64..12, 0.0_f64..3.0, proptest::sample::select(vec!["even", "saturate"]), 0.0_f64..900.0)
            .prop_map(|(task, us, split, high)| format!(
                "slate:task={task}:relaunch_us={us:.3}:split={split}:memory_high={high:.1}:window=2000"
            )),
        slices.prop_map(|(slice, switch)| format!("cuda:slice_us={slice:.3}:switch_us={switch:.3}")),
    ]
}

fn any_slicer() -> impl Strategy<Value = String> {
    let times = (0_u64..4000, 0_u64..2000, 1_u64..3000, 0_u64..3000, 0_u64..20_000);
    let words = (
        proptest::sample::select(vec!["performance", "loss"]),
        proptest::sample::select(vec!["printed", "inverse", "off"]),
        proptest::sample::select(vec!["water-filling", "exact"]),
        proptest::sample::select(vec!["online", "offline"]),
    );
    (times, words, 0.0..4.0, 0.0..2.0).prop_map(
        |((warmup, settle, window, delay, rest), (on, scaling, solver, profile), factor, shift)| {
            format!(
                "warped-slicer:warmup={warmup}:settle={settle}:window={window}:delay={delay}\
                 :rest={rest}:threshold_on={on}:scaling={scaling}:solver={solver}\
                 :profile={profile}:factor={factor:.3}:ipc_shift={shift:.3}"
            )
        },
    )
}

fn any_end() -> impl Strategy<Value = String> {
    let word = proptest::sample::select(vec!["all", "first", "targets", "first-run"]);
    prop_oneof![
        2 => word.clone().prop_map(String::from),
        1 => (1_u64..20_000).prop_map(|cycles| format!("cycles={cycles}")),
        1 => (word, 1_u64..20_000).prop_map(|(who, cycles)| format!("{who},cycles={cycles}")),
    ]
}

/// Kernels by number, and the cycles at which their applications come.
fn any_mix() -> impl Strategy<Value = Vec<(usize, u64)>> {
    let arrival = prop_oneof![Just(0), 0_u64..15_000];
    proptest::collection::vec((0_usize..3, arrival), 2..=3)
}

/// The request from the drawn values; targets always have the required window.
fn request(
    stores: &[PathBuf],
    mix: &[(usize, u64)],
    (machine, scheme): (&str, &str),
    (end, window): (&str, Option<u64>),
) -> AnalyzeRequest {
    let name = |place: usize| format!("app{place}");
    let app = |(place, &(kernel, _)): (usize, &(usize, u64))| AppName {
        name: name(place),
        path: stores[kernel].clone(),
    };
    let apps: Vec<AppName> = mix.iter().enumerate().map(app).collect();
    let arrivals = mix.iter().enumerate().map(|(place, &(_, cycle))| (name(place), cycle));
    let needs = end.starts_with("targets");
    AnalyzeRequest {
        until: end.parse().unwrap(),
        window: window.or(needs.then_some(2000)),
        arrivals: arrivals.collect(),
        ..together(&apps, machine, &[scheme])
    }
}

/// It ended where it was to end, and what it says of applications hangs together.
fn ended(run: &CoRun, request: &AnalyzeRequest, context: &str) {
    let limit = request.until.cycles.unwrap_or(u64::MAX);
    assert!(run.cycles <= limit, "{context}: {} cycles", run.cycles);
    let done = run.apps.iter().filter(|app| app.finished).count();
    let least = match request.until.when {
        _ if run.cycles == limit => 0,
        gpumodel::app::EndWhen::First => 1,
        gpumodel::app::EndWhen::Clock => 0,
        _ => run.apps.len(),
    };
    assert!(done >= least, "{context}: {done} are done after {} cycles", run.cycles);
    for app in &run.apps {
        assert!(app.end_cycle <= run.cycles, "{context}: {app:?}");
        assert!(!app.slowdown.is_nan() && app.slowdown > 0.0, "{context}: {app:?}");
        assert!(app.normalized_progress.is_finite(), "{context}: {app:?}");
        let causes: f64 = app.stall_fractions.values().sum();
        assert!(app.cycles == 0 || (causes - 1.0).abs() < 1e-2, "{context}: {causes} {app:?}");
    }
    let numbers = [run.stp, run.ipc_throughput, run.makespan_speedup, run.harmonic_speedup];
    assert!(numbers.iter().all(|number| number.is_finite() && *number >= 0.0), "{context}");
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 60, ..ProptestConfig::with_cases(60) })]

    #[test]
    fn any_settings_end(
        scheme in any_scheme(),
        end in any_end(),
        mix in any_mix(),
        window in proptest::option::of(1_u64..10_000),
        machine in proptest::sample::select(vec!["warped-slicer", "ilp-smra", "accelsim-titanx"]),
    ) {
        let folder = std::sync::LazyLock::force(&STORES);
        let stores = ["maths", "copy", "tile"].map(|name| folder.path().join(format!("{name}.gpt")));
        let request = request(&stores, &mix, (machine, &scheme), (&end, window));
        let context = format!("{scheme} on {machine} until {end} of {mix:?} in {window:?}");
        let analysis = match analyze(&request, &Unwatched) {
            Ok(analysis) => analysis,
            // A run without an end, and a window without use: both are said.
            Err(
                RunError::Starved { .. }
                | RunError::Machine { source: MachineError::Starved { .. }, .. },
            ) if end == "first-run" => return Ok(()),
            Err(RunError::UnusedWindow(_)) if window.is_some() => return Ok(()),
            Err(RunError::EmptyWindow { .. }) if end.starts_with("targets") => return Ok(()),
            Err(error) => panic!("{context}: {error:?}"),
        };
        ended(&analysis.coruns[0], &request, &context);
        let text = analysis.to_json();
        let again = Analysis::from_json(text.as_bytes(), Path::new("record")).unwrap();
        prop_assert_eq!(again.to_json(), text);
    }
}

/// The kernels, made once for all cases.
static STORES: std::sync::LazyLock<tempfile::TempDir> = std::sync::LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    for kernel in ["maths", "copy", "tile"] {
        store(folder.path(), kernel);
    }
    folder
});

#[test]
fn a_useless_or_missing_window_is_refused_before_any_read() {
    let path = PathBuf::from("/no/such/store.gpt");
    let apps = ["a", "b"].map(|name| AppName { name: name.to_owned(), path: path.clone() });
    let refused = |end: &str, window: Option<u64>| {
        let mut request = together(&apps, "warped-slicer", &["even"]);
        (request.until, request.window) = (end.parse().unwrap(), window);
        analyze(&request, &Unwatched).unwrap_err()
    };
    for end in ["all", "first", "first-run", "first-run,cycles=500"] {
        let error = refused(end, Some(1000));
        assert!(matches!(error, RunError::UnusedWindow(_)), "{end}: {error}");
    }
    assert!(matches!(refused("targets", None), RunError::NoWindow));
    let none = refused("targets", Some(1000)).to_string();
    assert!(none.contains("/no/such/store.gpt"), "{none}");
}

#[test]
fn a_window_that_sets_no_target_is_refused_and_a_short_one_is_noted() {
    let folder = tempfile::tempdir().unwrap();
    let path = store(folder.path(), "maths");
    let apps = ["a", "b"].map(|name| AppName { name: name.to_owned(), path: path.clone() });
    let run = |window: u64| {
        let mut request = together(&apps, "v100", &["even"]);
        (request.until, request.window) = ("targets".parse().unwrap(), Some(window));
        analyze(&request, &Unwatched)
    };
    // A launch takes 2000 cycles there; then the code is read.
    for window in [1, 1000, 2000, 2001] {
        let error = run(window).unwrap_err();
        assert!(matches!(error, RunError::EmptyWindow { .. }), "{window}: {error}");
        let said = error.to_string();
        let first = format!("first {window} cycles alone");
        let wanted = ["application a", &first, "takes 2000 cycles", "--window 2"];
        assert!(wanted.iter().all(|word| said.contains(word)), "{said}");
    }
    // The first that sets one: more is done between two looks than was asked for.
    let short = (2400..4000).step_by(50).find_map(|window| run(window).ok()).unwrap();
    assert!(short.notes.iter().any(|note| note.contains("10 times the 2000")), "{:?}", short.notes);
    let notes = &short.coruns[0].notes;
    assert!(notes.iter().any(|note| note.contains("progress is overstated")), "{notes:?}");
    let long = run(20_000).unwrap();
    assert!(!long.notes.iter().any(|note| note.contains("--window")), "{:?}", long.notes);
    let run = &long.coruns[0];
    assert!(run.notes.is_empty() && run.stp <= 2.1, "{} {:?}", run.stp, run.notes);
}

#[test]
fn an_endless_run_names_its_scheme_and_the_starved_application() {
    let folder = tempfile::tempdir().unwrap();
    let path = store(folder.path(), "maths");
    let apps = ["one", "two"].map(|name| AppName { name: name.to_owned(), path: path.clone() });
    let mut request = together(&apps, "warped-slicer", &["even", "sequential"]);
    request.until = "first-run".parse().unwrap();
    let error = analyze(&request, &Unwatched).unwrap_err().to_string();
    assert!(error.contains("under scheme sequential application two never gets"), "{error}");
    assert!(error.contains("--until first-run,cycles="), "{error}");
    request.until = "first-run,cycles=20000".parse().unwrap();
    assert_eq!(analyze(&request, &Unwatched).unwrap().coruns.len(), 2);
}

#[test]
fn an_impossible_run_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = store(folder.path(), "copy");
    let apps = ["a", "b"].map(|name| AppName { name: name.to_owned(), path: path.clone() });
    let refused = |change: fn(&mut AnalyzeRequest)| {
        let mut request = together(&apps, "warped-slicer", &["even"]);
        change(&mut request);
        analyze(&request, &Unwatched).unwrap_err().to_string()
    };
    let late = refused(|request| request.arrivals = vec![(String::from("c"), 5)]);
    assert!(late.contains('c') && late.contains("a, b"), "{late}");
    let twice = refused(|request| {
        request.arrivals = [5, 6].map(|cycle| (String::from("b"), cycle)).into();
    });
    assert!(twice.contains("application b arrives twice; give --arrive b=CYCLE once"), "{twice}");
    let window = refused(|request| request.until = "targets".parse().unwrap());
    assert!(window.contains("--window"), "{window}");
    let scheme = refused(|request| request.schemes = vec![String::from("evn")]);
    assert!(scheme.contains("did you mean even?"), "{scheme}");
}
