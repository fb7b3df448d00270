//! Axes: grid lines, tick labels and titles around a plot area.

use super::canvas::Canvas;
use super::text::{Anchor, text_area, text_width};
use super::{Area, INK, LABEL, Label, Scale};
use crate::number::short;
use gpumodel_core::units::to_usize;

/// Draws the horizontal axis of `scale` below `area`: grid lines within it, tick
/// labels and `title` beneath. Takes 34 units of height; without a title 19.
pub(crate) fn across(canvas: &mut Canvas, area: &Area, scale: &Scale, title: &str) {
    let mut taken: Option<Area> = None;
    for (value, label) in scale.ticks() {
        let x = scale.at(value);
        canvas.grid((x, area.y), (x, area.bottom()));
        // A label at the right end moves in where it would leave the sheet.
        let beyond = x + text_width(&label, LABEL) / 2.0 + 2.0 - canvas.width();
        let at = (x - beyond.max(0.0), area.bottom() + 12.5);
        let mut room = text_area(&label, LABEL, Anchor::Centre, at.0, at.1);
        room.width += 4.0;
        if taken.is_some_and(|previous| previous.overlaps(&room)) {
            continue;
        }
        taken = Some(room);
        canvas.text(Label::new(label, at, LABEL, Anchor::Centre));
    }
    if !title.is_empty() {
        canvas.centred(title, (area.x + area.width / 2.0, area.bottom() + 28.0), LABEL);
    }
}

/// Room of a label of an axis of whole numbers.
const COUNTS: f64 = 24.0;

/// Draws a horizontal axis of whole numbers from 1 to `most` below `area`: as
/// [`across`], but no label between two numbers.
pub(crate) fn counts(canvas: &mut Canvas, area: &Area, scale: &Scale, most: u32, title: &str) {
    let room = (scale.at(f64::from(most)) - scale.at(0.0)).abs() / COUNTS;
    let steps = [1, 2, 4, 5, 10, 20, 50, 100, 200, 500, 1000, 5000, 20_000];
    let fits = |step: &&u32| f64::from(most / **step) <= room;
    let step = steps.iter().find(fits).copied().unwrap_or(most.max(1));
    for count in (step..=most).step_by(to_usize(step)) {
        let x = scale.at(f64::from(count));
        canvas.grid((x, area.y), (x, area.bottom()));
        let at = (x, area.bottom() + 12.5);
        canvas.text(Label::new(short(f64::from(count)), at, LABEL, Anchor::Centre));
    }
    if !title.is_empty() {
        canvas.centred(title, (area.x + area.width / 2.0, area.bottom() + 28.0), LABEL);
    }
}

/// Draws the vertical axis of `scale` left of `area`: grid lines within it, tick
/// labels, and `title`, if any, upwards at `title_x`.
pub(crate) fn down(canvas: &mut Canvas, area: &Area, scale: &Scale, title: &str, title_x: f64) {
    let mut taken: Option<Area> = None;
    for (value, label) in scale.ticks() {
        let y = scale.at(value);
        canvas.grid((area.x, y), (area.right(), y));
        let room = text_area(&label, LABEL, Anchor::Right, area.x - 4.0, y);
        if taken.is_some_and(|previous| previous.overlaps(&room)) {
            continue;
        }
        taken = Some(room);
        canvas.text(Label::new(label, (area.x - 4.0, y), LABEL, Anchor::Right));
    }
    if !title.is_empty() {
        let at = (title_x, area.y + area.height / 2.0);
        canvas.text(Label::new(title, at, LABEL, Anchor::Centre).upwards());
    }
}

/// Draws the left and lower edge of `area`.
pub(crate) fn outline(canvas: &mut Canvas, area: &Area) {
    let points = vec![(area.x, area.y), (area.x, area.bottom()), (area.right(), area.bottom())];
    canvas.line(points, INK, 1.0);
}
