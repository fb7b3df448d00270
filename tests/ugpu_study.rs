//! The runs of a study of UGPU, from the archives of `reports/records`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use gpumodel::report::results::{Analysis, CellRecord, CoRun, SweepFiles};
use tempfile::TempDir;

use crate::archive::unpacked;

/// Runs of the cells that have ended, in the order of the plan or of the list.
pub(crate) struct Study {
    pub(crate) runs: Vec<Run>,
}

/// The runs of a mix by scheme.
pub(crate) type Mix<'a> = BTreeMap<&'a str, &'a CoRun>;

/// One of them.
pub(crate) struct Run {
    /// The applications, and how the machine is set.
    pub(crate) mix: String,
    /// The scheme, with the parameters in which its cells differ.
    pub(crate) scheme: String,
    pub(crate) outcome: CoRun,
}

impl Study {
    fn read(folder: &Path, list: Option<&str>) -> Self {
        let files = SweepFiles::new(folder);
        let mut cells = files.cells().unwrap();
        if let Some(list) = list {
            let text = fs::read_to_string(folder.join(list)).unwrap();
            let chosen = text.lines().skip(1).map(|line| line.split(',').next().unwrap());
            let cell = |key: &str| cells.iter().find(|cell| cell.key == key).unwrap().clone();
            cells = chosen.map(cell).collect();
        }
        let run = |cell: &CellRecord| {
            let path = files.record(&cell.key);
            let coruns = path.is_file().then(|| Analysis::read(&path).unwrap().coruns);
            let outcome = coruns?.remove(0);
            Some(Run { mix: mix(cell), scheme: scheme(cell, &cells), outcome })
        };
        Self { runs: cells.iter().filter_map(run).collect() }
    }

    /// Mixes or schemes: what `name` gives of the runs, each once, as they first come.
    pub(crate) fn distinct(&self, name: fn(&Run) -> &str) -> Vec<&str> {
        let mut names = Vec::new();
        for run in &self.runs {
            if !names.contains(&name(run)) {
                names.push(name(run));
            }
        }
        names
    }

    /// The runs of `mix`, by scheme.
    pub(crate) fn of(&self, mix: &str) -> Mix<'_> {
        let own = self.runs.iter().filter(|run| run.mix == mix);
        own.map(|run| (run.scheme.as_str(), &run.outcome)).collect()
    }
}

fn mix(cell: &CellRecord) -> String {
    let settings = cell.overrides.iter().map(|(key, value)| format!("; `{key}={value}`"));
    cell.apps.join(", ").to_uppercase() + &settings.collect::<String>()
}

fn scheme(cell: &CellRecord, cells: &[CellRecord]) -> String {
    let differs = |key: &String| {
        let same = cells.iter().filter(|other| other.scheme == cell.scheme);
        same.map(|other| other.parameters.get(key)).any(|value| value != cell.parameters.get(key))
    };
    let told = cell.parameters.iter().filter(|(key, _)| differs(key));
    told.fold(cell.scheme.clone(), |name, (key, value)| format!("{name}:{key}={value}"))
}

/// The archives that were asked for, each unpacked once.
pub(crate) struct Archives {
    scratch: TempDir,
    folders: BTreeMap<String, PathBuf>,
}

impl Archives {
    pub(crate) fn new() -> Self {
        Self { scratch: tempfile::tempdir().unwrap(), folders: BTreeMap::new() }
    }

    /// The study of an archive `NAME`, or of the cells that the list `NAME/FILE` in it names.
    pub(crate) fn study(&mut self, records: &str) -> Study {
        let (archive, list) = records
            .split_once('/')
            .map_or((records, None), |(archive, list)| (archive, Some(list)));
        let place = self.scratch.path();
        let folder = self.folders.entry(archive.to_owned());
        Study::read(folder.or_insert_with(|| unpacked(archive, place)), list)
    }
}

/// Lists of `ugpu-pairs`: of how many of its mixes, from the first on, and which schemes.
const LISTS: &[(&str, usize, &[&str])] = &[
    ("ten", 10, &["bp", "ugpu-offline", "ugpu-ori", "ugpu-soft", "ugpu", "bp-cd-search"]),
    ("partitions", 50, &["bp", "bp-bs", "bp-sb", "ugpu-offline", "ugpu"]),
    ("pages", 50, &["bp", "ugpu-ori", "ugpu-soft", "ugpu"]),
    ("searches", 50, &["bp", "ugpu", "cd-search", "bp-cd-search"]),
];

#[test]
fn lists_of_pairs_name_the_cells_of_their_figures() {
    let place = tempfile::tempdir().unwrap();
    let folder = unpacked("ugpu-pairs", place.path());
    let cells = SweepFiles::new(&folder).cells().unwrap();
    let mut mixes: Vec<&[String]> = cells.iter().map(|cell| &cell.apps[..]).collect();
    mixes.dedup();
    assert_eq!(mixes.len(), 50);
    for (list, count, schemes) in LISTS {
        let own = cells.iter().filter(|cell| {
            mixes[..*count].contains(&&cell.apps[..]) && schemes.contains(&cell.scheme.as_str())
        });
        let row =
            |cell: &CellRecord| format!("{},{},{}", cell.key, cell.apps.join(" + "), cell.scheme);
        let rows: Vec<String> = own.map(row).collect();
        let text = fs::read_to_string(folder.join(format!("{list}.csv"))).unwrap();
        assert!(text.lines().skip(1).eq(rows), "{list}");
        assert!(text.lines().nth(1).unwrap().ends_with(",bp"), "{list}: not over bp");
    }
}
