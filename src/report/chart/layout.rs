//! A layout that is filled from above to below: title, legend, plot areas, notes, provenance; and
//! how a figure is set: its width and height, and whether it shows its own title.

use super::canvas::{Canvas, Label};
use super::text::{Anchor, fit, fit_heavy, heavy_width, name_room, text_width};
use super::{Area, Colour, Fill, INK, SOFT_INK};
use crate::format::float;

/// Em size of axis labels, legends and names.
pub(crate) const LABEL: f64 = 12.0;

/// Em size of notes and of the provenance.
pub(crate) const NOTE: f64 = 10.0;

const TITLE: f64 = 14.0;
const MARGIN: f64 = 8.0;

/// A finished figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Drawing {
    /// The SVG document.
    pub svg: String,
    /// Width and height in user units; the SVG's own unit is a tenth of it. In print ten
    /// of them are 7 pt.
    pub size: (f64, f64),
    /// Where data is drawn, in user units.
    pub plots: Vec<Area>,
    /// Where the legends are, in user units.
    pub legends: Vec<Area>,
    /// What it shows, in one line.
    pub title: String,
    /// What its numbers come from: machine, trace, program, seed.
    pub provenance: String,
    /// What is drawn as CSV; empty where the record's own tables say it.
    pub csv: String,
}

impl Drawing {
    /// The same with the values that it shows.
    #[must_use]
    pub(crate) fn with_csv(self, csv: String) -> Self {
        Self { csv, ..self }
    }
}

/// What a legend shows before a name.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Swatch {
    /// A filled box.
    Fill(Fill),
    /// A solid line.
    Line(Colour),
    /// A dashed line.
    Dashes(Colour),
    /// Line number so and so of a plot, with its mark.
    Mark(usize),
    /// The mark of series number so and so.
    Point(usize),
    /// A full circle.
    Dot(Colour),
    /// A ring.
    Ring(Colour),
}

impl Swatch {
    /// The fill of a look.
    pub(crate) fn look(look: usize) -> Self {
        Self::Fill(Fill::of(look))
    }

    /// The room it takes.
    fn width(self) -> f64 {
        if let Self::Mark(_) = self { 30.0 } else { 14.0 }
    }
}

/// One entry of a legend.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// What is shown.
    pub(crate) swatch: Swatch,
    /// What it means.
    pub(crate) name: String,
    /// What stands behind the name, and is never cut.
    tail: String,
}

impl Entry {
    /// An entry of a legend.
    pub(crate) fn new(swatch: Swatch, name: impl Into<String>) -> Self {
        Self { swatch, name: name.into(), tail: String::new() }
    }

    /// An entry for each of `names`, with the fills of a series.
    pub(crate) fn fills<S: AsRef<str>>(names: &[S]) -> Vec<Self> {
        Self::looks(names, &(0..names.len()).collect::<Vec<_>>(), Swatch::look)
    }

    /// An entry for each of `names`, with what `swatch` makes of its look.
    pub(crate) fn looks<S: AsRef<str>>(
        names: &[S],
        looks: &[usize],
        swatch: fn(usize) -> Swatch,
    ) -> Vec<Self> {
        let named = names.iter().zip(looks);
        named.map(|(name, look)| Self::new(swatch(*look), name.as_ref())).collect()
    }

    /// An entry for each of `names`, with the lines and marks of a plot.
    pub(crate) fn marks<S: AsRef<str>>(names: &[S]) -> Vec<Self> {
        let entry = |(place, name): (usize, &S)| Self::new(Swatch::Mark(place), name.as_ref());
        names.iter().enumerate().map(entry).collect()
    }

    /// The same with `tail` behind its name.
    pub(crate) fn with(self, tail: String) -> Self {
        Self { tail, ..self }
    }
}

/// A layout being filled; `top` is the first free height.
#[derive(Debug)]
pub(crate) struct Layout {
    sheet: Sheet,
    /// Where marks go.
    pub(crate) canvas: Canvas,
    title: String,
    /// Left edge and width of what is being filled.
    column: (f64, f64),
    /// How many times as high as usual plots are whose height can be chosen.
    stretch: f64,
    top: f64,
    plots: Vec<Area>,
    legends: Vec<Area>,
}

