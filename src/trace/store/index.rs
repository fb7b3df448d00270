//! The index of a store: read and checked once, then used in place.

use std::ops::Range;
use std::path::Path;

use zerocopy::{FromBytes, Immutable, KnownLayout};

use gpumodel_core::units::{Dim3, quoted, to_u64, to_usize};

use super::file::{StoreFile, decompress};
use super::layout::{
    BlockRow, CLUSTER, COPY_STREAM, ChunkRow, CodeRow, CommandRow, HEADER_CHECKED, Header,
    IndexHead, KernelRow, LARGEST_BLOCK, MAGIC, MEMORY_ONLY, MOST_CTAS, MOST_THREADS, SKIPPED,
    VERSION, checksum, copy_direction, packed_cluster, unpacked_cluster,
};
use crate::error::{ByteFault, TraceError};

/// The index's bytes, where the tables lie in them, and the decoded texts.
#[derive(Debug)]
pub(super) struct Index {
    pub(super) header: Header,
    bytes: Vec<u8>,
    kernels: Range<usize>,
    commands: Range<usize>,
    chunks: Range<usize>,
    codes: Range<usize>,
    texts: String,
}

/// The rows in `range` of `index`, which were checked to be whole.
fn rows<'a, T: FromBytes + KnownLayout + Immutable>(
    index: &'a [u8],
    range: &Range<usize>,
) -> &'a [T] {
    // `cut` made the range a whole number of rows; rows have no alignment.
    <[T]>::ref_from_bytes(&index[range.clone()]).expect("a range of whole rows")
}

/// The header of the store of `bytes` bytes that begins with `start`, checked.
fn header(start: &[u8], bytes: u64) -> Result<Header, ByteFault> {
    let wrong =
        |at: usize, expected: String, found: String| Err(ByteFault::new(at, expected, found));
    if !start.starts_with(&MAGIC) {
        let found = quoted(&start[..start.len().min(8)]);
        return wrong(0, "a store, which starts with `gptrace`".to_owned(), found);
    }
    let Ok((header, _)) = Header::read_from_prefix(start) else {
        return wrong(start.len(), "a header of 80 bytes".to_owned(), "the end".to_owned());
    };
    if header.version != VERSION {
        return wrong(8, format!("version {VERSION}"), format!("version {}", header.version));
    }
    if header.checksum != checksum(&start[..HEADER_CHECKED]) {
        return wrong(72, "the checksum of the header".to_owned(), "another".to_owned());
    }
    if header.file_bytes != bytes {
        return wrong(16, format!("{} bytes", header.file_bytes), format!("{bytes} bytes"));
    }
    Ok(header)
}

impl Index {
    /// Reads header and index of the store in `file`, found at `path`, and checks
    /// everything that their rows say.
    ///
    /// # Errors
    /// [`TraceError::Store`] with the place of the first thing that is wrong.
    pub(super) fn open(path: &Path, file: &StoreFile) -> Result<Self, TraceError> {
        let placed = |fault: ByteFault| {
            let at = to_u64(fault.at);
            fault.in_store(path, at)
        };
        let start = file.read(0, file.bytes.min(to_u64(size_of::<Header>()))).map_err(placed)?;
        let header = header(&start, file.bytes).map_err(placed)?;
        let (offset, bytes) = (header.index_offset.get(), header.index_bytes.get());
        if offset.checked_add(bytes) != Some(file.bytes) {
            return Err(ByteFault::new(0, "an index at the end", "another").in_store(path, 24));
        }
        let index = file.read(offset, bytes).map_err(placed)?;
        if header.index_checksum != checksum(&index) {
            return Err(ByteFault::new(0, "the index's checksum", "another").in_store(path, offset));
        }
        let made = Self::cut(header, index);
        let made = made.and_then(|made| made.check(offset).map(|()| made));
        made.map_err(|fault| fault.in_store(path, offset))
    }

    fn cut(header: Header, index: Vec<u8>) -> Result<Self, ByteFault> {
        let Ok((head, _)) = IndexHead::read_from_prefix(&index) else {
            return Err(ByteFault::new(0, "an index head", "the end"));
        };
        let mut at = size_of::<IndexHead>();
        let mut table = |count: u32, row: usize| {
            let end = to_usize(count).checked_mul(row).and_then(|bytes| at.checked_add(bytes));
            let end = end.filter(|&end| end <= index.len());
            let end = end.ok_or_else(|| ByteFault::new(at, format!("{count} rows"), "the end"))?;
            let range = at..end;
            at = end;
            Ok(range)
        };
        let kernels = table(head.kernels.get(), size_of::<KernelRow>())?;
        let commands = table(head.commands.get(), size_of::<CommandRow>())?;
        let chunks = table(head.chunks.get(), size_of::<ChunkRow>())?;
        let codes = table(head.codes.get(), size_of::<CodeRow>())?;
        let stored = &index[at..];
        if to_u64(stored.len()) != head.texts_stored.get() {
            return Err(ByteFault::new(at, format!("{} text bytes", head.texts_stored), "others"));
        }
        let texts = decompress(stored, head.texts_raw.get())?;
        let texts = String::from_utf8(texts);
        let texts = texts.map_err(|e| ByteFault::new(at, "names in UTF-8", e.to_string()))?;
        Ok(Self { header, bytes: index, kernels, commands, chunks, codes, texts })
    }

