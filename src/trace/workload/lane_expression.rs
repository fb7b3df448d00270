//! Expressions with their names resolved, evaluated for the 32 lanes of a warp
//! at once. Pure: equal scopes give equal values.

use gpumodel_core::expression::Operator;
use gpumodel_core::units::{Dim3, WARP_LANES, to_u32};

use super::distribution::{Distribution, mix_in};

/// What an expression can read besides constants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Variable {
    /// Lane in the warp, 0 to 31.
    Lane,
    /// Thread in the CTA, x fastest.
    Thread,
    /// Thread position in the CTA.
    ThreadX,
    /// Thread position in the CTA.
    ThreadY,
    /// Thread position in the CTA.
    ThreadZ,
    /// Thread in the grid: CTA number times threads plus thread.
    Global,
    /// Warp in the CTA.
    Warp,
    /// CTA in the grid, x fastest.
    Cta,
    /// CTA position in the grid.
    CtaX,
    /// CTA position in the grid.
    CtaY,
    /// CTA position in the grid.
    CtaZ,
    /// Launch of the kernel in the workload, from 0.
    Launch,
    /// Index of the enclosing loop at this depth.
    Loop(u8),
}

/// Over how much of a launch an expression has one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reach {
    /// All warps of a CTA.
    Cta,
    /// All lanes of a warp.
    Warp,
    /// One lane.
    Lane,
}

impl Variable {
    fn reach(self) -> Reach {
        match self {
            Self::Lane
            | Self::Thread
            | Self::ThreadX
            | Self::ThreadY
            | Self::ThreadZ
            | Self::Global => Reach::Lane,
            Self::Warp => Reach::Warp,
            Self::Cta | Self::CtaX | Self::CtaY | Self::CtaZ | Self::Launch | Self::Loop(_) => {
                Reach::Cta
            }
        }
    }
}

/// An expression over launch positions and loop indices. Arithmetic wraps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LaneExpression {
    /// The same everywhere.
    Constant(i64),
    /// A position or a loop index.
    Variable(Variable),
    /// Two operands; a divisor is a constant other than 0.
    Binary(Operator, Box<(Self, Self)>),
    /// Condition, value where it is not 0, value where it is.
    Select(Box<(Self, Self, Self)>),
    /// A number that depends on the seed and the keys alone.
    Draw {
        /// Seed and the constant keys, mixed.
        seed: u64,
        /// What selects the number.
        keys: Box<[Self]>,
        /// How often each number comes.
        distribution: Distribution,
    },
}

/// The position of a warp at which an expression is evaluated.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scope<'a> {
    /// Threads of a CTA.
    pub(super) block: Dim3,
    /// The CTA's position.
    pub(super) position: Dim3,
    /// The CTA's number.
    pub(super) cta: u64,
    /// Warp in the CTA.
    pub(super) warp: u32,
    /// Launch of the kernel, from 0.
    pub(super) launch: u32,
    /// Indices of the enclosing loops, outermost first.
    pub(super) loops: &'a [i64],
}

/// The values of an expression in the lanes of a warp.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::large_enum_variant, reason = "lives on the stack for one instruction")]
pub(super) enum Lanes {
    /// One value in every lane.
    Same(i64),
    /// A value in lane 0 and what every further lane adds.
    Step(i64, i64),
    /// One value per lane.
    Each([i64; WARP_LANES]),
}

impl Lanes {
    /// The value in `lane`.
    pub(super) fn get(&self, lane: usize) -> i64 {
        match self {
            Self::Same(value) => *value,
            Self::Step(first, step) => {
                first.wrapping_add(step.wrapping_mul(i64::from(to_u32(lane))))
            }
            Self::Each(values) => values[lane],
        }
    }

    /// The values, one per lane.
    pub(super) fn each(&self) -> [i64; WARP_LANES] {
        match self {
            Self::Same(value) => [*value; WARP_LANES],
            Self::Step(first, step) => {
                let mut next = *first;
                std::array::from_fn(|_| {
                    let value = next;
                    next = next.wrapping_add(*step);
                    value
                })
            }
            Self::Each(values) => *values,
        }
    }

    /// The lanes in which `test` holds.
    pub(super) fn mask(&self, test: impl Fn(i64) -> bool) -> u32 {
        if let Self::Same(value) = self {
            return u32::MAX * u32::from(test(*value));
        }
        let bit = |(lane, &value): (usize, &i64)| u32::from(test(value)) << lane;
        self.each().iter().enumerate().map(bit).fold(0, |mask, bit| mask | bit)
    }

