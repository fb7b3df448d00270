//! Does any configuration of Accel-Sim and GPGPU-Sim become a readable machine file, or
//! a refusal with its place?

#![no_main]

use gpumodel::core::toml::TomlError;
use gpumodel::sim::config::{ImportLabel, SpecError, import_accelsim};
use gpumodel_fuzz::{Place, named};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let place = Place::new();
    // A byte that no text has parts the two files.
    let at = bytes.iter().position(|byte| *byte == 0xff).unwrap_or(bytes.len());
    let mut files = vec![place.file("gpgpusim.config", &bytes[..at])];
    if let Some(rest) = bytes.get(at + 1..) {
        files.push(place.file("trace.config", rest));
    }
    let label = ImportLabel { name: "m".to_owned(), description: "d \"1\"".to_owned() };
    let import = match import_accelsim(&files, &label) {
        Ok(import) => import,
        Err(SpecError::MissingOption { .. }) => return,
        Err(error) => return named(&error, "config"),
    };
    let file = place.file("m.toml", import.text.as_bytes());
    match gpumodel::models().machine(&file.display().to_string(), &[]) {
        Ok(resolved) => assert_eq!(resolved.machine.name, "m"),
        Err(SpecError::Toml(error)) if matches!(*error, TomlError::Syntax { .. }) => {
            panic!("{error}\n{}", import.text)
        }
        Err(_) => {}
    }
});
