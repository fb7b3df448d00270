//! Marks and their rendering as SVG through plotters.
//!
//! Positions are user units; the SVG's view box counts tenths of them, since plotters draws on
//! whole numbers.

use plotters::backend::{DrawingBackend, SVGBackend};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, FontTransform, IntoFont, RGBAColor, RGBColor, ShapeStyle, TextStyle};

use super::style::{Colour, Fill, GRID, INK, Marker, PAPER, SOFT_INK, dashes};
use super::text::{Anchor, fit, heavy_width, line_area, printable, text_width};
use super::{Area, Width};

/// Tenths of a user unit are the SVG's own unit.
const STEPS: f64 = 10.0;

/// plotters divides font sizes by this to get the em size.
const FONT_RATIO: f64 = 1.24;

/// The family that plotters writes at each text; the document says it once.
const ANY: &str = "sans-serif";

/// Families of the same widths.
pub(super) const FAMILIES: &str = "Liberation Sans, Arial, Helvetica, sans-serif";

/// One thing to draw.
#[derive(Clone, Debug)]
enum Mark {
    Box(Area, Colour),
    Line(Vec<(f64, f64)>, Colour, f64),
    Polygon(Vec<(f64, f64)>, Colour, f64),
    Circle((f64, f64), f64, Colour, bool),
    Text(Label),
}

/// Text with its place.
#[derive(Clone, Debug)]
pub(crate) struct Label {
    /// What it says.
    pub(crate) text: String,
    /// Position of `anchor`; the middle of the line vertically.
    pub(crate) at: (f64, f64),
    /// Em size in user units.
    pub(crate) size: f64,
    /// Which point of it `at` names.
    pub(crate) anchor: Anchor,
    /// Colour.
    pub(crate) colour: Colour,
    /// Heavy.
    pub(crate) bold: bool,
    /// Read from below to above.
    pub(crate) upwards: bool,
}

impl Label {
    /// Dark upright text.
    pub(crate) fn new(text: impl Into<String>, at: (f64, f64), size: f64, anchor: Anchor) -> Self {
        let text = printable(&text.into());
        Self { text, at, size, anchor, colour: INK, bold: false, upwards: false }
    }

    /// The same in `colour`.
    pub(crate) fn coloured(mut self, colour: Colour) -> Self {
        self.colour = colour;
        self
    }

    /// The same, heavy.
    pub(crate) fn bold(mut self) -> Self {
        self.bold = true;
        self
    }

    /// The same, read from below to above.
    pub(crate) fn upwards(mut self) -> Self {
        self.upwards = true;
        self
    }

    /// The box it covers.
    pub(crate) fn area(&self) -> Area {
        let (x, y) = self.at;
        let width = match self.bold {
            true => heavy_width(&self.text, self.size),
            false => text_width(&self.text, self.size),
        };
        if !self.upwards {
            return line_area(width, self.size, self.anchor, (x, y));
        }
        let along = line_area(width, self.size, self.anchor, (0.0, 0.0));
        Area::new(x + along.y, y - along.right(), along.height, along.width)
    }
}

/// Marks in drawing order.
#[derive(Debug)]
pub(crate) struct Canvas {
    width: Width,
    marks: Vec<Mark>,
}

impl Canvas {
    /// Nothing, so wide.
    pub(crate) fn new(width: Width) -> Self {
        Self { width, marks: Vec::new() }
    }

    /// How wide it is.
    pub(crate) fn width(&self) -> f64 {
        self.width.units()
    }

    /// A filled rectangle, with the lines of its hatch.
    pub(crate) fn fill(&mut self, area: Area, fill: Fill) {
        self.marks.push(Mark::Box(area, fill.colour));
        for line in fill.hatch.lines(&area) {
            self.line(line, INK, fill.hatch.stroke());
        }
    }

    /// Filled rectangles that are one shape: the lines of its hatch run from one into the next.
    pub(crate) fn shape(&mut self, parts: &[Area], fill: Fill) {
        let Some(whole) = Area::around(parts) else { return };
        parts.iter().for_each(|part| self.marks.push(Mark::Box(*part, fill.colour)));
        for line in fill.hatch.lines(&whole) {
            for ends in line.windows(2) {
                for part in parts {
                    if let Some(line) = part.clipped([ends[0], ends[1]]) {
                        self.line(line.to_vec(), INK, fill.hatch.stroke());
                    }
                }
            }
        }
    }

