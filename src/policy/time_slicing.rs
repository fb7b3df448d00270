//! Time slicing as the driver does it.

use super::cuda::Cuda;
use super::{Parameter, Scheme, Settings};

const QUANTUM: &str = "quantum_us";
const SWITCH: &str = "switch_us";

/// What a user may set.
pub(super) const PARAMETERS: &[Parameter] = &[
    Parameter::real(QUANTUM, 2000.0, 0.01..=1e9)
        .does("microseconds of a time slice (assumed: no maker's figure of the default)"),
    Parameter::real(SWITCH, 20.0, 0.0..=1e4)
        .does("microseconds in which no CTA starts at a switch (assumed)"),
];

/// Processes without MPS: the driver gives each the whole GPU for a time slice in turn, as
/// [`Cuda`] does under the name that Slate gives it.
pub(super) fn make(settings: &Settings) -> Box<dyn Scheme> {
    Box::new(Cuda::of(settings.real(QUANTUM), settings.real(SWITCH)))
}
