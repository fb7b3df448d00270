//! The request, the progress and the report of a conversion.

use std::path::PathBuf;

use crate::filter::Filter;
use gpumodel_core::units::ByteCount;

/// Records of a raw trace that are held in memory unless a request says otherwise.
const USUAL_MEMORY: usize = 256 << 20;

/// A conversion to one store.
#[derive(Clone, Debug, Default)]
pub struct ConvertRequest {
    /// Trace folders, command lists or trace files; their commands follow each
    /// other in the store.
    pub inputs: Vec<PathBuf>,
    /// The store to write.
    pub output: PathBuf,
    /// The launches and CTAs to take.
    pub filter: Filter,
    /// How much of a raw trace's gathered records memory holds; what is beyond
    /// that goes to a temporary file in the folder of `output`. `None`: 256 MiB.
    /// The rest of the program takes some 100 MiB more, and 20 MiB per thread.
    pub memory: Option<ByteCount>,
    /// A trace file that is damaged is left out and counted, in the report and in the store,
    /// instead of ending the conversion.
    pub skip_damaged: bool,
}

impl ConvertRequest {
    /// Bytes of gathered records in memory.
    pub(super) fn memory(&self) -> usize {
        self.memory
            .map_or(USUAL_MEMORY, |ByteCount(bytes)| usize::try_from(bytes).unwrap_or(usize::MAX))
    }
}

/// Is called as a conversion, or other work that is counted, proceeds.
pub trait Progress: Sync {
    /// Work begins: the source files have `bytes` bytes in all, as they are stored.
    fn begin(&self, bytes: u64);
    /// Files of `bytes` bytes in all are read in addition.
    fn more(&self, bytes: u64);
    /// Work begins whose size is an estimate.
    fn begin_about(&self, size: u64);
    /// `bytes` more of them were read.
    fn advance(&self, bytes: u64);
}

/// The progress of one of several conversions that run at once: they add up.
#[derive(Clone, Copy)]
pub struct SharedProgress<'a>(pub &'a dyn Progress);

impl Progress for SharedProgress<'_> {
    fn begin(&self, bytes: u64) {
        self.0.more(bytes);
    }

    fn more(&self, bytes: u64) {
        self.0.more(bytes);
    }

    fn begin_about(&self, _: u64) {}

    fn advance(&self, bytes: u64) {
        self.0.advance(bytes);
    }
}

/// Progress that is not shown.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {
    fn begin(&self, _: u64) {}
    fn more(&self, _: u64) {}
    fn begin_about(&self, _: u64) {}
    fn advance(&self, _: u64) {}
}

/// What a conversion did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConvertReport {
    /// What the user should know, one sentence each.
    pub warnings: Vec<String>,
    /// Launches in the store, and those that the filters left out.
    pub kernels: usize,
    /// See [`ConvertReport::kernels`].
    pub left_out: usize,
    /// Damaged trace files that were skipped.
    pub skipped: u64,
    /// Bytes of decompressed trace text.
    pub text_bytes: u64,
    /// Bytes of the trace files as they are stored.
    pub source_bytes: u64,
    /// Bytes of the store.
    pub store_bytes: u64,
}
