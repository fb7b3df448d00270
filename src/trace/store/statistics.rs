//! Sums over a kernel's records: instruction mix and global footprint.

use std::collections::{BTreeMap, HashMap};

use gpumodel_core::isa::{Access, Code, Launch, Space};
use gpumodel_core::units::{to_u64, to_usize};

use super::cursor::{Cta, WarpCursor};
use super::reader::Store;
use crate::error::TraceError;

/// Bytes of a line and of a page, as footprints count them.
const LINE_BYTES: u64 = 128;
const PAGE_BYTES: u64 = 4096;
/// Opcode roots (the part before the first dot) whose addresses are global (CUDA
/// Binary Utilities, instruction set reference).
const GLOBAL: &[&str] = &["LDG", "STG", "LDGSTS", "ATOMG", "RED", "REDG"];
/// Roots with generic addresses: global outside the two windows.
const GENERIC: &[&str] = &["LD", "ST", "ATOM"];

/// Sums over the records of one or more kernels.
#[derive(Clone, Debug, Default)]
pub struct TraceStatistics {
    /// Warp instructions by opcode root.
    pub mix: BTreeMap<String, u64>,
    /// Warp instructions with fields that are kept as text
    /// only ([`gpumodel_core::isa::Instruction::is_open`]).
    pub open: u64,
    /// Global memory touched: per 4 KiB page its 128-byte lines, as bits.
    pages: HashMap<u64, u32>,
    lines: u64,
}

/// Where the addresses of an instruction point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    Elsewhere,
    Global,
    Generic,
}

/// One segment: per memory instruction the instructions before it, where its
/// addresses point, and its width.
type Steps = Vec<(u32, Reach, u64)>;

impl TraceStatistics {
    /// Distinct 128-byte lines of global memory that active lanes touch.
    #[must_use]
    pub fn lines(&self) -> u64 {
        self.lines
    }

    /// Distinct 4 KiB pages of global memory that active lanes touch.
    #[must_use]
    pub fn pages(&self) -> u64 {
        to_u64(self.pages.len())
    }

    /// Opcode roots by falling count, names breaking ties.
    #[must_use]
    pub fn ranked(&self) -> Vec<(&str, u64)> {
        let mut all: Vec<(&str, u64)> = self.mix.iter().map(|(k, v)| (k.as_str(), *v)).collect();
        all.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
        all
    }

    /// Adds what `other` holds.
    pub fn merge(&mut self, other: Self) {
        for (opcode, count) in other.mix {
            *self.mix.entry(opcode).or_default() += count;
        }
        self.open += other.open;
        #[allow(clippy::iter_over_hash_type)] // sums do not depend on the order
        for (page, lines) in other.pages {
            let known = self.pages.entry(page).or_default();
            self.lines += u64::from((lines & !*known).count_ones());
            *known |= lines;
        }
    }

    /// Adds all records of the launch `kernel` of `store`.
    ///
    /// # Errors
    /// [`TraceError::Store`] when a block is damaged.
    ///
    /// # Panics
    /// When `kernel` is not below the store's count.
    pub fn add(&mut self, store: &Store, kernel: usize) -> Result<(), TraceError> {
        let code = store.code(kernel)?;
        let launch = store.kernel(kernel).launch();
        let steps: Vec<Steps> = (0..code.segments.len()).map(|s| steps(&code, s)).collect();
        let mut executed = vec![0_u64; code.segments.len()];
        for ordinal in 0..store.kernel(kernel).cta_count() {
            let cta = store.cta(kernel, ordinal)?;
            self.add_cta(&cta, &launch, &steps, &mut executed);
        }
        for (segment, count) in code.segments.iter().zip(executed) {
            for instruction in &code.instructions[segment.range()] {
                *self.mix.entry(root(&code, instruction.opcode).to_owned()).or_default() += count;
                self.open += if instruction.is_open() { count } else { 0 };
            }
        }
        Ok(())
    }

    fn add_cta(&mut self, cta: &Cta, launch: &Launch, steps: &[Steps], executed: &mut [u64]) {
        let mut access = Access::default();
        for warp in 0..cta.warp_count() {
            let mut cursor = cta.warp(warp);
            while let Some(segment) = cursor.next_segment() {
                let segment = to_usize(segment);
                executed[segment] += 1;
                self.add_segment(&mut cursor, &steps[segment], launch, &mut access);
            }
        }
    }

    fn add_segment(
        &mut self,
        cursor: &mut WarpCursor,
        steps: &Steps,
        launch: &Launch,
        access: &mut Access,
    ) {
        for &(before, reach, width) in steps {
            cursor.skip(before);
            if reach == Reach::Elsewhere {
                cursor.skip(1);
                continue;
            }
            cursor.access(access);
            for (_, address) in access.active() {
                if reach == Reach::Global || !in_windows(address, launch) {
                    self.touch(address);
                    self.touch(address.saturating_add(width - 1));
                }
            }
        }
    }

    fn touch(&mut self, address: u64) {
        let bit = 1 << (address % PAGE_BYTES / LINE_BYTES);
        let page = self.pages.entry(address / PAGE_BYTES).or_default();
        self.lines += u64::from(*page & bit == 0);
        *page |= bit;
    }
}

fn in_windows(address: u64, launch: &Launch) -> bool {
    launch.windows().space_of(address) != Space::Global
}

/// The part of an opcode before the first dot.
fn root(code: &Code, opcode: u32) -> &str {
    let text = &code.opcodes[to_usize(opcode)];
    text.split('.').next().unwrap_or(text)
}

fn steps(code: &Code, segment: usize) -> Steps {
    let mut before = 0;
    let mut steps = Steps::new();
    for instruction in &code.instructions[code.segments[segment].range()] {
        if instruction.width == 0 {
            before += 1;
            continue;
        }
        let root = root(code, instruction.opcode);
        let reach = match root {
            _ if GLOBAL.contains(&root) => Reach::Global,
            _ if GENERIC.contains(&root) => Reach::Generic,
            _ => Reach::Elsewhere,
        };
        steps.push((before, reach, u64::from(instruction.width)));
        before = 0;
    }
    steps
}
