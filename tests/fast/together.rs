//! Do the figures of co-runs show the numbers of the record?

use assert_cmd::Command;
use gpumodel::report::figure::{Area, Drawing, FIGURES, Figure, FigureInput, Source};
use gpumodel::report::results::statistics::geometric_mean;
use gpumodel::report::results::{Analysis, CellRecord, CoRun, MigrationRecord, with_short_names};
use gpumodel::report::{table, write_all};

use crate::drawn::{boxes, texts};
use crate::shown::{data, small, together};

fn draw(name: &str, records: &[Analysis]) -> Drawing {
    Figure::named(name).unwrap().draw(&FigureInput::new(records)).unwrap()
}

fn rows(csv: &str) -> Vec<Vec<String>> {
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    reader.records().map(|row| row.unwrap().iter().map(str::to_string).collect()).collect()
}

/// Boxes of `fill` within the plots of a drawing.
fn bars(drawing: &Drawing, fill: &str) -> Vec<Area> {
    let inside = |area: &Area| {
        drawing.plots.iter().any(|plot| {
            plot.x - 0.2 <= area.x && plot.y - 0.2 <= area.y && area.bottom() <= plot.bottom() + 0.2
        })
    };
    let found = boxes(&drawing.svg).into_iter();
    found.filter(|(area, colour)| colour == fill && inside(area)).map(|(area, _)| area).collect()
}

const BLUE: &str = "#0072B2";
const ORANGE: &str = "#E69F00";
const VERMILION: &str = "#D55E00";

#[test]
fn normalized_bars_are_shares_of_the_baseline_s() {
    let mut records = vec![together(2, 4, 3), together(3, 4, 3), together(2, 4, 2)];
    for record in &mut records {
        for (run, value) in record.coruns.iter_mut().zip([200.0, 300.0, 100.0]) {
            run.ipc_throughput = value;
        }
    }
    records[1].coruns[1].ipc_throughput = 800.0;
    let drawing = draw("normalized", &records);
    let share = |mix: &str, scheme: &str| {
        let lines = rows(&drawing.csv);
        let line = lines.iter().find(|l| l[0].starts_with(mix) && l[1].starts_with(scheme));
        line.unwrap()[4].parse::<f64>().ok()
    };
    assert_eq!(share("application-0+application-1+application-2", "warped"), Some(4.0));
    assert_eq!(share("application-0+application-1", "spatial"), Some(0.5));
    assert_eq!(share("GMEAN", "warped"), geometric_mean(&[1.5, 4.0, 1.5]));
    // The third record has no spatial run: the mean is over those that have it.
    assert_eq!(share("GMEAN", "spatial"), Some(0.5));
    let words: Vec<String> = texts(&drawing.svg).into_iter().map(|text| text.words).collect();
    assert!(words.contains(&"2.08".to_string()), "the mean is written: {words:?}");
    assert!(words.iter().any(|text| text.contains("1 of 3 mixes lacks")), "{words:?}");
    // Bars of left-over are as high as each other, those of 4.0 four times as high.
    let (base, other) = (bars(&drawing, BLUE), bars(&drawing, VERMILION));
    assert_eq!((base.len(), other.len()), (4, 4));
    assert!((other[1].height - 4.0 * base[1].height).abs() < 0.5, "{base:?} {other:?}");
}

#[test]
fn another_baseline_and_metric_can_be_chosen() {
    let record = [together(2, 4, 3)];
    let figure = Figure::named("normalized").unwrap();
    let input = FigureInput::new(&record).against("spatial").by("antt");
    let lines = rows(&figure.draw(&input).unwrap().csv);
    let runs = &record[0].coruns;
    assert_eq!(lines[0][4].parse::<f64>().unwrap(), runs[0].antt / runs[2].antt);
    assert_eq!((&lines[2][2][..], &lines[2][4][..]), ("antt", "1"));
    let wrong = figure.draw(&FigureInput::new(&record).against("nobody")).unwrap_err().to_string();
    assert!(wrong.contains("nobody") && wrong.contains("warped-slicer"), "{wrong}");
    let wrong = figure.draw(&FigureInput::new(&record).by("beauty")).unwrap_err().to_string();
    assert!(wrong.contains("beauty") && wrong.contains("fairness"), "{wrong}");
}

