//! The header of a kernel trace: `-key = value` lines up to the first `#`.

use std::ops::Not;

use crate::store::layout::{MOST_CTAS, MOST_THREADS};
use gpumodel_core::isa::Launch;
use gpumodel_core::units::{Dim3, quoted};

use crate::error::LineFault;

/// Longest header text that is kept.
const LONGEST: usize = 1 << 16;

/// The newest tracer version that is known.
const NEWEST_TRACER: u32 = 6;

/// What the header says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) launch: Launch,
    /// `accelsim tracer version`: its whole part, [`NEWEST_TRACER`] at most; 0 when the key is
    /// missing.
    pub(crate) tracer: u32,
    /// The version as written, when it is none that is known.
    unknown_tracer: Option<String>,
    /// Lines carry a source line number.
    pub(crate) line_info: bool,
    /// The lines verbatim, without line ends.
    pub(crate) text: String,
    /// Bytes and lines that the header took.
    pub(crate) bytes: usize,
    pub(crate) lines: u64,
}

/// Keys that a launch requires.
const NEEDED: &[&str] = &["kernel name", "kernel id", "grid dim", "block dim", "shmem", "nregs"];

/// Reads the header at the start of `text`.
///
/// # Errors
/// A [`LineFault`] with the line, counted from 0.
pub(crate) fn read(text: &[u8]) -> Result<Header, LineFault> {
    let mut header = Header::default();
    let mut seen = Vec::new();
    for line in text.split_inclusive(|&byte| byte == b'\n') {
        let content = line.trim_ascii();
        let comment = content.starts_with(b"#") && content != b"#BEGIN_TB";
        let first = content.first().copied().unwrap_or(b'-');
        if !comment && first != b'-' {
            break;
        }
        header.bytes += line.len();
        if comment {
            header.keep(content)?;
            header.lines += 1;
            break;
        }
        if !content.is_empty() {
            let key = header.line(content)?;
            if seen.contains(&key) {
                return Err(header.wrong(format!("`-{key}` once"), "it a second time"));
            }
            seen.push(key);
        }
        header.lines += 1;
    }
    let missing = NEEDED.iter().find(|key| !seen.iter().any(|seen| seen == *key));
    if let Some(missing) = missing {
        let next = text[header.bytes..].split(|&byte| byte == b'\n').next().unwrap_or_default();
        return Err(
            header.wrong(format!("a header line `-{missing} = …`"), quoted(next.trim_ascii()))
        );
    }
    header.check()?;
    Ok(header)
}

impl Header {
    fn wrong(&self, expected: impl Into<String>, found: impl Into<String>) -> LineFault {
        LineFault::new(self.lines, expected, found)
    }

    fn keep(&mut self, content: &[u8]) -> Result<(), LineFault> {
        if self.text.len() + content.len() > LONGEST {
            return Err(self.wrong(format!("a header of at most {LONGEST} bytes"), "more"));
        }
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(&String::from_utf8_lossy(content));
        Ok(())
    }

    /// Takes one `-key = value` line; returns the key.
    fn line(&mut self, content: &[u8]) -> Result<String, LineFault> {
        self.keep(content)?;
        let text = String::from_utf8_lossy(content);
        let parts = text.strip_prefix('-').and_then(|rest| rest.split_once('='));
        let Some((key, value)) = parts else {
            return Err(self.wrong("`-key = value`", quoted(content)));
        };
        let (key, value) = (key.trim(), value.trim());
        let known = self.value(key, value);
        known.map_err(|expected| {
            self.wrong(format!("`-{key} = {expected}`"), quoted(value.as_bytes()))
        })?;
        Ok(key.to_owned())
    }

    /// Takes a value; keys that are not known are kept in the text alone.
    fn value(&mut self, key: &str, value: &str) -> Result<(), &'static str> {
        let launch = &mut self.launch;
        match key {
            "kernel name" => value.clone_into(&mut launch.name),
            "kernel id" => launch.id = number(value)?,
            "grid dim" => launch.grid = extent(value)?,
            "block dim" => launch.block = extent(value)?,
            "shmem" => launch.shared_bytes = number(value)?,
            "nregs" => launch.registers = number(value)?,
            "binary version" => launch.binary_version = number(value)?,
            "cuda stream id" => launch.stream = stream(value).ok_or("64-bit number")?,
            "shmem base_addr" => launch.shared_window = address(value)?,
            "local mem base_addr" => launch.local_window = address(value)?,
            "accelsim tracer version" => self.version(value),
            "enable lineinfo" => self.line_info = number(value)? != 0,
            _ => {}
        }
        Ok(())
    }

    /// Takes the tracer's version; one that is not known is read as the newest.
    fn version(&mut self, value: &str) {
        let known = number(value.split('.').next().unwrap_or_default());
        self.tracer = known.unwrap_or(u32::MAX).min(NEWEST_TRACER);
        self.unknown_tracer =
            known.is_ok_and(|version| version <= NEWEST_TRACER).not().then(|| value.to_owned());
    }

    /// What the user should know about the tracer's version.
    pub(crate) fn version_remark(&self) -> Option<String> {
        self.unknown_tracer.as_ref().map(|version| {
            format!("tracer version `{version}` is not known; read as version {NEWEST_TRACER}")
        })
    }

    fn check(&self) -> Result<(), LineFault> {
        let (ctas, threads) = (self.launch.grid.count(), self.launch.block.count());
        if ctas == 0 || ctas > MOST_CTAS {
            let expected = format!("a grid of 1 to {MOST_CTAS} CTAs");
            return Err(self.wrong(expected, self.launch.grid.to_string()));
        }
        if threads == 0 || threads > MOST_THREADS {
            let expected = format!("a block of 1 to {MOST_THREADS} threads");
            return Err(self.wrong(expected, self.launch.block.to_string()));
        }
        Ok(())
    }
}

