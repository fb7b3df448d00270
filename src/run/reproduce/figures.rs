//! The figures of a part, with what the paper prints in them.

use std::collections::BTreeMap;

use crate::record::ReproducedFigure;
use crate::spec::{Headline, Paper, Part, PartFigure};

use super::mixes::distinct;

/// The figures of `part`, which has `mixes` mixes where its plan lists them.
pub(super) fn figures(paper: &Paper, part: &Part, mixes: Option<usize>) -> Vec<ReproducedFigure> {
    let figure = |figure: &PartFigure| ReproducedFigure {
        name: figure.name.clone(),
        shows: figure.shows.clone(),
        baseline: figure.baseline.clone(),
        metric: figure.metric.clone(),
        mix: figure.mix.clone(),
        published_percent: published(paper, part, mixes, figure),
    };
    part.figures.iter().map(figure).collect()
}

/// What `paper` prints of schemes over the figure's baseline by its metric, over all mixes.
fn published(
    paper: &Paper,
    part: &Part,
    mixes: Option<usize>,
    figure: &PartFigure,
) -> BTreeMap<String, [f64; 2]> {
    let whole = |row: &&Headline| {
        let set = &paper.sets[&row.set];
        let all = set.mixes.as_deref().is_none_or(|own| Some(distinct(own)) == mixes);
        let plain = !set.best && set.overrides.is_empty() && set.distribution.is_none();
        let mean = ["arithmetic", "geometric"].contains(&row.mean.as_str());
        set.part == part.name && all && plain && mean && !row.limit
    };
    let own = |row: &&Headline| {
        let over = figure.baseline.as_ref() == Some(&row.over);
        over && figure.metric.as_ref() == Some(&row.measure)
    };
    let rows = paper.headlines.iter().filter(whole).filter(own);
    rows.map(|row| (row.scheme.clone(), row.percent.ends())).collect()
}

#[cfg(test)]
mod tests {
    use super::figures;
    use crate::spec::{Models, Paper};

    #[test]
    fn a_figure_has_what_is_printed_of_all_its_mixes() {
        let paper = Paper::load(&Models::builtin(), "warped-slicer").unwrap();
        let printed = |part: &str, mixes| {
            let part = paper.parts.iter().find(|one| one.name == part).unwrap();
            let drawn = figures(&paper, part, mixes);
            let one = drawn.iter().find(|figure| figure.metric.as_deref() == Some("ipc")).unwrap();
            one.published_percent.get("warped-slicer").copied()
        };
        assert_eq!(printed("pairs", Some(30)), Some([23.0, 23.0]));
        assert_eq!(printed("pairs", Some(31)), None, "one is not in the set");
        // Over left-over only pairs are printed.
        assert_eq!(printed("triples", Some(15)), None);
    }
}
