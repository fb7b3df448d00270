//! Barrier objects in shared memory (PTX ISA, `mbarrier`): 64 bits each.
//!
//! Kernels write and read parts of them with plain instructions: bits 1 to 20 are 2^20 less the
//! arrivals of a phase, bits 43 to 62 are 2^20 less the arrivals that are missing, bit 63 is the
//! parity of the phase. Where the bytes lie that are still to come is not published; here they are
//! a number with a sign in bits 21 to 42.

use super::lanes::Scope;

const EXPECTED: u32 = 1;
const BYTES: u32 = 21;
const BYTES_BITS: u32 = 22;
const MISSING: u32 = 43;
const COUNT: u64 = 1 << 20;
const PARITY: u64 = 1 << 63;
/// Where the rank of a CTA stands in an address of a cluster's shared memories.
pub(crate) const RANK: u32 = 24;

/// What the 64 bits say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BarrierObject {
    /// Arrivals of a phase.
    expected: u64,
    /// Arrivals that are missing in this one.
    missing: u64,
    /// Bytes that are still to come; negative: more came than it expects so far.
    bytes: i64,
    odd: bool,
}

impl BarrierObject {
    /// From its bits; none where no object has been made.
    pub(crate) fn read(bits: u64) -> Option<Self> {
        let count = |at: u32| COUNT - (bits >> at & (COUNT - 1));
        let bytes = (bits << (64 - BYTES - BYTES_BITS)).cast_signed() >> (64 - BYTES_BITS);
        // None is missing where bytes alone are to come.
        let (expected, missing) = (count(EXPECTED), count(MISSING) % COUNT);
        let odd = bits & PARITY != 0;
        (expected < COUNT).then_some(Self { expected, missing, bytes, odd })
    }

    /// Its bits.
    pub(crate) fn bits(self) -> u64 {
        let count = |number: u64, at: u32| ((COUNT - number) % COUNT) << at;
        let bytes = (self.bytes.cast_unsigned() & ((1 << BYTES_BITS) - 1)) << BYTES;
        let parity = if self.odd { PARITY } else { 0 };
        count(self.expected, EXPECTED) | count(self.missing, MISSING) | bytes | parity
    }

    /// So many arrive; `drop`: and they do not take part in later phases.
    pub(crate) fn arrive(&mut self, times: u64, drop: bool) -> Result<(), String> {
        self.missing = self.missing.checked_sub(times).ok_or_else(|| {
            format!("{times} arrive at a barrier object for which {} are missing", self.missing)
        })?;
        if drop {
            self.expected = self.expected.saturating_sub(times);
        }
        self.settle();
        Ok(())
    }

    /// So many more bytes are to come; negative: have come.
    pub(crate) fn expect(&mut self, bytes: i64) {
        self.bytes += bytes;
        self.settle();
    }

    /// Ends the phase when all has come.
    fn settle(&mut self) {
        if self.missing == 0 && self.bytes == 0 {
            self.missing = self.expected;
            self.odd = !self.odd;
        }
    }

    /// Whether the phase of that parity has ended.
    pub(crate) fn is_over(self, odd: bool) -> bool {
        self.odd != odd
    }
}

impl Scope<'_> {
    /// Bytes of the shared memories of the cluster: the rank of a CTA stands above the offset.
    pub(crate) fn cluster_bytes(
        &mut self,
        address: u32,
        bytes: usize,
    ) -> Result<&mut [u8], String> {
        let offset = usize::try_from(address & ((1 << RANK) - 1)).unwrap_or(usize::MAX);
        let memory = self.cta.shared_of(address >> RANK);
        let found = memory.and_then(|memory| memory.get_mut(offset..offset.checked_add(bytes)?));
        found.ok_or_else(|| format!("{bytes} bytes at {address:#x} are no shared memory"))
    }

    /// Does a step at the barrier object of that address; returns its bits before it.
    pub(crate) fn at_object(
        &mut self,
        address: u32,
        step: impl FnOnce(&mut BarrierObject) -> Result<(), String>,
    ) -> Result<u64, String> {
        let place = self.cluster_bytes(address, 8)?;
        let mut bits = [0; 8];
        bits.copy_from_slice(place);
        let bits = u64::from_le_bytes(bits);
        let mut object = BarrierObject::read(bits)
            .ok_or_else(|| format!("there is no barrier object at {address:#x}"))?;
        step(&mut object)?;
        if object.bits() != bits {
            place.copy_from_slice(&object.bits().to_le_bytes());
        }
        Ok(bits)
    }
}

#[cfg(test)]
mod tests {
    use super::BarrierObject;

    /// An object as kernels make it.
    fn made_for(count: u64) -> BarrierObject {
        let left = (1 << 20) - count;
        BarrierObject::read(left << 1 | left << 43).unwrap()
    }

    #[test]
    fn the_bits_of_an_object_are_those_that_kernels_make_and_read() {
        let mut object = made_for(33);
        let left = |object: BarrierObject| (1 << 20) - (object.bits() >> 43 & 0xf_ffff);
        assert_eq!(left(object), 33);
        object.arrive(3, false).unwrap();
        object.expect(-5);
        assert_eq!((left(object), object.bits() >> 63), (30, 0));
        assert_eq!(BarrierObject::read(object.bits()), Some(object));
        assert_eq!(BarrierObject::read(0), None);
    }

    #[test]
    fn a_phase_ends_with_its_last_arrival_and_its_last_byte() {
        let mut object = made_for(2);
        assert!(object.is_over(true) && !object.is_over(false));
        object.expect(-16);
        object.arrive(2, false).unwrap();
        assert!(!object.is_over(false), "16 bytes came that it did not expect yet");
        let mut object = BarrierObject::read(object.bits()).unwrap();
        object.expect(16);
        assert!(object.is_over(false) && !object.is_over(true));
        object.arrive(1, true).unwrap();
        object.arrive(1, false).unwrap();
        object.arrive(1, false).unwrap();
        assert!(object.is_over(false) && !object.is_over(true), "one left: one arrival ends it");
        assert!(object.arrive(2, false).is_err());
    }
}
