//! How much room text needs, and names below what they name.
//!
//! Widths are those of the fonts next to this file, which are also those of Arial, Helvetica and
//! Liberation Sans.

use super::Area;
use super::canvas::{Canvas, Label};
use super::layout::{LABEL, NOTE};
use crate::format::float;

/// The point of a text that its position names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anchor {
    /// Left edge, middle of the line.
    Left,
    /// Centre, middle of the line.
    Centre,
    /// Right edge, middle of the line.
    Right,
}

/// Width of `text` at `size` in user units.
pub(crate) fn text_width(text: &str, size: f64) -> f64 {
    text.chars().map(|c| em(c, &REGULAR)).sum::<f64>() * size
}

/// Width of heavy `text` at `size` in user units.
pub(crate) fn heavy_width(text: &str, size: f64) -> f64 {
    text.chars().map(|c| em(c, &HEAVY)).sum::<f64>() * size
}

/// The box that `text` at `size` covers when `anchor` is at (`x`, `y`).
pub(crate) fn text_area(text: &str, size: f64, anchor: Anchor, x: f64, y: f64) -> Area {
    line_area(text_width(text, size), size, anchor, (x, y))
}

/// The box of a line of that `width` and `size` when `anchor` is at (`x`, `y`).
pub(super) fn line_area(width: f64, size: f64, anchor: Anchor, (x, y): (f64, f64)) -> Area {
    let left = match anchor {
        Anchor::Left => x,
        Anchor::Centre => x - width / 2.0,
        Anchor::Right => x - width,
    };
    Area::new(left, y - size / 2.0, width, size)
}

/// What the sum of a text's widths may differ from that of its parts.
const ROUNDING: f64 = 1e-6;

/// `text`, or its beginning and end around `…`, so that it is at most `room` wide.
pub(crate) fn fit(text: &str, size: f64, room: f64) -> String {
    shortened(text, |text| text_width(text, size) <= room + ROUNDING)
}

/// As [`fit`], for heavy text.
pub(crate) fn fit_heavy(text: &str, size: f64, room: f64) -> String {
    shortened(text, |text| heavy_width(text, size) <= room + ROUNDING)
}

/// `text`, or as much of its beginning and end around `…` as `fits`.
fn shortened(text: &str, fits: impl Fn(&str) -> bool) -> String {
    if fits(text) {
        return text.to_string();
    }
    let letters: Vec<char> = text.chars().collect();
    for kept in (2..letters.len()).rev() {
        let tail = kept / 3;
        let head: String = letters[..kept - tail].iter().collect();
        let end: String = letters[letters.len() - tail..].iter().collect();
        let short = format!("{head}…{end}");
        if fits(&short) {
            return short;
        }
    }
    letters.iter().take(1).collect()
}

/// The room that the widest of `names` needs at `size`, at most `most`.
pub(crate) fn name_room(names: &[impl AsRef<str>], size: f64, most: f64) -> f64 {
    names.iter().map(|name| text_width(name.as_ref(), size)).fold(0.0, f64::max).min(most)
}

/// Characters that XML cannot hold become U+FFFD.
pub(crate) fn printable(text: &str) -> String {
    let bad = |c: char| c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}');
    text.chars().map(|c| if bad(c) { '\u{fffd}' } else { c }).collect()
}

/// Widths of the printable ASCII characters of the regular face, in thousandths of the em size.
#[rustfmt::skip]
const REGULAR: [u16; 95] = [
    278, 278, 355, 557, 557, 890, 667, 191, 334, 334, 390, 584, 278, 334, 278, 278,
    557, 557, 557, 557, 557, 557, 557, 557, 557, 557, 278, 278, 584, 584, 584, 557,
    1016, 667, 667, 723, 723, 667, 611, 778, 723, 278, 500, 667, 557, 834, 723, 778,
    667, 778, 723, 667, 611, 723, 667, 944, 667, 667, 611, 278, 278, 278, 470, 557,
    334, 557, 557, 500, 557, 557, 278, 557, 557, 223, 223, 500, 223, 834, 557, 557,
    557, 557, 334, 500, 278, 557, 500, 723, 500, 500, 500, 334, 260, 334, 584,
];

