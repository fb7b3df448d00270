//! Scales from values to positions, and the axes that show them.

use gpumodel_core::units::to_usize;

use super::canvas::Canvas;
use super::text::{Anchor, text_area, text_width};
use super::{Area, INK, LABEL, Label, NOTE, SOFT_INK};
use crate::format::short;

/// Values further from zero than this are drawn as this far.
const MOST: f64 = 1e30;

/// A scale from 0 ends at most at so many times its largest value where finer steps help.
const ROOM: f64 = 1.25;
/// Those are so many at most.
const STEPS: f64 = 6.1;

/// Values nearer to zero than this are drawn as this near on a logarithmic scale.
const LEAST: f64 = 1e-30;

/// A linear or logarithmic scale from a range of values to a range of positions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Scale {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
    log: bool,
    /// From tick to tick, where the scale was made of so many.
    step: Option<f64>,
}

impl Scale {
    /// A linear scale; an empty range is widened.
    pub(crate) fn linear(low: f64, high: f64, from: f64, to: f64) -> Self {
        let (low, high) = (drawable(low), drawable(high));
        let high = if high > low { high } else { low + low.abs().max(1.0) };
        Self { low, high, from, to, log: false, step: None }
    }

    /// A linear scale from 0 to a round value at or above `high`, in finer steps where the last
    /// of the coarse ones would be empty.
    pub(crate) fn from_zero(high: f64, from: f64, to: f64) -> Self {
        let high = drawable(high);
        let high = if high > 0.0 { high } else { 1.0 };
        let end = |step: f64| (high / step - 1e-9).ceil() * step;
        let coarse = round_step(high / 4.0);
        let fine = round_step(0.4 * coarse);
        let better = end(coarse) > ROOM * high && end(fine) / fine <= STEPS;
        let step = if better { fine } else { coarse };
        Self { step: Some(step), ..Self::linear(0.0, end(step), from, to) }
    }

    /// A logarithmic scale; both ends above zero.
    pub(crate) fn log(low: f64, high: f64, from: f64, to: f64) -> Self {
        let (low, high) = (drawable(low).max(LEAST), drawable(high));
        let high = if high > low { high } else { low * 10.0 };
        Self { low, high, from, to, log: true, step: None }
    }

