//! The work of a matrix multiply, from the shape and the types in its opcode.
//!
//! `HMMA.16816.F32` multiplies 16x16 by 16x8 (m, n, k = 16, 8, 16: PTX ISA, `mma`), and
//! `HGMMA.64x128x16.F32` is the same of four warps, 16 rows each (PTX ISA, `wgmma`).

/// Warps of a warp group (PTX ISA, `wgmma`).
const GROUP_WARPS: u32 = 4;

/// Bytes of one row of the first operand, or one column of the second, whatever the type: a
/// depth of 16 at two bytes, of 32 at one (PTX ISA, `wgmma`).
const GROUP_DEPTH_BYTES: u32 = 32;

/// Bytes that the shared memory of an SM gives per cycle: its 32 banks.
const SHARED_BYTES: u32 = 128;

/// Lanes that share a result, at four bytes each.
const RESULT_BITS: u32 = 32 * 32;

/// A matrix multiply of one warp, or the part of one warp of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MatrixMultiply {
    /// Multiply-adds of a warp; of a sparse one those that are done, half of the shape's.
    multiply_adds: u32,
    /// 32-bit registers of its result in each lane.
    registers: u8,
    /// Columns of the result where it belongs to a warp group.
    group_columns: Option<u32>,
}

impl MatrixMultiply {
    /// The multiply of an opcode as dotted SASS; `None` where it is none.
    pub(super) fn of(opcode: &str) -> Option<Self> {
        let mut parts = opcode.split('.');
        let root = parts.next()?.strip_suffix("MMA")?;
        let (kind, group) = root.strip_suffix('G').map_or((root, false), |kind| (kind, true));
        let parts: Vec<&str> = parts.collect();
        let [m, n, k] =
            parts.iter().find_map(|part| if group { sides(part) } else { digits(part) })?;
        let has = |type_: &str| parts.contains(&type_);
        let accumulator_bits = match kind {
            "D" => 64,
            "H" | "Q" if !has("F32") => 16,
            "H" | "I" | "B" | "Q" => 32,
            _ => return None,
        };
        if (m, n, k) == (8, 8, 4) && kind == "H" {
            return Some(Self::volta_step(accumulator_bits));
        }
        let rows = if group { m / GROUP_WARPS } else { m };
        let work = rows.checked_mul(n)?.checked_mul(k)?;
        Some(Self {
            multiply_adds: if has("SP") { work / 2 } else { work },
            registers: u8::try_from(rows * n * accumulator_bits / RESULT_BITS).ok()?.max(1),
            group_columns: group.then_some(n),
        })
    }

    /// A step of `HMMA.884`: a warp multiplies four 8x8x4 in four steps, in two with 16-bit
    /// accumulators; each writes a register pair (Jia et al. 2018, section 4.4).
    fn volta_step(accumulator_bits: u32) -> Self {
        let steps = if accumulator_bits == 16 { 2 } else { 4 };
        Self { multiply_adds: 4 * 8 * 8 * 4 / steps, registers: 2, group_columns: None }
    }

    /// Cycles of a unit with that many multiply-adds per cycle, where only the second operand of
    /// a group comes from shared memory.
    pub(super) fn cycles(&self, per_cycle: u32) -> u32 {
        let per_cycle = per_cycle.max(1);
        let work = (self.multiply_adds + per_cycle / 2) / per_cycle;
        let columns = self.group_columns.unwrap_or(0);
        work.max((columns * GROUP_DEPTH_BYTES).div_ceil(SHARED_BYTES)).max(1)
    }

    /// Cycles that the shared memory takes where both operands of a group come from it; 0: it
    /// is of no group.
    pub(super) fn shared_operand_cycles(&self) -> u32 {
        let bytes = |columns: u32| (columns + 16 * GROUP_WARPS) * GROUP_DEPTH_BYTES;
        self.group_columns.map_or(0, |columns| bytes(columns).div_ceil(SHARED_BYTES))
    }

