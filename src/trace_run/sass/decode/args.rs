//! Operands in order, as what an instruction expects.

use crate::execute::{From, Target};
use crate::execute::{Lanes, Lanes64, Scope};
use crate::sass::operand::{Operand, PredicateFile, Value};
use crate::sass::text::{Guard, Line};

/// The operands of a line that are not read yet.
pub(super) struct Args<'a> {
    pub(super) line: &'a Line,
    left: &'a [Operand],
}

/// A source of integers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Int {
    pub(super) from: From,
    pub(super) negative: bool,
    not: bool,
    absolute: bool,
}

impl Int {
    /// Zero.
    pub(super) const NOTHING: Self =
        Self { from: From::Number(0), negative: false, not: false, absolute: false };

    /// Its value.
    #[inline]
    pub(super) fn get(self, scope: &Scope<'_>) -> Lanes {
        let mut value = scope.get(self.from);
        if self.absolute {
            value = value.map(|v| v.cast_signed().unsigned_abs());
        }
        match (self.negative, self.not) {
            (true, _) => value.map(u32::wrapping_neg),
            (_, true) => value.map(|v| !v),
            _ => value,
        }
    }

    /// The register of each thread that it is, when nothing stands before it.
    #[inline]
    pub(super) fn register(self) -> Option<u8> {
        self.from.register().filter(|_| !(self.absolute || self.negative || self.not))
    }

    /// Its value without the sign before it.
    #[inline]
    pub(super) fn raw(self) -> Self {
        Self { negative: false, ..self }
    }

    /// A pair of registers.
    pub(super) fn get64(self, scope: &Scope<'_>) -> Lanes64 {
        let value = scope.get64(self.from);
        match (self.negative, self.not) {
            (true, _) => value.map(u64::wrapping_neg),
            (_, true) => value.map(|v| !v),
            _ => value,
        }
    }
}

/// A source of numbers with a sign bit that is changed apart.
#[derive(Clone, Debug)]
pub(super) struct Float {
    pub(super) from: From,
    pub(super) negative: bool,
    pub(super) absolute: bool,
    pub(super) suffix: String,
    /// An immediate: for numbers of 64 bits it is the upper half.
    pub(super) immediate: bool,
}

impl<'a> Args<'a> {
    pub(super) fn new(line: &'a Line) -> Self {
        Self { line, left: &line.operands }
    }

    /// The next operand, which stays.
    pub(super) fn peek(&self) -> Option<&'a Operand> {
        self.left.first()
    }

    /// How many are left.
    pub(super) fn len(&self) -> usize {
        self.left.len()
    }

    /// The next operand.
    pub(super) fn next(&mut self) -> Result<&'a Operand, String> {
        let (first, rest) = self.left.split_first().ok_or("operands are missing")?;
        self.left = rest;
        Ok(first)
    }

    fn wrong(operand: &Operand) -> String {
        format!("unexpected operand {:?}", operand.value)
    }

    /// A register to write.
    pub(super) fn target(&mut self) -> Result<Target, String> {
        let operand = self.next()?;
        match operand.value {
            Value::Register(number) => Ok(Target::Thread(number)),
            Value::Uniform(number) => Ok(Target::Warp(number)),
            _ => Err(Self::wrong(operand)),
        }
    }

    fn from(&self, operand: &Operand) -> Result<From, String> {
        Ok(match operand.value {
            Value::Register(number) => From::Thread(number),
            Value::Uniform(number) => From::Warp(number),
            Value::Constant(place) => From::Constant(place),
            Value::Integer(number) => From::Number(bits(number)),
            Value::Float => From::Number(self.line.immediate()),
            Value::Predicate(..) | Value::Memory(_) | Value::Barrier(_) | Value::Word(_) => {
                return Err(Self::wrong(operand));
            }
        })
    }

    /// A source of integers.
    pub(super) fn int(&mut self) -> Result<Int, String> {
        let operand = self.next()?;
        Ok(Int {
            from: self.from(operand)?,
            negative: operand.negative,
            not: operand.not,
            absolute: operand.absolute,
        })
    }

    /// A source of floating-point numbers.
    pub(super) fn float(&mut self) -> Result<Float, String> {
        let operand = self.next()?;
        let immediate = matches!(operand.value, Value::Integer(_) | Value::Float);
        let from = match immediate {
            true => From::Number(self.line.immediate()),
            false => self.from(operand)?,
        };
        Ok(Float {
            from,
            negative: operand.negative,
            absolute: operand.absolute,
            suffix: operand.suffix.clone(),
            immediate,
        })
    }

    /// A predicate.
    pub(super) fn predicate(&mut self) -> Result<Guard, String> {
        let operand = self.next()?;
        match operand.value {
            Value::Predicate(file, number) => Ok(Guard { file, number, not: operand.not }),
            _ => Err(Self::wrong(operand)),
        }
    }

    /// A predicate, if the next operand is one.
    pub(super) fn maybe_predicate(&mut self) -> Option<Guard> {
        self.peek().filter(|operand| operand.is_predicate())?;
        self.predicate().ok()
    }

    /// A number.
    pub(super) fn number(&mut self) -> Result<i64, String> {
        let operand = self.next()?;
        operand.integer().ok_or_else(|| Self::wrong(operand))
    }

    /// A place in memory.
    pub(super) fn memory(&mut self) -> Result<crate::sass::Address, String> {
        let operand = self.next()?;
        match operand.value {
            Value::Memory(address) => Ok(address),
            _ => Err(Self::wrong(operand)),
        }
    }
}

/// The lower 32 bits of a number.
pub(super) fn bits(number: i64) -> u32 {
    crate::execute::low(number.cast_unsigned())
}

/// A predicate that is always false.
pub(super) const NEVER: Guard = Guard { file: PredicateFile::Thread, number: 7, not: true };
