//! The palette: colours that stay apart for colour-blind readers and in grey.
//!
//! Values after M. Okabe and K. Ito, "Color Universal Design" (2008).

use super::hatch::Hatch;

/// A colour as red, green, blue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Colour(pub(crate) u8, pub(crate) u8, pub(crate) u8);

/// Text and frames.
pub(crate) const INK: Colour = Colour(0x20, 0x20, 0x20);
/// Secondary text.
pub(crate) const SOFT_INK: Colour = Colour(0x55, 0x55, 0x55);
/// Grid lines.
pub(crate) const GRID: Colour = Colour(0xdd, 0xdd, 0xdd);
/// Background.
pub(crate) const PAPER: Colour = Colour(0xff, 0xff, 0xff);
/// What is left over.
pub(crate) const REST: Colour = Colour(0xbb, 0xbb, 0xbb);

const PALETTE: [Colour; 7] = [
    Colour(0x00, 0x72, 0xb2), // blue
    Colour(0xe6, 0x9f, 0x00), // orange
    Colour(0x00, 0x9e, 0x73), // bluish green
    Colour(0xcc, 0x79, 0xa7), // reddish purple
    Colour(0x56, 0xb4, 0xe9), // sky blue
    Colour(0xd5, 0x5e, 0x00), // vermilion
    Colour(0xf0, 0xe4, 0x42), // yellow
];

/// A fill: colour and lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fill {
    /// The colour.
    pub(crate) colour: Colour,
    /// The lines over it.
    pub(crate) hatch: Hatch,
}

impl Fill {
    /// A plain fill.
    pub(crate) const fn plain(colour: Colour) -> Self {
        Self { colour, hatch: Hatch::PLAIN }
    }

    /// Plain fill number `index` of a series, for areas too small for lines: eight
    /// before one comes again.
    pub(crate) fn flat(index: usize) -> Self {
        let place = index % (PALETTE.len() + 1);
        Self::plain(PALETTE.get(place).copied().unwrap_or(SOFT_INK))
    }

    /// Fill number `index` of a series: 112 before one comes again, and as many as there
    /// are hatches before lines come again.
    pub(crate) fn of(index: usize) -> Self {
        Self { colour: PALETTE[index % PALETTE.len()], hatch: Hatch::of(index) }
    }

    /// The same lines over another colour.
    pub(crate) fn over(self, colour: Colour) -> Self {
        Self { colour, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::{Fill, INK};
    use crate::chart::HATCHED;

    #[test]
    fn eight_plain_fills_differ() {
        let fills: Vec<Fill> = (0..8).map(Fill::flat).collect();
        assert!((0..8).all(|i| !fills[..i].contains(&fills[i])));
        assert_eq!(Fill::flat(8), fills[0]);
    }

    #[test]
    fn fills_differ_and_sixteen_without_colour() {
        let fills: Vec<Fill> = (0..112).map(Fill::of).collect();
        for (i, fill) in fills.iter().enumerate() {
            assert!(!fills[..i].contains(fill), "fill {i} comes twice");
        }
        let grey: Vec<Fill> = fills[..HATCHED].iter().map(|fill| fill.over(INK)).collect();
        for (i, fill) in grey.iter().enumerate() {
            assert!(!grey[..i].contains(fill), "the lines of fill {i} come twice");
        }
    }
}
