//! What a scheme answers: which application may run where, until when.

use serde::{Deserialize, Serialize};

use crate::units::{AppId, Cycle};

use super::{Facts, LawBroken, Persistent, law};

/// An application's share of the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Share {
    /// CTA quota on each SM; the index is the SM.
    Quota(Vec<u32>),
    /// Arrived or not, it holds nothing until a wake condition of the plan.
    Waiting,
}

/// In which order CTAs of several launches are dispatched. A launch that holds its
/// quota on an SM is passed over there in every order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DispatchOrder {
    /// All CTAs of the launch that began first, then those of the next: while it
    /// has CTAs left no other launch starts any on an SM, even where only its would fit.
    #[default]
    InOrder,
    /// One CTA of each in turn; a launch whose CTA does not fit misses its turn.
    RoundRobin,
    /// As in order, by the place of the application in the list; others behind.
    Priority(Vec<AppId>),
}

/// A part of every SM that belongs to one application: its CTAs take registers and
/// shared memory within the ranges, and not more warps and CTAs than the counts.
/// CTAs that were elsewhere when the plan took effect stay there until they end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Region {
    /// The first register.
    pub first_register: u32,
    /// Registers.
    pub registers: u32,
    /// The first shared byte.
    pub first_shared_byte: u32,
    /// Shared bytes.
    pub shared_bytes: u32,
    /// Warp slots.
    pub warps: u32,
    /// CTA slots.
    pub ctas: u32,
}

/// What becomes of the share of an application that has finished, until the scheme
/// has answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Freed {
    /// It stays unused.
    #[default]
    Idle,
    /// When one application is left, it has the whole machine.
    ToLast,
}

/// How an application's performance depends on its CTAs on an SM, as far as a scheme
/// has measured it: kept with the plan that rests on it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    /// Whose curve.
    pub app: AppId,
    /// Warp instructions per cycle and SM with 1, 2, ... CTAs; `None`: not sampled.
    pub ipc: Vec<Option<f64>>,
    /// The same over the best of them, as the scheme's rule scales them.
    pub normalized: Vec<Option<f64>>,
    /// CTAs per SM that the plan gives it; 0: the plan does not share SMs.
    pub chosen: u32,
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

/// How the pages of an application follow the channels that it owns. They lie in the
/// channels that it owned first; one that comes into memory later lies in the least
/// used of those that it owns then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Migration {
    /// Pages stay where they are.
    #[default]
    Stay,
    /// PageMove (UGPU, section 4): an application that has lost channels moves a page
    /// when it is found in one of them; one that has gained some moves a page that it
    /// misses to one of those until its channels hold equally many. Memory dies copy
    /// the data to each other.
    PageMove,
    /// The same pages move, copied by reads and writes over crossbar and controllers
    /// (UGPU-Soft: the mapping and the memory management, without the hardware).
    Software,
    /// Every page of an application whose channels have changed moves, as if its
    /// data lay across all of its channels, copied by reads and writes (UGPU-Ori).
    Traditional,
}

impl Migration {
    /// True where pages stay.
    #[must_use]
    pub fn stays(&self) -> bool {
        *self == Self::Stay
    }
}

/// Whole-GPU time slicing: the applications that have a share take turns, in the
/// order of their ids; only the one whose turn it is starts CTAs, the others' are
/// vacated as [`PlanDraft::vacate`] says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeSlice {
    /// Length of a slice.
    pub cycles: Cycle,
    /// Cycles lost at each switch.
    pub switch_cycles: Cycle,
}

/// The memory slices that belong to one application alone: neighbours. No slice: it has no memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryInstance {
    /// The first slice.
    pub first: u32,
    /// Slices.
    pub slices: u32,
}

/// When a scheme wants to be asked again. Arrivals and ends always ask.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WakeOn {
    /// At this cycle, or at once where it has passed.
    At(Cycle),
    /// When a launch of any application may start its first CTA.
    KernelBegin,
    /// When a launch of any application ends.
    KernelEnd,
    /// When the last task of a persistent kernel has started.
    LastTaskStarted,
    /// When a vacating SM is empty.
    CtaDrained,
    /// When an application's IPC over `sustained` cycles differs by `fraction` from
    /// that over the first such span under the plan at whose end no application held more than
    /// its share any longer.
    IpcShift {
        /// Relative change.
        fraction: f64,
        /// How long it must last.
        sustained: Cycle,
    },
}

