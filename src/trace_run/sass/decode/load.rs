//! Loads, stores and asynchronous copies.

use super::args::Args;
use super::{Action, Maker};
use crate::Exception;
use crate::execute::{
    BANKS, CONSTANT_BANK_BYTES, CONSTANT_WINDOW, From, LOCAL_WINDOW, Lanes, SHARED_WINDOW, Scope,
    Target, WINDOW_BYTES, WarpAccess, Words, ZERO, copy_bytes, each, low, mask_of, view,
};
use crate::sass::operand::Address;
use crate::sass::text::Line;

pub(super) fn find(name: &str) -> Option<Maker> {
    Some(match name {
        "LD" | "LDG" | "LDS" | "LDL" => load,
        "ST" | "STG" | "STS" | "STL" => store,
        "LDGSTS" => copy,
        "LDSM" => matrices,
        "STSM" => store_matrices,
        "QSPC" => query,
        _ => return None,
    })
}

/// Which memory an instruction addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Space {
    Global,
    Shared,
    Local,
    Generic,
}

impl Space {
    pub(super) fn of(line: &Line) -> Self {
        match line.name() {
            "LDG" | "STG" | "ATOMG" | "REDG" => Self::Global,
            "LDS" | "STS" | "ATOMS" | "LDSM" | "STSM" => Self::Shared,
            "LDL" | "STL" => Self::Local,
            _ => Self::Generic,
        }
    }
}

/// The addresses of an operand; they are kept for the trace.
pub(super) fn addresses(scope: &mut Scope<'_>, place: Address, space: Space) -> [u64; 32] {
    let narrow = matches!(space, Space::Shared | Space::Local);
    let number = place.register.unwrap_or(ZERO);
    let uniform = place.uniform.map_or(0, |number| match narrow {
        true => u64::from(scope.warp.uniform(number)),
        false => scope.first64(From::Warp(number)),
    });
    let vector = scope.grid.vector;
    let added = uniform.wrapping_add_signed(place.offset);
    let registers = &scope.warp.registers;
    let lower = &registers[usize::from(number)];
    let moved = match () {
        // The number of the CTA in its cluster stands above the offset.
        () if space == Space::Shared => vector.make(|i| {
            let base = lower[i].wrapping_mul(place.scale.into());
            u64::from(base.wrapping_add(low(added))) % WINDOW_BYTES
        }),
        () if narrow => vector.make(|i| {
            let base = lower[i].wrapping_mul(place.scale.into());
            u64::from(base.wrapping_add(low(added)))
        }),
        () if place.narrow || place.register.is_none() => {
            vector.make(|i| (u64::from(lower[i]) * u64::from(place.scale)).wrapping_add(added))
        }
        () => {
            let Target::Thread(next) = Target::Thread(number).next() else { return [0; 32] };
            let upper = &registers[usize::from(next)];
            vector.make(|i| (u64::from(upper[i]) << 32 | u64::from(lower[i])).wrapping_add(added))
        }
    };
    scope.warp.addresses = moved;
    scope.warp.spin.reads = true;
    moved
}

/// Where an address of some space leads.
enum Place {
    Global(u64),
    /// That of the CTA itself, or of the one of a number in its cluster.
    Shared(Option<u32>, usize),
    Local(usize),
    /// A constant bank and a place in it: parameters and constants have generic addresses.
    Constant(u8, u64),
}

/// Asks whether generic addresses lie in a memory.
fn query(line: &Line) -> Result<Action, String> {
    let mut args = Args::new(line);
    let out = args.predicate()?;
    let target = args.target()?;
    let address = args.memory()?;
    let lies: fn(&Place) -> bool = match () {
        () if line.has("S") => |place| matches!(place, Place::Shared(..)),
        () if line.has("L") => |place| matches!(place, Place::Local(_)),
        () if line.has("G") => |place| matches!(place, Place::Global(_)),
        () => return Err("its memory is not known".into()),
    };
    Ok(Box::new(move |scope, mask| {
        let places = addresses(scope, address, Space::Generic);
        let holds = mask_of(|lane| lies(&place(Space::Generic, places[lane])));
        scope.set(out, mask, holds);
        scope.put(target, mask, &std::array::from_fn(|lane| holds >> lane & 1));
        Ok(())
    }))
}

