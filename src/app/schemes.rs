//! The schemes by name, for those who list them and those who run them.

use std::collections::BTreeMap;

use gpumodel_policy::Scheme;

use super::app::AppName;
use super::error::RunError;
use super::replay;

/// One scheme as the command line lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemeRow {
    /// The name that `--scheme` takes.
    pub name: &'static str,
    /// Where it is from.
    pub paper: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// What may be set in `name:key=value`.
    pub parameters: Vec<ParameterRow>,
    /// It says who of a queue runs with whom: it needs one.
    pub queue: bool,
}

/// One parameter of a scheme.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParameterRow {
    /// The key.
    pub name: &'static str,
    /// Its value when nothing is said.
    pub default: String,
    /// Which values it takes, in words.
    pub takes: String,
    /// What it does and where its default is from, in one line.
    pub summary: &'static str,
}

/// Every scheme, in the order of the table of schemes, then those that need a queue.
#[must_use]
pub fn schemes() -> Vec<SchemeRow> {
    let parameter = |parameter: &gpumodel_policy::Parameter| ParameterRow {
        name: parameter.name,
        default: parameter.kind.default().to_string(),
        takes: parameter.kind.expected(),
        summary: parameter.summary,
    };
    let parameters = |list: &[gpumodel_policy::Parameter]| -> Vec<ParameterRow> {
        list.iter().map(parameter).collect()
    };
    let within = |row: &gpumodel_policy::queue::QueueRow| {
        let found = gpumodel_policy::find(row.within);
        parameters(found.map_or(&[], |within| within.parameters))
    };
    let row = |row: &gpumodel_policy::Row| SchemeRow {
        name: row.name,
        paper: row.paper,
        summary: row.summary,
        parameters: parameters(row.parameters),
        queue: false,
    };
    let queue = |row: &gpumodel_policy::queue::QueueRow| SchemeRow {
        name: row.name,
        paper: row.paper,
        summary: row.summary,
        parameters: parameters(row.parameters).into_iter().chain(within(row)).collect(),
        queue: true,
    };
    let queues = gpumodel_policy::queue::QUEUE_TABLE.iter().map(queue);
    gpumodel_policy::TABLE.iter().map(row).chain(queues).collect()
}

/// A scheme as it was asked for.
pub(super) struct Chosen {
    pub(super) name: String,
    /// Its parameters, defaults included.
    pub(super) parameters: BTreeMap<String, String>,
}

/// The scheme that `typed` names, as `name` or `name:key=value:key=value`, for these
/// applications.
///
/// # Errors
/// When there is none, it has no such parameter or value, or does not serve so many.
pub(super) fn chosen(typed: &str, apps: &[AppName]) -> Result<(Chosen, Box<dyn Scheme>), RunError> {
    let name = typed.split(':').next().unwrap_or_default().trim();
    if name == replay::NAME {
        return replay::chosen(typed, apps);
    }
    if let Some(row) = gpumodel_policy::queue::find_queue(name) {
        return Err(RunError::NeedsQueue(row.name));
    }
    let choice = gpumodel_policy::Choice::parse(typed)?;
    let (scheme, apps) = (choice.row().name, apps.len());
    match choice.row().apps {
        Some(1) if apps != 1 => return Err(RunError::OnlyAlone { scheme, apps }),
        Some(only) if apps != only => return Err(RunError::OnlyFor { scheme, only, apps }),
        _ => {}
    }
    choice.fits(apps)?;
    let parameters = choice.settings().iter();
    let parameters = parameters.map(|(name, value)| (name.to_owned(), value.to_string())).collect();
    Ok((Chosen { name: choice.row().name.to_owned(), parameters }, choice.make()))
}
