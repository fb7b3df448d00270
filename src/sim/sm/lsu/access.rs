//! From the lanes' addresses of a memory instruction to an entry of the load/store queue.
//!
//! Bulk copies between global and shared memory (the tensor memory accelerator): one
//! instruction moves a box past the L1. The pieces go through the load/store unit as one direct
//! request, line by line, where a card has an engine of its own; their latency beyond a load's is
//! [`bulk_copy_cycles`](crate::config::SmSpec::bulk_copy_cycles). A copy whose pieces the trace
//! does not have moves nothing and is counted.

use crate::config::{L1Data, Machine, SharedSpec};
use crate::counters::KernelCounts;
use crate::gpu::clusters::Seat;
use crate::gpu::feed::WarpStream;
use crate::gpu::shared_state::SharedState;
use crate::interval::{Decoded, SlotId};
use crate::memory::packet::RequestKind;
use crate::sm::cluster::{ClusterLink, remote_lanes};
use crate::sm::coalesce::{
    LINE_BYTES, LineRequest, bank_passes, coalesce, fewest_passes, interleave_local, return_cycles,
    returns_packed, take_turns, touch_in_order,
};
use crate::sm::lsu::queue::Route;
use crate::sm::warp::Warp;
use gpumodel_core::isa::{Access, BulkCopy, Effect, Space};
use gpumodel_core::units::{SECTOR_BYTES, to_u32, to_usize};

/// Bytes of a row that each address of a matrix load names.
const MATRIX_ROW_BYTES: u64 = 16;

/// The address unit of one SM.
#[derive(Debug)]
pub(in crate::sm) struct AddressUnit {
    sm: u16,
    /// The lanes' addresses of the instruction that issues.
    pub(in crate::sm) access: Access,
    pub(in crate::sm) shared: SharedSpec,
    pub(in crate::sm) cluster: ClusterLink,
    /// Bytes that the L1 returns per cycle.
    l1_width: u32,
    l1_by_word: bool,
    caches_global: bool,
    /// The machine has constant caches.
    caches_constants: bool,
    /// See [`crate::config::L2Spec::atomic_lanes`].
    atomic_lanes: u32,
    /// Warp slots of an SM.
    max_warps: u32,
    /// See [`crate::config::SmSpec::leaves_at_any_wait`].
    leaves_at_any_wait: bool,
    /// See [`crate::config::Quirks::accesses_null`].
    accesses_null: bool,
}

/// A memory instruction whose lanes' addresses are known.
#[derive(Clone, Copy, Debug)]
pub(in crate::sm) struct Resolved {
    pub(in crate::sm) kind: AccessKind,
    space: Space,
    /// Lanes that go to another CTA's shared memory.
    remote: u32,
    /// Its result comes after a short wait.
    pub(in crate::sm) short: bool,
}

impl AddressUnit {
    /// The unit of SM `sm` of `machine`.
    pub(in crate::sm) fn new(sm: u16, machine: &Machine) -> Self {
        Self {
            sm,
            access: Access::default(),
            shared: machine.shared.clone(),
            cluster: ClusterLink::new(machine),
            l1_width: machine.l1.banks.max(1) * to_u32(SECTOR_BYTES),
            l1_by_word: machine.l1.data == L1Data::Word,
            caches_global: machine.l1.caches_global,
            caches_constants: machine.constant.is_some(),
            atomic_lanes: machine.l2.atomic_lanes,
            max_warps: machine.sm.max_warps,
            leaves_at_any_wait: machine.sm.leaves_at_any_wait,
            accesses_null: machine.quirks.accesses_null,
        }
    }

    /// Takes the lanes' addresses of the memory instruction at the head of a warp's stream; `None`
    /// where no lane is active. `seat`: the place of the warp's CTA in a cluster.
    pub(in crate::sm) fn resolve(
        &mut self,
        warp: &mut Warp,
        kind: AccessKind,
        seat: impl FnOnce() -> Option<Seat>,
        shared_state: &mut SharedState,
    ) -> Option<Resolved> {
        let kernel = warp.kernel;
        let counts = &mut shared_state.counts[to_usize(kernel)];
        warp.stream.access(&mut self.access);
        counts.thread_instructions += u64::from(self.access.mask.count_ones());
        kind.note_null(&mut self.access, self.accesses_null, counts);
        if self.access.mask == 0 {
            return None;
        }
        let space = self.space(&kind, kernel, shared_state);
        let generic = kind.effect.space() == Some(Space::Generic) && space == Space::Shared;
        let windows = || shared_state.windows(kernel);
        let remote = if generic { remote_lanes(seat(), &self.access, &windows()) } else { 0 };
        let short = space == Space::Shared && !self.leaves_at_any_wait && remote == 0;
        Some(Resolved { kind, space, remote, short })
    }

    /// The space that the access goes to; generic addresses are classified by the
    /// launch's windows.
    fn space(&self, kind: &AccessKind, kernel: u32, shared_state: &mut SharedState) -> Space {
        let space = kind.effect.space().unwrap_or(Space::Global);
        if space != Space::Generic {
            return space;
        }
        shared_state.counts[to_usize(kernel)].generic_accesses += 1;
        let address = self.access.active().next().map_or(0, |(_, address)| address);
        shared_state.windows(kernel).generic.space_of(address)
    }

