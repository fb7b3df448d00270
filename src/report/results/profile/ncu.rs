//! `ncu --csv`: one line per metric (the details page, and any page of `--metrics`), one line per
//! launch (the raw page), or one line per kernel and metric (`--print-summary per-kernel`).

use std::collections::BTreeMap;

use gpumodel_core::units::quoted;

use super::metrics::{Values, find, scale};
use super::sheet::{Line, Sheet, Wrong};
use super::{Extent, Profiled};

/// Whether a line is the header of such a table.
pub(super) fn is_header(cells: &[String]) -> bool {
    let has = |name: &str| cells.iter().any(|cell| cell.trim() == name);
    let long = has("Metric Name") && (has("Metric Value") || has("Average"));
    let wide = cells.iter().any(|cell| cell.contains("__"));
    has("Kernel Name") && (has("ID") || has("Process ID")) && (long || wide)
}

/// The launches of the table, in its order.
pub(super) fn read(sheet: &Sheet) -> Result<Vec<Profiled>, Wrong> {
    let columns = Columns::of(sheet)?;
    let launches =
        match (sheet.column(&["Metric Name"]), sheet.column(&["Metric Value", "Average"])) {
            (Some(name), Some(value)) => long(sheet, &columns, name, value)?,
            _ => wide(sheet, &columns)?,
        };
    if launches.is_empty() {
        let message = "expected metrics of a launch below the header, found none; profile with `ncu --set full`";
        return Err(Wrong::at(sheet.header_line, message));
    }
    Ok(launches)
}

/// Where a table says which launch a line is about.
struct Columns {
    id: Option<usize>,
    process: Option<usize>,
    process_name: Option<usize>,
    kernel: usize,
    block: Option<usize>,
    grid: Option<usize>,
    invocations: Option<usize>,
    unit: Option<usize>,
}

impl Columns {
    fn of(sheet: &Sheet) -> Result<Self, Wrong> {
        let missing =
            || Wrong::at(sheet.header_line, "expected a column `Kernel Name`, found none");
        Ok(Self {
            id: sheet.column(&["ID"]),
            process: sheet.column(&["Process ID"]),
            process_name: sheet.column(&["Process Name"]),
            kernel: sheet.column(&["Kernel Name"]).ok_or_else(missing)?,
            block: sheet.column(&["Block Size", "Block"]),
            grid: sheet.column(&["Grid Size", "Grid"]),
            invocations: sheet.column(&["Invocations"]),
            unit: sheet.column(&["Metric Unit"]),
        })
    }

    /// The launch of `line`, without metrics.
    fn launch(&self, sheet: &Sheet, line: &Line) -> Result<Profiled, Wrong> {
        let text = |column: Option<usize>| column.map_or("", |at| sheet.text(line, at));
        let kernel = sheet.text(line, self.kernel);
        if kernel.is_empty() {
            let place = self.kernel + 1;
            let message = format!("column {place} (`Kernel Name`): expected a name, found nothing");
            return Err(Wrong::at(line.number, message));
        }
        let of = self.invocations.map(|at| sheet.number(line, at)).transpose()?.flatten();
        Ok(Profiled {
            line: line.number,
            process: format!("{} {}", text(self.process), text(self.process_name)),
            program: text(self.process_name).to_owned(),
            kernel: kernel.to_owned(),
            grid: extent(text(self.grid)),
            block: extent(text(self.block)),
            launches: of,
            values: Values::default(),
        })
    }
}

/// `(256, 1, 1)`.
fn extent(text: &str) -> Option<Extent> {
    let inner = text.trim().trim_start_matches('(').trim_end_matches(')');
    let mut numbers = inner.split(',').map(|part| part.trim().parse().ok());
    let all = [numbers.next()??, numbers.next()??, numbers.next()??];
    numbers.next().is_none().then_some(all)
}

fn long(
    sheet: &Sheet,
    columns: &Columns,
    name: usize,
    value: usize,
) -> Result<Vec<Profiled>, Wrong> {
    let mut launches: Vec<Profiled> = Vec::new();
    let mut known: BTreeMap<[String; 6], usize> = BTreeMap::new();
    for line in &sheet.lines {
        let text = |column: Option<usize>| column.map_or("", |at| sheet.text(line, at)).to_owned();
        let metric = sheet.text(line, name);
        if metric.is_empty() {
            continue;
        }
        let kernel = Some(columns.kernel);
        let key = [
            columns.id,
            columns.process,
            columns.process_name,
            kernel,
            columns.grid,
            columns.block,
        ]
        .map(text);
        let place = match known.get(&key) {
            Some(place) => *place,
            None => {
                launches.push(columns.launch(sheet, line)?);
                known.insert(key, launches.len() - 1);
                launches.len() - 1
            }
        };
        let unit = columns.unit.map_or("", |at| sheet.text(line, at));
        let at = (line, value);
        note(sheet, &mut launches[place].values, (metric, unit), at)?;
    }
    Ok(launches)
}

fn wide(sheet: &Sheet, columns: &Columns) -> Result<Vec<Profiled>, Wrong> {
    let units = sheet.lines.first().filter(|line| sheet.text(line, columns.kernel).is_empty());
    let mut launches = Vec::new();
    for line in sheet.lines.iter().skip(usize::from(units.is_some())) {
        let mut launch = columns.launch(sheet, line)?;
        for (at, metric) in sheet.header.iter().enumerate() {
            let unit = units.map_or("", |units| sheet.text(units, at));
            note(sheet, &mut launch.values, (metric, unit), (line, at))?;
        }
        launches.push(launch);
    }
    Ok(launches)
}

/// Notes the value of a metric that a comparison knows.
fn note(
    sheet: &Sheet,
    values: &mut Values,
    (metric, unit): (&str, &str),
    (line, column): (&Line, usize),
) -> Result<(), Wrong> {
    // `Memory Throughput` is a share in one section and a bandwidth in another.
    let Some(known) = find(metric).filter(|_| metric != "Memory Throughput" || unit != "%") else {
        return Ok(());
    };
    let Some(value) = sheet.number(line, column)? else { return Ok(()) };
    let Some(scale) = scale(unit, metric) else {
        let message = format!(
            "the unit of {}: expected one of Nsight Compute as `nsecond`, `Kbyte` or `%`, found {}",
            quoted(metric.as_bytes()),
            quoted(unit.as_bytes())
        );
        return Err(Wrong::at(line.number, message));
    };
    values.note(known, value * scale);
    Ok(())
}
