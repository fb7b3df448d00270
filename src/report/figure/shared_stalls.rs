//! Where scheduler slots go: each application alone and under each sharing scheme,
//! one stacked bar each (Warped-Slicer, Fig. 7c).

use std::collections::BTreeMap;

use super::{Drawing, FigureInput, ReportError, empty};
use crate::cause::{ROUNDING, causes, shares};
use crate::chart::{
    Anchor, Area, Entry, Fill, Label, NOTE, Scale, Sheet, Swatch, across, fit, name_room, outline,
};
use crate::group::groups;
use crate::mix::scheme_names;
use crate::number::float;
use crate::results::Analysis;
use crate::values::{cell, csv};
use gpumodel_core::units::to_u64;

const ROW: f64 = 18.0;
const BAR: f64 = 13.0;
/// Room left of the bars, at least and at most: names take what they need.
const LEFT: f64 = 124.0;
const WIDEST: f64 = 200.0;
const RIGHT: f64 = 14.0;

/// One bar: what it stands for, and the share of each cause.
type Row = (String, BTreeMap<String, f64>);

pub(super) fn draw(input: &FigureInput<'_>) -> Result<Drawing, ReportError> {
    let record = input.mix("shared-stalls")?;
    let blocks = blocks(record);
    if blocks.is_empty() {
        return Err(empty("shared-stalls", "the co-runs hold no stall stacks"));
    }
    let stacks = blocks.iter().flat_map(|(_, rows)| rows.iter().map(|(_, stack)| stack));
    let causes = causes(stacks);
    let mut sheet = input.sheet("Where scheduler slots go, alone and together");
    let entry =
        |(name, fill): &(String, Fill)| Entry::new(Swatch::Fill(*fill), name.replace('_', " "));
    sheet.legend(&causes.iter().map(entry).collect::<Vec<_>>());
    let names: Vec<&str> =
        blocks.iter().flat_map(|(_, rows)| rows.iter().map(|row| row.0.as_str())).collect();
    let left = name_room(&names, NOTE, sheet.share(WIDEST) - 14.0).max(LEFT - 14.0) + 14.0;
    let last = blocks.len() - 1;
    for (index, (app, rows)) in blocks.iter().enumerate() {
        sheet.note(app);
        let area = sheet.plot(left, RIGHT, ROW * float(to_u64(rows.len())) + 4.0);
        let scale = Scale::linear(0.0, 1.0, area.x, area.right());
        if index == last {
            across(&mut sheet.canvas, &area, &scale, "share of scheduler slot-cycles");
        }
        for (place, row) in rows.iter().enumerate() {
            draw_row(&mut sheet, row, &causes, &area, place);
        }
        outline(&mut sheet.canvas, &area);
        sheet.skip(if index == last { 38.0 } else { 8.0 });
    }
    Ok(sheet.finish(&input.footer()).with_csv(table(&blocks)))
}

fn draw_row(sheet: &mut Sheet, row: &Row, causes: &[(String, Fill)], area: &Area, place: usize) {
    let y = area.y + 2.0 + ROW * (float(to_u64(place)) + 0.5);
    let name = fit(&row.0, NOTE, area.x - 14.0);
    sheet.canvas.text(Label::new(name, (area.x - 6.0, y), NOTE, Anchor::Right));
    let mut x = area.x;
    for (share, (_, fill)) in shares(&row.1, causes).into_iter().zip(causes) {
        let part = Area::new(x, y - BAR / 2.0, share * area.width, BAR);
        x = part.right();
        if share > ROUNDING {
            sheet.canvas.bar(part, *fill);
        }
    }
}

/// The bars of each application: alone, then under each scheme that says.
fn blocks(record: &Analysis) -> Vec<(String, Vec<Row>)> {
    let names = scheme_names(&record.coruns);
    let mut apps: Vec<&str> = Vec::new();
    for app in record.coruns.iter().flat_map(|run| &run.apps) {
        if !apps.contains(&app.app.as_str()) {
            apps.push(&app.app);
        }
    }
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
    apps.into_iter().map(block).filter(|(_, rows)| shared(rows)).collect()
}

/// What the solo run's bar is called.
const ALONE: &str = "alone";

/// The solo run's stack, the mean of its launches weighted by cycles.
fn alone(record: &Analysis, app: &str) -> Option<Row> {
    let solo = record.solo.iter().find(|solo| solo.app == app)?;
    let stack = groups(&[(record, solo)], 1).into_iter().next()?.stalls;
    (!stack.is_empty()).then(|| (ALONE.to_string(), stack))
}

fn table(blocks: &[(String, Vec<Row>)]) -> String {
    let mut lines = Vec::new();
    for (app, rows) in blocks {
        for (run, stack) in rows {
            let line = |(cause, share): (&String, &f64)| {
                [app.clone(), run.clone(), cause.clone(), cell(Some(*share))]
            };
            lines.extend(stack.iter().map(line));
        }
    }
    csv(["app", "run", "cause", "share"], lines)
}
