//! Small plots side by side, each with its name above.

use super::Area;
use super::canvas::Label;
use super::sheet::{NOTE, Sheet};
use super::text::{Anchor, fit_heavy};

/// Room left of the first column, for labels and the title of the axis.
const LEFT: f64 = 52.0;
/// Room left of other columns, for labels.
const NEXT: f64 = 38.0;
const RIGHT: f64 = 10.0;
/// Room of a name.
const NAME: f64 = 16.0;
/// Room of labels below a panel, and with the title of the axis.
const LABELS: f64 = 24.0;
const TITLE: f64 = 38.0;

/// One small plot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Panel {
    /// Where data is drawn.
    pub(crate) area: Area,
    /// It is in the first column, with room for a title left of it.
    pub(crate) first: bool,
    /// Nothing lies below it; there is room for a title.
    pub(crate) last: bool,
}

/// Keeps a panel `height` high for each of `names`, written above it.
pub(crate) fn panels(sheet: &mut Sheet, names: &[String], height: f64) -> Vec<Panel> {
    let columns = match (names.len(), sheet.narrow()) {
        (0 | 1, _) | (2, true) => 1,
        (2 | 4, _) | (_, true) => 2,
        _ => 3,
    };
    let gaps = f64::from(columns - 1) * (NEXT + RIGHT);
    let width = (sheet.width() - LEFT - RIGHT - gaps) / f64::from(columns);
    let mut panels = Vec::new();
    let across = usize::try_from(columns).expect("three columns at most");
    for (row, names_of_row) in names.chunks(across).enumerate() {
        let top = sheet.top() + NAME;
        let mut x = LEFT;
        for (column, name) in names_of_row.iter().enumerate() {
            let area = Area::new(x, top, width, height);
            let at = (x + width / 2.0, top - NAME / 2.0);
            let words = fit_heavy(name, NOTE, width);
            sheet.canvas.text(Label::new(words, at, NOTE, Anchor::Centre).bold());
            sheet.mark_plot(area);
            let last = (row + 1) * across + column >= names.len();
            panels.push(Panel { area, first: column == 0, last });
            x += width + NEXT + RIGHT;
        }
        // Panels without one below them may be in the row before the last.
        let ends = (row + 2) * across > names.len();
        sheet.skip(NAME + height + if ends { TITLE } else { LABELS });
    }
    panels
}

#[cfg(test)]
mod tests {
    use super::{Sheet, panels};
    use crate::chart::Width;

    #[test]
    fn panels_lie_apart_on_the_sheet() {
        let counts = [1, 2, 3, 4, 7, 21].into_iter();
        let each = |count: u32| [Width::Screen, Width::One, Width::Two].map(|wide| (count, wide));
        for (count, wide) in counts.flat_map(each) {
            let names: Vec<String> = (0..count).map(|i: u32| i.to_string()).collect();
            let panels = panels(&mut Sheet::new(wide, "panels"), &names, 80.0);
            assert_eq!(panels.len(), names.len());
            for (i, panel) in panels.iter().enumerate() {
                assert!(panel.area.x > 30.0 && panel.area.right() < wide.units());
                assert!(panel.area.width > 90.0);
                assert!(panels[..i].iter().all(|other| !other.area.overlaps(&panel.area)));
                let below = |other: &super::Panel| {
                    other.area.y > panel.area.y && (other.area.x - panel.area.x).abs() < 0.1
                };
                assert_eq!(panel.last, !panels.iter().any(below));
            }
        }
    }
}
