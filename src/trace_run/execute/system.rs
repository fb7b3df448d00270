//! Calls of kernels to the system: what they print, memory that they allocate, failed asserts.
//!
//! Compilers call them like functions at an address: arguments from register 4 on, the place to
//! return to in registers 20 and 21, the result in register 4.

use super::lanes::{From, Lanes64, Scope, Target, each, low};
use super::memory::Memory;
use crate::{Exception, Failure, RunError};

/// Where the first one stands in place of code; no program's code lies here.
const ENTRY: u64 = 1 << 44;
/// Bytes of an instruction.
const STEP: u64 = 16;
/// The register pair with the place to return to.
const RETURN: From = From::Thread(20);
/// Bytes of a string that a kernel prints, at most.
const MOST_TEXT: u64 = 1 << 20;
/// Values that a kernel prints at once, at most (CUDA C++ Programming Guide, formatted output).
const MOST_VALUES: u32 = 32;
/// The largest width and precision that are kept; larger ones become this.
const MOST_WIDTH: u64 = 4096;

/// A call to the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SystemCall {
    Print,
    Allocate,
    Free,
    Assert,
}

/// Their names in cubins.
const CALLS: [(&str, SystemCall); 4] = [
    ("vprintf", SystemCall::Print),
    ("malloc", SystemCall::Allocate),
    ("free", SystemCall::Free),
    ("__assertfail", SystemCall::Assert),
];

/// The address that stands for the system call `name`.
pub(crate) fn system_call(name: &str) -> Option<u64> {
    let at = CALLS.iter().position(|(one, _)| *one == name)?;
    Some(ENTRY + at as u64 * STEP)
}

/// The call at that index of an instruction.
fn call_at(index: usize) -> Option<SystemCall> {
    let at = (index as u64).checked_sub(ENTRY / STEP)?;
    CALLS.get(usize::try_from(at).ok()?).map(|(_, call)| *call)
}

/// A part of what a kernel prints: a specification of C's `printf`, and its value. The
/// specification has one conversion, no `*`, and no size but `ll`, where the value is a
/// `long long`, or `h` and `hh`, where it is an `int`.
#[derive(Clone, Debug, PartialEq)]
pub enum Printed {
    /// Text as it is.
    Text(Vec<u8>),
    /// An `int`.
    Int(String, i32),
    /// A `long long`, or a pointer.
    Long(String, i64),
    /// A `double`.
    Double(String, f64),
    /// A string.
    String(String, Vec<u8>),
}

/// A part of a format.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(Vec<u8>),
    /// A specification: what stands before the type, its type, whether its value has 64 bits.
    /// Of sizes only those are left that the value has ([`Printed`]).
    Value(String, u8, bool),
}

impl Printed {
    /// Bytes that it takes.
    pub(super) fn bytes(&self) -> usize {
        let own = match self {
            Self::Text(text) => text.len(),
            Self::Int(spec, _) | Self::Long(spec, _) | Self::Double(spec, _) => spec.len(),
            Self::String(spec, text) => spec.len() + text.len(),
        };
        size_of::<Self>() + own
    }
}

/// The specification of a value: `front` begins with its `%` and ends before its type.
fn value(front: &[u8], kind: u8) -> Part {
    let front = String::from_utf8_lossy(front);
    let whole = b"diouxX".contains(&kind);
    let long = !whole && kind != b'c' || whole && front.contains(['l', 'L', 'j', 'z', 't']);
    let short = front.matches('h').count().min(2);
    let size = match (whole, long) {
        (true, true) => "ll",
        (true, false) => &"hh"[..short],
        _ => "",
    };
    Part::Value(front.replace(['h', 'l', 'L', 'j', 'z', 't'], "") + size, kind, long)
}

/// Puts a number in the place of the first `*`; a negative precision is none.
fn put_number(spec: &mut String, number: i32) {
    let Some(at) = spec.find('*') else { return };
    if number < 0 && spec[..at].ends_with('.') {
        spec.replace_range(at - 1..=at, "");
    } else {
        spec.replace_range(at..=at, &number.to_string());
    }
}

/// The specification with no width and no precision above [`MOST_WIDTH`].
fn limited(spec: &str) -> String {
    let mut all = String::new();
    let mut rest = spec;
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        let length = rest[at..].bytes().take_while(u8::is_ascii_digit).count();
        let (before, digits) = (&rest[..at], &rest[at..at + length]);
        all.push_str(before);
        if digits.parse().is_ok_and(|number: u64| number <= MOST_WIDTH) {
            all.push_str(digits);
        } else {
            // A zero in front fills the width with zeros.
            let zero = if digits.starts_with('0') { "0" } else { "" };
            all.push_str(&format!("{zero}{MOST_WIDTH}"));
        }
        rest = &rest[at + length..];
    }
    all + rest
}

