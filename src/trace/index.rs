//! The index of a mapped store: checked once, then read in place.

use std::ops::Range;
use std::path::Path;

use zerocopy::{FromBytes, Immutable, KnownLayout};

use crate::units::{Dim3, to_u64, to_usize};

use super::block;
use super::content::checksum;
use super::error::{Fault, TraceError};
use super::layout::{
    BlockRow, ChunkRow, CodeRow, CommandRow, HEADER_CHECKED, Header, IndexHead, KernelRow,
    LARGEST_BLOCK, MAGIC, MEMORY_ONLY, MOST_CTAS, MOST_THREADS, VERSION,
};

/// Where the tables lie in the file, and the decoded texts.
#[derive(Debug)]
pub(super) struct Index {
    kernels: Range<usize>,
    commands: Range<usize>,
    chunks: Range<usize>,
    codes: Range<usize>,
    texts: String,
}

/// The rows in `range` of `file`, which were checked to be whole.
fn rows<'a, T: FromBytes + KnownLayout + Immutable>(
    file: &'a [u8],
    range: &Range<usize>,
) -> &'a [T] {
    // `open` cut the range to a whole number of rows; rows have no alignment.
    <[T]>::ref_from_bytes(&file[range.clone()]).expect("a range of whole rows")
}

/// The header of `file`, checked.
///
/// # Errors
/// [`TraceError::Store`] when it is not the header of a store of this version.
pub(super) fn header<'a>(path: &Path, file: &'a [u8]) -> Result<&'a Header, TraceError> {
    let wrong = |at: usize, expected: String, found: String| {
        Err(Fault::new(at, expected, found).in_store(path, to_u64(at)))
    };
    if !file.starts_with(&MAGIC) {
        let found = super::error::quoted(&file[..file.len().min(8)]);
        return wrong(0, "a store, which starts with `gptrace`".to_owned(), found);
    }
    let Ok((header, _)) = Header::ref_from_prefix(file) else {
        return wrong(file.len(), "a header of 80 bytes".to_owned(), "the end".to_owned());
    };
    if header.version != VERSION {
        return wrong(8, format!("version {VERSION}"), format!("version {}", header.version));
    }
    if header.checksum != checksum(&file[..HEADER_CHECKED]) {
        return wrong(72, "the checksum of the header".to_owned(), "another".to_owned());
    }
    if header.file_bytes != to_u64(file.len()) {
        let expected = format!("{} bytes", header.file_bytes);
        return wrong(16, expected, format!("{} bytes", file.len()));
    }
    Ok(header)
}

impl Index {
    /// Checks the index of `file` and everything its rows say.
    ///
    /// # Errors
    /// [`TraceError::Store`] with the place of the first thing that is wrong.
    pub(super) fn open(path: &Path, file: &[u8]) -> Result<Self, TraceError> {
        let header = header(path, file)?;
        let offset = header.index_offset.get();
        let index = usize::try_from(offset).ok().and_then(|from| file.get(from..));
        let index = index.filter(|index| to_u64(index.len()) == header.index_bytes.get());
        let Some(index) = index else {
            return Err(Fault::new(0, "an index at the end", "another").in_store(path, 24));
        };
        if header.index_checksum != checksum(index) {
            return Err(Fault::new(0, "the index's checksum", "another").in_store(path, offset));
        }
        let made = Self::cut(index, to_usize(offset));
        let made = made.and_then(|made| made.check(file, offset).map(|()| made));
        made.map_err(|fault| fault.in_store(path, offset))
    }

    fn cut(index: &[u8], offset: usize) -> Result<Self, Fault> {
        let Ok((head, _)) = IndexHead::ref_from_prefix(index) else {
            return Err(Fault::new(0, "an index head", "the end"));
        };
        let mut at = size_of::<IndexHead>();
        let mut table = |count: u32, row: usize| {
            let end = to_usize(count).checked_mul(row).and_then(|bytes| at.checked_add(bytes));
            let end = end.filter(|&end| end <= index.len());
            let end = end.ok_or_else(|| Fault::new(at, format!("{count} rows"), "the end"))?;
            let range = offset + at..offset + end;
            at = end;
            Ok(range)
        };
        let kernels = table(head.kernels.get(), size_of::<KernelRow>())?;
        let commands = table(head.commands.get(), size_of::<CommandRow>())?;
        let chunks = table(head.chunks.get(), size_of::<ChunkRow>())?;
        let codes = table(head.codes.get(), size_of::<CodeRow>())?;
        let stored = &index[at..];
        if to_u64(stored.len()) != head.texts_stored.get() {
            return Err(Fault::new(at, format!("{} text bytes", head.texts_stored), "others"));
        }
        let texts = block::decompress(stored, head.texts_raw.get())?;
        let texts = String::from_utf8(texts);
        let texts = texts.map_err(|e| Fault::new(at, "names in UTF-8", e.to_string()))?;
        Ok(Self { kernels, commands, chunks, codes, texts })
    }

