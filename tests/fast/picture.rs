//! The contents of an SVG, measured without the code that drew it.

use gpumodel::report::figure::Area;

/// A text and the box it covers, in user units.
#[derive(Clone, Debug)]
pub(crate) struct Text {
    pub(crate) words: String,
    pub(crate) size: f64,
    pub(crate) area: Area,
}

/// Advance widths of the printable ASCII characters in DejaVu Sans, the widest of
/// the usual sans-serif faces, in thousandths of the em size.
#[rustfmt::skip]
const WIDTHS: [u16; 95] = [
    318, 401, 460, 838, 636, 950, 780, 275, 390, 390, 500, 838, 318, 361, 318, 337,
    636, 636, 636, 636, 636, 636, 636, 636, 636, 636, 337, 337, 838, 838, 838, 531,
    1000, 684, 686, 698, 770, 632, 575, 775, 752, 295, 295, 656, 557, 863, 748, 787,
    603, 787, 695, 635, 611, 732, 684, 989, 685, 611, 685, 390, 337, 390, 838, 500,
    500, 613, 635, 550, 635, 615, 352, 635, 634, 278, 278, 579, 278, 974, 634, 612,
    635, 635, 411, 521, 392, 634, 592, 818, 592, 592, 525, 636, 337, 636, 838,
];

/// The same in DejaVu Sans Bold.
#[rustfmt::skip]
const BOLD: [u16; 95] = [
    348, 456, 521, 838, 696, 1002, 872, 306, 457, 457, 523, 838, 380, 415, 380, 365,
    696, 696, 696, 696, 696, 696, 696, 696, 696, 696, 400, 400, 838, 838, 838, 580,
    1000, 774, 762, 734, 830, 683, 683, 821, 837, 372, 372, 775, 637, 995, 837, 850,
    733, 850, 770, 720, 682, 812, 774, 1103, 771, 724, 725, 457, 365, 457, 838, 500,
    500, 675, 716, 593, 716, 678, 435, 716, 712, 343, 343, 665, 343, 1042, 712, 687,
    716, 716, 493, 595, 478, 712, 652, 924, 645, 652, 582, 712, 365, 712, 838,
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
