//! Device memory: one reserved range of the process, at the same place in every run. So are the
//! program's addresses: the same program gives the same trace where its kernels use memory of the
//! host.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CString, c_char};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};

use gpumodel_trace_run::execute::{Memory, Printed, Readable, WarpAccess, Words, Writable};
use gpumodel_trace_run::request::VARIABLE;

/// Where device memory begins.
const BASE: u64 = 0x2000_0000_0000;
/// Bytes that are reserved; the system gives pages when they are used.
const SIZE: u64 = 1 << 37;
/// Allocations begin at a multiple of this.
const ALIGN: u64 = 512;
/// Allocations of kernels do at a multiple of this.
const KERNEL_ALIGN: u64 = 16;
/// Bytes that kernels may allocate, where the program does not say (CUDA C++ Programming Guide,
/// dynamic global memory allocation).
const USUAL_HEAP: u64 = 8 << 20;

/// Bytes of what kernels printed that are kept, where the program does not say (the same, formatted
/// output).
const USUAL_PRINTED: usize = 1 << 20;

/// The range.
#[derive(Debug)]
pub(crate) struct DeviceMemory {
    base: u64,
    size: u64,
    /// What kernels may access, without a lock where possible.
    runs: Runs,
    blocks: Mutex<Blocks>,
    /// Allocations of graphs, which stay when the program frees them.
    kept: Mutex<BTreeSet<u64>>,
    /// Memory of the program that kernels may use.
    registered: RwLock<BTreeMap<u64, u64>>,
    /// Bytes that kernels may allocate.
    heap_bytes: AtomicU64,
    /// What kernels allocated: made when the first one does.
    heap: Mutex<Option<Blocks>>,
    /// What kernels printed and the program has not: as on cards, the newest bytes, while older
    /// ones are lost. Cards count values that are not text yet; here text is counted.
    printed: Mutex<Vec<u8>>,
    /// How many.
    printed_bytes: AtomicUsize,
}

/// What memory is to the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Device,
    Managed,
    /// Of the host, and kernels may use it.
    Host,
}

/// Runs of allocations that are known without a lock.
const KNOWN_RUNS: usize = 8;

/// The longest runs of allocations that follow each other: the first and the last address of
/// each. While another thread of the program allocates, the ends of two runs may be seen
/// together; all addresses between them lie in the range all the same.
#[derive(Debug, Default)]
struct Runs([[AtomicU64; 2]; KNOWN_RUNS]);

impl Runs {
    /// Whether one has all addresses from `address` to `end`.
    #[inline]
    fn have(&self, address: u64, end: u64) -> bool {
        self.0.iter().any(|[first, last]| {
            first.load(Ordering::Relaxed) <= address && end <= last.load(Ordering::Relaxed)
        })
    }

    /// Takes the longest ones of `blocks`.
    fn update(&self, blocks: &Blocks) {
        let mut all = blocks.runs();
        all.sort_by_key(|[first, last]| first.abs_diff(*last));
        for run in &self.0 {
            let ends = all.pop().unwrap_or_default();
            run.iter().zip(ends).for_each(|(place, end)| place.store(end, Ordering::Relaxed));
        }
    }
}

/// A range of addresses with allocations in it.
#[derive(Debug, Default)]
struct Blocks {
    /// By address: bytes, and what they are.
    used: BTreeMap<u64, (u64, Kind)>,
    /// Bytes of device memory in use.
    of_device: u64,
    free: BTreeMap<u64, u64>,
    /// The first address, the end of what was ever allocated, and of the range.
    start: u64,
    top: u64,
    end: u64,
}

impl Blocks {
    /// The range from `start` to `end`.
    fn new(start: u64, end: u64) -> Self {
        Self { start, top: start, end, ..Self::default() }
    }

    /// Runs of allocations that follow each other: what is between free ranges.
    fn runs(&self) -> Vec<[u64; 2]> {
        let mut first = self.start;
        let mut all = Vec::new();
        for (&at, &size) in self.free.iter().chain([(&self.top, &0)]) {
            if at > first {
                all.push([first, at]);
            }
            first = at + size;
        }
        all
    }

    /// Whether all addresses from `address` to `end` are allocated.
    fn have(&self, address: u64, end: u64) -> bool {
        let free = self.free.range(..end).next_back();
        let free = free.is_some_and(|(at, size)| at + size > address);
        address >= self.start && end <= self.top && !free
    }

    /// The allocation that is nearest to `address`: its first address and its bytes.
    fn nearest(&self, address: u64) -> Option<(u64, u64)> {
        let before = self.used.range(..=address).next_back();
        let after = self.used.range(address..).next();
        let place = |(&at, &(bytes, _)): (&u64, &(u64, Kind))| (at, bytes);
        let distance = |&(at, bytes): &(u64, u64)| match at > address {
            true => at - address,
            false => address.saturating_sub(at + bytes),
        };
        before.into_iter().chain(after).map(place).min_by_key(distance)
    }

