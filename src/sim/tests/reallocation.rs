//! Applications that own memory channels, and channels that change hands.

use crate::config::Resolved;
use gpumodel_core::contract::{DispatchOrder, Migration, Plan, PlanDraft, Share, Vacate, WakeOn};

use crate::Outcome;
use crate::testkit::multi_app_fixture::MultiAppFixture;
use crate::testkit::scripted::{Line, Script, facts, line, memory, translating};

/// `ugpu` with eight SMs.
pub(crate) fn ugpu(set: &[(&str, &str)]) -> Resolved {
    let mut keys = vec![("dispatch.sms", "8"), ("dispatch.kernel_launch_cycles", "0")];
    keys.extend_from_slice(set);
    translating("ugpu", &keys)
}

/// Reads `pages` pages of 4 KB, a line of each CTA and turn, over and over.
pub(crate) fn reader(pages: u64) -> Vec<Line> {
    let at = move |cta: u64, warp: u64, turn: u64| {
        let place = (cta * 7 + warp * 3 + turn * 37) % (pages * 32);
        (0x4000_0000 + place * 128, 4)
    };
    vec![memory("LDG.E", Some(2), None, at), line("FFMA", Some(3), Some(2))]
}

/// Reads and writes them, and adds to them.
pub(crate) fn user(pages: u64) -> Vec<Line> {
    let at = move |step: u64| {
        move |cta: u64, warp: u64, turn: u64| {
            let place = (cta * 7 + warp * 3 + turn * step) % (pages * 32);
            (0x4000_0000 + place * 128, 4)
        }
    };
    vec![
        memory("LDG.E", Some(2), Some(6), at(37)),
        line("FFMA", Some(3), Some(2)),
        memory("STG.E", None, Some(3), at(53)),
        memory("RED.E.ADD", None, Some(3), at(11)),
    ]
}

pub(crate) fn script(resolved: &Resolved, pages: u64, turns: u32, ctas: u32) -> Script {
    Script::new(resolved, &reader(pages), turns, ctas, 128)
}

/// So many SMs and groups of channels for the first of two, the rest for the second.
fn divided(resolved: &Resolved, sms: u32, groups: usize, more: PlanDraft) -> Plan {
    let facts = facts(resolved, 2);
    let quota = |first: bool| {
        let all = 0..u32::from(facts.sms);
        Share::Quota(all.map(|sm| if (sm < sms) == first { 8 } else { 0 }).collect())
    };
    let (first, second) = facts.channel_groups.split_at(groups);
    let draft = PlanDraft {
        shares: vec![quota(true), quota(false)],
        channels: vec![first.concat(), second.concat()],
        order: DispatchOrder::RoundRobin,
        ..more
    };
    Plan::new(&facts, draft).unwrap()
}

/// Half of the SMs for each of two, and so many groups of channels for the first.
pub(crate) fn split(
    resolved: &Resolved,
    groups: usize,
    migration: Migration,
    wake: Vec<WakeOn>,
) -> Plan {
    divided(resolved, 4, groups, PlanDraft { migration, wake, ..PlanDraft::default() })
}

/// Two readers of so many pages each under plans with so many groups for the first, each
/// from its cycle on; the first plan has four.
fn changed(migration: Migration, pages: u64, changes: &[(u64, usize)]) -> Outcome {
    let resolved = ugpu(&[]);
    let work = || script(&resolved, pages, 400, 64);
    together(&resolved, vec![work(), work()], migration, changes)
}

/// Two applications under such plans.
pub(crate) fn together(
    resolved: &Resolved,
    scripts: Vec<Script>,
    migration: Migration,
    changes: &[(u64, usize)],
) -> Outcome {
    let fixture = MultiAppFixture::new(scripts);
    let mut next = changes.iter();
    let plan = |groups: usize, rest: &[(u64, usize)]| {
        let wake = rest.first().map(|&(at, _)| WakeOn::At(at));
        split(resolved, groups, migration, wake.into_iter().collect())
    };
    let mut last = plan(4, changes);
    fixture.run(resolved, &last.clone(), |_| {
        if let Some(&(_, groups)) = next.next() {
            last = plan(groups, next.as_slice());
        }
        last.clone()
    })
}

/// Two readers; at cycle 20 000 the second gets two groups of the first.
fn shifted(migration: Migration, pages: u64) -> Outcome {
    changed(migration, pages, &[(20_000, 2)])
}

