//! The applications of the CTAs on each SM over time: one panel per sharing scheme, one row
//! per SM. A cell is divided as its resident CTAs are; a full one held CTAs all
//! the time.

use gpumodel_core::units::{to_u64, to_usize};

use super::prelude::*;
use crate::results::ResidencyRecord;

const LEFT: f64 = 48.0;
/// As much where names are long.
const WIDEST: f64 = 200.0;
const RIGHT: f64 = 14.0;
/// Room of the SMs' numbers.
const NUMBERS: f64 = 26.0;
/// Left of a panel, the title of its axis, and the height that it takes.
const TITLE: f64 = 12.0;
const TITLED: f64 = 20.0;
/// Height of all panels together, and of a row at least and at most.
const HEIGHT: f64 = 420.0;
const ROW: (f64, f64) = (3.0, 12.0);
/// Rows of a panel at most.
const ROWS: usize = 50;
/// Height of a row for each application that shares it.
const SHARE: f64 = 2.0;
/// Boxes of all panels together.
const BOXES: usize = 10_000;
/// How far a box runs into the next, so that no seam shows between them.
const SEAM: f64 = 0.3;
/// Heights that a boundary within a cell may have.
const STEPS: f64 = 8.0;

/// How a panel divides SMs and time.
struct Division {
    sms: usize,
    /// SMs of one row, intervals of one column.
    merged: (usize, usize),
    rows: usize,
    row_height: f64,
}

/// One scheme's panel.
struct Panel<'a> {
    name: String,
    run: &'a CoRun,
    grid: &'a ResidencyRecord,
    /// The places of its applications, from below.
    places: Vec<usize>,
}

pub(super) fn draw(input: &FigureInput<'_>) -> Drawn {
    let record = input.mix()?;
    let panels = panels(input, record);
    ensure(!panels.is_empty(), "the co-runs do not say which CTAs were where")?;
    let mut layout = input.layout("Applications on the SMs over time, by sharing scheme");
    layout.legend(&app_entries(panels.iter().map(|panel| (panel.run, &panel.places[..]))));
    let end = panels.iter().map(|panel| panel.run.cycles).max().unwrap_or(1);
    let names: Vec<&str> = panels.iter().map(|panel| panel.name.as_str()).collect();
    let left = layout.left_of(&names, LABEL, (LEFT, WIDEST), NUMBERS + 8.0);
    let (last, sms) = (panels.len() - 1, sms(record, &panels));
    for (index, panel) in panels.iter().enumerate() {
        let division = Division::of(sms, panel, panels.len());
        layout.skip(5.0);
        let area = layout.plot(left, RIGHT, division.row_height * float(division.rows));
        let time = Scale::linear(0.0, float(end), area.x, area.right());
        across(&mut layout.canvas, &area, &time, if index == last { "cycle" } else { "" });
        panel.draw(&mut layout, &division, &area, &time);
        layout.skip(if index == last { 36.0 } else { 1.0 + AXIS_HEIGHT });
    }
    layout.note("Rows are SMs, divided as their resident CTAs are; ticks above: decisions.");
    Ok(layout.finish(&input.footer()).with_csv(table(&panels)))
}

/// The co-runs that say which CTAs were where.
fn panels<'a>(input: &FigureInput<'_>, record: &'a Analysis) -> Vec<Panel<'a>> {
    let panel = |(name, run): (String, _)| {
        let run: &CoRun = run;
        let grid = run.residency.as_ref().filter(|grid| grid.interval_cycles > 0)?;
        let held = grid.rows.iter().any(|row| row.ctas.iter().any(|&ctas| ctas > 0.0));
        held.then_some((name, run, grid))
    };
    let reported = scheme_names(&record.coruns).into_iter().zip(&record.coruns).filter_map(panel);
    let panel = |(name, run, grid)| Panel { name, run, grid, places: input.places(run) };
    reported.map(panel).collect()
}

