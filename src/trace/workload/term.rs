//! Expressions as written: names are still names.
//!
//! ```text
//! term  = number | name | "(" term ")" | "-" term | "!" term
//!       | term operator term | function "(" term {"," term} ")"
//! ```
//! Operators by falling strength: `* / %`, `+ -`, `<< >>`, `&`, `^`, `|`,
//! `== != < > <= >=`, `&&`, `||`. Functions: `min`, `max`, `select`, `hash`, `skew`,
//! `size`.

use super::reader::Reader;

/// An expression as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Term {
    /// A literal.
    Number(i64),
    /// A name: of a position, a constant, a buffer, a `let` or a loop index.
    Name(String),
    /// Two operands.
    Binary(Operator, Box<Self>, Box<Self>),
    /// A function and its arguments.
    Call(String, Vec<Self>),
}

/// An operator of two operands. Comparisons and logic give 0 or 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the variants are the operators' usual names")]
pub(super) enum Operator {
    Multiply,
    Divide,
    Remainder,
    Add,
    Subtract,
    ShiftLeft,
    ShiftRight,
    BitAnd,
    BitXor,
    BitOr,
    Equal,
    Unequal,
    Less,
    Greater,
    AtMost,
    AtLeast,
    And,
    Or,
    Minimum,
    Maximum,
}

/// Symbols of operators with their strength; longer symbols first.
pub(super) const SYMBOLS: &[(&str, Operator, u8)] = &[
    ("<<", Operator::ShiftLeft, 7),
    (">>", Operator::ShiftRight, 7),
    ("<=", Operator::AtMost, 3),
    (">=", Operator::AtLeast, 3),
    ("==", Operator::Equal, 3),
    ("!=", Operator::Unequal, 3),
    ("&&", Operator::And, 2),
    ("||", Operator::Or, 1),
    ("*", Operator::Multiply, 9),
    ("/", Operator::Divide, 9),
    ("%", Operator::Remainder, 9),
    ("+", Operator::Add, 8),
    ("-", Operator::Subtract, 8),
    ("&", Operator::BitAnd, 6),
    ("^", Operator::BitXor, 5),
    ("|", Operator::BitOr, 4),
    ("<", Operator::Less, 3),
    (">", Operator::Greater, 3),
];

/// Deepest nesting of an expression.
pub(super) const DEPTH: usize = 48;

impl Term {
    /// Reads `text` as one whole expression.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut reader = Reader::new(text);
        let term = Self::read(&mut reader)?;
        reader.end()?;
        Ok(term)
    }

    /// Reads one expression and leaves the reader behind it.
    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, String> {
        read_binary(reader, 1, 0)
    }

    /// Reads a literal, a name, a call, a negation or a bracketed expression.
    pub(super) fn read_operand(reader: &mut Reader<'_>) -> Result<Self, String> {
        read_operand(reader, 0)
    }
}

fn read_binary(reader: &mut Reader<'_>, weakest: u8, depth: usize) -> Result<Term, String> {
    let mut left = read_operand(reader, depth)?;
    let mut length = depth;
    while let Some(&(symbol, operator, strength)) = SYMBOLS
        .iter()
        .find(|(symbol, _, _)| reader.ahead(symbol))
        .filter(|(_, _, strength)| *strength >= weakest)
    {
        length += 1;
        if length > DEPTH {
            return Err(format!("an expression has more than {DEPTH} levels: name its parts"));
        }
        reader.take(symbol);
        let right = read_binary(reader, strength + 1, length)?;
        left = Term::Binary(operator, Box::new(left), Box::new(right));
    }
    Ok(left)
}

fn read_operand(reader: &mut Reader<'_>, depth: usize) -> Result<Term, String> {
    if depth > DEPTH {
        return Err(format!("an expression has more than {DEPTH} levels: name its parts"));
    }
    if reader.take("(") {
        let inner = read_binary(reader, 1, depth + 1)?;
        reader.expect(")")?;
        return Ok(inner);
    }
    for (symbol, operator) in [("-", Operator::Subtract), ("!", Operator::Equal)] {
        if reader.take(symbol) {
            let inner = read_operand(reader, depth + 1)?;
            return Ok(Term::Binary(operator, Box::new(Term::Number(0)), Box::new(inner)));
        }
    }
    if reader.next_is(|c| c.is_ascii_digit()) {
        return reader.number().map(Term::Number);
    }
    let name = reader.name()?;
    if !reader.take("(") {
        return Ok(Term::Name(name));
    }
    let mut arguments = vec![read_binary(reader, 1, depth + 1)?];
    while reader.take(",") {
        arguments.push(read_binary(reader, 1, depth + 1)?);
    }
    reader.expect(")")?;
    Ok(Term::Call(name, arguments))
}

#[cfg(test)]
mod tests {
    use super::Term;

    #[test]
    fn operators_bind_as_documented() {
        for (text, same) in [
            ("1 + 2 * 3", "1 + (2 * 3)"),
            ("8 - 2 - 1", "(8 - 2) - 1"),
            ("a & 3 == 0", "(a & 3) == 0"),
            ("a < 4 && b >= 1 || c", "((a < 4) && (b >= 1)) || c"),
            ("1 << k + 1", "1 << (k + 1)"),
            ("-a * b", "(0 - a) * b"),
            ("!a == 1", "(0 == a) == 1"),
        ] {
            assert_eq!(Term::parse(text).unwrap(), Term::parse(same).unwrap(), "{text}");
        }
    }

    #[test]
    fn broken_expressions_are_refused() {
        for text in ["", "1 +", "(1", "f(", "1 2", "a b", "1 $ 2", "0x", "99999999999999999999"] {
            assert!(Term::parse(text).is_err(), "{text}");
        }
        assert!(Term::parse(&"(".repeat(5000)).is_err());
        assert!(Term::parse(&"1+".repeat(5000)).is_err());
        assert!(Term::parse(&"-".repeat(5000)).is_err());
    }
}
