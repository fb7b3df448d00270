//! Address spaces: how the same address of two applications is kept distinct.

use gpumodel_core::units::to_u64;

use crate::sm::coalesce::LOCAL_BASE;

/// Bits of an address within its application: addresses of the trace and of local memory.
pub(crate) const VIRTUAL_BITS: u32 = 50;

/// The most applications; the bits above belong to the page tables.
const SPACES: u64 = 1 << 13;

/// Where an application's number moves its data among the rows: above the row bits that one
/// application uses, below the bits that mappings drop.
const ROW_SHIFT: u32 = 39;

/// The tag that is XORed with every address of application number `app`, so that it neither
/// hits another one's lines nor opens its rows; 0 for the first.
///
/// # Panics
/// Beyond 8192 applications.
pub(crate) fn tag(app: u16) -> u64 {
    let app = to_u64(app);
    assert!(app < SPACES, "{app} applications at once");
    app << VIRTUAL_BITS | (app & 0xff) << ROW_SHIFT
}

/// The number of the application whose address it is.
pub(crate) fn app(address: u64) -> usize {
    gpumodel_core::units::to_usize(address >> VIRTUAL_BITS & (SPACES - 1))
}

/// Where the data of programs ends: local memory and the saved state of CTAs lie above.
const PROGRAMS_END: u64 = 1 << 47;

/// True for an address of program data of any application: part of the footprint that is in
/// memory before it runs.
pub(crate) fn is_footprint(address: u64) -> bool {
    address & ((1 << VIRTUAL_BITS) - 1) < PROGRAMS_END
}

/// Where the saved state of CTAs lies in an application's addresses: above all user memory,
/// below code.
pub(crate) const STATE_BASE: u64 = 0xe << 44;

/// True for an address of the saved state of CTAs of any application.
pub(crate) fn is_state(address: u64) -> bool {
    let app = address >> VIRTUAL_BITS & (SPACES - 1);
    let own = address ^ (app << VIRTUAL_BITS | (app & 0xff) << ROW_SHIFT);
    (STATE_BASE..STATE_BASE + (1 << 44)).contains(&own)
}

/// True for an address of local memory of any application.
pub(crate) fn is_local(address: u64) -> bool {
    address & ((1 << VIRTUAL_BITS) - 1) >= LOCAL_BASE
}

#[cfg(test)]
mod tests {
    use super::{LOCAL_BASE, STATE_BASE, VIRTUAL_BITS, is_local, is_state, tag};

    #[test]
    fn local_memory_is_recognised_in_every_space() {
        for tag in [tag(0), tag(1), tag(255)] {
            assert!(is_local((LOCAL_BASE + 5) ^ tag) && !is_local(0x7f00_0000_0000 ^ tag));
        }
    }

    #[test]
    fn saved_state_is_recognised_in_every_space() {
        for tag in [tag(0), tag(1), tag(255), tag(300)] {
            for offset in [0, 1 << 20, (1 << 44) - 1] {
                assert!(is_state((STATE_BASE + offset) ^ tag));
            }
            for other in [0x7f00_0000_0000, 0xd << 44, STATE_BASE - 1, 0xf << 44, LOCAL_BASE] {
                assert!(!is_state(other ^ tag), "{other:x}");
            }
        }
    }

    #[test]
    fn the_first_application_keeps_its_addresses_and_no_other_shares_them() {
        assert_eq!(tag(0), 0);
        let spaces: Vec<u64> = (0..300).map(|app| tag(app) >> VIRTUAL_BITS).collect();
        assert!(spaces.windows(2).all(|pair| pair[0] < pair[1]));
    }
}
