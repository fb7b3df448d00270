//! What the report of a reproduction says.

use super::headline::{HeadlineRow, Verdict};
use super::published_table::published;
use super::reproduction::{ReproducedPaper, ReproducedPart, Reproduction};
use super::write::{drawn, printed, shown};
use crate::ReportError;
use crate::document::Block;
use crate::format::csv as values;
use crate::results::{Analysis, Measure, RecordError};
use crate::table::words;

/// The title of the report.
pub(super) const TITLE: &str = "Papers beside the model";

const COLUMNS: [&str; 8] = ["scheme", "over", "runs", "by", "paper", "model", "mixes", "verdict"];

/// Behind which of them a report says where a value is printed.
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
pub(super) fn blocks(
    reproduction: &Reproduction,
    read: &Reader<'_>,
) -> Result<Vec<Block>, ReportError> {
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

/// The rows with their places in the paper.
fn judged(rows: &[HeadlineRow]) -> Block {
    let mut header = COLUMNS.to_vec();
    header.insert(PLACE, "where");
    let placed = |row: &HeadlineRow| {
        let mut cells = cells(row);
        cells.insert(PLACE, row.headline.published.clone());
        cells
    };
    Block::Table(header, rows.iter().map(placed).collect())
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
        blocks.push(Block::Figure(file, about, drawn(figure, &records)));
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
    blocks.push(Block::Table(
        vec!["not said", "taken here", "what another choice changes"],
        rows.collect(),
    ));
}

fn verdict(row: &HeadlineRow) -> &'static str {
    match row.verdict {
        Verdict::Pass => "agrees",
        Verdict::Fail => "FAILS",
        Verdict::NotRun => "not run",
    }
}

fn cells(row: &HeadlineRow) -> Vec<String> {
    let measure = Measure::named(&row.headline.measure).map(Measure::words);
    let most = ["best", "largest", "largest-change"].contains(&row.headline.mean.as_str());
    let set = if most {
        format!("{}, {}", row.headline.set, row.headline.mean)
    } else {
        row.headline.set.clone()
    };
    vec![
        row.headline.scheme.clone(),
        if row.headline.over.is_empty() { String::from("–") } else { row.headline.over.clone() },
        set,
        measure.unwrap_or(&row.headline.measure).to_owned(),
        printed(row),
        row.modelled_percent.map_or_else(|| String::from("–"), |ours| shown(row, ours)),
        counted(row),
        verdict(row).to_owned(),
    ]
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
    let said = row.analysis.as_deref().unwrap_or("The cause has not been found out.");
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
    let mut header = vec![String::from("paper")];
    header.extend(COLUMNS.map(String::from));
    let rows = reproduction.papers.iter().flat_map(|paper| {
        paper.rows.iter().map(|row| {
            let mut all = vec![paper.paper.clone()];
            all.extend(cells(row));
            all
        })
    });
    let text = |column: usize| column < 5 || column == 8;
    let [passed, failed, missing] = reproduction.counts();
    words(header, rows.collect(), text)
        + &format!("\nrows that agree: {passed}, that do not: {failed}, not run: {missing}\n")
}

const HEADER: [&str; 11] = [
    "paper",
    "scheme",
    "over",
    "set",
    "measure",
    "mix",
    "published_percent_low",
    "published_percent_high",
    "modelled_percent",
    "verdict",
    "published",
];

/// The rows as CSV, with one line for each mix and one for their mean.
pub(super) fn csv(reproduction: &Reproduction) -> String {
    let mut rows = Vec::new();
    for paper in &reproduction.papers {
        for row in &paper.rows {
            let mean = [(row.headline.mean.as_str(), row.modelled_percent)];
            let mixes = row.mixes.iter().map(|mix| (mix.mix.as_str(), Some(mix.percent)));
            for (mix, percent) in mixes.chain(mean) {
                let [low, high] = row.headline.published_percent.map(|end| end.to_string());
                let named = [
                    &paper.paper,
                    &row.headline.scheme,
                    &row.headline.over,
                    &row.headline.set,
                    &row.headline.measure,
                ];
                let [paper, scheme, over, set, measure] = named.map(Clone::clone);
                let percent = percent.map_or_else(String::new, |percent| percent.to_string());
                let mix = mix.to_owned();
                let (verdict, published) =
                    (verdict(row).to_owned(), row.headline.published.clone());
                rows.push([
                    paper, scheme, over, set, measure, mix, low, high, percent, verdict, published,
                ]);
            }
        }
    }
    values(HEADER, rows)
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
        let unknown = "is the other. These runs are short. The cause has not been found out.";
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
