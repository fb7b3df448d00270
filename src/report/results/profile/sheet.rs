//! The CSV that profilers print: a header somewhere below their messages, quoted cells, and
//! numbers in the way of the user's country.

use gpumodel_core::units::quoted;

/// What is wrong with a profile: a line from 1, and a sentence.
#[derive(Debug)]
pub(super) struct Wrong {
    pub(super) line: u64,
    pub(super) message: String,
}

impl Wrong {
    pub(super) fn at(line: u64, message: impl Into<String>) -> Self {
        Self { line, message: message.into() }
    }
}

/// The text of `bytes`: UTF-8, or UTF-16 as PowerShell writes it.
pub(super) fn decode(bytes: &[u8]) -> String {
    let wide = |bytes: &[u8], of: fn([u8; 2]) -> u16| {
        let units: Vec<u16> = bytes.chunks_exact(2).map(|pair| of([pair[0], pair[1]])).collect();
        String::from_utf16_lossy(&units)
    };
    match bytes {
        [0xff, 0xfe, rest @ ..] => wide(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => wide(rest, u16::from_be_bytes),
        [0xef, 0xbb, 0xbf, rest @ ..] => String::from_utf8_lossy(rest).into_owned(),
        _ => String::from_utf8_lossy(bytes).into_owned(),
    }
}

/// A line of cells.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) number: u64,
    cells: Vec<String>,
}

/// A header and the lines below it.
#[derive(Debug)]
pub(super) struct Sheet {
    pub(super) header: Vec<String>,
    pub(super) header_line: u64,
    pub(super) lines: Vec<Line>,
    comma_decimals: bool,
}

/// Columns whose cells are prose.
const PROSE: &str = "Rule Description";

impl Sheet {
    /// The sheet in `text` whose header is the first line that `is_header`; `None` without one.
    /// Messages of the profiler (`==PROF==`) between the lines are left out.
    pub(super) fn find(
        text: &str,
        is_header: fn(&[String]) -> bool,
    ) -> Option<Result<Self, Wrong>> {
        let (mut rest, mut number) = (text, 1);
        while !rest.is_empty() {
            let first = rest.lines().next().unwrap_or_default();
            let header = Reader::new(first, number).line();
            if let Ok(Some(header)) = header
                && is_header(&header.cells)
            {
                return Some(Self::below(rest, number, header.cells));
            }
            rest = rest.split_once('\n').map_or("", |(_, rest)| rest);
            number += 1;
        }
        None
    }

    fn below(text: &str, number: u64, header: Vec<String>) -> Result<Self, Wrong> {
        let mut reader = Reader::new(text, number);
        reader.line()?;
        let mut lines = Vec::new();
        while let Some(line) = reader.line()? {
            let blank = line.cells.iter().all(String::is_empty);
            if blank || line.cells == header {
                continue;
            }
            let (found, expected) = (line.cells.len(), header.len());
            if found > expected {
                let message = format!(
                    "expected at most {expected} cells, as in line {number}, found {found}; keep what the program prints out of the profile with --log-file"
                );
                return Err(Wrong::at(line.number, message));
            }
            let torn = |(name, cell): (&String, &String)| name != PROSE && cell.contains('\n');
            if let Some(place) = header.iter().zip(&line.cells).position(torn) {
                let name = quoted(header[place].as_bytes());
                let message = format!("column {} ({name}): a quote is not closed", place + 1);
                return Err(Wrong::at(line.number, message));
            }
            lines.push(line);
        }
        let header = header.into_iter().map(|name| name.trim().to_owned()).collect();
        let mut sheet = Self { header, header_line: number, lines, comma_decimals: false };
        sheet.comma_decimals = sheet.has_comma_decimals();
        Ok(sheet)
    }

    /// The place of the first column of one of these names.
    pub(super) fn column(&self, names: &[&str]) -> Option<usize> {
        names.iter().find_map(|name| self.header.iter().position(|head| head == name))
    }

