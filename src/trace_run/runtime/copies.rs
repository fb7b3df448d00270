//! Memory: allocations, copies and fills.

use std::ffi::{c_int, c_void};

use gpumodel_core::memory_copy::{CopyDirection, MemoryCopy};

use crate::graphs::{NodeKind, in_stream};
use crate::memory::Kind;
use crate::pointers::{copy, fill, get, number, pointer, put, put_at};
use crate::state::{alive, code, memory, result, settled, state};
use crate::textures::make_array;

/// Rows of pitched memory and of arrays begin at a multiple of so many bytes.
pub(crate) const PITCH: usize = 512;

/// Allocates device memory, of which there is as much as the device has.
pub(crate) fn allocate(place: *mut *mut c_void, bytes: usize) -> u32 {
    let most = state().request.device.memory_bytes;
    let all = memory().used().saturating_add(bytes as u64);
    if most > 0 && all > most {
        result(code::OUT_OF_MEMORY)
    } else {
        of_kind(Kind::Device, place, bytes)
    }
}

/// Allocates memory of that kind.
fn of_kind(kind: Kind, place: *mut *mut c_void, bytes: usize) -> u32 {
    // The state first: it says what to do when there is no request.
    let alive = alive();
    if alive != code::SUCCESS {
        return alive;
    }
    match memory().allocate_as(kind, bytes as u64) {
        Some(at) if put(place, pointer(at)) => code::SUCCESS,
        Some(_) => result(code::INVALID_VALUE),
        None => result(code::OUT_OF_MEMORY),
    }
}

fn release(place: *mut c_void) -> u32 {
    let alive = alive();
    if alive != code::SUCCESS {
        return alive;
    }
    let ok = place.is_null() || memory().free(number(place));
    result(if ok { code::SUCCESS } else { code::INVALID_VALUE })
}

macro_rules! allocations {
    ($($name:ident($($more:ty),*) = $allocate:expr;)*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $name(place: *mut *mut c_void, bytes: usize $(, _: $more)*) -> u32 {
            $allocate(place, bytes)
        }
    )*};
}

/// The host's memory has no limit here but that of addresses, and managed memory lies there too.
fn managed(place: *mut *mut c_void, bytes: usize) -> u32 {
    of_kind(Kind::Managed, place, bytes)
}

fn of_host(place: *mut *mut c_void, bytes: usize) -> u32 {
    of_kind(Kind::Host, place, bytes)
}

allocations! {
    cudaMalloc() = allocate;
    cudaMallocManaged(u32) = managed;
    cudaMallocHost() = of_host;
    cudaHostAlloc(u32) = of_host;
}

macro_rules! releases {
    ($($name:ident($($more:ty),*);)*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $name(place: *mut c_void $(, _: $more)*) -> u32 {
            release(place)
        }
    )*};
}

releases! {
    cudaFree();
    cudaFreeHost();
}

/// What a graph allocates it needs at the same place at each launch, so that it stays.
#[unsafe(no_mangle)]
extern "C" fn cudaMallocAsync(place: *mut *mut c_void, bytes: usize, stream: *const c_void) -> u32 {
    let done = allocate(place, bytes);
    let captured = done == code::SUCCESS && state().is_captured(number(stream));
    match get(place) {
        Some(at) if captured => {
            memory().keep(number(at));
            in_stream(stream, NodeKind::Allocate, |_| code::SUCCESS)
        }
        _ => done,
    }
}

/// Memory that a graph allocates and frees: the last one with this node frees it.
struct Temporary(u64);

impl Drop for Temporary {
    fn drop(&mut self) {
        memory().drop_kept(self.0);
    }
}

#[unsafe(no_mangle)]
extern "C" fn cudaFreeAsync(place: *mut c_void, stream: *const c_void) -> u32 {
    if state().is_captured(number(stream)) {
        let temporary = Temporary(number(place));
        return in_stream(stream, NodeKind::Free, move |_| {
            let _ = &temporary;
            code::SUCCESS
        });
    }
    release(place)
}

#[unsafe(no_mangle)]
extern "C" fn cudaMallocPitch(
    place: *mut *mut c_void,
    pitch: *mut usize,
    width: usize,
    height: usize,
) -> u32 {
    let row = width.next_multiple_of(PITCH);
    put(pitch, row);
    allocate(place, row.saturating_mul(height))
}

