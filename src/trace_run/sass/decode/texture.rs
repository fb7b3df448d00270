//! Reads of textures, reads and writes of surfaces.

use super::args::Args;
use super::{Action, Maker};
use crate::execute::{From, Lanes, Scope, Target, Texture, each};
use crate::sass::operand::{Constant, Value};
use crate::sass::text::Line;

pub(super) fn find(name: &str) -> Option<Maker> {
    Some(match name {
        "TEX" => tex,
        "TLD" => tld,
        "TLD4" => gather,
        "TXD" => gradient,
        "SULD" => suld,
        "SUST" => sust,
        _ => return None,
    })
}

/// The source of a texture's or surface's handle: a register of the threads, a uniform one, or
/// the bank and the place of a constant in words.
fn handle(args: &mut Args<'_>) -> Result<From, String> {
    let operand = args.next()?;
    match operand.value {
        Value::Register(number) => return Ok(From::Thread(number)),
        Value::Uniform(number) => {
            args.number()?;
            return Ok(From::Warp(number));
        }
        _ => {}
    }
    let bank = operand.integer().and_then(|bank| u8::try_from(bank).ok());
    let bank = bank.ok_or("the place of its handle is not known")?;
    let offset = 4 * args.number()?;
    Ok(From::Constant(Constant { bank, offset, register: None, uniform: None }))
}

/// The texture or surface of that number.
fn texture(scope: &Scope<'_>, number: u32) -> Result<Texture, String> {
    let found = usize::try_from(number).ok().and_then(|number| scope.grid.textures.get(number));
    found.copied().flatten().ok_or_else(|| format!("{number:#x} is no texture or surface"))
}

/// The registers of the results: of the first two channels that are wanted, and of the others.
struct Results {
    targets: [Target; 2],
    wanted: [bool; 4],
}

impl Results {
    fn put(&self, scope: &mut Scope<'_>, mask: u32, values: &[Lanes; 4]) {
        let wanted = values.iter().zip(self.wanted).filter(|(_, wanted)| *wanted);
        for (place, (value, _)) in (0_u8..).zip(wanted) {
            let target = self.targets[usize::from(place / 2)].plus(place % 2);
            scope.put(target, mask, value);
        }
    }
}

/// How many coordinates a read has, and whether a layer's number belongs to it.
fn shape(value: &Value) -> Result<(usize, bool), String> {
    match value {
        Value::Word(word) => match word.as_str() {
            "1D" => Ok((1, false)),
            "2D" => Ok((2, false)),
            "3D" => Ok((3, false)),
            "ARRAY_1D" => Ok((1, true)),
            "ARRAY_2D" => Ok((2, true)),
            _ => Err("only textures of one to three dimensions, and layers of one and two, are \
                      known"
                .into()),
        },
        other => Err(format!("unexpected shape {other:?}")),
    }
}

/// What is read: results, coordinates, handle.
struct Read {
    results: Results,
    sources: Vec<From>,
    handle: From,
    /// How many coordinates there are.
    dimensions: usize,
    /// The number of a layer comes before them.
    layered: bool,
    /// The last source has the handle, and then what follows the coordinates.
    own_handle: bool,
}

/// Where coordinates and the number of a layer are; zero where there are none.
struct Coordinates {
    axes: [From; 3],
    layer: From,
}

impl Read {
    fn of(line: &Line) -> Result<Self, String> {
        let mut args = Args::new(line);
        let second = args.target()?;
        let first = args.target()?;
        let mut sources = Vec::new();
        while matches!(args.peek().map(|one| &one.value), Some(Value::Register(_))) {
            sources.push(args.int()?.from);
        }
        let own_handle = matches!(args.peek().map(|one| &one.value), Some(Value::Word(_)));
        let handle = match own_handle {
            true => sources.pop().ok_or("it has no handle")?,
            false => handle(&mut args)?,
        };
        let (dimensions, layered) = shape(&args.next()?.value)?;
        let channels = if args.len() > 0 { args.number()? } else { 15 };
        if args.len() > 0 {
            return Err("this form is not known".into());
        }
        let wanted = [0, 1, 2, 3].map(|channel| channels >> channel & 1 == 1);
        Ok(Self {
            results: Results { targets: [first, second], wanted },
            sources,
            handle,
            dimensions,
            layered,
            own_handle,
        })
    }

    /// The sources of the layer and the coordinates, of which there are `more` after these. With
    /// `SCR` the first two values are in the registers from the first source on and the others
    /// in those from the second one on, or each of two values in a source; else all follow each
    /// other from the first source on.
    fn coordinates(&self, line: &Line, more: usize) -> Result<Coordinates, String> {
        let first = *self.sources.first().ok_or("it has no coordinates")?;
        let named = usize::from(self.layered) + self.dimensions;
        if self.own_handle && line.has("SCR") && named > 2 {
            return Err("with a handle in a register and these coordinates it is not known".into());
        }
        let value = |index: usize| match (self.sources.get(1), named + more) {
            (Some(second), ..=2) if line.has("SCR") && index == 1 => *second,
            (Some(second), _) if line.has("SCR") && index >= 2 => nth(*second, index - 2),
            _ => nth(first, index),
        };
        let axis = |axis: usize| match axis < self.dimensions {
            true => value(usize::from(self.layered) + axis),
            false => From::Number(0),
        };
        let layer = if self.layered { value(0) } else { From::Number(0) };
        Ok(Coordinates { axes: [axis(0), axis(1), axis(2)], layer })
    }

