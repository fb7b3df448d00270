//! A text file, compressed or not, as blocks of whole lines.
//!
//! The compression is found from the first bytes, never from the name.

use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};

use bzip2::bufread::MultiBzDecoder;
use flate2::bufread::MultiGzDecoder;
use liblzma::bufread::XzDecoder;
use liblzma::stream::{CONCATENATED, Stream};

use super::Progress;
use crate::error::TraceError;
use crate::store::file;
use gpumodel_core::units::to_u64;

/// Bytes of text per block, unless a line is longer.
const BLOCK_BYTES: usize = 2 << 20;
/// Most memory that an xz file may ask for; `xz -9` asks for 65 MiB.
const XZ_MEMORY: u64 = 256 << 20;

/// The compressions that are understood: name and first bytes.
const COMPRESSIONS: &[(Compression, &str, &[u8])] = &[
    (Compression::Xz, "xz", &[0xfd, b'7', b'z', b'X', b'Z', 0]),
    (Compression::Gzip, "gzip", &[0x1f, 0x8b]),
    (Compression::Bzip2, "bzip2", b"BZh"),
    (Compression::Zstd, "zstd", &[0x28, 0xb5, 0x2f, 0xfd]),
];

#[derive(Clone, Copy, Debug)]
enum Compression {
    Xz,
    Gzip,
    Bzip2,
    Zstd,
}

/// Counts the bytes that pass.
struct Counted<R> {
    inner: R,
    count: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(into)?;
        self.count.fetch_add(to_u64(read), Ordering::Relaxed);
        Ok(read)
    }
}

/// Whole lines of text, the last one of a file with LF added where it is missing.
#[derive(Debug)]
pub(super) struct TextBlock {
    pub(super) bytes: Vec<u8>,
    /// Line number of the first line, from 1.
    pub(super) first_line: u64,
}

/// An open text file.
pub(super) struct Source {
    path: PathBuf,
    /// The name of its compression.
    compression: Option<&'static str>,
    reader: Box<dyn Read + Send>,
    /// The start of a line that the last block cut.
    rest: Vec<u8>,
    /// The memory of an earlier block.
    spare: Vec<u8>,
    next_line: u64,
    /// Bytes of decompressed text so far.
    pub(super) text_bytes: u64,
    /// Bytes of the file as it is.
    file_bytes: u64,
    read_bytes: Arc<AtomicU64>,
    reported: u64,
    ended: bool,
    cut: Cut,
}

/// The line, from 1, in which a text ends without a line end; 0: there is none so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Cut(Arc<AtomicU64>);

impl Cut {
    /// Adds to an error about that line that the file is cut off there.
    pub(super) fn explain(&self, error: TraceError) -> TraceError {
        match error {
            TraceError::Text { path, line, expected, found }
                if line > 0 && line == self.0.load(Ordering::Relaxed) =>
            {
                let found = format!("{found}, where the file ends: it is cut off in this line");
                TraceError::Text { path, line, expected, found }
            }
            other => other,
        }
    }
}

impl Source {
    /// Opens the file at `path`.
    ///
    /// # Errors
    /// [`TraceError::Io`] when it cannot be read.
    pub(super) fn open(path: &Path) -> Result<Self, TraceError> {
        let wrong = |error| TraceError::io("read", path, error);
        let file = file::open(path).map_err(wrong)?;
        let metadata = file.metadata().map_err(wrong)?;
        let read_bytes = Arc::new(AtomicU64::new(0));
        let counted = Counted { inner: file, count: Arc::clone(&read_bytes) };
        let mut plain = BufReader::with_capacity(1 << 17, counted);
        let start = plain.fill_buf().map_err(wrong)?;
        let found = COMPRESSIONS.iter().find(|(_, _, magic)| start.starts_with(magic));
        let reader: Box<dyn Read + Send> = match found.map(|(compression, _, _)| compression) {
            None => Box::new(plain),
            Some(Compression::Xz) => {
                let stream = Stream::new_stream_decoder(XZ_MEMORY, CONCATENATED);
                let stream = stream.map_err(|e| wrong(e.into()))?;
                Box::new(XzDecoder::new_stream(plain, stream))
            }
            Some(Compression::Gzip) => Box::new(MultiGzDecoder::new(plain)),
            Some(Compression::Bzip2) => Box::new(MultiBzDecoder::new(plain)),
            Some(Compression::Zstd) => {
                Box::new(zstd::stream::read::Decoder::with_buffer(plain).map_err(wrong)?)
            }
        };
        Ok(Self {
            path: path.to_path_buf(),
            compression: found.map(|(_, name, _)| *name),
            reader,
            rest: Vec::new(),
            spare: Vec::new(),
            next_line: 1,
            text_bytes: 0,
            file_bytes: metadata.len(),
            read_bytes,
            reported: 0,
            ended: false,
            cut: Cut::default(),
        })
    }

