//! The bytes of a store, version 1. All numbers are little-endian; rows have no
//! alignment and are read in place.
//!
//! ```text
//! +--------+--------------------------+----------------+------------------+
//! | Header | chunks, tails (zstd) …   | codes (zstd) … | index            |
//! | 80 B   | in order of kernel, CTA  | after kernels  | checksummed      |
//! +--------+--------------------------+----------------+------------------+
//!   index: IndexHead | KernelRow[] | CommandRow[] | ChunkRow[] | CodeRow[] | texts (zstd)
//! ```
//!
//! | bytes | header field | meaning |
//! |---|---|---|
//! | 0-7 | magic | `gptrace\n` |
//! | 8-11 | version | 1 |
//! | 12-15 | reserved | 0 |
//! | 16-23 | file_bytes | size of the file |
//! | 24-31 | index_offset | where the index starts |
//! | 32-39 | index_bytes | its length; it ends the file |
//! | 40-47 | index_checksum | xxh3-64 of the index |
//! | 48-63 | content | xxh3-128 of the content, see below |
//! | 64-71 | source_bytes | bytes of the trace files read, as stored |
//! | 72-79 | checksum | xxh3-64 of bytes 0-71 |
//!
//! The content hash covers commands, launches, header texts, codes and chunks
//! before compression: not file names, not how the source was compressed, not
//! whether it was raw or grouped.
//!
//! A chunk holds whole CTAs, a range in file order, and is one zstd frame with
//! its own checksum; see [`super::chunk`]. A code block holds the static tables
//! of one or more launches; see [`super::dictionary`]. `texts` is one frame that
//! holds kernel names and header texts; rows name ranges of it.

use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// First bytes of every store.
pub(super) const MAGIC: [u8; 8] = *b"gptrace\n";
/// The version that this program writes and reads.
pub(super) const VERSION: u32 = 1;
/// Bytes that the header's own checksum covers.
pub(super) const HEADER_CHECKED: usize = 72;

/// Largest chunk or code block after decompression: a bound on what a damaged
/// store can make us allocate.
pub(super) const LARGEST_BLOCK: u64 = 1 << 28;
/// Most static instructions of one kernel.
pub(super) const MOST_STATICS: usize = 1 << 20;
/// Most threads of a CTA: CUDA's limit on every GPU so far (CUDA C++ Programming
/// Guide, technical specifications per compute capability).
pub(super) const MOST_THREADS: u64 = 1024;
/// Most CTAs of a grid: CUDA's own limit in x times those in y and z, rounded up.
pub(super) const MOST_CTAS: u64 = 1 << 50;

/// Bytes 0-79 of the file.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct Header {
    pub(super) magic: [u8; 8],
    pub(super) version: U32,
    pub(super) reserved: U32,
    pub(super) file_bytes: U64,
    pub(super) index_offset: U64,
    pub(super) index_bytes: U64,
    pub(super) index_checksum: U64,
    pub(super) content: [u8; 16],
    pub(super) source_bytes: U64,
    pub(super) checksum: U64,
}

/// Row counts and the size of the texts.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct IndexHead {
    pub(super) kernels: U32,
    pub(super) commands: U32,
    pub(super) chunks: U32,
    pub(super) codes: U32,
    pub(super) texts_stored: U64,
    pub(super) texts_raw: U64,
}

/// One kernel launch.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct KernelRow {
    pub(super) id: U32,
    pub(super) grid: [U32; 3],
    pub(super) block: [U32; 3],
    pub(super) shared_bytes: U32,
    pub(super) registers: U32,
    pub(super) binary_version: U32,
    pub(super) stream: U64,
    pub(super) shared_window: U64,
    pub(super) local_window: U64,
    /// Range of the texts.
    pub(super) name: [U32; 2],
    /// Range of the texts: header lines as they stood.
    pub(super) header: [U32; 2],
    /// Index of the first chunk, and how many.
    pub(super) chunks: [U32; 2],
    /// Index of the code row.
    pub(super) code: U32,
    /// CTAs in the trace, which may be fewer than the grid's.
    pub(super) ctas: U64,
    pub(super) warp_instructions: U64,
    pub(super) thread_instructions: U64,
    pub(super) memory_instructions: U64,
    /// Bytes of the decompressed trace text, and of the file as it was stored.
    pub(super) text_bytes: U64,
    pub(super) source_bytes: U64,
}

/// Kind of a row that says: the launch in `first` is known by its accesses alone.
/// A program that does not know the kind refuses the store instead of taking it for a
/// whole trace.
pub(super) const MEMORY_ONLY: u32 = 2;

/// One command of the list.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct CommandRow {
    /// 0: kernel, in `first`; 1: copy of `second` bytes to `first`; 2:
    /// [`MEMORY_ONLY`], no command.
    pub(super) kind: U32,
    pub(super) first: U64,
    pub(super) second: U64,
}

/// One chunk of a kernel.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct ChunkRow {
    pub(super) body: BlockRow,
    /// Line tails and CTA notes; all zero when there are none.
    pub(super) tails: BlockRow,
    /// Position of the first CTA in file order.
    pub(super) first_cta: U64,
    pub(super) ctas: U32,
}

/// One code block.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct CodeRow {
    pub(super) body: BlockRow,
}

/// Where a compressed block lies.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct BlockRow {
    pub(super) offset: U64,
    pub(super) stored: U32,
    pub(super) raw: U32,
    /// xxh3-64 of the stored bytes.
    pub(super) checksum: U64,
}

#[cfg(test)]
mod tests {
    use super::{BlockRow, ChunkRow, CommandRow, HEADER_CHECKED, Header, IndexHead, KernelRow};

    #[test]
    fn sizes_are_those_of_version_1() {
        assert_eq!(size_of::<Header>(), HEADER_CHECKED + 8);
        assert_eq!(size_of::<IndexHead>(), 32);
        assert_eq!(size_of::<KernelRow>(), 140);
        assert_eq!(size_of::<CommandRow>(), 20);
        assert_eq!(size_of::<BlockRow>(), 24);
        assert_eq!(size_of::<ChunkRow>(), 60);
    }
}
