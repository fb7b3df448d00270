//! The device: its properties are those of the machine that the user chose.

use std::ffi::{CStr, c_char, c_int, c_void};

use gpumodel_trace_run::request::Device;

use crate::pointers::{fill, put, put_at, text};
use crate::state::{code, memory, result, state};

#[unsafe(no_mangle)]
extern "C" fn cudaGetDeviceCount(count: *mut c_int) -> u32 {
    put(count, 1);
    code::SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cudaGetDevice(device: *mut c_int) -> u32 {
    put(device, 0);
    code::SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cudaSetDevice(device: c_int) -> u32 {
    result(if device == 0 { code::SUCCESS } else { code::INVALID_DEVICE })
}

#[unsafe(no_mangle)]
extern "C" fn cudaChooseDevice(device: *mut c_int, _: *const c_void) -> u32 {
    put(device, 0);
    code::SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cudaGetDeviceFlags(flags: *mut u32) -> u32 {
    put(flags, 0);
    code::SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cudaDeviceCanAccessPeer(can: *mut c_int, _: c_int, _: c_int) -> u32 {
    put(can, 0);
    code::SUCCESS
}

/// There is one device, and no other can be reached from it.
#[unsafe(no_mangle)]
extern "C" fn cudaDeviceEnablePeerAccess(_: c_int, _: u32) -> u32 {
    result(code::INVALID_DEVICE)
}

#[unsafe(no_mangle)]
extern "C" fn cudaDeviceDisablePeerAccess(_: c_int) -> u32 {
    result(code::PEER_NOT_ENABLED)
}

/// Domain, bus and device of the one device.
const BUS_PLACE: &CStr = c"0000:01:00.0";
const BUS: u32 = 1;

#[unsafe(no_mangle)]
extern "C" fn cudaDeviceGetPCIBusId(to: *mut c_char, length: c_int, device: c_int) -> u32 {
    if device != 0 {
        return result(code::INVALID_DEVICE);
    }
    let text = BUS_PLACE.to_bytes_with_nul();
    if !usize::try_from(length).is_ok_and(|length| length >= text.len()) {
        return result(code::INVALID_VALUE);
    }
    for (index, byte) in text.iter().enumerate() {
        put_at(to.cast(), index, *byte);
    }
    code::SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cudaDeviceGetByPCIBusId(device: *mut c_int, place: *const c_char) -> u32 {
    let known = text(place).eq_ignore_ascii_case(&BUS_PLACE.to_string_lossy());
    if !known {
        return result(code::INVALID_DEVICE);
    }
    put(device, 0);
    code::SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cudaDriverGetVersion(version: *mut c_int) -> u32 {
    put(version, 13_000);
    code::SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cudaRuntimeGetVersion(version: *mut c_int) -> u32 {
    put(version, 13_000);
    code::SUCCESS
}

/// The limits of a thread's stack, of what kernels print and allocate, as `cudaLimit`.
const LIMIT_STACK: u32 = 0;
const LIMIT_PRINTED: u32 = 1;
const LIMIT_HEAP: u32 = 2;

#[unsafe(no_mangle)]
extern "C" fn cudaDeviceSetLimit(limit: u32, value: usize) -> u32 {
    match limit {
        LIMIT_STACK => {
            state().stack_bytes = u32::try_from(value).unwrap_or(1024).min(1 << 20);
            code::SUCCESS
        }
        LIMIT_PRINTED => {
            memory().set_printed_bytes(value);
            code::SUCCESS
        }
        LIMIT_HEAP if !memory().set_heap_bytes(value as u64) => result(code::INVALID_VALUE),
        _ => code::SUCCESS,
    }
}

#[unsafe(no_mangle)]
extern "C" fn cudaDeviceGetLimit(value: *mut usize, limit: u32) -> u32 {
    let bytes = match limit {
        LIMIT_STACK => state().stack_bytes.into(),
        LIMIT_PRINTED => memory().printed_bytes() as u64,
        LIMIT_HEAP => memory().heap_bytes(),
        _ => 8 << 20,
    };
    put(value, usize::try_from(bytes).unwrap_or(0));
    code::SUCCESS
}

/// Shared bytes that a CTA may have without asking for more.
pub(crate) const USUAL_SHARED: u64 = 48 << 10;

/// Shared bytes that a CTA may have when it asks for more.
pub(crate) fn most_shared(device: &Device) -> u64 {
    device.shared_bytes_per_sm.saturating_sub(device.reserved_shared_bytes)
}

/// Where the fields of `cudaDeviceProp` that differ between versions lie, as the compiler lays
/// out the declaration in `driver_types.h`.
struct Layout {
    size: usize,
    sms: usize,
    /// Kernels at once, copy engines, one address space, caching in L1.
    yes: [usize; 4],
    copy_engines: usize,
    bus_bits: usize,
    l2_bytes: usize,
    threads: usize,
    shared: usize,
    /// Registers of an SM, then whether memory can be managed.
    registers: usize,
    /// Managed memory at the same time, cooperative launches, mapped memory.
    also: [usize; 3],
    shared_by_request: usize,
    ctas: usize,
    /// The width of textures of one dimension, and all other sizes of textures and surfaces.
    texture: usize,
    textures: usize,
    surface_alignment: usize,
    bus: usize,
    /// Priorities of streams, preemption, registered memory of the host, pools of memory.
    further: [usize; 4],
    reserved_shared: usize,
    clusters: usize,
}

const VERSION_12: Layout = Layout {
    size: 1032,
    sms: 388,
    yes: [576, 604, 632, 628],
    copy_engines: 600,
    bus_bits: 612,
    l2_bytes: 616,
    threads: 624,
    shared: 640,
    registers: 648,
    also: [676, 688, 400],
    shared_by_request: 696,
    ctas: 712,
    texture: 408,
    textures: 420,
    surface_alignment: 568,
    bus: 584,
    further: [628, 680, 728, 744],
    reserved_shared: 720,
    clusters: 772,
};

const VERSION_13: Layout = Layout {
    size: 1008,
    sms: 384,
    yes: [560, 588, 612, 608],
    copy_engines: 584,
    bus_bits: 592,
    l2_bytes: 596,
    threads: 604,
    shared: 624,
    registers: 632,
    also: [656, 668, 392],
    shared_by_request: 672,
    ctas: 688,
    texture: 396,
    textures: 404,
    surface_alignment: 552,
    bus: 568,
    further: [608, 660, 704, 720],
    reserved_shared: 696,
    clusters: 748,
};

/// Alignment of textures, of their rows, and of surfaces, in bytes.
const TEXTURE_ALIGNMENT: u32 = 512;
const TEXTURE_PITCH_ALIGNMENT: u32 = 32;

/// The largest textures and surfaces (CUDA C++ Programming Guide, technical specifications per
/// compute capability, from 7.5 on), in the order of `cudaDeviceProp` after the first.
const TEXTURE_WIDTH: u32 = 131_072;
#[rustfmt::skip]
const TEXTURES: [u32; 37] = [
    // Two dimensions: arrays, with levels, linear memory, gathered.
    131_072, 65_536, 32_768, 32_768, 131_072, 65_000, 2_097_120, 32_768, 32_768,
    // Three dimensions, two shapes; cubes; layers of one and two dimensions and of cubes.
    16_384, 16_384, 16_384, 8_192, 8_192, 32_768, 32_768,
    32_768, 2_048, 32_768, 32_768, 2_048, 32_768, 2_046,
    // The same of surfaces, from one dimension on.
    32_768, 131_072, 65_536, 16_384, 16_384, 16_384,
    32_768, 2_048, 32_768, 32_768, 2_048, 32_768, 32_768, 2_046,
];
/// The attributes of these sizes, in the same order.
const TEXTURE_ATTRIBUTES: [u32; 37] = [
    22, 23, 73, 74, 70, 71, 72, 45, 46, 24, 25, 26, 47, 48, 49, 52, 42, 43, 27, 28, 29, 53, 54, 55,
    56, 57, 58, 59, 60, 61, 62, 63, 64, 65, 66, 67, 68,
];

/// The size that an attribute asks for.
fn texture_size(attribute: u32) -> u32 {
    let at = TEXTURE_ATTRIBUTES.iter().position(|one| *one == attribute);
    at.map_or(0, |at| TEXTURES[at])
}

/// Copies that run at once.
const COPY_ENGINES: u32 = 2;
/// The first device with clusters.
pub(crate) const FIRST_WITH_CLUSTERS: u32 = 90;

/// Fills the properties of `cudaDeviceProp`, which lie as `layout` says.
fn properties(to: *mut c_void, device: &Device, layout: &Layout) -> u32 {
    if to.is_null() {
        return result(code::INVALID_VALUE);
    }
    fill(to, 0, layout.size);
    for (index, byte) in device.name.bytes().take(255).enumerate() {
        put_at(to, index, byte);
    }
    put_at(to, 288, device.memory_bytes);
    put_at(to, 296, USUAL_SHARED);
    put_at(to, 304, device.registers_per_sm);
    put_at(to, 308, 32_u32);
    put_at(to, 312, u64::from(u32::MAX >> 1));
    put_at(to, 320, 1024_u32);
    put_at(to, 324, [1024_u32, 1024, 64]);
    put_at(to, 336, [u32::MAX >> 1, 65535, 65535]);
    put_at(to, 352, 65536_u64);
    put_at(to, 360, [device.sm / 10, device.sm % 10]);
    put_at(to, layout.sms, device.sms);
    layout.yes.into_iter().chain(layout.also).for_each(|field| put_at(to, field, 1_u32));
    put_at(to, layout.copy_engines, COPY_ENGINES);
    put_at(to, layout.bus_bits, device.bus_bits);
    put_at(to, layout.l2_bytes, u32::try_from(device.l2_bytes).unwrap_or(u32::MAX));
    put_at(to, layout.threads, device.threads_per_sm);
    put_at(to, layout.shared, device.shared_bytes_per_sm);
    put_at(to, layout.registers, [device.registers_per_sm, 1]);
    put_at(to, layout.shared_by_request, most_shared(device));
    put_at(to, layout.ctas, device.ctas_per_sm);
    put_at(to, 368, u64::from(TEXTURE_ALIGNMENT));
    put_at(to, 376, u64::from(TEXTURE_PITCH_ALIGNMENT));
    put_at(to, layout.texture, TEXTURE_WIDTH);
    put_at(to, layout.textures, TEXTURES);
    put_at(to, layout.surface_alignment, u64::from(TEXTURE_ALIGNMENT));
    put_at(to, layout.bus, BUS);
    layout.further.into_iter().for_each(|field| put_at(to, field, 1_u32));
    put_at(to, layout.reserved_shared, device.reserved_shared_bytes);
    put_at(to, layout.clusters, u32::from(device.sm >= FIRST_WITH_CLUSTERS));
    code::SUCCESS
}

/// Of version 13.
#[unsafe(no_mangle)]
extern "C" fn cudaGetDeviceProperties(to: *mut c_void, number: c_int) -> u32 {
    if number != 0 {
        return result(code::INVALID_DEVICE);
    }
    let device = state().request.device.clone();
    properties(to, &device, &VERSION_13)
}

/// Of version 12.
#[unsafe(no_mangle)]
extern "C" fn cudaGetDeviceProperties_v2(to: *mut c_void, number: c_int) -> u32 {
    if number != 0 {
        return result(code::INVALID_DEVICE);
    }
    let device = state().request.device.clone();
    let value = properties(to, &device, &VERSION_12);
    if value == code::SUCCESS {
        // Version 13 has no clocks.
        put_at(to, 348, device.clock_khz);
        put_at(to, 608, device.memory_clock_khz);
    }
    value
}

#[unsafe(no_mangle)]
extern "C" fn cudaDeviceGetAttribute(value: *mut c_int, attribute: u32, number: c_int) -> u32 {
    if number != 0 {
        return result(code::INVALID_DEVICE);
    }
    let device = state().request.device.clone();
    let small = |size: u64| u32::try_from(size).unwrap_or(u32::MAX >> 1);
    let found = match attribute {
        1..=3 => 1024,
        4 => 64,
        5 => u32::MAX >> 1,
        6 | 7 => 65535,
        8 => small(USUAL_SHARED),
        9 => 65536,
        10 => 32,
        12 | 82 => device.registers_per_sm,
        13 => device.clock_khz,
        16 => device.sms,
        11 => u32::MAX >> 1,
        14 | 30 => TEXTURE_ALIGNMENT,
        51 => TEXTURE_PITCH_ALIGNMENT,
        21 => TEXTURE_WIDTH,
        22..=29 | 42 | 43 | 45..=49 | 52..=68 | 70..=74 => texture_size(attribute),
        31 | 41 | 83 | 89 | 95 | 15 | 19 | 78..=80 | 90 | 99 | 115 => 1,
        33 => BUS,
        40 => COPY_ENGINES,
        36 => device.memory_clock_khz,
        37 => device.bus_bits,
        38 => small(device.l2_bytes),
        39 => device.threads_per_sm,
        75 => device.sm / 10,
        76 => device.sm % 10,
        81 => small(device.shared_bytes_per_sm),
        97 => small(most_shared(&device)),
        106 => device.ctas_per_sm,
        111 => small(device.reserved_shared_bytes),
        120 => u32::from(device.sm >= FIRST_WITH_CLUSTERS),
        _ => 0,
    };
    put(value, found.cast_signed());
    code::SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cudaGetLastError() -> u32 {
    let mut state = state();
    // The error of a kernel stays.
    let after = if state.last_error == state.failed { state.failed } else { code::SUCCESS };
    std::mem::replace(&mut state.last_error, after)
}

#[unsafe(no_mangle)]
extern "C" fn cudaPeekAtLastError() -> u32 {
    state().last_error
}

/// Names and descriptions of the errors that programs meet, as `driver_types.h` numbers them.
const ERRORS: &[(u32, &CStr, &CStr)] = &[
    (0, c"cudaSuccess", c"no error"),
    (1, c"cudaErrorInvalidValue", c"invalid argument"),
    (2, c"cudaErrorMemoryAllocation", c"out of memory"),
    (3, c"cudaErrorInitializationError", c"initialization error"),
    (4, c"cudaErrorCudartUnloading", c"driver shutting down"),
    (9, c"cudaErrorInvalidConfiguration", c"invalid configuration argument"),
    (12, c"cudaErrorInvalidPitchValue", c"invalid pitch argument"),
    (13, c"cudaErrorInvalidSymbol", c"invalid device symbol"),
    (17, c"cudaErrorInvalidDevicePointer", c"invalid device pointer"),
    (18, c"cudaErrorInvalidTexture", c"invalid texture reference"),
    (20, c"cudaErrorInvalidChannelDescriptor", c"invalid channel descriptor"),
    (21, c"cudaErrorInvalidMemcpyDirection", c"invalid copy direction for memcpy"),
    (
        35,
        c"cudaErrorInsufficientDriver",
        c"CUDA driver version is insufficient for CUDA runtime version",
    ),
    (46, c"cudaErrorDevicesUnavailable", c"CUDA-capable device(s) is/are busy or unavailable"),
    (52, c"cudaErrorMissingConfiguration", c"__global__ function call is not configured"),
    (98, c"cudaErrorInvalidDeviceFunction", c"invalid device function"),
    (100, c"cudaErrorNoDevice", c"no CUDA-capable device is detected"),
    (101, c"cudaErrorInvalidDevice", c"invalid device ordinal"),
    (200, c"cudaErrorInvalidKernelImage", c"device kernel image is invalid"),
    (201, c"cudaErrorDeviceUninitialized", c"invalid device context"),
    (
        209,
        c"cudaErrorNoKernelImageForDevice",
        c"no kernel image is available for execution on the device",
    ),
    (214, c"cudaErrorECCUncorrectable", c"uncorrectable ECC error encountered"),
    (215, c"cudaErrorUnsupportedLimit", c"limit is not supported on this architecture"),
    (
        217,
        c"cudaErrorPeerAccessUnsupported",
        c"peer access is not supported between these two devices",
    ),
    (218, c"cudaErrorInvalidPtx", c"a PTX JIT compilation failed"),
    (300, c"cudaErrorInvalidSource", c"device kernel image is invalid"),
    (301, c"cudaErrorFileNotFound", c"file not found"),
    (304, c"cudaErrorOperatingSystem", c"OS call failed or operation not supported on this OS"),
    (400, c"cudaErrorInvalidResourceHandle", c"invalid resource handle"),
    (401, c"cudaErrorIllegalState", c"the operation cannot be performed in the present state"),
    (500, c"cudaErrorSymbolNotFound", c"named symbol not found"),
    (600, c"cudaErrorNotReady", c"device not ready"),
    (700, c"cudaErrorIllegalAddress", c"an illegal memory access was encountered"),
    (701, c"cudaErrorLaunchOutOfResources", c"too many resources requested for launch"),
    (702, c"cudaErrorLaunchTimeout", c"the launch timed out and was terminated"),
    (704, c"cudaErrorPeerAccessAlreadyEnabled", c"peer access is already enabled"),
    (705, c"cudaErrorPeerAccessNotEnabled", c"peer access has not been enabled"),
    (709, c"cudaErrorContextIsDestroyed", c"context is destroyed"),
    (710, c"cudaErrorAssert", c"device-side assert triggered"),
    (
        712,
        c"cudaErrorHostMemoryAlreadyRegistered",
        c"part or all of the requested memory range is already mapped",
    ),
    (
        713,
        c"cudaErrorHostMemoryNotRegistered",
        c"pointer does not correspond to a registered memory region",
    ),
    (714, c"cudaErrorHardwareStackError", c"hardware stack error"),
    (715, c"cudaErrorIllegalInstruction", c"an illegal instruction was encountered"),
    (716, c"cudaErrorMisalignedAddress", c"misaligned address"),
    (
        717,
        c"cudaErrorInvalidAddressSpace",
        c"operation not supported on global/shared address space",
    ),
    (718, c"cudaErrorInvalidPc", c"invalid program counter"),
    (719, c"cudaErrorLaunchFailure", c"unspecified launch failure"),
    (720, c"cudaErrorCooperativeLaunchTooLarge", c"too many blocks in cooperative launch"),
    (800, c"cudaErrorNotPermitted", c"operation not permitted"),
    (801, c"cudaErrorNotSupported", c"operation not supported"),
    (
        900,
        c"cudaErrorStreamCaptureUnsupported",
        c"operation not permitted when stream is capturing",
    ),
    (
        901,
        c"cudaErrorStreamCaptureInvalidated",
        c"operation failed due to a previous error during capture",
    ),
    (903, c"cudaErrorStreamCaptureUnmatched", c"capture was not initiated in this stream"),
    (904, c"cudaErrorStreamCaptureUnjoined", c"capturing stream has unjoined work"),
    (
        910,
        c"cudaErrorGraphExecUpdateFailure",
        c"the graph update was not performed because it included changes which violated \
          constraints specific to instantiated graph update",
    ),
    (912, c"cudaErrorInvalidClusterSize", c"cluster misconfiguration"),
    (999, c"cudaErrorUnknown", c"unknown error"),
];

/// Name and description of an error.
fn describe(error: u32) -> [&'static CStr; 2] {
    let found = ERRORS.iter().find(|(number, ..)| *number == error);
    found.map_or([c"unrecognized error code"; 2], |(_, name, text)| [*name, *text])
}

#[unsafe(no_mangle)]
extern "C" fn cudaGetErrorName(error: u32) -> *const c_char {
    describe(error)[0].as_ptr()
}

#[unsafe(no_mangle)]
extern "C" fn cudaGetErrorString(error: u32) -> *const c_char {
    describe(error)[1].as_ptr()
}
