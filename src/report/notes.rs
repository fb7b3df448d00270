//! Sentences about runs: what an application alone took of the machine and assumes, and what co-runs
//! say.

use std::collections::BTreeMap;

use gpumodel_core::units::to_u64;

use super::format::{energy, float, grouped, percent};
use crate::group_by;
use crate::results::{AppRecord, CoRun};

/// What is said of `app` alone, a sentence each.
pub(super) fn solo(app: &AppRecord) -> impl Iterator<Item = String> {
    [effort(app), sampled(app), assumed(app)].into_iter().flatten()
}

/// Energy, and how busy units and stores were; `None` where the record says neither.
fn effort(app: &AppRecord) -> Option<String> {
    let joules = app.energy_joules.map(|joules| format!("energy {}", energy(joules)));
    let busy = app.utilization.map(|busy| {
        let shares = [
            ("ALU", busy.alu),
            ("SFU", busy.sfu),
            ("LD/ST", busy.load_store),
            ("registers", busy.registers),
            ("shared memory", busy.shared),
        ];
        let words = shares.map(|(name, share)| format!("{name} {}", percent(Some(share))));
        format!("in use: {}", words.join(", "))
    });
    let said: Vec<String> = [joules, busy].into_iter().flatten().collect();
    (!said.is_empty()).then(|| said.join("; "))
}

/// Share of the instructions from which on an assumption is named.
const NAMED: f64 = 0.01;

/// What is assumed of at least a hundredth of the warp instructions of `app`, most
/// first; `None` without such.
fn assumed(app: &AppRecord) -> Option<String> {
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    for open in app.kernels.iter().flat_map(|kernel| &kernel.assumptions) {
        *sums.entry(&open.what).or_default() += open.instructions;
    }
    let all = float(app.warp_instructions.max(1));
    let mut named: Vec<(&str, f64)> =
        sums.into_iter().map(|(what, count)| (what, float(count) / all)).collect();
    named.retain(|(_, share)| *share >= NAMED);
    named.sort_by(|a, b| b.1.total_cmp(&a.1));
    let words: Vec<String> =
        named.iter().map(|(what, share)| format!("{what} {}", percent(Some(*share)))).collect();
    (!words.is_empty()).then(|| format!("assumed where the trace is silent: {}", words.join(", ")))
}

/// What was sampled of `app`, with the interval of its cycles; `None` when every
/// CTA ran. Intervals of launches add as those of independent estimates do.
fn sampled(app: &AppRecord) -> Option<String> {
    let samples = app.kernels.iter().filter_map(|kernel| kernel.sample.as_ref());
    let (mut launches, mut ran, mut all, mut squares, mut confidence) = (0, 0, 0, 0.0, 0.0);
    for sample in samples.filter(|sample| sample.ctas_run < sample.ctas) {
        launches += 1;
        ran += sample.ctas_run;
        all += sample.ctas;
        squares += (float(sample.cycles_high - sample.cycles_low) / 2.0).powi(2);
        confidence = sample.confidence;
    }
    (launches > 0).then(|| {
        let plural = if launches == 1 { "" } else { "es" };
        format!(
            "sampled: {} of {} CTAs of {launches} launch{plural}, the rest extrapolated; the cycles are within {:.1} % ({:.0} % interval; {} launches ran whole)",
            grouped(ran),
            grouped(all),
            100.0 * squares.sqrt() / float(app.cycles.max(1)),
            100.0 * confidence,
            to_u64(app.kernels.len()) - launches,
        )
    })
}

/// The notes of co-runs, each once with the `names` of the schemes that it is about, in the
/// order in which they first come.
pub(crate) fn coruns(names: &[String], runs: &[CoRun]) -> Vec<(String, String)> {
    let said = names.iter().zip(runs).flat_map(|(name, run)| {
        let notes = run.notes.iter().cloned().chain(missed_timed(run)).chain(promise(run));
        notes.map(|note| (note, name.as_str())).collect::<Vec<_>>()
    });
    let named = |(note, mut schemes): (String, Vec<&str>)| {
        // Once, though a record says it twice.
        schemes.dedup();
        let all = schemes.len() > 2 && schemes.len() == runs.len();
        let schemes = if all { "all schemes".into() } else { schemes.join(", ") };
        (note, schemes)
    };
    group_by(said).into_iter().map(named).collect()
}

/// Says what became of a promise; `None`: nothing was promised, or it is not known to which.
fn promise(run: &CoRun) -> Option<String> {
    let (target, app) = (run.qos_target()?, run.apps.get(run.priority_app()?)?);
    let kept = if run.met_qos_target()? { "kept" } else { "broken" };
    let (name, progress) = (&app.app, app.normalized_progress);
    Some(format!("promised {name} {target} of its speed alone, and it has {progress:.3}: {kept}"))
}

