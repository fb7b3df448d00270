//! Do the figures of solo runs under schemes, and of pairs, follow from the numbers?

use assert_cmd::Command;
use gpumodel::report::figure::{Area, Drawing, FIGURES, Figure, FigureInput, Sheet, Source, Width};
use gpumodel::report::results::Analysis;
use gpumodel::report::{ReportError, write_all};

use crate::covering::clear;
use crate::drawn::{boxes, texts};
use crate::shown::{crowded, small};
use crate::shown_study::{
    alone, apart, cycles, hosted, mixes, pair, pairs, sliced, studied, surfaces,
};

fn draw(name: &str, records: &[Analysis]) -> Drawing {
    Figure::named(name).unwrap().draw(&FigureInput::new(records)).unwrap()
}

fn refused(name: &str, records: &[Analysis]) -> String {
    Figure::named(name).unwrap().draw(&FigureInput::new(records)).unwrap_err().to_string()
}

fn words(drawing: &Drawing) -> Vec<String> {
    texts(&drawing.svg).into_iter().map(|text| text.words).collect()
}

/// The cells of a figure's values that begin with `start`.
fn row(drawing: &Drawing, start: &[&str]) -> Vec<String> {
    let mut reader = csv::Reader::from_reader(drawing.csv.as_bytes());
    let rows: Vec<Vec<String>> =
        reader.records().map(|row| row.unwrap().iter().map(str::to_string).collect()).collect();
    let own = |row: &&Vec<String>| start.iter().zip(row.iter()).all(|(a, b)| a == b);
    rows.iter().find(own).unwrap_or_else(|| panic!("{start:?} is not in {rows:?}")).clone()
}

fn number(cell: &str) -> f64 {
    cell.parse().unwrap_or_else(|_| panic!("{cell:?} is no number"))
}

fn close(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-9 * expected.abs().max(1.0), "{found} is not {expected}");
}

fn studies() -> impl Iterator<Item = &'static Figure> {
    let solo = |figure: &&Figure| matches!(figure.name, "residence" | "issue-slots");
    FIGURES.iter().filter(move |figure| figure.source == Source::Study || solo(figure))
}

/// Every figure of 1, 7 and 21 applications or mixes, with short names and long ones.
fn gallery() -> Vec<(String, Drawing)> {
    let mut drawings = Vec::new();
    for figure in studies() {
        for (count, long) in
            [(1, false), (2, true), (4, false), (7, false), (7, true), (21, false), (45, true)]
        {
            let records = match figure.name {
                "makespan" => pairs(usize::try_from(count).unwrap(), long),
                "app-time" => hosted(count, long),
                "slice-speed" => sliced(count, long),
                "slice-surface" => surfaces(count, long),
                // One mix has no order.
                "sorted" => mixes(count.max(2), long),
                "reallocation" | "qos" | "energy" => mixes(count, long),
                _ => apart(count, long),
            };
            let name = format!("{} of {count}{}", figure.name, if long { " long" } else { "" });
            let drawing =
                figure.draw(&FigureInput::new(&records)).unwrap_or_else(|e| panic!("{name}: {e}"));
            drawings.push((name, drawing));
        }
    }
    drawings
}

#[test]
fn no_elements_overlap() {
    let gallery = gallery();
    if let Some(folder) = std::env::var_os("GALLERY") {
        for (name, drawing) in &gallery {
            let file = std::path::Path::new(&folder).join(format!("{name}.svg"));
            std::fs::write(file, &drawing.svg).unwrap();
        }
    }
    for (name, drawing) in gallery {
        assert!(!drawing.csv.is_empty(), "{name} has values");
        clear(&name, &drawing);
    }
}

/// Boxes of `fill` within the plots of a drawing.
fn bars(drawing: &Drawing, fill: &str) -> Vec<Area> {
    let inside = |area: &Area| {
        let around = |plot: &Area| {
            plot.x - 0.2 <= area.x && plot.y - 0.2 <= area.y && area.bottom() <= plot.bottom() + 0.2
        };
        drawing.plots.iter().any(around)
    };
    let found = boxes(&drawing.svg).into_iter();
    found.filter(|(area, colour)| colour == fill && inside(area)).map(|(area, _)| area).collect()
}

const BLUE: &str = "#0072B2";
const ORANGE: &str = "#E69F00";
const YELLOW: &str = "#F0E442";