#[test]
fn slowdowns_are_written_above_their_bars() {
    let mut record = small();
    record.coruns[0].apps[1].slowdown = f64::INFINITY;
    let drawing = draw("slowdown", &[record]);
    let words: Vec<String> = texts(&drawing.svg).into_iter().map(|text| text.words).collect();
    for expected in ["1.20", "∞", "1.30", "1.10"] {
        assert!(words.contains(&expected.to_string()), "{expected} is not among {words:?}");
    }
    assert_eq!(bars(&drawing, ORANGE).len(), 1, "no bar without bound");
    assert_eq!(rows(&drawing.csv)[1][3], "inf");
}

#[test]
fn stacks_alone_and_together_are_adjacent() {
    let drawing = draw("shared-stalls", &[small()]);
    let words: Vec<String> = texts(&drawing.svg).into_iter().map(|text| text.words).collect();
    let runs = ["alone", "left-over", "even"];
    assert!(runs.iter().all(|run| words.iter().filter(|w| w == run).count() == 2), "{words:?}");
    // The black part of each bar of the first plot is what it issued.
    let plot = drawing.plots[0];
    let issued: Vec<f64> = bars(&drawing, "#2B2B2B").iter().map(|area| area.width).collect();
    let shares: Vec<f64> = issued.iter().map(|width| width / plot.width).collect();
    // Alone: (0.5 x 2000 + 0.125 x 3000 + 0.5 x 1500) / 6500.
    for (share, expected) in shares.iter().zip([0.326_923, 0.4, 0.45, 0.1, 0.2]) {
        assert!((share - expected).abs() < 0.002, "{shares:?}");
    }
    assert!(
        rows(&drawing.csv)
            .contains(&["apps/two", "even", "long_memory", "0.5"].map(String::from).to_vec())
    );
}

#[test]
fn curves_hold_the_sampled_points_and_the_choice() {
    let drawing = draw("curves", &[small()]);
    let lines = rows(&drawing.csv);
    assert_eq!(lines.len(), 6, "the count that was not sampled has no point");
    assert_eq!(lines[2], ["even", "apps/one", "3", "24", "0.96", "true"]);
    assert_eq!(lines[5], ["even", "apps/two", "3", "4", "0.5", "false"]);
    let document = roxmltree::Document::parse(&drawing.svg).unwrap();
    for (shape, fill) in [("circle", BLUE), ("polygon", ORANGE)] {
        let full = document
            .descendants()
            .filter(|node| node.has_tag_name(shape) && node.attribute("fill") == Some(fill));
        assert_eq!(full.count(), 2, "one mark per application, and one in the legend");
    }
    // Both have one axis.
    let texts = texts(&drawing.svg);
    let plot = drawing.plots[0];
    let below = |y: f64| y > plot.bottom() && y < plot.bottom() + 8.0;
    let mut ticks: Vec<_> = texts.iter().filter(|text| below(text.area.y)).collect();
    ticks.sort_by(|a, b| a.area.x.total_cmp(&b.area.x));
    let ticks: Vec<&str> = ticks.iter().map(|text| text.words.as_str()).collect();
    assert_eq!(ticks, ["1", "2", "3", "4"]);
}

#[test]
fn hostile_numbers_end() {
    let mut record = small();
    let curves = &mut record.coruns[1].decisions[1].curves;
    curves[0].chosen = u32::MAX;
    curves[1].ipc = vec![Some(-1e300), Some(1e300)];
    curves[1].normalized = vec![Some(f64::MAX), None];
    record.machine.sms = u64::MAX;
    for run in &mut record.coruns {
        run.cycles = u64::MAX;
        let grid = run.residency.as_mut().unwrap();
        grid.interval_cycles = u64::MAX;
        grid.rows[0].sm = u32::MAX;
        grid.rows[1].ctas = vec![-1.0, 1e300, 5e-324];
        run.apps[0].slowdown = -3.0;
        run.ipc_throughput = 1e300;
    }
    for figure in FIGURES.iter().filter(|figure| figure.source == Source::CoRuns) {
        let drawing = figure.draw(&FigureInput::new(&[record.clone()])).unwrap();
        assert!(drawing.svg.len() < 1 << 20, "{}", figure.name);
    }
}

