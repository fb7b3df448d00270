//! Files of no trace format, and TOML files given in place of traces, recognised by their keys.

use std::fs;
use std::path::Path;

use gpumodel_core::units::quoted;
use toml::de::DeTable;

use super::FORMATS;
use super::source::TextBlock;
use crate::error::TraceError;

/// Per kind of file: keys of which it has one at its top, and the option that takes it.
const KINDS: &[(&[&str], &str, &str)] = &[
    (&["mixes", "schemes"], "the plan of a sweep", "gpumodel sweep FILE --out DIR"),
    (&["group_size"], "a queue", "gpumodel analyze --queue FILE"),
    (&["kernels", "kernel", "behaviour"], "a workload model", "synth:FILE in place of a trace"),
    (&["base", "isa", "sm", "clocks", "l1", "l2", "dram"], "a machine", "--machine FILE"),
];

/// The error of a file at `path` that is of no format; `first` is its beginning.
pub(super) fn error(path: &Path, first: &TextBlock) -> TraceError {
    let names: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
    let start = first.bytes.trim_ascii().split(|&byte| byte == b'\n').next();
    let found = quoted(start.unwrap_or_default().trim_ascii_end());
    TraceError::Text {
        path: path.to_path_buf(),
        line: first.first_line,
        expected: names.join("; or "),
        found: match description(&first.bytes, path).or_else(|| empty(path, first)) {
            Some(words) => format!("{found}: {words}"),
            None => found,
        },
    }
}

/// Why the file at `path` has no text, if it has none.
fn empty(path: &Path, first: &TextBlock) -> Option<String> {
    if !first.bytes.trim_ascii().is_empty() {
        return None;
    }
    let packed = fs::metadata(path).is_ok_and(|metadata| metadata.len() > 0);
    Some(String::from(match (first.bytes.is_empty(), packed) {
        (false, _) => "the file has blank lines alone",
        (true, true) => "what the file packs is empty",
        (true, false) => "the file is empty",
    }))
}

/// What `text`, the beginning of the file at `path`, is in place of a trace, and what takes
/// it; `None`: it is no TOML.
fn description(text: &[u8], path: &Path) -> Option<String> {
    let text = std::str::from_utf8(text).ok()?;
    let table = DeTable::parse(text).ok()?;
    let has = |keys: &[&str]| keys.iter().any(|key| table.get_ref().contains_key(*key));
    if table.get_ref().is_empty() {
        return None;
    }
    let kind = KINDS.iter().find(|(keys, ..)| has(keys));
    Some(match kind {
        Some((_, kind, taker)) => {
            let taker = taker.replace("FILE", &path.display().to_string());
            format!("TOML, {kind}, which belongs to `{taker}`")
        }
        None => String::from("TOML, which is no trace"),
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::description;

    #[test]
    fn shipped_descriptions_are_recognised() {
        let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models");
        for (folder, words) in [
            ("plans", "the plan of a sweep"),
            ("mixes", "a queue"),
            ("workloads", "`synth:x.toml in place of a trace`"),
            ("gpus", "`--machine x.toml`"),
        ] {
            for entry in std::fs::read_dir(models.join(folder)).unwrap() {
                let path = entry.unwrap().path();
                if path.extension().is_some_and(|ending| ending == "toml") {
                    let said =
                        description(&std::fs::read(&path).unwrap(), Path::new("x.toml")).unwrap();
                    assert!(said.contains(words), "{}: {said}", path.display());
                }
            }
        }
    }

    #[test]
    fn other_files_are_described_as_far_as_known() {
        let said = |text: &str| description(text.as_bytes(), Path::new("x"));
        assert_eq!(said("a = 1\n").as_deref(), Some("TOML, which is no trace"));
        assert_eq!((said(""), said("# note\n"), said("-kernel\n")), (None, None, None));
    }
}
