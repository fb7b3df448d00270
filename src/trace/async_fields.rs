//! The fields of asynchronous instructions that a store keeps as text: bulk copies and the
//! register values of version 6.
//!
//! Formats: Accel-Sim 2.0, trace-parser/trace_parser.cc. A bulk copy has, after its sources,
//! `width barrier multicast [mask] bytes out_of_bounds mode`, then in mode 3 `count address…`, in
//! mode 4 `base count difference…`, then the immediates. Values are `Val`, then per register,
//! destinations first, `count value…`: one value for all lanes, or one per lane.
//!
//! Two older forms begin `width mode`: with addresses of `width` bytes each, or of width 0 with
//! the base, rows, row length, row pitch in bytes and bytes of an element of a box.

use gpumodel_core::isa::BulkCopy;
use gpumodel_core::units::{to_u64, to_usize};

/// Most pieces of one copy that are taken: those of 256 KB in 16 bytes.
const MOST_PIECES: u64 = 1 << 14;

/// Most bytes of one copy: the shared memory of an SM.
const MOST_BYTES: u64 = 1 << 18;

const LIST: u64 = 3;
const DELTA: u64 = 4;

/// What the opcodes have in common that print a commit group.
const GROUPED: &str = "GMMA";
/// Opcodes of bulk copies, whose fields are their own (Accel-Sim 2.0, trace_parser.cc).
const BULK: [&str; 7] = ["UTMALDG", "UTMASTG", "UTMAPF", "UTMAREDG", "UBLKCP", "UBLKPF", "UBLKRED"];

/// True when what follows the sources of an opcode is kept as text.
#[must_use]
pub fn is_open(opcode: &str) -> bool {
    opcode.contains(GROUPED) || BULK.iter().any(|root| opcode.starts_with(root))
}

/// The bulk copy whose fields `tail` are; `None` where they are not there.
#[must_use]
pub fn bulk_copy(tail: &[u8]) -> Option<BulkCopy> {
    let text = std::str::from_utf8(tail).ok()?;
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let copy = present_form(&words).or_else(|| former_form(&words))?;
    let moved = copy.piece_bytes.saturating_mul(to_u64(copy.pieces.len()));
    (moved <= MOST_BYTES && copy.bytes <= MOST_BYTES && !copy.pieces.is_empty() | (copy.bytes > 0))
        .then_some(copy)
}

/// The form of Accel-Sim 2.0.
fn present_form(words: &[&str]) -> Option<BulkCopy> {
    let mut words = words.iter().copied();
    let width = decimal(words.next()?)?;
    let barrier = hexadecimal(words.next()?)?;
    let mut multicast = 0;
    if decimal(words.next()?)? != 0 {
        // A cluster has 16 CTAs at most.
        multicast = u16::try_from(hexadecimal(words.next()?)? & 0xffff).unwrap_or(0);
    }
    let (bytes, outside) = (decimal(words.next()?)?, decimal(words.next()?)?);
    let pieces = match decimal(words.next()?)? {
        LIST => {
            let count = decimal(words.next()?).filter(|&count| count <= MOST_PIECES)?;
            (0..count).map(|_| hexadecimal(words.next()?)).collect::<Option<Vec<u64>>>()?
        }
        DELTA => {
            let base = hexadecimal(words.next()?)?;
            let count = decimal(words.next()?).filter(|&count| count <= MOST_PIECES)?;
            let further = to_usize(u32::try_from(count.saturating_sub(1)).ok()?);
            let differences: Option<Vec<i64>> =
                words.by_ref().take(further).map(|word| word.parse().ok()).collect();
            let differences = differences.filter(|all| all.len() == further)?;
            if count == 0 { Vec::new() } else { summed(base, &differences) }
        }
        _ => return None,
    };
    let inside = bytes.saturating_sub(outside);
    if inside == 0 {
        let barrier = Some(barrier);
        return Some(BulkCopy { barrier, bytes, multicast, ..BulkCopy::default() });
    }
    let each = inside.checked_div(to_u64(pieces.len())).filter(|&each| each > 0);
    let piece_bytes = each.unwrap_or(width).min(inside);
    Some(BulkCopy { barrier: Some(barrier), bytes, pieces, piece_bytes, multicast })
}

/// The older forms, which name no barrier; the last two words that are numbers are immediates.
fn former_form(words: &[&str]) -> Option<BulkCopy> {
    let (&width, rest) = words.split_first()?;
    let (&mode, rest) = rest.split_first()?;
    let (width, mode) = (decimal(width)?, decimal(mode)?);
    let numbers = rest.iter().take_while(|word| number_like(word)).count();
    let fields = &rest[..numbers.saturating_sub(2)];
    let (&base, more) = fields.split_first()?;
    let base = hexadecimal(base)?;
    let pieces = match (width, mode) {
        (0, LIST) => return boxed(base, more),
        (_, LIST) => fields.iter().map(|word| hexadecimal(word)).collect::<Option<Vec<u64>>>()?,
        (_, DELTA) => {
            let differences = more.iter().map(|word| word.parse().ok());
            summed(base, &differences.collect::<Option<Vec<i64>>>()?)
        }
        _ => return None,
    };
    let bytes = width.checked_mul(to_u64(pieces.len()))?;
    Some(BulkCopy { barrier: None, bytes, pieces, piece_bytes: width, multicast: 0 })
}

