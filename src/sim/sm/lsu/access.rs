//! From a memory instruction to an operation in flight and an entry of the
//! load/store queue.
//!
//! Bulk copies between global and shared memory (the tensor memory accelerator): one
//! instruction moves a box past the L1. The pieces go through the load/store unit as one direct
//! request, line by line, where a card has an engine of its own; their latency beyond a load's is
//! [`bulk_copy_cycles`](crate::config::SmSpec::bulk_copy_cycles). A copy whose pieces the trace
//! does not have moves nothing and is counted.

use crate::counters::KernelCounts;
use crate::gpu::event_queue::Event;
use crate::gpu::feed::WarpStream;
use crate::gpu::shared_state::SharedState;
use crate::interval::{Decoded, SlotId};
use crate::memory::packet::{Operation, RequestKind, Target};
use crate::sm::Sm;
use crate::sm::barrier_objects::UNNAMED;
use crate::sm::coalesce::{
    LINE_BYTES, LineRequest, bank_passes, coalesce, interleave_local, return_cycles,
    returns_packed, touch_in_order,
};
use crate::sm::lsu::queue::{Entry, Route};
use crate::sm::warp::Warp;
use gpumodel_core::isa::{Access, AsyncFields, BulkCopy, Effect, Space};
use gpumodel_core::units::{Cycle, SECTOR_BYTES, to_u32, to_usize};

/// Bytes of a row that each address of a matrix load names.
const MATRIX_ROW_BYTES: u64 = 16;

impl Sm {
    /// Issues the memory instruction at the head of the warp's stream; the queue
    /// has room.
    pub(in crate::sm) fn issue_access(
        &mut self,
        warp: u16,
        instruction: u32,
        slot: Option<SlotId>,
        shared_state: &mut SharedState,
    ) {
        let now = shared_state.queue.now();
        let resident = self.warps[usize::from(warp)].as_mut().expect("only resident warps issue");
        let kernel = resident.kernel;
        let (profile, counts) = shared_state.profile_and_counts(kernel);
        let decoded = profile.decoded(instruction).clone_for_access();
        if decoded.is_asynchronous() {
            return self.issue_asynchronous(warp, decoded.effect, shared_state);
        }
        resident.stream.access(&mut self.lsu.access);
        counts.thread_instructions += u64::from(self.lsu.access.mask.count_ones());
        decoded.note_null(&mut self.lsu.access, self.params.accesses_null, counts);
        if self.lsu.access.mask == 0 {
            return;
        }
        let space = self.resolve(&decoded, kernel, shared_state);
        let leaves = self.params.leaves_at_any_wait;
        let generic = decoded.effect.space() == Some(Space::Generic) && space == Space::Shared;
        let remote = if generic { self.remote_lanes(warp, shared_state) } else { 0 };
        let resident = self.warp(warp);
        let short = space == Space::Shared && !leaves && remote == 0;
        let target = resident.target(decoded.effect, slot, short, now);
        resident.outstanding += 1;
        let operation = self.lsu.operations.insert(Operation::new(warp, target, now));
        let issued = now.saturating_sub(u64::from(self.warp(warp).lead));
        let (route, mut lines) = self.queue_lines(&decoded, space, warp);
        let route = self.crossing(route, remote.saturating_mul(decoded.width));
        if shared_state.hot.is_some() {
            let request = (route, decoded.shared_width());
            let (of, at) = ((warp, operation), (instruction, slot));
            self.note_request(of, at, request, &lines, shared_state);
        }
        let tag = shared_state.windows(kernel).tag;
        if tag != 0 {
            lines.iter_mut().for_each(|line| line.line ^= tag / LINE_BYTES);
        }
        let passes = self.data_passes(route, space, &decoded);
        let entry = Entry { passes, ..Entry::new(operation, kernel, route, lines, issued) };
        self.lsu.queue.push(entry);
        self.schedule_service(now, shared_state);
        self.hold_issue(shared_state);
    }

    /// Issues a bulk copy or a step at a barrier object.
    fn issue_asynchronous(&mut self, warp: u16, effect: Effect, shared_state: &mut SharedState) {
        let Effect::Object(step) = effect else {
            return self.issue_bulk(warp, effect, shared_state);
        };
        let resident = self.warps[usize::from(warp)].as_mut().expect("only resident warps issue");
        let fields = resident.stream.fields();
        resident.stream.access(&mut self.lsu.access);
        let counts = &mut shared_state.counts[to_usize(resident.kernel)];
        counts.thread_instructions += u64::from(self.lsu.access.mask.count_ones());
        self.step_at_object(warp, step, fields, shared_state);
    }

    /// The space that the access goes to; generic addresses are classified by the
    /// launch's windows.
    fn resolve(&self, decoded: &AccessKind, kernel: u32, shared_state: &mut SharedState) -> Space {
        let space = decoded.effect.space().unwrap_or(Space::Global);
        if space != Space::Generic {
            return space;
        }
        shared_state.counts[gpumodel_core::units::to_usize(kernel)].generic_accesses += 1;
        let address = self.lsu.access.active().next().map_or(0, |(_, address)| address);
        shared_state.windows(kernel).generic.space_of(address)
    }

    /// Cycles in which the data of a load come out of the L1 where it hits: passes over the banks
    /// of words, or what all lanes get at the L1's width; 0 where they come by sector.
    fn data_passes(&self, route: Route, space: Space, decoded: &AccessKind) -> u32 {
        if !self.params.l1_by_word || route != Route::Cached(RequestKind::Read) {
            return 0;
        }
        let access = &self.lsu.access;
        let bytes = access.mask.count_ones() * decoded.width;
        let wide = bytes.div_ceil(self.params.l1_banks * to_u32(SECTOR_BYTES)).max(1);
        let packed = returns_packed(access, decoded.width, &self.params.shared);
        let wide = if packed { wide.div_ceil(2) } else { wide };
        match space {
            // Words of the lanes lie side by side.
            Space::Local => wide,
            Space::Global | Space::Shared | Space::Constant | Space::Texture | Space::Generic => {
                wide.max(bank_passes(access, u64::from(decoded.width), &self.params.shared))
            }
        }
    }

