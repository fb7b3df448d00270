//! The classes of applications: Table I of ILP-SMRA.

use gpumodel_core::contract::{Classified, Profile, QueueFacts, Threshold};

use super::super::{Parameter, Settings};
use super::Unmatched;

/// The classes in the order of the table: by memory, by memory and cache, by cache,
/// by arithmetic.
pub const CLASSES: [&str; 4] = ["M", "MC", "C", "A"];

/// The place in [`CLASSES`] of each application, by the bounds that are published.
#[must_use]
pub fn published_classes(facts: &QueueFacts) -> Vec<usize> {
    let rule = Rule::of(&Settings::defaults(&[ALPHA, BETA, GAMMA, DELTA, EPSILON]));
    (0..facts.apps.len()).map(|app| rule.classify(facts, app).class).collect()
}

pub(super) const ALPHA: Parameter = Parameter::real("alpha", 0.55, 0.0..=1.0)
    .does("alpha, of MB_max: class M has more DRAM bandwidth (published)");
pub(super) const BETA: Parameter = Parameter::real("beta", 0.30, 0.0..=1.0)
    .does("beta, of MB_max: class MC has more DRAM bandwidth (published)");
pub(super) const GAMMA: Parameter = Parameter::real("gamma", 0.55, 0.0..=1.0)
    .does("gamma, of MB_max: class C reads more from the L2 (published)");
pub(super) const DELTA: Parameter = Parameter::real("delta", 0.2, 0.0..=100.0)
    .does("delta: memory over compute instructions, more in class C, less in A (published)");
pub(super) const EPSILON: Parameter = Parameter::real("epsilon", 0.20, 0.0..=1.0)
    .does("epsilon, of IPC_max: less in class C, more in A (published)");

/// The bounds of the classes as parts of the peaks of the machine.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rule {
    alpha: f64,
    beta: f64,
    gamma: f64,
    delta: f64,
    epsilon: f64,
}

/// A quantity of an application.
#[derive(Clone, Copy)]
struct Metric {
    name: &'static str,
    unit: &'static str,
    value: f64,
}

impl Metric {
    fn above(self, bound: &'static str, limit: f64) -> Condition {
        Condition { metric: self, bound, limit, above: true }
    }

    fn below(self, bound: &'static str, limit: f64) -> Condition {
        Condition { metric: self, bound, limit, above: false }
    }
}

/// One condition of a class: a metric above or below a limit.
struct Condition {
    metric: Metric,
    bound: &'static str,
    limit: f64,
    above: bool,
}

impl Condition {
    /// The part of the limit by which the metric misses it, at most 1.
    fn shortfall(&self) -> f64 {
        let Self { metric, limit, .. } = self;
        let lacks = if self.above { limit - metric.value } else { metric.value - limit };
        if lacks <= 0.0 { 0.0 } else { (lacks / limit).min(1.0) }
    }

    fn holds(&self) -> bool {
        let value = self.metric.value;
        if self.above { value > self.limit } else { value < self.limit }
    }

    fn words(&self) -> String {
        let sign = if self.holds() == self.above { "above" } else { "not above" };
        let Self { metric: Metric { name, unit, value }, bound, limit, .. } = self;
        format!("{name} {value:.3}{unit} {sign} {bound} {limit:.3}")
    }
}

impl Rule {
    pub(super) fn of(settings: &Settings) -> Self {
        Self {
            alpha: settings.real("alpha"),
            beta: settings.real("beta"),
            gamma: settings.real("gamma"),
            delta: settings.real("delta"),
            epsilon: settings.real("epsilon"),
        }
    }

    /// Refuses a beta above alpha.
    pub(super) fn check(&self) -> Result<(), Unmatched> {
        if self.beta <= self.alpha {
            return Ok(());
        }
        let (alpha, beta) = (self.alpha.to_string(), self.beta.to_string());
        Err(Unmatched::Bounds { alpha, beta })
    }

