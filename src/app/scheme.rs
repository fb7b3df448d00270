//! The schemes by name, and `replay:`, which repeats the decisions of a record.
//!
//! On the same machine with the same applications and end, a replay has the recorded outcome:
//! the decisions are all that a scheme does. On another machine with as many SMs it shows the
//! effect of the same decisions there.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use gpumodel_core::contract::{Facts, LawBroken, Plan, ProbeResult, View};
use gpumodel_core::units::{Cycle, with_causes};
use gpumodel_policy::{Parameter, Scheme};
use gpumodel_report::results::{Analysis, CoRun, DecisionRecord, RecordError};

use crate::{AppName, RunError};

/// A scheme as the command line lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemeRow {
    /// The name that `--scheme` takes.
    pub name: &'static str,
    /// The paper or system that it is from.
    pub paper: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// The parameters of `name:key=value`.
    pub parameters: Vec<ParameterRow>,
    /// It forms groups of a queue, so it needs one.
    pub queue: bool,
}

/// One parameter of a scheme.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParameterRow {
    /// The key.
    pub name: &'static str,
    /// The default value.
    pub default: String,
    /// The values that it takes, as text.
    pub takes: String,
    /// What it does and the source of its default, in one line.
    pub summary: &'static str,
}

impl SchemeRow {
    fn new(
        (name, paper, summary): (&'static str, &'static str, &'static str),
        parameters: impl Iterator<Item = &'static Parameter>,
        queue: bool,
    ) -> Self {
        let parameter = |parameter: &'static Parameter| ParameterRow {
            name: parameter.name,
            default: parameter.kind.default().to_string(),
            takes: parameter.kind.expected(),
            summary: parameter.summary,
        };
        Self { name, paper, summary, parameters: parameters.map(parameter).collect(), queue }
    }
}

/// Every scheme: those for co-runs, then those for queues.
#[must_use]
pub fn schemes() -> Vec<SchemeRow> {
    let coruns = gpumodel_policy::TABLE.iter().map(|row| {
        SchemeRow::new((row.name, row.paper, row.summary), row.parameters.iter(), false)
    });
    let queues = gpumodel_policy::queue::QUEUE_TABLE.iter().map(|row| {
        let within = gpumodel_policy::find(row.within).map_or(&[][..], |row| row.parameters);
        let parameters = row.parameters.iter().chain(within);
        SchemeRow::new((row.name, row.paper, row.summary), parameters, true)
    });
    coruns.chain(queues).collect()
}

/// Name and parameters of a scheme, for the record.
pub(super) struct SchemeLabel {
    pub(super) name: String,
    /// Its parameters, defaults included.
    pub(super) parameters: BTreeMap<String, String>,
}

/// Parses `name` or `name:key=value:key=value` to a scheme for these applications.
///
/// # Errors
/// When scheme, parameter or value is unknown, or the scheme needs another number of
/// applications.
pub(super) fn parse_scheme(
    typed: &str,
    apps: &[AppName],
) -> Result<(SchemeLabel, Box<dyn Scheme>), RunError> {
    let name = typed.split(':').next().unwrap_or_default().trim();
    if name == REPLAY {
        return replayed(typed, apps);
    }
    if let Some(row) = gpumodel_policy::queue::find_queue(name) {
        return Err(RunError::NeedsQueue(row.name));
    }
    let choice = gpumodel_policy::Choice::parse(typed)?;
    let (scheme, apps) = (choice.row().name, apps.len());
    match choice.row().apps {
        Some(1) if apps != 1 => return Err(RunError::SoloOnly { scheme, apps }),
        Some(only) if apps != only => return Err(RunError::AppCount { scheme, only, apps }),
        _ => {}
    }
    choice.fits(apps)?;
    let parameters = choice.settings().iter();
    let parameters = parameters.map(|(name, value)| (name.to_owned(), value.to_string())).collect();
    Ok((SchemeLabel { name: choice.row().name.to_owned(), parameters }, choice.make()))
}

/// The name of replays in `--scheme`.
pub(crate) const REPLAY: &str = "replay";

/// The scheme that repeats recorded plans, in order.
#[derive(Clone, Debug)]
struct Replay {
    plans: Vec<Value>,
    next: usize,
}

/// Parses `replay:FILE.json[:run=N]`.
///
/// # Errors
/// [`RunError::Replay`] when the record or the co-run does not exist, or the applications
/// differ.
fn replayed(typed: &str, apps: &[AppName]) -> Result<(SchemeLabel, Box<dyn Scheme>), RunError> {
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
        return Err(failed(format!("the record is of {recorded}, this run of {named}")));
    }
    let parameters = BTreeMap::from([
        (String::from("record"), path.to_owned()),
        (String::from("run"), run.to_string()),
        (String::from("of"), corun.scheme.clone()),
    ]);
    let replay = Replay { plans: plans(corun).map_err(failed)?, next: 0 };
    Ok((SchemeLabel { name: REPLAY.to_owned(), parameters }, Box::new(replay)))
}

/// The plans of a co-run, completed with the fields that the record holds only once.
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

/// Checks that a plan can be read, whatever the size of the machine.
fn readable(plan: &Value) -> Result<(), serde_json::Error> {
    let mut plan = plan.clone();
    if let Some(Value::Array(shares)) = plan.get_mut("shares") {
        shares.iter_mut().for_each(|one| *one = share(one, 1));
    }
    serde_json::from_value::<Plan>(plan).map(|_| ())
}

/// A share in the form of a plan; a record shortens equal quotas to one number.
fn share(share: &Value, sms: u16) -> Value {
    let quotas = match share {
        Value::Number(_) => vec![share.clone(); usize::from(sms)],
        Value::Array(quotas) => quotas.clone(),
        _ => return share.clone(),
    };
    serde_json::json!({ "quota": quotas })
}

impl Replay {
    /// The next plan; after the last one, that one again, without wakes at past cycles: in a run
    /// that differs from the recorded one they would repeat forever.
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
        let plan: Plan = serde_json::from_value(value).expect("it was checked before");
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
