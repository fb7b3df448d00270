//! Papers' evaluations as we ran them, and the report of a reproduction: what papers print, ours
//! next to it, and the figures.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::slice::from_ref;

use gpumodel_core::units::WholeFile;
use serde::{Deserialize, Serialize};

use super::file::{PartFigure, RunSelection, Silence};
use super::headline::{HeadlineRow, Verdict};
use super::published_table::{PublishedTable, published};
use crate::ReportError;
use crate::document::{Block, html, markdown};
use crate::figure::{Drawing, Figure, FigureInput};
use crate::format::{csv, row};
use crate::results::{
    Analysis, Measure, RecordError, alone_once, is_zero, joined, pretty, read_document,
};
use crate::table::{Cell, Column, NONE, Table, wrapped};

/// The title of the report.
const TITLE: &str = "Published results against the model";

/// The rule, for the reader of a report: a line for each verdict, then what holds for all.
const RULE: [&str; 5] = [
    "agrees: the sign agrees, the gain is within ten points or a third of what is printed, \
     whichever is more, and the order of schemes agrees wherever the paper has them more than \
     three points apart, on the mixes that both have",
    "same sign: ours is further away, or the order is another; also where ours rounds to zero",
    "contradicts: the sign is the other, or what the paper prints as a limit does not hold",
    "impossible: it does not agree, and by the paper's own data no run could give what is printed",
    "error: points from what is printed, or from the nearer end of a range. Gains are those of \
     the first scheme over the second; better is positive, but for energy and for ANTT (worse). \
     Less than 0.05 % has no sign, nor has a share",
];

/// The records that a list of files holds.
type Reader<'a> = dyn Fn(&[String]) -> Result<Vec<Analysis>, RecordError> + 'a;

/// The document of `reproduction`.
fn blocks(reproduction: &Reproduction, read: &Reader<'_>) -> Result<Vec<Block>, ReportError> {
    let mut blocks = vec![Block::Heading(1, TITLE.to_owned())];
    let quick = if reproduction.quick { "A short version: few mixes, short runs. " } else { "" };
    let so_far = match reproduction.left() {
        0 => String::new(),
        left => format!("What has been run so far; not run yet: {left}. "),
    };
    let (program, counts) = (&reproduction.program, counts(reproduction));
    blocks.push(Block::Text(format!("{quick}{so_far}{program}. Rows of the papers: {counts}.")));
    blocks.push(Block::List(RULE.map(|line| format!("{line}.")).into()));
    for paper in &reproduction.papers {
        blocks.push(Block::Heading(2, paper.description.clone()));
        blocks.extend(judged(&paper.rows));
        let said: Vec<String> =
            paper.rows.iter().filter_map(|row| why(row, reproduction.quick)).collect();
        if !said.is_empty() {
            blocks.push(Block::Heading(3, String::from("Rows that do not agree")));
            blocks.push(Block::List(said));
        }
        for part in &paper.parts {
            studied(&mut blocks, paper, part, read)?;
        }
        published(&mut blocks, &paper.tables, reproduction.quick);
        silences(&mut blocks, paper);
    }
    Ok(blocks)
}

/// How many rows have which verdict.
fn counts(reproduction: &Reproduction) -> String {
    let [agree, same, contradict, impossible, missing] = reproduction.counts();
    format!(
        "agree: {agree}, same sign: {same}, contradict: {contradict}, impossible: {impossible}, \
         not run: {missing}"
    )
}

/// What is said of every row.
fn columns<'a>() -> [Column<&'a HeadlineRow>; 10] {
    [
        ("paper", |row| printed(row).into()),
        ("model", |row| row.modelled_percent.map(|ours| shown(row, ours)).into()),
        ("error", |row| row.distance().map(|points| format!("{:+.1}", points + 0.0)).into()),
        ("verdict", |row| verdict(row).into()),
        ("scheme", |row| row.headline.scheme.clone().into()),
        ("over", |row| over(row).into()),
        ("runs", |row| {
            let most = ["best", "largest", "largest-change"];
            let (set, mean) = (&row.headline.set, &row.headline.mean);
            let named = most.contains(&mean.as_str());
            if named { format!("{set}, {mean}").into() } else { set.clone().into() }
        }),
        ("by", |row| {
            let measure = Measure::named(&row.headline.measure).map(Measure::words);
            measure.unwrap_or(&row.headline.measure).into()
        }),
        ("mixes", |row| counted(row).into()),
        (PLACE, |row| row.headline.published.clone().into()),
    ]
}

