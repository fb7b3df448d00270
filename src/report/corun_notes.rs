//! What co-runs say of themselves, looks of schemes that never came among it.

use crate::results::CoRun;

/// The notes of co-runs, each once with the `names` of the schemes that it is about, in the
/// order in which they first come.
pub(crate) fn notes(names: &[String], runs: &[CoRun]) -> Vec<(String, String)> {
    let mut reported: Vec<(String, Vec<&str>)> = Vec::new();
    for (name, run) in names.iter().zip(runs) {
        for note in run.notes.iter().cloned().chain(missed_timed(run)).chain(promise(run)) {
            match reported.iter_mut().find(|(known, _)| *known == note) {
                // Once, though a record says it twice.
                Some((_, schemes)) if schemes.last() == Some(&name.as_str()) => {}
                Some((_, schemes)) => schemes.push(name),
                None => reported.push((note, vec![name])),
            }
        }
    }
    let joined = |(note, schemes): (String, Vec<&str>)| {
        let all = schemes.len() > 2 && schemes.len() == runs.len();
        let schemes = if all { "all schemes".into() } else { schemes.join(", ") };
        (note, schemes)
    };
    reported.into_iter().map(joined).collect()
}

/// Says what became of a promise; `None`: nothing was promised, or nobody knows to whom.
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
        format!("the run ended at cycle {}, before its first look at cycle {look}", run.cycles)
    } else {
        format!("its first look, meant for cycle {look}, never came")
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

    use super::{missed_timed, notes, promise};
    use crate::results::{CoRun, CoRunApp, DecisionRecord};

    #[test]
    fn a_note_of_several_schemes_is_said_once() {
        let run = |notes: &[&str]| CoRun {
            notes: notes.iter().map(ToString::to_string).collect(),
            ..CoRun::default()
        };
        let names = ["a", "b", "c"].map(String::from);
        let reported =
            notes(&names, &[run(&["cut", "slow"]), run(&["cut"]), run(&["late", "cut"])]);
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
    fn a_run_that_ends_before_the_first_look_is_said_with_the_setting() {
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
        assert!(said.starts_with("the run ended at cycle 900, before its first look"), "{said}");
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
