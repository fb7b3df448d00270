//! What of a kernel fits in a CTA and an SM: threads, registers, shared memory.

use std::ffi::{c_int, c_void};

use gpumodel_trace_run::cubin::Function;

use crate::device::{FIRST_WITH_CLUSTERS, USUAL_SHARED};
use crate::launch::MOST_THREADS;
use crate::pointers::{number, put};
use crate::state::{Configuration, State, code, result, state};

/// Registers of a CTA at most (CUDA C++ Programming Guide, technical specifications of all compute
/// capabilities).
const MOST_REGISTERS: u64 = 1 << 16;

impl State {
    /// Registers of a warp of a kernel.
    fn warp_registers(&self, function: &Function) -> u64 {
        let unit = self.request.device.register_unit.max(1);
        (u64::from(function.registers.max(1)) * 32).next_multiple_of(unit.into())
    }

    /// Threads of a CTA of the kernel at most.
    pub(crate) fn most_threads(&self, function: &Function) -> u32 {
        let each = self.warp_registers(function);
        let fits = |warps: &u32| u64::from(*warps) * each <= MOST_REGISTERS;
        let fitting = (1..=MOST_THREADS / 32).rev().find(fits).unwrap_or(1);
        function.most_threads.unwrap_or(MOST_THREADS).min(32 * fitting)
    }

    /// In what portions a CTA gets shared memory.
    fn shared_unit(&self) -> u64 {
        self.request.device.shared_unit_bytes.max(1).into()
    }

    /// Static shared bytes of a CTA without those of the system, which the code of Hopper and
    /// later devices has in front.
    pub(crate) fn static_shared(&self, function: &Function) -> u64 {
        u64::from(function.shared_bytes - self.system_shared(function))
    }

    /// Those of the system.
    pub(crate) fn system_shared(&self, function: &Function) -> u32 {
        let device = &self.request.device;
        let front = if device.sm >= FIRST_WITH_CLUSTERS { device.reserved_shared_bytes } else { 0 };
        u32::try_from(front).unwrap_or(u32::MAX).min(function.shared_bytes)
    }

    /// Dynamic shared bytes of a CTA at most.
    pub(crate) fn most_shared(&self, host: u64, function: &Function) -> u64 {
        let usual = USUAL_SHARED.saturating_sub(self.static_shared(function));
        self.shared_limits.get(&host).copied().unwrap_or(0).max(usual)
    }

    /// CTAs of so many threads that an SM holds.
    fn ctas_per_sm(&self, function: &Function, threads: u64, shared: u64) -> u64 {
        let device = &self.request.device;
        let dynamic = shared.saturating_add(device.reserved_shared_bytes);
        let shared = self.static_shared(function).saturating_add(dynamic).max(1);
        // A warp has its registers in one part of the SM (`cuda_occupancy.h`).
        let partitions = u64::from(device.partitions.max(1));
        let part = u64::from(device.registers_per_sm) / partitions;
        let warps = partitions * (part / self.warp_registers(function));
        let unit = self.shared_unit();
        let fitting = [
            u64::from(device.threads_per_sm) / threads.next_multiple_of(32).max(32),
            warps / threads.div_ceil(32).max(1),
            shared
                .checked_next_multiple_of(unit)
                .map_or(0, |each| device.shared_bytes_per_sm / each),
            device.ctas_per_sm.into(),
        ];
        fitting.into_iter().min().unwrap_or(0)
    }

    /// CTAs of a launch that the device holds.
    pub(crate) fn ctas_at_once(&self, function: &Function, configuration: Configuration) -> u64 {
        let (threads, shared) = (configuration.block.count(), configuration.shared as u64);
        u64::from(self.request.device.sms) * self.ctas_per_sm(function, threads, shared)
    }
}

#[unsafe(no_mangle)]
extern "C" fn cudaOccupancyMaxActiveBlocksPerMultiprocessor(
    count: *mut c_int,
    function: *const c_void,
    block: c_int,
    shared: usize,
) -> u32 {
    match fitting_ctas(number(function), block, shared) {
        Ok(fitting) => {
            put(count, c_int::try_from(fitting).unwrap_or(0));
            code::SUCCESS
        }
        Err(error) => result(error),
    }
}

/// CTAs of so many threads of the kernel `host` that an SM holds, or the error.
fn fitting_ctas(host: u64, block: c_int, shared: usize) -> Result<u64, u32> {
    let mut state = state();
    let function = state.function(host).ok_or(code::INVALID_FUNCTION)?;
    let block = u64::try_from(block).map_err(|_| code::INVALID_VALUE)?;
    Ok(state.ctas_per_sm(&function, block, shared as u64))
}

#[unsafe(no_mangle)]
extern "C" fn cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    count: *mut c_int,
    function: *const c_void,
    block: c_int,
    shared: usize,
    _: u32,
) -> u32 {
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(count, function, block, shared)
}

#[unsafe(no_mangle)]
extern "C" fn cudaOccupancyAvailableDynamicSMemPerBlock(
    bytes: *mut usize,
    function: *const c_void,
    ctas: c_int,
    block: c_int,
) -> u32 {
    match available_shared(number(function), ctas, block) {
        Ok(available) => {
            put(bytes, usize::try_from(available).unwrap_or(0));
            code::SUCCESS
        }
        Err(error) => result(error),
    }
}

/// Dynamic shared bytes of a CTA when an SM holds so many of the kernel `host`, or the error.
fn available_shared(host: u64, ctas: c_int, block: c_int) -> Result<u64, u32> {
    let mut state = state();
    let function = state.function(host).ok_or(code::INVALID_FUNCTION)?;
    let ctas = u64::try_from(ctas).map_err(|_| code::INVALID_VALUE)?;
    let block = u64::try_from(block).map_err(|_| code::INVALID_VALUE)?;
    if ctas == 0 || ctas > state.ctas_per_sm(&function, block, 0) {
        return Err(code::INVALID_VALUE);
    }
    let device = &state.request.device;
    let unit = state.shared_unit();
    let each = device.shared_bytes_per_sm / ctas / unit * unit;
    let taken = device.reserved_shared_bytes + state.static_shared(&function);
    Ok(each.saturating_sub(taken))
}