    /// The frame of a rectangle.
    pub(crate) fn frame(&mut self, area: &Area, colour: Colour, width: f64) {
        let (left, top, right, bottom) = (area.x, area.y, area.right(), area.bottom());
        let corners = [(left, top), (right, top), (right, bottom), (left, bottom), (left, top)];
        self.line(corners.to_vec(), colour, width);
    }

    /// A filled bar with a thin frame, where it is wide enough to show one.
    pub(crate) fn bar(&mut self, area: Area, fill: Fill) {
        self.fill(area, fill);
        if area.width > 2.0 {
            self.frame(&area, INK, 0.4);
        }
    }

    /// Connected lines through `points`.
    pub(crate) fn line(&mut self, points: Vec<(f64, f64)>, colour: Colour, width: f64) {
        self.marks.push(Mark::Line(points, colour, width));
    }

    /// A dashed straight line.
    pub(crate) fn dashes(&mut self, from: (f64, f64), to: (f64, f64), colour: Colour, width: f64) {
        let (dash, gap) = (4.0, 3.0);
        let (dx, dy) = (to.0 - from.0, to.1 - from.1);
        let length = dx.hypot(dy);
        let mut at = 0.0;
        while at < length {
            let end = (at + dash).min(length);
            let point = |t: f64| (from.0 + dx * t / length, from.1 + dy * t / length);
            self.line(vec![point(at), point(end)], colour, width);
            at = end + gap;
        }
    }

    /// A thin line from the nearest edge of a text's area to the distant point it names.
    pub(crate) fn leader(&mut self, text: &Area, to: (f64, f64)) {
        let from = (
            to.0.clamp(text.x - 1.0, text.right() + 1.0),
            to.1.clamp(text.y + 1.0, text.bottom() - 1.0),
        );
        if (from.0 - to.0).hypot(from.1 - to.1) > 8.0 {
            self.line(vec![from, to], SOFT_INK, 0.5);
        }
    }

    /// A thin grid line.
    pub(crate) fn grid(&mut self, from: (f64, f64), to: (f64, f64)) {
        self.line(vec![from, to], GRID, 0.6);
    }

    /// A filled polygon, `alpha` from 0 (clear) to 1.
    pub(crate) fn polygon(&mut self, points: Vec<(f64, f64)>, colour: Colour, alpha: f64) {
        self.marks.push(Mark::Polygon(points, colour, alpha));
    }

    /// A circle, filled or as a ring.
    pub(crate) fn circle(&mut self, centre: (f64, f64), radius: f64, colour: Colour, full: bool) {
        self.marks.push(Mark::Circle(centre, radius, colour, full));
    }

    /// Text.
    pub(crate) fn text(&mut self, label: Label) {
        self.marks.push(Mark::Text(label));
    }

    /// Dark upright text of a size with its `anchor` at a point.
    pub(crate) fn write(
        &mut self,
        text: impl Into<String>,
        at: (f64, f64),
        size: f64,
        anchor: Anchor,
    ) {
        self.text(Label::new(text, at, size, anchor));
    }

    /// Level text as near to a middle as the width of the figure allows.
    pub(crate) fn centred(&mut self, text: &str, (x, y): (f64, f64), size: f64) {
        let whole = self.width.units();
        let text = fit(text, size, whole);
        let half = text_width(&text, size) / 2.0;
        let x = x.min(whole - half).max(half);
        self.write(text, (x, y), size, Anchor::Centre);
    }

    /// Text before whatever is drawn there already.
    pub(crate) fn text_before(&mut self, label: Label) {
        self.marks.push(Mark::Box(label.area(), PAPER));
        self.text(label);
    }

