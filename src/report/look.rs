//! Looks of schemes that never came.

use crate::record::CoRun;

/// Says that the scheme never was asked at a cycle that it had named, so that nothing
/// followed from what it would have seen; `None`: it was, or it named none.
pub(crate) fn missed_look(run: &CoRun) -> Option<String> {
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

    use super::missed_look;
    use crate::record::{CoRun, DecisionRecord};

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
