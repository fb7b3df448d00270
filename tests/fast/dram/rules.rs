//! Is every rule of every standard kept? An independent checker reads only the
//! command list and the timing table, and nothing of the controller.

use std::collections::BTreeMap;

use gpumodel::sim::config::{
    Command, ControllerOptions, Level, MemoryStandard, PagePolicy, Refresh,
};
use gpumodel::sim::dram::{Channel, Issued, Request};
use proptest::prelude::*;

use super::traffic::{Traffic, traffic};

/// Number of the part of `level` in which `bank` lies.
pub(super) fn part(standard: &MemoryStandard, level: Level, bank: u32) -> u32 {
    match level {
        Level::Channel => 0,
        Level::PseudoChannel => bank / standard.banks_per_group / standard.bank_groups,
        Level::BankGroup => bank / standard.banks_per_group,
        Level::Bank => bank,
    }
}

/// Every gap of the table holds for every command against the ones before it.
pub(super) fn check_gaps(standard: &MemoryStandard, commands: &[Issued]) {
    for gap in &standard.gaps {
        let mut past: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
        for issued in commands {
            let past = past.entry(part(standard, gap.level, issued.bank)).or_default();
            if issued.command == gap.to {
                let window = usize::try_from(gap.window).unwrap();
                if let Some(&earlier) = past.len().checked_sub(window).map(|at| &past[at]) {
                    let waited = issued.clock - earlier;
                    assert!(
                        waited >= u64::from(gap.wait),
                        "{gap:?} broken by {issued:?}: {waited}"
                    );
                }
            }
            if issued.command == gap.from {
                past.push(issued.clock);
            }
        }
    }
}

/// Rows are opened when closed, used when open and closed for a refresh.
pub(super) fn check_rows(standard: &MemoryStandard, commands: &[Issued]) {
    let banks = usize::try_from(standard.banks()).unwrap();
    let lane = usize::try_from(standard.bank_groups * standard.banks_per_group).unwrap();
    let mut rows: Vec<Option<u32>> = vec![None; banks];
    for issued in commands {
        let bank = usize::try_from(issued.bank).unwrap();
        let lane_banks = bank / lane * lane..(bank / lane + 1) * lane;
        match issued.command {
            Command::Activate => {
                assert_eq!(rows[bank], None, "{issued:?}");
                rows[bank] = Some(issued.row);
            }
            Command::Read | Command::Write => {
                assert_eq!(rows[bank], Some(issued.row), "{issued:?}")
            }
            Command::ReadClose | Command::WriteClose => {
                assert_eq!(rows[bank].take(), Some(issued.row), "{issued:?}");
            }
            Command::Precharge => assert!(rows[bank].take().is_some(), "{issued:?}"),
            Command::PrechargeAll => rows[lane_banks].fill(None),
            Command::RefreshAll => {
                assert!(rows[lane_banks].iter().all(Option::is_none), "{issued:?}")
            }
            Command::RefreshBank => assert_eq!(rows[bank], None, "{issued:?}"),
            Command::MigrateRead | Command::MigrateWrite => {
                assert_eq!(rows[bank], Some(issued.row), "{issued:?}");
            }
            Command::MigrateThrough => {}
        }
    }
}

/// One command per bus and clock, and no two bursts on one data bus.
pub(super) fn check_buses(standard: &MemoryStandard, commands: &[Issued]) {
    let on_bus = |issued: &&Issued| issued.command != Command::MigrateThrough;
    let on_buses: Vec<&Issued> = commands.iter().filter(on_bus).collect();
    for pair in on_buses.windows(2) {
        let shared = pair[0].command.is_column() == pair[1].command.is_column();
        if shared || !standard.separate_buses {
            assert!(pair[0].clock < pair[1].clock, "{pair:?}");
        }
    }
    for kinds in [[Command::Read, Command::ReadClose], [Command::Write, Command::WriteClose]] {
        let mut free = BTreeMap::new();
        for issued in commands.iter().filter(|issued| kinds.contains(&issued.command)) {
            let bus = free.entry(part(standard, Level::PseudoChannel, issued.bank)).or_insert(0);
            assert!(issued.clock >= *bus, "{issued:?}");
            *bus = issued.clock + u64::from(standard.burst_clocks);
        }
    }
}