#[test]
fn residence_bars_are_shares_of_an_sm() {
    let drawing = draw("residence", &[small()]);
    // Two launches of Kernel take the same; u_empty does not say.
    let kernel = ["one: Kernel", "2", "0.5", "0.125", "0.5", "0.25"];
    assert_eq!(row(&drawing, &["one: Kernel"]), kernel);
    assert_eq!(drawing.csv.lines().count(), 3);
    let registers = bars(&drawing, BLUE);
    assert_eq!(registers.len(), 2);
    assert!((registers[1].height / registers[0].height - 1.5).abs() < 0.02, "{registers:?}");
    assert!(words(&drawing).contains(&"12".to_string()), "{:?}", words(&drawing));
}

#[test]
fn issue_slots_of_launches_are_weighted_by_their_cycles() {
    let drawing = draw("issue-slots", &[small()]);
    // 1000 cycles beyond launch at 50 % and 500 at 80 %.
    let kernel = row(&drawing, &["one: Kernel", "2", "3500"]);
    close(number(&kernel[3]), 0.6);
    assert_eq!(kernel[4], "high");
    assert_eq!(row(&drawing, &["one: scale"])[3..], ["0.125", "low"]);
    let reported = words(&drawing);
    assert!(reported.contains(&"60".into()) && reported.contains(&"12.5".into()), "{reported:?}");
    let heights: Vec<f64> = bars(&drawing, BLUE).iter().map(|bar| bar.height).collect();
    assert!((heights[0] / heights[1] - 4.8).abs() < 0.1, "{heights:?}");
}

#[test]
fn the_activity_map_has_a_cell_for_every_resource() {
    let drawing = draw("activity", &[small()]);
    let reported = words(&drawing);
    let heads = ["FP32", "INT", "shared", "L1", "DRAM"];
    let places: Vec<Option<usize>> =
        heads.iter().map(|head| reported.iter().position(|word| word == head)).collect();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{reported:?}");
    // Kernel's DRAM: 0.3 in 1000 cycles, nothing in 500; its integer units: 0.25 and 0.7.
    for level in ["2.0", "4.0", "0.5", "1.0"] {
        assert!(reported.iter().any(|word| word == level), "{level}: {reported:?}");
    }
    assert_eq!(reported.iter().filter(|word| *word == "–").count(), 3, "{reported:?}");
    close(number(&row(&drawing, &["one: Kernel", "dram"])[2]), 0.2);
}

#[test]
fn transformed_kernels_are_over_those_as_written() {
    let records = apart(3, false);
    let drawing = draw("transformed", &records);
    // Eight CTAs fit and five are as fast: 102 % of the time, eight fifths of it.
    let first = row(&drawing, &["BO", "163200", "100000"]);
    close(number(&first[3]), 1.632);
    assert_eq!(first[4..], ["30", "25", "1.2"]);
    let product: f64 =
        ["BO", "FD", "LM"].iter().map(|app| number(&row(&drawing, &[*app])[3])).product();
    let mean = row(&drawing, &["GMEAN"]);
    close(number(&mean[3]), product.cbrt());
    close(number(&mean[6]), (1.2_f64 * 1.24 * 1.28).cbrt());
    let times = bars(&drawing, BLUE);
    let registers = bars(&drawing, ORANGE);
    assert_eq!((times.len(), registers.len()), (4, 4));
    assert!((times[0].height / registers[0].height - 1.36).abs() < 0.02);
}

#[test]
fn no_mean_of_transformed_kernels_spans_two_machines() {
    let mut records = apart(3, false);
    records.extend(apart(3, false));
    for record in &mut records[3..] {
        record.machine.name = "other".into();
        record.machine.hash = "fedcba98".into();
        for run in &mut record.coruns {
            run.apps[0].cycles *= 2;
        }
    }
    let drawing = draw("transformed", &records);
    assert_eq!(drawing.plots.len(), 2, "a panel for each machine");
    let machine = &records[0].machine.name;
    let mean = |on: &str| number(&row(&drawing, &[&format!("GMEAN on {on}")])[3]);
    close(mean("other"), 2.0 * mean(machine));
    let alone = row(&draw("transformed", &records[..3]), &["GMEAN"]);
    close(mean(machine), number(&alone[3]));
    assert!(words(&drawing).contains(&"other:".to_string()));
}

