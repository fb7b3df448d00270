//! How much memory there is.

use std::fs;
use std::path::Path;

/// The part of it that cells may take, in tenths: the program and others need some.
const TENTHS: u64 = 8;

/// Bytes of which cells take `cells` where nobody says how much.
pub(super) fn for_cells(cells: u64) -> u64 {
    cells.div_ceil(TENTHS).saturating_mul(10)
}

/// Bytes that cells may take: most of what the system and the groups of processes that
/// this one is in have free, or no bound where nobody says.
pub(super) fn free() -> u64 {
    let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let system = available(&text("/proc/meminfo")).unwrap_or(u64::MAX);
    let groups = in_groups(Path::new("/sys/fs/cgroup"), &text("/proc/self/cgroup"));
    system.min(groups) / 10 * TENTHS
}

/// Bytes left in the groups of `list`, as `/proc/self/cgroup` has them, and in those above
/// each, whose files are in `root`; no bound where none has one.
fn in_groups(root: &Path, list: &str) -> u64 {
    let group = |line: &str| {
        let (_, rest) = line.split_once(':')?;
        let (kinds, path) = rest.split_once(':')?;
        let old = kinds.split(',').any(|kind| kind == "memory");
        let files = if old { &OLD } else { &NEW };
        // A group outside of what this process may see begins with dots.
        let path = path.trim_start_matches(['/', '.']).to_owned();
        (old || kinds.is_empty()).then_some((root.join(files.folder), path, files))
    };
    let groups = list.lines().filter_map(group);
    let left = groups.flat_map(|(root, path, files)| {
        let above = Path::new(&path).ancestors();
        above.filter_map(|path| files.left(&root.join(path))).collect::<Vec<_>>()
    });
    left.min().unwrap_or(u64::MAX)
}

/// The files of a group, by version of the system's interface.
struct Files {
    folder: &'static str,
    limits: &'static [&'static str],
    used: &'static str,
    /// Word in `memory.stat` before the bytes of files that are given back first.
    idle: &'static str,
}

const NEW: Files = Files {
    folder: "",
    limits: &["memory.max", "memory.high"],
    used: "memory.current",
    idle: "inactive_file ",
};

const OLD: Files = Files {
    folder: "memory",
    limits: &["memory.limit_in_bytes"],
    used: "memory.usage_in_bytes",
    idle: "total_inactive_file ",
};

impl Files {
    /// Bytes left in the group at `folder`; `None`: it has no limit.
    fn left(&self, folder: &Path) -> Option<u64> {
        let text = |name: &str| fs::read_to_string(folder.join(name)).unwrap_or_default();
        let number = |text: &str| text.trim().parse::<u64>().ok();
        let limit = self.limits.iter().filter_map(|name| number(&text(name))).min()?;
        let used = number(&text(self.used)).unwrap_or(0);
        let stat = text("memory.stat");
        let idle = stat.lines().find_map(|line| number(line.strip_prefix(self.idle)?));
        Some(limit.saturating_sub(used.saturating_sub(idle.unwrap_or(0))))
    }
}

/// What `/proc/meminfo` says is available, in bytes.
fn available(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::{available, in_groups};

    #[test]
    fn the_systems_words_are_read() {
        let text = "MemTotal: 16 kB\nMemAvailable:    2048 kB\nBuffers: 1 kB\n";
        assert_eq!(available(text), Some(2 << 20));
        assert_eq!(available("MemTotal: 16 kB\n"), None);
    }

    /// A folder of groups: files by path.
    fn groups(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap_or(Path::new(""))).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    #[test]
    fn the_closest_limit_of_a_group_and_those_above_counts_without_what_is_in_use() {
        let root = groups(&[
            ("job/memory.max", "1000\n"),
            ("job/memory.current", "700\n"),
            ("job/memory.stat", "anon 5\ninactive_file 200\nfile 600\n"),
            ("job/step/memory.max", "max\n"),
            ("job/step/memory.current", "100\n"),
            ("job/other/memory.max", "1\n"),
        ]);
        let left = |list: &str| in_groups(root.path(), list);
        assert_eq!(left("0::/job/step/task\n"), 500);
        assert_eq!(left("0::/job\n"), 500);
        assert_eq!(left("0::/elsewhere\n"), u64::MAX);
        assert_eq!(left(""), u64::MAX);
        fs::write(root.path().join("job/step/memory.high"), "350").unwrap();
        assert_eq!(left("0::/job/step\n"), 250);
        fs::write(root.path().join("memory.max"), "90").unwrap();
        assert_eq!(left("0::/../../a/b\n"), 90, "of a container, whose path is outside");
    }

    #[test]
    fn limits_of_the_old_interface_count_too() {
        let root = groups(&[
            ("memory/slurm/job/memory.limit_in_bytes", "4000\n"),
            ("memory/slurm/job/memory.usage_in_bytes", "1500\n"),
            ("memory/slurm/job/memory.stat", "inactive_file 9\ntotal_inactive_file 500\n"),
            ("memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("cpu/memory.max", "1\n"),
        ]);
        let list = "5:cpu,cpuacct:/\n4:memory:/slurm/job/step\n0::/\n";
        assert_eq!(in_groups(root.path(), list), 3000);
    }
}
