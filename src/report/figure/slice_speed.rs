//! Speed of each application alone against its memory channels and against its SMs
//! (UGPU, Fig. 2 and 3).

use super::prelude::*;

/// What is missing where no application ran on slices of several sizes.
const MISSING: &str = "no application ran alone on slices of several sizes; run `gpumodel analyze APP --machine ugpu --scheme bp:sms=40:channels=4,bp:sms=40:channels=8,… --until cycles=N --json FILE`";

/// What a slice has more or less of.
#[derive(Clone, Copy)]
struct Resource {
    key: &'static str,
    axis: &'static str,
    held: fn(&SoloRun<'_>) -> u64,
}

const RESOURCES: [Resource; 2] = [
    Resource { key: "channels", axis: "memory channels", held: |run| run.app.channels },
    Resource { key: "sms", axis: "SMs", held: |run| run.app.sms },
];

/// One application with all but one resource fixed: its speed by that one.
struct Curve {
    app: String,
    label: String,
    /// How many, and thread instructions per cycle.
    points: Vec<(u32, f64)>,
    half: Option<Half>,
    /// Runs that held as many as one of the points.
    repeats: usize,
}

/// What speeds are over, and the largest of the figure: all panels have one scale.
#[derive(Clone, Copy)]
struct Base {
    over: Option<(u64, u64)>,
    highest: f64,
}

/// The run of an application on half of the machine's SMs and half of its channels.
#[derive(Clone, Copy)]
struct Half {
    size: (u64, u64),
    ipc: f64,
}

impl Curve {
    fn most(&self) -> f64 {
        self.points.iter().map(|point| point.1).fold(0.0, f64::max)
    }

    /// How many, and the speed over that on a slice of the size `over`; where there is
    /// none, over the most of the line.
    fn speeds(&self, over: Option<(u64, u64)>) -> Vec<(u32, f64)> {
        let base = over.and(self.half).map_or_else(|| self.most(), |half| half.ipc);
        self.points.iter().map(|&(count, ipc)| (count, ipc / base)).collect()
    }
}

pub(super) fn draw(input: &FigureInput<'_>) -> Drawn {
    let panels: Vec<(Resource, Vec<Curve>)> = RESOURCES
        .map(|resource| (resource, curves(input, resource)))
        .into_iter()
        .filter(|(_, curves)| !curves.is_empty())
        .collect();
    ensure(!panels.is_empty(), MISSING)?;
    let over = common(&panels);
    let mut layout = input.layout("Speed alone against the size of a slice");
    let drawn = panels.iter().flat_map(|(_, curves)| curves.iter().take(LINES));
    let speeds = drawn.flat_map(|curve| curve.speeds(over)).map(|speed| speed.1);
    let base = Base { over, highest: speeds.fold(1.0, f64::max) };
    for (resource, curves) in &panels {
        panel(&mut layout, *resource, &curves[..curves.len().min(LINES)], base);
    }
    let words = match over {
        Some((sms, channels)) => format!("those on {sms} SMs and {channels} channels, half of all"),
        None => "the most of the line".into(),
    };
    let kept = "Behind names: what the slice keeps.";
    layout.note(&format!("Speed: instructions per cycle over {words}. {kept}"));
    let lines = panels.iter().flat_map(|(_, curves)| curves);
    repeated(&mut layout, lines.map(|curve| curve.repeats).sum());
    let left = panels.iter().map(|(_, curves)| curves.len().saturating_sub(LINES)).sum();
    layout.left_out(left, "lines are not drawn; choose with --app NAME");
    Ok(layout.finish(&input.footer()).with_csv(table(&panels, over)))
}

/// The size of half the machine, where all curves know their speed on it.
fn common(panels: &[(Resource, Vec<Curve>)]) -> Option<(u64, u64)> {
    let curves = panels.iter().flat_map(|(_, curves)| curves);
    let mut sizes = curves.map(|curve| curve.half.map(|half| half.size));
    let first = sizes.next()??;
    sizes.all(|size| size == Some(first)).then_some(first)
}

/// `None` where the application did not run on half of its machine.
fn half(subject: &Subject<'_>, records: &[Analysis]) -> Option<Half> {
    let machine = &subject.runs.first()?.record.machine;
    let same = records.iter().filter(|record| record.machine.hash == machine.hash);
    let channels = same.flat_map(|record| &record.coruns).map(shown).max()?;
    let size = (machine.sms / 2, channels / 2);
    let even = size.0 > 0 && (2 * size.0, 2 * size.1) == (machine.sms, channels);
    let own = |run: &&SoloRun<'_>| (run.app.sms, run.app.channels) == size;
    let run = subject.runs.iter().find(own).filter(|run| even && run.app.ipc > 0.0)?;
    Some(Half { size, ipc: run.app.ipc })
}

/// Channels of the machine as far as a run shows them: those of each application where
/// all share them, else of all together unless one has ended and left its own to others.
fn shown(run: &CoRun) -> u64 {
    let each = run.apps.iter().map(|app| app.channels);
    match run.apps.iter().all(|app| app.migration.is_some() && !app.finished) {
        true => each.fold(0, u64::saturating_add),
        false => each.max().unwrap_or(0),
    }
}

fn curves(input: &FigureInput<'_>, resource: Resource) -> Vec<Curve> {
    let sized = |run: &SoloRun<'_>| {
        let set = RESOURCES.iter().all(|r| run.setting(r.key).is_some());
        set && run.app.channels > 0 && run.app.ipc.is_finite()
    };
    let runs: Vec<SoloRun<'_>> = input.solo_runs().into_iter().filter(sized).collect();
    let held = |run: &SoloRun<'_>| u32::try_from((resource.held)(run)).ok().filter(|&n| n > 0);
    let of = |subject: Subject<'_>| {
        let half = half(&subject, input.records);
        let curve = |sweep: Sweep<'_>| {
            let points: Vec<(u32, f64)> =
                sweep.points.iter().map(|(count, run)| (*count, run.app.ipc)).collect();
            let app = subject.label.clone();
            let label = format!("{app} ({})", kept(&sweep, resource));
            Curve { app, label, points, half, repeats: sweep.repeats }
        };
        let sweeps = sweeps(&subject.runs, resource.key, held).into_iter();
        sweeps.map(curve).filter(|curve| curve.most() > 0.0).collect::<Vec<_>>()
    };
    subjects(&runs).into_iter().flat_map(of).collect()
}

