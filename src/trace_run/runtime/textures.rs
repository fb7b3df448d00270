//! Arrays, texture objects and surface objects.

use std::ffi::{c_int, c_void};

use gpumodel_trace_run::execute::{AddressMode, ChannelKind, Sampler, Texels, Texture};

use crate::copies::{PITCH, allocate, copy_rows};
use crate::graphs::{NodeKind, in_stream};
use crate::pointers::{get, number, pointer, put};
use crate::state::{State, code, memory, result, state};

/// `cudaChannelFormatDesc`: bits of four channels, and what they are.
#[repr(C)]
#[derive(Clone, Copy)]
struct ChannelFormat {
    bits: [c_int; 4],
    kind: c_int,
}

/// `cudaResourceDesc`, as far as it is used.
#[repr(C)]
#[derive(Clone, Copy)]
struct Resource {
    kind: c_int,
    place: u64,
    format: ChannelFormat,
    /// Bytes of linear memory, texels of a row of pitched memory.
    width: usize,
    height: usize,
    pitch: usize,
}

/// Kinds of resources.
const ARRAY: c_int = 0;
const LINEAR: c_int = 2;
const PITCHED: c_int = 3;

/// `cudaTextureDesc`, as far as it is used.
#[repr(C)]
#[derive(Clone, Copy)]
struct Description {
    modes: [c_int; 3],
    filter: c_int,
    reads: c_int,
    srgb: c_int,
    border: [f32; 4],
    normalised: c_int,
}

impl ChannelFormat {
    fn texels(self, address: u64, [width, height]: [u64; 2], pitch: u64) -> Option<Texels> {
        let kind = match self.kind {
            0 => ChannelKind::Signed,
            1 => ChannelKind::Unsigned,
            2 => ChannelKind::Float,
            _ => return None,
        };
        let known = |bits: &c_int| match kind {
            ChannelKind::Float => matches!(bits, 0 | 16 | 32),
            ChannelKind::Signed | ChannelKind::Unsigned => matches!(bits, 0 | 8 | 16 | 32),
        };
        let bits = self.bits.map(|bits| u32::try_from(bits).unwrap_or(0));
        (self.bits.iter().all(known) && bits[0] > 0 && width > 0).then_some(Texels {
            address,
            pitch,
            width,
            height,
            bits,
            kind,
            ..Texels::default()
        })
    }
}

fn mode(number: c_int) -> Option<AddressMode> {
    Some(match number {
        0 => AddressMode::Wrap,
        1 => AddressMode::Clamp,
        2 => AddressMode::Mirror,
        3 => AddressMode::Border,
        _ => return None,
    })
}

impl Description {
    fn sampler(self) -> Option<Sampler> {
        (self.srgb == 0).then_some(())?;
        Some(Sampler {
            modes: [mode(self.modes[0])?, mode(self.modes[1])?, mode(self.modes[2])?],
            linear: self.filter == 1,
            scaled_reads: self.reads == 1,
            normalised: self.normalised != 0,
            border: self.border,
        })
    }
}

impl State {
    fn texels(&self, resource: Resource) -> Option<Texels> {
        let Resource { kind, place, format, width, height, pitch } = resource;
        let (width, height, pitch) = (width as u64, height as u64, pitch as u64);
        match kind {
            ARRAY => self.arrays.get(&place).copied(),
            LINEAR => {
                let one = format.texels(place, [1, 0], 0)?;
                Some(Texels { width: width / one.bytes(), ..one })
            }
            PITCHED => format.texels(place, [width, height], pitch),
            _ => None,
        }
    }

    /// A handle for `texture`.
    fn object(&mut self, texture: Texture) -> u64 {
        // No texture has the handle 0.
        if self.textures.is_empty() {
            self.textures.push(None);
        }
        self.textures.push(Some(texture));
        self.textures.len() as u64 - 1
    }
}

