//! CTAs that are passed over are walked through, without time.
//!
//! Their instructions are counted, and what they access of global memory is touched: pages are
//! in their place, and the L2 has the sectors that were used last. The L1s keep what the CTAs on
//! the SMs have left in them. Local memory, constants and bulk copies are passed over
//! (approximation: they mostly hit, or their pieces lie in few lines).

use std::sync::Arc;

use gpumodel_core::isa::{Access, Effect, Space};
use gpumodel_core::units::{KernelId, to_usize};

use super::readings::Walked;
use crate::gpu::error::MachineError;
use crate::gpu::feed::{Feed, Stream};
use crate::gpu::shared_state::SharedState;
use crate::sm::coalesce::{LINE_BYTES, LineRequest, coalesce};

/// An instruction that accesses global memory.
#[derive(Clone, Copy, Debug)]
struct Touch {
    /// Its place in its segment.
    place: u32,
    bytes: u64,
    writes: bool,
}

/// The instructions of a launch that access global memory.
#[derive(Debug)]
pub(super) struct Touches {
    /// By segment: its length and its accesses.
    segments: Arc<[(u32, Vec<Touch>)]>,
}

impl Touches {
    /// Those of launch `kernel`.
    pub(super) fn of(feed: &dyn Feed, kernel: u32, shared_state: &mut SharedState) -> Self {
        let code = Arc::clone(&feed.program(KernelId(kernel)).code);
        let profile = shared_state.profile(kernel);
        let touch = |first: u32, place: u32| {
            let decoded = profile.decoded(first + place);
            let global = decoded.effect.space().is_some_and(is_global);
            let touches = global && decoded.has_addresses && !decoded.effect.is_bulk();
            let writes = matches!(
                decoded.effect,
                Effect::Store(_) | Effect::Atomic(_) | Effect::Reduction(_)
            );
            touches.then_some(Touch { place, bytes: u64::from(decoded.width), writes })
        };
        let segments = code.segments.iter().map(|segment| {
            let places = 0..segment.length;
            let touches = places.filter_map(|place| touch(segment.first, place)).collect();
            (segment.length, touches)
        });
        Self { segments: segments.collect() }
    }
}

/// Spaces whose accesses go to the L2; generic ones are taken for global ones.
fn is_global(space: Space) -> bool {
    match space {
        Space::Global | Space::Generic | Space::Texture => true,
        Space::Shared | Space::Local | Space::Constant => false,
    }
}

/// Scratch of a walk.
#[derive(Debug, Default)]
pub(super) struct Walker {
    streams: Vec<Stream>,
    access: Access,
    lines: Vec<LineRequest>,
}

impl Walker {
    /// Walks through CTA `ordinal` of a launch.
    ///
    /// # Errors
    /// When the source fails to open the CTA.
    pub(super) fn walk(
        &mut self,
        feed: &dyn Feed,
        (kernel, ordinal): (u32, u64),
        touches: &Touches,
        shared_state: &mut SharedState,
    ) -> Result<Walked, MachineError> {
        self.streams.clear();
        let position = feed.open(KernelId(kernel), ordinal, &mut self.streams);
        position.map_err(MachineError::Feed)?;
        let tag = shared_state.windows(kernel).tag;
        let mut walked = Walked { ctas: 1, ..Walked::default() };
        for stream in &mut self.streams {
            while let Some(segment) = stream.next_segment() {
                let (length, touches) = &touches.segments[to_usize(segment)];
                let mut done = 0;
                for touch in touches {
                    walked.threads += stream.skip(touch.place - done);
                    stream.access(&mut self.access);
                    walked.threads += u64::from(self.access.mask.count_ones());
                    done = touch.place + 1;
                    self.access.drop_null();
                    coalesce(&self.access, touch.bytes, &mut self.lines);
                    for line in &self.lines {
                        shared_state.pass(line, tag / LINE_BYTES, touch.writes);
                    }
                }
                walked.threads += stream.skip(length - done);
                walked.warps += u64::from(*length);
            }
        }
        Ok(walked)
    }
}

impl SharedState {
    /// A line of global memory is used without time.
    fn pass(&mut self, line: &LineRequest, tag: u64, writes: bool) {
        let line = LineRequest { line: line.line ^ tag, ..*line };
        if let Some(mmu) = &mut self.mmu {
            mmu.pass(line.line * LINE_BYTES);
        }
        for address in line.sectors() {
            let address = self.physical(address);
            self.memory_system.put_in(address, writes);
        }
    }
}
