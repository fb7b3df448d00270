//! One warp's instructions, one after the other, without any text.

use std::sync::Arc;

use gpumodel_core::isa::{Access, Segment};
use gpumodel_core::units::{Dim3, to_u32, to_usize};

use super::expression::{Lanes, Scope};
use super::program::{Action, Bounds, Guard, LOOPS, Move, Program, TRIPS};

/// A cursor over the dynamic instructions of one warp.
///
/// Used like a cursor of the trace store: [`WarpStream::next_segment`] until it
/// gives nothing; within a segment [`WarpStream::skip`] over instructions and
/// [`WarpStream::access`] at those whose width is above 0. Owns what it needs
/// and may be sent to another thread.
#[derive(Clone, Debug)]
pub struct WarpStream {
    program: Arc<Program>,
    place: Place,
    /// Lanes that have not exited.
    alive: u32,
    /// Lanes that run the current segment.
    active: u32,
    /// Branches and loops around here, innermost last.
    around: Vec<Around>,
    /// Indices of the loops around here, outermost first.
    indices: [i64; LOOPS],
    /// Loops around here.
    loops: usize,
    /// The next move.
    next: usize,
    /// What is left of the current segment.
    segment: Segment,
}

/// Which warp a stream belongs to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// The CTA's position.
    pub(super) position: Dim3,
    /// The CTA's number.
    pub(super) cta: u64,
    /// Warp in the CTA.
    pub(super) warp: u32,
    /// Launch of the kernel, from 0.
    pub(super) launch: u32,
}

/// A branch or loop that a warp is in.
#[derive(Clone, Debug)]
enum Around {
    /// The lanes that came to a branch.
    Branch(u32),
    /// The lanes that came to a loop, and how often each runs it.
    Loop(u32, Box<Lanes>),
}

impl WarpStream {
    pub(super) fn new(program: Arc<Program>, place: Place) -> Self {
        let threads = program.block.count();
        let first = u64::from(place.warp) * 32;
        let lanes = threads.saturating_sub(first).min(32);
        let alive = if lanes == 32 { u32::MAX } else { (1 << lanes) - 1 };
        Self {
            program,
            place,
            alive,
            active: alive,
            around: Vec::new(),
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
        let program = Arc::clone(&self.program);
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
                self.around.push(Around::Branch(self.active));
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
                if let Some(Around::Loop(..)) = self.around.pop() {
                    self.loops -= 1;
                }
            }
            Move::Start { count, end } => {
                let trips = count.lanes(&self.scope());
                let running = trips.mask(|trips| trips > 0);
                self.around.push(Around::Loop(self.active, Box::new(trips)));
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
        match self.around.last() {
            Some(Around::Branch(lanes) | Around::Loop(lanes, _)) => lanes & self.alive,
            None => self.alive,
        }
    }

    /// The lanes that want to run the innermost loop once more.
    fn again(&self) -> u32 {
        let Some(Around::Loop(_, trips)) = self.around.last() else { return 0 };
        let done = self.indices[self.loops - 1] + 1;
        trips.mask(|trips| trips.min(TRIPS) > done)
    }

    fn scope(&self) -> Scope<'_> {
        Scope {
            block: self.program.block,
            position: self.place.position,
            cta: self.place.cta,
            warp: self.place.warp,
            launch: self.place.launch,
            loops: &self.indices,
        }
    }

    fn action(&self) -> &Action {
        &self.program.actions[to_usize(self.segment.first)]
    }

    /// The lanes that execute the next instruction of the segment.
    ///
    /// # Panics
    /// At the end of the segment.
    #[must_use]
    pub fn mask(&self) -> u32 {
        assert!(self.segment.length > 0, "no instruction is left in the segment");
        let value = |expression: &super::expression::Expression| expression.lanes(&self.scope());
        self.active
            & match &self.action().guard {
                Guard::Active => u32::MAX,
                Guard::Holds(condition) => value(condition).mask(|value| value != 0),
                Guard::Fails(condition) => value(condition).mask(|value| value == 0),
                Guard::NoTrips(count) => value(count).mask(|count| count <= 0),
                Guard::Again => self.again(),
            }
    }

    /// Passes over `count` instructions of the segment, with or without
    /// addresses; gives their active lanes, summed.
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

    /// Where the addresses of the next instruction may lie, and its byte in the
    /// workload file.
    pub(super) fn addressed(&self) -> (Option<Bounds>, usize) {
        let action = self.action();
        (action.address.as_ref().map(|(bounds, _)| *bounds), action.at)
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