/// The column in which a report says where a value is printed.
const PLACE: &str = "where";

fn over(row: &HeadlineRow) -> String {
    if row.headline.over.is_empty() { NONE.to_owned() } else { row.headline.over.clone() }
}

/// The rows with their places in the paper; those that were not run behind their number.
fn judged(rows: &[HeadlineRow]) -> Vec<Block> {
    let (missing, run): (Vec<_>, Vec<_>) = rows.iter().partition(|row| is_missing(row));
    let mut blocks = vec![Block::Table(Table::new(&columns(), run))];
    if !missing.is_empty() {
        let (title, table) = (not_run(missing.len()), Table::new(&columns(), missing));
        let table = table.without(&["model", "error", "verdict", "mixes"]);
        blocks.push(Block::Folded(title, vec![Block::Table(table)]));
    }
    blocks
}

fn is_missing(row: &HeadlineRow) -> bool {
    row.verdict == Verdict::NotRun
}

fn not_run(count: usize) -> String {
    if count == 1 { "1 row was not run".into() } else { format!("{count} rows were not run") }
}

fn studied(
    blocks: &mut Vec<Block>,
    paper: &ReproducedPaper,
    part: &ReproducedPart,
    read: &Reader<'_>,
) -> Result<(), ReportError> {
    blocks.push(Block::Heading(3, part.title.clone()));
    blocks.push(Block::Text(held(part)));
    let records = if part.figures.is_empty() { Vec::new() } else { read(&part.records)? };
    for figure in &part.figures {
        let own = &figure.figure;
        let words = [&paper.paper, &part.name, &own.name];
        let words = words.into_iter().chain(&own.metric).chain(own.mix.iter().flatten());
        let file = words.map(String::as_str).collect::<Vec<_>>().join("-") + ".svg";
        let about = format!("{}, {}", own.name, own.shows);
        let drawn = drawn(figure, &records).map_err(|error| error.to_string());
        blocks.push(Block::Figure(file, about, drawn));
    }
    Ok(())
}

/// What was run, and what of it there is.
fn held(part: &ReproducedPart) -> String {
    let mut text = format!("{} Records: {}.", part.covers, part.records.len());
    if part.failed > 0 {
        text += &format!(" Failed: {}.", part.failed);
    }
    if part.left > 0 {
        text += &format!(" Not run yet: {}.", part.left);
    }
    for (build, count) in &part.other_builds {
        text += &format!(" Of another build of the program, {build}: {count}.");
    }
    text
}

fn silences(blocks: &mut Vec<Block>, paper: &ReproducedPaper) {
    if paper.silent.is_empty() {
        return;
    }
    blocks.push(Block::Heading(3, String::from("Where the paper is silent")));
    let rows = paper.silent.iter();
    let rows = rows.map(|one| [&one.what, &one.taken, &one.sensitivity].map(Clone::clone).into());
    let header = ["not said", "taken here", "what another choice changes"];
    blocks.push(Block::Table(Table::of_texts(header, rows)));
}

fn verdict(row: &HeadlineRow) -> &'static str {
    match row.verdict {
        Verdict::Pass => "agrees",
        Verdict::SameSign => "same sign",
        Verdict::Fail if row.modelled_percent.is_none() => "no value",
        Verdict::Fail => "contradicts",
        Verdict::Impossible => "impossible",
        Verdict::NotRun => "not run",
    }
}

/// The mixes that a row was judged on, and of how many.
fn counted(row: &HeadlineRow) -> String {
    let count = row.mixes.len();
    match row.set_mixes {
        Some(all) if all != count => format!("{count} of {all}"),
        _ => count.to_string(),
    }
}

