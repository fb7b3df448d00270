//! Matrix multiplies of a warp group (PTX ISA, `wgmma`): each of its four warps computes 16 rows,
//! at once. Products are exact and summed as doubles, as those of a warp are; the hardware adds
//! in another order with fewer digits, of 8-bit floating-point numbers with about half as many.

use super::args::Args;
use super::half::{Format, halves, joined};
use super::matrix::word;
use super::rounding::{Rounding, from_half, narrow, to_half};
use super::{Action, Maker};
use crate::execute::{From, Lanes, Scope, Target, ZERO, swizzled};
use crate::sass::operand::{Operand, Value};
use crate::sass::text::{Guard, Line};

pub(super) fn find(name: &str) -> Option<Maker> {
    matches!(name, "HGMMA" | "IGMMA" | "QGMMA").then_some(multiply as Maker)
}

/// Rows of a warp.
const ROWS: usize = 16;
/// Bytes of a row of A: K elements.
const DEPTH_BYTES: usize = 32;

/// Numbers of the elements of A and B.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Element {
    Pair(Format),
    Single,
    Byte(bool),
    /// Of 4 and 3 bits for exponent and fraction, or of 5 and 2.
    Small([u8; 2]),
}

impl Element {
    /// Those of A and B.
    fn both(line: &Line) -> Result<[Self; 2], String> {
        let all = match line.name() {
            "HGMMA" if line.has("TF32") => return Ok([Self::Single; 2]),
            "HGMMA" if line.has("BF16") => return Ok([Self::Pair(Format::Brain); 2]),
            "HGMMA" => return Ok([Self::Pair(Format::Half); 2]),
            _ => line.suffixes().filter_map(|suffix| match suffix {
                "S8" => Some(Self::Byte(true)),
                "U8" => Some(Self::Byte(false)),
                "E4M3" => Some(Self::Small([4, 3])),
                "E5M2" => Some(Self::Small([5, 2])),
                _ => None,
            }),
        };
        <[Self; 2]>::try_from(all.collect::<Vec<_>>()).map_err(|_| "its types are not known".into())
    }

    fn bytes(self) -> usize {
        match self {
            Self::Pair(_) => 2,
            Self::Single => 4,
            Self::Byte(_) | Self::Small(_) => 1,
        }
    }

    /// The number in its bytes, the lowest first.
    pub(super) fn read(self, bytes: &[u8]) -> f64 {
        match (self, bytes) {
            (Self::Pair(format), &[a, b]) => format.read(u16::from_le_bytes([a, b])).into(),
            // Of a single the upper 19 bits count.
            (Self::Single, &[a, b, c, d]) => {
                f32::from_bits(u32::from_le_bytes([a, b, c, d]) & 0xffff_e000).into()
            }
            (Self::Byte(true), &[a]) => a.cast_signed().into(),
            (Self::Byte(false), &[a]) => a.into(),
            (Self::Small([5, _]), &[a]) => from_half(u16::from(a) << 8).into(),
            (Self::Small(_), &[a]) => quarter(a),
            _ => 0.0,
        }
    }
}

/// A number of 8 bits with 4 of exponent and 3 of fraction, which has no infinity.
fn quarter(bits: u8) -> f64 {
    let (exponent, fraction) = (i32::from(bits >> 3 & 15), f64::from(bits & 7));
    let size = match (exponent, bits & 7) {
        (15, 7) => f64::NAN,
        (0, _) => fraction / 512.0,
        _ => (1.0 + fraction / 8.0) * 2_f64.powi(exponent - 7),
    };
    if bits >> 7 == 1 { -size } else { size }
}

/// Where a matrix lies in shared memory, as a descriptor says it (PTX ISA, matrix descriptor):
/// blocks of 8 rows of 16 bytes, alone or 2, 4 or 8 next to each other and swizzled.
#[derive(Clone, Copy, Debug)]
struct Descriptor {
    start: usize,
    /// Bytes from block to block in the leading dimension, and in the other one.
    leading: usize,
    stride: usize,
    swizzle: u8,
}

impl Descriptor {
    fn read(bits: u64) -> Result<Self, String> {
        let field = |at: u32| usize::try_from(bits >> at & 0x3fff).unwrap_or(0) << 4;
        if bits >> 49 & 7 != 0 {
            return Err("a matrix descriptor with a base offset is not known".into());
        }
        // 1 is 128 bytes, 2 is 64, 3 is 32.
        let swizzle = [0, 3, 2, 1][usize::try_from(bits >> 62).unwrap_or(0)];
        Ok(Self { start: field(0), leading: field(16), stride: field(32), swizzle })
    }

    /// Where element `k` of row `row` lies (of B: of a column), of so many bytes each.
    fn place(self, row: usize, k: usize, bytes: usize, transposed: bool) -> usize {
        let unit = 16 / bytes;
        let wide = 1 << self.swizzle;
        let offset = match (transposed, self.swizzle) {
            (false, 0) => row % 8 * 16 + row / 8 * self.stride + k / unit * self.leading,
            (false, _) => row % 8 * 16 * wide + row / 8 * self.stride + k / unit * 16,
            (true, 0) => row / unit * self.stride + k % 8 * 16 + k / 8 * self.leading,
            (true, _) => {
                let (block, inside) = (row / unit / wide, row / unit % wide);
                block * self.leading + inside * 16 + k % 8 * 16 * wide + k / 8 * self.stride
            }
        };
        let inside = if transposed { row % unit } else { k % unit };
        swizzled(self.start + offset, self.swizzle) + inside * bytes
    }
}

