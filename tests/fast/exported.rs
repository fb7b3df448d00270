//! Do `plot`'s options for papers do what they say?

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use assert_cmd::Command;
use gpumodel::report::figure::{
    Drawing, FIGURES, Figure, FigureInput, Format, Sheet, Width, order, rename,
};
use gpumodel::report::results::{Analysis, CoRun};

use crate::drawn::{compared, input, shown, texts};
use crate::shown::{data, small, together};

/// `plot` of the committed record with `options`, written to `to`: what it says on standard
/// error, empty where it ends well.
fn plot(options: &[&str], to: &Path) -> String {
    let mut command = Command::cargo_bin("gpumodel").unwrap();
    command.arg("plot").arg(data("record.json")).args(options).arg("-o").arg(to);
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.success(), said.is_empty(), "{said}");
    said
}

fn words(svg: &str) -> Vec<String> {
    texts(svg).into_iter().map(|text| text.words).collect()
}

#[test]
fn a_pdf_has_the_size_of_print_and_metadata_and_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (folder.path().join("1.pdf"), folder.path().join("2.pdf"));
    for path in [&one, &two] {
        assert_eq!(plot(&["--figure", "stalls", "--width", "one"], path), "");
    }
    let bytes = fs::read(&one).unwrap();
    assert!(bytes.starts_with(b"%PDF-") && bytes == fs::read(&two).unwrap());
    let text = String::from_utf8_lossy(&bytes);
    // 3.33 inches are 239.76 points.
    assert!(text.contains("/MediaBox [0 0 239.76"), "{text}");
    assert!(text.contains("/Title (Where scheduler slots go)"), "{text}");
    assert!(text.contains("GpumodelSans-Regular") && text.contains("/FontFile2"), "{text}");
    assert!(text.contains("/ToUnicode") && !text.contains("Date"), "{text}");
}

#[test]
fn a_picture_has_300_dots_per_inch() {
    let records = [small()];
    let sheet = Sheet { width: Width::One, ..Sheet::default() };
    let drawing =
        Figure::named("stalls").unwrap().draw(&FigureInput::new(&records).on(sheet)).unwrap();
    let bytes = drawing.encode(Format::Png).unwrap();
    assert!(bytes.starts_with(b"\x89PNG") && bytes == drawing.encode(Format::Png).unwrap());
    let wide = u32::from_be_bytes(bytes[16..20].try_into().unwrap());
    assert!((999..=1000).contains(&wide), "3.33 inches of 300 dots: {wide}");
    let at = bytes.windows(4).position(|four| four == b"pHYs").unwrap() + 4;
    assert_eq!(bytes[at..at + 4], 11_811_u32.to_be_bytes(), "300 dpi in dots per metre");
}

#[test]
fn a_caption_file_has_title_and_provenance() {
    let folder = tempfile::tempdir().unwrap();
    let caption = folder.path().join("caption.txt");
    let options = ["--figure", "stalls", "--caption-file", caption.to_str().unwrap()];
    let svg = folder.path().join("a.svg");
    assert_eq!(plot(&options, &svg), "");
    let said = fs::read_to_string(&caption).unwrap();
    assert!(said.starts_with("Where scheduler slots go.\ntiny (01234567)"), "{said}");
    let drawn = words(&fs::read_to_string(&svg).unwrap());
    assert!(drawn.iter().all(|words| !words.contains("Where scheduler")), "{drawn:?}");
}

#[test]
fn a_font_is_named_in_an_svg_and_nowhere_else() {
    let folder = tempfile::tempdir().unwrap();
    let svg = folder.path().join("a.svg");
    assert_eq!(plot(&["--figure", "stalls", "--font", "Source Sans 3"], &svg), "");
    let text = fs::read_to_string(&svg).unwrap();
    assert!(text.contains("font-family=\"'Source Sans 3', Liberation Sans, Arial"), "{text}");
    let said = plot(&["--figure", "stalls", "--font", "Arial"], &folder.path().join("a.pdf"));
    assert!(said.contains("--font is for SVG"), "{said}");
    let said = plot(&["--figure", "stalls", "--font", "a\"b"], &svg);
    assert!(said.contains("no font family"), "{said}");
}

#[test]
fn a_figure_is_as_high_as_asked_or_says_why_not() {
    let mut asked = 0;
    for figure in FIGURES {
        let records = shown(figure.name, &small()).unwrap();
        let comparison = compared(&records);
        let input = input(figure.name, &records).unwrap().with(&comparison);
        for (width, inch) in [(Width::Screen, 96.0), (Width::Two, 102.0)] {
            let sheet = |height| Sheet { width, height, ..Sheet::default() };
            let usual = figure.draw(&input.clone().on(sheet(None))).unwrap().size.1 / inch;
            match figure.draw(&input.clone().on(sheet(Some(usual * 1.3)))) {
                Ok(drawing) => {
                    asked += 1;
                    let found = drawing.size.1 / inch / usual;
                    assert!((found - 1.3).abs() < 0.005, "{}: {found}", figure.name);
                    crate::covering::clear(figure.name, &drawing);
                }
                Err(error) => {
                    assert!(error.to_string().contains("follows from its rows"), "{error}");
                }
            }
        }
    }
    assert!(asked >= 20, "{asked} figures can be higher");
    let records = [small()];
    let low = Sheet { height: Some(0.3), ..Sheet::default() };
    let error = Figure::named("roofline").unwrap().draw(&FigureInput::new(&records).on(low));
    assert!(error.unwrap_err().to_string().contains("inches high"));
}

