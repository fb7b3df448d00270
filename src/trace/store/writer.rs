//! Writes a store: blocks as they come, then the index, then the header, then
//! the file's name.

use std::collections::HashMap;
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use xxhash_rust::xxh3::xxh3_128;
use zerocopy::{FromZeros, IntoBytes};

use gpumodel_core::isa::Launch;
use gpumodel_core::memory_copy::MemoryCopy;
use gpumodel_core::units::{Dim3, WholeFile, to_u32, to_u64};

use super::chunk_writer::Packed;
use super::code::Dictionary;
use super::layout::{
    BlockRow, CLUSTER, COPY_STREAM, ChunkRow, CodeRow, CommandRow, Content, HEADER_CHECKED, Header,
    IndexHead, KernelRow, LARGEST_BLOCK, MAGIC, MEMORY_ONLY, SKIPPED, VERSION, checksum, copy_kind,
    packed_cluster,
};
use super::reader::Command;
use crate::error::TraceError;

/// Compression of chunks: small enough to keep up with parsing.
const CHUNK_LEVEL: i32 = 9;
/// Compression of tails, which may be most of a trace.
const TAILS_LEVEL: i32 = 4;
/// Compression of the few small blocks.
const SMALL_LEVEL: i32 = 19;

/// A store being written.
#[derive(Debug)]
pub(crate) struct StoreWriter {
    file: WholeFile,
    path: PathBuf,
    at: u64,
    content: Content,
    kernels: Vec<KernelRow>,
    commands: Vec<CommandRow>,
    chunks: Vec<ChunkRow>,
    codes: Vec<CodeRow>,
    code_numbers: HashMap<u128, u32>,
    texts: Vec<u8>,
    text_places: HashMap<Box<str>, [u32; 2]>,
    source_name: Option<String>,
}

/// How far a store is written: what comes after can be taken back.
#[derive(Clone)]
pub(crate) struct Checkpoint {
    at: u64,
    content: Content,
    kernels: usize,
    commands: usize,
    chunks: usize,
    codes: usize,
    texts: usize,
}

/// A compressed chunk that waits for its place in the file.
struct Compressed {
    packed: Packed,
    raw: Vec<u8>,
    hash: u128,
    stored: Vec<u8>,
    tails_stored: Vec<u8>,
}

impl StoreWriter {
    /// Starts a store that will appear at `path`.
    pub(crate) fn create(path: &Path) -> Result<Self, TraceError> {
        let mut file = WholeFile::create(path).map_err(TraceError::Output)?;
        let blank = Header::new_zeroed();
        file.write_all(blank.as_bytes()).map_err(TraceError::Output)?;
        Ok(Self {
            file,
            path: path.to_path_buf(),
            at: to_u64(size_of::<Header>()),
            content: Content::new(),
            kernels: Vec::new(),
            commands: Vec::new(),
            chunks: Vec::new(),
            codes: Vec::new(),
            code_numbers: HashMap::new(),
            texts: Vec::new(),
            text_places: HashMap::new(),
            source_name: None,
        })
    }

    /// Remembers the name of what the store is made from, which no hash of content covers.
    pub(crate) fn named(mut self, source: Option<String>) -> Self {
        self.source_name = source;
        self
    }

    /// How far it is written; between two kernels.
    pub(crate) fn checkpoint(&self) -> Checkpoint {
        Checkpoint {
            at: self.at,
            content: self.content.clone(),
            kernels: self.kernels.len(),
            commands: self.commands.len(),
            chunks: self.chunks.len(),
            codes: self.codes.len(),
            texts: self.texts.len(),
        }
    }

    /// Takes back all that was written after `place`.
    pub(crate) fn roll_back(&mut self, checkpoint: Checkpoint) -> Result<(), TraceError> {
        let Checkpoint { at, content, kernels, commands, chunks, codes, texts } = checkpoint;
        (self.at, self.content) = (at, content);
        self.kernels.truncate(kernels);
        self.commands.truncate(commands);
        self.chunks.truncate(chunks);
        self.codes.truncate(codes);
        self.code_numbers.retain(|_, number| *number < to_u32(codes));
        self.texts.truncate(texts);
        self.text_places.retain(|_, [start, length]| *start + *length <= to_u32(texts));
        let writer = self.file.writer();
        let cut = writer.seek(SeekFrom::Start(at));
        let cut = cut.and_then(|_| writer.get_ref().as_file().set_len(at));
        cut.map_err(|e| TraceError::io("write", &self.path, e))
    }

    /// The ids of the launches so far.
    pub(crate) fn ids(&self) -> Vec<u32> {
        self.kernels.iter().map(|kernel| kernel.id.get()).collect()
    }

