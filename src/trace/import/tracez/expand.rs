//! A `.tracez` as grouped text: cut into jobs of about equal size by walking its
//! index, each then expanded on any thread.

use std::fmt::Write as _;
use std::io::{self, Cursor};

use zstd::bulk::Decompressor;
use zstd::dict::DecoderDictionary;
use zstd::zstd_safe::get_frame_content_size;

use crate::error::ByteFault;
use gpumodel_core::units::{to_u64, to_usize};

use super::container::{Container, Words};

/// A job ends when it has so many bytes of text.
const JOB_BYTES: usize = 1 << 20;
/// Most bytes of text in one frame: a bound on memory.
const LARGEST_FRAME: u64 = 16 << 20;

/// Frame lines of grouped text, or a sub-chunk.
#[derive(Debug)]
enum Part<'a> {
    Lines(String),
    Chunk {
        /// Where the frame stands in the file.
        at: usize,
        frame: &'a [u8],
        /// Bytes after decompression.
        size: usize,
    },
}

/// A part of the text that is expanded at once.
#[derive(Debug, Default)]
pub(super) struct Job<'a> {
    parts: Vec<Part<'a>>,
    /// Frame lines that are marks to a parser.
    pub(super) marks: usize,
    text_bytes: usize,
    /// Bytes of its frames in the file.
    pub(super) file_bytes: u64,
}

/// The text of a job.
#[derive(Debug, Default)]
pub(super) struct Text {
    pub(super) bytes: Vec<u8>,
    /// Where in the text sub-chunks start, and where those stand in the file.
    places: Vec<(usize, usize)>,
}

/// Expands one job after another without allocating for each.
pub(super) struct Slot<'d> {
    decoder: Decompressor<'d>,
    pub(super) text: Text,
}

impl<'d> Slot<'d> {
    /// A slot for frames of `dictionary`.
    ///
    /// # Errors
    /// When zstd has no memory left.
    pub(super) fn new(dictionary: &'d DecoderDictionary<'_>) -> io::Result<Self> {
        let decoder = Decompressor::with_prepared_dictionary(dictionary)?;
        Ok(Self { decoder, text: Text::default() })
    }
}

/// Cuts a file into jobs, in order.
#[derive(Debug)]
pub(super) struct Jobs<'a> {
    container: Container<'a>,
    clustered: bool,
    index: Words<'a>,
    /// What is left: blocks, warps of the block, sub-chunks of the warp.
    blocks: u32,
    warps: u32,
    chunks: u32,
    /// The next warp.
    warp: u32,
    /// A block has begun and not ended.
    open: bool,
    payload: Words<'a>,
    /// Bytes of payload so far.
    taken: usize,
}

impl<'a> Jobs<'a> {
    /// All of `container`, which was checked; with cluster lines if `clustered`.
    pub(super) fn new(container: Container<'a>, clustered: bool) -> Self {
        let (index, payload) = (container.index(), container.payload(container.start));
        let blocks = container.blocks;
        let (warps, chunks, warp, taken, open) = (0, 0, 0, 0, false);
        Self { container, clustered, index, blocks, warps, chunks, warp, open, payload, taken }
    }

