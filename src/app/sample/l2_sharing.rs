//! Who shares which sectors: one walk over the addresses of all launches.
//!
//! A sample sees fewer CTAs share a sector than the whole launch does, and would
//! miss it too often. The walk (a few per cent of a run) counts for every sector
//! which CTAs touch it. The touches that the L2 can join, those of CTAs that may
//! be resident together or with less than the L2's capacity between them, are one
//! *generation*: one miss in the whole machine. One of its touches, drawn by a
//! hash, owns the miss; for samples without the owner the sector is presumed to hit.
//! So a sample of a share of the CTAs gets that share of the misses.

use rustc_hash::FxHashMap;

use gpumodel_core::isa::{Access, Code, Effect, Launch, Space};
use gpumodel_core::units::{SECTOR_BYTES, to_u32, to_usize};
use gpumodel_sim::{PresumedL2Hits, Program};
use gpumodel_trace::{Cta, Store, TraceError};

use super::selection::{Draw, SETS};

/// Sectors of one page of the table.
/// Pages that a walk keeps, about 3 KB each: launches over more than 640 MB run whole.
const MAX_PAGES: usize = 160 << 10;

const PAGE_SECTORS: u64 = 128;

/// Bytes of the windows of shared and local memory in generic addresses.
const WINDOW_BYTES: u64 = 16 << 20;

/// What is known of one sector.
#[derive(Clone, Copy, Debug, Default)]
struct SectorState {
    /// Number of the CTA that touched it last, over all launches, from 1.
    last: u32,
    /// When, in touches over 16.
    tick: u32,
    /// Stretch in which its generation began, and the last that touched it.
    first_group: u32,
    group: u32,
    /// The owner's draw, and the owner's set.
    best: u32,
    owner: u8,
    /// Sets that touched it in this stretch, a bit each.
    sets: u8,
    /// It is among [`SharingScan::shared`].
    listed: bool,
}

/// What a stretch needs of the rest.
#[derive(Clone, Debug, Default)]
pub(super) struct OutsideAccesses {
    /// What earlier stretches left.
    pub(super) before: PresumedL2Hits,
    /// By set: the same, and what CTAs outside the set bring.
    pub(super) sets: [PresumedL2Hits; SETS],
}

/// The walk.
#[derive(Debug)]
pub(super) struct SharingScan {
    pages: FxHashMap<u64, Box<[SectorState; 128]>>,
    /// Sectors that more than one CTA touched, in this stretch.
    shared: Vec<u64>,
    /// More pages were touched than it keeps.
    overflows: bool,
    outside: OutsideAccesses,
    touches: u64,
    cta: u32,
    group: u32,
    /// CTAs of the current launch that are resident together.
    resident: u32,
    /// Touches within which the L2 keeps a sector, over 16.
    kept: u32,
    /// Sectors of a line of the L2.
    line: u64,
}

impl SharingScan {
    /// A walk for an L2 of `lines` lines of `line` sectors.
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

    /// True when more pages were touched than a walk keeps: what it says is not
    /// the whole truth.
    pub(super) fn overflows(&self) -> bool {
        self.overflows
    }

    /// Walks over launch `kernel` of `store`, of which `draw` takes CTAs and
    /// `resident` CTAs run at once.
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
        let Self { pages, cta, group, .. } = self;
        if pages.len() >= MAX_PAGES && !pages.contains_key(&(sector / PAGE_SECTORS)) {
            self.overflows = true;
            return;
        }
        let page = pages
            .entry(sector / PAGE_SECTORS)
            .or_insert_with(|| Box::new([SectorState::default(); 128]));
        let state = &mut page[to_usize(sector % PAGE_SECTORS)];
        if state.last == *cta {
            return;
        }
        let tick = u32::try_from(self.touches / 16).unwrap_or(u32::MAX);
        self.touches += 1;
        let (cta, group) = (*cta, *group);
        // Sectors of a line that the same CTAs touch have the same owner.
        let draw = mix(sector / self.line, cta);
        let far = cta - state.last > self.resident && tick - state.tick > self.kept;
        if state.last == 0 || far {
            if state.listed {
                record_generation(&mut self.outside, sector, state);
            }
            *state = SectorState {
                first_group: group,
                best: draw,
                owner: set,
                ..SectorState::default()
            };
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

    /// Ends a stretch: what it needs of the rest.
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

/// Puts a sector's generation where it belongs.
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

/// A number drawn for the touch of a line.
fn mix(line: u64, cta: u32) -> u32 {
    let mixed = (line ^ u64::from(cta) << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    to_u32(mixed >> 32)
}

/// One instruction that goes through the L2.
struct Step {
    /// Instructions of the segment before it, behind the last such.
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

/// Whether addresses may be those of other CTAs too; `Some(true)`: where they are
/// outside the windows.
fn may_be_shared(effect: Effect) -> Option<bool> {
    match effect.space()? {
        Space::Global | Space::Texture => Some(false),
        Space::Generic => Some(true),
        Space::Shared | Space::Local | Space::Constant => None,
    }
}

fn in_windows(address: u64, launch: &Launch) -> bool {
    [launch.shared_window, launch.local_window]
        .iter()
        .any(|&start| start != 0 && (start..start.saturating_add(WINDOW_BYTES)).contains(&address))
}
