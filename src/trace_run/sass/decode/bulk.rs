//! Bulk copies and reductions between global memory and the shared memories of a cluster (PTX ISA,
//! `cp.async.bulk`, `cp.reduce.async.bulk` and their tensor forms): done at once, one for a warp.

use std::fmt::Write as _;

use super::args::Args;
use super::half::Format;
use super::rounding::{Rounding, to_brain, to_half};
use super::{Action, Maker};
use crate::execute::{
    Element, From, MOST_DIMENSIONS, Row, Scope, TENSOR_MAP_BYTES, TensorMap, low, swizzled,
};
use crate::sass::text::Line;

pub(super) fn find(name: &str) -> Option<Maker> {
    Some(match name {
        "UBLKCP" => copy,
        "UBLKRED" => reduce,
        "UBLKPF" => prefetch,
        "UTMALDG" => load_box,
        "UTMASTG" | "UTMAREDG" => store_box,
        "UTMAPF" => prefetch_box,
        "UTMACCTL" | "UTMACMDFLUSH" | "USETMAXREG" => nothing,
        _ => return None,
    })
}

/// Steps that matter for time alone; asking for registers succeeds.
fn nothing(line: &Line) -> Result<Action, String> {
    let out = Args::new(line).maybe_predicate();
    Ok(Box::new(move |scope, mask| {
        out.into_iter().for_each(|out| scope.set(out, mask, u32::MAX));
        Ok(())
    }))
}

/// Bytes that are the unit of a bulk copy.
const UNIT: usize = 16;

/// What a trace has of a copy.
#[derive(Default)]
struct BulkFields<'a> {
    object: u32,
    multicast: Option<u32>,
    bytes: usize,
    /// Parts of global memory, of equal length.
    rows: &'a [Row],
}

impl BulkFields<'_> {
    /// The form of Accel-Sim 2.0 with a base and differences.
    fn text(&self) -> String {
        let inside: usize = self.rows.iter().map(|row| row.bytes).sum();
        let to = self.multicast.map_or_else(|| "0".to_owned(), |mask| format!("1 {mask:#x}"));
        let first = self.rows.first().map_or(0, |row| row.address);
        let (bytes, outside) = (self.bytes, self.bytes - inside);
        let mut text = format!("{UNIT} {:#x} {to} {bytes} {outside} 4 {first:#x}", self.object);
        write!(text, " {}", self.rows.len()).expect("a String takes everything");
        for pair in self.rows.windows(2) {
            let step = pair[1].address.wrapping_sub(pair[0].address).cast_signed();
            write!(text, " {step}").expect("a String takes everything");
        }
        text
    }
}

/// Keeps for the trace what a copy does.
fn note_fields(scope: &mut Scope<'_>, fields: &BulkFields<'_>) {
    if scope.warp.record.is_some() {
        scope.warp.fields = fields.text();
    }
}

/// The number of the uniform register in brackets.
fn place(args: &mut Args<'_>) -> Result<u8, String> {
    let address = args.memory()?;
    match (address.uniform, address.register, address.offset) {
        (Some(number), None, 0) => Ok(number),
        _ => Err("an address that is no uniform register is not known".into()),
    }
}

/// Registers from a uniform one on.
fn words<const N: usize>(scope: &Scope<'_>, first: u8) -> [u32; N] {
    std::array::from_fn(|n| scope.warp.uniform(first + u8::try_from(n).unwrap_or(0)))
}

fn wide(scope: &Scope<'_>, first: u8) -> u64 {
    scope.first64(From::Warp(first))
}

/// Parts of an address in the shared memories of a cluster.
const RANK: u32 = 24;

/// The addresses at which the CTAs of `mask` get what goes to `address`.
fn copies(address: u32, mask: Option<u32>) -> impl Iterator<Item = u32> {
    let ranks = mask.unwrap_or(1 << (address >> RANK & 31));
    let offset = address & ((1 << RANK) - 1);
    (0..32).filter(move |rank| ranks >> rank & 1 == 1).map(move |rank| rank << RANK | offset)
}

/// Takes so many bytes as come at the objects of all CTAs that get them.
fn complete(scope: &mut Scope<'_>, at: u32, mask: Option<u32>, bytes: usize) -> Result<(), String> {
    let bytes = i64::try_from(bytes).unwrap_or(0);
    copies(at, mask).try_for_each(|place| {
        scope.at_object(place, |object| {
            object.expect(-bytes);
            Ok(())
        })?;
        Ok(())
    })
}

/// The sides of a copy, as its suffixes name them.
fn sides(line: &Line) -> Result<[bool; 2], String> {
    let mut sides = line.suffixes().take(2).map(|side| match side {
        "S" => Ok(true),
        "G" => Ok(false),
        _ => Err("its memories are not known".to_owned()),
    });
    match (sides.next(), sides.next()) {
        (Some(to), Some(from)) => Ok([to?, from?]),
        _ => Err("its memories are not known".into()),
    }
}

