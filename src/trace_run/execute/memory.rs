//! Device memory.

use std::sync::Mutex;

use super::access::{WarpAccess, Words};
use super::system::Printed;

/// Start of the window of shared memory in generic addresses.
pub const SHARED_WINDOW: u64 = 0x7e00_0000_0000;
/// Start of the window of local memory in generic addresses.
pub const LOCAL_WINDOW: u64 = 0x7e01_0000_0000;
/// Where constant banks lie in traces, one after the other; cards do not say where they have them.
pub(crate) const CONSTANT_WINDOW: u64 = 0x7e02_0000_0000;
/// The address that traces have of a place in constant bank 3, which the host writes.
#[must_use]
pub fn constant_address(offset: u64) -> u64 {
    CONSTANT_WINDOW + 3 * CONSTANT_BANK_BYTES + offset
}

/// Size of a constant bank.
pub(crate) const CONSTANT_BANK_BYTES: u64 = 1 << 16;
/// Size of a window.
pub const WINDOW_BYTES: u64 = 1 << 24;

/// Device memory at the program's own addresses.
pub trait Memory: Sync {
    /// Whether all of it is allocated.
    fn has(&self, address: u64, bytes: usize) -> bool;

    /// Reads from `address` on; none when it is not all allocated.
    fn read(&self, address: u64, into: &mut [u8]) -> Option<()>;

    /// Writes from `address` on; none when it is not all allocated.
    fn write(&self, address: u64, from: &[u8]) -> Option<()>;

    /// Reads for the lanes of a warp; none when that is not possible all at once.
    fn read_access(&self, access: &WarpAccess<'_>, into: &mut Words) -> Option<()>;

    /// Writes for the lanes of a warp; none, and nothing is written, when that is not possible
    /// all at once.
    fn write_access(&self, access: &WarpAccess<'_>, from: &Words) -> Option<()>;

    /// Prints what kernels print, in order.
    fn print(&self, printed: &[Printed]);

    /// Allocates for a kernel; none when its heap is full.
    fn allocate_in_kernel(&self, bytes: u64) -> Option<u64>;

    /// Frees what a kernel allocated; false when none did.
    fn free_in_kernel(&self, address: u64) -> bool;

    /// The allocation nearest to an address outside all of them: its first address and its bytes.
    fn nearest(&self, address: u64) -> Option<(u64, u64)>;
}

/// Copies bytes of equal length; those of a register, a pair and four registers without a call.
#[inline]
pub(crate) fn copy_bytes(to: &mut [u8], from: &[u8]) {
    fn exact<const N: usize>(to: &mut [u8], from: &[u8]) -> Option<()> {
        let from: [u8; N] = from.try_into().ok()?;
        *<&mut [u8; N]>::try_from(to).ok()? = from;
        Some(())
    }
    let done = match to.len() {
        4 => exact::<4>(to, from),
        8 => exact::<8>(to, from),
        16 => exact::<16>(to, from),
        _ => {
            to.copy_from_slice(from);
            Some(())
        }
    };
    debug_assert!(done.is_some(), "the lengths are equal");
}

/// Memory in a vector, for tests.
#[derive(Debug, Default)]
pub struct HostMemory {
    base: u64,
    bytes: Mutex<Vec<u8>>,
}

impl HostMemory {
    /// So many zero bytes from `base` on.
    #[must_use]
    pub fn new(base: u64, bytes: usize) -> Self {
        Self { base, bytes: Mutex::new(vec![0; bytes]) }
    }

    fn range(&self, address: u64, length: usize, end: usize) -> Option<std::ops::Range<usize>> {
        let start = usize::try_from(address.checked_sub(self.base)?).ok()?;
        let range = start..start.checked_add(length)?;
        (range.end <= end).then_some(range)
    }
}

impl Memory for HostMemory {
    fn has(&self, address: u64, bytes: usize) -> bool {
        let end = self.bytes.lock().map_or(0, |bytes| bytes.len());
        self.range(address, bytes, end).is_some()
    }

    fn read(&self, address: u64, into: &mut [u8]) -> Option<()> {
        let bytes = self.bytes.lock().ok()?;
        into.copy_from_slice(&bytes[self.range(address, into.len(), bytes.len())?]);
        Some(())
    }

    fn write(&self, address: u64, from: &[u8]) -> Option<()> {
        let mut bytes = self.bytes.lock().ok()?;
        let range = self.range(address, from.len(), bytes.len())?;
        bytes[range].copy_from_slice(from);
        Some(())
    }

    fn read_access(&self, access: &WarpAccess<'_>, into: &mut Words) -> Option<()> {
        let bytes = self.bytes.lock().ok()?;
        access.read(&&bytes[self.range(access.lowest(), access.span(), bytes.len())?], into)
    }

    fn write_access(&self, access: &WarpAccess<'_>, from: &Words) -> Option<()> {
        let mut bytes = self.bytes.lock().ok()?;
        let range = self.range(access.lowest(), access.span(), bytes.len())?;
        access.write(&mut &mut bytes[range], from)
    }

    fn print(&self, _: &[Printed]) {}

    fn allocate_in_kernel(&self, _: u64) -> Option<u64> {
        None
    }

    fn free_in_kernel(&self, _: u64) -> bool {
        false
    }

    fn nearest(&self, _: u64) -> Option<(u64, u64)> {
        let bytes = self.bytes.lock().ok()?.len();
        Some((self.base, bytes as u64))
    }
}
