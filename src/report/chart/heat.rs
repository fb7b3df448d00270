//! Maps of shaded cells: names above, values within, a bar that explains the shades.

use super::axis::across;
use super::canvas::Label;
use super::colour::{Fill, INK, PAPER};
use super::sheet::{NOTE, Sheet};
use super::text::{Anchor, fit, text_width};
use super::{Area, Scale, Shades};
use crate::number::float;
use gpumodel_core::units::to_u64;

/// Boxes of the bar that explains the shades.
const STEPS: u32 = 60;

/// Names of columns from (`left`, `top`) on, upright and at most `most` high where they
/// are wider than a cell; returns where they end.
pub(crate) fn heads<S: AsRef<str>>(
    sheet: &mut Sheet,
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
        let x = left + width * (float(to_u64(column)) + 0.5);
        let label = if upright {
            let at = (x, top + height);
            Label::new(fit(name.as_ref(), NOTE, most), at, NOTE, Anchor::Left).upwards()
        } else {
            Label::new(name.as_ref(), (x, top + NOTE / 2.0), NOTE, Anchor::Centre)
        };
        sheet.canvas.text(label);
    }
    top + height + 5.0
}

/// A shaded cell with its value and how that is written, a range in two lines where one
/// has no room; a cell that nobody knows has a dash.
pub(crate) fn shaded(
    sheet: &mut Sheet,
    area: &Area,
    value: Option<&(f64, String)>,
    shades: &Shades,
) {
    let shade = value.map_or(PAPER, |(value, _)| shades.of(*value));
    sheet.canvas.bar(*area, Fill::plain(shade));
    let words = value.map_or("–", |(_, words)| words);
    let ink = shade.text();
    let lines: Vec<String> = match words.split_once('–') {
        Some((low, high)) if !low.is_empty() && text_width(words, NOTE) > area.width - 4.0 => {
            vec![format!("{low}–"), high.to_string()]
        }
        _ => vec![words.to_string()],
    };
    let count = float(to_u64(lines.len()));
    let widest = lines.iter().map(|line| text_width(line, NOTE)).fold(0.0, f64::max);
    if widest > area.width - 2.0 || (NOTE + 1.0) * count > area.height + 1.0 {
        return;
    }
    let mut y = area.y + area.height / 2.0 - (count - 1.0) * (NOTE + 1.0) / 2.0;
    for line in lines {
        let at = (area.x + area.width / 2.0, y);
        sheet.canvas.text(Label::new(line, at, NOTE, Anchor::Centre).coloured(ink));
        y += NOTE + 1.0;
    }
}

/// A bar of all shades from `low` to `high` with their values, and `title` below.
pub(crate) fn explain(sheet: &mut Sheet, shades: &Shades, (low, high): (f64, f64), title: &str) {
    let area = sheet.plot(90.0, 90.0, 10.0);
    let scale = Scale::linear(low, high, area.x, area.right());
    let step = area.width / f64::from(STEPS);
    for place in 0..STEPS {
        let at = f64::from(place);
        let value = low + (high - low) * (at + 0.5) / f64::from(STEPS);
        let part = Area::new(area.x + at * step, area.y, step, area.height);
        sheet.canvas.fill(part, Fill::plain(shades.of(value)));
    }
    sheet.canvas.frame(&area, INK, 0.5);
    across(&mut sheet.canvas, &area, &scale, title);
    sheet.skip(38.0);
}
