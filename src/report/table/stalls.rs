//! What the schedulers of SMs with a warp waited for.

use super::{Cell, Table};
use crate::kernels::{Group, NO_CTA, active_stack, cause_words, causes, groups, no_cta};
use crate::results::{Analysis, AppRecord};

/// The kernels of each of `runs`, of each the longest-running `most`: the share of slot-cycles
/// of SMs without a warp, then how those of the other SMs divide between issue and the causes of
/// stalls.
pub(crate) fn stall_table(runs: &[(&Analysis, &AppRecord)], most: usize) -> Table {
    let all: Vec<(&Analysis, &AppRecord, Group)> = runs
        .iter()
        .flat_map(|&(record, app)| {
            groups(&[(record, app)], most).into_iter().map(move |group| (record, app, group))
        })
        .collect();
    let stacks = all.iter().map(|(.., group)| &group.sum.stall_fractions);
    let mut names: Vec<String> = causes(stacks).into_iter().map(|(name, _)| name).collect();
    names.retain(|name| cause_words(name) != NO_CTA);
    let row = |(record, app, group): &(&Analysis, &AppRecord, Group)| {
        let stack = &group.sum.stall_fractions;
        let active = active_stack(stack);
        let share = |cause: &String| Cell::Share(active.get(cause.as_str()).copied());
        let kernel = Cell::Titled(group.label.clone(), group.sum.name.clone());
        let first = [record.machine.name.as_str().into(), app.app.as_str().into(), kernel];
        let shares = names.iter().map(share);
        first.into_iter().chain([Cell::Share(no_cta(stack))]).chain(shares).collect()
    };
    let first = ["machine", "application", "kernel", NO_CTA].map(str::to_owned);
    let header = first.into_iter().chain(names.iter().map(|name| cause_words(name)));
    Table::of_cells(header, all.iter().map(row))
}
