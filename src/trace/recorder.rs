//! A store that is written while a program runs: launches and copies in the program's order,
//! CTA by CTA, with no text between.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gpumodel_core::isa::{Access, AddressMode, Instruction, Launch};
use gpumodel_core::memory_copy::MemoryCopy;
use gpumodel_core::units::{Dim3, WARP_LANES, to_u32, to_usize};

use crate::error::TraceError;
use crate::filter::{CtaSelector, Filter};
use crate::grouped_text::cluster_note;
use crate::import::header_of;
use crate::store::Command;
use crate::store::chunk_writer::{KernelWriter, MOST_CTA_BYTES, MOST_CTA_INSTRUCTIONS};
use crate::store::records::{AddressList, Batch, Block, Piece, Record, Static};
use crate::store::writer::StoreWriter;

/// CTAs are packed and written after so many warp instructions.
const ROUND_INSTRUCTIONS: usize = 1 << 20;

/// A store that grows by launches and copies.
#[derive(Debug)]
pub struct Recorder {
    writer: StoreWriter,
    path: PathBuf,
    filter: Filter,
}

impl Recorder {
    /// Starts the store `path` of the program `source`: it appears under its name when it is
    /// finished. Launches and CTAs that `filter` does not take are left out.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn create(path: &Path, source: &str, filter: Filter) -> Result<Self, TraceError> {
        let writer = StoreWriter::create(path)?.named(Some(source.to_owned()));
        Ok(Self { writer, path: path.to_path_buf(), filter })
    }

    /// Appends a copy.
    pub fn copy(&mut self, copy: MemoryCopy) {
        self.writer.command(Command::Copy(copy));
    }

    /// Begins a launch of `code`; none when the filter does not take it.
    ///
    /// # Errors
    /// When its name or dimensions are none that a trace may have.
    pub fn launch(
        &mut self,
        launch: &Launch,
        opcodes: &[String],
        code: &[Instruction],
    ) -> Result<Option<LaunchRecorder<'_>>, TraceError> {
        if !self.filter.takes(launch) {
            return Ok(None);
        }
        let header = header_of(launch, &self.path)?;
        let index = self.writer.kernel(&header.0, &header.1);
        self.writer.command(Command::Kernel(index));
        Ok(Some(LaunchRecorder {
            kernel: KernelWriter::new(&mut self.writer, launch.grid),
            statics: Arc::new(statics(opcodes, code)),
            selector: CtaSelector::new(self.filter.ctas.clone()),
            cluster: launch.cluster,
            path: &self.path,
            waiting: 0,
        }))
    }

    /// Writes the index and lets the store appear; returns its size in bytes.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn finish(self) -> Result<u64, TraceError> {
        self.writer.finish()
    }
}

/// What the store keeps of each instruction of a code.
pub(crate) fn statics(opcodes: &[String], code: &[Instruction]) -> Vec<Static> {
    code.iter()
        .map(|one| Static {
            pc: one.pc,
            opcode: opcodes[to_usize(one.opcode)].as_str().into(),
            destinations: one.destinations.clone(),
            sources: one.sources.clone(),
            width: one.width,
            immediates: one.immediates.clone(),
            line: one.line,
            control: one.control,
        })
        .collect()
}

/// The launch that is being recorded.
pub struct LaunchRecorder<'w> {
    kernel: KernelWriter<'w>,
    statics: Arc<Vec<Static>>,
    selector: CtaSelector,
    cluster: Dim3,
    path: &'w Path,
    waiting: usize,
}

impl LaunchRecorder<'_> {
    /// Whether the CTA of that number, x fastest, is recorded; ask in ascending order.
    pub fn takes(&mut self, number: u64) -> bool {
        self.selector.block(number)
    }

    /// Appends a CTA; in ascending order, x fastest.
    ///
    /// # Errors
    /// When it has too many records, or the file cannot be written.
    pub fn cta(&mut self, position: Dim3, warps: Vec<WarpRecord>) -> Result<(), TraceError> {
        let mut batch = Batch::of(&self.statics);
        let ranges: Vec<_> = warps.iter().map(|warp| warp.join(&mut batch)).collect();
        if batch.records.len() > MOST_CTA_INSTRUCTIONS || batch.bytes() > MOST_CTA_BYTES {
            return Err(TraceError::Request(format!(
                "{}: CTA {position}: more than {MOST_CTA_INSTRUCTIONS} instructions or {} MiB of \
                 records in a thread block; record fewer with --kernels, --names or --ctas",
                self.path.display(),
                MOST_CTA_BYTES >> 20
            )));
        }
        self.waiting += batch.records.len();
        let (batch, numbers) = (Arc::new(batch), Arc::new(Vec::new()));
        let pieces = |(records, access): (Range<usize>, usize)| -> Vec<Piece> {
            if records.is_empty() {
                return Vec::new();
            }
            let (batch, numbers) = (Arc::clone(&batch), Arc::clone(&numbers));
            vec![Piece { batch, numbers, records, access }]
        };
        let warps = ranges.into_iter().map(pieces).collect();
        let mut note = Vec::new();
        if self.cluster.count() > 1 {
            let (Dim3 { x, y, z }, of) = (position, self.cluster);
            self.kernel.in_cluster(Dim3::new(x % of.x, y % of.y, z % of.z));
            note = cluster_note(position, of);
        }
        let mut block = Block { position, warps, note };
        self.kernel.number(&mut block);
        self.kernel.push(block);
        if self.waiting > ROUND_INSTRUCTIONS {
            self.waiting = 0;
            self.kernel.flush()?;
        }
        Ok(())
    }

    /// Ends the launch; returns its CTAs.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn end(self) -> Result<u64, TraceError> {
        self.kernel.end(0, 0)
    }
}