/// Says that the scheme never was asked at a cycle that it had named, so that nothing
/// followed from what it would have seen; `None`: it was, or it named none.
fn missed_timed(run: &CoRun) -> Option<String> {
    let look = run.missed_timed()?;
    let why = if run.cycles < look {
        format!("the run ended at cycle {}, before its first check at cycle {look}", run.cycles)
    } else {
        format!("its first check, meant for cycle {look}, never came")
    };
    let earlier = run
        .parameters
        .get("epoch")
        .map(|epoch| format!("; it looks every {epoch} cycles: set epoch= to fewer"));
    Some(why + &earlier.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{assumed, coruns, effort, missed_timed, promise, sampled};
    use crate::results::{
        AppRecord, AssumptionRecord, CoRun, CoRunApp, DecisionRecord, KernelRecord, SampleRecord,
        UtilizationRecord,
    };

    #[test]
    fn only_what_is_recorded_is_said() {
        let mut app = AppRecord::default();
        assert_eq!(effort(&app), None);
        app.energy_joules = Some(0.004_86);
        assert_eq!(effort(&app).unwrap(), "energy 4.86 mJ");
        app.utilization = Some(UtilizationRecord { alu: 0.5, ..UtilizationRecord::default() });
        let said = effort(&app).unwrap();
        assert!(said.starts_with("energy 4.86 mJ; in use: ALU 50 %, SFU 0 %,"), "{said}");
    }

    #[test]
    fn what_few_instructions_lean_on_is_left_to_the_record() {
        let open = |what: &str, instructions| AssumptionRecord {
            what: what.to_owned(),
            instructions,
            ..AssumptionRecord::default()
        };
        let kernel = |instructions| KernelRecord {
            assumptions: vec![open("a", instructions), open("b", 2)],
            ..KernelRecord::default()
        };
        let kernels = vec![kernel(60), kernel(40)];
        let app = AppRecord { warp_instructions: 1000, kernels, ..AppRecord::default() };
        assert_eq!(assumed(&app).unwrap(), "assumed where the trace is silent: a 10 %");
        assert_eq!(assumed(&AppRecord::default()), None);
    }

    #[test]
    fn it_speaks_only_of_what_was_sampled() {
        let sample = SampleRecord {
            ctas_run: 64,
            ctas: 1024,
            confidence: 0.95,
            cycles_low: 980,
            cycles_high: 1020,
            ..SampleRecord::default()
        };
        let kernels = vec![
            KernelRecord { sample: Some(sample), ..KernelRecord::default() },
            KernelRecord::default(),
        ];
        let app = AppRecord { cycles: 2000, kernels, ..AppRecord::default() };
        let said = sampled(&app).unwrap();
        assert!(said.starts_with("sampled: 64 of 1\u{a0}024 CTAs of 1 launch,"), "{said}");
        assert!(said.contains("within 1.0 % (95 % interval;"), "{said}");
        assert_eq!(sampled(&AppRecord::default()), None);
    }

    #[test]
    fn a_note_of_several_schemes_is_said_once() {
        let run = |notes: &[&str]| CoRun {
            notes: notes.iter().map(ToString::to_string).collect(),
            ..CoRun::default()
        };
        let names = ["a", "b", "c"].map(String::from);
        let reported =
            coruns(&names, &[run(&["cut", "slow"]), run(&["cut"]), run(&["late", "cut"])]);
        let pair = |note: &str, of: &str| (note.to_owned(), of.to_owned());
        assert_eq!(reported, [pair("cut", "all schemes"), pair("slow", "a"), pair("late", "c")]);
    }

    #[test]
    fn what_became_of_a_promise_is_said() {
        let app = CoRunApp { app: "cp".into(), normalized_progress: 0.7, ..CoRunApp::default() };
        let word = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        let parameters = [word("target", "0.75"), word("high", "1")].into();
        let run = CoRun { parameters, apps: vec![app], ..CoRun::default() };
        let said = "promised cp 0.75 of its speed alone, and it has 0.700: broken";
        assert_eq!(promise(&run).as_deref(), Some(said));
        assert_eq!(promise(&CoRun::default()), None);
    }

    #[test]
    fn a_run_that_ends_before_the_first_check_is_said_with_the_setting() {
        let plan = json!({ "wake": [{ "at": 5000 }] });
        let start = DecisionRecord { wake: "start".into(), plan, ..DecisionRecord::default() };
        let epoch = [(String::from("epoch"), String::from("5000"))];
        let run = CoRun {
            cycles: 900,
            parameters: epoch.into(),
            decisions: vec![start],
            ..CoRun::default()
        };
        let said = missed_timed(&run).unwrap();
        assert!(said.starts_with("the run ended at cycle 900, before its first check"), "{said}");
        assert!(said.ends_with("every 5000 cycles: set epoch= to fewer"), "{said}");
        let long = CoRun { cycles: 9000, parameters: [].into(), ..run.clone() };
        let said = missed_timed(&long).unwrap();
        assert!(
            said.contains("meant for cycle 5000, never came") && !said.contains("epoch"),
            "{said}"
        );
        assert_eq!(missed_timed(&CoRun { decisions: Vec::new(), ..run }), None);
    }
}