    /// The drawing as an SVG document, `height` user units high, with a title and a
    /// description as metadata.
    pub(crate) fn svg(&self, height: f64, title: &str, description: &str) -> String {
        let width = self.width.units();
        let (wide, high) = (whole(width).unsigned_abs(), whole(height).unsigned_abs());
        let mut body = String::new();
        let mut backend = SVGBackend::with_string(&mut body, (wide, high));
        let paper = Mark::Box(Area::new(0.0, 0.0, width, height), PAPER);
        for mark in std::iter::once(&paper).chain(&self.marks) {
            mark.draw(&mut backend);
        }
        backend.present().expect(MEMORY);
        drop(backend);
        let size = format!("width=\"{wide}\" height=\"{high}\"");
        let (across, down) = match self.width.inches() {
            Some(inches) => (format!("{inches}in"), format!("{:.4}in", height * inches / width)),
            None => (width.to_string(), height.to_string()),
        };
        let role =
            format!("width=\"{across}\" height=\"{down}\" role=\"img\" font-family=\"{FAMILIES}\"");
        let sized = body.replace(&format!(" font-family=\"{ANY}\""), "").replacen(&size, &role, 1);
        let [title, description] = [title, description].map(|text| crate::escape(&printable(text)));
        let metadata = format!(">\n<title>{title}</title>\n<desc>{description}</desc>\n");
        sized.replacen(">\n", &metadata, 1)
    }
}

/// Why drawing cannot fail: the document is a string.
const MEMORY: &str = "memory takes every write";

impl Mark {
    fn draw(&self, backend: &mut SVGBackend<'_>) {
        match self {
            Self::Box(area, colour) => {
                let corner = place((area.right(), area.bottom()));
                let style = shape(*colour, 1.0, 0.0);
                backend.draw_rect(place((area.x, area.y)), corner, &style, true).expect(MEMORY);
            }
            Self::Line(points, colour, width) => {
                let points: Vec<_> = points.iter().copied().map(place).collect();
                backend.draw_path(points, &shape(*colour, 1.0, *width)).expect(MEMORY);
            }
            Self::Polygon(points, colour, alpha) => {
                let points: Vec<_> = points.iter().copied().map(place).collect();
                backend.fill_polygon(points, &shape(*colour, *alpha, 0.0)).expect(MEMORY);
            }
            Self::Circle(centre, radius, colour, full) => {
                let radius = whole(*radius).unsigned_abs();
                let style = shape(*colour, 1.0, 1.4);
                backend.draw_circle(place(*centre), radius, &style, *full).expect(MEMORY);
            }
            Self::Text(label) => draw_text(backend, label),
        }
    }
}

fn draw_text(backend: &mut SVGBackend<'_>, label: &Label) {
    let across = match label.anchor {
        Anchor::Left => HPos::Left,
        Anchor::Centre => HPos::Center,
        Anchor::Right => HPos::Right,
    };
    let turn = if label.upwards { FontTransform::Rotate270 } else { FontTransform::None };
    let face = if label.bold {
        plotters::style::FontStyle::Bold
    } else {
        plotters::style::FontStyle::Normal
    };
    let font = (ANY, label.size * STEPS * FONT_RATIO).into_font().style(face).transform(turn);
    let colour = rgb(label.colour);
    let style = TextStyle::from(font).color(&colour).pos(Pos::new(across, VPos::Center));
    backend.draw_text(&label.text, &style, place(label.at)).expect(MEMORY);
}

fn shape(colour: Colour, alpha: f64, width: f64) -> ShapeStyle {
    ShapeStyle {
        color: rgba(colour, alpha),
        filled: true,
        stroke_width: whole(width).unsigned_abs(),
    }
}

fn rgb(colour: Colour) -> RGBColor {
    RGBColor(colour.0, colour.1, colour.2)
}

fn rgba(colour: Colour, alpha: f64) -> RGBAColor {
    rgb(colour).mix(alpha)
}

fn place((x, y): (f64, f64)) -> (i32, i32) {
    (whole(x), whole(y))
}

/// User units to the SVG's own unit; far outside stays far outside.
#[allow(clippy::cast_possible_truncation)] // a float's `as` saturates
fn whole(value: f64) -> i32 {
    (value * STEPS).round().clamp(-1e6, 1e6) as i32
}

/// Lines that have a colour and a full mark of their own.
pub(crate) const LINES: usize = 7;

/// Size of a mark.
const MARK: f64 = 3.4;

/// Drawn and left out lengths; none: the line is whole. Their number and that of marks
/// have no factor in common, so that a mark that comes again is on another line.
const PATTERNS: [&[f64]; 4] = [&[], &[7.0, 3.0], &[2.2, 2.4], &[10.0, 2.6, 2.2, 2.6]];

