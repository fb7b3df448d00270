//! CTAs that wait forever at barriers: no warp is left that could arrive.

use crate::gpu::error::LostBarrier;
use crate::gpu::shared_state::SharedState;
use crate::interval::{BarrierOperands, Profile};
use crate::sm::barriers::Barrier;
use crate::sm::cta::Cta;
use crate::sm::warp::{Blocked, Warp};
use crate::sm::warps::Warps;

/// A CTA all of whose warps wait at barriers that too few have met.
pub(crate) struct WaitingCta {
    /// The launch, by its place in the run.
    pub(crate) kernel: u32,
    /// Which of the launch's CTAs it is, in the source's order; `None`: it is a worker.
    pub(crate) ordinal: Option<u64>,
    /// The barriers at which its warps wait.
    pub(crate) barriers: Vec<LostBarrier>,
}

impl WaitingCta {
    /// A CTA that the trace keeps waiting forever; `None` where it is none.
    pub(super) fn find(cta: &Cta, warps: &Warps, shared_state: &mut SharedState) -> Option<Self> {
        let waits = |(_, warp): (u16, &Warp)| {
            let at = warp.blocked;
            matches!(at, Blocked::Barrier(_) | Blocked::Object | Blocked::Registers(_))
                && !warp.waking
        };
        if cta.vacating.is_some() || !cta.members(warps).all(waits) {
            return None;
        }
        let profile = shared_state.profile(cta.kernel);
        let mut barriers = lost_barriers(cta, warps, profile);
        barriers.extend(lost_objects(cta, warps, profile));
        barriers.extend(lost_cluster(cta, warps, shared_state));
        barriers.extend(lost_registers(cta, warps, shared_state.profile(cta.kernel)));
        let lost = barriers
            .iter()
            .all(|barrier| barrier.object.is_some() || barrier.arrived < barrier.expected);
        let ordinal = Some(cta.ordinal).filter(|_| cta.duty.is_none());
        let found = Self { kernel: cta.kernel, ordinal, barriers };
        (lost && !found.barriers.is_empty()).then_some(found)
    }
}

/// The barriers at which warps of a CTA wait.
fn lost_barriers(cta: &Cta, warps: &Warps, profile: &Profile) -> Vec<LostBarrier> {
    let met = |barrier: &&Barrier| {
        let at = Blocked::Barrier(barrier.place);
        barrier.place != BarrierOperands::TASK
            && cta.members(warps).any(|(_, warp)| warp.blocked == at)
    };
    let lost = |barrier: &Barrier| LostBarrier {
        number: BarrierOperands::number_of(barrier.place),
        cluster: false,
        registers: false,
        object: None,
        arrived: barrier.arrived,
        expected: cta.awaited(barrier, warps),
        waiting: waiting_at(barrier.place, cta, warps, profile),
    };
    cta.barriers.iter().filter(met).map(lost).collect()
}

/// The barrier objects at which warps of a CTA wait.
fn lost_objects(cta: &Cta, warps: &Warps, profile: &Profile) -> Vec<LostBarrier> {
    let mut found: Vec<(u16, LostBarrier)> = Vec::new();
    for index in 0..cta.warps.len() {
        let Some((_, warp)) = cta.member(index, warps) else { continue };
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
                registers: false,
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

/// The barrier of a CTA's cluster, where warps wait there.
fn lost_cluster(cta: &Cta, warps: &Warps, shared_state: &mut SharedState) -> Option<LostBarrier> {
    let (expected, arrived) = shared_state.clusters.awaited(cta.seat?);
    let profile = shared_state.profile(cta.kernel);
    let waiting = waiting_at(BarrierOperands::CLUSTER, cta, warps, profile);
    let lost = LostBarrier {
        number: None,
        cluster: true,
        registers: false,
        object: None,
        arrived,
        expected,
        waiting,
    };
    (!lost.waiting.is_empty()).then_some(lost)
}

/// The registers for which warps of a CTA wait, by how many they want.
fn lost_registers(cta: &Cta, warps: &Warps, profile: &Profile) -> Vec<LostBarrier> {
    let mut found: Vec<LostBarrier> = Vec::new();
    for index in 0..cta.warps.len() {
        let Some((_, warp)) = cta.member(index, warps) else { continue };
        let Blocked::Registers(count) = warp.blocked else { continue };
        let expected = count - cta.registers_of(warp);
        let waiting = (index, profile.pc_before(warp.stretch));
        match found.iter_mut().find(|lost| lost.expected == expected) {
            Some(lost) => lost.waiting.push(waiting),
            None => found.push(LostBarrier {
                number: None,
                cluster: false,
                registers: true,
                object: None,
                arrived: cta.spare_registers,
                expected,
                waiting: vec![waiting],
            }),
        }
    }
    found
}

/// The warps of a CTA that wait at a barrier, with their PCs.
fn waiting_at(barrier: u8, cta: &Cta, warps: &Warps, profile: &Profile) -> Vec<(usize, u64)> {
    let member = |index| Some((index, cta.member(index, warps)?.1));
    let waiting = (0..cta.warps.len()).filter_map(member);
    let waiting = waiting.filter(|(_, warp)| warp.blocked == Blocked::Barrier(barrier));
    waiting.map(|(index, warp)| (index, profile.pc_before(warp.stretch))).collect()
}
