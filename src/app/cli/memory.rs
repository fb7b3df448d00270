//! Amounts of memory as options take them.

use gpumodel_core::units::ByteCount;

/// Nothing runs in less: whoever types less has left out the unit.
const LEAST: ByteCount = ByteCount(1 << 20);

/// Reads an amount of memory, as `512M` or `2G`.
pub(super) fn memory(typed: &str) -> Result<ByteCount, String> {
    let size: ByteCount = typed.parse()?;
    (size >= LEAST).then_some(size).ok_or_else(|| String::from("expected at least 1M"))
}
