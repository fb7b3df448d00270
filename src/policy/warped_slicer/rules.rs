//! The parameters of Warped-Slicer, and what follows from them alone.

use gpumodel_core::contract::WakeOn;
use gpumodel_core::units::Cycle;

use super::super::Settings;
use super::super::parameter::{Kind, Parameter};

/// The parameters, with the paper's values where it has one.
pub(in super::super) const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "warmup",
        kind: Kind::Whole { default: 20_000, least: 0, most: 1_000_000_000 },
        summary: "cycles before the first sampling of a phase (section V.A: 20 K)",
    },
    Parameter {
        name: "settle",
        kind: Kind::Whole { default: 5000, least: 0, most: 1_000_000_000 },
        summary: "cycles before further samplings of a phase, when counts outnumber SMs (assumed)",
    },
    Parameter {
        name: "window",
        kind: Kind::Whole { default: 5000, least: 1, most: 1_000_000_000 },
        summary: "cycles of a sampling (section V.A: 5 K)",
    },
    Parameter {
        name: "delay",
        kind: Kind::Whole { default: 0, least: 0, most: 1_000_000_000 },
        summary: "cycles that the algorithm takes; the old plan runs on (section V.H adds 1 to 10 K)",
    },
    Parameter {
        name: "threshold_on",
        kind: Kind::Word { default: "performance", words: &["loss", "performance"] },
        summary: "what factor / K limits: the loss of the slowest as printed, or its performance",
    },
    Parameter {
        name: "factor",
        kind: Kind::Real { default: 1.2, least: 0.0, most: 100.0 },
        summary: "SMs are divided instead where the slowest of K breaks factor / K (section IV: 120 %)",
    },
    Parameter {
        name: "scaling",
        kind: Kind::Word { default: "printed", words: &["printed", "inverse", "off"] },
        summary: "psi of eq. 3: CTA_i / CTA_avg - 1 as eq. 4 prints it, CTA_avg / CTA_i - 1, or 0",
    },
    Parameter {
        name: "solver",
        kind: Kind::Word { default: "water-filling", words: &["water-filling", "exact"] },
        summary: "Algorithm 1, or the integer program of eq. 1",
    },
    Parameter {
        name: "profile",
        kind: Kind::Word { default: "online", words: &["online", "offline"] },
        summary: "samples while running, or runs of each alone beforehand (section IV: full runs)",
    },
    Parameter {
        name: "ipc_shift",
        kind: Kind::Real { default: 0.5, least: 0.0, most: 100.0 },
        summary: "change of IPC over a window after which a kernel is sampled anew; 0: never (assumed)",
    },
    Parameter {
        name: "rest",
        kind: Kind::Whole { default: 100_000, least: 0, most: 1_000_000_000_000 },
        summary: "cycles after a sampling before a change of IPC asks for another (assumed)",
    },
];

/// What `factor / K` limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Threshold {
    Loss,
    Performance,
}

/// How samples are scaled for the bandwidth that SMs share: psi of eq. 3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scaling {
    /// `CTA_i / CTA_avg - 1`: eq. 4 as printed.
    Printed,
    /// `CTA_avg / CTA_i - 1`: what eq. 3 gives when SMs get bandwidth in proportion
    /// to their CTAs while sampled, and alike when all hold as many.
    Inverse,
    /// Not at all.
    Off,
}

impl Scaling {
    /// The factor of eq. 3 for an SM with `ctas` where the mean is `mean`, of whose
    /// slots `memory_stalls` waited for memory.
    pub(super) fn factor(self, ctas: u32, mean: f64, memory_stalls: f64) -> f64 {
        let psi = match self {
            Self::Printed => f64::from(ctas) / mean - 1.0,
            Self::Inverse => mean / f64::from(ctas) - 1.0,
            Self::Off => 0.0,
        };
        1.0 + memory_stalls.clamp(0.0, 1.0) * psi
    }
}

/// The settings of a run.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    pub(super) warmup: Cycle,
    pub(super) settle: Cycle,
    pub(super) window: Cycle,
    pub(super) delay: Cycle,
    pub(super) threshold_on: Threshold,
    pub(super) factor: f64,
    pub(super) scaling: Scaling,
    pub(super) exact: bool,
    pub(super) offline: bool,
    pub(super) ipc_shift: f64,
    pub(super) rest: Cycle,
}

impl Rules {
    pub(super) fn new(settings: &Settings) -> Self {
        let threshold_on = match settings.word("threshold_on") {
            "loss" => Threshold::Loss,
            _ => Threshold::Performance,
        };
        let scaling = match settings.word("scaling") {
            "printed" => Scaling::Printed,
            "inverse" => Scaling::Inverse,
            _ => Scaling::Off,
        };
        Self {
            warmup: settings.whole("warmup"),
            settle: settings.whole("settle"),
            window: settings.whole("window"),
            delay: settings.whole("delay"),
            threshold_on,
            factor: settings.real("factor"),
            scaling,
            exact: settings.word("solver") == "exact",
            offline: settings.word("profile") == "offline",
            ipc_shift: settings.real("ipc_shift"),
            rest: settings.whole("rest"),
        }
    }

    /// The performance below which the slowest of `kernels` may not fall.
    pub(super) fn least_performance(&self, kernels: u32) -> f64 {
        let limit = self.factor / f64::from(kernels);
        match self.threshold_on {
            Threshold::Loss => 1.0 - limit,
            Threshold::Performance => limit,
        }
    }

    /// When a plan that came of samples is thought over.
    pub(super) fn wake(&self) -> Vec<WakeOn> {
        let mut wake = vec![WakeOn::KernelBegin, WakeOn::KernelEnd];
        if self.ipc_shift > 0.0 && !self.offline {
            wake.push(WakeOn::IpcShift { fraction: self.ipc_shift, sustained: self.window });
        }
        wake
    }
}
