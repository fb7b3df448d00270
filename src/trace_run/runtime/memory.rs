//! Device memory: one reserved range of the process, at the same place in every run. So are the
//! program's addresses: the same program gives the same trace where its kernels use memory of the
//! host.

use std::collections::BTreeMap;
use std::ffi::c_char;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError, RwLock};

use gpumodel_trace_run::execute::{Memory, Readable, WarpAccess, Words, Writable};
use gpumodel_trace_run::request::VARIABLE;

/// Where device memory begins.
const BASE: u64 = 0x2000_0000_0000;
/// Bytes that are reserved; the system gives pages when they are used.
const SIZE: u64 = 1 << 37;
/// Allocations begin at a multiple of this.
const ALIGN: u64 = 512;

/// The range.
#[derive(Debug)]
pub(crate) struct DeviceMemory {
    base: u64,
    size: u64,
    /// The end of what was ever allocated.
    top: AtomicU64,
    blocks: Mutex<Blocks>,
    /// Memory of the program that kernels may use.
    registered: RwLock<BTreeMap<u64, u64>>,
}

#[derive(Debug, Default)]
struct Blocks {
    used: BTreeMap<u64, u64>,
    free: BTreeMap<u64, u64>,
}

impl DeviceMemory {
    /// Reserves the range.
    pub(crate) fn reserve() -> Result<Self, String> {
        let at = usize::try_from(BASE).map_err(|_| "addresses have fewer than 64 bits")?;
        let mut size = SIZE;
        while size >= 1 << 30 {
            let length = usize::try_from(size).map_err(|_| "addresses have fewer than 64 bits")?;
            // SAFETY: a private anonymous mapping at an address where there is none
            // (`MAP_FIXED_NOREPLACE`) changes no memory that anything uses.
            let mapped = unsafe {
                libc::mmap(
                    std::ptr::with_exposed_provenance_mut(at),
                    length,
                    libc::PROT_READ | libc::PROT_WRITE,
                    libc::MAP_PRIVATE
                        | libc::MAP_ANONYMOUS
                        | libc::MAP_NORESERVE
                        | libc::MAP_FIXED_NOREPLACE,
                    -1,
                    0,
                )
            };
            if mapped.addr() == at {
                mapped.expose_provenance();
                return Ok(Self {
                    base: BASE,
                    size,
                    top: AtomicU64::new(BASE + ALIGN),
                    blocks: Mutex::default(),
                    registered: RwLock::default(),
                });
            }
            size /= 2;
        }
        Err("the system gives no range of addresses for device memory; raise `ulimit -v`".into())
    }

    /// Bytes of the range.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Allocates, the lowest place first.
    pub(crate) fn allocate(&self, bytes: u64) -> Option<u64> {
        let bytes = bytes.max(1).checked_next_multiple_of(ALIGN)?;
        let mut blocks = self.blocks.lock().unwrap_or_else(PoisonError::into_inner);
        let fitting = blocks.free.iter().find(|&(_, &size)| size >= bytes);
        let at = match fitting.map(|(&at, &size)| (at, size)) {
            Some((at, size)) => {
                blocks.free.remove(&at);
                if size > bytes {
                    blocks.free.insert(at + bytes, size - bytes);
                }
                at
            }
            None => {
                let at = self.top.load(Ordering::Relaxed);
                let end = at.checked_add(bytes).filter(|&end| end <= self.base + self.size)?;
                self.top.store(end, Ordering::Relaxed);
                at
            }
        };
        blocks.used.insert(at, bytes);
        Some(at)
    }

    /// Frees what was allocated at `at`; false when nothing was.
    pub(crate) fn free(&self, at: u64) -> bool {
        let mut blocks = self.blocks.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(mut size) = blocks.used.remove(&at) else { return false };
        let mut at = at;
        if let Some(after) = blocks.free.remove(&(at + size)) {
            size += after;
        }
        let before = blocks.free.range(..at).next_back().map(|(&start, &length)| (start, length));
        if let Some((start, length)) = before
            && start + length == at
        {
            blocks.free.remove(&start);
            (at, size) = (start, size + length);
        }
        blocks.free.insert(at, size);
        true
    }

    /// Whether `address` is device memory.
    pub(crate) fn contains(&self, address: u64) -> bool {
        (self.base..self.base + self.size).contains(&address)
    }

    /// Lets kernels use memory of the program.
    pub(crate) fn register(&self, at: u64, bytes: u64) {
        let mut all = self.registered.write().unwrap_or_else(PoisonError::into_inner);
        all.insert(at, bytes);
    }

    /// Takes that back.
    pub(crate) fn unregister(&self, at: u64) {
        let mut all = self.registered.write().unwrap_or_else(PoisonError::into_inner);
        all.remove(&at);
    }

