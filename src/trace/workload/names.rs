//! Expressions with their names resolved: what a name in a workload file stands for.

use std::collections::BTreeMap;
use std::rc::Rc;

use gpumodel_core::expression::{DEPTH, Expression, Operator};
use gpumodel_core::units::nearest;

use super::distribution::{Distribution, Distributions, mix_in};
use super::lane_expression::{LaneExpression, Variable};

/// Positions in a launch by their names in workload files.
const POSITIONS: &[(&str, Variable)] = &[
    ("lane", Variable::Lane),
    ("thread", Variable::Thread),
    ("tx", Variable::ThreadX),
    ("ty", Variable::ThreadY),
    ("tz", Variable::ThreadZ),
    ("global", Variable::Global),
    ("warp", Variable::Warp),
    ("cta", Variable::Cta),
    ("bx", Variable::CtaX),
    ("by", Variable::CtaY),
    ("bz", Variable::CtaZ),
    ("launch", Variable::Launch),
];

/// Names of launch extents; see [`Names::set_extents`].
const EXTENTS: [&str; 9] = ["gx", "gy", "gz", "ctas", "dx", "dy", "dz", "threads", "warps"];

/// A name that a loop or an unrolled body defines.
#[derive(Clone, Debug)]
enum Local {
    /// A loop's index, at this depth.
    Index(u8),
    /// An unrolled body's index, which is a constant.
    Fixed(i64),
}

/// What a name stands for.
#[derive(Clone, Copy, Debug)]
enum Meaning<'a> {
    /// A position or a loop's index.
    Variable(Variable),
    /// The same everywhere.
    Constant(i64),
    /// A buffer's base.
    Base(i64),
    /// The named expression at this place, which may use those before it.
    Let(usize, &'a Expression),
}

/// Everything that a name may stand for at one place of a workload file.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    /// Constants, buffers' bases and launch extents.
    constants: BTreeMap<String, i64>,
    /// Buffers' sizes in bytes.
    sizes: BTreeMap<String, i64>,
    /// Named expressions; each may use those before it.
    lets: Vec<(String, Expression)>,
    /// Names of enclosing bodies, outermost first.
    locals: Vec<(String, Local)>,
    /// Loops among the locals.
    depth: u8,
    /// The workload's seed.
    seed: u64,
    /// The distributions of `skew`, which all kernels share.
    distributions: Rc<Distributions>,
}

impl Names {
    /// No names but positions and functions.
    pub(super) fn new(seed: u64) -> Self {
        Self { seed, ..Self::default() }
    }

    /// Adds a constant.
    pub(super) fn set_constant(&mut self, name: &str, value: i64) -> Result<(), String> {
        self.check_free(name)?;
        self.constants.insert(name.to_owned(), value);
        Ok(())
    }

    /// Adds a buffer of `bytes` at address `base`.
    pub(super) fn set_buffer(&mut self, name: &str, base: i64, bytes: i64) -> Result<(), String> {
        self.set_constant(name, base)?;
        self.sizes.insert(name.to_owned(), bytes);
        Ok(())
    }

    /// Sets the grid's and the CTA's extents: grid x, y, z, CTAs, block x, y, z,
    /// threads and warps of a CTA.
    pub(super) fn set_extents(&mut self, values: [i64; EXTENTS.len()]) {
        for (name, value) in EXTENTS.into_iter().zip(values) {
            self.constants.insert(name.to_owned(), value);
        }
    }

    /// Adds a named expression, which may use what is known so far.
    pub(super) fn set_let(&mut self, name: &str, written: Expression) -> Result<(), String> {
        self.check_free(name)?;
        self.lets.push((name.to_owned(), written));
        Ok(())
    }

    /// Enters a loop whose index has this name; at most `most` deep.
    pub(super) fn enter_loop(&mut self, name: &str, most: usize) -> Result<(), String> {
        self.check_free(name)?;
        if usize::from(self.depth) >= most {
            return Err(format!("loops nest more than {most} deep"));
        }
        self.locals.push((name.to_owned(), Local::Index(self.depth)));
        self.depth += 1;
        Ok(())
    }

    /// Leaves the innermost loop.
    pub(super) fn leave_loop(&mut self) {
        self.locals.pop();
        self.depth -= 1;
    }

