//! Operands of SASS as `nvdisasm` prints them.

/// Which predicates: of threads, or of the warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PredicateFile {
    /// `P<n>`.
    Thread,
    /// `UP<n>`.
    Warp,
}

/// A place in a constant bank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Constant {
    pub(crate) bank: u8,
    pub(crate) offset: i64,
    pub(crate) register: Option<u8>,
    pub(crate) uniform: Option<u8>,
}

/// An address in brackets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) register: Option<u8>,
    /// The register is one of 32 bits though addresses have 64.
    pub(crate) narrow: bool,
    /// The register counts units of so many bytes.
    pub(crate) scale: u8,
    pub(crate) uniform: Option<u8>,
    pub(crate) offset: i64,
}

/// What an operand is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Register(u8),
    Uniform(u8),
    Predicate(PredicateFile, u8),
    Integer(i64),
    /// Its bits are in the encoding.
    Float,
    Constant(Constant),
    Memory(Address),
    /// A convergence barrier.
    Barrier(u8),
    /// Special registers and other words.
    Word(String),
}

/// An operand with what stands around it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Operand {
    pub(crate) value: Value,
    /// `-` before it.
    pub(crate) negative: bool,
    /// `|…|` around it.
    pub(crate) absolute: bool,
    /// `!` or `~` before it.
    pub(crate) not: bool,
    /// After a point, as `H0_H0`; `reuse` is left out.
    pub(crate) suffix: String,
    /// `.reuse` after it: its register stays in the operand cache.
    pub(crate) reuse: bool,
}

impl Operand {
    /// Reads an operand.
    pub(crate) fn read(text: &str) -> Self {
        if let Some(number) = integer(text) {
            return Self::plain(Value::Integer(number));
        }
        if is_float(text) {
            return Self::plain(Value::Float);
        }
        let (negative, rest) = strip(text, '-');
        let (not, rest) = match rest.strip_prefix(['!', '~']) {
            Some(rest) => (true, rest),
            None => (false, rest),
        };
        let (absolute, rest) = strip(rest, '|');
        let (inner, after) = match (absolute, rest.find('|')) {
            (true, Some(end)) => (&rest[..end], &rest[end + 1..]),
            _ => (rest, ""),
        };
        let (value, suffix) = read_value(inner);
        let parts = || suffix.split('.').chain(after.split('.')).filter(|part| !part.is_empty());
        let reuse = parts().any(|part| part == "reuse");
        let suffix: Vec<&str> = parts().filter(|part| *part != "reuse").collect();
        Self { value, negative, absolute, not, suffix: suffix.join("."), reuse }
    }

    fn plain(value: Value) -> Self {
        let (negative, absolute, not, reuse) = (false, false, false, false);
        Self { value, negative, absolute, not, suffix: String::new(), reuse }
    }

    /// The number, when it is an integer.
    pub(crate) fn integer(&self) -> Option<i64> {
        match self.value {
            Value::Integer(number) => Some(number),
            _ => None,
        }
    }

    /// Whether it is a predicate.
    pub(crate) fn is_predicate(&self) -> bool {
        matches!(self.value, Value::Predicate(..))
    }
}

fn strip(text: &str, mark: char) -> (bool, &str) {
    text.strip_prefix(mark).map_or((false, text), |rest| (true, rest))
}

/// A decimal or hexadecimal number.
fn integer(text: &str) -> Option<i64> {
    let (negative, digits) = strip(text, '-');
    let number = match digits.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok()?.cast_signed(),
        None => digits.parse::<i64>().ok().filter(|_| digits.starts_with(char::is_numeric))?,
    };
    Some(if negative { number.wrapping_neg() } else { number })
}

fn is_float(text: &str) -> bool {
    let bare = text.trim_start_matches(['-', '+']);
    bare.starts_with("QNAN")
        || bare.starts_with("SNAN")
        || bare.starts_with("INF")
        || bare.starts_with(|c: char| c.is_ascii_digit()) && bare.parse::<f64>().is_ok()
}