/// Names of the schemes in the record, by its co-runs.
fn schemes(record: &Analysis) -> Vec<&str> {
    record.coruns.iter().map(|run| run.scheme.as_str()).collect()
}

#[test]
fn an_order_puts_names_first_or_last() {
    let record = together(2, 16, 4);
    let asked = ["spatial".to_string(), "left-over".to_string()];
    let mut first = [record.clone()];
    order(&mut first, &asked, false).unwrap();
    assert_eq!(schemes(&first[0]), ["spatial", "left-over", "left-over", "warped-slicer"]);
    let mut last = [record.clone()];
    order(&mut last, &asked, true).unwrap();
    assert_eq!(schemes(&last[0]), ["warped-slicer", "left-over", "left-over", "spatial"]);
    let error = order(&mut last, &["nothing".into()], false).unwrap_err().to_string();
    assert!(
        error.contains("nothing is no application, kernel, scheme, machine, cause or class"),
        "{error}"
    );
}

#[test]
fn new_names_are_shown_and_the_provenance_keeps_the_old() {
    let mut records = [small()];
    let scheme = records[0].coruns[0].scheme.clone();
    let renames = [("one".into(), "Alpha".into()), (scheme.clone(), "Our scheme".to_string())];
    let before = rename(&mut records, &renames).unwrap();
    assert_eq!(before["Alpha"], "apps/one");
    let input = FigureInput::new(&records).renamed(&before);
    let drawing = Figure::named("slowdown").unwrap().draw(&input).unwrap();
    let drawn = words(&drawing.svg).join(" ");
    assert!(drawn.contains("Alpha") && drawn.contains("Our scheme"), "{drawn}");
    assert!(!drawn.contains(&scheme) && !drawn.contains("apps/one"), "{drawn}");
    assert!(drawing.provenance.contains("apps/one (feedc0de)"), "{}", drawing.provenance);
    let taken = [("one".to_string(), "two".to_string())];
    let error = rename(&mut [small()], &taken).unwrap_err().to_string();
    assert!(error.contains("two is in the records too"), "{error}");
}

#[test]
fn causes_and_classes_have_new_names_and_keep_their_looks() {
    let named = |record: &Analysis, figure: &str, old: &str, new: &str| {
        let mut records = shown(figure, record).unwrap();
        let plain = Figure::named(figure).unwrap().draw(&FigureInput::new(&records)).unwrap();
        let before = rename(&mut records, &[(old.into(), new.into())]).unwrap();
        let input = FigureInput::new(&records).renamed(&before);
        let drawing = Figure::named(figure).unwrap().draw(&input).unwrap();
        let (old_words, all) = (words(&plain.svg), words(&drawing.svg));
        assert!(all.contains(&new.to_string()), "{figure}: {new} is not among {all:?}");
        assert!(!old_words.contains(&new.to_string()), "{figure}");
        let colours = |svg: &str| -> Vec<String> {
            crate::drawn::boxes(svg).into_iter().map(|(_, fill)| fill).collect()
        };
        assert_eq!(colours(&drawing.svg), colours(&plain.svg), "{figure}");
    };
    named(&small(), "stalls", "long_memory", "waits for DRAM");
    named(&small(), "shared-stalls", "no CTA", "empty SM");
    for figure in ["sm-share", "schedule", "interference"] {
        named(&small(), figure, "MC", "memory and cache");
    }
}

#[test]
fn kernels_come_in_the_order_that_was_asked_for() {
    let records = [small()];
    let last = records[0].solo[0].kernels.last().unwrap().name.clone();
    let asked = [last];
    for figure in ["stalls", "traffic", "residence", "issue-slots", "roofline", "activity"] {
        let figure = Figure::named(figure).unwrap();
        let draw = |last| figure.draw(&FigureInput::new(&records).ordered(&asked, last)).unwrap();
        let (first, last) = (draw(false), draw(true));
        assert_ne!(words(&first.svg), words(&last.svg), "{}", figure.name);
        let sorted = |drawing: &Drawing| {
            let mut all = words(&drawing.svg);
            all.sort();
            all
        };
        if figure.name != "roofline" {
            assert_eq!(sorted(&first), sorted(&last), "{}", figure.name);
        }
    }
}

#[test]
fn metrics_are_chosen_in_order() {
    let records = [small()];
    let asked = ["antt".to_string(), "stp".to_string()];
    let figure = Figure::named("schemes").unwrap();
    let drawing = figure.draw(&FigureInput::new(&records).showing(&asked)).unwrap();
    assert_eq!(drawing.plots.len(), 2);
    let all = words(&drawing.svg);
    let place = |name: &str| all.iter().position(|words| words == name).unwrap();
    assert!(place("ANTT") < place("STP") && !all.contains(&"IPC".to_string()), "{all:?}");
}

