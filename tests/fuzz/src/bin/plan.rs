//! Are plans of sweeps, queues and papers, whatever their files hold, taken or refused
//! with their place?

#![no_main]

use gpumodel::app::{
    AnalyzeRequest, Phase, RunError, SweepError, SweepProgress, SweepRequest, SweepWatch,
    Unwatched, Watch, analyze, sweep,
};
use gpumodel::report::paper::Paper;
use gpumodel::trace::{Progress, Silent};
use gpumodel_fuzz::{Place, named, split};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((kind, rest)) = split(bytes) else { return };
    let place = Place::new();
    match kind % 3 {
        0 => plan(&place, rest),
        1 => queue(&place, rest),
        _ => paper(&place, rest),
    }
});

struct Nobody;

impl Watch for Nobody {
    fn phase(&self, _: Phase<'_>) {}

    fn converting(&self) -> &dyn Progress {
        &Silent
    }

    fn running(&self) -> &dyn Progress {
        &Silent
    }
}

impl SweepWatch for Nobody {
    fn part(&self, _: usize, _: usize, _: &str) {}

    fn begin(&self, _: SweepProgress) {}

    fn ended(&self, _: bool) {}

    fn stopped(&self) -> bool {
        true
    }

    fn say(&self, _: &str) {}
}

/// The list in the folder of the sweep is damaged, which is seen after the plan was read.
fn plan(place: &Place, bytes: &[u8]) {
    let request = SweepRequest {
        plan: place.file("mine.toml", bytes),
        out: place.at("out"),
        resume: false,
        retry_failed: false,
        mixed_versions: false,
        memory_bytes: None,
        part: None,
        plan_hash: None,
        models: None,
        cache: place.at("cache"),
    };
    place.file("out/sweep.json", b"{}");
    match sweep(&request, &Nobody) {
        Err(SweepError::Record(_)) => {}
        Err(error) => named(&error, "mine.toml"),
        Ok(_) => panic!("a damaged folder was taken"),
    }
}

/// The machine is not there, which is seen after the queue was read.
fn queue(place: &Place, bytes: &[u8]) {
    let mut request = AnalyzeRequest::new(Vec::new(), "no-such-machine", &place.at("cache"));
    request.queue = Some(place.file("mine.toml", bytes));
    match analyze(&request, &Unwatched) {
        Err(RunError::Spec(_) | RunError::SoloOnly { .. }) => {}
        Err(error @ RunError::QueueFile(_)) => named(&error, "mine.toml"),
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(_) => panic!("a machine that is not there was used"),
    }
}

fn paper(place: &Place, bytes: &[u8]) {
    place.file("papers/mine.toml", bytes);
    let models = match gpumodel::app::models(Some(place.path())) {
        Ok(models) => models,
        Err(error) => return named(&error, "mine.toml"),
    };
    match Paper::load(&models, "mine") {
        Ok(paper) => assert_eq!(paper.name, "mine"),
        Err(error) => named(&error, "mine.toml"),
    }
}