    /// Starts a kernel; returns its index. Its chunks follow, then its end.
    pub(crate) fn kernel(&mut self, launch: &Launch, header: &str) -> usize {
        let mut row = KernelRow::new_zeroed();
        row.id = launch.id.into();
        row.grid = extent(launch.grid);
        row.block = extent(launch.block);
        row.shared_bytes = launch.shared_bytes.into();
        row.registers = launch.registers.into();
        row.binary_version = launch.binary_version.into();
        row.stream = launch.stream.into();
        row.shared_window = launch.shared_window.into();
        row.local_window = launch.local_window.into();
        row.name = self.text(&launch.name).map(Into::into);
        row.header = self.text(header).map(Into::into);
        row.chunks = [to_u32(self.chunks.len()).into(), 0.into()];
        self.content.kernel(&row, launch.name.as_bytes(), header.as_bytes());
        self.kernels.push(row);
        self.kernels.len() - 1
    }

    fn text(&mut self, text: &str) -> [u32; 2] {
        if let Some(&place) = self.text_places.get(text) {
            return place;
        }
        let place = [to_u32(self.texts.len()), to_u32(text.len())];
        self.texts.extend_from_slice(text.as_bytes());
        self.text_places.insert(text.into(), place);
        place
    }

    /// Appends chunks of the last kernel, in order.
    pub(super) fn chunks(
        &mut self,
        dictionary: &mut Dictionary,
        chunks: Vec<Packed>,
    ) -> Result<(), TraceError> {
        let sections: Vec<Vec<u8>> =
            chunks.iter().map(|chunk| dictionary.segment_section(&chunk.segments)).collect();
        let compressed: Result<Vec<Compressed>, TraceError> = chunks
            .into_par_iter()
            .zip(sections)
            .map(|(packed, section)| self.compressed(packed, section))
            .collect();
        for chunk in compressed? {
            self.chunk(&chunk)?;
        }
        Ok(())
    }

    fn compressed(&self, packed: Packed, mut raw: Vec<u8>) -> Result<Compressed, TraceError> {
        raw.extend_from_slice(&packed.body);
        let stored = self.compress(&raw, CHUNK_LEVEL)?;
        let tails_stored = match packed.tails.is_empty() {
            true => Vec::new(),
            false => self.compress(&packed.tails, TAILS_LEVEL)?,
        };
        let hash = xxh3_128(&raw);
        Ok(Compressed { packed, raw, hash, stored, tails_stored })
    }

    fn compress(&self, raw: &[u8], level: i32) -> Result<Vec<u8>, TraceError> {
        if to_u64(raw.len()) > LARGEST_BLOCK {
            return Err(TraceError::Request(format!(
                "{}: a thread block needs more than {} MiB; trace fewer instructions",
                self.path.display(),
                LARGEST_BLOCK >> 20
            )));
        }
        zstd::bulk::compress(raw, level).map_err(|e| TraceError::io("compress", &self.path, e))
    }

    fn chunk(&mut self, chunk: &Compressed) -> Result<(), TraceError> {
        let packed = &chunk.packed;
        let mut row = ChunkRow::new_zeroed();
        row.body = self.block(&chunk.stored, chunk.raw.len())?;
        self.content.digest(chunk.hash);
        if !packed.tails.is_empty() {
            row.tails = self.block(&chunk.tails_stored, packed.tails.len())?;
            self.content.block(&packed.tails);
        }
        let kernel = self.kernels.last_mut().expect("chunks come after their kernel");
        row.first_cta = kernel.ctas;
        row.ctas = packed.ctas.into();
        kernel.ctas += u64::from(packed.ctas);
        kernel.warp_instructions += packed.warp_instructions;
        kernel.thread_instructions += packed.thread_instructions;
        kernel.memory_instructions += packed.memory_instructions;
        kernel.chunks[1] += 1;
        self.chunks.push(row);
        Ok(())
    }

    fn block(&mut self, stored: &[u8], raw: usize) -> Result<BlockRow, TraceError> {
        let offset = self.at;
        self.write(stored)?;
        Ok(BlockRow {
            offset: offset.into(),
            stored: to_u32(stored.len()).into(),
            raw: to_u32(raw).into(),
            checksum: checksum(stored).into(),
        })
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), TraceError> {
        self.at += to_u64(bytes.len());
        self.file.write_all(bytes).map_err(TraceError::Output)
    }

