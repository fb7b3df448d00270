//! What co-runs say of themselves, looks of schemes that never came among it.

use crate::record::CoRun;

/// The notes of co-runs, each once with the `names` of the schemes that it is about, in the
/// order in which they first come.
pub(crate) fn notes(names: &[String], runs: &[CoRun]) -> Vec<(String, String)> {
    let mut told: Vec<(String, Vec<&str>)> = Vec::new();
    for (name, run) in names.iter().zip(runs) {
        for note in run.notes.iter().cloned().chain(missed_look(run)) {
            match told.iter_mut().find(|(known, _)| *known == note) {
                Some((_, schemes)) => schemes.push(name),
                None => told.push((note, vec![name])),
            }
        }
    }
    let joined = |(note, schemes): (String, Vec<&str>)| {
        let all = schemes.len() > 2 && schemes.len() == runs.len();
        let schemes = if all { "all schemes".into() } else { schemes.join(", ") };
        (note, schemes)
    };
    told.into_iter().map(joined).collect()
}

/// Says that the scheme never was asked at a cycle that it had named, so that nothing
/// followed from what it would have seen; `None`: it was, or it named none.
fn missed_look(run: &CoRun) -> Option<String> {
    let look = run.missed_look()?;
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

    use super::{missed_look, notes};
    use crate::record::{CoRun, DecisionRecord};

    #[test]
    fn a_note_of_several_schemes_is_said_once() {
        let run = |notes: &[&str]| CoRun {
            notes: notes.iter().map(ToString::to_string).collect(),
            ..CoRun::default()
        };
        let names = ["a", "b", "c"].map(String::from);
        let told = notes(&names, &[run(&["cut", "slow"]), run(&["cut"]), run(&["late", "cut"])]);
        let pair = |note: &str, of: &str| (note.to_owned(), of.to_owned());
        assert_eq!(told, [pair("cut", "all schemes"), pair("slow", "a"), pair("late", "c")]);
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
        let said = missed_look(&run).unwrap();
        assert!(said.starts_with("the run ended at cycle 900, before its first look"), "{said}");
        assert!(said.ends_with("every 5000 cycles: set epoch= to fewer"), "{said}");
        let long = CoRun { cycles: 9000, parameters: [].into(), ..run.clone() };
        let said = missed_look(&long).unwrap();
        assert!(
            said.contains("meant for cycle 5000, never came") && !said.contains("epoch"),
            "{said}"
        );
        assert_eq!(missed_look(&CoRun { decisions: Vec::new(), ..run }), None);
    }
}