    /// The position of `value`, kept within the range of positions; no number is at its start.
    pub(crate) fn at(&self, value: f64) -> f64 {
        let share = if self.log {
            (value.max(LEAST) / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        let share = if share.is_nan() { 0.0 } else { share.clamp(0.0, 1.0) };
        self.from + share * (self.to - self.from)
    }

    /// The smallest value.
    pub(crate) fn low(&self) -> f64 {
        self.low
    }

    /// The largest value.
    pub(crate) fn high(&self) -> f64 {
        self.high
    }

    /// Round values within the range and their labels.
    pub(crate) fn ticks(&self) -> Vec<(f64, String)> {
        let finest = self.divisions().into_iter().next().unwrap_or_default();
        labelled(finest)
    }

    /// The finest of [`Self::divisions`] all of whose labels lie `apart`, of those that have
    /// two values at least the coarsest where none does.
    fn ticks_apart(&self, apart: impl Fn(&[(f64, String)]) -> bool) -> Vec<(f64, String)> {
        let mut ticks = self.ticks();
        for coarser in self.divisions() {
            if apart(&ticks) {
                break;
            }
            if coarser.len() >= 2 {
                ticks = labelled(coarser);
            }
        }
        ticks
    }

    /// Round values within the range, from many to few.
    fn divisions(&self) -> Vec<Vec<f64>> {
        if self.log {
            let all = self.decades();
            let powers: Vec<f64> = all.iter().copied().filter(|v| is_power(*v)).collect();
            let every = |step| powers.iter().copied().step_by(step).collect();
            return [all].into_iter().chain([1, 2, 3, 5, 10].map(every)).collect();
        }
        let parts = [3.0, 2.0, 1.0].map(|parts| round_step((self.high - self.low) / parts));
        [self.steps()].into_iter().chain(parts.map(|step| self.multiples(step))).collect()
    }

    /// Multiples of a round value: of a finer one where few lie within a range that does
    /// not begin at one.
    fn steps(&self) -> Vec<f64> {
        let few = |step: &f64| (self.high - self.low) / step <= STEPS;
        if let Some(step) = self.step.filter(few) {
            return self.multiples(step);
        }
        let step = round_step((self.high - self.low) / 4.0);
        let values = self.multiples(step);
        if values.len() < 3 { self.multiples(round_step(0.4 * step)) } else { values }
    }

    fn multiples(&self, step: f64) -> Vec<f64> {
        let first = (self.low / step - 1e-9).ceil();
        let mut values = Vec::new();
        while (first + count(&values)) * step <= self.high + step * 1e-9 {
            values.push((first + count(&values)) * step);
        }
        values
    }

    /// Powers of ten; with their double and fivefold where that leaves few, and multiples of a
    /// round value where the range has not two of them.
    fn decades(&self) -> Vec<f64> {
        let (first, last) = (self.low.log10().floor(), self.high.log10().ceil());
        let multiples: &[f64] = if last - first <= 3.0 { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let mut values = Vec::new();
        let mut power = first;
        while power <= last {
            let base = 10f64.powf(power);
            values.extend(
                multiples
                    .iter()
                    .map(|m| m * base)
                    .filter(|v| *v >= self.low * (1.0 - 1e-9) && *v <= self.high * (1.0 + 1e-9)),
            );
            power += 1.0;
        }
        if values.len() < 2 {
            self.multiples(round_step((self.high - self.low) / 4.0))
        } else {
            values
        }
    }
}

/// `values` with their labels.
fn labelled(values: Vec<f64>) -> Vec<(f64, String)> {
    values.into_iter().map(|value| (value, short(value))).collect()
}

/// Whether `value` is a power of ten.
fn is_power(value: f64) -> bool {
    let power = value.log10();
    (power - power.round()).abs() < 1e-9
}

/// `value` within what can be drawn; no number is 0.
fn drawable(value: f64) -> f64 {
    if value.is_nan() { 0.0 } else { value.clamp(-MOST, MOST) }
}

#[allow(clippy::cast_precision_loss)] // a handful of ticks
fn count(values: &[f64]) -> f64 {
    values.len() as f64
}

/// The next of 1, 2, 5 times a power of ten at or above `rough`.
fn round_step(rough: f64) -> f64 {
    let power = 10f64.powf(rough.max(1e-300).log10().floor());
    let factor = [1.0, 2.0, 5.0].into_iter().find(|f| f * power >= rough * (1.0 - 1e-9));
    factor.unwrap_or(10.0) * power
}

/// Length of a tick.
const TICK: f64 = 3.0;

/// An upright grid line through `area` and a tick below it.
fn tick_across(canvas: &mut Canvas, area: &Area, x: f64) {
    canvas.grid((x, area.y), (x, area.bottom()));
    canvas.line(vec![(x, area.bottom()), (x, area.bottom() + TICK)], SOFT_INK, 0.6);
}

/// The middle of tick labels below an area, and that of the axis title.
const LABELS: f64 = 11.5;
const TITLE: f64 = 27.0;

/// Between labels next to each other.
const BETWEEN: f64 = 6.0;

/// Where the label of a tick at `x` stands below `area`: at the right end it moves in where it
/// would leave the canvas.
fn label_at(canvas: &Canvas, area: &Area, x: f64, label: &str) -> (f64, f64) {
    let beyond = x + text_width(label, NOTE) / 2.0 + 2.0 - canvas.width();
    (x - beyond.max(0.0), area.bottom() + LABELS)
}

/// The ticks of the horizontal `scale` of `area`, whose labels have room next to each other.
fn ticks_across(canvas: &Canvas, area: &Area, scale: &Scale) -> Vec<(f64, String)> {
    scale.ticks_apart(|ticks| {
        let place = |(value, label): &(f64, String)| {
            let (x, y) = label_at(canvas, area, scale.at(*value), label);
            let mut place = text_area(label, NOTE, Anchor::Centre, x, y);
            place.width += BETWEEN;
            place
        };
        let places: Vec<Area> = ticks.iter().map(place).collect();
        places.windows(2).all(|two| !two[0].overlaps(&two[1]))
    })
}

/// Draws grid lines and ticks of the horizontal `scale` of `area` without labels: of an area
/// right above the one of the same panel that has them.
pub(crate) fn ticks(canvas: &mut Canvas, area: &Area, scale: &Scale) {
    let ticks = ticks_across(canvas, area, scale);
    ticks.iter().for_each(|(value, _)| tick_across(canvas, area, scale.at(*value)));
}

/// Height of a horizontal axis without a title.
pub(crate) const AXIS_HEIGHT: f64 = 17.0;

/// Draws the horizontal axis of `scale` below `area`: grid lines within it, tick
/// labels and `title` beneath. Takes 33 units of height; without a title [`AXIS_HEIGHT`].
pub(crate) fn across(canvas: &mut Canvas, area: &Area, scale: &Scale, title: &str) {
    for (value, label) in ticks_across(canvas, area, scale) {
        let x = scale.at(value);
        tick_across(canvas, area, x);
        let at = label_at(canvas, area, x, &label);
        canvas.write(label, at, NOTE, Anchor::Centre);
    }
    title_across(canvas, area, title);
}

/// Writes the title, if any, of a horizontal axis below `area`.
fn title_across(canvas: &mut Canvas, area: &Area, title: &str) {
    if !title.is_empty() {
        canvas.centred(title, (area.x + area.width / 2.0, area.bottom() + TITLE), LABEL);
    }
}

/// Room of a label of an axis of whole numbers, and how many there are at most.
const COUNTS: f64 = 22.0;
const MOST_COUNTS: f64 = 16.0;

/// Draws a horizontal axis of whole numbers from 1 to `most` below `area`: as
/// [`across`], but no label between two numbers.
pub(crate) fn counts(canvas: &mut Canvas, area: &Area, scale: &Scale, most: u32, title: &str) {
    let room = (scale.at(f64::from(most)) - scale.at(0.0)).abs() / COUNTS;
    let steps = [1, 2, 4, 5, 10, 20, 50, 100, 200, 500, 1000, 5000, 20_000];
    let fits = |step: &&u32| f64::from(most / **step) <= room.min(MOST_COUNTS);
    let step = steps.iter().find(fits).copied().unwrap_or(most.max(1));
    for count in (step..=most).step_by(to_usize(step)) {
        let x = scale.at(f64::from(count));
        tick_across(canvas, area, x);
        let at = (x, area.bottom() + LABELS);
        canvas.write(short(f64::from(count)), at, NOTE, Anchor::Centre);
    }
    title_across(canvas, area, title);
}

/// Draws the vertical axis of `scale` left of `area`: grid lines within it, tick
/// labels, and `title`, if any, upwards at `title_x`, small where it is longer than the axis.
pub(crate) fn down(canvas: &mut Canvas, area: &Area, scale: &Scale, title: &str, title_x: f64) {
    let ticks = scale.ticks_apart(|ticks| {
        let places: Vec<f64> = ticks.iter().map(|(value, _)| scale.at(*value)).collect();
        places.windows(2).all(|two| (two[1] - two[0]).abs() >= NOTE)
    });
    for (value, label) in ticks {
        let y = scale.at(value);
        canvas.grid((area.x, y), (area.right(), y));
        canvas.line(vec![(area.x - TICK, y), (area.x, y)], SOFT_INK, 0.6);
        canvas.write(label, (area.x - TICK - 2.0, y), NOTE, Anchor::Right);
    }
    if !title.is_empty() {
        let at = (title_x, area.y + area.height / 2.0);
        let size = if text_width(title, LABEL) <= area.height { LABEL } else { NOTE };
        canvas.text(Label::new(title, at, size, Anchor::Centre).upwards());
    }
}

/// Draws the left and lower edge of `area`.
pub(crate) fn outline(canvas: &mut Canvas, area: &Area) {
    let points = vec![(area.x, area.y), (area.x, area.bottom()), (area.right(), area.bottom())];
    canvas.line(points, INK, 1.0);
}

#[cfg(test)]
mod tests {
    use super::Scale;

    #[test]
    fn ticks_are_round_and_within_range() {
        let labels = |scale: Scale| -> Vec<String> {
            scale.ticks().into_iter().map(|(_, label)| label).collect()
        };
        assert_eq!(labels(Scale::from_zero(0.93, 0.0, 100.0)), ["0", "0.5", "1"]);
        let scale = Scale::from_zero(2.05, 0.0, 100.0);
        assert_eq!(labels(scale), ["0", "0.5", "1", "1.5", "2", "2.5"], "not up to 3");
        let scale = Scale::from_zero(1.55, 0.0, 100.0);
        assert_eq!(labels(scale), ["0", "0.5", "1", "1.5", "2"], "finer ones are too many");
        assert_eq!(labels(Scale::log(0.5, 2e5, 0.0, 1.0)), ["1", "10", "100", "1k", "10k", "100k"]);
        assert_eq!(labels(Scale::log(8.0, 60.0, 0.0, 1.0)), ["10", "20", "50"]);
        let narrow = Scale::linear(0.91, 1.13, 0.0, 1.0);
        assert_eq!(labels(narrow), ["0.95", "1", "1.05", "1.1"]);
    }

    #[test]
    fn ticks_without_room_are_fewer_and_even() {
        let near = |scale: &Scale, least: f64| {
            let ticks = scale.ticks_apart(|ticks| {
                ticks.windows(2).all(|two| scale.at(two[1].0) - scale.at(two[0].0) >= least)
            });
            ticks.into_iter().map(|(_, label)| label).collect::<Vec<_>>()
        };
        let scale = Scale::linear(0.0, 0.99, 0.0, 100.0);
        assert_eq!(near(&scale, 30.0), ["0", "0.5"]);
        assert_eq!(near(&Scale::linear(0.0, 2.5, 0.0, 100.0), 20.0), ["0", "1", "2"]);
        assert_eq!(near(&scale, 400.0), ["0", "0.5"], "two at least");
        let log = Scale::log(1.0, 1e6, 0.0, 60.0);
        assert_eq!(near(&log, 15.0), ["1", "100", "10k", "1M"]);
        let narrow = Scale::log(1.0, 100.0, 0.0, 60.0);
        assert_eq!(near(&narrow, 25.0), ["1", "10", "100"]);
    }

    #[test]
    fn extreme_ranges_have_few_ticks() {
        let ends = [f64::NAN, f64::INFINITY, -f64::INFINITY, 0.0, 1e308, -1e308, 5e-324];
        for low in ends {
            for high in ends {
                let scales = [Scale::linear(low, high, 0.0, 1.0), Scale::log(low, high, 0.0, 1.0)];
                for scale in scales.into_iter().chain([Scale::from_zero(high, 0.0, 1.0)]) {
                    assert!(scale.ticks().len() <= 64, "{scale:?}");
                    assert!((0.0..=1.0).contains(&scale.at(3.0)), "{scale:?}");
                }
            }
        }
    }

    #[test]
    fn positions_are_kept_within_the_range() {
        let scale = Scale::log(1.0, 100.0, 50.0, 150.0);
        assert!((scale.at(10.0) - 100.0).abs() < 1e-9);
        assert!((scale.at(0.0) - 50.0).abs() < 1e-9);
        assert!((scale.at(1e9) - 150.0).abs() < 1e-9);
        assert!((Scale::linear(0.0, 1.0, 5.0, 9.0).at(f64::NAN) - 5.0).abs() < 1e-9);
    }
}
