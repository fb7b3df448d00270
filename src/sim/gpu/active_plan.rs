//! The plan in force, as the dispatcher asks it.

use crate::config::Machine;
use gpumodel_core::contract::{DispatchOrder, Plan, Region, Share};
use gpumodel_core::units::AppId;

use crate::gpu::dispatch::Held;
use crate::sm::{Bounds, Need};

/// The plan in force.
#[derive(Debug)]
pub(crate) struct ActivePlan {
    plan: Plan,
    whole: Bounds,
    max_ctas: u32,
    /// Whose turn it is, under time slices.
    pub(crate) turn: Option<AppId>,
    /// The application that is left and has everything.
    pub(crate) sole: Option<AppId>,
}

impl ActivePlan {
    /// `plan` on `machine`, with everything for `sole`.
    pub(crate) fn new(plan: Plan, machine: &Machine, sole: Option<AppId>) -> Self {
        let whole = Bounds::whole(machine);
        Self { plan, whole, max_ctas: machine.sm.max_ctas, turn: None, sole }
    }

    /// The plan.
    pub(crate) fn plan(&self) -> &Plan {
        &self.plan
    }

    /// All of an SM.
    pub(crate) fn whole(&self) -> &Bounds {
        &self.whole
    }

    /// CTAs that an application may have on an SM now.
    pub(crate) fn quota(&self, app: AppId, sm: usize) -> u32 {
        if self.sole == Some(app) {
            return self.max_ctas;
        }
        match self.turn {
            Some(turn) if turn != app => 0,
            _ => self.plan.quota(app, sm),
        }
    }

    /// Whether an application's CTAs may come to an SM, now or when it has the turn.
    pub(crate) fn may_come(&self, app: AppId, sm: usize) -> bool {
        self.sole == Some(app) || self.plan.quota(app, sm) > 0
    }

    /// Whether an application may start the same CTAs under another plan.
    pub(crate) fn gives_as(&self, other: &Self, app: AppId) -> bool {
        let of = |active_plan: &Self| {
            let Self { plan, sole, .. } = active_plan;
            let region = plan.regions().get(app.index()).copied();
            (plan.shares().get(app.index()).cloned(), region, plan.order().clone(), *sole)
        };
        of(self) == of(other)
    }

    /// True when the plan gives an application no share.
    pub(crate) fn waits(&self, app: AppId) -> bool {
        self.sole != Some(app)
            && matches!(self.plan.shares().get(app.index()), Some(Share::Waiting))
    }

    fn region(&self, app: AppId) -> Option<&Region> {
        if self.sole == Some(app) { None } else { self.plan.regions().get(app.index()) }
    }

    /// Whether one more CTA is within an application's share of an SM, where it has
    /// `held`; whether there is room is another question.
    pub(crate) fn allows(&self, app: AppId, sm: usize, held: Held, need: &Need) -> bool {
        let within =
            |region: &Region| held.ctas < region.ctas && held.warps + need.warps <= region.warps;
        held.ctas < self.quota(app, sm) && self.region(app).is_none_or(within)
    }

    /// The part of an SM that an application's CTAs take from.
    pub(crate) fn bounds(&self, app: AppId) -> Bounds {
        self.region(app).map_or_else(
            || self.whole.clone(),
            |region| Bounds {
                registers: region.first_register..region.first_register + region.registers,
                shared_bytes: region.first_shared_byte
                    ..region.first_shared_byte + region.shared_bytes,
            },
        )
    }

    /// The order of launches.
    pub(crate) fn order(&self) -> &DispatchOrder {
        self.plan.order()
    }

    /// True when a launch whose CTA does not fit an SM keeps others from it.
    pub(crate) fn is_strict(&self) -> bool {
        *self.plan.order() != DispatchOrder::RoundRobin && self.plan.regions().is_empty()
    }
}