    /// Allocates, the lowest place first.
    fn allocate(&mut self, bytes: u64, align: u64, kind: Kind) -> Option<u64> {
        let bytes = bytes.max(1).checked_next_multiple_of(align)?;
        let fitting = self.free.iter().find(|&(_, &size)| size >= bytes);
        let at = match fitting.map(|(&at, &size)| (at, size)) {
            Some((at, size)) => {
                self.free.remove(&at);
                if size > bytes {
                    self.free.insert(at + bytes, size - bytes);
                }
                at
            }
            None => {
                let at = self.top;
                self.top = at.checked_add(bytes).filter(|&end| end <= self.end)?;
                at
            }
        };
        self.of_device += if kind == Kind::Device { bytes } else { 0 };
        self.used.insert(at, (bytes, kind));
        Some(at)
    }

    /// Frees what was allocated at `at`; false when nothing was.
    fn free(&mut self, mut at: u64) -> bool {
        let Some((mut size, kind)) = self.used.remove(&at) else { return false };
        self.of_device -= if kind == Kind::Device { size } else { 0 };
        if let Some(after) = self.free.remove(&(at + size)) {
            size += after;
        }
        let before = self.free.range(..at).next_back().map(|(&start, &length)| (start, length));
        if let Some((start, length)) = before
            && start + length == at
        {
            self.free.remove(&start);
            (at, size) = (start, size + length);
        }
        self.free.insert(at, size);
        true
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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
                    runs: Runs::default(),
                    blocks: Mutex::new(Blocks::new(BASE + ALIGN, BASE + size)),
                    kept: Mutex::default(),
                    registered: RwLock::default(),
                    heap_bytes: AtomicU64::new(USUAL_HEAP),
                    heap: Mutex::default(),
                    printed: Mutex::default(),
                    printed_bytes: AtomicUsize::new(USUAL_PRINTED),
                });
            }
            size /= 2;
        }
        Err("the system gives no range of addresses for device memory; raise `ulimit -v`".into())
    }

    /// Bytes of device memory in use.
    pub(crate) fn used(&self) -> u64 {
        locked(&self.blocks).of_device
    }

    /// Allocates device memory, the lowest place first.
    pub(crate) fn allocate(&self, bytes: u64) -> Option<u64> {
        self.allocate_as(Kind::Device, bytes)
    }

    /// Allocates memory of that kind.
    pub(crate) fn allocate_as(&self, kind: Kind, bytes: u64) -> Option<u64> {
        let mut blocks = locked(&self.blocks);
        let at = blocks.allocate(bytes, ALIGN, kind)?;
        self.runs.update(&blocks);
        Some(at)
    }

    /// Lets what was allocated at `at` stay until [`DeviceMemory::drop_kept`]: a graph needs it at
    /// each launch.
    pub(crate) fn keep(&self, at: u64) {
        locked(&self.kept).insert(at);
    }

    /// Whether that is so.
    pub(crate) fn is_kept(&self, at: u64) -> bool {
        locked(&self.kept).contains(&at)
    }

    /// Ends that, and frees it.
    pub(crate) fn drop_kept(&self, at: u64) {
        if locked(&self.kept).remove(&at) {
            self.free(at);
        }
    }

    /// Frees what was allocated at `at`, unless it is kept; false when nothing was.
    pub(crate) fn free(&self, at: u64) -> bool {
        if self.is_kept(at) {
            return true;
        }
        let mut blocks = locked(&self.blocks);
        let freed = blocks.free(at);
        self.runs.update(&blocks);
        freed
    }

    /// Bytes that kernels may allocate.
    pub(crate) fn heap_bytes(&self) -> u64 {
        self.heap_bytes.load(Ordering::Relaxed)
    }

    /// Changes that, unless a kernel has allocated already.
    pub(crate) fn set_heap_bytes(&self, bytes: u64) -> bool {
        let unused = locked(&self.heap).is_none();
        if unused {
            self.heap_bytes.store(bytes, Ordering::Relaxed);
        }
        unused
    }

    /// Bytes of what kernels printed that are kept.
    pub(crate) fn printed_bytes(&self) -> usize {
        self.printed_bytes.load(Ordering::Relaxed)
    }

    /// Changes that.
    pub(crate) fn set_printed_bytes(&self, bytes: usize) {
        self.printed_bytes.store(bytes, Ordering::Relaxed);
    }

    /// Gives the program's standard output what kernels printed.
    pub(crate) fn flush(&self) {
        let all = std::mem::take(&mut *locked(&self.printed));
        let printed = &all[all.len().saturating_sub(self.printed_bytes())..];
        if !printed.is_empty() {
            // SAFETY: `stdout` is the C library's, and the place and the length are those of a
            // vector.
            unsafe { libc::fwrite(printed.as_ptr().cast(), 1, printed.len(), stdout) };
        }
    }

    /// What is at `address`; none where that is the program's own memory.
    pub(crate) fn kind(&self, address: u64) -> Option<Kind> {
        if !(self.base..self.base + self.size).contains(&address) {
            let all = self.registered.read().unwrap_or_else(PoisonError::into_inner);
            let (&start, &length) = all.range(..=address).next_back()?;
            return (address - start < length).then_some(Kind::Host);
        }
        let blocks = locked(&self.blocks);
        let (&start, &(length, kind)) = blocks.used.range(..=address).next_back()?;
        Some(if address - start < length { kind } else { Kind::Device })
    }

    /// Whether a copy to `address` is one to the device.
    pub(crate) fn is_of_device(&self, address: u64) -> bool {
        matches!(self.kind(address), Some(Kind::Device | Kind::Managed))
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

    /// Whether that is memory of the program that it registered, or of a run that is not known.
    #[cold]
    fn has_further(&self, address: u64, end: u64) -> bool {
        if (self.base..self.base + self.size).contains(&address) {
            return locked(&self.blocks).have(address, end);
        }
        let all = self.registered.read().unwrap_or_else(PoisonError::into_inner);
        let before = all.range(..=address).next_back();
        before.is_some_and(|(start, length)| end <= start.saturating_add(*length))
    }

    /// The place of `bytes` bytes, all of which are allocated or registered.
    #[inline]
    fn pointer(&self, address: u64, bytes: usize) -> Option<*mut u8> {
        let end = address.checked_add(bytes as u64)?;
        (self.runs.have(address, end) || self.has_further(address, end)).then_some(())?;
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

    fn print(&self, printed: &[Printed]) {
        let (mut all, most) = (locked(&self.printed), self.printed_bytes());
        for part in printed {
            all.extend(formatted(part));
            // Not at every part: moving bytes costs.
            let lost = all.len().saturating_sub(most);
            if lost > most.max(USUAL_PRINTED) {
                all.drain(..lost);
            }
        }
    }

    fn allocate_in_kernel(&self, bytes: u64) -> Option<u64> {
        let mut heap = locked(&self.heap);
        if heap.is_none() {
            let size = self.heap_bytes();
            let at = self.allocate(size)?;
            *heap = Some(Blocks::new(at, at + size));
        }
        heap.as_mut()?.allocate(bytes, KERNEL_ALIGN, Kind::Device)
    }

    fn free_in_kernel(&self, address: u64) -> bool {
        locked(&self.heap).as_mut().is_some_and(|heap| heap.free(address))
    }

    fn nearest(&self, address: u64) -> Option<(u64, u64)> {
        locked(&self.blocks).nearest(address)
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

unsafe extern "C" {
    /// Where the C library's `printf` writes.
    static stdout: *mut libc::FILE;
}

/// What the C library makes of a specification and its value.
fn formatted(part: &Printed) -> Vec<u8> {
    let (spec, text) = match part {
        Printed::Text(text) => return text.clone(),
        Printed::String(spec, text) => (spec, text.as_slice()),
        Printed::Int(spec, _) | Printed::Long(spec, _) | Printed::Double(spec, _) => {
            (spec, &[][..])
        }
    };
    let (Ok(spec), Ok(text)) = (CString::new(spec.as_str()), CString::new(text)) else {
        return Vec::new();
    };
    let (spec, text) = (spec.as_ptr(), text.as_ptr());
    let write = |to: &mut [u8]| {
        let (to, size) = (to.as_mut_ptr().cast::<c_char>(), to.len());
        // SAFETY: `to` has `size` bytes; the specification has one conversion, without `*`. The
        // executor gives it no size but `ll` where it passes a `long long`, and `h` or `hh` where
        // it passes an `int`, so that it reads a value of the type that is passed.
        unsafe {
            match part {
                Printed::Int(_, value) => libc::snprintf(to, size, spec, *value),
                Printed::Long(_, value) => libc::snprintf(to, size, spec, *value),
                Printed::Double(_, value) => libc::snprintf(to, size, spec, *value),
                Printed::Text(_) | Printed::String(..) => libc::snprintf(to, size, spec, text),
            }
        }
    };
    let mut bytes = vec![0; 1 + usize::try_from(write(&mut [])).unwrap_or(0)];
    write(&mut bytes);
    bytes.pop();
    bytes
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
