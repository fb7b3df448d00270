//! The checks of cache sizes.

use gpumodel_core::units::SECTOR_BYTES;

use super::cache::Cache;
use super::check::refused;
use super::machine::Machine;

/// Lines of whole sectors, not too many.
pub(super) fn lines(m: &Machine) -> Vec<String> {
    let sizes = [
        ("l1.cache.line_bytes", m.l1.cache.line_bytes),
        ("l2.cache.line_bytes", m.l2.cache.line_bytes),
    ];
    refused(&sizes, |bytes| {
        let bytes = u64::from(bytes);
        bytes >= SECTOR_BYTES && bytes.is_multiple_of(SECTOR_BYTES) && bytes <= 8 * SECTOR_BYTES
    })
}

/// Whole lines are those of the coalescer; both levels ask for the same.
pub(super) fn sectors(m: &Machine) -> Vec<String> {
    let bytes = m.l1.cache.sector_bytes;
    let whole = bytes == 128
        && m.l1.cache.line_bytes == bytes
        && m.l2.cache.line_bytes == bytes
        && m.l1.bank_bytes == 0;
    let sector = u64::from(bytes) == SECTOR_BYTES;
    let found = format!(
        "l1.cache.sector_bytes {bytes}, l2.cache.sector_bytes {}: 32 both, or 128 both with \
         lines of 128 bytes and l1.bank_bytes 0",
        m.l2.cache.sector_bytes
    );
    let same = m.l2.cache.sector_bytes == bytes;
    if same && (sector || whole) { Vec::new() } else { vec![found] }
}

/// Bytes that a cache holds.
pub(super) fn bytes(cache: &Cache) -> u64 {
    u64::from(cache.sets)
        .saturating_mul(u64::from(cache.ways))
        .saturating_mul(u64::from(cache.line_bytes))
}

/// No more than any GPU has.
pub(super) fn totals(m: &Machine) -> Vec<String> {
    let fetch = m.fetch.as_ref().map_or(0, |f| f.inner_bytes.max(f.outer_bytes));
    let constant = m.constant.as_ref().map_or(0, |c| c.bytes);
    let l1 = bytes(&m.l1.cache).saturating_mul(u64::from(m.dispatch.sms));
    let l2 = bytes(&m.l2.cache).saturating_mul(u64::from(m.l2.slices));
    let sms = u64::from(m.dispatch.sms);
    let totals = [
        ("bytes of all L1s", l1),
        ("bytes of all slices", l2),
        ("bytes of all instruction caches", u64::from(fetch) * sms),
        ("bytes of all constant caches", u64::from(constant) * sms),
    ];
    refused(&totals, |bytes| bytes <= 1 << 30)
}