#[test]
fn pages_follow_their_channels_and_all_others_stay() {
    let outcome = shifted(Migration::PageMove, 120);
    let [loser, gainer] = [outcome.apps[0].memory, outcome.apps[1].memory];
    // 30 pages in each of four groups: those of two leave; two of six groups are filled.
    assert_eq!((loser.pages, loser.pages_moved, loser.changes), (120, 60, 1));
    assert_eq!((gainer.pages, gainer.pages_moved, gainer.changes), (120, 40, 1));
    assert!(loser.moving_cycles >= 1000 && outcome.apps[0].resting_cycles > 0, "{outcome:?}");
}

#[test]
fn pages_that_l1_tlbs_know_follow_too() {
    let outcome = shifted(Migration::PageMove, 40);
    let [loser, gainer] = [outcome.apps[0].memory, outcome.apps[1].memory];
    // 10 pages in each of four groups: all fit the 64 entries of an L1 TLB.
    assert_eq!((loser.pages, loser.pages_moved), (40, 20));
    assert!((12..=14).contains(&gainer.pages_moved), "{gainer:?}");
}

#[test]
fn a_page_takes_the_drivers_cycles_and_those_of_its_copy() {
    let driver = |cycles: &str| {
        let resolved = ugpu(&[("translation.migration_driver_cycles", cycles)]);
        let work = || script(&resolved, 4, 1600, 64);
        let changes = [(20_000, 3)];
        let outcome = together(&resolved, vec![work(), work()], Migration::PageMove, &changes);
        let memory = outcome.apps[0].memory;
        assert_eq!(memory.pages_moved, 1, "{memory:?}");
        memory.moving_cycles
    };
    // Rows are opened and 32 columns go over eight bank groups; nobody else is there.
    let copy = driver("1") - 1;
    assert!((99..400).contains(&copy), "{copy}");
    let whole = driver("1000");
    assert!(whole.abs_diff(1000 + copy) < 100, "{whole}, {copy}");
}

#[test]
fn where_the_memory_has_no_command_for_it_a_page_takes_the_copys_cycles() {
    let moving = |cycles: &str| {
        let resolved = ugpu(&[
            ("dram.standard", "hbm"),
            ("dram.channel_bytes_per_clock", "32"),
            ("translation.migration_copy_cycles", cycles),
        ]);
        let work = || script(&resolved, 4, 1600, 64);
        let changes = [(20_000, 3)];
        let outcome = together(&resolved, vec![work(), work()], Migration::PageMove, &changes);
        let memory = outcome.apps[0].memory;
        assert_eq!(memory.pages_moved, 1, "{memory:?}");
        memory.moving_cycles
    };
    assert_eq!(["0", "40", "5040"].map(moving), [1000, 1040, 6040]);
}

#[test]
fn traditional_migration_moves_every_page_of_both() {
    let outcome = shifted(Migration::Traditional, 120);
    for app in &outcome.apps {
        assert_eq!((app.memory.pages, app.memory.pages_moved), (120, 120));
    }
}

#[test]
fn copies_by_reads_and_writes_move_every_sector_through_the_l2() {
    let outcome = shifted(Migration::Software, 120);
    for (counts, app) in outcome.kernels.iter().zip(&outcome.apps) {
        let copies = counts.translation.copies;
        assert_eq!(copies.accesses(), app.memory.pages_moved * 2 * 128);
    }
    let moved: u64 = outcome.apps.iter().map(|app| app.memory.pages_moved).sum();
    assert_eq!(moved, 100);
}

#[test]
fn pages_are_copied_sooner_through_more_ports() {
    let moving = |ports: &str| {
        let at_once = ("translation.migration_driver_cycles", "1");
        let resolved = ugpu(&[("translation.migration_ports", ports), at_once]);
        // Copies wait for ports, not for the driver nor for the requests of many CTAs.
        let work = || script(&resolved, 120, 800, 8);
        let plan =
            |groups: usize, wake: Vec<WakeOn>| split(&resolved, groups, Migration::Software, wake);
        let first = plan(4, vec![WakeOn::At(20_000)]);
        let fixture = MultiAppFixture::new(vec![work(), work()]);
        let outcome = fixture.run(&resolved, &first, |_| plan(2, Vec::new()));
        assert_eq!(outcome.apps[0].memory.pages_moved, 60);
        outcome.apps[0].memory.moving_cycles
    };
    let [one, two, four] = ["1", "2", "4"].map(moving);
    // A cycle at least for each sector that is read and each that is written.
    assert!(one > 60 * 2 * 128, "{one}");
    assert!(two < one * 9 / 10 && four < two, "{one}, {two}, {four}");
}

