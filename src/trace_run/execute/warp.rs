//! The state of a warp: registers, predicates, and where its lanes are.

use gpumodel_core::units::WARP_LANES;
use gpumodel_trace::WarpRecord;

use super::lanes::Lanes;
use crate::Exception;

/// Registers of a thread, with the one that reads as zero.
const REGISTERS: usize = 256;
/// Uniform registers, with the one that reads as zero.
const UNIFORMS: usize = 64;
/// Convergence barriers.
pub(crate) const BARRIERS: usize = 16;

/// Why lanes wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// They do not.
    Ready,
    /// At a convergence barrier: its number, and the lanes that it joins.
    Converge(u8, u32),
    /// For all these lanes to arrive at such an instruction.
    Warp(u32),
    /// At a barrier of the CTA.
    Cta(u8),
    /// At the barrier of the cluster.
    Cluster,
    /// For the phase of a barrier object, which they ask for again at their next turn.
    Object,
}

/// How the instruction at hand changes the turn of its warp.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Pause {
    /// Not at all.
    #[default]
    No,
    /// It is done again at the next turn, as if it had not run.
    Again,
    /// It ends the turn.
    Turn,
    /// It ends the turn unless other lanes of the warp can go on.
    Rest,
}

/// Lanes at the same place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Split {
    /// Index of the next instruction.
    pub(crate) at: usize,
    pub(crate) mask: u32,
    pub(crate) wait: Wait,
    /// The lanes that have gone on with these and with no others since they met; 0: any may join.
    pub(crate) apart: u32,
}

/// A warp.
pub(crate) struct Warp {
    pub(crate) registers: Box<[Lanes; REGISTERS]>,
    pub(crate) predicates: [u32; 8],
    uniforms: [u32; UNIFORMS],
    pub(crate) uniform_predicates: [u32; 8],
    /// Per barrier and lane: the lanes that it joins.
    pub(crate) barriers: Box<[Lanes; BARRIERS]>,
    pub(crate) splits: Vec<Split>,
    /// Lanes that have not ended.
    pub(crate) alive: u32,
    /// Position of each thread in its CTA.
    pub(crate) threads: [Lanes; 3],
    /// Number in its CTA.
    pub(crate) number: u32,
    /// Local memory, lane after lane.
    pub(crate) local: Vec<u8>,
    pub(crate) local_bytes: usize,
    /// The addresses of the instruction that ran last.
    pub(crate) addresses: [u64; WARP_LANES],
    /// What the last barrier with a reduction gave: count, all, any.
    pub(crate) reduced: [u32; 3],
    /// Whether that asked for all, not for any.
    pub(crate) reduces_all: bool,
    /// Lanes that arrived at the barrier of the cluster since it was complete last.
    pub(crate) at_cluster: u32,
    pub(crate) record: Option<WarpRecord>,
    /// What the trace has of the instruction at hand beyond its addresses.
    pub(crate) fields: String,
    pub(crate) pause: Pause,
    /// Its last turn ended because it waits or spins.
    pub(crate) idle: bool,
    pub(crate) spin: Spin,
    /// The next wait for a phase ends in any case: its time is over.
    pub(crate) gives_up: bool,
    /// Instructions so far.
    pub(crate) executed: u64,
    /// What the device raises for the instruction at hand, whose error says more.
    pub(crate) exception: Option<Exception>,
}

/// Sleeps in a row, with no write between, that are a wait.
const SLEEPS: u32 = 4;

/// Whether a warp goes round a loop in which nothing changes: it waits for what others write.
#[derive(Debug, Default)]
pub(crate) struct Spin {
    /// Lanes jumped back.
    pub(crate) back: bool,
    /// They read memory since they jumped back last.
    pub(crate) reads: bool,
    /// Writes and arrivals at barriers so far.
    pub(crate) writes: u64,
    /// The last turn ended because it spins.
    pub(crate) found: bool,
    /// Rounds in a row that took as many instructions as the one before, with the same place read
    /// and nothing written.
    rounds: u32,
    last: [u64; 3],
    executed: u64,
    /// Sleeps since the last write, and the writes until then.
    sleeps: u32,
    slept: u64,
    seen: Box<Seen>,
}

/// All that decides what a warp does next, unless memory changes.
#[derive(Debug, Default)]
struct Seen {
    splits: Vec<Split>,
    predicates: [[u32; 8]; 2],
    uniforms: Vec<u32>,
    lanes: Vec<Lanes>,
}

/// What of a warp is taken again by later ones; all zero.
pub(crate) struct WarpMemory {
    registers: Box<[Lanes; REGISTERS]>,
    barriers: Box<[Lanes; BARRIERS]>,
    local: Vec<u8>,
}

impl Default for WarpMemory {
    fn default() -> Self {
        let barriers = Box::new([[0; WARP_LANES]; BARRIERS]);
        Self { registers: zeros(), barriers, local: Vec::new() }
    }
}

impl WarpMemory {
    /// Zero again, after a warp whose code names no register from `used` on.
    pub(crate) fn cleared(mut self, used: usize) -> Self {
        self.registers.iter_mut().take(used).for_each(|one| *one = [0; WARP_LANES]);
        self.barriers.iter_mut().for_each(|one| *one = [0; WARP_LANES]);
        self.local.fill(0);
        self
    }
}