    /// What stands in that column; nothing where the line is short.
    pub(super) fn text<'s>(&self, line: &'s Line, column: usize) -> &'s str {
        line.cells.get(column).map_or("", |cell| cell.trim())
    }

    /// The number in that column; `None` where the profiler has none.
    pub(super) fn number(&self, line: &Line, column: usize) -> Result<Option<f64>, Wrong> {
        let text = self.text(line, column);
        if matches!(
            text.to_ascii_lowercase().as_str(),
            "" | "n/a" | "nan" | "-nan" | "inf" | "no data"
        ) || text.contains("nan")
        {
            return Ok(None);
        }
        let plain: String = if self.comma_decimals {
            text.replace(['.', '\u{a0}', '\u{202f}', ' ', '\''], "").replace(',', ".")
        } else {
            text.replace([',', '\u{a0}', '\u{202f}', ' ', '\''], "")
        };
        let digits =
            plain.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | '-' | '+' | 'e' | 'E'));
        let value = plain.parse::<f64>().ok().filter(|v| digits && v.is_finite() && *v >= 0.0);
        value.map(Some).ok_or_else(|| {
            let name = self.header.get(column).map_or("", String::as_str);
            let message = format!(
                "column {} ({}): expected a number >= 0, found {}",
                column + 1,
                quoted(name.as_bytes()),
                quoted(text.as_bytes())
            );
            Wrong::at(line.number, message)
        })
    }

    /// Whether a number is only possible where the comma is the decimal mark: `65,77`, `1.234.567`.
    fn has_comma_decimals(&self) -> bool {
        let numeric = |cell: &str| {
            !cell.is_empty() && cell.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | ','))
        };
        let foreign = |cell: &str| {
            let after = cell.rsplit_once(',').map(|(_, after)| after);
            let decimals = after.is_some_and(|after| after.len() != 3 && !after.contains('.'));
            decimals || cell.matches('.').count() > 1
        };
        let metric = self.column(&["Metric Name"]);
        let values = self.column(&["Metric Value", "Average"]);
        self.lines.iter().any(|line| {
            let cells = line.cells.iter().enumerate();
            cells.filter(|(at, _)| metric.is_none() || values == Some(*at)).any(|(at, cell)| {
                // A compute capability and the like are no metrics.
                let name = self.header.get(at).map_or("", String::as_str);
                let value = metric.is_some() || name.contains("__");
                value && numeric(cell.trim()) && foreign(cell.trim())
            })
        })
    }
}

/// Splits text into lines of cells.
struct Reader<'t> {
    rest: &'t str,
    number: u64,
}

impl<'t> Reader<'t> {
    fn new(text: &'t str, number: u64) -> Self {
        Self { rest: text, number }
    }

    /// The next line that is no message of the profiler.
    fn line(&mut self) -> Result<Option<Line>, Wrong> {
        while self.rest.starts_with("==") {
            self.rest = self.rest.split_once('\n').map_or("", |(_, rest)| rest);
            self.number += 1;
        }
        if self.rest.is_empty() {
            return Ok(None);
        }
        let number = self.number;
        let mut cells = Vec::new();
        loop {
            let (cell, last) = if self.rest.starts_with('"') {
                self.quoted_cell(cells.len())?
            } else {
                self.plain_cell()
            };
            cells.push(cell);
            if last {
                return Ok(Some(Line { number, cells }));
            }
        }
    }

    /// A cell to the next comma or the end of the line, and whether it is the last.
    fn plain_cell(&mut self) -> (String, bool) {
        let end = self.rest.find([',', '\n']).unwrap_or(self.rest.len());
        let cell = self.rest[..end].trim_end_matches('\r').to_owned();
        let last = !self.rest[end..].starts_with(',');
        self.number += u64::from(self.rest[end..].starts_with('\n'));
        self.rest = self.rest.get(end + 1..).unwrap_or_default();
        (cell, last)
    }

    /// A quoted cell; a doubled quote in it is one.
    fn quoted_cell(&mut self, place: usize) -> Result<(String, bool), Wrong> {
        let (first, mut cell) = (self.number, String::new());
        self.rest = &self.rest[1..];
        loop {
            let Some(end) = self.rest.find('"') else {
                let message = format!("column {}: a quote is not closed", place + 1);
                return Err(Wrong::at(first, message));
            };
            cell += &self.rest[..end];
            self.number +=
                self.rest[..end].bytes().map(|byte| u64::from(byte == b'\n')).sum::<u64>();
            self.rest = &self.rest[end + 1..];
            if !self.rest.starts_with('"') {
                break;
            }
            cell.push('"');
            self.rest = &self.rest[1..];
        }
        if !(self.rest.is_empty() || self.rest.starts_with([',', '\n', '\r'])) {
            let message =
                format!("column {}: expected a comma behind the closing quote", place + 1);
            return Err(Wrong::at(self.number, message));
        }
        let (_, last) = self.plain_cell();
        Ok((cell, last))
    }
}
