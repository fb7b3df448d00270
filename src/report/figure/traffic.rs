//! Bytes through L1, L2 and DRAM per kernel: three bars each, with hit rates.

use gpumodel_core::units::SECTOR_BYTES;

use super::prelude::*;

const ROWS: usize = 8;
const ROW: f64 = 50.0;
const BAR: f64 = 11.5;
/// Above the bars of a kernel, its name.
const NAME: f64 = 14.0;
/// Left of the bars, what they are.
const LEFT: f64 = 50.0;
/// Right of the bars, the columns of bytes and of hit rates.
const BYTES: f64 = 46.0;
const HITS: f64 = 44.0;

/// One bar: its part in another fill at the end, and its hit rate.
struct Bar {
    name: &'static str,
    value: f64,
    fill: Fill,
    tail: f64,
    hits: Option<f64>,
}

pub(super) fn draw(input: &FigureInput<'_>) -> Drawn {
    let groups = input.groups(ROWS);
    ensure(!groups.is_empty(), "the records hold no kernels; run `gpumodel analyze`")?;
    let rows: Vec<[Bar; 3]> = groups.iter().map(bars).collect();
    let mut layout = input.layout("Bytes through the memory hierarchy");
    let names = [(4, "L1"), (1, "L2"), (0, "DRAM read"), (5, "DRAM write")];
    let written = rows.iter().flatten().any(|bar| bar.tail > 0.0);
    let names = &names[..if written { names.len() } else { names.len() - 1 }];
    let entry = |(look, name): &(usize, &str)| Entry::new(Swatch::look(*look), *name);
    layout.legend(&names.iter().map(entry).collect::<Vec<_>>());
    let most = rows.iter().flatten().map(|bar| bar.value).fold(0.0, f64::max);
    let unit = Unit::of(most);
    let top = layout.top() + NOTE / 2.0;
    layout.skip(NOTE + 3.0);
    let area = layout.plot(LEFT, BYTES + HITS + 8.0, ROW * float(rows.len()));
    let ends = (area.right() + BYTES, area.right() + BYTES + HITS);
    layout.canvas.write(unit.name, (ends.0, top), NOTE, Anchor::Right);
    layout.canvas.write("hits", (ends.1, top), NOTE, Anchor::Right);
    let scale = Scale::from_zero(most / unit.bytes, area.x, area.right());
    across(&mut layout.canvas, &area, &scale, &format!("{} in 32-byte sectors", unit.name));
    let mut y = area.y;
    for (group, bars) in groups.iter().zip(&rows) {
        let name = group.title(NOTE, area.width - 8.0);
        let at = (area.x + 4.0, y + NAME / 2.0 + 0.5);
        layout.canvas.text_before(Label::new(name, at, NOTE, Anchor::Left));
        for (bar, line) in bars.iter().zip([0.0, 1.0, 2.0]) {
            draw_bar(&mut layout, bar, &scale, &unit, y + NAME + line * BAR);
        }
        y += ROW;
    }
    outline(&mut layout.canvas, &area);
    layout.skip(38.0);
    layout.note(&total(&groups));
    Ok(layout.finish(&input.footer()))
}

/// The unit of a figure, and how many decimals its largest value has.
struct Unit {
    bytes: f64,
    name: &'static str,
    decimals: usize,
}

impl Unit {
    fn of(most: f64) -> Self {
        let units = [(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")];
        let fits = |unit: &(f64, &str)| most >= unit.0 * 0.9995;
        let (bytes, name) = units.into_iter().find(fits).unwrap_or((1.0, "B"));
        let decimals = if bytes > 1.0 { decimals(most / bytes) } else { 0 };
        Self { bytes, name, decimals }
    }

    /// A value in it; what would round to nothing is less than the least.
    fn words(&self, value: f64) -> String {
        let value = value / self.bytes;
        let words = format!("{value:.*}", self.decimals);
        let none = value > 0.0 && words.chars().all(|c| matches!(c, '0' | '.'));
        if none { format!("<{}1", &words[..words.len() - 1]) } else { words }
    }
}

fn draw_bar(layout: &mut Layout, bar: &Bar, scale: &Scale, unit: &Unit, top: f64) {
    let at = |value: f64| scale.at(value / unit.bytes);
    let (left, right, split) = (at(0.0), at(bar.value), at(bar.value - bar.tail));
    for (from, to, fill) in [(left, split, bar.fill), (split, right, Fill::of(5))] {
        if to - from > 0.05 {
            let area = Area::new(from, top, to - from, BAR - 2.0);
            layout.canvas.bar(area, fill);
        }
    }
    let (middle, edge) = (top + BAR / 2.0 - 1.0, at(scale.high() * unit.bytes));
    let mut write =
        |words: String, x: f64| layout.canvas.write(words, (x, middle), NOTE, Anchor::Right);
    write(bar.name.into(), left - 5.0);
    write(unit.words(bar.value), edge + BYTES);
    if bar.hits.is_some() {
        write(percent(bar.hits), edge + BYTES + HITS);
    }
}

fn bars(group: &Group) -> [Bar; 3] {
    let size = |sectors: u64| float(sectors.saturating_mul(SECTOR_BYTES));
    let cache = |name, accesses: u64, hits: Option<f64>, fill: Fill| Bar {
        name,
        value: size(accesses),
        fill,
        tail: 0.0,
        hits,
    };
    let (l1, l2) = (&group.sum.l1, &group.sum.l2);
    [
        cache("L1", l1.accesses, l1.hit_rate(), Fill::of(4)),
        cache("L2", l2.accesses, l2.hit_rate(), Fill::of(1)),
        Bar {
            name: "DRAM",
            value: size(group.dram_sectors()),
            fill: Fill::of(0),
            tail: size(group.sum.dram.write_sectors),
            hits: None,
        },
    ]
}

fn total(groups: &[Group]) -> String {
    let sum = |of: fn(&Group) -> u64| {
        bytes(float(
            groups.iter().map(of).fold(0, u64::saturating_add).saturating_mul(SECTOR_BYTES),
        ))
    };
    let (l1, l2) = (sum(|g| g.sum.l1.accesses), sum(|g| g.sum.l2.accesses));
    format!("All kernels: L1 {l1}, L2 {l2}, DRAM {}.", sum(Group::dram_sectors))
}
