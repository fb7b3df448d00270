//! Numbers that depend on a seed and on keys alone: the same on every machine, thread
//! and run.

/// Adds a key to the state of a draw.
pub(super) fn mix_in(state: u64, key: i64) -> u64 {
    mix(state ^ mix(key.cast_unsigned().wrapping_add(STEP)))
}

/// What SplitMix64 adds from number to number.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// A number in `0..range` from 64 mixed bits, without the bias of a remainder.
pub(super) fn scale(bits: u64, range: u64) -> i64 {
    let high = (u128::from(bits) * u128::from(range)) >> 64;
    i64::try_from(high).unwrap_or(i64::MAX)
}

/// As many mixed bits as a draw needs: SplitMix64 from one state on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bits(u64);

impl Bits {
    /// Those of a state.
    pub(super) fn of(state: u64) -> Self {
        Self(state)
    }

    /// The next 64.
    pub(super) fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        mix(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::{Bits, scale};

    #[test]
    fn bits_fill_a_range_from_end_to_end() {
        assert_eq!((scale(u64::MAX, 10), scale(0, 10)), (9, 0));
        assert_eq!(scale(u64::MAX, u64::MAX), i64::MAX);
    }

    #[test]
    fn bits_are_splitmix64() {
        // The first numbers of seed 1234567, as published with the generator.
        let mut bits = Bits::of(1_234_567);
        let drawn = [bits.draw(), bits.draw(), bits.draw()];
        assert_eq!(
            drawn,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }
}