    /// The operator in every lane.
    fn combine(operator: Operator, left: &Self, right: &Self) -> Self {
        let (l, r) = match (left, right) {
            (Self::Same(left), Self::Same(right)) => {
                return Self::Same(operator.wrapping(*left, *right));
            }
            (Self::Same(left), Self::Step(first, step)) => ((*left, 0), (*first, *step)),
            (Self::Step(first, step), Self::Same(right)) => ((*first, *step), (*right, 0)),
            (Self::Step(first, step), Self::Step(other, by)) => ((*first, *step), (*other, *by)),
            _ => return Self::apply_each(operator, left, right),
        };
        // Steps stay steps under sums and under products with one value.
        let linear = match operator {
            Operator::Add | Operator::Subtract => true,
            Operator::Multiply => l.1 == 0 || r.1 == 0,
            Operator::ShiftLeft => r.1 == 0,
            _ => false,
        };
        if !linear {
            return Self::apply_each(operator, left, right);
        }
        let step = match operator {
            Operator::Multiply if l.1 == 0 => operator.wrapping(l.0, r.1),
            Operator::Multiply | Operator::ShiftLeft => operator.wrapping(l.1, r.0),
            _ => operator.wrapping(l.1, r.1),
        };
        Self::Step(operator.wrapping(l.0, r.0), step)
    }

    fn apply_each(operator: Operator, left: &Self, right: &Self) -> Self {
        let (left, right) = (left.each(), right.each());
        // A loop per operator, so that lanes do not each choose one.
        macro_rules! loops {
            ($($name:ident)*) => {
                match operator {
                    $(Operator::$name => {
                        each(|lane| Operator::$name.wrapping(left[lane], right[lane]))
                    })*
                }
            };
        }
        loops!(
            Multiply Divide Remainder Add Subtract ShiftLeft ShiftRight BitAnd BitXor BitOr Equal
            Unequal Less Greater AtMost AtLeast And Or Minimum Maximum
        )
    }
}

impl LaneExpression {
    /// The value where it is the same everywhere.
    pub(super) fn constant(&self) -> Option<i64> {
        if let Self::Constant(value) = self { Some(*value) } else { None }
    }

    /// Over how much of a launch the value is the same.
    pub(super) fn reach(&self) -> Reach {
        match self {
            Self::Constant(_) => Reach::Cta,
            Self::Variable(variable) => variable.reach(),
            Self::Binary(_, operands) => operands.0.reach().max(operands.1.reach()),
            Self::Select(parts) => parts.0.reach().max(parts.1.reach()).max(parts.2.reach()),
            Self::Draw { keys, .. } => keys.iter().map(Self::reach).max().unwrap_or(Reach::Cta),
        }
    }

    /// The values in the lanes of the warp at `scope`.
    pub(super) fn lanes(&self, scope: &Scope<'_>) -> Lanes {
        match self {
            Self::Constant(value) => Lanes::Same(*value),
            Self::Variable(variable) => read(*variable, scope),
            Self::Binary(operator, operands) => {
                Lanes::combine(*operator, &operands.0.lanes(scope), &operands.1.lanes(scope))
            }
            Self::Select(parts) => {
                let condition = parts.0.lanes(scope);
                if let Lanes::Same(value) = condition {
                    return if value == 0 { &parts.2 } else { &parts.1 }.lanes(scope);
                }
                let (yes, no) = (parts.1.lanes(scope), parts.2.lanes(scope));
                each(|lane| if condition.get(lane) == 0 { &no } else { &yes }.get(lane))
            }
            Self::Draw { seed, keys, distribution } => draw_lanes(*seed, keys, distribution, scope),
        }
    }
}

fn each(value: impl Fn(usize) -> i64) -> Lanes {
    Lanes::Each(std::array::from_fn(value))
}

