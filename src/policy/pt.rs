//! Kernels as persistent workers, of a fixed number, and their form, as adaptive simultaneous
//! multi-tenancy rewrites them (ARCS 2018, Fig. 5).

use gpumodel_core::contract::{
    AddedCode, DispatchOrder, Facts, KernelFacts, LawBroken, Persistent, Plan, PlanDraft,
    ProbeResult, Resize, Touch, Word,
};
use gpumodel_core::units::{AppId, counted};

use super::solo::at_most;
use super::solve::Amount;
use super::{Parameter, Scheme, Settings, shares};

/// What a user may set.
pub(super) const PARAMETERS: &[Parameter] = &[
    Parameter::whole("ctas", 0, 0..=1024)
        .does("workers of a kernel on an SM; 0: all that fit (assumed)"),
    TASK,
    REGISTERS,
    SHARED,
    INSTRUCTIONS,
    LEADER,
];

pub(super) const REGISTERS: Parameter = Parameter::real("registers", 1.23, 1.0..=4.0)
    .does("registers of a thread over the original's (published: 23 % more on average)");

pub(super) const SHARED: Parameter = Parameter::whole("shared", 8, 0..=4096)
    .does("shared bytes of a CTA in addition to the original's (published)");

pub(super) const TASK: Parameter =
    Parameter::whole("task", 1, 1..=1_000_000).does("thread blocks of a task (published: one)");

pub(super) const INSTRUCTIONS: Parameter = Parameter::whole("instructions", 5, 0..=10_000)
    .does("further instructions of each warp for a task (assumed, counted in Fig. 5)");

pub(super) const LEADER: Parameter = Parameter::whole("leader", 3, 0..=10_000)
    .does("further instructions of the first thread for a task (assumed, counted in Fig. 5)");

/// Persistent threads without a service (ARCS 2018, section 4.4): each kernel has as many
/// workers as fit, and workers that do not fit wait at the block scheduler, first come first
/// served. The paper does not give their number: assumed.
#[derive(Clone, Debug)]
pub(super) struct Pt {
    ctas: u64,
    form: Persistent,
}

impl Pt {
    pub(super) fn make(settings: &Settings) -> Box<dyn Scheme> {
        Box::new(Self { ctas: settings.whole("ctas"), form: form(settings) })
    }
}

impl Scheme for Pt {
    fn start(&mut self, facts: &Facts, _probes: &[ProbeResult]) -> Result<Plan, LawBroken> {
        let ctas = at_most(self.ctas, facts.max_ctas_per_sm);
        let apps = shares::in_arrival_order(facts);
        let workers = match self.ctas {
            0 => String::from("as many workers of each kernel as fit"),
            _ => format!("{} of each kernel on every SM", counted(ctas.into(), "worker")),
        };
        Plan::new(
            facts,
            PlanDraft {
                shares: shares::on_each_sm(facts, &apps, |_, _| ctas),
                order: DispatchOrder::InOrder,
                workers: vec![Some(self.form.clone()); facts.apps.len()],
                reason: format!("{workers}, first come first served"),
                ..PlanDraft::default()
            },
        )
    }
}

/// The form of a kernel that the settings describe: per task all warps read the flag, the
/// first thread takes a block from the queue and stores its number; per worker one addition
/// to the SM's counter at each end.
///
/// Counted in Fig. 5: the first thread arrives with four instructions (the SM's number, its
/// counter's address, the index to shared memory), each warp has two behind the barrier (its
/// index from shared memory), and the first thread leaves with two.
pub(super) fn form(settings: &Settings) -> Persistent {
    Persistent {
        task_blocks: settings.small(TASK.name),
        register_factor: settings.real(REGISTERS.name),
        more_registers: 0,
        more_shared_bytes: settings.small(SHARED.name),
        arrive: AddedCode {
            touches: vec![Touch::Add(Word::Workers)],
            leader_instructions: 4,
            meets: true,
            instructions: 2,
        },
        task: AddedCode {
            touches: vec![
                Touch::Read(Word::Flag),
                Touch::Add(Word::Queue),
                Touch::Write(Word::Progress),
            ],
            leader_instructions: settings.small(LEADER.name),
            meets: true,
            instructions: settings.small(INSTRUCTIONS.name),
        },
        block_instructions: 0,
        leave: AddedCode {
            touches: vec![Touch::Add(Word::Workers)],
            leader_instructions: 2,
            meets: false,
            instructions: 0,
        },
        resize: Resize::InPlace,
        compile_cycles: 0,
        call_cycles: 0,
    }
}

/// The most that a worker of an application takes, and the fewest workers that an SM holds,
/// over all launches.
pub(super) fn need(facts: &Facts, app: AppId, form: &Persistent) -> (Amount, u32) {
    let kernels = &facts.apps[app.index()].kernels;
    let formed: Vec<KernelFacts> = kernels.iter().map(|kernel| form.of(kernel, facts)).collect();
    let fits = formed.iter().map(|kernel| kernel.ctas_per_sm).min();
    (shares::largest_cta(&formed), fits.unwrap_or(facts.max_ctas_per_sm))
}
