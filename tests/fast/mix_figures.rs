//! Do the figures of many mixes that divide SMs and channels follow from the numbers?

use gpumodel::report::figure::{Drawing, Figure, FigureInput};
use gpumodel::report::results::{Analysis, CoRun};

use crate::drawn::{boxes, texts};
use crate::shown::crowded;
use crate::shown_study::{EPOCH, apart, costly, divided, kept, looks, mix, mixes, shared};

const BLUE: &str = "#0072B2";
const VERMILION: &str = "#D55E00";
const YELLOW: &str = "#F0E442";

fn draw(name: &str, records: &[Analysis]) -> Drawing {
    Figure::named(name).unwrap().draw(&FigureInput::new(records)).unwrap()
}

fn refused(name: &str, records: &[Analysis]) -> String {
    Figure::named(name).unwrap().draw(&FigureInput::new(records)).unwrap_err().to_string()
}

/// The cells of a figure's values that begin with `start`, a row after another.
fn rows(drawing: &Drawing, start: &[&str]) -> Vec<Vec<String>> {
    let mut reader = csv::Reader::from_reader(drawing.csv.as_bytes());
    let rows = reader.records().map(|row| row.unwrap().iter().map(str::to_string).collect());
    let own = |row: &Vec<String>| start.iter().zip(row).all(|(a, b)| a == b);
    rows.filter(own).collect()
}

fn row(drawing: &Drawing, start: &[&str]) -> Vec<String> {
    let rows = rows(drawing, start);
    assert_eq!(rows.len(), 1, "{start:?} is not one row of {}", drawing.csv);
    rows[0].clone()
}

fn close(cell: &str, expected: f64) {
    let found: f64 = cell.parse().unwrap_or_else(|_| panic!("{cell:?} is no number"));
    assert!((found - expected).abs() < 1e-9, "{found} is not {expected}");
}

fn says(drawing: &Drawing, words: &str) -> bool {
    texts(&drawing.svg).iter().any(|text| text.words.contains(words))
}

/// Bars of `fill` in plot number `plot`.
fn bars(drawing: &Drawing, fill: &str, plot: usize) -> Vec<gpumodel::report::figure::Area> {
    let plot = drawing.plots[plot];
    let inside = |area: &gpumodel::report::figure::Area| {
        plot.x - 0.2 <= area.x && plot.y - 0.2 <= area.y && area.bottom() <= plot.bottom() + 0.2
    };
    let found = boxes(&drawing.svg).into_iter();
    found.filter(|(area, colour)| colour == fill && inside(area)).map(|(area, _)| area).collect()
}

fn pair(scheme: &str, settings: &[(&str, &str)], progress: [f64; 2]) -> CoRun {
    let [memory, compute] = progress;
    let apps = [kept("suite/PVC", 400.0, memory), kept("suite/DXTC", 4000.0, compute)];
    shared(scheme, settings, apps)
}

#[test]
fn each_scheme_has_its_own_order_of_mixes() {
    let both = |bp, ugpu| mix(vec![pair("bp", &[], bp), pair("ugpu", &[], ugpu)]);
    let mut records = vec![
        both([0.8, 0.7], [0.9, 0.8]),
        both([0.5, 0.5], [0.8, 1.0]),
        both([0.6, 0.6], [0.5, 0.8]),
    ];
    let drawing = draw("sorted", &records);
    let reported = |scheme: &str, metric: &str| -> Vec<(String, String)> {
        let rows = rows(&drawing, &[scheme, metric]);
        rows.into_iter().map(|row| (row[2].clone(), row[3].clone())).collect()
    };
    let order = |places: [&str; 3]| -> Vec<(String, String)> {
        let ranks = ["1", "2", "3", ""].map(String::from);
        let mixes = places.map(|place| format!("PVC+DXTC{place}"));
        ranks.into_iter().zip(mixes.into_iter().chain(["GMEAN".into()])).collect()
    };
    assert_eq!(reported("bp", "STP"), order([" [2]", " [3]", ""]));
    assert_eq!(reported("ugpu", "STP"), order([" [3]", "", " [2]"]));
    // 1/0.8 with 1/1 is less than 1/0.9 with 1/0.8.
    assert_eq!(reported("ugpu", "ANTT"), order([" [2]", "", " [3]"]));
    close(&row(&drawing, &["bp", "STP", "2"])[4], 1.2);
    close(&row(&drawing, &["bp", "STP", ""])[4], (1.5 * 1.0 * 1.2_f64).cbrt());
    assert!(says(&drawing, "bp: 1.22, 1.65"), "means follow the names");
    assert_eq!(drawing.plots.len(), 2);
    // Without progress the slowdown has no bound, and neither has the mean.
    let last = &mut records[2].coruns[1];
    (last.apps[0].slowdown, last.antt) = (f64::INFINITY, f64::INFINITY);
    let drawing = draw("sorted", &records);
    assert_eq!(row(&drawing, &["ugpu", "ANTT", "3"])[4], "inf");
    assert_eq!(row(&drawing, &["ugpu", "ANTT", ""])[4], "");
    assert!(says(&drawing, "1 values have no bound"));
}

