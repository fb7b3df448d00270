//! Streams and events. All work is done when the program asks for it, so that nothing waits.

use std::ffi::{c_int, c_void};

use crate::copies::per_thread;
use crate::graphs::{NodeKind, in_stream};
use crate::pointers::{get, number, pointer, put};
use crate::state::{alive, code, handle, memory, result, settled, state};

/// A stream that waits for none (`cudaStreamNonBlocking`).
const NON_BLOCKING: u32 = 1;
/// The greatest priority of a stream; the least is 0.
const GREATEST_PRIORITY: c_int = -5;

#[unsafe(no_mangle)]
extern "C" fn cudaStreamCreate(place: *mut *mut c_void) -> u32 {
    cudaStreamCreateWithPriority(place, 0, 0)
}

#[unsafe(no_mangle)]
extern "C" fn cudaStreamCreateWithFlags(place: *mut *mut c_void, flags: u32) -> u32 {
    cudaStreamCreateWithPriority(place, flags, 0)
}

#[unsafe(no_mangle)]
extern "C" fn cudaStreamCreateWithPriority(
    place: *mut *mut c_void,
    flags: u32,
    priority: c_int,
) -> u32 {
    let number = handle();
    let mut state = state();
    if flags == NON_BLOCKING {
        state.apart.insert(number);
    }
    state.priorities.insert(number, priority.clamp(GREATEST_PRIORITY, 0));
    put(place, pointer(number));
    code::SUCCESS
}

macro_rules! nothing {
    ($result:expr => $($name:ident)*) => {$(
        /// Nothing is left to do.
        #[unsafe(no_mangle)]
        extern "C" fn $name() -> u32 {
            $result
        }
    )*};
}

nothing! {
    settled() => cudaStreamSynchronize cudaEventSynchronize cudaDeviceSynchronize
    cudaThreadSynchronize cudaStreamSynchronize_ptsz
}

nothing! {
    alive() => cudaStreamQuery cudaEventQuery cudaInitDevice cudaStreamQuery_ptsz
}

nothing! {
    code::SUCCESS => cudaStreamDestroy cudaStreamAttachMemAsync cudaStreamSetAttribute
    cudaEventDestroy cudaStreamAttachMemAsync_ptsz cudaStreamSetAttribute_ptsz
    cudaDeviceSetMemPool cudaMemPoolSetAttribute cudaMemPoolSetAccess cudaMemPoolDestroy
    cudaMemPoolTrimTo
    cudaProfilerStart cudaProfilerStop cudaDeviceSetCacheConfig cudaFuncSetCacheConfig
    cudaDeviceSetSharedMemConfig cudaFuncSetSharedMemConfig
    cudaSetDeviceFlags cudaCtxResetPersistingL2Cache
}