/// Windows of shared memory, one for each CTA of a cluster, before the one of local memory.
const MOST_WINDOWS: u64 = 256;

fn place(space: Space, address: u64) -> Place {
    let index = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX);
    match space {
        Space::Global => Place::Global(address),
        Space::Shared => Place::Shared(None, index(address)),
        Space::Local => Place::Local(index(address)),
        Space::Generic => match address {
            a if a.wrapping_sub(SHARED_WINDOW) < MOST_WINDOWS * WINDOW_BYTES => {
                let rank = u32::try_from((a - SHARED_WINDOW) / WINDOW_BYTES).ok();
                Place::Shared(rank, index(a % WINDOW_BYTES))
            }
            a if a.wrapping_sub(LOCAL_WINDOW) < WINDOW_BYTES => {
                Place::Local(index(a - LOCAL_WINDOW))
            }
            a if a.wrapping_sub(CONSTANT_WINDOW) < BANKS as u64 * CONSTANT_BANK_BYTES => {
                let at = a - CONSTANT_WINDOW;
                let bank = u8::try_from(at / CONSTANT_BANK_BYTES).unwrap_or(u8::MAX);
                Place::Constant(bank, at % CONSTANT_BANK_BYTES)
            }
            a => Place::Global(a),
        },
    }
}

impl Scope<'_> {
    fn local(&mut self, lane: usize, at: usize, bytes: usize) -> Option<&mut [u8]> {
        let each = self.warp.local_bytes;
        if self.warp.local.is_empty() {
            self.warp.local = vec![0; each * 32];
        }
        let end = at.checked_add(bytes).filter(|&end| end <= each)?;
        self.warp.local.get_mut(lane * each + at..lane * each + end)
    }

    /// Bytes of shared memory, of the CTA itself where it is not said whose.
    fn shared(&mut self, rank: Option<u32>, at: usize, bytes: usize) -> Option<&mut [u8]> {
        let memory = match rank {
            None => &mut self.cta.shared[..],
            Some(rank) => self.cta.shared_of(rank)?,
        };
        memory.get_mut(at..at.checked_add(bytes)?)
    }

    /// Reads bytes for `lane`.
    pub(super) fn read(
        &mut self,
        space: Space,
        lane: usize,
        address: u64,
        into: &mut [u8],
    ) -> Result<(), String> {
        let found = match place(space, address) {
            Place::Global(address) => match &mut self.cta.buffer {
                None => self.grid.memory.read(address, into),
                Some(buffer) => buffer.read(self.grid.memory, address, into),
            },
            Place::Shared(rank, at) => {
                let bytes = self.shared(rank, at, into.len());
                bytes.map(|bytes| copy_bytes(into, bytes))
            }
            Place::Local(at) => {
                self.local(lane, at, into.len()).map(|bytes| copy_bytes(into, bytes))
            }
            Place::Constant(bank, at) => {
                for (byte, at) in into.iter_mut().zip(at..) {
                    *byte = self.grid.constant(bank, at).to_le_bytes()[0];
                }
                Some(())
            }
        };
        found.ok_or_else(|| self.outside("read", space, lane, address, into.len()))
    }

    /// Reads bytes of global memory for `lane`.
    pub(crate) fn read_global(
        &mut self,
        lane: usize,
        address: u64,
        into: &mut [u8],
    ) -> Result<(), String> {
        self.read(Space::Global, lane, address, into)
    }

    /// Reads bytes at a generic address for `lane`.
    pub(crate) fn read_generic(
        &mut self,
        lane: usize,
        address: u64,
        into: &mut [u8],
    ) -> Result<(), String> {
        self.read(Space::Generic, lane, address, into)
    }

    /// Writes bytes of global memory for `lane`.
    pub(crate) fn write_global(
        &mut self,
        lane: usize,
        address: u64,
        from: &[u8],
    ) -> Result<(), String> {
        self.write(Space::Global, lane, address, from)
    }

    /// Writes bytes for `lane`.
    pub(super) fn write(
        &mut self,
        space: Space,
        lane: usize,
        address: u64,
        from: &[u8],
    ) -> Result<(), String> {
        self.warp.spin.writes += 1;
        let found = match place(space, address) {
            Place::Global(address) => match &mut self.cta.buffer {
                None => self.grid.memory.write(address, from),
                Some(buffer) => buffer.write(self.grid.memory, address, from),
            },
            Place::Shared(rank, at) => {
                let bytes = self.shared(rank, at, from.len());
                bytes.map(|bytes| copy_bytes(bytes, from))
            }
            Place::Local(at) => {
                self.local(lane, at, from.len()).map(|bytes| copy_bytes(bytes, from))
            }
            Place::Constant(..) => None,
        };
        found.ok_or_else(|| self.outside("written", space, lane, address, from.len()))
    }

    /// The error of an access outside all memory, for which the device raises an exception.
    fn outside(
        &mut self,
        what: &str,
        space: Space,
        lane: usize,
        address: u64,
        bytes: usize,
    ) -> String {
        let front = format!("lane {lane}: {bytes} bytes are {what} at {address:#x}");
        let memory = match place(space, address) {
            Place::Global(address) => {
                self.warp.exception = Some(Exception::IllegalAddress);
                let nearest = self.grid.memory.nearest(address);
                return nearest.map_or_else(
                    || format!("{front}, and nothing is allocated"),
                    |(start, length)| {
                        let end = start.saturating_add(length);
                        format!(
                            "{front}, which is in no allocation; the nearest one has the bytes \
                             from {start:#x} to {end:#x}"
                        )
                    },
                );
            }
            Place::Shared(..) => "shared memory of the CTA",
            Place::Local(_) => "local memory of the thread",
            Place::Constant(..) => return format!("{front}, in constant memory"),
        };
        self.warp.exception = Some(Exception::LaunchFailure);
        format!("{front}, outside the {memory}")
    }
}

