//! Dependency states: what is still in flight when a stretch begins.

use rustc_hash::FxHashMap;

use gpumodel_core::isa::Register;
use gpumodel_core::units::{to_u32, to_usize};

/// A number for a [`State`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct StateId(u32);

impl StateId {
    /// The state of that place in the table.
    pub(super) fn new(number: u32) -> Self {
        Self(number)
    }

    /// Its place in the table.
    pub(super) fn number(self) -> u32 {
        self.0
    }
}

/// A place in a warp where the completion of one outstanding load is noted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct SlotId(pub(crate) u8);

/// What is in flight, in canonical form: lists sorted, times counted from the
/// last issue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct State {
    /// Registers whose results are not ready, with the cycles left.
    pub(super) results: Vec<(Register, u32)>,
    /// Registers that an outstanding load will write.
    pub(super) loads: Vec<(Register, SlotId)>,
    /// Units whose issue port is taken, with the cycles left.
    pub(super) units: Vec<(u8, u32)>,
    /// Cycles before the next instruction may issue at all (branch, refetch).
    pub(super) hold: u32,
    /// Instructions issued in the cycle of the last issue.
    pub(super) issued: u32,
    /// Instructions taken from the instruction buffer since its refill.
    pub(super) fetched: u32,
}

impl State {
    /// The same after a long wait: only loads are still in flight.
    pub(super) fn settled(&self) -> Self {
        Self { loads: self.loads.clone(), ..Self::default() }
    }
}

/// Every state met so far.
#[derive(Debug)]
pub(super) struct StateTable {
    states: Vec<State>,
    numbers: FxHashMap<State, StateId>,
}

impl StateTable {
    /// The state in which nothing is in flight.
    pub(super) const FRESH: StateId = StateId(0);

    /// A table with [`StateTable::FRESH`] in it.
    pub(super) fn new() -> Self {
        let mut table = Self { states: Vec::new(), numbers: FxHashMap::default() };
        table.intern(State::default());
        table
    }

    /// A table of exactly these states in this order; `None` when one comes twice
    /// or the first is not [`StateTable::FRESH`].
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

    /// The number of a state, new if it is.
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
