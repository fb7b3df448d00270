//! One launch of a workload, its CTAs, and their warps' instructions one after the other.

use std::sync::Arc;

use gpumodel_core::isa::{Access, AsyncFields, Code, Instruction, Launch, Segment};
use gpumodel_core::units::{Dim3, to_u32, to_usize};

use super::asynchronous::{CopyBox, Fields};
use super::lane_expression::{LaneExpression, Lanes, Scope};
use super::program::{Action, Guard, LOOPS, Move, Program, TRIPS};

/// One kernel launch of a workload.
#[derive(Clone, Debug)]
pub struct Kernel {
    launch: Launch,
    program: Arc<Program>,
    /// Launch of this kernel, from 0.
    number: u32,
}

impl Kernel {
    pub(super) fn new(launch: Launch, program: Arc<Program>, number: u32) -> Self {
        Self { launch, program, number }
    }

    /// The launch, as a trace header would describe it.
    #[must_use]
    pub fn launch(&self) -> &Launch {
        &self.launch
    }

    /// The static instructions and segments.
    #[must_use]
    pub fn code(&self) -> Arc<Code> {
        Arc::clone(&self.program.code)
    }

    pub(super) fn program(&self) -> &Program {
        &self.program
    }

    /// CTAs of the grid.
    #[must_use]
    pub fn cta_count(&self) -> u64 {
        self.program.grid.count()
    }

    /// The CTA of that number, x fastest.
    ///
    /// # Panics
    /// When the grid has no such CTA.
    #[must_use]
    pub fn cta(&self, ordinal: u64) -> Cta {
        assert!(ordinal < self.cta_count(), "CTA {ordinal} of {}", self.cta_count());
        let Dim3 { x, y, .. } = self.program.grid;
        let (x, y) = (u64::from(x), u64::from(y));
        let position =
            Dim3::new(to_u32(ordinal % x), to_u32(ordinal / x % y), to_u32(ordinal / x / y));
        Cta { program: Arc::clone(&self.program), position, ordinal, launch: self.number }
    }
}

/// One CTA of a launch.
#[derive(Clone, Debug)]
pub struct Cta {
    program: Arc<Program>,
    position: Dim3,
    ordinal: u64,
    launch: u32,
}

impl Cta {
    /// Where the CTA lies in the grid.
    #[must_use]
    pub fn position(&self) -> Dim3 {
        self.position
    }

    /// Warps of the CTA.
    #[must_use]
    pub fn warp_count(&self) -> u32 {
        to_u32(self.program.block.count().div_ceil(32))
    }

    /// The instructions of one warp.
    ///
    /// # Panics
    /// When the CTA has no such warp.
    #[must_use]
    pub fn warp(&self, warp: u32) -> WarpStream {
        assert!(warp < self.warp_count(), "warp {warp} of {}", self.warp_count());
        WarpStream::new(self.clone(), warp)
    }
}

/// A cursor over the dynamic instructions of one warp.
///
/// Used like a cursor of the trace store: [`WarpStream::next_segment`] until it
/// gives nothing; within a segment [`WarpStream::skip`] over instructions and
/// [`WarpStream::access`] at those whose width is above 0. Owns what it needs
/// and may be sent to another thread.
#[derive(Clone, Debug)]
pub struct WarpStream {
    cta: Cta,
    warp: u32,
    /// Lanes that have not exited.
    alive: u32,
    /// Lanes that run the current segment.
    active: u32,
    /// Branches and loops around here, innermost last.
    enclosing: Vec<Enclosing>,
    /// Indices of the loops around here, outermost first.
    indices: [i64; LOOPS],
    /// Loops around here.
    loops: usize,
    /// The next move.
    next: usize,
    /// What is left of the current segment.
    segment: Segment,
}

/// A branch or loop that a warp is in.
#[derive(Clone, Debug)]
enum Enclosing {
    /// The lanes that came to a branch.
    Branch(u32),
    /// The lanes that came to a loop, and how often each runs it.
    Loop(u32, Box<Lanes>),
}

impl WarpStream {
    fn new(cta: Cta, warp: u32) -> Self {
        let threads = cta.program.block.count();
        let lanes = threads.saturating_sub(u64::from(warp) * 32).min(32);
        let alive = if lanes == 32 { u32::MAX } else { (1 << lanes) - 1 };
        Self {
            cta,
            warp,
            alive,
            active: alive,
            enclosing: Vec::new(),
            indices: [0; LOOPS],
            loops: 0,
            next: 0,
            segment: Segment { first: 0, length: 0 },
        }
    }

    /// The next segment of the warp's path, as an index into
    /// [`Code::segments`](gpumodel_core::isa::Code::segments); `None` at the end. What
    /// was left of the segment before is skipped.
    pub fn next_segment(&mut self) -> Option<u32> {
        if self.segment.length > 0 {
            self.skip(self.segment.length);
        }
        let program = Arc::clone(&self.cta.program);
        while let Some(step) = program.moves.get(self.next) {
            self.next += 1;
            if let Move::Segment(segment) = step {
                if self.active != 0 {
                    self.segment = program.code.segments[to_usize(*segment)];
                    return Some(*segment);
                }
            } else {
                self.make(step);
            }
        }
        None
    }