#[unsafe(no_mangle)]
extern "C" fn cudaCreateTextureObject(
    object: *mut u64,
    resource: *const c_void,
    description: *const c_void,
    view: *const c_void,
) -> u32 {
    let mut state = state();
    let texels = get(resource.cast::<Resource>()).and_then(|one| state.texels(one));
    let sampler = get(description.cast::<Description>()).and_then(Description::sampler);
    let (Some(texels), Some(sampler)) = (texels, sampler.filter(|_| view.is_null())) else {
        state.last_error = code::NOT_SUPPORTED;
        return code::NOT_SUPPORTED;
    };
    // Weights are of floating-point numbers.
    if sampler.linear && !sampler.scaled_reads && texels.kind != ChannelKind::Float {
        state.last_error = code::INVALID_VALUE;
        return code::INVALID_VALUE;
    }
    put(object, state.object(Texture { texels, sampler }));
    code::SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cudaCreateSurfaceObject(object: *mut u64, resource: *const c_void) -> u32 {
    let mut state = state();
    let found = get(resource.cast::<Resource>()).filter(|one| one.kind == ARRAY);
    let Some(texels) = found.and_then(|one| state.texels(one)) else {
        state.last_error = code::INVALID_VALUE;
        return code::INVALID_VALUE;
    };
    put(object, state.object(Texture { texels, sampler: Sampler::default() }));
    code::SUCCESS
}

fn destroy(object: u64) -> u32 {
    let mut state = state();
    let place = usize::try_from(object).ok().and_then(|at| state.textures.get_mut(at));
    if let Some(place) = place {
        *place = None;
    }
    code::SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cudaDestroyTextureObject(object: u64) -> u32 {
    destroy(object)
}

#[unsafe(no_mangle)]
extern "C" fn cudaDestroySurfaceObject(object: u64) -> u32 {
    destroy(object)
}

#[unsafe(no_mangle)]
extern "C" fn cudaCreateChannelDesc(
    x: c_int,
    y: c_int,
    z: c_int,
    w: c_int,
    kind: c_int,
) -> ChannelFormat {
    ChannelFormat { bits: [x, y, z, w], kind }
}

#[unsafe(no_mangle)]
extern "C" fn cudaMallocArray(
    array: *mut *mut c_void,
    format: *const c_void,
    width: usize,
    height: usize,
    _: u32,
) -> u32 {
    make_array(array, format, [width, height, 0], false)
}

/// Makes an array of so many texels in each direction.
pub(crate) fn make_array(
    array: *mut *mut c_void,
    format: *const c_void,
    [width, height, depth]: [usize; 3],
    layered: bool,
) -> u32 {
    let format = get(format.cast::<ChannelFormat>());
    let one = format.and_then(|one| one.texels(0, [width as u64, height as u64], 0));
    let Some(texels) = one.map(|one| Texels { depth: depth as u64, layered, ..one }) else {
        return result(code::INVALID_VALUE);
    };
    let row = texels.bytes().checked_mul(texels.width);
    let Some(pitch) = row.and_then(|row| row.checked_next_multiple_of(PITCH as u64)) else {
        return result(code::OUT_OF_MEMORY);
    };
    let rows = texels.height.max(1).saturating_mul(texels.depth.max(1));
    let bytes = usize::try_from(pitch.saturating_mul(rows)).unwrap_or(usize::MAX);
    let done = allocate(array, bytes);
    if let (code::SUCCESS, Some(place)) = (done, get(array)) {
        let address = number(place);
        state().arrays.insert(address, Texels { address, pitch, ..texels });
    }
    done
}

#[unsafe(no_mangle)]
extern "C" fn cudaFreeArray(array: *mut c_void) -> u32 {
    let known = state().arrays.remove(&number(array)).is_some();
    let freed = array.is_null() || known && memory().free(number(array));
    result(if freed { code::SUCCESS } else { code::INVALID_VALUE })
}

/// The place in an array, and its pitch, when so many bytes and rows fit there.
fn inside(
    array: *const c_void,
    [left, top]: [usize; 2],
    [width, height]: [usize; 2],
) -> Option<(*mut c_void, usize)> {
    let texels = *state().arrays.get(&number(array))?;
    let fits = |first: usize, count: usize, size: u64| {
        first.checked_add(count).is_some_and(|end| end as u64 <= size)
    };
    let row = texels.width * texels.bytes();
    (fits(left, width, row) && fits(top, height, texels.height.max(1))).then_some(())?;
    let pitch = usize::try_from(texels.pitch).ok()?;
    Some((pointer(texels.address).wrapping_byte_add(top * pitch + left), pitch))
}

#[unsafe(no_mangle)]
extern "C" fn cudaMemcpy2DToArray(
    array: *mut c_void,
    left: usize,
    top: usize,
    from: *const c_void,
    from_pitch: usize,
    width: usize,
    height: usize,
    _: c_int,
) -> u32 {
    match inside(array, [left, top], [width, height]) {
        Some(to) if !from.is_null() => copy_rows(to, (from, from_pitch), [width, height], None),
        _ => result(code::INVALID_VALUE),
    }
}

#[unsafe(no_mangle)]
extern "C" fn cudaMemcpy2DToArrayAsync(
    array: *mut c_void,
    left: usize,
    top: usize,
    from: *const c_void,
    from_pitch: usize,
    width: usize,
    height: usize,
    kind: c_int,
    stream: *const c_void,
) -> u32 {
    let (array, from) = (number(array), number(from));
    in_stream(stream, NodeKind::Copy, move |_| {
        let (array, from) = (pointer(array), pointer(from));
        cudaMemcpy2DToArray(array, left, top, from, from_pitch, width, height, kind)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cudaMemcpy2DFromArray(
    to: *mut c_void,
    to_pitch: usize,
    array: *const c_void,
    left: usize,
    top: usize,
    width: usize,
    height: usize,
    _: c_int,
) -> u32 {
    match inside(array, [left, top], [width, height]) {
        Some((from, pitch)) if !to.is_null() => {
            copy_rows((to, to_pitch), (from.cast_const(), pitch), [width, height], None)
        }
        _ => result(code::INVALID_VALUE),
    }
}

/// Bytes of a row and rows of a copy of `bytes` to a place in an array.
fn by_rows(array: *const c_void, left: usize, bytes: usize) -> Option<[usize; 2]> {
    let texels = *state().arrays.get(&number(array))?;
    let row = usize::try_from(texels.width * texels.bytes()).ok()?;
    // Of whole rows, or of a part of one.
    match (left, bytes % row) {
        (0, 0) => Some([row, bytes / row]),
        _ if left.saturating_add(bytes) <= row => Some([bytes, 1]),
        _ => None,
    }
}

#[unsafe(no_mangle)]
extern "C" fn cudaMemcpyToArray(
    array: *mut c_void,
    left: usize,
    top: usize,
    from: *const c_void,
    bytes: usize,
    kind: c_int,
) -> u32 {
    match by_rows(array, left, bytes) {
        Some([width, height]) => {
            cudaMemcpy2DToArray(array, left, top, from, width, width, height, kind)
        }
        None => result(code::NOT_SUPPORTED),
    }
}

twins! {
    cudaMemcpyToArray_ptds = cudaMemcpyToArray(
        a: *mut c_void, b: usize, c: usize, d: *const c_void, e: usize, f: c_int
    );
    cudaMemcpy2DToArray_ptds = cudaMemcpy2DToArray(
        a: *mut c_void, b: usize, c: usize, d: *const c_void, e: usize, f: usize, g: usize,
        h: c_int
    );
    cudaMemcpy2DFromArray_ptds = cudaMemcpy2DFromArray(
        a: *mut c_void, b: usize, c: *const c_void, d: usize, e: usize, f: usize, g: usize,
        h: c_int
    );
}

stream_twins! {
    cudaMemcpy2DToArrayAsync_ptsz = cudaMemcpy2DToArrayAsync(
        a: *mut c_void, b: usize, c: usize, d: *const c_void, e: usize, f: usize, g: usize,
        h: c_int
    );
}