/// One of A and B.
#[derive(Clone, Copy, Debug)]
struct Source {
    element: Element,
    negative: bool,
    transposed: bool,
    place: Place,
}

#[derive(Clone, Copy, Debug)]
enum Place {
    /// Four registers, as those of a multiply of a warp.
    Registers(u8),
    /// A descriptor in a uniform register.
    Shared(u8),
}

impl Source {
    /// Elements of K.
    fn depth(self) -> usize {
        DEPTH_BYTES / self.element.bytes()
    }

    /// The numbers of `count` rows from `first` on, by k and row.
    fn read(self, scope: &Scope<'_>, first: usize, count: usize) -> Result<Vec<f64>, String> {
        let (depth, bytes) = (self.depth(), self.element.bytes());
        let sign = if self.negative { -1.0 } else { 1.0 };
        let number = match self.place {
            Place::Registers(number) => return Ok(self.registers(scope, number, sign)),
            Place::Shared(number) => number,
        };
        let descriptor = Descriptor::read(scope.first64(From::Warp(number)))?;
        let mut all = Vec::with_capacity(depth * count);
        for k in 0..depth {
            for row in first..first + count {
                let at = descriptor.place(row, k, bytes, self.transposed);
                let found = scope.cta.shared.get(at..at + bytes);
                let found = found.ok_or_else(|| format!("a matrix at {at:#x} is outside"))?;
                all.push(sign * self.element.read(found));
            }
        }
        Ok(all)
    }

    fn registers(self, scope: &Scope<'_>, first: u8, sign: f64) -> Vec<f64> {
        let bytes = self.element.bytes();
        let each = 4 / bytes;
        let mut all = vec![0.0; self.depth() * ROWS];
        for part in 0..4_u8 {
            let value = scope.get(From::Thread(first + part));
            for (lane, word) in value.into_iter().enumerate() {
                for index in 0..each {
                    let (row, half) = (lane / 4 + 8 * usize::from(part % 2), usize::from(part / 2));
                    let k = 4 * each * half + lane % 4 * each + index;
                    let raw = &word.to_le_bytes()[index * bytes..(index + 1) * bytes];
                    all[k * ROWS + row] = sign * self.element.read(raw);
                }
            }
        }
        all
    }
}

/// What the accumulators are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sum {
    Single,
    Half,
    Whole { saturates: bool },
}

struct Multiply {
    target: u8,
    old: u8,
    /// The accumulators count.
    adds: Guard,
    a: Source,
    b: Source,
    columns: usize,
    sum: Sum,
}

/// The rows and columns of the shape `64xNxK` of a line.
fn shape(line: &Line) -> Option<[usize; 2]> {
    let mut sides = line.suffixes().next()?.split('x').map(str::parse::<usize>);
    let (Some(Ok(64)), Some(Ok(n)), Some(Ok(k)), None) =
        (sides.next(), sides.next(), sides.next(), sides.next())
    else {
        return None;
    };
    (n % 8 == 0 && (8..=256).contains(&n)).then_some([n, k])
}

/// A of registers or, as B, of a descriptor in a pair of uniform registers.
fn source(operand: &Operand, element: Element, [sign, turn]: [&str; 2]) -> Result<Source, String> {
    let named = |name: &str| operand.suffix.split('.').any(|one| one == name);
    let place = match operand.value {
        Value::Register(number) if number <= ZERO - 4 => Place::Registers(number),
        Value::Memory(address) => Place::Shared(address.uniform.ok_or("it has no descriptor")?),
        _ => return Err(format!("unexpected operand {:?}", operand.value)),
    };
    let negative = operand.negative || named(sign);
    Ok(Source { element, negative, transposed: named(turn), place })
}

fn multiply(line: &Line) -> Result<Action, String> {
    let [columns, depth] = shape(line).ok_or("its shape is not known")?;
    let mut args = Args::new(line);
    let Target::Thread(target) = args.target()? else { return Err("its result is odd".into()) };
    let [of_a, of_b] = Element::both(line)?;
    let first = args.next()?;
    let a = source(first, of_a, ["negA", "tnspA"])?;
    let mut b = source(
        if matches!(a.place, Place::Registers(_)) { args.next()? } else { first },
        of_b,
        ["negB", "tnspB"],
    )?;
    b.negative = first.negative && matches!(a.place, Place::Shared(_)) || b.negative;
    // B's descriptor stands after that of A, or after where it would be.
    let Place::Shared(descriptor) = b.place else { return Err("B is in registers".into()) };
    b.place = Place::Shared(descriptor + 2);
    let From::Thread(old) = args.int()?.from else { return Err("its sum is odd".into()) };
    let adds = args.maybe_predicate().unwrap_or(Guard::ALWAYS);
    if a.depth() != depth || b.depth() != depth {
        return Err("its shape is not known".into());
    }
    let sum = match () {
        () if line.name() == "IGMMA" => Sum::Whole { saturates: line.has("SAT") },
        () if line.has("F16") => Sum::Half,
        () => Sum::Single,
    };
    let multiply = Multiply { target, old, adds, a, b, columns, sum };
    let ends = line.operands.iter().any(|one| matches!(&one.value, Value::Word(w) if w == "gsb0"));
    let fields = format!("{} 0 0", u8::from(ends));
    Ok(Box::new(move |scope, mask| {
        if mask != 0 {
            multiply.run(scope, mask)?;
        }
        if scope.warp.record.is_some() {
            scope.warp.fields.clone_from(&fields);
        }
        Ok(())
    }))
}

