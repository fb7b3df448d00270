//! Does the short version of all papers equal `reports/quick`?

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::sweep_place::Place;

/// What `reports/quick` has of a report: rows and text, which have no paths and no hashes of
/// the build. The figures must be there, and are of runs too short to keep.
fn kept(folder: &Path) -> BTreeMap<&'static str, String> {
    let read = |name: &'static str| (name, fs::read_to_string(folder.join(name)).unwrap());
    let mut files: BTreeMap<_, _> = ["headlines.csv", "report.md"].map(read).into();
    let text = files.get_mut("report.md").unwrap();
    let (figures, lines): (Vec<_>, Vec<_>) = text.lines().partition(|line| line.starts_with("!["));
    for figure in figures {
        let name = figure.rsplit_once('(').unwrap().1.trim_end_matches(')');
        assert!(fs::metadata(folder.join(name)).unwrap().len() > 1000, "{name}");
    }
    *text = lines.join("\n") + "\n";
    files
}

#[test]
fn the_short_version_of_all_papers_is_the_one_in_reports() {
    let place = Place::new();
    let (code, said) = place.run(&["reproduce", "all", "--quick", "--report", "out"]);
    // Short runs need not agree with papers.
    assert_eq!(code, Some(1), "{said}");
    let found = kept(&place.path("out"));
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("reports/quick");
    if std::env::var_os("BLESS").is_some() {
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        for (name, text) in &found {
            fs::write(folder.join(name), text).unwrap();
        }
    }
    let expected = kept(&folder);
    for (name, text) in &expected {
        assert!(found[name] == *text, "{name} is another; BLESS=1 writes it again");
    }
}
