//! Barrier objects in shared memory (PTX ISA, `mbarrier`): arrivals, expected bytes, phases, and
//! the warps that wait for them.
//!
//! A phase ends when as many arrivals have come as the object was made for, and all bytes that
//! it expects. Counts and parities are register values, which traces of version 6 may have.
//! Where one lacks them, a wait takes as long as bulk copies to the object are in flight (to any
//! object, where the trace does not name it); such waits are counted as assumed. Arrivals after
//! asynchronous copies (`ARRIVES.LDGSTSBAR`) come at once. Steps at objects of other CTAs of a
//! cluster travel there as messages. Where nothing is left that could end a phase, a kernel of
//! clusters goes on.

use gpumodel_core::isa::{Access, AsyncFields, ObjectStep};
use gpumodel_core::units::{Cycle, to_u16};

/// Stands for the object of a copy or wait that the trace does not name.
const UNNAMED: u16 = u16::MAX;

/// Most objects of a CTA that are distinguished; kernels have some tens.
const MOST: usize = 4096;

/// The barrier objects of a CTA.
#[derive(Clone, Debug, Default)]
pub(super) struct BarrierObjects {
    objects: Vec<BarrierObject>,
    /// Copies in flight whose object the trace does not name, and when the last one ended.
    unnamed: (u32, Cycle),
    /// A copy had no bytes or no object: expected bytes are taken as come when no copy to the
    /// object, or without one, is in flight.
    incomplete: bool,
}

/// One barrier object.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BarrierObject {
    /// Byte offset in the CTA's shared memory.
    pub(super) address: u64,
    /// Arrivals of a phase; `None`: not in the trace.
    pub(super) expected: Option<u32>,
    /// Arrivals since the last phase ended.
    pub(super) arrived: u32,
    /// Bytes that are still to come in this phase; negative: more than it expects so far.
    pub(super) bytes: i64,
    /// Copies in flight.
    copies: u32,
    /// Phases that have ended.
    phases: u32,
    /// When the last phase ended, or the last copy.
    ended: Cycle,
}

/// What a warp does at a barrier object, from the fields of its instruction.
#[derive(Clone, Copy, Debug)]
pub(super) struct ObjectAccess {
    pub(super) step: ObjectStep,
    /// Of the object; `None`: the trace does not name it.
    pub(super) address: Option<u64>,
    /// Active lanes.
    pub(super) lanes: u32,
    /// The register value that it has.
    pub(super) value: Option<u64>,
}

impl ObjectAccess {
    /// A step at the object that the lanes of `access` name.
    pub(super) fn new(step: ObjectStep, access: &Access, fields: Option<&AsyncFields>) -> Self {
        Self {
            step,
            address: access.active().next().map(|(_, address)| address),
            lanes: access.mask.count_ones(),
            value: match fields {
                Some(AsyncFields::Values(values)) => values.get(1).copied(),
                Some(AsyncFields::Copy(_)) | None => None,
            },
        }
    }
}

/// The arrivals for which a register value of `SYNCS.EXCH.64` makes an object: its low half is
/// 2^20 less the count, above one bit (Accel-Sim 2.0, trace_driven.cc).
fn initial_arrivals(value: u64) -> u32 {
    #[allow(clippy::cast_possible_truncation, reason = "the low half")]
    let low = value as u32;
    0x10_0000_u32.wrapping_sub(low >> 1)
}

/// The parity for which a register value of `SYNCS.PHASECHK` waits: its top bit, where compilers
/// put it, or the whole value, where workloads write it.
fn parity(value: u64) -> bool {
    value == 1 || value >> 31 & 1 == 1
}

impl BarrierObjects {
    /// The place of the object at an address, made when it is met first; [`UNNAMED`] beyond
    /// [`MOST`].
    pub(super) fn place(&mut self, address: u64) -> u16 {
        if let Some(place) = self.objects.iter().position(|object| object.address == address) {
            return to_u16(place);
        }
        if self.objects.len() >= MOST {
            return UNNAMED;
        }
        self.objects.push(BarrierObject { address, ..BarrierObject::default() });
        to_u16(self.objects.len() - 1)
    }

    /// The same of an address that the trace may lack.
    pub(super) fn place_of(&mut self, address: Option<u64>) -> u16 {
        address.map_or(UNNAMED, |address| self.place(address))
    }

    /// The object at a place.
    pub(super) fn at(&self, place: u16) -> Option<&BarrierObject> {
        self.objects.get(usize::from(place))
    }

