//! Where scheduler slots go: one stacked bar per kernel, causes of every
//! slot-cycle; the bar is full because every slot-cycle has one cause.

use super::prelude::*;
use crate::kernels::{ROUNDING, causes, shares};

const ROWS: usize = 12;
const ROW: f64 = 29.0;
const BAR: f64 = 15.0;
/// From the top of a bar up to the middle of the shares above it.
const ABOVE: f64 = 6.5;
const NAMES: f64 = 220.0;
const RIGHT: f64 = 48.0;

pub(super) fn draw(input: &FigureInput<'_>) -> Drawn {
    let groups = input.groups(ROWS);
    if groups.iter().all(|group| group.sum.stall_fractions.is_empty()) {
        return Err("the records hold no stall stacks; run `gpumodel analyze`".into());
    }
    let causes = causes(groups.iter().map(|group| &group.sum.stall_fractions));
    let mut layout = input.layout("Where scheduler slots go");
    layout.legend(&cause_entries(input, &causes));
    let left = title_room(&groups, LABEL, layout.share(NAMES)) + 14.0;
    heading(&mut layout, left);
    let area = layout.plot(left, RIGHT, ROW * float(groups.len()) + 4.0);
    let scale = Scale::linear(0.0, 1.0, area.x, area.right());
    across(&mut layout.canvas, &area, &scale, "share of scheduler slot-cycles");
    let whole: u64 = groups.iter().map(|group| group.sum.cycles).fold(0, u64::saturating_add);
    let mut y = area.y + ROW - BAR / 2.0;
    let long = |group: &Group| text_width(&group.title(LABEL, f64::MAX), LABEL) > left - 14.0;
    let small = groups.iter().any(long);
    for group in &groups {
        let name = group.title(LABEL, f64::MAX);
        if small {
            let lines = lines_of(&name, left - 14.0);
            write_left(&mut layout.canvas, lines, (left - 6.0, y));
        } else {
            layout.canvas.write(name, (left - 6.0, y), LABEL, Anchor::Right);
        }
        draw_row(&mut layout, group, &causes, &area, y, whole);
        y += ROW;
    }
    outline(&mut layout.canvas, &area);
    layout.skip(38.0);
    Ok(layout.finish(&input.footer()))
}

/// The legend of stall causes.
pub(super) fn cause_entries(input: &FigureInput<'_>, causes: &[(String, Fill)]) -> Vec<Entry> {
    let entry =
        |(name, fill): &(String, Fill)| Entry::new(Swatch::Fill(*fill), input.cause_words(name));
    causes.iter().map(entry).collect()
}

/// Draws the causes of `stalls` behind one another across an area, in a bar of a height around
/// the height `y`; `label` gets each part with its share.
pub(super) fn stack(
    layout: &mut Layout,
    stalls: &BTreeMap<String, f64>,
    causes: &[(String, Fill)],
    (area, y, height): (&Area, f64, f64),
    label: impl Fn(&mut Layout, Area, f64),
) {
    let mut x = area.x;
    for (share, (_, fill)) in shares(stalls, causes).into_iter().zip(causes) {
        let part = Area::new(x, y - height / 2.0, share * area.width, height);
        x = part.right();
        if share > ROUNDING {
            layout.canvas.bar(part, *fill);
            label(layout, part, share);
        }
    }
}

fn heading(layout: &mut Layout, left: f64) {
    let y = layout.top() + NOTE / 2.0;
    let right = layout.width() - 6.0;
    layout.canvas.write("kernel", (left - 6.0, y), NOTE, Anchor::Right);
    layout.canvas.write("cycles", (right, y), NOTE, Anchor::Right);
    layout.skip(NOTE + 3.0);
}

fn draw_row(
    layout: &mut Layout,
    group: &Group,
    causes: &[(String, Fill)],
    area: &Area,
    y: f64,
    whole: u64,
) {
    stack(layout, &group.sum.stall_fractions, causes, (area, y, BAR), |layout, part, share| {
        write_above(layout, &part, &percent(Some(share)));
    });
    let cycles = percent(ratio(float(group.sum.cycles), float(whole)));
    let right = layout.width() - 6.0;
    layout.canvas.write(cycles, (right, y), LABEL, Anchor::Right);
}

/// Writes `text` above `part`, where that is wide enough.
fn write_above(layout: &mut Layout, part: &Area, text: &str) {
    if text_width(text, NOTE) + 2.0 > part.width {
        return;
    }
    let at = (part.x + part.width / 2.0, part.y - ABOVE);
    layout.canvas.text_before(Label::new(text, at, NOTE, Anchor::Centre));
}