/// Bytes of each lane, and whether they are a number with a sign.
fn width(line: &Line) -> (usize, bool) {
    let found = line.suffixes().find_map(|suffix| match suffix {
        "U8" => Some((1, false)),
        "S8" => Some((1, true)),
        "U16" => Some((2, false)),
        "S16" => Some((2, true)),
        "64" => Some((8, false)),
        "128" => Some((16, false)),
        _ => None,
    });
    found.unwrap_or((4, false))
}

impl Scope<'_> {
    /// The device raises an exception where the address of a lane is no multiple of the bytes.
    pub(super) fn aligned(
        &mut self,
        mask: u32,
        places: &[u64; 32],
        bytes: usize,
    ) -> Result<(), String> {
        let wrong = each(mask).find(|&lane| !places[lane].is_multiple_of(bytes as u64));
        wrong.map_or(Ok(()), |lane| {
            self.warp.exception = Some(Exception::MisalignedAddress);
            Err(format!("lane {lane}: the address {:#x} is no multiple of {bytes}", places[lane]))
        })
    }

    /// Reads for all lanes of an access at once; none where each lane has to go alone.
    #[inline]
    fn read_all(&mut self, space: Space, access: &WarpAccess<'_>, into: &mut Words) -> Option<()> {
        match (space, &mut self.cta.buffer) {
            (Space::Global, None) => self.grid.memory.read_access(access, into),
            (Space::Global, Some(buffer)) => buffer.read_access(self.grid.memory, access, into),
            (Space::Shared, _) => {
                let at = usize::try_from(access.lowest()).ok()?;
                access.read(&self.cta.shared.get(at..)?, into)
            }
            (Space::Local | Space::Generic, _) => None,
        }
    }

    /// The same for a write.
    #[inline]
    fn write_all(&mut self, space: Space, access: &WarpAccess<'_>, from: &Words) -> Option<()> {
        self.warp.spin.writes += 1;
        match (space, &mut self.cta.buffer) {
            (Space::Global, None) => self.grid.memory.write_access(access, from),
            (Space::Global, Some(buffer)) => buffer.write_access(self.grid.memory, access, from),
            (Space::Shared, _) => {
                let at = usize::try_from(access.lowest()).ok()?;
                let end = at.checked_add(access.span())?;
                access.write(&mut self.cta.shared.get_mut(at..end)?, from)
            }
            (Space::Local | Space::Generic, _) => None,
        }
    }

    /// Reads `bytes` of each lane of `mask` at its place.
    fn read_lanes(
        &mut self,
        space: Space,
        places: &[u64; 32],
        mask: u32,
        (value, bytes): (&mut Words, usize),
    ) -> Result<(), String> {
        let access = WarpAccess::new(places, mask, bytes, self.grid.vector);
        if access.is_some_and(|access| self.read_all(space, &access, value).is_some()) {
            return Ok(());
        }
        self.aligned(mask, places, bytes)?;
        for lane in each(mask) {
            let mut raw = [0; 16];
            self.read(space, lane, places[lane], &mut raw[..bytes])?;
            for (part, word) in raw.chunks_exact(4).take(bytes.div_ceil(4)).enumerate() {
                value[part][lane] = u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
            }
        }
        Ok(())
    }

    /// Writes `bytes` of each lane of `mask` to its place.
    fn write_lanes(
        &mut self,
        space: Space,
        places: &[u64; 32],
        mask: u32,
        (value, bytes): (&Words, usize),
    ) -> Result<(), String> {
        let access = WarpAccess::new(places, mask, bytes, self.grid.vector);
        if access.is_some_and(|access| self.write_all(space, &access, value).is_some()) {
            return Ok(());
        }
        self.aligned(mask, places, bytes)?;
        for lane in each(mask) {
            let mut raw = [0; 16];
            for (word, value) in raw.chunks_exact_mut(4).zip(value) {
                word.copy_from_slice(&value[lane].to_le_bytes());
            }
            self.write(space, lane, places[lane], &raw[..bytes])?;
        }
        Ok(())
    }
}

