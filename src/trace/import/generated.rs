//! Launches whose records are made while they are converted: no text holds them.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;

use crate::error::TraceError;
use crate::store::Command;
use crate::store::records::{Batch, Block, Lines, Piece, Record, Static};
use crate::store::varint::low_byte;
use crate::store::writer::StoreWriter;
use gpumodel_core::isa::{Access, AddressMode, Code};
use gpumodel_core::units::{Dim3, to_u32, to_u64, to_usize};

use super::Imported;
use super::accelsim::header::{self, Header};
use super::request::{ConvertReport, Progress};
use crate::store::kernel_writer::{Kernel, MOST_CTA_BYTES, MOST_CTA_INSTRUCTIONS};

/// Takes one executed instruction: warp in the CTA, index in the code, active lanes, and the
/// addresses where the instruction has a width.
pub type TakeRecord<'a> = dyn FnMut(u32, usize, u32, Option<&Access>) + 'a;

/// Who makes the records of launches. Any CTA may be asked for at any time.
pub trait Launches: Sync {
    /// What errors and warnings call them.
    fn name(&self) -> String;
    /// Copies and launches in order; launches count from 0.
    fn commands(&self) -> Vec<Command>;
    /// What all of [`Launches::cta_bytes`] are together: the whole of the progress.
    fn about_bytes(&self) -> u64;
    /// About the bytes of a CTA's text: by what a CTA takes the progress further.
    fn cta_bytes(&self, launch: usize) -> u64;
    /// The header of the launch's text, as Accel-Sim's tracer would write it.
    fn header(&self, launch: usize) -> String;
    /// The instructions of a launch, which records name by their index.
    fn code(&self, launch: usize) -> Arc<Code>;
    /// Gives the records of the CTA `number` (x fastest) to `take`, warp by warp.
    ///
    /// # Errors
    /// Why there is no such CTA.
    fn cta(&self, launch: usize, number: u64, take: &mut TakeRecord<'_>) -> io::Result<()>;
}

/// Converts `launches` to the store at `output`: its content is that of a store that
/// [`convert`](super::convert) makes of their texts, but there was no text, whose size is 0.
/// On an error nothing is left behind.
///
/// # Errors
/// [`TraceError`]; [`TraceError::Io`] with `what` = `make` holds what [`Launches::cta`] said.
pub fn convert_launches(
    launches: &dyn Launches,
    output: &Path,
    progress: &dyn Progress,
) -> Result<ConvertReport, TraceError> {
    progress.begin(launches.about_bytes());
    let mut writer = StoreWriter::create(output)?;
    let mut report = ConvertReport::default();
    for command in launches.commands() {
        match command {
            Command::MemcpyHtoD { .. } => writer.command(command),
            Command::Kernel(launch) => {
                let walked = Walked::new(launches, launch)?;
                let ctas = walked.import(&mut writer, progress)?;
                report.add(&walked.name, &Imported { ctas, ..Imported::default() });
            }
        }
    }
    if report.kernels == 0 {
        return Err(TraceError::Request(format!("{}: no launch to convert", launches.name())));
    }
    report.store_bytes = writer.finish()?;
    Ok(report)
}

/// About the warp instructions that are walked before what is complete is packed.
const ROUND_INSTRUCTIONS: usize = 1 << 19;
/// No CTA is begun while so many are held.
const MOST_INSTRUCTIONS: usize = 2 * ROUND_INSTRUCTIONS;
/// Most CTAs that are walked before that.
const ROUND_CTAS: usize = 1 << 12;

/// One launch.
struct Walked<'a> {
    launches: &'a dyn Launches,
    launch: usize,
    /// What errors call it.
    name: PathBuf,
    header: Header,
    statics: Arc<Vec<Static>>,
}

impl<'a> Walked<'a> {
    fn new(launches: &'a dyn Launches, launch: usize) -> Result<Self, TraceError> {
        let name = PathBuf::from(format!("{}, launch {}", launches.name(), launch + 1));
        let header = header::read(launches.header(launch).as_bytes());
        let header = header.map_err(|fault| fault.in_file(&name, 1))?;
        let statics = Arc::new(statics(&launches.code(launch)));
        Ok(Self { launches, launch, name, header, statics })
    }

