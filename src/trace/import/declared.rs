//! Workload models to a store: their records are packed as they are computed, and no text
//! holds them.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use gpumodel_core::isa::Launch;
use gpumodel_core::units::{Dim3, to_u32, to_u64, to_usize};
use rayon::prelude::*;

use super::accelsim::header::{self, Header};
use super::{ConvertReport, Imported, Progress};
use crate::error::TraceError;
use crate::grouped_text::cluster_note;
use crate::recorder::statics;
use crate::store::Command;
use crate::store::chunk_writer::{KernelWriter, MOST_CTA_BYTES, MOST_CTA_INSTRUCTIONS};
use crate::store::records::{AddressList, Batch, Block, Piece, Record, Static};
use crate::store::writer::StoreWriter;
use crate::workload::{self, CtaRecords, Executed, Kernel, Workload};

/// Converts `workload` to the store at `output`: its content is that of a store that
/// [`convert`](super::convert) makes of the workload's texts, but there was no text, whose size
/// is 0. On an error nothing is left behind.
///
/// # Errors
/// [`TraceError`]; [`TraceError::Workload`] when an address lies outside its space or a warp
/// does not end in time.
pub fn convert_workload(
    workload: &Workload,
    output: &Path,
    progress: &dyn Progress,
) -> Result<ConvertReport, TraceError> {
    let first_bytes = |launch| workload::cta_bytes(workload, &workload.kernel(launch));
    let cta_bytes: Vec<u64> =
        workload.first_launches().into_iter().map(first_bytes).collect::<Result<_, _>>()?;
    let bytes_of = |launch| cta_bytes[workload.kernel_of(launch)];
    let all = (0..workload.kernel_count())
        .map(|launch| workload.kernel(launch).cta_count().saturating_mul(bytes_of(launch)));
    progress.begin(all.fold(0, u64::saturating_add));
    let mut writer = StoreWriter::create(output)?;
    let mut report = ConvertReport::default();
    for command in workload.commands() {
        match command {
            Command::Copy(_) => writer.command(command),
            Command::Kernel(launch) => {
                let kernel = workload.kernel(launch);
                let source = LaunchSource::new(workload, &kernel, launch)?;
                let ctas = source.import(&mut writer, bytes_of(launch), progress)?;
                report.add(&source.name, &Imported { ctas, ..Imported::default() });
            }
        }
    }
    report.store_bytes = writer.finish()?;
    Ok(report)
}

/// The launch as its header says it, and the header, for a launch that `gpumodel trace` runs.
///
/// # Errors
/// When the name or the dimensions are none that a trace may have.
pub(crate) fn header_of(launch: &Launch, path: &Path) -> Result<(Launch, String), TraceError> {
    let text = workload::header(launch, "trace");
    let header = header::read(text.as_bytes()).map_err(|fault| fault.in_file(path, 1))?;
    Ok((header.launch, header.text))
}

/// Warp instructions of a round, about: then complete CTAs are packed.
const ROUND_INSTRUCTIONS: usize = 1 << 19;
/// No CTA is begun while so many are held.
const MOST_INSTRUCTIONS: usize = 2 * ROUND_INSTRUCTIONS;
/// Most CTAs of a round.
const ROUND_CTAS: usize = 1 << 12;

/// One launch whose records are computed.
struct LaunchSource<'a> {
    workload: &'a Workload,
    kernel: &'a Kernel,
    /// Its name in errors and warnings.
    name: PathBuf,
    header: Header,
    statics: Arc<Vec<Static>>,
}

impl<'a> LaunchSource<'a> {
    fn new(workload: &'a Workload, kernel: &'a Kernel, launch: usize) -> Result<Self, TraceError> {
        let name = PathBuf::from(format!("synth:{}, launch {}", workload.name(), launch + 1));
        let header = header::read(workload::header(kernel.launch(), "synth").as_bytes());
        let header = header.map_err(|fault| fault.in_file(&name, 1))?;
        let code = kernel.code();
        let statics = Arc::new(statics(&code.opcodes, &code.instructions));
        Ok(Self { workload, kernel, name, header, statics })
    }

    /// Computes CTAs in parallel and packs them in order; returns their number. The store does
    /// not depend on how many were computed at once. Each CTA advances `progress` by
    /// `cta_bytes`.
    fn import(
        &self,
        writer: &mut StoreWriter,
        cta_bytes: u64,
        progress: &dyn Progress,
    ) -> Result<u64, TraceError> {
        let launch = &self.header.launch;
        let index = writer.kernel(launch, &self.header.text);
        writer.command(Command::Kernel(index));
        let mut kernel = KernelWriter::new(writer, launch.grid);
        let ctas = to_usize(launch.grid.count());
        let (mut next, mut round) = (0, 1);
        while next < ctas {
            let (begin, mut instructions) = (next, 0);
            for block in self.round(begin..ctas.min(begin + round)) {
                let mut block = block?;
                instructions += block.instructions();
                self.place_in_cluster(&mut kernel, &mut block);
                kernel.number(&mut block);
                kernel.push(block);
                next += 1;
            }
            kernel.flush()?;
            progress.advance(cta_bytes.saturating_mul(to_u64(next - begin)));
            let fitting = ROUND_INSTRUCTIONS * (next - begin) / instructions.max(1);
            round = fitting.clamp(1, ROUND_CTAS);
        }
        kernel.end(0, 0)
    }

