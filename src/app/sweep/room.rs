//! Whether there is memory for one more cell, beside what this process and others hold.
//!
//! Processes of one folder on one machine say what their cells take by the estimates, and
//! how much of it they have in memory already the system says: what is free, less what is
//! still to come of all of them, is for the next cell. Of everybody else what is in use
//! counts, which what is free is without.
//!
//! Approximate: estimates may be off by several times. Of others who are not in the folder
//! nobody knows what they are about to take, nor of those in another container. And a group
//! of processes counts for who is in that very group, not for those in groups within it.

use std::fs;
use std::path::{Path, PathBuf};

/// The part of it that cells may take, in tenths: the program and others need some.
const TENTHS: u64 = 8;

/// Bytes of which cells take `cells` where nobody says how much.
pub(super) fn for_cells(cells: u64) -> u64 {
    cells.div_ceil(TENTHS).saturating_mul(10)
}

/// Where the system says who has how much memory: folders as `/proc` and `/sys/fs/cgroup`.
#[derive(Clone, Debug)]
pub(super) struct System {
    processes: PathBuf,
    groups: PathBuf,
}

impl Default for System {
    fn default() -> Self {
        Self { processes: PathBuf::from("/proc"), groups: PathBuf::from("/sys/fs/cgroup") }
    }
}

/// The memory that the cells of this process may take.
#[derive(Clone, Debug)]
pub(super) struct Room {
    system: System,
    /// Bytes that they may take whatever is free.
    most: u64,
    /// Bytes of this process without cells.
    base: u64,
}

impl Room {
    /// Room in what is free for a process that runs no cell so far; at most `most` bytes.
    pub(super) fn new(system: System, most: Option<u64>) -> Self {
        let base = system.used(THIS).all();
        Self { system, most: most.unwrap_or(u64::MAX), base }
    }

    /// Bytes of this process with cells of so many bytes.
    pub(super) fn held(&self, cells: u64) -> u64 {
        self.base.saturating_add(cells)
    }

    /// Whether there is room for cells of so many bytes in all, those included that run,
    /// beside other processes, by their ids, with what each says it holds. What all of them
    /// hold, or have if that is more, may be 80 % of what they have in memory and what is
    /// free.
    pub(super) fn fits(&self, cells: u64, beside: &[(u32, u64)]) -> bool {
        let group = self.system.group(THIS);
        let mut system = Sum::default();
        system.add(self.held(cells), self.system.used(THIS));
        let mut own = system;
        for (pid, held) in beside {
            let pid = pid.to_string();
            let used = self.system.used(&pid);
            system.add(*held, used);
            if self.system.group(&pid) == group {
                own.add(*held, used);
            }
        }
        let (all, groups) = (self.system.free(), in_groups(&self.system.groups, &group));
        cells <= self.most && system.fits(all) && own.fits(groups)
    }
}

/// Bytes of its own that a process has.
#[derive(Clone, Copy, Debug, Default)]
struct Used {
    memory: u64,
    /// That it had to give to the disk.
    disk: u64,
}

impl Used {
    fn all(self) -> u64 {
        self.memory.saturating_add(self.disk)
    }
}

/// Bytes of some processes.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    /// That they hold, or have where that is more.
    held: u64,
    /// That they have in memory: what is on the disk is missing from what is free no more.
    memory: u64,
}

impl Sum {
    fn add(&mut self, held: u64, used: Used) {
        self.held = self.held.saturating_add(held.max(used.all()));
        self.memory = self.memory.saturating_add(used.memory);
    }

    /// Whether they may hold that much where `free` bytes are left.
    fn fits(self, free: u64) -> bool {
        self.held <= free.saturating_add(self.memory) / 10 * TENTHS
    }
}

/// What the system calls the process that asks.
const THIS: &str = "self";

impl System {
    fn text(&self, path: &str) -> String {
        fs::read_to_string(self.processes.join(path)).unwrap_or_default()
    }

    /// Bytes that are free; no bound where nobody says.
    fn free(&self) -> u64 {
        bytes(&self.text("meminfo"), "MemAvailable:").unwrap_or(u64::MAX)
    }

    /// Bytes of its own that a process has; none where nobody says. Files that are mapped are
    /// not among them: the system takes those back.
    fn used(&self, process: &str) -> Used {
        let text = self.text(&format!("{process}/status"));
        let of = |name| bytes(&text, name).unwrap_or(0);
        Used { memory: of("RssAnon:"), disk: of("VmSwap:") }
    }

    /// The groups of processes that a process is in.
    fn group(&self, process: &str) -> String {
        self.text(&format!("{process}/cgroup"))
    }
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

/// The bytes of a line, as `MemAvailable:  2048 kB`.
fn bytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::{Room, System, bytes, in_groups};

    #[test]
    fn the_systems_words_are_read() {
        let text = "MemTotal: 16 kB\nMemAvailable:    2048 kB\nBuffers: 1 kB\n";
        assert_eq!(bytes(text, "MemAvailable:"), Some(2 << 20));
        assert_eq!(bytes("MemTotal: 16 kB\n", "MemAvailable:"), None);
    }

