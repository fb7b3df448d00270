//! How far applications are that ask before each launch.

use gpumodel_core::contract::{Facts, View, Wake};
use gpumodel_core::units::{AppId, Cycle, to_u64};

/// Where an application is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum LaunchState {
    /// It is still to come, or has ended.
    #[default]
    Away,
    /// It wants to launch a kernel.
    Waiting,
    /// Its kernel runs, or may.
    Running,
    /// The last task of its kernel has started.
    Draining,
}

/// Where all applications are.
#[derive(Clone, Debug, Default)]
pub(super) struct Progress {
    state: Vec<LaunchState>,
    /// Launches of each that have ended.
    ended: Vec<usize>,
    /// When each asked last.
    requested: Vec<Cycle>,
}

impl Progress {
    /// All are away.
    pub(super) fn new(facts: &Facts) -> Self {
        let apps = facts.apps.len();
        Self {
            state: vec![LaunchState::Away; apps],
            ended: vec![0; apps],
            requested: vec![0; apps],
        }
    }

    /// Where one is.
    pub(super) fn of(&self, app: AppId) -> LaunchState {
        self.state[app.index()]
    }

    /// One wants to launch a kernel.
    pub(super) fn asks(&mut self, app: AppId) {
        self.state[app.index()] = LaunchState::Waiting;
    }

    /// Those who asked at `cycle` or before, and those who run.
    pub(super) fn known_at(&self, cycle: Cycle) -> Vec<AppId> {
        let mut apps = self.with(&[LaunchState::Waiting, LaunchState::Running]);
        apps.retain(|app| {
            self.of(*app) == LaunchState::Running || self.requested[app.index()] <= cycle
        });
        apps
    }

    /// When the first of those asked who ask.
    pub(super) fn first_request(&self) -> Option<Cycle> {
        self.with(&[LaunchState::Waiting]).into_iter().map(|app| self.requested[app.index()]).min()
    }

    /// One may run.
    pub(super) fn runs(&mut self, app: AppId) {
        self.state[app.index()] = LaunchState::Running;
    }

    /// Those that are in one of these states, by their ids.
    pub(super) fn with(&self, states: &[LaunchState]) -> Vec<AppId> {
        let apps = self.state.iter().enumerate();
        let found = apps.filter(|(_, state)| states.contains(state));
        found.map(|(app, _)| AppId(gpumodel_core::units::to_u16(app))).collect()
    }

    /// Notes what has happened.
    pub(super) fn note(&mut self, facts: &Facts, view: &View) {
        let before = self.state.clone();
        match view.wake {
            Wake::Arrival(app) => self.asks(app),
            // Another launch of it may still have tasks.
            Wake::LastTaskStarted(app) if view.apps[app.index()].ctas_left == 0 => {
                self.state[app.index()] = LaunchState::Draining;
            }
            Wake::KernelEnd(app) => {
                let place = app.index();
                // An application that begins anew begins with its first launch.
                let launches = facts.apps[place].kernels.len().max(1);
                self.ended[place] = (self.ended[place] + 1) % launches;
                if view.apps[place].running.is_empty() {
                    self.state[place] = LaunchState::Waiting;
                }
            }
            _ => {}
        }
        for (place, seen) in view.apps.iter().enumerate() {
            let state = &mut self.state[place];
            match (seen.active, *state) {
                (true, LaunchState::Away) => *state = LaunchState::Waiting,
                (false, _) => *state = LaunchState::Away,
                _ => {}
            }
            if *state == LaunchState::Waiting && before[place] != LaunchState::Waiting {
                self.requested[place] = view.now;
            }
        }
    }

    /// The part of an application's work that is left: of launches that run, by their
    /// blocks that no worker has taken.
    #[allow(clippy::cast_precision_loss, reason = "counts are below 2^53")]
    pub(super) fn left(&self, facts: &Facts, view: Option<&View>, app: AppId) -> f64 {
        let kernels = &facts.apps[app.index()].kernels;
        let weight =
            |kernel: &gpumodel_core::contract::KernelFacts| kernel.warp_instructions as f64;
        let all: f64 = kernels.iter().map(weight).sum();
        let open: f64 = kernels.iter().skip(self.ended[app.index()]).map(weight).sum();
        let begun = view.map_or(0.0, |view| {
            let seen = &view.apps[app.index()];
            let running = || seen.running.iter().filter_map(|&place| kernels.get(place));
            let ctas: u64 = running().map(|kernel| kernel.ctas).sum();
            let taken = ctas - seen.ctas_left.min(ctas);
            running().map(weight).sum::<f64>() * taken as f64 / to_u64(ctas.max(1)) as f64
        });
        if all > 0.0 { ((open - begun) / all).clamp(0.0, 1.0) } else { 1.0 }
    }
}
