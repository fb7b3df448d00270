//! Decisions of the schemes of UGPU for its benchmarks on its machine.

use super::super::fixture::{BENCHMARKS, epoch_view, parts, solo_probes, ugpu_facts as facts};
use super::super::{Choice, Row, Scheme, TABLE};
use gpumodel_core::contract::{
    DispatchOrder, Facts, LawBroken, Migration, Plan, Share, Vacate, Wake, WakeOn,
};
use gpumodel_core::units::{AppId, Cycle, to_u16};

const EPOCH: Cycle = 5_000_000;

/// A scheme with its probes answered, and its first plan.
fn started(text: &str, facts: &Facts) -> (Box<dyn Scheme>, Plan) {
    let mut scheme = Choice::parse(text).unwrap().make();
    let asked = scheme.probes(facts).unwrap().len();
    assert!(asked == 0 || asked == facts.apps.len(), "{text}");
    let mut answers = solo_probes(facts, &vec![1000; facts.apps.len()]);
    answers.truncate(asked);
    let plan = scheme.start(facts, &answers).unwrap();
    (scheme, plan)
}

/// SMs and channels after as many equal epochs.
fn later(text: &str, facts: &Facts, epochs: u64) -> Vec<(usize, usize)> {
    let (mut scheme, mut plan) = started(text, facts);
    for number in 1..=epochs {
        let seen = epoch_view(facts, number * EPOCH, EPOCH, &vec![500; facts.apps.len()]);
        plan = scheme.decide(facts, &seen).unwrap();
    }
    parts(facts, &plan)
}

fn rows() -> impl Iterator<Item = &'static Row> {
    TABLE.iter().filter(|row| row.paper.contains("UGPU"))
}

#[test]
fn one_to_ten_applications_have_lawful_plans_with_all_sms_and_channels() {
    for count in 1..=10 {
        let names: Vec<&str> = (0..count).map(|place| BENCHMARKS[place * 7 % 15].0).collect();
        let facts = facts(&names);
        for row in rows().filter(|row| row.serves(count)) {
            for epochs in 0..3 {
                let found = later(row.name, &facts, epochs);
                let all = |of: fn(&(usize, usize)) -> usize| found.iter().map(of).sum::<usize>();
                assert_eq!(all(|part| part.0), 80, "{}: {found:?}", row.name);
                let channels = if row.channels { 32 } else { 0 };
                assert_eq!(all(|part| part.1), channels, "{}: {found:?}", row.name);
                let waiting = found.iter().filter(|part| part.0 == 0).count();
                let expected = if row.channels { count.saturating_sub(8) } else { 0 };
                assert_eq!(waiting, expected, "{}: {found:?}", row.name);
            }
        }
    }
}

#[test]
fn an_application_alone_runs_on_a_slice_of_the_set_size() {
    for (text, part) in [
        ("bp", (80, 32)),
        ("bp:sms=10:channels=8", (10, 8)),
        ("bp:channels=7", (80, 4)),
        ("bp:sms=99:channels=64", (80, 32)),
        ("mps-share:sms=20", (20, 0)),
    ] {
        for epochs in 0..3 {
            assert_eq!(later(text, &facts(&["PVC"]), epochs), [part], "{text}");
        }
    }
}

#[test]
fn a_mirrored_order_mirrors_the_decision() {
    for (one, other) in [("PVC", "DXTC"), ("SRAD", "HOTSPOT"), ("LAVAMD", "PF"), ("PVC", "LBM")] {
        let (there, back) = (facts(&[one, other]), facts(&[other, one]));
        for row in rows().filter(|row| !["bp-bs", "bp-sb"].contains(&row.name)) {
            let mut found = later(row.name, &there, 3);
            found.reverse();
            assert_eq!(found, later(row.name, &back, 3), "{}: {one} and {other}", row.name);
        }
        let mut found = later("bp-bs", &there, 0);
        found.reverse();
        assert_eq!(found, later("bp-sb", &back, 0));
    }
}