#[test]
fn options_that_change_nothing_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let svg = folder.path().join("a.svg");
    for (options, why) in [
        (&["--figure", "stalls", "--height", "3"][..], "--height changes nothing"),
        (&["--figure", "stalls", "--rename", "tiny=Tiny"], "--rename changes nothing"),
        (&["--figure", "timeline", "--app", "apps/one", "--order", "two"], "--order changes"),
        (&["--figure", "stalls", "--metrics", "stp"], "takes no --metrics"),
        (&["--figure", "stalls", "--rename", "nope=x"], "nope is no application"),
        (&["--figure", "stalls", "--rename", "nope"], "expected OLD=NEW"),
    ] {
        let said = plot(options, &svg);
        assert!(said.contains(why), "{options:?}: {said}");
        assert!(!svg.exists(), "{options:?}");
    }
}

#[test]
fn a_renamed_baseline_is_the_baseline() {
    for (figure, scheme) in
        [("normalized", "left-over"), ("makespan", "sequential"), ("queues", "even-queue")]
    {
        let mut records = shown(figure, &small()).unwrap();
        let named = Figure::named(figure).unwrap();
        let csv = named.draw(&FigureInput::new(&records)).unwrap().csv;
        let before = rename(&mut records, &[(scheme.into(), "Ours".into())]).unwrap();
        let renamed = named.draw(&FigureInput::new(&records).renamed(&before)).unwrap().csv;
        assert_eq!(renamed, csv.replace(scheme, "Ours"), "{figure}");
    }
}

#[test]
fn schemes_with_many_settings_stay_on_a_page() {
    let mut record = small();
    let run = record.coruns[0].clone();
    record.coruns = (0..90)
        .map(|at| {
            let parameters = [("window".to_string(), at.to_string())].into();
            CoRun { parameters, ..run.clone() }
        })
        .collect();
    let records = [record];
    for width in [Width::One, Width::Two] {
        let sheet = Sheet { width, ..Sheet::default() };
        let drawing =
            Figure::named("schemes").unwrap().draw(&FigureInput::new(&records).on(sheet)).unwrap();
        let inches = drawing.size.1 / drawing.size.0 * if width == Width::One { 3.33 } else { 7.0 };
        assert!((7.0..=9.0).contains(&inches), "{width:?}: {inches}");
        let said = words(&drawing.svg).join(" ");
        assert!(said.contains("more schemes are not drawn; --order"), "{said}");
        assert!(said.contains("No room for") && said.contains("--metrics chooses"), "{said}");
        assert_eq!(drawing.csv.lines().count(), 91, "all are in the table");
    }
}

/// Figures that show neither applications nor schemes one after the other, or one of each.
const UNORDERED: [&str; 3] = ["interference", "correlation", "timeline"];

/// Figures of which the record has one application.
const OF_ONE: [&str; 3] = ["residence", "issue-slots", "activity"];

/// Figures that show applications one after the other.
const OF_APPS: [&str; 15] = [
    "stalls",
    "roofline",
    "traffic",
    "sharing",
    "slowdown",
    "shared-stalls",
    "curves",
    "residency",
    "ownership",
    "occupancy",
    "sm-scaling",
    "ctas",
    "app-time",
    "slice-speed",
    "slice-surface",
];

#[test]
fn every_figure_of_applications_or_schemes_takes_an_order() {
    let left_out = [&UNORDERED[..], &OF_ONE].concat();
    for figure in FIGURES.iter().filter(|figure| !left_out.contains(&figure.name)) {
        let records = shown(figure.name, &small()).unwrap();
        let apps = |record: &Analysis| {
            let together = record.coruns.iter().flat_map(|run| &run.apps).map(|app| &app.app);
            let all = record.solo.iter().map(|app| &app.app).chain(together);
            all.cloned().collect::<BTreeSet<String>>()
        };
        let runs = |record: &Analysis| {
            let alone = record.coruns.iter().map(|run| &run.scheme);
            let all = alone.chain(record.queues.iter().map(|run| &run.scheme));
            all.cloned().collect::<BTreeSet<String>>()
        };
        let changes = |asked: BTreeSet<String>| {
            let asked: Vec<String> = asked.into_iter().rev().collect();
            let draw = |last| {
                let mut arranged = records.clone();
                order(&mut arranged, &asked, last).unwrap();
                figure.draw(&FigureInput::new(&arranged).ordered(&asked, last)).unwrap().svg
            };
            draw(false) != draw(true)
        };
        let by_app = changes(records.iter().flat_map(apps).collect());
        let by_scheme = changes(records.iter().flat_map(runs).collect());
        assert!(by_app || by_scheme, "{} takes no order: see OF_ONE and UNORDERED", figure.name);
        assert!(by_app || !OF_APPS.contains(&figure.name), "{}: by application", figure.name);
    }
}
