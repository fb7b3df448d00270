//! Who works in a folder: processes, by names that are never given twice.

use std::fs;
use std::io::ErrorKind;

use xxhash_rust::xxh3::xxh3_64;

/// A process, on a machine as long as that is up.
///
/// Its name is all there is: host, boot and machine, namespace of process ids, process id
/// and when that began, with `~` between them, and `.` between boot and machine.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in super::super) struct Owner(String);

/// What is said of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Life {
    Alive,
    Gone,
    /// It is, or was, on another machine, or this one does not tell.
    Unknown,
}

impl Owner {
    /// This process.
    pub(super) fn this() -> Self {
        Self::of(std::process::id())
    }

    /// The process of that id on this machine.
    pub(super) fn of(pid: u32) -> Self {
        let start = match found(pid) {
            Found::Since(start) => start,
            Found::Nobody | Found::Hidden => String::from("-"),
        };
        Self(format!("{}~{pid}~{start}", place()))
    }

    /// The owner of that name.
    pub(in super::super) fn named(name: &str) -> Self {
        Self(name.to_owned())
    }

    /// Its name, fit for a file.
    pub(super) fn name(&self) -> &str {
        &self.0
    }

    /// Host and process id.
    pub(in super::super) fn host_and_pid(&self) -> (&str, &str) {
        let parts: Vec<&str> = self.0.split('~').collect();
        (parts.first().copied().unwrap_or("-"), parts.get(3).copied().unwrap_or("-"))
    }

    /// Its process id, where it is another process of the machine of `other` and runs.
    pub(super) fn beside(&self, other: &Self) -> Option<u32> {
        let place = |owner: &Self| owner.0.rsplitn(3, '~').nth(2).map(str::to_owned);
        let same = self != other && place(self) == place(other);
        let runs = same && self.life() == Life::Alive;
        if runs { self.host_and_pid().1.parse().ok() } else { None }
    }

    /// Whether it still runs, as far as this machine can tell without a clock.
    pub(super) fn life(&self) -> Life {
        let parts: Vec<&str> = self.0.split('~').collect();
        let [host, boot, space, pid, start] = parts[..] else { return Life::Unknown };
        let (here, there) = (place(), [host, boot, space].join("~"));
        if booted_since(&here, &there) {
            return Life::Gone;
        }
        let boot = boot.split('.').next().unwrap_or("-");
        if there != here || [boot, space, start].contains(&"-") {
            return Life::Unknown;
        }
        match pid.parse().map_or(Found::Nobody, found) {
            Found::Since(since) if since == start => Life::Alive,
            Found::Hidden => Life::Unknown,
            Found::Since(_) | Found::Nobody => Life::Gone,
        }
    }
}

/// The namespace of process ids that Linux begins with: no container has it.
const FIRST_SPACE: &str = "4026531836";

/// Whether the machine at `here` was at `there` before it booted again: then nobody works
/// there any more.
///
/// Containers on several machines may have host and machine in common, and so may machines
/// that nobody has named.
fn booted_since(here: &str, there: &str) -> bool {
    let (Some(here), Some(there)) = (parts(here), parts(there)) else { return false };
    let [host, boot, machine, space] = here;
    let unnamed = matches!(host.split('.').next(), Some("localhost" | "_none_"));
    let told = ![host, boot, machine, there[1]].contains(&"-") && !unnamed;
    told && space == FIRST_SPACE && there == [host, there[1], machine, space] && there[1] != boot
}

/// Host, boot, machine and namespace of a place.
fn parts(place: &str) -> Option<[&str; 4]> {
    let (host, rest) = place.split_once('~')?;
    let (boot, space) = rest.split_once('~')?;
    let (boot, machine) = boot.split_once('.')?;
    Some([host, boot, machine, space])
}

/// Where process ids mean the same: host, boot and machine, and namespace; `-` for what the
/// system does not tell.
fn place() -> String {
    let file = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let host = word(&file("/proc/sys/kernel/hostname"));
    let boot = word(&file("/proc/sys/kernel/random/boot_id")).replace('.', "_");
    let machine = machine(&file("/etc/machine-id"));
    let space = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    let space: String = space.to_string_lossy().chars().filter(char::is_ascii_digit).collect();
    format!("{host}~{boot}.{machine}~{}", word(&space))
}

/// What stands for a machine's id, which is not for everybody to read.
fn machine(id: &str) -> String {
    if id.trim().is_empty() {
        return String::from("-");
    }
    format!("{:016x}", xxh3_64(format!("gpumodel claims {}", id.trim()).as_bytes()))
}

/// Letters that any file system takes.
fn word(text: &str) -> String {
    let fit = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '_' };
    let word: String = text.trim().chars().take(40).map(fit).collect();
    if word.is_empty() { String::from("-") } else { word }
}

