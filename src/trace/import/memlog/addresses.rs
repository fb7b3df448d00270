//! The addresses of a warp's access, and the numbers of a log.

use crate::store::records::Lines;
use crate::store::varint::low_byte;
use gpumodel_core::isa::AddressMode;
use gpumodel_core::units::{to_u32, to_u64};

/// Lanes of a warp.
pub(super) const LANES: usize = 32;
/// Digits of an address that is filled up with zeros.
const PADDED: usize = 16;
/// A padded address and the space after it.
const STEP: usize = 2 + PADDED + 1;

/// The value of every byte as a hexadecimal digit; 255 for those that are none.
const DIGITS: [u8; 256] = {
    let mut digits = [u8::MAX; 256];
    let mut value = 0;
    while value < 16 {
        digits[b"0123456789abcdef"[value as usize] as usize] = value;
        digits[b"0123456789ABCDEF"[value as usize] as usize] = value;
        value += 1;
    }
    digits
};

/// A number of hexadecimal digits, without prefix.
pub(super) fn hexadecimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > PADDED {
        return None;
    }
    let (mut value, mut all) = (0_u64, 0);
    for &byte in digits {
        let digit = DIGITS[usize::from(byte)];
        all |= digit;
        value = value << 4 | u64::from(digit & 15);
    }
    (all < 16).then_some(value)
}

/// A decimal number.
pub(super) fn decimal(digits: &[u8]) -> Option<u64> {
    let digit = |byte: &u8| byte.is_ascii_digit().then(|| u64::from(byte - b'0'));
    let next = |value: u64, byte: &u8| value.checked_mul(10)?.checked_add(digit(byte)?);
    (!digits.is_empty()).then(|| digits.iter().try_fold(0, next)).flatten()
}

/// The addresses of all lanes from `text`: 32 of `0xADDRESS`, or behind ` : ` 32 of
/// `Thread<lane>,<data>,0xADDRESS`. Where the first one is filled up to 16 digits,
/// all of them are: a line that was cut in its last address is found by that.
///
/// # Errors
/// What was expected.
pub(super) fn read(text: &[u8], into: &mut [u64; LANES]) -> Result<(), &'static str> {
    if text.starts_with(b"MREF") {
        let start = text.windows(3).position(|three| three == b" : ");
        let start = start.ok_or("` : ` before `Thread<lane>,<data>,0xADDRESS`")?;
        return triples(text[start + 3..].trim_ascii(), into);
    }
    let text = text.trim_ascii();
    if text.len() == LANES * STEP - 1 && padded(text, into) {
        return Ok(());
    }
    let mut words = text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let mut digits = 0;
    for address in into.iter_mut() {
        let word = words.next().unwrap_or_default();
        *address = one(word, &mut digits).ok_or("32 addresses `0x…`, all as wide as the first")?;
    }
    if words.next().is_some() { Err("32 addresses `0x…`, no more") } else { Ok(()) }
}

/// Reads addresses of 16 digits with single spaces between; false when one is not.
fn padded(text: &[u8], into: &mut [u64; LANES]) -> bool {
    text.chunks(STEP).zip(into).all(|(word, address)| {
        let framed = word.starts_with(b"0x") && word.get(STEP - 1).is_none_or(|&end| end == b' ');
        let value = hexadecimal(&word[2..2 + PADDED]).filter(|_| framed);
        *address = value.unwrap_or_default();
        value.is_some()
    })
}

fn triples(text: &[u8], into: &mut [u64; LANES]) -> Result<(), &'static str> {
    let wrong = "32 of `Thread<lane>,<data>,0xADDRESS`, each lane once, all as wide as the first";
    let (mut seen, mut digits) = (0_u32, 0);
    for word in text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()) {
        let fields = word.strip_prefix(b"Thread").ok_or(wrong)?;
        let comma = |byte: &u8| *byte == b',';
        let data = fields.iter().position(comma).ok_or(wrong)?;
        let address = fields.iter().rposition(comma).filter(|&last| last > data).ok_or(wrong)?;
        let lane = decimal(&fields[..data]).and_then(|lane| usize::try_from(lane).ok());
        let lane = lane.filter(|&lane| lane < LANES && seen >> lane & 1 == 0).ok_or(wrong)?;
        into[lane] = one(&fields[address + 1..], &mut digits).ok_or(wrong)?;
        seen |= 1 << lane;
    }
    if seen == u32::MAX { Ok(()) } else { Err(wrong) }
}

