//! Grouped text: thread blocks one after the other, their warps in them.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::store::records::{self, Batch, Block};
use gpumodel_core::units::{to_u64, to_usize};

use super::parse::{Dialect, Mark, Marked};
use crate::error::LineFault;
use crate::store::chunk_writer::{MOST_CTA_BYTES, MOST_CTA_INSTRUCTIONS};

/// Most bytes of further lines in a thread block.
const LONGEST_NOTE: usize = 1 << 16;

/// Where in the frame the text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Between thread blocks.
    Outside,
    /// After `#BEGIN_TB`.
    Begun,
    /// After `thread block =`.
    Placed,
    /// After `warp =`.
    Named(usize),
    /// After `insts =`: so many lines are to come, of so many in all.
    Counted { warp: usize, left: u64, declared: u64 },
}

/// Puts marks and records of successive pieces together.
#[derive(Debug)]
pub(crate) struct Frames {
    dialect: Dialect,
    state: State,
    block: Block,
    /// WarpRecords of the block that were named.
    named: Vec<bool>,
    instructions: usize,
    /// Bytes of the pieces with its records.
    bytes: usize,
    placed: Placed,
}

/// Linear positions that were taken, as ranges: first to end.
#[derive(Debug, Default)]
struct Placed(BTreeMap<u64, u64>);

impl Placed {
    /// Takes `linear`; false when it was taken before.
    fn take(&mut self, linear: u64) -> bool {
        if let Some((_, end)) = self.0.range_mut(..=linear).next_back() {
            if linear < *end {
                return false;
            }
            if linear == *end {
                *end += 1;
                return true;
            }
        }
        self.0.insert(linear, linear + 1);
        true
    }
}

/// A piece's records with the kernel's numbers.
#[derive(Clone, Debug)]
pub(crate) struct Numbered {
    pub(crate) batch: Arc<Batch>,
    pub(crate) numbers: Arc<Vec<u32>>,
}

impl Frames {
    /// Before the first thread block.
    pub(crate) fn new(dialect: Dialect) -> Self {
        let (state, block) = (State::Outside, Block::default());
        let (named, placed) = (Vec::new(), Placed::default());
        Self { dialect, state, block, named, instructions: 0, bytes: 0, placed }
    }

    /// Takes the next piece; returns finished thread blocks to `done`.
    ///
    /// # Errors
    /// A [`LineFault`] where the frame breaks, its line counted in the piece.
    pub(crate) fn piece(
        &mut self,
        numbered: &Numbered,
        marks: &[Marked],
        mut done: impl FnMut(Block),
    ) -> Result<(), LineFault> {
        let (mut record, mut access) = (0, 0);
        self.bytes += numbered.batch.bytes();
        for marked in marks {
            self.records(numbered, record..marked.record, access, marked.line)?;
            (record, access) = (marked.record, marked.access);
            if let Some(block) = self.mark(marked)? {
                done(block);
            }
        }
        self.records(numbered, record..numbered.batch.records.len(), access, 0)
    }

    fn records(
        &mut self,
        numbered: &Numbered,
        range: std::ops::Range<usize>,
        access: usize,
        line: u64,
    ) -> Result<(), LineFault> {
        if range.is_empty() {
            return Ok(());
        }
        let State::Counted { warp, left, declared } = self.state else {
            return Err(LineFault::new(line, self.expected(), "an instruction"));
        };
        let count = to_u64(range.len());
        self.instructions += range.len();
        let expected = if count > left {
            format!("{declared} instruction lines, as `insts` says")
        } else if self.instructions > MOST_CTA_INSTRUCTIONS {
            format!("at most {MOST_CTA_INSTRUCTIONS} instructions in a thread block")
        } else if self.bytes > MOST_CTA_BYTES {
            format!("at most {} MiB of records in a thread block", MOST_CTA_BYTES >> 20)
        } else {
            String::new()
        };
        if !expected.is_empty() {
            return Err(LineFault::new(line, expected, "more"));
        }
        self.state = State::Counted { warp, left: left - count, declared };
        self.block.warps[warp].push(records::Piece {
            batch: Arc::clone(&numbered.batch),
            numbers: Arc::clone(&numbered.numbers),
            records: range,
            access,
        });
        Ok(())
    }

