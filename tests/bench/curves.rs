//! Random kernels that share an SM: what they need and how fast they are.

use gpumodel::policy::solve::{Amount, Curve, Demand, Sample};

/// An SM of Warped-Slicer's Table I.
pub(crate) const SMALL: Amount =
    Amount { registers: 32_768, shared_bytes: 49_152, threads: 1536, warps: 48, cta_slots: 8 };

/// The larger SM of its sensitivity study (section V.H).
pub(crate) const LARGE: Amount =
    Amount { registers: 65_536, shared_bytes: 98_304, threads: 2048, warps: 64, cta_slots: 32 };

/// Speed against CTAs: the categories of its Fig. 3a.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Grows ever more slowly.
    Saturating,
    /// Grows, then falls when the cache is full.
    Peaked,
    /// Either of them, every sample off by up to a tenth.
    Noisy,
}

/// A seeded source of numbers (SplitMix64).
pub(crate) struct Draw(pub(crate) u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number from `low` to `high`, both included.
    fn whole(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low + 1)
    }

    /// A number from `low` to `high`.
    pub(crate) fn real(&mut self, low: f64, high: f64) -> f64 {
        let thirty_two_bits = u32::try_from(self.next() >> 32).expect("32 bits are left");
        low + (high - low) * f64::from(thirty_two_bits) / f64::from(u32::MAX)
    }
}

/// `kernels` demands that fit an SM with one CTA each.
pub(crate) fn demands(draw: &mut Draw, sm: Amount, kernels: usize, shape: Shape) -> Vec<Demand> {
    loop {
        let drawn: Vec<Demand> = (0..kernels).map(|_| demand(draw, sm, shape)).collect();
        let mut each = drawn.iter();
        if each.try_fold(sm, |left, demand| left.minus(demand.need)).is_some() {
            return drawn;
        }
    }
}

fn demand(draw: &mut Draw, sm: Amount, shape: Shape) -> Demand {
    let warps = draw.whole(1, 16);
    let shared = draw.whole(0, 1) * draw.whole(1, sm.shared_bytes / 768) * 256;
    let need = Amount {
        registers: warps * 32 * draw.whole(8, 40),
        shared_bytes: shared,
        threads: warps * 32,
        warps,
        cta_slots: 1,
    };
    let most = u32::try_from(sm.holds(need).expect("it needs a slot")).expect("few slots");
    let curve = curve(draw, most.max(1), shape);
    match shape {
        Shape::Noisy => sampled(draw, &Demand { need, curve }, 0.1),
        Shape::Saturating | Shape::Peaked => Demand { need, curve },
    }
}

/// Speeds with 1 to `most` CTAs, the best anything from 1 to 32 instructions
/// per cycle.
fn curve(draw: &mut Draw, most: u32, shape: Shape) -> Curve {
    let peaked = shape == Shape::Peaked || shape == Shape::Noisy && draw.real(0.0, 1.0) < 0.5;
    let (scale, bend) = (draw.real(0.0, 5.0).exp2(), draw.real(0.05, 2.0));
    let (peak, fall) = (draw.real(1.0, f64::from(most)), draw.real(0.5, 0.98));
    let speed = |ctas: u32| {
        let ctas = f64::from(ctas);
        let filled = if peaked { ctas.min(peak) } else { ctas };
        let grown = 1.0 - (-bend * filled).exp();
        scale * grown * fall.powf(ctas - filled)
    };
    let samples = (1..=most).map(|ctas| Sample { ctas, speed: speed(ctas) });
    Curve::new(&samples.collect::<Vec<_>>()).expect("speeds are finite")
}

/// The same kernel as a short sample shows it: every speed off by up to `error`.
pub(crate) fn sampled(draw: &mut Draw, demand: &Demand, error: f64) -> Demand {
    let samples = demand.curve.samples().iter();
    let off = |sample: &Sample| Sample {
        speed: sample.speed * draw.real(1.0 - error, 1.0 + error),
        ..*sample
    };
    let samples: Vec<Sample> = samples.map(off).collect();
    Demand { curve: Curve::new(&samples).expect("speeds are finite"), ..*demand }
}
