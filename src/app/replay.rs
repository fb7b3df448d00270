//! The decisions of a record, run again: `replay:FILE.json[:run=N]`.
//!
//! Where machine, applications and end are those of the record, so is the outcome:
//! a record's decisions are all that its scheme did. On another machine of as many SMs
//! it shows what the same decisions do there.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use gpumodel_core::contract::{Facts, LawBroken, Plan, ProbeResult, View};
use gpumodel_core::units::{Cycle, with_causes};
use gpumodel_policy::Scheme;
use gpumodel_report::results::{Analysis, CoRun, DecisionRecord, RecordError};

use super::app::AppName;
use super::error::RunError;
use super::schemes::Chosen;

/// Its name in `--scheme`.
pub(super) const NAME: &str = "replay";

/// Plans in the order in which they were made.
#[derive(Clone, Debug)]
struct Replay {
    plans: Vec<Value>,
    next: usize,
}

/// The scheme that `typed` names.
///
/// # Errors
/// [`RunError::Replay`] when there is no such record, no such co-run in it, or that is of
/// other applications.
pub(super) fn chosen(typed: &str, apps: &[AppName]) -> Result<(Chosen, Box<dyn Scheme>), RunError> {
    let failed = |problem: String| RunError::Replay { typed: typed.to_owned(), problem };
    let rest = typed.split_once(':').map(|(_, rest)| rest).unwrap_or_default();
    let (path, run) = match rest.rsplit_once(":run=") {
        Some((path, run)) => {
            let number = run.parse::<usize>().ok().filter(|&number| number > 0);
            let expected = || failed(format!("expected a number from 1, found run={run}"));
            (path, number.ok_or_else(expected)?)
        }
        None => (rest, 1),
    };
    let unread = |error: RecordError| {
        let why = with_causes(&error).join(": ");
        failed(format!("`{path}` is no record of `analyze`: {why}"))
    };
    let record = Analysis::read(Path::new(path)).map_err(unread)?;
    let count = record.coruns.len();
    let found = record.coruns.get(run - 1);
    let corun = found.ok_or_else(|| failed(format!("the record has {count} co-runs")))?;
    let recorded: Vec<&str> = corun.apps.iter().map(|app| app.app.as_str()).collect();
    let named: Vec<&str> = apps.iter().map(|app| app.name.as_str()).collect();
    if recorded != named {
        let (recorded, named) = (recorded.join(", "), named.join(", "));
        return Err(failed(format!("the record is of {recorded}; here are {named}")));
    }
    let parameters = BTreeMap::from([
        (String::from("record"), path.to_owned()),
        (String::from("run"), run.to_string()),
        (String::from("of"), corun.scheme.clone()),
    ]);
    let replay = Replay { plans: plans(corun).map_err(failed)?, next: 0 };
    Ok((Chosen { name: NAME.to_owned(), parameters }, Box::new(replay)))
}

/// The plans of a co-run with what its record says only once.
fn plans(corun: &CoRun) -> Result<Vec<Value>, String> {
    let workers = corun.decisions.first().and_then(|first| first.plan.get("workers")).cloned();
    let plan = |decision: &DecisionRecord| {
        let mut plan = decision.plan.clone();
        let fields = plan.as_object_mut().ok_or("a decision has no plan")?;
        fields.insert(String::from("reason"), decision.reason.clone().into());
        fields.insert(String::from("curves"), Value::Array(Vec::new()));
        if let Some(workers) = &workers {
            fields.insert(String::from("workers"), workers.clone());
        }
        readable(&plan)
            .map_err(|error| format!("decision at cycle {}: {error}", decision.cycle))?;
        Ok(plan)
    };
    if corun.decisions.is_empty() {
        return Err(String::from("the co-run has no decisions"));
    }
    corun.decisions.iter().map(plan).collect()
}

/// Whether a plan can be read, on a machine of whatever size.
fn readable(plan: &Value) -> Result<(), serde_json::Error> {
    let mut plan = plan.clone();
    if let Some(Value::Array(shares)) = plan.get_mut("shares") {
        shares.iter_mut().for_each(|one| *one = share(one, 1));
    }
    serde_json::from_value::<Plan>(plan).map(|_| ())
}

/// A share as a plan has it, of which a record shortens equal quotas to one number.
fn share(share: &Value, sms: u16) -> Value {
    let quotas = match share {
        Value::Number(_) => vec![share.clone(); usize::from(sms)],
        Value::Array(quotas) => quotas.clone(),
        _ => return share.clone(),
    };
    serde_json::json!({ "quota": quotas })
}

impl Replay {
    /// The next plan; behind the last one this again. It wakes nobody at a cycle that
    /// has passed: in a run that is not the recorded one that would be for ever.
    fn plan(&mut self, facts: &Facts, now: Cycle) -> Result<Plan, LawBroken> {
        let place = self.next.min(self.plans.len() - 1);
        self.next += 1;
        let mut value = self.plans[place].clone();
        if self.next > self.plans.len() {
            let late = |wake: &Value| wake["at"].as_u64().is_some_and(|at| at <= now);
            if let Some(Value::Array(wakes)) = value.get_mut("wake") {
                wakes.retain(|wake| !late(wake));
            }
        }
        if let Some(Value::Array(shares)) = value.get_mut("shares") {
            shares.iter_mut().for_each(|one| *one = share(one, facts.sms));
        }
        let plan: Plan = serde_json::from_value(value).expect("it has been read before");
        plan.checked(facts)
    }
}

impl Scheme for Replay {
    fn start(&mut self, facts: &Facts, _probes: &[ProbeResult]) -> Result<Plan, LawBroken> {
        self.plan(facts, 0)
    }

    fn decide(&mut self, facts: &Facts, view: &View) -> Result<Plan, LawBroken> {
        self.plan(facts, view.now)
    }
}
