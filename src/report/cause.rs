//! Stall causes: one order and one fill each, in every figure of a report.

use std::collections::{BTreeMap, BTreeSet};

use super::chart::{Colour, Fill};

/// What is left of a stack whose parts do not sum to 1.
pub(crate) const UNRECORDED: &str = "not recorded";

/// Shares below this are rounding, not a part.
pub(crate) const ROUNDING: f64 = 5e-4;

/// The causes of `stacks` in stacking order: `issued` first, `idle` and what is
/// not recorded last, the others by name; with the fill of each.
pub(crate) fn causes<'a>(
    stacks: impl Iterator<Item = &'a BTreeMap<String, f64>>,
) -> Vec<(String, Fill)> {
    let mut names = BTreeSet::new();
    let mut gap = false;
    for stack in stacks {
        names.extend(stack.iter().filter(|(_, share)| **share > 0.0).map(|(cause, _)| cause));
        gap |= 1.0 - stack.values().sum::<f64>() > ROUNDING;
    }
    let mut found: Vec<(String, Fill)> = Vec::new();
    let middle = names.iter().filter(|name| !matches!(name.as_str(), "issued" | "idle"));
    if names.contains(&"issued".to_string()) {
        found.push(("issued".into(), Fill::plain(Colour(0x2b, 0x2b, 0x2b))));
    }
    found.extend(middle.zip(1..).map(|(name, i)| ((*name).clone(), Fill::of(i))));
    if names.contains(&"idle".to_string()) {
        found.push(("idle".into(), Fill::plain(Colour(0xe4, 0xe4, 0xe4))));
    }
    if gap {
        found.push((UNRECORDED.into(), Fill::plain(super::chart::PAPER)));
    }
    found
}

/// The shares of `stack` in the order of `causes`, scaled down where they sum
/// to more than 1; what is missing to 1 goes to [`UNRECORDED`].
pub(crate) fn shares(stack: &BTreeMap<String, f64>, causes: &[(String, Fill)]) -> Vec<f64> {
    let sum: f64 = stack.values().sum();
    let scale = sum.max(1.0);
    let share = |cause: &str| match cause {
        UNRECORDED => (1.0 - sum).max(0.0),
        cause => stack.get(cause).copied().unwrap_or(0.0) / scale,
    };
    causes.iter().map(|(cause, _)| share(cause)).collect()
}

/// The largest cause other than `issued`, with its share; `None` when nothing stalled.
pub(crate) fn top_cause(stack: &BTreeMap<String, f64>) -> Option<(&str, f64)> {
    let stalled = stack.iter().filter(|(cause, share)| *cause != "issued" && **share > 0.0);
    stalled.fold(None, |best: Option<(&str, f64)>, (cause, &share)| match best {
        Some((_, most)) if most >= share => best,
        _ => Some((cause, share)),
    })
}
