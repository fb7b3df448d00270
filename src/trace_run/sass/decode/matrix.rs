//! Matrix multiplies of a warp. Products are exact and summed as doubles; the hardware adds in
//! another order with fewer digits, so results agree to about the last digit of the result's
//! format.

use super::args::Args;
use super::half::{Format, halves, joined};
use super::load::nth;
use super::rounding::{Rounding, narrow, to_half};
use super::{Action, Maker};
use crate::execute::{From, Lanes, Lanes64, Scope, Target};
use crate::sass::text::Line;

pub(super) fn find(name: &str) -> Option<Maker> {
    Some(match name {
        "HMMA" => hmma,
        "IMMA" => imma,
        "DMMA" => dmma,
        "MOVM" => movm,
        _ => return None,
    })
}

/// Numbers of the elements of A and B.
#[derive(Clone, Copy, Debug)]
enum Element {
    Pair(Format),
    Single,
    Byte(bool),
    /// Of 4 bits.
    Nibble(bool),
}

impl Element {
    /// Elements of a register.
    fn count(self) -> usize {
        match self {
            Self::Pair(_) => 2,
            Self::Single => 1,
            Self::Byte(_) => 4,
            Self::Nibble(_) => 8,
        }
    }

    fn read(self, bits: u32, index: usize) -> f64 {
        match self {
            Self::Pair(format) => format.read(halves(bits)[index]).into(),
            // Of a single the upper 19 bits count.
            Self::Single => f32::from_bits(bits & 0xffff_e000).into(),
            Self::Byte(true) => f64::from(bits.to_le_bytes()[index].cast_signed()),
            Self::Byte(false) => f64::from(bits.to_le_bytes()[index]),
            Self::Nibble(true) => f64::from((bits << (28 - 4 * index)).cast_signed() >> 28),
            Self::Nibble(false) => f64::from(bits >> (4 * index) & 15),
        }
    }
}

/// A product of 16 x K and K x 8 elements, or of 8 x K where it is small.
struct Product {
    a: From,
    b: From,
    element: [Element; 2],
    /// Registers of B; A has twice as many, or as many where it is small.
    registers: u8,
    small: bool,
}

/// A product of 16 x K and K x 8 elements, where A has two of each four elements of a row. Two
/// bits of metadata say which of the four an element is.
struct Sparse {
    a: From,
    b: From,
    metadata: From,
    /// Which lanes of each four have the metadata.
    selector: usize,
    format: Format,
    /// Registers of A, as many as of B.
    registers: u8,
}

impl Sparse {
    fn read(line: &Line, mut args: Args<'_>, a: From, b: From) -> Result<Self, String> {
        let (metadata, selector) = (args.int()?.from, args.number()?);
        let registers = match line.suffixes().nth(1).unwrap_or("") {
            "16816" if !line.has("TF32") => 2,
            "16832" => 4,
            _ => return Err("its shape is not known".into()),
        };
        let format = if line.has("BF16") { Format::Brain } else { Format::Half };
        let selector = usize::try_from(selector).map_err(|_| "its selector is not known")?;
        Ok(Self { a, b, metadata, selector, format, registers })
    }

    fn add_to(&self, scope: &Scope<'_>, sums: &mut Sums) {
        let all = |from: From| -> Vec<Lanes> {
            (0..self.registers).map(|n| scope.get(nth(from, n))).collect()
        };
        let (a, b, metadata) = (all(self.a), all(self.b), scope.get(self.metadata));
        let read = |bits: u32, index: usize| f64::from(self.format.read(halves(bits)[index]));
        // A lane has the metadata of sixteen elements, of a row and of that eight below.
        let lanes = usize::from(self.registers) / 2;
        for (row, sums) in sums.iter_mut().enumerate() {
            for k in 0..4 * usize::from(self.registers) {
                let (part, thread, index) = (k / 8, k % 8 / 2, k % 2);
                let left = read(a[2 * part + row / 8][row % 8 * 4 + thread], index);
                let word = metadata[row % 8 * 4 + (self.selector * lanes + k / 8) % 4];
                let which = word >> (16 * (row / 8) + 2 * (k % 8)) & 3;
                let dense = k / 2 * 4 + which as usize;
                for (column, sum) in sums.iter_mut().enumerate() {
                    let bits = b[dense / 8][column * 4 + dense % 8 / 2];
                    *sum += left * read(bits, dense % 2);
                }
            }
        }
    }
}

