//! How often the segments of a chunk are executed: each distinct path is walked
//! once, whatever the number of warps that take it.

use crate::units::to_usize;

use super::chunk::Chunk;
use super::path::Path;

/// Adds to `counts`, by segment of the code, what the warps of `chunk` execute.
pub(super) fn add(chunk: &Chunk, counts: &mut [u64]) {
    let mut users = vec![0_u64; chunk.paths.len()];
    for warp in &chunk.warps {
        users[to_usize(warp.path)] += 1;
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