/// A plan as a scheme writes it, before the laws have been checked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlanDraft {
    /// One share per application, by [`AppId`].
    pub shares: Vec<Share>,
    /// CTA dispatch order.
    pub order: DispatchOrder,
    /// Each application's part of every SM, by [`AppId`]; empty: all take from the
    /// whole, first fit from the low end.
    pub regions: Vec<Region>,
    /// Channels of each application, whole groups of [`Facts::channel_groups`]; empty:
    /// all share all channels.
    pub channels: Vec<Vec<u32>>,
    /// Memory slices of each application; empty: all share all. The same in every plan of a run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub instances: Vec<MemoryInstance>,
    /// How pages follow channels that change hands.
    #[serde(default, skip_serializing_if = "Migration::stays")]
    pub migration: Migration,
    /// Each application's form as workers, by [`AppId`]; `None`, or empty: as written.
    /// The first plan of a run says it for the whole run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workers: Vec<Option<Persistent>>,
    /// How SMs are vacated.
    pub vacate: Vacate,
    /// What becomes of the share of an application that has finished.
    pub freed: Freed,
    /// Time slicing; `None`: side by side.
    pub time_slice: Option<TimeSlice>,
    /// Cycles until the plan takes effect; the old one runs on meanwhile.
    pub delay: Cycle,
    /// When to ask again.
    pub wake: Vec<WakeOn>,
    /// Why, in one sentence.
    pub reason: String,
    /// What it rests on.
    pub curves: Vec<Curve>,
}

/// A lawful plan: made by [`Plan::new`], or read from a record and then
/// [`Plan::checked`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Plan(PlanDraft);

impl Plan {
    /// Checks the laws and makes the plan.
    ///
    /// # Errors
    /// [`LawBroken`] says which law and where: a share for every application and
    /// for no other, quotas within each SM's CTA slots and only on SMs that
    /// exist, channels that exist and are owned once, a waiting application only
    /// with a running one or a wake condition.
    pub fn new(facts: &Facts, draft: PlanDraft) -> Result<Self, LawBroken> {
        law::check(facts, &draft)?;
        Ok(Self(draft))
    }

    /// The same for `app` where it is the only application, as `facts` say.
    ///
    /// # Errors
    /// As [`Plan::new`]: the plan is one for another machine.
    pub fn of_one(&self, facts: &Facts, app: AppId) -> Result<Self, LawBroken> {
        let place = app.index();
        let draft = PlanDraft {
            shares: vec![self.0.shares[place].clone()],
            order: DispatchOrder::InOrder,
            regions: self.0.regions.get(place).copied().into_iter().collect(),
            channels: self.0.channels.get(place).cloned().into_iter().collect(),
            instances: self.0.instances.get(place).copied().into_iter().collect(),
            workers: self.0.workers.get(place).cloned().into_iter().collect(),
            reason: String::new(),
            curves: Vec::new(),
            ..self.0.clone()
        };
        Self::new(facts, draft)
    }

    /// The same with its laws checked: a plan that was read from somewhere.
    ///
    /// # Errors
    /// As [`Plan::new`]: the plan is one for another machine or other applications.
    pub fn checked(self, facts: &Facts) -> Result<Self, LawBroken> {
        Self::new(facts, self.0)
    }

    /// CTAs of `app` that SM `sm` may hold; 0 for a waiting application.
    #[must_use]
    pub fn quota(&self, app: AppId, sm: usize) -> u32 {
        match self.0.shares.get(app.index()) {
            Some(Share::Quota(by_sm)) => by_sm.get(sm).copied().unwrap_or(0),
            Some(Share::Waiting) | None => 0,
        }
    }

    /// One share per application.
    #[must_use]
    pub fn shares(&self) -> &[Share] {
        &self.0.shares
    }

    /// CTA dispatch order.
    #[must_use]
    pub fn order(&self) -> &DispatchOrder {
        &self.0.order
    }

    /// Each application's part of every SM; empty when all take from the whole.
    #[must_use]
    pub fn regions(&self) -> &[Region] {
        &self.0.regions
    }

    /// Channels by application; empty when all are shared.
    #[must_use]
    pub fn channels(&self) -> &[Vec<u32>] {
        &self.0.channels
    }

    /// Memory slices by application; empty when all are shared.
    #[must_use]
    pub fn instances(&self) -> &[MemoryInstance] {
        &self.0.instances
    }

    /// How pages follow channels that change hands.
    #[must_use]
    pub fn migration(&self) -> Migration {
        self.0.migration
    }

    /// The form of an application's kernels as workers; `None`: as written.
    #[must_use]
    pub fn workers(&self, app: AppId) -> Option<&Persistent> {
        self.0.workers.get(app.index()).and_then(Option::as_ref)
    }

    /// How SMs are vacated.
    #[must_use]
    pub fn vacate(&self) -> Vacate {
        self.0.vacate
    }

    /// What becomes of the share of an application that has finished.
    #[must_use]
    pub fn freed(&self) -> Freed {
        self.0.freed
    }

    /// Time slicing, if any.
    #[must_use]
    pub fn time_slice(&self) -> Option<TimeSlice> {
        self.0.time_slice
    }

    /// Cycles until it takes effect.
    #[must_use]
    pub fn delay(&self) -> Cycle {
        self.0.delay
    }

    /// When to ask again.
    #[must_use]
    pub fn wake(&self) -> &[WakeOn] {
        &self.0.wake
    }

    /// Why, in one sentence.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.0.reason
    }

    /// What it rests on.
    #[must_use]
    pub fn curves(&self) -> &[Curve] {
        &self.0.curves
    }
}
