//! What CTAs take of an SM, and what the SM has.

/// An amount of each resource of an SM: the need of a CTA, or the whole SM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// 32-bit registers.
    pub registers: u64,
    /// Bytes of shared memory.
    pub shared_bytes: u64,
    /// Threads.
    pub threads: u64,
    /// Warps.
    pub warps: u64,
    /// CTA slots.
    pub cta_slots: u64,
}

impl Amount {
    /// Resources that an amount counts.
    pub const RESOURCES: usize = 5;

    /// The amounts in the order of the fields.
    #[must_use]
    pub fn parts(self) -> [u64; Self::RESOURCES] {
        [self.registers, self.shared_bytes, self.threads, self.warps, self.cta_slots]
    }

    fn of([registers, shared_bytes, threads, warps, cta_slots]: [u64; Self::RESOURCES]) -> Self {
        Self { registers, shared_bytes, threads, warps, cta_slots }
    }

    /// `count` times as much of each; stays at the largest number there is.
    #[must_use]
    pub fn times(self, count: u32) -> Self {
        Self::of(self.parts().map(|part| part.saturating_mul(u64::from(count))))
    }

    /// Both together; stays at the largest number there is.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        self.each(other, u64::saturating_add)
    }

    /// The larger of both, resource by resource.
    #[must_use]
    pub fn most(self, other: Self) -> Self {
        self.each(other, u64::max)
    }

    /// The smaller of both, resource by resource.
    #[must_use]
    pub fn least(self, other: Self) -> Self {
        self.each(other, u64::min)
    }

    fn each(self, other: Self, join: fn(u64, u64) -> u64) -> Self {
        let (mut parts, others) = (self.parts(), other.parts());
        for (part, other) in parts.iter_mut().zip(others) {
            *part = join(*part, other);
        }
        Self::of(parts)
    }

    /// What is left after `taken`; `None` when any resource does not suffice.
    #[must_use]
    pub fn minus(self, taken: Self) -> Option<Self> {
        let (mut left, taken) = (self.parts(), taken.parts());
        for (left, taken) in left.iter_mut().zip(taken) {
            *left = left.checked_sub(taken)?;
        }
        Some(Self::of(left))
    }

    /// How many of `need` it holds; `None` when `need` is nothing at all.
    #[must_use]
    pub fn holds(self, need: Self) -> Option<u64> {
        let pairs = self.parts().into_iter().zip(need.parts());
        pairs.filter_map(|(has, takes)| has.checked_div(takes)).min()
    }
}

#[cfg(test)]
mod tests {
    use super::Amount;

    #[test]
    fn the_scarcest_resource_decides() {
        let total = Amount {
            registers: 32_768,
            shared_bytes: 49_152,
            threads: 1536,
            warps: 48,
            cta_slots: 8,
        };
        let need =
            Amount { registers: 4096, shared_bytes: 16_384, threads: 64, warps: 2, cta_slots: 1 };
        assert_eq!(total.holds(need), Some(3), "three times 16 KB are 48 KB");
        assert_eq!(total.minus(need.times(3)).unwrap().shared_bytes, 0);
        assert_eq!(total.minus(need.times(4)), None);
        assert_eq!(total.holds(Amount::default()), None, "of nothing any number fits");
        assert_eq!(need.times(u32::MAX).times(u32::MAX).times(u32::MAX).warps, u64::MAX);
    }
}
