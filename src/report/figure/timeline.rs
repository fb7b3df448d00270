//! One solo run over time: kernels by stream above, activity below.

use gpumodel_core::units::SECTOR_BYTES;

use super::input::{ONE, listed};
use super::prelude::*;
use crate::results::Interval;

const LEFT: f64 = 62.0;
const RIGHT: f64 = 14.0;
const LANES: usize = 12;
const LANE: f64 = 27.0;
const BAR: f64 = 13.0;
/// From the top of a bar up to the middle of the name above it.
const ABOVE: f64 = 6.5;
const COLOURED: usize = 7;
/// These and the rest differ without colour.
const _: () = assert!(COLOURED < HATCHED);
const STEPS: u64 = 400;

pub(super) fn draw(input: &FigureInput<'_>) -> Drawn {
    let &[(_, app)] = &input.apps[..] else {
        return Err(choose(&input.apps).into());
    };
    let end = app.kernels.iter().map(|kernel| kernel.end_cycle).max().unwrap_or(0);
    if end == 0 {
        return Err("the record holds no kernel that took time".into());
    }
    let mut layout = input.layout(&format!("{} over time", app.app));
    let fills = fills(app, |kernel| input.kernel_rank(0, kernel));
    legend(&mut layout, app, &fills);
    let bar_rows = bar_rows(app);
    let area = layout.plot(LEFT, RIGHT, 2.0 + LANE * float(bar_rows.len()));
    let time = Scale::linear(0.0, float(end), area.x, area.right());
    // Of a memory-only trace no time is modelled, so no rate is.
    let rates = !app.timeline.is_empty() && !app.memory_only;
    let axis = if rates { "" } else { "cycle" };
    across(&mut layout.canvas, &area, &time, axis);
    gantt(&mut layout, app, &area, &time, &bar_rows, &fills);
    outline(&mut layout.canvas, &area);
    layout.skip(if rates { 26.0 } else { 36.0 });
    if rates {
        activity(&mut layout, input, app, end);
    }
    Ok(layout.finish(&input.footer()))
}

/// What there is to choose from where not one run alone is left, and how.
fn choose(runs: &[(&Analysis, &AppRecord)]) -> String {
    let apps: BTreeSet<&str> = runs.iter().map(|(_, app)| app.app.as_str()).collect();
    let names = apps.iter().copied().collect::<Vec<_>>().join(", ");
    match apps.len() {
        0 => format!("the records hold no application alone; {NO_SOLO}"),
        1 => {
            let records: Vec<&Analysis> = runs.iter().map(|(record, _)| *record).collect();
            let words = machine_words(&records).into_iter();
            let reported: Vec<String> = words.map(|words| format!("{names}{words}")).collect();
            let reported = listed(&reported, &records);
            format!("shows one run, the records hold {} of {names}: {reported}; {ONE}", runs.len())
        }
        count => format!(
            "shows one application, the records hold {count}; choose with --app NAME: {names}"
        ),
    }
}

/// The fill of every kernel name: those with the least `rank`, then the longest-running ones
/// have their own.
fn fills(app: &AppRecord, rank: impl Fn(&str) -> usize) -> BTreeMap<&str, Fill> {
    let mut cycles: BTreeMap<&str, u64> = BTreeMap::new();
    for kernel in &app.kernels {
        let sum = cycles.entry(&kernel.name).or_default();
        *sum = sum.saturating_add(kernel.cycles);
    }
    let mut names: Vec<(&str, u64)> = cycles.into_iter().collect();
    names.sort_by_key(|&(name, cycles)| (rank(name), std::cmp::Reverse(cycles)));
    let fill = |i: usize| if i < COLOURED { Fill::of(i) } else { rest() };
    names.into_iter().enumerate().map(|(i, (name, _))| (name, fill(i))).collect()
}

/// The fill of kernels without one of their own.
fn rest() -> Fill {
    Fill::of(COLOURED).over(REST)
}

fn legend(layout: &mut Layout, app: &AppRecord, fills: &BTreeMap<&str, Fill>) {
    let mut entries = Vec::new();
    for index in 0..COLOURED {
        let name = fills.iter().find(|(_, fill)| **fill == Fill::of(index)).map(|(name, _)| name);
        if let Some(name) = name {
            let count = app.kernels.iter().filter(|kernel| kernel.name == **name).count();
            let times = if count > 1 { format!(" ×{count}") } else { String::new() };
            let entry = Entry::new(Swatch::Fill(Fill::of(index)), plain_name(name));
            entries.push(entry.with(times));
        }
    }
    if fills.len() > COLOURED {
        let words = format!("other ({} kernels)", fills.len() - COLOURED);
        entries.push(Entry::new(Swatch::Fill(rest()), words));
    }
    layout.legend(&entries);
}

/// The stream of every lane; streams beyond the last lane share it.
fn bar_rows(app: &AppRecord) -> Vec<u64> {
    let streams: BTreeSet<u64> = app.kernels.iter().map(|kernel| kernel.stream).collect();
    streams.into_iter().take(LANES).collect()
}

