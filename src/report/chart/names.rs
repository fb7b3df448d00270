//! Names below what they name: level where they have room, else upright; in several
//! lines where that helps.

use super::canvas::{Canvas, Label};
use super::sheet::{LABEL, NOTE};
use super::text::{Anchor, fit, text_width};
use crate::number::float;
use gpumodel_core::units::to_u64;

/// From line to line.
const LINE: f64 = NOTE + 2.0;
/// Lines of a level name at most.
const LINES: usize = 4;
/// Lengths that the lines of an upright name may have, from the best to the last.
const LENGTHS: [f64; 3] = [90.0, 160.0, 230.0];
/// A name is broken behind these.
const BREAKS: [char; 6] = [' ', '+', '=', ',', '/', ':'];

/// A name with its place: the middle of what it names, and how wide that is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Named<'a> {
    pub(super) name: &'a str,
    pub(super) middle: f64,
    pub(super) width: f64,
}

/// Writes `all` below the height `top`; returns the height that they take.
pub(super) fn names(canvas: &mut Canvas, all: &[Named<'_>], top: f64) -> f64 {
    let level = |named: &Named<'_>| broken(named.name, named.width - 2.0, LINES);
    match all.iter().map(level).collect::<Option<Vec<_>>>() {
        Some(lines) => flat(canvas, all, &lines, top),
        None => upright(canvas, all, top),
    }
}

/// Writes a name left of `(x, y)`, within `room`: in two lines where it is too long for one,
/// and cut where it is for those.
pub(crate) fn beside(canvas: &mut Canvas, name: &str, (x, y): (f64, f64), room: f64) {
    if text_width(name, LABEL) <= room {
        canvas.text(Label::new(name, (x, y), LABEL, Anchor::Right));
        return;
    }
    let lines = broken(name, room, 2).unwrap_or_else(|| vec![fit(name, NOTE, room)]);
    let mut at = y - LINE * float(to_u64(lines.len() - 1)) / 2.0;
    for line in lines {
        canvas.text(Label::new(line, (x, at), NOTE, Anchor::Right));
        at += LINE;
    }
}

/// Writes level names line by line.
fn flat(canvas: &mut Canvas, all: &[Named<'_>], lines: &[Vec<String>], top: f64) -> f64 {
    for (named, lines) in all.iter().zip(lines) {
        let mut y = top + 9.0;
        for line in lines {
            canvas.text(Label::new(line, (named.middle, y), NOTE, Anchor::Centre));
            y += LINE;
        }
    }
    let most = lines.iter().map(Vec::len).max().unwrap_or(1).max(1);
    NOTE + LINE * float(to_u64(most - 1)) + 4.0
}

/// Writes names from below to above, their lines side by side.
fn upright(canvas: &mut Canvas, all: &[Named<'_>], top: f64) -> f64 {
    let mut height: f64 = NOTE;
    for named in all {
        let lines = standing(named);
        let mut x = named.middle - LINE * float(to_u64(lines.len() - 1)) / 2.0;
        for line in lines {
            height = height.max(text_width(&line, NOTE));
            canvas.text(Label::new(line, (x, top + 4.0), NOTE, Anchor::Right).upwards());
            x += LINE;
        }
    }
    height + 4.0
}

/// The lines of an upright name: as many as have room side by side, one at least, and
/// none longer than it must be.
fn standing(named: &Named<'_>) -> Vec<String> {
    let fits = |count: &usize| LINE * float(to_u64(*count)) <= named.width;
    let most = (1..=LINES).rev().find(fits).unwrap_or(1);
    let lines = LENGTHS.iter().find_map(|length| broken(named.name, *length, most));
    let last = LENGTHS[LENGTHS.len() - 1];
    lines.unwrap_or_else(|| vec![fit(named.name, NOTE, last)])
}

/// `name` in at most `most` lines that are at most `room` wide; `None` where it does not
/// fit in.
fn broken(name: &str, room: f64, most: usize) -> Option<Vec<String>> {
    let mut lines = vec![String::new()];
    for part in name.split_inclusive(BREAKS) {
        let longer = lines.last().map_or(part.to_string(), |line| line.clone() + part);
        if text_width(longer.trim_end(), NOTE) <= room {
            lines.pop();
            lines.push(longer);
        } else if text_width(part.trim_end(), NOTE) <= room {
            lines.push(part.to_string());
        } else {
            return None;
        }
    }
    let lines: Vec<String> = lines.iter().map(|line| line.trim_end().to_string()).collect();
    (lines.len() <= most).then_some(lines)
}

#[cfg(test)]
mod tests {
    use super::{Named, broken, standing, text_width};

    #[test]
    fn names_are_broken_behind_signs() {
        let lines = |room, most| broken("pvc+lbm+fwt+sc", room, most).map(|lines| lines.join("|"));
        assert_eq!(lines(200.0, 1).as_deref(), Some("pvc+lbm+fwt+sc"));
        assert_eq!(lines(60.0, 2).as_deref(), Some("pvc+lbm+|fwt+sc"));
        assert_eq!(lines(60.0, 1), None, "one line is too few");
        assert_eq!(lines(10.0, 9), None, "a part is too wide");
        assert_eq!(broken("a b", 14.0, 2), Some(vec!["a".into(), "b".into()]));
    }

    #[test]
    fn an_upright_name_is_cut_last() {
        let name = "dram.mapping=ugpu-64k translation.page_bytes=65536";
        let named = |width| Named { name, middle: 0.0, width };
        assert!(standing(&named(60.0)).iter().all(|line| text_width(line, 10.0) <= 160.0));
        let one = standing(&named(12.0));
        assert!(one.len() == 1 && one[0].contains('…') && text_width(&one[0], 10.0) <= 230.0);
    }
}
