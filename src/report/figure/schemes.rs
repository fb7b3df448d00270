//! The sharing schemes side by side: throughput, turnaround, fairness, makespan,
//! IPC and energy, one row per scheme and one panel per metric. Several mixes are blocks of
//! rows, or their means where those have no room. Where the schemes of one have none, fewer
//! metrics are shown, then fewer schemes.

use super::prelude::*;

/// Most room of the schemes' names.
const NAMES: f64 = 140.0;
/// Left and right of the names.
const MARGIN: f64 = 14.0;
/// Height of a row where there is room, and at least.
const ROW: f64 = 15.0;
const LEAST: f64 = 12.5;
/// Between rows.
const BETWEEN: f64 = 4.0;
/// How many rows high the title of a block is, with the room above it.
const TITLE: f64 = 1.5;
const GAP: f64 = 12.0;
/// Of a panel: its name above, its ticks below, and the room of values right of bars.
const HEAD: f64 = 30.0;
const TICKS: f64 = 22.0;
const VALUES: f64 = 36.0;

/// Panels side by side; where there is little room, and where names are short there.
const ACROSS: usize = 4;
const FEW: usize = 2;
const SHORT: (f64, usize) = (92.0, 3);

/// Height of the figure on a screen, and what is neither panel nor row.
const SCREEN: f64 = 1000.0;
const NOTES: f64 = 110.0;

/// Values that differ by less are alike: an application without a neighbour varies as much with
/// where its data lie.
const NOISE: f64 = 0.04;

/// A metric: its name and what it is, whether more of it is better, and its value; 0 is none.
struct Panel {
    name: &'static str,
    words: &'static str,
    more: bool,
    of: fn(&CoRun) -> f64,
}

const PANELS: [Panel; 8] = [
    Panel { name: "STP", words: "sum of normalised progress", more: true, of: |run| run.stp },
    Panel { name: "ANTT", words: "mean slowdown", more: false, of: |run| run.antt },
    Panel {
        name: "fairness",
        words: "least normalised progress",
        more: true,
        of: |run| run.fairness_min_speedup,
    },
    Panel {
        name: "speedup",
        words: "makespans in sequence over the shared makespan",
        more: true,
        of: |run| run.makespan_speedup,
    },
    Panel {
        name: "IPC",
        words: "thread instructions of all per cycle",
        more: true,
        of: |run| run.ipc_throughput,
    },
    Panel {
        name: "harmonic",
        words: "harmonic mean of normalised progress",
        more: true,
        of: |run| run.harmonic_speedup,
    },
    Panel {
        name: "ALU",
        words: "share of the pipes' time",
        more: true,
        of: |run| run.utilization.map_or(0.0, |busy| busy.alu),
    },
    Panel {
        name: "nJ/instr",
        words: "energy per thread instruction",
        more: false,
        of: per_instruction,
    },
];

/// What the metrics are called on the command line.
const METRICS: [&str; 8] =
    ["stp", "antt", "fairness", "makespan", "ipc", "harmonic", "alu", "energy"];

/// A scheme with its values by metric; 0 is none.
struct Row {
    scheme: String,
    fill: Fill,
    values: [f64; PANELS.len()],
}

/// The schemes of one mix, or the means of one machine.
struct Block {
    /// What it is of; empty where there is one.
    title: String,
    rows: Vec<Row>,
}

/// Energy over the thread instructions that it was spent on: runs that did less are not
/// better by that.
fn per_instruction(run: &CoRun) -> f64 {
    run.work().map_or(0.0, |work| 1e9 * run.energy_joules / float(work))
}

pub(super) fn draw(input: &FigureInput<'_>) -> Drawn {
    let records = input.mixes()?;
    let mut layout = input.layout("Sharing schemes side by side");
    let runs = || records.iter().flat_map(|record| &record.coruns);
    let reported = |panel: &&Panel| runs().any(|run| (panel.of)(run) > 0.0);
    let shown = chosen(&METRICS, input.metrics)?;
    let shown: Vec<usize> = shown.into_iter().filter(|&at| reported(&&PANELS[at])).collect();
    ensure(!shown.is_empty(), "no run has a value of these metrics; leave --metrics out")?;
    let looks = Looks::of(input, &records);
    let mut rows = Rows::new(&layout, looks.names(), shown);
    let (mut blocks, mut notes) = of_mixes(&records, &looks);
    let all = blocks.len();
    if rows.fitting(&blocks, rows.room(&layout, input.sheet)) < all {
        (blocks, notes) = means(&records, &looks).unwrap_or((blocks, notes));
    }
    let hidden = rows.hide_metrics(&blocks[0], &layout, input.sheet);
    let room = rows.room(&layout, input.sheet);
    let (all, drawn) = (blocks.len(), rows.fitting(&blocks, room));
    blocks.truncate(drawn);
    let cut = rows.cut(&mut blocks[0], room);
    rows.pitch = (room / rows.lines(&blocks)).clamp(LEAST, ROW);
    notes.iter().for_each(|note| layout.note(note));
    rows.draw(&mut layout, &blocks);
    layout.left_out(all - drawn, "mixes are not drawn");
    layout.left_out(cut, "schemes are not drawn; --order puts those first that are");
    if !hidden.is_empty() {
        let hidden = hidden.join(", ");
        layout.note(&format!("No room for {hidden}; --metrics chooses."));
    }
    layout.note(&rows.meaning());
    Ok(layout.finish(&input.footer()).with_csv(table(&records)))
}

