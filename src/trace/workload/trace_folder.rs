//! A workload as an Accel-Sim trace folder: `kernelslist.g` and one grouped
//! trace per launch, version 5 of the tracer.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use liblzma::write::XzEncoder;
use xxhash_rust::xxh3::Xxh3;

use gpumodel_core::isa::{Code, Launch};
use gpumodel_core::units::{Dim3, WholeFolder, to_u64, to_usize};

use super::{Cta, CtaRecords, Kernel, Workload, WorkloadError};
use crate::Command;
use crate::grouped_text::{CTA_END, LIST, LineText, cluster_note, copy_line, push_cta, push_warp};

/// Level of xz: these texts repeat over long distances.
const XZ_LEVEL: u32 = 6;

/// How trace files are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Plain text, `kernel-N.traceg`.
    None,
    /// One xz stream per file, `kernel-N.traceg.xz`.
    Xz,
}

/// What a trace folder holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FolderReport {
    /// Launches.
    pub kernels: usize,
    /// Instructions of warps.
    pub warp_instructions: u64,
    /// Instructions of threads: active lanes, summed.
    pub thread_instructions: u64,
    /// Bytes of the plain texts, the command list included.
    pub text_bytes: u64,
    /// XXH3 (64 bits, in hex) over the plain texts of the launches in order.
    pub text_hash: String,
    /// Instructions of warps, by opcode.
    pub opcodes: BTreeMap<String, u64>,
}

/// Writes `workload` into `folder`, which appears whole or not at all; files of
/// the same names in a folder that exists are replaced.
///
/// `progress` is called before each launch with its index.
///
/// # Errors
/// When an address lies outside its space, a warp does not end in time, or the
/// file system refuses.
pub fn write_folder(
    workload: &Workload,
    folder: &Path,
    compression: Compression,
    progress: &mut dyn FnMut(usize),
) -> Result<FolderReport, WorkloadError> {
    let report = FolderReport::default();
    let writer = FolderWriter { workload, compression, hash: Xxh3::new(), report };
    writer.write(folder, progress).map_err(|halt| match halt {
        Halt::Workload(error) => error,
        Halt::Output(source) => WorkloadError::Write { path: folder.to_path_buf(), source },
    })
}

/// Why the writing ended early.
enum Halt {
    /// The output refused bytes.
    Output(io::Error),
    /// An address lies outside its space, or a warp does not end in time.
    Workload(WorkloadError),
}

impl From<io::Error> for Halt {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

struct FolderWriter<'a> {
    workload: &'a Workload,
    compression: Compression,
    hash: Xxh3,
    report: FolderReport,
}

impl FolderWriter<'_> {
    fn write(
        mut self,
        folder: &Path,
        progress: &mut dyn FnMut(usize),
    ) -> Result<FolderReport, Halt> {
        let whole = WholeFolder::create(folder)?;
        let mut list = String::new();
        let mut names = Vec::new();
        for command in self.workload.commands() {
            match command {
                Command::Copy(copy) => list.push_str(&copy_line(&copy)),
                Command::Kernel(index) => {
                    progress(index);
                    let ending = if self.compression == Compression::Xz { ".xz" } else { "" };
                    let name = format!("kernel-{}.traceg{ending}", index + 1);
                    self.write_file(index, &whole.path().join(&name))?;
                    list.push_str(&name);
                    list.push('\n');
                    names.push(name);
                }
            }
        }
        std::fs::write(whole.path().join(LIST), &list)?;
        self.report.kernels = names.len();
        self.report.text_bytes += to_u64(list.len());
        self.report.text_hash = format!("{:016x}", self.hash.digest());
        names.push(LIST.to_owned());
        whole.finish(&names)?;
        Ok(self.report)
    }

    fn write_file(&mut self, index: usize, target: &Path) -> Result<(), Halt> {
        let file = BufWriter::with_capacity(1 << 18, File::create(target)?);
        let kernel = self.workload.kernel(index);
        let hash = &mut self.hash;
        let text = KernelText::new(self.workload, &kernel);
        let mut file = match self.compression {
            Compression::None => {
                let mut out = Hashed { inner: file, hash };
                text.write(&kernel, &mut out, &mut self.report)?;
                out.inner
            }
            Compression::Xz => {
                let mut out = Hashed { inner: XzEncoder::new(file, XZ_LEVEL), hash };
                text.write(&kernel, &mut out, &mut self.report)?;
                out.inner.finish()?
            }
        };
        file.flush()?;
        Ok(file.get_ref().sync_all()?)
    }
}

/// Passes bytes on and hashes them.
struct Hashed<'a, W> {
    inner: W,
    hash: &'a mut Xxh3,
}

