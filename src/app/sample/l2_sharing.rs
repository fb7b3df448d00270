//! Which CTAs share sectors of the L2: one scan of the addresses of all launches.
//!
//! In a sample fewer CTAs share a sector than in the whole launch, so it would miss too often.
//! The scan (a few per cent of a run) finds for every sector the CTAs that access it. Accesses
//! that the L2 can merge, from CTAs that may be resident together or with less than the L2's
//! capacity between them, are one *generation*: one miss in the whole machine. One of its
//! accesses, drawn by a hash, owns the miss; in samples without the owner the sector is
//! presumed to hit. So a sample of a share of the CTAs gets that share of the misses.

use rustc_hash::FxHashMap;

use gpumodel_core::isa::{Access, Code, Effect, Launch, Space};
use gpumodel_core::units::{SECTOR_BYTES, to_u32, to_usize};
use gpumodel_sim::{PresumedL2Hits, Program};
use gpumodel_trace::{Cta, Store, TraceError};

use super::selection::{Draw, SETS};

/// The most pages of the table, about 3 KB each: launches over more than 640 MB run whole.
const MAX_PAGES: usize = 160 << 10;

/// Sectors of one page of the table.
const PAGE_SECTORS: u64 = 128;

/// The accesses to one sector so far.
#[derive(Clone, Copy, Debug, Default)]
struct SectorState {
    /// The last CTA that accessed it, numbered over all launches from 1.
    last: u32,
    /// When, in accesses divided by 16.
    tick: u32,
    /// The group of launches in which its generation began, and the last one that accessed it.
    first_group: u32,
    group: u32,
    /// The owner's hash and set.
    best: u32,
    owner: u8,
    /// Sets that accessed it in this group, a bit each.
    sets: u8,
    /// It is in [`SharingScan::shared`].
    listed: bool,
}

/// Sectors in the L2 by accesses from outside a group of launches or a set.
#[derive(Clone, Debug, Default)]
pub(super) struct OutsideAccesses {
    /// Those of earlier groups.
    pub(super) before: PresumedL2Hits,
    /// By set: the same, and those of CTAs outside the set.
    pub(super) sets: [PresumedL2Hits; SETS],
}

/// The scan.
#[derive(Debug)]
pub(super) struct SharingScan {
    pages: FxHashMap<u64, Box<[SectorState; 128]>>,
    /// Sectors that more than one CTA accessed in this group.
    shared: Vec<u64>,
    /// Whether the table was full.
    overflows: bool,
    outside: OutsideAccesses,
    touches: u64,
    cta: u32,
    group: u32,
    /// CTAs of the current launch that are resident at once.
    resident: u32,
    /// Accesses for which the L2 keeps a sector, divided by 16.
    kept: u32,
    /// Sectors per line of the L2.
    line: u64,
}

impl SharingScan {
    /// A scan for an L2 of `lines` lines of `line` sectors.
    pub(super) fn new(lines: u64, line: u64) -> Self {
        Self {
            pages: FxHashMap::default(),
            overflows: false,
            shared: Vec::new(),
            outside: OutsideAccesses::default(),
            touches: 0,
            cta: 0,
            group: 1,
            resident: 0,
            kept: u32::try_from(lines * line / 16).unwrap_or(u32::MAX),
            line: line.max(1),
        }
    }

    /// Whether the launches access more memory than the table covers: the result is incomplete.
    pub(super) fn overflows(&self) -> bool {
        self.overflows
    }

    /// Scans launch `kernel` of `store`, with the sets of `draw` and `resident` CTAs at once.
    ///
    /// # Errors
    /// [`TraceError::Store`] when a block is damaged.
    pub(super) fn launch(
        &mut self,
        store: &Store,
        kernel: usize,
        program: &Program,
        draw: Option<&Draw>,
        resident: u64,
    ) -> Result<(), TraceError> {
        self.resident = u32::try_from(resident).unwrap_or(u32::MAX);
        let steps: Vec<Steps> =
            (0..program.code.segments.len()).map(|s| steps(program, s)).collect();
        for ordinal in 0..program.ctas {
            let cta = store.cta(kernel, ordinal)?;
            self.cta = self.cta.saturating_add(1);
            let set = draw.map_or(0, |draw| draw.set(ordinal));
            self.add(&cta, &program.launch, &steps, set);
        }
        Ok(())
    }

