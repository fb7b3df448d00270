//! The report of a record: a folder with its figures, and a page with numbers, figures and where
//! they come from, in one self-contained HTML file; and the report of microbenchmarks: a page, and
//! next to it its figures and values.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use gpumodel_core::units::{WholeFile, to_u64};

use super::ReportError;
use super::document::{Block, html};
use super::figure::{Drawing, FIGURES, FigureInput, Sheet, Source, benchmark_figures};
use super::format::{grouped, percent, rate, sectors};
use super::results::{Analysis, AppRecord, Measurements, with_short_names};
use super::table::{
    TOP_SHARE, benchmark_tables, corun_blocks, kernel_table, launch_table, queue_blocks,
    stall_table,
};

/// What the record is called in the folder of a report.
pub const RECORD: &str = "record.json";

/// Kernels with their own line; the rest are one.
const KERNELS: usize = 60;

/// Launches up to which every launch has its own line.
const LAUNCHES: usize = 500;

/// Applications of queues up to which the title names them.
const TITLED: usize = 6;

/// Where the numbers of a page are.
const NUMBERS: &str = "<p>The numbers: <a href=\"record.json\">record.json</a>, <a href=\"kernels.csv\">kernels.csv</a>. Other figures from them: <code>gpumodel plot record.json --figure NAME -o FILE.svg</code>; <code>gpumodel plot --list</code> names them.</p>\n";

/// One figure of a report.
#[derive(Debug)]
pub struct PageFigure {
    /// File name without extension.
    pub file: String,
    /// What it shows.
    pub about: &'static str,
    /// What of the record it is about.
    pub of: Of,
    /// The figure, or why there is none.
    pub drawing: Result<Drawing, ReportError>,
}

/// A part of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// The solo run at this position.
    App(usize),
    /// The co-runs.
    CoRuns,
    /// The queues.
    Queues,
}

/// The page of `analysis` with `page_figures`: same input, same bytes. Everything
/// from the record is escaped.
#[must_use]
pub fn page(analysis: &Analysis, page_figures: &[PageFigure]) -> String {
    let whole = analysis;
    let analysis = &with_short_names(whole);
    let apps: Vec<&str> = analysis.solo.iter().map(|app| app.app.as_str()).collect();
    let named = match apps.len() {
        0 if !analysis.queues.is_empty() => "Queues".into(),
        many if many > TITLED && !analysis.queues.is_empty() => format!("{many} applications"),
        _ => apps.join(", "),
    };
    let title = format!("{named} on {}", analysis.machine.name);
    let figures = |of: Of| page_figures.iter().filter(move |figure| figure.of == of).map(figure);
    let mut blocks = vec![Block::Heading(1, title.clone())];
    provenance(&mut blocks, whole);
    if !analysis.coruns.is_empty() {
        blocks.push(Block::Heading(2, "Together".into()));
        blocks.extend(corun_blocks(&analysis.coruns));
        blocks.extend(figures(Of::CoRuns));
    }
    if !analysis.queues.is_empty() {
        blocks.push(Block::Heading(2, "Queues".into()));
        blocks.extend(queue_blocks(analysis));
        blocks.extend(figures(Of::Queues));
    }
    for (index, app) in analysis.solo.iter().enumerate() {
        blocks.push(Block::Heading(2, format!("{} alone", app.app)));
        blocks.push(Block::Text(totals(app)));
        blocks.extend(super::notes::solo(app).map(|said| Block::Text(said + ".")));
        let kernels = kernel_table(analysis, app, KERNELS, 2).without(&[TOP_SHARE]);
        blocks.push(Block::Table(kernels));
        let stalls = stall_table(&[(analysis, app)], KERNELS);
        blocks
            .push(Block::Text("Slot-cycles of SMs with a warp, and no CTA: of the others".into()));
        blocks.push(Block::Table(stalls.without(&["machine", "application"])));
        blocks.extend(figures(Of::App(index)));
        // One launch is the kernel above; too many make the page slow.
        if (2..=LAUNCHES).contains(&app.kernels.len()) {
            let launches = Block::Table(launch_table(app, analysis.machine.core_mhz));
            blocks.push(Block::Folded("Every launch".into(), vec![launches]));
        }
    }
    html(&title, &blocks)
}