    /// The file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The name of its compression, if it has one.
    pub(super) fn compression(&self) -> Option<&'static str> {
        self.compression
    }

    /// Where the text is cut off, as far as it was read.
    pub(super) fn cut(&self) -> Cut {
        self.cut.clone()
    }

    /// Nothing follows the last block.
    pub(super) fn ended(&self) -> bool {
        self.ended
    }

    /// Bytes of the file as it is.
    pub(super) fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    /// Bytes of the file consumed since the last call.
    pub(super) fn advanced(&mut self) -> u64 {
        let now = self.read_bytes.load(Ordering::Relaxed);
        let new = now - self.reported;
        self.reported = now;
        new
    }

    /// The next whole lines; `None` at the end.
    ///
    /// # Errors
    /// When the file cannot be read or decompressed, or a line is longer than a
    /// block.
    pub(super) fn block(&mut self) -> Result<Option<TextBlock>, TraceError> {
        let mut bytes = std::mem::take(&mut self.spare);
        let room = BLOCK_BYTES - self.rest.len();
        let read = self.fill(&mut bytes).map_err(|error| self.broken(&bytes, error))?;
        self.text_bytes += to_u64(read);
        self.ended = read < room;
        if bytes.is_empty() {
            return Ok(None);
        }
        let last = bytes.iter().rposition(|&byte| byte == b'\n');
        match last {
            _ if read < room => {
                if bytes.last() != Some(&b'\n') {
                    self.cut.0.store(self.next_line + lines(&bytes), Ordering::Relaxed);
                    bytes.push(b'\n');
                }
            }
            Some(last) => {
                self.rest.extend_from_slice(&bytes[last + 1..]);
                bytes.truncate(last + 1);
            }
            None => return Err(self.endless(&bytes)),
        }
        let first_line = self.next_line;
        self.next_line += lines(&bytes);
        Ok(Some(TextBlock { bytes, first_line }))
    }

    /// Makes `bytes` the rest of the last block and what follows it, a block at most; returns
    /// the bytes that were read, also fewer before an error.
    fn fill(&mut self, bytes: &mut Vec<u8>) -> io::Result<usize> {
        let kept = self.rest.len();
        if bytes.is_empty() {
            // New memory is not written before it is needed: most files are shorter.
            bytes.reserve_exact(BLOCK_BYTES + 1);
            bytes.append(&mut self.rest);
            return (&mut self.reader).take(to_u64(BLOCK_BYTES - kept)).read_to_end(bytes);
        }
        bytes.resize(BLOCK_BYTES, 0);
        bytes[..kept].copy_from_slice(&self.rest);
        self.rest.clear();
        let mut end = kept;
        let read = loop {
            match self.reader.read(&mut bytes[end..]) {
                Ok(0) => break Ok(end - kept),
                Ok(read) => end += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => break Err(error),
            }
        };
        bytes.truncate(end);
        read
    }

    /// Takes the memory of a block that is not needed any more for a next one.
    fn reuse(&mut self, bytes: Vec<u8>) {
        self.spare = bytes;
    }

    /// The error of a file that ends or breaks after `bytes`.
    fn broken(&self, bytes: &[u8], error: io::Error) -> TraceError {
        let Some(name) = self.compression else {
            return TraceError::io("read", &self.path, error);
        };
        TraceError::Text {
            path: self.path.clone(),
            line: self.next_line + lines(bytes),
            expected: format!("whole {name} data"),
            found: format!("damage or the end of the file ({error})"),
        }
    }

    fn endless(&self, bytes: &[u8]) -> TraceError {
        TraceError::Text {
            path: self.path.clone(),
            line: self.next_line,
            expected: format!("a line of less than {} MiB", BLOCK_BYTES >> 20),
            found: gpumodel_core::units::quoted(bytes),
        }
    }
}