    /// Notes the place of a CTA in its cluster, where it has one.
    fn place_in_cluster(&self, kernel: &mut KernelWriter<'_>, block: &mut Block) {
        let (Dim3 { x, y, z }, of) = (block.position, self.kernel.launch().cluster);
        if of.count() > 1 {
            kernel.in_cluster(Dim3::new(x % of.x, y % of.y, z % of.z));
            block.note = cluster_note(block.position, of);
        }
    }

    /// The first of some CTAs, one at least, in order: as many as are held at once.
    fn round(&self, ctas: Range<usize>) -> impl Iterator<Item = Result<Block, TraceError>> {
        let (first, held) = (ctas.start, AtomicUsize::new(0));
        let compute = |number: usize| {
            if number > first && held.load(Ordering::Relaxed) >= MOST_INSTRUCTIONS {
                return None;
            }
            let block = self.block(to_u64(number));
            if let Ok(block) = &block {
                held.fetch_add(block.instructions(), Ordering::Relaxed);
            }
            Some(block)
        };
        let computed: Vec<Option<Result<Block, TraceError>>> =
            ctas.into_par_iter().map(compute).collect();
        computed.into_iter().map_while(|block| block)
    }

    /// A CTA whose statics have no numbers of the kernel yet.
    fn block(&self, number: u64) -> Result<Block, TraceError> {
        let cta = self.kernel.cta(number);
        let mut gathered = Gathered::new(&self.statics, cta.warp_count());
        let mut records = CtaRecords::new(self.workload, self.kernel);
        for warp in 0..cta.warp_count() {
            records.warp(&cta, warp, |one| gathered.take(warp, &one))?;
        }
        let position = cta.position();
        if gathered.full {
            return Err(TraceError::Request(format!(
                "{}: CTA {position}: more than {MOST_CTA_INSTRUCTIONS} instructions or {} MiB \
                 of records in a thread block",
                self.name.display(),
                MOST_CTA_BYTES >> 20
            )));
        }
        Ok(gathered.block(position))
    }
}

/// The records of a CTA so far.
struct Gathered {
    batch: Batch,
    /// Per warp its records, and its first access.
    warps: Vec<(Range<usize>, usize)>,
    /// There were more records than a CTA may have.
    full: bool,
}

impl Gathered {
    fn new(statics: &Arc<Vec<Static>>, warps: u32) -> Self {
        Self { batch: Batch::of(statics), warps: vec![(0..0, 0); to_usize(warps)], full: false }
    }

    fn take(&mut self, warp: u32, one: &Executed<'_>) {
        let batch = &mut self.batch;
        let at = batch.records.len();
        self.full |= at >= MOST_CTA_INSTRUCTIONS || batch.bytes() > MOST_CTA_BYTES;
        if self.full {
            return;
        }
        let (records, first) = &mut self.warps[to_usize(warp)];
        if records.start == records.end {
            (records.start, *first) = (at, batch.accesses.len());
        }
        records.end = at + 1;
        batch.records.push(Record { number: to_u32(one.index), mask: one.mask });
        if let Some(access) = one.access {
            let lines = AddressList::of(access, &mut batch.deltas);
            batch.accesses.push(lines);
        }
        if let Some(tail) = one.tail {
            let text = batch.texts.push(tail.as_bytes());
            batch.tails.push((to_u32(at), text));
        }
    }