fn gantt(
    layout: &mut Layout,
    app: &AppRecord,
    area: &Area,
    time: &Scale,
    bar_rows: &[u64],
    fills: &BTreeMap<&str, Fill>,
) {
    let mut rows = vec![BarRow::default(); bar_rows.len()];
    for kernel in &app.kernels {
        let bar_row = bar_rows.iter().position(|stream| *stream == kernel.stream);
        let bar_row = bar_row.unwrap_or(bar_rows.len() - 1);
        let ends = (time.at(float(kernel.start_cycle)), time.at(float(kernel.end_cycle)));
        let Some((from, to)) = rows[bar_row].add(ends.0, ends.1) else { continue };
        let y = area.y + LANE * float(bar_row + 1) - BAR;
        let bar = Area::new(from, y, to - from, BAR);
        layout.canvas.bar(bar, fills[kernel.name.as_str()]);
        let name = plain_name(&kernel.name);
        if text_width(&name, NOTE) + 2.0 < bar.width {
            let at = (bar.x + bar.width / 2.0, bar.y - ABOVE);
            layout.canvas.text_before(Label::new(name, at, NOTE, Anchor::Centre));
        }
    }
    let streams: BTreeSet<u64> = app.kernels.iter().map(|kernel| kernel.stream).collect();
    for (row, stream) in bar_rows.iter().enumerate() {
        let shared = row + 1 == bar_rows.len() && streams.len() > bar_rows.len();
        let long = format!("stream {stream}");
        let fits = text_width(&long, NOTE) <= LEFT - 8.0;
        let name = match (shared, fits) {
            (true, _) => "others".into(),
            (false, true) => long,
            (false, false) => stream.to_string(),
        };
        let y = area.y + LANE * float(row + 1) - BAR / 2.0;
        let name = fit(&name, NOTE, LEFT - 8.0);
        layout.canvas.write(name, (LEFT - 5.0, y), NOTE, Anchor::Right);
    }
}

/// Two curves over the same time: instructions per cycle and DRAM bandwidth.
fn activity(layout: &mut Layout, input: &FigureInput<'_>, app: &AppRecord, end: u64) {
    let ghz = input.machine().map_or(0.0, |machine| machine.core_mhz / 1000.0);
    let (unit, factor) = if ghz > 0.0 { ("DRAM GB/s", ghz) } else { ("DRAM B/cycle", 1.0) };
    let bytes = float(SECTOR_BYTES) * factor;
    let instructions = resampled(&app.timeline, end, |i| float(i.warp_instructions));
    let sectors = resampled(&app.timeline, end, |i| float(i.dram_sectors) * bytes);
    curve(layout, &instructions, end, "warp IPC", "", Fill::of(0).colour);
    layout.skip(6.0 + AXIS_HEIGHT);
    curve(layout, &sectors, end, unit, "cycle", Fill::of(5).colour);
    layout.skip(36.0);
}

fn curve(layout: &mut Layout, values: &[f64], end: u64, title: &str, axis: &str, colour: Colour) {
    let area = layout.plot(LEFT, RIGHT, layout.chosen(84.0));
    let most = values.iter().copied().fold(0.0, f64::max);
    let time = Scale::linear(0.0, float(end), area.x, area.right());
    let level = Scale::from_zero(most, area.bottom(), area.y);
    across(&mut layout.canvas, &area, &time, axis);
    down(&mut layout.canvas, &area, &level, title, 12.0);
    let step = area.width / float(values.len());
    let mut points = vec![(area.x, area.bottom())];
    let mut x = area.x;
    for value in values {
        points.extend([(x, level.at(*value)), (x + step, level.at(*value))]);
        x += step;
    }
    points.push((area.right(), area.bottom()));
    layout.canvas.polygon(points.clone(), colour, 0.3);
    layout.canvas.line(points, colour, 1.0);
    outline(&mut layout.canvas, &area);
}

/// What `of` counts, per cycle, in equal steps from 0 to `end`.
fn resampled(timeline: &[Interval], end: u64, of: impl Fn(&Interval) -> f64) -> Vec<f64> {
    let steps = STEPS.min(end);
    let width = float(end) / float(steps);
    let mut sums = vec![0.0; gpumodel_core::units::to_usize(steps)];
    for interval in timeline {
        let (from, to) = (float(interval.start_cycle), float(interval.end_cycle.min(end)));
        let length = float(interval.end_cycle - interval.start_cycle);
        if length <= 0.0 || to <= from {
            continue;
        }
        let rate = of(interval) / length;
        let mut at = from;
        while at < to {
            let step = whole(at / width).min(sums.len() - 1);
            let next = (float(step) + 1.0) * width;
            let until = if step + 1 == sums.len() { to } else { next.min(to) };
            sums[step] += rate * (until - at).max(0.0) / width;
            at = if until > at { until } else { to };
        }
    }
    sums
}

/// The step that a position lies in.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // 0 to STEPS
fn whole(position: f64) -> usize {
    (position + 1e-9).floor() as usize
}

#[cfg(test)]
mod tests {
    use super::{Interval, resampled};

    #[test]
    fn resampling_keeps_the_total() {
        let interval = |start_cycle, end_cycle, warp_instructions| Interval {
            start_cycle,
            end_cycle,
            warp_instructions,
            ..Interval::default()
        };
        let timeline = [interval(0, 7, 70), interval(7, 9_001, 5_000), interval(9_001, 9_001, 0)];
        let steps = resampled(&timeline, 10_000, |i| {
            f64::from(u32::try_from(i.warp_instructions).unwrap())
        });
        let total: f64 = steps.iter().map(|rate| rate * 10_000.0 / 400.0).sum();
        assert!((total - 5_070.0).abs() < 1e-6, "{total}");
    }
}
