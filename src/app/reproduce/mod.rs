//! Reproductions: runs the parts of a paper's evaluation and compares the results with the
//! published values.
//!
//! Every part has a folder with its plan or queue, so that `sweep` or `analyze` can run it by
//! hand. Cells that have ended do not run again.

mod check;
mod part;
mod published;

use std::collections::BTreeMap;
use std::path::PathBuf;

use thiserror::Error;

use gpumodel_core::units::{FolderPurpose, did_you_mean};
use gpumodel_report::paper::{
    Headline, HeadlineRow, Paper, PaperError, REPRODUCTION_SCHEMA, ReproducedPaper, ReproducedPart,
    Reproduction, RunSelection, Set, Side, judge,
};
use gpumodel_report::results::{Analysis, RecordError, joined};
use gpumodel_sim::config::{Models, SpecError};

use crate::cache::results::BUILD;
use crate::{RunError, SweepError, SweepWatch};
use part::{Prepared, distinct};

/// Selects all papers.
const ALL_PAPERS: &str = "all";

/// The request of `reproduce`.
#[derive(Clone, Debug)]
pub struct ReproduceRequest {
    /// A stem of `models/papers`, or `all`.
    pub paper: String,
    /// The folder of the report and the runs.
    pub report: PathBuf,
    /// A representative part with shorter runs.
    pub quick: bool,
    /// Reports the results in that folder without running anything.
    pub so_far: bool,
    /// Also uses records of other builds of the program. Queues run again: their records do not
    /// name the build.
    pub mixed_versions: bool,
    /// Memory for all cells that run at once; `None`: most of the free memory.
    pub memory_bytes: Option<u64>,
    /// A folder of model files that take precedence over the built-in ones.
    pub models: Option<PathBuf>,
    /// The cache folder, for converted traces and results.
    pub cache: PathBuf,
    /// The names of all figures.
    pub figures: Vec<String>,
}

/// A part that has been run, with its records.
struct Ran {
    part: ReproducedPart,
    records: Vec<Analysis>,
}

/// Runs the parts of the papers' evaluations and compares the results with the published values.
///
/// # Errors
/// [`ReproduceError`]: an unknown paper, an invalid file, a folder that cannot be written, or an
/// interrupt. A cell that fails is counted, and rows that need it have no value.
pub fn reproduce(
    request: &ReproduceRequest,
    watch: &dyn SweepWatch,
) -> Result<Reproduction, ReproduceError> {
    let models = crate::models(request.models.as_deref())?;
    let papers = requested_papers(&models, &request.paper)?;
    check::report(&request.report, &papers)?;
    let marked = FolderPurpose::Reproduction.mark(&request.report);
    marked.map_err(|source| ReproduceError::Folder { path: request.report.clone(), source })?;
    let mut ready = Vec::new();
    for paper in &papers {
        check::names(paper, &request.figures)?;
        ready.push(prepared(paper, &models, request)?);
    }
    let mut found = Vec::new();
    let (mut before, of) = (0, ready.iter().map(Vec::len).sum());
    for (paper, parts) in papers.iter().zip(&ready) {
        found.push(one(paper, (parts, before, of), &models, request, watch)?);
        before += parts.len();
    }
    Ok(Reproduction {
        schema: REPRODUCTION_SCHEMA.to_owned(),
        program: concat!("gpumodel ", env!("CARGO_PKG_VERSION")).to_owned(),
        build: BUILD.to_owned(),
        quick: request.quick,
        papers: found,
    })
}

/// The requested papers.
fn requested_papers(models: &Models, name: &str) -> Result<Vec<Paper>, ReproduceError> {
    let all = Paper::all(models)?;
    if name == ALL_PAPERS {
        return Ok(all);
    }
    let known: Vec<String> = all.iter().map(|paper| paper.name.clone()).collect();
    match all.into_iter().find(|paper| paper.name == name) {
        Some(paper) => Ok(vec![paper]),
        None => {
            let names = known.iter().map(String::as_str);
            let hint = did_you_mean(name, names.chain(std::iter::once(ALL_PAPERS)));
            Err(ReproduceError::NoPaper { name: name.to_owned(), hint, known: known.join(", ") })
        }
    }
}

/// The parts of `paper` to run, each with its folder, plan or queue.
fn prepared<'a>(
    paper: &'a Paper,
    models: &Models,
    request: &ReproduceRequest,
) -> Result<Vec<Prepared<'a>>, ReproduceError> {
    let mut parts = Vec::new();
    for part in &paper.parts {
        parts.extend(Prepared::new(paper, part, models, request)?);
    }
    Ok(parts)
}

