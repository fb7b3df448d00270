//! Several scripts that run together, for tests: one application each.

use std::sync::Arc;

use crate::config::Resolved;
use gpumodel_core::contract::{Plan, PlanDraft, Share, View};
use gpumodel_core::units::{Dim3, KernelId, to_u16, to_u32};

use crate::testkit::scripted::{Script, facts, memory_of};
use crate::{
    Command, End, Feed, FeedError, Gpu, Load, Outcome, Pause, Program, Setup, Stream, Worker,
};

/// Several applications of one launch each.
#[derive(Debug)]
pub(crate) struct MultiAppFixture {
    scripts: Vec<Script>,
    loads: Vec<Load>,
    end: End,
}

impl MultiAppFixture {
    /// All there from the beginning, each to its end.
    pub(crate) fn new(scripts: Vec<Script>) -> Self {
        let launch =
            |kernel: usize| vec![Command::Launch { kernel: KernelId(to_u32(kernel)), stream: 0 }];
        let loads = (0..scripts.len()).map(|kernel| Load::from(launch(kernel))).collect();
        Self { scripts, loads, end: End::default() }
    }

    /// With another task for one of them.
    pub(crate) fn with(mut self, app: usize, change: impl Fn(&mut Load)) -> Self {
        change(&mut self.loads[app]);
        self
    }

    /// By CTA of an application: how often it was opened.
    pub(crate) fn opened(&self, app: usize) -> Vec<u64> {
        self.scripts[app].opened()
    }

    /// With another end.
    pub(crate) fn until(mut self, end: End) -> Self {
        self.end = end;
        self
    }

    /// Runs under `first` and then whatever `answer` gives.
    pub(crate) fn run(
        &self,
        resolved: &Resolved,
        first: &Plan,
        mut answer: impl FnMut(&View) -> Plan,
    ) -> Outcome {
        let machine = &resolved.machine;
        let (standard, mapping) = memory_of(resolved);
        let (apps, end) = (self.loads.clone(), self.end);
        let setup = Setup { machine, standard: &standard, mapping, apps, end, part: None };
        let mut gpu = Gpu::new(setup, self).unwrap();
        gpu.follow(first.clone()).unwrap();
        while let Pause::Decide(view) = gpu.advance(&mut |_| ()).unwrap() {
            gpu.follow(answer(&view)).unwrap();
        }
        gpu.finish().unwrap()
    }

    /// Runs under one plan.
    pub(crate) fn under(&self, resolved: &Resolved, plan: &Plan) -> Outcome {
        self.run(resolved, plan, |_| plan.clone())
    }
}

impl Feed for MultiAppFixture {
    fn program(&self, kernel: KernelId) -> &Program {
        self.scripts[kernel.index()].program(kernel)
    }

    fn worker(&self, kernel: KernelId) -> Option<&Arc<Worker>> {
        self.scripts[kernel.index()].worker(kernel)
    }

    fn open(
        &self,
        kernel: KernelId,
        ordinal: u64,
        warps: &mut Vec<Stream>,
    ) -> Result<Dim3, FeedError> {
        self.scripts[kernel.index()].open(kernel, ordinal, warps)
    }
}

/// A plan with the same quota of each application on all SMs; 0: it waits.
pub(crate) fn plan(resolved: &Resolved, quotas: &[u32], more: PlanDraft) -> Plan {
    let sms = usize::from(resolved.machine.dispatch.sms);
    let share = |&quota: &u32| match quota {
        0 => Share::Waiting,
        _ => Share::Quota(vec![quota; sms]),
    };
    let shares = quotas.iter().map(share).collect();
    let facts = facts(resolved, to_u16(quotas.len()));
    Plan::new(&facts, PlanDraft { shares, ..more }).unwrap()
}
