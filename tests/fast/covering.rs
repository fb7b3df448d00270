//! Do elements of a figure overlap? Texts, legends, bars and lines, on a screen and in the
//! columns of a paper.

use gpumodel::report::figure::{Area, Drawing, FIGURES, Figure, FigureInput, Sheet, Source, Width};
use gpumodel::report::results::Analysis;

use crate::drawn::{boxes, compared, draw, input, levels, shown, texts};
use crate::shown::{crowded, small, together};
use crate::shown_study::{apart, hosted, mixes, pairs, sliced, surfaces};

/// Figures whose cells hold their values.
const MAPS: [&str; 3] = ["interference", "activity", "slice-surface"];

/// Fails where a text of `drawing` leaves the sheet, is too small to read, or covers
/// another, a bar or a level line, or where a legend covers a plot.
pub(crate) fn clear(name: &str, drawing: &Drawing) {
    assert!(!drawing.plots.is_empty(), "{name} has a plot");
    let all = texts(&drawing.svg);
    let sheet = Area::new(0.0, 0.0, drawing.size.0, drawing.size.1);
    let data = marks(name, drawing);
    for (i, text) in all.iter().enumerate() {
        assert!(sheet.holds(&text.area), "{name}: {text:?} leaves the sheet");
        assert!(text.size >= 10.0, "{name}: {text:?} is too small to read");
        for other in &all[..i] {
            assert!(!text.area.overlaps(&other.area), "{name}: {text:?} covers {other:?}");
        }
        for mark in &data {
            assert!(!text.area.overlaps(mark), "{name}: {text:?} covers what is at {mark:?}");
        }
    }
    for legend in &drawing.legends {
        for plot in &drawing.plots {
            assert!(!legend.overlaps(plot), "{name}: {legend:?} covers {plot:?}");
        }
    }
}

/// Coloured boxes and dark level lines in the plots, less what rounding may add.
fn marks(name: &str, drawing: &Drawing) -> Vec<Area> {
    if MAPS.iter().any(|map| name.starts_with(map)) {
        return Vec::new();
    }
    let coloured = boxes(&drawing.svg).into_iter().filter(|(_, fill)| fill != "#FFFFFF");
    let lines = levels(&drawing.svg, "#202020");
    let inner = |area: Area| {
        let (width, height) = ((area.width - 0.4).max(0.0), (area.height - 0.4).max(0.0));
        Area::new(area.x + 0.2, area.y + 0.2, width, height)
    };
    let all = coloured.map(|(area, _)| inner(area)).chain(lines);
    all.filter(|area| drawing.plots.iter().any(|plot| plot.overlaps(area))).collect()
}

/// Every figure of the small record, and those of solo runs of crowded ones.
fn gallery() -> Vec<(String, Drawing)> {
    let mut drawings = Vec::new();
    for figure in FIGURES {
        drawings.push((figure.name.to_string(), draw(figure.name, &small()).unwrap()));
    }
    for launches in [1, 16, 118, 600] {
        let record = crowded(launches);
        for name in ["stalls", "roofline", "traffic", "timeline"] {
            drawings.push((format!("{name} of {launches}"), draw(name, &record).unwrap()));
        }
    }
    for (apps, sms, schemes) in [(1, 1, 1), (2, 16, 6), (3, 16, 6), (8, 132, 12)] {
        let records = [together(apps, sms, schemes)];
        for figure in FIGURES.iter().filter(|figure| figure.source == Source::CoRuns) {
            let name = format!("{} of {apps} on {sms} under {schemes}", figure.name);
            let drawing = figure.draw(&FigureInput::new(&records)).unwrap();
            assert!(drawing.svg.len() < 1 << 20, "{name} takes {} bytes", drawing.svg.len());
            drawings.push((name, drawing));
        }
    }
    let mixes: Vec<Analysis> = (2..50).map(|mix| together(2, mix, 4)).collect();
    for name in ["normalized", "slowdown", "schemes"] {
        let drawing = Figure::named(name).unwrap().draw(&FigureInput::new(&mixes)).unwrap();
        drawings.push((format!("{name} of {} mixes", mixes.len()), drawing));
    }
    drawings
}

#[test]
fn no_elements_overlap() {
    for (name, drawing) in gallery() {
        clear(&name, &drawing);
    }
}

/// Figures of several mixes, with what twelve mixes on each of two machines are.
fn many() -> Vec<(&'static str, Vec<Analysis>)> {
    let twice = |mut records: Vec<Analysis>| {
        let mut other = records.clone();
        for record in &mut other {
            (record.machine.name, record.machine.hash) = ("other".into(), "fedcba98".into());
        }
        records.append(&mut other);
        records
    };
    let mixes_of = |schemes| (2..14).map(|mix| together(2, mix, schemes)).collect();
    vec![
        ("normalized", twice(mixes_of(6))),
        ("slowdown", twice(mixes_of(6))),
        ("schemes", twice(mixes_of(6))),
        ("makespan", twice(pairs(12, false))),
        ("sorted", twice(mixes(12, false))),
        ("reallocation", twice(mixes(12, false))),
        ("qos", twice(mixes(12, false))),
        ("energy", twice(mixes(12, false))),
        ("slice-surface", twice(surfaces(12, false))),
        ("slice-speed", twice(sliced(6, false))),
        ("transformed", twice(apart(12, false))),
        ("app-time", twice(hosted(12, false))),
        ("ctas", twice(apart(12, false))),
    ]
}

#[test]
fn a_page_holds_the_figures_of_many_mixes() {
    for (name, records) in many() {
        for width in [Width::One, Width::Two] {
            let sheet = Sheet { width, ..Sheet::default() };
            let input = FigureInput::new(&records).on(sheet);
            let drawing = Figure::named(name).unwrap().draw(&input).unwrap();
            let inch = drawing.size.0 / if width == Width::One { 3.33 } else { 7.0 };
            let inches = drawing.size.1 / inch;
            assert!(inches <= 9.01, "{name} as {width:?} is {inches:.2} in high");
            clear(&format!("{name} of many as {width:?}"), &drawing);
        }
    }
}

#[test]
fn figures_for_print_have_their_size_and_no_overlaps() {
    for figure in FIGURES {
        let records = shown(figure.name, &small()).unwrap();
        let comparison = compared(&records);
        let input = input(figure.name, &records).unwrap().with(&comparison);
        let screen = figure.draw(&input).unwrap();
        for (wide, inches, size, titled) in
            [(Width::One, "3.33in", 3.33, true), (Width::Two, "7in", 7.0, false)]
        {
            let drawing = figure
                .draw(&input.clone().on(Sheet { width: wide, titled, height: None }))
                .unwrap();
            clear(&format!("{} as {wide:?}", figure.name), &drawing);
            assert_eq!(drawing.csv, screen.csv, "{}: the same numbers", figure.name);
            let document = roxmltree::Document::parse(&drawing.svg).unwrap();
            let root = document.root_element();
            assert_eq!(root.attribute("width"), Some(inches));
            let height = root.attribute("height").and_then(|h| h.strip_suffix("in")).unwrap();
            let (across, down) = drawing.size;
            assert!((height.parse::<f64>().unwrap() / size - down / across).abs() < 1e-3);
            // 72 points are an inch.
            let point = size * 72.0 / across;
            assert!(texts(&drawing.svg).iter().all(|text| text.size * point >= 7.0));
        }
    }
}