#[test]
fn balanced_partitions_stay_whatever_is_asked_for() {
    let pair = facts(&["PVC", "DXTC"]);
    for (text, expected) in [
        ("bp", [(40, 16), (40, 16)]),
        ("bp-bs", [(60, 24), (20, 8)]),
        ("bp-sb", [(20, 8), (60, 24)]),
        ("bp:sms=60:channels=24:high=2", [(20, 8), (60, 24)]),
        ("bp:channels=7", [(40, 4), (40, 28)]),
        ("mps-share", [(40, 0), (40, 0)]),
        ("mps-share:sms=60", [(60, 0), (20, 0)]),
    ] {
        assert_eq!(later(text, &pair, 0), expected, "{text}");
        assert_eq!(later(text, &pair, 2), expected, "{text}");
    }
    let (_, plan) = started("bp:channels=7:sms=99", &pair);
    let reason = "PVC has 79 SMs and 4 channels, DXTC has 1 SM and 28 channels; 99 SMs were set, \
                  79 of 80 given; each other one keeps some; 7 channels were set, 4 of 32 given, \
                  4 at a time; each other one keeps some";
    assert!(plan.reason().ends_with(reason), "{}", plan.reason());
    let (_, plan) = started("bp:channels=8:sms=20", &pair);
    assert!(!plan.reason().contains("were set"), "as it was set: {}", plan.reason());
    let (_, plan) = started("ugpu-offline:iterations=1", &pair);
    assert!(!plan.reason().contains("nothing moves"), "in several runs: {}", plan.reason());
    let (_, plan) = started("bp", &pair);
    assert_eq!(plan.migration(), Migration::Stay);
    assert_eq!(
        plan.reason(),
        "equal parts: PVC has 40 SMs and 16 channels, DXTC has 40 SMs and 16 channels"
    );
}

#[test]
fn channels_go_to_memory_bound_and_sms_to_compute_bound_applications() {
    let pair = facts(&["PVC", "DXTC"]);
    for (text, migration) in [
        ("ugpu", Migration::PageMove),
        ("ugpu-soft", Migration::Software),
        ("ugpu-ori", Migration::Traditional),
    ] {
        let (mut scheme, plan) = started(text, &pair);
        assert_eq!(parts(&pair, &plan), [(40, 16), (40, 16)], "balanced at first");
        assert_eq!((plan.delay(), plan.wake()), (0, &[WakeOn::At(EPOCH)][..]));
        let plan = scheme.decide(&pair, &epoch_view(&pair, EPOCH, EPOCH, &[500, 500])).unwrap();
        // Three exchanges, until no channels are left to give.
        assert_eq!(parts(&pair, &plan), [(28, 28), (52, 4)]);
        assert_eq!(plan.delay(), 148 + 162 * 4, "three moves, and an iteration that finds none");
        assert_eq!((plan.migration(), plan.vacate()), (migration, Vacate::Hybrid));
        assert_eq!(plan.wake(), [WakeOn::At(2 * EPOCH)]);
        let reason = "GB/s asked for if nothing stalled, of what L2 and memory give: PVC 2197.4 of \
                      450.6, DXTC 0.2 of 450.6; after 4 iterations no application has \
                      more to give: PVC has 28 SMs and 28 channels, DXTC has 52 SMs and 4 channels";
        assert_eq!(plan.reason(), reason);
    }
    for (text, part) in [
        // One SM at a time ends there too: three with channels, then nine alone.
        ("ugpu:delta_sm=1", (28, 28)),
        // 54.9 GB/s per SM against 28.2 per channel: 16 SMs ask for 879 of 788, 12 for 659.
        ("ugpu:sms_per_channel=0", (12, 28)),
        ("ugpu:sms_per_channel=0.5", (14, 28)),
    ] {
        assert_eq!(later(text, &pair, 1)[0], part, "{text}");
    }
}

