//! Logic of predicates, and predicates as bits of a register.

use super::args::Args;
use super::integer::logic;
use super::moves::bit;
use super::{Action, Maker};
use crate::sass::operand::{PredicateFile, Value};
use crate::sass::text::{Guard, Line};

pub(super) fn find(name: &str) -> Option<Maker> {
    Some(match name {
        "PLOP3" => plop3,
        "P2R" => p2r,
        "R2P" => r2p,
        _ => return None,
    })
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
            let here = mask & crate::execute::mask_of(|lane| wanted[lane] >> number & 1 == 1);
            let value = crate::execute::mask_of(|lane| a[lane] >> shift >> number & 1 == 1);
            scope.set(guard, here, value);
        }
        Ok(())
    }))
}