#[test]
fn a_single_mix_has_no_order_and_is_not_drawn() {
    let on = |machine: &str, progress| {
        let mut record = mix(vec![pair("bp", &[], progress)]);
        record.machine.name = machine.into();
        record.machine.hash = machine.into();
        record
    };
    let error = refused("sorted", &[on("m", [0.5, 0.7])]);
    assert!(
        error.contains("one mix has no order") && error.contains("--figure schemes"),
        "{error}"
    );
    let records = [on("m", [0.5, 0.7]), on("n", [0.5, 0.7]), on("m", [0.5, 0.9])];
    let drawing = draw("sorted", &records);
    assert_eq!(drawing.plots.len(), 2, "those of the machine with two mixes");
    assert!(says(&drawing, "Not drawn: one mix on n."));
    assert_eq!(rows(&drawing, &["bp", "STP"]).len(), 3, "{}", drawing.csv);
}

#[test]
fn a_line_of_ranks_rises_and_lacks_what_did_not_run() {
    let mut records = mixes(45, false);
    records[7].coruns.truncate(1);
    let drawing = draw("sorted", &records);
    for scheme in ["bp", "qos-mps-share", "qos-bp", "ugpu-soft", "ugpu"] {
        for metric in ["STP", "ANTT"] {
            let rows = rows(&drawing, &[scheme, metric]);
            assert_eq!(rows.len(), if scheme == "bp" { 46 } else { 45 }, "{scheme}");
            let values: Vec<f64> =
                rows[..rows.len() - 1].iter().map(|row| row[4].parse().unwrap()).collect();
            assert!(values.is_sorted(), "{scheme} {metric}: {values:?}");
        }
    }
    assert!(says(&drawing, "Not all of 45 mixes"));
}

#[test]
fn an_epoch_s_share_is_what_it_added() {
    let percent = EPOCH / 100;
    let epochs = [
        [(0, 0), (0, 0)],
        [(6 * percent, 20 * percent), (0, 30 * percent)],
        [(0, 0), (2 * percent, 0)],
        [(0, 4 * percent), (0, 0)],
    ];
    let record = mix(vec![
        pair("bp", &[], [0.5, 0.5]),
        divided(pair("ugpu", &[], [0.6, 0.7]), looks(&epochs)),
    ]);
    let drawing = draw("reallocation", std::slice::from_ref(&record));
    let shares = |app: &str| row(&drawing, &["PVC+DXTC", "ugpu", app]);
    let check = |app: &str, expected: [f64; 4]| {
        let found = shares(app);
        assert_eq!(found[3], "4", "up to the first look is an epoch, too");
        found[4..].iter().zip(expected).for_each(|(cell, expected)| close(cell, expected));
    };
    check("suite/PVC", [0.015, 0.06, 0.06, 0.2]);
    check("suite/DXTC", [0.005, 0.02, 0.075, 0.3]);
    // Of each epoch the application with the largest: 0, 6, 2 and 0; 0, 30, 0 and 4.
    check("most", [0.02, 0.06, 0.085, 0.3]);
    assert!(rows(&drawing, &["PVC+DXTC", "bp"]).is_empty(), "a scheme without looks has no epochs");
    let [vacated, moving] = [0, 1].map(|plot| bars(&drawing, VERMILION, plot));
    assert_eq!((vacated.len(), moving.len()), (1, 1));
    assert!(says(&drawing, "8.5"), "means in percent");
}

