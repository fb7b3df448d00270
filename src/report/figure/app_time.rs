//! Where the time of each application alone goes under each scheme: kernels,
//! communication, compilation, waiting (Slate, Fig. 6).

use super::prelude::*;
use crate::mix::names;
use crate::results::HostTime;

/// Height of the rows that are drawn: more is taller than a page.
const HEIGHT: f64 = 700.0;
const ROW: f64 = 16.0;
const BAR: f64 = 12.0;
/// Between applications.
const GAP: f64 = 8.0;
/// Most room of the names of applications and of a line of those of schemes.
const NAMES: f64 = 110.0;
const SCHEMES: f64 = 120.0;
/// Above and below the lines of a name that has several.
const AROUND: f64 = 4.0;

/// What is missing where no record says.
const MISSING: &str = "no application ran alone under a scheme that says where its time went; run `gpumodel analyze APP --scheme cuda,mps-leftover,slate --json FILE`";

/// Where time goes: its name, its fill, its cycles.
struct Part {
    name: &'static str,
    fill: Fill,
    of: fn(&HostTime) -> u64,
}

/// Parts of an application's time, from the left.
fn parts() -> [Part; 4] {
    [
        Part { name: "kernels", fill: Fill::of(0), of: |host| host.kernel_cycles },
        Part { name: "communication", fill: Fill::of(1), of: |host| host.communication_cycles },
        Part { name: "compilation", fill: Fill::of(2), of: |host| host.compilation_cycles },
        Part { name: "waiting", fill: Fill::of(3).over(REST), of: |host| host.waiting_cycles },
    ]
}

/// One application under one scheme, in milliseconds.
struct Row {
    scheme: String,
    parts: [f64; 4],
}

impl Row {
    fn whole(&self) -> f64 {
        self.parts.iter().sum()
    }
}

/// An application's rows.
struct Block {
    label: String,
    rows: Vec<Row>,
}

pub(super) fn draw(input: &FigureInput<'_>) -> Drawn {
    let blocks = blocks(input);
    ensure(!blocks.is_empty(), MISSING)?;
    let mut layout = input.layout("Where the time of each application goes");
    let left = Left::of(&layout, &blocks);
    let mut height = 0.0;
    let fits = |block: &&Block| {
        height += left.height(block);
        height <= HEIGHT
    };
    let drawn = &blocks[..blocks.iter().take_while(fits).count().max(1)];
    let used = |place: &usize| {
        let all = drawn.iter().flat_map(|block| &block.rows);
        *place == 0 || all.map(|row| row.parts[*place]).any(|time| time > 0.0)
    };
    let places: Vec<usize> = (0..4).filter(used).collect();
    let entry = |place: &usize| {
        let part = &parts()[*place];
        Entry::new(Swatch::Fill(part.fill), part.name)
    };
    layout.legend(&places.iter().map(entry).collect::<Vec<_>>());
    plot(&mut layout, drawn, &left);
    layout.note("Each application alone, from its arrival to its end.");
    layout.left_out(blocks.len() - drawn.len(), "applications are not drawn");
    Ok(layout.finish(&input.footer()).with_csv(table(&blocks)))
}

fn blocks(input: &FigureInput<'_>) -> Vec<Block> {
    let row = |run: &SoloRun<'_>, scheme: String| {
        let (host, second) = (run.app.host?, run.seconds_per_cycle()?);
        let parts = parts().map(|part| float((part.of)(&host)) * second * 1e3);
        Some(Row { scheme, parts })
    };
    let block = |subject: Subject<'_>| {
        let schemes = subject.runs.iter().map(|run| (run.run.scheme.as_str(), &run.run.parameters));
        let named = subject.runs.iter().zip(names(schemes.collect()));
        let rows: Vec<Row> = named.filter_map(|(run, scheme)| row(run, scheme)).collect();
        (!rows.is_empty()).then_some(Block { label: subject.label, rows })
    };
    subjects(&input.whole_solo_runs()).into_iter().filter_map(block).collect()
}