/// Reads a format of `printf`.
fn parts(format: &[u8]) -> Vec<Part> {
    let (mut all, mut rest) = (Vec::new(), format);
    while let Some(at) = rest.iter().position(|&byte| byte == b'%') {
        let (text, spec) = rest.split_at(at);
        all.push(Part::Text(text.to_vec()));
        let inside = |byte: &u8| b"-+ #0123456789.*hlLjzt".contains(byte);
        let end = 1 + spec[1..].iter().take_while(|byte| inside(byte)).count();
        let Some(&kind) = spec.get(end) else {
            all.push(Part::Text(spec.to_vec()));
            return all;
        };
        all.push(match kind {
            b'%' => Part::Text(b"%".to_vec()),
            kind if b"cdiouxXpeEfFgGaAs".contains(&kind) => value(&spec[..end], kind),
            _ => Part::Text(spec[..=end].to_vec()),
        });
        rest = &spec[end + 1..];
    }
    all.push(Part::Text(rest.to_vec()));
    all
}

impl Scope<'_> {
    /// Does the system call at the instruction `at` for the lanes here, which return from it.
    pub(super) fn call_system(&mut self, at: usize) -> Result<(), RunError> {
        let mask = self.active;
        let Some(call) = call_at(at) else {
            return Err(self.grid.fault(at, "there is no code".into()));
        };
        let back = self.get64(RETURN)[mask.trailing_zeros() as usize % 32];
        let caller = usize::try_from(back / STEP).unwrap_or(0).saturating_sub(1);
        let done = match call {
            SystemCall::Print => self.print(mask),
            SystemCall::Allocate => self.allocate(mask),
            SystemCall::Free => self.free(mask),
            SystemCall::Assert => self.failed_assert(mask).and_then(|text| {
                // In order: a CTA that runs together with others runs again, alone.
                if self.cta.buffer.is_none() { Ok(Some(text)) } else { Err(text) }
            }),
        };
        match done.map_err(|what| self.fault(caller, &what))? {
            Some(text) => Err(RunError::Failed(Failure { exception: Exception::Assert, text })),
            None => {
                self.jump(at, mask, RETURN, 0);
                Ok(())
            }
        }
    }

    /// The value of a register pair from number 4 on.
    fn argument(&self, pair: u8) -> Lanes64 {
        self.get64(From::Thread(4 + 2 * pair))
    }

    /// The string at `address`.
    fn string(&mut self, lane: usize, address: u64) -> Result<Vec<u8>, String> {
        let mut text = Vec::new();
        for at in address..address.saturating_add(MOST_TEXT) {
            let mut byte = [0];
            self.read_generic(lane, at, &mut byte)?;
            if byte == [0] {
                break;
            }
            text.extend(byte);
        }
        Ok(text)
    }

    /// Prints, lane after lane.
    fn print(&mut self, mask: u32) -> Result<Option<String>, String> {
        let (formats, values) = (self.argument(0), self.argument(1));
        let (mut results, mut last) = ([0; 32], None);
        for lane in each(mask) {
            if formats[lane] == 0 {
                results[lane] = u32::MAX;
                continue;
            }
            let known = last.take().filter(|(at, _)| *at == formats[lane]);
            let format = match known {
                Some((_, format)) => format,
                None => parts(&self.string(lane, formats[lane])?),
            };
            let mut printed = Vec::new();
            results[lane] = self.fill(lane, &format, values[lane], &mut printed)?;
            match &mut self.cta.buffer {
                Some(buffer) => buffer.print(printed)?,
                None => self.grid.memory.print(&printed),
            }
            last = Some((formats[lane], format));
        }
        self.put(Target::Thread(4), mask, &results);
        Ok(None)
    }

    /// Fills a format with the values at `place`; returns how many it took. Specifications after
    /// the last value stay as they are.
    fn fill(
        &mut self,
        lane: usize,
        format: &[Part],
        place: u64,
        printed: &mut Vec<Printed>,
    ) -> Result<u32, String> {
        let (mut at, mut count) = (place, 0);
        for part in format {
            let (front, kind, long) = match part {
                Part::Text(text) => {
                    printed.push(Printed::Text(text.clone()));
                    continue;
                }
                Part::Value(front, kind, _) if place == 0 || count == MOST_VALUES => {
                    let text = format!("{front}{}", char::from(*kind));
                    printed.push(Printed::Text(text.into_bytes()));
                    continue;
                }
                Part::Value(front, kind, long) => (front, *kind, *long),
            };
            let mut spec = format!("{front}{}", char::from(kind));
            while spec.contains('*') {
                let number = self.next_value(lane, &mut at, 4)?;
                put_number(&mut spec, low(number).cast_signed());
            }
            let spec = limited(&spec);
            let value = self.next_value(lane, &mut at, if long { 8 } else { 4 })?;
            printed.push(match kind {
                b's' => Printed::String(spec, self.string(lane, value)?),
                b'a' | b'A' | b'e' | b'E' | b'f' | b'F' | b'g' | b'G' => {
                    Printed::Double(spec, f64::from_bits(value))
                }
                _ if long => Printed::Long(spec, value.cast_signed()),
                _ => Printed::Int(spec, low(value).cast_signed()),
            });
            count += 1;
        }
        Ok(count)
    }

    /// The next value of so many bytes, which lies at a multiple of them.
    fn next_value(&mut self, lane: usize, at: &mut u64, bytes: usize) -> Result<u64, String> {
        let past = || "values to print lie past the last address".to_owned();
        let place = at.checked_next_multiple_of(bytes as u64).ok_or_else(past)?;
        let mut raw = [0; 8];
        self.read_generic(lane, place, &mut raw[..bytes])?;
        *at = place.checked_add(bytes as u64).ok_or_else(past)?;
        Ok(u64::from_le_bytes(raw))
    }

    /// Device memory that changes hands in the order of CTAs; an error where CTAs run together,
    /// after which they run one after the other.
    fn heap(&self) -> Result<&dyn Memory, String> {
        match self.cta.buffer {
            Some(_) => Err("kernels allocate memory one CTA after the other".into()),
            None => Ok(self.grid.memory),
        }
    }

    fn allocate(&mut self, mask: u32) -> Result<Option<String>, String> {
        let (heap, sizes) = (self.heap()?, self.argument(0));
        let mut places = [0; 32];
        for lane in each(mask) {
            places[lane] = heap.allocate_in_kernel(sizes[lane]).unwrap_or(0);
        }
        self.put64(Target::Thread(4), mask, &places);
        Ok(None)
    }

    fn free(&mut self, mask: u32) -> Result<Option<String>, String> {
        let (heap, places) = (self.heap()?, self.argument(0));
        let wrong = |lane: &usize| places[*lane] != 0 && !heap.free_in_kernel(places[*lane]);
        match each(mask).find(wrong) {
            None => Ok(None),
            Some(lane) => {
                Err(format!("lane {lane}: {:#x} is freed, which no kernel allocated", places[lane]))
            }
        }
    }

    /// What the program prints about an assert that failed for the lanes of `mask`.
    fn failed_assert(&mut self, mask: u32) -> Result<String, String> {
        let [text, file, function] = [0, 1, 3].map(|pair| self.argument(pair));
        let lines = self.get(From::Thread(8));
        let mut all = String::new();
        for lane in each(mask) {
            let mut words = [String::new(), String::new(), String::new()];
            for (word, from) in words.iter_mut().zip([text, file, function]) {
                *word = String::from_utf8_lossy(&self.string(lane, from[lane])?).into_owned();
            }
            let [text, file, function] = words;
            let [x, y, z] = <[u32; 3]>::from(self.position);
            let [i, j, k] = [0, 1, 2].map(|axis| self.warp.threads[axis][lane]);
            all.push_str(&format!(
                "{file}:{}: {function}: block: [{x},{y},{z}], thread: [{i},{j},{k}] Assertion \
                 `{text}` failed.\n",
                lines[lane]
            ));
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::{Part, STEP, call_at, limited, parts, put_number, system_call};

    #[test]
    fn a_format_is_text_and_specifications() {
        let text = |text: &str| Part::Text(text.as_bytes().to_vec());
        let value = |front: &str, kind, long| Part::Value(front.into(), kind, long);
        let read = parts(b"a %-5d 100%% %*.*lf%");
        let expected = [
            text("a "),
            value("%-5", b'd', false),
            text(" 100"),
            text("%"),
            text(" "),
            value("%*.*", b'f', true),
            text(""),
            text("%"),
        ];
        assert_eq!(read, expected);
        assert_eq!(parts(b"%n"), [text(""), text("%n"), text("")]);
    }

    #[test]
    fn a_specification_has_the_size_of_its_value() {
        let one = |format: &[u8]| parts(format)[1].clone();
        let value = |front: &str, kind, long| Part::Value(front.into(), kind, long);
        assert_eq!(one(b"%ls"), value("%", b's', true));
        assert_eq!(one(b"%Lf"), value("%", b'f', true));
        assert_eq!(one(b"%lc"), value("%", b'c', false));
        assert_eq!(one(b"%5zu"), value("%5ll", b'u', true));
        assert_eq!(one(b"%Ld"), value("%ll", b'd', true));
        assert_eq!(one(b"%hhx"), value("%hh", b'x', false));
        assert_eq!(one(b"%hlp"), value("%", b'p', true));
    }

    #[test]
    fn widths_and_precisions_have_a_limit() {
        assert_eq!(limited("%-12.3f"), "%-12.3f");
        assert_eq!(limited("%05000.99999999999999999999f"), "%04096.4096f");
        let mut spec = "%*.*d".to_owned();
        put_number(&mut spec, -7);
        put_number(&mut spec, -1);
        assert_eq!(spec, "%-7d");
    }

    #[test]
    fn system_calls_have_places_of_their_own() {
        let index = |name| usize::try_from(system_call(name).unwrap() / STEP).unwrap();
        assert_ne!(call_at(index("malloc")), call_at(index("free")));
        assert!(call_at(index("vprintf")).is_some() && call_at(0).is_none());
        assert_eq!(system_call("cudaLaunchDevice"), None);
    }
}
