//! What a scheme answers: who may run where, until when.

use serde::{Deserialize, Serialize};

use crate::units::{AppId, Cycle};

use super::{Facts, LawBroken, law};

/// An application's share of the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Share {
    /// CTA quota on each SM; the index is the SM.
    Quota(Vec<u32>),
    /// Arrived or not, it holds nothing until a wake condition of the plan.
    Waiting,
}

/// In which order CTAs of several applications are dispatched.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DispatchOrder {
    /// All of the earliest arrival first.
    #[default]
    InOrder,
    /// One CTA of each in turn.
    RoundRobin,
    /// In the order of the list.
    Priority(Vec<AppId>),
}

/// How an SM is vacated when a quota falls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Vacate {
    /// Running CTAs finish.
    #[default]
    Drain,
    /// Running CTAs are saved and restored.
    Switch,
    /// Running CTAs are killed and start again.
    Flush,
    /// Drain those that would end before the next decision, switch the others.
    Hybrid,
}

/// Whole-GPU time slicing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeSlice {
    /// Length of a slice.
    pub cycles: Cycle,
    /// Cycles lost at each switch.
    pub switch_cycles: Cycle,
}

/// When a scheme wants to be asked again. Arrivals and ends always ask.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WakeOn {
    /// At this cycle.
    At(Cycle),
    /// When a launch of any application ends.
    KernelEnd,
    /// When the last task of a persistent kernel has started.
    LastTaskStarted,
    /// When a vacating SM is empty.
    CtaDrained,
    /// When an application's IPC moves by this fraction for this many cycles.
    IpcShift {
        /// Relative change.
        fraction: f64,
        /// How long it must last.
        sustained: Cycle,
    },
}

/// A plan as a scheme writes it, before the laws have been checked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlanDraft {
    /// One share per application, by [`AppId`].
    pub shares: Vec<Share>,
    /// CTA dispatch order.
    pub order: DispatchOrder,
    /// Channels of each application; empty: all share all channels.
    pub channels: Vec<Vec<u32>>,
    /// How SMs are vacated.
    pub vacate: Vacate,
    /// Time slicing; `None`: side by side.
    pub time_slice: Option<TimeSlice>,
    /// Cycles until the plan takes effect; the old one runs on meanwhile.
    pub delay: Cycle,
    /// When to ask again.
    pub wake: Vec<WakeOn>,
    /// Why, in one sentence.
    pub reason: String,
}

/// A lawful plan: made only by [`Plan::new`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    shares: Vec<Share>,
    order: DispatchOrder,
    channels: Vec<Vec<u32>>,
    vacate: Vacate,
    time_slice: Option<TimeSlice>,
    delay: Cycle,
    wake: Vec<WakeOn>,
    reason: String,
}

impl Plan {
    /// Checks the laws and makes the plan.
    ///
    /// # Errors
    /// [`LawBroken`] says which law and where: a share for every application and
    /// for no other, quotas within each SM's CTA slots and only on SMs that
    /// exist, channels that exist and are owned once, a waiting application only
    /// beside a running one or a wake condition.
    pub fn new(facts: &Facts, draft: PlanDraft) -> Result<Self, LawBroken> {
        law::check(facts, &draft)?;
        let PlanDraft { shares, order, channels, vacate, time_slice, delay, wake, reason } = draft;
        Ok(Self { shares, order, channels, vacate, time_slice, delay, wake, reason })
    }

    /// CTAs of `app` that SM `sm` may hold; 0 for a waiting application.
    #[must_use]
    pub fn quota(&self, app: AppId, sm: usize) -> u32 {
        match self.shares.get(app.index()) {
            Some(Share::Quota(by_sm)) => by_sm.get(sm).copied().unwrap_or(0),
            Some(Share::Waiting) | None => 0,
        }
    }

    /// One share per application.
    #[must_use]
    pub fn shares(&self) -> &[Share] {
        &self.shares
    }

    /// CTA dispatch order.
    #[must_use]
    pub fn order(&self) -> &DispatchOrder {
        &self.order
    }

    /// Channels by application; empty when all are shared.
    #[must_use]
    pub fn channels(&self) -> &[Vec<u32>] {
        &self.channels
    }

    /// How SMs are vacated.
    #[must_use]
    pub fn vacate(&self) -> Vacate {
        self.vacate
    }

    /// Time slicing, if any.
    #[must_use]
    pub fn time_slice(&self) -> Option<TimeSlice> {
        self.time_slice
    }

    /// Cycles until it takes effect.
    #[must_use]
    pub fn delay(&self) -> Cycle {
        self.delay
    }

    /// When to ask again.
    #[must_use]
    pub fn wake(&self) -> &[WakeOn] {
        &self.wake
    }

    /// Why, in one sentence.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }
}
