//! Do the records of the program meet the JSON Schema that it publishes?

use std::fs;

use jsonschema::Validator;
use serde_json::{Value, json};

use crate::common::program::{gpumodel, stdout};
use crate::shown::{crowded, data, small};

/// The published schema; a key that it does not list is refused too.
fn strict() -> Validator {
    let published = stdout(&gpumodel(&["guide", "--schema"]).success());
    let mut schema: Value = serde_json::from_str(&published).unwrap();
    refuse_unlisted(&mut schema);
    jsonschema::validator_for(&schema).unwrap()
}

fn refuse_unlisted(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            map.values_mut().for_each(refuse_unlisted);
            if map.get("properties").is_some_and(Value::is_object) {
                map.insert("additionalProperties".into(), false.into());
            }
        }
        Value::Array(list) => list.iter_mut().for_each(refuse_unlisted),
        _ => {}
    }
}

fn complaints(validator: &Validator, record: &Value) -> Vec<String> {
    let complaint =
        |error: jsonschema::ValidationError| format!("{}: {error:.200}", error.instance_path());
    validator.iter_errors(record).map(complaint).collect()
}

/// The record of `gpumodel analyze` with these words.
fn analyzed(words: &[&str]) -> Value {
    let words = [&["analyze"], words, &["--json", "-"]].concat();
    serde_json::from_str(&stdout(&gpumodel(&words).success())).unwrap()
}

#[test]
fn records_of_every_kind_pass_the_schema() {
    let validator = strict();
    let (one, two) = ("traces/samples/matmul-tiled", "traces/samples/saxpy");
    let queue = tempfile::NamedTempFile::new().unwrap();
    fs::write(&queue, "group_size = 2\norder = [\"a\", \"b\"]\n").unwrap();
    let (a, b) = (format!("a={one}"), format!("b={two}"));
    let committed = fs::read(data("record.json")).unwrap();
    let schemes = "even,warped-slicer:warmup=500:window=500";
    for (kind, record) in [
        ("committed", serde_json::from_slice(&committed).unwrap()),
        ("by hand", serde_json::from_str(&small().to_json()).unwrap()),
        ("crowded", serde_json::from_str(&crowded(9).to_json()).unwrap()),
        ("alone", analyzed(&[one, "--machine", "v100"])),
        ("translated", analyzed(&[one, "--machine", "ugpu"])),
        ("sampled", analyzed(&[two, "--machine", "v100", "--sample"])),
        ("together", analyzed(&[one, two, "--machine", "warped-slicer", "--scheme", schemes])),
        (
            "queue",
            analyzed(&[&a, &b, "--machine", "ilp-smra", "--queue", queue.path().to_str().unwrap()]),
        ),
    ] {
        assert_eq!(complaints(&validator, &record), [""; 0], "{kind}");
    }
}

#[test]
fn a_wrong_record_fails_the_schema() {
    let validator = strict();
    let record: Value = serde_json::from_str(&small().to_json()).unwrap();
    for (key, value) in [
        ("/schema", json!("gpumodel.analysis/2")),
        ("/solo/0/cycles", json!(-1)),
        ("/solo/0/kernels/0/grid", json!([1, 2])),
        ("/coruns/0/stp", json!("1.5")),
    ] {
        let mut wrong = record.clone();
        *wrong.pointer_mut(key).unwrap() = value;
        assert_eq!(complaints(&validator, &wrong).len(), 1, "{key}");
    }
}
