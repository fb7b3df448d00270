//! The application that is favoured, and with how much (UGPU, section 6.7).

use gpumodel_core::contract::Facts;
use gpumodel_core::units::{AppId, to_u16};

use super::super::parameter::PLACE;
use super::super::solve::Resources;
use super::super::{Parameter, Settings};
use super::demand::SoloProfiles;

/// Who it is.
pub(super) const HIGH: Parameter = Parameter::whole(PLACE, 0, 0..=65_535).does(
    "the high-priority application, by its place from 1; 0: the most compute-bound alone \
              (published)",
);

/// What it is to keep.
pub(super) const TARGET: Parameter = Parameter::real("target", 0.75, 0.01..=1.0)
    .does("what it keeps: of its solo performance, of the SMs, of the channels (published)");

/// Who is favoured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PriorityApp {
    /// This one.
    App(AppId),
    /// The one that is most compute-bound alone.
    ComputeBound,
}

impl PriorityApp {
    /// As [`HIGH`] says.
    pub(super) fn of(settings: &Settings) -> Self {
        match settings.whole(HIGH.name) {
            0 => Self::ComputeBound,
            place => Self::App(AppId(to_u16(place - 1))),
        }
    }

    /// It is known by runs alone.
    pub(super) fn asks(self) -> bool {
        self == Self::ComputeBound
    }

    /// The application; `None`: it is the only one, or none executes anything.
    pub(super) fn app(
        self,
        facts: &Facts,
        solo_profiles: &SoloProfiles,
        b_mem: f64,
    ) -> Option<AppId> {
        match self {
            Self::App(app) => Some(app),
            Self::ComputeBound => solo_profiles.most_compute_bound(facts, b_mem),
        }
    }
}

/// A part of the machine, rounded up: three quarters of 80 SMs and 8 groups of channels
/// are 60 and 6.
pub(super) fn part(whole: Resources, part: f64) -> Resources {
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a part of a u32 is one"
    )]
    let of = |total: u32| (f64::from(total) * part - ROUNDING).ceil() as u32;
    Resources { sms: of(whole.sms), groups: of(whole.groups) }
}

/// What a product of decimal fractions may be too large by.
const ROUNDING: f64 = 1e-9;

#[cfg(test)]
mod tests {
    use super::part;
    use crate::solve::Resources;

    #[test]
    fn a_part_is_rounded_up_and_three_quarters_are_the_papers() {
        let whole = Resources { sms: 80, groups: 8 };
        assert_eq!(part(whole, 0.75), Resources { sms: 60, groups: 6 });
        assert_eq!(part(whole, 0.7), Resources { sms: 56, groups: 6 });
        assert_eq!(part(whole, 0.0), Resources::default());
        assert_eq!(part(whole, 1.0), whole);
    }
}