    /// Makes one move that is no segment.
    fn make(&mut self, step: &Move) {
        match step {
            Move::Segment(_) => {}
            Move::Enter { condition, otherwise } => {
                self.enclosing.push(Enclosing::Branch(self.active));
                self.active &= condition.lanes(&self.scope()).mask(|value| value != 0);
                self.leap_if_empty(*otherwise);
            }
            Move::Otherwise { condition, end } => {
                let failing = condition.lanes(&self.scope()).mask(|value| value == 0);
                self.active = self.kept() & failing;
                self.leap_if_empty(*end);
            }
            Move::Leave => {
                self.active = self.kept();
                if let Some(Enclosing::Loop(..)) = self.enclosing.pop() {
                    self.loops -= 1;
                }
            }
            Move::Start { count, end } => {
                let trips = count.lanes(&self.scope());
                let running = trips.mask(|trips| trips > 0);
                self.enclosing.push(Enclosing::Loop(self.active, Box::new(trips)));
                self.indices[self.loops] = 0;
                self.loops += 1;
                self.active &= running;
                self.leap_if_empty(*end);
            }
            Move::Back { body } => {
                self.active &= self.again();
                self.indices[self.loops - 1] += 1;
                if self.active != 0 {
                    self.next = *body;
                }
            }
        }
    }

    fn leap_if_empty(&mut self, target: usize) {
        if self.active == 0 {
            self.next = target;
        }
    }

    /// The lanes that came to the innermost branch or loop and have not exited.
    fn kept(&self) -> u32 {
        match self.enclosing.last() {
            Some(Enclosing::Branch(lanes) | Enclosing::Loop(lanes, _)) => lanes & self.alive,
            None => self.alive,
        }
    }

    /// The lanes that run the innermost loop once more.
    fn again(&self) -> u32 {
        let Some(Enclosing::Loop(_, trips)) = self.enclosing.last() else { return 0 };
        let done = self.indices[self.loops - 1] + 1;
        trips.mask(|trips| trips.min(TRIPS) > done)
    }

    fn scope(&self) -> Scope<'_> {
        Scope {
            block: self.cta.program.block,
            position: self.cta.position,
            cta: self.cta.ordinal,
            warp: self.warp,
            launch: self.cta.launch,
            loops: &self.indices,
        }
    }

    fn action(&self) -> &Action {
        &self.cta.program.actions[to_usize(self.segment.first)]
    }

    /// The lanes that execute the next instruction of the segment.
    ///
    /// # Panics
    /// At the end of the segment.
    #[must_use]
    pub fn mask(&self) -> u32 {
        assert!(self.segment.length > 0, "no instruction is left in the segment");
        let value = |expression: &LaneExpression| expression.lanes(&self.scope());
        self.active
            & match &self.action().guard {
                Guard::Active => u32::MAX,
                Guard::Holds(condition) => value(condition).mask(|value| value != 0),
                Guard::Fails(condition) => value(condition).mask(|value| value == 0),
                Guard::NoTrips(count) => value(count).mask(|count| count <= 0),
                Guard::Again => self.again(),
                Guard::First => self.active & self.active.wrapping_neg(),
            }
    }

    /// The text that a trace has of the next instruction beyond its registers, addresses and
    /// immediates; `None` where it has none. Passes over nothing.
    ///
    /// # Panics
    /// At the end of the segment.
    #[must_use]
    pub fn tail(&self) -> Option<String> {
        let fields = self.action().fields.as_ref()?;
        Some(fields.text(&self.scope(), self.first_lane(), self.instruction()))
    }

    /// What the next instruction, a bulk copy or a step at a barrier object, carries beyond its
    /// lanes. Passes over nothing.
    ///
    /// # Panics
    /// At the end of the segment.
    #[must_use]
    pub fn fields(&self) -> Option<AsyncFields> {
        let fields = self.action().fields.as_ref()?;
        fields.read(&self.tail()?, self.instruction())
    }

    /// The box of the next instruction and the addresses of its rows, if it copies one.
    pub(super) fn copy(&self) -> Option<(&CopyBox, impl Iterator<Item = u64>)> {
        match self.action().fields.as_ref()? {
            Fields::Copy(copy) => Some((copy, copy.rows(&self.scope(), self.first_lane()))),
            Fields::Group(_) | Fields::Value(_) | Fields::Arrivals(_) => None,
        }
    }

    fn instruction(&self) -> &Instruction {
        &self.cta.program.code.instructions[to_usize(self.segment.first)]
    }

    /// The lowest lane that executes the next instruction; 0 without one.
    fn first_lane(&self) -> usize {
        let mask = self.mask();
        if mask == 0 { 0 } else { to_usize(mask.trailing_zeros()) }
    }

    /// Passes over `count` instructions of the segment, with or without
    /// addresses; returns their active lanes, summed.
    ///
    /// # Panics
    /// When the segment has fewer instructions left.
    pub fn skip(&mut self, count: u32) -> u64 {
        let mut lanes = 0;
        for _ in 0..count {
            let mask = self.mask();
            lanes += u64::from(mask.count_ones());
            self.pass(mask);
        }
        lanes
    }

    /// Passes over one memory instruction and fills in its lanes and addresses,
    /// listed as the Accel-Sim tracer would.
    ///
    /// # Panics
    /// When the next instruction has width 0, or the segment is at its end.
    pub fn access(&mut self, into: &mut Access) {
        let mask = self.mask();
        let (_, address) =
            self.action().address.as_ref().expect("asked only at instructions with a width");
        let lanes = address.lanes(&self.scope()).each().map(i64::cast_unsigned);
        into.set(mask, &lanes);
        self.pass(mask);
    }

    /// Passes over one instruction that `mask` executes.
    fn pass(&mut self, mask: u32) {
        if self.action().exits {
            self.alive &= !mask;
            self.active &= !mask;
        }
        self.segment.first += 1;
        self.segment.length -= 1;
    }

    /// Instructions left in the segment.
    #[must_use]
    pub fn left(&self) -> u32 {
        to_u32(self.segment.length)
    }
}