    /// Reads for each lane with `read`.
    fn each(
        &self,
        scope: &mut Scope<'_>,
        mask: u32,
        mut read: impl FnMut(&mut Scope<'_>, &Texture, usize) -> Result<[u32; 4], String>,
    ) -> Result<(), String> {
        let mut values = [[0; 32]; 4];
        if mask != 0 {
            let numbers = scope.get(self.handle);
            for lane in each(mask) {
                let texture = texture(scope, numbers[lane])?;
                let channels = read(scope, &texture, lane)?;
                values.iter_mut().zip(channels).for_each(|(value, one)| value[lane] = one);
            }
        }
        self.results.put(scope, mask, &values);
        Ok(())
    }
}

/// Refuses suffixes other than these.
fn only(line: &Line, known: &[&str]) -> Result<(), String> {
    let other = line.suffixes().find(|one| !known.contains(one));
    other.map_or(Ok(()), |other| Err(format!("with {other} it is not known")))
}

/// The bits of a layer's number.
const MOST_LAYERS: u32 = 0xffff;

/// The source some registers further.
fn nth(from: From, count: usize) -> From {
    super::load::nth(from, u8::try_from(count).unwrap_or(0))
}

fn tex(line: &Line) -> Result<Action, String> {
    only(line, &["SCR", "B", "LL", "LZ", "NDV"])?;
    let read = Read::of(line)?;
    // Without a level it follows from the lanes of a quad, of which there is but one here.
    if !(line.has("LL") || line.has("LZ") || line.has("NDV")) {
        return Err("this form is not known".into());
    }
    // A level follows the coordinates, of which there is but one here.
    let at = read.coordinates(line, usize::from(line.has("LL")))?;
    Ok(sample(read, at))
}

/// A read with derivatives, which choose a level: there is but one here. The layer comes last.
fn gradient(line: &Line) -> Result<Action, String> {
    only(line, &["B"])?;
    let mut read = Read::of(line)?;
    let mut first = *read.sources.first().ok_or("it has no coordinates")?;
    if read.own_handle {
        // Here the handle comes before the coordinates.
        read.handle = first;
        first = first.next();
    }
    let axis = |axis| if axis < read.dimensions { nth(first, axis) } else { From::Number(0) };
    let layer = if read.layered { nth(first, read.dimensions) } else { From::Number(0) };
    let at = Coordinates { axes: [axis(0), axis(1), axis(2)], layer };
    Ok(sample(read, at))
}

fn sample(read: Read, at: Coordinates) -> Action {
    Box::new(move |scope, mask| {
        let (axes, layer) = (at.axes.map(|axis| scope.get(axis)), scope.get(at.layer));
        read.each(scope, mask, |scope, texture, lane| {
            let place = [0, 1, 2].map(|axis| f32::from_bits(axes[axis][lane]));
            texture.sample(scope, lane, (place, layer[lane] & MOST_LAYERS))
        })
    })
}

/// A channel of the four texels around a place.
fn gather(line: &Line) -> Result<Action, String> {
    only(line, &["SCR", "R", "G", "B", "A"])?;
    let read = Read::of(line)?;
    let channel = line.suffixes().find(|one| *one != "SCR");
    let channel = channel.and_then(|one| "RGBA".find(one)).ok_or("its channel is not known")?;
    if read.dimensions != 2 || read.layered {
        return Err("only of two dimensions it is known".into());
    }
    let at = read.coordinates(line, 0)?;
    Ok(Box::new(move |scope, mask| {
        let axes = at.axes.map(|axis| scope.get(axis));
        read.each(scope, mask, |scope, texture, lane| {
            let place = [0, 1].map(|axis| f32::from_bits(axes[axis][lane]));
            texture.gather(scope, lane, (place, channel))
        })
    }))
}

fn tld(line: &Line) -> Result<Action, String> {
    only(line, &["SCR", "B", "LZ"])?;
    let read = Read::of(line)?;
    if read.dimensions != 1 || read.layered {
        return Err("only of one dimension it is known".into());
    }
    let [x, ..] = read.coordinates(line, 0)?.axes;
    Ok(Box::new(move |scope, mask| {
        let x = scope.get(x);
        read.each(scope, mask, |scope, texture, lane| texture.fetch(scope, lane, x[lane]))
    }))
}

/// Where lanes of a surface go that are outside of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outside {
    Fails,
    Clamps,
    Ignores,
}

