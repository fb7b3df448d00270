//! SMs of each application of a queue over time: one panel per scheme, members of a
//! group stacked as they lie on the SMs, in the fills of their classes. What is left
//! of a member's SMs once it has ended is white.

use super::prelude::*;
use super::queue_timeline::QueueTimeline;
use crate::queue::class_of;

const HEIGHT: f64 = 84.0;
/// Left of a panel, the title of its axis.
const TITLE: f64 = 12.0;
/// Groups narrower than this have no boundaries.
const NARROW: f64 = 3.0;
/// How far a part runs into the next.
const SEAM: f64 = 0.4;
/// Narrower parts have no line above them.
const STEP: f64 = 1.5;

pub(super) fn draw(input: &FigureInput<'_>) -> Drawn {
    let timeline = QueueTimeline::new(input)?;
    let groups = timeline.runs.iter().flat_map(|(_, run)| &run.groups);
    let shares = groups.flat_map(|group| &group.shares);
    let Some(most) = shares.flat_map(|share| &share.sms).max().filter(|most| **most > 0) else {
        return Err("no group of the queue says how SMs were divided".into());
    };
    let sms = timeline.record.machine.sms.max(*most);
    let mut layout = timeline.layout("SMs of each application");
    layout.skip(4.0);
    timeline.panels(&mut layout, HEIGHT, |layout, run, area, time| {
        let level = Scale::linear(0.0, float(sms), area.bottom(), area.y);
        for (value, y) in [(0, area.bottom() - NOTE / 2.0), (sms, area.y + NOTE / 2.0)] {
            layout.canvas.write(value.to_string(), (area.x - 5.0, y), NOTE, Anchor::Right);
        }
        let at = (area.x - TITLE, area.y + area.height / 2.0);
        layout.canvas.text(Label::new("SMs", at, NOTE, Anchor::Centre).upwards());
        let mut bar_row = BarRow::default();
        for group in &run.groups {
            draw_group(layout, &timeline, run, group, &mut bar_row, (time, &level));
        }
    });
    layout.note("Upwards: SMs on which the plan lets a member start CTAs, in part where they are shared; white: it has ended. Thick lines: a group begins.");
    Ok(layout.finish(&input.footer()).with_csv(table(&timeline)))
}

/// One stretch of time with the same shares.
struct Stretch {
    from: u64,
    to: u64,
}

/// The stretches of a group, one for each of its shares.
fn stretches(group: &GroupRecord) -> Vec<Stretch> {
    let start = |place: usize| {
        let since = group.shares.get(place).map(|share| share.since_begin_cycles);
        since.map_or(group.end_cycle, |since| {
            group.start_cycle.saturating_add(since).min(group.end_cycle)
        })
    };
    (0..group.shares.len()).map(|p| Stretch { from: start(p), to: start(p + 1) }).collect()
}

fn draw_group(
    layout: &mut Layout,
    timeline: &QueueTimeline<'_>,
    run: &QueueRun,
    group: &GroupRecord,
    bar_row: &mut BarRow,
    (time, level): (&Scale, &Scale),
) {
    let members: Vec<&JobRecord> = group.members(run).collect();
    let parts = parts(&members, group, bar_row, (time, level));
    for (place, job) in members.iter().enumerate() {
        let own = parts.iter().filter(|(of, part)| *of == place && part.until > part.from);
        let filled: Vec<Area> = own.map(|(_, part)| part.area(part.from, part.until)).collect();
        layout.canvas.shape(&filled, timeline.fill(job));
    }
    parts.iter().for_each(|(_, part)| part.finish(layout));
    let (from, to) = (time.at(float(group.start_cycle)), time.at(float(group.end_cycle)));
    if to - from >= NARROW {
        let (top, bottom) = (level.at(level.high()), level.at(0.0));
        layout.canvas.line(vec![(from, top), (from, bottom)], SOFT_INK, 1.2);
    }
}

/// The SMs of each member of a group over each stretch, behind the member's place.
fn parts(
    members: &[&JobRecord],
    group: &GroupRecord,
    bar_row: &mut BarRow,
    (time, level): (&Scale, &Scale),
) -> Vec<(usize, Part)> {
    let mut parts = Vec::new();
    for (share, stretch) in group.shares.iter().zip(stretches(group)) {
        if stretch.from == stretch.to {
            continue;
        }
        let ends = (time.at(float(stretch.from)), time.at(float(stretch.to)));
        let Some((from, to)) = bar_row.add(ends.0, ends.1) else { continue };
        let mut below = 0.0;
        // SMs that members share count for each of them in part.
        let sum: f64 = share.sms.iter().map(|&sms| float(sms)).sum();
        let part = if sum > level.high() { level.high() / sum } else { 1.0 };
        let sized = members.iter().zip(&share.sms).enumerate();
        for (place, (job, &sms)) in sized.filter(|(_, (_, sms))| **sms > 0) {
            let above = below + float(sms) * part;
            let (top, bottom) = (level.at(above), level.at(below));
            let until = time.at(float(job.end_cycle)).clamp(from, to);
            // Neighbours overlap by a hair: no seam shows between them.
            let beyond = (to + SEAM).min(time.at(time.high()));
            let until = if until < to { until } else { beyond };
            parts.push((place, Part { from, until, to, top, bottom }));
            below = above;
        }
    }
    parts
}

/// One member's SMs over a stretch: filled until it ends, white behind.
struct Part {
    from: f64,
    until: f64,
    to: f64,
    top: f64,
    bottom: f64,
}

impl Part {
    fn area(&self, left: f64, right: f64) -> Area {
        Area::new(left, self.top, right - left, self.bottom - self.top)
    }

    /// Draws what is white, and the line above.
    fn finish(&self, layout: &mut Layout) {
        let &Self { from, until, to, top, .. } = self;
        if until < to {
            layout.canvas.fill(self.area(until, to), Fill::plain(PAPER));
        }
        if to - from >= STEP {
            layout.canvas.line(vec![(from, top), (to, top)], INK, 0.5);
        }
    }
}

fn table(timeline: &QueueTimeline<'_>) -> String {
    let mut lines = Vec::new();
    for (scheme, run) in &timeline.runs {
        for (number, group) in run.groups.iter().enumerate() {
            for (share, stretch) in group.shares.iter().zip(stretches(group)) {
                lines.extend(group.members(run).zip(&share.sms).map(|(job, sms)| {
                    let class = class_of(timeline.record, job);
                    let Stretch { from, to } = stretch;
                    row![scheme, number + 1, job.app, class, from, to, sms, share.reason]
                }));
            }
        }
    }
    csv("scheme,group,app,class,start_cycle,end_cycle,sms,reason", lines)
}
