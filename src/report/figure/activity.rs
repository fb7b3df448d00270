//! How busy units and memory are while each kernel runs, on the profiler's scale from
//! 0 to 10: a map of shaded cells (ARCS 2018, Fig. 7, there as radar charts).

use super::prelude::*;
use crate::machine::word;

/// Kernels that are drawn.
const KERNELS: usize = 40;
/// Most room of the names of kernels, and of upright names of resources.
const NAMES: f64 = 130.0;
const RIGHT: f64 = 8.0;
const ROW: f64 = 18.0;
/// Widest cell.
const CELL: f64 = 80.0;
/// Full on the scale of the profiler.
const FULL: f64 = 10.0;
/// Resources behind the execution units, in order.
const MEMORY: [&str; 4] = ["shared", "l1", "l2", "dram"];

pub(super) fn draw(input: &FigureInput<'_>) -> Drawn {
    let (rows, left_out) =
        input.profiles(KERNELS, |kernel| kernel.activity.clone().filter(|_| !kernel.memory_only));
    let resources = resources(&rows);
    let missing = format!("no kernel of the records says how busy units were; {NO_SOLO}");
    ensure(!resources.is_empty(), missing)?;
    let mut layout = input.layout("How busy units and memory are");
    let shades = Shades::new(0.0, FULL);
    map(&mut layout, &rows, &resources, &shades);
    explain(&mut layout, &shades, (0.0, FULL), "tenths of the peak");
    layout.note("From 0 to 10, over the time of a kernel; –: the kernel does not use it.");
    layout.left_out(left_out, MORE_KERNELS);
    Ok(layout.finish(&input.footer()).with_csv(table(&rows, &resources)))
}

/// Every resource that some kernel uses: units by name, then memory from near to far.
fn resources(rows: &[Profile]) -> Vec<&str> {
    let used: BTreeSet<&str> =
        rows.iter().flat_map(|row| row.shares.keys()).map(String::as_str).collect();
    let units = used.iter().copied().filter(|name| !MEMORY.contains(name));
    units.chain(MEMORY.into_iter().filter(|name| used.contains(name))).collect()
}

fn map(layout: &mut Layout, rows: &[Profile], resources: &[&str], shades: &Shades) {
    let most = layout.share(NAMES);
    let names: Vec<&str> = rows.iter().map(|row| row.label.as_str()).collect();
    let left = name_room(&names, NOTE, most) + 14.0;
    let width = ((layout.width() - RIGHT - left) / float(resources.len())).min(CELL);
    let words: Vec<String> = resources.iter().map(|resource| word(resource)).collect();
    let top = heads(layout, &words, (left, layout.top() + 4.0), width, NAMES);
    let height = ROW * float(rows.len());
    let whole = Area::new(left, top, width * float(resources.len()), height);
    layout.mark_plot(whole);
    let mut y = top;
    for row in rows {
        let at = (left - 5.0, y + ROW / 2.0);
        let name = fit(&row.label, NOTE, most);
        layout.canvas.write(name, at, NOTE, Anchor::Right);
        let mut x = left;
        for resource in resources {
            let level = row.shares.get(*resource).map(|share| share * FULL);
            let value = level.map(|level| (level, format!("{level:.1}")));
            shaded(layout, &Area::new(x, y, width, ROW), value.as_ref(), shades);
            x += width;
        }
        y += ROW;
    }
    layout.skip(whole.bottom() - layout.top() + 10.0);
}

fn table(rows: &[Profile], resources: &[&str]) -> String {
    let mut lines = Vec::new();
    for row in rows {
        lines.extend(
            resources
                .iter()
                .filter_map(|resource| Some(row![row.label, resource, row.shares.get(*resource)?])),
        );
    }
    csv("kernel,resource,activity", lines)
}