/// What tells a line from others: its mark, whether that is full, and its dashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LineLook(Marker, bool, usize);

impl LineLook {
    /// That of line number `index`.
    pub(crate) fn of(index: usize) -> Self {
        let (marker, full) = Marker::of(index);
        Self(marker, full, index % PATTERNS.len())
    }
}

/// The colour of line number `index` of a plot: that of its fill, darker where a thin line of it
/// would be lost on paper.
fn colour(index: usize) -> Colour {
    Fill::of(index).colour.of_lines()
}

impl Canvas {
    /// Line number `index` of a plot through `points`, with a mark at each.
    pub(crate) fn curve(&mut self, points: &[(f64, f64)], index: usize) {
        self.marked_curve(points, points, index);
    }

    /// Line number `index` of a plot through `points`, with a mark at each of `marked`.
    pub(crate) fn marked_curve(
        &mut self,
        points: &[(f64, f64)],
        marked: &[(f64, f64)],
        index: usize,
    ) {
        self.stroke(points, index, 1.8);
        for point in marked {
            self.point(*point, index);
        }
    }

    /// What goes with line number `index`: thin, its marks open and larger than those of the line, so
    /// that both are seen where they meet.
    pub(crate) fn thin_curve(&mut self, points: &[(f64, f64)], index: usize) {
        self.stroke(points, index, 0.9);
        for point in points {
            self.marker(*point, index, MARK + 1.4, false);
        }
    }

    /// Line number `index` without marks.
    pub(crate) fn stroke(&mut self, points: &[(f64, f64)], index: usize, width: f64) {
        for dash in dashes(points, PATTERNS[index % PATTERNS.len()]) {
            self.line(dash, colour(index), width);
        }
    }

    /// A point of series number `index`.
    pub(crate) fn point(&mut self, at: (f64, f64), index: usize) {
        let (_, full) = Marker::of(index);
        self.marker(at, index, MARK, full);
    }

    /// The mark of series number `index`, full or as an outline.
    pub(crate) fn marker(&mut self, at: (f64, f64), index: usize, radius: f64, full: bool) {
        self.mark(at, Marker::of(index).0, colour(index), radius, full);
    }

    /// A mark of a shape and a colour, full or as an outline.
    pub(crate) fn mark(
        &mut self,
        at: (f64, f64),
        marker: Marker,
        colour: Colour,
        radius: f64,
        full: bool,
    ) {
        let mut corners = marker.corners(at, radius);
        let Some(&first) = corners.first() else {
            self.circle(at, radius, if full { colour } else { PAPER }, true);
            if !full {
                self.circle(at, radius, colour, false);
            }
            return;
        };
        self.polygon(corners.clone(), if full { colour } else { PAPER }, 1.0);
        if !full {
            corners.push(first);
            self.line(corners, colour, 1.2);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Anchor, LINES, Label, Marker, PATTERNS};
    use crate::chart::RANKED;

    #[test]
    fn turned_text_covers_its_area_turned() {
        for anchor in [Anchor::Left, Anchor::Centre, Anchor::Right] {
            let label = Label::new("1.05", (0.0, 0.0), 10.0, anchor);
            let (level, turned) = (label.area(), label.clone().upwards().area());
            // What was right is above, what was below is right.
            let corners = [turned.x, turned.right(), -turned.y, -turned.bottom()];
            let expected = [level.y, level.bottom(), level.right(), level.x];
            for (found, expected) in corners.into_iter().zip(expected) {
                assert!((found - expected).abs() < 1e-9, "{turned:?} of {level:?}");
            }
        }
    }

    #[test]
    fn no_two_lines_of_a_figure_are_alike_without_colour() {
        let looks = |index: usize| (Marker::of(index), PATTERNS[index % PATTERNS.len()]);
        let most = RANKED.max(LINES);
        for index in 0..most {
            assert!((0..index).all(|other| looks(other) != looks(index)), "line {index}");
            let shape = |index: usize| (Marker::of(index).0, looks(index).1);
            assert!((0..index).all(|other| shape(other) != shape(index)), "line {index}");
        }
        assert!((0..LINES).all(|index| Marker::of(index).1), "full ones first");
    }
}