/// Bytes, and the CTAs that get them, in a register of a copy.
fn size(scope: &Scope<'_>, number: From, multicast: bool) -> (usize, Option<u32>) {
    let value = number.first(scope);
    ((value & 0xffff) as usize * UNIT, multicast.then_some(value >> 16))
}

fn shared(scope: &mut Scope<'_>, address: u32, bytes: usize) -> Result<Vec<u8>, String> {
    scope.cluster_bytes(address, bytes).map(|bytes| bytes.to_vec())
}

fn copy(line: &Line) -> Result<Action, String> {
    let mut args = Args::new(line);
    let (to, from, count) = (place(&mut args)?, place(&mut args)?, args.int()?.from);
    let (sides, multicast) = (sides(line)?, line.has("MULTICAST"));
    let global =
        |scope: &Scope<'_>, number, bytes| Row { address: wide(scope, number), offset: 0, bytes };
    Ok(Box::new(move |scope, mask| {
        let (bytes, ranks) = size(scope, count, multicast);
        let bytes = if mask == 0 { 0 } else { bytes };
        let [place, object] = words(scope, to);
        match sides {
            [true, from_shared] => {
                let row = global(scope, from, bytes);
                let mut data = vec![0; bytes];
                match from_shared {
                    true => data = shared(scope, low(row.address), bytes)?,
                    false => scope.read_global(0, row.address, &mut data)?,
                }
                for place in copies(place, ranks).filter(|_| bytes > 0) {
                    scope.cluster_bytes(place, bytes)?.copy_from_slice(&data);
                }
                if bytes > 0 {
                    complete(scope, object, ranks, bytes)?;
                }
                let rows = if from_shared { &[][..] } else { &[row][..] };
                note_fields(scope, &BulkFields { object, multicast: ranks, bytes, rows });
            }
            [false, true] => {
                let row = global(scope, to, bytes);
                let data = shared(scope, words::<1>(scope, from)[0], bytes)?;
                scope.write_global(0, row.address, &data)?;
                note_fields(scope, &BulkFields { bytes, rows: &[row], ..BulkFields::default() });
            }
            [false, false] => return Err("a copy from global to global memory".into()),
        }
        Ok(())
    }))
}

fn prefetch(line: &Line) -> Result<Action, String> {
    let mut args = Args::new(line);
    let (from, count) = (place(&mut args)?, args.int()?.from);
    Ok(Box::new(move |scope, _| {
        let (bytes, _) = size(scope, count, false);
        let row = Row { address: wide(scope, from), offset: 0, bytes };
        note_fields(scope, &BulkFields { bytes, rows: &[row], ..BulkFields::default() });
        Ok(())
    }))
}

/// What a reduction does to the bits of an element and those of an operand.
type Update = fn(u64, u64) -> u64;

fn halves(a: u64, b: u64, format: Format, of: fn(f32, f32) -> f32) -> u64 {
    let read = |bits: u64| format.read(u16::try_from(bits & 0xffff).unwrap_or(0));
    let value = of(read(a), read(b));
    u64::from(match format {
        Format::Half => to_half(value.into(), Rounding::Nearest),
        Format::Brain => to_brain(value, Rounding::Nearest),
    })
}

fn single(bits: u64) -> f32 {
    f32::from_bits(low(bits))
}

/// The operation of that name on elements of a kind.
fn update(name: &str, element: Element) -> Option<Update> {
    use Element::{Bf16, F16, F32, F64, S32, S64, U32, U64};
    Some(match (name, element) {
        ("ADD", U32 | S32 | U64 | S64) => u64::wrapping_add,
        ("ADD", F32) => |a, b| super::atomic::add_singles(a, b, 0),
        ("ADD", F64) => |a, b| super::atomic::add_doubles(a, b, 0),
        ("ADD", F16) => |a, b| halves(a, b, Format::Half, |x, y| x + y),
        ("ADD", Bf16) => |a, b| halves(a, b, Format::Brain, |x, y| x + y),
        ("MIN", F16) => |a, b| halves(a, b, Format::Half, f32::min),
        ("MIN", Bf16) => |a, b| halves(a, b, Format::Brain, f32::min),
        ("MAX", F16) => |a, b| halves(a, b, Format::Half, f32::max),
        ("MAX", Bf16) => |a, b| halves(a, b, Format::Brain, f32::max),
        ("MIN", F32) => |a, b| single(a).min(single(b)).to_bits().into(),
        ("MAX", F32) => |a, b| single(a).max(single(b)).to_bits().into(),
        ("MIN", S32) => {
            |a, b| low(a).cast_signed().min(low(b).cast_signed()).cast_unsigned().into()
        }
        ("MAX", S32) => {
            |a, b| low(a).cast_signed().max(low(b).cast_signed()).cast_unsigned().into()
        }
        ("MIN", S64) => |a, b| a.cast_signed().min(b.cast_signed()).cast_unsigned(),
        ("MAX", S64) => |a, b| a.cast_signed().max(b.cast_signed()).cast_unsigned(),
        ("MIN", U32 | U64) => u64::min,
        ("MAX", U32 | U64) => u64::max,
        ("INC", U32) => |a, b| if a >= b { 0 } else { a + 1 },
        ("DEC", U32) => |a, b| if a == 0 || a > b { b } else { a - 1 },
        ("AND", U32 | S32 | U64 | S64) => |a, b| a & b,
        ("OR", U32 | S32 | U64 | S64) => |a, b| a | b,
        ("XOR", U32 | S32 | U64 | S64) => |a, b| a ^ b,
        _ => return None,
    })
}

