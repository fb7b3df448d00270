//! The instruction roofline: warp instructions per second against warp
//! instructions per 32-byte sector, after N. Ding and S. Williams, "An
//! Instruction Roofline Model for GPUs" (PMBS 2019). Each kernel has its own colour and shape, full
//! at its DRAM intensity and open at its L2 intensity.

use gpumodel_core::units::SECTOR_BYTES;

use super::prelude::*;

const POINTS: usize = POINT_LOOKS;
const LEFT: f64 = 62.0;
/// Between two numbers next to points.
const APART: f64 = 5.0;
const HEIGHT: f64 = 250.0;
/// Where along a roof its name stands: the first of these that is free.
const ALONG: [f64; 4] = [0.35, 0.6, 0.85, 0.1];

/// A kernel's place: instruction rate and intensity at both levels.
struct Point {
    rate: f64,
    dram: Option<f64>,
    l2: Option<f64>,
    marker: Marker,
    colour: Colour,
}

impl Point {
    /// Where its DRAM and its L2 mark are; without traffic at the right edge.
    fn places(&self, x: &Scale, y: &Scale) -> ((f64, f64), (f64, f64)) {
        let place = |intensity: Option<f64>| (x.at(intensity.unwrap_or(x.high())), y.at(self.rate));
        (place(self.dram), place(self.l2))
    }
}

/// The machine's limits in warp instructions and sectors, both in 10^9 per second.
struct Roofs {
    issue: f64,
    dram: f64,
    l2: f64,
}

pub(super) fn draw(input: &FigureInput<'_>) -> Drawn {
    let missing = "the records are of several machines or hold no kernels; choose records of one";
    let machine = input.machine().ok_or(missing)?;
    let roofs = roofs(machine)?;
    let mut groups = input.groups(POINTS);
    groups.retain(|group| {
        group.sum.busy_cycles() > 0 && group.sum.warp_instructions > 0 && !group.sum.memory_only
    });
    ensure(!groups.is_empty(), "the records hold no whole kernel with instructions")?;
    let points: Vec<Point> =
        groups.iter().enumerate().map(|(i, group)| point(i, group, machine)).collect();
    let mut layout = input.layout("Instruction roofline");
    layout.legend(&[
        Entry::new(Swatch::Line(INK), "DRAM roof"),
        Entry::new(Swatch::Dashes(SOFT_INK), "L2 roof"),
        Entry::new(Swatch::Dot(INK), "full: per DRAM sector"),
        Entry::new(Swatch::Ring(INK), "open: per L2 sector"),
    ]);
    let area = layout.plot(LEFT, 14.0, layout.chosen(HEIGHT));
    let (x, y) = scales(&area, &points, &roofs);
    across(&mut layout.canvas, &area, &x, "warp instructions per 32-byte sector");
    down(&mut layout.canvas, &area, &y, "10⁹ warp instructions per second", 12.0);
    let mut free = Placement::new(area);
    for point in &points {
        let (dram, l2) = point.places(&x, &y);
        free.take_point(dram, 5.0);
        free.take_point(l2, 5.0);
        free.take_line(dram, l2);
    }
    draw_roofs(&mut layout, &roofs, &x, &y, &mut free);
    draw_points(&mut layout, &points, &x, &y, &mut free);
    outline(&mut layout.canvas, &area);
    layout.skip(38.0);
    key(&mut layout, &groups, &points);
    Ok(layout.finish(&input.footer()))
}

fn roofs(machine: &MachineRecord) -> Result<Roofs, Missing> {
    let giga_sectors = |gb_per_s: f64| gb_per_s / float(SECTOR_BYTES);
    let roofs = Roofs {
        issue: machine.peak_warp_instructions_per_cycle * machine.core_mhz / 1000.0,
        dram: giga_sectors(machine.peak_dram_gb_per_s),
        l2: giga_sectors(machine.peak_l2_gb_per_s),
    };
    let known = |peak: f64| peak.is_finite() && peak > 0.0;
    if known(roofs.issue) && known(roofs.dram) && known(roofs.l2) {
        return Ok(roofs);
    }
    Err("the record does not hold the machine's peaks; make it again with `gpumodel analyze`"
        .into())
}

fn point(index: usize, group: &Group, machine: &MachineRecord) -> Point {
    let instructions = float(group.sum.warp_instructions);
    let (marker, colour) = Marker::of_point(index);
    Point {
        rate: instructions / float(group.sum.busy_cycles()) * machine.core_mhz / 1000.0,
        dram: ratio(instructions, float(group.dram_sectors())),
        l2: ratio(instructions, float(group.sum.l2.accesses)),
        marker,
        colour,
    }
}

fn scales(area: &Area, points: &[Point], roofs: &Roofs) -> (Scale, Scale) {
    let ridges = [roofs.issue / roofs.dram, roofs.issue / roofs.l2];
    let known = points.iter().flat_map(|p| [p.dram, p.l2]).flatten().chain(ridges);
    let (low, high) = known.fold((f64::MAX, 0.0_f64), |(l, h), v| (l.min(v), h.max(v)));
    let slowest = points.iter().map(|p| p.rate).fold(roofs.issue, f64::min);
    let decade_below = |v: f64| 10f64.powf((v * 0.7).log10().floor());
    let decade_above = |v: f64| 10f64.powf((v * 1.4).log10().ceil());
    let x = Scale::log(decade_below(low), decade_above(high), area.x, area.right());
    let y = Scale::log(decade_below(slowest), roofs.issue * 2.5, area.bottom(), area.y);
    (x, y)
}

