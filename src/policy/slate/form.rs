//! Kernels as Slate rewrites them (listings 1 to 3), and what its hosts cost.

use gpumodel_core::contract::{
    AddedCode, AppFacts, Facts, Persistent, ProbeApp, Resize, Touch, Word,
};
use gpumodel_core::units::{Cycle, to_u64};

use super::super::{Kind, Parameter, Settings};

pub(super) const TASK: Parameter = Parameter {
    name: "task",
    kind: Kind::Whole { default: 10, least: 1, most: 1_000_000 },
    summary: "thread blocks of a task (published: 10)",
};

pub(super) const COMMUNICATION: Parameter = Parameter {
    name: "communication",
    kind: Kind::Real { default: 0.04, least: 0.0, most: 0.45 },
    summary: "part of an application's time for messages with the daemon (published mean)",
};

pub(super) const COMPILATION: Parameter = Parameter {
    name: "compilation",
    kind: Kind::Real { default: 0.015, least: 0.0, most: 0.45 },
    summary: "part of it for injecting and compiling code (published mean)",
};

pub(super) const RELAUNCH: Parameter = Parameter {
    name: "relaunch_us",
    kind: Kind::Real { default: 5.0, least: 0.0, most: 1e6 },
    summary: "microseconds in which the dispatch kernel launches workers anew (assumed)",
};

pub(super) const REGISTERS: Parameter = Parameter {
    name: "registers",
    kind: Kind::Whole { default: 4, least: 0, most: 128 },
    summary: "registers of a thread beside the original's (assumed: block index and count)",
};

pub(super) const SHARED: Parameter = Parameter {
    name: "shared",
    kind: Kind::Whole { default: 24, least: 0, most: 4096 },
    summary: "shared bytes of a CTA beside the original's (published: listings 1 and 2)",
};

pub(super) const LEADER: Parameter = Parameter {
    name: "leader",
    kind: Kind::Whole { default: 24, least: 0, most: 10_000 },
    summary: "instructions of the first thread for a task (assumed: its division and stores)",
};

pub(super) const INSTRUCTIONS: Parameter = Parameter {
    name: "instructions",
    kind: Kind::Whole { default: 8, least: 0, most: 10_000 },
    summary: "instructions of each warp for a task (assumed, counted in listing 2)",
};

pub(super) const BLOCK: Parameter = Parameter {
    name: "block",
    kind: Kind::Whole { default: 6, least: 0, most: 10_000 },
    summary: "instructions of each warp for a block (published: 4 M per launch of BS, 625 K warps)",
};

/// Instructions of the first thread when it comes and of each warp behind the barrier,
/// counted in listing 1.
const COMES: u32 = 6;
const LOOKS: u32 = 3;

/// What the form costs.
#[derive(Clone, Debug)]
pub(super) struct Costs {
    form: Persistent,
    communication: f64,
    compilation: f64,
    relaunch_us: f64,
}

impl Costs {
    pub(super) fn of(settings: &Settings) -> Self {
        let small = |name: &str| u32::try_from(settings.whole(name)).unwrap_or(u32::MAX);
        let form = Persistent {
            task_blocks: small(TASK.name),
            register_factor: 1.0,
            more_registers: small(REGISTERS.name),
            more_shared_bytes: small(SHARED.name),
            arrive: AddedCode {
                touches: Vec::new(),
                leader_instructions: COMES,
                meets: true,
                instructions: LOOKS,
            },
            task: AddedCode {
                touches: vec![Touch::Read(Word::Flag), Touch::Add(Word::Queue)],
                leader_instructions: small(LEADER.name),
                meets: true,
                instructions: small(INSTRUCTIONS.name),
            },
            block_instructions: small(BLOCK.name),
            leave: AddedCode::default(),
            resize: Resize::Relaunch { cycles: 0 },
            compile_cycles: 0,
            call_cycles: 0,
        };
        Self {
            form,
            communication: settings.real(COMMUNICATION.name),
            compilation: settings.real(COMPILATION.name),
            relaunch_us: settings.real(RELAUNCH.name),
        }
    }

    /// The form without what hosts do.
    pub(super) fn bare(&self, facts: &Facts) -> Persistent {
        let cycles = facts.cycles_in(self.relaunch_us * 1e-6);
        Persistent { resize: Resize::Relaunch { cycles }, ..self.form.clone() }
    }

    /// The form of an application's kernels. What the hosts do are the published parts
    /// of its time, of which the rest is that of its run alone: messages in equal parts
    /// before each launch, compilation before the first.
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "cycles are below 2^53 and not negative"
    )]
    pub(super) fn form(&self, app: &AppFacts, alone: &ProbeApp, facts: &Facts) -> Persistent {
        let all: u64 = app.kernels.iter().map(|kernel| kernel.warp_instructions).sum();
        let ran = alone.warp_instructions.max(1) as f64;
        let kernels = alone.cycles as f64 * (all as f64 / ran).max(1.0);
        let whole = kernels / (1.0 - self.communication - self.compilation);
        let launches = to_u64(app.kernels.len().max(1)) as f64;
        Persistent {
            compile_cycles: (whole * self.compilation).round() as Cycle,
            call_cycles: (whole * self.communication / launches).round() as Cycle,
            ..self.bare(facts)
        }
    }
}
