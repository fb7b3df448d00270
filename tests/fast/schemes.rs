//! Does every scheme plan within the rules, whatever it sees?

use gpumodel::core::contract::{
    AppFacts, AppView, Facts, KernelFacts, Plan, Probe, ProbeApp, ProbeResult, Share, View, Wake,
    WakeOn,
};
use gpumodel::core::units::AppId;
use gpumodel::policy::{Choice, TABLE};
use proptest::prelude::*;
use proptest::sample::Index;

#[allow(dead_code, reason = "the unit tests of the schemes use the rest")]
#[path = "../../src/policy/fixture.rs"]
mod fixture;

/// Sets of parameters that take other ways than the defaults.
const OTHERS: [&str; 13] = [
    "warped-slicer:solver=exact:threshold_on=loss:delay=1000:rest=0",
    "warped-slicer:profile=offline:factor=0",
    "oracle:most=3",
    "spatial:freed=idle",
    "smra:freed=idle:t_c=100",
    "profile-based:step=1:window=500:freed=idle",
    "bp:sms=5:channels=3:high=1:freed=idle",
    "mps-share:sms=9:freed=idle",
    "ugpu:epoch=10000:delta_sm=1:min_sms=1:feedback=on:rest=1",
    "ugpu:epoch=100:delta_groups=2:iterations=3:freed=idle",
    "qos-ugpu:high=1:target=0.5:epoch=100",
    "cd-search:epoch=100:step=3:min_sms=1",
    "bp-cd-search:freed=idle:min_sms=1",
];

fn any_kernel() -> impl Strategy<Value = KernelFacts> {
    (1_u32..=32, 1_u32..=60, 0_u32..=40, 0_usize..3).prop_map(|(warps, each, shared, name)| {
        let registers = (warps * 32 * each).min(32_768);
        let shared = shared * 1024;
        let fit = [48 / warps, 32_768 / registers, 8, 49_152_u32.checked_div(shared).unwrap_or(8)];
        KernelFacts {
            name: format!("kernel{name}"),
            ctas: 1000,
            threads_per_cta: warps * 32,
            warps_per_cta: warps,
            registers_per_thread: each,
            shared_bytes: shared,
            registers_per_cta: registers,
            shared_bytes_per_cta: shared,
            ctas_per_sm: *fit.iter().min().unwrap(),
            warp_instructions: 1,
        }
    })
}

fn any_facts() -> impl Strategy<Value = Facts> {
    let app = (proptest::collection::vec(any_kernel(), 1..4), 0_u64..3);
    (proptest::collection::vec(app, 1..=4), 1_u16..=20).prop_map(|(apps, sms)| {
        let app = |(id, (kernels, arrival)): (u16, (_, u64))| AppFacts {
            app: AppId(id),
            name: format!("app{id}"),
            arrival: arrival * 10_000,
            kernels,
        };
        Facts {
            sms,
            channel_groups: vec![vec![0, 1], vec![2, 5], vec![3, 4]],
            channel_bytes: 1 << 20,
            page_bytes: 4096,
            pages_follow: true,
            apps: (0..).zip(apps).map(app).collect(),
            ..fixture::facts(&[])
        }
    })
}

/// The inputs of a decision.
#[derive(Clone, Debug)]
struct Turn {
    wake: u8,
    app: Index,
    kernel: Index,
    cycles: u64,
    speed: f64,
    ends: bool,
}

fn any_turn() -> impl Strategy<Value = Turn> {
    let whole = (0_u8..6, any::<Index>(), any::<Index>());
    (whole, 0_u64..40_000, 0.0..3.0, proptest::bool::weighted(0.1)).prop_map(
        |((wake, app, kernel), cycles, speed, ends)| Turn {
            wake,
            app,
            kernel,
            cycles,
            speed,
            ends,
        },
    )
}