/// An access to a surface.
#[derive(Clone, Copy, Debug)]
struct Surface {
    /// Bytes, rows and planes or layers; zero where there are none.
    axes: [From; 3],
    bytes: u32,
    outside: Outside,
}

impl Surface {
    fn of(line: &Line, register: u8) -> Result<Self, String> {
        only(
            line,
            &[
                "D", "BA", "1D", "2D", "3D", "1D_ARRAY", "2D_ARRAY", "STRONG", "WEAK", "SM", "CTA",
                "GPU", "SYS", "TRAP", "IGN", "U8", "S8", "U16", "S16", "64", "128",
            ],
        )?;
        if !(line.has("D") && line.has("BA")) || line.has("S8") || line.has("S16") {
            return Err("this form is not known".into());
        }
        let bytes = match () {
            () if line.has("U8") => 1,
            () if line.has("U16") => 2,
            () if line.has("64") => 8,
            () if line.has("128") => 16,
            () => 4,
        };
        let outside = match () {
            () if line.has("TRAP") => Outside::Fails,
            () if line.has("IGN") => Outside::Ignores,
            () => Outside::Clamps,
        };
        let (x, none) = (From::Thread(register), From::Number(0));
        let axes = match () {
            () if line.has("2D") => [x, nth(x, 1), none],
            () if line.has("3D") || line.has("2D_ARRAY") => [x, nth(x, 1), nth(x, 2)],
            () if line.has("1D_ARRAY") => [x, none, nth(x, 1)],
            () => [x, none, none],
        };
        Ok(Self { axes, bytes, outside })
    }

    /// The address of `lane`; none outside.
    fn place(
        &self,
        texture: &Texture,
        lane: usize,
        axes: &[Lanes; 3],
    ) -> Result<Option<u64>, String> {
        let texels = &texture.texels;
        let most = texels.last(self.bytes.into());
        let at = [0, 1, 2].map(|axis| axes[axis][lane].cast_signed());
        let near = [0, 1, 2].map(|axis| u64::try_from(at[axis]).unwrap_or(0).min(most[axis]));
        let inside = near.map(i64::try_from) == at.map(|one| Ok(i64::from(one)));
        match self.outside {
            Outside::Fails if !inside => {
                let [byte, row, plane] = at;
                Err(format!(
                    "lane {lane}: byte {byte}, row {row}, plane {plane} is outside of the surface"
                ))
            }
            Outside::Ignores if !inside => Ok(None),
            Outside::Fails | Outside::Ignores | Outside::Clamps => Ok(Some(texels.place(near))),
        }
    }

    fn coordinates(&self, scope: &Scope<'_>) -> [Lanes; 3] {
        self.axes.map(|axis| scope.get(axis))
    }
}

fn suld(line: &Line) -> Result<Action, String> {
    let mut args = Args::new(line);
    let target = args.target()?;
    let register = args.memory()?.register.ok_or("it has no coordinates")?;
    let (surface, handle) = (Surface::of(line, register)?, handle(&mut args)?);
    Ok(Box::new(move |scope, mask| {
        let axes = surface.coordinates(scope);
        let (mut values, numbers) = ([[0; 32]; 4], scope.get(handle));
        for lane in each(mask) {
            let texture = texture(scope, numbers[lane])?;
            let mut bytes = [0; 16];
            if let Some(place) = surface.place(&texture, lane, &axes)? {
                scope.read_global(lane, place, &mut bytes[..surface.bytes as usize])?;
            }
            for (value, word) in values.iter_mut().zip(bytes.as_chunks::<4>().0) {
                value[lane] = u32::from_le_bytes(*word);
            }
        }
        for (part, value) in (0..u8::try_from(surface.bytes.div_ceil(4)).unwrap_or(1)).zip(&values)
        {
            scope.put(target.plus(part), mask, value);
        }
        Ok(())
    }))
}

fn sust(line: &Line) -> Result<Action, String> {
    let mut args = Args::new(line);
    let register = args.memory()?.register.ok_or("it has no coordinates")?;
    let source = args.int()?.from;
    let (surface, handle) = (Surface::of(line, register)?, handle(&mut args)?);
    Ok(Box::new(move |scope, mask| {
        let axes = surface.coordinates(scope);
        let values = [0, 1, 2, 3].map(|part| match u32::from(part) * 4 < surface.bytes {
            true => scope.get(super::load::nth(source, part)),
            false => [0; 32],
        });
        let numbers = scope.get(handle);
        for lane in each(mask) {
            let texture = texture(scope, numbers[lane])?;
            let mut bytes = [0; 16];
            for (word, value) in bytes.as_chunks_mut::<4>().0.iter_mut().zip(&values) {
                *word = value[lane].to_le_bytes();
            }
            if let Some(place) = surface.place(&texture, lane, &axes)? {
                scope.write_global(lane, place, &bytes[..surface.bytes as usize])?;
            }
        }
        Ok(())
    }))
}
