//! Are records, reference tables and tables of sweeps, whatever they hold, refused with their place or read
//! again as they were, compared and drawn?

#![no_main]

use std::collections::BTreeSet;
use std::path::Path;

use gpumodel::app::{AnalyzeRequest, AppName, Unwatched, analyze};
use gpumodel::report::figure::{FIGURES, FigureInput};
use gpumodel::report::paper::Reproduction;
use gpumodel::report::results::{
    Analysis, Comparison, FailedCell, RecordError, ReferenceTable, SweepFiles, SweepRecord,
    alone_once, cells_of_table, joined,
};
use gpumodel::report::table;
use gpumodel_fuzz::{Place, named, split};

const RECORD: &[u8] = include_bytes!("../../../data/report/record.json");

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((kind, rest)) = split(bytes) else { return };
    match kind {
        0..160 => analysis(usize::from(kind), rest),
        160..220 => reference(rest),
        220..230 => cells(rest),
        230..240 => table_of_cells(rest),
        _ => reproduction(rest),
    }
});

fn analysis(figure: usize, bytes: &[u8]) {
    let record = match Analysis::from_json(bytes, Path::new("r.json")) {
        Ok(record) => record,
        Err(error) => return named(&error, "r.json"),
    };
    let text = record.to_json();
    let again = Analysis::from_json(text.as_bytes(), Path::new("again.json"));
    assert_eq!(again.as_ref().ok(), Some(&record), "{:?}", again.as_ref().err());
    assert!(!record.kernels_csv().is_empty());
    let _ = [table::solo(&record, None), table::corun(&record, None), table::queue(&record, None)];
    let drawn = &FIGURES[figure % FIGURES.len()];
    if let Ok(drawing) = drawn.draw(&FigureInput::new(std::slice::from_ref(&record))) {
        assert!(drawing.svg.starts_with("<svg"), "{}", drawn.name);
    }
    if !record.coruns.is_empty() {
        replay(&record, bytes);
    }
}

/// The decisions of the record are read; the machine for them is not there.
fn replay(record: &Analysis, bytes: &[u8]) {
    let place = Place::new();
    let path = place.file("r.json", bytes);
    for run in 1..=record.coruns.len().min(2) {
        let apps = record.coruns[run - 1].apps.iter();
        let app = |name: &String| AppName { name: name.clone(), path: place.at("no.gpt") };
        let apps = apps.map(|row| app(&row.app)).collect();
        let mut request = AnalyzeRequest::new(apps, "no-such-machine", &place.at("cache"));
        request.schemes = vec![format!("replay:{}:run={run}", path.display())];
        let error = analyze(&request, &Unwatched).expect_err("a machine that is not there");
        assert!(!error.to_string().is_empty());
    }
}

fn reference(bytes: &[u8]) {
    let place = Place::new();
    let mut records =
        vec![Analysis::from_json(RECORD, Path::new("r.json")).expect("a good record")];
    alone_once(&mut records);
    let table = match ReferenceTable::read_for(&place.file("t.csv", bytes), &records) {
        Ok(table) => table,
        Err(error) => return named(&error, "t.csv"),
    };
    for cycles in [None, Some(5000)] {
        let comparison = Comparison::new(&records, &table, cycles);
        assert!(!comparison.to_json().is_empty());
        if comparison.answered(&table).is_ok() {
            let _ = table::comparison(&comparison, None);
            let input = FigureInput::new(&records).with(&comparison);
            let last = FIGURES.last().expect("figures");
            let _ = last.draw(&input);
        }
    }
}

/// A file of a sweep: its list, a cell's record or a failure.
fn cells(bytes: &[u8]) {
    let place = Place::new();
    let list = place.file("sweep.json", bytes);
    place.file("cells/a.json", bytes);
    let failed = place.file("failed/b.json", bytes);
    let check = |result: Result<String, RecordError>, name: &str| match result {
        Ok(text) => assert!(!text.is_empty()),
        Err(error) => named(&error, name),
    };
    check(SweepRecord::read(&list).map(|record| record.to_json()), "sweep.json");
    check(FailedCell::read(&failed).map(|record| record.to_json()), "b.json");
    let files = SweepFiles::new(place.path());
    if let Ok(listing) = files.listing() {
        let outcomes = listing.cells.iter().filter_map(|cell| files.outcome(&cell.key).ok()?);
        let _ = joined(outcomes.filter_map(Result::ok).collect());
    }
}

/// A table of a sweep's cells, by its name and without.
fn table_of_cells(bytes: &[u8]) {
    for name in ["t.csv", "t"] {
        match cells_of_table(bytes, Path::new(name)) {
            Ok(Some(keys)) => {
                let once: BTreeSet<&String> = keys.iter().collect();
                assert!(once.len() == keys.len() && keys.iter().all(|key| !key.is_empty()));
                let again = format!("key\n{}\n", keys.join("\n"));
                if keys.iter().all(|key| key.bytes().all(|byte| byte.is_ascii_alphanumeric())) {
                    let again = cells_of_table(again.as_bytes(), Path::new("again.csv"));
                    assert_eq!(again.expect("a table"), Some(keys));
                }
            }
            Ok(None) => assert_eq!(name, "t", "it is called a table"),
            Err(error) => named(&error, name),
        }
    }
}

fn reproduction(bytes: &[u8]) {
    let place = Place::new();
    match Reproduction::read(&place.file("r.json", bytes)) {
        Ok(read) => {
            let again = place.file("again.json", read.to_json().as_bytes());
            let again = Reproduction::read(&again).expect("what was just written");
            assert_eq!(again.counts(), read.counts());
            let folder = place.at("report");
            let _ = gpumodel::report::paper::write_reproduction(&read, &folder);
        }
        Err(error) => named(&error, "r.json"),
    }
}
