//! The name of an application by what it was made from.

use std::path::Path;

use super::list::{LIST, plain_name};

/// The last two components of the trace at `path`, the last one without its endings, from
/// wherever `path` leads there: `apps/bfs` for the folder `apps/bfs`, for its list
/// `apps/bfs/kernelslist.g`, and for a file `apps/bfs.trace.xz`.
#[must_use]
pub fn source_name(path: &Path) -> String {
    let full = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let list = !full.is_dir() && name(&full).starts_with(LIST);
    let full = full.parent().filter(|_| list).unwrap_or(&full);
    let last = name(full);
    let stem = Path::new(plain_name(&last)).file_stem().unwrap_or_default().to_string_lossy();
    let last = if full.is_dir() { last.as_str() } else { &*stem };
    match full.parent().map(name).filter(|parent| !parent.is_empty()) {
        Some(parent) => format!("{parent}/{last}"),
        None => last.to_owned(),
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
    fn a_path_that_does_not_exist_has_a_name_too() {
        assert_eq!(source_name(Path::new("/no/such/apps/bfs.gpt")), "apps/bfs");
        assert_eq!(source_name(Path::new("/bfs.trace")), "bfs");
        assert_eq!(source_name(Path::new("bfs")), "bfs");
    }
}
