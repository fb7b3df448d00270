//! What a paper prints of its evaluation, and which of our plans repeats it:
//! `models/papers/NAME.toml`.

use std::collections::BTreeMap;

use gpumodel_core::models::{ModelFiles, ModelText};
use gpumodel_core::toml::{Node, TomlError};
use gpumodel_core::units::{nearest, sorted_mix};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::headline::Headline;
use super::published_table::{PublishedTable, tables};
use crate::results::Analysis;

/// The folder of `models/` with a file for each paper.
const FOLDER: &str = "papers";

/// A paper's evaluation.
#[derive(Clone, Debug, Deserialize)]
pub struct Paper {
    /// Stem of its file.
    #[serde(skip)]
    pub name: String,
    /// Authors, title and place.
    pub description: String,
    /// The machine of `models/gpus` that its kernels run on.
    pub machine: Option<String>,
    /// The models of its kernels: names in `models/workloads`, which is not looked into here.
    #[serde(default)]
    pub workloads: Vec<String>,
    /// What is run.
    #[serde(default, rename = "part")]
    pub parts: Vec<Part>,
    /// Which runs a printed value is about, by name.
    #[serde(default)]
    pub sets: BTreeMap<String, Set>,
    /// The values that stand for the paper.
    #[serde(default, rename = "headline")]
    pub headlines: Vec<Headline>,
    /// Where the paper is silent.
    #[serde(default, rename = "silent")]
    pub silences: Vec<Silence>,
    /// The other tables that it prints.
    #[serde(skip)]
    pub tables: Vec<PublishedTable>,
    /// What of the file is nothing else: those tables, as they are written.
    #[serde(flatten)]
    rest: toml::Table,
}

/// A study of a paper, as we run it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// Its name: letters, digits and `-`.
    pub name: String,
    /// What is studied.
    pub title: String,
    /// What of the paper's method is run, and what otherwise.
    pub covers: String,
    /// The same of the short version.
    #[serde(default)]
    pub quick_covers: String,
    /// The stem of a plan in `models/plans`; else `queue` is one of a queue in
    /// `models/mixes`.
    pub plan: Option<String>,
    /// See `plan`.
    pub queue: Option<String>,
    /// The stem of a short plan or queue; absent: no part of a short reproduction.
    pub quick: Option<String>,
    /// Of a queue: on which machine.
    pub machine: Option<String>,
    /// Of a queue: under which schemes.
    #[serde(default)]
    pub schemes: Vec<String>,
    /// What is drawn.
    #[serde(default, rename = "figure")]
    pub figures: Vec<PartFigure>,
}

/// A figure of a part.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartFigure {
    /// Its name in `gpumodel plot --list`.
    pub name: String,
    /// Which figure of the paper it is compared with.
    pub shows: String,
    /// The scheme that others are divided by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<String>,
    /// What is compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<String>,
    /// The mix that it is of alone; absent: all of the study.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mix: Option<Vec<String>>,
}

/// Runs that a value is about, by name in the file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Set {
    /// Of which part.
    pub part: String,
    /// Which mixes of it, by the names of applications in any order; absent: all.
    pub mixes: Option<Vec<Vec<String>>>,
    /// How many SMs, say: what tells its machine from others of the part, as the plan
    /// sets it; absent, and in short versions: the machine as it is.
    #[serde(default)]
    pub overrides: BTreeMap<String, String>,
    /// Which distribution of classes of a queue; absent: the mean over all.
    pub distribution: Option<String>,
    /// The best of the mixes instead of their mean.
    #[serde(default)]
    pub best: bool,
}

/// Runs that a value is about, to be taken out of the records of its part.
#[derive(Clone, Copy, Debug, Default)]
pub struct RunSelection<'a> {
    /// Mixes, each by its applications in any order; `None`: all.
    pub mixes: Option<&'a [Vec<String>]>,
    /// What is set of the machine.
    pub overrides: Option<&'a BTreeMap<String, String>>,
    /// The distribution of classes of a queue; `None`: all.
    pub distribution: Option<&'a str>,
    /// A mix without a value is no fault: the runs are a part of the paper's.
    pub partial: bool,
}

