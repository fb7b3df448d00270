//! Random plans on a whole machine: every page, CTA and instruction is there at the end.
//! The page table of the tests' own (`translation::shadow`) watches every answer and
//! write, and that whoever goes on behind a change finds its pages in channels of its own.
//! At each change every page ever used has a frame to itself; one that nobody uses again
//! stays in it, as pages move when they are used (UGPU, section 4.4).

use proptest::prelude::*;

use crate::config::Resolved;
use gpumodel_core::contract::{DispatchOrder, Migration, Plan, PlanDraft, Share, Vacate, WakeOn};
use gpumodel_core::units::to_usize;

use crate::Outcome;
use crate::testkit::multi_app_fixture::MultiAppFixture;
use crate::testkit::scripted::{Script, facts};
use crate::tests::reallocation::{ugpu, user};

/// Pages that each of three applications uses, all of them.
const PAGES: [u64; 3] = [100, 60, 17];
/// CTAs of each.
const CTAS: u32 = 32;

/// A plan and how long it is in force.
#[derive(Clone, Debug)]
struct Turn {
    /// By SM and by group of channels: the application.
    sms: Vec<usize>,
    groups: Vec<usize>,
    migration: Migration,
    vacate: Vacate,
    cycles: u64,
}

/// Eight parts of three applications, each of which has one at least.
fn owners() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(0_usize..3, 5)
        .prop_map(|rest| [vec![0, 1, 2], rest].concat())
        .prop_shuffle()
}

fn turns() -> impl Strategy<Value = Vec<Turn>> {
    let migrations = vec![Migration::PageMove, Migration::Software, Migration::Traditional];
    let migration = prop::sample::select(migrations);
    let vacate = prop::sample::select(vec![Vacate::Drain, Vacate::Switch, Vacate::Hybrid]);
    // Shorter than a rest, than the driver's cycles, than most moves, and longer.
    let cycles = prop_oneof![1_u64..300, 300_u64..3000, 3000_u64..30_000];
    let turn = (owners(), owners(), migration, vacate, cycles);
    let turn = turn.prop_map(|(sms, groups, migration, vacate, cycles)| Turn {
        sms,
        groups,
        migration,
        vacate,
        cycles,
    });
    prop::collection::vec(turn, 2..14)
}

/// The plan of a turn that begins at cycle `now`; the last one stays in force.
fn plan(resolved: &Resolved, turn: &Turn, now: u64, last: bool) -> Plan {
    let facts = facts(resolved, 3);
    let share = |app: usize| {
        Share::Quota(turn.sms.iter().map(|&owner| if owner == app { 8 } else { 0 }).collect())
    };
    let channels = |app: usize| {
        let groups = turn.groups.iter().zip(&facts.channel_groups);
        groups.filter(|&(&owner, _)| owner == app).flat_map(|(_, group)| group.clone()).collect()
    };
    let draft = PlanDraft {
        shares: (0..3).map(share).collect(),
        channels: (0..3).map(channels).collect(),
        migration: turn.migration,
        vacate: turn.vacate,
        wake: if last { Vec::new() } else { vec![WakeOn::At(now + turn.cycles)] },
        order: DispatchOrder::RoundRobin,
        ..PlanDraft::default()
    };
    Plan::new(&facts, draft).unwrap()
}

fn work(resolved: &Resolved, pages: u64) -> Script {
    Script::new(resolved, &user(pages), 60, CTAS, 128).needing(32, 1024)
}

fn run(resolved: &Resolved, turns: &[Turn]) -> Outcome {
    let fixture = MultiAppFixture::new(PAGES.iter().map(|&pages| work(resolved, pages)).collect());
    let plan =
        |number: usize, now: u64| plan(resolved, &turns[number], now, number + 1 == turns.len());
    let mut number = 0;
    fixture.run(resolved, &plan(0, 0), |view| {
        number = (number + 1).min(turns.len() - 1);
        plan(number, view.now)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn random_plans_lose_no_page_no_cta_and_no_instruction(turns in turns()) {
        let resolved = ugpu(&[]);
        let outcome = run(&resolved, &turns);
        for (app, counts) in outcome.kernels.iter().enumerate() {
            let found = outcome.apps[app].memory;
            prop_assert_eq!(counts.ctas_retired, u64::from(CTAS));
            prop_assert_eq!(counts.warp_instructions, u64::from(CTAS) * 4 * 60 * 4);
            prop_assert_eq!(found.pages, PAGES[app], "pages of application {}", app);
            let changed = turns.iter().any(|turn| turn.groups != turns[0].groups);
            prop_assert!(changed || found.pages_moved == 0);
        }
    }
}

#[test]
fn the_pages_of_random_plans_do_move() {
    let turn = |first: u8, vacate: Vacate| Turn {
        sms: vec![0, 0, 0, 1, 1, 1, 2, 2],
        groups: (0..8).map(|group| to_usize((group + first) % 8).min(2)).collect(),
        migration: Migration::PageMove,
        vacate,
        cycles: 6000,
    };
    let turns: Vec<Turn> = (0..6).map(|first| turn(first, Vacate::Switch)).collect();
    let moved: u64 = run(&ugpu(&[]), &turns).apps.iter().map(|app| app.memory.pages_moved).sum();
    assert!(moved > 100, "{moved}");
}
