//! A store opened for reading: shared by threads, random access by CTA.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use gpumodel_core::isa::{Code, Launch};
use gpumodel_core::memory_copy::MemoryCopy;
use gpumodel_core::units::{Dim3, to_u32, to_u64, to_usize};

use super::chunk::{Chunk, ChunkCache, Frame};
use super::code::{self, Program};
use super::cursor::Cta;
use super::file::StoreFile;
use super::index::{self, Index};
use super::layout::{
    CLUSTER, COPY_STREAM, ChunkRow, Content, MAGIC, MEMORY_ONLY, SKIPPED, copy_direction,
    unpacked_cluster,
};
use super::summary::{self, KernelSummary, Selection};
use super::trailing_fields::{self, CtaTrailingFields};
use crate::error::{ByteFault, TraceError};
use crate::filter::Filter;

/// One command of an application, in API order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// A copy between host and device, or within the device.
    Copy(MemoryCopy),
    /// The launch of the kernel with this index in the store.
    Kernel(usize),
}

/// An application's trace, read block by block as it is needed. A file that is cut or
/// written over meanwhile gives errors.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    file: StoreFile,
    index: Index,
    programs: Vec<OnceLock<Arc<Program>>>,
    cache: ChunkCache,
    /// The tails of the chunk that was asked for last, and its number.
    last_tails: Mutex<Option<(u32, Arc<Vec<CtaTrailingFields>>)>>,
    /// By kernel whether it is memory-only.
    memory_only: Vec<bool>,
    /// Of launches with clusters: the CTAs of one.
    clusters: BTreeMap<usize, Dim3>,
    /// By kernel the CTAs that are shown; empty: all of every kernel.
    selections: Vec<Option<Selection>>,
}

impl Store {
    /// Opens the store at `path`: reads and checks its header and index.
    /// Chunks are checked when they are first used.
    ///
    /// # Errors
    /// [`TraceError::Io`] when the file cannot be read, [`TraceError::Store`]
    /// when it is not a store of this version or its index is damaged.
    pub fn open(path: &Path) -> Result<Self, TraceError> {
        let file = StoreFile::open(path).map_err(|e| TraceError::io("read", path, e))?;
        let index = Index::open(path, &file)?;
        let programs = index.codes().iter().map(|_| OnceLock::new()).collect();
        let mut memory_only = vec![false; index.kernels().len()];
        for row in index.commands().iter().filter(|row| row.kind == MEMORY_ONLY) {
            memory_only[to_usize(row.first.get())] = true;
        }
        let mut clusters = BTreeMap::new();
        for row in index.commands().iter().filter(|row| row.kind == CLUSTER) {
            clusters.insert(to_usize(row.first.get()), unpacked_cluster(row.second.get()));
        }
        let (path, cache, selections) = (path.to_path_buf(), ChunkCache::default(), Vec::new());
        let last_tails = Mutex::new(None);
        Ok(Self {
            path,
            file,
            index,
            programs,
            cache,
            last_tails,
            memory_only,
            clusters,
            selections,
        })
    }

