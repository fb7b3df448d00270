//! The workloads that come with the program, by the paper whose kernels they are.

use std::error::Error;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use gpumodel_report::paper::{Paper, PaperError};
use gpumodel_sim::config::Models;
use gpumodel_trace::workload::{self, Workload, WorkloadError};

use super::Outcome;
use super::output::stdout;

/// A paper, or none, and the names of the workloads under it.
type Group<'a> = (Option<&'a Paper>, Vec<&'a str>);

/// Lists names and descriptions; files of the folder `models` go before the program's own.
pub(super) fn list(models: Option<&Path>) -> Outcome {
    let models = &crate::models(models)?;
    let papers = papers(models)?;
    let groups = groups(&papers, models);
    let lengths = groups.iter().flat_map(|(_, names)| names).map(|name| name.len());
    let width = lengths.max().unwrap_or(0) + 2;
    let mut text = String::new();
    for (paper, names) in groups {
        writeln!(text, "{}:", heading(paper))?;
        for name in names {
            let workload = load(name, paper, models)?;
            writeln!(text, "  {name:<width$}{}", workload.description())?;
        }
    }
    stdout().write_all(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// The papers that have workload models, by name.
fn papers(models: &Models) -> Result<Vec<Paper>, PaperError> {
    let papers = models.names("papers").into_iter().map(|name| Paper::load(models, name));
    let papers: Result<Vec<Paper>, PaperError> = papers.collect();
    Ok(papers?.into_iter().filter(|paper| !paper.workloads.is_empty()).collect())
}

/// The workloads of no paper, then those of each.
fn groups<'a>(papers: &'a [Paper], models: &'a Models) -> Vec<Group<'a>> {
    let listed = |name: &&str| papers.iter().any(|p| p.workloads.iter().any(|one| one == name));
    let others = workload::names(models).into_iter().filter(|name| !listed(name)).collect();
    let own = papers.iter().map(|paper| {
        let names = paper.workloads.iter().map(String::as_str).collect();
        (Some(paper), names)
    });
    std::iter::once((None, others)).chain(own).collect()
}

/// What stands above a group; `reproduce` takes the name of the paper.
fn heading(paper: Option<&Paper>) -> String {
    let Some(paper) = paper else { return String::from("of no paper") };
    let machine = paper.machine.as_ref().map(|machine| format!(" (machine {machine})"));
    format!("kernels of {}{}", paper.name, machine.unwrap_or_default())
}

/// A workload; where there is none of that name, its paper's file is wrong.
fn load(
    name: &str,
    paper: Option<&Paper>,
    models: &Models,
) -> Result<Workload, Box<dyn Error + Send + Sync>> {
    match (Workload::load(name, models), paper) {
        (Err(error @ WorkloadError::Unknown { .. }), Some(paper)) => {
            Err(format!("papers/{}.toml: workloads: {error}", paper.name).into())
        }
        (loaded, _) => Ok(loaded?),
    }
}
