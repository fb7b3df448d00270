//! `nsys stats --format csv`: the launches of the report `cuda_gpu_trace`, or the kernels of
//! `cuda_gpu_kern_sum`, with the names that older versions give their columns.

use gpumodel_core::units::quoted;

use super::super::Quantity;
use super::metrics::{Measured, Values, scale};
use super::sheet::{Line, Sheet, Wrong};
use super::{Extent, Profiled};

const DURATION: &[&str] = &["Duration"];
const AVERAGE: &[&str] = &["Avg", "Average"];

/// Whether a line is the header of such a table.
pub(super) fn is_header(cells: &[String]) -> bool {
    let has = |names: &[&str]| find(cells, names).is_some();
    let named = cells.iter().any(|cell| cell.trim() == "Name");
    named && (has(&["Start"]) && has(DURATION) || has(&["Instances"]) && has(AVERAGE))
}

/// The column of one of these names, units aside, and its unit.
fn find<'h>(header: &'h [String], names: &[&str]) -> Option<(usize, &'h str)> {
    header.iter().enumerate().find_map(|(at, cell)| {
        let (name, unit) = cell.split_once('(').unwrap_or((cell, ""));
        names.contains(&name.trim()).then(|| (at, unit.trim().trim_end_matches(')')))
    })
}

/// The launches in the order in which they began, or the kernels.
pub(super) fn read(sheet: &Sheet) -> Result<Vec<Profiled>, Wrong> {
    let column = |names: &[&str]| find(&sheet.header, names);
    let (time, unit) = column(DURATION).or_else(|| column(AVERAGE)).unwrap_or_default();
    let scale = time_scale(sheet, time, unit)?;
    let name = sheet.column(&["Name"]).unwrap_or_default();
    let start = column(&["Start"]).map(|(at, _)| at);
    let instances = column(&["Instances"]).map(|(at, _)| at);
    let mut launches = Vec::new();
    for line in &sheet.lines {
        let kernel = sheet.text(line, name);
        if kernel.is_empty() || kernel.starts_with("[CUDA ") {
            continue;
        }
        let mut values = Values::default();
        if let Some(value) = sheet.number(line, time)? {
            values.note((Measured::Is(Quantity::Duration), 0, 1.0), value * scale);
        }
        let began = start.map(|at| sheet.number(line, at)).transpose()?.flatten();
        let launch = Profiled {
            line: line.number,
            process: String::new(),
            program: String::new(),
            kernel: kernel.to_owned(),
            grid: extent(sheet, line, ["GrdX", "GrdY", "GrdZ"])?,
            block: extent(sheet, line, ["BlkX", "BlkY", "BlkZ"])?,
            launches: instances.map(|at| sheet.number(line, at)).transpose()?.flatten(),
            values,
        };
        launches.push((began.unwrap_or(0.0), launch));
    }
    if launches.is_empty() {
        return Err(Wrong::at(sheet.header_line, "expected kernels below the header, found none"));
    }
    launches.sort_by(|one, other| one.0.total_cmp(&other.0));
    Ok(launches.into_iter().map(|(_, launch)| launch).collect())
}

/// Nanoseconds of a unit of time.
fn time_scale(sheet: &Sheet, column: usize, unit: &str) -> Result<f64, Wrong> {
    let word = if unit.is_empty() || unit == "nsec" { "ns" } else { unit };
    scale(word, "").ok_or_else(|| {
        let message = format!(
            "column {}: expected a time in ns, us, ms or s, found {}",
            column + 1,
            quoted(unit.as_bytes())
        );
        Wrong::at(sheet.header_line, message)
    })
}

fn extent(sheet: &Sheet, line: &Line, names: [&str; 3]) -> Result<Option<Extent>, Wrong> {
    let mut all = [0; 3];
    for (part, name) in all.iter_mut().zip(names) {
        let Some(column) = sheet.column(&[name]) else { return Ok(None) };
        if sheet.text(line, column).is_empty() {
            return Ok(None);
        }
        let whole = sheet.text(line, column).parse().ok();
        *part = whole.ok_or_else(|| {
            let found = quoted(sheet.text(line, column).as_bytes());
            let message =
                format!("column {} (`{name}`): expected a whole number, found {found}", column + 1);
            Wrong::at(line.number, message)
        })?;
    }
    Ok(Some(all))
}
