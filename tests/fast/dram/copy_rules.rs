//! The rules of MIGRATION, implemented a second time: from the times in which banks, bus
//! and vias are in use, not from the gaps between commands.

use std::collections::{BTreeMap, VecDeque};

use gpumodel::sim::config::{Command, Level, MemoryStandard};
use gpumodel::sim::dram::{BankCopy, Issued};

use super::rules::part;
use super::stack::{Stack, load, page};

/// The numbers of the standard that the rules are about, in clocks.
struct Clocks<'a>(&'a MemoryStandard);

impl Clocks<'_> {
    fn get(&self, name: &str) -> u64 {
        u64::try_from(self.0.parameter(name).unwrap()).unwrap()
    }

    /// Clocks for which a column takes a bus of 128 bits.
    fn column(&self) -> u64 {
        u64::from(self.0.migration_bytes / self.0.bytes_per_access) * self.get("tBL")
    }

    /// The last clock of a command.
    fn last(&self, issued: &Issued) -> u64 {
        let long = issued.command.is_migration();
        issued.clock + if long { self.get("mig_clocks") - 1 } else { 0 }
    }

    /// When the data of a command is on its way.
    fn data(&self, issued: &Issued) -> Option<(u64, u64)> {
        let (after, length) = match issued.command {
            Command::Read | Command::ReadClose => (self.get("tCL"), self.get("tBL")),
            Command::Write | Command::WriteClose => (self.get("tWL"), self.get("tBL")),
            command if command.is_migration() => (self.get("tCL"), self.column()),
            _ => return None,
        };
        let start = self.last(issued) + after;
        Some((start, start + length))
    }
}

fn is_half(command: Command) -> bool {
    matches!(command, Command::MigrateRead | Command::MigrateWrite)
}

/// Checks the commands of the channels of one stack.
pub(super) fn check_migrations(standard: &MemoryStandard, logs: &[Vec<Issued>]) {
    let clocks = Clocks(standard);
    for commands in logs {
        check_rows_last(&clocks, commands);
        check_column_bus(&clocks, commands);
        let accesses = |issued: &Issued| !is_half(issued.command);
        check_data(&clocks, commands, Level::PseudoChannel, accesses);
        let own = |issued: &Issued| issued.command != Command::MigrateThrough;
        check_data(&clocks, commands, Level::BankGroup, own);
    }
    check_halves(logs);
}

/// In every clock as many columns leave as arrive, each over separate vias.
fn check_halves(logs: &[Vec<Issued>]) {
    let mut parts: BTreeMap<u64, [usize; 3]> = BTreeMap::new();
    for issued in logs.iter().flatten().filter(|issued| issued.command.is_migration()) {
        let order = [Command::MigrateRead, Command::MigrateWrite, Command::MigrateThrough];
        let at = order.iter().position(|&command| command == issued.command).unwrap();
        parts.entry(issued.clock).or_default()[at] += 1;
    }
    for (clock, [read, written, carried]) in parts {
        assert_eq!((read, read), (written, carried), "clock {clock}");
    }
}

/// A row is open for long enough before, and stays so until the column is through.
fn check_rows_last(clocks: &Clocks<'_>, commands: &[Issued]) {
    let mut opened: BTreeMap<u32, u64> = BTreeMap::new();
    let mut needed: BTreeMap<u32, u64> = BTreeMap::new();
    for issued in commands {
        let last = clocks.last(issued);
        match issued.command {
            Command::Activate => drop(opened.insert(issued.bank, last)),
            Command::MigrateRead => {
                assert!(last >= opened[&issued.bank] + clocks.get("tRCDRD"), "{issued:?}");
                // The last of the column's accesses is read like any other.
                let until = last + clocks.column() - clocks.get("tBL") + clocks.get("tRTP");
                needed.insert(issued.bank, until);
            }
            Command::MigrateWrite => {
                assert!(last >= opened[&issued.bank] + clocks.get("tRCDWR"), "{issued:?}");
                let (_, end) = clocks.data(issued).unwrap();
                needed.insert(issued.bank, end + clocks.get("tWR"));
            }
            Command::Precharge => {
                assert!(needed.get(&issued.bank).is_none_or(|&until| last >= until), "{issued:?}");
            }
            Command::PrechargeAll => {
                let lane = part(clocks.0, Level::PseudoChannel, issued.bank);
                let same_lane = |bank| part(clocks.0, Level::PseudoChannel, bank) == lane;
                let late = |(&bank, &until): (&u32, &u64)| !same_lane(bank) || last >= until;
                assert!(needed.iter().all(late), "{issued:?}");
            }
            _ => {}
        }
    }
}

/// A MIGRATION takes its bus for two clocks.
fn check_column_bus(clocks: &Clocks<'_>, commands: &[Issued]) {
    let on_bus = |issued: &&Issued| issued.command.is_column();
    let columns: Vec<&Issued> = commands.iter().filter(on_bus).collect();
    for pair in columns.windows(2) {
        assert!(pair[1].clock > clocks.last(pair[0]), "{pair:?}");
    }
}