fn load(line: &Line) -> Result<Action, String> {
    let mut args = Args::new(line);
    let target = args.target()?;
    let (address, space) = (args.memory()?, Space::of(line));
    let (bytes, signed) = width(line);
    Ok(match bytes {
        8 => load_words::<2>(target, address, (space, bytes)),
        16 => load_words::<4>(target, address, (space, bytes)),
        _ if signed => Box::new(move |scope, mask| {
            let places = addresses(scope, address, space);
            let mut value = [[0; 32]; 1];
            scope.read_lanes(space, &places, mask, (&mut value, bytes))?;
            let unused = 32 - 8 * u32::try_from(bytes).unwrap_or(4);
            let extended = |v: u32| ((v << unused).cast_signed() >> unused).cast_unsigned();
            scope.put(target, mask, &value[0].map(extended));
            Ok(())
        }),
        _ => load_words::<1>(target, address, (space, bytes)),
    })
}

fn load_words<const WORDS: usize>(
    target: Target,
    address: Address,
    (space, bytes): (Space, usize),
) -> Action {
    let targets: [Target; WORDS] =
        std::array::from_fn(|part| target.plus(u8::try_from(part).unwrap_or(0)));
    Box::new(move |scope, mask| {
        let places = addresses(scope, address, space);
        let mut value = [[0; 32]; WORDS];
        scope.read_lanes(space, &places, mask, (&mut value, bytes))?;
        for (target, value) in targets.into_iter().zip(&value) {
            scope.put(target, mask, value);
        }
        Ok(())
    })
}

/// The source some registers further.
pub(super) fn nth(from: From, count: u8) -> From {
    (0..count).fold(from, |from, _| from.next())
}

fn store(line: &Line) -> Result<Action, String> {
    let mut args = Args::new(line);
    let (address, source) = (args.memory()?, args.int()?.from);
    let space = Space::of(line);
    let (bytes, _) = width(line);
    let place = (address, (space, bytes));
    Ok(match bytes {
        8 => store_words::<2>(place, source),
        16 => store_words::<4>(place, source),
        _ => store_words::<1>(place, source),
    })
}

fn store_words<const WORDS: usize>(
    (address, (space, bytes)): (Address, (Space, usize)),
    source: From,
) -> Action {
    let sources: [From; WORDS] =
        std::array::from_fn(|part| nth(source, u8::try_from(part).unwrap_or(0)));
    Box::new(move |scope, mask| {
        let places = addresses(scope, address, space);
        let mut value = [[0; 32]; WORDS];
        for (value, source) in value.iter_mut().zip(sources) {
            view!(from, scope, source);
            *value = *from;
        }
        scope.write_lanes(space, &places, mask, (&value, bytes))
    })
}

