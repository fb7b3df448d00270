//! The name of an application by what it was made from.

use std::path::Path;

use super::list::{FOLDER, LIST, holds_only_traces, plain_name};

/// What Accel-Sim's scripts call the folder of a program that they ran without arguments.
const NO_ARGUMENTS: &str = "NO_ARGS";

/// The last two components of the trace at `path`, the last one without its endings, from
/// wherever `path` leads there: `apps/bfs` for the folder `apps/bfs`, for its list
/// `apps/bfs/kernelslist.g`, and for a file `apps/bfs.trace.xz`.
///
/// Accel-Sim's scripts keep traces in `CUDA/PROGRAM/ARGUMENTS/traces`: there the name is
/// `ARGUMENTS/PROGRAM`, so that the last component, which tables show, is the program's; without
/// arguments it is `PROGRAM`.
#[must_use]
pub fn source_name(path: &Path) -> String {
    let full = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let list = !full.is_dir() && name(&full).starts_with(LIST);
    let full = full.parent().filter(|_| list).unwrap_or(&full);
    let traces = name(full) == FOLDER && full.is_dir();
    let folder = if traces { full.parent().unwrap_or(full) } else { full };
    if let Some(name) = name_by_arguments(folder, traces) {
        return name;
    }
    let last = name(full);
    let stem = Path::new(plain_name(&last)).file_stem().unwrap_or_default().to_string_lossy();
    let last = if full.is_dir() { last.as_str() } else { &*stem };
    match full.parent().map(name).filter(|parent| !parent.is_empty()) {
        Some(parent) => format!("{parent}/{last}"),
        None => last.to_owned(),
    }
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The name of the traces in `folder` by Accel-Sim's layout `CUDA/PROGRAM/ARGUMENTS/traces`, where
/// `folder` is that of the arguments and has a folder [`FOLDER`]; `None` in other layouts: these
/// have neither a version of CUDA above the program nor the name for no arguments.
fn name_by_arguments(folder: &Path, known: bool) -> Option<String> {
    let arguments = name(folder);
    let program = folder.parent()?;
    let version = program.parent().map(name).unwrap_or_default();
    let parts: Vec<&str> = version.split('.').collect();
    let number = |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let by_version = parts.len() == 2 && parts.iter().all(number);
    let program = Some(name(program)).filter(|program| !program.is_empty())?;
    let nested = known || folder.is_dir() && holds_only_traces(folder);
    match arguments == NO_ARGUMENTS {
        _ if !nested => None,
        true => Some(program),
        false => by_version.then(|| format!("{arguments}/{program}")),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::source_name;

    #[test]
    fn every_way_to_a_trace_gives_one_name() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("silicon/sgemm.v2");
        fs::create_dir_all(folder.join("sub")).unwrap();
        for name in ["kernelslist.g", "kernel-1.traceg.xz"] {
            fs::write(folder.join(name), "").unwrap();
        }
        for way in ["", ".", "sub/..", "../sgemm.v2/", "kernelslist.g", "./kernelslist.g"] {
            assert_eq!(source_name(&folder.join(way)), "silicon/sgemm.v2", "{way}");
        }
        assert_eq!(source_name(&folder.join("kernel-1.traceg.xz")), "sgemm.v2/kernel-1");
    }

    #[test]
    fn traces_of_accel_sims_scripts_have_the_name_of_their_program() {
        let place = tempfile::tempdir().unwrap();
        for (folder, expected) in
            [("bfs/graph_1", "graph_1/bfs"), ("vectoradd/NO_ARGS", "vectoradd")]
        {
            let traces = place.path().join("11.0").join(folder).join("traces");
            fs::create_dir_all(&traces).unwrap();
            fs::write(traces.join("kernelslist.g"), "").unwrap();
            for way in ["", "kernelslist.g", ".."] {
                assert_eq!(source_name(&traces.join(way)), expected, "{way}");
            }
        }
    }

    #[test]
    fn a_folder_of_traces_elsewhere_is_named_by_its_own_path() {
        let place = tempfile::tempdir().unwrap();
        let traces = place.path().join("work/bfs/traces");
        fs::create_dir_all(&traces).unwrap();
        fs::write(traces.join("kernelslist.g"), "").unwrap();
        assert_eq!(source_name(&traces), "bfs/traces");
        assert_eq!(source_name(&traces.join("..")), "work/bfs");
    }

    #[test]
    fn a_path_that_does_not_exist_has_a_name_too() {
        assert_eq!(source_name(Path::new("/no/such/apps/bfs.gpt")), "apps/bfs");
        assert_eq!(source_name(Path::new("/bfs.trace")), "bfs");
        assert_eq!(source_name(Path::new("bfs")), "bfs");
    }
}
