//! Cells of other builds of the program in the folder of a sweep.

use std::collections::BTreeMap;

use gpumodel_report::results::{CellRecord, SweepFiles, SweepRecord};

use super::{Cell, SweepInputs};
use crate::SweepError;
use crate::cache::results::BUILD;

/// Refuses a folder with cells of another build.
pub(super) fn refuse_others(files: &SweepFiles) -> Result<(), SweepError> {
    let listed = if files.begun() { SweepRecord::read(&files.list())?.cells } else { Vec::new() };
    match listed.iter().find(|cell| cell.build != BUILD) {
        None => Ok(()),
        Some(cell) => Err(SweepError::Mixed {
            versions: format!("{} in {}, this is {BUILD}", cell.build, files.root().display()),
        }),
    }
}

/// Replaces cells of the plan by those that another build has run, unless this build has run
/// them.
pub(super) fn adopt(
    inputs: &SweepInputs,
    cells: &mut [Cell],
    files: &SweepFiles,
) -> Result<(), SweepError> {
    let listed = if files.begun() { files.cells()? } else { Vec::new() };
    let others: BTreeMap<(&str, &str), &CellRecord> = listed
        .iter()
        .filter(|cell| cell.build != BUILD)
        .map(|cell| ((cell.build.as_str(), cell.program.as_str()), cell))
        .collect();
    let there = |key: &str| files.record(key).is_file();
    for cell in cells.iter_mut().filter(|cell| !there(&cell.record.key)) {
        let named = others.values().map(|other| inputs.by_build_of(cell, other));
        if let Some(record) = named.into_iter().find(|record| there(&record.key)) {
            cell.record = record;
        }
    }
    Ok(())
}

/// The number of `cells` that [`adopt`] would take from each other build.
pub(super) fn others(
    inputs: &SweepInputs,
    cells: &[Cell],
    files: &SweepFiles,
) -> Result<BTreeMap<String, u64>, SweepError> {
    let mut taken = cells.to_vec();
    adopt(inputs, &mut taken, files)?;
    let mut counts = BTreeMap::new();
    for (one, _) in taken.into_iter().zip(cells).filter(|(one, own)| one != *own) {
        *counts.entry(one.record.build).or_insert(0) += 1;
    }
    Ok(counts)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{
        BUILD, CellRecord, SweepFiles, SweepInputs, SweepRecord, adopt, others, refuse_others,
    };
    use crate::Unwatched;
    use crate::sweep::plan::Plan;

    const PLAN: &str = "machines = ['warped-slicer']\nschemes = ['even', 'left-over']\n\
        [apps]\na = 'synth:saxpy'\n[mixes]\nlists = [['a']]\n";

    #[test]
    fn a_cell_that_another_build_has_run_is_taken_and_one_of_this_build_goes_before() {
        let folder = tempfile::tempdir().unwrap();
        let (root, path) = (folder.path(), folder.path().join("plan.toml"));
        fs::write(&path, PLAN).unwrap();
        let plan = Plan::read(&path).unwrap();
        let inputs = SweepInputs::new(plan, None, root, &Unwatched).unwrap();
        let mut cells = inputs.cells().unwrap();
        let own: Vec<CellRecord> = cells.iter().map(|cell| cell.record.clone()).collect();
        let foreign = CellRecord { build: "0.0.9+1".to_owned(), ..own[0].clone() };
        let other = inputs.by_build_of(&cells[0], &foreign);
        assert_eq!(inputs.by_build_of(&cells[0], &own[0]), own[0]);
        assert_ne!(other.key, own[0].key);
        let files = SweepFiles::new(&root.join("out"));
        adopt(&inputs, &mut cells, &files).unwrap();
        fs::create_dir_all(files.records()).unwrap();
        fs::write(files.list(), SweepRecord::new(vec![other.clone()]).to_json()).unwrap();
        // Begun, not run.
        adopt(&inputs, &mut cells, &files).unwrap();
        assert!(cells.iter().map(|cell| &cell.record).eq(&own));
        assert!(others(&inputs, &cells, &files).unwrap().is_empty());
        fs::write(files.record(&other.key), "").unwrap();
        let one = [(String::from("0.0.9+1"), 1)];
        assert_eq!(others(&inputs, &cells, &files).unwrap(), one.into());
        adopt(&inputs, &mut cells, &files).unwrap();
        assert_eq!((&cells[0].record, &cells[1].record), (&other, &own[1]));
        assert!(others(&inputs, &cells, &files).unwrap().is_empty(), "taken already");
        assert!(refuse_others(&files).unwrap_err().to_string().contains(BUILD));
        let mut cells = inputs.cells().unwrap();
        fs::write(files.record(&own[0].key), "").unwrap();
        adopt(&inputs, &mut cells, &files).unwrap();
        assert_eq!(cells[0].record, own[0]);
    }
}
