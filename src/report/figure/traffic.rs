//! Bytes through L1, L2 and DRAM per kernel: three bars each, with hit rates.

use gpumodel_core::units::SECTOR_BYTES;

use super::prelude::*;

const ROWS: usize = 8;
const ROW: f64 = 46.0;
const BAR: f64 = 13.0;
const NAMES: f64 = 200.0;

/// One bar: its part in another fill at the end, and what is written after it.
struct Bar {
    value: f64,
    fill: Fill,
    tail: f64,
    text: String,
}

pub(super) fn draw(input: &FigureInput<'_>) -> Drawn {
    let groups = groups(&input.apps, ROWS);
    ensure(!groups.is_empty(), "the records hold no kernels; run `gpumodel analyze`")?;
    let rows: Vec<[Bar; 3]> = groups.iter().map(bars).collect();
    let mut layout = input.layout("Bytes through the memory hierarchy");
    layout.legend(&[
        Entry::new(Swatch::Fill(Fill::of(4)), "L1"),
        Entry::new(Swatch::Fill(Fill::of(1)), "L2"),
        Entry::new(Swatch::Fill(Fill::of(0)), "DRAM read"),
        Entry::new(Swatch::Fill(Fill::of(5)), "DRAM write"),
    ]);
    let texts = rows.iter().flatten().map(|bar| text_width(&bar.text, NOTE)).fold(0.0, f64::max);
    let left = title_room(&groups, LABEL, layout.share(NAMES)) + 14.0;
    let area = layout.plot(left, 10.0, ROW * float(rows.len()));
    let most = rows.iter().flatten().map(|bar| bar.value).fold(0.0, f64::max);
    let room = area.right() - texts - 8.0;
    let scale = Scale::from_zero(most, area.x, room.max(area.x + 60.0));
    across(&mut layout.canvas, &area, &scale, "bytes (32-byte sectors)");
    let mut y = area.y;
    for (group, bars) in groups.iter().zip(&rows) {
        let name = group.title(LABEL, left - 14.0);
        layout.canvas.write(name, (left - 6.0, y + ROW / 2.0), LABEL, Anchor::Right);
        for (bar, line) in bars.iter().zip([0.0, 1.0, 2.0]) {
            draw_bar(&mut layout, bar, &scale, y + 3.5 + line * BAR);
        }
        y += ROW;
    }
    outline(&mut layout.canvas, &area);
    layout.skip(38.0);
    layout.note(&total(&groups));
    Ok(layout.finish(&input.footer()))
}

fn draw_bar(layout: &mut Layout, bar: &Bar, scale: &Scale, top: f64) {
    let (left, right) = (scale.at(0.0), scale.at(bar.value));
    let split = scale.at(bar.value - bar.tail);
    for (from, to, fill) in [(left, split, bar.fill), (split, right, Fill::of(5))] {
        if to - from > 0.05 {
            let area = Area::new(from, top, to - from, BAR - 2.0);
            layout.canvas.bar(area, fill);
        }
    }
    layout.canvas.write(bar.text.clone(), (right + 4.0, top + BAR / 2.0 - 1.0), NOTE, Anchor::Left);
}

fn bars(group: &Group) -> [Bar; 3] {
    let size = |sectors: u64| float(sectors.saturating_mul(SECTOR_BYTES));
    let cache = |accesses: u64, rate: Option<f64>, fill: Fill| Bar {
        value: size(accesses),
        fill,
        tail: 0.0,
        text: match rate {
            Some(_) => format!("{}, {} hit", bytes(size(accesses)), percent(rate)),
            None => "no access".into(),
        },
    };
    let dram = size(group.dram_sectors());
    [
        cache(group.sum.l1.accesses, group.sum.l1.hit_rate(), Fill::of(4)),
        cache(group.sum.l2.accesses, group.sum.l2.hit_rate(), Fill::of(1)),
        Bar {
            value: dram,
            fill: Fill::of(0),
            tail: size(group.sum.dram.write_sectors),
            text: if dram > 0.0 { bytes(dram) } else { "no access".into() },
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