/// What one warp executed, in its order.
#[derive(Debug, Default)]
pub struct WarpRecord {
    records: Vec<Record>,
    accesses: Vec<AddressList>,
    deltas: Vec<i64>,
    /// Of an execution, by its place in `records`: where its further fields end in `text`.
    fields: Vec<(u32, usize)>,
    text: Vec<u8>,
}

impl WarpRecord {
    /// Appends an execution of the static instruction `number` by the lanes of `mask`.
    #[inline]
    pub fn push(&mut self, number: u32, mask: u32) {
        self.records.push(Record { number, mask });
    }

    /// Appends the addresses of the instruction pushed last, one that has a width.
    pub fn access(&mut self, access: &Access) {
        let list = AddressList::of(access, &mut self.deltas);
        self.accesses.push(list);
    }

    /// The same from the address of each lane, those of `mask` counting.
    #[inline]
    pub fn addresses(&mut self, mask: u32, lanes: &[u64; WARP_LANES]) {
        let step = lanes[1].wrapping_sub(lanes[0]);
        let others = lanes
            .windows(2)
            .fold(0, |others, pair| others | (pair[1].wrapping_sub(pair[0]) ^ step));
        if mask == u32::MAX && others == 0 {
            let (mode, base, stride) = (AddressMode::Stride, lanes[0], step.cast_signed());
            let deltas = to_u32(self.deltas.len());
            self.accesses.push(AddressList { mode, base, stride, deltas, delta_count: 0 });
            return;
        }
        let mut access = Access::default();
        access.set(mask, lanes);
        self.access(&access);
    }

    /// Appends the further fields of the instruction pushed last: what follows its sources where
    /// it [is open](gpumodel_core::isa::Instruction::is_open), else register values.
    pub fn fields(&mut self, fields: &str) {
        let Some(last) = self.records.len().checked_sub(1) else { return };
        self.text.extend_from_slice(fields.as_bytes());
        self.fields.push((to_u32(last), self.text.len()));
    }

    /// How many executions there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Appends all of it to `batch`; returns its records and its first access there.
    fn join(&self, batch: &mut Batch) -> (Range<usize>, usize) {
        let (first, access) = (batch.records.len(), batch.accesses.len());
        let deltas = to_u32(batch.deltas.len());
        batch.records.extend_from_slice(&self.records);
        batch.deltas.extend_from_slice(&self.deltas);
        let moved = self.accesses.iter().map(|one| {
            let mut one = *one;
            one.deltas += deltas;
            one
        });
        batch.accesses.extend(moved);
        let mut begin = 0;
        for &(place, end) in &self.fields {
            let number = batch.texts.push(&self.text[begin..end]);
            batch.tails.push((to_u32(first) + place, number));
            begin = end;
        }
        (first..batch.records.len(), access)
    }
}

#[cfg(test)]
mod tests {
    use super::{Recorder, WarpRecord};
    use crate::filter::Filter;
    use crate::store::Store;
    use gpumodel_core::isa::{Access, ControlBits, Instruction, Launch};
    use gpumodel_core::units::Dim3;

    fn instruction(pc: u64, opcode: u32, width: u8) -> Instruction {
        Instruction {
            pc,
            opcode,
            destinations: Box::default(),
            sources: Box::default(),
            width,
            immediates: Box::new([0]),
            line: None,
            control: None,
        }
    }