/// Rows of 8 sums.
type Sums = [[f64; 8]; 16];

impl Product {
    fn add_to(&self, scope: &Scope<'_>, sums: &mut Sums) {
        let (halves, rows) = if self.small { (1, 8) } else { (2, 16) };
        let upto = u8::try_from(halves).unwrap_or(2) * self.registers;
        let a: Vec<Lanes> = (0..upto).map(|n| scope.get(nth(self.a, n))).collect();
        let b: Vec<Lanes> = (0..self.registers).map(|n| scope.get(nth(self.b, n))).collect();
        let each = self.element[0].count();
        let depth = 4 * each * usize::from(self.registers);
        let place = |k: usize| (k / (4 * each), k % (4 * each) / each, k % each);
        let mut left = vec![[0.0; 16]; depth];
        let mut right = vec![[0.0; 8]; depth];
        for k in 0..depth {
            let (part, thread, index) = place(k);
            for row in 0..rows {
                let bits = a[halves * part + row / 8][row % 8 * 4 + thread];
                left[k][row] = self.element[0].read(bits, index);
            }
            for column in 0..8 {
                let bits = b[part][column * 4 + thread];
                right[k][column] = self.element[1].read(bits, index);
            }
        }
        for (row, sums) in sums.iter_mut().enumerate() {
            for (column, sum) in sums.iter_mut().enumerate() {
                *sum += (0..depth).map(|k| left[k][row] * right[k][column]).sum::<f64>();
            }
        }
    }
}

/// Reads or writes the sums, two of a row in each lane.
fn cell(lane: usize, index: usize) -> (usize, usize) {
    (lane / 4 + 8 * (index / 2), lane % 4 * 2 + index % 2)
}

fn hmma(line: &Line) -> Result<Action, String> {
    let mut args = Args::new(line);
    let (target, a, b, c) = (args.target()?, args.int()?.from, args.int()?.from, args.int()?.from);
    if line.has("SP") {
        let product = Sparse::read(line, args, a, b)?;
        return Ok(summed(line, target, c, move |scope, sums| product.add_to(scope, sums)));
    }
    let element = match () {
        () if line.has("TF32") => Element::Single,
        () if line.has("BF16") => Element::Pair(Format::Brain),
        () => Element::Pair(Format::Half),
    };
    let shape = line.suffixes().next().unwrap_or("");
    let registers = match (shape, element) {
        ("16816", Element::Pair(_)) | ("1688", Element::Single) => 2,
        ("1688", Element::Pair(_)) | ("1684", Element::Single) => 1,
        _ => return Err("its shape is not known".into()),
    };
    let product = Product { a, b, element: [element; 2], registers, small: false };
    Ok(summed(line, target, c, move |scope, sums| product.add_to(scope, sums)))
}

