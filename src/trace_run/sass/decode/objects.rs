//! Barrier objects in shared memory (PTX ISA, `mbarrier`), and asynchronous stores that they count.

use std::fmt::Write as _;

use super::args::Args;
use super::atomic::update;
use super::load::{Space, addresses};
use super::{Action, Maker};
use crate::execute::{From, Lanes, Pause, Scope, Target, ZERO, each, low};
use crate::sass::operand::{Address, Value};
use crate::sass::text::Line;

pub(super) fn find(name: &str) -> Option<Maker> {
    Some(match name {
        "SYNCS" => step,
        "ARRIVES" => after_copies,
        "STAS" => store,
        "REDAS" => reduce,
        _ => return None,
    })
}

/// The addresses in the cluster's shared memories of an operand; they are kept for the trace.
fn places(scope: &mut Scope<'_>, place: Address) -> Lanes {
    let uniform = place.uniform.map_or(0, |number| scope.warp.uniform(number));
    let added = uniform.wrapping_add(low(place.offset.cast_unsigned()));
    let registers = scope.get(From::Thread(place.register.unwrap_or(ZERO)));
    let places = registers.map(|one| one.wrapping_mul(place.scale.into()).wrapping_add(added));
    scope.warp.addresses = places.map(u64::from);
    places
}

/// Writes the registers of an instruction for the trace: those of the results, which machines do
/// not ask for, as 0, the address and the value, in the lowest lane.
fn note_values(scope: &mut Scope<'_>, results: usize, mask: u32, values: [u64; 2]) {
    if scope.warp.record.is_none() || mask == 0 {
        return;
    }
    let mut text = String::from("Val");
    for value in std::iter::repeat_n(0, results).chain(values) {
        write!(text, " 1 {value:#x}").expect("a String takes everything");
    }
    scope.warp.fields = text;
}

/// What a step does to an object, with the number in its register.
#[derive(Clone, Copy, Debug)]
struct Step {
    arrives: Count,
    /// Bytes that are to come.
    bytes: Count,
    /// Of bytes: they have come.
    completes: bool,
    drops: bool,
}

#[derive(Clone, Copy, Debug)]
enum Count {
    None,
    One,
    Register,
}

impl Count {
    fn of(self, number: u32) -> u32 {
        match self {
            Self::None => 0,
            Self::One => 1,
            Self::Register => number,
        }
    }
}

impl Step {
    fn of(line: &Line) -> Result<Self, String> {
        let (arrives, bytes) = match () {
            () if line.has("A1T0") => (Count::One, Count::None),
            () if line.has("ART0") => (Count::Register, Count::None),
            () if line.has("A0TR") || line.has("A0TX") => (Count::None, Count::Register),
            () if line.has("A0T1") => (Count::None, Count::One),
            () => (Count::One, Count::Register),
        };
        if line.has("TMASK") {
            return Err("an arrival that says which lanes came together is not known".into());
        }
        Ok(Self { arrives, bytes, completes: line.has("A0TX"), drops: line.has("OPTOUT") })
    }

    /// Does it; returns the object's bits before it.
    fn run(self, scope: &mut Scope<'_>, place: u32, number: u32) -> Result<u64, String> {
        scope.at_object(place, |object| {
            let bytes = i64::from(self.bytes.of(number));
            if bytes != 0 {
                object.expect(if self.completes { -bytes } else { bytes });
            }
            match self.arrives.of(number) {
                0 => Ok(()),
                times => object.arrive(times.into(), self.drops),
            }
        })
    }
}

fn step(line: &Line) -> Result<Action, String> {
    match line.suffixes().next() {
        Some("EXCH") => exchange(line),
        Some("ARRIVE") => arrive(line),
        // What forgets an object.
        Some("CCTL") => {
            let address = Args::new(line).memory()?;
            Ok(Box::new(move |scope, _| {
                places(scope, address);
                Ok(())
            }))
        }
        _ => Err("its step is not known".into()),
    }
}

/// The result of a line, which may be none, and how many general registers the trace lists for it.
fn result(args: &mut Args<'_>) -> Result<(Target, usize), String> {
    let target = args.target()?;
    Ok((target, usize::from(matches!(target, Target::Thread(_)))))
}

