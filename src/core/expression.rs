//! Expressions over named whole numbers, as model files write them.
//!
//! ```text
//! expression = number | name | "(" expression ")" | "-" expression | "!" expression
//!            | expression operator expression | name "(" expression {"," expression} ")"
//! ```
//! Operators, those that bind tightest first: `* / %`, `+ -`, `<< >>`, `&`, `^`, `|`,
//! `== != < > <= >=`, `&&`, `||`. A number is decimal or `0x`; `_` may group its digits.
//!
//! [`Expression::parse`] reads a text. [`Expression::evaluate`] computes a value over names
//! that the caller looks up; callers with functions or positions of their own walk the tree
//! instead. The parsers ([`expression`], [`operand`], [`number`], [`symbol`]) also serve
//! grammars that contain expressions.

use std::fmt;

use nom::branch::alt;
use nom::bytes::complete::{tag, take_while, take_while1};
use nom::character::complete::multispace0;
use nom::combinator::{cut, opt, recognize, verify};
use nom::error::{ErrorKind, ParseError};
use nom::multi::separated_list1;
use nom::sequence::{delimited, preceded};
use nom::{IResult, Parser};
use thiserror::Error;

/// An expression whose names are still names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expression {
    /// A literal.
    Number(i64),
    /// A name.
    Name(String),
    /// Two operands. `-x` is `0 - x`, `!x` is `0 == x`.
    Binary(Operator, Box<Self>, Box<Self>),
    /// A function and its arguments.
    Call(String, Vec<Self>),
}

/// An operator of two operands. Comparisons and logic give 0 or 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the variants are the operators' usual names")]
pub enum Operator {
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
    /// `min(a, b)`
    Minimum,
    /// `max(a, b)`
    Maximum,
}

/// Operators by their symbols, with their precedence; longer symbols first.
pub const SYMBOLS: [(&str, Operator, u8); 18] = [
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
pub const DEPTH: usize = 48;

/// A text that is not what its grammar says.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message} (column {column})")]
pub struct SyntaxError {
    /// Character of the text, from 1.
    pub column: usize,
    /// What was expected and found.
    pub message: String,
}

/// Why an expression has no value.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum EvaluateError {
    /// No value has this name.
    #[error("unknown name `{0}`")]
    Name(String),
    /// A function that is not known.
    #[error("unknown function `{0}`")]
    Function(String),
    /// A division by zero, or one with a remainder.
    #[error("{0} / {1} is no whole number")]
    Division(i64, i64),
    /// A value beyond 64 bits.
    #[error("a number beyond 64 bits")]
    Overflow,
}

impl Expression {
    /// Reads `text` as one whole expression.
    ///
    /// # Errors
    /// [`SyntaxError`], with the column.
    pub fn parse(text: &str) -> Result<Self, SyntaxError> {
        parse_whole(text, expression)
    }

    /// The names in it, left to right; one for each time that it occurs.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        match self {
            Self::Number(_) => Vec::new(),
            Self::Name(name) => vec![name],
            Self::Binary(_, left, right) => [left.names(), right.names()].concat(),
            Self::Call(_, arguments) => arguments.iter().flat_map(Self::names).collect(),
        }
    }

    /// Its value; `value_of` looks names up. A division must leave no remainder.
    ///
    /// # Errors
    /// [`EvaluateError`].
    pub fn evaluate(&self, value_of: &dyn Fn(&str) -> Option<i64>) -> Result<i64, EvaluateError> {
        match self {
            Self::Number(value) => Ok(*value),
            Self::Name(name) => value_of(name).ok_or_else(|| EvaluateError::Name(name.clone())),
            Self::Binary(operator, left, right) => {
                operator.checked(left.evaluate(value_of)?, right.evaluate(value_of)?)
            }
            Self::Call(name, arguments) => {
                let operator = match name.as_str() {
                    "min" => Operator::Minimum,
                    "max" => Operator::Maximum,
                    _ => return Err(EvaluateError::Function(name.clone())),
                };
                let [left, right] = &arguments[..] else {
                    return Err(EvaluateError::Function(format!("{name} of {}", arguments.len())));
                };
                operator.checked(left.evaluate(value_of)?, right.evaluate(value_of)?)
            }
        }
    }
}

impl Operator {
    fn checked(self, left: i64, right: i64) -> Result<i64, EvaluateError> {
        let value = match self {
            Self::Multiply => left.checked_mul(right),
            Self::Divide => match left.checked_rem(right) {
                Some(0) => left.checked_div(right),
                _ => return Err(EvaluateError::Division(left, right)),
            },
            Self::Remainder => left.checked_rem(right),
            Self::Add => left.checked_add(right),
            Self::Subtract => left.checked_sub(right),
            Self::ShiftLeft | Self::ShiftRight if !(0..64).contains(&right) => None,
            Self::ShiftLeft => Some(self.wrapping(left, right))
                .filter(|value| Self::ShiftRight.wrapping(*value, right) == left),
            _ => Some(self.wrapping(left, right)),
        };
        value.ok_or(EvaluateError::Overflow)
    }