    /// Adds the next part; false at the end.
    fn step(&mut self, job: &mut Job<'a>) -> Result<bool, ByteFault> {
        if self.chunks > 0 {
            self.chunk(job)?;
        } else if self.warps > 0 {
            self.warp(job)?;
        } else if self.open {
            self.open = false;
            job.lines("\n#END_TB\n".to_owned(), 1);
        } else if self.blocks > 0 {
            self.block(job)?;
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    fn block(&mut self, job: &mut Job<'a>) -> Result<(), ByteFault> {
        let block = self.index.block()?;
        let at = block.position;
        let mut text = format!("\n#BEGIN_TB\n\nthread block = {},{},{}\n", at.x, at.y, at.z);
        if self.clustered {
            let (id, place, rank) = block.cluster;
            let _ = writeln!(text, "cluster id = {},{},{}", id.x, id.y, id.z);
            let _ = writeln!(text, "cluster cta = {},{},{}", place.x, place.y, place.z);
            let _ = writeln!(text, "cluster rank = {rank}");
        }
        job.lines(text, if self.clustered { 5 } else { 2 });
        self.blocks -= 1;
        (self.warps, self.warp, self.open) = (block.warps, 0, true);
        Ok(())
    }

    fn warp(&mut self, job: &mut Job<'a>) -> Result<(), ByteFault> {
        let warp = self.index.warp()?;
        let number = self.warp;
        job.lines(format!("\nwarp = {number}\ninsts = {}\n", warp.instructions), 2);
        (self.warps, self.warp, self.chunks) = (self.warps - 1, number + 1, warp.chunks);
        if warp.chunks == 0 {
            return Ok(());
        }
        let at = usize::try_from(warp.payload).unwrap_or(usize::MAX);
        self.payload = self.container.payload(at);
        let said = (self.payload.u32()?, self.payload.u32()?);
        let indexed = (warp.instructions, warp.chunks);
        if said != indexed {
            let text = |(count, chunks)| format!("{count} instructions in {chunks} sub-chunks");
            let expected = format!("{}, as the index says", text(indexed));
            return Err(ByteFault::new(at, expected, text(said)));
        }
        self.taken += 8;
        Ok(())
    }

    fn chunk(&mut self, job: &mut Job<'a>) -> Result<(), ByteFault> {
        self.chunks -= 1;
        let length = to_usize(self.payload.u32()?);
        let at = self.payload.at;
        let frame = self.payload.take(length, "a zstd frame")?;
        self.taken += 4 + length;
        if self.taken > self.container.end - self.container.start {
            return Err(ByteFault::new(at, "payloads that do not overlap", "one used again"));
        }
        let size = match get_frame_content_size(frame) {
            Ok(Some(size)) if size <= LARGEST_FRAME => to_usize(size),
            Ok(Some(size)) => {
                let expected = format!("a frame of at most {LARGEST_FRAME} bytes of text");
                return Err(ByteFault::new(at, expected, size.to_string()));
            }
            Ok(None) => {
                return Err(ByteFault::new(at, "a frame that states its content's size", "none"));
            }
            Err(_) => return Err(ByteFault::new(at, "a zstd frame", "other bytes")),
        };
        job.parts.push(Part::Chunk { at, frame, size });
        job.text_bytes += size;
        job.file_bytes += to_u64(length);
        Ok(())
    }
}

impl<'a> Iterator for Jobs<'a> {
    type Item = Result<Job<'a>, ByteFault>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut job = Job::default();
        while job.text_bytes < JOB_BYTES {
            match self.step(&mut job) {
                Ok(true) => {}
                Ok(false) => break,
                Err(damage) => return Some(Err(damage)),
            }
        }
        (!job.parts.is_empty()).then_some(Ok(job))
    }
}

impl Job<'_> {
    fn lines(&mut self, text: String, marks: usize) {
        self.text_bytes += text.len();
        self.marks += marks;
        self.parts.push(Part::Lines(text));
    }

    /// Makes the text in `slot`.
    ///
    /// # Errors
    /// The first frame that is damaged.
    pub(super) fn expand(&self, slot: &mut Slot<'_>) -> Result<(), ByteFault> {
        let Slot { decoder, text } = slot;
        text.places.clear();
        text.bytes.clear();
        // One byte more per sub-chunk: its last line end may be missing.
        text.bytes.reserve(self.text_bytes + self.parts.len());
        for part in &self.parts {
            match part {
                Part::Lines(lines) => text.bytes.extend_from_slice(lines.as_bytes()),
                Part::Chunk { at, frame, size } => {
                    let from = text.bytes.len();
                    text.places.push((from, *at));
                    let mut end = Cursor::new(&mut text.bytes);
                    end.set_position(to_u64(from));
                    let made = decoder.decompress_to_buffer(frame, &mut end);
                    let made = made.map_err(|error| {
                        ByteFault::new(*at, "whole zstd data", format!("damage ({error})"))
                    })?;
                    if made != *size {
                        let expected = format!("one frame of {size} bytes of text");
                        return Err(ByteFault::new(*at, expected, format!("{made} bytes")));
                    }
                    if text.bytes.len() > from && text.bytes.last() != Some(&b'\n') {
                        text.bytes.push(b'\n');
                    }
                }
            }
        }
        Ok(())
    }
}

impl Text {
    /// Where in the file the sub-chunk of line `line` (from 0) stands; of the one
    /// before it for lines of the frame.
    pub(super) fn place(&self, line: u64) -> usize {
        let mut ends = self.bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
        let before = usize::try_from(line).unwrap_or(usize::MAX).checked_sub(1);
        let start = before.map_or(0, |before| ends.nth(before).map_or(usize::MAX, |end| end.0 + 1));
        let passed = self.places.partition_point(|&(from, _)| from <= start);
        let found = self.places.get(passed.saturating_sub(1));
        found.map_or(0, |&(_, place)| place)
    }
}