#[test]
fn a_demand_beyond_the_port_does_not_take_sms_away() {
    // 119.9 GB/s per SM as printed, 44.8 with the port's bound, against 28.2 per channel.
    let pair = facts(&["LAVAMD", "DXTC"]);
    for name in ["ugpu", "ugpu-ori", "ugpu-offline", "qos-ugpu"] {
        let moves = if name == "qos-ugpu" { ":moves=all" } else { "" };
        let alone = format!("{name}{moves}:sms_per_channel=0");
        let sms = |more: &str| later(&format!("{alone}{more}"), &pair, 4)[0].0;
        assert!(sms("") < sms(":port_limit=on"), "{name}");
        assert_eq!(sms(""), sms(":port_limit=off"), "{name}");
    }
    let bounded = later("ugpu:sms_per_channel=0:port_limit=on", &pair, 1);
    assert_eq!(bounded, [(16, 28), (64, 4)], "16 SMs ask for 717 of 788");
}

#[test]
fn offline_is_what_online_comes_to_when_epochs_are_alike() {
    for names in [vec!["PVC", "DXTC"], vec!["SRAD", "HOTSPOT"], vec!["LBM", "PF", "CONVS", "CP"]] {
        let facts = facts(&names);
        for settings in ["", ":delta_sm=1", ":iterations=2", ":min_sms=17:min_groups=2"] {
            let offline = later(&format!("ugpu-offline{settings}"), &facts, 0);
            assert_eq!(later(&format!("ugpu{settings}"), &facts, 30), offline, "{settings}");
            assert_ne!(later("bp", &facts, 0), offline);
        }
    }
    let (_, plan) = started("ugpu-offline", &facts(&["PVC", "DXTC"]));
    assert_eq!((plan.migration(), plan.delay()), (Migration::Stay, 0));
}

#[test]
fn eight_programs_have_the_least_of_channels_and_only_sms_move() {
    let names: Vec<&str> = (6..14).map(|place| BENCHMARKS[place].0).collect();
    let facts = facts(&names);
    let found = later("ugpu", &facts, 1);
    assert!(found.iter().all(|part| part.1 == 4), "{found:?}");
    assert!(found[0].0 < 10 && found[4].0 > 10, "{found:?}");
    let (mut scheme, _) = started("ugpu", &facts);
    let plan = scheme.decide(&facts, &epoch_view(&facts, EPOCH, EPOCH, &[500; 8])).unwrap();
    assert!(
        plan.reason().contains("every application has the least of channels"),
        "{}",
        plan.reason()
    );
    let (mut scheme, _) = started("ugpu:min_sms=17", &facts);
    let plan = scheme.decide(&facts, &epoch_view(&facts, EPOCH, EPOCH, &[500; 8])).unwrap();
    assert!(plan.reason().contains("10 SMs, fewer than min_sms=17, and"), "{}", plan.reason());
}

#[test]
fn an_application_that_executes_nothing_keeps_its_part() {
    let three = facts(&["PVC", "DXTC", "CP"]);
    let (mut scheme, plan) = started("ugpu", &three);
    let before = parts(&three, &plan);
    let plan = scheme.decide(&three, &epoch_view(&three, EPOCH, EPOCH, &[500, 0, 500])).unwrap();
    let after = parts(&three, &plan);
    assert_eq!(after[1], before[1]);
    assert!(after[0].1 > before[0].1 && after[2].0 > before[2].0, "{after:?}");
}

#[test]
fn channels_that_hold_a_working_set_are_not_given_away() {
    let pair = facts(&["PVC", "DXTC"]);
    let (mut scheme, _) = started("ugpu", &pair);
    let mut seen = epoch_view(&pair, EPOCH, EPOCH, &[500, 500]);
    // A group of four channels holds 2 GB, 524 288 pages; DXTC fills two and a bit.
    seen.apps[1].pages = 2 * 524_288 + 1;
    let plan = scheme.decide(&pair, &seen).unwrap();
    assert_eq!(parts(&pair, &plan)[1].1, 12);
    // With more than it has, it counts as memory-bound, and none is compute-bound.
    let (mut scheme, _) = started("ugpu", &pair);
    seen.apps[1].pages = 5 * 524_288;
    let plan = scheme.decide(&pair, &seen).unwrap();
    assert_eq!(parts(&pair, &plan), [(40, 16), (40, 16)]);
    assert!(plan.reason().contains("DXTC 0.2 of 450.6 and lacks memory"));
}

