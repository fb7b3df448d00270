//! The tables of a sweep: a row per cell, and a row per cell and application.

use std::fs;

use gpumodel_core::units::{WholeFile, with_causes};
use gpumodel_report::results::{OTHER_FORMS, RecordError, SweepFiles, Tidy};

use super::error::SweepError;

/// What the tables are called.
const CELLS: &str = "cells";
const APPS: &str = "apps";

/// Writes the tables of the sweep in `files`, row by row; says what cannot be read. Who ends
/// cells meanwhile writes them too: the last of all writes all rows.
pub(super) fn write(files: &SweepFiles, say: impl Fn(&str)) -> Result<(), SweepError> {
    loop {
        let ended = (files.done(), files.failed());
        write_once(files, &say)?;
        if ended == (files.done(), files.failed()) {
            return Ok(());
        }
    }
}

fn write_once(files: &SweepFiles, say: &impl Fn(&str)) -> Result<(), SweepError> {
    let failed = || SweepError::folder(files.root());
    let opened = |name| move |ending: &str| WholeFile::create(&files.table(name, ending));
    let mut cells = Tidy::of_cells(opened(CELLS)).map_err(failed())?;
    let mut apps = Tidy::of_apps(opened(APPS)).map_err(failed())?;
    let left_out = |error: &RecordError| {
        say(&format!("damaged, left out of the tables: {}", with_causes(error).join(": ")));
    };
    let listing = files.listing()?;
    listing.damaged.iter().for_each(left_out);
    for cell in listing.cells {
        let pushed = match files.outcome(&cell.key) {
            Ok(None) => continue,
            Err(error) => {
                left_out(&error);
                continue;
            }
            Ok(Some(outcome)) => cells.push_cell(&cell, &outcome).and_then(|()| match &outcome {
                Ok(record) => apps.push_apps(&cell, record),
                Err(_) => Ok(()),
            }),
        };
        pushed.map_err(failed())?;
    }
    let end = |table: Tidy<WholeFile>| table.finish()?.into_iter().try_for_each(WholeFile::finish);
    [cells, apps].into_iter().try_for_each(end).map_err(failed())?;
    for ending in OTHER_FORMS {
        // What another build has written would not say what these say.
        let _ = fs::remove_file(files.table(CELLS, ending));
        let _ = fs::remove_file(files.table(APPS, ending));
    }
    Ok(())
}
