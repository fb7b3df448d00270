//! How intensive kernels are in arithmetic and in memory, and which go together
//! (Slate, tables I and II).

use std::fmt;

use gpumodel_core::contract::{Facts, ProbeApp};
use gpumodel_core::units::SECTOR_BYTES;

use super::super::{Kind, Parameter, Settings};

/// One of three levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Low.
    Low,
    /// Medium.
    Medium,
    /// High.
    High,
}

impl fmt::Display for Level {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        })
    }
}

/// What a kernel does alone, in the units of table II.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Profile {
    /// Single-precision operations.
    pub gflop_per_s: f64,
    /// Loads and stores of global memory as the SMs see them, not DRAM.
    pub gb_per_s: f64,
}

impl Profile {
    /// By a run alone. Sectors are counted at the L1, or at the L2 where the L1 keeps
    /// no global data.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "counts are below 2^53")]
    pub fn of(run: &ProbeApp, facts: &Facts) -> Self {
        let seconds = run.cycles.max(1) as f64 / (facts.core_mhz * 1e6);
        let bytes = run.l1_accesses.max(run.l2_accesses) * SECTOR_BYTES;
        Self { gflop_per_s: run.flops / seconds / 1e9, gb_per_s: bytes as f64 / seconds / 1e9 }
    }
}

/// Where levels begin. The paper prints none: any cut between its benchmarks does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cuts {
    /// Operations from which on arithmetic is medium, and high.
    pub gflop_per_s: [f64; 2],
    /// Traffic from which on memory is medium, and high.
    pub gb_per_s: [f64; 2],
}

const MOST: f64 = 1e6;

pub(super) const COMPUTE_MEDIUM: Parameter = Parameter {
    name: "compute_medium",
    kind: Kind::Real { default: 56.0, least: 0.0, most: MOST },
    summary: "GFLOP/s from which on arithmetic is medium (assumed, between 19.6 and 161.3)",
};

pub(super) const COMPUTE_HIGH: Parameter = Parameter {
    name: "compute_high",
    kind: Kind::Real { default: 496.0, least: 0.0, most: MOST },
    summary: "GFLOP/s from which on it is high (assumed, between 161.3 and 1525)",
};

pub(super) const MEMORY_MEDIUM: Parameter = Parameter {
    name: "memory_medium",
    kind: Kind::Real { default: 156.0, least: 0.0, most: MOST },
    summary: "GB/s from which on memory is medium (assumed, between 71.6 and 340.9)",
};

pub(super) const MEMORY_HIGH: Parameter = Parameter {
    name: "memory_high",
    kind: Kind::Real { default: 479.0, least: 0.0, most: MOST },
    summary: "GB/s from which on it is high (assumed, between 403.5 and 568.6)",
};

impl Cuts {
    pub(super) fn of(settings: &Settings) -> Self {
        Self {
            gflop_per_s: [COMPUTE_MEDIUM, COMPUTE_HIGH].map(|cut| settings.real(cut.name)),
            gb_per_s: [MEMORY_MEDIUM, MEMORY_HIGH].map(|cut| settings.real(cut.name)),
        }
    }

    /// The intensity of a kernel.
    #[must_use]
    pub fn intensity(&self, profile: &Profile) -> Intensity {
        let level = |value: f64, [medium, high]: [f64; 2]| match value {
            value if value >= high => Level::High,
            value if value >= medium => Level::Medium,
            _ => Level::Low,
        };
        Intensity {
            compute: level(profile.gflop_per_s, self.gflop_per_s),
            memory: level(profile.gb_per_s, self.gb_per_s),
        }
    }
}

/// How intensive a kernel is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Intensity {
    /// In arithmetic.
    pub compute: Level,
    /// In memory.
    pub memory: Level,
}

/// Table I: whether a kernel of the row, which runs, goes together with one of the
/// column. Rows and columns: memory low with arithmetic low, medium and high; memory
/// medium; memory high. It is not symmetric for high arithmetic beside medium or high
/// memory; the running kernel is taken as the row (assumed).
const TOGETHER: [[bool; 5]; 5] = [
    [true, true, false, true, true],
    [true, true, false, false, true],
    [false, false, false, false, true],
    [true, false, true, false, false],
    [true, true, false, false, false],
];

impl Intensity {
    fn place(self) -> usize {
        match (self.memory, self.compute) {
            (Level::Low, Level::Low) => 0,
            (Level::Low, Level::Medium) => 1,
            (Level::Low, Level::High) => 2,
            (Level::Medium, _) => 3,
            (Level::High, _) => 4,
        }
    }

    /// Whether a kernel that runs goes together with `candidate`.
    #[must_use]
    pub fn goes_with(self, candidate: Self) -> bool {
        TOGETHER[self.place()][candidate.place()]
    }
}

impl fmt::Display for Intensity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} memory, {} arithmetic", self.memory, self.compute)
    }
}

#[cfg(test)]
mod tests {
    use super::super::PARAMETERS;
    use super::{Cuts, Intensity, Level, Profile};
    use crate::Settings;

    /// Table II: name, GFLOP/s, GB/s.
    const PUBLISHED: [(&str, f64, f64); 5] = [
        ("BS", 161.3, 401.49),
        ("GS", 19.6, 340.9),
        ("MM", 1525.0, 403.5),
        ("RG", 4.2, 71.6),
        ("TR", 0.0, 568.6),
    ];

    fn published(name: &str) -> Intensity {
        let cuts = Cuts::of(&Settings::defaults(PARAMETERS));
        let &(_, gflop_per_s, gb_per_s) =
            PUBLISHED.iter().find(|(known, ..)| *known == name).unwrap();
        cuts.intensity(&Profile { gflop_per_s, gb_per_s })
    }

    #[test]
    fn the_benchmarks_have_the_levels_of_table_two() {
        use Level::{High, Low, Medium};
        let levels = |name| (published(name).compute, published(name).memory);
        assert_eq!(levels("BS"), (Medium, Medium));
        assert_eq!(levels("GS"), (Low, Medium));
        assert_eq!(levels("MM"), (High, Medium));
        assert_eq!(levels("RG"), (Low, Low));
        assert_eq!(levels("TR"), (Low, High));
    }

    #[test]
    fn all_pairs_with_rg_go_together_and_the_other_ten_do_not() {
        let mut together = Vec::new();
        for (place, (one, ..)) in PUBLISHED.iter().enumerate() {
            for (other, ..) in &PUBLISHED[place..] {
                let goes = published(one).goes_with(published(other));
                assert_eq!(goes, published(other).goes_with(published(one)), "{one} {other}");
                together.extend(goes.then_some((*one, *other)));
            }
        }
        let expected = [("BS", "RG"), ("GS", "RG"), ("MM", "RG"), ("RG", "RG"), ("RG", "TR")];
        assert_eq!(together, expected);
    }
}
