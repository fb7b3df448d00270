//! Does the short version of all papers equal `reports/quick`?

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::sweep_place::Place;

/// The part of the short version's report in `reports/quick`: no paths and no
/// hashes of the build.
fn kept(folder: &Path) -> BTreeMap<String, String> {
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    let wanted = |name: &str| {
        name == "headlines.csv"
            || name == "report.md"
            || Path::new(name).extension() == Some("svg".as_ref())
    };
    files
        .filter(|path| wanted(&name(path)))
        .map(|path| (name(&path), fs::read_to_string(&path).unwrap()))
        .collect()
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
    let names = |files: &BTreeMap<String, String>| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&found), names(&expected));
    for (name, text) in &expected {
        assert!(found[name] == *text, "{name} is another; BLESS=1 writes it again");
    }
}