    /// The bounds on this machine.
    pub(super) fn thresholds(&self, facts: &QueueFacts) -> Vec<Threshold> {
        let (memory, ipc) = (facts.peak_dram_gb_per_s, facts.peak_ipc);
        let rows = [
            ("alpha", "DRAM GB/s", self.alpha * memory),
            ("beta", "DRAM GB/s", self.beta * memory),
            ("gamma", "L2 to L1 GB/s", self.gamma * memory),
            ("delta", "memory over compute instructions", self.delta),
            ("epsilon", "thread instructions per cycle", self.epsilon * ipc),
        ];
        let row = |(name, metric, value): (&str, &str, f64)| Threshold {
            name: name.to_owned(),
            metric: metric.to_owned(),
            value,
        };
        rows.map(row).to_vec()
    }

    /// The conditions of the class at a place of [`CLASSES`]. The upper bound of MC is not
    /// among them: an application above it is in M.
    fn conditions(&self, class: usize, facts: &QueueFacts, app: &Profile) -> Vec<Condition> {
        let (memory, ipc) = (facts.peak_dram_gb_per_s, facts.peak_ipc);
        let metric = |name, unit, value| Metric { name, unit, value };
        let dram = metric("MB", " GB/s", app.dram_gb_per_s);
        let cache = metric("L2->L1", " GB/s", app.l2_to_l1_gb_per_s);
        let ratio = metric("R", "", app.memory_to_compute);
        let speed = metric("IPC", "", app.ipc);
        match CLASSES[class] {
            "M" => vec![dram.above("alpha", self.alpha * memory)],
            "MC" => vec![dram.above("beta", self.beta * memory)],
            "C" => vec![
                cache.above("gamma", self.gamma * memory),
                ratio.above("delta", self.delta),
                speed.below("epsilon", self.epsilon * ipc),
            ],
            _ => vec![ratio.below("delta", self.delta), speed.above("epsilon", self.epsilon * ipc)],
        }
    }

    /// The class of the application at `place`: the first of the table whose
    /// conditions hold, so that above alpha is M, from there down to beta MC.
    ///
    /// An application that fits none is in the nearest: the one whose worst condition is missed
    /// by the smallest part of its bound, at most 1; of equals the lower in the table.
    pub(super) fn classify(&self, facts: &QueueFacts, place: usize) -> Classified {
        let measured = self.measure(facts, place);
        let Some(class) = facts.apps[place].given_class else { return measured };
        let fits = measured.fits && measured.class == class;
        let found = CLASSES[measured.class];
        let reason = match measured.fits {
            true => format!("given; measured {found}: {}", measured.reason),
            false => format!("given; {}", measured.reason),
        };
        Classified { app: place, class, fits, reason }
    }

