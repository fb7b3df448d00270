//! Applications that own memory channels, and channels that change owners: pages move, caches
//! are flushed, nothing is lost. The frame checker (`mmu::frame_checker`) checks every answer and
//! write of these runs.

use proptest::prelude::*;

use crate::Outcome;
use crate::config::Resolved;
use gpumodel_core::contract::{DispatchOrder, Migration, Plan, PlanDraft, Share, Vacate, WakeOn};
use gpumodel_core::units::to_usize;

use crate::testkit::{Line, Script, Scripts, facts, line, memory, on_threads, translating};

/// `ugpu` with eight SMs.
fn ugpu(set: &[(&str, &str)]) -> Resolved {
    let mut keys = vec![("dispatch.sms", "8"), ("dispatch.kernel_launch_cycles", "0")];
    keys.extend_from_slice(set);
    translating("ugpu", &keys)
}

/// Lines of `pages` pages of 4 KB, one per CTA, warp and repetition.
fn over(pages: u64, step: u64) -> impl Fn(u64, u64, u64) -> (u64, i64) {
    move |cta, warp, turn| {
        let place = (cta * 7 + warp * 3 + turn * step) % (pages * 32);
        (0x4000_0000 + place * 128, 4)
    }
}

/// Reads such lines.
fn reader(pages: u64) -> Vec<Line> {
    vec![memory("LDG.E", Some(2), None, over(pages, 37)), line("FFMA", Some(3), Some(2))]
}

/// Reads and writes such lines, and adds to them.
fn user(pages: u64) -> Vec<Line> {
    vec![
        memory("LDG.E", Some(2), Some(6), over(pages, 37)),
        line("FFMA", Some(3), Some(2)),
        memory("STG.E", None, Some(3), over(pages, 53)),
        memory("RED.E.ADD", None, Some(3), over(pages, 11)),
    ]
}