/// The view after a turn, in which SMs hold what the plan allows.
fn picture(facts: &Facts, plan: &Plan, before: &View, turn: &Turn) -> View {
    let mut view = before.clone();
    let app = turn.app.index(facts.apps.len());
    let id = facts.apps[app].app;
    view.now += turn.cycles;
    view.wake = [
        Wake::At(view.now),
        Wake::Arrival(id),
        Wake::KernelBegin(id),
        Wake::KernelEnd(id),
        Wake::IpcShift(id),
        Wake::AppEnd(id),
    ][usize::from(turn.wake)];
    for (index, seen) in view.apps.iter_mut().enumerate() {
        let known = &facts.apps[index];
        seen.active = known.arrival <= view.now && !seen.finished;
        let quotas = (0..usize::from(facts.sms)).map(|sm| plan.quota(known.app, sm));
        seen.ctas_by_sm = quotas.collect();
        let speed = |&ctas: &u32| f64::from(ctas) * turn.speed * turn.cycles as f64;
        seen.warp_instructions_by_sm = seen.ctas_by_sm.iter().map(speed).collect();
        seen.memory_stall_slots_by_sm = vec![turn.cycles as f64; usize::from(facts.sms)];
        let ctas: u64 = seen.ctas_by_sm.iter().map(|&ctas| u64::from(ctas)).sum();
        seen.thread_instructions = 32 * ctas * turn.cycles;
        // Some compute, some wait for memory, at different times.
        let requests = seen.thread_instructions / 50 * (turn.cycles % 7) * (index as u64 % 3);
        seen.l2 = (requests, requests / 2);
        seen.pages += turn.cycles / 100;
    }
    let chosen = &mut view.apps[app];
    chosen.running = vec![turn.kernel.index(facts.apps[app].kernels.len())];
    chosen.ctas_left = 5;
    if turn.ends {
        (chosen.active, chosen.finished) = (false, true);
        chosen.running.clear();
    }
    view
}

fn results(probes: &[Probe]) -> Vec<ProbeResult> {
    let row = |&app: &AppId| ProbeApp {
        app,
        cycles: 1000,
        warp_instructions: 500,
        thread_instructions: 8000,
        l2_accesses: 100 * u64::from(app.0),
        ..ProbeApp::default()
    };
    let result =
        |probe: &Probe| ProbeResult { cycles: 1000, apps: probe.apps.iter().map(row).collect() };
    probes.iter().map(result).collect()
}

/// At least one active application, if any, may run.
fn serves(facts: &Facts, view: &View, plan: &Plan) -> bool {
    let active = view.apps.iter().any(|app| app.active);
    let served = (0..).zip(&facts.apps).any(|(index, app)| {
        let runs =
            matches!(&plan.shares()[index], Share::Quota(by_sm) if by_sm.iter().any(|&q| q > 0));
        runs && view.apps[app.app.index()].active
    });
    served || !active
}

/// Where channels are owned, exactly the applications that do not wait have some.
fn owns(plan: &Plan) -> bool {
    plan.channels()
        .iter()
        .zip(plan.shares())
        .all(|(owned, share)| (*share == Share::Waiting) == owned.is_empty())
}

/// A service on the host has messages that it will answer.
fn answers_later(name: &str, plan: &Plan) -> bool {
    name == "sim" && plan.wake().iter().any(|wake| matches!(wake, WakeOn::At(_)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn plans_are_valid_and_serve_an_application(
        facts in any_facts(),
        turns in proptest::collection::vec(any_turn(), 0..12),
    ) {
        let count = facts.apps.len();
        let rows = TABLE.iter().filter(|row| row.name != "solo" && !row.instances && row.serves(count));
        let names = rows.map(|row| row.name);
        for name in names.chain(OTHERS) {
            let mut scheme = Choice::parse(name).unwrap().make();
            let Ok(probes) = scheme.probes(&facts) else {
                // Whole multiples of SMs for each do not fit a small machine.
                prop_assert!(name == "green-contexts" && usize::from(facts.sms) < 2 * count);
                continue;
            };
            let mut plan = scheme.start(&facts, &results(&probes)).unwrap();
            let app = AppView::default();
            let mut view = View {
                now: 0,
                wake: Wake::At(0),
                since: 0,
                apps: vec![app; facts.apps.len()],
                queue: Vec::new(),
                channel_owner: vec![None; 6],
            };
            for turn in &turns {
                view = picture(&facts, &plan, &view, turn);
                plan = scheme.decide(&facts, &view).unwrap();
                let fair = serves(&facts, &view, &plan) || answers_later(name, &plan);
                prop_assert!(fair && owns(&plan), "{name}: {plan:?} under {view:?}");
            }
        }
    }
}
