//! Processes in turns.

use gpumodel_core::contract::{DispatchOrder, Facts, LawBroken, Plan, PlanDraft, ProbeResult};
use gpumodel_core::contract::{TimeSlice, Vacate, View};

use super::{Kind, Parameter, Scheme, Settings, active_apps, shares};

/// What a user may set.
pub(super) const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "slice_us",
        kind: Kind::Real { default: 2000.0, least: 0.01, most: 1e9 },
        summary: "microseconds of a time slice (assumed)",
    },
    Parameter {
        name: "switch_us",
        kind: Kind::Real { default: 20.0, least: 0.0, most: 1e4 },
        summary: "microseconds in which no CTA starts at a switch (assumed)",
    },
];

/// Vanilla CUDA with several processes: time slices of the whole GPU (Slate, section
/// V.A). At the end of a slice resident CTAs are saved to memory, those of the next
/// process come back. Who has nothing to run passes its turn on at once only when it
/// has ended. The launch latency of a kernel elapses also while others have their turn.
#[derive(Clone, Copy, Debug)]
pub struct Cuda {
    slice_us: f64,
    switch_us: f64,
}

impl Cuda {
    pub(super) fn make(settings: &Settings) -> Box<dyn Scheme> {
        let (slice_us, switch_us) = (settings.real("slice_us"), settings.real("switch_us"));
        Box::new(Self { slice_us, switch_us })
    }

    fn plan(&self, facts: &Facts) -> Result<Plan, LawBroken> {
        let slice = TimeSlice {
            cycles: facts.cycles_in(self.slice_us * 1e-6).max(1),
            switch_cycles: facts.cycles_in(self.switch_us * 1e-6),
        };
        let several = facts.apps.len() > 1;
        Plan::new(
            facts,
            PlanDraft {
                shares: shares::everything(facts, &active_apps::in_arrival_order(facts)),
                order: DispatchOrder::InOrder,
                vacate: if several { Vacate::Switch } else { Vacate::Drain },
                time_slice: several.then_some(slice),
                reason: format!("slices of {} cycles of the whole GPU", slice.cycles),
                ..PlanDraft::default()
            },
        )
    }
}

impl Scheme for Cuda {
    fn start(&mut self, facts: &Facts, _probes: &[ProbeResult]) -> Result<Plan, LawBroken> {
        self.plan(facts)
    }

    fn decide(&mut self, facts: &Facts, _view: &View) -> Result<Plan, LawBroken> {
        self.plan(facts)
    }
}