impl Layout {
    /// A layout of a figure that is called `title`; where the sheet says so, it stands above
    /// everything.
    pub(crate) fn new(sheet: Sheet, title: &str) -> Self {
        let wide = sheet.width.units();
        let (title, column) = (title.to_string(), (0.0, wide));
        let (canvas, plots, legends) = (Canvas::new(sheet.width), Vec::new(), Vec::new());
        let (stretch, top) = (1.0, MARGIN);
        let mut layout = Self { sheet, canvas, title, column, stretch, top, plots, legends };
        if sheet.titled {
            for line in title_lines(&layout.title, wide - 2.0 * MARGIN) {
                let at = (MARGIN, layout.top + TITLE / 2.0);
                layout.canvas.text(Label::new(line, at, TITLE, Anchor::Left).bold());
                layout.top += TITLE + 3.0;
            }
            layout.top += 3.0;
        }
        layout
    }

    /// The same with plots that are `stretch` times as high where their height can be chosen.
    pub(crate) fn stretched(self, stretch: f64) -> Self {
        Self { stretch, ..self }
    }

    /// The height of a plot that can be chosen, usually `height`.
    pub(crate) fn chosen(&self, height: f64) -> f64 {
        height * self.stretch
    }

    /// It is narrower than on a screen: what stands side by side has no room.
    pub(crate) fn narrow(&self) -> bool {
        self.sheet.width == Width::One
    }

    /// A length of a figure for screens, less where there is less room.
    pub(crate) fn share(&self, length: f64) -> f64 {
        self.sheet.width.share(length)
    }

    /// Width of what is being filled: of the layout or of a column.
    pub(crate) fn width(&self) -> f64 {
        self.column.1
    }

    /// Has `draw` fill `count` parts, which stand side by side in `columns`.
    pub(crate) fn side_by_side(
        &mut self,
        columns: usize,
        count: usize,
        mut draw: impl FnMut(&mut Self, usize),
    ) {
        let whole = self.column;
        let width = whole.1 / float(columns);
        for first in (0..count).step_by(columns) {
            let (top, mut bottom, mut left) = (self.top, self.top, whole.0);
            for part in first..(first + columns).min(count) {
                (self.top, self.column) = (top, (left, width));
                draw(self, part);
                bottom = bottom.max(self.top);
                left += width;
            }
            self.top = bottom;
        }
        self.column = whole;
    }

    /// The first free height.
    pub(crate) fn top(&self) -> f64 {
        self.top
    }

    /// Leaves `height` free.
    pub(crate) fn skip(&mut self, height: f64) {
        self.top += height;
    }

    /// Lines of secondary text, broken at spaces to the width of what is being filled.
    pub(crate) fn note(&mut self, text: &str) {
        for line in wrap(text, self.width() - 2.0 * MARGIN, &REGULAR) {
            let at = (self.column.0 + MARGIN, self.top + NOTE / 2.0);
            let label = Label::new(line, at, NOTE, Anchor::Left).coloured(SOFT_INK);
            self.canvas.text(label);
            self.top += NOTE + 3.0;
        }
    }

    /// Says that `count` more of something are not drawn, where there are some.
    pub(crate) fn left_out(&mut self, count: usize, what: &str) {
        if count > 0 {
            self.note(&format!("{count} more {what}."));
        }
    }

    /// Where a plot begins whose rows have `names` at `size` left of it, `gap` included: from
    /// `least` to `widest`, less where there is less room.
    pub(crate) fn left_of<S: AsRef<str>>(
        &self,
        names: &[S],
        size: f64,
        (least, widest): (f64, f64),
        gap: f64,
    ) -> f64 {
        name_room(names, size, self.share(widest) - gap).max(least - gap) + gap
    }