    /// Does a step other than a wait by so many lanes, at a cycle from which it counts.
    pub(super) fn step(
        &mut self,
        place: u16,
        step: ObjectStep,
        lanes: u32,
        value: Option<u64>,
        at: Cycle,
    ) {
        let Some(object) = self.objects.get_mut(usize::from(place)) else { return };
        let number = value.map(|value| u32::try_from(value & 0xffff_ffff).unwrap_or(0));
        let bytes = i64::from(number.unwrap_or(0)) * i64::from(lanes);
        match step {
            ObjectStep::Init => {
                let expected = value.map(initial_arrivals);
                *object = BarrierObject {
                    expected,
                    address: object.address,
                    copies: object.copies,
                    ..BarrierObject::default()
                };
                return;
            }
            ObjectStep::ArriveExpect => {
                object.bytes += bytes;
                object.arrive(lanes);
            }
            ObjectStep::Arrive | ObjectStep::ArriveAfterCopies => object.arrive(lanes),
            ObjectStep::ArriveTimes => {
                object.arrive(number.unwrap_or(1).saturating_mul(lanes));
            }
            // The phase ends without these.
            ObjectStep::Leave => {
                let times = number.unwrap_or(1).max(1).saturating_mul(lanes);
                object.expected = object.expected.map(|expected| expected.saturating_sub(times));
            }
            ObjectStep::Expect => object.bytes += bytes,
            ObjectStep::Complete => object.bytes -= bytes,
            ObjectStep::Wait => {}
        }
        self.settle(place, at);
    }

    /// Ends the phase of an object when all that it waits for has come.
    fn settle(&mut self, place: u16, at: Cycle) {
        let Some(object) = self.objects.get_mut(usize::from(place)) else { return };
        let ignores_bytes = self.incomplete && self.unnamed.0 == 0 && object.copies == 0;
        let Some(expected) = object.expected.filter(|&expected| expected > 0) else { return };
        if object.arrived >= expected && (object.bytes <= 0 || ignores_bytes) {
            object.arrived -= expected;
            object.bytes = if ignores_bytes { 0 } else { object.bytes };
            object.phases += 1;
            object.ended = object.ended.max(at);
        }
    }

    /// A copy has no bytes in the trace, or no object.
    pub(super) fn miss_copy(&mut self, at: Cycle) {
        self.incomplete = true;
        (0..to_u16(self.objects.len())).for_each(|place| self.settle(place, at));
    }

    /// A copy has begun to the object at an address, where the trace has it; returns its place.
    pub(super) fn begin_copy(&mut self, address: Option<u64>) -> u16 {
        let place = self.place_of(address);
        match self.objects.get_mut(usize::from(place)) {
            Some(object) => object.copies += 1,
            None => (self.unnamed.0, self.incomplete) = (self.unnamed.0 + 1, true),
        }
        place
    }

    /// A copy to an object has ended at a cycle, and its bytes have come.
    pub(super) fn end_copy(&mut self, place: u16, bytes: u32, at: Cycle) {
        let Some(object) = self.objects.get_mut(usize::from(place)) else {
            self.unnamed = (self.unnamed.0.saturating_sub(1), self.unnamed.1.max(at));
            return self.miss_copy(at);
        };
        object.copies = object.copies.saturating_sub(1);
        object.bytes -= i64::from(bytes);
        if object.expected.is_none() {
            object.ended = object.ended.max(at);
        }
        self.settle(place, at);
    }

    /// Bytes that another CTA of the cluster has asked for have come.
    pub(super) fn count_bytes(&mut self, place: u16, bytes: u32, at: Cycle) {
        if let Some(object) = self.objects.get_mut(usize::from(place)) {
            object.bytes -= i64::from(bytes);
        }
        self.settle(place, at);
    }

    /// The place of the object and the parity of the phase that a warp waits for.
    pub(super) fn wait(&mut self, access: ObjectAccess) -> (u16, Option<bool>) {
        (self.place_of(access.address), access.value.map(parity))
    }

    /// When a wait at an object for the phase of a parity is over; `None`: not yet known.
    pub(super) fn ready_at(&self, (place, parity): (u16, Option<bool>)) -> Option<Cycle> {
        let Some(object) = self.at(place) else { return Some(0) };
        if let (Some(_), Some(parity)) = (object.expected, parity) {
            let ended = (object.phases & 1 == 1) != parity;
            return ended.then_some(object.ended);
        }
        let (unnamed, last) = self.unnamed;
        (object.copies == 0 && unnamed == 0).then_some(object.ended.max(last))
    }

    /// True when the trace names the object of a wait, but has no counts that tell its end.
    pub(super) fn is_assumed(&self, (place, parity): (u16, Option<bool>)) -> bool {
        let counted = self.at(place).is_some_and(|object| object.expected.is_some());
        place != UNNAMED && !(parity.is_some() && counted)
    }

