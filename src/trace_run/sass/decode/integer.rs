//! Logic, selection, minima and maxima, and sums of bytes and half words.

use super::args::Args;
use super::{Action, Maker};
use crate::execute::{Lanes, view};
use crate::sass::text::Line;

pub(super) fn find(name: &str) -> Option<Maker> {
    Some(match name {
        "LOP3" => lop3,
        "IMNMX" | "VIMNMX" => imnmx,
        "VIMNMX3" => vimnmx3,
        "VIADDMNMX" => viaddmnmx,
        "IABS" => iabs,
        "SEL" => sel,
        "PRMT" => prmt,
        "IDP" => idp,
        "VABSDIFF" => vabsdiff,
        "VABSDIFF4" => vabsdiff4,
        _ => return None,
    })
}

/// The function of three bits with the table `table`.
#[inline]
pub(super) fn logic(table: u32, a: u32, b: u32, c: u32) -> u32 {
    let mut value = 0;
    for index in 0..8 {
        if table >> index & 1 == 1 {
            let a = if index & 4 != 0 { a } else { !a };
            let b = if index & 2 != 0 { b } else { !b };
            let c = if index & 1 != 0 { c } else { !c };
            value |= a & b & c;
        }
    }
    value
}

fn lop3(line: &Line) -> Result<Action, String> {
    let mut args = Args::new(line);
    let out = args.maybe_predicate();
    let target = args.target()?;
    let (a, b, c) = (args.int()?, args.int()?, args.int()?);
    let table = u32::try_from(args.number()?).map_err(|_| "a negative table")?;
    let also = args.predicate()?;
    let all = line.has("PAND");
    Ok(Box::new(move |scope, mask| {
        let vector = scope.grid.vector;
        let value: Lanes = {
            view!(a, scope, a);
            view!(b, scope, b);
            view!(c, scope, c);
            match table {
                0xc0 => vector.make(|i| a[i] & b[i]),
                0xfc => vector.make(|i| a[i] | b[i]),
                0x3c => vector.make(|i| a[i] ^ b[i]),
                0x96 => vector.make(|i| a[i] ^ b[i] ^ c[i]),
                _ => vector.make(|i| logic(table, a[i], b[i], c[i])),
            }
        };
        scope.put(target, mask, &value);
        if let Some(out) = out {
            let (some, also) = (vector.mask(|i| value[i] != 0), scope.holds(also));
            scope.set(out, mask, if all { some & also } else { some | also });
        }
        Ok(())
    }))
}

/// The numbers in a register that are compared.
#[derive(Clone, Copy, Debug)]
struct Compared {
    /// Bits of each.
    width: u32,
    signed: bool,
}

impl Compared {
    fn of(line: &Line) -> Result<Self, String> {
        if line.has("RELU") {
            return Err("with RELU it is not known".into());
        }
        let width = if line.has("U16x2") || line.has("S16x2") { 16 } else { 32 };
        Ok(Self { width, signed: !line.has("U32") && !line.has("U16x2") })
    }

    /// The sum of each two numbers.
    #[inline]
    fn sum(self, a: u32, b: u32) -> u32 {
        if self.width == 32 {
            return a.wrapping_add(b);
        }
        let high = (a >> 16).wrapping_add(b >> 16) << 16;
        high | a.wrapping_add(b) & 0xffff
    }

    /// The smaller or larger of each two numbers.
    #[inline]
    fn pick(self, least: bool, a: u32, b: u32) -> u32 {
        if self.width == 32 {
            let turn = if self.signed { 1 << 31 } else { 0 };
            return if (a ^ turn < b ^ turn) == least { a } else { b };
        }
        let turn = if self.signed { 1 << 15 } else { 0 };
        let half = |shift: u32| {
            let (a, b) = (a >> shift & 0xffff, b >> shift & 0xffff);
            (if (a ^ turn < b ^ turn) == least { a } else { b }) << shift
        };
        half(16) | half(0)
    }
}

fn imnmx(line: &Line) -> Result<Action, String> {
    let compared = Compared::of(line)?;
    let mut args = Args::new(line);
    let target = args.target()?;
    let _ = args.maybe_predicate();
    let (a, b, least) = (args.int()?, args.int()?, args.predicate()?);
    Ok(Box::new(move |scope, mask| {
        let (a, b, least) = (a.get(scope), b.get(scope), scope.holds(least));
        let value: Lanes =
            scope.grid.vector.make(|i| compared.pick(least >> i & 1 == 1, a[i], b[i]));
        scope.put(target, mask, &value);
        Ok(())
    }))
}

