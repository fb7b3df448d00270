//! How much room text needs, without a font file.
//!
//! Widths are those of a wide sans-serif face in em, so text in any usual face
//! stays within the room that was kept for it.

use super::Area;

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
    text.chars().map(em).sum::<f64>() * size
}

/// Width of heavy `text` at `size` in user units.
pub(crate) fn heavy_width(text: &str, size: f64) -> f64 {
    text.chars().map(heavy_em).sum::<f64>() * size
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

/// `text`, or its beginning and end around `…`, so that it is at most `room` wide.
pub(crate) fn fit(text: &str, size: f64, room: f64) -> String {
    shortened(text, |text| text_width(text, size) <= room)
}

/// As [`fit`], for heavy text.
pub(crate) fn fit_heavy(text: &str, size: f64, room: f64) -> String {
    shortened(text, |text| heavy_width(text, size) <= room)
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

fn em(c: char) -> f64 {
    match c {
        'i' | 'j' | 'l' | 'I' | '\'' => 0.3,
        ' ' | '.' | ',' | ':' | ';' | '|' | '/' | '·' => 0.34,
        'f' | 't' | 'r' | '(' | ')' | '[' | ']' | '-' | '!' => 0.42,
        'm' | 'W' | '%' | '@' | '…' => 1.0,
        'w' | 'M' | '+' | '=' | '<' | '>' | '#' | '^' | '±' | '×' | '~' => 0.86,
        'D' | 'G' | 'H' | 'N' | 'O' | 'Q' | 'U' | '&' => 0.79,
        'A'..='Z' => 0.71,
        '0'..='9' | 'a'..='z' | '_' | '–' | '$' | '{' | '}' => 0.64,
        c if c.is_ascii() => 0.6,
        _ => 1.0,
    }
}

/// As [`em`], of the heavy face.
fn heavy_em(c: char) -> f64 {
    match c {
        'i' | 'j' | 'l' | ' ' | '\'' => 0.35,
        'I' | 'J' | '.' | ',' | '|' | '/' | '·' => 0.38,
        ':' | ';' | '-' => 0.42,
        'f' | '(' | ')' | '[' | ']' | '!' => 0.46,
        't' => 0.48,
        'r' => 0.5,
        'c' | 's' | 'z' | '_' | '–' => 0.6,
        'k' | 'v' | 'x' | 'y' => 0.67,
        'a' | 'e' | 'o' | 'E' | 'F' | 'L' | 'T' => 0.69,
        'm' | 'W' | '%' => 1.11,
        'w' | '+' | '=' | '<' | '>' | '#' | '^' | '±' | '×' | '~' => 0.93,
        'M' | '@' | '…' => 1.0,
        'D' | 'G' | 'H' | 'N' | 'O' | 'Q' | 'U' | '&' => 0.88,
        'A'..='Z' => 0.78,
        c if c.is_ascii() => 0.72,
        _ => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::{fit, fit_heavy, heavy_width, printable, text_width};

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
}
