//! The report of a reproduction: what papers print, ours next to it, and the figures.

use std::fs;
use std::path::Path;
use std::slice::from_ref;

use gpumodel_core::units::WholeFile;

use super::file::RunSelection;
use super::headline::{HeadlineRow, Verdict};
use super::published_table::published;
use super::reproduction::{ReproducedFigure, ReproducedPaper, ReproducedPart, Reproduction};
use crate::ReportError;
use crate::document::{Block, Column, NONE, Table, html, markdown};
use crate::figure::{Drawing, Figure, FigureInput};
use crate::format::{csv, row};
use crate::results::{Analysis, Measure, RecordError, alone_once, joined};

/// The title of the report.
const TITLE: &str = "Published results against the model";

/// The column in which a report says where a value is printed.
const PLACE: usize = 5;

/// The rule, for the reader of a report.
const RULE: &str = "A row passes when its sign agrees (less than 0.05 % rounds to zero and \
    has none), the gain is within ten points or a third of it, whichever is more, and the order \
    of schemes agrees, on the mixes that both have, wherever the paper has them more than three points \
    apart. Gains are those \
    of the first scheme over the second; better is positive, but for energy and for ANTT \
    (worse). Shares have no sign before them. What a paper prints as a limit has to hold without \
    a tolerance.";

/// The records that a list of files holds.
type Reader<'a> = dyn Fn(&[String]) -> Result<Vec<Analysis>, RecordError> + 'a;

/// The document of `reproduction`.
fn blocks(reproduction: &Reproduction, read: &Reader<'_>) -> Result<Vec<Block>, ReportError> {
    let [passed, failed, missing] = reproduction.counts();
    let mut blocks = vec![Block::Heading(1, TITLE.to_owned())];
    let quick = if reproduction.quick { "A short version: few mixes, short runs. " } else { "" };
    let so_far = match reproduction.left() {
        0 => String::new(),
        left => format!("What has been run so far; not run yet: {left}. "),
    };
    blocks.push(Block::Text(format!(
        "{quick}{so_far}{}. Rows that agree with the papers: {passed}; that do not: {failed}; not run: {missing}. {RULE}",
        reproduction.program
    )));
    for paper in &reproduction.papers {
        blocks.push(Block::Heading(2, paper.description.clone()));
        blocks.push(judged(&paper.rows));
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

/// A row with the name of its paper.
type Named<'a> = (&'a str, &'a HeadlineRow);

/// What is said of every row.
fn columns<'a>() -> Vec<Column<Named<'a>>> {
    vec![
        ("scheme", |(_, row)| row.headline.scheme.clone().into()),
        ("over", |(_, row)| match row.headline.over.as_str() {
            "" => NONE.to_owned().into(),
            over => over.to_owned().into(),
        }),
        ("runs", |(_, row)| {
            let most = ["best", "largest", "largest-change"];
            let (set, mean) = (&row.headline.set, &row.headline.mean);
            let named = most.contains(&mean.as_str());
            if named { format!("{set}, {mean}").into() } else { set.clone().into() }
        }),
        ("by", |(_, row)| {
            let measure = Measure::named(&row.headline.measure).map(Measure::words);
            measure.unwrap_or(&row.headline.measure).to_owned().into()
        }),
        ("paper", |(_, row)| printed(row).into()),
        ("model", |(_, row)| row.modelled_percent.map(|ours| shown(row, ours)).into()),
        ("mixes", |(_, row)| counted(row).into()),
        ("verdict", |(_, row)| verdict(row).to_owned().into()),
    ]
}

/// The rows with their places in the paper.
fn judged(rows: &[HeadlineRow]) -> Block {
    let mut columns = columns();
    columns.insert(PLACE, ("where", |(_, row)| row.headline.published.clone().into()));
    Block::Table(Table::new(&columns, rows.iter().map(|row| ("", row))))
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
        Verdict::Fail => "FAILS",
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
    let said = row.analysis.as_deref().unwrap_or("The cause is not known.");
    let over = if row.headline.over.is_empty() {
        String::new()
    } else {
        format!(" over {}", row.headline.over)
    };
    (row.verdict == Verdict::Fail).then(|| {
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

/// The rows of all papers as text, then how many agree.
#[must_use]
pub fn headlines(reproduction: &Reproduction) -> String {
    let mut columns = columns();
    columns.insert(0, ("paper", |(paper, _)| (*paper).to_owned().into()));
    let rows = reproduction.papers.iter();
    let rows = rows.flat_map(|paper| paper.rows.iter().map(|row| (paper.paper.as_str(), row)));
    let table = Table::new(&columns, rows).left(&[0, 1, 2, 3, 4, 8]);
    let [passed, failed, missing] = reproduction.counts();
    table.terminal()
        + &format!("\nrows that agree: {passed}, that do not: {failed}, not run: {missing}\n")
}

/// The rows as CSV, with one line for each mix and one for their mean.
fn headlines_csv(reproduction: &Reproduction) -> String {
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

#[cfg(test)]
mod tests {
    use super::{held, judged, why};
    use crate::document::markdown;
    use crate::paper::{Headline, HeadlineRow, MixGain, ReproducedPart, Verdict};

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
        let text = markdown(&[judged(&rows)]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[0],
            "| scheme | over | runs | by | paper | where | model | mixes | verdict |"
        );
        let line = "| a | b | pairs | STP | +10.0 % | section 5 | -5.0 % | 1 of 15 | FAILS |";
        assert_eq!(lines[2], line);
        assert!(lines[3..5].iter().all(|line| line.ends_with("| 1 | FAILS |")), "{text}");
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
