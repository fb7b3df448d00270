//! Hand-made kernels as workers, for tests.

use std::sync::Arc;

use crate::config::Resolved;
use gpumodel_core::contract::{Resize, Word};
use gpumodel_core::isa::Code;
use gpumodel_core::units::to_u32;

use crate::testkit::scripted::{Line, Script, append, line, memory};
use crate::{AddedSegment, AddedSegments, Line as AddedLine, TASK_BARRIER, Worker};

impl Script {
    /// The same as workers that take `task_blocks` CTAs at a time; a task costs a barrier
    /// and, where `queued`, an addition to the queue.
    pub(crate) fn working(
        mut self,
        resolved: &Resolved,
        task_blocks: u32,
        queued: bool,
        resize: Resize,
    ) -> Self {
        let mut code = Code::clone(&self.program.code);
        let first_segment = to_u32(code.segments.len());
        let barrier = line("BAR.SYNC", None, None).immediate(TASK_BARRIER);
        let queue = [memory("ATOMG.E.ADD", Some(60), None, |_, _, _| (0, 0)).masked(1)];
        let leader: Vec<Line> = queue.into_iter().filter(|_| queued).chain([barrier]).collect();
        let mut lines = Vec::new();
        let pieces = [&leader[..], &[barrier]].map(|body| {
            let segment = append(&mut code, body);
            let piece = AddedSegment { segment, line: to_u32(lines.len()) };
            let word = |line: &Line| (line.width > 0).then_some(Word::Queue);
            lines.extend(body.iter().map(|line| AddedLine { mask: line.mask, word: word(line) }));
            Some(piece)
        });
        let [leader, others] = pieces;
        self.worker = Some(Arc::new(Worker {
            task_blocks,
            resize,
            compile_cycles: 0,
            call_cycles: 0,
            first_segment,
            arrive: AddedSegments::default(),
            task: AddedSegments { leader, others },
            block: None,
            leave: AddedSegments::default(),
            lines,
        }));
        let resolve = |text: &String| resolved.isa.opcode(&resolved.machine, text);
        self.program.opcodes = code.opcodes.iter().map(resolve).collect();
        self.program.code = Arc::new(code);
        self
    }
}