impl RunSelection<'_> {
    /// The applications of a record that belongs to these, sorted.
    #[must_use]
    pub fn takes<'r>(&self, record: &'r Analysis) -> Option<Vec<&'r str>> {
        let run = record.coruns.first()?;
        let names = sorted_mix(run.apps.iter().map(|app| &app.app));
        let is = |mix: &Vec<String>| sorted_mix(mix) == names;
        let set = self.overrides.is_none_or(|overrides| *overrides == record.overrides);
        let mixes = self.mixes.is_none_or(|mixes| mixes.iter().any(is));
        (set && mixes).then_some(names)
    }
}

/// What a paper does not say.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Silence {
    /// What is not said.
    pub what: String,
    /// What we take.
    pub taken: String,
    /// What another choice changes, with numbers, or that it is not measured.
    pub sensitivity: String,
}

/// Why the file of a paper cannot be read.
#[derive(Debug, Error)]
pub enum PaperError {
    /// There is no file of that name.
    #[error(
        "no `{name}` in models/papers{}; known: {known}",
        nearest.as_ref().map_or_else(String::new, |name| format!("; did you mean `{name}`?"))
    )]
    Unknown {
        /// The name that was asked for.
        name: String,
        /// The known name that is spelt most alike.
        nearest: Option<String>,
        /// Every known name.
        known: String,
    },
    /// The file is no paper's.
    #[error(transparent)]
    Toml(#[from] TomlError),
    /// The file is wrong.
    #[error("{file}: {message}")]
    File {
        /// Which.
        file: String,
        /// What was expected and what was found.
        message: String,
    },
}

/// The text of `papers/NAME.toml`.
fn text<'m>(models: &'m ModelFiles, name: &str) -> Result<&'m ModelText, PaperError> {
    models.named(FOLDER, name).ok_or_else(|| {
        let known = models.names(FOLDER);
        let nearest = nearest(name, known.iter().copied());
        PaperError::Unknown { name: name.to_owned(), nearest, known: known.join(", ") }
    })
}

/// `papers/NAME.toml`.
pub(super) fn read(models: &ModelFiles, name: &str) -> Result<Node, PaperError> {
    let text = text(models, name)?;
    Ok(Node::read(&text.origin, &text.text)?)
}

impl Paper {
    /// Reads `papers/NAME.toml`.
    ///
    /// # Errors
    /// [`PaperError::Unknown`] with the nearest name, [`PaperError::File`] with file, line
    /// and what is wrong.
    pub fn load(models: &ModelFiles, name: &str) -> Result<Self, PaperError> {
        let mut paper: Self = read(models, name)?.decode()?;
        let file = &text(models, name)?.origin;
        let wrong = |message: String| PaperError::File { file: file.clone(), message };
        name.clone_into(&mut paper.name);
        paper.tables = tables(std::mem::take(&mut paper.rest)).map_err(wrong)?;
        paper.check().map_err(wrong)?;
        Ok(paper)
    }

    /// Every paper whose evaluation can be run, by name.
    ///
    /// # Errors
    /// As [`Paper::load`].
    pub fn all(models: &ModelFiles) -> Result<Vec<Self>, PaperError> {
        let papers = models.names(FOLDER).into_iter().map(|name| Self::load(models, name));
        let papers: Result<Vec<Self>, PaperError> = papers.collect();
        Ok(papers?.into_iter().filter(|paper| !paper.parts.is_empty()).collect())
    }

    fn check(&self) -> Result<(), String> {
        // Values may be written down before there is a plan.
        if self.parts.is_empty() {
            return Ok(());
        }
        for (place, part) in self.parts.iter().enumerate() {
            part.check().map_err(|message| format!("part {}: {message}", part.name))?;
            if self.parts[..place].iter().any(|other| other.name == part.name) {
                return Err(format!("part {}: there are two of that name", part.name));
            }
        }
        let part = |name: &String| self.parts.iter().any(|part| part.name == *name);
        if let Some((name, set)) = self.sets.iter().find(|(_, set)| !part(&set.part)) {
            return Err(format!("sets.{name}: there is no part {}", set.part));
        }
        if let Some(wrong) = self.tables.iter().find_map(|table| table.wrong(&self.sets)) {
            return Err(wrong);
        }
        let wrong =
            |row: &Headline| row.wrong(&self.sets).map(|wrong| (row.published.clone(), wrong));
        match self.headlines.iter().find_map(wrong) {
            Some((published, wrong)) => Err(format!("headline of {published}: {wrong}")),
            None => Ok(()),
        }
    }
}

