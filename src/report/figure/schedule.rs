//! Who of a queue ran together: one panel per scheme, one lane per place in the
//! group, a bar per application in the fill of its class.

use super::stage::Stage;
use super::{Drawing, ReportError, Scene};
use crate::record::QueueRun;
use crate::report::chart::{
    Anchor, Area, Fill, Label, Lane, NOTE, PAPER, SOFT_INK, Scale, Sheet, fit, text_width,
};
use crate::report::number::float;
use crate::report::queue::{class_of, job_name};
use crate::report::values::csv;
use crate::units::to_u64;

const LANE: f64 = 20.0;
const BAR: f64 = 16.0;
/// Lanes of a panel at most.
const LANES: usize = 16;
/// Characters of a shortened name at least.
const TOLD: usize = 5;
/// Group boundaries nearer to each other are one.
const NEAR: f64 = 3.0;

pub(super) fn draw(scene: &Scene<'_>) -> Result<Drawing, ReportError> {
    let stage = Stage::new(scene, "schedule")?;
    let members = stage.runs.iter().flat_map(|(_, run)| &run.groups).map(|group| group.jobs.len());
    let lanes = members.max().unwrap_or(1).clamp(1, LANES);
    let mut sheet = stage.sheet("Schedule");
    let height = LANE * float(to_u64(lanes)) + 4.0;
    stage.panels(&mut sheet, height, |sheet, run, area, time| {
        boundaries(sheet, run, area, time);
        for lane in 0..lanes {
            let top = area.y + 4.0 + LANE * float(to_u64(lane));
            let at = (area.x - 6.0, top + BAR / 2.0);
            let number = (lane + 1).to_string();
            sheet.canvas.text(Label::new(number, at, NOTE, Anchor::Right).coloured(SOFT_INK));
            bars(sheet, &stage, run, lane, (top, time));
        }
    });
    sheet.note("Lanes are places in the group; thin lines: a group begins.");
    Ok(sheet.finish(&scene.footer()).with_csv(table(&stage)))
}

/// A thin line where a group begins.
fn boundaries(sheet: &mut Sheet, run: &QueueRun, area: &Area, time: &Scale) {
    let mut last = f64::MIN;
    for group in &run.groups {
        let x = time.at(float(group.start_cycle));
        if x - last >= NEAR {
            sheet.canvas.line(vec![(x, area.y), (x, area.bottom())], SOFT_INK, 0.6);
            last = x;
        }
    }
}

/// The jobs at one place of every group.
fn bars(
    sheet: &mut Sheet,
    stage: &Stage<'_>,
    run: &QueueRun,
    place: usize,
    (top, time): (f64, &Scale),
) {
    let mut lane = Lane::default();
    for group in &run.groups {
        let Some(job) = group.members(run).nth(place) else { continue };
        let ends = (time.at(float(job.start_cycle)), time.at(float(job.end_cycle)));
        let Some((from, to)) = lane.add(ends.0, ends.1) else { continue };
        let bar = Area::new(from, top, to - from, BAR);
        sheet.canvas.bar(bar, stage.fill(job));
        let name = fit(job_name(job), NOTE, bar.width - 4.0);
        let width = text_width(&name, NOTE);
        let told = name == job_name(job) || name.chars().count() >= TOLD;
        if told && width + 2.0 < bar.width {
            let centre = (bar.x + bar.width / 2.0, bar.y + BAR / 2.0);
            let patch = Area::new(centre.0 - width / 2.0 - 1.0, bar.y + 2.0, width + 2.0, 12.0);
            sheet.canvas.fill(patch, Fill::plain(PAPER));
            sheet.canvas.text(Label::new(name, centre, NOTE, Anchor::Centre));
        }
    }
}

fn table(stage: &Stage<'_>) -> String {
    let mut lines = Vec::new();
    for (scheme, run) in &stage.runs {
        for (number, group) in run.groups.iter().enumerate() {
            lines.extend(group.members(run).enumerate().map(|(place, job)| {
                [
                    scheme.clone(),
                    (number + 1).to_string(),
                    (place + 1).to_string(),
                    job.app.clone(),
                    class_of(stage.record, job).unwrap_or_default().to_string(),
                    job.start_cycle.to_string(),
                    job.end_cycle.to_string(),
                    group.end_cycle.to_string(),
                ]
            }));
        }
    }
    let header =
        ["scheme", "group", "place", "app", "class", "start_cycle", "end_cycle", "group_end_cycle"];
    csv(header, lines)
}
