//! Is the README short, do its links and the guide's lead to files, does the guide name every
//! scheme, figure and key of a record, does a page's command give its picture, and does its Python
//! read a record?

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpumodel::app::guide::{PAGES, Page, TOPICS};
use gpumodel::app::{AnalyzeRequest, AppName, Unwatched, analyze};
use gpumodel::policy::TABLE;
use gpumodel::policy::queue::QUEUE_TABLE;
use gpumodel::report::figure::FIGURES;
use serde_json::Value;

use crate::common::program::gpumodel;
use crate::skip::skipped;

/// The most words of the README, as `wc -w` counts them.
const README_WORDS: usize = 700;

/// The least and the most words of a topic.
const TOPIC_WORDS: std::ops::RangeInclusive<usize> = 300..=1200;

/// The least and the most words of a page on a scheme, without tables, commands and pictures.
const PAGE_WORDS: std::ops::RangeInclusive<usize> = 80..=250;

/// The most bytes of a page's picture.
const PICTURE_BYTES: u64 = 60_000;

/// Keys below which names are data: settings, causes, units, plans.
const OPEN: [&str; 7] = [
    "overrides",
    "filters",
    "parameters",
    "plan",
    "stall_fractions",
    "instruction_mix",
    "activity",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap()
}

fn topic(name: &str) -> &'static str {
    TOPICS.iter().find(|topic| topic.name == name).unwrap().text
}

/// What links of a Markdown text lead to, without those into the web and into the page.
fn links(text: &str) -> Vec<&str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let targets = targets.filter(|target| !target.contains("://") && !target.starts_with('#'));
    targets.map(|target| target.split('#').next().unwrap()).collect()
}

/// A word of code in a text: the whole of it between back quotes.
fn names(text: &str, word: &str) -> bool {
    text.contains(&format!("`{word}`"))
}

#[test]
fn the_readme_is_short_and_has_two_commands_to_start_with() {
    let text = read("README.md");
    let words = text.split_whitespace().count();
    assert!(words <= README_WORDS, "{words} words");
    let start = text.split("## Start").nth(1).unwrap().split("```").nth(1).unwrap();
    let commands: Vec<&str> = start.lines().skip(1).collect();
    let run = "cargo run --release -- analyze traces/samples/* --machine gtx-1080 --report out";
    assert_eq!(commands, [run, "cargo test"]);
}

#[test]
fn topics_are_neither_stubs_nor_books_and_say_what_for() {
    for topic in TOPICS {
        let words = topic.text.split_whitespace().count();
        assert!(TOPIC_WORDS.contains(&words), "{}: {words} words", topic.name);
        let opening = topic.text.lines().nth(2).unwrap();
        assert!(opening.starts_with("Afterwards you can "), "{}: {opening}", topic.name);
    }
}

#[test]
fn every_file_of_the_guide_is_a_topic_and_in_the_readme() {
    let linked = read("README.md");
    let mut files = BTreeSet::new();
    for entry in std::fs::read_dir(root().join("src/app/guide")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        files.extend(name.strip_suffix(".md").map(str::to_owned));
    }
    let topics: BTreeSet<String> = TOPICS.iter().map(|topic| topic.name.to_owned()).collect();
    assert_eq!(files, topics);
    for name in topics {
        assert!(linked.contains(&format!("(src/app/guide/{name}.md)")), "{name}");
    }
}

fn page_path(page: &Page) -> PathBuf {
    PathBuf::from(format!("src/app/guide/schemes/{}.md", page.name))
}

/// The text of a page without tables, commands and pictures.
fn prose(page: &Page) -> String {
    let outside = page.text.split("```").step_by(2).flat_map(str::lines);
    let lines = outside.filter(|line| !line.starts_with('|') && !line.starts_with("!["));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn pages_on_schemes_are_neither_stubs_nor_books() {
    for page in PAGES {
        let words = prose(page).split_whitespace().count();
        assert!(PAGE_WORDS.contains(&words), "{}: {words} words", page.name);
        assert!(page.text.contains("\n**From** "), "{} names no paper", page.name);
    }
}

/// The words between `before` and `after` in the text of a page.
fn between(page: &Page, before: &str, after: &str) -> &'static str {
    let rest = page.text.split(before).nth(1).unwrap_or_else(|| panic!("{}: {before}", page.name));
    rest.split(after).next().unwrap()
}

#[test]
fn the_command_of_a_page_gives_its_picture() {
    let folder = tempfile::tempdir().unwrap();
    let (record, drawn) = (folder.path().join("record.json"), folder.path().join("drawn.svg"));
    let (record, drawn) = (record.to_str().unwrap(), drawn.to_str().unwrap());
    for page in PAGES {
        let picture = root().join(format!("reports/schemes/{}.svg", page.name));
        let link = format!("](../../../../reports/schemes/{}.svg)", page.name);
        assert!(page.text.contains(&link), "{link}");
        assert!(picture.metadata().unwrap().len() < PICTURE_BYTES, "{}", page.name);
        let command = between(page, "```sh\ngpumodel ", "\n```\n").split(' ');
        gpumodel(&command.chain(["--json", record]).collect::<Vec<_>>()).success();
        let figure = between(page, "\nFigure `", "` of this command: ");
        gpumodel(&["plot", record, "--figure", figure, "--width", "one", "-o", drawn]).success();
        let same = std::fs::read(drawn).unwrap() == std::fs::read(picture).unwrap();
        assert!(same, "{}: `reports/draw schemes` draws it again", page.name);
    }
}

