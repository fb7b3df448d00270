//! A profile as plain words, to be kept between runs.
//!
//! An image belongs to one code on one machine and one build of the program;
//! whoever keeps it sees to that. Taking one in changes no result: a stretch
//! that is known is not walked again. What does not fit the code is refused.

use rustc_hash::FxHashMap;

use super::state::{SlotId, State, StateId, StateTable};
use super::{BarrierOperands, Demand, Gaps, Key, Mix, Profile, Step, StepEnd, Stretch, StretchEnd};
use gpumodel_core::isa::Register;
use gpumodel_core::units::{to_u32, to_usize};

/// The stretches found of one code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProfileImage(Vec<u32>);

impl ProfileImage {
    /// An image of those words; any are allowed.
    #[must_use]
    pub fn new(words: Vec<u32>) -> Self {
        Self(words)
    }

    /// Its words.
    #[must_use]
    pub fn words(&self) -> &[u32] {
        &self.0
    }
}

impl Profile {
    /// All stretches found so far.
    pub(crate) fn image(&self) -> ProfileImage {
        let mut words = Vec::new();
        self.states.all().put(&mut words);
        self.steps.put(&mut words);
        self.stretches.put(&mut words);
        self.keys.put(&mut words);
        ProfileImage(words)
    }

    /// True when stretches have been found that no image brought.
    pub(crate) fn has_grown(&self) -> bool {
        self.stretches.len() > self.known
    }

    /// Takes in the stretches of an image; nothing happens when it is no image of
    /// this code or stretches have been found already.
    pub(crate) fn take_in(&mut self, image: &ProfileImage) {
        let mut words = Words(&image.0);
        let Some(parts) = <(_, Vec<Stretch>)>::take(&mut words) else { return };
        let ((states, steps), stretches): ((Vec<State>, Vec<Step>), _) = parts;
        let Some(keys) = Vec::<Key>::take(&mut words) else { return };
        let Some(states) = StateTable::of(states) else { return };
        let whole = words.0.is_empty() && keys.len() == stretches.len();
        let begins = keys.iter().zip(&stretches);
        let fit = steps.iter().all(|step| self.holds_step(step))
            && stretches.iter().all(|one| holds_stretch(one, steps.len(), &states))
            && begins.into_iter().all(|(key, stretch)| self.holds_key(*key, stretch, &states));
        let memo: FxHashMap<_, _> = keys.iter().copied().zip(0..).collect();
        if self.stretches.is_empty() && whole && fit && memo.len() == keys.len() {
            self.known = stretches.len();
            (self.states, self.steps, self.stretches) = (states, steps, stretches);
            (self.keys, self.memo) = (keys, memo);
        }
    }

    /// Whether a step is made of instructions of the code.
    fn holds_step(&self, step: &Step) -> bool {
        let inside = |end: u32| to_usize(end) <= self.code.instructions.len();
        let last = match step.end {
            StepEnd::Stretch => true,
            StepEnd::Access { instruction, .. } => inside(instruction.saturating_add(1)),
        };
        let end = step.instruction.checked_add(step.slots);
        last && step.slots > 0 && end.is_some_and(inside) && step.cycles.is_finite()
    }

    /// Whether a stretch that begins at `key` lies in a segment of the code.
    fn holds_key(
        &self,
        (segment, offset, state): Key,
        stretch: &Stretch,
        states: &StateTable,
    ) -> bool {
        let whole = self.code.segments.get(to_usize(segment));
        let inside = whole.is_some_and(|segment| stretch.offset <= segment.length);
        inside && offset <= stretch.offset && states.holds(state)
    }
}

/// Whether the numbers of a stretch name steps and states that are there.
fn holds_stretch(stretch: &Stretch, steps: usize, states: &StateTable) -> bool {
    let end = stretch.first.checked_add(stretch.count);
    end.is_some_and(|end| to_usize(end) <= steps)
        && states.holds(stretch.ready)
        && states.holds(stretch.settled)
}

/// Words not read yet.
struct Words<'a>(&'a [u32]);

impl Words<'_> {
    fn next(&mut self) -> Option<u32> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }
}

/// What can be put into words and taken out again.
trait Kept: Sized {
    fn put(&self, words: &mut Vec<u32>);
    fn take(words: &mut Words<'_>) -> Option<Self>;
}

impl Kept for u32 {
    fn put(&self, words: &mut Vec<u32>) {
        words.push(*self);
    }

    fn take(words: &mut Words<'_>) -> Option<Self> {
        words.next()
    }
}

impl<T: Kept> Kept for Vec<T> {
    fn put(&self, words: &mut Vec<u32>) {
        words.push(to_u32(self.len()));
        self.iter().for_each(|one| one.put(words));
    }

    fn take(words: &mut Words<'_>) -> Option<Self> {
        // Every element takes a word or more: a count beyond them is damage.
        let count = to_usize(words.next()?);
        (count <= words.0.len()).then_some(())?;
        (0..count).map(|_| T::take(words)).collect()
    }
}

impl<A: Kept, B: Kept> Kept for (A, B) {
    fn put(&self, words: &mut Vec<u32>) {
        self.0.put(words);
        self.1.put(words);
    }

