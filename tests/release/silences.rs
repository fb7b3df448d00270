//! Does every paper's file name what was assumed where the paper is silent?

use std::collections::BTreeSet;

use gpumodel::policy::queue::find_queue;
use gpumodel::policy::{Parameter, find};
use gpumodel::report::paper::{Paper, Part};
use gpumodel::sim::config::Models;

/// The schemes of a plan, without their settings.
fn planned(models: &Models, plan: &str) -> Vec<String> {
    let plan: toml::Value = toml::from_str(&models.text("plans", plan).unwrap().text).unwrap();
    let schemes = plan["schemes"].as_array().unwrap();
    schemes.iter().map(|scheme| bare(scheme.as_str().unwrap())).collect()
}

fn bare(scheme: &str) -> String {
    scheme.split(':').next().unwrap_or_default().to_owned()
}

/// The schemes that a part runs, short version included.
fn schemes(models: &Models, part: &Part) -> Vec<String> {
    let plans = part.plan.iter().chain(part.plan.as_ref().and(part.quick.as_ref()));
    let queued = part.schemes.iter().map(|scheme| bare(scheme));
    plans.flat_map(|plan| planned(models, plan)).chain(queued).collect()
}

/// The settings of a scheme; of a queue's scheme, those of both halves.
fn parameters(scheme: &str) -> Vec<Parameter> {
    let Some(row) = find_queue(scheme) else {
        return find(scheme).unwrap_or_else(|| panic!("no scheme {scheme}")).parameters.to_vec();
    };
    [row.parameters, find(row.within).unwrap().parameters].concat()
}

/// The words in brackets of a text, which name parameters.
fn named(text: &str) -> BTreeSet<String> {
    let brackets = text.split('(').skip(1).filter_map(|rest| rest.split(')').next());
    let words = |inside: &str| -> Vec<String> {
        let words = inside.split(|c: char| !c.is_alphanumeric() && c != '_');
        words.map(str::to_owned).collect()
    };
    brackets.flat_map(words).collect()
}

#[test]
fn every_assumed_parameter_is_named_where_its_paper_is_silent() {
    let models = gpumodel::models();
    let (mut missing, mut found) = (BTreeSet::new(), 0);
    for paper in Paper::all(&models).unwrap() {
        let silent: BTreeSet<String> =
            paper.silences.iter().flat_map(|one| named(&one.taken)).collect();
        for scheme in paper.parts.iter().flat_map(|part| schemes(&models, part)) {
            for one in parameters(&scheme) {
                if !one.summary.contains("(assumed") {
                    continue;
                }
                found += 1;
                if !silent.contains(one.name) {
                    missing.insert(format!("{}: {scheme}:{}", paper.name, one.name));
                }
            }
        }
    }
    assert!(found > 40, "{found} assumed parameters");
    assert!(missing.is_empty(), "no silence names {missing:?}");
}

#[test]
fn every_silence_names_the_assumption_and_its_effect() {
    for paper in Paper::all(&gpumodel::models()).unwrap() {
        assert!(!paper.silences.is_empty(), "{}", paper.name);
        for one in &paper.silences {
            let texts = [&one.what, &one.taken, &one.sensitivity];
            assert!(texts.iter().all(|text| text.len() > 3), "{}: {one:?}", paper.name);
        }
    }
}

#[test]
fn parameters_are_the_words_in_brackets() {
    let words = named("half (slate:split=even, ipc_shift), at 20 (one) microseconds");
    for word in ["split", "ipc_shift", "one"] {
        assert!(words.contains(word), "{words:?}");
    }
    assert!(!words.contains("half") && !words.contains("microseconds"));
}
