//! A search for the best SMs of each application.

use gpumodel_core::contract::{Facts, LawBroken, Plan, Probe, ProbeResult, View};
use gpumodel_core::units::Cycle;

use super::super::shares::FREED;
use super::super::solve::Resources;
use super::super::{Parameter, Scheme, Settings};
use super::algorithm::{Algorithm, MIN_SMS};
use super::demand::{B_MEM, BMem, WINDOW, solo_probes};
use super::epoch::{EPOCH, Epochs, Moment};

const STEP: Parameter =
    Parameter::whole("step", 8, 1..=1024).does("SMs that move at a time at first (assumed)");

/// What a user may set.
pub(in super::super) const PARAMETERS: &[Parameter] = &[EPOCH, STEP, MIN_SMS, B_MEM, WINDOW, FREED];

/// CD-Search, classification-driven search of SMs (Zhao et al., ICS 2018), as UGPU compares
/// with it (section 6.4), which prints only its name. Assumed: all begin with as many SMs
/// each. At the end of every epoch applications are classified by eq. 1 and 2, and some SMs
/// go from the most memory-bound to the most compute-bound. A move after which the system
/// throughput, against solo runs, has not risen is taken back, and half as many SMs move
/// from then on; where that is none the search ends, until an application arrives or ends.
///
/// The memory is shared, and each application counts with an equal part of it; on a
/// balanced partition channels are owned, equally many by each, and stay.
#[derive(Clone, Debug)]
struct CdSearch {
    epochs: Epochs,
    first_step: u32,
    /// SMs that move at a time; 0: the search has ended.
    step: u32,
    min_sms: u32,
    b_mem: BMem,
    window: Option<Cycle>,
}

/// CD-Search; on a balanced partition where channels are owned.
pub(in super::super) fn cd_search(settings: &Settings, owns: bool) -> Box<dyn Scheme> {
    Box::new(CdSearch {
        epochs: Epochs::new(settings, owns),
        first_step: settings.small(STEP.name),
        step: 0,
        min_sms: settings.small(MIN_SMS.name),
        b_mem: BMem::of(settings),
        window: settings.window(WINDOW.name),
    })
}

impl CdSearch {
    /// Equal parts, and the search begins again.
    fn divide(&mut self, facts: &Facts) -> String {
        (self.epochs.before, self.step) = (None, self.first_step);
        let partition = &mut self.epochs.partition;
        partition.divide(None);
        let why = match partition.apps() {
            [_] => "one application is active",
            _ => "the search begins",
        };
        format!("{why}: {}", partition.words(facts))
    }

    /// Moves SMs by the counters of the epoch; returns why.
    fn reallocate(&mut self, facts: &Facts, view: &View) -> String {
        let throughput = self.epochs.throughput();
        if let Some((before, last)) = self.epochs.before.take()
            && throughput <= last
        {
            (self.epochs.partition, self.step) = (before, self.step / 2);
            let then = match self.step {
                0 => "and the search ends".into(),
                1 => "one SM at a time from now on".into(),
                step => format!("{step} SMs at a time from now on"),
            };
            let words = self.epochs.partition.words(facts);
            return format!(
                "STP went from {last:.3} to {throughput:.3}, the move is taken back, {then}: {words}"
            );
        }
        let algorithm = Algorithm {
            step: Resources { sms: self.step, groups: 0 },
            least: Resources { sms: self.min_sms, groups: 1 },
            // No channels move against the SMs.
            sms_per_channel: 0.0,
            iterations: 1,
            b_mem: self.b_mem,
            port_limit: false,
        };
        let claims = self.epochs.claims(facts, view, &algorithm);
        let partition = &mut self.epochs.partition;
        if self.step == 0 || claims.len() < 2 {
            return format!("the search has ended: {}", partition.words(facts));
        }
        let found = algorithm.run(facts, partition, &claims);
        if found.moved {
            self.epochs.before = Some((partition.clone(), throughput));
            partition.assign(&found.parts);
        }
        format!("STP {throughput:.3}, {}: {}", found.asked, partition.words(facts))
    }
}

impl Scheme for CdSearch {
    fn probes(&self, facts: &Facts) -> Result<Vec<Probe>, LawBroken> {
        self.epochs.partition.check(facts)?;
        solo_probes(facts, self.window)
    }

    fn start(&mut self, facts: &Facts, probes: &[ProbeResult]) -> Result<Plan, LawBroken> {
        self.epochs.start(facts, probes);
        let reason = self.divide(facts);
        Plan::new(facts, self.epochs.draft(facts, self.epochs.partition.apps().len(), reason))
    }

    fn decide(&mut self, facts: &Facts, view: &View) -> Result<Plan, LawBroken> {
        let reason = match self.epochs.advance(facts, view) {
            Moment::OwnersChanged => self.divide(facts),
            Moment::EpochEnd => self.reallocate(facts, view),
            Moment::Between => format!("as before: {}", self.epochs.partition.words(facts)),
        };
        let running = self.epochs.partition.running(view).len();
        Plan::new(facts, self.epochs.draft(facts, running, reason))
    }
}