/// Room of names: of applications, with what is around it, and of a line of those of schemes;
/// these are small where one is too long.
struct Left {
    apps: f64,
    schemes: f64,
    small: bool,
}

impl Left {
    fn of(layout: &Layout, blocks: &[Block]) -> Self {
        let apps = blocks.iter().map(|block| heavy_width(&block.label, LABEL));
        let apps = apps.fold(0.0, f64::max).min(layout.share(NAMES)) + 16.0;
        let all = blocks.iter().flat_map(|block| &block.rows).map(|row| &row.scheme);
        let (all, most) = (all.collect::<Vec<_>>(), layout.share(SCHEMES));
        let small = all.iter().any(|name| text_width(name, LABEL) > most);
        let schemes = name_room(&all, if small { NOTE } else { LABEL }, most);
        Self { apps, schemes, small }
    }

    /// The lines of a scheme's name where names are small.
    fn lines(&self, row: &Row) -> Vec<String> {
        lines_of(&row.scheme, self.schemes)
    }

    /// The height of a row, whose scheme may have several lines.
    fn row(&self, row: &Row) -> f64 {
        let lines = if self.small { self.lines(row).len() } else { 1 };
        (lines_height(lines) + AROUND).max(ROW)
    }

    /// The height of an application.
    fn height(&self, block: &Block) -> f64 {
        block.rows.iter().map(|row| self.row(row)).sum::<f64>() + GAP
    }
}

fn plot(layout: &mut Layout, blocks: &[Block], left: &Left) {
    let height = blocks.iter().map(|block| left.height(block)).sum();
    let area = layout.plot(left.apps + left.schemes + 10.0, 10.0, height);
    let all = blocks.iter().flat_map(|block| &block.rows);
    let most = all.map(Row::whole).fold(0.0, f64::max);
    let (seconds, unit) = time_unit(most * 1e-3);
    let factor = 1e-3 / seconds;
    let scale = Scale::from_zero(most * factor, area.x, area.right() - 40.0);
    across(&mut layout.canvas, &area, &scale, unit);
    let mut y = area.y + GAP / 2.0;
    for block in blocks {
        let at = (left.apps - 6.0, y + ROW / 2.0);
        let name = fit_heavy(&block.label, LABEL, left.apps - 16.0);
        layout.canvas.text(Label::new(name, at, LABEL, Anchor::Right).bold());
        for row in &block.rows {
            let height = left.row(row);
            let middle = y + height / 2.0;
            let at = (area.x - 5.0, middle);
            if left.small {
                write_left(&mut layout.canvas, left.lines(row), at);
            } else {
                layout.canvas.write(row.scheme.as_str(), at, LABEL, Anchor::Right);
            }
            bar(layout, row.parts.map(|time| time * factor), &scale, middle);
            y += height;
        }
        y += GAP;
    }
    outline(&mut layout.canvas, &area);
    layout.skip(38.0);
}

/// Draws the parts of a row, in the unit of `scale`, one behind the other.
fn bar(layout: &mut Layout, times: [f64; 4], scale: &Scale, middle: f64) {
    let mut done = 0.0;
    for (part, time) in parts().iter().zip(times) {
        let (left, right) = (scale.at(done), scale.at(done + time));
        done += time;
        if right - left > 0.05 {
            let area = Area::new(left, middle - BAR / 2.0, right - left, BAR);
            layout.canvas.bar(area, part.fill);
        }
    }
    layout.canvas.write(precise(done), (scale.at(done) + 3.0, middle), NOTE, Anchor::Left);
}

fn table(blocks: &[Block]) -> String {
    let mut lines = Vec::new();
    for block in blocks {
        lines.extend(block.rows.iter().map(|row| {
            let [kernels, communication, compilation, waiting] = row.parts;
            row![block.label, row.scheme, kernels, communication, compilation, waiting]
        }));
    }
    csv("app,scheme,kernel_ms,communication_ms,compilation_ms,waiting_ms", lines)
}
