//! Grouped trace text, as Accel-Sim's post-processor writes it: frames of CTAs and instruction
//! lines. Exports and workloads are written with it.

use std::io::Write;

use gpumodel_core::isa::{Access, AddressMode, Code, Instruction, Register};
use gpumodel_core::memory_copy::MemoryCopy;
use gpumodel_core::units::{Dim3, to_usize};

/// The command list's file name.
pub(crate) const LIST: &str = "kernelslist.g";
/// The line after the last warp of a CTA.
pub(crate) const CTA_END: &[u8] = b"\n#END_TB\n";

/// The line of a copy in a command list.
pub(crate) fn copy_line(copy: &MemoryCopy) -> String {
    let MemoryCopy { direction, address, bytes, stream } = copy;
    let stream = stream.map(|stream| format!(",stream={stream}")).unwrap_or_default();
    format!("{},{address:#018x},{bytes}{stream}\n", direction.word())
}

/// Begins the frame of the CTA at `position`.
pub(crate) fn push_cta(out: &mut Vec<u8>, position: Dim3) {
    let Dim3 { x, y, z } = position;
    push(out, format_args!("\n#BEGIN_TB\n\nthread block = {x},{y},{z}\n"));
}

/// The further lines of the frame of the CTA at a position, in clusters of `of`.
pub(crate) fn cluster_note(at: Dim3, of: Dim3) -> Vec<u8> {
    let (id, place) = (
        Dim3::new(at.x / of.x, at.y / of.y, at.z / of.z),
        Dim3::new(at.x % of.x, at.y % of.y, at.z % of.z),
    );
    let rank = place.linear(of);
    let text = [("id", id), ("cta", place)]
        .map(|(key, value)| format!("cluster {key} = {},{},{}\n", value.x, value.y, value.z));
    format!("{}cluster rank = {rank}", text.concat()).into_bytes()
}

/// Begins a warp of `count` instructions.
pub(crate) fn push_warp(out: &mut Vec<u8>, warp: u32, count: u64) {
    push(out, format_args!("\nwarp = {warp}\ninsts = {count}\n"));
}

fn push(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("a Vec takes everything");
}

/// The parts of a static instruction's lines that are always the same.
#[derive(Debug)]
pub(crate) struct LineText {
    /// Up to the mask.
    before_mask: String,
    /// From the mask to the addresses.
    after_mask: String,
    immediates: String,
}

impl LineText {
    /// Those of all instructions of `code`.
    pub(crate) fn of(code: &Code) -> Vec<Self> {
        code.instructions.iter().map(|instruction| Self::new(instruction, code)).collect()
    }

    fn new(instruction: &Instruction, code: &Code) -> Self {
        let list = |registers: &[Register]| {
            registers.iter().fold(registers.len().to_string(), |text, one| format!("{text} {one}"))
        };
        let line = instruction.line.map(|line| format!("{line} ")).unwrap_or_default();
        let before_mask = format!("{line}{:04x} ", instruction.pc);
        let opcode = &code.opcodes[to_usize(instruction.opcode)];
        let (destinations, sources) = (list(&instruction.destinations), list(&instruction.sources));
        let fields = format!(" {destinations} {opcode} {sources} ");
        // The tail of an open instruction holds everything after the sources.
        if instruction.is_open() {
            return Self { before_mask, after_mask: fields, immediates: String::new() };
        }
        let immediates = instruction.immediates.iter().map(|value| format!("{value} ")).collect();
        Self { before_mask, after_mask: format!("{fields}{} ", instruction.width), immediates }
    }

    /// Appends the line of one execution, without its tail and its end.
    pub(crate) fn push(&self, out: &mut Vec<u8>, mask: u32, access: Option<&Access>) {
        out.extend_from_slice(self.before_mask.as_bytes());
        push_hex(out, u64::from(mask), 8);
        out.extend_from_slice(self.after_mask.as_bytes());
        if let Some(access) = access {
            push_addresses(out, access);
        }
        out.extend_from_slice(self.immediates.as_bytes());
    }
}

fn push_addresses(out: &mut Vec<u8>, access: &Access) {
    let mut decimal = itoa::Buffer::new();
    out.extend_from_slice(&[b'0' + access.mode.number(), b' ']);
    if access.mode == AddressMode::List {
        return access.active().for_each(|(_, address)| push_address(out, address));
    }
    push_address(out, access.base);
    let mut push_decimal = |number: i64| {
        out.extend_from_slice(decimal.format(number).as_bytes());
        out.push(b' ');
    };
    if access.mode == AddressMode::Stride {
        return push_decimal(access.stride);
    }
    let mut last = access.base;
    for (_, address) in access.active().skip(1) {
        push_decimal(address.wrapping_sub(last).cast_signed());
        last = address;
    }
}

fn push_address(out: &mut Vec<u8>, address: u64) {
    out.extend_from_slice(b"0x");
    push_hex(out, address, 1);
    out.push(b' ');
}

/// `value` in hex with `least` digits at least.
fn push_hex(out: &mut Vec<u8>, value: u64, least: u32) {
    let digits = (u64::BITS - value.leading_zeros()).div_ceil(4).max(least);
    for place in (0..digits).rev() {
        out.push(b"0123456789abcdef"[to_usize(value >> (4 * place) & 15)]);
    }
}