#[test]
fn ctas_that_pay_for_nothing_are_rings() {
    let drawing = draw("ctas", &apart(2, false));
    let reported = |app: &str, ctas: &str| row(&drawing, &[app, "pt", ctas]);
    let best = reported("BO", "8");
    assert_eq!(best[3..], ["163200", "1", "false"]);
    assert_eq!(reported("BO", "1")[3..], ["816000", "5", "false"]);
    // Six of BO are as fast as four, eight of FD as six.
    assert_eq!(reported("BO", "6")[3..], ["204000", "1.25", "true"]);
    assert_eq!(reported("FD", "8")[5], "true");
    assert_eq!(drawing.csv.matches(",true").count(), 2);
    assert_eq!(drawing.plots.len(), 2);
    // One in the legend, one in each plot.
    let hollow = |line: &&str| line.starts_with("<circle") && line.contains("fill=\"none\"");
    assert_eq!(drawing.svg.lines().filter(hollow).count(), 3);
}

#[test]
fn speedups_of_a_mix_are_means_over_orders_of_arrival() {
    let (bo, fd) = (studied(0, false), studied(1, false));
    let apps = [bo.solo[0].clone(), fd.solo[0].clone()];
    let turned = [apps[1].clone(), apps[0].clone()];
    let with = |coruns| Analysis { coruns, ..bo.clone() };
    let run = |apps, scheme: &str, span| pair(apps, scheme, 40, span);
    let mut records = vec![
        with(vec![run(&apps, "sequential", 1000), run(&apps, "sim", 800)]),
        with(vec![run(&turned, "sequential", 1100), run(&turned, "sim", 1000)]),
        with(vec![run(&apps, "sim", 900)]),
    ];
    let drawing = draw("makespan", &records);
    let sim = row(&drawing, &["BO+FD", "sim", "3"]);
    close(number(&sim[3]), 900.0);
    close(number(&sim[4]), (1000.0 / 800.0 + 1100.0 / 1000.0 + 1050.0 / 900.0) / 3.0);
    assert_eq!(sim[5..], ["1.1", "1.25"]);
    assert_eq!(row(&drawing, &["BO+FD", "sequential"])[4], "1");
    assert!(words(&drawing).contains(&"speedup".to_string()));
    let (base, own) = (bars(&drawing, YELLOW), bars(&drawing, ORANGE));
    assert_eq!((base.len(), own.len()), (1, 1));
    assert!((own[0].height / base[0].height - number(&sim[4])).abs() < 0.01);
    // An unfinished application has no makespan.
    records[2].coruns[0].apps[1].finished = false;
    assert_eq!(row(&draw("makespan", &records), &["BO+FD", "sim"])[2], "2");
    let figure = Figure::named("makespan").unwrap();
    let error = figure.draw(&FigureInput::new(&records).against("cuda")).unwrap_err().to_string();
    assert!(error.contains("the schemes are sequential, sim"), "{error}");
    let over = figure.draw(&FigureInput::new(&records).against("sim")).unwrap();
    close(number(&row(&over, &["BO+FD", "sequential"])[4]), (0.8 + 1000.0 / 1100.0) / 2.0);
}

#[test]
fn the_mean_of_makespans_is_geometric_over_mixes() {
    let drawing = draw("makespan", &pairs(21, false));
    let mut reader = csv::Reader::from_reader(drawing.csv.as_bytes());
    let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    let sim: Vec<f64> = rows
        .iter()
        .filter(|row| &row[1] == "sim" && &row[0] != "GMEAN")
        .map(|row| number(&row[4]))
        .collect();
    assert_eq!(sim.len(), 21);
    let mean = sim.iter().map(|value| value.ln()).sum::<f64>() / 21.0;
    close(number(&row(&drawing, &["GMEAN", "sim"])[4]), mean.exp());
    assert!(words(&drawing).contains(&"GMEAN".to_string()));
}

#[test]
fn scaling_gives_bandwidth_speed_and_where_it_saturates() {
    let mut records = vec![studied(0, false)];
    let drawing = draw("sm-scaling", &records);
    // Six SMs would be enough, and eight are the fewest of those that ran.
    let enough = row(&drawing, &["BO", "8"]);
    assert_eq!((enough[2].as_str(), enough[6].as_str()), ("266666", "true"));
    close(number(&enough[3]), 32e6 / 266_666.0);
    close(number(&enough[4]), 16e6 / 266_666.0);
    close(number(&row(&drawing, &["BO", "1"])[5]), 266_666.0 / 1_600_000.0);
    assert_eq!(drawing.csv.matches(",true").count(), 1);
    assert!(row(&drawing, &["BO", "16"])[5] == "1", "sms=0 is the whole machine");
    assert!(words(&drawing).contains(&"BO (saturates at 8)".to_string()));
    for app in records[0].coruns.iter_mut().flat_map(|run| &mut run.apps) {
        app.l2 = app.l1;
        app.l2.accesses = 700_000;
        app.l1.accesses = 0;
    }
    close(number(&row(&draw("sm-scaling", &records), &["BO", "8"])[3]), 22.4e6 / 266_666.0);
}