/// What does not change over a sweep, in words.
fn kept(sweep: &Sweep<'_>, changing: Resource) -> String {
    let others = RESOURCES.iter().filter(|resource| resource.key != changing.key);
    let first = sweep.points.first().map(|point| point.1);
    let word = |resource: &Resource| {
        let count = first.as_ref().map_or(0, |run| (resource.held)(run));
        format!("{count} {}", resource.key.replace("sms", "SMs"))
    };
    others.map(word).collect::<Vec<_>>().join(", ")
}

fn panel(layout: &mut Layout, resource: Resource, curves: &[Curve], base: Base) {
    let names: Vec<&str> = curves.iter().map(|curve| curve.label.as_str()).collect();
    layout.legend(&Entry::marks(&names));
    let most = curves.iter().flat_map(|curve| &curve.points).map(|point| point.0).max();
    let y = |area: &Area| Scale::linear(0.0, 1.05 * base.highest, area.bottom(), area.y);
    let title = match base.over {
        Some((sms, channels)) => format!("speed over {sms} SMs, {channels} ch."),
        None => "speed over the largest".into(),
    };
    let plot = CountPlot::new(layout, most, resource.axis, y, &title);
    for (index, curve) in curves.iter().enumerate() {
        let speeds = curve.speeds(base.over).into_iter();
        let points: Vec<_> = speeds.map(|(count, speed)| plot.at(count, speed)).collect();
        layout.canvas.curve(&points, index);
    }
    plot.finish(layout, 40.0);
}

fn table(panels: &[(Resource, Vec<Curve>)], over: Option<(u64, u64)>) -> String {
    let mut lines = Vec::new();
    for (resource, curves) in panels {
        for curve in curves {
            let speeds = curve.speeds(over);
            lines.extend(curve.points.iter().zip(speeds).map(|((count, ipc), (_, speed))| {
                row![curve.app, curve.label, resource.key, count, ipc, speed]
            }));
        }
    }
    csv("app,line,resource,count,ipc,speed", lines)
}
