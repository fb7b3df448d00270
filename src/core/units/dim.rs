//! Three-dimensional extents and positions of CUDA launches.

use std::fmt;

use serde::{Deserialize, Serialize};

/// An extent (grid, CTA) or a position (CTA in a grid) in x, y and z.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(from = "[u32; 3]", into = "[u32; 3]")]
pub struct Dim3 {
    /// Fastest dimension.
    pub x: u32,
    /// Second dimension.
    pub y: u32,
    /// Slowest dimension.
    pub z: u32,
}

impl Dim3 {
    /// Makes an extent or position from its three components.
    #[must_use]
    pub const fn new(x: u32, y: u32, z: u32) -> Self {
        Self { x, y, z }
    }

    /// Number of points in the extent; saturates at `u64::MAX`.
    #[must_use]
    pub fn count(self) -> u64 {
        u64::from(self.x).saturating_mul(u64::from(self.y)).saturating_mul(u64::from(self.z))
    }

    /// Position in an extent `within`, x fastest, as CUDA numbers CTAs and threads.
    #[must_use]
    pub fn linear(self, within: Self) -> u64 {
        let plane = u64::from(self.z).saturating_mul(u64::from(within.y));
        (plane.saturating_add(u64::from(self.y)))
            .saturating_mul(u64::from(within.x))
            .saturating_add(u64::from(self.x))
    }

    /// The position with the number `linear` in this extent: the inverse of
    /// [`Dim3::linear`].
    ///
    /// # Panics
    /// When `linear` is not below [`Dim3::count`].
    #[must_use]
    pub fn position(self, linear: u64) -> Self {
        assert!(linear < self.count(), "position {linear} in an extent of {self}");
        let (x, y) = (u64::from(self.x), u64::from(self.y));
        let narrow = super::to_u32::<u64>;
        Self::new(narrow(linear % x), narrow(linear / x % y), narrow(linear / x / y))
    }

    /// True when the position lies inside the extent `within`.
    #[must_use]
    pub fn inside(self, within: Self) -> bool {
        self.x < within.x && self.y < within.y && self.z < within.z
    }
}

impl From<[u32; 3]> for Dim3 {
    fn from([x, y, z]: [u32; 3]) -> Self {
        Self { x, y, z }
    }
}

impl From<Dim3> for [u32; 3] {
    fn from(d: Dim3) -> Self {
        [d.x, d.y, d.z]
    }
}

impl fmt::Display for Dim3 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({},{},{})", self.x, self.y, self.z)
    }
}

#[cfg(test)]
mod tests {
    use super::Dim3;

    #[test]
    fn linear_position_counts_x_fastest() {
        let grid = Dim3::new(4, 3, 2);
        assert_eq!(Dim3::new(1, 0, 0).linear(grid), 1);
        assert_eq!(Dim3::new(0, 1, 0).linear(grid), 4);
        assert_eq!(Dim3::new(3, 2, 1).linear(grid), grid.count() - 1);
        assert!(!Dim3::new(4, 0, 0).inside(grid));
        for linear in 0..grid.count() {
            assert_eq!(grid.position(linear).linear(grid), linear);
        }
    }
}
