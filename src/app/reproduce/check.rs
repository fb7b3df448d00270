//! Checks of a paper's file before anything runs: whether its parts will have what its rows need.

use std::path::Path;

use gpumodel_core::units::{did_you_mean, sorted_mix};
use gpumodel_report::paper::{ALONE, Compared, Headline, Paper, Part, Reproduction};
use gpumodel_report::results::Measure;

use crate::ReproduceError;
use crate::sweep::PlanNames;

/// Refuses a folder with a report on other papers than `papers`.
pub(super) fn report(folder: &Path, papers: &[Paper]) -> Result<(), ReproduceError> {
    let Ok(found) = Reproduction::read(&folder.join("reproduction.json")) else { return Ok(()) };
    let own = |name: &String| papers.iter().any(|paper| paper.name == *name);
    let names = found.papers.into_iter().map(|found| found.paper);
    let others: Vec<String> = names.filter(|name| !own(name)).collect();
    if others.is_empty() {
        return Ok(());
    }
    Err(ReproduceError::Replaces { folder: folder.to_path_buf(), others })
}

/// Refuses unknown measures and figures; `figures` are the known ones.
pub(super) fn names(paper: &Paper, figures: &[String]) -> Result<(), ReproduceError> {
    for row in &paper.headlines {
        measure(&row.measure, &row.over).map_err(|message| invalid(paper, row, &message))?;
    }
    for (place, compared) in compared(paper) {
        measure(&compared.measure, &compared.over)
            .map_err(|message| at(paper, &place, &message))?;
    }
    for part in &paper.parts {
        let unknown = |name: &&String| !figures.contains(name);
        if let Some(name) = part.figures.iter().map(|figure| &figure.name).find(unknown) {
            let hint = did_you_mean(name, figures.iter().map(String::as_str));
            let message = format!("part {}: there is no figure {name}{hint}", part.name);
            return Err(ReproduceError::Paper { paper: paper.name.clone(), message });
        }
    }
    Ok(())
}

/// The comparisons of tables, with their locations.
fn compared(paper: &Paper) -> impl Iterator<Item = (String, &Compared)> {
    paper.tables.iter().flat_map(|table| {
        let place = move |column: &String| format!("{}.compared.{column}", table.name);
        table.compared.iter().map(move |(column, compared)| (place(column), compared))
    })
}

fn measure(name: &str, over: &str) -> Result<(), String> {
    let Some(measure) = Measure::named(name) else {
        let known = Measure::names();
        return Err(format!("measure: expected one of {known}, found {name}"));
    };
    match (measure.of_one(), over.is_empty()) {
        (false, true) => Err(format!("over: expected a scheme, as {name} compares two")),
        (true, false) => {
            Err(format!("over: expected none, as {name} is of one scheme, found {over}"))
        }
        _ => Ok(()),
    }
}

/// Refuses rows about schemes or mixes that `plan`, the plan of `part`, does not have.
pub(super) fn rows(paper: &Paper, part: &Part, plan: &PlanNames) -> Result<(), ReproduceError> {
    for row in &paper.headlines {
        let set = &paper.sets[&row.set];
        if set.part == part.name {
            let ours = [("scheme", &row.scheme), ("over", &row.over)];
            schemes(ours, &plan.schemes).map_err(|message| invalid(paper, row, &message))?;
        }
    }
    for (place, compared) in compared(paper) {
        if paper.sets[&compared.set].part == part.name {
            let ours = [("scheme", &compared.scheme), ("over", &compared.over)];
            schemes(ours, &plan.schemes).map_err(|message| at(paper, &place, &message))?;
        }
    }
    let own = paper.sets.iter().filter(|(_, set)| set.part == part.name);
    let sets = own.map(|(name, set)| (format!("sets.{name}"), set.mixes.iter().flatten()));
    for (place, asked) in sets {
        mixes(asked, plan).map_err(|message| at(paper, &place, &message))?;
    }
    for figure in &part.figures {
        let place = format!("part {}: figure {}", part.name, figure.name);
        mixes(figure.mix.iter(), plan).map_err(|message| at(paper, &place, &message))?;
    }
    Ok(())
}

/// Refuses a row about a scheme that is not run. Compares names only: parameters may have their
/// defaults.
fn schemes(asked: [(&str, &String); 2], run: &[String]) -> Result<(), String> {
    let known = || run.iter().map(|scheme| base(scheme));
    for (key, scheme) in asked {
        let free = key == "over" && (scheme.is_empty() || scheme == ALONE);
        if !free && !known().any(|name| name == base(scheme)) {
            let hint = did_you_mean(base(scheme), known());
            return Err(format!("{key}: the part does not run {scheme}{hint}"));
        }
    }
    Ok(())
}

fn mixes<'a>(asked: impl Iterator<Item = &'a Vec<String>>, plan: &PlanNames) -> Result<(), String> {
    let known: Vec<Vec<&str>> = plan.mixes.iter().map(sorted_mix).collect();
    for mix in asked {
        if let Some(app) = mix.iter().find(|app| !plan.apps.contains(app)) {
            let hint = did_you_mean(app, plan.apps.iter().map(String::as_str));
            return Err(format!("the plan has no application {app}{hint}"));
        }
        if !known.contains(&sorted_mix(mix)) {
            return Err(format!("the plan has no mix of {}", mix.join(", ")));
        }
    }
    Ok(())
}

fn base(scheme: &str) -> &str {
    scheme.split(':').next().unwrap_or(scheme)
}

fn invalid(paper: &Paper, row: &Headline, message: &str) -> ReproduceError {
    at(paper, &format!("headline of {}", row.published), message)
}

/// An error at a location of a paper's file.
fn at(paper: &Paper, place: &str, message: &str) -> ReproduceError {
    ReproduceError::Paper { paper: paper.name.clone(), message: format!("{place}: {message}") }
}
