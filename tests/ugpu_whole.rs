//! Does `reports/whole/ugpu.csv` follow from the records of the parts that have been run?
//!
//! `BLESS=1 cargo test --test all ugpu_whole` writes it anew from the archives of
//! `reports/records`, as `gpumodel reproduce ugpu --so-far --mixed-versions` does from the
//! same records in the folders of its parts.

use std::collections::BTreeMap;
use std::fs;

use gpumodel::report::paper::{
    Headline, HeadlineRow, Paper, ReproducedPaper, Reproduction, RunSelection, judge,
    write_reproduction,
};
use gpumodel::report::results::{Analysis, CellRecord, SweepFiles, joined};

use crate::archive::{reports, unpacked};

/// The archive of each part.
const PARTS: &[(&str, &str)] =
    &[("pairs", "ugpu-pairs"), ("many", "ugpu-many"), ("ai", "ugpu-ai"), ("qos", "ugpu-qos")];

/// The records of `archive`, without those of a plan that the reproduction does not run.
fn records(archive: &str) -> Vec<Analysis> {
    let place = tempfile::tempdir().unwrap();
    let files = SweepFiles::new(&unpacked(archive, place.path()));
    let fed_back =
        |cell: &CellRecord| cell.parameters.get("feedback").is_some_and(|value| value == "on");
    let cells = files.cells().unwrap().into_iter().filter(|cell| !fed_back(cell));
    let paths = cells.map(|cell| files.record(&cell.key)).filter(|path| path.is_file());
    joined(paths.map(|path| Analysis::read(&path).unwrap()).collect())
}

#[test]
fn rows_of_ugpu_follow_from_the_records_of_its_parts() {
    let paper = Paper::load(&gpumodel::models(), "ugpu").unwrap();
    let parts: BTreeMap<&str, Vec<Analysis>> =
        PARTS.iter().map(|&(part, archive)| (part, records(archive))).collect();
    let row = |headline: &Headline| {
        let set = &paper.sets[&headline.set];
        let mut row = HeadlineRow { headline: headline.clone(), ..HeadlineRow::default() };
        if set.best {
            row.headline.mean = String::from("best");
        }
        let mixes = set.mixes.as_deref();
        row.fill(
            &parts[set.part.as_str()],
            &RunSelection { mixes, partial: true, ..RunSelection::default() },
        );
        row
    };
    let mut rows: Vec<HeadlineRow> = paper.headlines.iter().map(row).collect();
    judge(&mut rows);
    let papers = vec![ReproducedPaper { paper: paper.name, rows, ..ReproducedPaper::default() }];
    let folder = tempfile::tempdir().unwrap();
    write_reproduction(&Reproduction { papers, ..Reproduction::default() }, folder.path()).unwrap();
    let found = fs::read_to_string(folder.path().join("headlines.csv")).unwrap();
    let kept = reports().join("whole/ugpu.csv");
    if std::env::var_os("BLESS").is_some() {
        fs::write(kept, found).unwrap();
    } else {
        assert_eq!(found, fs::read_to_string(kept).unwrap(), "BLESS=1 writes it anew");
    }
}
