//! The parts of a `.tracez`, and its index, read in place.
//!
//! | part | content |
//! |---|---|
//! | header | the text of a grouped trace's header, then a NUL byte |
//! | sizes | `u32` bytes of the dictionary, `u32` instructions per sub-chunk |
//! | dictionary | of zstd, perhaps empty |
//! | payload | per warp `u32` instructions, `u32` sub-chunks, and per sub-chunk a `u32` size and one zstd frame of so many bytes: instruction lines |
//! | index | `u32` thread blocks; per block `u32` x, y, z, cluster x, y, z, place in the cluster x, y, z, rank in the cluster, warps; per warp `u32` instructions, `u32` sub-chunks, `u64` place in the file, and per sub-chunk `u32` instructions |
//! | end | `u64` place of the index |
//!
//! Little-endian, without alignment.

use std::ops::Range;

use crate::error::ByteFault;
use gpumodel_core::units::{Dim3, to_u64, to_usize};

/// Bytes of the smallest entry of a thread block.
const BLOCK_BYTES: usize = 44;
/// Bytes of the index's own place at the end.
const END_BYTES: usize = 8;

/// A `.tracez` whose parts are inside the file; what they say is not checked yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Container<'a> {
    pub(super) file: &'a [u8],
    /// The header's text, without the NUL byte.
    pub(super) header: &'a [u8],
    pub(super) dictionary: &'a [u8],
    /// Where the payload starts and ends; the index follows.
    pub(super) start: usize,
    pub(super) end: usize,
    /// Thread blocks.
    pub(super) blocks: u32,
}

/// Numbers from a place in the file on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Words<'a> {
    file: &'a [u8],
    pub(super) at: usize,
    end: usize,
    /// What the numbers belong to, for errors.
    what: &'static str,
}

/// The entry of a thread block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlockEntry {
    pub(super) position: Dim3,
    /// The cluster, the block's place and its rank in it.
    pub(super) cluster: (Dim3, Dim3, u32),
    pub(super) warps: u32,
}

/// The entry of a warp.
#[derive(Clone, Copy, Debug)]
pub(super) struct WarpEntry<'a> {
    /// Where the entry stands.
    pub(super) at: usize,
    pub(super) instructions: u32,
    pub(super) chunks: u32,
    /// Where its payload starts.
    pub(super) payload: u64,
    /// Instructions per sub-chunk.
    pub(super) counts: Words<'a>,
}

/// What the whole index says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    /// Some block says something of clusters that is not zero.
    pub(super) clustered: bool,
}

impl<'a> Container<'a> {
    /// The parts of `file`.
    ///
    /// # Errors
    /// The first part that is not inside the file.
    pub(super) fn new(file: &'a [u8]) -> Result<Self, ByteFault> {
        let nul = file.iter().position(|&byte| byte == 0);
        let nul = nul.ok_or_else(|| ByteFault::new(file.len(), "the end of the header", "none"))?;
        let last = file.len().saturating_sub(END_BYTES);
        let mut words = Words { file, at: nul + 1, end: last, what: "the dictionary's size" };
        let dictionary_bytes = to_usize(words.u32()?);
        words.u32()?;
        let dictionary = words.take(dictionary_bytes, "a dictionary")?;
        let start = words.at;
        let mut end = Words { file, at: last, end: file.len(), what: "the index's place" };
        let index = end.u64()?;
        let known = usize::try_from(index).ok().filter(|at| (start..last).contains(at));
        let Some(index) = known else {
            let expected = format!("the place of the index, from {start} to {last}");
            return Err(ByteFault::new(last, expected, index.to_string()));
        };
        let mut words = Words { file, at: index, end: last, what: "the number of blocks" };
        let blocks = words.u32()?;
        if to_usize(blocks) > (last - words.at) / BLOCK_BYTES {
            let expected = format!("thread blocks that fit into {} bytes", last - words.at);
            return Err(ByteFault::new(index, expected, blocks.to_string()));
        }
        let header = &file[..nul];
        Ok(Self { file, header, dictionary, start, end: index, blocks })
    }

