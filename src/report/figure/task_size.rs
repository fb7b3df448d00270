//! Kernel time against the thread blocks of a task, over the run without a scheme: one
//! line per application (Slate, Fig. 5).

use super::prelude::*;
use crate::results::HostTime;
use crate::solo_run::kernel_cycles;

const LEFT: f64 = 62.0;
const RIGHT: f64 = 14.0;
const HEIGHT: f64 = 220.0;

/// What is missing where no application ran with several sizes.
const MISSING: &str = "no application ran alone with tasks of several sizes and as written; run `gpumodel analyze APP --scheme slate:task=1,slate:task=10,… --json FILE`";

/// One application under one scheme: kernel cycles by size, and over the solo run.
struct Curve {
    label: String,
    points: Vec<(u32, u64, f64)>,
}

pub(super) fn draw(input: &FigureInput<'_>) -> Drawn {
    let curves: Vec<Curve> = subjects(&input.whole_solo_runs()).iter().flat_map(of).collect();
    ensure(!curves.is_empty(), MISSING)?;
    let drawn = &curves[..curves.len().min(LINES)];
    let mut layout = input.layout("Kernel time against the size of a task");
    layout.legend(&Entry::marks(&drawn.iter().map(|curve| &curve.label).collect::<Vec<_>>()));
    plot(&mut layout, drawn);
    layout.note("Each application alone; a time of 1 is that of its kernels as written.");
    layout.left_out(curves.len() - drawn.len(), MORE_APPS);
    Ok(layout.finish(&input.footer()).with_csv(table(&curves)))
}

fn of(subject: &Subject<'_>) -> Vec<Curve> {
    let size = |run: &SoloRun<'_>| run.setting("task").filter(|&task| task > 0);
    let sweeps = sweeps(&subject.runs, "task", size);
    let several = sweeps.len() > 1;
    let curve = |sweep: &Sweep<'_>| {
        let point = |(task, run): &(u32, SoloRun<'_>)| {
            let HostTime { kernel_cycles: cycles, .. } = run.app.host?;
            let share = ratio(float(cycles), float(kernel_cycles(run.solo()?)))?;
            Some((*task, cycles, share))
        };
        let points: Vec<(u32, u64, f64)> = sweep.points.iter().filter_map(point).collect();
        let reported = if several { format!(", {}", sweep.scheme) } else { String::new() };
        (points.len() > 1).then(|| Curve { label: subject.label.clone() + &reported, points })
    };
    sweeps.iter().filter_map(curve).collect()
}

fn plot(layout: &mut Layout, curves: &[Curve]) {
    let area = layout.plot(LEFT, RIGHT, layout.chosen(HEIGHT));
    let points = || curves.iter().flat_map(|curve| &curve.points);
    let sizes = || points().map(|point| f64::from(point.0));
    let (least, most) = (sizes().fold(f64::MAX, f64::min), sizes().fold(1.0, f64::max));
    let x = Scale::log(least * 0.9, most * 1.1, area.x, area.right());
    let highest = points().map(|point| point.2).fold(1.0, f64::max);
    let y = Scale::from_zero(highest, area.bottom(), area.y);
    across(&mut layout.canvas, &area, &x, "thread blocks of a task");
    down(&mut layout.canvas, &area, &y, "kernel time over as written", 12.0);
    layout.canvas.dashes((area.x, y.at(1.0)), (area.right(), y.at(1.0)), INK, 0.8);
    for (index, curve) in curves.iter().enumerate() {
        let at = |point: &(u32, u64, f64)| (x.at(f64::from(point.0)), y.at(point.2));
        layout.canvas.curve(&curve.points.iter().map(at).collect::<Vec<_>>(), index);
    }
    outline(&mut layout.canvas, &area);
    layout.skip(36.0);
}

fn table(curves: &[Curve]) -> String {
    let mut lines = Vec::new();
    for curve in curves {
        let points = curve.points.iter();
        lines.extend(points.map(|(task, cycles, share)| row![curve.label, task, cycles, share]));
    }
    csv("app,task_blocks,kernel_cycles,normalized", lines)
}