#[test]
fn an_arrival_or_end_divides_everything_evenly_again() {
    let mut three = facts(&["PVC", "DXTC", "CP"]);
    three.apps[2].arrival = 7_000_000;
    for text in ["bp", "ugpu", "ugpu-soft", "bp-cd-search"] {
        let (mut scheme, plan) = started(text, &three);
        assert_eq!(parts(&three, &plan), [(40, 16), (40, 16), (0, 0)], "{text}");
        assert_eq!(plan.shares()[2], Share::Waiting);
        let mut seen = epoch_view(&three, EPOCH, EPOCH, &[500, 500, 0]);
        seen.apps[2].active = false;
        let moved = scheme.decide(&three, &seen).unwrap();
        assert_eq!(text == "bp", parts(&three, &moved)[0].0 == 40, "{text}");
        let mut seen = epoch_view(&three, 7_000_000, 2_000_000, &[500, 500, 0]);
        seen.wake = Wake::Arrival(AppId(2));
        let plan = scheme.decide(&three, &seen).unwrap();
        assert_eq!(parts(&three, &plan), [(27, 12), (27, 12), (26, 8)], "{text}");
        (seen.wake, seen.now) = (Wake::AppEnd(AppId(0)), 8_000_000);
        (seen.apps[0].active, seen.apps[0].finished) = (false, true);
        let plan = scheme.decide(&three, &seen).unwrap();
        assert_eq!(parts(&three, &plan), [(0, 0), (40, 16), (40, 16)], "{text}");
        (seen.apps[1].active, seen.apps[1].finished) = (false, true);
        let plan = scheme.decide(&three, &seen).unwrap();
        assert_eq!(parts(&three, &plan)[2], (80, 32), "{text}");
        assert!(plan.wake().is_empty(), "{text}: one application is left");
    }
}

#[test]
fn where_parts_stay_idle_an_ended_application_keeps_its_part() {
    let pair = facts(&["PVC", "DXTC"]);
    let (mut scheme, _) = started("ugpu:freed=idle", &pair);
    let mut seen = epoch_view(&pair, EPOCH, EPOCH, &[500, 500]);
    (seen.apps[1].active, seen.apps[1].finished) = (false, true);
    let plan = scheme.decide(&pair, &seen).unwrap();
    assert_eq!(parts(&pair, &plan), [(40, 16), (40, 16)], "{}", plan.reason());
}

#[test]
fn an_application_that_waits_for_channels_does_not_delay_the_decision() {
    let names: Vec<&str> = (6..15).map(|place| BENCHMARKS[place].0).collect();
    let mut nine = facts(&names);
    nine.apps[8].arrival = 3_000_000;
    for text in ["ugpu", "bp-cd-search"] {
        let (mut scheme, first) = started(text, &nine);
        let mut seen = epoch_view(&nine, 3_000_000, 3_000_000, &[500; 9]);
        seen.wake = Wake::Arrival(AppId(8));
        let plan = scheme.decide(&nine, &seen).unwrap();
        assert_eq!(plan.shares(), first.shares(), "{text}");
        assert_eq!(plan.wake(), [WakeOn::At(EPOCH)], "{text}");
        let plan = scheme.decide(&nine, &epoch_view(&nine, EPOCH, 2_000_000, &[500; 9])).unwrap();
        assert_ne!(plan.shares(), first.shares(), "{text}");
        assert_eq!(plan.shares()[8], Share::Waiting, "{text}");
    }
}

