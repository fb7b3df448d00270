//! Which applications are there.

use gpumodel_core::contract::{Facts, View};
use gpumodel_core::units::{AppId, to_u16};

/// All applications, the earliest arrival first, then in the order of their ids.
pub(super) fn in_arrival_order(facts: &Facts) -> Vec<AppId> {
    let mut all: Vec<AppId> = (0..facts.apps.len()).map(|index| AppId(to_u16(index))).collect();
    all.sort_by_key(|app| facts.apps[app.index()].arrival);
    all
}

/// Those that are there when a run starts: the first to arrive.
pub(super) fn at_start(facts: &Facts) -> Vec<AppId> {
    let all = in_arrival_order(facts);
    let arrival = |app: &AppId| facts.apps[app.index()].arrival;
    let first = all.first().map(arrival);
    all.into_iter().filter(|app| Some(arrival(app)) == first).collect()
}

/// Those that have arrived and not finished, in arrival order. When nobody is
/// there, those that still come, and when nobody comes, all: a plan is for someone.
pub(super) fn now(facts: &Facts, view: &View) -> Vec<AppId> {
    let all = in_arrival_order(facts);
    let kept = |keep: &dyn Fn(&AppId) -> bool| -> Vec<AppId> {
        all.iter().copied().filter(|app| keep(app)).collect()
    };
    let active = kept(&|app| view.apps[app.index()].active);
    if !active.is_empty() {
        return active;
    }
    let coming = kept(&|app| !view.apps[app.index()].finished);
    if coming.is_empty() { all } else { coming }
}