    const MB: u64 = 1 << 20;

    /// A machine of which files say how much memory is free, and who has how much.
    struct Machine(tempfile::TempDir);

    impl Machine {
        fn new(free: u64) -> Self {
            let machine = Self(groups(&[]));
            machine.process("self", 0, "job");
            machine.free(free);
            machine
        }

        fn write(&self, path: &str, text: String) {
            let path = self.0.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn free(&self, megabytes: u64) {
            self.write("meminfo", format!("MemAvailable: {} kB\n", megabytes << 10));
        }

        /// A process has so many megabytes in memory.
        fn process(&self, name: &str, megabytes: u64, group: &str) {
            self.swapped(name, megabytes, 0, group);
        }

        /// A process has so many megabytes in memory, and so many on the disk.
        fn swapped(&self, name: &str, memory: u64, disk: u64, group: &str) {
            let (memory, disk) = (memory << 10, disk << 10);
            let text = format!("RssAnon:\t{memory} kB\nRssFile:\t9000 kB\nVmSwap:\t{disk} kB\n");
            self.write(&format!("{name}/status"), text);
            self.write(&format!("{name}/cgroup"), format!("0::/{group}\n"));
        }

        fn limit(&self, group: &str, megabytes: u64) {
            self.write(&format!("{group}/memory.max"), (megabytes << 20).to_string());
        }

        fn room(&self, most: Option<u64>) -> Room {
            let folder = self.0.path().to_path_buf();
            let system = System { processes: folder.clone(), groups: folder };
            Room::new(system, most.map(|megabytes| megabytes * MB))
        }
    }

    /// The most megabytes that fit, of tens.
    fn most(room: &Room, beside: &[(u32, u64)]) -> u64 {
        let beside: Vec<_> = beside.iter().map(|&(pid, held)| (pid, held * MB)).collect();
        (0..200).map(|tens| tens * 10).filter(|m| room.fits(m * MB, &beside)).max().unwrap_or(0)
    }

    #[test]
    fn what_a_process_has_in_memory_of_what_it_holds_is_room_it_had_before() {
        let machine = Machine::new(1000);
        let room = machine.room(None);
        assert_eq!(most(&room, &[]), 800);
        for (used, free) in [(300, 700), (800, 200)] {
            machine.process("self", used, "job");
            machine.free(free);
            assert_eq!(most(&room, &[]), 800, "{used}");
        }
        // Estimates were too small: what it has counts.
        machine.process("self", 900, "job");
        machine.free(100);
        assert!(!room.fits(MB, &[]));
        assert_eq!(most(&Machine::new(1000).room(Some(250)), &[]), 250, "as somebody said");
        machine.process("self", 100, "job");
        machine.free(900);
        assert_eq!(most(&machine.room(None), &[]), 700, "without cells it has some already");
    }

    #[test]
    fn what_is_free_is_for_all_processes_of_a_folder_however_far_they_have_come() {
        let machine = Machine::new(1000);
        let room = machine.room(None);
        for (used, free) in [(0, 1000), (250, 750), (500, 500)] {
            machine.process("7", used, "other");
            machine.free(free);
            assert_eq!(most(&room, &[(7, 500)]), 300, "{used}");
        }
        assert_eq!(most(&room, &[]), 400, "of a stranger what it has counts, of what is free");
        // Two who began at once have both said what they want before either looks.
        machine.process("7", 0, "other");
        machine.free(1000);
        assert!(!room.fits(500 * MB, &[(7, 500 * MB)]) && room.fits(300 * MB, &[(7, 500 * MB)]));
    }

    #[test]
    fn what_a_process_had_to_give_to_the_disk_is_held_and_is_no_room() {
        let machine = Machine::new(1000);
        let room = machine.room(None);
        machine.swapped("self", 300, 200, "job");
        machine.free(700);
        assert_eq!(most(&room, &[]), 800, "80 % of what is free and what it has in memory");
        machine.process("self", 0, "job");
        machine.swapped("7", 300, 200, "other");
        assert_eq!(most(&room, &[(7, 100)]), 300, "it has more than it says");
        assert_eq!(most(&room, &[(7, 600)]), 200);
        machine.swapped("self", 0, 100, "job");
        assert_eq!(most(&machine.room(None), &[(7, 500)]), 200, "without cells it has some");
        machine.limit("job", 500);
        machine.swapped("self", 0, 400, "job");
        assert!(room.fits(0, &[]));
        machine.swapped("self", 0, 450, "job");
        assert!(!room.fits(0, &[]), "nothing of it counts in a group's own sum either");
    }

    #[test]
    fn a_limit_of_a_group_is_for_those_in_it() {
        let machine = Machine::new(1000);
        machine.limit("job", 500);
        let room = machine.room(None);
        machine.process("7", 0, "job");
        machine.process("8", 0, "another");
        assert_eq!(most(&room, &[]), 400);
        assert_eq!(most(&room, &[(7, 100)]), 300);
        assert_eq!(most(&room, &[(8, 100)]), 400);
        assert_eq!(most(&room, &[(8, 600)]), 200);
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
