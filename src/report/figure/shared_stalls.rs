//! Where scheduler slots go: each application alone and under each sharing scheme,
//! one stacked bar each (Warped-Slicer, Fig. 7c).

use super::prelude::*;
use super::stalls::{cause_entries, stack};
use crate::kernels::causes;

const ROW: f64 = 18.0;
const BAR: f64 = 13.0;
/// Room left of the bars, at least and at most: names take what they need.
const LEFT: f64 = 48.0;
const WIDEST: f64 = 200.0;
const RIGHT: f64 = 14.0;
/// Around a name.
const SPACE: f64 = 14.0;

/// One bar: what it stands for, and the share of each cause.
type Row = (String, BTreeMap<String, f64>);

pub(super) fn draw(input: &FigureInput<'_>) -> Drawn {
    let record = input.mix()?;
    let blocks = blocks(input, record);
    ensure(!blocks.is_empty(), "the co-runs hold no stall stacks")?;
    let stacks = blocks.iter().flat_map(|(_, rows)| rows.iter().map(|(_, stack)| stack));
    let causes = causes(stacks);
    let mut layout = input.layout("Where scheduler slots go, alone and together");
    layout.legend(&cause_entries(input, &causes));
    let names: Vec<&str> =
        blocks.iter().flat_map(|(_, rows)| rows.iter().map(|row| row.0.as_str())).collect();
    let left = layout.left_of(&names, NOTE, (LEFT, WIDEST), SPACE);
    let last = blocks.len() - 1;
    for (index, (app, rows)) in blocks.iter().enumerate() {
        layout.note(app);
        let places = places(rows, left);
        let area = layout.plot(left, RIGHT, places.last().map_or(0.0, |last| last.1) + 4.0);
        let scale = Scale::linear(0.0, 1.0, area.x, area.right());
        let title = if index == last { "share of scheduler slot-cycles" } else { "" };
        across(&mut layout.canvas, &area, &scale, title);
        for (row, (from, to)) in rows.iter().zip(places) {
            draw_row(&mut layout, row, &causes, &area, area.y + f64::midpoint(from, to));
        }
        outline(&mut layout.canvas, &area);
        layout.skip(if index == last { 38.0 } else { 6.0 + AXIS_HEIGHT });
    }
    Ok(layout.finish(&input.footer()).with_csv(table(&blocks)))
}

/// Where each row begins and ends below the top of a plot whose names have `left` of room: rows
/// are as tall as their names.
fn places(rows: &[Row], left: f64) -> Vec<(f64, f64)> {
    let mut end = 2.0;
    let place = |row: &Row| {
        let begin = end;
        end += ROW.max(lines_height(lines_of(&row.0, left - SPACE).len()) + 4.0);
        (begin, end)
    };
    rows.iter().map(place).collect()
}

fn draw_row(layout: &mut Layout, row: &Row, causes: &[(String, Fill)], area: &Area, y: f64) {
    write_left(&mut layout.canvas, lines_of(&row.0, area.x - SPACE), (area.x - 6.0, y));
    stack(layout, &row.1, causes, (area, y, BAR), |_, _, _| {});
}

/// The bars of each application: alone, then under each scheme that says.
fn blocks(input: &FigureInput<'_>, record: &Analysis) -> Vec<(String, Vec<Row>)> {
    let names = scheme_names(&record.coruns);
    let apps = record.coruns.iter().flat_map(|run| &run.apps).map(|app| app.app.as_str());
    let block = |app: &str| {
        let mut rows: Vec<Row> = alone(record, app).into_iter().collect();
        for (run, scheme) in record.coruns.iter().zip(&names) {
            let of_app = run.apps.iter().filter(|row| row.app == app);
            let reported = of_app.filter(|row| !row.stall_fractions.is_empty());
            rows.extend(reported.map(|row| (scheme.clone(), row.stall_fractions.clone())));
        }
        (app.to_string(), rows)
    };
    let shared = |rows: &[Row]| rows.iter().any(|(name, _)| name != ALONE);
    let mut apps = distinct(apps);
    apps.sort_by_key(|app| input.app_rank(app));
    apps.into_iter().map(block).filter(|(_, rows)| shared(rows)).collect()
}

/// What the solo run's bar is called.
const ALONE: &str = "alone";

/// The solo run's stack, the mean of its launches weighted by cycles.
fn alone(record: &Analysis, app: &str) -> Option<Row> {
    let solo = record.solo.iter().find(|solo| solo.app == app)?;
    let stack = groups(&[(record, solo)], 1).into_iter().next()?.sum.stall_fractions;
    (!stack.is_empty()).then(|| (ALONE.to_string(), stack))
}

fn table(blocks: &[(String, Vec<Row>)]) -> String {
    let mut lines = Vec::new();
    for (app, rows) in blocks {
        for (run, stack) in rows {
            lines.extend(stack.iter().map(|(cause, share)| row![app, run, cause, share]));
        }
    }
    csv("app,run,cause,share", lines)
}
