//! A launch as grouped trace text of Accel-Sim's tracer, version 5.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::sync::Arc;

use gpumodel_core::isa::{Access, AddressMode, Code, Instruction, Launch};
use gpumodel_core::units::{to_u32, to_u64, to_usize};

use super::{Cta, CtaRecords, Kernel, Workload, WorkloadError};

/// What was written of one launch, or of several.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    /// Instructions of warps.
    pub(super) warp_instructions: u64,
    /// Instructions of threads: active lanes, summed.
    pub(super) thread_instructions: u64,
    /// Bytes of text.
    pub(super) text_bytes: u64,
    /// Instructions of warps, by opcode.
    pub(super) opcodes: BTreeMap<String, u64>,
}

impl Totals {
    /// Adds what was written of another launch.
    pub(super) fn add(&mut self, other: &Self) {
        self.warp_instructions += other.warp_instructions;
        self.thread_instructions += other.thread_instructions;
        self.text_bytes += other.text_bytes;
        for (opcode, executed) in &other.opcodes {
            *self.opcodes.entry(opcode.clone()).or_default() += executed;
        }
    }
}

/// Why a launch's text ended early.
pub(super) enum Halt {
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

/// Writes a launch of `workload` to `out`.
///
/// # Errors
/// When an address lies outside its space or is not aligned, when a warp does
/// not end in time, or when the output fails.
pub(super) fn write_kernel(
    workload: &Workload,
    kernel: &Kernel,
    out: &mut dyn Write,
) -> Result<Totals, Halt> {
    let mut writer = KernelText::new(workload, kernel);
    writer.text = header(kernel.launch());
    for ordinal in 0..kernel.cta_count() {
        writer.cta(&kernel.cta(ordinal)).map_err(Halt::Workload)?;
        writer.totals.text_bytes += to_u64(writer.text.len());
        out.write_all(writer.text.as_bytes())?;
        writer.text.clear();
    }
    Ok(writer.finished())
}

/// Bytes of the text of the first CTA of `kernel`.
///
/// # Errors
/// When an address of it lies outside its space, or a warp of it does not end in time.
pub(crate) fn cta_bytes(workload: &Workload, kernel: &Kernel) -> Result<u64, WorkloadError> {
    let mut writer = KernelText::new(workload, kernel);
    writer.cta(&kernel.cta(0))?;
    Ok(to_u64(writer.text.len()))
}

/// The text before the first CTA of a launch.
pub(crate) fn header(launch: &Launch) -> String {
    let mut text = String::new();
    write_header(&mut text, launch).expect("a String takes everything");
    text
}

fn write_header(text: &mut String, launch: &Launch) -> std::fmt::Result {
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
    writeln!(text, "-nvbit version = none (gpumodel synth)")?;
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
    code: Arc<Code>,
    /// Per instruction: what stands before and behind the mask.
    fixed: Vec<(String, String)>,
    text: String,
    /// Lines of the warp that is being written.
    lines: String,
    totals: Totals,
    /// Per instruction: how many warps executed it.
    executed: Vec<u64>,
}

impl<'a> KernelText<'a> {
    fn new(workload: &'a Workload, kernel: &'a Kernel) -> Self {
        let code = kernel.code();
        let fixed: Vec<_> = code.instructions.iter().map(|i| fixed_parts(i, &code)).collect();
        Self {
            records: CtaRecords::new(workload, kernel),
            executed: vec![0; fixed.len()],
            code,
            fixed,
            text: String::new(),
            lines: String::new(),
            totals: Totals::default(),
        }
    }

    /// What was written, with the opcodes that were executed.
    fn finished(mut self) -> Totals {
        let executed = self.code.instructions.iter().zip(&self.executed);
        for (instruction, executed) in executed.filter(|(_, executed)| **executed > 0) {
            let opcode = self.code.opcodes[to_usize(instruction.opcode)].clone();
            *self.totals.opcodes.entry(opcode).or_default() += executed;
        }
        self.totals
    }

    fn cta(&mut self, cta: &Cta) -> Result<(), WorkloadError> {
        let position = cta.position();
        self.text.push_str("\n#BEGIN_TB\n\nthread block = ");
        let _ = writeln!(self.text, "{},{},{}", position.x, position.y, position.z);
        for warp in 0..cta.warp_count() {
            let count = self.warp(cta, warp)?;
            let _ = writeln!(self.text, "\nwarp = {warp}\ninsts = {count}");
            self.text.push_str(&self.lines);
            self.totals.warp_instructions += count;
        }
        self.text.push_str("\n#END_TB\n");
        Ok(())
    }

    /// Fills `lines` with the instructions of a warp; gives their number.
    fn warp(&mut self, cta: &Cta, warp: u32) -> Result<u64, WorkloadError> {
        let Self { records, code, fixed, lines, totals, executed, .. } = self;
        lines.clear();
        records.warp(cta, warp, |index, mask, access| {
            executed[index] += 1;
            totals.thread_instructions += u64::from(mask.count_ones());
            let (before, behind) = &fixed[index];
            lines.push_str(before);
            push_hex(lines, u64::from(mask), 8);
            lines.push_str(behind);
            if let Some(access) = access {
                push_addresses(lines, access);
            }
            for immediate in &code.instructions[index].immediates {
                let _ = write!(lines, "{immediate} ");
            }
            lines.push('\n');
        })
    }
}

/// What stands before the mask and what between mask and addresses.
fn fixed_parts(instruction: &Instruction, code: &Code) -> (String, String) {
    let mut behind = format!(" {} ", instruction.destinations.len());
    for register in &instruction.destinations {
        let _ = write!(behind, "{register} ");
    }
    let opcode = &code.opcodes[to_usize(instruction.opcode)];
    let _ = write!(behind, "{opcode} {} ", instruction.sources.len());
    for register in &instruction.sources {
        let _ = write!(behind, "{register} ");
    }
    let _ = write!(behind, "{} ", instruction.width);
    (format!("{:04x} ", instruction.pc), behind)
}

fn push_addresses(text: &mut String, access: &Access) {
    let mut decimal = itoa::Buffer::new();
    let stride = access.mode == AddressMode::Stride;
    text.push_str(if stride { "1 0x" } else { "2 0x" });
    push_hex(text, access.base, 1);
    text.push(' ');
    if stride {
        text.push_str(decimal.format(access.stride));
        text.push(' ');
        return;
    }
    let mut last = access.base;
    for (_, address) in access.active().skip(1) {
        text.push_str(decimal.format(address.wrapping_sub(last).cast_signed()));
        text.push(' ');
        last = address;
    }
}

/// `value` in hex with at least so many digits.
fn push_hex(text: &mut String, value: u64, least: u32) {
    let digits = (u64::BITS - value.leading_zeros()).div_ceil(4).max(least);
    for place in (0..digits).rev() {
        let digit = to_u32(value >> (4 * place) & 15);
        text.push(char::from_digit(digit, 16).expect("below 16"));
    }
}