#[test]
fn task_sizes_are_over_the_kernels_as_written() {
    let mut records = apart(2, false);
    let drawing = draw("task-size", &records);
    let size = |drawing: &Drawing, size: &str| number(&row(drawing, &["BO", size])[3]);
    for (task, expected) in [("1", 1.3), ("2", 1.1), ("10", 0.9), ("100", 1.3)] {
        close(size(&drawing, task), expected);
    }
    // A gap between launches is not kernel time.
    let mut gap = records[0].solo[0].kernels[0].clone();
    (gap.start_cycle, gap.end_cycle) = (cycles(0) * 2, cycles(0) * 3);
    records[0].solo[0].kernels.push(gap);
    records[0].solo[0].cycles = cycles(0) * 3;
    close(size(&draw("task-size", &records), "1"), 0.65);
    let figure = Figure::named("task-size").unwrap();
    let input = FigureInput::new(&records).only("suite/FD").unwrap();
    assert!(figure.draw(&input).unwrap().csv.lines().skip(1).all(|line| line.starts_with("FD,")));
}

#[test]
fn the_parts_of_an_application_s_time_are_stacked() {
    let drawing = draw("app-time", &hosted(1, false));
    let slate = row(&drawing, &["BO", "slate"]);
    for (cell, expected) in slate[2..].iter().zip([0.1, 0.004, 0.002, 0.009]) {
        close(number(cell), expected);
    }
    assert_eq!(row(&drawing, &["BO", "cuda"])[3], "0");
    let (kernels, communication) = (bars(&drawing, BLUE), bars(&drawing, ORANGE));
    assert_eq!((kernels.len(), communication.len()), (3, 2));
    let mps = communication[0].width / kernels[1].width;
    assert!((mps - 0.02).abs() < 0.002, "{communication:?} {kernels:?}");
    assert!((communication[1].x - kernels[2].right()).abs() < 0.2, "one behind the other");
    // 0.109, 0.111 and 0.115 ms in all.
    let reported = words(&drawing);
    assert!(["109", "111", "115", "µs"].iter().all(|word| reported.contains(&(*word).to_string())));
}

#[test]
fn what_is_missing_is_named_with_the_command_that_gives_it() {
    let plain = [crowded(2), small()];
    let first = &plain[..1];
    for (name, records, command) in [
        ("residence", first, "analyze APP --json"),
        ("issue-slots", first, "analyze APP --json"),
        ("activity", first, "analyze APP --json"),
        ("sm-scaling", &plain, "--scheme solo:sms=1,solo:sms=2"),
        ("ctas", &plain, "--scheme pt:ctas=1,pt:ctas=2"),
        ("transformed", &plain, "--scheme pt"),
        ("task-size", &plain, "--scheme slate:task=1"),
        ("app-time", &plain, "--scheme cuda,mps-leftover,slate"),
        ("makespan", first, "analyze A B --scheme S"),
    ] {
        let error = refused(name, records);
        assert!(error.contains(command), "{error}");
    }
    // A run at one setting is no curve, and a co-run is no solo run.
    let mut one = studied(0, false);
    one.coruns.retain(|run| run.scheme == "solo");
    one.coruns.truncate(1);
    assert!(refused("sm-scaling", &[one]).contains("several numbers of SMs"));
    assert!(refused("ctas", &pairs(1, false)).contains("several numbers of CTAs"));
    assert!(refused("makespan", &apart(1, false)).contains("no two applications finished"));
}

#[test]
fn names_of_schemes_are_never_cut_in_times() {
    let mut records = hosted(2, false);
    let long = "a-scheme-with-a-name-that-goes-on-and-on:window=500:and=more";
    for run in records.iter_mut().flat_map(|record| &mut record.coruns) {
        run.scheme = format!("{long}:{}", run.scheme);
    }
    for width in [Width::Screen, Width::One, Width::Two] {
        let sheet = Sheet { width, ..Sheet::default() };
        let figure = Figure::named("app-time").unwrap();
        let drawing = figure.draw(&FigureInput::new(&records).on(sheet)).unwrap();
        let all = words(&drawing);
        assert!(all.iter().all(|words| !words.contains('…')), "{width:?}: {all:?}");
        assert!(all.concat().contains(long), "{width:?}: {all:?}");
        crate::covering::clear("app-time", &drawing);
    }
}

