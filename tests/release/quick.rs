//! Does the short version of all papers equal `reports/quick`?

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::sweep_place::Place;

/// The files of a report that `reports/quick` has: no paths and no hashes of the build.
fn read(folder: &Path) -> BTreeMap<&'static str, String> {
    let read = |name: &'static str| (name, fs::read_to_string(folder.join(name)).unwrap());
    ["headlines.csv", "report.md"].map(read).into()
}

/// The text without its figures, which are there, and of runs too short to keep.
fn without_figures(text: &str, folder: &Path) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut figures = 0;
    for line in text.lines() {
        let Some((_, name)) = line.strip_prefix("![").and_then(|line| line.split_once("](")) else {
            kept.push(line);
            continue;
        };
        let name = name.trim_end_matches(')');
        assert!(fs::metadata(folder.join(name)).unwrap().len() > 1000, "{name}");
        figures += 1;
        // The caption, and the empty lines around it.
        while kept.pop_if(|line| line.is_empty() || line.starts_with("**")).is_some() {}
    }
    assert!(figures > 15, "{figures} figures");
    kept.join("\n") + "\n"
}

#[test]
fn the_short_version_of_all_papers_is_the_one_in_reports() {
    let place = Place::new();
    let (code, said) = place.run(&["reproduce", "all", "--quick", "--report", "out"]);
    // Short runs need not agree with papers.
    assert_eq!(code, Some(1), "{said}");
    let out = place.path("out");
    let mut found = read(&out);
    let text = found.get_mut("report.md").unwrap();
    *text = without_figures(text, &out);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("reports/quick");
    if std::env::var_os("BLESS").is_some() {
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        for (name, text) in &found {
            fs::write(folder.join(name), text).unwrap();
        }
    }
    let expected = read(&folder);
    for (name, text) in &expected {
        assert!(found[name] == *text, "{name} is another; BLESS=1 writes it again");
    }
}
