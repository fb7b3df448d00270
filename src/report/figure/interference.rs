//! How much longer applications of a class take next to those of another: a map of
//! shaded cells, next to it the same as published (ILP-SMRA, Fig. 2).

use super::prelude::*;
use crate::results::InterferenceRecord;
use crate::table::{published, range};

/// Most room of the names of rows.
const NAMES: f64 = 110.0;
/// Room of the words along the left edge.
const SIDE: f64 = 24.0;
const RIGHT: f64 = 10.0;
/// Between two maps.
const GAP: f64 = 16.0;
/// Height of a cell at least and at most.
const CELL: (f64, f64) = (11.0, 34.0);
/// Widest cell of two maps side by side.
const CELL_WIDTH: f64 = 90.0;
/// Classes up to which two maps stand side by side.
const SIDE_BY_SIDE: usize = 5;
/// A value of a cell and how it is written.
type Value = Option<(f64, String)>;

/// One map: what is above it, and its cells by the class that disturbs, then the one that suffers.
struct Map {
    title: &'static str,
    cells: Vec<Vec<Value>>,
}

pub(super) fn draw(input: &FigureInput<'_>) -> Drawn {
    let all: Vec<&InterferenceRecord> =
        input.records.iter().flat_map(|record| &record.interference).collect();
    let Some(known) = all.iter().find(|known| !known.classes.is_empty()) else {
        let none = input.records.iter().all(|record| record.queues.is_empty());
        let missing = if none { NO_QUEUE } else { "no scheme of the records asked for classes" };
        return Err(missing.into());
    };
    let maps = maps(known);
    let values = maps.iter().flat_map(|map| map.cells.iter().flatten().flatten());
    let values = values.map(|value| value.0).filter(|value| value.is_finite());
    let (low, high) = values.fold((1.0_f64, 1.0_f64), |(l, h), v| (l.min(v), h.max(v)));
    let shades = Shades::new(low, high);
    let classes: Vec<&str> = known.classes.iter().map(|class| input.shown(class)).collect();
    let mut layout = input.layout("Slowdown of classes that share a GPU");
    if classes.len() <= SIDE_BY_SIDE && !layout.narrow() {
        side_by_side(&mut layout, &classes, &maps, &shades);
    } else {
        for map in &maps {
            let left = left(&classes, SIDE);
            let (top, right) = (layout.top(), layout.width() - RIGHT);
            let bottom = draw_map(&mut layout, &classes, map, &shades, (left, top, right));
            layout.skip(bottom - top + GAP);
        }
    }
    explain(&mut layout, &shades, (low, high), "slowdown");
    let schemes = known.schemes.join(", ");
    layout.note(&format!("Times as long as alone on as many SMs, as {schemes} took it."));
    layout.left_out(all.len() - 1, "matrices are in the records");
    Ok(layout.finish(&input.footer()).with_csv(table(known)))
}

fn maps(known: &InterferenceRecord) -> Vec<Map> {
    let found = known.slowdown.iter().map(|row| {
        row.iter().map(|value| Some((*value, format!("{value:.2}")))).collect::<Vec<Value>>()
    });
    let title = if known.pairs.is_empty() { "as given" } else { "as found" };
    let mut maps = vec![Map { title, cells: found.collect() }];
    let row = |disturbs: &String| {
        let value = |suffers: &String| {
            let printed = published(known, disturbs, suffers)?;
            Some((f64::midpoint(printed.low, printed.high), range(printed)))
        };
        known.classes.iter().map(value).collect()
    };
    if !known.published.is_empty() {
        let cells = known.classes.iter().map(row).collect();
        maps.push(Map { title: "as published", cells });
    }
    maps
}

/// Where cells begin, behind the names of rows.
fn left(classes: &[&str], side: f64) -> f64 {
    let widths = classes.iter().map(|class| text_width(class, NOTE));
    side + widths.fold(12.0, f64::max).min(NAMES) + 6.0
}

fn side_by_side(layout: &mut Layout, classes: &[&str], maps: &[Map], shades: &Shades) {
    let (first, names) = (left(classes, SIDE), left(classes, 0.0));
    let count = float(maps.len());
    let room = layout.width() - first - RIGHT - (count - 1.0) * (names + GAP);
    let width = (room / count).min(CELL_WIDTH * float(classes.len()));
    let (mut x, top, mut bottom) = (first, layout.top(), 0.0_f64);
    for map in maps {
        bottom = bottom.max(draw_map(layout, classes, map, shades, (x, top, x + width)));
        x += width + names + GAP;
    }
    layout.skip(bottom - top + 8.0);
}

/// Draws one map between `left` and `right` from `top` on; returns where it ends.
fn draw_map(
    layout: &mut Layout,
    classes: &[&str],
    map: &Map,
    shades: &Shades,
    (left, top, right): (f64, f64, f64),
) -> f64 {
    let width = (right - left) / float(classes.len());
    let height = width.clamp(CELL.0, CELL.1);
    let middle = f64::midpoint(left, right);
    let title = fit(&format!("suffers ({})", map.title), LABEL, right - left + 30.0);
    layout.canvas.write(title, (middle, top + 7.0), LABEL, Anchor::Centre);
    let head = heads(layout, classes, (left, top + 18.0), width, NAMES);
    let area = Area::new(left, head, right - left, height * float(classes.len()));
    layout.mark_plot(area);
    for (row, (class, values)) in classes.iter().zip(&map.cells).enumerate() {
        let y = head + height * float(row);
        let name = fit(class, NOTE, NAMES);
        layout.canvas.write(name, (left - 5.0, y + height / 2.0), NOTE, Anchor::Right);
        for (column, value) in values.iter().enumerate() {
            let x = left + width * float(column);
            shaded(layout, &Area::new(x, y, width, height), value.as_ref(), shades);
        }
    }
    if left - SIDE < NAMES + 10.0 {
        let at = (12.0, area.y + area.height / 2.0);
        let word = fit("disturbs", LABEL, area.height.max(LABEL));
        layout.canvas.text(Label::new(word, at, LABEL, Anchor::Centre).upwards());
    }
    area.bottom()
}

fn table(known: &InterferenceRecord) -> String {
    let mut lines = Vec::new();
    for (disturbs, row) in known.classes.iter().zip(&known.slowdown) {
        for (suffers, value) in known.classes.iter().zip(row) {
            let printed = published(known, disturbs, suffers);
            let (low, high) = (printed.map(|one| one.low), printed.map(|one| one.high));
            lines.push(row![disturbs, suffers, value, low, high]);
        }
    }
    csv("disturbs,suffers,slowdown,published_low,published_high", lines)
}