    /// The way of an access by the warp in slot `warp`, and its lines, which are put into `lines`.
    pub(in crate::sm) fn route(
        &self,
        access: &Resolved,
        warp: u16,
        lines: &mut Vec<LineRequest>,
    ) -> Route {
        let Resolved { kind, space, remote, .. } = access;
        let width = u64::from(kind.width);
        if *space == Space::Shared {
            let route = Route::Shared { passes: self.shared_passes(kind).max(1), remote: false };
            return self.cluster.crossing(route, remote.saturating_mul(kind.width));
        }
        if *space == Space::Local {
            let slot = u64::from(self.sm) * u64::from(self.max_warps) + u64::from(warp);
            interleave_local(&self.access, width, slot, lines);
        } else {
            coalesce(&self.access, width, lines);
        }
        if *space == Space::Constant && self.caches_constants {
            return Route::Constant;
        }
        let ask = request_kind(kind.effect);
        let atomic = ask.modifies();
        if atomic && self.atomic_lanes > 0 {
            take_turns(&self.access, self.atomic_lanes, lines);
        }
        let uncached = *space != Space::Local && !self.caches_global;
        let direct = atomic || kind.bypasses_l1 || uncached;
        if direct { Route::Direct(ask) } else { Route::Cached(ask) }
    }

    /// Cycles in which the data of a load come out of the L1 where it hits: passes over the banks
    /// of words, or what all lanes get at the L1's width; 0 where they come by sector.
    pub(in crate::sm) fn data_passes(&self, route: Route, access: &Resolved) -> u32 {
        if !self.l1_by_word || route != Route::Cached(RequestKind::Read) {
            return 0;
        }
        let width = access.kind.width;
        let bytes = self.access.mask.count_ones() * width;
        let wide = bytes.div_ceil(self.l1_width).max(1);
        let packed = returns_packed(&self.access, width, &self.shared);
        let wide = if packed { wide.div_ceil(2) } else { wide };
        match access.space {
            // Words of the lanes lie side by side.
            Space::Local => wide,
            Space::Global | Space::Shared | Space::Constant | Space::Texture | Space::Generic => {
                wide.max(bank_passes(&self.access, u64::from(width), &self.shared))
            }
        }
    }

    /// Cycles in which shared memory is busy with an access: passes over the banks, and of loads
    /// the way back to the registers.
    fn shared_passes(&self, kind: &AccessKind) -> u32 {
        let passes = bank_passes(&self.access, kind.shared_width(), &self.shared);
        let returns = matches!(kind.effect, Effect::Load(_)) && !kind.matrix;
        if !returns {
            return passes;
        }
        passes.max(return_cycles(&self.access, kind.width, &self.shared))
    }

    /// Counts the request of a memory instruction that has just become `operation`, where hot
    /// spots are wanted.
    #[cold]
    pub(in crate::sm) fn note_request(
        &self,
        (operation, warp): (u32, &mut Warp),
        (instruction, slot): (u32, Option<SlotId>),
        (route, width): (Route, u64),
        lines: &[LineRequest],
        shared_state: &mut SharedState,
    ) {
        let fewest = || fewest_passes(&self.access, width, &self.shared);
        let (sectors, conflicts) = match route {
            Route::Shared { passes, .. } => (0, passes.saturating_sub(fewest())),
            Route::Cached(_) | Route::Direct(_) | Route::Constant => {
                (lines.iter().map(|line| line.sectors.count_ones()).sum(), 0)
            }
        };
        if let Some(log) = &mut warp.log {
            log.access(instruction, slot);
        }
        let Some(hot) = &mut shared_state.hot else { return };
        hot.begin(self.sm, operation, instruction);
        let Some((rows, _)) = shared_state.hot_rows(warp.kernel) else { return };
        let row = &mut rows[to_usize(instruction)];
        row.requests += 1;
        row.sectors += u64::from(sectors);
        row.bank_conflict_cycles += u64::from(conflicts);
    }
}

/// The lines that a bulk copy touches, in the address space with this tag.
pub(in crate::sm) fn bulk_lines(copy: &BulkCopy, tag: u64, lines: &mut Vec<LineRequest>) {
    lines.clear();
    for &address in &copy.pieces {
        touch_in_order(address, copy.piece_bytes, lines);
    }
    if tag != 0 {
        lines.iter_mut().for_each(|line| line.line ^= tag / LINE_BYTES);
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
        | Effect::SetRegisters
        | Effect::Exit
        | Effect::Branch => RequestKind::Read,
    }
}

/// What of a decoded instruction an access needs.
#[derive(Clone, Copy, Debug)]
pub(in crate::sm) struct AccessKind {
    pub(in crate::sm) effect: Effect,
    width: u32,
    matrix: bool,
    bypasses_l1: bool,
}

impl AccessKind {
    /// That of a decoded instruction.
    #[inline]
    pub(in crate::sm) fn of(decoded: &Decoded) -> Self {
        Self {
            effect: decoded.effect,
            width: decoded.width,
            matrix: decoded.is_matrix_load,
            bypasses_l1: decoded.bypasses_l1,
        }
    }

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
    pub(in crate::sm) fn is_asynchronous(&self) -> bool {
        self.effect.is_bulk() || matches!(self.effect, Effect::Object(_))
    }

    /// Bytes that a lane reads or writes of shared memory.
    pub(in crate::sm) fn shared_width(&self) -> u64 {
        if self.matrix { MATRIX_ROW_BYTES } else { u64::from(self.width) }
    }
}
