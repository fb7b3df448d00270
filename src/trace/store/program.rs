//! A kernel's static tables as cursors use them.

use std::sync::Arc;

use gpumodel_core::isa::{Code, Segment};
use gpumodel_core::units::{to_u32, to_usize};

/// The code, and where its memory instructions are.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) code: Arc<Code>,
    /// Statics with a width, ascending; a memory number is an index here.
    pub(super) memory: Vec<u32>,
    /// Per static: memory instructions before it.
    before: Vec<u32>,
}

impl Program {
    /// Indexes `code`.
    pub(super) fn new(code: Arc<Code>) -> Self {
        let mut memory = Vec::new();
        let mut before = Vec::with_capacity(code.instructions.len());
        for (number, instruction) in code.instructions.iter().enumerate() {
            before.push(to_u32(memory.len()));
            if instruction.width > 0 {
                memory.push(to_u32(number));
            }
        }
        Self { code, memory, before }
    }

    /// The segment of that number.
    pub(super) fn segment(&self, number: u32) -> Option<Segment> {
        self.code.segments.get(to_usize(number)).copied()
    }

    /// The first memory number at or after static `number`.
    pub(super) fn memory_from(&self, number: u32) -> u32 {
        self.before.get(to_usize(number)).copied().unwrap_or(to_u32(self.memory.len()))
    }
}
