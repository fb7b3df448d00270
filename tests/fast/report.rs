//! Do the pictures follow from the numbers?

use std::fs;

use assert_cmd::Command;
use gpumodel::report::figure::{Choice, Drawing, FIGURES, Figure, FigureInput, Sheet};
use gpumodel::report::results::{Analysis, CellRecord, with_short_names};
use gpumodel::report::{ReportError, page, table, write_all};

use crate::drawn::{boxes, compared, draw, input, shown, texts};
use crate::shown::{crowded, data, small};

#[test]
fn a_line_of_the_occupancy_figure_is_the_share_of_its_own_best() {
    let drawing = draw("occupancy", &small()).unwrap();
    let words: Vec<String> = texts(&drawing.svg).into_iter().map(|text| text.words).collect();
    // Two launches of Kernel: 184000 instructions in 1000 + 500 cycles, times 4.
    assert!(words.contains(&"one: Kernel (491 at 3)".to_string()), "{words:?}");
    // One run alone has one point per kernel.
    let alone = Figure::named("occupancy").unwrap().draw(&FigureInput::new(&[small()]));
    assert!(alone.unwrap_err().to_string().contains("sm.max_ctas"));
}

/// Figures that are kept whole, one per kind of drawing: bars, groups of bars, lines, time.
/// Other tests check the rest by numbers and geometry.
const KEPT: [&str; 4] = ["stalls", "normalized", "curves", "timeline"];

#[test]
fn figures_of_the_committed_record_are_the_committed_figures() {
    for name in KEPT {
        let drawn = draw(name, &small()).unwrap().svg;
        let path = data("figures").join(format!("{name}.svg"));
        if std::env::var_os("BLESS").is_some() {
            fs::write(&path, &drawn).unwrap();
        }
        let kept = fs::read_to_string(&path).unwrap();
        assert!(drawn == kept, "{name} changed: BLESS=1 rewrites it, then read the diff");
    }
}

#[test]
fn stall_bars_are_full() {
    let mut gap = small();
    gap.solo[0].kernels[1].stall_fractions.insert("barrier".into(), 0.05);
    for record in [small(), gap, crowded(118)] {
        let drawing = draw("stalls", &record).unwrap();
        let plot = drawing.plots[0];
        let bars = boxes(&drawing.svg);
        let parts: Vec<_> =
            bars.iter().filter(|(area, _)| (area.height - 15.0).abs() < 0.01).collect();
        let mut rows: Vec<f64> = parts.iter().map(|(area, _)| area.y).collect();
        rows.dedup();
        assert!(rows.len() > 2, "several kernels");
        for row in rows {
            let widths =
                parts.iter().filter(|(a, _)| (a.y - row).abs() < 0.01).map(|(a, _)| a.width);
            let whole: f64 = widths.sum();
            assert!((whole - plot.width).abs() < 1.5, "row at {row}: {whole} of {}", plot.width);
        }
    }
}

#[test]
fn launches_of_one_kernel_are_weighted_by_cycles() {
    // Kernel: 2000 cycles at 25 % and 1500 at 10 % long memory: 18.57 %, next to 50 % issued.
    let words: Vec<String> =
        texts(&draw("stalls", &small()).unwrap().svg).into_iter().map(|t| t.words).collect();
    assert!(words.contains(&"one: Kernel ×2".to_string()), "{words:?}");
    assert!(words.contains(&"19 %".to_string()), "{words:?}");
    assert!(words.contains(&"62 %".to_string()), "the other kernel: {words:?}");
}

#[test]
fn hit_rates_and_bytes_in_the_figure_are_those_of_the_counters() {
    let svg = draw("traffic", &small()).unwrap().svg;
    let words: Vec<String> = texts(&svg).into_iter().map(|text| text.words).collect();
    // Kernel, two launches: L1 1500 sectors, 1050 hits; L2 450, 350; DRAM 1200.
    for expected in ["48.0", "70 %", "14.4", "78 %", "38.4", "0.0"] {
        assert!(words.contains(&expected.to_string()), "{expected} is not among {words:?}");
    }
}

#[test]
fn a_figure_without_data_is_an_error_that_says_what_is_missing() {
    let nothing =
        Analysis { schema: gpumodel::report::results::SCHEMA.into(), ..Analysis::default() };
    for figure in FIGURES {
        let input = FigureInput::new(std::slice::from_ref(&nothing));
        let message = figure.draw(&input).unwrap_err().to_string();
        assert!(message.starts_with(&format!("figure `{}`: ", figure.name)), "{message}");
    }
    let mut old = small();
    old.machine.peak_dram_gb_per_s = 0.0;
    assert!(draw("roofline", &old).unwrap_err().to_string().contains("peaks"));
}

