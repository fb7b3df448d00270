//! Is every workload file listed, described and scalable? Do the patterns of their README run as
//! written, and does a power law survive into a trace? Does every paper's file list the models
//! of its kernels, and no others, and does its part run the mix of every figure?

use std::collections::BTreeSet;
use std::fs;

use gpumodel::core::isa::Access;
use gpumodel::report::paper::Paper;
use gpumodel::sim::config::Models;
use gpumodel::trace::Command;
use gpumodel::trace::workload::{Compression, Workload, write_folder};
use toml::Value;

use crate::common::workloads;
use crate::synth::parse;

#[test]
fn scale_multiplies_ctas_or_their_work() {
    for name in gpumodel::trace::workload::names(&gpumodel::models()).into_iter() {
        let ctas = |scale| {
            let workload = Workload::load_scaled(name, &gpumodel::models(), scale).unwrap();
            (0..workload.kernel_count()).map(|k| workload.kernel(k).cta_count()).collect::<Vec<_>>()
        };
        let whole = ctas(1.0);
        assert!(ctas(1e-6).iter().all(|&ctas| ctas > 0), "{name}");
        // Kernels of papers that print their grids are longer at a larger scale, or have
        // more launches; some papers run kernels that fill no GPU.
        if name.starts_with("ilp-") || name.starts_with("ws-") {
            assert!(ctas(2.0).iter().sum::<u64>() >= whole.iter().sum(), "{name}");
            continue;
        }
        let twice: Vec<u64> = whole.iter().map(|ctas| 2 * ctas).collect();
        assert_eq!(ctas(2.0), twice, "{name}");
        assert!(whole.iter().sum::<u64>() >= 80, "{name} fills no GPU at scale 1: {whole:?}");
    }
}

#[test]
fn scale_shrinks_tables_that_are_scaled_and_leaves_the_others() {
    let largest = |name: &str, scale| {
        let workload = Workload::load_scaled(name, &gpumodel::models(), scale).unwrap();
        let copied = workload.commands().filter_map(|command| match command {
            Command::Copy(copy) => Some(copy.bytes),
            Command::Kernel(_) => None,
        });
        copied.max().unwrap()
    };
    for name in ["gather-skewed", "update-random", "saxpy"] {
        assert_eq!(largest(name, 0.25), largest(name, 1.0) / 4, "{name}");
    }
    for name in ["gather", "ilp-gups", "lookup", "sparse-rows"] {
        assert_eq!(largest(name, 0.25), largest(name, 1.0), "{name}");
    }
}

#[test]
fn every_workload_file_is_listed_and_described() {
    let files: BTreeSet<String> = fs::read_dir(workloads())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "toml"))
        .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    assert_eq!(
        files,
        gpumodel::trace::workload::names(&gpumodel::models())
            .into_iter()
            .map(str::to_owned)
            .collect()
    );
    for name in gpumodel::trace::workload::names(&gpumodel::models()).into_iter() {
        let workload = Workload::load(name, &gpumodel::models()).unwrap();
        assert!(
            !workload.description().contains('\n') && workload.description().len() < 80,
            "{name}"
        );
        assert!(workload.behaviour().len() > 40, "{name}: say what is hard about it");
        assert!(!workload.source().is_empty(), "{name}");
    }
}

/// A workload in which the README's names are known.
const HEAD: &str = "\
description = 'd'
behaviour = 'b'
source = 's'
[constants]
n = 1024
width = 64
height = 16
window = 64
nodes = 64
[buffers]
x = { bytes = 65536 }
y = { bytes = 4096 }
[[kernel]]
name = 'k'
grid = [4]
block = [64]
let = { row = 'global / width', column = 'global % width' }
code = [{ loop = 'k', count = 40, body = [
";

/// The README's addresses in global memory, each as an instruction.
fn patterns() -> Vec<String> {
    let readme = fs::read_to_string(workloads().join("README.md")).unwrap();
    let (_, after) = readme.split_once("Patterns, as addresses").unwrap();
    let (table, _) = after.split_once("## ").unwrap();
    let code = table.split('`').skip(1).step_by(2);
    let line = |code: &str| match code {
        address if address.starts_with("[x") || address.starts_with("[y") => {
            Some(format!("R2 = LDG.E.SYS R4 {address}"))
        }
        guarded if guarded.starts_with("@(tx") => Some(guarded.to_owned()),
        _ => None,
    };
    code.filter_map(line).collect()
}

#[test]
fn patterns_of_the_readme_run() {
    let patterns = patterns();
    assert!(patterns.len() >= 14, "{patterns:?}");
    for pattern in patterns {
        let text = format!("{HEAD}\"{pattern}\",\n] }}, 'EXIT']\n");
        let workload = parse(&text).unwrap_or_else(|error| panic!("{pattern}: {error}"));
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("out");
        write_folder(&workload, &target, Compression::None, &mut |_| {})
            .unwrap_or_else(|error| panic!("{pattern}: {error}"));
    }
}

/// The addresses in `rank` that the first CTA of `gather-skewed` reads.
fn gathered() -> Vec<u64> {
    let workload = Workload::load("gather-skewed", &gpumodel::models()).unwrap();
    let kernel = workload.kernel(0);
    let (code, cta) = (kernel.code(), kernel.cta(0));
    let mut addresses = Vec::new();
    for warp in 0..cta.warp_count() {
        let mut stream = cta.warp(warp);
        while let Some(segment) = stream.next_segment() {
            let instructions = &code.instructions[code.segments[segment as usize].range()];
            for (place, instruction) in instructions.iter().enumerate() {
                if instruction.width == 0 {
                    stream.skip(1);
                    continue;
                }
                let mut access = Access::default();
                stream.access(&mut access);
                // Behind the eight loads of edges, each load has its address before it.
                if instruction.sources[0].number() >= 16 {
                    assert_eq!(instructions[place - 1].destinations, instruction.sources);
                    addresses.extend(access.active().map(|(_, address)| address));
                }
            }
        }
    }
    addresses
}

#[test]
fn a_skewed_gather_reads_a_few_words_most() {
    let drawn = gathered();
    assert_eq!(drawn.len(), 128 * 8);
    assert_eq!(drawn, gathered());
    let mut counts = std::collections::BTreeMap::new();
    for address in drawn {
        *counts.entry(address).or_insert(0_u32) += 1;
    }
    let mut counts: Vec<u32> = counts.into_values().collect();
    counts.sort_unstable_by(|a, b| b.cmp(a));
    // By the law the hundred most popular of 2 million words have a fifth of the reads.
    let top: u32 = counts.iter().take(100).sum();
    assert!((160..500).contains(&top), "{top} of 1024: {counts:?}");
    assert!(counts.len() > 500, "{}", counts.len());
}

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
