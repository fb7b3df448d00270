//! How busy units and memory are while each kernel runs, on the profiler's scale from
//! 0 to 10: a map of shaded cells (ARCS 2018, Fig. 7, there as radar charts).

use super::{Drawing, FigureInput, NO_SOLO, ReportError, empty};
use crate::chart::{
    Anchor, Area, LABEL, Label, Shades, Sheet, explain, fit, heads, shaded, text_width,
};
use crate::number::float;
use crate::profile::{Profile, profiles};
use crate::values::csv;
use gpumodel_core::units::to_u64;

/// Kernels that are drawn.
const KERNELS: usize = 40;
/// Most room of the names of kernels, and of upright names of resources.
const NAMES: f64 = 130.0;
const RIGHT: f64 = 8.0;
const ROW: f64 = 18.0;
/// Widest cell.
const CELL: f64 = 46.0;
/// Full on the scale of the profiler.
const FULL: f64 = 10.0;
/// Resources behind the execution units, in order.
const MEMORY: [&str; 4] = ["shared", "l1", "l2", "dram"];

pub(super) fn draw(input: &FigureInput<'_>) -> Result<Drawing, ReportError> {
    let (rows, left_out) = profiles(input.runs(), KERNELS, |kernel| {
        kernel.activity.clone().filter(|_| !kernel.memory_only)
    });
    let resources = resources(&rows);
    if resources.is_empty() {
        let missing = format!("no kernel of the records says how busy units were; {NO_SOLO}");
        return Err(empty("activity", &missing));
    }
    let mut sheet = input.sheet("How busy units and memory are");
    let shades = Shades::new(0.0, FULL);
    map(&mut sheet, &rows, &resources, &shades);
    explain(&mut sheet, &shades, (0.0, FULL), "tenths of the peak");
    sheet.note("From 0 to 10, over the time of a kernel; –: the kernel does not use it.");
    if left_out > 0 {
        sheet.note(&format!("{left_out} more kernels, with fewer cycles, are not drawn."));
    }
    Ok(sheet.finish(&input.footer()).with_csv(table(&rows, &resources)))
}

/// Every resource that some kernel uses: units by name, then memory from near to far.
fn resources(rows: &[Profile]) -> Vec<&str> {
    let known = |name: &&str| MEMORY.contains(name);
    let mut units: Vec<&str> =
        rows.iter().flat_map(|row| row.shares.keys()).map(String::as_str).collect();
    units.sort_unstable();
    units.dedup();
    let memory: Vec<&str> = MEMORY.into_iter().filter(|name| units.contains(name)).collect();
    units.retain(|name| !known(name));
    units.extend(memory);
    units
}

fn map(sheet: &mut Sheet, rows: &[Profile], resources: &[&str], shades: &Shades) {
    let most = sheet.share(NAMES);
    let names = rows.iter().map(|row| text_width(&row.label, LABEL)).fold(0.0, f64::max);
    let left = names.min(most) + 14.0;
    let width = ((sheet.width() - RIGHT - left) / float(to_u64(resources.len()))).min(CELL);
    let top = heads(sheet, resources, (left, sheet.top() + 4.0), width, NAMES);
    let height = ROW * float(to_u64(rows.len()));
    let whole = Area::new(left, top, width * float(to_u64(resources.len())), height);
    sheet.mark_plot(whole);
    let mut y = top;
    for row in rows {
        let at = (left - 5.0, y + ROW / 2.0);
        let name = fit(&row.label, LABEL, most);
        sheet.canvas.text(Label::new(name, at, LABEL, Anchor::Right));
        let mut x = left;
        for resource in resources {
            let level = row.shares.get(*resource).map(|share| share * FULL);
            let value = level.map(|level| (level, format!("{level:.1}")));
            shaded(sheet, &Area::new(x, y, width, ROW), value.as_ref(), shades);
            x += width;
        }
        y += ROW;
    }
    sheet.skip(whole.bottom() - sheet.top() + 10.0);
}

fn table(rows: &[Profile], resources: &[&str]) -> String {
    let mut lines = Vec::new();
    for row in rows {
        lines.extend(resources.iter().filter_map(|resource| {
            let share = row.shares.get(*resource)?;
            Some([row.label.clone(), (*resource).to_string(), share.to_string()])
        }));
    }
    csv(["kernel", "resource", "activity"], lines)
}