fn exchange(line: &Line) -> Result<Action, String> {
    let mut args = Args::new(line);
    let (target, results) = result(&mut args)?;
    let (address, value) = (args.memory()?, args.int()?.from);
    if !line.has("64") {
        return Err("its width is not known".into());
    }
    Ok(Box::new(move |scope, mask| {
        let (places, values) = (places(scope, address), scope.get64(value));
        let mut olds = [0; 32];
        for lane in each(mask) {
            let bytes = scope.cluster_bytes(places[lane], 8)?;
            let mut old = [0; 8];
            old.copy_from_slice(bytes);
            bytes.copy_from_slice(&values[lane].to_le_bytes());
            olds[lane] = u64::from_le_bytes(old);
        }
        scope.put64(target, mask, &olds);
        let first = mask.trailing_zeros() as usize % 32;
        note_values(scope, results, mask, [places[first].into(), values[first]]);
        Ok(())
    }))
}

fn arrive(line: &Line) -> Result<Action, String> {
    let mut args = Args::new(line);
    let (target, results) = result(&mut args)?;
    let (address, value) = (args.memory()?, args.int()?.from);
    let step = Step::of(line)?;
    Ok(Box::new(move |scope, mask| {
        let (places, values) = (places(scope, address), scope.get(value));
        let mut olds = [0; 32];
        for lane in each(mask) {
            olds[lane] = step.run(scope, places[lane], values[lane])?;
        }
        scope.put64(target, mask, &olds);
        let first = mask.trailing_zeros() as usize % 32;
        note_values(scope, results, mask, [places[first].into(), values[first].into()]);
        Ok(())
    }))
}

/// An arrival at a barrier object as devices before Hopper have them: plain instructions make and
/// read it. Bits 0 to 29 are 2^30 less the arrivals of a phase, bits 32 to 62 are 2^31 less those
/// that are missing, bit 63 is the parity of the phase. Returns the object after it.
fn counted(bits: u64) -> u64 {
    const PARITY: u64 = 1 << 63;
    let next = bits.wrapping_add(1 << 32);
    if (bits ^ next) & PARITY == 0 {
        return next;
    }
    let expected = (1 << 30) - (bits & ((1 << 30) - 1));
    let missing = ((1_u64 << 31) - expected) << 32;
    next & PARITY | missing | u64::from(low(bits))
}

/// Lanes arrive at such an object, lane after lane.
fn arrive_each(scope: &mut Scope<'_>, mask: u32, address: Address) -> Result<[u64; 32], String> {
    let places = addresses(scope, address, Space::Shared);
    let mut olds = [0; 32];
    for lane in each(mask) {
        let mut raw = [0; 8];
        scope.read(Space::Shared, lane, places[lane], &mut raw)?;
        olds[lane] = u64::from_le_bytes(raw);
        let new = counted(olds[lane]);
        scope.write(Space::Shared, lane, places[lane], &new.to_le_bytes())?;
    }
    Ok(olds)
}

/// The instruction that does so; its result is the object before it.
pub(super) fn arrive_at_counter(line: &Line) -> Result<Action, String> {
    let mut args = Args::new(line);
    let (target, address) = (args.target()?, args.memory()?);
    if !line.has("64") || line.suffixes().count() > 2 {
        return Err("this form is not known".into());
    }
    Ok(Box::new(move |scope, mask| {
        let olds = arrive_each(scope, mask, address)?;
        scope.put64(target, mask, &olds);
        Ok(())
    }))
}

/// An arrival, or the one byte that was expected for it, when the asynchronous copies so far are
/// done: they are done at once here.
fn after_copies(line: &Line) -> Result<Action, String> {
    let address = Args::new(line).memory()?;
    if !line.has("TRANSCNT") && !line.has("ARVCNT") {
        return Ok(Box::new(move |scope, mask| arrive_each(scope, mask, address).map(drop)));
    }
    let (arrives, bytes) = match line.has("TRANSCNT") {
        true => (Count::None, Count::One),
        false => (Count::One, Count::None),
    };
    let step = Step { arrives, bytes, completes: true, drops: false };
    Ok(Box::new(move |scope, mask| {
        let places = places(scope, address);
        each(mask).try_for_each(|lane| step.run(scope, places[lane], 0).map(drop))
    }))
}

