//! Terms with their names resolved.

use gpumodel_core::units::nearest;

use super::expression::{Expression, apply};
use super::law::Law;
use super::names::{Meaning, Names};
use super::random::mix_in;
use super::term::{DEPTH, Operator, Term};

/// Functions that expressions may call.
pub(super) const FUNCTIONS: [&str; 6] = ["min", "max", "select", "hash", "skew", "size"];

/// Most parts of one expression after its names are resolved.
const PARTS: usize = 1024;

/// What a term means at one place of a workload file.
#[derive(Clone, Debug)]
pub(super) struct Resolved {
    /// With its names resolved.
    pub(super) expression: Expression,
    /// The number of its parts.
    pub(super) parts: usize,
    /// The base of the buffer that it names; `None` where it names none or several.
    pub(super) base: Option<i64>,
}

/// The bases of buffers that a term names where its value comes from: not in conditions and
/// keys, and not where a condition that is the same everywhere never leads.
#[derive(Clone, Copy, Debug)]
enum Bases {
    None,
    One(i64),
    Several,
}

impl Bases {
    fn add(&mut self, base: i64) {
        *self = match *self {
            Self::None => Self::One(base),
            Self::One(known) if known == base => *self,
            Self::One(_) | Self::Several => Self::Several,
        };
    }
}

/// One walk over a term.
#[derive(Debug)]
pub(super) struct Resolver<'a> {
    names: &'a Names,
    /// How many of the named expressions may be used.
    lets: usize,
    parts: usize,
    depth: usize,
    bases: Bases,
}

impl<'a> Resolver<'a> {
    /// Where everything of `names` may be used.
    pub(super) fn new(names: &'a Names) -> Self {
        Self { names, lets: names.lets(), parts: 0, depth: 0, bases: Bases::None }
    }

    /// What `term` means.
    pub(super) fn resolve(mut self, term: &Term) -> Result<Resolved, String> {
        let expression = self.term(term)?;
        let base = match self.bases {
            Bases::One(base) => Some(base),
            Bases::None | Bases::Several => None,
        };
        Ok(Resolved { expression, parts: self.parts, base })
    }

    fn term(&mut self, term: &Term) -> Result<Expression, String> {
        self.parts += 1;
        self.depth += 1;
        if self.parts > PARTS || self.depth > 2 * DEPTH {
            return Err(format!(
                "the expression has more than {PARTS} parts or {} levels with its names resolved",
                2 * DEPTH
            ));
        }
        let expression = match term {
            Term::Number(value) => Ok(Expression::Constant(*value)),
            Term::Name(name) => self.name(name),
            Term::Binary(operator, left, right) => {
                let (left, right) = (self.term(left)?, self.term(right)?);
                binary(*operator, left, right)
            }
            Term::Call(name, arguments) => self.call(name, arguments),
        };
        self.depth -= 1;
        expression
    }

    fn name(&mut self, name: &str) -> Result<Expression, String> {
        Ok(match self.names.meaning(name, self.lets)? {
            Meaning::Variable(variable) => Expression::Variable(variable),
            Meaning::Constant(value) => Expression::Constant(value),
            Meaning::Base(base) => {
                self.bases.add(base);
                Expression::Constant(base)
            }
            Meaning::Let(place, term) => {
                let outer = std::mem::replace(&mut self.lets, place);
                let expression = self.term(term)?;
                self.lets = outer;
                expression
            }
        })
    }

    fn call(&mut self, name: &str, arguments: &[Term]) -> Result<Expression, String> {
        if let ("size", [Term::Name(buffer)]) = (name, arguments) {
            let size = self.names.size(buffer);
            let size = size.ok_or_else(|| format!("`size({buffer})`: no buffer has this name"))?;
            return Ok(Expression::Constant(size));
        }
        if let ("select", [condition, yes, no]) = (name, arguments) {
            return self.select(condition, yes, no);
        }
        if matches!((name, arguments), ("hash", [_, _, ..]) | ("skew", [_, _, _, ..])) {
            return self.draw(name, arguments);
        }
        let mut values = Vec::with_capacity(arguments.len());
        for argument in arguments {
            values.push(self.term(argument)?);
        }
        match (name, values.len()) {
            ("min" | "max", 2) => {
                let right = values.pop().expect("two arguments");
                let left = values.pop().expect("two arguments");
                let operator = if name == "min" { Operator::Minimum } else { Operator::Maximum };
                binary(operator, left, right)
            }
            (_, count) => Err(wrong_call(name, count)),
        }
    }

    /// What a term means whose value is no part of an address.
    fn apart(&mut self, term: &Term) -> Result<Expression, String> {
        let bases = self.bases;
        let expression = self.term(term)?;
        self.bases = bases;
        Ok(expression)
    }

    fn select(&mut self, condition: &Term, yes: &Term, no: &Term) -> Result<Expression, String> {
        let condition = self.apart(condition)?;
        match condition.constant() {
            Some(0) => {
                self.apart(yes)?;
                self.term(no)
            }
            Some(_) => {
                let yes = self.term(yes)?;
                self.apart(no)?;
                Ok(yes)
            }
            None => {
                let (yes, no) = (self.term(yes)?, self.term(no)?);
                Ok(Expression::Select(Box::new((condition, yes, no))))
            }
        }
    }

    /// A draw: keys, for `skew` the exponent, the range.
    fn draw(&mut self, name: &str, arguments: &[Term]) -> Result<Expression, String> {
        let mut values = Vec::with_capacity(arguments.len());
        for argument in arguments {
            values.push(self.apart(argument)?);
        }
        let range = values.pop().and_then(|range| range.constant());
        let law = if name == "hash" {
            Law::even(range)?
        } else {
            self.names.laws().skewed(values.pop().and_then(|power| power.constant()), range)?
        };
        // Leading constant keys are the same everywhere: mixed once.
        let constants = values.iter().map_while(Expression::constant);
        let start = (self.names.seed(), 0);
        let (seed, count) =
            constants.fold(start, |(state, count), key| (mix_in(state, key), count + 1));
        Ok(Expression::Draw { seed, keys: values[count..].into(), law })
    }
}

/// Why a function is not called so.
fn wrong_call(name: &str, arguments: usize) -> String {
    if FUNCTIONS.contains(&name) {
        return format!(
            "`{name}` has {arguments} arguments; expected min(a, b), max(a, b), \
             select(condition, yes, no), hash(key, …, range), skew(key, …, exponent, range) \
             or size(buffer)"
        );
    }
    match nearest(name, FUNCTIONS) {
        Some(near) => format!("unknown function `{name}`; did you mean `{near}`?"),
        None => format!("unknown function `{name}`; known are {}", FUNCTIONS.join(", ")),
    }
}

fn binary(operator: Operator, left: Expression, right: Expression) -> Result<Expression, String> {
    if matches!(operator, Operator::Divide | Operator::Remainder)
        && right.constant().is_none_or(|divisor| divisor == 0)
    {
        return Err("a divisor must be a constant other than 0".to_owned());
    }
    if let (Some(left), Some(right)) = (left.constant(), right.constant()) {
        return Ok(Expression::Constant(apply(operator, left, right)));
    }
    Ok(Expression::Binary(operator, Box::new((left, right))))
}
