//! Published values in the figures and tables of a reproduction.

use std::collections::BTreeMap;

use gpumodel_report::paper::{
    Compared, Headline, HeadlineRow, Paper, Part, PublishedLookup, PublishedTable, PublishedValue,
    ReproducedFigure, ReproducedPart, TableEntry,
};

use super::{Ran, filled};

/// The figures of `part`, without published values.
pub(super) fn figures(part: &Part) -> Vec<ReproducedFigure> {
    let figures = part.figures.iter().cloned();
    figures.map(|figure| ReproducedFigure { figure, published_percent: BTreeMap::new() }).collect()
}

/// The figures of `part`, which is no short version, with the published means over all its
/// mixes; `rows` are the filled rows of the paper.
pub(super) fn marked(
    part: &ReproducedPart,
    paper: &Paper,
    rows: &[HeadlineRow],
) -> Vec<ReproducedFigure> {
    let whole: Vec<&HeadlineRow> = rows.iter().filter(|row| is_whole(row, part, paper)).collect();
    let marked = |figure: &ReproducedFigure| {
        let own = |row: &&&HeadlineRow| {
            let over = figure.figure.baseline.as_ref() == Some(&row.headline.over);
            over && figure.figure.metric.as_ref() == Some(&row.headline.measure)
        };
        let headlines = whole.iter().filter(own).map(|row| &row.headline);
        let printed = headlines.map(|one| (one.scheme.clone(), one.published_percent));
        ReproducedFigure { published_percent: printed.collect(), ..figure.clone() }
    };
    part.figures.iter().map(marked).collect()
}

/// Whether `row` is a mean over all mixes of `part`, and each of them has a value here.
fn is_whole(row: &HeadlineRow, part: &ReproducedPart, paper: &Paper) -> bool {
    let set = &paper.sets[&row.headline.set];
    let plain = set.overrides.is_empty() && set.distribution.is_none();
    let mean = ["arithmetic", "geometric"].contains(&row.headline.mean.as_str());
    let mean = mean && !row.headline.limit;
    let all = match part.mixes {
        Some(all) => row.mixes.len() == all,
        None => set.mixes.is_none() && part.failed == 0,
    };
    set.part == part.name && plain && mean && all
}

/// The value of a table that holds its window in cycles.
const WINDOW: &str = "cycles";

/// Every table of `paper` with our values; `partial`: only some of the paper's runs exist.
pub(super) fn tables(paper: &Paper, ran: &[Ran], partial: bool) -> Vec<PublishedTable> {
    let mut tables = paper.tables.clone();
    for (own, table) in tables.iter_mut().zip(&paper.tables) {
        for value in &mut own.values {
            value.modelled = match table.compared.get(&value.column) {
                Some(compared) => gain(compared, paper, ran, partial),
                None => found(table, value, ran),
            };
        }
    }
    tables
}

/// The gain of one scheme over another.
fn gain(compared: &Compared, paper: &Paper, ran: &[Ran], partial: bool) -> Option<TableEntry> {
    let headline = Headline {
        scheme: compared.scheme.clone(),
        over: compared.over.clone(),
        set: compared.set.clone(),
        measure: compared.measure.clone(),
        mean: compared.mean.clone(),
        ..Headline::default()
    };
    let row = filled(&headline, &paper.sets[&compared.set], ran, partial);
    row.modelled_percent.map(TableEntry::Number)
}

/// The value of the first part that has it.
fn found(table: &PublishedTable, value: &PublishedValue, ran: &[Ran]) -> Option<TableEntry> {
    let names = value.apps.iter().map(|app| vec![app.model.clone(), app.label.clone()]);
    let apps: Vec<Vec<String>> = names.collect();
    let window = |value: &PublishedValue| match value.published {
        TableEntry::Number(cycles) if value.rows.is_empty() && value.column == WINDOW => {
            Some(cycles)
        }
        _ => None,
    };
    let lookup = PublishedLookup {
        rows: &value.rows,
        row: &value.row,
        column: &value.column,
        apps: &apps,
        schemes: &table.schemes,
        at: &value.at,
        window_cycles: table.values.iter().find_map(window),
    };
    ran.iter().find_map(|ran| lookup.value(&ran.records))
}

#[cfg(test)]
mod tests {
    use gpumodel_report::paper::{Headline, HeadlineRow, MixGain, Paper, ReproducedPart};

    use super::{figures, marked};

    /// The published value of IPC over left-over in a part of `all` mixes, where the runs of each
    /// row have `ran` of them.
    fn printed(part: &str, all: Option<usize>, ran: usize, failed: usize) -> Option<[f64; 2]> {
        let paper = Paper::load(&crate::models(None).unwrap(), "warped-slicer").unwrap();
        let own = paper.parts.iter().find(|one| one.name == part).unwrap();
        let part = ReproducedPart {
            name: own.name.clone(),
            mixes: all,
            failed,
            figures: figures(own),
            ..ReproducedPart::default()
        };
        let filled = |headline: &Headline| HeadlineRow {
            mixes: vec![MixGain::default(); ran],
            ..super::super::filled(headline, &paper.sets[&headline.set], &[], false)
        };
        let rows: Vec<HeadlineRow> = paper.headlines.iter().map(filled).collect();
        let drawn = marked(&part, &paper, &rows);
        let one =
            drawn.iter().find(|figure| figure.figure.metric.as_deref() == Some("ipc")).unwrap();
        one.published_percent.get("warped-slicer").copied()
    }

    #[test]
    fn a_figure_has_what_is_printed_of_all_its_mixes() {
        assert_eq!(printed("pairs", Some(30), 30, 0), Some([23.0, 23.0]));
        assert_eq!(printed("pairs", Some(31), 30, 0), None, "one is not in the set");
        // Over left-over only pairs are printed.
        assert_eq!(printed("triples", Some(15), 15, 0), None);
    }

    #[test]
    fn a_mean_without_all_mixes_has_no_published_value() {
        assert_eq!(printed("pairs", Some(30), 29, 1), None);
        assert_eq!(printed("pairs", None, 30, 0), None, "of a list of unknown length");
        // Runs that failed were of other schemes.
        assert_eq!(printed("pairs", Some(30), 30, 1), Some([23.0, 23.0]));
    }
}
