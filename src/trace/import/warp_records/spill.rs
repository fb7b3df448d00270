//! Records of raw traces that memory does not hold: sorted runs of warps in a
//! temporary file, merged by warp, earlier runs first.
//!
//! A run is a sequence of warps in ascending order, each as: step from the last
//! one, records, bytes of the short form and of the tails (numbers of variable
//! length), short form, tails. The file has no name: the system removes it with
//! the program, however that ends.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{BufWriter, Read, Seek, SeekFrom, Write};
use std::iter::Peekable;
use std::path::{Path, PathBuf};

use crate::error::TraceError;
use crate::store::varint::{self, Reader};
use gpumodel_core::units::{to_u64, to_usize};

use super::{Part, Parts};

/// Bytes written at once.
const WRITTEN: usize = 1 << 20;
/// Bytes read ahead, of all runs together and at least of each.
const READ_AHEAD: u64 = 32 << 20;
const LEAST_AHEAD: u64 = 16 << 10;
/// No warp's head is longer: four numbers.
const LONGEST_HEAD: u64 = 40;

/// The runs written so far.
#[derive(Debug)]
pub(crate) struct Spill {
    file: BufWriter<File>,
    folder: PathBuf,
    at: u64,
    ends: Vec<u64>,
}

/// The error of the file in `folder`.
fn failed(what: &'static str, folder: &Path, error: std::io::Error) -> TraceError {
    TraceError::io(what, folder, error)
}

impl Spill {
    /// An empty file in `folder`.
    pub(crate) fn create(folder: &Path) -> Result<Self, TraceError> {
        let file = tempfile::tempfile_in(folder);
        let file =
            file.map_err(|e| failed("keep a raw trace in a temporary file in", folder, e))?;
        let file = BufWriter::with_capacity(WRITTEN, file);
        Ok(Self { file, folder: folder.to_path_buf(), at: 0, ends: Vec::new() })
    }

    /// Appends a run: warps in ascending order.
    pub(crate) fn run(&mut self, parts: Parts) -> Result<(), TraceError> {
        let mut last = 0;
        let (mut head, mut tails) = (Vec::new(), Vec::new());
        for (place, part) in parts {
            head.clear();
            tails.clear();
            write_tails(&part.tails, &mut tails);
            let sizes = [part.records, part.bytes.len(), tails.len()].map(to_u64);
            [place - last].into_iter().chain(sizes).for_each(|n| varint::put(&mut head, n));
            for bytes in [&head, &part.bytes, &tails] {
                let written = self.file.write_all(bytes);
                written.map_err(|e| {
                    failed("write a raw trace's records to a temporary file in", &self.folder, e)
                })?;
                self.at += to_u64(bytes.len());
            }
            last = place;
        }
        self.ends.push(self.at);
        Ok(())
    }

    /// All runs for reading, those of the file and `rest`, which came last.
    pub(crate) fn merge(self, rest: Parts) -> Result<Merge, TraceError> {
        let Self { file, folder, ends, .. } = self;
        let file = file.into_inner().map_err(|e| {
            let error = e.into_error();
            failed("write a raw trace's records to a temporary file in", &folder, error)
        })?;
        let ahead = (READ_AHEAD / to_u64(ends.len()).max(1)).max(LEAST_AHEAD);
        let starts = std::iter::once(0).chain(ends.iter().copied());
        let runs = starts.zip(&ends).map(|(next, &end)| Run::new(next, end, ahead)).collect();
        Merge::new(Some((file, folder)), runs, rest)
    }
}

fn write_tails(tails: &[(usize, Box<[u8]>)], out: &mut Vec<u8>) {
    for (at, tail) in tails {
        varint::put(out, to_u64(*at));
        varint::put(out, to_u64(tail.len()));
        out.extend_from_slice(tail);
    }
}

fn read_tails(bytes: &[u8]) -> Vec<(usize, Box<[u8]>)> {
    let mut reader = Reader::new(bytes);
    let mut tails = Vec::new();
    while reader.left() > 0 {
        let (at, length) = (to_usize(reader.number()), to_usize(reader.number()));
        tails.push((at, reader.take(length).into()));
    }
    tails
}

/// The sizes of a run's next warp.
#[derive(Clone, Copy, Debug)]
struct Head {
    records: usize,
    bytes: usize,
    tails: usize,
}

/// A run of the file and how far it was read.
#[derive(Debug)]
struct Run {
    next: u64,
    end: u64,
    ahead: u64,
    buffer: Vec<u8>,
    at: usize,
    place: u64,
    head: Option<Head>,
}

