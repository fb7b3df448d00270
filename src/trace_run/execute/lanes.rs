//! Values of 32 lanes, and what an instruction sees while it runs.

use super::cta::CtaState;
use super::grid::Grid;
use super::memory::{CONSTANT_BANK_BYTES, CONSTANT_WINDOW};
use super::warp::Warp;
use crate::sass::{Constant, Guard, PredicateFile};
use gpumodel_core::units::{Dim3, WARP_LANES};

/// 32 bits per lane.
pub(crate) type Lanes = [u32; WARP_LANES];
/// 64 bits per lane.
pub(crate) type Lanes64 = [u64; WARP_LANES];

/// Number of the register that reads as zero.
pub(crate) const ZERO: u8 = 255;
/// Number of the uniform register that reads as zero.
const UNIFORM_ZERO: u8 = 63;
/// Number of the predicate that reads as true.
pub(crate) const TRUE: u8 = 7;

/// What an instruction works on.
pub(crate) struct Scope<'a> {
    pub(crate) warp: &'a mut Warp,
    pub(crate) cta: &'a mut CtaState,
    pub(crate) grid: &'a Grid<'a>,
    /// Position of the CTA in the grid.
    pub(crate) position: Dim3,
    /// Lanes at this place, with those that the guard excludes.
    pub(crate) active: u32,
}

/// Where a result goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// A register of each thread.
    Thread(u8),
    /// A register of the warp.
    Warp(u8),
}

impl Target {
    /// The register after it, where the upper half goes.
    pub(crate) fn next(self) -> Self {
        match self {
            Self::Thread(number) if number != ZERO => Self::Thread(number + 1),
            Self::Warp(number) if number != UNIFORM_ZERO => Self::Warp(number + 1),
            same => same,
        }
    }

    /// Some registers further.
    pub(crate) fn plus(self, count: u8) -> Self {
        (0..count).fold(self, |target, _| target.next())
    }
}

/// Where a source comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum From {
    /// A register of each thread.
    Thread(u8),
    /// A register of the warp.
    Warp(u8),
    /// A number.
    Number(u32),
    /// A constant bank.
    Constant(Constant),
}

impl From {
    /// The source of the upper half.
    pub(crate) fn next(self) -> Self {
        match self {
            Self::Thread(ZERO) | Self::Warp(UNIFORM_ZERO) => self,
            Self::Thread(number) => Self::Thread(number + 1),
            Self::Warp(number) => Self::Warp(number + 1),
            Self::Number(_) => Self::Number(0),
            Self::Constant(place) => Self::Constant(Constant { offset: place.offset + 4, ..place }),
        }
    }
}

/// Binds `$name` to the values of a source: a register where it lies, not copied, and others made.
macro_rules! view {
    ($name:ident, $scope:expr, $source:expr) => {
        let made;
        let $name: &$crate::execute::Lanes = match $source.register() {
            Some(number) => &$scope.warp.registers[usize::from(number)],
            None => {
                made = $source.get($scope);
                &made
            }
        };
    };
}
pub(crate) use view;

impl From {
    /// The register of each thread that it is.
    #[inline]
    pub(crate) fn register(self) -> Option<u8> {
        match self {
            Self::Thread(number) => Some(number),
            Self::Warp(_) | Self::Number(_) | Self::Constant(_) => None,
        }
    }

    /// Its values.
    #[inline]
    pub(crate) fn get(self, scope: &Scope<'_>) -> Lanes {
        scope.get(self)
    }

    /// Its value in the first lane.
    #[inline]
    pub(crate) fn first(self, scope: &Scope<'_>) -> u32 {
        match self {
            Self::Thread(number) => scope.warp.registers[usize::from(number)][0],
            Self::Warp(number) => scope.warp.uniform(number),
            Self::Number(number) => number,
            Self::Constant(place) => scope.constant(place)[0],
        }
    }
}

/// A place in a bank, moved by a register.
fn moved(base: u64, index: u32) -> u64 {
    base.wrapping_add_signed(index.cast_signed().into())
}

