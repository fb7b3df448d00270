//! Throughput of pairs over how SMs and memory channels are divided: a map of shaded
//! cells (UGPU, Fig. 4).

use super::prelude::*;

/// Left of the names of rows, for the title of that axis.
const SIDE: f64 = 26.0;
const RIGHT: f64 = 10.0;
/// Height of a cell.
const CELL: f64 = 24.0;
/// Most room of the names of columns.
const NAMES: f64 = 40.0;
/// Maps that are drawn.
const MAPS: usize = 4;

/// What is missing where no pair ran on slices of several sizes.
const MISSING: &str = "no two applications ran on slices of several sizes; run `gpumodel analyze A B --machine ugpu --scheme bp:sms=20:channels=16,bp:sms=20:channels=24,… --until cycles=N --window N --json FILE`";

/// One pair: its throughput by what one of its applications has.
struct Map {
    mix: String,
    /// That application: the first of the pair, or of the order that was asked for.
    first: String,
    sms: Vec<u64>,
    channels: Vec<u64>,
    points: Vec<Point>,
    /// Runs in which that application had a slice as large as one of the points.
    repeats: usize,
}

/// One run.
#[derive(Clone, Copy)]
struct Point {
    sms: u64,
    channels: u64,
    stp: f64,
    antt: f64,
}

pub(super) fn draw(input: &FigureInput<'_>) -> Drawn {
    let maps = maps(input);
    ensure(!maps.is_empty(), MISSING)?;
    let drawn = &maps[..maps.len().min(MAPS)];
    let values = || drawn.iter().flat_map(|map| &map.points).map(|point| point.stp);
    let (low, high) = (values().fold(f64::MAX, f64::min), values().fold(0.0, f64::max));
    let shades = Shades::new(low, high);
    let mut layout = input.layout("Throughput over the division of SMs and channels");
    for map in drawn {
        map.draw(&mut layout, &shades);
    }
    explain(&mut layout, &shades, (low, high), "STP (more is better)");
    layout.note("Framed: the largest STP. The other application has the rest; a dash: no run.");
    repeated(&mut layout, maps.iter().map(|map| map.repeats).sum());
    layout.left_out(maps.len() - drawn.len(), "pairs are not drawn");
    Ok(layout.finish(&input.footer()).with_csv(table(&maps)))
}

fn maps(input: &FigureInput<'_>) -> Vec<Map> {
    let records = input.mixes().unwrap_or_default();
    let named = mix_names(&records).into_iter().zip(&records);
    named.filter_map(|(mix, record)| Map::of(input, mix, &record.coruns)).collect()
}

impl Point {
    fn size(&self) -> (u64, u64) {
        (self.sms, self.channels)
    }
}

impl Map {
    /// `None` where two applications did not run on slices of at least two sizes.
    fn of(input: &FigureInput<'_>, mix: String, runs: &[CoRun]) -> Option<Self> {
        let sized = |run: &&CoRun| {
            let set = |key: &str| run.parameters.contains_key(key);
            let reported = run.stp > 0.0 && run.stp.is_finite();
            run.apps.len() == 2 && set("sms") && set("channels") && reported
        };
        let place = input.places(runs.iter().find(sized)?)[0];
        let owned = |run: &CoRun| {
            let (app, first) = (&run.apps[place], run.decisions.first());
            // At the end the last application may have everything.
            let slice = first.and_then(|first| first.slice(place));
            let (sms, channels) = slice.unwrap_or((app.sms, app.channels));
            let point = Point { sms, channels, stp: run.stp, antt: run.antt };
            (sms > 0 && channels > 0).then_some(point)
        };
        let held: Vec<Point> = runs.iter().filter(sized).filter_map(owned).collect();
        let mut points: Vec<Point> = Vec::new();
        for point in &held {
            if points.iter().all(|known| known.size() != point.size()) {
                points.push(*point);
            }
        }
        let first = runs.iter().find(sized)?.apps[place].app.clone();
        let sorted = |of: fn(&Point) -> u64| {
            points.iter().map(of).collect::<BTreeSet<u64>>().into_iter().collect::<Vec<_>>()
        };
        let (sms, channels) = (sorted(|point| point.sms), sorted(|point| point.channels));
        let several = sms.len() > 1 || channels.len() > 1;
        let (first, repeats) = (last_component(&first).into(), held.len() - points.len());
        several.then_some(Self { mix, first, sms, channels, points, repeats })
    }

    fn at(&self, sms: u64, channels: u64) -> Option<&Point> {
        self.points.iter().find(|point| point.sms == sms && point.channels == channels)
    }

    fn best(&self) -> f64 {
        self.points.iter().map(|point| point.stp).fold(0.0, f64::max)
    }

    fn draw(&self, layout: &mut Layout, shades: &Shades) {
        let words =
            |counts: &[u64]| -> Vec<String> { counts.iter().map(ToString::to_string).collect() };
        let (columns, rows) = (words(&self.sms), words(&self.channels));
        let names = rows.iter().map(|row| text_width(row, NOTE)).fold(12.0, f64::max);
        let (left, top) = (SIDE + names + 6.0, layout.top());
        let whole = layout.width();
        let width = (whole - RIGHT - left) / float(columns.len());
        let middle = f64::midpoint(left, whole - RIGHT);
        let title = fit(&format!("SMs of {} ({})", self.first, self.mix), LABEL, whole - left);
        layout.canvas.write(title, (middle, top + 7.0), LABEL, Anchor::Centre);
        let head = heads(layout, &columns, (left, top + 18.0), width, NAMES);
        let height = CELL * float(rows.len());
        let area = Area::new(left, head, whole - RIGHT - left, height);
        layout.mark_plot(area);
        // The most channels are on top.
        for (row, (&channels, name)) in self.channels.iter().zip(&rows).rev().enumerate() {
            let y = head + CELL * float(row);
            layout.canvas.write(name.clone(), (left - 5.0, y + CELL / 2.0), NOTE, Anchor::Right);
            for (column, &sms) in self.sms.iter().enumerate() {
                let x = left + width * float(column);
                self.cell(layout, shades, Area::new(x, y, width, CELL), (sms, channels));
            }
        }
        let at = (10.0, area.y + height / 2.0);
        let word = fit("channels", LABEL, height.max(60.0));
        layout.canvas.text(Label::new(word, at, LABEL, Anchor::Centre).upwards());
        layout.skip(area.bottom() - top + 14.0);
    }

    fn cell(&self, layout: &mut Layout, shades: &Shades, area: Area, (sms, channels): (u64, u64)) {
        let point = self.at(sms, channels);
        let value = point.map(|point| (point.stp, format!("{:.2}", point.stp)));
        shaded(layout, &area, value.as_ref(), shades);
        if point.is_some_and(|point| point.stp >= self.best()) {
            let inner = Area::new(area.x + 1.5, area.y + 1.5, area.width - 3.0, area.height - 3.0);
            let ink = point.map_or(INK, |point| shades.of(point.stp).text());
            layout.canvas.frame(&inner, ink, 1.6);
        }
    }
}

fn table(maps: &[Map]) -> String {
    let mut lines = Vec::new();
    for map in maps {
        lines.extend(map.points.iter().map(|point| {
            row![map.mix, map.first, point.sms, point.channels, point.stp, point.antt]
        }));
    }
    csv("mix,app,sms,channels,stp,antt", lines)
}