/// Why a row does not agree.
fn why(row: &HeadlineRow, quick: bool) -> Option<String> {
    let short = if quick { "These runs are short. " } else { "" };
    let part = match row.set_mixes {
        Some(all) if !quick && all > row.mixes.len() => {
            format!("Of {} of {all} mixes; of all that were looked at: ", row.mixes.len())
        }
        _ => String::new(),
    };
    let ruled_out = row.headline.impossible.as_deref();
    let said = ruled_out.or(row.analysis.as_deref()).unwrap_or("The cause is not known.");
    let over = if row.headline.over.is_empty() {
        String::new()
    } else {
        format!(" over {}", row.headline.over)
    };
    matches!(row.verdict, Verdict::SameSign | Verdict::Fail | Verdict::Impossible).then(|| {
        format!(
            "{}{over} on {}, {} ({}): {} in the paper, {} here: {}. {short}{part}{said}",
            row.headline.scheme,
            row.headline.set,
            row.headline.measure,
            row.headline.published,
            printed(row),
            row.modelled_percent.map_or_else(|| String::from("nothing"), |ours| shown(row, ours)),
            row.reasons.join("; ")
        )
    })
}

/// The rows of all papers as text, without those that were not run, then the rule, and how
/// many rows have which verdict.
#[must_use]
pub fn headlines(reproduction: &Reproduction, width: Option<usize>) -> String {
    let mut columns = columns();
    // Whole names are in the files.
    columns[4].1 = |row| Cell::Titled(short_scheme(&row.headline.scheme), String::new());
    columns[5].1 = |row| Cell::Titled(short_scheme(&over(row)), String::new());
    let mut text = String::new();
    for ReproducedPaper { paper, description, rows, .. } in &reproduction.papers {
        let _ = writeln!(text, "{paper}: {description}");
        let run = rows.iter().filter(|row| !is_missing(row));
        let table = Table::new(&columns, run).without(&[PLACE]).left(&[3, 4, 5, 6, 7]);
        if !table.is_empty() {
            text += &table.dropping(&["mixes"]).terminal(width);
        }
        let missing = rows.iter().filter(|row| is_missing(row)).count();
        if missing > 0 {
            let _ = writeln!(text, "  {}", not_run(missing));
        }
        text.push('\n');
    }
    for line in RULE {
        let _ = writeln!(text, "{line}");
    }
    let _ = writeln!(text, "\nrows: {}", counts(reproduction));
    wrapped(&text, width)
}

/// `name` with as many of its settings as fit.
fn short_scheme(name: &str) -> String {
    const MOST: usize = 30;
    let mut words = name.split(':');
    let mut text = words.next().unwrap_or_default().to_owned();
    for word in words {
        if text.chars().count() + 1 + word.chars().count() > MOST {
            return text + ":…";
        }
        text += &format!(":{word}");
    }
    text
}

/// The rows as CSV, with one line for each mix and one for their mean.
#[must_use]
pub fn headlines_csv(reproduction: &Reproduction) -> String {
    let mut rows = Vec::new();
    let all = reproduction.papers.iter();
    for (paper, row) in all.flat_map(|paper| paper.rows.iter().map(move |row| (paper, row))) {
        let line = &row.headline;
        let mean = [(line.mean.as_str(), row.modelled_percent)];
        let mixes = row.mixes.iter().map(|mix| (mix.mix.as_str(), Some(mix.percent)));
        rows.extend(mixes.chain(mean).map(|(mix, percent)| {
            let ([low, high], verdict) = (line.published_percent, verdict(row));
            row![
                paper.paper,
                line.scheme,
                line.over,
                line.set,
                line.measure,
                mix,
                low,
                high,
                percent,
                verdict,
                line.published
            ]
        }));
    }
    csv(
        "paper,scheme,over,set,measure,mix,published_percent_low,published_percent_high,modelled_percent,verdict,published",
        rows,
    )
}

/// Writes `reproduction.json`, `headlines.csv`, the figures, `report.md` and `index.html`
/// into `folder`, where the records that `reproduction` names lie.
///
/// # Errors
/// When a record cannot be read or a file cannot be written. A figure that cannot be drawn
/// is said in the report.
pub fn write_reproduction(reproduction: &Reproduction, folder: &Path) -> Result<(), ReportError> {
    let blocks = blocks(reproduction, &|part| read(folder, part))?;
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
    write("headlines.csv", &headlines_csv(reproduction))?;
    write("report.md", &markdown(&blocks))?;
    write("index.html", &html(TITLE, &blocks))
}

