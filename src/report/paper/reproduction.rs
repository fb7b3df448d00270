//! Papers' evaluations as we ran them, and what the papers print.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::file::{PartFigure, Silence};
use super::headline::{HeadlineRow, Verdict};
use super::published_table::PublishedTable;
use crate::results::{RecordError, is_zero, pretty, read_document};

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
