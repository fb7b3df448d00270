//! CTAs that wait forever at barriers: no warp is left that could arrive.

use crate::gpu::error::LostBarrier;
use crate::gpu::shared_state::SharedState;
use crate::interval::BarrierOperands;
use crate::sm::Sm;
use crate::sm::cta::{Barrier, Cta};
use crate::sm::warp::{Blocked, Warp};

/// A CTA all of whose warps wait at barriers that too few have met.
pub(crate) struct WaitingCta {
    /// The launch, by its place in the run.
    pub(crate) kernel: u32,
    /// Which of the launch's CTAs it is, in the source's order; `None`: it is a worker.
    pub(crate) ordinal: Option<u64>,
    /// The barriers at which its warps wait.
    pub(crate) barriers: Vec<LostBarrier>,
}

impl Sm {
    /// The first CTA that the trace keeps waiting forever.
    pub(crate) fn waiting_cta(&self, shared_state: &mut SharedState) -> Option<WaitingCta> {
        let places = 0..self.ctas.len();
        places.into_iter().find_map(|place| self.lost_at(place, shared_state))
    }

    fn lost_at(&self, place: usize, shared_state: &mut SharedState) -> Option<WaitingCta> {
        let cta = self.ctas[place].as_ref()?;
        let members = || (0..cta.warps.len()).filter_map(|index| self.member(place, index));
        let waits = |(_, warp): (u16, &Warp)| {
            matches!(warp.blocked, Blocked::Barrier(_) | Blocked::Object) && !warp.waking
        };
        if cta.vacating.is_some() || !members().all(waits) {
            return None;
        }
        let met = |barrier: &&Barrier| {
            let at = Blocked::Barrier(barrier.place);
            barrier.place != BarrierOperands::TASK && members().any(|(_, warp)| warp.blocked == at)
        };
        let mut barriers = Vec::new();
        for barrier in cta.barriers.iter().filter(met) {
            barriers.push(self.lost_barrier(place, cta, barrier, shared_state));
        }
        barriers.extend(self.lost_objects(place, cta, shared_state));
        barriers.extend(self.lost_cluster(place, cta, shared_state));
        let lost = barriers
            .iter()
            .all(|barrier| barrier.object.is_some() || barrier.arrived < barrier.expected);
        let ordinal = Some(cta.ordinal).filter(|_| cta.duty.is_none());
        let found = WaitingCta { kernel: cta.kernel, ordinal, barriers };
        (lost && !found.barriers.is_empty()).then_some(found)
    }

    /// The barrier objects at which warps of a CTA wait.
    fn lost_objects(
        &self,
        place: usize,
        cta: &Cta,
        shared_state: &mut SharedState,
    ) -> Vec<LostBarrier> {
        let profile = shared_state.profile(cta.kernel);
        let mut found: Vec<(u16, LostBarrier)> = Vec::new();
        for index in 0..cta.warps.len() {
            let Some((_, warp)) = self.member(place, index) else { continue };
            let (object, at) = (warp.object.0, profile.pc_before(warp.stretch));
            if warp.blocked != Blocked::Object {
                continue;
            }
            let known = found.iter_mut().find(|(place, _)| *place == object);
            if let Some((_, lost)) = known {
                lost.waiting.push((index, at));
            } else if let Some(state) = cta.objects.at(object) {
                let lost = LostBarrier {
                    number: None,
                    cluster: false,
                    object: Some((state.address, state.bytes)),
                    arrived: state.arrived,
                    expected: state.expected.unwrap_or(0),
                    waiting: vec![(index, at)],
                };
                found.push((object, lost));
            }
        }
        found.into_iter().map(|(_, lost)| lost).collect()
    }

    fn lost_barrier(
        &self,
        place: usize,
        cta: &Cta,
        barrier: &Barrier,
        shared_state: &mut SharedState,
    ) -> LostBarrier {
        LostBarrier {
            number: BarrierOperands::number_of(barrier.place),
            cluster: false,
            object: None,
            arrived: barrier.arrived,
            expected: self.awaited(place, barrier.place, barrier.warps),
            waiting: self.waiting_at(place, cta, barrier.place, shared_state),
        }
    }

    /// The barrier of a CTA's cluster, where warps wait there.
    fn lost_cluster(
        &self,
        place: usize,
        cta: &Cta,
        shared_state: &mut SharedState,
    ) -> Option<LostBarrier> {
        let (expected, arrived) = shared_state.clusters.awaited(cta.seat?);
        let waiting = self.waiting_at(place, cta, BarrierOperands::CLUSTER, shared_state);
        let lost =
            LostBarrier { number: None, cluster: true, object: None, arrived, expected, waiting };
        (!lost.waiting.is_empty()).then_some(lost)
    }

    /// The warps of a CTA that wait at a barrier, with their PCs.
    fn waiting_at(
        &self,
        place: usize,
        cta: &Cta,
        barrier: u8,
        shared_state: &mut SharedState,
    ) -> Vec<(usize, u64)> {
        let profile = shared_state.profile(cta.kernel);
        let member = |index| Some((index, self.member(place, index)?.1));
        let waiting = (0..cta.warps.len()).filter_map(member);
        let waiting = waiting.filter(|(_, warp)| warp.blocked == Blocked::Barrier(barrier));
        waiting.map(|(index, warp)| (index, profile.pc_before(warp.stretch))).collect()
    }
}