    /// True when the file at `path` starts as a store does.
    #[must_use]
    pub fn recognise(path: &Path) -> bool {
        StoreFile::open(path)
            .is_ok_and(|file| file.read(0, to_u64(MAGIC.len())).is_ok_and(|start| start == MAGIC))
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The name of what it was made from, as [`source_name`](crate::source_name) gives it;
    /// `None`: it was made from several files, from a workload model, or before names were kept.
    #[must_use]
    pub fn source_name(&self) -> Option<&str> {
        self.index.source_name()
    }

    /// Bytes of the file.
    #[must_use]
    pub fn file_bytes(&self) -> u64 {
        self.file.bytes
    }

    /// 32 hex digits; equal for equal content, independent of the source's file names
    /// and compression, and of whether it was raw or grouped.
    #[must_use]
    pub fn content_hash(&self) -> String {
        self.index.header.content.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The commands in list order.
    pub fn commands(&self) -> impl Iterator<Item = Command> + '_ {
        let mut stream = None;
        self.index.commands().iter().filter_map(move |row| match row.kind.get() {
            0 => Some(Command::Kernel(to_usize(row.first.get()))),
            COPY_STREAM => {
                stream = Some(row.first.get());
                None
            }
            kind => {
                let direction = copy_direction(kind)?;
                let (address, bytes) = (row.first.get(), row.second.get());
                let stream = stream.take();
                Some(Command::Copy(MemoryCopy { direction, address, bytes, stream }))
            }
        })
    }

    /// Damaged trace files that were skipped when it was made
    /// ([`ConvertRequest::skip_damaged`](crate::ConvertRequest::skip_damaged)).
    #[must_use]
    pub fn skipped_files(&self) -> u64 {
        let skipped = self.index.commands().iter().filter(|row| row.kind == SKIPPED);
        skipped.fold(0, |sum, row| sum.saturating_add(row.first.get()))
    }

    /// How many kernel launches there are.
    #[must_use]
    pub fn kernel_count(&self) -> usize {
        self.index.kernels().len()
    }

    /// The launch with index `kernel`.
    ///
    /// # Panics
    /// When `kernel` is not below [`Store::kernel_count`].
    #[must_use]
    pub fn kernel(&self, kernel: usize) -> KernelSummary<'_> {
        let row = &self.index.kernels()[kernel];
        let chunks = self.index.chunks_of(row).1;
        let name = self.index.text(row.name);
        let selection = self.selection(kernel);
        let memory_only = self.memory_only[kernel];
        let header = self.index.text(row.header);
        let cluster = self.clusters.get(&kernel).copied().unwrap_or_default();
        KernelSummary { row, chunks, name, header, memory_only, cluster, selection }
    }

    /// The static tables of a launch; launches with equal code share them.
    ///
    /// # Errors
    /// [`TraceError::Store`] when the code block is damaged.
    ///
    /// # Panics
    /// When `kernel` is not below [`Store::kernel_count`].
    pub fn code(&self, kernel: usize) -> Result<Arc<Code>, TraceError> {
        Ok(Arc::clone(&self.program(kernel)?.code))
    }

    fn program(&self, kernel: usize) -> Result<&Arc<Program>, TraceError> {
        let number = to_usize(self.index.kernels()[kernel].code.get());
        let place = &self.programs[number];
        if let Some(program) = place.get() {
            return Ok(program);
        }
        let row = self.index.codes()[number].body;
        let code = self.file.block(&row).and_then(|raw| code::read(&raw));
        let code = code.map_err(|fault| fault.in_store(&self.path, row.offset.get()))?;
        Ok(place.get_or_init(|| Arc::new(Program::new(Arc::new(code)))))
    }

    /// Shows from now on only those CTAs of the launches taken by `filter` that it
    /// takes too: counts, ordinals and CTAs are then those of a trace without the
    /// others. Sizes, content hash and [`Store::verify`] stay those of the file.
    /// Returns what the user should know about it.
    ///
    /// # Errors
    /// [`TraceError::Request`] when `filter` takes nothing of a store that has
    /// something, [`TraceError::Store`] when a block is damaged.
    pub fn narrow(&mut self, filter: &Filter) -> Result<Vec<String>, TraceError> {
        let kernels = 0..self.kernel_count();
        let launches: Vec<Launch> = kernels.map(|kernel| self.kernel(kernel).launch()).collect();
        let taken = (0..launches.len()).filter(|&kernel| filter.takes(&launches[kernel]));
        let taken: Vec<usize> = taken.collect();
        let ctas = |store: &Self| taken.iter().map(|&k| store.kernel(k).cta_count()).sum::<u64>();
        let all = ctas(self);
        self.select(filter)?;
        let some = ctas(self);
        if !launches.is_empty() && (taken.is_empty() || (some == 0 && all > 0)) {
            return Err(TraceError::Request(filter.nothing(launches)));
        }
        let ids: Vec<u32> = taken.iter().map(|&kernel| launches[kernel].id).collect();
        let mut remarks: Vec<String> = filter.missing(&ids).into_iter().collect();
        if taken.len() < launches.len() {
            let (some, all) = (taken.len(), launches.len());
            remarks.push(format!("{filter} takes {some} of {all} launches"));
        }
        if let Some(ctas) = &filter.ctas {
            remarks.push(format!(
                "--ctas {ctas} takes {some} of {all} traced CTAs: counts and times are those of \
                 this part"
            ));
        }
        Ok(remarks)
    }