#[test]
fn cells_of_the_residency_figure_are_as_long_as_the_residence() {
    let drawing = draw("residency", &[small()]);
    let plot = drawing.plots[1];
    let per_cycle = plot.width / 8450.0;
    let orange = bars(&drawing, ORANGE);
    let even: Vec<_> = orange.iter().filter(|area| area.y >= plot.y - 0.2).collect();
    // Four SMs with two intervals of 1000 cycles each: half of the SM, then a fifth.
    assert_eq!(even.len(), 8, "{even:?}");
    for area in &even {
        // A box runs a little into the next.
        assert!((area.width - 1000.0 * per_cycle).abs() < 0.5, "{area:?}");
    }
    assert!((even[0].height / even[1].height - 2.0).abs() < 0.1, "4 and 2 of 8 steps: {even:?}");
    let lines = rows(&drawing.csv);
    assert!(
        lines.contains(&["even", "3", "apps/one", "2000", "8450", "4"].map(String::from).to_vec())
    );
}

#[test]
fn owned_sms_and_channels_are_areas() {
    let mut record = small();
    record.coruns[1].apps.iter_mut().for_each(|app| app.end_cycle = 8450);
    let drawing = draw("ownership", &[record]);
    // Two schemes, each with its SMs and its channels; of the last the channels are owned.
    let [.., sms, channels] = &drawing.plots[..] else { panic!("{:?}", drawing.plots) };
    let within = |plot: &Area, fill: &str| -> Vec<Area> {
        let inside = |area: &Area| area.y > plot.y - 0.2 && area.bottom() < plot.bottom() + 0.2;
        bars(&drawing, fill).into_iter().filter(inside).collect()
    };
    let (blue, orange) = (within(sms, BLUE), within(sms, ORANGE));
    // Three SMs and one, from cycle 3000 of 8450 on.
    assert_eq!((blue.len(), orange.len()), (1, 1), "{blue:?} {orange:?}");
    assert!((blue[0].height / orange[0].height - 3.0).abs() < 0.05, "{blue:?} {orange:?}");
    assert!((blue[0].x - sms.x - sms.width * 3000.0 / 8450.0).abs() < 0.2, "{blue:?} in {sms:?}");
    let own = within(channels, BLUE);
    assert!((own[0].height / channels.height - 0.75).abs() < 0.01, "{own:?}");
    let lines = rows(&drawing.csv);
    let line = |words: [&str; 6]| words.map(String::from).to_vec();
    assert!(lines.contains(&line(["even", "0", "3000", "shared", "4", "4"])), "{lines:?}");
    assert!(lines.contains(&line(["even", "3000", "8450", "apps/one", "3", "3"])), "{lines:?}");
    let mut silent = small();
    silent.coruns.iter_mut().for_each(|run| run.decisions.clear());
    let error = Figure::named("ownership").unwrap().draw(&FigureInput::new(&[silent])).unwrap_err();
    assert!(error.to_string().contains("how SMs are divided"), "{error}");
}