impl<W: Write> Write for Hashed<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = self.inner.write(bytes)?;
        self.hash.update(&bytes[..taken]);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Bytes of the text of the first CTA of `kernel`.
///
/// # Errors
/// When an address of it lies outside its space, or a warp of it does not end in time.
pub(crate) fn cta_bytes(workload: &Workload, kernel: &Kernel) -> Result<u64, WorkloadError> {
    let mut text = KernelText::new(workload, kernel);
    text.cta(&kernel.cta(0))?;
    Ok(to_u64(text.text.len()))
}

/// The text before the first CTA of a launch, which the verb `writer` writes.
pub(crate) fn header(launch: &Launch, writer: &str) -> String {
    let mut text = String::new();
    write_header(&mut text, launch, writer).expect("a String takes everything");
    text
}

fn write_header(text: &mut String, launch: &Launch, writer: &str) -> std::fmt::Result {
    writeln!(text, "-kernel name = {}", launch.name)?;
    writeln!(text, "-kernel id = {}", launch.id)?;
    writeln!(text, "-grid dim = {}", launch.grid)?;
    writeln!(text, "-block dim = {}", launch.block)?;
    writeln!(text, "-shmem = {}", launch.shared_bytes)?;
    writeln!(text, "-nregs = {}", launch.registers)?;
    writeln!(text, "-binary version = {}", launch.binary_version)?;
    writeln!(text, "-cuda stream id = {}", launch.stream)?;
    writeln!(text, "-shmem base_addr = {:#018x}", launch.shared_window)?;
    writeln!(text, "-local mem base_addr = {:#018x}", launch.local_window)?;
    writeln!(text, "-nvbit version = none (gpumodel {writer})")?;
    writeln!(text, "-accelsim tracer version = 5")?;
    writeln!(text, "-enable lineinfo = 0")?;
    // The tracer's own comment, with its spelling; then two blank lines of its.
    writeln!(
        text,
        "\n#traces format = [line_num] PC mask dest_num [reg_dests] opcode src_num [reg_srcs] \
         mem_width [adrrescompress?] [mem_addresses] immediate\n\n"
    )
}

/// The text of one launch while it is written.
struct KernelText<'a> {
    records: CtaRecords<'a>,
    cluster: Dim3,
    code: Arc<Code>,
    texts: Vec<LineText>,
    text: Vec<u8>,
    /// Lines of the warp that is being written.
    lines: Vec<u8>,
    /// Per instruction: how many warps executed it, and how many lanes.
    executed: Vec<[u64; 2]>,
}

impl<'a> KernelText<'a> {
    fn new(workload: &'a Workload, kernel: &'a Kernel) -> Self {
        let code = kernel.code();
        Self {
            records: CtaRecords::new(workload, kernel),
            cluster: kernel.launch().cluster,
            executed: vec![[0; 2]; code.instructions.len()],
            texts: LineText::of(&code),
            code,
            text: Vec::new(),
            lines: Vec::new(),
        }
    }

    /// Writes the launch to `out` and adds it to `report`.
    fn write(
        mut self,
        kernel: &Kernel,
        out: &mut dyn Write,
        report: &mut FolderReport,
    ) -> Result<(), Halt> {
        self.text = header(kernel.launch(), "synth").into_bytes();
        for ordinal in 0..kernel.cta_count() {
            self.cta(&kernel.cta(ordinal)).map_err(Halt::Workload)?;
            report.text_bytes += to_u64(self.text.len());
            out.write_all(&self.text)?;
            self.text.clear();
        }
        for (instruction, [warps, lanes]) in self.code.instructions.iter().zip(self.executed) {
            if warps > 0 {
                let opcode = self.code.opcodes[to_usize(instruction.opcode)].clone();
                *report.opcodes.entry(opcode).or_default() += warps;
                report.warp_instructions += warps;
                report.thread_instructions += lanes;
            }
        }
        Ok(())
    }

    fn cta(&mut self, cta: &Cta) -> Result<(), WorkloadError> {
        push_cta(&mut self.text, cta.position());
        if self.cluster.count() > 1 {
            self.text.extend(cluster_note(cta.position(), self.cluster));
            self.text.push(b'\n');
        }
        let Self { records, texts, text, lines, executed, .. } = self;
        for warp in 0..cta.warp_count() {
            lines.clear();
            let count = records.warp(cta, warp, |one| {
                let [warps, threads] = &mut executed[one.index];
                *warps += 1;
                *threads += u64::from(one.mask.count_ones());
                texts[one.index].push(lines, one.mask, one.access);
                lines.extend_from_slice(one.tail.unwrap_or_default().as_bytes());
                lines.push(b'\n');
            })?;
            push_warp(text, warp, count);
            text.extend_from_slice(lines);
        }
        text.extend_from_slice(CTA_END);
        Ok(())
    }
}
