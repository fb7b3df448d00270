//! Maps of shaded cells: names above, values within, a bar that explains the shades.

use super::axis::across;
use super::canvas::Label;
use super::layout::{Layout, NOTE};
use super::style::{Colour, Fill, INK, PAPER};
use super::text::{Anchor, fit, text_width};
use super::{Area, Scale};
use crate::format::float;

/// Boxes of the bar that explains the shades, and its width at most.
const STEPS: u32 = 60;
const WIDEST: f64 = 300.0;

/// Names of columns from (`left`, `top`) on, upright and at most `most` high where they
/// are wider than a cell; returns where they end.
pub(crate) fn heads<S: AsRef<str>>(
    layout: &mut Layout,
    names: &[S],
    (left, top): (f64, f64),
    width: f64,
    most: f64,
) -> f64 {
    let widest = names.iter().map(|name| text_width(name.as_ref(), NOTE)).fold(0.0, f64::max);
    let upright = widest > width - 4.0;
    let height = if upright { widest.min(most) } else { NOTE };
    // Upright names that are nearer than their size would cover each other.
    let every = if width >= NOTE { 1 } else { 2 };
    for (column, name) in names.iter().enumerate().step_by(every) {
        let x = left + width * (float(column) + 0.5);
        let label = if upright {
            let at = (x, top + height);
            Label::new(fit(name.as_ref(), NOTE, most), at, NOTE, Anchor::Left).upwards()
        } else {
            Label::new(name.as_ref(), (x, top + NOTE / 2.0), NOTE, Anchor::Centre)
        };
        layout.canvas.text(label);
    }
    top + height + 5.0
}

/// A shaded cell with its value and how that is written, a range in two lines where one
/// has no room; a cell without a value has a dash.
pub(crate) fn shaded(
    layout: &mut Layout,
    area: &Area,
    value: Option<&(f64, String)>,
    shades: &Shades,
) {
    let shade = value.map_or(PAPER, |(value, _)| shades.of(*value));
    layout.canvas.bar(*area, Fill::plain(shade));
    let words = value.map_or("–", |(_, words)| words);
    let ink = shade.text();
    let lines: Vec<String> = match words.split_once('–') {
        Some((low, high)) if !low.is_empty() && text_width(words, NOTE) > area.width - 4.0 => {
            vec![format!("{low}–"), high.to_string()]
        }
        _ => vec![words.to_string()],
    };
    let count = float(lines.len());
    let widest = lines.iter().map(|line| text_width(line, NOTE)).fold(0.0, f64::max);
    if widest > area.width - 2.0 || (NOTE + 1.0) * count > area.height + 1.0 {
        return;
    }
    let mut y = area.y + area.height / 2.0 - (count - 1.0) * (NOTE + 1.0) / 2.0;
    for line in lines {
        let at = (area.x + area.width / 2.0, y);
        layout.canvas.text(Label::new(line, at, NOTE, Anchor::Centre).coloured(ink));
        y += NOTE + 1.0;
    }
}

/// A bar of all shades from `low` to `high` with their values, and `title` below.
pub(crate) fn explain(layout: &mut Layout, shades: &Shades, (low, high): (f64, f64), title: &str) {
    let margin = ((layout.width() - WIDEST) / 2.0).max(90.0);
    let area = layout.plot(margin, margin, 10.0);
    let scale = Scale::linear(low, high, area.x, area.right());
    across(&mut layout.canvas, &area, &scale, title);
    let step = area.width / f64::from(STEPS);
    for place in 0..STEPS {
        let at = f64::from(place);
        let value = low + (high - low) * (at + 0.5) / f64::from(STEPS);
        // Each runs on below the next: no seam shows between them.
        let part = Area::new(area.x + at * step, area.y, area.width - at * step, area.height);
        layout.canvas.fill(part, Fill::plain(shades.of(value)));
    }
    layout.canvas.frame(&area, INK, 0.5);
    layout.skip(38.0);
}