#[test]
fn the_mean_over_mixes_keeps_the_worst_epoch() {
    let percent = EPOCH / 100;
    let record = |vacating, moving| {
        let none = [(0, 0); 2];
        let epochs = [none, [(vacating * percent, moving * percent), (0, 0)], none];
        mix(vec![divided(pair("ugpu", &[], [0.6, 0.7]), looks(&epochs))])
    };
    let drawing = draw("reallocation", &[record(2, 10), record(4, 40)]);
    let mean = row(&drawing, &["MEAN", "ugpu"]);
    for (cell, expected) in mean[4..].iter().zip([0.01, 0.04, 0.25 / 3.0, 0.4]) {
        close(cell, expected);
    }
    assert_eq!(bars(&drawing, VERMILION, 1).len(), 3);
}

#[test]
fn unreported_sms_are_not_drawn_as_zero() {
    let quiet = |vacating| {
        let mut run = divided(pair("bp-cd-search", &[], [0.6, 0.7]), looks(&[[(0, 0); 2]; 3]));
        let migration = run.apps[0].migration.as_mut().unwrap();
        migration.vacating_cycles = vacating;
        mix(vec![run])
    };
    let drawing = draw("reallocation", &[quiet(0)]);
    assert_eq!(row(&drawing, &["PVC+DXTC", "bp-cd-search", "most"])[4..], ["0"; 4]);
    let drawing = draw("reallocation", &[quiet(9)]);
    assert_eq!(row(&drawing, &["PVC+DXTC", "bp-cd-search", "most"])[4..], ["", "", "0", "0"]);
}

#[test]
fn schemes_without_drawn_looks_are_named() {
    let epochs = [[(0, 0); 2], [(0, EPOCH / 10), (0, 0)]];
    let mut search = pair("cd-search", &[], [0.6, 0.6]);
    search.decisions = looks(&[[(0, 0); 2]; 2]);
    let mut late = divided(pair("ugpu-soft", &[], [0.5, 0.5]), looks(&[]));
    late.decisions[0].plan = serde_json::json!({ "wake": [{ "at": EPOCH }] });
    let drawn = divided(pair("bp-cd-search", &[], [0.6, 0.7]), looks(&epochs));
    let record = mix(vec![pair("bp", &[], [0.5, 0.5]), search, late, drawn.clone()]);
    let drawing = draw("reallocation", &[record]);
    let lines: Vec<String> = texts(&drawing.svg).into_iter().map(|text| text.words).collect();
    let reported = lines.join(" ");
    assert!(reported.contains("Not drawn: cd-search: no memory channels were owned"), "{reported}");
    assert!(reported.contains("Not drawn: ugpu-soft: no run came to its first look"), "{reported}");
    assert!(rows(&drawing, &["PVC+DXTC", "cd-search"]).is_empty());
    // A scheme without looks is not missed.
    let record = mix(vec![pair("bp", &[], [0.5, 0.5]), drawn]);
    assert!(!says(&draw("reallocation", &[record]), "Not drawn"));
}

