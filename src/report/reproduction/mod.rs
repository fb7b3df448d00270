//! The report of a reproduction: what papers print, ours beside it, and the figures.

mod content;
mod published;

use std::fs;
use std::path::Path;
use std::slice::from_ref;

use super::ReportError;
use super::document::{Block, html, markdown};
use super::figure::{Drawing, Figure, Scene};
use crate::results::{
    Analysis, Chosen, HeadlineRow, Measure, RecordError, ReproducedFigure, Reproduction,
    alone_once, joined,
};
use gpumodel_core::units::WholeFile;

pub use content::headlines;

/// Writes `reproduction.json`, `headlines.csv`, the figures, `report.md` and `index.html`
/// into `folder`, where the records that `reproduction` names lie.
///
/// # Errors
/// When a record cannot be read or a file cannot be written. A figure that cannot be drawn
/// is said in the report.
pub fn write_reproduction(reproduction: &Reproduction, folder: &Path) -> Result<(), ReportError> {
    let blocks = content::blocks(reproduction, &|part| read(folder, part))?;
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
    write("headlines.csv", &content::csv(reproduction))?;
    write("report.md", &markdown(&blocks))?;
    write("index.html", &html(content::TITLE, &blocks))
}

/// The records of a part, those of a mix together.
fn read(folder: &Path, records: &[String]) -> Result<Vec<Analysis>, RecordError> {
    let records: Result<Vec<Analysis>, RecordError> =
        records.iter().map(|record| Analysis::read(&folder.join(record))).collect();
    Ok(joined(records?))
}

/// A figure of `records`.
fn drawn(figure: &ReproducedFigure, records: &[Analysis]) -> Result<Drawing, ReportError> {
    let named = Figure::named(&figure.name)?;
    let chosen = Chosen { mixes: figure.mix.as_ref().map(from_ref), ..Chosen::default() };
    let own = |record: &&Analysis| figure.mix.is_none() || chosen.takes(record).is_some();
    let few = figure.mix.is_some() || named.source.alone();
    let mut some = Vec::new();
    if few {
        some = records.iter().filter(own).cloned().collect();
    }
    if named.source.alone() {
        alone_once(&mut some);
    }
    let mut scene = Scene::new(if few { &some } else { records });
    scene = scene.beside(&figure.published_percent);
    if let Some(scheme) = &figure.baseline {
        scene = scene.against(scheme);
    }
    if let Some(metric) = &figure.metric {
        scene = scene.by(metric);
    }
    named.draw(&scene)
}

/// A gain, or a share, of `row` as tables show it.
fn shown(row: &HeadlineRow, percent: f64) -> String {
    // No minus before what rounds to zero.
    let rounded = (percent * 10.0).round() / 10.0 + 0.0;
    let share = Measure::named(&row.measure).is_some_and(Measure::is_share);
    if share { format!("{rounded:.1} %") } else { format!("{rounded:+.1} %") }
}

/// What is printed of `row`.
fn printed(row: &HeadlineRow) -> String {
    let [low, high] = row.published_percent;
    if low.to_bits() == high.to_bits() {
        shown(row, low)
    } else {
        format!("{} to {}", shown(row, low), shown(row, high))
    }
}
