//! The dependency states of a warp between stretches: results, loads and busy units.

use gpumodel_core::isa::{Register, Unit};
use gpumodel_core::units::{to_u32, to_usize};
use rustc_hash::FxHashMap;

use super::StretchEnd;
use super::decode::{accumulators, age_of};

/// Units whose results warps wait for by a counter, as for loads: their latency varies.
pub(super) fn has_variable_latency(unit: Unit) -> bool {
    matches!(unit, Unit::Sfu | Unit::Texture)
}

/// The same of a unit's number.
fn varies(unit: u8) -> bool {
    let mut varying = Unit::ALL.into_iter().filter(|&unit| has_variable_latency(unit));
    varying.any(|other| other.index() == usize::from(unit))
}

/// A result that not all units have yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Pending {
    pub(super) register: Register,
    /// The cycle from which on every unit has it, or the cycles until then.
    pub(super) gone: u32,
    pub(super) from: Origin,
}

/// Where a result comes from, as far as it matters to its readers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Origin {
    /// All readers have it at once.
    Any,
    /// A unit of variable latency, for which the warp leaves its scheduler's active ones.
    Variable,
    /// The integer unit, from which others have it later.
    Int,
    /// The FP32 unit, likewise.
    Fp32,
}

impl Pending {
    /// The same with another count of its time; `None` where that has passed.
    fn counted_by(&self, count: impl Fn(u32) -> Option<u32>) -> Option<Self> {
        Some(Self { gone: count(self.gone)?, ..*self })
    }
}

/// The number of a [`State`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct StateId(pub(super) u32);

/// A slot of a warp for one outstanding load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct SlotId(pub(crate) u8);

/// A dependency state: what is in flight, in canonical form: lists sorted, times counted from
/// the last issue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct State {
    /// Results that not all units have yet.
    pub(super) results: Vec<Pending>,
    /// Registers that an outstanding load will write.
    pub(super) loads: Vec<(Register, SlotId)>,
    /// Units whose issue port is busy, with the cycles left.
    pub(super) units: Vec<(u8, u32)>,
    /// Cycles before any instruction may issue (branch, refetch).
    pub(super) hold: u32,
    /// Instructions issued in the cycle of the last issue.
    pub(super) issued: u32,
    /// Instructions issued from the instruction buffer since its refill.
    pub(super) fetched: u32,
}

impl State {
    /// A result that is on its way.
    pub(super) fn write(&mut self, result: Pending) {
        self.results.retain(|other| other.register != result.register);
        self.results.push(result);
    }

    /// Ends the open group of matrix multiplies: all groups are one older.
    pub(super) fn end_matrix_group(&mut self) {
        let (groups, mut results): (Vec<_>, Vec<_>) =
            self.results.iter().copied().partition(|one| age_of(one.register).is_some());
        for group in groups {
            let older = accumulators(age_of(group.register).unwrap_or(0) + 1);
            match results.iter_mut().find(|one| one.register == older) {
                Some(one) => one.gone = group.gone.max(one.gone),
                None => results.push(Pending { register: older, ..group }),
            }
        }
        self.results = results;
    }

    /// The same after the wait at the end of a stretch. Where it is of unknown length, only loads
    /// are still in flight; after one for a unit of variable latency its time has passed.
    pub(super) fn after(&self, end: StretchEnd) -> Self {
        let StretchEnd::Result(cycles) = end else {
            return Self { loads: self.loads.clone(), ..Self::default() };
        };
        let busy = self.units.iter().filter(|&&(unit, _)| varies(unit)).map(|&(_, left)| left);
        let passed = busy.fold(cycles, u32::max);
        let left = |at: u32| at.checked_sub(passed).filter(|&left| left > 0);
        let units = self.units.iter().filter(|&&(unit, _)| !varies(unit));
        let results = self.results.iter();
        Self {
            results: results.filter_map(|one| one.counted_by(left)).collect(),
            units: units.filter_map(|&(u, at)| Some((u, left(at)?))).collect(),
            hold: left(self.hold).unwrap_or(0),
            loads: self.loads.clone(),
            ..Self::default()
        }
    }

    /// Counts all times from cycle `last` on, in canonical form.
    pub(super) fn count_from(&mut self, last: u32) {
        let later = |at: u32| at.checked_sub(last).filter(|&left| left > 0);
        self.results = self.results.iter().filter_map(|one| one.counted_by(later)).collect();
        self.units = self.units.iter().filter_map(|&(u, at)| Some((u, later(at)?))).collect();
        self.hold = later(self.hold).unwrap_or(0);
        self.results.sort_unstable();
        self.loads.sort_unstable();
        self.units.sort_unstable();
    }
}

/// All states so far.
#[derive(Debug)]
pub(super) struct StateTable {
    states: Vec<State>,
    numbers: FxHashMap<State, StateId>,
}

impl StateTable {
    /// The state in which nothing is in flight.
    pub(super) const FRESH: StateId = StateId(0);

    /// A table with [`StateTable::FRESH`].
    pub(super) fn new() -> Self {
        let mut table = Self { states: Vec::new(), numbers: FxHashMap::default() };
        table.intern(State::default());
        table
    }

    /// A table of exactly these states in this order; `None` when one occurs twice or the first
    /// is not [`StateTable::FRESH`].
    pub(super) fn of(states: Vec<State>) -> Option<Self> {
        let mut table = Self::new();
        for (number, state) in (0..).zip(states) {
            if table.intern(state) != StateId(number) {
                return None;
            }
        }
        Some(table)
    }

    /// Every state in the order of their numbers.
    pub(super) fn all(&self) -> &Vec<State> {
        &self.states
    }

    /// True when a number names a state.
    pub(super) fn holds(&self, id: StateId) -> bool {
        to_usize(id.0) < self.states.len()
    }

    /// The state of a number.
    pub(super) fn get(&self, id: StateId) -> &State {
        &self.states[to_usize(id.0)]
    }

    /// The number of a state, which is added if it is new.
    pub(super) fn intern(&mut self, state: State) -> StateId {
        if let Some(&id) = self.numbers.get(&state) {
            return id;
        }
        let id = StateId(to_u32(self.states.len()));
        self.states.push(state.clone());
        self.numbers.insert(state, id);
        id
    }
}
