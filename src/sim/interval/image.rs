//! A profile as plain words, to be stored between runs.
//!
//! An image belongs to one code on one machine and one build of the program, which the caller
//! must check. Loading one changes no result: known stretches are not walked again. An image
//! that does not fit the code is refused.

use rustc_hash::FxHashMap;

use super::state::{Origin, Pending, SlotId, State, StateId, StateTable};
use super::{BarrierOperands, Demand, Gaps, Key, Mix, Profile, Step, StepEnd, Stretch, StretchEnd};
use gpumodel_core::isa::Register;
use gpumodel_core::units::{to_u32, to_usize};

/// The stretches of one code.
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
    /// All stretches so far.
    pub(crate) fn image(&self) -> ProfileImage {
        let mut words = Vec::new();
        self.states.all().write(&mut words);
        self.steps.write(&mut words);
        self.stretches.write(&mut words);
        self.keys.write(&mut words);
        ProfileImage(words)
    }

    /// True with stretches that no image had.
    pub(crate) fn has_grown(&self) -> bool {
        self.stretches.len() > self.loaded
    }

    /// Loads the stretches of an image; does nothing when it is no image of this code or the
    /// profile has stretches already.
    pub(crate) fn load(&mut self, image: &ProfileImage) {
        let mut words = Unread(&image.0);
        let Some(parts) = <(_, Vec<Stretch>)>::read(&mut words) else { return };
        let ((states, steps), stretches): ((Vec<State>, Vec<Step>), _) = parts;
        let Some(keys) = Vec::<Key>::read(&mut words) else { return };
        let Some(states) = StateTable::of(states) else { return };
        let whole = words.0.is_empty() && keys.len() == stretches.len();
        let begins = keys.iter().zip(&stretches);
        let fit = steps.iter().all(|step| self.holds_step(step))
            && stretches.iter().all(|one| holds_stretch(one, steps.len(), &states))
            && begins.into_iter().all(|(key, stretch)| self.holds_key(*key, stretch, &states));
        let memo: FxHashMap<_, _> = keys.iter().copied().zip(0..).collect();
        if self.stretches.is_empty() && whole && fit && memo.len() == keys.len() {
            self.loaded = stretches.len();
            (self.states, self.steps, self.stretches) = (states, steps, stretches);
            (self.keys, self.memo) = (keys, memo);
        }
    }

    /// Whether a step has instructions of the code.
    fn holds_step(&self, step: &Step) -> bool {
        let inside = |end: u32| to_usize(end) <= self.code.instructions.len();
        let last = match step.end {
            StepEnd::Stretch => true,
            StepEnd::Access { instruction, .. } => inside(instruction.saturating_add(1)),
        };
        let end = step.instruction.checked_add(step.slots);
        last && step.slots > 0
            && end.is_some_and(inside)
            && (step.cycles + step.unevenness).is_finite()
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

/// Whether a stretch refers to existing steps and states.
fn holds_stretch(stretch: &Stretch, steps: usize, states: &StateTable) -> bool {
    let end = stretch.first.checked_add(stretch.count);
    end.is_some_and(|end| to_usize(end) <= steps)
        && states.holds(stretch.ready)
        && states.holds(stretch.settled)
}

/// Words not read yet.
struct Unread<'a>(&'a [u32]);

impl Unread<'_> {
    fn next(&mut self) -> Option<u32> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }
}

/// What can be written as words and read again.
trait Words: Sized {
    fn write(&self, words: &mut Vec<u32>);
    fn read(words: &mut Unread<'_>) -> Option<Self>;
}

impl<T: Words> Words for Vec<T> {
    fn write(&self, words: &mut Vec<u32>) {
        words.push(to_u32(self.len()));
        self.iter().for_each(|one| one.write(words));
    }

    fn read(words: &mut Unread<'_>) -> Option<Self> {
        // Every element has a word or more: a larger count is damage.
        let count = to_usize(words.next()?);
        (count <= words.0.len()).then_some(())?;
        (0..count).map(|_| T::read(words)).collect()
    }
}

impl<A: Words, B: Words> Words for (A, B) {
    fn write(&self, words: &mut Vec<u32>) {
        self.0.write(words);
        self.1.write(words);
    }

    fn read(words: &mut Unread<'_>) -> Option<Self> {
        Some((A::read(words)?, B::read(words)?))
    }
}

impl<T: Words + Copy + Default, const N: usize> Words for [T; N] {
    fn write(&self, words: &mut Vec<u32>) {
        self.iter().for_each(|one| one.write(words));
    }

    fn read(words: &mut Unread<'_>) -> Option<Self> {
        let mut all = [T::default(); N];
        for one in &mut all {
            *one = T::read(words)?;
        }
        Some(all)
    }
}

/// Values of one word each: how they are written and read.
macro_rules! one_word {
    ($($kind:ty: $write:expr, $read:expr;)+) => {$(
        impl Words for $kind {
            fn write(&self, words: &mut Vec<u32>) {
                words.push($write(self));
            }

            fn read(words: &mut Unread<'_>) -> Option<Self> {
                let word = words.next()?;
                $read(word)
            }
        }
    )+};
}

one_word! {
    u32: |word: &u32| *word, Some;
    u8: |value: &u8| (*value).into(), |word| u8::try_from(word).ok();
    u16: |value: &u16| (*value).into(), |word| u16::try_from(word).ok();
    SlotId: |slot: &SlotId| slot.0.into(), |word| u8::try_from(word).ok().map(SlotId);
    Register: |register: &Register| register.bits().into(),
        |word| u16::try_from(word).ok().map(Register::from_bits);
}

impl Words for Pending {
    fn write(&self, words: &mut Vec<u32>) {
        self.register.write(words);
        [self.gone, self.from as u32].write(words);
    }