/// Changes each element of `data` by the one of `operands`.
fn combine(data: &mut [u8], operands: &[u8], element: Element, update: Update) {
    let bytes = element.bytes();
    let number = |bytes: &[u8]| {
        let mut all = [0; 8];
        all[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(all)
    };
    for (old, operand) in data.chunks_exact_mut(bytes).zip(operands.chunks_exact(bytes)) {
        let new = update(number(old), number(operand)).to_le_bytes();
        old.copy_from_slice(&new[..bytes]);
    }
}

/// The elements that the suffixes of a reduction name.
fn elements(line: &Line) -> Element {
    match () {
        () if line.has("U64") || line.has("64") => Element::U64,
        () if line.has("S64") => Element::S64,
        () if line.has("S32") => Element::S32,
        () if line.has("F16") => Element::F16,
        () if line.has("BF16") => Element::Bf16,
        () if line.has("F32") => Element::F32,
        () if line.has("F64") => Element::F64,
        () => Element::U32,
    }
}

/// The operation that the suffixes name on elements of a kind.
fn operation(line: &Line, element: Element) -> Result<Update, String> {
    let found = line.suffixes().find_map(|name| update(name, element));
    found.ok_or_else(|| format!("its operation on elements of {element:?} is not known"))
}

fn reduce(line: &Line) -> Result<Action, String> {
    let mut args = Args::new(line);
    let (to, from, count) = (place(&mut args)?, place(&mut args)?, args.int()?.from);
    let element = elements(line);
    let update = operation(line, element)?;
    let [to_shared, true] = sides(line)? else { return Err("its memories are not known".into()) };
    Ok(Box::new(move |scope, mask| {
        let (bytes, _) = size(scope, count, false);
        let bytes = if mask == 0 { 0 } else { bytes };
        let operands = shared(scope, words::<1>(scope, from)[0], bytes)?;
        if to_shared {
            let [place, object] = words(scope, to);
            combine(scope.cluster_bytes(place, bytes)?, &operands, element, update);
            if bytes > 0 {
                complete(scope, object, None, bytes)?;
            }
            note_fields(scope, &BulkFields { object, bytes, ..BulkFields::default() });
            return Ok(());
        }
        let row = Row { address: wide(scope, to), offset: 0, bytes };
        let mut data = vec![0; bytes];
        scope.read_global(0, row.address, &mut data)?;
        combine(&mut data, &operands, element, update);
        scope.write_global(0, row.address, &data)?;
        note_fields(scope, &BulkFields { bytes, rows: &[row], ..BulkFields::default() });
        Ok(())
    }))
}

/// The box of an instruction.
struct Tile {
    map: TensorMap,
    /// Where it lies in shared memory, in one or several parts.
    rows: Vec<Row>,
}

/// The registers of an instruction that copies a box.
#[derive(Clone, Copy)]
struct Registers {
    /// Of the place in shared memory, or of what stands in front of the coordinates.
    first: u8,
    coordinates: u8,
    map: u8,
    rank: usize,
}

impl Registers {
    /// Those of `line`, with coordinates so many registers after the first.
    fn of(line: &Line, args: &mut Args<'_>, before: u8) -> Result<Self, String> {
        let rank = line.suffixes().find_map(|one| one.strip_suffix('D')?.parse::<usize>().ok());
        let rank = rank.filter(|rank| (1..=MOST_DIMENSIONS).contains(rank));
        let rank = rank.ok_or("its dimensions are not known")?;
        let tiled =
            line.suffixes().all(|one| !(one.starts_with("IM2COL") || one.contains("GATHER")));
        if !tiled {
            return Err("of boxes it knows tiles alone".into());
        }
        let (first, map) = (place(args)?, place(args)?);
        Ok(Self { first, coordinates: first + before, map, rank })
    }

    /// The box at the coordinates.
    fn tile(self, scope: &mut Scope<'_>, mask: u32) -> Result<Option<Tile>, String> {
        if mask == 0 {
            return Ok(None);
        }
        let address = wide(scope, self.map);
        let mut bytes = [0; TENSOR_MAP_BYTES];
        scope.read(super::load::Space::Generic, 0, address, &mut bytes)?;
        let map = TensorMap::read(&bytes).filter(|map| map.rank == self.rank).ok_or_else(|| {
            format!("there is no tensor map of {} dimensions at {address:#x}", self.rank)
        })?;
        let coordinates = words::<MOST_DIMENSIONS>(scope, self.coordinates);
        let at =
            std::array::from_fn(|n| if n < self.rank { coordinates[n].cast_signed() } else { 0 });
        Ok(Some(Tile { map, rows: map.rows(at) }))
    }
}

/// The alignment of a box in shared memory.
fn aligned(address: u32) -> Result<(), String> {
    let is = address.is_multiple_of(128);
    if is { Ok(()) } else { Err(format!("a box at {address:#x}, which is no multiple of 128")) }
}

/// Calls `part` for each 16 bytes of a box at `address`: where they lie in shared memory, and in
/// the box.
fn units(
    address: u32,
    map: &TensorMap,
    mut part: impl FnMut(u32, usize) -> Result<(), String>,
) -> Result<(), String> {
    aligned(address)?;
    let (window, offset) = (address >> RANK << RANK, address & ((1 << RANK) - 1));
    for unit in (0..map.box_bytes()).step_by(UNIT) {
        let place = swizzled(offset as usize + unit, map.swizzle);
        part(window | u32::try_from(place).unwrap_or(u32::MAX), unit)?;
    }
    Ok(())
}

fn load_box(line: &Line) -> Result<Action, String> {
    let mut args = Args::new(line);
    let registers = Registers::of(line, &mut args, 2)?;
    let ranks = if line.has("MULTICAST") { Some(args.int()?.from) } else { None };
    Ok(Box::new(move |scope, mask| {
        let [address, object] = words(scope, registers.first);
        let multicast = ranks.map(|ranks| ranks.first(scope) >> 16);
        let Some(Tile { map, rows }) = registers.tile(scope, mask)? else {
            note_fields(scope, &BulkFields::default());
            return Ok(());
        };
        let mut data = vec![0; map.box_bytes()];
        for row in &rows {
            scope.read_global(0, row.address, &mut data[row.offset..row.offset + row.bytes])?;
        }
        for address in copies(address, multicast) {
            units(address, &map, |place, unit| {
                let to = scope.cluster_bytes(place, UNIT)?;
                to.copy_from_slice(&data[unit..unit + UNIT]);
                Ok(())
            })?;
        }
        complete(scope, object, multicast, data.len())?;
        note_fields(scope, &BulkFields { object, multicast, bytes: data.len(), rows: &rows });
        Ok(())
    }))
}

fn store_box(line: &Line) -> Result<Action, String> {
    let mut args = Args::new(line);
    let registers = Registers::of(line, &mut args, 1)?;
    let reduces = line.name() == "UTMAREDG";
    let names: Vec<String> = line.suffixes().map(str::to_owned).collect();
    Ok(Box::new(move |scope, mask| {
        let [address] = words(scope, registers.first);
        let Some(Tile { map, rows }) = registers.tile(scope, mask)? else {
            note_fields(scope, &BulkFields::default());
            return Ok(());
        };
        let element = map.element();
        let operation = names.iter().find_map(|name| update(name, element));
        let operation = operation.filter(|_| reduces);
        if reduces && operation.is_none() {
            return Err(format!("its operation on elements of {element:?} is not known"));
        }
        let mut data = vec![0; map.box_bytes()];
        units(address, &map, |place, unit| {
            data[unit..unit + UNIT].copy_from_slice(scope.cluster_bytes(place, UNIT)?);
            Ok(())
        })?;
        for row in &rows {
            let part = &data[row.offset..row.offset + row.bytes];
            let mut old = part.to_vec();
            if let Some(operation) = operation {
                scope.read_global(0, row.address, &mut old)?;
                combine(&mut old, part, element, operation);
            }
            scope.write_global(0, row.address, &old)?;
        }
        note_fields(scope, &BulkFields { bytes: data.len(), rows: &rows, ..BulkFields::default() });
        Ok(())
    }))
}

fn prefetch_box(line: &Line) -> Result<Action, String> {
    let registers = Registers::of(line, &mut Args::new(line), 0)?;
    Ok(Box::new(move |scope, mask| {
        let tile = registers.tile(scope, mask)?;
        let (bytes, rows) = tile.map_or((0, Vec::new()), |tile| (tile.map.box_bytes(), tile.rows));
        note_fields(scope, &BulkFields { bytes, rows: &rows, ..BulkFields::default() });
        Ok(())
    }))
}