#[test]
fn figures_of_co_runs_refuse_a_record_without_any() {
    let mut record = small();
    record.coruns.clear();
    for figure in FIGURES.iter().filter(|figure| figure.source == Source::CoRuns) {
        let error = figure.draw(&FigureInput::new(&[record.clone()])).unwrap_err().to_string();
        assert!(error.contains("hold no co-runs; run `gpumodel analyze A B"), "{error}");
    }
    let older = Analysis { coruns: vec![CoRun { cycles: 5, ..CoRun::default() }], ..record };
    for name in ["shared-stalls", "curves", "residency"] {
        let input = [older.clone()];
        let error = Figure::named(name).unwrap().draw(&FigureInput::new(&input)).unwrap_err();
        assert!(!error.to_string().contains("hold no co-runs"), "{error}");
        let two = [small(), small()];
        let error =
            Figure::named(name).unwrap().draw(&FigureInput::new(&two)).unwrap_err().to_string();
        assert!(error.contains("shows one mix, the records hold 2: one+two (under "), "{error}");
        assert!(error.contains("; give one of them: its file"), "{error}");
        // Cells of a sweep are named by their files, and not all of very many.
        let cell = |key: usize| {
            let cell = CellRecord { key: format!("k{key}"), ..CellRecord::default() };
            Analysis { cell: Some(cell), ..small() }
        };
        let cells: Vec<Analysis> = (0..20).map(cell).collect();
        let error =
            Figure::named(name).unwrap().draw(&FigureInput::new(&cells)).unwrap_err().to_string();
        assert!(error.contains("one+two [3] (cells/k2.json); "), "{error}");
        assert!(error.contains("; 4 more; give one of them"), "{error}");
    }
}

#[test]
fn the_terminal_shows_the_decisions_of_schemes() {
    let mut record = together(8, 4, 6);
    record.coruns[0].notes.push("who: what".into());
    (record.coruns[0].makespan_cycles, record.coruns[0].antt) = (0, f64::INFINITY);
    (record.coruns[1].energy_joules, record.coruns[1].harmonic_speedup) = (0.0125, 0.456);
    let text = table::corun(&record, None);
    let lines: Vec<&str> = text.lines().collect();
    let cells = |line: &str| line.split_whitespace().map(str::to_string).collect::<Vec<_>>();
    let first = cells(lines[1]);
    assert_eq!((&first[2][..], &first[6][..], &first[7][..]), ("inf", "–", "–"), "{first:?}");
    let second = cells(lines[2]);
    assert_eq!((&second[3][..], &second[8][..]), ("0.456", "12.5"), "{second:?}");
    assert_eq!(lines.last().unwrap(), &"note: left-over:variant=0: who: what");
    assert!(lines.iter().all(|line| line.chars().count() <= 124), "{text}");
}

#[test]
fn no_two_rows_of_the_terminal_have_the_same_name() {
    let mut record = together(2, 4, 4);
    let settings: [&[(&str, &str)]; 4] = [
        &[("scaling", "off"), ("window", "500"), ("k", "2")],
        &[("scaling", "instructions"), ("window", "500"), ("k", "2")],
        &[("scaling", "instructions"), ("window", "50000"), ("k", "2")],
        &[("sms", "80"), ("channels", "32")],
    ];
    for (run, settings) in record.coruns.iter_mut().zip(settings) {
        run.scheme = if settings.len() == 3 { "warped-slicer".into() } else { "bp".into() };
        run.parameters =
            settings.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
    }
    record.coruns.push(record.coruns[3].clone());
    record.coruns[4].parameters.insert("channels".into(), "16".into());
    let text = table::corun(&record, None);
    let lines: Vec<&str> = text.lines().collect();
    // A name that is too long for a line continues in the next one; common parts are
    // omitted.
    let begins = |place: usize, name: &str| {
        assert!(lines[place].trim_start().starts_with(name), "{name}: {text}");
    };
    begins(1, "warped-slicer:scaling=off ");
    begins(2, ":window=500");
    begins(3, "warped-slicer:scaling=instructions ");
    begins(5, "warped-slicer:scaling=instructions ");
    begins(6, ":window=50000");
    begins(7, "bp:channels=32 ");
    begins(8, "bp:channels=16 ");
    assert!(!text.contains('…') && !text.contains("k=2"), "{text}");
}

