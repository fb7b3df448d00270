//! Several stores as one source of instructions.

use std::sync::Arc;

use gpumodel_core::contract::Plan;
use gpumodel_core::isa::Code;
use gpumodel_core::units::{AppId, Dim3, KernelId, to_u16, to_u32};
use gpumodel_sim::config::Resolved;
use gpumodel_sim::{Command, Feed, FeedError, Program, Stream, Worker};

use super::store::StoreFeed;
use super::worker::{launch, transform};

/// The launches of several applications, numbered over all.
#[derive(Debug)]
pub struct Mix<'a> {
    /// By application: its launches.
    pub feeds: Vec<&'a StoreFeed<'a>>,
    /// By launch: its application and its place there.
    owners: Vec<(usize, KernelId)>,
    /// By application: its first launch.
    first: Vec<usize>,
    /// By launch: its form as workers.
    workers: Vec<Option<(Program, Arc<Worker>)>>,
}

impl<'a> Mix<'a> {
    /// The launches of `feeds`, in their order.
    pub fn new(feeds: Vec<&'a StoreFeed<'a>>) -> Self {
        let mut owners = Vec::new();
        let mut first = Vec::new();
        for (app, feed) in feeds.iter().enumerate() {
            first.push(owners.len());
            let places = 0..feed.programs().len();
            owners.extend(places.map(|place| (app, KernelId(to_u32(place)))));
        }
        let workers = vec![None; owners.len()];
        Self { feeds, owners, first, workers }
    }

    /// The same with each application in the form that a plan says.
    pub fn formed(&self, plan: &Plan, resolved: &Resolved) -> Self {
        let mut done: Vec<(usize, &Arc<Code>, Program, Arc<Worker>)> = Vec::new();
        let mut form = |&(app, place): &(usize, KernelId)| {
            let program = self.feeds[app].program(place);
            let form = plan.workers(AppId(to_u16(app)))?;
            let same = |known: &&(usize, &Arc<Code>, Program, Arc<Worker>)| {
                known.0 == app && Arc::ptr_eq(known.1, &program.code)
            };
            if let Some((_, _, known, worker)) = done.iter().find(same) {
                let launch = launch(&program.launch, form, resolved);
                let formed = Program { launch, ctas: program.ctas, ..known.clone() };
                return Some((formed, Arc::clone(worker)));
            }
            let (formed, worker) = transform(program, form, resolved);
            let worker = Arc::new(worker);
            done.push((app, &program.code, formed.clone(), Arc::clone(&worker)));
            Some((formed, worker))
        };
        let workers = self.owners.iter().map(&mut form).collect();
        let (feeds, owners, first) = (self.feeds.clone(), self.owners.clone(), self.first.clone());
        Self { feeds, owners, first, workers }
    }

    /// The command list of an application, its launches numbered over all.
    pub fn commands(&self, app: usize) -> Vec<Command> {
        let first = to_u32(self.first[app]);
        let renumber = |command| match command {
            Command::Launch { kernel, stream } => {
                Command::Launch { kernel: KernelId(kernel.0 + first), stream }
            }
            copy @ Command::Copy(_) => copy,
        };
        self.feeds[app].commands().into_iter().map(renumber).collect()
    }

    /// The launches of an application among all.
    pub fn launches(&self, app: usize) -> std::ops::Range<usize> {
        self.first[app]..self.first[app] + self.feeds[app].programs().len()
    }
}

impl Feed for Mix<'_> {
    fn program(&self, kernel: KernelId) -> &Program {
        if let Some((program, _)) = &self.workers[kernel.index()] {
            return program;
        }
        let (app, place) = self.owners[kernel.index()];
        self.feeds[app].program(place)
    }

    fn worker(&self, kernel: KernelId) -> Option<&Arc<Worker>> {
        self.workers[kernel.index()].as_ref().map(|(_, worker)| worker)
    }

    fn open(
        &self,
        kernel: KernelId,
        ordinal: u64,
        warps: &mut Vec<Stream>,
    ) -> Result<Dim3, FeedError> {
        let (app, place) = self.owners[kernel.index()];
        self.feeds[app].open(place, ordinal, warps)
    }
}