fn copy(line: &Line) -> Result<Action, String> {
    let mut args = Args::new(line);
    let (to, from) = (args.memory()?, args.memory()?);
    let (bytes, _) = width(line);
    let fills = args.maybe_predicate();
    // The lowest bits of the address say how many bytes at the end are zero instead of read.
    let zeros = if line.has("ZFILL") { bytes as u64 - 1 } else { 0 };
    Ok(Box::new(move |scope, mask| {
        let to = addresses(scope, to, Space::Shared);
        let from = addresses(scope, from, Space::Global);
        scope.aligned(mask, &from.map(|place| place & !zeros), bytes)?;
        let reads = fills.map_or(u32::MAX, |fills| scope.holds(fills));
        for lane in each(mask) {
            let mut raw = [0; 16];
            if reads >> lane & 1 == 1 {
                let count = bytes - usize::try_from(from[lane] & zeros).unwrap_or(0);
                scope.read(Space::Global, lane, from[lane] & !zeros, &mut raw[..count])?;
            }
            scope.write(Space::Shared, lane, to[lane], &raw[..bytes])?;
        }
        Ok(())
    }))
}

/// How many matrices of 8 rows of 8 halves an instruction moves, and whether they are transposed.
fn matrix_count(line: &Line) -> Result<(u8, bool), String> {
    let transposed = line.has("MT88");
    if !(transposed || line.has("M88")) || !line.has("16") {
        return Err("its shape is not known".into());
    }
    let count = line.suffixes().last().and_then(|n| n.parse::<u8>().ok()).unwrap_or(1);
    Ok((if count > 4 { 1 } else { count }, transposed))
}

/// The inverse of a load of matrices.
fn store_matrices(line: &Line) -> Result<Action, String> {
    let mut args = Args::new(line);
    let (address, source) = (args.memory()?, args.int()?.from);
    let (count, transposed) = matrix_count(line)?;
    Ok(Box::new(move |scope, _| {
        let places = addresses(scope, address, Space::Shared);
        for matrix in 0..count {
            let value = scope.get(nth(source, matrix));
            for row in 0..8 {
                let half = |column: usize| {
                    let (a, b) = if transposed { (column, row) } else { (row, column) };
                    super::half::halves(value[4 * a + b / 2])[b % 2]
                };
                let raw: Vec<u8> = (0..8).flat_map(|column| half(column).to_le_bytes()).collect();
                let lane = 8 * usize::from(matrix) + row;
                scope.write(Space::Shared, lane, places[lane], &raw)?;
            }
        }
        Ok(())
    }))
}

fn matrices(line: &Line) -> Result<Action, String> {
    let mut args = Args::new(line);
    let (target, address) = (args.target()?, args.memory()?);
    let (count, transposed) = matrix_count(line)?;
    Ok(Box::new(move |scope, mask| {
        let places = addresses(scope, address, Space::Shared);
        for matrix in 0..count {
            let value = one_matrix(scope, &places, usize::from(matrix), transposed)?;
            scope.put(target.plus(matrix), mask, &value);
        }
        Ok(())
    }))
}

fn one_matrix(
    scope: &mut Scope<'_>,
    places: &[u64; 32],
    matrix: usize,
    transposed: bool,
) -> Result<Lanes, String> {
    let mut rows = [[0_u16; 8]; 8];
    for (row, cells) in rows.iter_mut().enumerate() {
        let lane = 8 * matrix + row;
        let mut raw = [0; 16];
        scope.read(Space::Shared, lane, places[lane], &mut raw)?;
        for (cell, bytes) in cells.iter_mut().zip(raw.chunks_exact(2)) {
            *cell = u16::from_le_bytes([bytes[0], bytes[1]]);
        }
    }
    Ok(std::array::from_fn(|lane| {
        let (row, column) = (lane / 4, lane % 4 * 2);
        let [first, second] = match transposed {
            true => [rows[column][row], rows[column + 1][row]],
            false => [rows[row][column], rows[row][column + 1]],
        };
        super::half::joined(first, second)
    }))
}
