//! Comparisons of integers, how all comparisons set predicates, and logic of predicates, also as
//! bits of a register.

use super::args::Args;
use super::integer::logic;
use super::moves::bit;
use super::{Action, Maker};
use crate::execute::{Scope, mask_of, view};
use crate::sass::operand::{PredicateFile, Value};
use crate::sass::text::{Guard, Line};

pub(super) fn find(name: &str) -> Option<Maker> {
    Some(match name {
        "ISETP" => isetp,
        "PLOP3" => plop3,
        "P2R" => p2r,
        "R2P" => r2p,
        _ => return None,
    })
}

/// How a comparison is joined with another predicate.
#[derive(Clone, Copy, Debug)]
pub(super) enum Join {
    And,
    Or,
    Xor,
}

impl Join {
    pub(super) fn of(line: &Line) -> Self {
        match () {
            () if line.has("OR") => Self::Or,
            () if line.has("XOR") => Self::Xor,
            () => Self::And,
        }
    }

    pub(super) fn of_two(self, a: u32, b: u32) -> u32 {
        match self {
            Self::And => a & b,
            Self::Or => a | b,
            Self::Xor => a ^ b,
        }
    }
}

/// The two results of a comparison.
pub(super) struct Results {
    first: Guard,
    second: Guard,
}

impl Results {
    pub(super) fn read(args: &mut Args<'_>) -> Result<Self, String> {
        Ok(Self { first: args.predicate()?, second: args.predicate()? })
    }

    /// Sets them to these.
    pub(super) fn set_both(&self, scope: &mut Scope<'_>, mask: u32, first: u32, second: u32) {
        scope.set(self.first, mask, first);
        scope.set(self.second, mask, second);
    }

    /// Sets them: the comparison, and its opposite, both joined with `also`.
    pub(super) fn set(&self, scope: &mut Scope<'_>, mask: u32, holds: u32, also: u32, join: Join) {
        scope.set(self.first, mask, join.of_two(holds, also));
        scope.set(self.second, mask, join.of_two(!holds, also));
    }
}

/// What a comparison says of less, equal and greater.
#[derive(Clone, Copy, Debug)]
pub(super) struct Order {
    pub(super) less: bool,
    pub(super) equal: bool,
    pub(super) greater: bool,
}

impl Order {
    pub(super) fn named(name: &str) -> Option<Self> {
        let order = |less, equal, greater| Some(Self { less, equal, greater });
        match name {
            "F" => order(false, false, false),
            "LT" => order(true, false, false),
            "EQ" => order(false, true, false),
            "LE" => order(true, true, false),
            "GT" => order(false, false, true),
            "NE" => order(true, false, true),
            "GE" => order(false, true, true),
            "T" => order(true, true, true),
            _ => None,
        }
    }

    /// Of lanes that are less, equal and greater.
    #[inline]
    pub(super) fn of_masks(self, lanes: [u32; 3]) -> u32 {
        let chosen = [self.less, self.equal, self.greater];
        let chosen = chosen.into_iter().zip(lanes).filter(|(chosen, _)| *chosen);
        chosen.fold(0, |all, (_, lanes)| all | lanes)
    }

    #[inline]
    pub(super) fn holds(self, order: std::cmp::Ordering) -> bool {
        match order {
            std::cmp::Ordering::Less => self.less,
            std::cmp::Ordering::Equal => self.equal,
            std::cmp::Ordering::Greater => self.greater,
        }
    }
}

fn isetp(line: &Line) -> Result<Action, String> {
    let mut args = Args::new(line);
    let results = Results::read(&mut args)?;
    let (a, b, also) = (args.int()?, args.int()?, args.predicate()?);
    let order = line.suffixes().next().and_then(Order::named).ok_or("its order is not known")?;
    let (signed, join) = (!line.has("U32"), Join::of(line));
    let lower = if line.has("EX") { Some(args.predicate()?) } else { None };
    // The sign bit turned, signed numbers compare as unsigned ones.
    let turn = if signed { 0x8000_0000 } else { 0 };
    Ok(Box::new(move |scope, mask| {
        let (below, same) = {
            let vector = scope.grid.vector;
            view!(a, scope, a);
            view!(b, scope, b);
            (vector.mask(|i| a[i] ^ turn < b[i] ^ turn), vector.mask(|i| a[i] == b[i]))
        };
        let equal = lower.map_or(if order.equal { u32::MAX } else { 0 }, |one| scope.holds(one));
        let unequal = Order { equal: false, ..order }.of_masks([below, same, !(below | same)]);
        let holds = unequal | same & equal;
        let also = scope.holds(also);
        results.set(scope, mask, holds, also, join);
        Ok(())
    }))
}

fn plop3(line: &Line) -> Result<Action, String> {
    let mut args = Args::new(line);
    let (first, second) = (args.predicate()?, args.predicate()?);
    let (a, b, c) = (args.predicate()?, args.predicate()?, args.predicate()?);
    let table = u32::try_from(args.number()?).map_err(|_| "a negative table")?;
    let other = u32::try_from(args.number()?).map_err(|_| "a negative table")?;
    Ok(Box::new(move |scope, mask| {
        let [a, b, c] = [a, b, c].map(|one| scope.holds(one));
        scope.set(first, mask, logic(table, a, b, c));
        scope.set(second, mask, logic(other, a, b, c));
        Ok(())
    }))
}

/// The byte of the register that an operand names, as `R3.B1`.
fn byte(suffix: &str) -> u32 {
    suffix.strip_prefix('B').and_then(|n| n.parse().ok()).unwrap_or(0)
}

fn p2r(line: &Line) -> Result<Action, String> {
    let mut args = Args::new(line);
    let shift = 8 * byte(&args.peek().ok_or("operands are missing")?.suffix);
    let target = args.target()?;
    if !matches!(&args.next()?.value, Value::Word(word) if word == "PR" || word == "UPR") {
        return Err("this form is not known".into());
    }
    let (a, wanted) = (args.int()?, args.int()?);
    Ok(Box::new(move |scope, mask| {
        let (a, wanted) = (a.get(scope), wanted.get(scope));
        let bits: [u32; 7] = [0, 1, 2, 3, 4, 5, 6].map(|number| bit(scope, number));
        let value = std::array::from_fn(|lane| {
            let all = bits.iter().rev().fold(0, |all, bit| all << 1 | bit >> lane & 1);
            a[lane] & !(wanted[lane] << shift) | (all & wanted[lane]) << shift
        });
        scope.put(target, mask, &value);
        Ok(())
    }))
}

fn r2p(line: &Line) -> Result<Action, String> {
    let mut args = Args::new(line);
    args.next()?;
    let shift = 8 * byte(&args.peek().ok_or("operands are missing")?.suffix);
    let (a, wanted) = (args.int()?, args.int()?);
    Ok(Box::new(move |scope, mask| {
        let (a, wanted) = (a.get(scope), wanted.get(scope));
        for number in 0..7 {
            let guard = Guard { file: PredicateFile::Thread, number, not: false };
            let here = mask & mask_of(|lane| wanted[lane] >> number & 1 == 1);
            let value = mask_of(|lane| a[lane] >> shift >> number & 1 == 1);
            scope.set(guard, here, value);
        }
        Ok(())
    }))
}
