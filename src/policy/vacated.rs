//! What becomes of the SMs of an application that has ended.

use gpumodel_core::contract::{Facts, View};
use gpumodel_core::units::AppId;

use super::{Kind, Parameter, Settings, present};

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
pub(super) enum Vacated {
    /// The others: the SMs are divided anew.
    #[default]
    Given,
    /// Nobody, until another application comes: then they are divided anew.
    Idle,
}

impl Vacated {
    pub(super) fn of(settings: &Settings) -> Self {
        if settings.word(FREED.name) == IDLE { Self::Idle } else { Self::Given }
    }

    /// Between whom the SMs are divided: at most one for each SM, in arrival order.
    /// Where they stay idle, `before` goes on while nobody else is there.
    pub(super) fn holders(self, before: &[AppId], facts: &Facts, view: &View) -> Vec<AppId> {
        let mut now = present::now(facts, view);
        now.truncate(usize::from(facts.sms));
        let known = now.iter().all(|app| before.contains(app));
        if self == Self::Idle && known { before.to_vec() } else { now }
    }
}