    /// The class by the metrics alone.
    fn measure(&self, facts: &QueueFacts, place: usize) -> Classified {
        let app = &facts.apps[place];
        let all: Vec<Vec<Condition>> =
            (0..CLASSES.len()).map(|class| self.conditions(class, facts, app)).collect();
        let words = |conditions: &[&Condition]| {
            conditions.iter().map(|one| one.words()).collect::<Vec<_>>().join(", ")
        };
        let fits = all.iter().position(|conditions| conditions.iter().all(Condition::holds));
        if let Some(class) = fits {
            let reason = words(&all[class].iter().collect::<Vec<_>>());
            return Classified { app: place, class, fits: true, reason };
        }
        let far = |class: usize| all[class].iter().map(Condition::shortfall).fold(0.0, f64::max);
        let places = (0..CLASSES.len()).rev();
        let nearest = places.min_by(|&one, &other| far(one).total_cmp(&far(other)));
        let class = nearest.expect("there are classes");
        let fails: Vec<&Condition> = all[class].iter().filter(|one| !one.holds()).collect();
        let missed = 100.0 * far(class);
        let reason = format!(
            "fits no class; {} is the nearest, missed by {missed:.1} %: {}",
            CLASSES[class],
            words(&fails)
        );
        Classified { app: place, class, fits: false, reason }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::super::Settings;
    use super::{ALPHA, BETA, CLASSES, DELTA, EPSILON, GAMMA, Rule};
    use gpumodel_core::contract::{Classified, Profile, QueueFacts};

    const PARAMETERS: &[super::Parameter] = &[ALPHA, BETA, GAMMA, DELTA, EPSILON];

    /// The class of `app` on a machine of 100 GB/s and 1000 instructions per cycle.
    fn classified(app: Profile) -> Classified {
        let facts = QueueFacts {
            sms: 60,
            group_size: 2,
            peak_dram_gb_per_s: 100.0,
            peak_ipc: 1000.0,
            apps: vec![app],
            jobs: Vec::new(),
            given: BTreeMap::new(),
        };
        Rule::of(&Settings::defaults(PARAMETERS)).classify(&facts, 0)
    }

    /// On that machine: DRAM and L2 in GB/s, R, IPC.
    fn class(dram: f64, l2: f64, ratio: f64, ipc: f64) -> (Classified, &'static str) {
        let app = Profile {
            dram_gb_per_s: dram,
            l2_to_l1_gb_per_s: l2,
            memory_to_compute: ratio,
            ipc,
            ..Profile::default()
        };
        let found = classified(app);
        let name = CLASSES[found.class];
        (found, name)
    }

    fn fits(dram: f64, l2: f64, ratio: f64, ipc: f64) -> &'static str {
        let (found, name) = class(dram, l2, ratio, ipc);
        assert!(found.fits, "{}", found.reason);
        name
    }

    #[test]
    fn table_one_as_printed() {
        assert_eq!(fits(55.001, 0.0, 0.0, 900.0), "M", "whatever else it does");
        assert_eq!(fits(55.0, 90.0, 0.5, 100.0), "MC", "alpha itself is not above alpha");
        assert_eq!(fits(30.001, 0.0, 0.0, 0.0), "MC");
        assert_eq!(fits(30.0, 55.001, 0.201, 199.0), "C");
        assert_eq!(fits(5.0, 5.0, 0.199, 200.1), "A");
    }

    #[test]
    fn a_given_class_stands_against_the_measured_one() {
        let app = Profile { dram_gb_per_s: 90.0, given_class: Some(1), ..Profile::default() };
        let found = classified(app);
        assert_eq!((CLASSES[found.class], found.fits), ("MC", false));
        assert!(found.reason.starts_with("given; measured M: MB 90"), "{}", found.reason);
    }

    #[test]
    fn an_application_that_fits_no_class_is_in_the_nearest() {
        // Compute, but at half of epsilon: 0.5 away from A, more from all others.
        let (found, name) = class(1.0, 1.0, 0.1, 100.0);
        assert_eq!((found.fits, name), (false, "A"));
        assert!(found.reason.contains("missed by 50.0 %"), "{}", found.reason);
        assert!(found.reason.contains("IPC 100.000 not above epsilon 200"), "{}", found.reason);
        // A tenth below gamma, else C.
        let (found, name) = class(10.0, 49.5, 0.4, 100.0);
        assert_eq!((found.fits, name), (false, "C"));
        assert!(found.reason.contains("L2->L1 49.500 GB/s not above gamma 55"));
        // Just below beta with many memory instructions and few reads of the L2.
        assert_eq!(class(29.9, 1.0, 0.5, 100.0).1, "MC");
    }

    #[test]
    fn of_equally_near_classes_the_lower_in_the_table_counts() {
        // Neither above nor below delta and epsilon: nothing is missed by any part.
        let (found, name) = class(0.0, 60.0, 0.2, 200.0);
        assert_eq!((found.fits, name), (false, "A"));
    }
}