    /// Enters one copy of an unrolled body.
    pub(super) fn enter_copy(&mut self, name: &str, index: i64) -> Result<(), String> {
        self.check_free(name)?;
        self.locals.push((name.to_owned(), Local::Fixed(index)));
        Ok(())
    }

    /// Leaves the copy of an unrolled body.
    pub(super) fn leave_copy(&mut self) {
        self.locals.pop();
    }

    fn check_free(&self, name: &str) -> Result<(), String> {
        let proper = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if !proper {
            return Err(format!("`{name}` is no name: letters, digits and `_`, no digit first"));
        }
        let position = POSITIONS.iter().any(|(position, _)| *position == name);
        if position || EXTENTS.contains(&name) {
            return Err(format!(
                "the name `{name}` is taken, choose another: it says where a lane is, or how large \
                 the launch"
            ));
        }
        if FUNCTIONS.contains(&name) {
            return Err(format!("the name `{name}` is taken, choose another: it is a function"));
        }
        if self.all().any(|known| known == name) {
            return Err(format!(
                "the name `{name}` is taken, choose another: the file has it already"
            ));
        }
        Ok(())
    }

    fn all(&self) -> impl Iterator<Item = &str> {
        let positions = POSITIONS.iter().map(|(name, _)| *name);
        let lets = self.lets.iter().map(|(name, _)| name.as_str());
        let locals = self.locals.iter().map(|(name, _)| name.as_str());
        positions.chain(self.constants.keys().map(String::as_str)).chain(lets).chain(locals)
    }

    /// What `name` stands for where the first `lets` named expressions are known.
    fn meaning(&self, name: &str, lets: usize) -> Result<Meaning<'_>, String> {
        if let Some((_, local)) = self.locals.iter().rev().find(|(known, _)| known == name) {
            return Ok(match local {
                Local::Index(depth) => Meaning::Variable(Variable::Loop(*depth)),
                Local::Fixed(value) => Meaning::Constant(*value),
            });
        }
        if let Some((_, variable)) = POSITIONS.iter().find(|(known, _)| *known == name) {
            return Ok(Meaning::Variable(*variable));
        }
        if let Some(&value) = self.constants.get(name) {
            let base = self.sizes.contains_key(name);
            return Ok(if base { Meaning::Base(value) } else { Meaning::Constant(value) });
        }
        let mut before = self.lets[..lets].iter();
        if let Some(place) = before.position(|(known, _)| known == name) {
            return Ok(Meaning::Let(place, &self.lets[place].1));
        }
        Err(match nearest(name, self.all()) {
            Some(near) => format!("unknown name `{name}`; did you mean `{near}`?"),
            None => format!("unknown name `{name}`"),
        })
    }

    /// The expression that `written` means here.
    pub(super) fn resolve(&self, written: &Expression) -> Result<Resolved, String> {
        let lets = self.lets.len();
        Resolver { names: self, lets, parts: 0, depth: 0, bases: Bases::None }.resolve(written)
    }

    /// The constant that `written` means here.
    pub(super) fn constant(&self, written: &Expression) -> Result<i64, String> {
        self.resolve(written)?.expression.constant().ok_or_else(|| {
            "the value must be the same everywhere: only constants may be used here".to_owned()
        })
    }
}

/// Functions that expressions may call.
const FUNCTIONS: [&str; 6] = ["min", "max", "select", "hash", "skew", "size"];

/// Most parts of one expression after its names are resolved.
const PARTS: usize = 1024;

/// An expression with its names resolved at one place of a workload file.
#[derive(Clone, Debug)]
pub(super) struct Resolved {
    /// With its names resolved.
    pub(super) expression: LaneExpression,
    /// The number of its parts.
    pub(super) parts: usize,
    /// The base of the buffer that it names; `None` where it names none or several.
    pub(super) base: Option<i64>,
}

/// The bases of the buffers that an expression names where its value comes from: not in
/// conditions and keys, and not in the branch of a constant condition that is never taken.
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

/// The state of resolving one expression.
#[derive(Debug)]
struct Resolver<'a> {
    names: &'a Names,
    /// How many of the named expressions may be used.
    lets: usize,
    parts: usize,
    depth: usize,
    bases: Bases,
}