/// A stream's handle. Tracers before 2022 print the lower 32 bits with a sign.
pub(crate) fn stream(text: &str) -> Option<u64> {
    let lower = || text.parse().map(i32::cast_unsigned).map(u64::from);
    let signed = || text.parse().map(i64::cast_unsigned);
    text.parse().or_else(|_| lower()).or_else(|_| signed()).ok()
}

fn number(text: &str) -> Result<u32, &'static str> {
    text.parse().map_err(|_| "32-bit number")
}

fn address(text: &str) -> Result<u64, &'static str> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    u64::from_str_radix(digits, 16).map_err(|_| "hexadecimal address")
}

fn extent(text: &str) -> Result<Dim3, &'static str> {
    position(text.strip_prefix('(').and_then(|t| t.strip_suffix(')')).unwrap_or_default())
        .ok_or("(x,y,z)")
}

/// `x,y,z`.
pub(crate) fn position(text: &str) -> Option<Dim3> {
    let mut parts = text.split(',').map(|part| part.trim().parse());
    let mut next = || parts.next()?.ok();
    let (x, y, z) = (next()?, next()?, next()?);
    parts.next().is_none().then_some(Dim3::new(x, y, z))
}

#[cfg(test)]
mod tests {
    use super::read;
    use gpumodel_core::units::Dim3;

    const PLAIN: &str = "-kernel name = void f<int, 3>(int)\r\n-kernel id = 7\n-grid dim = (2,3,4)\n\
        -block dim = (32,1,1)\n-shmem = 16\n-nregs = 8\n-cuda stream id = 94349043264512\n\
        -accelsim tracer version = 1.2\n-colour = blue\n\n#traces format = x\n\n#BEGIN_TB\n";

    #[test]
    fn keys_are_read_and_the_rest_is_kept() {
        let header = read(PLAIN.as_bytes()).unwrap();
        assert_eq!(header.launch.name, "void f<int, 3>(int)");
        assert_eq!(header.launch.grid, Dim3::new(2, 3, 4));
        assert_eq!(header.launch.stream, 94_349_043_264_512);
        assert_eq!((header.tracer, header.line_info, header.lines), (1, false, 11));
        assert!(header.text.contains("-colour = blue\n#traces format"));
        assert_eq!(&PLAIN.as_bytes()[header.bytes..], b"\n#BEGIN_TB\n");
    }

    #[test]
    fn an_unknown_tracer_is_named_and_read_as_the_newest() {
        for (version, remark) in [
            ("1.2", None),
            ("6", None),
            ("7", Some("tracer version `7` is not known; read as version 6")),
            ("next", Some("tracer version `next` is not known; read as version 6")),
        ] {
            let header = read(PLAIN.replace("1.2", version).as_bytes()).unwrap();
            assert_eq!(header.version_remark().as_deref(), remark);
            assert_eq!(header.tracer, if version == "1.2" { 1 } else { 6 });
        }
    }

    #[test]
    fn handles_of_streams_may_be_negative() {
        for (printed, stream) in [
            ("-1431650176", 0xaaaa_c080),
            ("-1", 0xffff_ffff),
            ("-2147483649", 0xffff_ffff_7fff_ffff),
            ("18446744073709551615", u64::MAX),
        ] {
            let header = read(PLAIN.replace("94349043264512", printed).as_bytes()).unwrap();
            assert_eq!(header.launch.stream, stream, "{printed}");
        }
        assert!(read(PLAIN.replace("94349043264512", "-x").as_bytes()).is_err());
    }

    #[test]
    fn damage_is_named() {
        let lost = PLAIN.replace("-nregs = 8\n", "");
        assert!(read(lost.as_bytes()).unwrap_err().expected.contains("nregs"));
        let absurd = PLAIN.replace("(32,1,1)", "(4294967295,4294967295,1)");
        assert!(read(absurd.as_bytes()).unwrap_err().expected.contains("threads"));
        let wrong = PLAIN.replace("(2,3,4)", "(2,3)");
        assert_eq!(read(wrong.as_bytes()).unwrap_err().line, 2);
    }
}