/// The smallest or largest of three numbers.
fn vimnmx3(line: &Line) -> Result<Action, String> {
    extreme(line, |compared, least, a, b| compared.pick(least, a, b))
}

/// The smaller or larger of a sum and a third number.
fn viaddmnmx(line: &Line) -> Result<Action, String> {
    extreme(line, |compared, _, a, b| compared.sum(a, b))
}

/// The smaller or larger of what `join` makes of two numbers, and a third one.
fn extreme(
    line: &Line,
    join: impl Fn(Compared, bool, u32, u32) -> u32 + Send + Sync + 'static,
) -> Result<Action, String> {
    let compared = Compared::of(line)?;
    let mut args = Args::new(line);
    let target = args.target()?;
    let _ = args.maybe_predicate();
    let (a, b, c) = (args.int()?, args.int()?, args.int()?);
    let least = args.predicate()?;
    Ok(Box::new(move |scope, mask| {
        let [a, b, c] = [a, b, c].map(|source| source.get(scope));
        let least = scope.holds(least);
        let value: Lanes = scope.grid.vector.make(|i| {
            let least = least >> i & 1 == 1;
            compared.pick(least, join(compared, least, a[i], b[i]), c[i])
        });
        scope.put(target, mask, &value);
        Ok(())
    }))
}

fn iabs(line: &Line) -> Result<Action, String> {
    let mut args = Args::new(line);
    let (target, a) = (args.target()?, args.int()?);
    Ok(Box::new(move |scope, mask| {
        let value = a.get(scope).map(|v| v.cast_signed().unsigned_abs());
        scope.put(target, mask, &value);
        Ok(())
    }))
}

fn sel(line: &Line) -> Result<Action, String> {
    let mut args = Args::new(line);
    let target = args.target()?;
    let (a, b, first) = (args.int()?, args.int()?, args.predicate()?);
    Ok(Box::new(move |scope, mask| {
        let first = scope.holds(first);
        view!(a, scope, a);
        view!(b, scope, b);
        let value = scope.grid.vector.make(|i| if first >> i & 1 == 1 { a[i] } else { b[i] });
        scope.put(target, mask, &value);
        Ok(())
    }))
}

/// The selector of a byte permutation in the mode `mode`.
fn selector(mode: Option<&str>, c: u32) -> u32 {
    let low = c & 3;
    match mode {
        Some("F4E") => (0..4).fold(0, |all, i| all | (low + i) << (4 * i)),
        Some("B4E") => (0..4).fold(0, |all, i| all | (low.wrapping_sub(i) & 7) << (4 * i)),
        Some("RC8") => low * 0x1111,
        Some("ECL") => (0..4).fold(0, |all, i| all | low.max(i) << (4 * i)),
        Some("ECR") => (0..4).fold(0, |all, i| all | low.min(i) << (4 * i)),
        Some("RC16") => {
            if c & 1 == 1 {
                0x3232
            } else {
                0x1010
            }
        }
        _ => c,
    }
}

/// Bytes of `high:low` that the nibbles of `selector` name.
#[inline]
pub(super) fn permute(low: u32, high: u32, selector: u32) -> u32 {
    let all = u64::from(high) << 32 | u64::from(low);
    (0..4).fold(0, |value, index| {
        let nibble = selector >> (4 * index) & 15;
        let byte = u32::from(all.to_le_bytes()[(nibble & 7) as usize]);
        let byte = match nibble & 8 {
            0 => byte,
            _ => 0xff * (byte >> 7),
        };
        value | byte << (8 * index)
    })
}

fn prmt(line: &Line) -> Result<Action, String> {
    let mut args = Args::new(line);
    let target = args.target()?;
    let (a, b, c) = (args.int()?, args.int()?, args.int()?);
    let mode = line.suffixes().next().map(str::to_owned);
    Ok(Box::new(move |scope, mask| {
        let (a, b, c) = (a.get(scope), b.get(scope), c.get(scope));
        let value = std::array::from_fn(|i| permute(a[i], c[i], selector(mode.as_deref(), b[i])));
        scope.put(target, mask, &value);
        Ok(())
    }))
}

/// A byte or half-word as a number.
fn part(value: u32, index: u32, bits: u32, signed: bool) -> i64 {
    let raw = value >> (index * bits) << (32 - bits);
    match signed {
        true => i64::from(raw.cast_signed() >> (32 - bits)),
        false => i64::from(raw >> (32 - bits)),
    }
}