    /// Its launch, in clusters of two, is the same after text.
    fn through_text(scratch: &std::path::Path, store: &Store) {
        let text = scratch.join("text");
        let request = |input: &std::path::Path, output: &std::path::Path| {
            let (inputs, output) = (vec![input.to_owned()], output.to_owned());
            crate::ConvertRequest { inputs, output, ..crate::ConvertRequest::default() }
        };
        crate::export(store, &request(store.path(), &text)).unwrap();
        let trace = std::fs::read_to_string(text.join("kernel-1.traceg")).unwrap();
        assert!(trace.contains("cluster id = 0,0,0\ncluster cta = 1,0,0\ncluster rank = 1\n"));
        let again = scratch.join("again.gpt");
        crate::convert(&request(&text, &again), &crate::Silent).unwrap();
        assert_eq!(Store::open(&again).unwrap().kernel(0).launch(), store.kernel(0).launch());
    }

    #[test]
    fn further_fields_are_in_the_text() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("made.gpt");
        let mut recorder = Recorder::create(&path, "a", Filter::default()).unwrap();
        let dim = Dim3::from([1, 1, 1]);
        let (name, id) = ("k".to_owned(), 1);
        let launch = Launch { name, id, grid: dim, block: dim, ..Launch::default() };
        let opcodes = ["UTMALDG.1D".to_owned(), "SYNCS.ARRIVE".to_owned()];
        let open = Instruction { immediates: Box::new([16, 0, 0]), ..instruction(0, 0, 0) };
        let code = [open, instruction(16, 1, 0)];
        let mut kernel = recorder.launch(&launch, &opcodes, &code).unwrap().unwrap();
        let mut warp = WarpRecord::default();
        for (number, fields) in [(0, "16 0x8 0 64 0 4 0x100 1 0 0"), (1, ""), (1, "Val 1 0x3")] {
            warp.push(number, 1);
            if !fields.is_empty() {
                warp.fields(fields);
            }
        }
        kernel.cta(Dim3::default(), vec![warp]).unwrap();
        kernel.end().unwrap();
        recorder.finish().unwrap();
        let (store, text) = (Store::open(&path).unwrap(), scratch.path().join("text"));
        let (inputs, output) = (vec![path], text.clone());
        let request = crate::ConvertRequest { inputs, output, ..crate::ConvertRequest::default() };
        crate::export(&store, &request).unwrap();
        let trace = std::fs::read_to_string(text.join("kernel-1.traceg")).unwrap();
        for line in [
            "0000 00000001 0 UTMALDG.1D 0 16 0x8 0 64 0 4 0x100 1 0 0 \n",
            "0010 00000001 0 SYNCS.ARRIVE 0 0 0 \n",
            "0010 00000001 0 SYNCS.ARRIVE 0 0 0 Val 1 0x3 \n",
        ] {
            assert!(trace.contains(line), "{trace}");
        }
    }

    #[test]
    fn what_is_recorded_is_in_the_store() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("made.gpt");
        let mut recorder = Recorder::create(&path, "a", Filter::default()).unwrap();
        let dim = |x| Dim3::from([x, 1, 1]);
        let launch = Launch {
            name: "k".into(),
            id: 1,
            grid: dim(2),
            block: dim(64),
            registers: 8,
            cluster: dim(2),
            binary_version: 80,
            ..Launch::default()
        };
        let opcodes = ["LDG.E".to_owned(), "EXIT".to_owned()];
        let control = Some(ControlBits::unpacked(0x1f_ffff));
        let code = [Instruction { control, ..instruction(0, 0, 4) }, instruction(16, 1, 0)];
        let mut kernel = recorder.launch(&launch, &opcodes, &code).unwrap().unwrap();
        let mut access = Access::default();
        access.set(3, &std::array::from_fn(|lane| 4096 + 8 * lane as u64));
        for cta in 0..2 {
            let mut warps = vec![WarpRecord::default(), WarpRecord::default()];
            warps[1].push(0, 3);
            warps[1].access(&access);
            warps[1].push(1, u32::MAX);
            kernel.cta(Dim3 { x: cta, y: 0, z: 0 }, warps).unwrap();
        }
        assert_eq!(kernel.end().unwrap(), 2);
        recorder.finish().unwrap();
        let store = Store::open(&path).unwrap();
        assert_eq!(store.kernel(0).launch().cluster, dim(2));
        through_text(scratch.path(), &store);
        let mut warp = store.cta(0, 1).unwrap().warp(1);
        assert!(warp.next_segment().is_some());
        let mut read = Access::default();
        warp.access(&mut read);
        assert_eq!((read.base, read.stride, read.mask), (4096, 8, 3));
        assert_eq!(store.kernel(0).launch(), launch);
        let read = store.code(0).unwrap();
        assert_eq!([0, 1].map(|place: usize| read.instructions[place].control), [control, None]);
    }
}
