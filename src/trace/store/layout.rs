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
//! | 12-15 | source_name | bytes of the source's name, which ends `texts`; 0: it has none |
//! | 16-23 | file_bytes | size of the file |
//! | 24-31 | index_offset | where the index starts |
//! | 32-39 | index_bytes | its length; it ends the file |
//! | 40-47 | index_checksum | xxh3-64 of the index |
//! | 48-63 | content | xxh3-128 of the content, see below |
//! | 64-71 | source_bytes | bytes of the trace files read, as stored |
//! | 72-79 | checksum | xxh3-64 of bytes 0-71 |
//!
//! The content hash covers commands, launches, header texts, codes and chunks
//! before compression: not file names or the source's name, not how the source was compressed, not
//! whether it was raw or grouped.
//!
//! A chunk holds whole CTAs, a range in file order, and is one zstd frame with
//! its own checksum; see [`super::chunk`]. A code block holds the static tables
//! of one or more launches; see [`super::code`]. `texts` is one frame that
//! holds kernel names and header texts, of which rows name ranges, and the source's name.

use gpumodel_core::memory_copy::CopyDirection;
use gpumodel_core::units::{Dim3, to_u32};
use xxhash_rust::xxh3::{Xxh3, xxh3_64, xxh3_128};
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// First bytes of every store.
pub(crate) const MAGIC: [u8; 8] = *b"gptrace\n";
/// The version that this program writes and reads.
pub(crate) const VERSION: u32 = 1;
/// Bytes that the header's own checksum covers.
pub(crate) const HEADER_CHECKED: usize = 72;

/// Largest chunk or code block after decompression: a bound on what a damaged
/// store can make us allocate.
pub(crate) const LARGEST_BLOCK: u64 = 1 << 28;
/// Most static instructions of one kernel.
pub(crate) const MOST_STATICS: usize = 1 << 20;
/// Most threads of a CTA: CUDA's limit on every GPU so far (CUDA C++ Programming
/// Guide, technical specifications per compute capability).
pub(crate) const MOST_THREADS: u64 = 1024;
/// Most CTAs of a grid: CUDA's own limit in x times those in y and z, rounded up.
pub(crate) const MOST_CTAS: u64 = 1 << 50;

/// Bytes 0-79 of the file.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct Header {
    pub(crate) magic: [u8; 8],
    pub(crate) version: U32,
    /// 0 in stores that were made before names were kept.
    pub(crate) source_name: U32,
    pub(crate) file_bytes: U64,
    pub(crate) index_offset: U64,
    pub(crate) index_bytes: U64,
    pub(crate) index_checksum: U64,
    pub(crate) content: [u8; 16],
    pub(crate) source_bytes: U64,
    pub(crate) checksum: U64,
}

/// Row counts and the size of the texts.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct IndexHead {
    pub(crate) kernels: U32,
    pub(crate) commands: U32,
    pub(crate) chunks: U32,
    pub(crate) codes: U32,
    pub(crate) texts_stored: U64,
    pub(crate) texts_raw: U64,
}

/// One kernel launch.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct KernelRow {
    pub(crate) id: U32,
    pub(crate) grid: [U32; 3],
    pub(crate) block: [U32; 3],
    pub(crate) shared_bytes: U32,
    pub(crate) registers: U32,
    pub(crate) binary_version: U32,
    pub(crate) stream: U64,
    pub(crate) shared_window: U64,
    pub(crate) local_window: U64,
    /// Range of the texts.
    pub(crate) name: [U32; 2],
    /// Range of the texts: header lines verbatim.
    pub(crate) header: [U32; 2],
    /// Index of the first chunk, and how many.
    pub(crate) chunks: [U32; 2],
    /// Index of the code row.
    pub(crate) code: U32,
    /// CTAs in the trace, which may be fewer than the grid's.
    pub(crate) ctas: U64,
    pub(crate) warp_instructions: U64,
    pub(crate) thread_instructions: U64,
    pub(crate) memory_instructions: U64,
    /// Bytes of the decompressed trace text, and of the file as it was stored.
    pub(crate) text_bytes: U64,
    pub(crate) source_bytes: U64,
}

/// Kind of a row that says: the launch in `first` has its accesses only.
/// A program that does not know the kind refuses the store instead of taking it for a
/// whole trace.
pub(crate) const MEMORY_ONLY: u32 = 2;

/// Kind of a row that says: `first` damaged trace files were skipped. A program that does
/// not know the kind refuses the store, as for [`MEMORY_ONLY`].
pub(crate) const SKIPPED: u32 = 3;

