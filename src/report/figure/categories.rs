//! Other names for what records call applications, kernels, schemes, machines, causes of stalls
//! and classes, and another order of them.

use std::collections::{BTreeMap, BTreeSet};

use gpumodel_core::units::did_you_mean;

use crate::ReportError;
use crate::format::plain_name;
use crate::kernels::cause_words;
use crate::mix::{mix_name, scheme_names};
use crate::results::Analysis;
use crate::results::last_component;

/// What a name is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    App,
    Kernel,
    Scheme,
    Machine,
    Cause,
    Class,
}

impl Kind {
    /// Whether `typed` means `name`: whole, or as figures show it.
    fn means(self, typed: &str, name: &str) -> bool {
        let shown = match self {
            Self::App => last_component(name) == typed,
            Self::Kernel => plain_name(name) == typed,
            Self::Cause => cause_words(name) == typed,
            Self::Scheme | Self::Machine | Self::Class => false,
        };
        shown || name == typed
    }
}

/// Gives what `records` call one of `renames` the name behind it, whole or as figures show it;
/// causes of stalls and classes, whose names say how they look, keep theirs.
/// Returns the names that it had, by the new ones.
///
/// # Errors
/// [`ReportError::Category`] for a name that no record has, or a new one that some have.
pub fn rename(
    records: &mut [Analysis],
    renames: &[(String, String)],
) -> Result<BTreeMap<String, String>, ReportError> {
    for record in records.iter_mut() {
        spell_out(record, renames);
    }
    let known = known(records);
    let mut before = BTreeMap::new();
    for (from, to) in renames {
        refuse_unknown(from, &known)?;
        let taken = |(kind, name): &(Kind, String)| kind.means(to, name) && !kind.means(from, name);
        if before.contains_key(to) || known.iter().any(taken) {
            return Err(ReportError::Category {
                name: to.clone(),
                why: format!(" is in the records too; give {from} another name"),
            });
        }
        for record in records.iter_mut() {
            each_name(record, &mut |kind, name| {
                if kind.means(from, name) {
                    before.insert(to.clone(), std::mem::replace(name, to.clone()));
                }
            });
        }
    }
    Ok(before)
}

/// Puts what `order` names first, in that order: applications alone, schemes, and records, by
/// their mix or their machine. With `last` it comes last, in the opposite order.
///
/// # Errors
/// [`ReportError::Category`] for a name that no record has.
pub fn order(records: &mut [Analysis], order: &[String], last: bool) -> Result<(), ReportError> {
    let mut known = known(records);
    known.extend(records.iter().map(|record| (Kind::Scheme, mix_name(record))));
    for record in records.iter() {
        known.extend(scheme_names(&record.coruns).into_iter().map(|name| (Kind::Scheme, name)));
    }
    for name in order {
        refuse_unknown(name, &known)?;
    }
    let rank = |kind: Kind, name: &str| rank(order, last, kind, name);
    for record in records.iter_mut() {
        record.solo.sort_by_key(|app| rank(Kind::App, &app.app));
        let names = scheme_names(&record.coruns);
        let either = |name: &str, scheme: &str| match rank(Kind::Scheme, name) {
            unnamed if unnamed == order.len() => rank(Kind::Scheme, scheme),
            place => place,
        };
        let ranks: Vec<usize> =
            names.iter().zip(&record.coruns).map(|(name, run)| either(name, &run.scheme)).collect();
        let mut ranked: Vec<_> =
            ranks.into_iter().zip(std::mem::take(&mut record.coruns)).collect();
        ranked.sort_by_key(|(rank, _)| *rank);
        record.coruns = ranked.into_iter().map(|(_, run)| run).collect();
        record.queues.sort_by_key(|run| either(&run.label, &run.scheme));
    }
    records.sort_by_key(|record| {
        let alone = only_app(record).map_or(String::new(), str::to_owned);
        let names = [
            (Kind::Scheme, mix_name(record)),
            (Kind::App, alone),
            (Kind::Machine, record.machine.name.clone()),
        ];
        let ranks = names.iter().map(|(kind, name)| rank(*kind, name));
        ranks.into_iter().find(|place| *place != order.len()).unwrap_or(order.len())
    });
    Ok(())
}

/// The place of an application in an order as [`order`] takes it: what it does not name comes
/// behind what it does, or before where that comes last.
pub(super) fn app_rank(order: &[String], last: bool, name: &str) -> usize {
    rank(order, last, Kind::App, name)
}

/// The same of a kernel of an application: a kernel that is not named has its application's.
pub(super) fn kernel_rank(order: &[String], last: bool, (app, name): (&str, &str)) -> usize {
    match rank(order, last, Kind::Kernel, name) {
        unnamed if unnamed == order.len() => app_rank(order, last, app),
        named => named,
    }
}