    fn expected(&self) -> String {
        let text = match self.state {
            State::Outside => "`#BEGIN_TB`",
            State::Begun => "`thread block = x,y,z`",
            State::Placed => "`warp = 0`",
            State::Named(_) => "`insts = NUMBER`",
            State::Counted { left: 0, .. } => "`warp = NUMBER` or `#END_TB`",
            State::Counted { left, declared, .. } => {
                let so_far = declared - left;
                return format!("{declared} instruction lines, as `insts` says, not {so_far}");
            }
        };
        text.to_owned()
    }

    fn mark(&mut self, marked: &Marked) -> Result<Option<Block>, LineFault> {
        let between = matches!(self.state, State::Placed | State::Counted { left: 0, .. });
        match (&marked.mark, self.state) {
            (Mark::Begin, State::Outside) => self.state = State::Begun,
            (Mark::Position(_), State::Begun) => self.position(marked)?,
            (Mark::Note(text), State::Begun | State::Placed) => self.note(text, marked.line)?,
            (Mark::Warp(_), _) if between => self.warp(marked)?,
            (Mark::Instructions(declared), State::Named(warp)) => {
                self.state = State::Counted { warp, left: *declared, declared: *declared };
            }
            (Mark::End, _) if between => {
                self.state = State::Outside;
                (self.instructions, self.bytes) = (0, 0);
                return Ok(Some(std::mem::take(&mut self.block)));
            }
            _ => return Err(self.unexpected(marked)),
        }
        Ok(None)
    }

    fn unexpected(&self, marked: &Marked) -> LineFault {
        let found = match &marked.mark {
            Mark::Begin => "`#BEGIN_TB`".to_owned(),
            Mark::Position(cta) => format!("`thread block = {},{},{}`", cta.x, cta.y, cta.z),
            Mark::Warp(warp) => format!("`warp = {warp}`"),
            Mark::Instructions(count) => format!("`insts = {count}`"),
            Mark::End => "`#END_TB`".to_owned(),
            Mark::Note(text) => gpumodel_core::units::quoted(text),
            Mark::Stray => "an instruction".to_owned(),
        };
        LineFault { line: marked.line, expected: self.expected(), found }
    }

    fn position(&mut self, marked: &Marked) -> Result<(), LineFault> {
        let Mark::Position(cta) = marked.mark else { return Ok(()) };
        if !cta.inside(self.dialect.grid) {
            let expected = format!("a thread block inside the grid {}", self.dialect.grid);
            return Err(LineFault { expected, ..self.unexpected(marked) });
        }
        if !self.placed.take(cta.linear(self.dialect.grid)) {
            let expected = "every thread block once".to_owned();
            return Err(LineFault { expected, ..self.unexpected(marked) });
        }
        let warps = to_usize(self.dialect.warps_per_cta);
        self.block.position = cta;
        self.block.warps = vec![Vec::new(); warps];
        self.named = vec![false; warps];
        self.state = State::Placed;
        Ok(())
    }

    fn note(&mut self, text: &[u8], line: u64) -> Result<(), LineFault> {
        if self.block.note.len() + text.len() > LONGEST_NOTE {
            let expected = format!("at most {LONGEST_NOTE} bytes of further lines");
            return Err(LineFault::new(line, expected, "more"));
        }
        if !self.block.note.is_empty() {
            self.block.note.push(b'\n');
        }
        self.block.note.extend_from_slice(text);
        Ok(())
    }

    fn warp(&mut self, marked: &Marked) -> Result<(), LineFault> {
        let Mark::Warp(warp) = marked.mark else { return Ok(()) };
        let expected = match self.named.get_mut(to_usize(warp)) {
            None => format!("a warp below {}, as the block says", self.dialect.warps_per_cta),
            Some(named) if *named => "every warp once".to_owned(),
            Some(named) => {
                *named = true;
                self.state = State::Named(to_usize(warp));
                return Ok(());
            }
        };
        Err(LineFault { expected, ..self.unexpected(marked) })
    }

    /// Ends the text.
    ///
    /// # Errors
    /// What is missing, when the text ends inside a thread block.
    pub(crate) fn end(&self) -> Result<(), LineFault> {
        if self.state == State::Outside {
            return Ok(());
        }
        Err(LineFault::new(0, self.expected(), "the end of the file: it is cut off"))
    }
}
