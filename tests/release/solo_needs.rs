//! Do the launches of the papers' kernels need what the papers print, and does
//! `models/workloads/CALIBRATION.md` agree? Nothing runs here.

use std::fs;

use gpumodel::core::isa::Launch;
use gpumodel::sim::Need;
use gpumodel::sim::config::Machine;
use gpumodel::trace::workload::Workload;
use toml::Value;

use crate::common::workloads;

fn paper(name: &str) -> Value {
    toml::from_str(&gpumodel::models().text("papers", name).unwrap().text).unwrap()
}

fn warped_slicer() -> Machine {
    gpumodel::models().machine("warped-slicer", &[]).unwrap().machine
}

/// The first launch of a workload.
fn launch(name: &str) -> Launch {
    let workload = Workload::load(name, &gpumodel::models()).unwrap();
    workload.kernel(0).launch().clone()
}

/// The cells of the calibration's table under the header that begins with `header`.
fn table(header: &str) -> Vec<Vec<String>> {
    let text = fs::read_to_string(workloads().join("CALIBRATION.md")).unwrap();
    let lines = text.lines().skip_while(|line| !line.starts_with(header)).skip(2);
    let cells = |line: &str| -> Vec<String> {
        line.trim_matches('|').split('|').map(|cell| cell.trim().replace('`', "")).collect()
    };
    lines.take_while(|line| line.starts_with('|')).map(cells).collect()
}

/// The paper's values of an application.
fn printed<'a>(paper: &'a Value, app: &str) -> &'a Value {
    &paper["solo"]["app"][app]
}

fn number(value: &Value) -> f64 {
    let whole = value.as_integer().and_then(|whole| i32::try_from(whole).ok()).map(f64::from);
    whole.or(value.as_float()).unwrap()
}

#[test]
fn warped_slicer_s_launches_are_those_of_table_2_and_cuts_are_listed() {
    let (paper, machine) = (paper("warped-slicer"), warped_slicer());
    let rows = table("| model | grid printed | modelled | block printed |");
    assert_eq!(rows.len(), paper["solo"]["app"].as_table().unwrap().len());
    for row in rows {
        let (app, launch) = (printed(&paper, &row[0]), launch(&row[0]));
        let printed = |key: &str| u64::try_from(app[key].as_integer().unwrap()).unwrap();
        let reported: Vec<u64> = row[1..].iter().map(|cell| cell.parse().unwrap()).collect();
        let found = [
            printed("grid"),
            launch.grid.count(),
            printed("block"),
            launch.block.count(),
            u64::from(launch.registers),
            u64::from(launch.shared_bytes),
            u64::from(Need::of(&launch, &machine).fits(&machine).0),
        ];
        assert_eq!(reported, found, "{}", row[0]);
        assert_eq!(reported[2], reported[3], "block of {}", row[0]);
        assert!(
            reported[1] == reported[0] || ["ws-dxt", "ws-nn"].contains(&row[0].as_str()),
            "{row:?}"
        );
        assert!(reported[1] <= reported[0], "{row:?}");
    }
}

#[test]
fn a_full_sm_holds_the_registers_and_shared_memory_of_table_2() {
    let (paper, machine) = (paper("warped-slicer"), warped_slicer());
    for (name, app) in paper["solo"]["app"].as_table().unwrap() {
        let need = Need::of(&launch(name), &machine);
        let ctas = need.fits(&machine).0;
        let percent = |each: u32, all: u32| 100.0 * f64::from(ctas * each) / f64::from(all);
        // Printed is the mean over a run, in which an SM is not always full.
        let held = percent(need.registers, machine.sm.registers);
        let most = number(&app["registers_percent"]);
        assert!((-1.0..=5.0).contains(&(held - most)), "{name}: {held} %, printed {most}");
        let held = percent(need.shared_bytes, machine.shared.bytes);
        let most = number(&app["shared_percent"]);
        assert!((held - most).abs() < 1.0, "{name}: {held} % of shared memory, printed {most}");
    }
}

#[test]
fn half_an_sm_holds_the_ctas_of_table_3_s_even_halves() {
    let (paper, mut half) = (paper("warped-slicer"), warped_slicer());
    half.sm.max_ctas /= 2;
    half.sm.max_warps /= 2;
    half.sm.registers /= 2;
    half.shared.bytes /= 2;
    for pair in paper["partitions"]["pair"].as_array().unwrap() {
        let [apps, even] = ["apps", "even"].map(|key| pair[key].as_array().unwrap());
        for (app, ctas) in apps.iter().zip(even) {
            let name = app.as_str().unwrap();
            let found = Need::of(&launch(name), &half).fits(&half).0;
            assert_eq!(Some(i64::from(found)), ctas.as_integer(), "{name}");
        }
    }
}

#[test]
fn ugpu_s_memory_is_the_printed_one_of_table_2() {
    let paper = paper("ugpu");
    let rows = table("| model | MB printed | touched | error |");
    assert_eq!(rows.len(), paper["solo"]["app"].as_table().unwrap().len());
    for row in rows {
        let shown = |place: usize| row[place].trim_end_matches(" %").parse::<f64>().unwrap();
        let (reported, ours, error) = (shown(1), shown(2), shown(3));
        assert_eq!(reported, number(&printed(&paper, &row[0])["footprint_mb"]), "{row:?}");
        // From the numbers before rounding.
        assert!((100.0 * (ours / reported - 1.0) - error).abs() < 1.0, "{row:?}");
    }
}