#[test]
fn channels_are_reported_where_they_are_divided() {
    let mut record = together(2, 4, 2);
    for app in record.coruns.iter_mut().flat_map(|run| &mut run.apps) {
        (app.channels, app.mean_sms, app.mean_channels) = (32, Some(4.0), Some(32.0));
    }
    assert!(!table::corun(&record, None).contains("channels"));
    let owner = &mut record.coruns[1].apps[1];
    (owner.channels, owner.mean_channels) = (24, Some(23.5));
    owner.migration = Some(MigrationRecord { pages: 70, pages_moved: 11, ..Default::default() });
    let text = table::corun(&record, None);
    let cells = |line: &str| line.split_whitespace().map(str::to_string).collect::<Vec<_>>();
    let lines: Vec<Vec<String>> = text.lines().map(cells).collect();
    let head = lines.iter().position(|line| line.contains(&"channels".to_string())).unwrap();
    let reported: Vec<&[String]> =
        lines[head + 1..head + 5].iter().map(|line| &line[6..8]).collect();
    assert_eq!(reported, [["4.0", "32.0"], ["4.0", "32.0"], ["4.0", "32.0"], ["4.0", "23.5"]]);
    let moved = lines.iter().position(|line| line.contains(&"vacating".to_string())).unwrap();
    assert_eq!(lines[moved + 1][2..], ["70", "11", "0", "0", "0"], "{text}");
}

#[test]
fn names_of_swept_mixes_omit_common_parts() {
    let mut records = vec![together(2, 4, 3), together(2, 4, 3)];
    for (record, cycles) in records.iter_mut().zip(["20", "30"]) {
        record.overrides.insert("l1.latency_cycles".into(), cycles.into());
    }
    for name in ["normalized", "slowdown"] {
        let drawing = draw(name, &records);
        let reported: Vec<String> =
            texts(&drawing.svg).into_iter().map(|text| text.words).collect();
        let all = reported.join(" ").replace("- ", "-");
        let labels = ["20", "30"].map(|cycles| format!("L1 latency {cycles} cycles"));
        assert!(labels.iter().all(|label| all.contains(label)), "{reported:?}");
        let shared = "All: application-0+application-1 on tiny.";
        assert!(reported.iter().any(|words| words == shared), "{reported:?}");
        assert!(drawing.csv.contains("application-0+application-1 l1.latency_cycles=20,"));
    }
}

#[test]
fn more_than_four_mixes_form_two_columns() {
    let mixes: Vec<Analysis> = (2..14).map(|sms| together(2, sms, 3)).collect();
    let four = draw("slowdown", &mixes[..4]);
    assert!(four.plots.iter().all(|plot| plot.x < 240.0));
    let twelve = draw("slowdown", &mixes);
    assert_eq!(twelve.plots.len(), 12);
    assert_eq!(twelve.plots.iter().filter(|plot| plot.x > 240.0).count(), 6);
    assert!(twelve.size.1 < 1.5 * four.size.1, "{:?} for twelve", twelve.size);
    // One legend for all, and the schemes' names below the last of each column.
    assert_eq!(twelve.legends.len(), 1);
    let named = texts(&twelve.svg).into_iter().filter(|text| text.words == "left-over").count();
    assert_eq!(named, 2);
}

#[test]
fn many_mixes_of_the_scheme_figure_are_means() {
    let mixes: Vec<Analysis> = (2..42).map(|sms| together(2, sms, 3)).collect();
    let drawing = draw("schemes", &mixes);
    let words: Vec<String> = texts(&drawing.svg).into_iter().map(|text| text.words).collect();
    assert!(words.contains(&"Geometric means over 40 mixes.".to_string()), "{words:?}");
    let stp: Vec<f64> = mixes.iter().map(|mix| mix.coruns[1].stp).collect();
    let mean = format!("{:.3}", geometric_mean(&stp).unwrap());
    assert!(words.contains(&mean), "{mean} is not among {words:?}");
    // Two mixes have room, each below its name.
    let two = draw("schemes", &mixes[..2]);
    let words: Vec<String> = texts(&two.svg).into_iter().map(|text| text.words).collect();
    let named = words.iter().filter(|words| words.starts_with("application-0+application-1"));
    assert_eq!(named.count(), two.plots.len().div_ceil(4) * 2, "{words:?}");
}

