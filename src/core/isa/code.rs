//! The static side of a kernel: instructions, segments and the launch.

use crate::units::Dim3;

use super::{ControlBits, Register, Space};

/// Bytes of the window of a CTA's shared memory, and of local memory, in generic addresses.
const WINDOW_BYTES: u64 = 1 << 24;

/// One static instruction: what every execution of it shares.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Instruction {
    /// Byte offset in the function. Not unique over device functions that were
    /// not inlined.
    pub pc: u64,
    /// Index into [`Code::opcodes`].
    pub opcode: u32,
    /// Destination registers as listed (traces name only the first of a wide result).
    pub destinations: Box<[Register]>,
    /// Source registers as listed.
    pub sources: Box<[Register]>,
    /// The trace's width field in bytes; 0 means that it carries no address.
    pub width: u8,
    /// Immediates as listed: none before late tracer 4, one or two after; three
    /// where [`Instruction::is_open`].
    pub immediates: Box<[i64]>,
    /// Source line; `None` where the trace has no line information.
    pub line: Option<u32>,
    /// What the compiler decided about its issue; `None` where the trace does not have it.
    pub control: Option<ControlBits>,
}

impl Instruction {
    /// True for a line with TMA addresses (modes 3 and 4) or of an opcode with
    /// `GMMA`, whose fields after the sources are kept as text alone, in the tail
    /// of each of its records. [`Instruction::width`] is then 0, and
    /// [`Instruction::immediates`] are the first three of those fields, 0 for one
    /// that is no decimal number: commit group or width, width or mode, and so on.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.immediates.len() > MOST_IMMEDIATES
    }
}

/// Most immediates of a line: the last two of the instruction, from late tracer 5 on.
pub const MOST_IMMEDIATES: usize = 2;

/// A straight-line run of static instructions: `length` entries of
/// [`Code::instructions`] from `first` on, executed in table order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Segment {
    /// Index of the first instruction.
    pub first: u32,
    /// Number of instructions, at least 1.
    pub length: u32,
}

impl Segment {
    /// The instruction indices of the segment.
    #[must_use]
    pub fn range(self) -> std::ops::Range<usize> {
        let first = crate::units::to_usize(self.first);
        first..first + crate::units::to_usize(self.length)
    }
}

/// The static tables of one kernel launch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Code {
    /// Dotted SASS names, each once.
    pub opcodes: Vec<String>,
    /// Static instructions in order of first appearance in the trace.
    pub instructions: Vec<Instruction>,
    /// Segments; warps' paths are sequences of indices into this table.
    pub segments: Vec<Segment>,
}

impl Code {
    /// Whether the trace has control bits of its instructions.
    #[must_use]
    pub fn has_control_bits(&self) -> bool {
        self.instructions.iter().any(|one| one.control.is_some())
    }
}

/// The windows of shared and local memory in generic addresses. That of shared memory is followed
/// by those of the other CTAs of a cluster, in the order of their ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AddressWindows {
    /// Where they start; 0: not known.
    shared: u64,
    local: u64,
    /// CTAs of a cluster.
    ctas: u32,
}

impl AddressWindows {
    /// The memory that a generic address leads to: [`Space::Shared`], of any CTA of a cluster,
    /// [`Space::Local`], else [`Space::Global`].
    #[must_use]
    pub fn space_of(&self, address: u64) -> Space {
        let within = |start: u64, windows: u32| {
            start != 0 && address.wrapping_sub(start) < u64::from(windows) * WINDOW_BYTES
        };
        if within(self.shared, self.ctas) {
            Space::Shared
        } else if within(self.local, 1) {
            Space::Local
        } else {
            Space::Global
        }
    }

    /// The rank of the CTA whose shared memory a generic address leads to.
    #[must_use]
    pub const fn rank_of(&self, address: u64) -> u64 {
        address.wrapping_sub(self.shared) / WINDOW_BYTES
    }
}