/// The fill of each scheme.
struct Looks(Vec<(String, Fill)>);

impl Looks {
    fn of(input: &FigureInput<'_>, records: &[&Analysis]) -> Self {
        let names = distinct(records.iter().flat_map(|record| scheme_names(&record.coruns)));
        let fills: Vec<Fill> = input.scheme_looks(&names).into_iter().map(Fill::of).collect();
        Self(names.into_iter().zip(fills).collect())
    }

    fn names(&self) -> Vec<&str> {
        self.0.iter().map(|(name, _)| name.as_str()).collect()
    }

    /// The row of a scheme with these values.
    fn row(&self, scheme: &str, values: [f64; PANELS.len()]) -> Row {
        let known = self.0.iter().find(|(name, _)| name == scheme);
        let fill = known.map_or(Fill::plain(REST), |(_, fill)| *fill);
        Row { scheme: scheme.to_owned(), fill, values }
    }
}

/// A block for each mix, and what is to be said of all.
fn of_mixes(records: &[&Analysis], looks: &Looks) -> (Vec<Block>, Vec<String>) {
    let labels = mix_labels(records);
    let block = |(record, label): (&&Analysis, String)| {
        let named = scheme_names(&record.coruns).into_iter().zip(&record.coruns);
        let rows = named.map(|(name, run)| looks.row(&name, PANELS.map(|panel| (panel.of)(run))));
        let title = if records.len() > 1 { label } else { String::new() };
        Block { title, rows: rows.collect() }
    };
    let blocks = records.iter().zip(labels.labels).map(block).collect();
    let notes = match records {
        [record] => vec![apps(record)],
        _ => labels.notes,
    };
    (blocks, notes)
}

/// The applications of a record's runs.
fn apps(record: &Analysis) -> String {
    let names = |run: &CoRun| run.apps.iter().map(|app| app.app.clone()).collect::<Vec<_>>();
    distinct(record.coruns.iter().flat_map(names)).join(" + ")
}

/// A block for each machine, with means over its mixes; `None` where some have one mix.
fn means(records: &[&Analysis], looks: &Looks) -> Option<(Vec<Block>, Vec<String>)> {
    let names: Vec<String> = records.iter().map(|record| mix_name(record)).collect();
    let (panels, mut notes) = machine_panels(records, &names);
    if panels.iter().any(|panel| !panel.alike || panel.places.len() < 2) {
        return None;
    }
    let counts = distinct(panels.iter().map(|panel| panel.places.len()));
    let count = counts.iter().map(usize::to_string).collect::<Vec<_>>().join(" or ");
    notes.push(format!("Geometric means over {count} mixes."));
    let block = |panel: MachinePanel| {
        let mixes: Vec<&Analysis> = panel.places.iter().map(|&place| records[place]).collect();
        let runs = mixes
            .iter()
            .flat_map(|record| scheme_names(&record.coruns).into_iter().zip(&record.coruns));
        let row = |(scheme, runs): (String, Vec<&CoRun>)| {
            looks.row(&scheme, PANELS.map(|panel| mean_of(runs.iter().map(|run| (panel.of)(run)))))
        };
        let rows = group_by(runs).into_iter().map(row).collect();
        Block { title: panel.title, rows }
    };
    Some((panels.into_iter().map(block).collect(), notes))
}

/// The geometric mean of the values that there are; infinite where one is, 0 where there are
/// none.
fn mean_of(values: impl Iterator<Item = f64>) -> f64 {
    let values: Vec<f64> = values.filter(|value| *value > 0.0).collect();
    let infinite = values.iter().any(|value| value.is_infinite());
    if infinite { f64::INFINITY } else { geometric_mean(&values).unwrap_or(0.0) }
}