    /// A legend of as many rows as it needs.
    pub(crate) fn legend(&mut self, entries: &[Entry]) {
        let (from, room) = (self.column.0 + MARGIN, self.width() - 2.0 * MARGIN);
        let start = self.top;
        let (mut x, mut widest) = (from, 0.0_f64);
        for entry in entries {
            let shown = entry.swatch.width() + 5.0;
            let left = room - shown - text_width(&entry.tail, LABEL);
            let name = fit(&entry.name, LABEL, left) + &entry.tail;
            let width = shown + text_width(&name, LABEL);
            if x > from && x + width > from + room {
                x = from;
                self.top += LABEL + 5.0;
            }
            let middle = self.top + LABEL / 2.0;
            self.swatch(entry.swatch, x, middle);
            self.canvas.write(name, (x + shown, middle), LABEL, Anchor::Left);
            widest = widest.max(x + width - from);
            x += width + 12.0;
        }
        self.top += LABEL + 2.0;
        self.legends.push(Area::new(from, start, widest, self.top - start));
        self.top += 6.0;
    }

    fn swatch(&mut self, swatch: Swatch, x: f64, middle: f64) {
        let width = swatch.width();
        let centre = (x + width / 2.0, middle);
        let ends = ((x, middle), (x + width, middle));
        match swatch {
            Swatch::Fill(fill) => {
                let area = Area::new(x, middle - 5.5, width, 11.0);
                self.canvas.fill(area, fill);
                self.canvas.frame(&area, INK, 0.5);
            }
            Swatch::Line(colour) => self.canvas.line(vec![ends.0, ends.1], colour, 1.8),
            Swatch::Dashes(colour) => self.canvas.dashes(ends.0, ends.1, colour, 1.8),
            Swatch::Mark(index) => self.canvas.marked_curve(&[ends.0, ends.1], &[centre], index),
            Swatch::Point(index) => self.canvas.point(centre, index),
            Swatch::Dot(colour) => self.canvas.circle(centre, 4.0, colour, true),
            Swatch::Ring(colour) => self.canvas.circle(centre, 4.0, colour, false),
        }
    }

    /// Keeps a plot area of `height`, with `left` and `right` free next to it.
    pub(crate) fn plot(&mut self, left: f64, right: f64, height: f64) -> Area {
        let width = self.width() - left - right;
        let area = Area::new(self.column.0 + left, self.top, width, height);
        self.top += height;
        self.plots.push(area);
        area
    }

    /// Notes that `area` is a plot area, for figures that divide one.
    pub(crate) fn mark_plot(&mut self, area: Area) {
        self.plots.push(area);
    }

    /// The finished figure. Its `provenance` is in its last line where its title is drawn.
    pub(crate) fn finish(mut self, provenance: &str) -> Drawing {
        self.top += 4.0;
        if self.sheet.titled {
            self.note(provenance);
        }
        // The document counts tenths of a unit.
        let height = ((self.top + 3.0) * 10.0).ceil() / 10.0;
        Drawing {
            svg: self.canvas.svg(height, &self.title, provenance),
            size: (self.sheet.width.units(), height),
            plots: self.plots,
            legends: self.legends,
            title: self.title,
            provenance: provenance.to_owned(),
            csv: String::new(),
        }
    }
}

/// How texts of a face and size are measured and shortened.
struct Face {
    size: f64,
    width: fn(&str, f64) -> f64,
    fit: fn(&str, f64, f64) -> String,
}

/// That of notes.
const REGULAR: Face = Face { size: NOTE, width: text_width, fit };

/// That of titles.
const HEAVY: Face = Face { size: TITLE, width: heavy_width, fit: fit_heavy };

/// `title` in at most two lines of `room`.
fn title_lines(title: &str, room: f64) -> Vec<String> {
    if heavy_width(title, TITLE) <= room {
        return vec![title.to_string()];
    }
    let mut lines = wrap(title, room, &HEAVY);
    if lines.len() > 2 {
        let rest = lines.split_off(1).join(" ");
        lines.push(fit_heavy(&rest, TITLE, room));
    }
    lines
}