/// One kernel launch as its trace header states it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Launch {
    /// Kernel name as printed, usually mangled.
    pub name: String,
    /// The trace's kernel id (counts launches from 1).
    pub id: u32,
    /// CTAs.
    pub grid: Dim3,
    /// Threads of a CTA.
    pub block: Dim3,
    /// Static plus dynamic shared bytes per CTA.
    pub shared_bytes: u32,
    /// Registers per thread.
    pub registers: u32,
    /// SASS target (70 for sm_70); 0 when the header has none.
    pub binary_version: u32,
    /// CUDA stream, the raw pointer value; 0 is the default stream.
    pub stream: u64,
    /// Start of the 16 MB window of shared memory in generic addresses; 0 when unknown.
    pub shared_window: u64,
    /// Start of the 16 MB window of local memory in generic addresses; 0 when unknown.
    pub local_window: u64,
    /// CTAs of a cluster, which start together; all 0: the launch has no clusters.
    pub cluster: Dim3,
}

impl Launch {
    /// Warps of one CTA: threads over 32, rounded up.
    #[must_use]
    pub fn warps_per_cta(&self) -> u32 {
        u32::try_from(self.block.count().div_ceil(32)).unwrap_or(u32::MAX)
    }

    /// Its windows in generic addresses.
    #[must_use]
    pub fn windows(&self) -> AddressWindows {
        let (shared, local) = (self.shared_window, self.local_window);
        AddressWindows { shared, local, ctas: self.cluster_ctas() }
    }

    /// CTAs of one cluster; 1: the launch has no clusters.
    #[must_use]
    pub fn cluster_ctas(&self) -> u32 {
        u32::try_from(self.cluster.count()).unwrap_or(u32::MAX).max(1)
    }
}

/// Bytes per lane by the rule of Accel-Sim's tracer: the first dotted part of the opcode
/// that is a number of bits, with or without `U` before it; else 4.
#[must_use]
pub fn traced_width(opcode: &str) -> u8 {
    let bits = opcode
        .split('.')
        .skip(1)
        .find_map(|part| part.strip_prefix('U').unwrap_or(part).parse::<u32>().ok());
    bits.and_then(|bits| u8::try_from(bits / 8).ok()).filter(|&bytes| bytes > 0).unwrap_or(4)
}

#[cfg(test)]
mod tests {
    use super::{Launch, traced_width};
    use crate::isa::Space;
    use crate::units::Dim3;

    #[test]
    fn a_cluster_has_a_window_per_cta() {
        let (shared_window, local_window) = (0x7f00_0000_0000, 0x7e00_0000_0000);
        let one = Launch { shared_window, local_window, ..Launch::default() };
        let four = Launch { cluster: Dim3::new(2, 2, 1), ..one.clone() };
        for (address, alone, clustered) in [
            (shared_window, Space::Shared, Space::Shared),
            (shared_window + (3 << 24), Space::Global, Space::Shared),
            (shared_window + (4 << 24), Space::Global, Space::Global),
            (local_window + 4, Space::Local, Space::Local),
            (shared_window - 1, Space::Global, Space::Global),
        ] {
            let spaces = [&one, &four].map(|launch| launch.windows().space_of(address));
            assert_eq!(spaces, [alone, clustered]);
        }
        assert_eq!(four.windows().rank_of(shared_window + (3 << 24) + 8), 3);
        let unknown = Launch::default().windows();
        assert_eq!(unknown.space_of(0), Space::Global, "no windows are known");
    }

    #[test]
    fn widths_come_from_the_opcode() {
        let cases = [
            ("LDG.E.64.SYS", 8),
            ("LDG.E.U8", 1),
            ("STG.E", 4),
            ("LDG.E.128", 16),
            ("LDS.U.16", 2),
            ("LDG.E.S8", 4),
            ("LDSM.16.M88.4", 2),
        ];
        for (opcode, bytes) in cases {
            assert_eq!(traced_width(opcode), bytes, "{opcode}");
        }
    }
}