#[test]
fn values_within_noise_of_the_best_are_bold() {
    let mut record = together(2, 4, 3);
    for (run, stp) in record.coruns.iter_mut().zip([1.0, 1.5, 1.48]) {
        run.stp = stp;
    }
    let heavy = |record: &Analysis| -> Vec<String> {
        let svg = draw("schemes", std::slice::from_ref(record)).svg;
        let document = roxmltree::Document::parse(&svg).unwrap();
        let bold = document.descendants().filter(|node| {
            node.has_tag_name("text") && node.attribute("font-weight") == Some("bold")
        });
        bold.filter_map(|node| node.text()).map(|text| text.trim().to_string()).collect()
    };
    let found = heavy(&record);
    assert!(["1.50", "1.48"].iter().all(|one| found.contains(&(*one).to_string())), "{found:?}");
    assert!(!found.contains(&"1.00".to_string()), "{found:?}");
    record.coruns[0].stp = 1.49;
    assert!(!heavy(&record).contains(&"1.50".to_string()), "all are as good");
}

#[test]
fn the_figure_of_schemes_omits_values_that_no_run_has() {
    let words = |record: Analysis| -> Vec<String> {
        texts(&draw("schemes", &[record]).svg).into_iter().map(|text| text.words).collect()
    };
    let mut record = small();
    assert!(!words(record.clone()).contains(&"nJ/instr".to_string()));
    (record.coruns[0].energy_joules, record.coruns[1].energy_joules) = (0.25, 0.125);
    record.coruns[1].antt = f64::INFINITY;
    let shown = words(record);
    for expected in ["nJ/instr", "1157", "579", "∞"] {
        assert!(shown.contains(&expected.to_string()), "{expected} is not among {shown:?}");
    }
}

#[test]
fn two_metrics_of_schemes_fill_the_width_of_four() {
    let records = [together(2, 4, 3)];
    let place = |metrics: &[&str]| {
        let metrics: Vec<String> = metrics.iter().map(ToString::to_string).collect();
        let chosen = FigureInput::new(&records).showing(&metrics);
        let svg = Figure::named("schemes").unwrap().draw(&chosen).unwrap().svg;
        texts(&svg).into_iter().find(|text| text.words == "ANTT").unwrap().area.x
    };
    let (two, four) = (place(&["stp", "antt"]), place(&["stp", "antt", "fairness", "ipc"]));
    assert!(two > 1.3 * four, "{two} of two, {four} of four");
}

#[test]
fn the_report_of_a_co_run_holds_its_figures_and_their_values() {
    let folder = tempfile::tempdir().unwrap();
    let paths = write_all(&small(), folder.path()).unwrap();
    let page = std::fs::read_to_string(folder.path().join("index.html")).unwrap();
    for figure in FIGURES.iter().filter(|figure| figure.source == Source::CoRuns) {
        let file = format!("{}.svg", figure.name);
        assert!(page.contains(&file), "{file} is not on the page");
        assert!(paths.iter().any(|path| path.ends_with(&file)), "{file} is not written");
    }
    let kept = std::fs::read_to_string(folder.path().join("slowdown.csv")).unwrap();
    assert_eq!(kept, draw("slowdown", &[with_short_names(&small())]).csv);
}

#[test]
fn plot_writes_the_values_next_to_the_figure() {
    let folder = tempfile::tempdir().unwrap();
    let (svg, csv) = (folder.path().join("a.svg"), folder.path().join("a.csv"));
    let plot = |figure: &str, more: &[&str]| {
        let mut command = Command::cargo_bin("gpumodel").unwrap();
        command.arg("plot").arg(data("record.json")).args(["--figure", figure, "-o"]).arg(&svg);
        command.arg("--csv").arg(&csv).args(more).assert()
    };
    plot("normalized", &["--baseline", "even", "--metric", "stp"]).success();
    let lines = rows(&std::fs::read_to_string(&csv).unwrap());
    assert_eq!(lines[1], ["one+two", "even", "stp", "1.678322", "1"]);
    std::fs::remove_file(&svg).unwrap();
    plot("stalls", &[]).code(2);
    assert!(!svg.exists(), "nothing is written where something is wrong");
}
