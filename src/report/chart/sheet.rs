//! How a figure is set: its width and height, and whether it shows its own title.

/// How a figure is set.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sheet {
    /// How wide it is.
    pub width: Width,
    /// Whether title and provenance are drawn too; otherwise they are only in the document's
    /// metadata.
    pub titled: bool,
    /// How high it is, in inches; `None`: as its plots need.
    pub height: Option<f64>,
}

/// The height of a page's text, in inches.
const PAGE: f64 = 9.0;

impl Sheet {
    /// How high a figure may be, in user units, so that a page of print holds it.
    pub(crate) fn page(&self) -> Option<f64> {
        self.width.inches().map(|_| PAGE * self.width.units_per_inch())
    }
}

/// Widths of a figure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Width {
    /// Of no physical size.
    #[default]
    Screen,
    /// One column: 3.33 inches.
    One,
    /// The text, which is both columns: 7 inches.
    Two,
}

impl Width {
    /// In user units: in print ten of them, which is the size of the smallest text, are
    /// 7 pt whatever the width.
    pub(crate) fn units(self) -> f64 {
        match self {
            Self::Screen => 480.0,
            Self::One => 340.0,
            Self::Two => 714.0,
        }
    }

    /// In inches, where it is for print.
    pub(crate) fn inches(self) -> Option<f64> {
        match self {
            Self::Screen => None,
            Self::One => Some(3.33),
            Self::Two => Some(7.0),
        }
    }

    /// User units in an inch; on a screen there are 96.
    pub(crate) fn units_per_inch(self) -> f64 {
        self.inches().map_or(96.0, |inches| self.units() / inches)
    }

    /// A length of a figure for screens where there is as much room, else its share of
    /// the room.
    pub(crate) fn share(self, length: f64) -> f64 {
        length * (self.units() / Self::Screen.units()).min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::Width;
    use crate::chart::NOTE;

    #[test]
    fn the_smallest_text_is_seven_points_in_print() {
        for width in [Width::One, Width::Two] {
            let point = width.inches().unwrap() * 72.0 / width.units();
            assert!((7.0..7.2).contains(&(NOTE * point)), "{width:?}: {}", NOTE * point);
        }
        assert!((Width::Two.share(100.0) - 100.0).abs() < 1e-9);
        assert!((Width::One.share(240.0) - 170.0).abs() < 1e-9);
    }
}