fn draw_roofs(layout: &mut Layout, roofs: &Roofs, x: &Scale, y: &Scale, free: &mut Placement) {
    let corner = |peak: f64| (x.at(roofs.issue / peak), y.at(roofs.issue));
    let foot = |peak: f64| {
        let low = x.low().max(y.low() / peak);
        (x.at(low), y.at(low * peak))
    };
    let end = (x.at(x.high()), y.at(roofs.issue));
    let (dram, l2) = (corner(roofs.dram), corner(roofs.l2));
    let both = if l2.0 < dram.0 { l2 } else { dram };
    layout.canvas.line(vec![foot(roofs.dram), dram, end], INK, 1.6);
    layout.canvas.dashes(foot(roofs.l2), l2, SOFT_INK, 1.4);
    layout.canvas.dashes(both, dram, SOFT_INK, 1.4);
    for (from, to) in [(foot(roofs.dram), dram), (foot(roofs.l2), l2), (both, end)] {
        free.take_line(from, to);
    }
    let text = format!("issue peak {}", short(roofs.issue));
    let at = (end.0 - 4.0, end.1 - 9.0);
    let label = Label::new(text, at, NOTE, Anchor::Right);
    free.take(label.area());
    layout.canvas.text(label);
    let sides = [("DRAM", roofs.dram, INK), ("L2", roofs.l2, SOFT_INK)];
    for (name, peak, colour) in sides {
        let (from, to) = (foot(peak), corner(peak));
        let text = format!("{name} {}", bandwidth(peak * float(SECTOR_BYTES)));
        let along = |part: f64| (from.0 + (to.0 - from.0) * part, from.1 + (to.1 - from.1) * part);
        let next_to = |near: (f64, f64)| Some((near, free.next_to(&text, NOTE, near)?));
        if let Some((near, at)) = ALONG.into_iter().map(along).find_map(next_to) {
            let label = Label::new(text, at, NOTE, Anchor::Left).coloured(colour);
            layout.canvas.leader(&label.area(), near);
            layout.canvas.text(label);
        }
    }
}

/// A peak of so many GB/s with its unit.
fn bandwidth(peak: f64) -> String {
    if peak < 1000.0 {
        format!("{} GB/s", short(peak))
    } else {
        format!("{} TB/s", short(peak / 1000.0))
    }
}

fn draw_points(layout: &mut Layout, points: &[Point], x: &Scale, y: &Scale, free: &mut Placement) {
    for p in points {
        let (dram, l2) = p.places(x, y);
        layout.canvas.line(vec![dram, l2], p.colour, 0.8);
    }
    for (number, p) in (1_usize..).zip(points) {
        let (dram, l2) = p.places(x, y);
        layout.canvas.mark(l2, p.marker, p.colour, 3.4, false);
        layout.canvas.mark(dram, p.marker, p.colour, 4.0, true);
        let text = number.to_string();
        // Two numbers side by side would be one.
        let mut near = |to| Some((to, free.place(heavy_width(&text, NOTE) + APART, NOTE, to)?));
        if let Some((to, at)) = near(dram).or_else(|| near(l2)) {
            let label = Label::new(text, at, NOTE, Anchor::Left).bold();
            layout.canvas.leader(&label.area(), to);
            layout.canvas.text(label);
        }
    }
}

/// What the numbers next to the points mean, in two columns where there is room.
fn key(layout: &mut Layout, groups: &[Group], points: &[Point]) {
    let columns = if layout.narrow() { 1 } else { 2 };
    let wide = (layout.width() - 16.0) / float(columns);
    layout
        .note("Kernels with their share of cycles; a kernel without traffic is at the right edge.");
    let whole: u64 = groups.iter().map(|g| g.sum.cycles).fold(0, u64::saturating_add);
    let top = layout.top();
    let rows = groups.len().div_ceil(columns);
    for (i, (group, point)) in groups.iter().zip(points).enumerate() {
        let line = float(i % rows) * (NOTE + 4.0);
        let x = if i < rows { 8.0 } else { 8.0 + wide };
        let y = top + line + NOTE / 2.0;
        layout.canvas.mark((x + 4.0, y), point.marker, point.colour, 3.4, true);
        let share = percent(ratio(float(group.sum.cycles), float(whole)));
        let traffic = if point.dram.is_none() { ", no DRAM traffic" } else { "" };
        let tail = format!(" – {share}{traffic}");
        let room = wide - 22.0 - text_width(&tail, NOTE);
        let number = format!("{}  ", i + 1);
        let name = group.title(NOTE, room - text_width(&number, NOTE));
        layout.canvas.write(number + &name + &tail, (x + 12.0, y), NOTE, Anchor::Left);
    }
    layout.skip(float(rows) * (NOTE + 4.0) + 2.0);
}