impl Resolver<'_> {
    fn resolve(mut self, written: &Expression) -> Result<Resolved, String> {
        let expression = self.expression(written)?;
        let base = match self.bases {
            Bases::One(base) => Some(base),
            Bases::None | Bases::Several => None,
        };
        Ok(Resolved { expression, parts: self.parts, base })
    }

    fn expression(&mut self, written: &Expression) -> Result<LaneExpression, String> {
        self.parts += 1;
        self.depth += 1;
        if self.parts > PARTS || self.depth > 2 * DEPTH {
            return Err(format!(
                "the expression has more than {PARTS} parts or {} levels with its names resolved",
                2 * DEPTH
            ));
        }
        let expression = match written {
            Expression::Number(value) => Ok(LaneExpression::Constant(*value)),
            Expression::Name(name) => self.name(name),
            Expression::Binary(operator, left, right) => {
                let (left, right) = (self.expression(left)?, self.expression(right)?);
                binary(*operator, left, right)
            }
            Expression::Call(name, arguments) => self.call(name, arguments),
        };
        self.depth -= 1;
        expression
    }

    fn name(&mut self, name: &str) -> Result<LaneExpression, String> {
        Ok(match self.names.meaning(name, self.lets)? {
            Meaning::Variable(variable) => LaneExpression::Variable(variable),
            Meaning::Constant(value) => LaneExpression::Constant(value),
            Meaning::Base(base) => {
                self.bases.add(base);
                LaneExpression::Constant(base)
            }
            Meaning::Let(place, written) => {
                let outer = std::mem::replace(&mut self.lets, place);
                let expression = self.expression(written)?;
                self.lets = outer;
                expression
            }
        })
    }

    fn call(&mut self, name: &str, arguments: &[Expression]) -> Result<LaneExpression, String> {
        match (name, arguments) {
            ("size", [Expression::Name(buffer)]) => {
                let size = self.names.sizes.get(buffer).copied();
                let size = size.map(LaneExpression::Constant);
                size.ok_or_else(|| format!("`size({buffer})`: no buffer has this name"))
            }
            ("select", [condition, yes, no]) => self.select(condition, yes, no),
            ("hash", [_, _, ..]) | ("skew", [_, _, _, ..]) => self.draw(name, arguments),
            ("min" | "max", [left, right]) => {
                let operator = if name == "min" { Operator::Minimum } else { Operator::Maximum };
                binary(operator, self.expression(left)?, self.expression(right)?)
            }
            _ => Err(wrong_call(name, arguments.len())),
        }
    }

    /// Resolves an expression whose value is no part of an address.
    fn outside_address(&mut self, written: &Expression) -> Result<LaneExpression, String> {
        let bases = self.bases;
        let expression = self.expression(written)?;
        self.bases = bases;
        Ok(expression)
    }

    fn select(
        &mut self,
        condition: &Expression,
        yes: &Expression,
        no: &Expression,
    ) -> Result<LaneExpression, String> {
        let condition = self.outside_address(condition)?;
        match condition.constant() {
            Some(0) => {
                self.outside_address(yes)?;
                self.expression(no)
            }
            Some(_) => {
                let yes = self.expression(yes)?;
                self.outside_address(no)?;
                Ok(yes)
            }
            None => {
                let (yes, no) = (self.expression(yes)?, self.expression(no)?);
                Ok(LaneExpression::Select(Box::new((condition, yes, no))))
            }
        }
    }

    /// A draw: keys, for `skew` the exponent, the range.
    fn draw(&mut self, name: &str, arguments: &[Expression]) -> Result<LaneExpression, String> {
        let values = arguments.iter().map(|argument| self.outside_address(argument));
        let mut values: Vec<LaneExpression> = values.collect::<Result<_, _>>()?;
        let range = values.pop().and_then(|range| range.constant());
        let distribution = if name == "hash" {
            Distribution::even(range)?
        } else {
            self.names
                .distributions
                .skewed(values.pop().and_then(|power| power.constant()), range)?
        };
        // Leading constant keys are the same everywhere: mixed once.
        let constants = values.iter().map_while(LaneExpression::constant);
        let start = (self.names.seed, 0);
        let (seed, count) =
            constants.fold(start, |(state, count), key| (mix_in(state, key), count + 1));
        Ok(LaneExpression::Draw { seed, keys: values[count..].into(), distribution })
    }
}

