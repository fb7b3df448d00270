//! The execution of kernels: grids of CTAs, CTAs of warps, warps of 32 lanes.
//!
//! A launch runs its CTAs in order. A CTA that does not end within a slice of instructions, or
//! whose warps all wait or spin (go round a loop in which nothing changes), makes room for the
//! next one and goes on later, so that CTAs may wait for each other. The order depends on the
//! program alone, and so does every result.
//!
//! On several threads CTAs run together, each with a buffer (`buffer.rs`) for its writes. In the
//! order of CTAs the buffers are then written; a CTA that read what an earlier one of the same
//! batch wrote runs again. So results and records are those of CTAs one after the other.

mod access;
mod buffer;
mod cluster;
mod control;
mod cta;
mod grid;
mod lanes;
mod memory;
mod object;
mod system;
mod tensor_map;
mod texture;
mod vector;
mod warp;

pub use access::{Readable, WarpAccess, Words, Writable};
pub(crate) use grid::BANKS;
pub use grid::{Counts, Grid, LaunchRequest, Residency, WORKSPACE_BYTES, run};
pub(crate) use lanes::{From, Lanes, Lanes64, Scope, Target, ZERO, each, high, low, mask_of, view};
pub(crate) use memory::copy_bytes;
pub(crate) use memory::{CONSTANT_BANK_BYTES, CONSTANT_WINDOW};
pub use memory::{HostMemory, LOCAL_WINDOW, Memory, SHARED_WINDOW, WINDOW_BYTES, constant_address};
pub use system::Printed;
pub(crate) use system::system_call;
pub use tensor_map::{Element, MOST_DIMENSIONS, TENSOR_MAP_BYTES, TensorMap};
pub(crate) use tensor_map::{Row, swizzled};
pub use texture::{AddressMode, ChannelKind, Sampler, Texels, Texture};
pub(crate) use vector::{SignChange, single_bits};
pub(crate) use warp::Pause;