/// How the rows of all panels lie.
struct Rows {
    /// Places of the metrics that are shown.
    shown: Vec<usize>,
    /// Where panels begin, and how many stand side by side.
    left: f64,
    across: usize,
    /// From one row to the next.
    pitch: f64,
}

impl Rows {
    fn new(layout: &Layout, names: Vec<&str>, shown: Vec<usize>) -> Self {
        let left = name_room(&names, NOTE, layout.share(NAMES)) + MARGIN;
        let most = match (layout.narrow(), shown.len() > 2 * FEW && left <= SHORT.0) {
            (false, _) => ACROSS,
            (true, true) => SHORT.1,
            (true, false) => FEW,
        };
        // As few rows as `most` allows, filled evenly.
        let across = shown.len().div_ceil(shown.len().div_ceil(most));
        Self { shown, left, across, pitch: ROW }
    }

    /// What bold values and the metrics that are shown mean.
    fn meaning(&self) -> String {
        let words = |&at: &usize| format!("{}: {}", PANELS[at].name, PANELS[at].words);
        let words: Vec<String> = self.shown.iter().map(words).collect();
        format!("Bold: within {:.0} % of the best. {}.", NOISE * 100.0, words.join("; "))
    }

    /// The height that the rows of one panel may take.
    fn room(&self, layout: &Layout, sheet: Sheet) -> f64 {
        let panels = float(self.shown.len().div_ceil(self.across));
        let height = sheet.page().unwrap_or(SCREEN) - layout.top() - NOTES;
        height / panels - HEAD - TICKS - 2.0 * BETWEEN
    }

    /// The lines of a scheme's name.
    fn name(&self, row: &Row) -> Vec<String> {
        lines_of(&row.scheme, self.left - MARGIN)
    }

    /// Lines that `blocks` take, their titles included.
    fn lines(&self, blocks: &[Block]) -> f64 {
        let rows = |block: &Block| block.rows.iter().map(|row| self.name(row).len()).sum::<usize>();
        let title = |block: &Block| if block.title.is_empty() { 0.0 } else { TITLE };
        blocks.iter().map(|block| float(rows(block)) + title(block)).sum()
    }

    /// How many of `blocks` are at most `room` high where lines are as low as they can be, one
    /// at least.
    fn fitting(&self, blocks: &[Block], room: f64) -> usize {
        let fits = |count: &usize| self.lines(&blocks[..*count]) * LEAST <= room;
        (1..=blocks.len()).take_while(fits).last().unwrap_or(1)
    }

    /// Leaves out rows of panels, from the last, as far as `block` has no room otherwise; the first
    /// stays. Returns the metrics that are left out.
    fn hide_metrics(&mut self, block: &Block, layout: &Layout, sheet: Sheet) -> Vec<&'static str> {
        let all = self.shown.clone();
        let height = self.lines(std::slice::from_ref(block)) * LEAST;
        while self.shown.len() > self.across && height > self.room(layout, sheet) {
            let rows = self.shown.len().div_ceil(self.across);
            self.shown.truncate((rows - 1) * self.across);
        }
        all[self.shown.len()..].iter().map(|&metric| PANELS[metric].name).collect()
    }

    /// Leaves out the last schemes of `block` as far as it has no room otherwise: how many.
    fn cut(&self, block: &mut Block, room: f64) -> usize {
        let all = block.rows.len();
        while block.rows.len() > 1 && self.lines(std::slice::from_ref(block)) * LEAST > room {
            block.rows.pop();
        }
        all - block.rows.len()
    }

    /// Draws all panels, in rows of as many as stand side by side.
    fn draw(&self, layout: &mut Layout, blocks: &[Block]) {
        let count = float(self.across);
        let width = (layout.width() - self.left - 8.0 - (count - 1.0) * GAP) / count;
        let height = self.lines(blocks) * self.pitch + BETWEEN;
        for metrics in self.shown.chunks(self.across) {
            layout.skip(BETWEEN);
            let top = layout.top() + HEAD;
            let mut x = self.left;
            for &metric in metrics {
                let area = Area::new(x, top, width, height);
                layout.mark_plot(area);
                self.panel(layout, metric, &area, blocks);
                x += width + GAP;
            }
            self.names(layout, blocks, top);
            layout.skip(HEAD + height + TICKS);
        }
    }

    /// The middle of each row of `blocks` below `top`; of each title with the rows behind it.
    fn places<'b>(&self, blocks: &'b [Block], top: f64) -> Vec<(f64, &'b Block, Option<&'b Row>)> {
        let line = |block: &'b Block| {
            let title = (!block.title.is_empty()).then_some((block, None));
            title.into_iter().chain(block.rows.iter().map(move |row| (block, Some(row))))
        };
        let mut y = top + BETWEEN / 2.0;
        let mut place = |(block, row): (&'b Block, Option<&'b Row>)| {
            let lines = row.map_or(1.0, |row| float(self.name(row).len()));
            y += self.pitch * row.map_or(TITLE, |_| lines);
            (y - self.pitch * lines / 2.0, block, row)
        };
        blocks.iter().flat_map(line).map(&mut place).collect()
    }

    /// The titles of the blocks, and the names of the schemes.
    fn names(&self, layout: &mut Layout, blocks: &[Block], top: f64) {
        for (y, block, row) in self.places(blocks, top) {
            if let Some(row) = row {
                write_left(&mut layout.canvas, self.name(row), (self.left - 6.0, y));
            } else {
                let title = fit_heavy(&block.title, NOTE, layout.width() - MARGIN);
                let label = Label::new(title, (8.0, y), NOTE, Anchor::Left).bold();
                layout.canvas.text_before(label);
            }
        }
    }

    fn panel(&self, layout: &mut Layout, metric: usize, area: &Area, blocks: &[Block]) {
        let panel = &PANELS[metric];
        heading(layout, panel, area);
        let value = |row: &Row| row.values[metric];
        let all = || blocks.iter().flat_map(|block| &block.rows).map(value);
        let most = all().filter(|value| value.is_finite()).fold(0.0, f64::max);
        let scale = Scale::linear(0.0, most, area.x, area.right() - VALUES);
        across(&mut layout.canvas, area, &scale, "");
        for (y, block, row) in self.places(blocks, area.y) {
            let Some(row) = row else { continue };
            let value = value(row);
            let drawn = value.is_finite() && value > 0.0;
            let right = if drawn { scale.at(value) } else { area.x };
            if drawn {
                let high = self.pitch - BETWEEN;
                let bar = Area::new(area.x, y - high / 2.0, right - area.x, high);
                layout.canvas.bar(bar, row.fill);
            }
            let label = Label::new(words(value, most), (right + 3.0, y), NOTE, Anchor::Left);
            let best = panel.is_best(value, block.rows.iter().map(|row| row.values[metric]));
            layout.canvas.text(if best { label.bold() } else { label });
        }
        outline(&mut layout.canvas, area);
    }
}