fn idp(line: &Line) -> Result<Action, String> {
    let mut args = Args::new(line);
    let target = args.target()?;
    let (a, b, c) = (args.int()?, args.int()?, args.int()?);
    // Of four bytes each, or of two halves and two bytes, the lower or the upper ones.
    let (count, bits, from) = match () {
        () if line.has("4A") => (4, 8, 0),
        () if line.has("2A") && line.has("LO") => (2, 16, 0),
        () if line.has("2A") && line.has("HI") => (2, 16, 2),
        () => return Err("this form is not known".into()),
    };
    let types: Vec<bool> = line
        .suffixes()
        .filter(|one| one.ends_with("16") || one.ends_with('8'))
        .map(|one| one.starts_with('S'))
        .collect();
    let [first, second] = types[..] else { return Err("its types are not known".into()) };
    Ok(Box::new(move |scope, mask| {
        let (a, b, c) = (a.get(scope), b.get(scope), c.get(scope));
        let value = std::array::from_fn(|i| {
            let products =
                (0..count).map(|n| part(a[i], n, bits, first) * part(b[i], from + n, 8, second));
            c[i].wrapping_add(super::args::bits(products.sum()))
        });
        scope.put(target, mask, &value);
        Ok(())
    }))
}

/// Differences of four bytes: each, or their sum and a third source.
fn vabsdiff4(line: &Line) -> Result<Action, String> {
    let mut args = Args::new(line);
    let target = args.target()?;
    let (a, b, c) = (args.int()?, args.int()?, args.int()?);
    let (signed, sums) = (!line.has("U8"), line.has("ACC"));
    if !sums && c.register() != Some(crate::execute::ZERO) {
        return Err("this form is not known".into());
    }
    Ok(Box::new(move |scope, mask| {
        let (a, b, c) = (a.get(scope), b.get(scope), c.get(scope));
        let value = std::array::from_fn(|i| {
            let (a, b) = (a[i].to_le_bytes(), b[i].to_le_bytes());
            let each: [u8; 4] = std::array::from_fn(|n| match signed {
                true => a[n].cast_signed().abs_diff(b[n].cast_signed()),
                false => a[n].abs_diff(b[n]),
            });
            match sums {
                true => each.iter().fold(c[i], |sum, one| sum.wrapping_add((*one).into())),
                false => u32::from_le_bytes(each),
            }
        });
        scope.put(target, mask, &value);
        Ok(())
    }))
}

fn vabsdiff(line: &Line) -> Result<Action, String> {
    let mut args = Args::new(line);
    let target = args.target()?;
    let (a, b, c) = (args.int()?, args.int()?, args.int()?);
    let signed = !line.has("U32");
    if line.name() != "VABSDIFF" || line.has("ACC") {
        return Err("this form is not known".into());
    }
    Ok(Box::new(move |scope, mask| {
        let (a, b, c) = (a.get(scope), b.get(scope), c.get(scope));
        let value = std::array::from_fn(|i| {
            let difference = match signed {
                true => a[i].cast_signed().abs_diff(b[i].cast_signed()),
                false => a[i].abs_diff(b[i]),
            };
            difference.wrapping_add(c[i])
        });
        scope.put(target, mask, &value);
        Ok(())
    }))
}

#[cfg(test)]
mod tests {
    use super::Compared;

    #[test]
    fn numbers_and_halves_are_compared_with_and_without_a_sign() {
        let word = |signed| Compared { width: 32, signed };
        assert_eq!(word(true).pick(true, 5, u32::MAX), u32::MAX, "-1 is the smaller");
        assert_eq!(word(false).pick(true, 5, u32::MAX), 5);
        assert_eq!(word(true).pick(false, 5, u32::MAX), 5);
        let halves = |signed| Compared { width: 16, signed };
        assert_eq!(halves(true).pick(true, 0x0005_ffff, 0xffff_0001), 0xffff_ffff);
        assert_eq!(halves(false).pick(true, 0x0005_ffff, 0xffff_0001), 0x0005_0001);
        assert_eq!(halves(false).pick(false, 0x0005_ffff, 0xffff_0001), 0xffff_ffff);
        assert_eq!(halves(true).sum(0x0001_ffff, 0x0002_0001), 0x0003_0000, "no carry");
    }
}