/// What the system says of a process id.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    /// A process that began so many ticks after the machine.
    Since(String),
    Nobody,
    /// Perhaps one that this user may not see.
    Hidden,
}

fn found(pid: u32) -> Found {
    match fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(text) => since(&text).map_or(Found::Nobody, Found::Since),
        // It may end while it is read.
        Err(error) if !matches!(error.kind(), ErrorKind::NotFound) => Found::Hidden,
        Err(_) if hides(&fs::read_to_string("/proc/self/mountinfo").unwrap_or_default()) => {
            Found::Hidden
        }
        Err(_) => Found::Nobody,
    }
}

/// When the process of a file `stat` began; `None`: it has ended.
fn since(stat: &str) -> Option<String> {
    // The name, in brackets, may hold anything. A zombie has ended.
    let (_, rest) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    (!matches!(fields.first(), Some(&("Z" | "X")))).then_some(())?;
    fields.get(19).map(|&ticks| ticks.to_owned())
}

/// Whether users do not see each other's processes, by the list of what is mounted.
fn hides(mounts: &str) -> bool {
    let shows = |option: &str| matches!(option, "hidepid=0" | "hidepid=off");
    let options = mounts.lines().filter_map(|line| line.split_once(" - proc "));
    options
        .flat_map(|(_, rest)| rest.split([' ', ',']))
        .any(|option| option.starts_with("hidepid=") && !shows(option))
}

#[cfg(test)]
mod tests {
    use super::{FIRST_SPACE, Life, Owner, booted_since, hides, place};

    #[test]
    #[cfg(target_os = "linux")]
    fn a_process_is_told_from_one_that_has_its_number_later() {
        let this = Owner::this();
        assert_eq!(this.life(), Life::Alive);
        assert_eq!(this.host_and_pid().1, std::process::id().to_string());
        let later = this.name().rsplit_once('~').map(|(front, _)| format!("{front}~1"));
        assert_eq!(Owner::named(&later.unwrap()).life(), Life::Gone);
    }

    #[test]
    fn nothing_is_said_of_processes_elsewhere() {
        for name in ["other~boot~1~1~5", "words", "", "-~-~-~1~-"] {
            assert_eq!(Owner::named(name).life(), Life::Unknown, "{name}");
        }
    }

    #[test]
    fn what_ran_before_a_machine_booted_again_has_ended() {
        let place = |host: &str, boot: &str, machine: &str, space: &str| {
            format!("{host}~{boot}.{machine}~{space}")
        };
        let here = place("h", "new", "m", FIRST_SPACE);
        assert!(booted_since(&here, &place("h", "old", "m", FIRST_SPACE)));
        for there in [
            here.clone(),
            place("other", "old", "m", FIRST_SPACE),
            place("h", "old", "other", FIRST_SPACE),
            place("h", "old", "m", "4026532999"),
            place("h", "-", "m", FIRST_SPACE),
            format!("h~old~{FIRST_SPACE}"),
        ] {
            assert!(!booted_since(&here, &there), "{there}");
        }
        // Two of these may run side by side.
        for twin in [
            place("h", "new", "m", "4026532999"),
            place("h", "new", "-", FIRST_SPACE),
            place("localhost", "new", "m", FIRST_SPACE),
            place("localhost.localdomain", "new", "m", FIRST_SPACE),
            place("_none_", "new", "m", FIRST_SPACE),
        ] {
            let old = twin.replace("new", "old");
            assert!(!booted_since(&twin, &old), "{twin}");
        }
    }

    #[test]
    fn a_machine_is_told_from_others_and_its_id_is_not_told() {
        let id = std::fs::read_to_string("/etc/machine-id").unwrap_or_default();
        assert!(id.trim().is_empty() || !place().contains(id.trim()));
        assert_eq!(super::machine(" \n"), "-");
        assert_ne!(super::machine("a\n"), super::machine("b\n"));
        assert_eq!(super::machine("a\n"), super::machine("a"));
    }

    #[test]
    fn a_process_that_is_hidden_has_not_ended() {
        let line = |options: &str| format!("25 30 0:23 / /proc rw,nosuid - proc proc {options}\n");
        let root = "30 1 8:1 / / rw - ext4 /dev/hidepid=2 rw\n";
        for shown in ["rw", "rw,hidepid=0", "rw,gid=4,hidepid=off"] {
            assert!(!hides(&(line(shown) + root)), "{shown}");
        }
        for hidden in ["rw,hidepid=1", "rw,gid=4,hidepid=2", "rw,hidepid=ptraceable"] {
            assert!(hides(&(root.to_owned() + &line(hidden))), "{hidden}");
        }
    }
}
