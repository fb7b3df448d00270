//! The names in a plan, for who wants to know before it is run what it runs.

use std::path::Path;

use super::error::SweepError;
use super::plan::Plan;

/// What a plan runs, by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct PlanNames {
    /// Every application.
    pub(crate) apps: Vec<String>,
    /// Every mix: its applications.
    pub(crate) mixes: Vec<Vec<String>>,
    /// Every scheme with its parameters.
    pub(crate) schemes: Vec<String>,
}

/// The names in the plan at `path`; reads nothing that it names.
///
/// # Errors
/// As reading the plan.
pub(crate) fn plan_names(path: &Path) -> Result<PlanNames, SweepError> {
    let plan = Plan::read(path)?;
    let name = |&app: &usize| plan.apps[app].name.clone();
    Ok(PlanNames {
        apps: plan.apps.iter().map(|app| app.name.clone()).collect(),
        mixes: plan.mixes.iter().map(|mix| mix.iter().map(name).collect()).collect(),
        schemes: plan.schemes,
    })
}