/// The records of a part, those of a mix together.
fn read(folder: &Path, records: &[String]) -> Result<Vec<Analysis>, RecordError> {
    let records: Result<Vec<Analysis>, RecordError> =
        records.iter().map(|record| Analysis::read(&folder.join(record))).collect();
    Ok(joined(records?))
}

/// A figure of `records`.
fn drawn(reproduced: &ReproducedFigure, records: &[Analysis]) -> Result<Drawing, ReportError> {
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
    input = input.with_published(&reproduced.published_percent);
    if let Some(scheme) = &figure.baseline {
        input = input.against(scheme);
    }
    if let Some(metric) = &figure.metric {
        input = input.by(metric);
    }
    named.draw(&input)
}

/// A gain, or a share, of `row` as tables show it.
fn shown(row: &HeadlineRow, percent: f64) -> String {
    // No minus before what rounds to zero.
    let rounded = (percent * 10.0).round() / 10.0 + 0.0;
    let share = Measure::named(&row.headline.measure).is_some_and(Measure::is_share);
    if share { format!("{rounded:.1} %") } else { format!("{rounded:+.1} %") }
}

/// What is printed of `row`.
fn printed(row: &HeadlineRow) -> String {
    let [low, high] = row.headline.published_percent;
    if low.to_bits() == high.to_bits() {
        shown(row, low)
    } else {
        format!("{} to {}", shown(row, low), shown(row, high))
    }
}

/// Value of [`Reproduction::schema`].
pub const REPRODUCTION_SCHEMA: &str = "gpumodel.reproduction/1";

/// What `gpumodel reproduce` found: `reproduction.json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reproduction {
    /// Always [`REPRODUCTION_SCHEMA`].
    pub schema: String,
    /// Program name and version.
    pub program: String,
    /// The build: version, and a hash of the program's source.
    pub build: String,
    /// A representative part with shorter runs.
    pub quick: bool,
    /// The papers.
    pub papers: Vec<ReproducedPaper>,
}

/// A paper's evaluation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ReproducedPaper {
    /// The stem of its file in `models/papers`.
    pub paper: String,
    /// Authors, title and place.
    pub description: String,
    /// What was run.
    pub parts: Vec<ReproducedPart>,
    /// What the paper prints, with ours.
    pub rows: Vec<HeadlineRow>,
    /// Its other tables, with ours.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tables: Vec<PublishedTable>,
    /// What the paper does not say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub silent: Vec<Silence>,
}

/// A study of a paper.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ReproducedPart {
    /// Its name.
    pub name: String,
    /// What is studied.
    pub title: String,
    /// What of the paper's method was run, and what otherwise.
    pub covers: String,
    /// The records of its runs, from the folder of the report on.
    pub records: Vec<String>,
    /// Those that failed.
    pub failed: usize,
    /// Those that have not been run yet.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left: usize,
    /// By other builds of the program than that of the reproduction: how many of the records
    /// are of them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub other_builds: BTreeMap<String, usize>,
    /// Mixes of the whole study, orders of the same applications counted once; absent: not
    /// known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mixes: Option<usize>,
    /// What is drawn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub figures: Vec<ReproducedFigure>,
}

/// A figure to compare with one of the paper.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ReproducedFigure {
    /// What is drawn.
    #[serde(flatten)]
    pub figure: PartFigure,
    /// Gains of schemes over the baseline by the metric that the paper prints for the whole
    /// study: both ends; empty where not all of it was run.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub published_percent: BTreeMap<String, [f64; 2]>,
}

impl Reproduction {
    /// Reads `reproduction.json`.
    ///
    /// # Errors
    /// [`RecordError`] with the file and what is wrong.
    pub fn read(path: &Path) -> Result<Self, RecordError> {
        read_document(path, REPRODUCTION_SCHEMA, |read: &Self| &read.schema)
    }

    /// The document as JSON with a final newline.
    #[must_use]
    pub fn to_json(&self) -> String {
        pretty(self)
    }

    /// Rows that agree, that have the same sign alone, that contradict the papers or have no
    /// value, that the papers' own data rule out, and that were not run.
    #[must_use]
    pub fn counts(&self) -> [usize; 5] {
        let count = |verdict| {
            let rows = self.papers.iter().flat_map(|paper| &paper.rows);
            rows.filter(|row| row.verdict == verdict).count()
        };
        let all =
            [Verdict::Pass, Verdict::SameSign, Verdict::Fail, Verdict::Impossible, Verdict::NotRun];
        all.map(count)
    }