fn read(variable: Variable, scope: &Scope<'_>) -> Lanes {
    let first = scope.warp * to_u32(WARP_LANES);
    let same = |value: u64| Lanes::Same(value.cast_signed());
    match variable {
        Variable::Lane => Lanes::Step(0, 1),
        Variable::Thread => Lanes::Step(i64::from(first), 1),
        Variable::ThreadX | Variable::ThreadY | Variable::ThreadZ => {
            read_thread(variable, first, scope.block)
        }
        Variable::Global => {
            let start = scope.cta.wrapping_mul(scope.block.count()).cast_signed();
            Lanes::Step(start.wrapping_add(i64::from(first)), 1)
        }
        Variable::Warp => same(u64::from(scope.warp)),
        Variable::Cta => same(scope.cta),
        Variable::CtaX => same(u64::from(scope.position.x)),
        Variable::CtaY => same(u64::from(scope.position.y)),
        Variable::CtaZ => same(u64::from(scope.position.z)),
        Variable::Launch => same(u64::from(scope.launch)),
        Variable::Loop(depth) => Lanes::Same(scope.loops[usize::from(depth)]),
    }
}

/// A thread position for the warp that starts at thread `first`.
fn read_thread(variable: Variable, first: u32, block: Dim3) -> Lanes {
    let (width, height) = (block.x, block.y);
    let value = |thread: u32| {
        i64::from(match variable {
            Variable::ThreadX => thread % width,
            Variable::ThreadY => thread / width % height,
            _ => thread / width / height,
        })
    };
    // A warp within one row of the CTA needs one division, not 32.
    if width.is_multiple_of(to_u32(WARP_LANES)) {
        let start = value(first);
        let along = variable == Variable::ThreadX;
        return if along { Lanes::Step(start, 1) } else { Lanes::Same(start) };
    }
    each(|lane| value(first + to_u32(lane)))
}

fn draw_lanes(
    seed: u64,
    keys: &[LaneExpression],
    distribution: &Distribution,
    scope: &Scope<'_>,
) -> Lanes {
    let keys: Vec<Lanes> = keys.iter().map(|key| key.lanes(scope)).collect();
    let number = |lane| {
        let state = keys.iter().fold(seed, |state, key| mix_in(state, key.get(lane)));
        distribution.draw(state)
    };
    if keys.iter().all(|key| matches!(key, Lanes::Same(_))) {
        return Lanes::Same(number(0));
    }
    each(number)
}

#[cfg(test)]
mod tests {
    use super::{Distribution, LaneExpression, Lanes, Scope, Variable};
    use gpumodel_core::expression::SYMBOLS;
    use gpumodel_core::units::Dim3;

    fn scope() -> Scope<'static> {
        let (block, position) = (Dim3::new(8, 4, 4), Dim3::new(1, 2, 0));
        Scope { block, position, cta: 7, warp: 1, launch: 0, loops: &[5] }
    }

    #[test]
    fn thread_positions_count_x_fastest() {
        let at = |variable| LaneExpression::Variable(variable).lanes(&scope()).get(9);
        assert_eq!(at(Variable::Lane), 9);
        assert_eq!(at(Variable::Thread), 41);
        assert_eq!(
            (at(Variable::ThreadX), at(Variable::ThreadY), at(Variable::ThreadZ)),
            (1, 1, 1)
        );
        assert_eq!(at(Variable::Global), 7 * 128 + 41);
        assert_eq!(at(Variable::Loop(0)), 5);
    }

    #[test]
    fn steps_are_what_every_lane_computes() {
        let values =
            [Lanes::Same(-3), Lanes::Same(5), Lanes::Step(7, 4), Lanes::Step(-9, i64::MAX)];
        for &(_, operator, _) in &SYMBOLS {
            for (left, right) in values.iter().flat_map(|l| values.iter().map(move |r| (l, r))) {
                let combined = Lanes::combine(operator, left, right);
                for lane in 0..32 {
                    let alone = operator.wrapping(left.get(lane), right.get(lane));
                    assert_eq!(combined.get(lane), alone, "{operator:?} {left:?} {right:?}");
                    assert_eq!(combined.each()[lane], alone);
                }
            }
        }
    }

    #[test]
    fn hashed_numbers_fill_their_range_evenly() {
        let keys: Box<[_]> = [LaneExpression::Variable(Variable::Loop(0))].into();
        let hash = LaneExpression::Draw { seed: 3, keys, distribution: Distribution::Even(10) };
        let mut counts = [0_u32; 10];
        for k in 0..10_000 {
            let Lanes::Same(value) = hash.lanes(&Scope { loops: &[k], ..scope() }) else {
                panic!("a warp-wide key gives a warp-wide number");
            };
            counts[usize::try_from(value).unwrap()] += 1;
        }
        // 10 000 draws over 10 numbers: 1000 each, standard deviation 30.
        assert!(counts.iter().all(|count| (880..1120).contains(count)), "{counts:?}");
    }
}