    /// Ends the last kernel: its code, and the size of its source. Returns its CTAs.
    pub(super) fn end(
        &mut self,
        dictionary: &Dictionary,
        text_bytes: u64,
        source_bytes: u64,
    ) -> Result<u64, TraceError> {
        let raw = dictionary.write();
        let hash = xxh3_128(&raw);
        self.content.digest(hash);
        let new = to_u32(self.codes.len());
        let number = *self.code_numbers.entry(hash).or_insert(new);
        if number == new {
            let stored = self.compress(&raw, SMALL_LEVEL)?;
            let body = self.block(&stored, raw.len())?;
            self.codes.push(CodeRow { body });
        }
        let kernel = self.kernels.last_mut().expect("an end comes after its kernel");
        kernel.code = number.into();
        kernel.text_bytes = text_bytes.into();
        kernel.source_bytes = source_bytes.into();
        Ok(kernel.ctas.get())
    }

    /// Appends a command of the list.
    pub(crate) fn command(&mut self, command: Command) {
        let mut push = |kind: u32, first: u64, second: u64| {
            let row = CommandRow { kind: kind.into(), first: first.into(), second: second.into() };
            self.commands.push(row);
        };
        match command {
            Command::Kernel(index) => push(0, to_u64(index), 0),
            Command::Copy(MemoryCopy { direction, address, bytes, stream }) => {
                if let Some(stream) = stream {
                    push(COPY_STREAM, stream, 0);
                }
                push(copy_kind(direction), address, bytes);
            }
        }
    }

    /// Marks the launch with the index `kernel` as memory-only.
    pub(crate) fn memory_only(&mut self, kernel: usize) {
        let (kind, first) = (MEMORY_ONLY.into(), to_u64(kernel).into());
        self.commands.push(CommandRow { kind, first, second: 0.into() });
    }

    /// Notes that the kernel that was begun last has clusters, if it has.
    pub(super) fn clustered(&mut self, cluster: Dim3) {
        if let Some(second) = packed_cluster(cluster) {
            let last = to_u64(self.kernels.len().saturating_sub(1));
            let (kind, first) = (CLUSTER.into(), last.into());
            self.commands.push(CommandRow { kind, first, second: second.into() });
        }
    }

    /// Notes that `files` damaged trace files were skipped, if there were any.
    pub(crate) fn skipped(&mut self, files: u64) {
        if files > 0 {
            let row = CommandRow { kind: SKIPPED.into(), first: files.into(), second: 0.into() };
            self.commands.push(row);
        }
    }

    /// Writes index and header and lets the file appear; returns its size.
    pub(crate) fn finish(mut self) -> Result<u64, TraceError> {
        let name = self.source_name.take().unwrap_or_default();
        self.texts.extend_from_slice(name.as_bytes());
        let index = self.index()?;
        let index_offset = self.at;
        self.write(&index)?;
        let source: u64 = self.kernels.iter().map(|kernel| kernel.source_bytes.get()).sum();
        let mut header = Header {
            magic: MAGIC,
            version: VERSION.into(),
            source_name: to_u32(name.len()).into(),
            file_bytes: self.at.into(),
            index_offset: index_offset.into(),
            index_bytes: to_u64(index.len()).into(),
            index_checksum: checksum(&index).into(),
            content: self.content.finish(&self.commands),
            source_bytes: source.into(),
            checksum: 0.into(),
        };
        header.checksum = checksum(&header.as_bytes()[..HEADER_CHECKED]).into();
        let writer = self.file.writer();
        let patched = writer
            .flush()
            .and_then(|()| writer.seek(SeekFrom::Start(0)))
            .and_then(|_| writer.write_all(header.as_bytes()));
        patched.map_err(|e| TraceError::io("write", &self.path, e))?;
        self.file.finish().map_err(TraceError::Output)?;
        Ok(self.at)
    }

    fn index(&self) -> Result<Vec<u8>, TraceError> {
        let texts = self.compress(&self.texts, SMALL_LEVEL)?;
        let head = IndexHead {
            kernels: to_u32(self.kernels.len()).into(),
            commands: to_u32(self.commands.len()).into(),
            chunks: to_u32(self.chunks.len()).into(),
            codes: to_u32(self.codes.len()).into(),
            texts_stored: to_u64(texts.len()).into(),
            texts_raw: to_u64(self.texts.len()).into(),
        };
        let mut index = head.as_bytes().to_vec();
        index.extend_from_slice(self.kernels.as_bytes());
        index.extend_from_slice(self.commands.as_bytes());
        index.extend_from_slice(self.chunks.as_bytes());
        index.extend_from_slice(self.codes.as_bytes());
        index.extend_from_slice(&texts);
        Ok(index)
    }
}

fn extent(dim: Dim3) -> [zerocopy::little_endian::U32; 3] {
    <[u32; 3]>::from(dim).map(Into::into)
}