    /// Walks CTAs in parallel and takes them in order; gives their number. The store does not
    /// tell how many were walked at once.
    fn import(&self, writer: &mut StoreWriter, progress: &dyn Progress) -> Result<u64, TraceError> {
        let launch = &self.header.launch;
        let index = writer.kernel(launch, &self.header.text);
        writer.command(Command::Kernel(index));
        let mut kernel = Kernel::new(writer, launch.grid);
        let mut numbers = Arc::new(vec![u32::MAX; self.statics.len()]);
        let (ctas, part) = (to_usize(launch.grid.count()), self.launches.cta_bytes(self.launch));
        let (mut next, mut round) = (0, 1);
        while next < ctas {
            let (begin, mut instructions) = (next, 0);
            for block in self.round(begin..ctas.min(begin + round)) {
                let mut block = block?;
                instructions += block.instructions();
                kernel.learn(&mut numbers, &mut block);
                kernel.push(block);
                next += 1;
            }
            kernel.flush()?;
            progress.advance(part.saturating_mul(to_u64(next - begin)));
            let fitting = ROUND_INSTRUCTIONS * (next - begin) / instructions.max(1);
            round = fitting.clamp(1, ROUND_CTAS);
        }
        kernel.end(0, 0)
    }

    /// The first of some CTAs, one at least, in order: as many as are held at once.
    fn round(&self, ctas: Range<usize>) -> impl Iterator<Item = Result<Block, TraceError>> {
        let (first, held) = (ctas.start, AtomicUsize::new(0));
        let walk = |number: usize| {
            if number > first && held.load(Ordering::Relaxed) >= MOST_INSTRUCTIONS {
                return None;
            }
            let block = self.block(to_u64(number));
            if let Ok(block) = &block {
                held.fetch_add(block.instructions(), Ordering::Relaxed);
            }
            Some(block)
        };
        let walked: Vec<Option<Result<Block, TraceError>>> =
            ctas.into_par_iter().map(walk).collect();
        walked.into_iter().map_while(|block| block)
    }