    /// Every row refers to what exists.
    fn check(&self, file: &[u8], end: u64) -> Result<(), Fault> {
        for chunk in self.chunks(file) {
            check_block(&chunk.body, end)?;
            check_block(&chunk.tails, end)?;
        }
        for code in self.codes(file) {
            check_block(&code.body, end)?;
        }
        for kernel in self.kernels(file) {
            self.check_kernel(file, kernel)?;
        }
        let kernels = to_u64(self.kernels(file).len());
        for command in self.commands(file) {
            let known = match command.kind.get() {
                0 => command.first.get() < kernels,
                MEMORY_ONLY => command.first.get() < kernels && command.second.get() == 0,
                kind => kind == 1,
            };
            if !known {
                return Err(Fault::new(0, "a command of a known kind", format!("{command:?}")));
            }
        }
        Ok(())
    }

    fn check_kernel(&self, file: &[u8], kernel: &KernelRow) -> Result<(), Fault> {
        let wrong = |what: &str| Err(Fault::new(0, what, format!("kernel {}", kernel.id)));
        let (grid, block) = (dim(kernel.grid).count(), dim(kernel.block).count());
        if grid == 0 || grid > MOST_CTAS || block == 0 || block > MOST_THREADS {
            return wrong("a grid and a block of a GPU");
        }
        if to_usize(kernel.code.get()) >= self.codes(file).len() {
            return wrong("a code block that exists");
        }
        if self.try_text(kernel.name).is_none() || self.try_text(kernel.header).is_none() {
            return wrong("a name and a header in the texts");
        }
        let Some(chunks) = self.try_chunks(file, kernel) else {
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

    pub(super) fn kernels<'a>(&self, file: &'a [u8]) -> &'a [KernelRow] {
        rows(file, &self.kernels)
    }

    pub(super) fn commands<'a>(&self, file: &'a [u8]) -> &'a [CommandRow] {
        rows(file, &self.commands)
    }

    pub(super) fn codes<'a>(&self, file: &'a [u8]) -> &'a [CodeRow] {
        rows(file, &self.codes)
    }

    fn chunks<'a>(&self, file: &'a [u8]) -> &'a [ChunkRow] {
        rows(file, &self.chunks)
    }

    fn try_chunks<'a>(&self, file: &'a [u8], kernel: &KernelRow) -> Option<&'a [ChunkRow]> {
        let [first, count] = kernel.chunks.map(|number| to_usize(number.get()));
        self.chunks(file).get(first..first.checked_add(count)?)
    }

    /// The chunk rows of `kernel`, and the index of the first one.
    pub(super) fn chunks_of<'a>(
        &self,
        file: &'a [u8],
        kernel: &KernelRow,
    ) -> (u32, &'a [ChunkRow]) {
        let rows = self.try_chunks(file, kernel).expect("checked when the store was opened");
        (kernel.chunks[0].get(), rows)
    }

    fn try_text(&self, place: [zerocopy::little_endian::U32; 2]) -> Option<&str> {
        let [first, length] = place.map(|number| to_usize(number.get()));
        self.texts.get(first..first.checked_add(length)?)
    }

    /// The text at `place`.
    pub(super) fn text(&self, place: [zerocopy::little_endian::U32; 2]) -> &str {
        self.try_text(place).expect("checked when the store was opened")
    }
}

fn check_block(row: &BlockRow, end: u64) -> Result<(), Fault> {
    let last = row.offset.get().checked_add(u64::from(row.stored.get()));
    if last.is_none_or(|last| last > end) || u64::from(row.raw.get()) > LARGEST_BLOCK {
        return Err(Fault::new(0, "a block before the index", format!("{row:?}")));
    }
    Ok(())
}

/// A row's extent.
pub(super) fn dim(row: [zerocopy::little_endian::U32; 3]) -> Dim3 {
    Dim3::from(row.map(|number| number.get()))
}