/// The figure `name` of `record` with its title.
fn titled(name: &str, record: &Analysis) -> Drawing {
    let records = std::slice::from_ref(record);
    let input = input(name, records).unwrap().on(Sheet { titled: true, ..Sheet::default() });
    Figure::named(name).unwrap().draw(&input).unwrap()
}

#[test]
fn title_and_provenance_are_metadata_and_drawn_on_request() {
    let record = small();
    for name in ["stalls", "normalized", "timeline"] {
        let (plain, titled) = (draw(name, &record).unwrap(), titled(name, &record));
        let words = |drawing: &Drawing| {
            texts(&drawing.svg).into_iter().map(|text| text.words).collect::<Vec<_>>().join(" ")
        };
        for said in [&plain.title, &plain.provenance] {
            assert!(!said.is_empty() && plain.svg.contains(said.as_str()), "{name}: {said}");
            assert!(!words(&plain).contains(said.as_str()), "{name} draws {said}");
            assert!(words(&titled).contains(said.as_str()), "{name} lacks {said}");
        }
        assert!(plain.size.1 < titled.size.1, "{name}");
        assert_eq!((plain.title, plain.csv), (titled.title, titled.csv));
    }
}

#[test]
fn names_with_markup_stay_text() {
    let mut record = small();
    record.solo[0].app = "a<b>&\"c\"'d\u{7}".into();
    record.solo[0].kernels[0].name = "<&>".into();
    for name in ["stalls", "roofline", "traffic", "timeline"] {
        let words: Vec<String> =
            texts(&titled(name, &record).svg).into_iter().map(|t| t.words).collect();
        assert!(words.iter().any(|text| text.contains("<&>")), "{name}: {words:?}");
        assert!(
            words.iter().any(|text| text.contains("a<b>&\"c\"'d\u{fffd}")),
            "{name}: {words:?}"
        );
    }
}

#[test]
fn a_long_title_wraps_to_a_second_line() {
    let mut record = small();
    record.solo[0].app = "applications/a_hundred_thousand_hydrodynamics_nodes_bound".into();
    let drawing = titled("timeline", &record);
    let reported = texts(&drawing.svg);
    assert!(reported.iter().all(|text| text.area.right() <= drawing.size.0), "{reported:?}");
    assert!(reported.iter().any(|text| text.words == "over time"), "{reported:?}");
}

#[test]
fn axes_of_sms_say_what_they_count() {
    for (name, title) in [("residency", "SM"), ("sm-share", "SMs")] {
        let drawing = draw(name, &small()).unwrap();
        let reported = texts(&drawing.svg);
        let titles = reported.iter().filter(|text| text.words == title).count();
        assert_eq!(titles, drawing.plots.len(), "{name}: {reported:?}");
    }
}

#[test]
fn both_roofs_have_labels_when_the_axis_begins_at_one() {
    let mut record = small();
    let machine = &mut record.machine;
    (machine.core_mhz, machine.peak_warp_instructions_per_cycle) = (1530.0, 320.0);
    (machine.peak_dram_gb_per_s, machine.peak_l2_gb_per_s) = (898.048, 3133.44);
    record.solo.truncate(1);
    record.solo[0].kernels.truncate(1);
    let kernel = &mut record.solo[0].kernels[0];
    (kernel.cycles, kernel.launch_cycles, kernel.warp_instructions) = (4695, 2000, 34_752);
    (kernel.l2.accesses, kernel.dram.read_sectors, kernel.dram.write_sectors) = (0, 12, 0);
    let drawing = draw("roofline", &record).unwrap();
    let reported = texts(&drawing.svg);
    let find = |words: &str| reported.iter().find(|text| text.words == words);
    assert!(find("0.1").is_none() && find("1").is_some(), "{reported:?}");
    for name in ["DRAM 898 GB/s", "L2 3.13 TB/s"] {
        let inside = find(name).is_some_and(|text| drawing.plots[0].holds(&text.area));
        assert!(inside, "{name}: {reported:?}");
    }
}