/// The same of the heavy face.
#[rustfmt::skip]
const HEAVY: [u16; 95] = [
    278, 334, 475, 557, 557, 890, 723, 238, 334, 334, 390, 584, 278, 334, 278, 278,
    557, 557, 557, 557, 557, 557, 557, 557, 557, 557, 334, 334, 584, 584, 584, 611,
    976, 723, 723, 723, 723, 667, 611, 778, 723, 278, 557, 723, 611, 834, 723, 778,
    667, 778, 723, 667, 611, 723, 667, 944, 667, 667, 611, 334, 278, 334, 584, 557,
    334, 557, 611, 557, 611, 557, 334, 611, 611, 278, 278, 557, 278, 890, 611, 611,
    611, 611, 390, 557, 334, 611, 557, 778, 557, 557, 500, 390, 280, 390, 584,
];

/// Width of a character in em: exact for ASCII and the signs of figures, else at least as wide
/// as the character.
fn em(c: char, widths: &[u16; 95]) -> f64 {
    let ascii = usize::try_from(u32::from(c)).ok().and_then(|code| code.checked_sub(32));
    let thousandths = match c {
        '·' => 334,
        '–' => 557,
        '×' | '−' => 584,
        '±' => 549,
        'µ' => 577,
        '∞' => 713,
        _ => ascii.and_then(|place| widths.get(place)).copied().unwrap_or(1000),
    };
    f64::from(thousandths) / 1000.0
}

/// From line to line.
const LINE: f64 = NOTE + 2.0;
/// Lines of a level name at most.
const LINES: usize = 4;
/// Lengths that the lines of an upright name may have, from the best to the last.
const LENGTHS: [f64; 3] = [90.0, 160.0, 230.0];
/// A name is broken behind these.
const BREAKS: [char; 6] = [' ', '+', '=', ',', '/', ':'];
/// Where a name has no line long enough, behind these too.
const WITHIN: [char; 9] = [' ', '+', '=', ',', '/', ':', '-', '_', '.'];

/// A name with its place: the middle of what it names, and how wide that is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Named<'a> {
    pub(super) name: &'a str,
    pub(super) middle: f64,
    pub(super) width: f64,
}

