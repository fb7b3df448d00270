//! The report of a reproduction: what papers print, ours beside it, and the figures.

use std::fs;
use std::path::Path;
use std::slice::from_ref;

use gpumodel_core::units::WholeFile;

use super::file::RunSelection;
use super::headline::HeadlineRow;
use super::page;
use super::reproduction::{ReproducedFigure, Reproduction};
use crate::ReportError;
use crate::document::{Block, html, markdown};
use crate::figure::{Drawing, Figure, FigureInput};
use crate::results::{Analysis, Measure, RecordError, alone_once, joined};

/// Writes `reproduction.json`, `headlines.csv`, the figures, `report.md` and `index.html`
/// into `folder`, where the records that `reproduction` names lie.
///
/// # Errors
/// When a record cannot be read or a file cannot be written. A figure that cannot be drawn
/// is said in the report.
pub fn write_reproduction(reproduction: &Reproduction, folder: &Path) -> Result<(), ReportError> {
    let blocks = page::blocks(reproduction, &|part| read(folder, part))?;
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        WholeFile::write(&path, text.as_bytes())
            .map_err(|source| ReportError::File { path, source })
    };
    fs::create_dir_all(folder)
        .map_err(|source| ReportError::File { path: folder.to_path_buf(), source })?;
    for block in &blocks {
        if let Block::Figure(file, _, Ok(drawing)) = block {
            write(file, &drawing.svg)?;
        }
    }
    write("reproduction.json", &reproduction.to_json())?;
    write("headlines.csv", &page::csv(reproduction))?;
    write("report.md", &markdown(&blocks))?;
    write("index.html", &html(page::TITLE, &blocks))
}

/// The records of a part, those of a mix together.
fn read(folder: &Path, records: &[String]) -> Result<Vec<Analysis>, RecordError> {
    let records: Result<Vec<Analysis>, RecordError> =
        records.iter().map(|record| Analysis::read(&folder.join(record))).collect();
    Ok(joined(records?))
}

/// A figure of `records`.
pub(super) fn drawn(
    reproduced: &ReproducedFigure,
    records: &[Analysis],
) -> Result<Drawing, ReportError> {
    let figure = &reproduced.figure;
    let named = Figure::named(&figure.name)?;
    let chosen =
        RunSelection { mixes: figure.mix.as_ref().map(from_ref), ..RunSelection::default() };
    let own = |record: &&Analysis| figure.mix.is_none() || chosen.takes(record).is_some();
    let few = figure.mix.is_some() || named.source.alone();
    let mut some = Vec::new();
    if few {
        some = records.iter().filter(own).cloned().collect();
    }
    if named.source.alone() {
        alone_once(&mut some);
    }
    let mut input = FigureInput::new(if few { &some } else { records });
    input = input.beside(&reproduced.published_percent);
    if let Some(scheme) = &figure.baseline {
        input = input.against(scheme);
    }
    if let Some(metric) = &figure.metric {
        input = input.by(metric);
    }
    named.draw(&input)
}

/// A gain, or a share, of `row` as tables show it.
pub(super) fn shown(row: &HeadlineRow, percent: f64) -> String {
    // No minus before what rounds to zero.
    let rounded = (percent * 10.0).round() / 10.0 + 0.0;
    let share = Measure::named(&row.headline.measure).is_some_and(Measure::is_share);
    if share { format!("{rounded:.1} %") } else { format!("{rounded:+.1} %") }
}

/// What is printed of `row`.
pub(super) fn printed(row: &HeadlineRow) -> String {
    let [low, high] = row.headline.published_percent;
    if low.to_bits() == high.to_bits() {
        shown(row, low)
    } else {
        format!("{} to {}", shown(row, low), shown(row, high))
    }
}