impl Part {
    fn check(&self) -> Result<(), String> {
        let plain = |name: &String| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
        };
        let metrics = self.figures.iter().filter_map(|figure| figure.metric.as_ref());
        let figures = self.figures.iter().map(|figure| &figure.name);
        let mixes = self.figures.iter().filter_map(|figure| figure.mix.as_ref()).flatten();
        let mut names = [&self.name].into_iter().chain(metrics).chain(figures).chain(mixes);
        if let Some(bad) = names.find(|name| !plain(name)) {
            return Err(format!("expected names of letters, digits and -, found {bad:?}"));
        }
        let whole = match (&self.plan, &self.queue, &self.machine) {
            (Some(_), None, None) => self.schemes.is_empty(),
            (None, Some(_), Some(_)) => !self.schemes.is_empty(),
            _ => false,
        };
        if whole {
            Ok(())
        } else {
            Err("expected either plan, or queue, machine and schemes".into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Paper;
    use crate::paper::Side;

    fn load(text: &str) -> Result<Paper, String> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("papers")).unwrap();
        std::fs::write(folder.path().join("papers/own.toml"), text).unwrap();
        let models = gpumodel_models::builtin().with_folder(folder.path()).unwrap();
        Paper::load(&models, "own").map_err(|error| error.to_string())
    }

    const PART: &str = "description = 'D'\n[[part]]\nname = 'p'\ntitle = 'P'\ncovers = 'all'\n\
        plan = 'x'\n";

    #[test]
    fn what_a_value_is_about_has_to_be_there() {
        let row = "[[headline]]\npublished = 'F'\nscheme = 'a'\nover = 'b'\nset = 's'\n\
                   measure = 'stp'\npercent = [1.0, 2.0]\n";
        let error = load(&format!("{PART}{row}")).unwrap_err();
        assert!(error.ends_with("headline of F: there is no set s"), "{error}");
        let error = load(&format!("{PART}[sets.s]\npart = 'q'\n{row}")).unwrap_err();
        assert!(error.ends_with("sets.s: there is no part q"), "{error}");
        let paper = load(&format!("{PART}[sets.s]\npart = 'p'\n{row}")).unwrap();
        assert_eq!(paper.headlines[0].published_percent, [1.0, 2.0]);
        assert_eq!(paper.headlines[0].mean, "arithmetic");
        let set = format!("{PART}[sets.s]\npart = 'p'\n{row}");
        let error = load(&set.replace("[1.0, 2.0]", "[2.0, 1.0]")).unwrap_err();
        assert!(error.ends_with("percent: expected [lowest, highest], found [2, 1]"), "{error}");
        let error = load(&set.replace("[1.0, 2.0]", "nan")).unwrap_err();
        assert!(error.contains("own.toml:15: `headline.percent`: expected a number"), "{error}");
        let error = load(&format!("{set}analysis = 'slow'\n")).unwrap_err();
        assert!(error.contains("headline of F: when: expected it with analysis"), "{error}");
        let error = load(&format!("{set}analysis = 'slow'\nwhen = 'below'\n")).unwrap_err();
        assert!(error.contains("own.toml") && error.contains("one of low, high"), "{error}");
        let paper = load(&format!("{set}analysis = 'slow'\nwhen = 'high'\n")).unwrap();
        assert_eq!(paper.headlines[0].when, Some(Side::High));
        let error = load(&format!("{set}mean = 'middle'\n")).unwrap_err();
        assert!(
            error.ends_with("arithmetic, geometric, largest, largest-change, found middle"),
            "{error}"
        );
        let error = load(&format!("{PART}{}", PART.split_once('\n').unwrap().1)).unwrap_err();
        assert!(error.ends_with("part p: there are two of that name"), "{error}");
        let compared = "[t]\npublished = 'F'\nx = 1\n[t.compared.x]\nscheme = 'a'\nset = 's'\n\
                        measure = 'stp'\n";
        let error = load(&format!("{PART}{compared}")).unwrap_err();
        assert!(error.ends_with("own.toml: t.compared.x: there is no set s"), "{error}");
        let error = load(&format!("{PART}[sets.s]\npart = 'p'\nparts = 'q'\n")).unwrap_err();
        assert!(error.contains("unknown key `sets.s.parts`; did you mean `part`?"), "{error}");
    }

    #[test]
    fn the_papers_that_come_with_the_program_can_be_read() {
        let models = gpumodel_models::builtin();
        for name in models.names("papers") {
            Paper::load(&models, name).unwrap();
        }
        assert!(!Paper::all(&models).unwrap().is_empty());
    }
}