/// The SMs of all panels.
fn sms(record: &Analysis, panels: &[Panel<'_>]) -> usize {
    let rows = panels.iter().flat_map(|panel| &panel.grid.rows);
    let seen = rows.map(|row| to_usize(row.sm) + 1).max().unwrap_or(1);
    let named = usize::try_from(record.machine.sms).unwrap_or(seen);
    // A machine of the record may be wrong, the rows are what is drawn.
    if named < 4 * seen { named.max(seen) } else { seen }
}

impl Division {
    /// The division of one of `panels` panels of so many SMs: rows as high as the applications
    /// that share an SM need.
    fn of(sms: usize, panel: &Panel<'_>, panels: usize) -> Self {
        let least = (SHARE * panel.sharing()).clamp(ROW.0, 2.0 * ROW.1);
        let height = (HEIGHT / float(panels)).clamp(36.0, 150.0);
        let most = (1..=ROWS).rev().find(|&rows| least * float(rows) <= height);
        let merged = sms.div_ceil(most.unwrap_or(1));
        let drawn = sms.div_ceil(merged);
        let row_height = (height / float(drawn)).clamp(least, ROW.1.max(least));
        let mut division = Self { sms, merged: (merged, 1), rows: drawn, row_height };
        while panel.boxes(&division) > BOXES / panels
            && division.merged.1 < ResidencyRecord::INTERVALS
        {
            division.merged.1 *= 2;
        }
        division
    }
}

impl Panel<'_> {
    fn draw(&self, layout: &mut Layout, division: &Division, area: &Area, time: &Scale) {
        let middle = area.y + area.height / 2.0;
        let at = (area.x - NUMBERS, middle);
        left_of(&mut layout.canvas, &self.name, at, (area.x - NUMBERS - 8.0, area.height));
        if division.merged.0 > 1 {
            let words = format!("{} SMs per row", division.merged.0);
            let at = (area.x - NUMBERS, middle + 14.0);
            layout.canvas.text(Label::new(words, at, NOTE, Anchor::Right).coloured(SOFT_INK));
        }
        numbers(layout, division, area);
        for row in 0..division.rows {
            self.row(layout, division, area, time, row);
        }
        decision_ticks(layout, self.run, time, (area.y - 4.0, area.y));
        outline(&mut layout.canvas, area);
    }

    /// Applications at a time on an SM that holds any, the mean.
    fn sharing(&self) -> f64 {
        let mut held: BTreeMap<(u32, usize), u32> = BTreeMap::new();
        for row in &self.grid.rows {
            for (place, _) in row.ctas.iter().enumerate().filter(|(_, ctas)| **ctas > 0.0) {
                *held.entry((row.sm, place)).or_default() += 1;
            }
        }
        let sum: f64 = held.values().map(|&apps| f64::from(apps)).sum();
        sum / float(held.len().max(1))
    }

    /// Boxes that a division takes at most.
    fn boxes(&self, division: &Division) -> usize {
        let boxes = |row| {
            let cells = self.cells(division, row);
            let parts = cells.chunk_by(|a, b| a == b).map(|same| same[0].len());
            parts.sum::<usize>()
        };
        (0..division.rows).map(boxes).sum()
    }

    /// One row: cells that look alike are one box for each application.
    fn row(&self, layout: &mut Layout, division: &Division, area: &Area, time: &Scale, row: usize) {
        let cells = self.cells(division, row);
        let height = division.row_height;
        let top = area.y + height * float(row);
        let span = self.grid.interval_cycles.saturating_mul(to_u64(division.merged.1));
        let edge = |column: usize| {
            let cycle = span.saturating_mul(to_u64(column)).min(self.run.cycles);
            time.at(float(cycle))
        };
        let mut from = 0;
        for same in cells.chunk_by(|a, b| a == b) {
            let (left, right) = (edge(from), edge(from + same.len()));
            from += same.len();
            let mut low = 0.0;
            for (app, &high) in same[0].iter().enumerate().filter(|_| right > left) {
                if high > low {
                    let upper = top + height * (1.0 - high / STEPS);
                    let lower = top + height * (1.0 - low / STEPS);
                    let (to, below) =
                        ((right + SEAM).min(area.right()), (lower + SEAM).min(area.bottom()));
                    let part = Area::new(left, upper, to - left, below - upper);
                    layout.canvas.fill(part, Fill::flat(app));
                    low = high;
                }
            }
        }
    }

    /// The upper boundary of each application in each column of a row, in steps.
    fn cells(&self, division: &Division, row: usize) -> Vec<Vec<f64>> {
        let (sms, intervals) = division.merged;
        let first = row * sms;
        let last = (first + sms).min(division.sms);
        let here = self.grid.rows.iter().filter(|r| (first..last).contains(&to_usize(r.sm)));
        let here: Vec<_> = here.collect();
        let length = here.iter().map(|r| r.ctas.len()).max().unwrap_or(0);
        let mut sums = vec![vec![0.0; self.places.len()]; length.div_ceil(intervals)];
        let cells = float((last - first) * intervals);
        for resident in here {
            let app = to_usize(resident.app_index);
            let app = self.places.iter().position(|&place| place == app).unwrap_or(app);
            for (place, ctas) in resident.ctas.iter().enumerate() {
                sums[place / intervals][app] += ctas.max(0.0) / cells;
            }
        }
        sums.iter().map(|column| boundaries(column)).collect()
    }
}