    fn read(words: &mut Unread<'_>) -> Option<Self> {
        let register = Register::read(words)?;
        let [gone, from] = Words::read(words)?;
        let origins = [Origin::Any, Origin::Variable, Origin::Int, Origin::Fp32];
        let from = origins.into_iter().find(|&origin| origin as u32 == from)?;
        Some(Self { register, gone, from })
    }
}

impl Words for State {
    fn write(&self, words: &mut Vec<u32>) {
        let Self { results, loads, units, hold, issued, fetched } = self;
        results.write(words);
        loads.write(words);
        units.write(words);
        [*hold, *issued, *fetched].write(words);
    }

    fn read(words: &mut Unread<'_>) -> Option<Self> {
        let results = Vec::read(words)?;
        let (loads, units) = (Vec::read(words)?, Vec::read(words)?);
        let [hold, issued, fetched] = Words::read(words)?;
        Some(Self { results, loads, units, hold, issued, fetched })
    }
}

impl Words for Step {
    fn write(&self, words: &mut Vec<u32>) {
        let Self { cycles, unevenness, lasting, slots, instruction, demand, gaps, mix, .. } = self;
        let Self { unknown, constants, conflicts, end, .. } = self;
        let Gaps { fetch, registers, units } = gaps;
        [cycles.to_bits(), unevenness.to_bits(), *slots, *instruction, *fetch, *registers, *units]
            .write(words);
        demand.write(words);
        mix.write(words);
        [*unknown, *constants, u32::from(*lasting) | u32::from(*conflicts) << 16].write(words);
        match *end {
            StepEnd::Stretch => [0_u32; 3].write(words),
            StepEnd::Access { instruction, slot: None } => [1, instruction, 0].write(words),
            StepEnd::Access { instruction, slot: Some(slot) } => {
                [2, instruction, slot.0.into()].write(words);
            }
        }
    }

    fn read(words: &mut Unread<'_>) -> Option<Self> {
        let [cycles, unevenness, slots, instruction, fetch, registers, units] = Words::read(words)?;
        let (demand, mix) = (Demand::read(words)?, Mix::read(words)?);
        let [unknown, constants, lasting, kind, place, slot] = Words::read(words)?;
        let conflicts = u16::try_from(lasting >> 16).ok()?;
        let lasting = u16::try_from(lasting & 0xffff).ok()?;
        let end = match (kind, u8::try_from(slot).ok()?) {
            (0, _) => StepEnd::Stretch,
            (1, _) => StepEnd::Access { instruction: place, slot: None },
            (2, slot) => StepEnd::Access { instruction: place, slot: Some(SlotId(slot)) },
            _ => return None,
        };
        let gaps = Gaps { fetch, registers, units };
        let [cycles, unevenness] = [cycles, unevenness].map(f32::from_bits);
        let step = Self {
            cycles,
            unevenness,
            lasting,
            conflicts,
            slots,
            instruction,
            demand,
            gaps,
            mix,
            end,
            unknown,
            constants,
        };
        Some(step)
    }
}

impl Words for Stretch {
    fn write(&self, words: &mut Vec<u32>) {
        let Self { first, count, end, offset, ready, settled } = self;
        let (kind, value) = match *end {
            StretchEnd::Segment => (0, 0),
            StretchEnd::Load(slot) => (1, slot.0.into()),
            StretchEnd::Barrier(operands) => (2, operands.packed()),
            StretchEnd::Fence => (3, 0),
            StretchEnd::AsyncCommit => (4, 0),
            StretchEnd::AsyncWait { allowed, known: true } => (5, allowed),
            StretchEnd::AsyncWait { allowed, known: false } => (6, allowed),
            StretchEnd::ObjectWait => (7, 0),
            StretchEnd::Result(cycles) => (8, cycles),
            StretchEnd::Registers(count) => (9, count),
        };
        [*first, *count, kind, value, *offset, ready.0, settled.0].write(words);
    }

    fn read(words: &mut Unread<'_>) -> Option<Self> {
        let [first, count, kind, value, offset, ready, settled] = Words::read(words)?;
        let end = match kind {
            0 => StretchEnd::Segment,
            1 => StretchEnd::Load(SlotId(u8::try_from(value).ok()?)),
            2 => StretchEnd::Barrier(BarrierOperands::unpacked(value)),
            3 => StretchEnd::Fence,
            4 => StretchEnd::AsyncCommit,
            5 => StretchEnd::AsyncWait { allowed: value, known: true },
            6 => StretchEnd::AsyncWait { allowed: value, known: false },
            7 => StretchEnd::ObjectWait,
            8 => StretchEnd::Result(value),
            9 => StretchEnd::Registers(value),
            _ => return None,
        };
        let (ready, settled) = (StateId(ready), StateId(settled));
        Some(Self { first, count, end, offset, ready, settled })
    }
}

impl Words for Key {
    fn write(&self, words: &mut Vec<u32>) {
        [self.0, self.1, self.2.0].write(words);
    }

    fn read(words: &mut Unread<'_>) -> Option<Self> {
        let [segment, offset, state] = Words::read(words)?;
        Some((segment, offset, StateId(state)))
    }
}