#[unsafe(no_mangle)]
extern "C" fn cudaHostRegister(place: *mut c_void, bytes: usize, _: u32) -> u32 {
    memory().register(number(place), bytes as u64);
    code::SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cudaHostUnregister(place: *mut c_void) -> u32 {
    memory().unregister(number(place));
    code::SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cudaHostGetDevicePointer(device: *mut *mut c_void, host: *mut c_void, _: u32) -> u32 {
    put(device, host);
    code::SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cudaHostGetFlags(flags: *mut u32, _: *mut c_void) -> u32 {
    put(flags, 0);
    code::SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cudaPointerGetAttributes(attributes: *mut c_void, place: *mut c_void) -> u32 {
    let (kind, device, host): (u32, bool, bool) = match memory().kind(number(place)) {
        None => (0, false, true),
        Some(Kind::Host) => (1, true, true),
        Some(Kind::Device) => (2, true, false),
        Some(Kind::Managed) => (3, true, true),
    };
    let there = |is: bool| if is { place } else { std::ptr::null_mut() };
    put_at(attributes, 0, kind);
    put_at(attributes, 4, 0_u32);
    put_at(attributes, 8, there(device));
    put_at(attributes, 16, there(host));
    code::SUCCESS
}

/// The direction in which a copy goes, when it is one to the device.
fn record(to: *mut c_void, from: *const c_void, bytes: usize, stream: Option<u64>) {
    if memory().is_of_device(number(to)) && !memory().is_of_device(number(from)) {
        record_to(number(to), bytes, stream);
    }
}

/// Records a copy from the host to an address that traces have.
pub(crate) fn record_to(to: u64, bytes: usize, stream: Option<u64>) {
    if bytes > 0 {
        let direction = CopyDirection::HostToDevice;
        let one = MemoryCopy { direction, address: to, bytes: bytes as u64, stream };
        if let Some(recorder) = &mut state().recorder {
            recorder.copy(one);
        }
    }
}

/// Copies, and records it.
pub(crate) fn transfer(
    to: *mut c_void,
    from: *const c_void,
    bytes: usize,
    stream: Option<u64>,
) -> u32 {
    if bytes > 0 && (to.is_null() || from.is_null()) {
        return result(code::INVALID_VALUE);
    }
    let ready = if stream.is_none() { settled() } else { alive() };
    if ready != code::SUCCESS {
        return ready;
    }
    copy(to, from, bytes);
    record(to, from, bytes, stream);
    code::SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cudaMemcpy(to: *mut c_void, from: *const c_void, bytes: usize, _: c_int) -> u32 {
    transfer(to, from, bytes, None)
}

#[unsafe(no_mangle)]
extern "C" fn cudaMemcpyAsync(
    to: *mut c_void,
    from: *const c_void,
    bytes: usize,
    _: c_int,
    stream: *const c_void,
) -> u32 {
    let (to, from) = (number(to), number(from));
    in_stream(stream, NodeKind::Copy, move |stream| {
        transfer(pointer(to), pointer(from), bytes, Some(stream))
    })
}

#[unsafe(no_mangle)]
extern "C" fn cudaMemcpy2D(
    to: *mut c_void,
    to_pitch: usize,
    from: *const c_void,
    from_pitch: usize,
    width: usize,
    height: usize,
    _: c_int,
) -> u32 {
    copy_rows((to, to_pitch), (from, from_pitch), [width, height], None)
}

/// Copies rows from one place to another, each with its pitch, and records it.
pub(crate) fn copy_rows(
    (to, to_pitch): (*mut c_void, usize),
    (from, from_pitch): (*const c_void, usize),
    [width, height]: [usize; 2],
    stream: Option<u64>,
) -> u32 {
    let ready = if stream.is_none() { settled() } else { alive() };
    if ready != code::SUCCESS {
        return ready;
    }
    for row in 0..height {
        copy(to.wrapping_byte_add(row * to_pitch), from.wrapping_byte_add(row * from_pitch), width);
    }
    record(to, from, width * height, stream);
    code::SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cudaMemcpy2DAsync(
    to: *mut c_void,
    to_pitch: usize,
    from: *const c_void,
    from_pitch: usize,
    width: usize,
    height: usize,
    _: c_int,
    stream: *const c_void,
) -> u32 {
    let (to, from) = (number(to), number(from));
    in_stream(stream, NodeKind::Copy, move |stream| {
        let (to, from) = ((pointer(to), to_pitch), (pointer(from).cast_const(), from_pitch));
        copy_rows(to, from, [width, height], Some(stream))
    })
}

#[unsafe(no_mangle)]
extern "C" fn cudaMemset(to: *mut c_void, value: c_int, bytes: usize) -> u32 {
    let alive = alive();
    if alive == code::SUCCESS {
        fill(to, value.to_le_bytes()[0], bytes);
    }
    alive
}

#[unsafe(no_mangle)]
extern "C" fn cudaMemsetAsync(
    to: *mut c_void,
    value: c_int,
    bytes: usize,
    stream: *const c_void,
) -> u32 {
    let to = number(to);
    in_stream(stream, NodeKind::Fill, move |_| cudaMemset(pointer(to), value, bytes))
}

#[unsafe(no_mangle)]
extern "C" fn cudaMemset2D(
    to: *mut c_void,
    pitch: usize,
    value: c_int,
    width: usize,
    height: usize,
) -> u32 {
    let alive = alive();
    for row in 0..if alive == code::SUCCESS { height } else { 0 } {
        fill(to.wrapping_byte_add(row * pitch), value.to_le_bytes()[0], width);
    }
    alive
}

#[unsafe(no_mangle)]
extern "C" fn cudaMemGetInfo(free: *mut usize, total: *mut usize) -> u32 {
    let size = state().request.device.memory_bytes;
    let left = size.saturating_sub(memory().used());
    put(free, usize::try_from(left).unwrap_or(usize::MAX));
    put(total, usize::try_from(size).unwrap_or(usize::MAX));
    code::SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cudaMemPrefetchAsync() -> u32 {
    code::SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cudaMemAdvise() -> u32 {
    code::SUCCESS
}

/// `cudaExtent` and `cudaPos`: a size, or a place.
#[repr(C)]
#[derive(Clone, Copy)]
struct Extent {
    width: usize,
    height: usize,
    depth: usize,
}

/// `cudaPitchedPtr`: rows in linear memory.
#[repr(C)]
#[derive(Clone, Copy)]
struct Rows {
    /// An address; numbers may be kept for later.
    place: u64,
    pitch: usize,
    width: usize,
    /// Rows of a plane.
    height: usize,
}

/// An end of a copy: an array, or rows in linear memory, and where in it the copy begins.
#[repr(C)]
#[derive(Clone, Copy)]
struct End {
    array: u64,
    /// In texels of an array, in bytes of linear memory.
    first: Extent,
    rows: Rows,
}

/// `cudaMemcpy3DParms`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Parameters {
    from: End,
    to: End,
    /// Its width is in texels where an array takes part.
    extent: Extent,
    kind: c_int,
}

/// Flags of arrays: layers, and faces of a cube.
const LAYERED: u32 = 1;
const CUBE: u32 = 4;

#[unsafe(no_mangle)]
extern "C" fn cudaMalloc3DArray(
    array: *mut *mut c_void,
    format: *const c_void,
    extent: Extent,
    flags: u32,
) -> u32 {
    if flags & CUBE != 0 {
        return result(code::NOT_SUPPORTED);
    }
    let Extent { width, height, depth } = extent;
    make_array(array, format, [width, height, depth], flags & LAYERED != 0)
}

/// Where the planes of a copy are at one end of it.
struct Planes {
    first: *mut c_void,
    /// Bytes from a row to the next, and from a plane to the next.
    pitch: usize,
    plane: usize,
}

impl End {
    /// Bytes of a texel of the array, where it is one.
    fn texel(&self) -> Option<usize> {
        let texels = *state().arrays.get(&self.array)?;
        usize::try_from(texels.bytes()).ok()
    }

    /// Its planes; none when `bytes` of a row, rows and planes do not fit in it.
    fn planes(&self, [bytes, height, depth]: [usize; 3]) -> Option<Planes> {
        let Extent { width: left, height: top, depth: front } = self.first;
        if self.array == 0 {
            let Rows { place, pitch, height: rows, .. } = self.rows;
            let plane = pitch.checked_mul(rows.max(height))?;
            (place != 0).then_some(())?;
            let before = front.checked_mul(plane)?.checked_add(top.checked_mul(pitch)?)?;
            let first = pointer(place).wrapping_byte_add(before.checked_add(left)?);
            return Some(Planes { first, pitch, plane });
        }
        let texels = *state().arrays.get(&self.array)?;
        let size = |count: u64| usize::try_from(count.max(1)).unwrap_or(usize::MAX);
        let [row, rows] = [size(texels.width * texels.bytes()), size(texels.height)];
        let left = left.checked_mul(size(texels.bytes()))?;
        let fits = |first: usize, count: usize, size: usize| {
            first.checked_add(count).is_some_and(|end| end <= size)
        };
        let inside = fits(left, bytes, row) && fits(top, height, rows);
        (inside && fits(front, depth, size(texels.depth))).then_some(())?;
        let pitch = usize::try_from(texels.pitch).ok()?;
        let place = pointer(texels.address);
        let first = place.wrapping_byte_add((front * rows + top) * pitch + left);
        Some(Planes { first, pitch, plane: rows * pitch })
    }
}

#[unsafe(no_mangle)]
extern "C" fn cudaMemcpy3D(parameters: *const c_void) -> u32 {
    match volume(parameters) {
        Some(one) => copy_volume(&one, None),
        None => result(code::INVALID_VALUE),
    }
}

/// The parameters of a copy of a volume; none for a null pointer.
pub(crate) fn volume(parameters: *const c_void) -> Option<Parameters> {
    get(parameters.cast::<Parameters>())
}

/// Copies a volume, and records it.
pub(crate) fn copy_volume(one: &Parameters, stream: Option<u64>) -> u32 {
    let Extent { width, height, depth } = one.extent;
    let texel = one.from.texel().or_else(|| one.to.texel()).unwrap_or(1);
    let size = [width.saturating_mul(texel), height, depth];
    let (Some(from), Some(to)) = (one.from.planes(size), one.to.planes(size)) else {
        return result(code::INVALID_VALUE);
    };
    for plane in 0..depth {
        let to_place = to.first.wrapping_byte_add(plane * to.plane);
        let from_place = from.first.wrapping_byte_add(plane * from.plane);
        let (to, from) = ((to_place, to.pitch), (from_place.cast_const(), from.pitch));
        let done = copy_rows(to, from, [size[0], height], stream);
        if done != code::SUCCESS {
            return done;
        }
    }
    code::SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cudaMemcpy3DAsync(parameters: *const c_void, stream: *const c_void) -> u32 {
    match volume(parameters) {
        Some(one) => {
            in_stream(stream, NodeKind::Copy, move |stream| copy_volume(&one, Some(stream)))
        }
        None => result(code::INVALID_VALUE),
    }
}

#[unsafe(no_mangle)]
extern "C" fn cudaMemset2DAsync(
    to: *mut c_void,
    pitch: usize,
    value: c_int,
    width: usize,
    height: usize,
    stream: *const c_void,
) -> u32 {
    let to = number(to);
    in_stream(stream, NodeKind::Fill, move |_| {
        cudaMemset2D(pointer(to), pitch, value, width, height)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cudaMalloc3D(rows: *mut c_void, extent: Extent) -> u32 {
    let Extent { width, height, depth } = extent;
    let (mut place, mut pitch) = (std::ptr::null_mut(), 0);
    let done = cudaMallocPitch(&raw mut place, &raw mut pitch, width, height.saturating_mul(depth));
    if done == code::SUCCESS
        && !put(rows.cast::<Rows>(), Rows { place: number(place), pitch, width, height })
    {
        return result(code::INVALID_VALUE);
    }
    done
}

#[unsafe(no_mangle)]
extern "C" fn cudaMemset3D(rows: Rows, value: c_int, extent: Extent) -> u32 {
    let plane = rows.pitch.saturating_mul(rows.height);
    (0..extent.depth).fold(code::SUCCESS, |done, depth| {
        let place = pointer(rows.place).wrapping_byte_add(depth.wrapping_mul(plane));
        let plane = cudaMemset2D(place, rows.pitch, value, extent.width, extent.height);
        if done == code::SUCCESS { plane } else { done }
    })
}

#[unsafe(no_mangle)]
extern "C" fn cudaMemset3DAsync(
    rows: Rows,
    value: c_int,
    extent: Extent,
    stream: *const c_void,
) -> u32 {
    in_stream(stream, NodeKind::Fill, move |_| cudaMemset3D(rows, value, extent))
}

#[unsafe(no_mangle)]
extern "C" fn cudaMemcpyPeer(
    to: *mut c_void,
    to_device: c_int,
    from: *const c_void,
    from_device: c_int,
    bytes: usize,
) -> u32 {
    match (to_device, from_device) {
        (0, 0) => transfer(to, from, bytes, None),
        _ => result(code::INVALID_DEVICE),
    }
}

#[unsafe(no_mangle)]
extern "C" fn cudaMemcpyPeerAsync(
    to: *mut c_void,
    to_device: c_int,
    from: *const c_void,
    from_device: c_int,
    bytes: usize,
    stream: *const c_void,
) -> u32 {
    match (to_device, from_device) {
        (0, 0) => cudaMemcpyAsync(to, from, bytes, 0, stream),
        _ => result(code::INVALID_DEVICE),
    }
}

/// The handle of the pool of the device, from which all asynchronous allocations come.
const POOL: u64 = 1;
/// Attributes of a pool with 64 bits; those below have 32.
const FIRST_WIDE_ATTRIBUTE: u32 = 4;

#[unsafe(no_mangle)]
extern "C" fn cudaDeviceGetDefaultMemPool(pool: *mut *mut c_void, device: c_int) -> u32 {
    if device != 0 {
        return result(code::INVALID_DEVICE);
    }
    put(pool, pointer(POOL));
    code::SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cudaDeviceGetMemPool(pool: *mut *mut c_void, device: c_int) -> u32 {
    cudaDeviceGetDefaultMemPool(pool, device)
}

#[unsafe(no_mangle)]
extern "C" fn cudaMemPoolCreate(pool: *mut *mut c_void, _: *const c_void) -> u32 {
    cudaDeviceGetDefaultMemPool(pool, 0)
}

#[unsafe(no_mangle)]
extern "C" fn cudaMemPoolGetAttribute(_: *mut c_void, attribute: u32, value: *mut c_void) -> u32 {
    match attribute {
        0 => result(code::INVALID_VALUE),
        FIRST_WIDE_ATTRIBUTE.. => {
            put_at(value, 0, 0_u64);
            code::SUCCESS
        }
        _ => {
            put_at(value, 0, 1_u32);
            code::SUCCESS
        }
    }
}

#[unsafe(no_mangle)]
extern "C" fn cudaMallocFromPoolAsync(
    place: *mut *mut c_void,
    bytes: usize,
    _: *mut c_void,
    stream: *const c_void,
) -> u32 {
    cudaMallocAsync(place, bytes, stream)
}

/// The stream of a program with a default stream per thread (`cudaStreamPerThread`).
pub(crate) fn per_thread(stream: *const c_void) -> *const c_void {
    if stream.is_null() { pointer(2).cast_const() } else { stream }
}

stream_twins! {
    cudaMemcpyAsync_ptsz = cudaMemcpyAsync(a: *mut c_void, b: *const c_void, c: usize, d: c_int);
    cudaMemsetAsync_ptsz = cudaMemsetAsync(a: *mut c_void, b: c_int, c: usize);
    cudaMemset2DAsync_ptsz = cudaMemset2DAsync(
        a: *mut c_void, b: usize, c: c_int, d: usize, e: usize
    );
    cudaMemset3DAsync_ptsz = cudaMemset3DAsync(a: Rows, b: c_int, c: Extent);
    cudaMemcpy2DAsync_ptsz = cudaMemcpy2DAsync(
        a: *mut c_void, b: usize, c: *const c_void, d: usize, e: usize, f: usize, g: c_int
    );
    cudaMemcpy3DAsync_ptsz = cudaMemcpy3DAsync(a: *const c_void);
    cudaFreeAsync_ptsz = cudaFreeAsync(a: *mut c_void);
    cudaMallocAsync_ptsz = cudaMallocAsync(a: *mut *mut c_void, b: usize);
    cudaMallocFromPoolAsync_ptsz = cudaMallocFromPoolAsync(
        a: *mut *mut c_void, b: usize, c: *mut c_void
    );
}

twins! {
    cudaMemcpy_ptds = cudaMemcpy(a: *mut c_void, b: *const c_void, c: usize, d: c_int);
    cudaMemset_ptds = cudaMemset(a: *mut c_void, b: c_int, c: usize);
    cudaMemset2D_ptds = cudaMemset2D(a: *mut c_void, b: usize, c: c_int, d: usize, e: usize);
    cudaMemset3D_ptds = cudaMemset3D(a: Rows, b: c_int, c: Extent);
    cudaMemcpy2D_ptds = cudaMemcpy2D(
        a: *mut c_void, b: usize, c: *const c_void, d: usize, e: usize, f: usize, g: c_int
    );
    cudaMemcpy3D_ptds = cudaMemcpy3D(a: *const c_void);
    cudaMemPrefetchAsync_ptsz = cudaMemPrefetchAsync();
}