impl Scope<'_> {
    /// The 32 bits of a source.
    pub(crate) fn get(&self, from: From) -> Lanes {
        match from {
            From::Thread(number) => self.warp.registers[usize::from(number)],
            From::Warp(number) => [self.warp.uniform(number); WARP_LANES],
            From::Number(number) => [number; WARP_LANES],
            From::Constant(place) => self.constant(place),
        }
    }

    /// A register as 64 bits with the one after it.
    #[inline]
    pub(crate) fn get64(&self, from: From) -> Lanes64 {
        view!(low, self, from);
        view!(high, self, from.next());
        self.grid.vector.make(|i| u64::from(high[i]) << 32 | u64::from(low[i]))
    }

    /// The same of the first lane.
    #[inline]
    pub(crate) fn first64(&self, from: From) -> u64 {
        u64::from(from.next().first(self)) << 32 | u64::from(from.first(self))
    }

    #[inline]
    fn constant(&self, place: Constant) -> Lanes {
        let uniform = place.uniform.map_or(0, |number| self.warp.uniform(number));
        let base = place.offset.cast_unsigned().wrapping_add(u64::from(uniform));
        match place.register {
            None => [self.grid.constant(place.bank, base); WARP_LANES],
            Some(register) => {
                let index = self.get(From::Thread(register));
                index.map(|index| self.grid.constant(place.bank, moved(base, index)))
            }
        }
    }

    /// The addresses of a place in a constant bank are those of the instruction, for the trace.
    pub(crate) fn note_constant(&mut self, place: Constant) {
        let uniform = place.uniform.map_or(0, |number| self.warp.uniform(number));
        let base = place.offset.cast_unsigned().wrapping_add(u64::from(uniform));
        let index = place.register.map_or([0; WARP_LANES], |one| self.get(From::Thread(one)));
        let bank = CONSTANT_WINDOW + u64::from(place.bank) * CONSTANT_BANK_BYTES;
        self.warp.addresses = index.map(|index| bank + moved(base, index) % CONSTANT_BANK_BYTES);
    }

    /// Writes 32 bits of the lanes of `mask`.
    #[inline]
    pub(crate) fn put(&mut self, target: Target, mask: u32, value: &Lanes) {
        match target {
            Target::Thread(ZERO) | Target::Warp(UNIFORM_ZERO) => {}
            Target::Thread(number) => {
                let register = &mut self.warp.registers[usize::from(number)];
                if mask == u32::MAX {
                    *register = *value;
                } else if mask != 0 {
                    self.grid.vector.blend(register, value, mask);
                }
            }
            Target::Warp(number) => {
                if mask != 0 {
                    let lane = mask.trailing_zeros() as usize;
                    self.warp.set_uniform(number, value[lane]);
                }
            }
        }
    }

    /// Writes 64 bits to a register and the one after it.
    pub(crate) fn put64(&mut self, target: Target, mask: u32, value: &Lanes64) {
        let vector = self.grid.vector;
        self.put(target, mask, &vector.make(|i| low(value[i])));
        self.put(target.next(), mask, &vector.make(|i| high(value[i])));
    }

    /// The lanes for which a predicate holds.
    #[inline]
    pub(crate) fn holds(&self, predicate: Guard) -> u32 {
        let value = match predicate.file {
            PredicateFile::Thread => self.warp.predicates[usize::from(predicate.number & 7)],
            PredicateFile::Warp => self.warp.uniform_predicates[usize::from(predicate.number & 7)],
        };
        if predicate.not { !value } else { value }
    }

    /// Sets a predicate for the lanes of `mask`.
    #[inline]
    pub(crate) fn set(&mut self, predicate: Guard, mask: u32, value: u32) {
        if predicate.number >= TRUE {
            return;
        }
        match predicate.file {
            PredicateFile::Thread => {
                let old = &mut self.warp.predicates[usize::from(predicate.number)];
                *old = *old & !mask | value & mask;
            }
            PredicateFile::Warp if mask != 0 => {
                let bit = value >> mask.trailing_zeros() & 1;
                let all = 0_u32.wrapping_sub(bit);
                self.warp.uniform_predicates[usize::from(predicate.number)] = all;
            }
            PredicateFile::Warp => {}
        }
    }
}

/// The lower half.
#[inline]
#[allow(clippy::cast_possible_truncation, reason = "the lower half is what is asked for")]
pub(crate) fn low(value: u64) -> u32 {
    value as u32
}

/// The upper half.
#[inline]
pub(crate) fn high(value: u64) -> u32 {
    low(value >> 32)
}

/// A mask of the lanes for which `holds` is true.
#[inline]
pub(crate) fn mask_of(holds: impl Fn(usize) -> bool) -> u32 {
    let mut mask = 0;
    for lane in 0..WARP_LANES {
        mask |= u32::from(holds(lane)) << lane;
    }
    mask
}

/// The numbers of the lanes of `mask`, ascending.
#[inline]
pub(crate) fn each(mask: u32) -> impl Iterator<Item = usize> {
    let mut left = mask;
    std::iter::from_fn(move || {
        (left != 0).then(|| {
            let lane = left.trailing_zeros() as usize;
            left &= left - 1;
            lane
        })
    })
}