/// `text` in lines of at most `room`, broken at spaces but not before a percent sign; longer
/// words are shortened.
fn wrap(text: &str, room: f64, face: &Face) -> Vec<String> {
    let size = face.size;
    let width = |text: &str| (face.width)(text, size);
    let mut lines: Vec<String> = Vec::new();
    let joined = text.replace(" %", "\u{a0}%");
    for word in joined.split(' ').filter(|word| !word.is_empty()) {
        let word = (face.fit)(&word.replace('\u{a0}', " "), size, room);
        match lines.last_mut() {
            Some(line) if width(line) + width(&word) + size * 0.4 <= room => {
                line.push(' ');
                line.push_str(&word);
            }
            _ => lines.push(word),
        }
    }
    lines
}

/// How a figure is set.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sheet {
    /// How wide it is.
    pub width: Width,
    /// Whether title and provenance are drawn too; otherwise they are only in the document's
    /// metadata.
    pub titled: bool,
    /// How high it is, in inches; `None`: as its plots need.
    pub height: Option<f64>,
}

/// The height of a page's text, in inches.
const PAGE: f64 = 9.0;

impl Sheet {
    /// How high a figure may be, in user units, so that a page of print holds it.
    pub(crate) fn page(&self) -> Option<f64> {
        self.width.inches().map(|_| PAGE * self.width.units_per_inch())
    }
}

/// Widths of a figure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Width {
    /// Of no physical size.
    #[default]
    Screen,
    /// One column: 3.33 inches.
    One,
    /// The text, which is both columns: 7 inches.
    Two,
}

impl Width {
    /// In user units: in print ten of them, which is the size of the smallest text, are
    /// 7 pt whatever the width.
    pub(crate) fn units(self) -> f64 {
        match self {
            Self::Screen => 480.0,
            Self::One => 340.0,
            Self::Two => 714.0,
        }
    }

    /// In inches, where it is for print.
    pub(crate) fn inches(self) -> Option<f64> {
        match self {
            Self::Screen => None,
            Self::One => Some(3.33),
            Self::Two => Some(7.0),
        }
    }

    /// User units in an inch; on a screen there are 96.
    pub(crate) fn units_per_inch(self) -> f64 {
        self.inches().map_or(96.0, |inches| self.units() / inches)
    }

    /// A length of a figure for screens where there is as much room, else its share of
    /// the room.
    pub(crate) fn share(self, length: f64) -> f64 {
        length * (self.units() / Self::Screen.units()).min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::{REGULAR, Width, heavy_width, text_width, title_lines, wrap};
    use crate::chart::NOTE;

    #[test]
    fn wrapped_lines_keep_every_word_and_the_room() {
        let text = "one two three four five six seven eight nine ten";
        let lines = wrap(text, 100.0, &REGULAR);
        assert!(lines.len() > 1);
        assert!(lines.iter().all(|line| text_width(line, 10.0) <= 100.0));
        assert_eq!(lines.join(" "), text);
    }

    #[test]
    fn a_percent_sign_stays_with_its_number() {
        let lines = wrap("keeps all of 45 % of it", text_width("keeps all of 45", 10.0), &REGULAR);
        assert_eq!(lines, ["keeps all of", "45 % of it"]);
    }

    #[test]
    fn titles_have_two_lines_at_most() {
        let long = "a_name_that_is_as_long_as_a_line_of_the_sheet_or_longer_than over time";
        assert_eq!(title_lines("Kernels over time", 464.0), ["Kernels over time"]);
        assert_eq!(title_lines(long, 464.0).len(), 2);
        assert_eq!(title_lines(long, 464.0)[1], "over time");
        let longer = title_lines(&format!("{}over time", "some words ".repeat(20)), 464.0);
        assert_eq!(longer.len(), 2);
        assert!(longer[1].ends_with("over time") && heavy_width(&longer[1], 14.0) <= 464.0);
    }

    #[test]
    fn the_smallest_text_is_seven_points_in_print() {
        for width in [Width::One, Width::Two] {
            let point = width.inches().unwrap() * 72.0 / width.units();
            assert!((7.0..7.2).contains(&(NOTE * point)), "{width:?}: {}", NOTE * point);
        }
        assert!((Width::Two.share(100.0) - 100.0).abs() < 1e-9);
        assert!((Width::One.share(240.0) - 170.0).abs() < 1e-9);
    }
}