    /// The value of the operator where arithmetic wraps, a shift counts modulo 64 and a
    /// division by 0 gives 0.
    #[inline(always)]
    #[must_use]
    pub fn wrapping(self, left: i64, right: i64) -> i64 {
        let shift = right.to_le_bytes()[0] & 63;
        match self {
            Self::Multiply => left.wrapping_mul(right),
            Self::Divide => left.checked_div(right).unwrap_or(0),
            Self::Remainder => left.checked_rem(right).unwrap_or(0),
            Self::Add => left.wrapping_add(right),
            Self::Subtract => left.wrapping_sub(right),
            Self::ShiftLeft => left << shift,
            Self::ShiftRight => left >> shift,
            Self::BitAnd => left & right,
            Self::BitXor => left ^ right,
            Self::BitOr => left | right,
            Self::Equal => i64::from(left == right),
            Self::Unequal => i64::from(left != right),
            Self::Less => i64::from(left < right),
            Self::Greater => i64::from(left > right),
            Self::AtMost => i64::from(left <= right),
            Self::AtLeast => i64::from(left >= right),
            Self::And => i64::from(left != 0 && right != 0),
            Self::Or => i64::from(left != 0 || right != 0),
            Self::Minimum => left.min(right),
            Self::Maximum => left.max(right),
        }
    }
}

/// What a parser gives: the rest of the text and what it read.
pub type Parsed<'a, T> = IResult<&'a str, T, Unparsed<'a>>;

/// Where a parser stopped, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unparsed<'a> {
    rest: &'a str,
    message: String,
}

impl<'a> Unparsed<'a> {
    fn expected(what: impl fmt::Display, rest: &'a str) -> Self {
        let rest = rest.trim_start();
        let message = match rest {
            "" => format!("the text ends where {what} was expected"),
            rest => format!("`{rest}` where {what} was expected"),
        };
        Self { rest, message }
    }
}

impl<'a> ParseError<&'a str> for Unparsed<'a> {
    fn from_error_kind(rest: &'a str, _: ErrorKind) -> Self {
        Self::expected("something else", rest)
    }

    fn append(_: &'a str, _: ErrorKind, other: Self) -> Self {
        other
    }
}

/// Reads the whole of `text` with `parser`.
///
/// # Errors
/// [`SyntaxError`] where it stops.
pub fn parse_whole<'a, T>(
    text: &'a str,
    mut parser: impl Parser<&'a str, Output = T, Error = Unparsed<'a>>,
) -> Result<T, SyntaxError> {
    let found = parser.parse(text).and_then(|(rest, value)| match rest.trim_start() {
        "" => Ok(value),
        rest => Err(nom::Err::Error(Unparsed::expected("the end", rest))),
    });
    found.map_err(|error| {
        let Unparsed { rest, message } = match error {
            nom::Err::Error(at) | nom::Err::Failure(at) => at,
            nom::Err::Incomplete(_) => Unparsed::expected("more", ""),
        };
        let before = &text[..text.len() - rest.len()];
        SyntaxError { column: before.chars().count() + 1, message }
    })
}

/// `parser` after blanks, with an error that names `what`.
pub fn expected<'a, T>(
    what: impl fmt::Display,
    mut parser: impl Parser<&'a str, Output = T, Error = Unparsed<'a>>,
) -> impl FnMut(&'a str) -> Parsed<'a, T> {
    move |input: &'a str| {
        let (start, _) = multispace0(input)?;
        parser.parse(start).map_err(|error| match error {
            nom::Err::Error(_) => nom::Err::Error(Unparsed::expected(&what, start)),
            other => other,
        })
    }
}

/// The characters `symbol`, after blanks.
pub fn symbol<'a>(symbol: &'static str) -> impl FnMut(&'a str) -> Parsed<'a, &'a str> {
    expected(format!("`{symbol}`"), tag(symbol))
}

/// Some characters that `test` accepts, after blanks.
pub fn word<'a>(test: impl Fn(char) -> bool) -> impl FnMut(&'a str) -> Parsed<'a, &'a str> {
    expected("a word", take_while1(test))
}

fn is_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_'
}

/// A name: a letter or `_`, then letters, digits and `_`.
fn name(input: &str) -> Parsed<'_, &str> {
    let first = verify(nom::character::complete::anychar, |c| is_name(*c) && !c.is_ascii_digit());
    expected("a name or a number", recognize((first, take_while(is_name)))).parse(input)
}

/// A decimal or `0x` number.
///
/// # Errors
/// Where no digit comes next, or the number has more than 64 bits.
pub fn number(input: &str) -> Parsed<'_, i64> {
    let digits =
        verify(take_while1(is_name), |word: &str| word.starts_with(|c: char| c.is_ascii_digit()));
    let (rest, word) = expected("a number", digits).parse(input)?;
    let digits = word.replace('_', "");
    let value = match digits.strip_prefix("0x") {
        Some(hex) => i64::from_str_radix(hex, 16),
        None => digits.parse(),
    };
    let wrong = |error| {
        let message = format!("`{word}` is no number: {error}");
        nom::Err::Failure(Unparsed { rest: input.trim_start(), message })
    };
    Ok((rest, value.map_err(wrong)?))
}