/// The boundaries of a cell with these mean CTAs.
fn boundaries(ctas: &[f64]) -> Vec<f64> {
    let total: f64 = ctas.iter().sum();
    if total <= 0.0 || !total.is_finite() {
        return vec![0.0; ctas.len()];
    }
    let mut sum = 0.0;
    let upper = |ctas: &f64| {
        sum += ctas;
        (STEPS * total.min(1.0) * sum / total).round()
    };
    ctas.iter().map(upper).collect()
}

/// The numbers of the first and the last SM, and between them what they are.
fn numbers(layout: &mut Layout, division: &Division, area: &Area) {
    let half = division.row_height.max(NOTE) / 2.0;
    let mut label = |sm: usize, y: f64| {
        layout.canvas.write(sm.to_string(), (area.x - 5.0, y), NOTE, Anchor::Right);
    };
    label(0, area.y + half);
    if division.rows > 1 {
        label(division.sms - 1, area.bottom() - half);
    }
    if area.height - 2.0 * half - NOTE >= TITLED {
        let at = (area.x - TITLE, area.y + area.height / 2.0);
        layout.canvas.text(Label::new("SM", at, NOTE, Anchor::Centre).upwards());
    }
}

/// One line for each stretch in which the CTAs of an application on an SM are the same.
fn table(panels: &[Panel<'_>]) -> String {
    let mut lines = Vec::new();
    for panel in panels {
        for row in &panel.grid.rows {
            let app = &panel.run.apps[to_usize(row.app_index)].app;
            let edge = |place: usize| {
                let cycle = panel.grid.interval_cycles.saturating_mul(to_u64(place));
                cycle.min(panel.run.cycles)
            };
            let mut from = 0;
            for same in row.ctas.chunk_by(f64::eq) {
                let to = from + same.len();
                lines.push(row![panel.name, row.sm, app, edge(from), edge(to), same[0]]);
                from = to;
            }
        }
    }
    csv("scheme,sm,app,start_cycle,end_cycle,ctas", lines)
}

#[cfg(test)]
mod tests {
    use super::boundaries;

    #[test]
    fn a_cell_is_divided_as_its_ctas_are() {
        assert_eq!(boundaries(&[3.0, 1.0]), [6.0, 8.0]);
        assert_eq!(boundaries(&[0.0, 0.5]), [0.0, 4.0], "held half of the time");
        assert_eq!(boundaries(&[0.0, 0.0]), [0.0, 0.0]);
    }
}