    /// The place of `bytes` bytes, all of which are allocated or registered.
    #[inline]
    fn pointer(&self, address: u64, bytes: usize) -> Option<*mut u8> {
        let end = address.checked_add(bytes as u64)?;
        if address < self.base + ALIGN || end > self.top.load(Ordering::Relaxed) {
            let all = self.registered.read().unwrap_or_else(PoisonError::into_inner);
            let (&start, &length) = all.range(..=address).next_back()?;
            (end <= start.checked_add(length)?).then_some(())?;
        }
        Some(std::ptr::with_exposed_provenance_mut(usize::try_from(address).ok()?))
    }
}

/// Bytes of the device's memory, or of the program's that it registered: as many as `length`
/// from `start` on are mapped.
struct Mapped {
    start: *mut u8,
    length: usize,
}

impl Mapped {
    /// Where `count` bytes from `at` on are.
    #[inline]
    fn place(&self, at: usize, count: usize) -> Option<*mut u8> {
        let end = at.checked_add(count)?;
        (end <= self.length).then(|| self.start.wrapping_add(at))
    }
}

impl Readable for Mapped {
    #[inline]
    fn load<const N: usize>(&self, at: usize) -> Option<[u8; N]> {
        let from = self.place(at, N)?;
        // SAFETY: `place` returns only places with so many bytes in the range, which
        // `DeviceMemory::pointer` found to be mapped; an array of bytes may lie anywhere.
        Some(unsafe { from.cast::<[u8; N]>().read() })
    }
}

impl Writable for Mapped {
    #[inline]
    fn store<const N: usize>(&mut self, at: usize, bytes: [u8; N]) -> Option<()> {
        let to = self.place(at, N)?;
        // SAFETY: as in `load`; the range is writable.
        unsafe { to.cast::<[u8; N]>().write(bytes) };
        Some(())
    }
}

impl Memory for DeviceMemory {
    #[inline]
    fn read_access(&self, access: &WarpAccess<'_>, into: &mut Words) -> Option<()> {
        let length = access.span();
        access.read(&Mapped { start: self.pointer(access.lowest(), length)?, length }, into)
    }

    #[inline]
    fn write_access(&self, access: &WarpAccess<'_>, from: &Words) -> Option<()> {
        let length = access.span();
        access.write(&mut Mapped { start: self.pointer(access.lowest(), length)?, length }, from)
    }

    fn has(&self, address: u64, bytes: usize) -> bool {
        self.pointer(address, bytes).is_some()
    }

    #[inline]
    fn read(&self, address: u64, into: &mut [u8]) -> Option<()> {
        let from = self.pointer(address, into.len())?;
        // SAFETY: `pointer` returns only places whose bytes are all inside the mapping that
        // `reserve` made and nothing unmaps, or in a range that the program registered. Raw
        // pointers are used throughout: no reference to these bytes exists in this library.
        unsafe {
            match into.len() {
                // Lengths that are known need no call.
                4 => std::ptr::copy_nonoverlapping(from, into.as_mut_ptr(), 4),
                8 => std::ptr::copy_nonoverlapping(from, into.as_mut_ptr(), 8),
                16 => std::ptr::copy_nonoverlapping(from, into.as_mut_ptr(), 16),
                length => std::ptr::copy_nonoverlapping(from, into.as_mut_ptr(), length),
            }
        };
        Some(())
    }

    #[inline]
    fn write(&self, address: u64, from: &[u8]) -> Option<()> {
        let to = self.pointer(address, from.len())?;
        // SAFETY: as in `read`; the mapping is writable.
        unsafe {
            match from.len() {
                4 => std::ptr::copy_nonoverlapping(from.as_ptr(), to, 4),
                8 => std::ptr::copy_nonoverlapping(from.as_ptr(), to, 8),
                16 => std::ptr::copy_nonoverlapping(from.as_ptr(), to, 16),
                length => std::ptr::copy_nonoverlapping(from.as_ptr(), to, length),
            }
        };
        Some(())
    }
}

/// Begins the program again with addresses that are not random, once. Where the system does not
/// allow that, the program runs as it is.
extern "C" fn settle(_: i32, arguments: *const *const c_char, variables: *const *const c_char) {
    if std::env::var_os(VARIABLE).is_none() {
        return;
    }
    // SAFETY: asks for the present value and changes nothing.
    let now = unsafe { libc::personality(0xffff_ffff) };
    if now < 0 || now & libc::ADDR_NO_RANDOMIZE != 0 {
        return;
    }
    let fixed = (now | libc::ADDR_NO_RANDOMIZE).cast_unsigned();
    // SAFETY: changes where later programs of this process are placed, nothing else.
    if unsafe { libc::personality(fixed.into()) } < 0 {
        return;
    }
    // SAFETY: asks for the value that was set just now.
    let set = unsafe { libc::personality(0xffff_ffff) };
    if set & libc::ADDR_NO_RANDOMIZE != 0 {
        // SAFETY: the loader passes the program's arguments and variables, which end with null
        // pointers; where this fails, the program goes on.
        unsafe { libc::execve(c"/proc/self/exe".as_ptr(), arguments, variables) };
    }
}

/// The loader calls it before `main`, with what it will pass to `main`.
#[used]
#[unsafe(link_section = ".init_array")]
static SETTLE: extern "C" fn(i32, *const *const c_char, *const *const c_char) = settle;
