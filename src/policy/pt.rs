//! Kernels as workers, and nobody who says how many.

use gpumodel_core::contract::{DispatchOrder, Facts, LawBroken, Persistent, Plan, PlanDraft};
use gpumodel_core::contract::{ProbeResult, View};

use super::solo::part;
use super::tenancy::{self, INSTRUCTIONS, LEADER, REGISTERS, SHARED, TASK};
use super::{Kind, Parameter, Scheme, Settings, active_apps, shares};

/// What a user may set.
pub(super) const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "ctas",
        kind: Kind::Whole { default: 0, least: 0, most: 1024 },
        summary: "workers of a kernel on an SM; 0: all that fit (assumed)",
    },
    TASK,
    REGISTERS,
    SHARED,
    INSTRUCTIONS,
    LEADER,
];

/// Persistent threads without a service (ARCS 2018, section 4.4): each kernel has as
/// many workers as fit, and whose workers find no room waits at the block scheduler,
/// first come first served. The paper does not say how many there are: assumed.
#[derive(Clone, Debug)]
pub struct Pt {
    ctas: u64,
    form: Persistent,
}

impl Pt {
    pub(super) fn make(settings: &Settings) -> Box<dyn Scheme> {
        Box::new(Self { ctas: settings.whole("ctas"), form: tenancy::form(settings) })
    }

    fn plan(&self, facts: &Facts) -> Result<Plan, LawBroken> {
        let ctas = part(self.ctas, facts.max_ctas_per_sm);
        let apps = active_apps::in_arrival_order(facts);
        let reason = match self.ctas {
            0 => String::from("as many workers of each kernel as fit, first come first served"),
            _ => format!("{ctas} workers of each kernel on every SM, first come first served"),
        };
        Plan::new(
            facts,
            PlanDraft {
                shares: shares::on_each_sm(facts, &apps, |_, _| ctas),
                order: DispatchOrder::InOrder,
                workers: vec![Some(self.form.clone()); facts.apps.len()],
                reason,
                ..PlanDraft::default()
            },
        )
    }
}

impl Scheme for Pt {
    fn start(&mut self, facts: &Facts, _probes: &[ProbeResult]) -> Result<Plan, LawBroken> {
        self.plan(facts)
    }

    fn decide(&mut self, facts: &Facts, _view: &View) -> Result<Plan, LawBroken> {
        self.plan(facts)
    }
}
