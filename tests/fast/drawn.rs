//! What every figure of one record is drawn from, and the contents of its SVG, measured without
//! the code that drew it.

use gpumodel::report::ReportError;
use gpumodel::report::figure::{Area, Drawing, Figure, FigureInput, Source};
use gpumodel::report::results::{Analysis, Comparison, ReferenceTable};
use ttf_parser::Face;

use crate::shown::data;
use crate::shown_queue::{TWENTY, queued};
use crate::shown_study::{apart, hosted, mixes, pairs, sliced, surfaces};

/// What the figure `name` of `record` is drawn from: other records where it holds nothing
/// that the figure shows.
pub(crate) fn shown(name: &str, record: &Analysis) -> Result<Vec<Analysis>, ReportError> {
    let queues = Figure::named(name)?.source == Source::Queues && record.queues.is_empty();
    Ok(match name {
        "occupancy" => swept(record),
        _ if queues => vec![queued(TWENTY)],
        "makespan" => pairs(3, false),
        "app-time" => hosted(3, false),
        "sorted" | "reallocation" | "qos" | "energy" => mixes(3, false),
        "slice-speed" => sliced(3, false),
        "slice-surface" => surfaces(3, false),
        "sm-scaling" | "ctas" | "transformed" | "task-size" => apart(3, false),
        _ => vec![record.clone()],
    })
}

/// Those of `records` of which the figure `name` shows one.
pub(crate) fn input<'a>(
    name: &str,
    records: &'a [Analysis],
) -> Result<FigureInput<'a>, ReportError> {
    let input = FigureInput::new(records);
    if name == "timeline" { input.only(&records[0].solo[0].app) } else { Ok(input) }
}

/// `records` against the committed reference table.
pub(crate) fn compared(records: &[Analysis]) -> Comparison {
    Comparison::new(records, &ReferenceTable::read(&data("runs.csv")).unwrap(), None)
}

/// The figure `name` of `record`.
pub(crate) fn draw(name: &str, record: &Analysis) -> Result<Drawing, ReportError> {
    let records = shown(name, record)?;
    let comparison = compared(&records);
    Figure::named(name)?.draw(&input(name, &records)?.with(&comparison))
}

/// `record` again on a machine that takes one to four CTAs per SM. Speed grows with
/// the first three and falls with the fourth.
fn swept(record: &Analysis) -> Vec<Analysis> {
    let run = |ctas: u32| {
        let mut run = record.clone();
        run.overrides.insert("sm.max_ctas".into(), ctas.to_string());
        for kernel in run.solo.iter_mut().flat_map(|app| &mut app.kernels) {
            kernel.ctas_per_sm = ctas;
            let speed = [1, 2, 4, 3][usize::try_from(ctas - 1).unwrap()];
            kernel.thread_instructions = kernel.thread_instructions.saturating_mul(speed);
        }
        run
    };
    (1..=4).map(run).collect()
}

/// A text and the box it covers, in user units.
#[derive(Clone, Debug)]
pub(crate) struct Text {
    pub(crate) words: String,
    pub(crate) size: f64,
    pub(crate) area: Area,
}

/// The embedded faces, regular and bold: metrics of Liberation Sans, Arial and Helvetica.
const FACES: [&[u8]; 2] = [
    include_bytes!("../../src/report/chart/fonts/GpumodelSans-Regular.ttf"),
    include_bytes!("../../src/report/chart/fonts/GpumodelSans-Bold.ttf"),
];

/// Width of `words` in user units; characters that the face has not are taken as wide.
fn width(words: &str, size: f64, bold: bool) -> f64 {
    let face = Face::parse(FACES[usize::from(bold)], 0).unwrap();
    let unit = f64::from(face.units_per_em());
    let advance = |c| face.glyph_hor_advance(face.glyph_index(c)?);
    words.chars().map(|c| advance(c).map_or(0.84, |width| f64::from(width) / unit)).sum::<f64>()
        * size
}

/// Every text of `svg`, whose unit is a tenth of a user unit.
pub(crate) fn texts(svg: &str) -> Vec<Text> {
    let document = roxmltree::Document::parse(svg).expect("well-formed XML");
    document
        .descendants()
        .filter(|node| node.has_tag_name("text"))
        .map(|node| text(&node))
        .collect()
}

fn text(node: &roxmltree::Node<'_, '_>) -> Text {
    let number = |name: &str| node.attribute(name).unwrap().parse::<f64>().unwrap() / 10.0;
    let words = node.text().unwrap_or("").trim().to_string();
    let (x, y, size) = (number("x"), number("y"), number("font-size"));
    let bold = node.attribute("font-weight") == Some("bold");
    let width = width(&words, size, bold);
    let start = match node.attribute("text-anchor") {
        Some("end") => -width,
        Some("middle") => -width / 2.0,
        _ => 0.0,
    };
    let area = if node.attribute("transform").is_some() {
        Area::new(x - size / 2.0, y - start - width, size, width)
    } else {
        Area::new(x + start, y - size / 2.0, width, size)
    };
    Text { words, size, area }
}

/// Every rectangle of `svg` with its fill, in user units.
pub(crate) fn boxes(svg: &str) -> Vec<(Area, String)> {
    let document = roxmltree::Document::parse(svg).expect("well-formed XML");
    let rects = document.descendants().filter(|node| node.has_tag_name("rect"));
    rects
        .map(|node| {
            let number = |name: &str| node.attribute(name).unwrap().parse::<f64>().unwrap() / 10.0;
            let area = Area::new(number("x"), number("y"), number("width"), number("height"));
            (area, node.attribute("fill").unwrap().to_string())
        })
        .collect()
}

/// Every level straight line of that colour in `svg`, as thick as can be seen, in user
/// units.
pub(crate) fn levels(svg: &str, colour: &str) -> Vec<Area> {
    let document = roxmltree::Document::parse(svg).expect("well-formed XML");
    let lines = document
        .descendants()
        .filter(|node| node.has_tag_name("polyline") && node.attribute("stroke") == Some(colour));
    let level = |node: roxmltree::Node<'_, '_>| {
        let number = |text: &str| text.parse::<f64>().unwrap() / 10.0;
        let point = |text: &str| text.split_once(',').map(|(x, y)| (number(x), number(y)));
        let points: Vec<(f64, f64)> =
            node.attribute("points").unwrap().split_whitespace().filter_map(point).collect();
        let [from, to] = points[..] else { return None };
        let flat = (from.1 - to.1).abs() < 0.05;
        flat.then(|| Area::new(from.0.min(to.0), from.1 - 0.2, (from.0 - to.0).abs(), 0.4))
    };
    lines.filter_map(level).collect()
}