/// Writes `all` below the height `top`; returns the height that they take.
pub(super) fn names(canvas: &mut Canvas, all: &[Named<'_>], top: f64) -> f64 {
    let level = |named: &Named<'_>| broken(named.name, named.width - 2.0, LINES, &BREAKS);
    match all.iter().map(level).collect::<Option<Vec<_>>>() {
        Some(lines) => flat(canvas, all, &lines, top),
        None => upright(canvas, all, top),
    }
}

/// Writes a name left of `(x, y)`, within `room` and around that height, of which it has so much:
/// in small lines where it is too long for one, and cut where they have no room.
pub(crate) fn left_of(
    canvas: &mut Canvas,
    name: &str,
    (x, y): (f64, f64),
    (room, height): (f64, f64),
) {
    if text_width(name, LABEL) <= room {
        canvas.write(name, (x, y), LABEL, Anchor::Right);
        return;
    }
    let mut lines = lines_of(name, room);
    if lines_height(lines.len()) > height.max(LINE) {
        lines = broken(name, room, 2, &BREAKS).unwrap_or_else(|| vec![fit(name, NOTE, room)]);
    }
    write_left(canvas, lines, (x, y));
}

/// Writes small `lines` left of `(x, y)`, around that height.
pub(crate) fn write_left(canvas: &mut Canvas, lines: Vec<String>, (x, y): (f64, f64)) {
    let mut at = y - LINE * float(lines.len().saturating_sub(1)) / 2.0;
    for line in lines {
        canvas.write(line, (x, at), NOTE, Anchor::Right);
        at += LINE;
    }
}

/// The height of so many small lines.
pub(crate) fn lines_height(count: usize) -> f64 {
    LINE * float(count)
}

/// All of `name` in small lines that are at most `room` wide: broken behind signs where that
/// will do, else anywhere.
pub(crate) fn lines_of(name: &str, room: f64) -> Vec<String> {
    let all = usize::MAX;
    let signs = broken(name, room, all, &BREAKS).or_else(|| broken(name, room, all, &WITHIN));
    signs.unwrap_or_else(|| {
        let mut lines = vec![String::new()];
        for letter in name.chars() {
            let longer = lines.last().map_or(String::new(), |line| format!("{line}{letter}"));
            match lines.last_mut() {
                Some(line) if text_width(&longer, NOTE) <= room => *line = longer,
                _ => lines.push(letter.into()),
            }
        }
        lines
    })
}

/// Writes level names line by line.
fn flat(canvas: &mut Canvas, all: &[Named<'_>], lines: &[Vec<String>], top: f64) -> f64 {
    for (named, lines) in all.iter().zip(lines) {
        let mut y = top + 9.0;
        for line in lines {
            canvas.write(line, (named.middle, y), NOTE, Anchor::Centre);
            y += LINE;
        }
    }
    let most = lines.iter().map(Vec::len).max().unwrap_or(1).max(1);
    NOTE + LINE * float(most - 1) + 4.0
}

/// Writes names from below to above, their lines side by side.
fn upright(canvas: &mut Canvas, all: &[Named<'_>], top: f64) -> f64 {
    let mut height: f64 = NOTE;
    for named in all {
        let lines = standing(named);
        let mut x = named.middle - LINE * float(lines.len() - 1) / 2.0;
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
    let fits = |count: &usize| LINE * float(*count) <= named.width;
    let most = (1..=LINES).rev().find(fits).unwrap_or(1);
    let lines = LENGTHS.iter().find_map(|length| broken(named.name, *length, most, &BREAKS));
    let last = LENGTHS[LENGTHS.len() - 1];
    lines.unwrap_or_else(|| vec![fit(named.name, NOTE, last)])
}

/// `name` in at most `most` lines that are at most `room` wide, broken behind some of `signs`;
/// `None` where it does not fit in.
fn broken(name: &str, room: f64, most: usize, signs: &[char]) -> Option<Vec<String>> {
    let mut lines = vec![String::new()];
    for part in name.split_inclusive(signs) {
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
    use super::{
        BREAKS, Named, broken, fit, fit_heavy, heavy_width, lines_of, printable, standing,
        text_width,
    };

    #[test]
    fn fitted_text_keeps_both_ends_and_the_room() {
        let name = "a_rather_long_kernel_name_of_a_library_v2";
        let short = fit(name, 10.0, 100.0);
        assert!(short.starts_with("a_ra") && short.ends_with("v2"), "{short}");
        assert!(text_width(&short, 10.0) <= 100.0);
        assert_eq!(fit("short", 10.0, 100.0), "short");
        assert_eq!(fit("", 10.0, 0.0), "");
        let heavy = fit_heavy(name, 10.0, 100.0);
        assert!(heavy.len() <= short.len() && heavy_width(&heavy, 10.0) <= 100.0, "{heavy}");
        assert!(heavy_width(name, 10.0) > 1.03 * text_width(name, 10.0));
        assert_eq!(printable("a\u{0}b\n"), "a\u{fffd}b\u{fffd}");
    }

    #[test]
    fn names_are_broken_behind_signs() {
        let lines =
            |room, most| broken("pvc+lbm+fwt+sc", room, most, &BREAKS).map(|lines| lines.join("|"));
        assert_eq!(lines(200.0, 1).as_deref(), Some("pvc+lbm+fwt+sc"));
        assert_eq!(lines(60.0, 2).as_deref(), Some("pvc+lbm+|fwt+sc"));
        assert_eq!(lines(60.0, 1), None, "one line is too few");
        assert_eq!(lines(10.0, 9), None, "a part is too wide");
        assert_eq!(broken("a b", 13.0, 2, &BREAKS), Some(vec!["a".into(), "b".into()]));
    }

    #[test]
    fn lines_of_a_name_hold_all_of_it() {
        let lines = |name, room| lines_of(name, room).join("|");
        assert_eq!(lines("slate:task=10:window=500", 60.0), "slate:task=|10:window=|500");
        assert_eq!(lines("warped-slicer", 40.0), "warped-|slicer");
        assert_eq!(lines("abcdefgh", 23.0), "abcd|efgh", "5.57 units a letter");
        assert_eq!(lines("even", 60.0), "even");
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