fn figure(of: &PageFigure) -> Block {
    let drawn = of.drawing.as_ref().map(Drawing::clone).map_err(ToString::to_string);
    Block::Figure(format!("{}.svg", of.file), of.about.to_owned(), drawn)
}

fn provenance(blocks: &mut Vec<Block>, analysis: &Analysis) {
    let machine = &analysis.machine;
    let mut facts = vec![
        ("Machine", format!("{} (hash {})", machine.name, machine.hash)),
        ("Program", format!("{}, seed {}", analysis.program, analysis.seed)),
    ];
    if !analysis.overrides.is_empty() {
        let set: Vec<String> =
            analysis.overrides.iter().map(|(k, v)| format!("{k} = {v}")).collect();
        facts.push(("Overrides", set.join(", ")));
    }
    let traces = analysis.solo.iter();
    facts.extend(traces.map(|a| ("Trace", format!("{} (hash {})", a.app, a.store_hash))));
    let facts = facts.into_iter().map(|(term, said)| (term.to_owned(), said));
    blocks.push(Block::Facts(facts.collect()));
    blocks.push(Block::Markup(NUMBERS));
    if !analysis.notes.is_empty() {
        blocks.push(Block::Heading(2, "What the numbers lean on".into()));
        blocks.push(Block::List(analysis.notes.clone()));
    }
}

fn totals(app: &AppRecord) -> String {
    let launches = match app.kernels.len() {
        1 => "1 launch".to_owned(),
        many => format!("{} launches", grouped(to_u64(many))),
    };
    format!(
        "{} cycles, {} of them launch latency; {launches}; {} warp instructions; {}; L1 hits {}, L2 hits {}; DRAM {} read, {} written.",
        grouped(app.cycles),
        grouped(app.launch_cycles),
        grouped(app.warp_instructions),
        rate(app),
        percent(app.l1.hit_rate()),
        percent(app.l2.hit_rate()),
        sectors(app.dram.read_sectors),
        sectors(app.dram.write_sectors),
    )
}

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
    let page_figures = page_figures(&with_short_names(analysis));
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

/// The files of the report by name: `index.html`, `measure.json`, `values.csv`, `errors.csv`,
/// and each figure as SVG with its values.
#[must_use]
pub fn benchmark_files(measurements: &Measurements) -> Vec<(String, String)> {
    let figures = benchmark_figures(measurements, Sheet::default());
    let title = format!("Microbenchmarks on {}", measurements.machine);
    let machine = format!("{} (hash {})", measurements.machine, measurements.machine_hash);
    let mut facts = vec![
        (String::from("Machine"), machine),
        (String::from("Program"), measurements.program.clone()),
    ];
    if let Some(errors) = measurements.errors {
        let text = format!(
            "mean {:.1} %, median {:.1} %, worst {:.0} % of {} published values",
            errors.mean_percent, errors.median_percent, errors.worst_percent, errors.count
        );
        facts.push((String::from("Error"), text));
    }
    let tables = benchmark_tables(measurements);
    let mut files: Vec<(String, String)> =
        tables.iter().map(|(name, table)| (format!("{name}.csv"), table.csv())).collect();
    let [values, errors] = tables.map(|(_, table)| table);
    let mut blocks = vec![Block::Heading(1, title.clone()), Block::Facts(facts)];
    if !errors.is_empty() {
        blocks.push(Block::Table(errors));
    }
    for (name, drawing) in figures {
        let about = measurements.benchmarks.iter().find(|benchmark| benchmark.name == name);
        let about = about.map_or_else(String::new, |benchmark| benchmark.about.clone());
        files.push((format!("{name}.svg"), drawing.svg.clone()));
        files.push((format!("{name}.csv"), drawing.csv.clone()));
        blocks.push(Block::Figure(format!("{name}.svg"), about, Ok(drawing)));
    }
    blocks.extend([Block::Heading(2, String::from("Every value")), Block::Table(values)]);
    let json =
        serde_json::to_string_pretty(measurements).expect("plain data has no reason to fail");
    files.push((String::from("measure.json"), json + "\n"));
    files.push((String::from("index.html"), html(&title, &blocks)));
    files
}
