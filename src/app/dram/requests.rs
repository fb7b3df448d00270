//! Reads the request files of `gpumodel dram` line by line, in bounded memory.

use std::io::{self, BufRead, Read};

use thiserror::Error;

use gpumodel_core::units::to_u64;
use gpumodel_sim::config::MemoryStandard;
use gpumodel_sim::dram::Request;

/// Longest line, in bytes.
const MAX_LINE_BYTES: u64 = 4096;

/// The latest clock of a request: 13 days at 1 GHz.
const MAX_CLOCK: u64 = 1 << 50;

/// The most bytes of a request.
const MAX_REQUEST_BYTES: u64 = 1 << 20;

/// The format of the lines of a request file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestFormat {
    /// `CYCLE ADDRESS R|W [BYTES]`.
    Address,
    /// `ID CYCLE R|W PC BG BA ROW COL`.
    Coordinates,
}

/// Why a request file could not be read.
#[derive(Debug, Error)]
pub enum RequestError {
    /// The file cannot be read.
    #[error("cannot read {name}")]
    Read {
        /// The file.
        name: String,
        /// Why.
        source: io::Error,
    },
    /// An invalid line.
    #[error("{name}:{line}: expected {expected}, found {found}; {form}")]
    Line {
        /// The file.
        name: String,
        /// The line, from 1.
        line: u64,
        /// What was expected.
        expected: String,
        /// What was found.
        found: String,
        /// What a line has.
        form: String,
    },
}

/// One native access of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    /// Arrival clock.
    pub(crate) clock: u64,
    /// Whether it writes.
    pub(crate) write: bool,
    /// The first access of its request.
    pub(crate) first: bool,
    /// Pseudo channel, bank group, bank, row, column.
    coordinates: [u32; 5],
}

impl Access {
    /// The access for a channel, with token 0.
    pub(crate) fn request(&self) -> Request {
        let [pseudo_channel, bank_group, bank, row, column] = self.coordinates;
        Request { token: 0, write: self.write, pseudo_channel, bank_group, bank, row, column }
    }
}

/// The accesses of a request file, in order.
pub(crate) struct Requests<R> {
    name: String,
    file: R,
    format: RequestFormat,
    /// Number of pseudo channels, bank groups, banks, rows and columns.
    limits: [u32; 5],
    access_bytes: u64,
    line: Vec<u8>,
    number: u64,
    /// The last request's ID and kind (coordinates).
    last: Option<(u64, bool)>,
    /// Further accesses of the last line (address): the next one's number and the end.
    rest: Option<(Access, u64, u64)>,
}

impl<R: BufRead> Requests<R> {
    pub(crate) fn new(
        name: &str,
        file: R,
        format: RequestFormat,
        standard: &MemoryStandard,
    ) -> Self {
        Self {
            name: name.to_owned(),
            file,
            format,
            limits: [
                standard.pseudo_channels,
                standard.bank_groups,
                standard.banks_per_group,
                standard.rows,
                standard.columns,
            ],
            access_bytes: to_u64(standard.bytes_per_access),
            line: Vec::new(),
            number: 0,
            last: None,
            rest: None,
        }
    }

    /// The next access, or `None` at the end.
    ///
    /// # Errors
    /// [`RequestError`] with file and line.
    pub(crate) fn next_access(&mut self) -> Result<Option<Access>, RequestError> {
        if let Some((access, at, end)) = self.rest {
            let next = at + 1;
            self.rest = (next < end).then_some((access, next, end));
            return Ok(Some(Access { coordinates: self.coordinates_of(at), ..access }));
        }
        while self.read_line()? {
            let line = std::mem::take(&mut self.line);
            let mut fields = Fields { bytes: &line };
            let access = match (fields.peek(), self.format) {
                (None | Some(b'#'), _) => None,
                (_, RequestFormat::Coordinates) => Some(self.coordinates(&mut fields)?),
                (_, RequestFormat::Address) => Some(self.address(&mut fields)?),
            };
            if access.is_some() && !matches!(fields.peek(), None | Some(b'#')) {
                return Err(self.invalid("the end of the line", fields.next()));
            }
            self.line = line;
            if access.is_some() {
                return Ok(access);
            }
        }
        Ok(None)
    }

    fn read_line(&mut self) -> Result<bool, RequestError> {
        self.line.clear();
        self.number += 1;
        let mut limited = self.file.by_ref().take(MAX_LINE_BYTES + 1);
        let read = limited.read_until(b'\n', &mut self.line);
        read.map_err(|source| RequestError::Read { name: self.name.clone(), source })?;
        if to_u64(self.line.len()) > MAX_LINE_BYTES {
            return Err(self.invalid("a request", Some(b"a line of more than 4096 bytes")));
        }
        Ok(!self.line.is_empty())
    }

    /// What a line has.
    fn form(&self) -> String {
        String::from(match self.format {
            RequestFormat::Address => {
                "a line is `CYCLE ADDRESS R|W [BYTES]`, also for traces of Ramulator and DRAMsim3, \
                 which have other forms"
            }
            RequestFormat::Coordinates => "a line is `ID CYCLE R|W PC BG BA ROW COL`",
        })
    }

    #[cold]
    fn invalid(&self, expected: &str, found: Option<&[u8]>) -> RequestError {
        let word = found.map(|word| String::from_utf8_lossy(&word[..word.len().min(40)]));
        RequestError::Line {
            name: self.name.clone(),
            form: self.form(),
            line: self.number,
            expected: expected.to_owned(),
            found: word.map_or_else(
                || "the end of the line".to_owned(),
                |word| format!("`{}`", word.escape_debug()),
            ),
        }
    }