    /// A CTA whose statics have no numbers of the kernel yet.
    fn block(&self, number: u64) -> Result<Block, TraceError> {
        let launch = &self.header.launch;
        let mut gathered = Gathered::new(&self.statics, launch.warps_per_cta());
        let made = self.launches.cta(self.launch, number, &mut |warp, index, mask, access| {
            gathered.take(warp, index, mask, access);
        });
        made.map_err(|error| TraceError::io("make", &self.name, error))?;
        let position = launch.grid.position(number);
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

fn statics(code: &Code) -> Vec<Static> {
    let instructions = code.instructions.iter();
    instructions
        .map(|one| Static {
            pc: one.pc,
            opcode: code.opcodes[to_usize(one.opcode)].as_str().into(),
            destinations: one.destinations.clone(),
            sources: one.sources.clone(),
            width: one.width,
            immediates: one.immediates.clone(),
            line: one.line,
        })
        .collect()
}

/// The records of a CTA while they come.
struct Gathered {
    batch: Batch,
    /// The statics that came.
    seen: Vec<bool>,
    /// Per warp its records, and its first access.
    warps: Vec<(Range<usize>, usize)>,
    /// There are more than a CTA may have.
    full: bool,
}

impl Gathered {
    fn new(statics: &Arc<Vec<Static>>, warps: u32) -> Self {
        Self {
            batch: Batch { statics: Arc::clone(statics), ..Batch::default() },
            seen: vec![false; statics.len()],
            warps: vec![(0..0, 0); to_usize(warps)],
            full: false,
        }
    }

    fn take(&mut self, warp: u32, index: usize, mask: u32, access: Option<&Access>) {
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
        let number = to_u32(index);
        if !std::mem::replace(&mut self.seen[index], true) {
            batch.order.push(number);
        }
        batch.records.push(Record { number, mask });
        if let Some(access) = access {
            let lines = lines(access, &mut batch.deltas);
            batch.accesses.push(lines);
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

/// The addresses as a line lists them; differences go to `deltas`.
fn lines(access: &Access, deltas: &mut Vec<i64>) -> Lines {
    let (first, mut last) = (deltas.len(), access.base);
    if access.mode != AddressMode::Stride {
        for (_, address) in access.active().skip(1) {
            deltas.push(address.wrapping_sub(last).cast_signed());
            last = address;
        }
    }
    let delta_count = low_byte(to_u64(deltas.len() - first));
    let Access { mode, base, stride, .. } = *access;
    Lines { mode, base, stride, deltas: to_u32(first), delta_count }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::path::Path;
    use std::sync::Arc;

    use super::{Launches, MOST_INSTRUCTIONS, TakeRecord, Walked, convert_launches};
    use crate::error::TraceError;
    use crate::store::{Command, Store};
    use crate::{ConvertRequest, Silent, convert};
    use gpumodel_core::isa::{Code, Instruction, Segment};
    use gpumodel_core::units::to_u64;

    /// One launch of so many CTAs of one warp that ends; the CTA `fails` cannot be made.
    struct Launch {
        ctas: u64,
        fails: Option<u64>,
        /// Instructions of a CTA; the first has one.
        length: u64,
    }

    impl Launch {
        fn text(&self) -> String {
            let mut text = self.header(0);
            for cta in 0..self.ctas {
                text += &format!("#BEGIN_TB\nthread block = {cta},0,0\nwarp = 0\ninsts = 1\n");
                text += "0000 ffffffff 0 EXIT 0 0 0 \n#END_TB\n";
            }
            text
        }
    }

    impl Launches for Launch {
        fn name(&self) -> String {
            "test".into()
        }

        fn commands(&self) -> Vec<Command> {
            vec![Command::MemcpyHtoD { destination: 64, bytes: 32 }, Command::Kernel(0)]
        }

        fn about_bytes(&self) -> u64 {
            self.ctas
        }

        fn cta_bytes(&self, _: usize) -> u64 {
            1
        }

        fn header(&self, _: usize) -> String {
            format!(
                "-kernel name = k\n-kernel id = 1\n-grid dim = ({},1,1)\n-block dim = (32,1,1)\n\
                 -shmem = 0\n-nregs = 8\n-binary version = 70\n-cuda stream id = 0\n\
                 -shmem base_addr = 0x0\n-local mem base_addr = 0x0\n-nvbit version = none\n\
                 -accelsim tracer version = 5\n-enable lineinfo = 0\n\n",
                self.ctas
            )
        }

        fn code(&self, _: usize) -> Arc<Code> {
            let exit = Instruction {
                pc: 0,
                opcode: 0,
                destinations: [].into(),
                sources: [].into(),
                width: 0,
                immediates: [0].into(),
                line: None,
            };
            Arc::new(Code {
                opcodes: vec!["EXIT".into()],
                instructions: vec![exit],
                segments: vec![Segment { first: 0, length: 1 }],
            })
        }

        fn cta(&self, _: usize, number: u64, take: &mut TakeRecord<'_>) -> io::Result<()> {
            if self.fails == Some(number) {
                return Err(io::Error::other("no more"));
            }
            let times = if number == 0 { 1 } else { self.length };
            (0..times).for_each(|_| take(0, 0, u32::MAX, None));
            Ok(())
        }
    }

    #[test]
    fn walked_launches_give_the_store_of_their_texts() {
        let scratch = tempfile::tempdir().unwrap();
        let launch = Launch { ctas: 140_000, fails: None, length: 1 };
        let made = scratch.path().join("made.gpt");
        let report = convert_launches(&launch, &made, &Silent).unwrap();
        std::fs::write(scratch.path().join("kernel-1.traceg"), launch.text()).unwrap();
        let list = scratch.path().join("kernelslist.g");
        std::fs::write(&list, "MemcpyHtoD,0x40,32\nkernel-1.traceg\n").unwrap();
        let output = scratch.path().join("read.gpt");
        let request = ConvertRequest { inputs: vec![list], output, ..Default::default() };
        let read = convert(&request, &Silent).unwrap();
        assert_eq!((report.kernels, report.text_bytes), (1, 0));
        assert_eq!(report.store_bytes, read.store_bytes);
        let content = |path: &Path| Store::open(path).unwrap().content_hash();
        assert_eq!(content(&made), content(&request.output));
    }

    #[test]
    fn no_more_is_held_than_a_round_though_the_first_cta_was_small() {
        let length = to_u64(MOST_INSTRUCTIONS) / 8;
        let launch = Launch { ctas: 256, fails: None, length };
        let walked = Walked::new(&launch, 0).unwrap();
        let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
        let held = |ctas: std::ops::Range<usize>| pool.install(|| walked.round(ctas).count());
        assert_eq!(held(0..1), 1);
        // Eight fill it; each thread may be at one more.
        assert!((1..=10).contains(&held(1..256)), "{}", held(1..256));
        assert_eq!(held(200..204), 4);
    }

    #[test]
    fn a_cta_that_cannot_be_made_leaves_no_store() {
        let scratch = tempfile::tempdir().unwrap();
        let output = scratch.path().join("made.gpt");
        let launch = Launch { ctas: 9000, fails: Some(5000), length: 1 };
        let error = convert_launches(&launch, &output, &Silent).unwrap_err();
        assert!(matches!(error, TraceError::Io { what: "make", .. }), "{error}");
        assert_eq!(error.to_string(), "cannot make test, launch 1");
        assert_eq!(scratch.path().read_dir().unwrap().count(), 0);
    }
}