/// From pale over blue to nearly black, in steps of the same lightness (L* of CIELAB).
const STOPS: [Colour; 9] = [
    Colour(0xf4, 0xf8, 0xfc),
    Colour(0xc0, 0xde, 0xf6),
    Colour(0x90, 0xc4, 0xe9),
    Colour(0x66, 0xa8, 0xd8),
    Colour(0x40, 0x8d, 0xc1),
    Colour(0x1f, 0x72, 0xa6),
    Colour(0x02, 0x58, 0x89),
    Colour(0x00, 0x3e, 0x67),
    Colour(0x04, 0x26, 0x45),
];

/// Dark text over a shade: darker than other text, which has too little contrast with those in
/// the middle.
const BLACK: Colour = Colour(0, 0, 0);

/// Shades from a low to a high value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Shades {
    low: f64,
    high: f64,
}

impl Shades {
    /// Shades of finite values from `low` to `high`.
    pub(crate) fn new(low: f64, high: f64) -> Self {
        Self { low, high }
    }

    /// The shade of `value`, that of the nearer end beyond the range.
    pub(crate) fn of(&self, value: f64) -> Colour {
        let share = (value - self.low) / (self.high - self.low);
        let share = if share.is_nan() { 0.0 } else { share.clamp(0.0, 1.0) };
        let last = STOPS.len() - 2;
        let along = share * float(STOPS.len() - 1);
        let place = (0..last).take_while(|&place| float(place + 1) <= along).count();
        let (from, to, part) = (STOPS[place], STOPS[place + 1], along - float(place));
        let mix = |a: u8, b: u8| byte(f64::from(a) + (f64::from(b) - f64::from(a)) * part);
        Colour(mix(from.0, to.0), mix(from.1, to.1), mix(from.2, to.2))
    }
}

impl Colour {
    /// What text over it is written in: the one with the larger contrast.
    pub(crate) fn text(self) -> Colour {
        let contrast = |other: Colour| {
            let (a, b) = (self.luminance(), other.luminance());
            (a.max(b) + 0.05) / (a.min(b) + 0.05)
        };
        if contrast(BLACK) >= contrast(PAPER) { BLACK } else { PAPER }
    }

    /// Relative luminance from 0 to 1, after WCAG 2.1.
    fn luminance(self) -> f64 {
        let linear = |part: u8| {
            let part = f64::from(part) / 255.0;
            if part <= 0.040_45 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * linear(self.0) + 0.7152 * linear(self.1) + 0.0722 * linear(self.2)
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // clamped to a byte
fn byte(value: f64) -> u8 {
    value.round().clamp(0.0, 255.0) as u8
}

#[cfg(test)]
mod tests {
    use super::{BLACK, Colour, PAPER, Shades};

    #[test]
    fn more_is_darker_and_text_stands_out() {
        let shades = Shades::new(1.0, 3.0);
        let light: Vec<f64> =
            (0..=20).map(|step| shades.of(1.0 + f64::from(step) * 0.1).luminance()).collect();
        assert!(light.windows(2).all(|two| two[0] > two[1]), "{light:?}");
        assert_eq!(shades.of(-5.0), shades.of(1.0));
        assert_eq!(shades.of(f64::NAN), shades.of(1.0));
        assert_eq!((shades.of(1.0).text(), shades.of(3.0).text()), (BLACK, PAPER));
        assert!((PAPER.luminance() - 1.0).abs() < 1e-9 && Colour(0, 0, 0).luminance() < 1e-9);
        let contrast = |colour: Colour| {
            let (a, b) = (colour.luminance(), colour.text().luminance());
            (a.max(b) + 0.05) / (a.min(b) + 0.05)
        };
        let least = (0..=200).map(|step| contrast(shades.of(1.0 + f64::from(step) * 0.01)));
        assert!(least.fold(f64::MAX, f64::min) >= 4.5, "WCAG's AA on every shade");
    }

    #[test]
    fn equal_steps_of_a_value_are_equal_steps_of_lightness() {
        let shades = Shades::new(0.0, 1.0);
        let lightness =
            |step: u32| 116.0 * shades.of(f64::from(step) / 32.0).luminance().cbrt() - 16.0;
        let steps: Vec<f64> = (0..32).map(|step| lightness(step) - lightness(step + 1)).collect();
        let mean = steps.iter().sum::<f64>() / 32.0;
        assert!(steps.iter().all(|step| (step / mean - 1.0).abs() < 0.25), "{steps:?}");
    }
}