#[test]
fn extreme_values_draw_or_refuse_and_end() {
    for (count, value) in [(u64::MAX, f64::MAX), (0, -1e300), (1, 5e-324), (u64::MAX / 2, 1e30)] {
        let mut record = small();
        let machine = &mut record.machine;
        (machine.core_mhz, machine.peak_dram_gb_per_s) = (value, value);
        (machine.peak_l2_gb_per_s, machine.peak_warp_instructions_per_cycle) = (value, value);
        for kernel in &mut record.solo[0].kernels {
            (kernel.cycles, kernel.end_cycle) = (count, u64::MAX);
            (kernel.warp_instructions, kernel.thread_instructions) = (count, count);
            (kernel.l1.accesses, kernel.l1.hits) = (count, count);
            (kernel.dram.read_sectors, kernel.dram.write_sectors) = (count, count);
            kernel.occupancy = value;
        }
        for interval in &mut record.solo[0].timeline {
            (interval.warp_instructions, interval.dram_sectors) = (count, count);
            interval.end_cycle = u64::MAX;
        }
        for run in &mut record.coruns {
            (run.stp, run.antt, run.cycles) = (value, value, count);
            run.apps[0].kernels[0].end_cycle = u64::MAX;
        }
        for figure in FIGURES {
            match draw(figure.name, &record) {
                Ok(drawing) => assert!(drawing.svg.len() < 1 << 20, "{}", figure.name),
                Err(error) => assert!(matches!(error, ReportError::Empty { .. }), "{error}"),
            }
        }
        assert!(!table::solo(&record, None).is_empty() && !table::corun(&record, None).is_empty());
    }
}

#[test]
fn long_programs_have_small_figures() {
    let record = crowded(100_000);
    for name in ["stalls", "roofline", "traffic", "timeline"] {
        let size = draw(name, &record).unwrap().svg.len();
        assert!(size < 1 << 20, "{name} of 100 000 launches takes {size} bytes");
    }
}

#[test]
fn the_report_folder_is_whole_and_the_same_twice() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let names: Vec<Vec<String>> = folders
        .iter()
        .map(|folder| {
            let paths = write_all(&small(), &folder.path().join("new/report")).unwrap();
            let name =
                |p: &std::path::PathBuf| p.file_name().unwrap().to_string_lossy().into_owned();
            paths.iter().map(name).collect()
        })
        .collect();
    assert_eq!(names[0], names[1]);
    for expected in [
        "record.json",
        "kernels.csv",
        "one-stalls.svg",
        "two-timeline.svg",
        "schemes.svg",
        "index.html",
    ] {
        assert!(
            names[0].iter().any(|name| name == expected),
            "{expected} is not among {:?}",
            names[0]
        );
    }
    for name in &names[0] {
        let read = |at: usize| fs::read(folders[at].path().join("new/report").join(name)).unwrap();
        assert!(read(0) == read(1), "{name} differs");
    }
    let record = folders[0].path().join("new/report/record.json");
    assert_eq!(Analysis::read(&record).unwrap(), small());
}

#[test]
fn the_page_escapes_text_of_the_record() {
    let mut record = small();
    record.notes.push("<script>alert(1)</script>".into());
    let page = page(&record, &[]);
    assert!(!page.contains("<script>"));
    assert!(page.contains("scale&lt;float, 4&gt; &amp; &quot;co&quot;"));
    assert!(page.contains("0123456789abcdef") && page.contains("feedc0de00112233"));
}

#[test]
fn the_terminal_tables_show_the_record() {
    let solo = table::solo(&small(), None);
    let line = solo.lines().find(|line| line.trim_start().starts_with("Kernel ")).unwrap();
    let cells: Vec<&str> = line.split_whitespace().collect();
    // 184 000 thread instructions in 3500 cycles; 38 400 B in 1500 cycles beyond launch at 1 GHz.
    let expected = ["Kernel", "2", "3500", "52.57", "50", "%", "70", "%", "78", "%", "25.6"];
    assert_eq!(cells[..expected.len()], expected, "{line}");
    let corun = table::corun(&small(), None);
    assert!(corun.lines().any(|l| l.contains("even") && l.contains("1.678") && l.contains("8450")));
    assert!(solo.lines().chain(corun.lines()).all(|line| line.chars().count() <= 120));
}

#[test]
fn a_timeline_of_several_runs_lists_them_and_how_to_choose() {
    let timeline = |records: &[Analysis], app: Option<&str>| {
        let input = FigureInput::new(records);
        let input = app.map_or_else(|| Ok(input.clone()), |app| input.clone().only(app)).unwrap();
        Figure::named("timeline").unwrap().draw(&input).unwrap_err().to_string()
    };
    let mut records = [small(), small(), small()];
    for (record, name) in records.iter_mut().zip(["v100", "a100", "v100"]) {
        record.machine.name = name.to_owned();
        record.coruns.clear();
    }
    records[2].overrides.insert("l1.banks".into(), "8".into());
    records[2].cell = Some(CellRecord { key: "k7".into(), ..CellRecord::default() });
    let said = timeline(&records, None);
    assert!(said.contains("hold 2; choose with --app NAME: apps/one, apps/two"), "{said}");
    let said = timeline(&records, Some("apps/one"));
    let runs = "apps/one on v100; apps/one on a100; apps/one on v100 l1.banks=8 (cells/k7.json)";
    assert!(said.contains(&format!("the records hold 3 of apps/one: {runs}; give")), "{said}");
    let none = Analysis { solo: Vec::new(), ..small() };
    let said = timeline(&[none], None);
    assert!(said.contains("no application alone; run `gpumodel analyze APP"), "{said}");
}