/// A box of rows: rows, elements of a row, bytes from row to row, bytes of an element.
fn boxed(base: u64, fields: &[&str]) -> Option<BulkCopy> {
    let [rows, length, pitch, element] = fields else { return None };
    let rows = decimal(rows).filter(|&rows| rows <= MOST_PIECES)?;
    let piece_bytes = decimal(length)?.checked_mul(decimal(element)?)?;
    let (pitch, bytes) = (decimal(pitch)?, piece_bytes.checked_mul(rows)?);
    let pieces = (0..rows).map(|row| base.wrapping_add(row.wrapping_mul(pitch))).collect();
    Some(BulkCopy { barrier: None, bytes, pieces, piece_bytes, multicast: 0 })
}

/// The base, and after it the sums with the differences.
fn summed(base: u64, differences: &[i64]) -> Vec<u64> {
    let mut address = base;
    let further = differences.iter().map(|&difference| {
        address = address.wrapping_add_signed(difference);
        address
    });
    std::iter::once(base).chain(further).collect()
}

/// The values of the source registers in the lowest lane; `None` where `tail` has none.
#[must_use]
pub fn source_values(tail: &[u8], destinations: usize, sources: usize) -> Option<Vec<u64>> {
    let text = std::str::from_utf8(tail).ok()?;
    let mut words = text.split_ascii_whitespace().skip_while(|word| *word != "Val").skip(1);
    let mut value = || {
        let count = decimal(words.next()?).filter(|&count| (1..=32).contains(&count))?;
        let first = hexadecimal(words.next()?)?;
        (1..count).try_for_each(|_| words.next().map(drop))?;
        Some(first)
    };
    for _ in 0..destinations {
        value()?;
    }
    (0..sources).map(|_| value()).collect()
}

/// True when register values begin `tail`.
pub(crate) fn has_values(tail: &[u8]) -> bool {
    tail.split(u8::is_ascii_whitespace).find(|word| !word.is_empty()) == Some(b"Val")
}

fn decimal(word: &str) -> Option<u64> {
    word.parse().ok()
}

fn hexadecimal(word: &str) -> Option<u64> {
    u64::from_str_radix(word.strip_prefix("0x").unwrap_or(word), 16).ok()
}

fn number_like(word: &str) -> bool {
    word.parse::<i64>().is_ok()
        || word.strip_prefix("0x").is_some_and(|_| hexadecimal(word).is_some())
}

#[cfg(test)]
mod tests {
    use super::{bulk_copy, source_values};

    #[test]
    fn the_form_of_accel_sim_names_barrier_bytes_and_pieces() {
        let copy = bulk_copy(b"16 0x400 0 256 0 3 2 0x7f00 0x8f00 0 0 NoVal").unwrap();
        assert_eq!((copy.barrier, copy.bytes, copy.piece_bytes), (Some(0x400), 256, 128));
        assert_eq!(copy.pieces, [0x7f00, 0x8f00]);
        let copy = bulk_copy(b"16 400 1 0x3 96 32 4 7f00 4 16 16 -64 0 0 NoVal").unwrap();
        assert_eq!((copy.barrier, copy.bytes, copy.piece_bytes), (Some(0x400), 96, 16));
        assert_eq!(copy.pieces, [0x7f00, 0x7f10, 0x7f20, 0x7ee0]);
        let copy = bulk_copy(b"16 0x400 0 128 128 4 0x0 0 0 0 NoVal").unwrap();
        assert_eq!((copy.bytes, copy.pieces.len()), (128, 0), "all of it is out of bounds");
    }

    #[test]
    fn older_forms_have_addresses_or_a_box() {
        let copy = bulk_copy(b"0 3 0x7f2800000000 64 64 128 2 0 0 NoVal").unwrap();
        assert_eq!((copy.bytes, copy.piece_bytes, copy.pieces.len()), (8192, 128, 64));
        assert_eq!(copy.pieces[1], 0x7f28_0000_0080);
        let copy = bulk_copy(b"16 3 0x7f0000000000 0x7f0000000080 0 0 NoVal").unwrap();
        assert_eq!((copy.bytes, copy.pieces.len(), copy.barrier), (32, 2, None));
        let copy = bulk_copy(b"16 4 0x7f0000001000 128 -64 0 0 NoVal").unwrap();
        assert_eq!(copy.pieces, [0x7f00_0000_1000, 0x7f00_0000_1080, 0x7f00_0000_1040]);
    }

    #[test]
    fn fields_that_are_not_there_are_none() {
        for tail in
            ["", "0 0 0 NoVal", "16", "x y", "16 0x400 0 256 0 3 9999999999 0x0", "16 9 1 0 0"]
        {
            assert_eq!(bulk_copy(tail.as_bytes()), None, "{tail}");
        }
        assert_eq!(bulk_copy(b"0 3 0x0 99999999 9999999 1 9 0 0"), None);
        assert_eq!(bulk_copy(b"\xff"), None);
    }

    #[test]
    fn values_are_those_of_the_lowest_lane() {
        assert_eq!(
            source_values(b"Val 1 0x0 1 400 1 0x1ffffe", 1, 2),
            Some(vec![0x400, 0x1f_fffe])
        );
        let lanes: Vec<String> = (0..32).map(|lane| format!("0x{lane:x}")).collect();
        let tail = format!("Val 32 {} 1 0x7", lanes.join(" "));
        assert_eq!(source_values(tail.as_bytes(), 0, 2), Some(vec![0, 7]));
        assert_eq!(source_values(b"NoVal", 0, 1), None);
        assert_eq!(source_values(b"Val 1", 0, 1), None);
        assert_eq!(source_values(b"Val 33 0x0", 0, 1), None);
    }
}