impl Run {
    fn new(next: u64, end: u64, ahead: u64) -> Self {
        Self { next, end, ahead, buffer: Vec::new(), at: 0, place: 0, head: None }
    }

    /// Reads on until `count` bytes are there, or the run ends.
    fn fill(&mut self, file: &mut File, count: u64) -> std::io::Result<()> {
        let left = to_u64(self.buffer.len() - self.at);
        if left >= count || self.next == self.end {
            return Ok(());
        }
        self.buffer.drain(..self.at);
        self.at = 0;
        let wanted = count.max(self.ahead).saturating_sub(left).min(self.end - self.next);
        file.seek(SeekFrom::Start(self.next))?;
        let start = self.buffer.len();
        self.buffer.resize(start + to_usize(wanted), 0);
        file.read_exact(&mut self.buffer[start..])?;
        self.next += wanted;
        Ok(())
    }

    /// Reads the head of the next warp; returns its place.
    fn advance(&mut self, file: &mut File) -> std::io::Result<Option<u64>> {
        self.fill(file, LONGEST_HEAD)?;
        if self.at == self.buffer.len() {
            self.head = None;
            return Ok(None);
        }
        let mut reader = Reader::new(&self.buffer[self.at..]);
        self.place += reader.number();
        let [records, bytes, tails] = [(); 3].map(|()| to_usize(reader.number()));
        self.at += reader.at();
        self.head = Some(Head { records, bytes, tails });
        Ok(Some(self.place))
    }

    /// The warp whose head was read.
    fn part(&mut self, file: &mut File, head: Head) -> std::io::Result<Part> {
        self.fill(file, to_u64(head.bytes) + to_u64(head.tails))?;
        let bytes = self.buffer[self.at..][..head.bytes].to_vec();
        self.at += head.bytes;
        let tails = read_tails(&self.buffer[self.at..][..head.tails]);
        self.at += head.tails;
        Ok(Part { bytes, records: head.records, tails })
    }
}

/// The parts of all warps: ascending by warp, those of one warp in trace order.
#[derive(Debug)]
pub(crate) struct Merge {
    file: Option<(File, PathBuf)>,
    runs: Vec<Run>,
    memory: Peekable<Parts>,
    /// Next place and number of every run of the file.
    heap: BinaryHeap<Reverse<(u64, usize)>>,
}

impl Merge {
    /// The parts of a trace that memory holds, ascending by warp.
    pub(crate) fn of_memory(parts: Parts) -> Self {
        let memory = parts.peekable();
        Self { file: None, runs: Vec::new(), memory, heap: BinaryHeap::new() }
    }

    fn new(file: Option<(File, PathBuf)>, runs: Vec<Run>, rest: Parts) -> Result<Self, TraceError> {
        let mut merge = Self { file, runs, ..Self::of_memory(rest) };
        for run in 0..merge.runs.len() {
            merge.advance(run)?;
        }
        Ok(merge)
    }

    /// The warp that comes next, and the records of its next part.
    pub(crate) fn peek(&mut self) -> Option<(u64, usize)> {
        let memory = self.memory.peek().map(|(place, part)| (*place, part.records));
        let stored = self.heap.peek().map(|Reverse((place, run))| {
            (*place, self.runs[*run].head.map_or(0, |head| head.records))
        });
        match (stored, memory) {
            (Some(stored), Some(memory)) if memory.0 < stored.0 => Some(memory),
            (stored, memory) => stored.or(memory),
        }
    }

    /// The next part.
    pub(crate) fn next(&mut self) -> Result<Option<(u64, Part)>, TraceError> {
        let memory = self.memory.peek().map_or(u64::MAX, |(place, _)| *place);
        // Of one warp the file's parts come first: they are older.
        if self.heap.peek().is_none_or(|Reverse((place, _))| *place > memory) {
            return Ok(self.memory.next());
        }
        let Some(Reverse((place, run))) = self.heap.pop() else { return Ok(None) };
        let (Some((file, folder)), Some(head)) = (&mut self.file, self.runs[run].head) else {
            return Ok(None);
        };
        let part = self.runs[run].part(file, head);
        let part = part.map_err(|e| failed("read back a temporary file in", folder, e))?;
        self.advance(run)?;
        Ok(Some((place, part)))
    }

    fn advance(&mut self, run: usize) -> Result<(), TraceError> {
        let Some((file, folder)) = &mut self.file else { return Ok(()) };
        let place = self.runs[run].advance(file);
        let place = place.map_err(|e| failed("read back a temporary file in", folder, e))?;
        self.heap.extend(place.map(|place| Reverse((place, run))));
        Ok(())
    }
}