    fn add(&mut self, cta: &Cta, launch: &Launch, steps: &[Steps], set: u8) {
        let mut access = Access::default();
        for warp in 0..cta.warp_count() {
            let mut cursor = cta.warp(warp);
            while let Some(segment) = cursor.next_segment() {
                for step in &steps[to_usize(segment)] {
                    cursor.skip(step.before);
                    cursor.access(&mut access);
                    let mut last = u64::MAX;
                    for (_, address) in access.active() {
                        if step.generic && in_windows(address, launch) {
                            continue;
                        }
                        let end = address.saturating_add(step.width - 1) / SECTOR_BYTES;
                        for sector in address / SECTOR_BYTES..=end {
                            if sector != last {
                                self.touch(sector, set);
                                last = sector;
                            }
                        }
                    }
                }
            }
        }
    }

    #[inline]
    fn touch(&mut self, sector: u64, set: u8) {
        let (cta, group, page) = (self.cta, self.group, sector / PAGE_SECTORS);
        if self.pages.len() >= MAX_PAGES && !self.pages.contains_key(&page) {
            self.overflows = true;
            return;
        }
        let new_page = || Box::new([SectorState::default(); 128]);
        let page = self.pages.entry(page).or_insert_with(new_page);
        let state = &mut page[to_usize(sector % PAGE_SECTORS)];
        if state.last == cta {
            return;
        }
        let tick = u32::try_from(self.touches / 16).unwrap_or(u32::MAX);
        self.touches += 1;
        // Sectors of a line that the same CTAs access have the same owner.
        let draw = access_hash(sector / self.line, cta);
        let far = cta - state.last > self.resident && tick - state.tick > self.kept;
        if state.last == 0 || far {
            if state.listed {
                record_generation(&mut self.outside, sector, state);
            }
            let fresh = SectorState { first_group: group, best: draw, ..SectorState::default() };
            *state = SectorState { owner: set, ..fresh };
        } else {
            if state.group != group {
                (state.sets, state.listed) = (0, false);
            }
            if state.first_group == group && draw < state.best {
                (state.best, state.owner) = (draw, set);
            }
            if !state.listed {
                state.listed = true;
                self.shared.push(sector);
            }
        }
        (state.last, state.tick, state.group) = (cta, tick, group);
        state.sets |= u8::try_from((1_u32 << set) & 0xff).unwrap_or(0);
    }

    /// Ends a group of launches and returns the accesses from outside it.
    pub(super) fn end_group(&mut self) -> OutsideAccesses {
        for sector in std::mem::take(&mut self.shared) {
            if let Some(page) = self.pages.get_mut(&(sector / PAGE_SECTORS)) {
                let state = &mut page[to_usize(sector % PAGE_SECTORS)];
                if state.listed {
                    record_generation(&mut self.outside, sector, state);
                    state.listed = false;
                }
            }
        }
        self.group += 1;
        std::mem::take(&mut self.outside)
    }
}

/// Records the generation of a sector for the sets that do not own its miss.
fn record_generation(outside: &mut OutsideAccesses, sector: u64, state: &SectorState) {
    if state.first_group < state.group {
        outside.before.add(sector);
    }
    for (set, presumed_l2_hits) in outside.sets.iter_mut().enumerate() {
        let touched = state.sets >> set & 1 == 1;
        if touched && (state.first_group < state.group || usize::from(state.owner) != set) {
            presumed_l2_hits.add(sector);
        }
    }
}

/// The hash of an access to a line.
fn access_hash(line: u64, cta: u32) -> u32 {
    let mixed = (line ^ u64::from(cta) << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    to_u32(mixed >> 32)
}

/// An instruction that accesses the L2.
struct Step {
    /// Instructions between the previous step and this one.
    before: u32,
    width: u64,
    generic: bool,
}

type Steps = Vec<Step>;

fn steps(program: &Program, segment: usize) -> Steps {
    let code: &Code = &program.code;
    let (mut before, mut steps) = (0, Steps::new());
    for instruction in &code.instructions[code.segments[segment].range()] {
        let effect = program.opcodes[to_usize(instruction.opcode)].effect;
        match (instruction.width, may_be_shared(effect)) {
            (1.., Some(generic)) => {
                steps.push(Step { before, width: u64::from(instruction.width), generic });
                before = 0;
            }
            _ => before += 1,
        }
    }
    steps
}

/// Whether other CTAs may access the same addresses; `Some(true)`: only addresses outside the
/// windows.
fn may_be_shared(effect: Effect) -> Option<bool> {
    match effect.space()? {
        Space::Global | Space::Texture => Some(false),
        Space::Generic => Some(true),
        Space::Shared | Space::Local | Space::Constant => None,
    }
}

fn in_windows(address: u64, launch: &Launch) -> bool {
    launch.windows().space_of(address) != Space::Global
}
