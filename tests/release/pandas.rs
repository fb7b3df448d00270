//! Does the guide's Python example read a record?

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::program::gpumodel;
use crate::skip::skipped;

/// The Python of the guide on results.
fn example() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let guide = fs::read_to_string(root.join("src/app/guide/results.md")).unwrap();
    let (_, rest) = guide.split_once("```python\n").unwrap();
    rest.split_once("```").unwrap().0.to_owned()
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
    let run = Command::new("python3").args(["-c", &example()]).current_dir(folder.path()).output();
    let run = run.unwrap();
    let shown = String::from_utf8(run.stdout).unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    for word in ["matmul-tiled", "saxpy", "l2_hit_rate", "spatial"] {
        assert!(shown.contains(word), "{word}: {shown}");
    }
}