#[test]
fn without_migration_pages_stay() {
    let outcome = shifted(Migration::Stay, 120);
    assert!(outcome.apps.iter().all(|app| app.memory.pages_moved == 0));
    assert!(outcome.apps.iter().all(|app| app.resting_cycles == 0));
}

#[test]
fn many_changes_lose_no_page_and_no_instruction() {
    let resolved = ugpu(&[]);
    let wake = |now: u64| vec![WakeOn::At(now + 20_000)];
    for migration in [Migration::PageMove, Migration::Software, Migration::Traditional] {
        let scripts = vec![script(&resolved, 500, 100, 64), script(&resolved, 300, 100, 64)];
        let fixture = MultiAppFixture::new(scripts);
        let mut turn = 0;
        let first = split(&resolved, 4, migration, wake(0));
        let outcome = fixture.run(&resolved, &first, |view| {
            turn += 1;
            let most = [1, 7, 3, 6, 2][turn % 5];
            split(&resolved, most, migration, wake(view.now))
        });
        assert!(turn > 3);
        for (app, counts) in outcome.kernels.iter().enumerate() {
            assert_eq!(counts.ctas_retired, 64, "{migration:?}");
            assert!(outcome.apps[app].memory.pages_moved > 0);
        }
    }
}

#[test]
fn two_changes_in_one_rest_are_one_rest() {
    let once = changed(Migration::PageMove, 120, &[(20_000, 2)]);
    let twice = changed(Migration::PageMove, 120, &[(20_000, 2), (20_040, 6)]);
    for (once, twice) in once.apps.iter().zip(&twice.apps) {
        assert!(once.resting_cycles > 100, "the second change falls into the rest");
        assert_eq!(twice.resting_cycles, once.resting_cycles);
    }
}

#[test]
fn who_begins_anew_rests_no_more_in_what_is_told_of_its_first_run() {
    let resolved = ugpu(&[]);
    let scripts = vec![script(&resolved, 20, 10, 16), script(&resolved, 500, 400, 64)];
    let fixture = MultiAppFixture::new(scripts).with(0, |load| load.relaunches = true);
    let plan =
        |groups: usize, wake: Vec<WakeOn>| split(&resolved, groups, Migration::PageMove, wake);
    let first = plan(4, vec![WakeOn::At(60_000)]);
    let outcome = fixture.run(&resolved, &first, |_| plan(2, Vec::new()));
    let [short, long] = &outcome.apps[..] else { panic!("{outcome:?}") };
    assert!(short.end < 60_000 && short.runs > 1 && long.end > 60_000, "{short:?}, {long:?}");
    assert!(long.resting_cycles > 0);
    assert_eq!(short.resting_cycles, 0);
}

#[test]
fn a_page_goes_on_as_it_has_set_out_when_the_next_plan_moves_pages_otherwise() {
    let resolved = ugpu(&[]);
    for (before, after) in [
        (Migration::Traditional, Migration::PageMove),
        (Migration::PageMove, Migration::Traditional),
        (Migration::Software, Migration::Stay),
    ] {
        let fixture = MultiAppFixture::new(vec![
            script(&resolved, 500, 100, 64),
            script(&resolved, 300, 100, 64),
        ]);
        let plan = |groups: usize, how: Migration, at: &[u64]| {
            split(&resolved, groups, how, at.iter().map(|&at| WakeOn::At(at)).collect())
        };
        let outcome = fixture.run(&resolved, &plan(4, before, &[20_000]), |view| match view.now {
            20_000 => plan(2, before, &[21_400]),
            _ => plan(2, after, &[]),
        });
        for app in 0..2 {
            assert_eq!(outcome.kernels[app].ctas_retired, 64, "{before:?}, then {after:?}");
        }
        assert!(outcome.apps[0].memory.pages_moved > 0, "{before:?}, then {after:?}");
    }
}

