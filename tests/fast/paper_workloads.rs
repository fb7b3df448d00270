//! Does every paper's file list the workload models of its kernels, and no others, and does
//! its part run the mix of every figure?

use std::collections::BTreeSet;
use std::fs;

use gpumodel::report::paper::Paper;
use gpumodel::sim::config::Models;
use toml::Value;

use crate::common::workloads;

type Names = BTreeSet<String>;

/// Every text in `value`.
fn texts(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(values) => values.iter().flat_map(texts).collect(),
        Value::Table(table) => table.values().flat_map(texts).collect(),
        _ => Vec::new(),
    }
}

/// The workload models that a plan or a queue names.
fn models_of(file: &Value) -> Names {
    let models = texts(file).into_iter().filter_map(|text| text.strip_prefix("synth:"));
    models.map(|model| model.split(':').next().unwrap().to_owned()).collect()
}

fn listed(paper: &Paper) -> Names {
    paper.workloads.iter().cloned().collect()
}

/// The plans and queues of a paper, short versions included.
fn runs(models: &Models, paper: &Paper) -> Vec<Value> {
    let mut found = Vec::new();
    for part in &paper.parts {
        let folder = if part.plan.is_some() { "plans" } else { "mixes" };
        for name in part.plan.iter().chain(&part.queue).chain(&part.quick) {
            found.push(toml::from_str(&models.text(folder, name).unwrap().text).unwrap());
        }
    }
    found
}

#[test]
fn a_paper_lists_the_models_that_its_plans_and_tables_name() {
    let models = gpumodel::models();
    let known: Names = gpumodel::trace::workload::names(&gpumodel::models())
        .into_iter()
        .map(str::to_owned)
        .collect();
    for paper in Paper::all(&models).unwrap() {
        let (name, own) = (&paper.name, listed(&paper));
        assert_eq!(own.len(), paper.workloads.len(), "{name} lists a model twice");
        assert!(own.is_subset(&known), "{name}: no model {:?}", own.difference(&known));
        let run: Names = runs(&models, &paper).iter().flat_map(models_of).collect();
        assert_eq!(own, run, "{name}: on the left what it lists, on the right what it runs");
        let values = paper.tables.iter().flat_map(|table| &table.values);
        let printed: Names = values.flat_map(|v| &v.apps).map(|app| app.model.clone()).collect();
        assert!(printed.is_subset(&own), "{name}: {:?}", printed.difference(&own));
    }
}

#[test]
fn a_model_belongs_to_one_paper_at_most_and_every_plan_runs_those_of_papers() {
    let models = gpumodel::models();
    let mut all = Names::new();
    for paper in Paper::all(&models).unwrap() {
        for model in paper.workloads {
            assert!(all.insert(model.clone()), "{model} of {} is another's, too", paper.name);
        }
    }
    for plan in models.names("plans") {
        let text = &models.text("plans", plan).unwrap().text;
        let run = models_of(&toml::from_str(text).unwrap());
        assert!(run.is_subset(&all), "{plan}: of no paper is {:?}", run.difference(&all));
    }
}

#[test]
fn a_papers_machine_is_one_of_those_that_it_runs_on() {
    let models = gpumodel::models();
    for paper in Paper::all(&models).unwrap() {
        let machine = paper.machine.as_deref().unwrap();
        models.machine(machine, &[]).unwrap();
        let runs = runs(&models, &paper);
        let planned = runs.iter().filter_map(|run| run.get("machines")).flat_map(texts);
        let queued = paper.parts.iter().filter_map(|part| part.machine.as_deref());
        assert!(planned.chain(queued).any(|one| one == machine), "{}: {machine}", paper.name);
    }
}

/// The machine and the models of a row of the table of papers in the workloads' README:
/// the words in code, behind one such as `ws-*` without what they begin with.
fn row(line: &str) -> (String, Names) {
    let mut words = line.split('`').skip(1).step_by(2);
    let machine = words.next().unwrap().to_owned();
    let mut words = words.peekable();
    let first = words.next_if(|word| word.ends_with('*'));
    let begin = first.map_or("", |word| word.trim_end_matches('*'));
    (machine, words.map(|word| format!("{begin}{word}")).collect())
}

#[test]
fn the_table_of_papers_in_the_readme_is_what_their_files_list() {
    let text = fs::read_to_string(workloads().join("README.md")).unwrap();
    let lines = text.lines().skip_while(|line| !line.starts_with("| paper, machine |")).skip(2);
    let mut rows: Vec<_> = lines.take_while(|line| line.starts_with('|')).map(row).collect();
    let papers = Paper::all(&gpumodel::models()).unwrap();
    let of = |paper: &Paper| (paper.machine.clone().unwrap(), listed(paper));
    let mut files: Vec<_> = papers.iter().map(of).collect();
    rows.sort();
    files.sort();
    assert_eq!(rows, files);
}

/// The mixes of a plan, each sorted; none where it makes them up itself.
fn mixes(plan: &Value) -> Option<Vec<Names>> {
    let mixes = plan.get("mixes")?.as_table()?;
    let lists = mixes.get("lists").filter(|_| mixes.len() == 1)?.as_array()?;
    let sorted = |mix: &Value| texts(mix).into_iter().map(str::to_owned).collect();
    Some(lists.iter().map(sorted).collect())
}

#[test]
fn the_mix_of_a_figure_is_run_by_its_part() {
    let models = gpumodel::models();
    let mut found = 0;
    for paper in Paper::all(&models).unwrap() {
        for part in &paper.parts {
            let Some(plan) = &part.plan else { continue };
            let plan: Value = toml::from_str(&models.text("plans", plan).unwrap().text).unwrap();
            for mix in part.figures.iter().filter_map(|figure| figure.mix.as_ref()) {
                let own: Names = mix.iter().cloned().collect();
                let runs = mixes(&plan).is_none_or(|mixes| mixes.contains(&own));
                assert!(runs, "{}: part {} runs no mix of {own:?}", paper.name, part.name);
                found += 1;
            }
        }
    }
    assert!(found >= 4, "{found} figures of one mix");
}