    fn select(&mut self, filter: &Filter) -> Result<(), TraceError> {
        let Some(choice) = &filter.ctas else { return Ok(()) };
        self.selections.clear();
        let mut selections = Vec::with_capacity(self.kernel_count());
        for kernel in 0..self.kernel_count() {
            let summary = self.kernel(kernel);
            let launch = summary.launch();
            if !filter.takes(&launch) {
                selections.push(None);
                continue;
            }
            let memory = summary::memory_counts(&self.program(kernel)?.code);
            let mut selection = Selection::default();
            let end = choice.first().unwrap_or(u64::MAX).min(summary.cta_count());
            for ordinal in 0..end {
                let cta = self.cta(kernel, ordinal)?;
                if choice.contains(cta.position.linear(launch.grid)) {
                    selection.add(ordinal, &cta, &memory);
                }
            }
            selections.push(Some(selection));
        }
        self.selections = selections;
        Ok(())
    }

    fn selection(&self, kernel: usize) -> Option<&Selection> {
        self.selections.get(kernel)?.as_ref()
    }

    /// The linear positions in the grid of a launch's CTAs, as ranges of first and
    /// last, in file order.
    ///
    /// # Errors
    /// [`TraceError::Store`] when a block is damaged.
    ///
    /// # Panics
    /// When `kernel` is not below [`Store::kernel_count`].
    pub fn cta_ranges(&self, kernel: usize) -> Result<Vec<[u64; 2]>, TraceError> {
        let summary = self.kernel(kernel);
        let grid = summary.launch().grid;
        let ordinals = 0..summary.cta_count();
        let positions: Result<Vec<u64>, TraceError> =
            ordinals.map(|one| Ok(self.cta(kernel, one)?.position.linear(grid))).collect();
        Ok(summary::ranges(positions?.into_iter()))
    }

    /// The CTA at position `ordinal` in file order, from 0.
    ///
    /// # Errors
    /// [`TraceError::Store`] when its chunk is damaged.
    ///
    /// # Panics
    /// When `kernel` or `ordinal` is not below its count.
    pub fn cta(&self, kernel: usize, ordinal: u64) -> Result<Cta, TraceError> {
        let (number, row, index) = self.locate(kernel, ordinal);
        let program = Arc::clone(self.program(kernel)?);
        let chunk = match self.cache.get(number) {
            Some(chunk) => chunk,
            None => self.cache.put(number, self.chunk(kernel, row, &program)?),
        };
        let position = chunk.positions[to_usize(index)];
        Ok(Cta { position, index, chunk, program })
    }

    /// How often the warps of a launch execute each segment of its code.
    ///
    /// # Errors
    /// [`TraceError::Store`] when a block is damaged.
    ///
    /// # Panics
    /// When `kernel` is not below [`Store::kernel_count`].
    pub fn executed(&self, kernel: usize) -> Result<Vec<u64>, TraceError> {
        let program = self.program(kernel)?;
        let mut counts = vec![0; program.code.segments.len()];
        let selection = self.selection(kernel);
        for row in self.kernel(kernel).chunks {
            let first = row.first_cta.get();
            let takes = |cta| selection.is_none_or(|selection| selection.contains(first + cta));
            self.chunk(kernel, row, program)?.count_segments(takes, &mut counts);
        }
        Ok(counts)
    }

    /// Number and row of the chunk with a CTA, and the CTA's index in it.
    fn locate(&self, kernel: usize, ordinal: u64) -> (u32, &ChunkRow, u32) {
        let ctas = self.kernel(kernel).cta_count();
        assert!(ordinal < ctas, "CTA {ordinal} of {ctas}");
        let ordinal = self.selection(kernel).map_or(ordinal, |some| some.ordinal(ordinal));
        let row = &self.index.kernels()[kernel];
        let (first, chunks) = self.index.chunks_of(row);
        let after = chunks.partition_point(|chunk| chunk.first_cta.get() <= ordinal);
        let chunk = &chunks[after - 1];
        (first + to_u32(after - 1), chunk, to_u32(ordinal - chunk.first_cta.get()))
    }