    /// Cells and queues that have not been run yet.
    #[must_use]
    pub fn left(&self) -> usize {
        self.papers.iter().flat_map(|paper| &paper.parts).map(|part| part.left).sum()
    }

    /// Cells or queues that failed.
    #[must_use]
    pub fn failed(&self) -> usize {
        self.papers.iter().flat_map(|paper| &paper.parts).map(|part| part.failed).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::{headlines, held, judged, why};
    use crate::document::markdown;
    use crate::paper::{
        Headline, HeadlineRow, MixGain, ReproducedPaper, ReproducedPart, Reproduction, Verdict,
    };

    fn row() -> HeadlineRow {
        let headline = Headline {
            published: "section 5".into(),
            scheme: "a".into(),
            over: "b".into(),
            set: "pairs".into(),
            measure: "stp".into(),
            published_percent: [10.0; 2],
            ..Headline::default()
        };
        HeadlineRow {
            headline,
            modelled_percent: Some(-5.0),
            mixes: vec![MixGain::default()],
            verdict: Verdict::Fail,
            reasons: vec!["the sign is the other".into()],
            ..HeadlineRow::default()
        }
    }

    #[test]
    fn a_row_says_where_it_is_printed_and_of_how_many_mixes_it_is() {
        let rows = [Some(15), Some(1), None].map(|set_mixes| HeadlineRow { set_mixes, ..row() });
        let text = markdown(&judged(&rows));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[0],
            "| paper | model | error | verdict | scheme | over | runs | by | mixes | where |"
        );
        let line = "| +10.0 % | -5.0 % | -15.0 | contradicts | a | b | pairs | STP | 1 of 15 | section 5 |";
        assert_eq!(lines[2], line);
        assert!(lines[3..5].iter().all(|line| line.ends_with("| 1 | section 5 |")), "{text}");
    }

    #[test]
    fn rows_that_were_not_run_are_one_line() {
        let missing = HeadlineRow { verdict: Verdict::NotRun, modelled_percent: None, ..row() };
        let mut long = HeadlineRow { verdict: Verdict::SameSign, ..row() };
        long.headline.scheme = "a:one=1:two=20000000:three=300000".into();
        let rows = vec![row(), missing.clone(), long, missing];
        let paper = ReproducedPaper { paper: "p".into(), rows, ..ReproducedPaper::default() };
        let found = Reproduction { papers: vec![paper], ..Reproduction::default() };
        let text = headlines(&found, None);
        assert!(text.contains("  2 rows were not run\n"), "{text}");
        assert!(text.contains("-15.0  same sign    a:one=1:two=20000000:…  b"), "{text}");
        let counts = "rows: agree: 0, same sign: 1, contradict: 1, impossible: 0, not run: 2\n";
        assert!(text.ends_with(counts), "{text}");
        let narrow = headlines(&found, Some(60));
        assert!(narrow.lines().all(|line| line.chars().count() <= 60), "{narrow}");
    }

    #[test]
    fn a_cause_is_told_where_one_was_found() {
        let reported = |analysis: Option<&str>, quick| {
            why(&HeadlineRow { analysis: analysis.map(String::from), ..row() }, quick).unwrap()
        };
        assert!(reported(Some("Too few SMs."), false).ends_with("is the other. Too few SMs."));
        let unknown = "is the other. These runs are short. The cause is not known.";
        assert!(reported(None, true).ends_with(unknown));
        assert_eq!(why(&HeadlineRow { verdict: Verdict::Pass, ..row() }, false), None);
    }

    #[test]
    fn a_part_tells_what_is_not_there_and_of_which_build_records_are() {
        let whole = ReproducedPart { covers: "All.".into(), ..ReproducedPart::default() };
        assert_eq!(held(&whole), "All. Records: 0.");
        let part = ReproducedPart {
            records: vec![String::new(); 3],
            failed: 1,
            left: 2,
            other_builds: [("0.0.9+1".to_owned(), 2)].into(),
            ..whole
        };
        let reported = "All. Records: 3. Failed: 1. Not run yet: 2. Of another build of the program, 0.0.9+1: 2.";
        assert_eq!(held(&part), reported);
    }
}