impl Multiply {
    fn run(&self, scope: &mut Scope<'_>, mask: u32) -> Result<(), String> {
        let first = ROWS * (scope.warp.number as usize % 4);
        let a = self.a.read(scope, first, ROWS)?;
        let b = self.b.read(scope, 0, self.columns)?;
        let mut sums = vec![0.0; ROWS * self.columns];
        for (a, b) in a.chunks_exact(ROWS).zip(b.chunks_exact(self.columns)) {
            for (a, sums) in a.iter().zip(sums.chunks_exact_mut(self.columns)) {
                sums.iter_mut().zip(b).for_each(|(sum, b)| *sum += a * b);
            }
        }
        let adds = scope.holds(self.adds) & mask != 0 && self.old != ZERO;
        for number in 0..self.registers() {
            let old = match adds {
                true => scope.get(From::Thread(self.old + number)),
                false => [0; 32],
            };
            let value = self.value(number.into(), &sums, &old);
            scope.put(Target::Thread(self.target + number), mask, &value);
        }
        Ok(())
    }

    /// Registers of the accumulators.
    fn registers(&self) -> u8 {
        let cells = if self.sum == Sum::Half { 4 } else { 2 };
        u8::try_from(self.columns / cells).unwrap_or(0)
    }

    /// A register of the accumulators: two sums of a row to each lane, by registers of one, or by
    /// halves of one.
    fn value(&self, number: usize, sums: &[f64], old: &Lanes) -> Lanes {
        let sum = |lane: usize, index: usize| {
            let (row, pair) = (lane / 4 + 8 * (index / 2 % 2), lane % 4 * 2 + index % 2);
            sums[row * self.columns + 8 * (index / 4) + pair]
        };
        std::array::from_fn(|lane| match self.sum {
            Sum::Single => {
                narrow(sum(lane, number) + f64::from(f32::from_bits(old[lane]))).to_bits()
            }
            Sum::Whole { saturates } => {
                word(sum(lane, number) + f64::from(old[lane].cast_signed()), saturates)
            }
            Sum::Half => {
                let [x, y] = [0, 1].map(|part| {
                    let old = f64::from(Format::Half.read(halves(old[lane])[part]));
                    to_half(sum(lane, 2 * number + part) + old, Rounding::Nearest)
                });
                joined(x, y)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Descriptor, Element, quarter};

    #[test]
    fn numbers_of_eight_bits_are_those_of_the_standard() {
        for (bits, value) in [(0x38, 1.0), (0xc0, -2.0), (0x7e, 448.0), (0x01, 2_f64.powi(-9))] {
            assert_eq!(quarter(bits), value);
        }
        assert!(quarter(0x7f).is_nan());
        assert_eq!(Element::Small([5, 2]).read(&[0x7b]), 57344.0);
        assert_eq!(Element::Single.read(&1.000_2_f32.to_le_bytes()), 1.0);
    }

    /// The canonical layouts of CUTLASS: element (row, k) by the strides of its modes.
    #[test]
    fn elements_lie_where_the_canonical_layouts_have_them() {
        let of = |mode: u64, leading: u64, stride: u64| {
            let bits = mode << 62 | stride >> 4 << 32 | leading >> 4 << 16 | 0x400 >> 4;
            Descriptor::read(bits).unwrap()
        };
        // Not swizzled: blocks of 8 rows of 16 bytes.
        assert_eq!(of(0, 128, 256).place(11, 9, 2, false), 0x400 + 256 + 3 * 16 + 128 + 2);
        assert_eq!(of(0, 128, 256).place(11, 9, 2, true), 0x400 + 256 + 16 + 128 + 3 * 2);
        // 128 bytes: the unit of 16 bytes is changed by the row.
        assert_eq!(
            of(1, 0, 1024).place(10, 9, 2, false),
            0x400 + 1024 + 2 * 128 + (1 ^ 2) * 16 + 2
        );
        assert_eq!(
            of(1, 4096, 1024).place(64 + 17, 9, 2, true),
            0x400 + 4096 + 1024 + 128 + (2 ^ 1) * 16 + 2
        );
        // 32 bytes: pairs of units change places every 128 bytes.
        assert_eq!(of(3, 0, 256).place(5, 0, 2, false), 0x400 + 5 * 32 + 16);
        assert!(Descriptor::read(1 << 49).is_err());
    }
}