/// A question whether the phase of a parity has ended: with `TRYWAIT` its warp waits for that.
pub(super) fn phase_check(line: &Line) -> Result<Action, String> {
    let mut args = Args::new(line);
    let mut out = args.predicate()?;
    // Some versions print a second predicate after it, which is none.
    while args.peek().is_some_and(|one| matches!(one.value, Value::Predicate(..))) {
        out = args.predicate().map(|_| out)?;
    }
    let (address, value) = (args.memory()?, args.int()?.from);
    let waits = line.has("TRYWAIT");
    Ok(Box::new(move |scope, mask| {
        let (places, values) = (places(scope, address), scope.get(value));
        let mut over = 0;
        for lane in each(mask) {
            let mut is_over = false;
            scope.at_object(places[lane], |object| {
                is_over = object.is_over(values[lane] >> 31 == 1);
                Ok(())
            })?;
            over |= u32::from(is_over) << lane;
        }
        let gives_up = std::mem::take(&mut scope.warp.gives_up);
        if over != mask && waits && !gives_up {
            scope.warp.pause = Pause::Again;
            return Ok(());
        }
        scope.set(out, mask, over);
        // A machine would wait here for what the value says, and the kernel did not.
        if over != mask {
            scope.warp.pause = Pause::Turn;
            return Ok(());
        }
        let first = mask.trailing_zeros() as usize % 32;
        note_values(scope, 0, mask, [places[first].into(), values[first].into()]);
        Ok(())
    }))
}

/// Bytes of each lane of an asynchronous store.
fn width(line: &Line) -> u32 {
    match () {
        () if line.has("64") => 8,
        () if line.has("128") => 16,
        () => 4,
    }
}

/// Where an asynchronous store goes, and the object that counts its bytes: a pair of registers.
fn destinations(scope: &mut Scope<'_>, address: Address) -> Result<[Lanes; 2], String> {
    let number = address.register.ok_or("it names no object")?;
    let to = places(scope, address);
    // Machines know shared memory of others by generic addresses.
    scope.warp.addresses = to.map(|place| crate::execute::SHARED_WINDOW + u64::from(place));
    Ok([to, scope.get(From::Thread(number).next())])
}

fn store(line: &Line) -> Result<Action, String> {
    let mut args = Args::new(line);
    let (address, source) = (args.memory()?, args.int()?.from);
    let bytes = width(line);
    let step = Step { arrives: Count::None, bytes: Count::Register, completes: true, drops: false };
    Ok(Box::new(move |scope, mask| {
        let [to, objects] = destinations(scope, address)?;
        for part in 0..u8::try_from(bytes / 4).unwrap_or(1) {
            let words = scope.get(super::load::nth(source, part));
            for lane in each(mask) {
                let place = scope.cluster_bytes(to[lane] + 4 * u32::from(part), 4)?;
                place.copy_from_slice(&words[lane].to_le_bytes());
            }
        }
        each(mask).try_for_each(|lane| step.run(scope, objects[lane], bytes).map(drop))
    }))
}

fn reduce(line: &Line) -> Result<Action, String> {
    let mut args = Args::new(line);
    let (address, source) = (args.memory()?, args.int()?.from);
    let (bytes, update) = (width(line), update(line)?);
    let step = Step { arrives: Count::None, bytes: Count::Register, completes: true, drops: false };
    Ok(Box::new(move |scope, mask| {
        let [to, objects] = destinations(scope, address)?;
        let (narrow, wide) = (scope.get(source), scope.get64(source));
        for lane in each(mask) {
            let operand = if bytes == 8 { wide[lane] } else { narrow[lane].into() };
            let place = scope.cluster_bytes(to[lane], bytes as usize)?;
            let mut old = [0; 8];
            old[..place.len()].copy_from_slice(place);
            let new = update(u64::from_le_bytes(old), operand, 0).to_le_bytes();
            place.copy_from_slice(&new[..place.len()]);
            step.run(scope, objects[lane], bytes)?;
        }
        Ok(())
    }))
}

#[cfg(test)]
mod tests {
    use super::counted;

    #[test]
    fn a_phase_ends_with_the_last_arrival_and_its_count_begins_again() {
        // As kernels make an object for three arrivals.
        let made = ((1_u64 << 31) - 3) << 32 | ((1 << 30) - 3);
        let one = counted(made);
        assert_eq!(one >> 32, (1 << 31) - 2);
        let over = counted(counted(one));
        assert_eq!(over, made | 1 << 63);
        // One leaves, and the phase after that takes two.
        let two = counted(counted(counted(over + 1)));
        assert_eq!(two >> 32, (1 << 31) - 2);
    }
}