    /// Every row refers to what exists.
    fn check(&self, end: u64) -> Result<(), ByteFault> {
        if self.try_source_name().is_none() {
            return Err(ByteFault::new(0, "the source's name in the texts", "another length"));
        }
        for chunk in self.chunks() {
            check_block(&chunk.body, end)?;
            check_block(&chunk.tails, end)?;
        }
        for code in self.codes() {
            check_block(&code.body, end)?;
        }
        for kernel in self.kernels() {
            self.check_kernel(kernel)?;
        }
        let kernels = to_u64(self.kernels().len());
        for command in self.commands() {
            let known = match command.kind.get() {
                0 => command.first.get() < kernels,
                MEMORY_ONLY => command.first.get() < kernels && command.second.get() == 0,
                SKIPPED | COPY_STREAM => command.second.get() == 0,
                CLUSTER => {
                    let cluster = unpacked_cluster(command.second.get());
                    command.first.get() < kernels
                        && packed_cluster(cluster) == Some(command.second.get())
                }
                kind => copy_direction(kind).is_some(),
            };
            if !known {
                return Err(ByteFault::new(0, "a command of a known kind", format!("{command:?}")));
            }
        }
        Ok(())
    }

    fn check_kernel(&self, kernel: &KernelRow) -> Result<(), ByteFault> {
        let wrong = |what: &str| Err(ByteFault::new(0, what, format!("kernel {}", kernel.id)));
        let (grid, block) = (dim(kernel.grid).count(), dim(kernel.block).count());
        if grid == 0 || grid > MOST_CTAS || block == 0 || block > MOST_THREADS {
            return wrong("a grid and a block of a GPU");
        }
        if to_usize(kernel.code.get()) >= self.codes().len() {
            return wrong("a code block that exists");
        }
        if self.try_text(kernel.name).is_none() || self.try_text(kernel.header).is_none() {
            return wrong("a name and a header in the texts");
        }
        let Some(chunks) = self.try_chunks(kernel) else {
            return wrong("chunks that exist");
        };
        let mut ctas = 0_u64;
        for chunk in chunks {
            if chunk.first_cta != ctas || chunk.ctas == 0 {
                return wrong("chunks in order of CTAs");
            }
            ctas += u64::from(chunk.ctas.get());
        }
        if ctas != kernel.ctas.get() || ctas > grid {
            return wrong("chunks with all CTAs");
        }
        Ok(())
    }

    pub(super) fn kernels(&self) -> &[KernelRow] {
        rows(&self.bytes, &self.kernels)
    }

    pub(super) fn commands(&self) -> &[CommandRow] {
        rows(&self.bytes, &self.commands)
    }

    pub(super) fn codes(&self) -> &[CodeRow] {
        rows(&self.bytes, &self.codes)
    }

    fn chunks(&self) -> &[ChunkRow] {
        rows(&self.bytes, &self.chunks)
    }

    fn try_chunks(&self, kernel: &KernelRow) -> Option<&[ChunkRow]> {
        let [first, count] = kernel.chunks.map(|number| to_usize(number.get()));
        self.chunks().get(first..first.checked_add(count)?)
    }

    /// The chunk rows of `kernel`, and the index of the first one.
    pub(super) fn chunks_of(&self, kernel: &KernelRow) -> (u32, &[ChunkRow]) {
        let rows = self.try_chunks(kernel).expect("checked when the store was opened");
        (kernel.chunks[0].get(), rows)
    }

    fn try_text(&self, place: [zerocopy::little_endian::U32; 2]) -> Option<&str> {
        let [first, length] = place.map(|number| to_usize(number.get()));
        self.texts.get(first..first.checked_add(length)?)
    }

    fn try_source_name(&self) -> Option<&str> {
        let length = to_usize(self.header.source_name.get());
        self.texts.get(self.texts.len().checked_sub(length)?..)
    }

    /// The name of what the store was made from.
    pub(super) fn source_name(&self) -> Option<&str> {
        self.try_source_name().filter(|name| !name.is_empty())
    }

    /// The text at `place`.
    pub(super) fn text(&self, place: [zerocopy::little_endian::U32; 2]) -> &str {
        self.try_text(place).expect("checked when the store was opened")
    }
}

fn check_block(row: &BlockRow, end: u64) -> Result<(), ByteFault> {
    let last = row.offset.get().checked_add(u64::from(row.stored.get()));
    if last.is_none_or(|last| last > end) || u64::from(row.raw.get()) > LARGEST_BLOCK {
        return Err(ByteFault::new(0, "a block before the index", format!("{row:?}")));
    }
    Ok(())
}

/// A row's extent.
pub(super) fn dim(row: [zerocopy::little_endian::U32; 3]) -> Dim3 {
    Dim3::from(row.map(|number| number.get()))
}
