//! Descriptions that are given in place of traces: TOML files, told by their keys.

use std::path::Path;

use toml::de::DeTable;

/// Keys of a description, of which a file has one at its top, and what takes it.
const KINDS: &[(&[&str], &str, &str)] = &[
    (&["mixes", "schemes"], "the plan of a sweep", "gpumodel sweep FILE --out DIR"),
    (&["group_size"], "a queue", "gpumodel analyze --queue FILE"),
    (&["kernels", "kernel", "behaviour"], "a workload model", "synth:FILE in place of a trace"),
    (&["base", "isa", "sm", "clocks", "l1", "l2", "dram"], "a machine", "--machine FILE"),
];

/// What `text`, the beginning of the file at `path`, is in place of a trace, and what takes
/// it; `None`: it is no TOML.
pub(super) fn told(text: &[u8], path: &Path) -> Option<String> {
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

    use super::told;

    #[test]
    fn shipped_descriptions_are_told_for_what_they_are() {
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
                    let said = told(&std::fs::read(&path).unwrap(), Path::new("x.toml")).unwrap();
                    assert!(said.contains(words), "{}: {said}", path.display());
                }
            }
        }
    }

    #[test]
    fn other_files_are_told_as_little_as_is_known() {
        let told = |text: &str| told(text.as_bytes(), Path::new("x"));
        assert_eq!(told("a = 1\n").as_deref(), Some("TOML, which is no trace"));
        assert_eq!((told(""), told("# note\n"), told("-kernel\n")), (None, None, None));
    }
}
