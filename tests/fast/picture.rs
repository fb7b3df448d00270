//! The contents of an SVG, measured without the code that drew it.

use gpumodel::report::figure::Area;
use ttf_parser::Face;

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
