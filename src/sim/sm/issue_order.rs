//! In which order a scheduler's policy looks at what its warps ask for.

use super::issue_bandwidth::Claim;

/// One claim's turn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    /// What turns are ordered by.
    key: u64,
    /// Its place among the claims.
    pub(super) place: usize,
    /// Resources that it asks for, one bit each.
    pub(super) asks: u32,
}

/// The turns of a scheduler's claims, by the keys that its policy gave; equal ones as they
/// came.
#[derive(Debug, Default)]
pub(super) struct IssueOrder {
    all: Vec<Turn>,
}

impl IssueOrder {
    /// `claim` is new, at the end, which is `place`.
    pub(super) fn enter(&mut self, claim: &Claim, place: usize, key: u64) {
        let behind = self.all.iter().position(|other| other.key > key);
        let turn = Turn { key, place, asks: claim.asks() };
        self.all.insert(behind.unwrap_or(self.all.len()), turn);
    }

    /// The claim at `place` is taken out, those behind it move up.
    pub(super) fn leave(&mut self, place: usize) {
        self.all.retain(|turn| turn.place != place);
        for turn in &mut self.all {
            turn.place -= usize::from(turn.place > place);
        }
    }

    /// All turns, the one at place `first` before all others.
    pub(super) fn behind(&self, first: Option<usize>) -> impl Iterator<Item = Turn> {
        let is_first = move |turn: &&Turn| Some(turn.place) == first;
        let before = first.and_then(|_| self.all.iter().find(is_first));
        before.into_iter().chain(self.all.iter().filter(move |turn| !is_first(turn))).copied()
    }

    /// The places in order.
    pub(super) fn places(&self) -> impl Iterator<Item = usize> {
        self.all.iter().map(|turn| turn.place)
    }
}