#[test]
fn the_promise_is_to_the_high_priority_application() {
    let high = |settings: &[(&str, &str)], plan: serde_json::Value| {
        let mut first = pair("qos-bp", settings, [0.8, 0.7]);
        first.decisions = looks(&[]);
        first.decisions[0].plan = plan;
        let bp = pair("bp", &[("high", "1"), ("sms", "0")], [0.5, 0.6]);
        let drawing = draw("qos", &[mix(vec![bp, first])]);
        row(&drawing, &["PVC+DXTC", "qos-bp"])[2..6].to_vec()
    };
    let none = serde_json::json!({ "order": "in_order" });
    let first = serde_json::json!({ "order": { "priority": [0] } });
    // DXTC is faster alone.
    assert_eq!(high(&[("target", "0.75")], none.clone()), ["suite/DXTC", "0.7", "0.75", "false"]);
    let asked = [("target", "0.8"), ("high", "0")];
    assert_eq!(high(&asked, first.clone()), ["suite/PVC", "0.8", "0.8", "true"]);
    let reported = [("target", "0.6"), ("high", "2")];
    assert_eq!(high(&reported, first), ["suite/DXTC", "0.7", "0.6", "true"]);
}

#[test]
fn broken_promises_are_counted_and_bars_are_drawn_at_the_line() {
    let record = |mps: [f64; 2], ugpu: [f64; 2]| {
        let promise = [("target", "0.75"), ("high", "2")];
        let runs = [("qos-mps-share", mps), ("qos-ugpu", ugpu)];
        mix(runs.map(|(scheme, progress)| pair(scheme, &promise, progress)).into())
    };
    let records = [record([0.5, 0.6], [0.4, 0.75]), record([0.8, 0.9], [0.6, 0.8])];
    let drawing = draw("qos", &records);
    assert!(says(&drawing, "qos-mps-share (1 of 2 below)"));
    assert!(says(&drawing, "qos-ugpu (0 of 2 below)") && says(&drawing, "target 0.75"));
    close(&row(&drawing, &["GMEAN", "qos-ugpu"])[6], (1.15 * 1.4_f64).sqrt());
    let (mps, ugpu) = (bars(&drawing, YELLOW, 0), bars(&drawing, VERMILION, 0));
    assert_eq!((mps.len(), ugpu.len()), (2, 2));
    assert!((mps[0].height / ugpu[0].height - 0.8).abs() < 0.01);
    assert_eq!(bars(&drawing, YELLOW, 1).len(), 3, "with the mean of STP");
    let differ = mix(vec![
        pair("qos-bp", &[("target", "0.75")], [0.5, 0.8]),
        pair("qos-ugpu", &[("target", "0.9")], [0.5, 0.8]),
    ]);
    assert!(says(&draw("qos", &[differ]), "Targets differ (0.75, 0.9)"));
}

#[test]
fn many_mixes_are_lines_by_rank_with_one_dashed_target() {
    let drawing = draw("qos", &mixes(17, false));
    assert!(says(&drawing, "mixes by rank") && says(&drawing, "target 0.75"));
    assert!(bars(&drawing, BLUE, 0).is_empty());
    assert_eq!(drawing.plots.len(), 2);
    let below =
        rows(&drawing, &[]).iter().filter(|row| row[1] == "ugpu-soft" && row[5] == "false").count();
    assert!(below > 0 && says(&drawing, &format!("ugpu-soft ({below} of 17 below)")));
}