/// One address; `digits` are those of the first one, 0 before it.
fn one(word: &[u8], digits: &mut usize) -> Option<u64> {
    let word = word.strip_prefix(b"0x")?;
    if *digits == 0 {
        *digits = word.len();
    }
    let whole = *digits != PADDED || word.len() == PADDED;
    hexadecimal(word).filter(|_| whole)
}

/// Mask and lines of `addresses`, a lane with address 0 being off, in the mode that
/// Accel-Sim's tracer would choose; differences go to `deltas`.
pub(super) fn lines(addresses: &[u64; LANES], deltas: &mut Vec<i64>) -> (u32, Lines) {
    let mut mask = 0_u32;
    for (lane, &address) in addresses.iter().enumerate() {
        mask |= u32::from(address != 0) << lane;
    }
    let start = deltas.len();
    let mut lines = Lines {
        mode: AddressMode::Stride,
        base: 0,
        stride: 0,
        deltas: to_u32(start),
        delta_count: 0,
    };
    let mut active = addresses.iter().copied().filter(|&address| address != 0);
    let Some(base) = active.next() else { return (mask, lines) };
    lines.base = base;
    let mut last = base;
    deltas.extend(active.map(|address| {
        let delta = address.wrapping_sub(last).cast_signed();
        last = address;
        delta
    }));
    let steps = &deltas[start..];
    let whole = mask >> mask.trailing_zeros();
    let contiguous = whole & whole.wrapping_add(1) == 0;
    match steps.first() {
        Some(&step) if contiguous && steps.iter().all(|&other| other == step) => {
            lines.stride = step;
            deltas.truncate(start);
        }
        _ => {
            lines.mode = AddressMode::Delta;
            lines.delta_count = low_byte(to_u64(steps.len()));
        }
    }
    (mask, lines)
}

#[cfg(test)]
mod tests {
    use super::{LANES, lines, read};
    use gpumodel_core::isa::AddressMode;

    fn text(addresses: &[u64; LANES], padded: bool) -> String {
        let word = |address: &u64| match padded {
            true => format!("0x{address:016x} "),
            false => format!("0x{address:x} "),
        };
        addresses.iter().map(word).collect()
    }

    fn triples(addresses: &[u64; LANES]) -> String {
        let word = |(lane, address): (usize, &u64)| {
            format!("Thread{lane},0x{:032x},0x{address:016x} ", !lane)
        };
        let words: String = addresses.iter().enumerate().map(word).collect();
        format!("MREF per threads(threadidx,data,address) : {words}")
    }

    fn sample() -> [u64; LANES] {
        std::array::from_fn(|lane| if lane % 5 == 3 { 0 } else { 0x7f00_0000_0000 + lane as u64 })
    }

    #[test]
    fn every_spelling_says_the_same_addresses() {
        let sample = sample();
        for spelled in [text(&sample, true), text(&sample, false), triples(&sample)] {
            let mut found = [1; LANES];
            read(spelled.as_bytes(), &mut found).unwrap();
            assert_eq!(found, sample, "{spelled}");
        }
    }

    #[test]
    fn no_line_that_was_cut_is_whole() {
        for spelled in [text(&sample(), true), triples(&sample())] {
            let whole = spelled.trim_end().len();
            for end in 0..whole {
                let cut = &spelled.as_bytes()[..end];
                assert!(read(cut, &mut [0; LANES]).is_err(), "{}", &spelled[..end]);
            }
            let more = format!("{spelled}0x0000000000000001");
            assert!(read(more.as_bytes(), &mut [0; LANES]).is_err());
        }
    }

    #[test]
    fn the_mode_is_the_one_that_tracers_choose() {
        let mut deltas = Vec::new();
        let (mask, none) = lines(&[0; LANES], &mut deltas);
        assert_eq!((mask, none.mode, none.base), (0, AddressMode::Stride, 0));
        let mut one = [0; LANES];
        one[7] = 0x100;
        let (mask, single) = lines(&one, &mut deltas);
        assert_eq!((mask, single.mode, single.delta_count), (1 << 7, AddressMode::Delta, 0));
        let steps: [u64; LANES] =
            std::array::from_fn(|lane| if lane < 4 { 0 } else { 0x1000 - 8 * lane as u64 });
        let (mask, strided) = lines(&steps, &mut deltas);
        assert_eq!((mask, strided.mode, strided.stride), (!15, AddressMode::Stride, -8));
        assert!(deltas.is_empty());
        let (_, gaps) = lines(&sample(), &mut deltas);
        assert_eq!((gaps.mode, usize::from(gaps.delta_count)), (AddressMode::Delta, deltas.len()));
        assert_eq!(deltas[..4], [1, 1, 2, 1]);
    }
}