/// Runs the parts of `paper`: of all `of` parts, `before` have run.
fn one(
    paper: &Paper,
    (parts, before, of): (&[Prepared<'_>], usize, usize),
    models: &Models,
    request: &ReproduceRequest,
    watch: &dyn SweepWatch,
) -> Result<ReproducedPaper, ReproduceError> {
    let mut ran = Vec::new();
    for (place, part) in parts.iter().enumerate() {
        if !request.so_far {
            watch.part(before + place + 1, of, &format!("{} {}", paper.name, part.name()));
        }
        let (part, records) = part.run(models, request, watch)?;
        ran.push(Ran { part, records: joined(records) });
    }
    let row = |headline: &Headline| {
        let row = filled(headline, &paper.sets[&headline.set], &ran, request.quick);
        HeadlineRow { analysis: analysis(headline, &row, request.quick), ..row }
    };
    let mut rows: Vec<HeadlineRow> = paper.headlines.iter().map(row).collect();
    judge(&mut rows);
    if !request.quick {
        for Ran { part, .. } in &mut ran {
            part.figures = published::marked(part, paper, &rows);
        }
    }
    let tables = published::tables(paper, &ran, request.quick);
    Ok(ReproducedPaper {
        paper: paper.name.clone(),
        description: paper.description.clone(),
        parts: ran.into_iter().map(|ran| ran.part).collect(),
        rows,
        tables,
        silent: paper.silences.clone(),
    })
}

/// `headline` with the result of the part that `set` belongs to.
fn filled(headline: &Headline, set: &Set, ran: &[Ran], partial: bool) -> HeadlineRow {
    let mut row = HeadlineRow { headline: headline.clone(), ..HeadlineRow::default() };
    if set.best {
        row.headline.mean = String::from("best");
    }
    let part = ran.iter().find(|ran| ran.part.name == set.part);
    // Short versions run machines as their files have them.
    let as_in_file = BTreeMap::new();
    let selection = RunSelection {
        mixes: set.mixes.as_deref(),
        overrides: Some(if partial { &as_in_file } else { &set.overrides }),
        distribution: set.distribution.as_deref(),
        partial: partial || part.is_some_and(|ran| ran.part.left > 0),
    };
    if let Some(ran) = part {
        row.fill(&ran.records, &selection);
    }
    let all = part.and_then(|ran| ran.part.mixes);
    row.set_mixes = set.mixes.as_deref().map(distinct).or(all);
    row
}

/// The paper file's explanation of `row`, if it applies to the side of our value.
fn analysis(headline: &Headline, row: &HeadlineRow, quick: bool) -> Option<String> {
    if quick {
        return headline.quick_analysis.clone();
    }
    let low = headline.when? == Side::Low;
    headline.analysis.clone().filter(|_| row.is_low() == Some(low))
}

/// Why a reproduction failed.
#[derive(Debug, Error)]
pub enum ReproduceError {
    /// A model file is invalid.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// A paper's file cannot be read.
    #[error(transparent)]
    File(#[from] PaperError),
    /// No paper of that name has an evaluation.
    #[error("no paper {name}{hint}; the papers are: all, {known}")]
    NoPaper {
        /// The argument.
        name: String,
        /// A hint at the most similar name; may be empty.
        hint: String,
        /// Every name.
        known: String,
    },
    /// A paper's file names something unknown or not run.
    #[error("papers/{paper}.toml: {message}")]
    Paper {
        /// The stem of the file.
        paper: String,
        /// Where in it, and the problem.
        message: String,
    },
    /// A part's plan or queue cannot be read.
    #[error("papers/{paper}.toml: part {part}")]
    Part {
        /// The stem of the file.
        paper: String,
        /// Which part.
        part: String,
        /// Why.
        source: Box<SpecError>,
    },
    /// A part's sweep cannot be run.
    #[error("part {part}")]
    Sweep {
        /// The part.
        part: String,
        /// Why.
        source: Box<SweepError>,
    },
    /// A part's queue cannot be run.
    #[error("part {part}")]
    Queue {
        /// The part.
        part: String,
        /// Why.
        source: Box<RunError>,
    },
    /// A record of this reproduction cannot be read.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The folder has a report on papers that this one would drop.
    #[error(
        "{} holds a report on {}, which this one would replace: name another folder, or \
         reproduce all papers",
        folder.display(),
        others.join(", ")
    )]
    Replaces {
        /// The folder.
        folder: PathBuf,
        /// The papers.
        others: Vec<String>,
    },
    /// The folder of the report cannot be written.
    #[error("cannot write into {}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It was interrupted; what has ended is kept.
    #[error("part {part} was interrupted with {left} cells left")]
    Stopped {
        /// The part.
        part: String,
        /// Cells that have not ended.
        left: usize,
    },
}

#[cfg(test)]
mod tests {
    use gpumodel_core::toml::Node;

    use super::{Headline, HeadlineRow, analysis};

    #[test]
    fn an_analysis_is_of_whole_runs_and_one_side() {
        let text = "published = 'F'\nscheme = 'a'\nover = 'b'\nset = 's'\nmeasure = 'stp'\n\
             percent = 10.0\nanalysis = 'too slow'\nwhen = 'low'\nquick_analysis = 'cut'\n";
        let headline: Headline = Node::read("paper", text).unwrap().decode().unwrap();
        let found = |ours, quick| {
            let row = HeadlineRow {
                headline: headline.clone(),
                modelled_percent: ours,
                ..HeadlineRow::default()
            };
            analysis(&headline, &row, quick)
        };
        assert_eq!(found(Some(-5.0), false).as_deref(), Some("too slow"));
        assert_eq!(found(Some(30.0), false), None);
        assert_eq!(found(None, false), None);
        assert_eq!(found(Some(30.0), true).as_deref(), Some("cut"));
    }
}