    /// Cycles in which shared memory is busy with an access: passes over the banks, and of loads
    /// the way back to the registers.
    fn shared_passes(&self, decoded: &AccessKind) -> u32 {
        let access = &self.lsu.access;
        let passes = bank_passes(access, decoded.shared_width(), &self.params.shared);
        let returns = matches!(decoded.effect, Effect::Load(_)) && !decoded.matrix;
        if !returns {
            return passes;
        }
        passes.max(return_cycles(access, decoded.width, &self.params.shared))
    }

    /// The way of an access to the CTA's own shared memory.
    fn shared_route(&self, decoded: &AccessKind) -> Route {
        Route::Shared { passes: self.shared_passes(decoded).max(1), remote: false }
    }

    fn queue_lines(
        &mut self,
        decoded: &AccessKind,
        space: Space,
        warp: u16,
    ) -> (Route, Vec<crate::sm::coalesce::LineRequest>) {
        let mut lines = self.lsu.queue.list();
        let width = u64::from(decoded.width);
        if space == Space::Shared {
            return (self.shared_route(decoded), lines);
        }
        if space == Space::Local {
            let slot = u64::from(self.id) * u64::from(self.params.max_warps) + u64::from(warp);
            interleave_local(&self.lsu.access, width, slot, &mut lines);
        } else {
            coalesce(&self.lsu.access, width, &mut lines);
        }
        if space == Space::Constant && self.lsu.constants.is_some() {
            return (Route::Constant, lines);
        }
        let ask = request_kind(decoded.effect);
        let atomic = matches!(ask, RequestKind::Atomic | RequestKind::Reduction);
        let uncached = space != Space::Local && !self.params.caches_global;
        let direct = atomic || decoded.bypasses_l1 || uncached;
        (if direct { Route::Direct(ask) } else { Route::Cached(ask) }, lines)
    }

    /// Schedules the load/store unit for `cycle` or as soon as it is free.
    pub(in crate::sm) fn schedule_service(&mut self, cycle: u64, shared_state: &mut SharedState) {
        let at = cycle.max(self.lsu.queue.free_at);
        if self.lsu.queue.scheduled == 0 && self.lsu.queue.stalled.is_none() {
            self.lsu.queue.scheduled = at.max(1);
            shared_state.queue.schedule(at, Event::LoadStore { sm: self.id });
        }
    }
}

/// What an access of an effect asks of the memory.
fn request_kind(effect: Effect) -> RequestKind {
    match effect {
        Effect::Store(_) => RequestKind::Write,
        Effect::Atomic(_) => RequestKind::Atomic,
        Effect::Reduction(_) => RequestKind::Reduction,
        Effect::Load(_)
        | Effect::AsyncCopy
        | Effect::Compute
        | Effect::AsyncCommit
        | Effect::AsyncWait
        | Effect::Barrier
        | Effect::Arrive
        | Effect::ClusterArrive
        | Effect::ClusterWait
        | Effect::Fence
        | Effect::MatrixGroup
        | Effect::BulkLoad
        | Effect::BulkStore
        | Effect::BulkReduction
        | Effect::Object(_)
        | Effect::MatrixWait
        | Effect::Exit
        | Effect::Branch => RequestKind::Read,
    }
}

/// What of a decoded instruction an access needs.
#[derive(Clone, Copy, Debug)]
pub(in crate::sm) struct AccessKind {
    effect: Effect,
    width: u32,
    matrix: bool,
    bypasses_l1: bool,
}

impl Warp {
    /// What waits for a memory instruction of the warp that issues.
    #[inline]
    fn target(&mut self, effect: Effect, slot: Option<SlotId>, short: bool, now: Cycle) -> Target {
        match (effect, slot) {
            (Effect::AsyncCopy, _) => Target::Group(self.join_group(now)),
            (_, Some(slot)) => {
                self.expect(slot, short);
                Target::Slot(slot.0)
            }
            (_, None) => Target::Nothing,
        }
    }
}

impl AccessKind {
    /// Counts active lanes at address 0 where addresses may be of global memory, which has
    /// nothing there, and drops them unless they are `kept`.
    #[inline]
    fn note_null(&self, access: &mut Access, kept: bool, counts: &mut KernelCounts) {
        let global = matches!(self.effect.space(), None | Some(Space::Global | Space::Generic));
        if global && access.has_null() {
            counts.null_accesses += 1;
            let null = if kept { access.null_lanes() } else { access.drop_null() };
            counts.null_lanes += u64::from(null);
        }
    }

    /// True where its fields are not those of lanes.
    fn is_asynchronous(&self) -> bool {
        self.effect.is_bulk() || matches!(self.effect, Effect::Object(_))
    }

    /// Bytes that a lane reads or writes of shared memory.
    fn shared_width(&self) -> u64 {
        if self.matrix { MATRIX_ROW_BYTES } else { u64::from(self.width) }
    }
}

impl Decoded {
    fn clone_for_access(&self) -> AccessKind {
        AccessKind {
            effect: self.effect,
            width: self.width,
            matrix: self.is_matrix_load,
            bypasses_l1: self.bypasses_l1,
        }
    }
}

impl Sm {
    /// Issues the bulk copy at the head of the warp's stream; the queue has room.
    fn issue_bulk(&mut self, warp: u16, effect: Effect, shared_state: &mut SharedState) {
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