#[test]
fn plot_draws_from_the_command_line() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("stalls.svg");
    let gpumodel = || Command::cargo_bin("gpumodel").unwrap();
    let listed = gpumodel().args(["plot", "--list"]).assert().success();
    let list = String::from_utf8(listed.get_output().stdout.clone()).unwrap();
    assert_eq!(list.lines().count(), FIGURES.len() + 1, "a header");
    let place = |(line, figure): (&str, &Figure)| line.find(figure.about).unwrap();
    let places: Vec<usize> = list.lines().skip(1).zip(FIGURES).map(place).collect();
    assert!(places.iter().all(|place| *place == places[0]), "{list}");
    let record = data("record.json");
    gpumodel()
        .arg("plot")
        .arg(&record)
        .args(["--figure", "stalls", "-o"])
        .arg(&target)
        .assert()
        .success();
    assert_eq!(
        fs::read_to_string(&target).unwrap(),
        draw("stalls", &with_short_names(&small())).unwrap().svg
    );
    let narrow = ["--figure", "stalls", "--width", "one", "-o", "-"];
    let drawn = gpumodel().arg("plot").arg(&record).args(narrow).assert().success();
    let svg = String::from_utf8(drawn.get_output().stdout.clone()).unwrap();
    assert!(svg.contains("width=\"3.33in\""), "{svg}");
    gpumodel().arg("plot").arg(&record).args(["--figure", "nonsense", "-o", "-"]).assert().code(2);
    gpumodel().arg("plot").arg(&record).args(["--figure", "timeline", "-o", "-"]).assert().code(2);
}

#[test]
fn figures_show_the_choices_that_they_take_and_no_others() {
    for figure in FIGURES {
        let records = shown(figure.name, &small()).unwrap();
        let comparison = compared(&records);
        let alone = input(figure.name, &records).unwrap();
        let whole = alone.clone().with(&comparison);
        for (choice, input) in [
            (Choice::Reference, alone),
            (Choice::Baseline, whole.clone().against("nobody")),
            (Choice::Metric, whole.clone().by("beauty")),
            (Choice::Metrics, whole.clone().showing(&["beauty".to_string()])),
            (Choice::Queue, whole.of("nowhere")),
        ] {
            let (drawn, taken) = (figure.draw(&input), figure.check(choice));
            assert_eq!(drawn.is_err(), taken.is_ok(), "{}: {choice:?}", figure.name);
        }
    }
}

#[test]
fn plot_takes_the_folder_of_a_report_of_several_machines() {
    let folder = tempfile::tempdir().unwrap();
    let parts = ["b", "a"].map(|machine| folder.path().join(machine));
    for part in &parts {
        fs::create_dir(part).unwrap();
        fs::copy(data("record.json"), part.join("record.json")).unwrap();
    }
    let drawn = |paths: &[&std::path::Path]| {
        let mut command = Command::cargo_bin("gpumodel").unwrap();
        command.arg("plot").args(paths).args(["--figure", "stalls", "-o", "-"]);
        command.assert().success().get_output().stdout.clone()
    };
    assert_eq!(drawn(&[folder.path()]), drawn(&[&parts[1], &parts[0]]));
}

#[test]
fn plot_refuses_options_that_its_figure_does_not_use() {
    for (figure, option, word, known) in [
        ("stalls", "--metric", "stp", "normalized, queues"),
        ("slowdown", "--baseline", "nope", "normalized, queues, makespan, energy"),
        ("traffic", "--queue", "foo", "schedule, sm-share"),
        ("schemes", "--app", "apps/one", "stalls, roofline, traffic"),
        ("stalls", "--reference", "none.csv", "correlation"),
    ] {
        let mut command = Command::cargo_bin("gpumodel").unwrap();
        command.arg("plot").arg(data("record.json")).args(["--figure", figure, "-o", "-"]);
        let output = command.args([option, word]).assert().code(2).get_output().clone();
        let said = String::from_utf8(output.stderr).unwrap();
        let words = format!("figure `{figure}` takes no {option}: leave it out, or draw one of");
        assert!(said.contains(&words) && said.contains(known), "{said}");
        assert!(output.stdout.is_empty(), "{figure}");
    }
}