#[test]
fn the_report_of_solo_runs_has_the_resources_of_each_kernel() {
    let folder = tempfile::tempdir().unwrap();
    let files = write_all(&small(), folder.path()).unwrap();
    let named = |name: &str| files.iter().any(|file| file.ends_with(name));
    for name in ["residence", "issue-slots"] {
        assert!(named(&format!("one-{name}.svg")) && named(&format!("one-{name}.csv")));
    }
    let text = std::fs::read_to_string(folder.path().join("index.html")).unwrap();
    assert!(text.contains("<figure id=\"one-issue-slots\">"));
    for figure in FIGURES.iter().filter(|figure| figure.source == Source::Study) {
        assert!(!text.contains(&format!("{}.svg", figure.name)), "{} is by `plot`", figure.name);
    }
}

#[test]
fn plot_takes_several_records_and_the_baseline() {
    let folder = tempfile::tempdir().unwrap();
    let (svg, values) = (folder.path().join("m.svg"), folder.path().join("m.csv"));
    let records = pairs(3, false);
    let mut command = Command::cargo_bin("gpumodel").unwrap();
    command.arg("plot");
    for (index, record) in records.iter().enumerate() {
        let path = folder.path().join(format!("{index}.json"));
        std::fs::write(&path, record.to_json()).unwrap();
        command.arg(path);
    }
    command.args(["--figure", "makespan", "--baseline", "pt", "-o"]).arg(&svg);
    command.arg("--csv").arg(&values).assert().success();
    let figure = Figure::named("makespan").unwrap();
    let drawing = figure.draw(&FigureInput::new(&records).against("pt")).unwrap();
    assert_eq!(std::fs::read_to_string(&svg).unwrap(), drawing.svg);
    assert_eq!(std::fs::read_to_string(&values).unwrap(), drawing.csv);
}

#[test]
fn extreme_values_draw_or_refuse_and_end() {
    for (count, value) in [(u64::MAX, f64::MAX), (0, -1e300), (1, 5e-324), (7, f64::NAN)] {
        let mut record = studied(0, false);
        (record.machine.core_mhz, record.machine.sms) = (value, count);
        let solo = &mut record.solo[0];
        solo.cycles = count;
        let kernel = &mut solo.kernels[0];
        (kernel.cycles, kernel.start_cycle) = (count, count);
        kernel.issue_slot_utilization = Some(value);
        for shares in [&mut kernel.residence, &mut kernel.activity] {
            shares.as_mut().unwrap().values_mut().for_each(|share| *share = value);
        }
        let solo = record.solo[0].clone();
        record.coruns.push(alone(&solo, "pt", ("ctas", u32::MAX), count));
        record.coruns.push(alone(&solo, "slate", ("task", u32::MAX), count));
        record.coruns.push(alone(&solo, "solo", ("sms", u32::MAX), count));
        record.coruns.push(pair(&[solo.clone(), solo], "sequential", 0, count.min(1 << 60)));
        for app in record.coruns.iter_mut().flat_map(|run| &mut run.apps) {
            (app.l1.accesses, app.dram.read_sectors, app.ctas_per_sm) = (count, count, count);
            app.workers.iter_mut().for_each(|workers| workers.registers = count);
            app.host.iter_mut().for_each(|host| host.waiting_cycles = count);
            (app.normalized_progress, app.solo_ipc) = (value, value);
        }
        for mut run in mixes(1, false).remove(0).coruns {
            (run.stp, run.antt) = (value, value);
            let moved = run.decisions.iter_mut().flat_map(|decision| &mut decision.moved);
            moved.for_each(|moved| moved.vacating_cycles = count);
            run.apps[0].normalized_progress = value;
            record.coruns.push(run);
        }
        for figure in studies() {
            match figure.draw(&FigureInput::new(std::slice::from_ref(&record))) {
                Ok(drawing) => assert!(drawing.svg.len() < 1 << 20, "{}", figure.name),
                Err(error) => assert!(matches!(error, ReportError::Empty { .. }), "{error}"),
            }
        }
    }
}