#[test]
fn a_search_takes_back_what_hurts_and_tries_half_as_much() {
    let pair = facts(&["PVC", "DXTC"]);
    for (text, channels) in [("cd-search", 0), ("bp-cd-search", 16)] {
        let (mut scheme, plan) = started(text, &pair);
        assert_eq!(parts(&pair, &plan), [(40, channels); 2], "{text}");
        let mut sms = Vec::new();
        // PVC's and DXTC's instructions per cycle, of 1000 alone.
        for (number, ipc) in
            [[400, 500], [400, 600], [300, 650], [400, 600], [390, 650], [200, 700]]
                .iter()
                .enumerate()
        {
            let now = EPOCH * (number as u64 + 1);
            let plan = scheme.decide(&pair, &epoch_view(&pair, now, EPOCH, ipc)).unwrap();
            assert!(plan.wake() == [WakeOn::At(now + EPOCH)]);
            sms.push(parts(&pair, &plan)[0].0);
        }
        // 0.9, then 1.0 is kept; 0.95 is not; four at a time 1.04 is, 0.9 is not.
        assert_eq!(sms, [32, 24, 32, 28, 24, 28], "{text}");
        let again = epoch_view(&pair, EPOCH * 7, EPOCH, &[390, 650]);
        assert_eq!(parts(&pair, &scheme.decide(&pair, &again).unwrap())[0].0, 26, "{text}");
    }
}

#[test]
fn an_arrival_during_a_decision_does_not_bring_it_forward() {
    let pair = facts(&["PVC", "DXTC"]);
    let (mut scheme, _) = started("ugpu", &pair);
    let plan = scheme.decide(&pair, &epoch_view(&pair, EPOCH, EPOCH, &[500, 500])).unwrap();
    let delay = 148 + 162 * 4;
    assert_eq!(plan.delay(), delay);
    for (later, left) in [(100, delay - 100), (700, delay - 700), (5000, 0)] {
        let again =
            scheme.decide(&pair, &epoch_view(&pair, EPOCH + later, 0, &[500, 500])).unwrap();
        assert_eq!((parts(&pair, &again), again.delay()), (parts(&pair, &plan), left));
    }
    // With steps of one SM that move alone the algorithm runs into its cap.
    let (mut scheme, _) = started("ugpu:delta_sm=1:sms_per_channel=0", &pair);
    let plan = scheme.decide(&pair, &epoch_view(&pair, EPOCH, EPOCH, &[500, 500])).unwrap();
    assert_eq!(plan.delay(), 148 + 162 * 20);
}

#[test]
fn with_feedback_a_move_that_costs_throughput_is_taken_back() {
    let pair = facts(&["PVC", "DXTC"]);
    let (mut scheme, _) = started("ugpu:feedback=on:rest=1", &pair);
    let mut sms = Vec::new();
    for (number, ipc) in [[500, 500], [300, 600], [500, 500], [500, 500]].iter().enumerate() {
        let now = EPOCH * (number as u64 + 1);
        let plan = scheme.decide(&pair, &epoch_view(&pair, now, EPOCH, ipc)).unwrap();
        sms.push(parts(&pair, &plan)[0]);
    }
    assert_eq!(sms, [(28, 28), (40, 16), (40, 16), (28, 28)]);
}

