//! Conversions between integer widths that hold by construction.
//!
//! A count that was checked at the door (a table length, an index, a size in a
//! model file) is narrowed here; a value outside the range is our bug, so it
//! panics with the value instead of being cut off silently.

/// Narrows to `u16`.
///
/// # Panics
/// When the value does not fit: the caller promised that it does.
#[must_use]
#[track_caller]
pub fn to_u16<T: TryInto<u16> + Copy + std::fmt::Debug>(value: T) -> u16 {
    value.try_into().unwrap_or_else(|_| panic!("{value:?} does not fit 16 bits"))
}

/// Narrows to `u32`.
///
/// # Panics
/// When the value does not fit: the caller promised that it does.
#[must_use]
#[track_caller]
pub fn to_u32<T: TryInto<u32> + Copy + std::fmt::Debug>(value: T) -> u32 {
    value.try_into().unwrap_or_else(|_| panic!("{value:?} does not fit 32 bits"))
}

/// Widens to `u64`.
///
/// # Panics
/// When the value is negative: the caller promised that it is not.
#[must_use]
#[track_caller]
pub fn to_u64<T: TryInto<u64> + Copy + std::fmt::Debug>(value: T) -> u64 {
    value.try_into().unwrap_or_else(|_| panic!("{value:?} does not fit 64 bits"))
}

/// Converts to `usize`.
///
/// # Panics
/// When the value does not fit: the caller promised that it does.
#[must_use]
#[track_caller]
pub fn to_usize<T: TryInto<usize> + Copy + std::fmt::Debug>(value: T) -> usize {
    value.try_into().unwrap_or_else(|_| panic!("{value:?} does not fit a usize"))
}
