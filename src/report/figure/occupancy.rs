//! Instructions per cycle against CTAs per SM, one line per kernel, each as a
//! share of its own largest value: Warped-Slicer, Fig. 3a.

use super::prelude::*;

const LEFT: f64 = 62.0;
const RIGHT: f64 = 14.0;
const HEIGHT: f64 = 230.0;

/// One kernel on one machine: IPC by CTAs per SM.
#[derive(Debug)]
struct Curve {
    label: String,
    points: Vec<(u32, f64)>,
}

impl Curve {
    /// The point of the largest IPC, the first of equal ones.
    fn best(&self) -> (u32, f64) {
        let higher = |best: (u32, f64), &point: &(u32, f64)| {
            if point.1 > best.1 { point } else { best }
        };
        self.points.iter().fold(self.points[0], higher)
    }
}

pub(super) fn draw(input: &FigureInput<'_>) -> Drawn {
    let mut curves = curves(input);
    let missing = "no kernel ran with several numbers of CTAs per SM; give records of several runs, made with `gpumodel analyze --set sm.max_ctas=N`";
    ensure(!curves.is_empty(), missing)?;
    let left_out = curves.len().saturating_sub(LINES);
    curves.truncate(LINES);
    let mut layout = input.layout("Speed against CTAs per SM");
    layout.note("In brackets: the largest IPC, and the CTAs per SM that reach it.");
    layout.skip(3.0);
    layout.legend(&entries(&curves));
    let area = layout.plot(LEFT, RIGHT, layout.chosen(HEIGHT));
    let most = curves.iter().flat_map(|curve| &curve.points).map(|point| point.0).max();
    let x = Scale::from_zero(f64::from(most.unwrap_or(1)), area.x, area.right());
    let y = Scale::linear(0.0, 1.0, area.bottom(), area.y);
    across(&mut layout.canvas, &area, &x, "CTAs per SM");
    down(&mut layout.canvas, &area, &y, "share of the largest IPC", 12.0);
    lines(&mut layout, &curves, &x, &y);
    outline(&mut layout.canvas, &area);
    layout.skip(36.0);
    layout.left_out(left_out, "kernels are not drawn; choose with --app NAME");
    Ok(layout.finish(&input.footer()))
}

/// The kernels that ran with several numbers of CTAs per SM, in record order.
fn curves<'a>(input: &FigureInput<'a>) -> Vec<Curve> {
    let launches = input.apps.iter().flat_map(|(record, app)| {
        let key = |kernel: &'a KernelRecord| [&*record.machine.name, &*app.app, &*kernel.name];
        app.kernels.iter().map(move |kernel| (key(kernel), kernel))
    });
    let found = group_by(launches);
    let several = |place: usize| distinct(found.iter().map(|(key, _)| key[place])).len() > 1;
    let (machines, apps) = (several(0), several(1));
    let curve = |(key, launches): &([&str; 3], Vec<&KernelRecord>)| {
        let mut sums: BTreeMap<u32, KernelRecord> = BTreeMap::new();
        launches.iter().for_each(|kernel| sums.entry(kernel.ctas_per_sm).or_default().add(kernel));
        let point = |(&ctas, sum): (&u32, &KernelRecord)| {
            Some((ctas, ratio(float(sum.thread_instructions), float(sum.busy_cycles()))?))
        };
        let points: Vec<(u32, f64)> = sums.iter().filter_map(point).collect();
        Curve { label: label(*key, machines, apps), points }
    };
    let worth = |curve: &Curve| curve.points.len() > 1 && curve.best().1 > 0.0;
    found.iter().map(curve).filter(worth).collect()
}

/// What a line is called: the kernel, and what else tells it from the others.
fn label([machine, app, kernel]: [&str; 3], machines: bool, apps: bool) -> String {
    let kernel = plain_name(kernel);
    let mut label = match last_component(app) {
        app if apps && app != kernel => format!("{app}: {kernel}"),
        _ => kernel,
    };
    if machines {
        label += &format!(" on {machine}");
    }
    label
}

fn entries(curves: &[Curve]) -> Vec<Entry> {
    let entry = |(index, curve): (usize, &Curve)| {
        let (ctas, ipc) = curve.best();
        let tail = format!(" ({} at {ctas})", short(ipc));
        Entry::new(Swatch::Mark(index), &curve.label).with(tail)
    };
    curves.iter().enumerate().map(entry).collect()
}

fn lines(layout: &mut Layout, curves: &[Curve], x: &Scale, y: &Scale) {
    for (index, curve) in curves.iter().enumerate() {
        let best = curve.best().1;
        let at = |&(ctas, ipc): &(u32, f64)| (x.at(f64::from(ctas)), y.at(ipc / best));
        let points: Vec<(f64, f64)> = curve.points.iter().map(at).collect();
        layout.canvas.curve(&points, index);
    }
}
