//! Which applications run now, and what becomes of the SMs of those that have ended.

use gpumodel_core::contract::{Facts, View};
use gpumodel_core::units::{AppId, to_u16};

use super::{Kind, Parameter, Settings};

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

/// The parameter of all schemes that give applications SMs of their own.
pub(super) const FREED: Parameter = Parameter {
    name: "freed",
    kind: Kind::Word { default: GIVEN, words: &[GIVEN, IDLE] },
    summary: "SMs of an application that has ended: given to the others, or idle",
};

const GIVEN: &str = "given";
const IDLE: &str = "idle";

/// Who has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum FreedSms {
    /// The others: the SMs are divided again.
    #[default]
    Given,
    /// None, until another application comes: then they are divided again.
    Idle,
}

impl FreedSms {
    pub(super) fn of(settings: &Settings) -> Self {
        if settings.word(FREED.name) == IDLE { Self::Idle } else { Self::Given }
    }

    /// Between whom the SMs are divided: at most one for each SM, in arrival order.
    /// Where they stay idle, `before` goes on while no other application is active.
    pub(super) fn holders(self, before: &[AppId], facts: &Facts, view: &View) -> Vec<AppId> {
        let mut now = now(facts, view);
        now.truncate(usize::from(facts.sms));
        let known = now.iter().all(|app| before.contains(app));
        if self == Self::Idle && known { before.to_vec() } else { now }
    }
}