#[test]
fn links_lead_to_files() {
    let mut texts: Vec<PathBuf> =
        ["README.md", "CHANGELOG.md", "CONTRIBUTING.md"].map(PathBuf::from).to_vec();
    texts.extend(TOPICS.iter().map(|t| PathBuf::from(format!("src/app/guide/{}.md", t.name))));
    texts.extend(PAGES.iter().map(page_path));
    let (mut broken, mut found) = (Vec::new(), 0);
    for path in texts {
        let text = read(path.to_str().unwrap());
        for target in links(&text) {
            found += 1;
            if !root().join(path.parent().unwrap()).join(target).exists() {
                broken.push(format!("{}: {target}", path.display()));
            }
        }
    }
    assert!(found > 50, "{found} links");
    assert!(broken.is_empty(), "{broken:?}");
}

#[test]
fn every_topic_that_a_text_mentions_exists() {
    let readme = read("README.md");
    let texts = TOPICS.iter().map(|topic| topic.text).chain(PAGES.iter().map(|page| page.text));
    let texts = texts.chain([readme.as_str()]);
    for text in texts {
        for rest in text.split("`gpumodel guide ").skip(1) {
            let words = rest.split('`').next().unwrap();
            let name = words.split(' ').next().unwrap();
            let known = TOPICS.iter().any(|topic| topic.name == name);
            assert!(known || ["TOPIC", "--schema"].contains(&name), "{words}");
        }
    }
}

#[test]
fn every_scheme_and_figure_is_in_its_topic() {
    let schemes = TABLE.iter().map(|row| row.name);
    let schemes = schemes.chain(QUEUE_TABLE.iter().map(|row| row.name));
    let missing: Vec<&str> = schemes.filter(|name| !names(topic("schemes"), name)).collect();
    assert!(missing.is_empty(), "schemes: {missing:?}");
    let figures = FIGURES.iter().map(|figure| figure.name);
    let missing: Vec<&str> = figures.filter(|name| !names(topic("gallery"), name)).collect();
    assert!(missing.is_empty(), "gallery: {missing:?}");
}

/// Collects the keys of a document.
fn keys(value: &Value, into: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            for (key, inner) in map {
                into.insert(key.clone());
                if !OPEN.contains(&key.as_str()) {
                    keys(inner, into);
                }
            }
        }
        Value::Array(list) => list.iter().for_each(|inner| keys(inner, into)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// A record on `machine` of two small applications under `schemes`.
fn record(machine: &str, schemes: &[&str]) -> Value {
    let cache = tempfile::tempdir().unwrap();
    let apps = ["A=synth:saxpy:scale=0.05", "B=synth:compute:scale=0.05"];
    let mut request = AnalyzeRequest::new(apps.map(AppName::parse).to_vec(), machine, cache.path());
    request.schemes = schemes.iter().map(|scheme| (*scheme).to_owned()).collect();
    serde_json::to_value(analyze(&request, &Unwatched).unwrap()).unwrap()
}

#[test]
fn every_key_of_a_record_is_explained() {
    let mut found = BTreeSet::new();
    let warped_slicer = "warped-slicer:profile=offline";
    keys(&record("v100", &["left-over", warped_slicer, "sim", "slate"]), &mut found);
    keys(&record("ugpu", &["bp", "ugpu:epoch=500"]), &mut found);
    assert!(found.len() > 150, "{} keys", found.len());
    let missing: Vec<&String> = found.iter().filter(|key| !names(topic("results"), key)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn links_are_found() {
    let text = "a [b](c.md), ![d](e.svg), [f](https://g) and [h](i.md#j), [k](#l)";
    assert_eq!(links(text), ["c.md", "e.svg", "i.md"]);
}

/// The Python of the guide on results.
fn python_example() -> &'static str {
    let (_, rest) = topic("results").split_once("```python\n").unwrap();
    rest.split_once("```").unwrap().0
}

#[test]
fn the_pandas_example_of_the_guide_runs() {
    let has_pandas = Command::new("python3").args(["-c", "import pandas"]).output();
    if !has_pandas.is_ok_and(|run| run.status.success()) {
        return skipped("no python3 with pandas");
    }
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let (one, two) = ("traces/samples/matmul-tiled", "traces/samples/saxpy");
    let schemes = ["--machine", "warped-slicer", "--scheme", "even,spatial"];
    let words = [&["analyze", one, two, "--report", out.to_str().unwrap()], &schemes[..]].concat();
    gpumodel(&words).success();
    let run =
        Command::new("python3").args(["-c", python_example()]).current_dir(folder.path()).output();
    let run = run.unwrap();
    let shown = String::from_utf8(run.stdout).unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    for word in ["matmul-tiled", "saxpy", "l2_hit_rate", "spatial"] {
        assert!(shown.contains(word), "{word}: {shown}");
    }
}