/// Prints what kernels printed, and forgets that one failed.
#[unsafe(no_mangle)]
extern "C" fn cudaDeviceReset() -> u32 {
    let mut state = state();
    (state.failed, state.last_error) = (code::SUCCESS, code::SUCCESS);
    drop(state);
    memory().flush();
    code::SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cudaThreadExit() -> u32 {
    cudaDeviceReset()
}

/// When an event was recorded, in warp instructions executed before it.
type Moment = u64;

#[unsafe(no_mangle)]
extern "C" fn cudaEventCreate(place: *mut *mut c_void) -> u32 {
    let moment: Box<Moment> = Box::new(0);
    put(place, Box::into_raw(moment).cast());
    code::SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cudaEventCreateWithFlags(place: *mut *mut c_void, _: u32) -> u32 {
    cudaEventCreate(place)
}

#[unsafe(no_mangle)]
extern "C" fn cudaEventRecord(event: *mut c_void, stream: *mut c_void) -> u32 {
    if state().record_captured(number(event), number(stream)) {
        return code::SUCCESS;
    }
    record_event(number(event))
}

/// Records an event now.
pub(crate) fn record_event(event: u64) -> u32 {
    let now = state().answer.instructions;
    put(pointer(event).cast::<Moment>(), now);
    code::SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cudaStreamWaitEvent(stream: *const c_void, event: *const c_void, _: u32) -> u32 {
    match state().wait_captured(number(stream), number(event)) {
        code::SUCCESS => {}
        wrong => return result(wrong),
    }
    alive()
}

#[unsafe(no_mangle)]
extern "C" fn cudaStreamWaitEvent_ptsz(
    stream: *const c_void,
    event: *const c_void,
    flags: u32,
) -> u32 {
    cudaStreamWaitEvent(per_thread(stream), event, flags)
}

#[unsafe(no_mangle)]
extern "C" fn cudaEventRecord_ptsz(event: *mut c_void, stream: *mut c_void) -> u32 {
    cudaEventRecord(event, per_thread(stream).cast_mut())
}

#[unsafe(no_mangle)]
extern "C" fn cudaEventRecordWithFlags_ptsz(
    event: *mut c_void,
    stream: *mut c_void,
    flags: u32,
) -> u32 {
    cudaEventRecordWithFlags(event, per_thread(stream).cast_mut(), flags)
}

#[unsafe(no_mangle)]
extern "C" fn cudaEventRecordWithFlags(event: *mut c_void, stream: *mut c_void, flags: u32) -> u32 {
    if flags & EXTERNAL != 0 {
        let event = number(event);
        return in_stream(stream, NodeKind::RecordEvent, move |_| record_event(event));
    }
    cudaEventRecord(event, stream)
}

/// `cudaEventRecordExternal`: each launch of a graph records the event.
const EXTERNAL: u32 = 1;

/// The time of the program's events is no GPU's: a nanosecond per warp instruction, so that it
/// is the same in every run.
#[unsafe(no_mangle)]
extern "C" fn cudaEventElapsedTime(
    milliseconds: *mut f32,
    from: *mut c_void,
    to: *mut c_void,
) -> u32 {
    let moments = get(from.cast::<Moment>()).zip(get(to.cast::<Moment>()));
    let Some((from, to)) = moments else { return code::INVALID_VALUE };
    let nanoseconds = u32::try_from(to.saturating_sub(from)).unwrap_or(u32::MAX);
    let time = f64::from(nanoseconds.max(1)) * 1e-6;
    #[allow(clippy::cast_possible_truncation, reason = "the program asked for a single")]
    put(milliseconds, time as f32);
    code::SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cudaEventElapsedTime_v2(
    milliseconds: *mut f32,
    from: *mut c_void,
    to: *mut c_void,
) -> u32 {
    cudaEventElapsedTime(milliseconds, from, to)
}

/// A function of the program that a stream calls.
pub(crate) type HostFunction = extern "C" fn(*mut c_void);

#[unsafe(no_mangle)]
extern "C" fn cudaLaunchHostFunc(
    stream: *mut c_void,
    function: Option<HostFunction>,
    data: *mut c_void,
) -> u32 {
    let Some(function) = function else { return code::INVALID_VALUE };
    let data = number(data);
    in_stream(stream, NodeKind::Host, move |_| call_host(function, data))
}

/// Calls a function of the program.
pub(crate) fn call_host(function: HostFunction, data: u64) -> u32 {
    let alive = settled();
    if alive == code::SUCCESS {
        function(pointer(data));
    }
    alive
}

#[unsafe(no_mangle)]
extern "C" fn cudaLaunchHostFunc_ptsz(
    stream: *mut c_void,
    function: Option<HostFunction>,
    data: *mut c_void,
) -> u32 {
    cudaLaunchHostFunc(per_thread(stream).cast_mut(), function, data)
}

/// A callback of a stream.
type Callback = extern "C" fn(*mut c_void, u32, *mut c_void);

#[unsafe(no_mangle)]
extern "C" fn cudaStreamAddCallback(
    stream: *mut c_void,
    function: Option<Callback>,
    data: *mut c_void,
    _: u32,
) -> u32 {
    let Some(function) = function else { return code::INVALID_VALUE };
    if state().is_captured(number(stream)) {
        return result(code::CAPTURE_UNSUPPORTED);
    }
    function(stream, settled(), data);
    code::SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cudaDeviceGetStreamPriorityRange(least: *mut c_int, greatest: *mut c_int) -> u32 {
    put(least, 0);
    put(greatest, GREATEST_PRIORITY);
    code::SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cudaStreamGetPriority(stream: *const c_void, priority: *mut c_int) -> u32 {
    put(priority, state().priorities.get(&number(stream)).copied().unwrap_or(0));
    code::SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cudaStreamGetFlags(stream: *const c_void, flags: *mut u32) -> u32 {
    put(flags, u32::from(number(stream) > 2 && state().apart.contains(&number(stream))));
    code::SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cudaStreamGetId(stream: *const c_void, id: *mut u64) -> u32 {
    put(id, number(stream));
    code::SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cudaStreamGetDevice(_: *const c_void, device: *mut c_int) -> u32 {
    put(device, 0);
    code::SUCCESS
}

twins! {
    cudaStreamGetPriority_ptsz = cudaStreamGetPriority(a: *const c_void, b: *mut c_int);
    cudaStreamGetFlags_ptsz = cudaStreamGetFlags(a: *const c_void, b: *mut u32);
    cudaStreamGetId_ptsz = cudaStreamGetId(a: *const c_void, b: *mut u64);
    cudaStreamGetDevice_ptsz = cudaStreamGetDevice(a: *const c_void, b: *mut c_int);
    cudaStreamAddCallback_ptsz = cudaStreamAddCallback(
        a: *mut c_void, b: Option<Callback>, c: *mut c_void, d: u32
    );
}