    fn block(self, position: Dim3) -> Block {
        let (batch, numbers) = (Arc::new(self.batch), Arc::new(Vec::new()));
        let pieces = |(records, access): (Range<usize>, usize)| -> Vec<Piece> {
            if records.is_empty() {
                return Vec::new();
            }
            let (batch, numbers) = (Arc::clone(&batch), Arc::clone(&numbers));
            vec![Piece { batch, numbers, records, access }]
        };
        let warps = self.warps.into_iter().map(pieces).collect();
        Block { position, warps, note: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::{LaunchSource, MOST_INSTRUCTIONS, convert_workload};
    use crate::error::TraceError;
    use crate::store::Store;
    use crate::workload::{Compression, Workload, write_folder};
    use crate::{ConvertRequest, Silent, convert};

    /// One launch of so many CTAs of one warp that runs `code`.
    fn workload(ctas: u64, code: &str) -> Workload {
        clustered(ctas, 1, code)
    }

    /// The same in clusters.
    fn clustered(ctas: u64, cluster: u64, code: &str) -> Workload {
        let text = format!(
            "description = 'd'\nbehaviour = 'b'\nsource = 's'\n\
             [buffers]\nx = {{ bytes = 4096, copy = true }}\n\
             [[kernel]]\nname = 'k'\ngrid = [{ctas}]\nblock = [32]\nregisters = 8\nshared_bytes = 64\n\
             cluster = [{cluster}]\ncode = [{code} 'EXIT']\n"
        );
        Workload::parse("test", "test.toml", text, 1.0).unwrap()
    }

    #[test]
    fn a_workload_gives_the_store_of_its_texts() {
        let scratch = tempfile::tempdir().unwrap();
        let workload = workload(140_000, "");
        let made = scratch.path().join("made.gpt");
        let report = convert_workload(&workload, &made, &Silent).unwrap();
        let folder = scratch.path().join("folder");
        write_folder(&workload, &folder, Compression::None, &mut |_| {}).unwrap();
        let output = scratch.path().join("read.gpt");
        let request = ConvertRequest { inputs: vec![folder], output, ..Default::default() };
        let read = convert(&request, &Silent).unwrap();
        assert_eq!((report.kernels, report.text_bytes), (1, 0));
        // The name of the folder is all that one has more.
        assert!(report.store_bytes < read.store_bytes);
        let content = |path: &std::path::Path| Store::open(path).unwrap().content_hash();
        assert_eq!(content(&made), content(&request.output));
    }

    /// Copies, steps at barrier objects and multiplies of groups end in the same text.
    #[test]
    fn asynchronous_fields_are_those_of_the_texts() {
        let scratch = tempfile::tempdir().unwrap();
        let code = "'@(lane == 0) SYNCS.EXCH.64 R2, R3 [8] #{1}', \
            '@(lane == 0) SYNCS.ARRIVE.TRANS64 R2, R3 [8] #{512}', \
            { bulk = 'UTMALDG.2D', address = 'x + 128 * cta', rows = 4, row_bytes = 128, \
              pitch = 256, object = 8 }, \
            'SYNCS.PHASECHK.TRANS64.TRYWAIT R2, R3 [8] #{0}', 'R4 = HGMMA.64x{8 * 4}x16.F32 R4 #1',";
        let workload = clustered(4, 2, code);
        let made = scratch.path().join("made.gpt");
        convert_workload(&workload, &made, &Silent).unwrap();
        let folder = scratch.path().join("folder");
        write_folder(&workload, &folder, Compression::None, &mut |_| {}).unwrap();
        let text = std::fs::read_to_string(folder.join("kernel-1.traceg")).unwrap();
        assert!(text.contains("UTMALDG.2D 0 16 0x8 0 512 0 4 0x7f4000000080 4 256 256 256\n"));
        assert!(text.contains("HGMMA.64x32x16.F32 1 R4 1 0 0\n"), "{text}");
        let output = scratch.path().join("read.gpt");
        let request = ConvertRequest { inputs: vec![folder], output, ..Default::default() };
        convert(&request, &Silent).unwrap();
        let content = |path: &std::path::Path| Store::open(path).unwrap().content_hash();
        assert_eq!(content(&made), content(&request.output));
        assert_eq!(Store::open(&made).unwrap().kernel(0).launch().cluster_ctas(), 2);
    }

    #[test]
    fn no_more_is_held_than_a_round_though_the_first_cta_was_small() {
        let count = MOST_INSTRUCTIONS / 8;
        let code = format!("{{ loop = 'i', count = 'min(cta, 1) * {count}', body = ['MOV'] }},");
        let workload = workload(256, &code);
        let kernel = workload.kernel(0);
        let source = LaunchSource::new(&workload, &kernel, 0).unwrap();
        let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
        let held = |ctas: std::ops::Range<usize>| pool.install(|| source.round(ctas).count());
        assert_eq!(held(0..1), 1);
        // Four fill it, as an iteration has a branch; each thread may be at one more.
        assert!((1..=6).contains(&held(1..256)), "{}", held(1..256));
        assert_eq!(held(200..203), 3);
    }

    #[test]
    fn a_cta_with_a_wrong_address_leaves_no_store() {
        let scratch = tempfile::tempdir().unwrap();
        let output = scratch.path().join("made.gpt");
        let workload = workload(9000, "'R1 = LDG R2 [x + 4096 * (cta / 5000)]',");
        let error = convert_workload(&workload, &output, &Silent).unwrap_err();
        assert!(matches!(error, TraceError::Workload(_)), "{error}");
        assert!(error.to_string().contains("CTA (5000,0,0)"), "{error}");
        assert_eq!(scratch.path().read_dir().unwrap().count(), 0);
    }
}
