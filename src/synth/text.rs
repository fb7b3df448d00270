//! A launch as grouped trace text of Accel-Sim's tracer, version 5.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write};

use crate::isa::{Access, AddressMode, Code, Instruction, Launch};
use crate::units::{to_u32, to_u64, to_usize};

use super::error::{Fault, SynthError};
use super::kernel::{Cta, Kernel};
use super::listing::AddressSpace;
use super::stream::WarpStream;
use super::workload::Workload;

/// Most dynamic instructions of one warp in a text: its lines are held until
/// their number is known.
const WARP_INSTRUCTIONS: u64 = 1 << 20;
/// Bytes of a thread's local memory.
const LOCAL_BYTES: u64 = 1 << 24;

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
    /// The workload does something that no kernel can.
    Workload(SynthError),
}

impl From<io::Error> for Halt {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

/// Writes a launch of `workload` to `out` and calls `passed` after each CTA.
///
/// # Errors
/// When an address lies outside its space or is not aligned, when a warp does
/// not end in time, or when the output fails.
pub(super) fn write_kernel(
    workload: &Workload,
    kernel: &Kernel,
    out: &mut dyn Write,
    passed: &mut dyn FnMut(),
) -> Result<Totals, Halt> {
    let mut writer = KernelText::new(workload, kernel);
    write_header(&mut writer.text, kernel.launch()).expect("a String takes everything");
    for ordinal in 0..kernel.cta_count() {
        writer.cta(&kernel.cta(ordinal)).map_err(Halt::Workload)?;
        writer.totals.text_bytes += to_u64(writer.text.len());
        out.write_all(writer.text.as_bytes())?;
        writer.text.clear();
        passed();
    }
    Ok(writer.finished())
}

/// Bytes of the text of the first CTA of `kernel`.
///
/// # Errors
/// When it does what no CTA can.
pub(super) fn cta_bytes(workload: &Workload, kernel: &Kernel) -> Result<u64, SynthError> {
    let mut writer = KernelText::new(workload, kernel);
    writer.cta(&kernel.cta(0))?;
    Ok(to_u64(writer.text.len()))
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
    workload: &'a Workload,
    launch: &'a Launch,
    code: std::sync::Arc<Code>,
    /// Per instruction: what stands before and behind the mask.
    fixed: Vec<(String, String)>,
    access: Access,
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
            workload,
            launch: kernel.launch(),
            executed: vec![0; fixed.len()],
            code,
            fixed,
            access: Access::default(),
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

    fn cta(&mut self, cta: &Cta) -> Result<(), SynthError> {
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
    fn warp(&mut self, cta: &Cta, warp: u32) -> Result<u64, SynthError> {
        self.lines.clear();
        let mut stream = cta.warp(warp);
        let mut count = 0;
        while let Some(segment) = stream.next_segment() {
            let segment = self.code.segments[to_usize(segment)];
            for index in segment.range().take(to_usize(stream.left())) {
                if count == WARP_INSTRUCTIONS {
                    let what = format!(
                        "kernel `{}`, CTA {}, warp {warp}: more than {WARP_INSTRUCTIONS} \
                         instructions",
                        self.launch.name,
                        cta.position()
                    );
                    return Err(self.workload.fault(Fault::new(stream.addressed().1, what)));
                }
                self.line(index, &mut stream).map_err(|mut fault| {
                    fault.what = format!(
                        "kernel `{}`, CTA {}, warp {warp}: {}",
                        self.launch.name,
                        cta.position(),
                        fault.what
                    );
                    self.workload.fault(fault)
                })?;
                count += 1;
            }
        }
        Ok(count)
    }

    fn line(&mut self, index: usize, stream: &mut WarpStream) -> Result<(), Fault> {
        let mask = stream.mask();
        self.executed[index] += 1;
        self.totals.thread_instructions += u64::from(mask.count_ones());
        let (before, behind) = &self.fixed[index];
        self.lines.push_str(before);
        push_hex(&mut self.lines, u64::from(mask), 8);
        self.lines.push_str(behind);
        let instruction = &self.code.instructions[index];
        if instruction.width == 0 {
            stream.skip(1);
        } else {
            let (space, at) = stream.addressed();
            stream.access(&mut self.access);
            self.check(instruction, space, at)?;
            push_addresses(&mut self.lines, &self.access);
        }
        for immediate in &instruction.immediates {
            let _ = write!(self.lines, "{immediate} ");
        }
        self.lines.push('\n');
        Ok(())
    }

    /// Every active address lies in its space and is aligned to its width.
    fn check(
        &self,
        instruction: &Instruction,
        space: Option<AddressSpace>,
        at: usize,
    ) -> Result<(), Fault> {
        let opcode = &self.code.opcodes[to_usize(instruction.opcode)];
        // An address of LDSM names a row of 16 bytes, whatever the width says.
        let matrix = opcode.starts_with("LDSM");
        let width = if matrix { 16 } else { u64::from(instruction.width) };
        for (lane, address) in self.access.active() {
            let wrong = if address % width == 0 {
                self.outside(space, address, width)
            } else {
                Some(format!("the address {address:#x} is no multiple of {width}"))
            };
            if let Some(what) = wrong {
                return Err(Fault::new(at, format!("lane {lane}: {opcode}: {what}")));
            }
        }
        Ok(())
    }

    fn outside(&self, space: Option<AddressSpace>, address: u64, width: u64) -> Option<String> {
        let (bytes, name) = match space? {
            AddressSpace::Buffers => return self.workload.outside(address, width),
            AddressSpace::Shared => (u64::from(self.launch.shared_bytes), "`shared_bytes`"),
            AddressSpace::Local => (LOCAL_BYTES, "the local window"),
        };
        (address.saturating_add(width) > bytes)
            .then(|| format!("{width} bytes at offset {address:#x} lie beyond {name}, {bytes:#x}"))
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