#[test]
fn energy_is_that_of_an_instruction_over_the_baseline_s_whole() {
    let run = |scheme: &str, work, spent| costly(pair(scheme, &[], [0.5, 0.6]), work, spent);
    let first = mix(vec![run("bp", 100, [30.0, 10.0]), run("ugpu", 200, [40.0, 32.0])]);
    let second = mix(vec![run("bp", 10, [3.0, 1.0]), run("ugpu", 10, [2.0, 1.0])]);
    let drawing = draw("energy", &[first.clone(), second]);
    let reported = |scheme: &str| -> Vec<Vec<String>> {
        rows(&drawing, &[]).into_iter().filter(|row| row[1] == scheme).collect()
    };
    let check = |row: &[String], expected: [f64; 3]| {
        row[2..].iter().zip(expected).for_each(|(cell, expected)| close(cell, expected));
    };
    check(&reported("bp")[0], [1.0, 0.75, 0.25]);
    check(&reported("ugpu")[0], [0.9, 0.5, 0.4]);
    check(&reported("ugpu")[1], [0.75, 0.5, 0.25]);
    check(&row(&drawing, &["MEAN", "ugpu"]), [0.825, 0.5, 0.325]);
    assert_eq!(drawing.plots.len(), 1);
    // The GPU's part below in the scheme's colour, the memory's above, pale: 75 of 100.
    let (gpu, memory) = (bars(&drawing, BLUE, 0), bars(&drawing, "#AAD0E6", 0));
    assert_eq!((gpu.len(), memory.len()), (3, 3));
    assert!((gpu[0].height / memory[0].height - 3.0).abs() < 0.05, "{gpu:?} {memory:?}");
    assert!((memory[0].bottom() - gpu[0].y).abs() < 0.2);
    let over = FigureInput::new(std::slice::from_ref(&first)).against("ugpu");
    let drawing = Figure::named("energy").unwrap().draw(&over).unwrap();
    close(&row(&drawing, &["PVC+DXTC", "bp"])[2], 0.4 / 0.36);
    // Without a table of energy, or alone, nothing can be compared.
    let free = mix(vec![pair("bp", &[], [0.5, 0.5]), pair("ugpu", &[], [0.5, 0.5])]);
    let once = mix(vec![run("bp", 100, [30.0, 10.0])]);
    for records in [[free], [once]] {
        assert!(refused("energy", &records).contains("energy table"));
    }
}

#[test]
fn what_is_missing_is_named_with_the_command() {
    for name in ["sorted", "reallocation", "qos"] {
        for records in [vec![crowded(2)], apart(1, false)] {
            let error = refused(name, &records);
            assert!(error.contains("analyze A B --scheme"), "{error}");
        }
        let mut unjudged = mix(vec![pair("bp", &[], [0.5, 0.5])]);
        (unjudged.coruns[0].stp, unjudged.coruns[0].antt) = (0.0, 0.0);
        assert!(refused(name, &[unjudged]).contains("no run"), "{name}");
    }
    let never = divided(pair("ugpu", &[], [0.5, 0.5]), looks(&[]));
    assert!(refused("reallocation", &[mix(vec![never])]).contains("ugpu:epoch=N"));
}

#[test]
fn records_written_and_read_again_give_the_same_bytes() {
    let records = mixes(7, true);
    for name in ["sorted", "reallocation", "qos", "energy"] {
        let read: Vec<Analysis> =
            records.iter().map(|record| serde_json::from_str(&record.to_json()).unwrap()).collect();
        assert_eq!(draw(name, &read).svg, draw(name, &records).svg, "{name}");
        assert_eq!(draw(name, &read).csv, draw(name, &records).csv, "{name}");
    }
}

#[test]
fn each_machine_has_its_panel_and_its_mean() {
    let record = |machine: &str, progress| {
        let mut record = mix(vec![pair("bp", &[], [0.5, 0.5]), pair("ugpu", &[], progress)]);
        record.machine.name = machine.into();
        record.machine.hash = machine.into();
        record
    };
    let records = [
        record("m", [0.5, 0.7]),
        record("n", [0.9, 0.9]),
        record("m", [0.5, 0.9]),
        record("n", [0.9, 0.9]),
    ];
    let input = FigureInput::new(&records).against("bp").by("stp");
    let drawing = Figure::named("normalized").unwrap().draw(&input).unwrap();
    assert_eq!(drawing.plots.len(), 2);
    assert!(says(&drawing, "m:") && says(&drawing, "n:"));
    close(&row(&drawing, &["GMEAN on m", "ugpu"])[4], (1.2_f64 * 1.4).sqrt());
    close(&row(&drawing, &["GMEAN on n", "ugpu"])[4], 1.8);
    assert!(rows(&drawing, &["GMEAN"]).iter().all(|row| row[0] != "GMEAN"), "none spans both");
    let drawing = draw("sorted", &records);
    assert_eq!(drawing.plots.len(), 4);
    close(&row(&drawing, &["ugpu", "STP", "", "GMEAN on m"])[4], (1.2_f64 * 1.4).sqrt());
}
