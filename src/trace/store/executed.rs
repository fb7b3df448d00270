//! How often the segments of a chunk are executed: each distinct path is walked
//! once, whatever the number of warps that take it.

use gpumodel_core::units::{to_u64, to_usize};

use super::chunk::Chunk;
use super::path::Path;

/// Adds to `counts`, by segment of the code, what the warps of those CTAs of `chunk`
/// execute that `takes` takes by their place in it.
pub(super) fn add(chunk: &Chunk, takes: impl Fn(u64) -> bool, counts: &mut [u64]) {
    let mut users = vec![0_u64; chunk.paths.len()];
    for (cta, warps) in chunk.warps.chunks(to_usize(chunk.warps_per_cta)).enumerate() {
        if takes(to_u64(cta)) {
            warps.iter().for_each(|warp| users[to_usize(warp.path)] += 1);
        }
    }
    for (place, users) in chunk.paths.iter().zip(users) {
        let mut path = Path::new(to_usize(place.start), to_usize(place.end));
        while let Some((step, times)) = path.run(&chunk.bytes, u64::MAX) {
            let segment = chunk.segments.get(to_usize(step));
            if let Some(count) = segment.and_then(|&number| counts.get_mut(to_usize(number))) {
                *count = count.saturating_add(times.saturating_mul(users));
            }
        }
    }
}