#[test]
fn the_high_priority_application_keeps_three_quarters() {
    for (names, high) in [(["PVC", "DXTC"], 1), (["DXTC", "PVC"], 0)] {
        let pair = facts(&names);
        assert_eq!(later("qos-bp", &pair, 2)[high], (60, 24));
        assert_eq!(later("qos-bp", &pair, 2)[1 - high], (20, 8));
        assert_eq!(later("qos-mps-share", &pair, 2)[high], (60, 0));
        assert_eq!(later("qos-ugpu", &pair, 0)[high], (60, 24), "as the balanced partition");
        assert_eq!(later("qos-ugpu", &pair, 4)[high], (60, 4), "only channels move");
        let all = later("qos-ugpu:moves=all:sms_per_channel=0", &pair, 4)[high];
        assert_eq!(all, (72, 12), "until the other is content");
        for with_qos_target in ["qos-bp", "qos-mps-share", "qos-ugpu"] {
            let first = DispatchOrder::Priority(vec![AppId(to_u16(high))]);
            assert_eq!(started(with_qos_target, &pair).1.order(), &first, "{with_qos_target}");
        }
    }
    // A memory-bound application keeps its channels: three quarters of its speed alone.
    let pair = facts(&["PVC", "DXTC"]);
    assert_eq!(later("qos-ugpu:high=1", &pair, 0)[0], (60, 24));
    let kept = later("qos-ugpu:high=1", &pair, 4)[0];
    assert!(kept.1 >= 24 && 54.94 * kept.0 as f64 >= 0.75 * 901.12, "{kept:?}");
    assert_eq!(later("qos-bp:target=0.5", &pair, 0), [(40, 16), (40, 16)]);
    // Among four, each other one has a channel of each stack too.
    let four = facts(&["PVC", "LBM", "DXTC", "SC"]);
    assert_eq!(later("qos-bp", &four, 0), [(7, 4), (7, 4), (60, 20), (6, 4)]);
}

#[test]
fn what_the_machine_or_the_run_lacks_is_refused() {
    let pair = facts(&["PVC", "DXTC"]);
    let bare = Facts { channel_groups: Vec::new(), ..pair.clone() };
    for row in rows() {
        let probes = Choice::of(row).make().probes(&bare);
        let expected = if row.channels { Some(LawBroken::NoGroups) } else { None };
        assert_eq!(probes.err(), expected, "{}", row.name);
    }
    let known = Facts { pages_follow: false, ..pair.clone() };
    for row in rows() {
        let moves = row.name.contains("ugpu") && row.name != "ugpu-offline";
        let expected = moves.then_some(LawBroken::PagesStay);
        assert_eq!(Choice::of(row).make().probes(&known).err(), expected, "{}", row.name);
    }
    for text in ["qos-bp:high=3", "qos-ugpu:high=3", "bp:sms=60:high=3", "mps-share:sms=9:high=3"] {
        let mut scheme = Choice::parse(text).unwrap().make();
        let refused = scheme.start(&pair, &[]).unwrap_err();
        assert_eq!(refused, LawBroken::Priority(AppId(2)), "{text}");
    }
}

#[test]
fn a_decision_takes_the_counters_of_the_whole_epoch_despite_arrivals() {
    let names: Vec<&str> = (6..15).map(|place| BENCHMARKS[place].0).collect();
    let mut nine = facts(&names);
    nine.apps[8].arrival = 4_000_000;
    for text in ["ugpu", "ugpu-ori", "bp-cd-search"] {
        let (mut whole, _) = started(text, &nine);
        let whole = whole.decide(&nine, &epoch_view(&nine, EPOCH, EPOCH, &[400; 9])).unwrap();
        // The same in four fifths of the epoch, and a last fifth in which nothing runs;
        // the ninth, which arrives between them, finds no channels left.
        let (mut parted, _) = started(text, &nine);
        let mut seen = epoch_view(&nine, 4_000_000, 4_000_000, &[500; 9]);
        seen.wake = Wake::Arrival(AppId(8));
        parted.decide(&nine, &seen).unwrap();
        let seen = epoch_view(&nine, EPOCH, 1_000_000, &[0; 9]);
        let parted = parted.decide(&nine, &seen).unwrap();
        let whole = parts(&nine, &whole);
        assert_eq!(parts(&nine, &parted), whole, "{text}");
        assert!(whole.iter().any(|part| part.0 != whole[0].0), "{text}: {whole:?}");
    }
}

#[test]
fn unequal_halves_are_for_two() {
    for row in rows() {
        let pairs = row.name == "bp-bs" || row.name == "bp-sb";
        assert_eq!([1, 2, 3].map(|count| row.serves(count)), [!pairs, true, !pairs]);
    }
}
