//! Calls of kernels to the system: what they print, memory that they allocate, failed asserts.
//!
//! Compilers call them like functions at an address: arguments from register 4 on, the place to
//! return to in registers 20 and 21, the result in register 4.

use super::lanes::{From, Lanes64, Scope, Target, each, low};
use super::memory::Memory;
use crate::RunError;

/// Where the first one stands in place of code; no program's code lies here.
const ENTRY: u64 = 1 << 44;
/// Bytes of an instruction.
const STEP: u64 = 16;
/// The register pair with the place to return to.
const RETURN: From = From::Thread(20);
/// Bytes of a string that a kernel prints, at most.
const MOST_TEXT: u64 = 1 << 20;

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

/// A part of what a kernel prints: a specification of C's `printf`, and its value.
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
    /// A specification: what stands before the type, how many `*` are in it, its type.
    Value(String, usize, u8),
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
            kind if b"cdiouxXpeEfFgGaAs".contains(&kind) => {
                let front = String::from_utf8_lossy(&spec[..end]).into_owned();
                let stars = front.matches('*').count();
                Part::Value(front, stars, kind)
            }
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
            SystemCall::Assert => self.failed_assert(mask).and_then(|said| {
                // In order: a CTA that runs together with others runs again, alone.
                if self.cta.buffer.is_none() { Ok(Some(said)) } else { Err(said) }
            }),
        };
        match done.map_err(|what| self.grid.fault(caller, self.at(&what)))? {
            Some(said) => Err(RunError::Assert(said)),
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
        let (mut said, mut results) = (Vec::new(), [0; 32]);
        let mut last = None;
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
            results[lane] = self.fill(lane, &format, values[lane], &mut said)?;
            last = Some((formats[lane], format));
        }
        self.put(Target::Thread(4), mask, &results);
        match &mut self.cta.buffer {
            Some(buffer) => buffer.print(said),
            None => self.grid.memory.print(&said),
        }
        Ok(None)
    }

    /// Fills a format with the values at `place`; returns how many it took.
    fn fill(
        &mut self,
        lane: usize,
        format: &[Part],
        place: u64,
        said: &mut Vec<Printed>,
    ) -> Result<u32, String> {
        let (mut at, mut count) = (place, 0);
        for part in format {
            let (front, stars, kind) = match part {
                Part::Text(text) => {
                    said.push(Printed::Text(text.clone()));
                    continue;
                }
                Part::Value(front, _, kind) if place == 0 => {
                    let text = format!("{front}{}", char::from(*kind));
                    said.push(Printed::Text(text.into_bytes()));
                    continue;
                }
                Part::Value(front, stars, kind) => (front, *stars, *kind),
            };
            let mut spec = format!("{front}{}", char::from(kind));
            for _ in 0..stars {
                let number = self.next_value(lane, &mut at, 4)?;
                spec = spec.replacen('*', &low(number).cast_signed().to_string(), 1);
            }
            let long = b"psaAeEfFgG".contains(&kind) || front.contains(['l', 'j', 'z', 't']);
            let value = self.next_value(lane, &mut at, if long { 8 } else { 4 })?;
            said.push(match kind {
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
        *at = at.next_multiple_of(bytes as u64);
        let mut raw = [0; 8];
        self.read_generic(lane, *at, &mut raw[..bytes])?;
        *at += bytes as u64;
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
    use super::{Part, STEP, call_at, parts, system_call};

    #[test]
    fn a_format_is_text_and_specifications() {
        let text = |text: &str| Part::Text(text.as_bytes().to_vec());
        let value = |front: &str, stars, kind| Part::Value(front.into(), stars, kind);
        let read = parts(b"a %-5d 100%% %*.*lf%");
        let expected = [
            text("a "),
            value("%-5", 0, b'd'),
            text(" 100"),
            text("%"),
            text(" "),
            value("%*.*l", 2, b'f'),
            text(""),
            text("%"),
        ];
        assert_eq!(read, expected);
        assert_eq!(parts(b"%n"), [text(""), text("%n"), text("")]);
    }

    #[test]
    fn system_calls_have_places_of_their_own() {
        let index = |name| usize::try_from(system_call(name).unwrap() / STEP).unwrap();
        assert_ne!(call_at(index("malloc")), call_at(index("free")));
        assert!(call_at(index("vprintf")).is_some() && call_at(0).is_none());
        assert_eq!(system_call("cudaLaunchDevice"), None);
    }
}