/// Line ends in `bytes`; sums of bytes over short pieces are what compilers
/// turn into vector code.
fn lines(bytes: &[u8]) -> u64 {
    let short = |piece: &[u8]| piece.iter().map(|&byte| u8::from(byte == b'\n')).sum::<u8>();
    bytes.chunks(128).map(|piece| u64::from(short(piece))).sum()
}

/// Blocks that wait to be taken, per thread.
const WAITING: usize = 1;

type Message = Result<(TextBlock, u64), TraceError>;

/// Reads `source` on a thread of its own. Hands `first` and then its blocks to `take`, in order
/// and in groups of at most one block per thread, and advances `progress`. Returns the source.
///
/// # Errors
/// The first one of reading or of `take`.
pub(super) fn read_ahead(
    mut source: Source,
    first: TextBlock,
    progress: &dyn Progress,
    take: &mut dyn FnMut(&[TextBlock]) -> Result<(), TraceError>,
) -> Result<Source, TraceError> {
    let threads = rayon::current_num_threads();
    take(std::slice::from_ref(&first))?;
    if !source.ended() {
        source.reuse(first.bytes);
        source = std::thread::scope(|scope| {
            let (send, receive) = sync_channel::<Message>(threads * WAITING);
            let (give_back, given_back) = channel();
            let reader = scope.spawn(move || {
                loop {
                    given_back.try_iter().take(1).for_each(|bytes| source.reuse(bytes));
                    let message = match source.block() {
                        Ok(None) => return source,
                        Ok(Some(block)) => Ok((block, source.advanced())),
                        Err(error) => Err(error),
                    };
                    let over = message.is_err();
                    // A closed channel means that `take` failed.
                    if send.send(message).is_err() || over {
                        return source;
                    }
                }
            });
            let taken = receive_all(&receive, &give_back, progress, take);
            drop(receive);
            let source = reader.join().expect("reading does not panic");
            taken.map(|()| source)
        })?;
    }
    progress.advance(source.advanced());
    Ok(source)
}

fn receive_all(
    blocks: &Receiver<Message>,
    give_back: &Sender<Vec<u8>>,
    progress: &dyn Progress,
    take: &mut dyn FnMut(&[TextBlock]) -> Result<(), TraceError>,
) -> Result<(), TraceError> {
    let threads = rayon::current_num_threads();
    loop {
        let group: Result<Vec<(TextBlock, u64)>, TraceError> =
            blocks.iter().take(threads).collect();
        let (group, read): (Vec<TextBlock>, Vec<u64>) = group?.into_iter().unzip();
        if group.is_empty() {
            return Ok(());
        }
        take(&group)?;
        for block in group {
            // A reader that has ended needs no more memory.
            let _ = give_back.send(block.bytes);
        }
        progress.advance(read.iter().sum());
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use super::{BLOCK_BYTES, Source, read_ahead};
    use crate::Silent;

    #[test]
    fn blocks_in_memory_that_is_used_again_are_the_file() {
        let mut text = String::new();
        for line in 0.. {
            writeln!(text, "{line} {}", "x".repeat(line * 7919 % 997)).unwrap();
            if text.len() > 8 * BLOCK_BYTES {
                break;
            }
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), &text).unwrap();
        let mut source = Source::open(file.path()).unwrap();
        let first = source.block().unwrap().unwrap();
        let (mut read, mut next) = (Vec::new(), 1);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
        let source = pool.install(|| {
            read_ahead(source, first, &Silent, &mut |blocks| {
                for block in blocks {
                    assert_eq!(block.first_line, next);
                    next += super::lines(&block.bytes);
                    read.extend_from_slice(&block.bytes);
                }
                Ok(())
            })
        });
        assert_eq!(source.unwrap().text_bytes, u64::try_from(text.len()).unwrap());
        assert!(read == text.as_bytes());
    }
}
