//! Kernels as adaptive simultaneous multi-tenancy rewrites them (ARCS 2018, Fig. 5).

use gpumodel_core::contract::{AddedCode, Facts, KernelFacts, Persistent, Resize, Touch, Word};
use gpumodel_core::units::AppId;

use super::solve::Amount;
use super::{Kind, Parameter, Settings, cta_resources};

pub(super) const REGISTERS: Parameter = Parameter {
    name: "registers",
    kind: Kind::Real { default: 1.23, least: 1.0, most: 4.0 },
    summary: "registers of a thread over the original's (published: 23 % more on average)",
};

pub(super) const SHARED: Parameter = Parameter {
    name: "shared",
    kind: Kind::Whole { default: 8, least: 0, most: 4096 },
    summary: "shared bytes of a CTA in addition to the original's (published)",
};

pub(super) const TASK: Parameter = Parameter {
    name: "task",
    kind: Kind::Whole { default: 1, least: 1, most: 1_000_000 },
    summary: "thread blocks of a task (published: one)",
};

pub(super) const INSTRUCTIONS: Parameter = Parameter {
    name: "instructions",
    kind: Kind::Whole { default: 5, least: 0, most: 10_000 },
    summary: "further instructions of each warp for a task (assumed, counted in Fig. 5)",
};

pub(super) const LEADER: Parameter = Parameter {
    name: "leader",
    kind: Kind::Whole { default: 3, least: 0, most: 10_000 },
    summary: "further instructions of the first thread for a task (assumed, counted in Fig. 5)",
};

/// Instructions of the first thread when it comes (the SM's number, its counter's
/// address, the index to shared memory), of each warp behind the barrier (its index
/// from shared memory) and of the first thread when it leaves: counted in Fig. 5.
const COMES: u32 = 4;
const LOOKS: u32 = 2;
const LEAVES: u32 = 2;

/// The form of a kernel that the settings describe: per task the flag is read by all
/// warps, the first thread takes a block from the queue and stores its number; per
/// worker one addition to the SM's counter at each end.
pub(super) fn form(settings: &Settings) -> Persistent {
    let small = |name: &str| u32::try_from(settings.whole(name)).unwrap_or(u32::MAX);
    Persistent {
        task_blocks: small(TASK.name),
        register_factor: settings.real(REGISTERS.name),
        more_registers: 0,
        more_shared_bytes: small(SHARED.name),
        arrive: AddedCode {
            touches: vec![Touch::Add(Word::Workers)],
            leader_instructions: COMES,
            meets: true,
            instructions: LOOKS,
        },
        task: AddedCode {
            touches: vec![
                Touch::Read(Word::Flag),
                Touch::Add(Word::Queue),
                Touch::Write(Word::Progress),
            ],
            leader_instructions: small(LEADER.name),
            meets: true,
            instructions: small(INSTRUCTIONS.name),
        },
        block_instructions: 0,
        leave: AddedCode {
            touches: vec![Touch::Add(Word::Workers)],
            leader_instructions: LEAVES,
            meets: false,
            instructions: 0,
        },
        resize: Resize::InPlace,
        compile_cycles: 0,
        call_cycles: 0,
    }
}

/// What a worker of an application needs at most, and how many an SM holds at least,
/// over all its launches.
pub(super) fn need(facts: &Facts, app: AppId, form: &Persistent) -> (Amount, u32) {
    let kernels = &facts.apps[app.index()].kernels;
    let formed: Vec<KernelFacts> = kernels.iter().map(|kernel| form.of(kernel, facts)).collect();
    let fits = formed.iter().map(|kernel| kernel.ctas_per_sm).min();
    (cta_resources::of_any(&formed), fits.unwrap_or(facts.max_ctas_per_sm))
}
