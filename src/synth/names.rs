//! What a name in an expression stands for.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::units::nearest;

use super::expression::{Expression, Variable, apply};
use super::law::{Law, Laws};
use super::random::mix_in;
use super::term::{DEPTH, Operator, Term};

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
pub(super) const EXTENTS: [&str; 9] =
    ["gx", "gy", "gz", "ctas", "dx", "dy", "dz", "threads", "warps"];

/// Functions that expressions may call.
const FUNCTIONS: [&str; 6] = ["min", "max", "select", "hash", "skew", "size"];

/// Most parts of one expression after its names are resolved.
const PARTS: usize = 1024;

/// A name that a loop or an unrolled body brings.
#[derive(Clone, Debug)]
enum Local {
    /// A loop's index, at this depth.
    Index(u8),
    /// An unrolled body's index, which is a constant.
    Fixed(i64),
}

/// Everything that a name may stand for at one place of a workload file.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    /// Constants, buffers' bases and launch extents.
    constants: BTreeMap<String, i64>,
    /// Buffers' sizes in bytes.
    sizes: BTreeMap<String, i64>,
    /// Named expressions; each may use those before it.
    lets: Vec<(String, Term)>,
    /// Names of enclosing bodies, outermost first.
    locals: Vec<(String, Local)>,
    /// Loops among the locals.
    depth: u8,
    /// The workload's seed.
    seed: u64,
    /// What `skew` draws by; all kernels share them.
    laws: Rc<Laws>,
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
    pub(super) fn set_let(&mut self, name: &str, term: Term) -> Result<(), String> {
        self.check_free(name)?;
        self.lets.push((name.to_owned(), term));
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

    /// The expression that `term` means here, and the number of its parts.
    pub(super) fn resolve(&self, term: &Term) -> Result<(Expression, usize), String> {
        let mut resolver = Resolver { names: self, lets: self.lets.len(), parts: 0, depth: 0 };
        let expression = resolver.term(term)?;
        Ok((expression, resolver.parts))
    }

    /// The constant that `term` means here.
    pub(super) fn constant(&self, term: &Term) -> Result<i64, String> {
        self.resolve(term)?.0.constant().ok_or_else(|| {
            "the value must be the same everywhere: only constants may be used here".to_owned()
        })
    }
}

/// One walk over a term.
struct Resolver<'a> {
    names: &'a Names,
    /// How many of the named expressions may be used.
    lets: usize,
    parts: usize,
    depth: usize,
}

impl Resolver<'_> {
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
        let names = self.names;
        if let Some((_, local)) = names.locals.iter().rev().find(|(known, _)| known == name) {
            return Ok(match local {
                Local::Index(depth) => Expression::Variable(Variable::Loop(*depth)),
                Local::Fixed(value) => Expression::Constant(*value),
            });
        }
        if let Some((_, variable)) = POSITIONS.iter().find(|(known, _)| *known == name) {
            return Ok(Expression::Variable(*variable));
        }
        if let Some(value) = names.constants.get(name) {
            return Ok(Expression::Constant(*value));
        }
        let before = &names.lets[..self.lets];
        if let Some(place) = before.iter().position(|(known, _)| known == name) {
            let outer = std::mem::replace(&mut self.lets, place);
            let expression = self.term(&before[place].1)?;
            self.lets = outer;
            return Ok(expression);
        }
        Err(match nearest(name, names.all()) {
            Some(near) => format!("unknown name `{name}`; did you mean `{near}`?"),
            None => format!("unknown name `{name}`"),
        })
    }

    fn call(&mut self, name: &str, arguments: &[Term]) -> Result<Expression, String> {
        if let ("size", [Term::Name(buffer)]) = (name, arguments) {
            let size = self.names.sizes.get(buffer);
            let size = size.ok_or_else(|| format!("`size({buffer})`: no buffer has this name"))?;
            return Ok(Expression::Constant(*size));
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
            ("select", 3) => {
                let no = values.pop().expect("three arguments");
                let yes = values.pop().expect("three arguments");
                let condition = values.pop().expect("three arguments");
                Ok(select(condition, yes, no))
            }
            ("hash", 2..) | ("skew", 3..) => self.draw(name, values),
            (_, count) => Err(wrong_call(name, count)),
        }
    }

    /// A draw: keys, for `skew` the exponent, the range.
    fn draw(&self, name: &str, mut values: Vec<Expression>) -> Result<Expression, String> {
        let range = values.pop().and_then(|range| range.constant());
        let law = if name == "hash" {
            Law::even(range)?
        } else {
            self.names.laws.skewed(values.pop().and_then(|power| power.constant()), range)?
        };
        // Leading constant keys are the same everywhere: mixed once.
        let constants = values.iter().map_while(Expression::constant);
        let start = (self.names.seed, 0);
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

fn select(condition: Expression, yes: Expression, no: Expression) -> Expression {
    match condition.constant() {
        Some(0) => no,
        Some(_) => yes,
        None => Expression::Select(Box::new((condition, yes, no))),
    }
}

#[cfg(test)]
mod tests {
    use super::{Names, Term};

    fn names() -> Names {
        let mut names = Names::new(1);
        names.set_constant("width", 64).unwrap();
        names.set_buffer("input", 4096, 512).unwrap();
        names.set_let("index", Term::parse("global * 4").unwrap()).unwrap();
        names
    }

    fn fault(text: &str) -> String {
        names().resolve(&Term::parse(text).unwrap()).unwrap_err()
    }

    #[test]
    fn constants_fold() {
        let value = |text: &str| names().constant(&Term::parse(text).unwrap());
        assert_eq!(value("input + size(input) / 2 - width"), Ok(4096 + 256 - 64));
        assert_eq!(value("select(width > 63, max(1, 2), min(1, 2))"), Ok(2));
        assert!(value("index").is_err());
    }

    #[test]
    fn who_has_a_name_already_is_said() {
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
            names.set_let(&name, Term::parse(&format!("{last} + {last}")).unwrap()).unwrap();
            last = name;
        }
        assert!(names.resolve(&Term::Name(last)).unwrap_err().contains("parts"));
    }
}
