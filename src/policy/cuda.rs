//! Processes in turns.

use gpumodel_core::contract::{
    DispatchOrder, Facts, LawBroken, Plan, PlanDraft, ProbeResult, TimeSlice, Vacate,
};

use super::{Parameter, Scheme, Settings, shares};

/// What a user may set.
pub(super) const PARAMETERS: &[Parameter] = &[
    Parameter::real("slice_us", 2000.0, 0.01..=1e9).does("microseconds of a time slice (assumed)"),
    Parameter::real("switch_us", 20.0, 0.0..=1e4)
        .does("microseconds in which no CTA starts at a switch (assumed)"),
];

/// Vanilla CUDA with several processes: time slices of the whole GPU (Slate, section V.A).
/// At the end of a slice the state of resident CTAs is saved to memory and that of the next
/// process is restored. A process without work keeps its slice until it ends; only after
/// that is its turn skipped. The launch latency of a kernel also elapses during the slices
/// of others.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cuda {
    slice_us: f64,
    switch_us: f64,
}

impl Cuda {
    pub(super) fn make(settings: &Settings) -> Box<dyn Scheme> {
        Box::new(Self::of(settings.real("slice_us"), settings.real("switch_us")))
    }

    /// Slices and switches of so many microseconds.
    pub(super) fn of(slice_us: f64, switch_us: f64) -> Self {
        Self { slice_us, switch_us }
    }
}

impl Scheme for Cuda {
    fn start(&mut self, facts: &Facts, _probes: &[ProbeResult]) -> Result<Plan, LawBroken> {
        let slice = TimeSlice {
            cycles: facts.cycles_in(self.slice_us * 1e-6).max(1),
            switch_cycles: facts.cycles_in(self.switch_us * 1e-6),
        };
        let several = facts.apps.len() > 1;
        Plan::new(
            facts,
            PlanDraft {
                shares: shares::everything(facts, &shares::in_arrival_order(facts)),
                order: DispatchOrder::InOrder,
                vacate: if several { Vacate::Switch } else { Vacate::Drain },
                time_slice: several.then_some(slice),
                reason: format!("slices of {} cycles of the whole GPU", slice.cycles),
                ..PlanDraft::default()
            },
        )
    }
}
