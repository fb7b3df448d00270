//! The JSON Schema of a record is the one of the types, and records meet it.

use std::{env, fs};

use schemars::generate::SchemaSettings;
use serde_json::Value;

use super::{Analysis, RECORD_SCHEMA};

/// The schema of [`Analysis`] as written (optional keys may be absent), as text.
fn derived() -> String {
    let schema = SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<Analysis>();
    let mut schema = schema.to_value();
    plain_descriptions(&mut schema);
    serde_json::to_string_pretty(&schema).unwrap() + "\n"
}

/// Descriptions without the line breaks and links of the source text.
fn plain_descriptions(value: &mut Value) {
    match value {
        Value::Object(map) => {
            if let Some(Value::String(text)) = map.get_mut("description") {
                *text = text.replace('\n', " ").replace("[`", "`").replace("`]", "`");
            }
            map.values_mut().for_each(plain_descriptions);
        }
        Value::Array(list) => list.iter_mut().for_each(plain_descriptions),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn the_published_schema_is_the_one_of_the_types() {
    let derived = derived();
    if env::var_os("BLESS").is_some() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/results/record.schema.json");
        return fs::write(file, derived).unwrap();
    }
    assert!(
        derived == RECORD_SCHEMA,
        "the keys of the record changed: `BLESS=1 cargo test -p gpumodel-report schema` \
         writes record.schema.json again; read the diff: keys are added, never renamed"
    );
}
