//! Shades of one hue for values: darker is more, in colour and in grey.

use super::colour::{Colour, INK, PAPER};

/// From pale over blue to nearly black: luminance falls all the way.
const STOPS: [Colour; 3] =
    [Colour(0xf0, 0xf5, 0xfa), Colour(0x2f, 0x86, 0xbd), Colour(0x04, 0x26, 0x45)];

/// Shades from a low to a high value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Shades {
    low: f64,
    high: f64,
}

impl Shades {
    /// Shades of finite values from `low` to `high`.
    pub(crate) fn new(low: f64, high: f64) -> Self {
        Self { low, high }
    }

    /// The shade of `value`, that of the nearer end beyond the range.
    pub(crate) fn of(&self, value: f64) -> Colour {
        let share = (value - self.low) / (self.high - self.low);
        let share = if share.is_nan() { 0.0 } else { share.clamp(0.0, 1.0) };
        let (from, to, part) = match share {
            s if s < 0.5 => (STOPS[0], STOPS[1], s * 2.0),
            s => (STOPS[1], STOPS[2], s * 2.0 - 1.0),
        };
        let mix = |a: u8, b: u8| byte(f64::from(a) + (f64::from(b) - f64::from(a)) * part);
        Colour(mix(from.0, to.0), mix(from.1, to.1), mix(from.2, to.2))
    }
}

impl Colour {
    /// What text over it is written in: the one with the larger contrast.
    pub(crate) fn text(self) -> Colour {
        let contrast = |other: Colour| {
            let (a, b) = (self.luminance(), other.luminance());
            (a.max(b) + 0.05) / (a.min(b) + 0.05)
        };
        if contrast(INK) >= contrast(PAPER) { INK } else { PAPER }
    }

    /// Relative luminance from 0 to 1, after WCAG 2.1.
    fn luminance(self) -> f64 {
        let linear = |part: u8| {
            let part = f64::from(part) / 255.0;
            if part <= 0.040_45 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * linear(self.0) + 0.7152 * linear(self.1) + 0.0722 * linear(self.2)
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // clamped to a byte
fn byte(value: f64) -> u8 {
    value.round().clamp(0.0, 255.0) as u8
}

#[cfg(test)]
mod tests {
    use super::{Colour, INK, PAPER, Shades};

    #[test]
    fn more_is_darker_and_text_stands_out() {
        let shades = Shades::new(1.0, 3.0);
        let light: Vec<f64> =
            (0..=20).map(|step| shades.of(1.0 + f64::from(step) * 0.1).luminance()).collect();
        assert!(light.windows(2).all(|two| two[0] > two[1]), "{light:?}");
        assert_eq!(shades.of(-5.0), shades.of(1.0));
        assert_eq!(shades.of(f64::NAN), shades.of(1.0));
        assert_eq!((shades.of(1.0).text(), shades.of(3.0).text()), (INK, PAPER));
        assert!((PAPER.luminance() - 1.0).abs() < 1e-9 && Colour(0, 0, 0).luminance() < 1e-9);
        let contrast = |colour: Colour| {
            let (a, b) = (colour.luminance(), colour.text().luminance());
            (a.max(b) + 0.05) / (a.min(b) + 0.05)
        };
        let least = (0..=200).map(|step| contrast(shades.of(1.0 + f64::from(step) * 0.01)));
        assert!(least.fold(f64::MAX, f64::min) > 3.9, "legible on every shade");
    }
}
