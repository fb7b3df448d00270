//! The contents of an SVG, measured without the code that drew it.

use gpumodel::report::figure::Area;

/// A text and the box it covers, in user units.
#[derive(Clone, Debug)]
pub(crate) struct Text {
    pub(crate) words: String,
    pub(crate) size: f64,
    pub(crate) area: Area,
}

/// Advance widths of the printable ASCII characters in Liberation Sans, and so in Arial and
/// Helvetica, in thousandths of the em size.
#[rustfmt::skip]
const WIDTHS: [u16; 95] = [
    278, 278, 355, 557, 557, 890, 667, 191, 334, 334, 390, 584, 278, 334, 278, 278,
    557, 557, 557, 557, 557, 557, 557, 557, 557, 557, 278, 278, 584, 584, 584, 557,
    1016, 667, 667, 723, 723, 667, 611, 778, 723, 278, 500, 667, 557, 834, 723, 778,
    667, 778, 723, 667, 611, 723, 667, 944, 667, 667, 611, 278, 278, 278, 470, 557,
    334, 557, 557, 500, 557, 557, 278, 557, 557, 223, 223, 500, 223, 834, 557, 557,
    557, 557, 334, 500, 278, 557, 500, 723, 500, 500, 500, 334, 260, 334, 584,
];

/// The same in Liberation Sans Bold.
#[rustfmt::skip]
const BOLD: [u16; 95] = [
    278, 334, 475, 557, 557, 890, 723, 238, 334, 334, 390, 584, 278, 334, 278, 278,
    557, 557, 557, 557, 557, 557, 557, 557, 557, 557, 334, 334, 584, 584, 584, 611,
    976, 723, 723, 723, 723, 667, 611, 778, 723, 278, 557, 723, 611, 834, 723, 778,
    667, 778, 723, 667, 611, 723, 667, 944, 667, 667, 611, 334, 278, 334, 584, 557,
    334, 557, 611, 557, 611, 557, 334, 611, 611, 278, 278, 557, 278, 890, 611, 611,
    611, 611, 390, 557, 334, 611, 557, 778, 557, 557, 500, 390, 280, 390, 584,
];

/// Width of `words` in user units; characters beyond ASCII are taken as wide.
fn width(words: &str, size: f64, widths: &[u16; 95]) -> f64 {
    let of = |c: char| usize::try_from(u32::from(c)).unwrap().checked_sub(32);
    let em = |c: char| of(c).and_then(|at| widths.get(at)).map_or(0.84, |w| f64::from(*w) / 1000.0);
    words.chars().map(em).sum::<f64>() * size
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
    let width = width(&words, size, if bold { &BOLD } else { &WIDTHS });
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
