//! Bulk copies between global and shared memory (the tensor memory accelerator): one
//! instruction moves a box past the L1.
//!
//! The pieces go through the load/store unit as one direct request, line by line, where a card
//! has an engine of its own; their latency beyond a load's is
//! [`bulk_copy_cycles`](crate::config::SmSpec::bulk_copy_cycles). A copy whose pieces the trace
//! does not have moves nothing and is counted.

use gpumodel_core::isa::{AsyncFields, BulkCopy, Effect};
use gpumodel_core::units::{to_u32, to_usize};

use crate::gpu::feed::WarpStream;
use crate::gpu::shared_state::SharedState;
use crate::memory::packet::{Operation, RequestKind, Target};
use crate::sm::Sm;
use crate::sm::barrier_objects::UNNAMED;
use crate::sm::coalesce::{LINE_BYTES, LineRequest, touch_in_order};
use crate::sm::lsu::queue::{Entry, Route};

impl Sm {
    /// Issues the bulk copy at the head of the warp's stream; the queue has room.
    pub(super) fn issue_bulk(&mut self, warp: u16, effect: Effect, shared_state: &mut SharedState) {
        let resident = self.warp(warp);
        let (fields, kernel) = (resident.stream.fields(), resident.kernel);
        let lanes = resident.stream.skip(1);
        let counts = &mut shared_state.counts[to_usize(kernel)];
        counts.thread_instructions += lanes;
        if lanes == 0 {
            return;
        }
        let Some(AsyncFields::Copy(copy)) = fields else {
            counts.unknown_copies += 1;
            if effect == Effect::BulkLoad {
                self.miss_bulk_load(warp, shared_state);
            }
            return;
        };
        counts.bulk_bytes += copy.bytes;
        let target = self.bulk_target(warp, effect, &copy, shared_state);
        let lines = self.bulk_lines(&copy, shared_state.windows(kernel).tag);
        let now = shared_state.queue.now();
        self.warp(warp).outstanding += 1;
        let operation = self.lsu.operations.insert(Operation::new(warp, target, now));
        let kind = match effect {
            Effect::BulkStore => RequestKind::Write,
            Effect::BulkReduction => RequestKind::Reduction,
            _ => RequestKind::Read,
        };
        self.lsu.queue.push(Entry::new(operation, kernel, Route::Direct(kind), lines, now));
        self.schedule_service(now, shared_state);
        self.hold_issue(shared_state);
    }

    /// What waits for a bulk copy.
    fn bulk_target(
        &mut self,
        warp: u16,
        effect: Effect,
        copy: &BulkCopy,
        shared_state: &SharedState,
    ) -> Target {
        if effect != Effect::BulkLoad {
            return Target::Group(self.warp(warp).join_group(shared_state.queue.now()));
        }
        let slot = usize::from(self.warp(warp).cta);
        let Some(cta) = self.ctas[slot].as_mut() else { return Target::Nothing };
        let place = copy.barrier.map_or(UNNAMED, |address| cta.objects.place(address));
        cta.objects.begin_copy(place);
        Target::Object { place, bytes: to_u32(copy.bytes), multicast: copy.multicast }
    }

    /// The lines that a copy touches.
    fn bulk_lines(&mut self, copy: &BulkCopy, tag: u64) -> Vec<LineRequest> {
        let mut lines = self.lsu.queue.list();
        lines.clear();
        for &address in &copy.pieces {
            touch_in_order(address, copy.piece_bytes, &mut lines);
        }
        if tag != 0 {
            lines.iter_mut().for_each(|line| line.line ^= tag / LINE_BYTES);
        }
        lines
    }
}