    fn take(words: &mut Words<'_>) -> Option<Self> {
        Some((A::take(words)?, B::take(words)?))
    }
}

impl<T: Kept + Copy + Default, const N: usize> Kept for [T; N] {
    fn put(&self, words: &mut Vec<u32>) {
        self.iter().for_each(|one| one.put(words));
    }

    fn take(words: &mut Words<'_>) -> Option<Self> {
        let mut all = [T::default(); N];
        for one in &mut all {
            *one = T::take(words)?;
        }
        Some(all)
    }
}

impl Kept for u8 {
    fn put(&self, words: &mut Vec<u32>) {
        words.push((*self).into());
    }

    fn take(words: &mut Words<'_>) -> Option<Self> {
        Self::try_from(words.next()?).ok()
    }
}

impl Kept for u16 {
    fn put(&self, words: &mut Vec<u32>) {
        words.push((*self).into());
    }

    fn take(words: &mut Words<'_>) -> Option<Self> {
        Self::try_from(words.next()?).ok()
    }
}

impl Kept for Register {
    fn put(&self, words: &mut Vec<u32>) {
        self.bits().put(words);
    }

    fn take(words: &mut Words<'_>) -> Option<Self> {
        u16::take(words).map(Self::from_bits)
    }
}

impl Kept for SlotId {
    fn put(&self, words: &mut Vec<u32>) {
        self.0.put(words);
    }

    fn take(words: &mut Words<'_>) -> Option<Self> {
        u8::take(words).map(Self)
    }
}

impl Kept for State {
    fn put(&self, words: &mut Vec<u32>) {
        let Self { results, loads, units, hold, issued, fetched } = self;
        results.put(words);
        loads.put(words);
        units.put(words);
        [*hold, *issued, *fetched].put(words);
    }

    fn take(words: &mut Words<'_>) -> Option<Self> {
        let (results, loads, units) = (Vec::take(words)?, Vec::take(words)?, Vec::take(words)?);
        let [hold, issued, fetched] = Kept::take(words)?;
        Some(Self { results, loads, units, hold, issued, fetched })
    }
}

impl Kept for Step {
    fn put(&self, words: &mut Vec<u32>) {
        let Self { cycles, slots, instruction, demand, gaps, mix, unknown, constants, end } = self;
        let Gaps { fetch, registers, units } = gaps;
        [cycles.to_bits(), *slots, *instruction, *fetch, *registers, *units].put(words);
        demand.put(words);
        mix.put(words);
        [*unknown, *constants].put(words);
        match *end {
            StepEnd::Stretch => [0_u32; 3].put(words),
            StepEnd::Access { instruction, slot: None } => [1, instruction, 0].put(words),
            StepEnd::Access { instruction, slot: Some(slot) } => {
                [2, instruction, slot.0.into()].put(words);
            }
        }
    }

    fn take(words: &mut Words<'_>) -> Option<Self> {
        let [cycles, slots, instruction, fetch, registers, units] = Kept::take(words)?;
        let (demand, mix) = (Demand::take(words)?, Mix::take(words)?);
        let [unknown, constants, kind, place, slot] = Kept::take(words)?;
        let end = match (kind, u8::try_from(slot).ok()?) {
            (0, _) => StepEnd::Stretch,
            (1, _) => StepEnd::Access { instruction: place, slot: None },
            (2, slot) => StepEnd::Access { instruction: place, slot: Some(SlotId(slot)) },
            _ => return None,
        };
        let gaps = Gaps { fetch, registers, units };
        let cycles = f32::from_bits(cycles);
        Some(Self { cycles, slots, instruction, demand, gaps, mix, unknown, constants, end })
    }
}

impl Kept for Stretch {
    fn put(&self, words: &mut Vec<u32>) {
        let Self { first, count, end, offset, ready, settled } = self;
        let (kind, value) = match *end {
            StretchEnd::Segment => (0, 0),
            StretchEnd::Load(slot) => (1, slot.0.into()),
            StretchEnd::Barrier(operands) => (2, operands.packed()),
            StretchEnd::Fence => (3, 0),
            StretchEnd::AsyncCommit => (4, 0),
            StretchEnd::AsyncWait { allowed, told: true } => (5, allowed),
            StretchEnd::AsyncWait { allowed, told: false } => (6, allowed),
        };
        [*first, *count, kind, value, *offset, ready.number(), settled.number()].put(words);
    }

    fn take(words: &mut Words<'_>) -> Option<Self> {
        let [first, count, kind, value, offset, ready, settled] = Kept::take(words)?;
        let end = match kind {
            0 => StretchEnd::Segment,
            1 => StretchEnd::Load(SlotId(u8::try_from(value).ok()?)),
            2 => StretchEnd::Barrier(BarrierOperands::unpacked(value)),
            3 => StretchEnd::Fence,
            4 => StretchEnd::AsyncCommit,
            5 => StretchEnd::AsyncWait { allowed: value, told: true },
            6 => StretchEnd::AsyncWait { allowed: value, told: false },
            _ => return None,
        };
        let (ready, settled) = (StateId::new(ready), StateId::new(settled));
        Some(Self { first, count, end, offset, ready, settled })
    }
}

impl Kept for Key {
    fn put(&self, words: &mut Vec<u32>) {
        [self.0, self.1, self.2.number()].put(words);
    }

    fn take(words: &mut Words<'_>) -> Option<Self> {
        let [segment, offset, state] = Kept::take(words)?;
        Some((segment, offset, StateId::new(state)))
    }
}