/// The error of a call with another name or number of arguments than a function has.
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

fn binary(
    operator: Operator,
    left: LaneExpression,
    right: LaneExpression,
) -> Result<LaneExpression, String> {
    if matches!(operator, Operator::Divide | Operator::Remainder)
        && right.constant().is_none_or(|divisor| divisor == 0)
    {
        return Err("a divisor must be a constant other than 0".to_owned());
    }
    if let (Some(left), Some(right)) = (left.constant(), right.constant()) {
        return Ok(LaneExpression::Constant(operator.wrapping(left, right)));
    }
    Ok(LaneExpression::Binary(operator, Box::new((left, right))))
}

#[cfg(test)]
mod tests {
    use gpumodel_core::expression::Expression;

    use super::Names;

    fn names() -> Names {
        let mut names = Names::new(1);
        names.set_constant("width", 64).unwrap();
        names.set_buffer("input", 4096, 512).unwrap();
        names.set_let("index", Expression::parse("global * 4").unwrap()).unwrap();
        names
    }

    fn fault(text: &str) -> String {
        names().resolve(&Expression::parse(text).unwrap()).unwrap_err()
    }

    #[test]
    fn constants_fold() {
        let value = |text: &str| names().constant(&Expression::parse(text).unwrap());
        assert_eq!(value("input + size(input) / 2 - width"), Ok(4096 + 256 - 64));
        assert_eq!(value("select(width > 63, max(1, 2), min(1, 2))"), Ok(2));
        assert!(value("index").is_err());
    }

    #[test]
    fn a_taken_name_is_refused_with_its_meaning() {
        let fault = |name: &str| names().set_constant(name, 1).unwrap_err();
        for (name, has) in [
            ("lane", "where a lane is"),
            ("ctas", "how large the launch"),
            ("hash", "a function"),
            ("index", "the file has it"),
        ] {
            assert!(
                fault(name).contains(&format!("`{name}` is taken, choose another: ")),
                "{name}"
            );
            assert!(fault(name).contains(has), "{}", fault(name));
        }
    }

    #[test]
    fn faults_name_the_nearest() {
        assert!(fault("glbal + 1").contains("did you mean `global`"));
        assert!(fault("indx").contains("did you mean `index`"));
        assert!(fault("hsh(1, 2)").contains("did you mean `hash`"));
        assert!(fault("1 / lane").contains("divisor"));
        assert!(fault("1 % (width - 64)").contains("divisor"));
        assert!(fault("hash(lane, lane)").contains("constant above 0"));
        assert!(fault("min(1)").contains("arguments"));
        assert!(fault("skew(lane, 64)").contains("skew(key, …, exponent, range)"));
        assert!(names().set_constant("lane", 1).unwrap_err().contains("taken"));
        assert!(names().set_constant("4k", 1).unwrap_err().contains("no name"));
    }

    #[test]
    fn a_skewed_draw_says_what_it_cannot_be() {
        for (text, said) in [
            ("skew(lane, 0, 64)", "last but one, of `skew` is 0, expected 1 to 400, in hundredths"),
            ("skew(lane, 401, 64)", "is 401, expected 1 to 400"),
            ("skew(lane, lane, 64)", "is no constant, expected 1 to 400"),
            ("skew(lane, 100, 0)", "the range, last, of `skew` is 0, expected 1 to 2^40"),
            ("skew(lane, 100, 0 - 8)", "is -8, expected 1 to 2^40"),
            ("skew(lane, 100, 1 << 41)", "is 2199023255552, expected 1 to 2^40"),
        ] {
            assert!(fault(text).contains(said), "{text}: {}", fault(text));
        }
    }

    #[test]
    fn doubling_names_do_not_explode() {
        let mut names = names();
        let mut last = "lane".to_owned();
        for k in 0..40 {
            let name = format!("x{k}");
            names.set_let(&name, Expression::parse(&format!("{last} + {last}")).unwrap()).unwrap();
            last = name;
        }
        assert!(names.resolve(&Expression::Name(last)).unwrap_err().contains("parts"));
    }
}