/// Adds a product to sums that are singles or halves.
fn summed(
    line: &Line,
    target: Target,
    c: From,
    add: impl Fn(&Scope<'_>, &mut Sums) + Send + Sync + 'static,
) -> Action {
    let single = line.has("F32");
    Box::new(move |scope, mask| {
        let mut sums = if single { read_singles(scope, c) } else { read_halves(scope, c) };
        add(scope, &mut sums);
        if single {
            write_words(scope, target, (mask, 4), |row, column| {
                narrow(sums[row][column]).to_bits()
            });
            return Ok(());
        }
        for part in 0..2 {
            let value = std::array::from_fn(|lane| {
                let [x, y] = [0, 1].map(|index| {
                    let (row, column) = cell(lane, 2 * usize::from(part) + index);
                    to_half(sums[row][column], Rounding::Nearest)
                });
                joined(x, y)
            });
            scope.put(target.plus(part), mask, &value);
        }
        Ok(())
    })
}

fn read_words(scope: &Scope<'_>, from: From, count: u8, number: fn(u32) -> f64) -> Sums {
    let mut sums = [[0.0; 8]; 16];
    for index in 0..count {
        let value = scope.get(nth(from, index));
        for (lane, bits) in value.into_iter().enumerate() {
            let (row, column) = cell(lane, index.into());
            sums[row][column] = number(bits);
        }
    }
    sums
}

fn read_singles(scope: &Scope<'_>, from: From) -> Sums {
    read_words(scope, from, 4, |bits| f32::from_bits(bits).into())
}

fn read_halves(scope: &Scope<'_>, from: From) -> Sums {
    let mut sums = [[0.0; 8]; 16];
    for part in 0..2_u8 {
        let value = scope.get(nth(from, part));
        for (lane, bits) in value.into_iter().enumerate() {
            for (index, bits) in halves(bits).into_iter().enumerate() {
                let (row, column) = cell(lane, 2 * usize::from(part) + index);
                sums[row][column] = Format::Half.read(bits).into();
            }
        }
    }
    sums
}

fn write_words(
    scope: &mut Scope<'_>,
    target: Target,
    (mask, count): (u32, u8),
    bits: impl Fn(usize, usize) -> u32,
) {
    for index in 0..count {
        let value = std::array::from_fn(|lane| {
            let (row, column) = cell(lane, index.into());
            bits(row, column)
        });
        scope.put(target.plus(index), mask, &value);
    }
}

fn imma(line: &Line) -> Result<Action, String> {
    let mut args = Args::new(line);
    let (target, a, b, c) = (args.target()?, args.int()?.from, args.int()?.from, args.int()?.from);
    let (registers, small) = match line.suffixes().next().unwrap_or("") {
        "16832" | "16864" => (2, false),
        "16816" => (1, false),
        "8816" | "8832" => (1, true),
        _ => return Err("its shape is not known".into()),
    };
    let types: Vec<Element> = line
        .suffixes()
        .filter_map(|suffix| match suffix {
            "S8" => Some(Element::Byte(true)),
            "U8" => Some(Element::Byte(false)),
            "S4" => Some(Element::Nibble(true)),
            "U4" => Some(Element::Nibble(false)),
            _ => None,
        })
        .collect();
    let [first, second] = types[..] else { return Err("its types are not known".into()) };
    // The shape says the depth, and the types how many elements a register has.
    let registers = match (line.has("16832"), first) {
        (true, Element::Nibble(_)) => 1,
        _ => registers,
    };
    let product = Product { a, b, element: [first, second], registers, small };
    let (saturates, count) = (line.has("SAT"), if small { 2 } else { 4 });
    Ok(Box::new(move |scope, mask| {
        let mut sums = read_words(scope, c, count, |bits| f64::from(bits.cast_signed()));
        product.add_to(scope, &mut sums);
        write_words(scope, target, (mask, count), |row, column| word(sums[row][column], saturates));
        Ok(())
    }))
}

/// A sum that is a whole number as 32 bits.
#[allow(clippy::cast_possible_truncation, reason = "wraps or saturates, as the format does")]
pub(super) fn word(sum: f64, saturates: bool) -> u32 {
    if saturates {
        return (sum as i32).cast_unsigned();
    }
    crate::execute::low((sum as i64).cast_unsigned())
}

/// Transposes a matrix of 8 rows of 8 halves, two of a row in each lane.
fn movm(line: &Line) -> Result<Action, String> {
    let mut args = Args::new(line);
    let (target, a) = (args.target()?, args.int()?.from);
    if !line.has("16") || !line.has("MT88") {
        return Err("its shape is not known".into());
    }
    Ok(Box::new(move |scope, mask| {
        let from = scope.get(a);
        let value = std::array::from_fn(|lane| {
            let (row, column) = cell(lane, 0);
            let of = |column: usize| halves(from[4 * column + row / 2])[row % 2];
            joined(of(column), of(column + 1))
        });
        scope.put(target, mask, &value);
        Ok(())
    }))
}

fn dmma(line: &Line) -> Result<Action, String> {
    let mut args = Args::new(line);
    let (target, a, b, c) = (args.target()?, args.int()?.from, args.int()?.from, args.int()?.from);
    if !(line.has("884") || line.has("8x8x4")) {
        return Err("its shape is not known".into());
    }
    Ok(Box::new(move |scope, mask| {
        let [a, b] = [a, b].map(|from| scope.get64(from).map(f64::from_bits));
        for index in 0..2_u8 {
            let old = scope.get64(nth(c, 2 * index)).map(f64::from_bits);
            let value: Lanes64 = std::array::from_fn(|lane| {
                let (row, column) = cell(lane, index.into());
                let sum =
                    (0..4).fold(old[lane], |sum, k| a[row * 4 + k].mul_add(b[column * 4 + k], sum));
                sum.to_bits()
            });
            scope.put64(target.plus(2 * index), mask, &value);
        }
        Ok(())
    }))
}