/// The application of a record: the first alone, else that of runs of one.
fn only_app(record: &Analysis) -> Option<&str> {
    let run = || record.coruns.first().filter(|run| run.apps.len() == 1);
    let first = record.solo.first().map(|app| app.app.as_str());
    first.or_else(|| Some(run()?.apps[0].app.as_str()))
}

fn rank(order: &[String], last: bool, kind: Kind, name: &str) -> usize {
    match order.iter().position(|typed| kind.means(typed, name)) {
        Some(place) if last => usize::MAX - place,
        Some(place) => place,
        None => order.len(),
    }
}

/// Where a renamed scheme is one of several settings, names the settings of all in the scheme's
/// name, so that they stay as they are.
fn spell_out(record: &mut Analysis, renames: &[(String, String)]) {
    let names = scheme_names(&record.coruns);
    let asked = |name: &String| renames.iter().any(|(from, _)| from == name);
    let spelt: BTreeSet<String> = names
        .iter()
        .zip(&record.coruns)
        .filter(|(name, run)| **name != run.scheme && asked(name))
        .map(|(_, run)| run.scheme.clone())
        .collect();
    for (run, name) in record.coruns.iter_mut().zip(names) {
        if spelt.contains(&run.scheme) {
            run.scheme = name;
        }
    }
}

/// Every name of `records` once.
fn known(records: &[Analysis]) -> Vec<(Kind, String)> {
    let mut known: Vec<(Kind, String)> = Vec::new();
    let mut seen = BTreeSet::new();
    for record in records {
        each_name(&mut record.clone(), &mut |kind, name| {
            if seen.insert(name.clone()) {
                known.push((kind, name.clone()));
            }
        });
    }
    known
}

fn refuse_unknown(name: &str, known: &[(Kind, String)]) -> Result<(), ReportError> {
    if known.iter().any(|(kind, known)| kind.means(name, known)) {
        return Ok(());
    }
    let inner = |kind: Kind| matches!(kind, Kind::Cause | Kind::Class);
    let those = |last: bool| known.iter().filter(move |(kind, _)| inner(*kind) == last);
    let names = || those(false).chain(those(true)).map(|(_, name)| name.as_str());
    let hint = did_you_mean(name, names());
    let some = names().take(16).collect::<Vec<_>>().join(", ");
    let more = if known.len() > 16 { ", …" } else { "" };
    let why = format!(
        " is no application, kernel, scheme, machine, cause or class of the records{hint}; there are {some}{more}"
    );
    Err(ReportError::Category { name: name.into(), why })
}

/// Calls `visit` with every name in `record`; with copies of those of causes and classes.
fn each_name(record: &mut Analysis, visit: &mut dyn FnMut(Kind, &mut String)) {
    visit(Kind::Machine, &mut record.machine.name);
    for app in &mut record.solo {
        visit(Kind::App, &mut app.app);
        for kernel in &mut app.kernels {
            visit(Kind::Kernel, &mut kernel.name);
            each_cause(&kernel.stall_fractions, visit);
        }
    }
    for run in &mut record.coruns {
        visit(Kind::Scheme, &mut run.scheme);
        for app in &mut run.apps {
            visit(Kind::App, &mut app.app);
            each_cause(&app.stall_fractions, visit);
            app.kernels.iter_mut().for_each(|kernel| visit(Kind::Kernel, &mut kernel.name));
        }
        let curves = run.decisions.iter_mut().flat_map(|decision| &mut decision.curves);
        curves.for_each(|curve| visit(Kind::App, &mut curve.app));
    }
    for run in &mut record.queues {
        visit(Kind::Scheme, &mut run.scheme);
        if !run.label.is_empty() {
            visit(Kind::Scheme, &mut run.label);
        }
        for job in &mut run.jobs {
            visit(Kind::App, &mut job.app);
            job.class.iter().for_each(|class| visit(Kind::Class, &mut class.clone()));
        }
    }
    for found in &mut record.interference {
        found.schemes.iter_mut().for_each(|scheme| visit(Kind::Scheme, scheme));
        found.classes.iter().for_each(|class| visit(Kind::Class, &mut class.clone()));
        found.apps.iter_mut().for_each(|app| visit(Kind::App, &mut app.app));
        let pairs = found.pairs.iter_mut().flat_map(|pair| &mut pair.apps);
        pairs.for_each(|app| visit(Kind::App, app));
    }
}

fn each_cause(stack: &BTreeMap<String, f64>, visit: &mut dyn FnMut(Kind, &mut String)) {
    stack.keys().for_each(|cause| visit(Kind::Cause, &mut cause.clone()));
}