#[test]
fn no_page_sets_out_before_the_caches_are_flushed() {
    let rest = changed(Migration::PageMove, 2000, &[(20_000, 2)]).apps[0].resting_cycles;
    let resolved = ugpu(&[]);
    let fixture = MultiAppFixture::new(vec![
        script(&resolved, 2000, 400, 64),
        script(&resolved, 2000, 400, 64),
    ]);
    let plan = |groups: usize, at: u64| {
        split(&resolved, groups, Migration::PageMove, vec![WakeOn::At(at)])
    };
    let mut moving = Vec::new();
    fixture.run(&resolved, &plan(4, 20_000), |view| {
        moving.push(view.apps.iter().map(|app| app.moving_cycles).sum::<u64>());
        plan(2, if view.now == 20_000 { 20_000 + rest } else { view.now + 5000 })
    });
    assert!(rest > 100 && moving[2] > 0, "{rest}, {moving:?}");
    assert_eq!(moving[..2], [0, 0], "in {rest} cycles");
}

#[test]
fn what_is_dirty_in_a_channel_is_written_in_the_name_of_whose_it_was() {
    let resolved = ugpu(&[]);
    // The reader changes first, and gets two groups of the writer.
    let writer = Script::new(&resolved, &user(120), 400, 64, 128);
    let scripts = vec![script(&resolved, 120, 400, 64), writer];
    let outcome = together(&resolved, scripts, Migration::PageMove, &[(20_000, 6)]);
    let writes = [0, 1].map(|app: usize| outcome.totals[app].dram_writes);
    assert!(writes[0] == 0 && writes[1] > 0, "{writes:?}");
}

#[test]
fn pages_that_were_used_before_anybody_owned_channels_follow_too() {
    let resolved = ugpu(&[]);
    let fixture = MultiAppFixture::new(vec![
        script(&resolved, 120, 400, 64),
        script(&resolved, 120, 400, 64),
    ]);
    let shares = split(&resolved, 4, Migration::Stay, Vec::new()).shares().to_vec();
    let wake = vec![WakeOn::At(20_000)];
    let draft =
        PlanDraft { shares, wake, order: DispatchOrder::RoundRobin, ..PlanDraft::default() };
    let first = Plan::new(&facts(&resolved, 2), draft).unwrap();
    let outcome =
        fixture.run(&resolved, &first, |_| split(&resolved, 4, Migration::PageMove, Vec::new()));
    for app in &outcome.apps {
        // 15 in each of eight groups, of which four are others' from then on.
        assert_eq!((app.memory.pages, app.memory.pages_moved), (120, 60));
        assert_eq!(app.memory.changes, 1);
    }
}

#[test]
fn switched_ctas_and_pages_still_under_way_lose_nothing_at_the_next_change() {
    let resolved = ugpu(&[]);
    let work = |pages: u64| script(&resolved, pages, 60, 64).needing(32, 1024);
    for (migration, vacate) in [
        (Migration::PageMove, Vacate::Switch),
        (Migration::Software, Vacate::Hybrid),
        (Migration::Traditional, Vacate::Switch),
    ] {
        let fixture = MultiAppFixture::new(vec![work(500), work(300)]);
        // The driver's 1000 cycles are longer than every other span between changes.
        let plan = |turn: usize, now: u64| {
            let wake = vec![WakeOn::At(now + [700, 15_000][turn % 2])];
            let more = PlanDraft { migration, vacate, wake, ..PlanDraft::default() };
            divided(&resolved, [4, 2, 6, 1, 7][turn % 5], [4, 7, 1, 6, 2][turn % 5], more)
        };
        let (mut turn, mut under_way) = (0, 0);
        let outcome = fixture.run(&resolved, &plan(1, 5000), |view| {
            turn += 1;
            let moved = |app: &gpumodel_core::contract::AppView| app.moving_cycles > 0;
            under_way += usize::from(view.apps.iter().any(moved));
            plan(turn, view.now)
        });
        assert!(turn > 4 && under_way > 3, "{migration:?}, {vacate:?}: {turn}, {under_way}");
        for counts in &outcome.kernels {
            assert_eq!(counts.ctas_retired, 64, "{migration:?}, {vacate:?}");
            assert_eq!(counts.warp_instructions, 64 * 4 * 120, "{migration:?}, {vacate:?}");
        }
        let moved: u64 = outcome.apps.iter().map(|app| app.memory.pages_moved).sum();
        assert!(moved > 20, "{migration:?}, {vacate:?}: {moved}");
        let switched = outcome.kernels.iter().any(|counts| counts.state.accesses() > 0);
        assert!(switched || vacate == Vacate::Hybrid, "{migration:?}");
    }
}