    /// The index, at its first block.
    pub(super) fn index(&self) -> Words<'a> {
        let end = self.file.len() - END_BYTES;
        Words { file: self.file, at: self.end + 4, end, what: "an entry of the index" }
    }

    /// The payload from `at` on.
    pub(super) fn payload(&self, at: usize) -> Words<'a> {
        Words { file: self.file, at, end: self.end, what: "a warp's payload" }
    }

    /// Reads the whole index; no block may have more than `warps` warps.
    ///
    /// # Errors
    /// The first entry that is wrong.
    pub(super) fn check(&self, warps: u32) -> Result<Totals, ByteFault> {
        let mut words = self.index();
        let mut totals = Totals::default();
        for _ in 0..self.blocks {
            let at = words.at;
            let block = words.block()?;
            if block.warps > warps {
                let expected = format!("at most {warps} warps, as the block says");
                return Err(ByteFault::new(
                    at + BLOCK_BYTES - 4,
                    expected,
                    block.warps.to_string(),
                ));
            }
            totals.clustered |= block.cluster != (Dim3::default(), Dim3::default(), 0);
            for _ in 0..block.warps {
                let warp = words.warp()?;
                self.check_warp(&warp)?;
            }
        }
        if words.at == words.end {
            return Ok(totals);
        }
        Err(ByteFault::new(words.at, "the end of the index", format!("{} bytes", words.left())))
    }

    fn check_warp(&self, warp: &WarpEntry<'_>) -> Result<(), ByteFault> {
        let mut counts = warp.counts;
        let mut sum = 0;
        for _ in 0..warp.chunks {
            sum += u64::from(counts.u32()?);
        }
        if sum != u64::from(warp.instructions) {
            let expected = format!("{} instructions in the sub-chunks", warp.instructions);
            return Err(ByteFault::new(warp.at, expected, sum.to_string()));
        }
        let place = to_u64(self.start)..to_u64(self.end);
        if warp.chunks > 0 && !place.contains(&warp.payload) {
            let Range { start, end } = place;
            let expected = format!("a payload from {start} to {end}");
            return Err(ByteFault::new(warp.at + 8, expected, warp.payload.to_string()));
        }
        Ok(())
    }
}

impl<'a> Words<'a> {
    fn left(&self) -> usize {
        self.end.saturating_sub(self.at)
    }

    /// The next `count` bytes; `what` names them in an error.
    pub(super) fn take(&mut self, count: usize, what: &str) -> Result<&'a [u8], ByteFault> {
        if count > self.left() {
            let expected = format!("{what} of {count} bytes");
            return Err(ByteFault::new(self.at, expected, format!("{} bytes", self.left())));
        }
        let bytes = &self.file[self.at..self.at + count];
        self.at += count;
        Ok(bytes)
    }

    /// The next number of 4 bytes.
    #[inline]
    pub(super) fn u32(&mut self) -> Result<u32, ByteFault> {
        self.number().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, ByteFault> {
        self.number().map(u64::from_le_bytes)
    }

    #[inline]
    fn number<const BYTES: usize>(&mut self) -> Result<[u8; BYTES], ByteFault> {
        let rest = self.file.get(self.at..self.end).unwrap_or_default();
        let Some(bytes) = rest.first_chunk() else {
            let found = format!("{} bytes", rest.len());
            return Err(ByteFault::new(self.at, format!("{} ({BYTES} bytes)", self.what), found));
        };
        self.at += BYTES;
        Ok(*bytes)
    }

    fn position(&mut self) -> Result<Dim3, ByteFault> {
        Ok(Dim3::new(self.u32()?, self.u32()?, self.u32()?))
    }

    /// The next block's entry; those of its warps follow.
    pub(super) fn block(&mut self) -> Result<BlockEntry, ByteFault> {
        let position = self.position()?;
        let cluster = (self.position()?, self.position()?, self.u32()?);
        Ok(BlockEntry { position, cluster, warps: self.u32()? })
    }

    /// The next warp's entry.
    pub(super) fn warp(&mut self) -> Result<WarpEntry<'a>, ByteFault> {
        let at = self.at;
        let (instructions, chunks, payload) = (self.u32()?, self.u32()?, self.u64()?);
        let counts = *self;
        self.take(to_usize(chunks).saturating_mul(4), "the sub-chunks' counts")?;
        Ok(WarpEntry { at, instructions, chunks, payload, counts })
    }
}