/// Data never meets on a bus of `level`, and a read waits for what was written.
fn check_data(
    clocks: &Clocks<'_>,
    commands: &[Issued],
    level: Level,
    takes: impl Fn(&Issued) -> bool,
) {
    let mut busy: BTreeMap<u32, Vec<(u64, u64)>> = BTreeMap::new();
    let mut written: BTreeMap<u32, u64> = BTreeMap::new();
    for issued in commands.iter().filter(|issued| takes(issued)) {
        let Some((start, end)) = clocks.data(issued) else { continue };
        let bus = part(clocks.0, level, issued.bank);
        let before = busy.entry(bus).or_default();
        let meets = before.iter().rev().take(16).any(|other| start < other.1 && other.0 < end);
        assert!(!meets, "{level:?} {bus}: {issued:?}");
        before.push((start, end));
        match issued.command {
            Command::MigrateWrite => drop(written.insert(bus, end)),
            Command::Read | Command::ReadClose | Command::MigrateRead => {
                let until = written.get(&bus).map_or(0, |end| end + clocks.get("tWTRL"));
                assert!(clocks.last(issued) >= until, "{issued:?} before {until}");
            }
            _ => {}
        }
    }
}

/// Every copy was made, in order of arrival at each bank: its columns in order, from
/// and to the asked places, both halves in one clock, and nothing else to its two banks
/// between the first and the last.
pub(super) fn check_copies(standard: &MemoryStandard, logs: &[Vec<Issued>], copies: &[BankCopy]) {
    let mut halves: BTreeMap<(Command, usize, usize), VecDeque<Issued>> = BTreeMap::new();
    for (channel, commands) in logs.iter().enumerate() {
        for issued in commands.iter().filter(|issued| is_half(issued.command)) {
            let bank = usize::try_from(issued.bank).unwrap();
            halves.entry((issued.command, channel, bank)).or_default().push_back(*issued);
        }
    }
    for copy in copies {
        let ends = [(Command::MigrateRead, copy.from), (Command::MigrateWrite, copy.to)];
        let made = ends.map(|(half, end)| {
            let of_bank = halves.entry((half, end.channel, end.bank)).or_default();
            assert!(of_bank.len() >= copy.columns.len(), "{copy:?} was not finished");
            let made: Vec<Issued> = of_bank.drain(..copy.columns.len()).collect();
            assert!(made.iter().all(|issued| issued.row == end.row), "{copy:?}: {made:?}");
            check_undisturbed(standard, &logs[end.channel], &made);
            made
        });
        for ((read, written), columns) in made[0].iter().zip(&made[1]).zip(&copy.columns) {
            assert_eq!(read.clock, written.clock, "{copy:?}");
            assert_eq!((read.column, written.column), *columns, "{copy:?}");
        }
    }
    assert!(halves.values().all(VecDeque::is_empty), "more columns than were asked for");
}

/// From the first to the last column of a copy its bank sees nothing else.
fn check_undisturbed(standard: &MemoryStandard, commands: &[Issued], made: &[Issued]) {
    let (first, last) = (made[0], made[made.len() - 1]);
    let meddles = |issued: &&Issued| {
        let lane = |bank| part(standard, Level::PseudoChannel, bank);
        let same_lane = lane(issued.bank) == lane(first.bank);
        let here = issued.command.is_for_all_banks() && same_lane || issued.bank == first.bank;
        let other = !is_half(issued.command) && issued.command != Command::MigrateThrough;
        here && other && (first.clock..=last.clock).contains(&issued.clock)
    };
    assert_eq!(commands.iter().find(meddles), None, "{made:?}");
}

/// The commands of a page copy between idle channels, broken by `change`: does one
/// of the checks see it?
fn is_seen(change: impl Fn(&mut [Vec<Issued>])) -> bool {
    let (standard, copies) = (load(&[]), page());
    let mut stack = Stack::new(&standard, &standard.controller, true);
    stack.copies = copies.iter().map(|copy| (0, copy.clone())).collect();
    let mut logs = stack.run(1000).commands;
    change(&mut logs);
    let checks = || {
        check_migrations(&standard, &logs);
        check_copies(&standard, &logs, &copies);
    };
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(checks)).is_err()
}

fn first(commands: &mut [Issued], command: Command) -> &mut Issued {
    commands.iter_mut().find(|issued| issued.command == command).unwrap()
}

/// A command to the bank that is copied first.
fn other(clock: u64, command: Command) -> Issued {
    Issued { clock, command, bank: 0, row: 7, column: 9 }
}

#[test]
fn the_checker_detects_unrequested_copies() {
    assert!(!is_seen(|_| {}));
    assert!(is_seen(|logs| first(&mut logs[5], Command::MigrateWrite).clock -= 1));
    assert!(is_seen(|logs| assert!(logs[5].pop().is_some())));
    assert!(is_seen(|logs| first(&mut logs[0], Command::MigrateRead).row += 1));
    assert!(is_seen(|logs| first(&mut logs[5], Command::MigrateWrite).column += 1));
    assert!(is_seen(|logs| {
        let of_bank = |issued: &Issued| issued.command == Command::MigrateRead;
        let after = logs[0].iter().position(of_bank).unwrap() + 1;
        logs[0].insert(after, other(15, Command::Precharge));
    }));
}

#[test]
fn the_checker_detects_data_collisions_and_early_precharges() {
    // Other vias would do as well, but not those on which data of a read is.
    let move_vias = |logs: &mut [Vec<Issued>]| {
        let vias = |issued: &Issued| issued.command == Command::MigrateThrough;
        let at = logs[0].iter().position(vias).unwrap();
        let through = logs[0].remove(at);
        logs[3].push(through);
        through.clock
    };
    assert!(!is_seen(|logs| assert!(move_vias(logs) > 0)));
    assert!(is_seen(|logs| {
        let clock = move_vias(logs) + 1;
        logs[3].push(other(clock, Command::Read));
    }));
    // The second column is in the bank at 16 + 1 + tCL + 2; tWR later its row may close.
    assert!(is_seen(|logs| logs[5].push(other(38, Command::Precharge))));
    assert!(!is_seen(|logs| logs[5].push(other(39, Command::Precharge))));
}
