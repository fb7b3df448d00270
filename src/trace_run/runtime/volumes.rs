//! Arrays with planes or layers, and copies of boxes to and from them.

use std::ffi::{c_int, c_void};

use crate::copies::copy_rows;
use crate::pointers::{get, number, pointer};
use crate::state::{code, result, state};
use crate::textures::make_array;

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
    place: *mut c_void,
    pitch: usize,
    width: usize,
    /// Rows of a plane.
    height: usize,
}

/// An end of a copy: an array, or rows in linear memory, and where in it the copy begins.
#[repr(C)]
#[derive(Clone, Copy)]
struct End {
    array: *const c_void,
    /// In texels of an array, in bytes of linear memory.
    first: Extent,
    rows: Rows,
}

/// `cudaMemcpy3DParms`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Parameters {
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
        let texels = *state().arrays.get(&number(self.array))?;
        usize::try_from(texels.bytes()).ok()
    }

    /// Its planes; none when `bytes` of a row, rows and planes do not fit in it.
    fn planes(&self, [bytes, height, depth]: [usize; 3]) -> Option<Planes> {
        let Extent { width: left, height: top, depth: front } = self.first;
        if self.array.is_null() {
            let Rows { place, pitch, height: rows, .. } = self.rows;
            let plane = pitch.checked_mul(rows.max(height))?;
            (!place.is_null()).then_some(())?;
            let before = front.checked_mul(plane)?.checked_add(top.checked_mul(pitch)?)?;
            let first = place.wrapping_byte_add(before.checked_add(left)?);
            return Some(Planes { first, pitch, plane });
        }
        let texels = *state().arrays.get(&number(self.array))?;
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
    let Some(one) = get(parameters.cast::<Parameters>()) else {
        return result(code::INVALID_VALUE);
    };
    let Extent { width, height, depth } = one.extent;
    let texel = one.from.texel().or_else(|| one.to.texel()).unwrap_or(1);
    let size = [width.saturating_mul(texel), height, depth];
    let (Some(from), Some(to)) = (one.from.planes(size), one.to.planes(size)) else {
        return result(code::INVALID_VALUE);
    };
    for plane in 0..depth {
        let to_place = to.first.wrapping_byte_add(plane * to.plane);
        let from_place = from.first.wrapping_byte_add(plane * from.plane);
        copy_rows((to_place, to.pitch), (from_place.cast_const(), from.pitch), [size[0], height]);
    }
    code::SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cudaMemcpy3DAsync(parameters: *const c_void, _: *const c_void) -> u32 {
    cudaMemcpy3D(parameters)
}
