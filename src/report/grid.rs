//! Applications together: mixes by schemes.

use super::mix::{mix_names, scheme_names};
use crate::results::{Analysis, CoRun};

/// Runs of several applications together: a row per mix, a column per scheme.
#[derive(Clone, Debug)]
pub(crate) struct Grid<'a> {
    /// Every scheme, in the order in which they first come.
    pub(crate) schemes: Vec<String>,
    /// Every record with such a run, in record order.
    pub(crate) mixes: Vec<Mix<'a>>,
}

/// One mix.
#[derive(Clone, Debug)]
pub(crate) struct Mix<'a> {
    /// What to call it.
    pub(crate) name: String,
    /// Its run under each scheme of the grid; `None`: there is none.
    pub(crate) runs: Vec<Option<&'a CoRun>>,
}

impl<'a> Grid<'a> {
    /// The runs of `records` in which several applications share the machine.
    pub(crate) fn new(records: &'a [Analysis]) -> Self {
        let shared = |run: &CoRun| run.apps.len() > 1;
        let records: Vec<&Analysis> =
            records.iter().filter(|record| record.coruns.iter().any(shared)).collect();
        let named = |record: &&'a Analysis| -> Vec<(String, &'a CoRun)> {
            let all = scheme_names(&record.coruns).into_iter().zip(&record.coruns);
            all.filter(|(_, run)| shared(run)).collect()
        };
        let rows: Vec<Vec<(String, &CoRun)>> = records.iter().map(named).collect();
        let mut schemes: Vec<String> = Vec::new();
        for (scheme, _) in rows.iter().flatten() {
            if !schemes.contains(scheme) {
                schemes.push(scheme.clone());
            }
        }
        let mix = |(name, row): (String, Vec<(String, &'a CoRun)>)| {
            let run = |scheme| row.iter().find(|(own, _)| own == scheme).map(|(_, run)| *run);
            Mix { name, runs: schemes.iter().map(run).collect() }
        };
        let mixes = mix_names(&records).into_iter().zip(rows).map(mix).collect();
        Self { schemes, mixes }
    }
}

#[cfg(test)]
mod tests {
    use super::Grid;
    use crate::results::{Analysis, CoRun, CoRunApp};

    #[test]
    fn a_mix_lacks_the_schemes_that_it_did_not_run_under() {
        let app = |name: &&str| CoRunApp { app: (*name).into(), ..CoRunApp::default() };
        let run = |scheme: &str, apps: &[&str]| CoRun {
            scheme: scheme.into(),
            apps: apps.iter().map(app).collect(),
            ..CoRun::default()
        };
        let record = |coruns| Analysis { coruns, ..Analysis::default() };
        let records = [
            record(vec![run("bp", &["x/a", "b"]), run("solo", &["a"])]),
            record(vec![run("solo", &["a"])]),
            record(vec![run("ugpu", &["a", "c"]), run("bp", &["a", "c"])]),
        ];
        let grid = Grid::new(&records);
        assert_eq!(grid.schemes, ["bp", "ugpu"]);
        let names: Vec<&str> = grid.mixes.iter().map(|mix| mix.name.as_str()).collect();
        assert_eq!(names, ["a+b", "a+c"]);
        assert!(grid.mixes[0].runs[0].is_some() && grid.mixes[0].runs[1].is_none());
        assert_eq!(grid.mixes[1].runs[1].map(|run| run.scheme.as_str()), Some("ugpu"));
    }
}