    /// 32-bit registers of its result in each lane.
    pub(super) fn registers(&self) -> u8 {
        self.registers
    }

    /// True for one of a warp group.
    pub(super) fn is_group(&self) -> bool {
        self.group_columns.is_some()
    }
}

/// The shape `64x128x16`.
fn sides(part: &str) -> Option<[u32; 3]> {
    let mut sides = part.split('x').map(|side| side.parse().ok().filter(|&side| side <= 1024));
    let shape = [sides.next()??, sides.next()??, sides.next()??];
    sides.next().is_none().then_some(shape)
}

/// The shape `16816`, `8832` or `168128`: 8 or 16 rows, 8 columns, and the depth.
fn digits(part: &str) -> Option<[u32; 3]> {
    let (rows, rest) = match part.strip_prefix("16") {
        Some(rest) => (16, rest),
        None => (8, part.strip_prefix('8')?),
    };
    let depth = rest.strip_prefix('8')?.parse().ok()?;
    (depth > 0 && depth <= 1024).then_some([rows, 8, depth])
}

#[cfg(test)]
mod tests {
    use super::MatrixMultiply;

    fn of(opcode: &str) -> (u32, u8) {
        let one = MatrixMultiply::of(opcode).unwrap();
        (one.multiply_adds, one.registers())
    }

    #[test]
    fn work_and_results_follow_from_the_shape_and_the_types() {
        assert_eq!(of("HMMA.16816.F32"), (2048, 4));
        assert_eq!(of("HMMA.16816.F16"), (2048, 2));
        assert_eq!(of("HMMA.1688.F32.TF32"), (1024, 4));
        assert_eq!(of("HMMA.1684.F32.TF32"), (512, 4));
        assert_eq!(of("HMMA.SP.16832.F32.BF16"), (2048, 4), "half of it is zeros");
        assert_eq!(of("IMMA.8816.S8.S8"), (1024, 2));
        assert_eq!(of("IMMA.16832.S8.S8.SAT"), (4096, 4));
        assert_eq!(of("BMMA.168256.XOR.POPC"), (32768, 4));
        assert_eq!(of("DMMA.884"), (256, 4));
        assert_eq!(of("HMMA.884.F32.F32.STEP2"), (256, 2));
        assert_eq!(of("HMMA.884.F16.F16.STEP1"), (512, 2));
        assert_eq!(of("HGMMA.64x128x16.F32.BF16"), (32768, 64));
        assert_eq!(of("QGMMA.64x8x32.F16.E4M3.E4M3"), (4096, 2));
    }

    #[test]
    fn other_opcodes_are_none() {
        for opcode in ["HMMA", "HMMA.F32", "FFMA.16816", "XMMA.16816", "HMMA.1680", "MMA.16816"] {
            assert_eq!(MatrixMultiply::of(opcode), None, "{opcode}");
        }
        for opcode in ["HGMMA.64x128", "HGMMA.64x128x16x2", "HGMMA.64x99999x16", "IMMA.8899999"] {
            assert_eq!(MatrixMultiply::of(opcode), None, "{opcode}");
        }
    }

    /// Luo et al. 2024 (arXiv 2402.13499), table VIII: cycles of `wgmma` m64nNk16 on an H800
    /// with both operands in shared memory are 18, 20, 24, 32, 64, 128 for N = 8 to 256.
    #[test]
    fn a_group_takes_the_longer_of_its_work_and_its_operands() {
        let cycles = |n: u32| {
            let one = MatrixMultiply::of(&format!("HGMMA.64x{n}x16.F32")).unwrap();
            one.cycles(512).max(one.shared_operand_cycles())
        };
        assert_eq!([8, 16, 32, 64, 128, 256].map(cycles), [18, 20, 24, 32, 64, 128]);
        let one = MatrixMultiply::of("HGMMA.64x8x16.F32").unwrap();
        assert_eq!(one.cycles(512), 4, "with the first operand in registers");
        assert!(one.is_group());
    }
}
