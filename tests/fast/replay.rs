//! Do a record's decisions describe everything that its scheme did?

use gpumodel::app::{AppName, Unwatched, analyze};
use gpumodel::report::results::CoRun;

use crate::sharing::{SCHEMES, WORKERS, store, together};

fn named(folder: &std::path::Path) -> Vec<AppName> {
    let app = |kernel: &str| AppName { name: kernel.into(), path: store(folder, kernel) };
    ["copy", "tile", "maths"].map(app).into()
}

/// The outcome of a co-run.
fn outcome(run: &CoRun) -> String {
    let bare = CoRun {
        scheme: String::new(),
        parameters: std::collections::BTreeMap::new(),
        decisions: Vec::new(),
        ..run.clone()
    };
    serde_json::to_string(&bare).unwrap()
}

#[test]
fn a_repeated_record_is_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let apps = named(folder.path());
    let schemes = [&SCHEMES[..], &WORKERS].concat();
    let analysis = analyze(&together(&apps, "titan-xp", &schemes), &Unwatched).unwrap();
    let path = folder.path().join("record.json");
    std::fs::write(&path, analysis.to_json()).unwrap();
    let replays: Vec<String> =
        (1..=schemes.len()).map(|run| format!("replay:{}:run={run}", path.display())).collect();
    let replays: Vec<&str> = replays.iter().map(String::as_str).collect();
    let again = analyze(&together(&apps, "titan-xp", &replays), &Unwatched).unwrap();
    for (first, second) in analysis.coruns.iter().zip(&again.coruns) {
        assert_eq!(outcome(first), outcome(second), "{}", first.scheme);
        assert_eq!(second.scheme, "replay");
        assert_eq!(second.parameters["of"], first.scheme);
    }
}

#[test]
fn an_unrepeatable_record_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let apps = named(folder.path());
    let analysis = analyze(&together(&apps, "k40c", &["pt"]), &Unwatched).unwrap();
    let path = folder.path().join("record.json");
    std::fs::write(&path, analysis.to_json()).unwrap();
    let refused = |scheme: &str, machine: &str| {
        analyze(&together(&apps, machine, &[scheme]), &Unwatched).unwrap_err().to_string()
    };
    let missing = refused("replay:no-such.json", "k40c");
    assert!(missing.contains("no-such.json"), "{missing}");
    let second = refused(&format!("replay:{}:run=2", path.display()), "k40c");
    assert!(second.contains("has 1 co-runs"), "{second}");
    let word = refused(&format!("replay:{}:run=x", path.display()), "k40c");
    assert!(word.contains("from 1"), "{word}");
    let record = analyze(&together(&apps, "k40c", &["sim"]), &Unwatched).unwrap();
    std::fs::write(&path, record.to_json()).unwrap();
    let replay = format!("replay:{}", path.display());
    let mut late = together(&apps, "k40c", &[replay.as_str()]);
    late.arrivals = vec![(apps[0].name.clone(), 4_000_000)];
    let waits = analyze(&late, &Unwatched).unwrap_err().to_string();
    assert!(waits.contains("differ from those of the record"), "{waits}");
    let mut record = analysis;
    record.coruns[0].decisions[0].plan["shares"] = serde_json::json!([1]);
    std::fs::write(&path, record.to_json()).unwrap();
    let shares = refused(&format!("replay:{}", path.display()), "k40c");
    assert!(shares.contains("replay"), "{shares}");
}

#[test]
fn decisions_for_other_sms_name_the_application_and_both_counts() {
    let folder = tempfile::tempdir().unwrap();
    let apps = named(folder.path());
    let analysis = analyze(&together(&apps, "k40c", &["spatial"]), &Unwatched).unwrap();
    let path = folder.path().join("record.json");
    std::fs::write(&path, analysis.to_json()).unwrap();
    let replay = format!("replay:{}", path.display());
    let error = analyze(&together(&apps, "titan-xp", &[&replay]), &Unwatched).unwrap_err();
    assert!(error.to_string().contains("decisions of the record do not fit here"), "{error}");
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert_eq!(cause, "application number 1 has quotas for 15 SMs; the machine has 30");
}