fn read_value(text: &str) -> (Value, &str) {
    let word = || (Value::Word(text.to_owned()), "");
    if text.contains('[') {
        return bracketed(text).unwrap_or_else(word);
    }
    let (name, suffix) = text.split_once('.').unwrap_or((text, ""));
    let value = register(name).or_else(|| match name {
        "PT" => Some(Value::Predicate(PredicateFile::Thread, 7)),
        "UPT" => Some(Value::Predicate(PredicateFile::Warp, 7)),
        _ => {
            let predicate = |digits: &str| digits.parse().ok().filter(|&n: &u8| n < 7);
            if let Some(number) = name.strip_prefix("UP").and_then(predicate) {
                return Some(Value::Predicate(PredicateFile::Warp, number));
            }
            if let Some(number) = name.strip_prefix('P').and_then(predicate) {
                return Some(Value::Predicate(PredicateFile::Thread, number));
            }
            let barrier = name.strip_prefix('B').and_then(|n| n.parse().ok());
            barrier.filter(|&n: &u8| n < 16).map(Value::Barrier)
        }
    });
    value.map_or_else(word, |value| (value, suffix))
}

fn register(name: &str) -> Option<Value> {
    match name {
        "RZ" => return Some(Value::Register(255)),
        "URZ" => return Some(Value::Uniform(63)),
        _ => {}
    }
    if let Some(number) = name.strip_prefix("UR") {
        return number.parse().ok().filter(|&n: &u8| n < 63).map(Value::Uniform);
    }
    name.strip_prefix('R')?.parse().ok().map(Value::Register)
}

fn bracketed(text: &str) -> Option<(Value, &str)> {
    let end = text.rfind(']')?;
    let suffix = text[end + 1..].trim_start_matches('.');
    if let Some(rest) = text.strip_prefix("c[").or_else(|| text.strip_prefix("cx[")) {
        let (bank, place) = rest.split_once("][")?;
        let bank = u8::try_from(integer(bank)?).ok()?;
        let Address { register, uniform, offset, .. } = address(place.split(']').next()?)?;
        return Some((Value::Constant(Constant { bank, offset, register, uniform }), suffix));
    }
    let start = text[..end].rfind('[')?;
    Some((Value::Memory(address(&text[start + 1..end])?), suffix))
}

/// What is in brackets: parts with `+` between them.
fn address(text: &str) -> Option<Address> {
    let mut found = Address { scale: 1, ..Address::default() };
    for part in text.split('+').map(str::trim).filter(|part| !part.is_empty()) {
        if let Some(number) = integer(part) {
            found.offset = found.offset.wrapping_add(number);
            continue;
        }
        let mut words = part.split('.');
        match register(words.next()?)? {
            Value::Register(number) => found.register = Some(number),
            Value::Uniform(number) => found.uniform = Some(number),
            _ => return None,
        }
        for word in words {
            match word {
                "U32" => found.narrow = true,
                "X4" => found.scale = 4,
                "X8" => found.scale = 8,
                "X16" => found.scale = 16,
                "64" | "reuse" => {}
                _ => return None,
            }
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::{Address, Operand, PredicateFile, Value};

    #[test]
    fn operands_are_read_with_what_stands_around_them() {
        let read = Operand::read;
        assert_eq!(read("0x4c").value, Value::Integer(0x4c));
        assert_eq!(read("-0x54").value, Value::Integer(-0x54));
        assert_eq!(read("-QNAN").value, Value::Float);
        assert_eq!(read("2.384185791015625e-07").value, Value::Float);
        assert_eq!(read("!UPT").value, Value::Predicate(PredicateFile::Warp, 7));
        assert!(read("~UR5").not && read("-|R4|").absolute && read("-|R4|").negative);
        assert_eq!(read("R3.H0_H0").suffix, "H0_H0");
        assert_eq!(read("|R3.reuse|.H1_H1").suffix, "H1_H1");
        assert_eq!(read("SR_CTAID.X").value, Value::Word("SR_CTAID.X".into()));
        assert_eq!(read("B6").value, Value::Barrier(6));
        let address = |text| match read(text).value {
            Value::Memory(address) => address,
            other => panic!("{other:?}"),
        };
        assert_eq!(
            address("desc[UR4][R2.64+UR6+-0x10]"),
            Address { register: Some(2), narrow: false, scale: 1, uniform: Some(6), offset: -16 }
        );
        assert_eq!((address("[R4.X4+0x8]").scale, address("[R4.X4+0x8]").offset), (4, 8));
    }
}