    fn chunk(&self, kernel: usize, row: &ChunkRow, program: &Program) -> Result<Chunk, TraceError> {
        let frame = self.frame(kernel, row, program);
        let chunk = self.file.block(&row.body).and_then(|raw| Chunk::decode(raw, frame));
        chunk.map_err(|fault| fault.in_store(&self.path, row.body.offset.get()))
    }

    fn frame<'a>(&self, kernel: usize, row: &ChunkRow, program: &'a Program) -> Frame<'a> {
        let launch = self.kernel(kernel).row;
        let warps = index::dim(launch.block).count().div_ceil(32);
        let grid = index::dim(launch.grid);
        Frame { program, grid, warps_per_cta: to_u32(warps), ctas: row.ctas.get() }
    }

    /// Line tails and frame notes of a CTA: nothing when the trace has none.
    ///
    /// # Errors
    /// [`TraceError::Store`] when the block is damaged.
    ///
    /// # Panics
    /// When `kernel` or `ordinal` is not below its count.
    pub fn tails(&self, kernel: usize, ordinal: u64) -> Result<CtaTrailingFields, TraceError> {
        let (number, row, index) = self.locate(kernel, ordinal);
        if row.tails.raw == 0 {
            return Ok(CtaTrailingFields::default());
        }
        let mut last = self.last_tails.lock().unwrap_or_else(PoisonError::into_inner);
        let known = last.as_ref().filter(|(chunk, _)| *chunk == number);
        let all = match known {
            Some((_, all)) => Arc::clone(all),
            None => Arc::new(self.chunk_tails(kernel, row)?),
        };
        *last = Some((number, Arc::clone(&all)));
        Ok(all[to_usize(index)].clone())
    }

    fn chunk_tails(
        &self,
        kernel: usize,
        row: &ChunkRow,
    ) -> Result<Vec<CtaTrailingFields>, TraceError> {
        let block = index::dim(self.kernel(kernel).row.block).count();
        let (ctas, warps) = (to_usize(row.ctas.get()), to_usize(block.div_ceil(32)));
        let all = self.file.block(&row.tails);
        let all = all.and_then(|raw| trailing_fields::unpack(&raw, ctas, warps));
        all.map_err(|fault| fault.in_store(&self.path, row.tails.offset.get()))
    }

    /// Decompresses and checks every block, and compares the content hash.
    ///
    /// # Errors
    /// [`TraceError::Store`] with the first thing that is wrong.
    pub fn verify(&self) -> Result<(), TraceError> {
        let mut content = Content::new();
        for kernel in 0..self.kernel_count() {
            let summary = self.kernel(kernel);
            content.kernel(summary.row, summary.name.as_bytes(), summary.header.as_bytes());
            let program = self.program(kernel)?;
            for row in summary.chunks {
                let chunk = self.chunk(kernel, row, program)?;
                content.block(&chunk.bytes);
                if row.tails.raw > 0 {
                    self.chunk_tails(kernel, row)?;
                    content.block(&self.raw(&row.tails)?);
                }
            }
            let code = self.index.codes()[to_usize(summary.row.code.get())];
            content.block(&self.raw(&code.body)?);
        }
        if content.finish(self.index.commands()) != self.index.header.content {
            return Err(
                ByteFault::new(48, "the content's hash", "another").in_store(&self.path, 48)
            );
        }
        Ok(())
    }

    /// Checks the checksum of every block without decompressing any: as fast as the
    /// file can be read, and enough to find damage that came after writing.
    ///
    /// # Errors
    /// [`TraceError::Store`] with the first block that is wrong.
    pub fn check_blocks(&self) -> Result<(), TraceError> {
        let kernels = 0..self.kernel_count();
        let chunks = kernels.flat_map(|kernel| self.kernel(kernel).chunks);
        let blocks = chunks.flat_map(|chunk| [chunk.body, chunk.tails]);
        let codes = self.index.codes().iter().map(|code| code.body);
        for row in blocks.chain(codes).filter(|row| row.stored > 0) {
            let checked = self.file.stored_block(&row);
            checked.map_err(|fault| fault.in_store(&self.path, row.offset.get()))?;
        }
        Ok(())
    }

    fn raw(&self, row: &super::layout::BlockRow) -> Result<Vec<u8>, TraceError> {
        self.file.block(row).map_err(|fault| fault.in_store(&self.path, row.offset.get()))
    }
}