    /// True while a copy is in flight.
    pub(super) fn has_copies(&self) -> bool {
        self.unnamed.0 > 0 || self.objects.iter().any(|object| object.copies > 0)
    }

    /// No counts of an object are to be relied on.
    pub(super) fn forget_counts(&mut self, place: u16) {
        if let Some(object) = self.objects.get_mut(usize::from(place)) {
            object.expected = None;
        }
    }
}

impl BarrierObject {
    /// So many more have arrived.
    fn arrive(&mut self, times: u32) {
        self.arrived = self.arrived.saturating_add(times);
    }
}

#[cfg(test)]
mod tests {
    use super::{BarrierObjects, UNNAMED, initial_arrivals, parity};
    use gpumodel_core::isa::ObjectStep;

    /// An object for `count` arrivals.
    fn made_for(count: u64) -> (BarrierObjects, u16) {
        let mut objects = BarrierObjects::default();
        let place = objects.place(0x400);
        let value = (0x10_0000 - count) << 1;
        objects.step(place, ObjectStep::Init, 1, Some(value), 0);
        (objects, place)
    }

    #[test]
    fn the_count_of_an_object_is_in_the_value_that_makes_it() {
        for count in [1, 2, 128, 1024] {
            assert_eq!(initial_arrivals(u64::from((0x10_0000 - count) << 1)), count);
        }
    }

    #[test]
    fn the_parity_of_a_wait_is_the_top_bit_of_its_register() {
        assert_eq!(
            [0, 1, 0x8000_0000, 0xffff_f800, 0x7fff_f800].map(parity),
            [false, true, true, true, false]
        );
    }

    #[test]
    fn a_phase_ends_with_its_last_arrival() {
        let (mut objects, place) = made_for(2);
        assert_eq!(objects.ready_at((place, Some(true))), Some(0), "the phase before the first");
        objects.step(place, ObjectStep::Arrive, 1, None, 10);
        assert_eq!(objects.ready_at((place, Some(false))), None);
        objects.step(place, ObjectStep::Arrive, 1, None, 20);
        assert_eq!(objects.ready_at((place, Some(false))), Some(20));
        assert_eq!(objects.ready_at((place, Some(true))), None, "the second phase");
    }

    #[test]
    fn who_leaves_arrives_for_the_last_time() {
        let (mut objects, place) = made_for(3);
        objects.step(place, ObjectStep::Leave, 1, Some(0), 10);
        objects.step(place, ObjectStep::Arrive, 1, None, 20);
        assert_eq!(objects.ready_at((place, Some(false))), None);
        objects.step(place, ObjectStep::Arrive, 1, None, 30);
        assert_eq!(objects.ready_at((place, Some(false))), Some(30));
        objects.step(place, ObjectStep::ArriveTimes, 1, Some(2), 40);
        assert_eq!(objects.ready_at((place, Some(true))), Some(40), "two are left");
    }

    #[test]
    fn a_phase_waits_for_its_bytes() {
        let (mut objects, place) = made_for(1);
        objects.step(place, ObjectStep::ArriveExpect, 1, Some(4096), 5);
        for (bytes, at, ready) in [(1024, 50, None), (3072, 90, Some(90))] {
            objects.begin_copy(Some(0x400));
            objects.end_copy(place, bytes, at);
            assert_eq!(objects.ready_at((place, Some(false))), ready);
        }
    }

    #[test]
    fn bytes_that_come_before_they_are_expected_count() {
        let (mut objects, place) = made_for(1);
        objects.begin_copy(Some(0x400));
        objects.end_copy(place, 512, 30);
        objects.step(place, ObjectStep::ArriveExpect, 1, Some(512), 40);
        assert_eq!(objects.ready_at((place, Some(false))), Some(40));
    }

    #[test]
    fn expected_bytes_of_copies_that_the_trace_lacks_count_as_come() {
        let (mut objects, place) = made_for(1);
        objects.step(place, ObjectStep::ArriveExpect, 1, Some(512), 40);
        assert_eq!(objects.ready_at((place, Some(false))), None);
        objects.miss_copy(60);
        assert_eq!(objects.ready_at((place, Some(false))), Some(60));
    }

    #[test]
    fn without_counts_a_wait_takes_as_long_as_copies_are_in_flight() {
        let mut objects = BarrierObjects::default();
        let place = objects.place(0x400);
        assert_eq!(objects.ready_at((place, None)), Some(0));
        objects.begin_copy(Some(0x400));
        objects.begin_copy(None);
        assert_eq!(objects.ready_at((place, None)), None);
        objects.end_copy(place, 64, 70);
        assert_eq!(objects.ready_at((place, None)), None, "one names no object");
        objects.end_copy(UNNAMED, 64, 80);
        assert_eq!(objects.ready_at((place, None)), Some(80));
    }
}
