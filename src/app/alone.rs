//! What co-runs are compared with: the applications alone, over the same work.

use serde::{Deserialize, Serialize};

use gpumodel_core::units::{Cycle, to_u64};
use gpumodel_report::results::{Alone, AppRecord};
use gpumodel_sim::{End, Gpu, Load, Setup};

use super::app::App;
use super::error::RunError;
use super::request::Bench;
use super::solo::whole;
use super::stage::sums;
use gpumodel_feed::StoreFeed;

/// An application alone, as far as a co-run is concerned.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Reference {
    pub(super) alone: Alone,
    /// Warp instructions that it executed in the window; `None`: it came to its end.
    pub(super) target: Option<f64>,
}

impl Reference {
    /// The whole solo run.
    pub(super) fn whole(row: &AppRecord) -> Self {
        Self { alone: Alone::from(row), target: None }
    }

    /// The first `window` cycles of a solo run.
    pub(super) fn within(
        bench: &Bench<'_>,
        app: &App,
        feed: &StoreFeed<'_>,
        window: Cycle,
    ) -> Result<Self, RunError> {
        let words = || {
            let (hash, window) = (app.store.content_hash(), window.to_string());
            vec![String::from("window"), hash, window]
        };
        bench.recalled(words, || Self::run(bench, app, feed, window))
    }

    fn run(
        bench: &Bench<'_>,
        app: &App,
        feed: &StoreFeed<'_>,
        window: Cycle,
    ) -> Result<Self, RunError> {
        let failed = |source| RunError::Machine { app: app.name.clone(), source };
        let plan = whole(bench, &app.name, feed)?;
        let setup = Setup {
            machine: &bench.resolved.machine,
            standard: &bench.memory.standard,
            mapping: bench.memory.map.clone(),
            apps: vec![Load::from(feed.commands())],
            end: End { first: false, at: Some(window) },
            part: None,
        };
        let running = bench.watch.running();
        let mut watch = |issued| running.advance(issued);
        let gpu = Gpu::new(setup, feed).map_err(failed)?;
        let outcome = gpu.run(&plan, &mut watch).map_err(failed)?;
        let app = outcome.apps[0];
        let counts = sums(&outcome.kernels);
        let threads = threads(app.progress, counts.warp_instructions, counts.thread_instructions);
        #[allow(clippy::cast_precision_loss, reason = "counts are below 2^53")]
        let ipc = threads as f64 / app.end.max(1) as f64;
        let alone = Alone { cycles: app.end, ipc };
        Ok(Self { alone, target: (!app.finished).then_some(app.progress) })
    }
}

/// Thread instructions of `progress` warp instructions, at the rate of what was
/// counted: bursts are counted when they begin, which is ahead of progress.
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "counts are below 2^53 and not negative"
)]
pub(super) fn threads(progress: f64, warps: u64, threads: u64) -> u64 {
    let share = progress / warps.max(1) as f64;
    to_u64((threads as f64 * share.min(1.0)).round() as u64)
}