fn script(resolved: &Resolved, pages: u64, turns: u32, ctas: u32) -> Script {
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
fn split(resolved: &Resolved, groups: usize, migration: Migration, wake: Vec<WakeOn>) -> Plan {
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
fn together(
    resolved: &Resolved,
    scripts: Vec<Script>,
    migration: Migration,
    changes: &[(u64, usize)],
) -> Outcome {
    let fixture = Scripts::new(scripts);
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
fn pages_move_with_their_channels_and_all_others_stay() {
    let outcome = shifted(Migration::PageMove, 120);
    let [loser, gainer] = [outcome.apps[0].memory, outcome.apps[1].memory];
    // 30 pages in each of four groups: those of two leave; two of six groups are filled.
    assert_eq!((loser.pages, loser.pages_moved, loser.changes), (120, 60, 1));
    assert_eq!((gainer.pages, gainer.pages_moved, gainer.changes), (120, 40, 1));
    assert!(loser.moving_cycles >= 1000 && outcome.apps[0].resting_cycles > 0, "{outcome:?}");
}

#[test]
fn pages_in_l1_tlbs_move_too() {
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
    // Rows are opened and 32 columns go over eight bank groups; nothing else is in progress.
    let copy = driver("1") - 1;
    assert!((99..400).contains(&copy), "{copy}");
    let whole = driver("1000");
    assert!(whole.abs_diff(1000 + copy) < 100, "{whole}, {copy}");
}

#[test]
fn without_migration_commands_a_page_takes_the_cycles_of_its_copy() {
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
        let fixture = Scripts::new(vec![work(), work()]);
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
fn two_changes_in_one_rest_are_one_rest() {
    let once = changed(Migration::PageMove, 120, &[(20_000, 2)]);
    let twice = changed(Migration::PageMove, 120, &[(20_000, 2), (20_040, 6)]);
    for (once, twice) in once.apps.iter().zip(&twice.apps) {
        assert!(once.resting_cycles > 100, "the second change falls into the rest");
        assert_eq!(twice.resting_cycles, once.resting_cycles);
    }
}

#[test]
fn a_relaunch_does_not_add_resting_cycles_to_the_first_run() {
    let resolved = ugpu(&[]);
    let scripts = vec![script(&resolved, 20, 10, 16), script(&resolved, 500, 400, 64)];
    let fixture = Scripts::new(scripts).with(0, |load| load.relaunches = true);
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
fn a_page_keeps_its_kind_of_migration_when_the_next_plan_has_another() {
    let resolved = ugpu(&[]);
    for (before, after) in [
        (Migration::Traditional, Migration::PageMove),
        (Migration::PageMove, Migration::Traditional),
        (Migration::Software, Migration::Stay),
    ] {
        let fixture =
            Scripts::new(vec![script(&resolved, 500, 100, 64), script(&resolved, 300, 100, 64)]);
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
fn no_page_moves_before_the_caches_are_flushed() {
    let rest = changed(Migration::PageMove, 2000, &[(20_000, 2)]).apps[0].resting_cycles;
    let resolved = ugpu(&[]);
    let fixture =
        Scripts::new(vec![script(&resolved, 2000, 400, 64), script(&resolved, 2000, 400, 64)]);
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
fn dirty_sectors_of_a_channel_count_for_its_former_owner() {
    let resolved = ugpu(&[]);
    // The reader changes first, and gets two groups of the writer.
    let writer = Script::new(&resolved, &user(120), 400, 64, 128);
    let scripts = vec![script(&resolved, 120, 400, 64), writer];
    let outcome = together(&resolved, scripts, Migration::PageMove, &[(20_000, 6)]);
    let writes = [0, 1].map(|app: usize| outcome.totals[app].dram_writes);
    assert!(writes[0] == 0 && writes[1] > 0, "{writes:?}");
}

#[test]
fn pages_used_before_channels_were_owned_move_too() {
    let resolved = ugpu(&[]);
    let fixture =
        Scripts::new(vec![script(&resolved, 120, 400, 64), script(&resolved, 120, 400, 64)]);
    let shares = split(&resolved, 4, Migration::Stay, Vec::new()).shares().to_vec();
    let wake = vec![WakeOn::At(20_000)];
    let draft =
        PlanDraft { shares, wake, order: DispatchOrder::RoundRobin, ..PlanDraft::default() };
    let first = Plan::new(&facts(&resolved, 2), draft).unwrap();
    let outcome =
        fixture.run(&resolved, &first, |_| split(&resolved, 4, Migration::PageMove, Vec::new()));
    for app in &outcome.apps {
        // 15 in each of eight groups, of which four belong to the other then.
        assert_eq!((app.memory.pages, app.memory.pages_moved), (120, 60));
        assert_eq!(app.memory.changes, 1);
    }
}

#[test]
fn switched_ctas_and_moving_pages_lose_nothing_at_the_next_change() {
    let resolved = ugpu(&[]);
    let work = |pages: u64| script(&resolved, pages, 60, 64).needing(32, 1024);
    for (migration, vacate) in [
        (Migration::PageMove, Vacate::Switch),
        (Migration::Software, Vacate::Hybrid),
        (Migration::Traditional, Vacate::Switch),
    ] {
        let fixture = Scripts::new(vec![work(500), work(300)]);
        // The driver's 1000 cycles are longer than every other span between changes.
        let plan = |turn: usize, now: u64| {
            let wake = vec![WakeOn::At(now + [700, 15_000][turn % 2])];
            let more = PlanDraft { migration, vacate, wake, ..PlanDraft::default() };
            divided(&resolved, [4, 2, 6, 1, 7][turn % 5], [4, 7, 1, 6, 2][turn % 5], more)
        };
        let (mut turn, mut moving) = (0, 0);
        let outcome = fixture.run(&resolved, &plan(1, 5000), |view| {
            turn += 1;
            let moved = |app: &gpumodel_core::contract::AppView| app.moving_cycles > 0;
            moving += usize::from(view.apps.iter().any(moved));
            plan(turn, view.now)
        });
        assert!(turn > 4 && moving > 3, "{migration:?}, {vacate:?}: {turn}, {moving}");
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

#[test]
fn a_fixed_partition_without_shared_translation_isolates_to_the_cycle() {
    let resolved = ugpu(&[("translation.ideal", "true")]);
    let plan = split(&resolved, 4, Migration::Stay, Vec::new());
    for lines in [reader(200), user(200)] {
        let next_to = |other: &[Line], turns: u32| {
            let one = Script::new(&resolved, &lines, 200, 64, 128);
            let fixture = Scripts::new(vec![one, Script::new(&resolved, other, turns, 64, 128)]);
            let mut counts = fixture.under(&resolved, &plan).kernels[0].clone();
            // Sums over spans, which ends of the other cut.
            counts.stalls.iter_mut().for_each(|slots| *slots = (*slots * 1e6).round());
            counts
        };
        let with_little = next_to(&reader(1), 1);
        for (other, turns) in
            [(reader(4000), 300), (reader(64), 30), (user(4000), 100), (user(3), 300)]
        {
            assert_eq!(next_to(&other, turns), with_little);
        }
    }
}

/// Waves of CTAs that end with those of the neighbour: places become free on both sides in the
/// same cycles, by events before and after those of the neighbour.
#[test]
fn an_application_with_its_own_sms_gets_ctas_whenever_others_do() {
    let resolved = ugpu(&[("translation.ideal", "true")]);
    let plan = split(&resolved, 4, Migration::Stay, Vec::new());
    let chain = [line("FFMA", Some(3), Some(3)), line("FADD", Some(4), Some(2))];
    for lines in [&reader(60)[..], &chain] {
        let next_to = |ctas: u32, turns: u32, threads: u32| {
            let one = Script::new(&resolved, lines, 3, 1200, 128);
            let fixture =
                Scripts::new(vec![one, Script::new(&resolved, lines, turns, ctas, threads)]);
            let counts = &fixture.under(&resolved, &plan).kernels[0];
            (counts.first_cta, counts.end, counts.l2, counts.dram_reads, counts.dram_writes)
        };
        let with_little = next_to(1, 1, 128);
        for (ctas, turns, threads) in
            [(1200, 3, 128), (900, 2, 96), (2000, 1, 128), (3000, 1, 32), (40, 60, 256)]
        {
            assert_eq!(next_to(ctas, turns, threads), with_little, "{ctas} CTAs of {turns} turns");
        }
    }
}

#[test]
fn shared_tlbs_and_walkers_leak() {
    let resolved = ugpu(&[]);
    let plan = split(&resolved, 4, Migration::Stay, Vec::new());
    let run = |pages: u64, turns: u32| {
        let fixture = Scripts::new(vec![
            script(&resolved, 200, 200, 64),
            script(&resolved, pages, turns, 64),
        ]);
        fixture.under(&resolved, &plan).kernels[0].end
    };
    assert_ne!(run(1, 1), run(8000, 300));
}

/// Writes such lines.
fn writer(pages: u64) -> Vec<Line> {
    vec![memory("STG.E", None, Some(3), over(pages, 37)), line("FFMA", Some(3), Some(2))]
}

/// Two applications with the same lines; at cycle `at` the second gets two groups of the
/// first.
fn pair(resolved: &Resolved, lines: &[Line], at: Option<u64>) -> Outcome {
    let work = || Script::new(resolved, lines, 1600, 64, 128);
    let changes: Vec<(u64, usize)> = at.map(|at| (at, 2)).into_iter().collect();
    together(resolved, vec![work(), work()], Migration::PageMove, &changes)
}

/// The second number over the first.
fn ratio([before, after]: [u64; 2]) -> f64 {
    after as f64 / before as f64
}

#[test]
fn l1s_and_l2_are_read_again_after_a_change() {
    let resolved = ugpu(&[]);
    // Two pages, which all L1s keep and which stay where they are.
    let runs = [None, Some(20_000)].map(|at| pair(&resolved, &reader(2), at));
    let l1 = runs.clone().map(|run| run.kernels[0].l1.misses());
    assert!((1.8..2.2).contains(&ratio(l1)), "L1: {l1:?}");
    let dram = runs.map(|run| run.kernels[0].dram_reads);
    assert!(ratio(dram) > 1.5, "{dram:?}");
    // Pages that only the L2 keeps.
    let runs = [None, Some(60_000)].map(|at| pair(&resolved, &reader(120), at));
    let dram = runs.map(|run| run.kernels[0].dram_reads);
    assert!((1.8..2.2).contains(&ratio(dram)), "{dram:?}");
}

#[test]
fn dirty_sectors_are_in_memory_before_applications_go_on() {
    let resolved = ugpu(&[]);
    let [alone, changed] = [None, Some(20_000)].map(|at| pair(&resolved, &writer(120), at));
    assert_eq!(alone.kernels[0].dram_writes, 0, "the L2 keeps all");
    // Two applications with 120 pages of 128 sectors, some of them not yet written.
    let written: u64 = changed.kernels.iter().map(|counts| counts.dram_writes).sum();
    assert!((2 * 120 * 100..=2 * 120 * 128).contains(&written), "{written}");
    let [clean, dirty] = [reader(120), writer(120)]
        .map(|lines| pair(&resolved, &lines, Some(20_000)).apps[0].resting_cycles);
    // Pages that move at once find their data in memory: the frame checker fails otherwise.
    let soon = ugpu(&[("translation.migration_driver_cycles", "1")]);
    let moved = pair(&soon, &writer(2000), Some(20_000)).apps[0].memory.pages_moved;
    assert!(moved > 500, "{moved}");
    // 7680 lines over 32 channels, two accesses of a clock of 440 MHz each: 1500 cycles.
    assert!(dirty > clean + 1000, "{clean}, {dirty}");
}

#[test]
fn an_application_that_arrives_meanwhile_and_writes_does_not_prolong_the_rest() {
    let resolved = ugpu(&[]);
    let rest = |turns: u32| {
        let first = Script::new(&resolved, &writer(120), 1600, 64, 128);
        let other = Script::new(&resolved, &writer(20_000), turns, 64, 128);
        let fixture = Scripts::new(vec![first, other]).with(1, |load| load.arrival = 20_050);
        let plan = |groups: usize, at: &[u64]| {
            let wake = at.iter().map(|&at| WakeOn::At(at)).collect();
            split(&resolved, groups, Migration::PageMove, wake)
        };
        let outcome = fixture.run(&resolved, &plan(4, &[20_000]), |_| plan(2, &[]));
        assert!(outcome.apps[0].memory.pages_moved > 0);
        outcome.apps[0].resting_cycles
    };
    let [with_little, with_much] = [1, 3000].map(rest);
    assert!(with_much < with_little + 2000, "{with_little}, {with_much}");
}

/// All pages of three applications.
const PAGES: [u64; 3] = [100, 60, 17];

/// CTAs of each.
const CTAS: u32 = 32;

/// A plan and how long it is in force.
#[derive(Clone, Debug)]
struct Step {
    /// By SM and by group of channels: the application.
    sms: Vec<usize>,
    groups: Vec<usize>,
    migration: Migration,
    vacate: Vacate,
    cycles: u64,
}

/// Eight parts, at least one for each of three applications.
fn owners() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(0_usize..3, 5)
        .prop_map(|rest| [vec![0, 1, 2], rest].concat())
        .prop_shuffle()
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let migrations = vec![Migration::PageMove, Migration::Software, Migration::Traditional];
    let migration = prop::sample::select(migrations);
    let vacate = prop::sample::select(vec![Vacate::Drain, Vacate::Switch, Vacate::Hybrid]);
    // Shorter than a rest, than the driver's cycles, than most moves, and longer.
    let cycles = prop_oneof![1_u64..300, 300_u64..3000, 3000_u64..30_000];
    let step = (owners(), owners(), migration, vacate, cycles);
    let step = step.prop_map(|(sms, groups, migration, vacate, cycles)| Step {
        sms,
        groups,
        migration,
        vacate,
        cycles,
    });
    prop::collection::vec(step, 2..14)
}

/// The plan of a step that begins at cycle `now`; the last one stays in force.
fn plan(resolved: &Resolved, step: &Step, now: u64, last: bool) -> Plan {
    let facts = facts(resolved, 3);
    let share = |app: usize| {
        Share::Quota(step.sms.iter().map(|&owner| if owner == app { 8 } else { 0 }).collect())
    };
    let channels = |app: usize| {
        let groups = step.groups.iter().zip(&facts.channel_groups);
        groups.filter(|&(&owner, _)| owner == app).flat_map(|(_, group)| group.clone()).collect()
    };
    let draft = PlanDraft {
        shares: (0..3).map(share).collect(),
        channels: (0..3).map(channels).collect(),
        migration: step.migration,
        vacate: step.vacate,
        wake: if last { Vec::new() } else { vec![WakeOn::At(now + step.cycles)] },
        order: DispatchOrder::RoundRobin,
        ..PlanDraft::default()
    };
    Plan::new(&facts, draft).unwrap()
}

fn work(resolved: &Resolved, pages: u64) -> Script {
    Script::new(resolved, &user(pages), 60, CTAS, 128).needing(32, 1024)
}

fn run(resolved: &Resolved, steps: &[Step]) -> Outcome {
    let fixture = Scripts::new(PAGES.iter().map(|&pages| work(resolved, pages)).collect());
    let plan =
        |number: usize, now: u64| plan(resolved, &steps[number], now, number + 1 == steps.len());
    let mut number = 0;
    fixture.run(resolved, &plan(0, 0), |view| {
        number = (number + 1).min(steps.len() - 1);
        plan(number, view.now)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn random_plans_lose_no_page_no_cta_and_no_instruction(steps in steps()) {
        let resolved = ugpu(&[]);
        let outcome = run(&resolved, &steps);
        for (app, counts) in outcome.kernels.iter().enumerate() {
            let found = outcome.apps[app].memory;
            prop_assert_eq!(counts.ctas_retired, u64::from(CTAS));
            prop_assert_eq!(counts.warp_instructions, u64::from(CTAS) * 4 * 60 * 4);
            prop_assert_eq!(found.pages, PAGES[app], "pages of application {}", app);
            let changed = steps.iter().any(|step| step.groups != steps[0].groups);
            prop_assert!(changed || found.pages_moved == 0);
        }
    }
}

#[test]
fn the_pages_of_random_plans_do_move() {
    let step = |first: u8, vacate: Vacate| Step {
        sms: vec![0, 0, 0, 1, 1, 1, 2, 2],
        groups: (0..8).map(|group| to_usize((group + first) % 8).min(2)).collect(),
        migration: Migration::PageMove,
        vacate,
        cycles: 6000,
    };
    let steps: Vec<Step> = (0..6).map(|first| step(first, Vacate::Switch)).collect();
    let moved: u64 = run(&ugpu(&[]), &steps).apps.iter().map(|app| app.memory.pages_moved).sum();
    assert!(moved > 100, "{moved}");
}

#[test]
fn channels_change_hands_the_same_on_any_number_of_threads() {
    let resolved = ugpu(&[]);
    for migration in [Migration::PageMove, Migration::Traditional, Migration::Software] {
        let scripts = || vec![script(&resolved, 120, 200, 64), script(&resolved, 60, 300, 64)];
        let run = |fixture: Scripts| {
            let plan = |groups| split(&resolved, groups, migration, vec![WakeOn::At(20_000)]);
            fixture.run(&resolved, &plan(4), |_| split(&resolved, 2, migration, Vec::new()))
        };
        let known = run(Scripts::new(scripts()));
        assert!(known.apps[0].memory.pages_moved > 0);
        for threads in [1, 2, 4] {
            let outcome = on_threads(threads, || run(Scripts::new(scripts()).on_all_threads()));
            assert!(outcome == known, "{migration:?}, {threads} threads");
        }
    }
}