impl Warp {
    /// A warp at the instruction `entry`, of the lanes of `alive`.
    pub(crate) fn new(
        number: u32,
        alive: u32,
        threads: [Lanes; 3],
        entry: usize,
        WarpMemory { registers, barriers, local }: WarpMemory,
    ) -> Self {
        Self {
            registers,
            predicates: [0, 0, 0, 0, 0, 0, 0, u32::MAX],
            uniforms: [0; UNIFORMS],
            uniform_predicates: [0, 0, 0, 0, 0, 0, 0, u32::MAX],
            barriers,
            splits: vec![Split { at: entry, mask: alive, wait: Wait::Ready, apart: 0 }],
            alive,
            threads,
            number,
            local,
            local_bytes: 0,
            addresses: [0; WARP_LANES],
            reduced: [0; 3],
            at_cluster: 0,
            reduces_all: false,
            record: None,
            fields: String::new(),
            pause: Pause::No,
            idle: false,
            spin: Spin::default(),
            gives_up: false,
            executed: 0,
            exception: None,
        }
    }

    /// What it leaves for another warp when it has ended.
    pub(crate) fn memory(self) -> WarpMemory {
        WarpMemory { registers: self.registers, barriers: self.barriers, local: self.local }
    }

    pub(crate) fn uniform(&self, number: u8) -> u32 {
        self.uniforms[usize::from(number) % UNIFORMS]
    }

    pub(crate) fn set_uniform(&mut self, number: u8, value: u32) {
        if usize::from(number) < UNIFORMS - 1 {
            self.uniforms[usize::from(number)] = value;
        }
    }

    /// Whether lanes wait so.
    pub(crate) fn waits(&self, wait: Wait) -> bool {
        self.splits.iter().any(|split| split.wait == wait)
    }

    /// Lanes that wait for phases of barrier objects ask again.
    pub(crate) fn retry(&mut self) {
        if self.waits(Wait::Object) {
            for split in self.splits.iter_mut().filter(|split| split.wait == Wait::Object) {
                split.wait = Wait::Ready;
            }
            self.merge();
        }
    }

    /// After a jump back, with `lane` at it, of code with so many registers: whether the warp is as
    /// it was after an earlier one and wrote nothing since, so that it waits for others.
    pub(crate) fn spins(&mut self, lane: usize, registers: usize) -> bool {
        let spin = &mut self.spin;
        let place = self.addresses[lane % WARP_LANES];
        let round = [self.executed - spin.executed, place, spin.writes];
        let same = std::mem::take(&mut spin.reads) && spin.last == round;
        (spin.last, spin.executed) = (round, self.executed);
        if !same {
            spin.rounds = 0;
            return false;
        }
        spin.rounds = spin.rounds.saturating_add(1);
        if spin.rounds > 1 && self.is_seen(registers) {
            return true;
        }
        if self.spin.rounds.is_power_of_two() {
            self.see(registers);
        }
        false
    }

    fn is_seen(&self, registers: usize) -> bool {
        let seen = &self.spin.seen;
        let lanes = self.registers.iter().take(registers).chain(self.barriers.iter());
        seen.splits == self.splits
            && seen.predicates == [self.predicates, self.uniform_predicates]
            && seen.uniforms == self.uniforms
            && seen.lanes.iter().eq(lanes)
    }

    fn see(&mut self, registers: usize) {
        let seen = &mut self.spin.seen;
        seen.splits.clone_from(&self.splits);
        seen.predicates = [self.predicates, self.uniform_predicates];
        seen.uniforms.clear();
        seen.uniforms.extend_from_slice(&self.uniforms);
        seen.lanes.clear();
        seen.lanes.extend(self.registers.iter().take(registers).chain(self.barriers.iter()));
    }

    /// Lanes sleep: whether they do so again and again, and wait for others.
    pub(crate) fn sleeps(&mut self) -> bool {
        let spin = &mut self.spin;
        if std::mem::replace(&mut spin.slept, spin.writes) != spin.writes {
            spin.sleeps = 0;
        }
        spin.sleeps = spin.sleeps.saturating_add(1);
        spin.sleeps >= SLEEPS
    }

    /// Joins splits that are ready at the same place.
    pub(crate) fn merge(&mut self) {
        let mut merged: Vec<Split> = Vec::with_capacity(self.splits.len());
        for split in self.splits.drain(..) {
            let place = |split: &Split| (split.at, split.wait, split.apart);
            let same = |one: &&mut Split| split.wait == Wait::Ready && place(one) == place(&split);
            match merged.iter_mut().find(same) {
                Some(one) => one.mask |= split.mask,
                None if split.mask != 0 => merged.push(split),
                None => {}
            }
        }
        self.splits = merged;
    }

    /// Records an execution of the instruction `number` by the lanes of `mask`.
    #[inline(always)]
    pub(crate) fn note(&mut self, number: usize, addressed: bool, mask: u32) {
        let Some(record) = &mut self.record else { return };
        record.push(u32::try_from(number).unwrap_or(u32::MAX), mask);
        if addressed {
            record.addresses(mask, &self.addresses);
        }
        if !self.fields.is_empty() {
            record.fields(&self.fields);
            self.fields.clear();
        }
    }
}

fn zeros() -> Box<[Lanes; REGISTERS]> {
    let zeros = vec![[0; WARP_LANES]; REGISTERS].into_boxed_slice();
    zeros.try_into().expect("so many were made")
}