/// Every bank is refreshed in time: no refresh may slip by more than a row's
/// life with its longest waits.
pub(super) fn check_refresh(standard: &MemoryStandard, policy: Refresh, commands: &[Issued]) {
    let banks = standard.bank_groups * standard.banks_per_group;
    let (command, period, holders) = match policy {
        Refresh::None => (Command::RefreshAll, u64::MAX / 4, 0),
        Refresh::AllBank => {
            (Command::RefreshAll, u64::from(standard.refresh_interval), standard.pseudo_channels)
        }
        Refresh::PerBank => {
            let turn = u64::from(standard.refresh_bank_interval) * u64::from(banks);
            (Command::RefreshBank, turn, standard.banks())
        }
    };
    let slack = 12 * u64::from(standard.gaps.iter().map(|gap| gap.wait).max().unwrap());
    let end = commands.last().map_or(0, |issued| issued.clock);
    let stride = standard.banks() / holders.max(1);
    for holder in 0..holders {
        let mut last = 0;
        for issued in commands.iter().filter(|i| i.command == command && i.bank == holder * stride)
        {
            assert!(issued.clock - last <= period + slack, "{issued:?}: last was at {last}");
            last = issued.clock;
        }
        assert!(end - last <= period + slack, "bank {holder} was forgotten after {last}");
    }
}

fn check(traffic: &Traffic) {
    let (standard, options) = traffic.machine();
    let outcome = traffic.run(true);
    let commands = &outcome.commands;
    check_gaps(&standard, commands);
    check_rows(&standard, commands);
    check_buses(&standard, commands);
    check_refresh(&standard, options.refresh, commands);
    assert!(
        !commands.iter().any(|issued| issued.command.is_migration()),
        "no unrequested migration"
    );
    let mut tokens: Vec<u32> = outcome.done.iter().map(|done| done.token).collect();
    tokens.sort_unstable();
    let asked: Vec<u32> = (0..u32::try_from(traffic.requests.len()).unwrap()).collect();
    assert_eq!(tokens, asked, "every request is served once");
    if options.page_policy == PagePolicy::Open && options.refresh == Refresh::None {
        let closing = [Command::ReadClose, Command::WriteClose, Command::PrechargeAll];
        assert!(!commands.iter().any(|issued| closing.contains(&issued.command)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn random_traffic_breaks_no_rule(traffic in traffic()) {
        check(&traffic);
    }

    #[test]
    fn sleeping_sends_what_ticking_sends(traffic in traffic()) {
        prop_assert_eq!(traffic.run(true), traffic.run(false));
    }

    #[test]
    fn accesses_offered_together_are_served_as_one_by_one(traffic in traffic()) {
        prop_assert_eq!(traffic.run_blocks(true), traffic.run_blocks(false));
    }
}

#[test]
fn the_checker_detects_a_command_a_clock_early() {
    let standard =
        MemoryStandard::load("ugpu-hbm", &gpumodel::models(), &Default::default()).unwrap();
    let issued = |clock, command| Issued { clock, command, bank: 0, row: 5, column: 0 };
    let good = [issued(1, Command::Activate), issued(15, Command::Read)];
    check_gaps(&standard, &good);
    let early = [issued(1, Command::Activate), issued(14, Command::Read)];
    assert!(std::panic::catch_unwind(|| check_gaps(&standard, &early)).is_err());
}

/// The kinds of accesses in the order in which one bank serves a read, a write and a read of its
/// open row.
fn served(holds: bool) -> Vec<Command> {
    let models = gpumodel::models();
    let standard =
        MemoryStandard::load("warped-slicer-fr-fcfs", &models, &BTreeMap::new()).unwrap();
    let options = ControllerOptions { bank_holds: holds, ..standard.controller.clone() };
    let mut channel = Channel::new(&standard, &options);
    channel.keep_log();
    for (token, write) in [(0, false), (1, true), (2, false)] {
        let column = token;
        let place =
            Request { token, write, pseudo_channel: 0, bank_group: 0, bank: 0, row: 1, column };
        assert!(channel.push(0, place));
    }
    let mut done = Vec::new();
    channel.advance(1000, &mut done);
    assert_eq!(done.len(), 3);
    let commands = channel.take_log().map(|issued| issued.command);
    commands.filter(|&command| command != Command::Activate).collect()
}

#[test]
fn a_bank_that_holds_a_write_serves_no_read_before_it() {
    let (read, write) = (Command::Read, Command::Write);
    assert_eq!(served(false), [write, read, read], "a write may follow its row sooner");
    assert_eq!(served(true), [read, write, read]);
}