    /// The error for the last access read: if commands are listed, it comes more than `most`
    /// clocks after all others were served.
    pub(crate) fn too_late(&self, most: u64) -> RequestError {
        RequestError::Line {
            name: self.name.clone(),
            form: self.form(),
            line: self.number,
            expected: format!(
                "a CYCLE within {most} clocks of the end of the requests before, since every \
                 refresh until then would be a line of the command list"
            ),
            found: "a later one".to_owned(),
        }
    }

    fn number(&self, fields: &mut Fields<'_>, what: &str, limit: u64) -> Result<u64, RequestError> {
        let word = fields.next();
        let value = word.and_then(number).filter(|value| *value < limit);
        value.ok_or_else(|| self.invalid(&format!("{what} (a number below {limit})"), word))
    }

    fn kind(&self, fields: &mut Fields<'_>) -> Result<bool, RequestError> {
        match fields.next() {
            Some(b"R" | b"r") => Ok(false),
            Some(b"W" | b"w") => Ok(true),
            other => Err(self.invalid("R or W", other)),
        }
    }

    /// The bytes of a request, at least 1.
    fn bytes(&self, fields: &mut Fields<'_>) -> Result<u64, RequestError> {
        let word = fields.next();
        let value = word.and_then(number).filter(|value| (1..=MAX_REQUEST_BYTES).contains(value));
        let expected = || format!("BYTES (a number from 1 to {MAX_REQUEST_BYTES})");
        value.ok_or_else(|| self.invalid(&expected(), word))
    }

    /// `ID CYCLE R|W PC BG BA ROW COL`.
    fn coordinates(&mut self, fields: &mut Fields<'_>) -> Result<Access, RequestError> {
        const NAMES: [&str; 5] = ["PC", "BG", "BA", "ROW", "COL"];
        let id = self.number(fields, "ID", u64::MAX)?;
        let clock = self.number(fields, "CYCLE", MAX_CLOCK)?;
        let write = self.kind(fields)?;
        let mut coordinates = [0; 5];
        for (at, slot) in coordinates.iter_mut().enumerate() {
            let value = self.number(fields, NAMES[at], u64::from(self.limits[at]))?;
            *slot = u32::try_from(value).expect("below a 32-bit limit");
        }
        let first = self.last != Some((id, write));
        self.last = Some((id, write));
        Ok(Access { clock, write, first, coordinates })
    }

    /// `CYCLE ADDRESS R|W [BYTES]`: the first access of those that the bytes touch.
    fn address(&mut self, fields: &mut Fields<'_>) -> Result<Access, RequestError> {
        let clock = self.number(fields, "CYCLE", MAX_CLOCK)?;
        let address = self.number(fields, "ADDRESS", u64::MAX)?;
        let write = self.kind(fields)?;
        let bytes = match fields.peek() {
            None | Some(b'#') => 1,
            _ => self.bytes(fields)?,
        };
        let first = address / self.access_bytes;
        let end = address.saturating_add(bytes - 1) / self.access_bytes + 1;
        let access = Access { clock, write, first: true, coordinates: self.coordinates_of(first) };
        let later = Access { first: false, ..access };
        self.rest = (first + 1 < end).then_some((later, first + 1, end));
        Ok(access)
    }

    /// Access `at` of the channel: pseudo channel lowest, then column, bank
    /// group, bank and row, which wraps.
    fn coordinates_of(&self, at: u64) -> [u32; 5] {
        let [pcs, groups, banks, rows, columns] = self.limits;
        let mut rest = at;
        let mut take = |count: u32| {
            let count = u64::from(count);
            let part = u32::try_from(rest % count).expect("below a 32-bit count");
            rest /= count;
            part
        };
        let (pc, column) = (take(pcs), take(columns));
        let (group, bank) = (take(groups), take(banks));
        [pc, group, bank, take(rows), column]
    }
}

/// The fields of a line.
struct Fields<'a> {
    bytes: &'a [u8],
}

impl<'a> Fields<'a> {
    /// The first byte of the next field.
    fn peek(&mut self) -> Option<u8> {
        self.bytes = self.bytes.trim_ascii_start();
        self.bytes.first().copied()
    }

    fn next(&mut self) -> Option<&'a [u8]> {
        self.peek()?;
        let end = self.bytes.iter().position(|byte| *byte <= b' ');
        let (word, rest) = self.bytes.split_at(end.unwrap_or(self.bytes.len()));
        self.bytes = rest;
        Some(word)
    }
}

/// A decimal number, or a hexadecimal one with `0x`.
fn number(word: &[u8]) -> Option<u64> {
    // Up to 18 digits cannot overflow.
    if let 1..=18 = word.len() {
        let mut value = 0;
        let mut decimal = true;
        for byte in word {
            let digit = byte.wrapping_sub(b'0');
            decimal &= digit < 10;
            value = u64::wrapping_add(u64::wrapping_mul(value, 10), u64::from(digit));
        }
        if decimal {
            return Some(value);
        }
    }
    let hex = word.strip_prefix(b"0x").or_else(|| word.strip_prefix(b"0X"));
    let (digits, base) = hex.map_or((word, 10), |digits| (digits, 16));
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u64, |value, byte| {
        let digit = char::from(*byte).to_digit(base)?;
        value.checked_mul(u64::from(base))?.checked_add(u64::from(digit))
    })
}
