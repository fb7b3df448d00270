//! Cycles of records against a reference: one mark per row, the diagonal of
//! agreement and the band of 20 % error around it.

use super::prelude::*;
use crate::results::{ComparedRow, Comparison, Pair, Quantity};

/// Half the width of the band, as a share.
const BAND: f64 = 0.2;
const LABELS: usize = 10;
const LEFT: f64 = 62.0;
const SIDE: f64 = 330.0;

pub(super) fn draw(input: &FigureInput<'_>) -> Drawn {
    let comparison =
        input.comparison.ok_or("needs a reference table; give one with --reference FILE.csv")?;
    let points = points(comparison);
    let missing = "no row of the reference table is about the machine and application of a record with cycles or times above zero";
    ensure(!points.is_empty(), missing)?;
    let machines: BTreeSet<&str> = points.iter().map(|(row, _)| row.machine.as_str()).collect();
    let machines: Vec<&str> = machines.into_iter().collect();
    let (head, what) = words(comparison);
    let mut layout = input.layout(&format!("{head} against the reference"));
    layout.note(&caption(comparison, &points));
    layout.skip(3.0);
    layout.legend(&entries(&machines));
    let area = layout.plot(LEFT, 14.0, layout.chosen(layout.share(SIDE)));
    let (x, y) = scales(&area, &points);
    band(&mut layout, &x, &y);
    let title = format!("reference: {what} ({})", comparison.reference);
    across(&mut layout.canvas, &area, &x, &title);
    down(&mut layout.canvas, &area, &y, &format!("gpumodel: {what}"), 12.0);
    let ends = ((x.at(x.low()), y.at(x.low())), (x.at(x.high()), y.at(x.high())));
    layout.canvas.line(vec![ends.0, ends.1], INK, 1.0);
    let mut free = Placement::new(area);
    free.take_line(ends.0, ends.1);
    marks(&mut layout, &points, &machines, &x, &y, &mut free);
    outline(&mut layout.canvas, &area);
    layout.skip(36.0);
    Ok(layout.finish(&input.footer()))
}

/// What is drawn, as the title and the axes say it.
fn words(comparison: &Comparison) -> (&'static str, &'static str) {
    match (comparison.speed(), comparison.profile) {
        (Quantity::Duration, _) => ("Times", "nanoseconds"),
        (_, true) => ("Cycles", "cycles"),
        (_, false) => ("Cycles", "cycles beyond launch"),
    }
}

/// The rows with cycles, or times, above zero on both sides.
fn points(comparison: &Comparison) -> Vec<(&ComparedRow, Pair)> {
    let speed = comparison.speed();
    let cycles = |row: &ComparedRow| row.pairs.get(&speed).copied();
    let rows = comparison.rows.iter().filter_map(|row| cycles(row).map(|pair| (row, pair)));
    rows.filter(|(_, pair)| pair.model > 0.0 && pair.reference > 0.0).collect()
}

fn caption(comparison: &Comparison, points: &[(&ComparedRow, Pair)]) -> String {
    let inside = points.iter().filter(|(_, pair)| size(pair) <= BAND * 100.0).count();
    let of = comparison.coverage.reference_rows;
    let mut text = format!("{} of {of} reference rows; {inside} within ±20 %", points.len());
    let speed = comparison.speed();
    let cycles = |s: &&crate::results::Summary| s.quantity == speed;
    if let Some(summary) = comparison.summary.iter().find(cycles) {
        text += &format!(
            "; mean absolute error {:.1} %, median {:.1} %",
            summary.mean_absolute, summary.median_absolute
        );
        if let Some(r) = summary.correlation {
            text += &format!("; r of logarithms {r:.4}");
        }
    }
    text + "."
}

fn entries(machines: &[&str]) -> Vec<Entry> {
    let mut entries = vec![
        Entry::new(Swatch::Line(INK), "equal"),
        Entry::new(Swatch::Fill(Fill::plain(REST)), "±20 %"),
    ];
    let machines = machines.iter().enumerate();
    entries.extend(machines.map(|(i, machine)| Entry::new(Swatch::Point(i), *machine)));
    entries
}

/// The same range on both axes, so that the diagonal is equality.
fn scales(area: &Area, points: &[(&ComparedRow, Pair)]) -> (Scale, Scale) {
    let values = points.iter().flat_map(|(_, pair)| [pair.model, pair.reference]);
    let (low, high) = values.fold((f64::MAX, 0.0_f64), |(l, h), v| (l.min(v), h.max(v)));
    let (low, high) = (low / 1.6, high * 1.6);
    (Scale::log(low, high, area.x, area.right()), Scale::log(low, high, area.bottom(), area.y))
}

fn band(layout: &mut Layout, x: &Scale, y: &Scale) {
    let (low, high) = (x.low(), x.high());
    let corner = |reference: f64, model: f64| (x.at(reference), y.at(model));
    let (more, less) = (1.0 + BAND, 1.0 - BAND);
    let points = vec![
        corner(low, low),
        corner(low, low * more),
        corner(high / more, high),
        corner(high, high),
        corner(high, high * less),
        corner(low / less, low),
    ];
    layout.canvas.polygon(points, REST, 0.45);
}

fn size(pair: &Pair) -> f64 {
    pair.error.map_or(0.0, f64::abs)
}

fn marks(
    layout: &mut Layout,
    points: &[(&ComparedRow, Pair)],
    machines: &[&str],
    x: &Scale,
    y: &Scale,
    free: &mut Placement,
) {
    for (row, pair) in points {
        let at = (x.at(pair.reference), y.at(pair.model));
        let index = machines.iter().position(|name| *name == row.machine).unwrap_or(0);
        layout.canvas.point(at, index);
        free.take_point(at, 4.5);
    }
    let mut outliers: Vec<_> = points.iter().filter(|(_, p)| size(p) > BAND * 100.0).collect();
    outliers.sort_by(|a, b| ratio(&b.1).total_cmp(&ratio(&a.1)));
    let named = outliers.len().min(LABELS);
    for (row, pair) in &outliers[..named] {
        let at = (x.at(pair.reference), y.at(pair.model));
        let error = format!("{:+.0} %", pair.error.unwrap_or(0.0)).replace('-', "−");
        let text = format!("{} {error}", fit(last_component(&row.label()), NOTE, 130.0));
        if let Some(place) = free.next_to(&text, NOTE, at) {
            let label = Label::new(text, place, NOTE, Anchor::Left);
            layout.canvas.leader(&label.area(), at);
            layout.canvas.text(label);
        }
    }
    let left = outliers.len() - named;
    if left > 0 {
        let text = format!("{left} more outside the band");
        let at = (x.at(x.high()) - 6.0, y.at(y.low()) - 10.0);
        layout.canvas.text(Label::new(text, at, NOTE, Anchor::Right).coloured(SOFT_INK));
    }
}

/// How many times one side is the other, above 1, as a logarithm.
fn ratio(pair: &Pair) -> f64 {
    (pair.model / pair.reference).ln().abs()
}