/// Kind of a row that says: the copy in the next row is asynchronous, in the stream in `first`.
/// Programs that do not know it, or the kinds of copies behind it, refuse the store.
pub(crate) const COPY_STREAM: u32 = 4;

/// Kind of a row that says: the launch in `first` has clusters of so many CTAs, 16 bits each for
/// x, y and z in `second`. Programs that do not know it refuse the store: to them the CTAs
/// would not start together.
pub(crate) const CLUSTER: u32 = 7;

/// Most CTAs of a cluster in one direction that a row can say.
const MOST_CLUSTER: u32 = 0xffff;

/// The second number of a [`CLUSTER`] row; `None`: the launch has no clusters, or larger ones than
/// any GPU.
pub(crate) fn packed_cluster(cluster: Dim3) -> Option<u64> {
    let parts = [cluster.x, cluster.y, cluster.z];
    let fits = parts.iter().all(|part| (1..=MOST_CLUSTER).contains(part));
    let [x, y, z] = parts.map(u64::from);
    (fits && cluster.count() > 1).then_some(x | y << 16 | z << 32)
}

/// The cluster of a [`CLUSTER`] row.
pub(crate) fn unpacked_cluster(second: u64) -> Dim3 {
    let [x, y, z] = [0, 16, 32].map(|shift| to_u32(second >> shift & u64::from(MOST_CLUSTER)));
    Dim3::new(x, y, z)
}

/// Kinds of rows that are copies.
const COPIES: [(u32, CopyDirection); 3] = [
    (1, CopyDirection::HostToDevice),
    (5, CopyDirection::DeviceToHost),
    (6, CopyDirection::DeviceToDevice),
];

/// The direction of the copies of a kind of row; `None`: they are none.
pub(crate) fn copy_direction(kind: u32) -> Option<CopyDirection> {
    COPIES.iter().find(|row| row.0 == kind).map(|row| row.1)
}

/// The kind of row of the copies of a direction.
pub(crate) fn copy_kind(direction: CopyDirection) -> u32 {
    COPIES.iter().find(|row| row.1 == direction).map_or(1, |row| row.0)
}

/// One command of the list.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct CommandRow {
    /// 0: kernel, in `first`; 1, 5 and 6: copies of `second` bytes to `first`, to the host, and
    /// within the device; 2: [`MEMORY_ONLY`], 3: [`SKIPPED`], 4: [`COPY_STREAM`] and 7: [`CLUSTER`],
    /// no commands.
    pub(crate) kind: U32,
    pub(crate) first: U64,
    pub(crate) second: U64,
}

/// One chunk of a kernel.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct ChunkRow {
    pub(crate) body: BlockRow,
    /// Line tails and CTA notes; all zero when there are none.
    pub(crate) tails: BlockRow,
    /// Position of the first CTA in file order.
    pub(crate) first_cta: U64,
    pub(crate) ctas: U32,
}

/// One code block.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct CodeRow {
    pub(crate) body: BlockRow,
}

/// Where a compressed block lies.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct BlockRow {
    pub(crate) offset: U64,
    pub(crate) stored: U32,
    pub(crate) raw: U32,
    /// xxh3-64 of the stored bytes.
    pub(crate) checksum: U64,
}

/// The hash of a store's content so far, fed in order: per kernel its launch, name, header
/// text, chunks and code, then the commands. The writer and the verifier share it.
#[derive(Clone)]
pub(super) struct Content(Xxh3);

impl std::fmt::Debug for Content {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Content")
    }
}

impl Content {
    pub(super) fn new() -> Self {
        Self(Xxh3::new())
    }

    /// A kernel's launch, name and header; its blocks follow.
    pub(super) fn kernel(&mut self, row: &KernelRow, name: &[u8], header: &[u8]) {
        self.block(row.id.as_bytes());
        self.block(row.grid.as_bytes());
        self.block(row.block.as_bytes());
        self.block(name);
        self.block(header);
    }

    /// A chunk, its tails or a code block, before compression.
    pub(super) fn block(&mut self, raw: &[u8]) {
        self.digest(xxh3_128(raw));
    }

    /// A block by its own hash.
    pub(super) fn digest(&mut self, hash: u128) {
        self.0.update(&hash.to_le_bytes());
    }

    /// The commands, and the end.
    pub(super) fn finish(mut self, commands: &[CommandRow]) -> [u8; 16] {
        self.block(commands.as_bytes());
        self.0.digest128().to_le_bytes()
    }
}

/// The checksum of a block as stored.
pub(super) fn checksum(bytes: &[u8]) -> u64 {
    xxh3_64(bytes)
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