/// An expression.
///
/// # Errors
/// Where the text stops being one.
pub fn expression(input: &str) -> Parsed<'_, Expression> {
    binary(input, 1, 0)
}

/// A number, a name, a call, a negation or an expression in parentheses.
///
/// # Errors
/// Where the text stops being one.
pub fn operand(input: &str) -> Parsed<'_, Expression> {
    operand_at(input, 0)
}

/// An expression of operators of this precedence at least.
fn binary(input: &str, weakest: u8, depth: usize) -> Parsed<'_, Expression> {
    let (mut rest, mut left) = operand_at(input, depth)?;
    let mut length = depth;
    loop {
        let (after, _) = multispace0(rest)?;
        let next = SYMBOLS.iter().find(|(symbol, ..)| after.starts_with(symbol));
        let Some((symbol, operator, precedence)) = next.filter(|next| next.2 >= weakest) else {
            return Ok((rest, left));
        };
        length += 1;
        let right;
        (rest, right) =
            cut(|input| binary(input, precedence + 1, length)).parse(&after[symbol.len()..])?;
        left = Expression::Binary(*operator, Box::new(left), Box::new(right));
    }
}

fn operand_at(input: &str, depth: usize) -> Parsed<'_, Expression> {
    if depth > DEPTH {
        let message = format!("an expression has more than {DEPTH} levels: name its parts");
        return Err(nom::Err::Failure(Unparsed { rest: input, message }));
    }
    let inner = |input| binary(input, 1, depth + 1);
    let negation = |sign, operator| {
        preceded(symbol(sign), cut(move |input| operand_at(input, depth + 1))).map(move |inner| {
            Expression::Binary(operator, Box::new(Expression::Number(0)), Box::new(inner))
        })
    };
    let arguments =
        delimited(symbol("("), cut(separated_list1(symbol(","), inner)), cut(symbol(")")));
    let call = (name, opt(arguments)).map(|(name, arguments)| match arguments {
        Some(arguments) => Expression::Call(name.to_owned(), arguments),
        None => Expression::Name(name.to_owned()),
    });
    alt((
        delimited(symbol("("), cut(inner), cut(symbol(")"))),
        negation("-", Operator::Subtract),
        negation("!", Operator::Equal),
        number.map(Expression::Number),
        call,
    ))
    .parse(input)
}

#[cfg(test)]
mod tests {
    use super::{EvaluateError, Expression, SYMBOLS};

    fn value(text: &str) -> Result<i64, EvaluateError> {
        let names = |name: &str| match name {
            "tCL" => Some(14),
            "tWL" => Some(2),
            "least" => Some(i64::MIN),
            _ => None,
        };
        Expression::parse(text).unwrap().evaluate(&names)
    }

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
            assert_eq!(Expression::parse(text), Expression::parse(same), "{text}");
            assert!(Expression::parse(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn broken_expressions_are_refused() {
        for text in ["", "1 +", "(1", "f(", "1 2", "a b", "1 $ 2", "0x", "99999999999999999999"] {
            assert!(Expression::parse(text).is_err(), "{text}");
        }
        for symbol in ["(", "1+", "-", "f("] {
            let error = Expression::parse(&symbol.repeat(5000)).unwrap_err();
            assert!(error.message.contains("more than 48 levels"), "{symbol}: {error}");
        }
        let error = Expression::parse("tCL + (2 * 3").unwrap_err().to_string();
        assert_eq!(error, "the text ends where `)` was expected (column 13)");
    }

    #[test]
    fn a_value_is_whole_and_fits_64_bits() {
        assert_eq!(value("tCL + 2 * 3 - tWL"), Ok(18));
        assert_eq!(value("max(tCL / tWL, 1_0) << 1"), Ok(20));
        assert_eq!(value("tCX"), Err(EvaluateError::Name("tCX".to_owned())));
        assert_eq!(value("skew(1)"), Err(EvaluateError::Function("skew".to_owned())));
        assert_eq!(value("tCL / 4"), Err(EvaluateError::Division(14, 4)));
        assert_eq!(value("tCL / 0"), Err(EvaluateError::Division(14, 0)));
        for text in ["least * -1", "0 - least", "least - 1", "1 << 63", "1 << 64", "tCL % 0"] {
            assert_eq!(value(text), Err(EvaluateError::Overflow), "{text}");
        }
        assert!(value("least / -1").is_err());
        assert_eq!(value("-1 - least"), Ok(i64::MAX));
    }

    #[test]
    fn longer_symbols_come_first() {
        for (place, (symbol, ..)) in SYMBOLS.iter().enumerate() {
            let hidden = SYMBOLS[..place].iter().any(|(earlier, ..)| symbol.starts_with(earlier));
            assert!(!hidden, "{symbol}");
        }
    }
}
