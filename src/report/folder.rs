//! A report folder: the record, its figures and the page that shows them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use gpumodel_core::units::WholeFile;

use super::figure::{FIGURES, FigureInput, Source};
use super::{Of, PageFigure, ReportError, page};
use crate::results::Analysis;

/// What the record is called in the folder of a report.
pub const RECORD: &str = "record.json";

/// Writes `record.json`, `kernels.csv`, the figures (`NAME.svg`, with the
/// application before the name where there are several), the values of those that have a
/// table of their own (`NAME.csv`) and `index.html` into
/// `dir`, which is made where it is missing. Figures that the record has no data for
/// are left out and named on the page. Returns the files written, in order.
///
/// # Errors
/// [`ReportError::File`] with the file that could not be written.
pub fn write_all(analysis: &Analysis, dir: &Path) -> Result<Vec<PathBuf>, ReportError> {
    fs::create_dir_all(dir)
        .map_err(|source| ReportError::File { path: dir.to_path_buf(), source })?;
    let page_figures = page_figures(analysis);
    let mut files = vec![
        (RECORD.to_string(), analysis.to_json()),
        ("kernels.csv".to_string(), analysis.kernels_csv()),
    ];
    let page = page(analysis, &page_figures);
    for page_figure in page_figures {
        if let Ok(drawing) = page_figure.drawing {
            files.push((format!("{}.svg", page_figure.file), drawing.svg));
            if !drawing.csv.is_empty() {
                files.push((format!("{}.csv", page_figure.file), drawing.csv));
            }
        }
    }
    files.push(("index.html".to_string(), page));
    files.into_iter().map(|(name, text)| write(dir.join(name), &text)).collect()
}

fn write(path: PathBuf, text: &str) -> Result<PathBuf, ReportError> {
    match WholeFile::write(&path, text.as_bytes()) {
        Ok(()) => Ok(path),
        Err(source) => Err(ReportError::File { path, source }),
    }
}

/// Every figure of `analysis`: those of each application, then those of the co-runs and
/// of the queues.
fn page_figures(analysis: &Analysis) -> Vec<PageFigure> {
    let mut page_figures = Vec::new();
    let mut used = BTreeSet::new();
    for (index, app) in analysis.solo.iter().enumerate() {
        let prefix = match analysis.solo.len() {
            1 => String::new(),
            _ => unused(&format!("{}-", file_word(&app.app)), &mut used),
        };
        let input = FigureInput::one(analysis, index);
        for figure in FIGURES.iter().filter(|f| matches!(f.source, Source::Apps | Source::OneApp)) {
            page_figures.push(PageFigure {
                file: format!("{prefix}{}", figure.name),
                about: figure.about,
                of: Of::App(index),
                drawing: figure.draw(&input),
            });
        }
    }
    let input = FigureInput::new(std::slice::from_ref(analysis));
    let parts = [
        (!analysis.coruns.is_empty(), Source::CoRuns, Of::CoRuns),
        (!analysis.queues.is_empty(), Source::Queues, Of::Queues),
    ];
    for (_, source, of) in parts.into_iter().filter(|(there, ..)| *there) {
        for figure in FIGURES.iter().filter(|figure| figure.source == source) {
            let (file, drawing) = (figure.name.to_string(), figure.draw(&input));
            page_figures.push(PageFigure { file, about: figure.about, of, drawing });
        }
    }
    page_figures
}

/// `name` with every character that file systems or links may not like as `-`.
fn file_word(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    name.chars().map(|c| if plain(c) { c } else { '-' }).collect()
}

/// `word`, numbered where it is taken.
fn unused(word: &str, used: &mut BTreeSet<String>) -> String {
    let mut name = word.to_string();
    let mut number = 2;
    while !used.insert(name.clone()) {
        name = format!("{word}{number}-");
        number += 1;
    }
    name
}