/// What is above a panel.
fn heading(layout: &mut Layout, panel: &Panel, area: &Area) {
    let centre = area.x + area.width / 2.0;
    let title = Label::new(panel.name, (centre, area.y - 22.0), LABEL, Anchor::Centre);
    layout.canvas.text(title.bold());
    let better = if panel.more { "more is better" } else { "less is better" };
    let better = Label::new(better, (centre, area.y - 8.0), NOTE, Anchor::Centre);
    layout.canvas.text(better.coloured(SOFT_INK));
}

/// How a value is written where the largest is `most`.
fn words(value: f64, most: f64) -> String {
    match value {
        value if value.is_infinite() => "∞".into(),
        value if value >= 99_999.5 => short(value),
        value if value > 0.0 => format!("{value:.*}", places(most)),
        _ => "–".into(),
    }
}

/// How many decimals values up to `most` have: enough to tell apart what bold type does.
fn places(most: f64) -> usize {
    if (0.1..0.995).contains(&most) { 3 } else { decimals(most) }
}

impl Panel {
    /// Whether `value` is the best of `all` or as good, and not all are.
    fn is_best(&self, value: f64, all: impl Iterator<Item = f64> + Clone) -> bool {
        let reported = all.filter(|value| value.is_finite() && *value > 0.0);
        let better: fn(f64, f64) -> f64 = if self.more { f64::max } else { f64::min };
        let Some(best) = reported.clone().reduce(better) else { return false };
        let alike = |value: f64| (value / best - 1.0).abs() <= NOISE;
        alike(value) && !reported.clone().all(alike)
    }
}

/// Every run, named by its scheme, and by its mix where there are several.
fn table(records: &[&Analysis]) -> String {
    let mut lines = Vec::new();
    for (mix, record) in mix_names(records).iter().zip(records) {
        for (scheme, run) in scheme_names(&record.coruns).into_iter().zip(&record.coruns) {
            let name = if records.len() > 1 { format!("{mix}: {scheme}") } else { scheme };
            let [stp, antt, fairness, speedup, ipc, harmonic, alu, energy] =
                PANELS.map(|panel| (panel.of)(run));
            lines.push(row![name, stp, antt, fairness, speedup, ipc, harmonic, alu, energy]);
        }
    }
    csv(
        "scheme,stp,antt,fairness_min_speedup,makespan_speedup,ipc_throughput,harmonic_speedup,alu_utilization,energy_nanojoules_per_thread_instruction",
        lines,
    )
}
