//! Names and numbers for readers, one way everywhere, and values as CSV.

use crate::results::AppRecord;

/// The last plain name within a C++ name, mangled or not: `_Z6KernelP4Node`
/// gives `Kernel`, `_ZN2at6native4fill…` and `void at::native::fill<float>(int)`
/// give `fill`. Names cut short by the tracer are read as far as they go; what is
/// no such name stays as it is.
#[must_use]
pub fn plain_name(name: &str) -> String {
    mangled(name).or_else(|| written(name)).unwrap_or(name).to_string()
}

/// The name before template and call arguments, without return type and scopes.
fn written(name: &str) -> Option<&str> {
    let scoped = name.rsplit_once("(anonymous namespace)::").map_or(name, |(_, inner)| inner);
    let head = scoped.split(['<', '(']).next()?;
    let plain = head.rsplit("::").next()?.split_whitespace().next_back()?;
    let word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | '.' | '-' | '~');
    plain.chars().all(word).then_some(plain)
}

fn mangled(name: &str) -> Option<&str> {
    let rest = name.strip_prefix("_Z")?;
    let Some(mut nested) = rest.strip_prefix('N') else {
        return source_name(rest).map(|(word, _)| word);
    };
    nested = nested.trim_start_matches(['K', 'V', 'r']);
    nested = nested.strip_prefix("St").unwrap_or(nested);
    let mut last = None;
    while let Some((word, rest)) = source_name(nested) {
        last = Some(word);
        nested = rest;
    }
    last
}

/// A length and that many characters; what is left where the text ends early.
fn source_name(text: &str) -> Option<(&str, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let length: usize = text[..digits].parse().ok()?;
    let rest = &text[digits..];
    if length == 0 || rest.is_empty() {
        return None;
    }
    let cut = rest.char_indices().map(|(i, _)| i).find(|&i| i >= length).unwrap_or(rest.len());
    Some(rest.split_at(cut))
}

/// `name`, cut in the middle to `most` characters.
pub(crate) fn brief(name: &str, most: usize) -> String {
    let letters: Vec<char> = name.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
    if letters.len() <= most {
        return letters.into_iter().collect();
    }
    let tail = most / 3;
    let head: String = letters[..most - tail - 1].iter().collect();
    let end: String = letters[letters.len() - tail..].iter().collect();
    format!("{head}…{end}")
}

/// A value with a metric prefix and three significant digits at most: `0`,
/// `0.25`, `1.5`, `12`, `5k`, `1.25M`. For axes and labels.
pub(crate) fn short(value: f64) -> String {
    let size = value.abs();
    if !size.is_finite() {
        return value.to_string();
    }
    let scaled = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    for (unit, prefix) in scaled {
        if size >= unit * 0.9995 {
            return format!("{}{prefix}", digits(value / unit));
        }
    }
    if size > 0.0 && size < 0.001 { format!("{value:.0e}") } else { digits(value) }
}

/// Three significant digits without trailing zeros.
fn digits(value: f64) -> String {
    let places = match value.abs() {
        v if v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        v if v >= 0.9995 => 2,
        _ => 3,
    };
    trimmed(value, places)
}

/// `value` with at most so many decimals, without trailing zeros.
pub(crate) fn trimmed(value: f64, places: usize) -> String {
    let text = format!("{value:.places$}");
    let trimmed =
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    if trimmed == "-0" { "0".into() } else { trimmed.into() }
}

/// As [`short`], with three significant digits of small values too.
pub(crate) fn precise(value: f64) -> String {
    match value.abs() {
        size if (0.009_95..0.0995).contains(&size) => format!("{value:.4}"),
        size if (0.000_995..0.009_95).contains(&size) => format!("{value:.5}"),
        _ => short(value),
    }
}

/// How many decimals values up to `most` have where all of a figure have as many: about three
/// significant digits of the largest.
pub(crate) fn decimals(most: f64) -> usize {
    match most {
        most if most >= 99.5 => 0,
        most if most >= 9.95 => 1,
        most if most >= 0.1 || most <= 0.0 => 2,
        _ => 4,
    }
}

/// The unit for times of up to `seconds`: how many seconds it is, and its name.
pub(crate) fn time_unit(seconds: f64) -> (f64, &'static str) {
    let units = [(1.0, "s"), (1e-3, "ms"), (1e-6, "µs")];
    let fits = |unit: &(f64, &str)| seconds >= unit.0 * 0.9995;
    units.into_iter().find(fits).unwrap_or((1e-9, "ns"))
}

/// Bytes with a binary-free metric unit: `320 B`, `1.5 kB`, `12 MB`.
pub(crate) fn bytes(value: f64) -> String {
    let text = short(value);
    match text.char_indices().last() {
        Some((at, prefix)) if prefix.is_ascii_alphabetic() => {
            format!("{} {prefix}B", &text[..at])
        }
        _ => format!("{text} B"),
    }
}

/// An energy from joules down: `1.5 J`, `4.86 mJ`, `20 µJ`; `–` for none.
pub(crate) fn energy(joules: f64) -> String {
    let units = [(1.0, "J"), (1e-3, "mJ"), (1e-6, "µJ")];
    match units.into_iter().find(|(unit, _)| joules >= unit * 0.9995).or(units.last().copied()) {
        Some((unit, name)) if joules > 0.0 => format!("{} {name}", digits(joules / unit)),
        _ => "–".into(),
    }
}

/// A time as people say it: `45 s`, `3 min`, `2.5 h`, `4.1 d`.
pub(crate) fn duration(seconds: u64) -> String {
    let value = float(seconds);
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", digits(value / 60.0)),
        7200..172_800 => format!("{} h", digits(value / 3600.0)),
        _ => format!("{} d", digits(value / 86_400.0)),
    }
}

/// The bytes of a count of 32-byte sectors, as [`bytes`].
pub(crate) fn sectors(count: u64) -> String {
    bytes(float(count.saturating_mul(gpumodel_core::units::SECTOR_BYTES)))
}

/// A share in percent with one decimal below 10: `4.2 %`, `57 %`; `–` for none.
pub(crate) fn percent(share: Option<f64>) -> String {
    match share.map(|s| s * 100.0) {
        None => "–".into(),
        Some(p) if p.abs() < 9.95 && p.abs() >= 0.05 => format!("{p:.1} %"),
        Some(p) => format!("{:.0} %", p + 0.0),
    }
}

/// What an application held in the mean, or at the end where the mean is not known.
pub(crate) fn held(mean: Option<f64>, end: u64) -> String {
    mean.map_or_else(|| format!("{end} (end)"), |mean| format!("{mean:.1}"))
}

/// The IPC of `app`, or that it is not modelled.
pub(crate) fn rate(app: &AppRecord) -> String {
    match app.memory_only {
        true => "memory-only: IPC is not modelled".to_owned(),
        false => format!("{:.2} thread instructions per cycle", app.ipc),
    }
}

/// A count with thin groups of three digits: `1 234 567`.
pub(crate) fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push('\u{a0}');
        }
        text.push(digit);
    }
    text
}

/// A count as a float: exact up to 2^53, far beyond a run's counts.
#[allow(clippy::cast_precision_loss)]
pub(crate) fn float(count: impl TryInto<u64>) -> f64 {
    count.try_into().unwrap_or(u64::MAX) as f64
}

/// `part / whole`; `None` when there is no whole.
pub(crate) fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

/// Lines of `rows` under `header`, which names the columns with commas between them.
pub(crate) fn csv<R: IntoIterator<Item = String>>(
    header: &str,
    rows: impl IntoIterator<Item = R>,
) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(header.split(',')).expect(MEMORY);
    for row in rows {
        writer.write_record(row).expect(MEMORY);
    }
    String::from_utf8(writer.into_inner().expect(MEMORY)).expect("every cell is text")
}

/// Why writing cannot fail.
const MEMORY: &str = "memory takes every write, and rows have a cell for each column";

/// A row of CSV from values of any type that is a [`Cell`].
macro_rules! row {
    ($($value:expr),+ $(,)?) => {
        [$($crate::format::Cell::cell(&$value)),+]
    };
}
pub(crate) use row;

/// A value in CSV: with all its digits, `inf` where it has no bound; nothing for `None`.
pub(crate) trait Cell {
    /// Its text.
    fn cell(&self) -> String;
}

macro_rules! cells {
    ($($type:ty),+) => {
        $(impl Cell for $type {
            fn cell(&self) -> String {
                self.to_string()
            }
        })+
    };
}
cells!(str, String, bool, u32, u64, usize, f64);

impl<T: Cell> Cell for Option<T> {
    fn cell(&self) -> String {
        self.as_ref().map(Cell::cell).unwrap_or_default()
    }
}

impl<T: Cell + ?Sized> Cell for &T {
    fn cell(&self) -> String {
        (**self).cell()
    }
}

#[cfg(test)]
mod tests {
    use super::{bytes, duration, energy, grouped, percent, plain_name, precise, short, time_unit};

    #[test]
    fn plain_names_come_out_of_mangled_ones() {
        let cases = [
            ("_Z6KernelP4NodePiPbS2_S2_S1_i", "Kernel"),
            ("_Z14gemvNSP_kernelIffffLi1ELi32E", "gemvNSP_kernel"),
            (
                "_ZN10flashinfer30SinglePrefillWithKVCacheKernelILNS_8MaskMod",
                "SinglePrefillWithKVCacheKernel",
            ),
            ("_ZN2at6native40_GLOBAL__N__4db7300b_8_Shape_cu_49f7391c26Cat", "Cat"),
            ("void at::native::k<int, a::b>(float&)", "k"),
            ("void (anonymous namespace)::k(int)", "k"),
            ("volta_sgemm_128x64_nn", "volta_sgemm_128x64_nn"),
            ("<lambda>", "<lambda>"),
            ("operator&&(int)", "operator&&(int)"),
            ("_Z", "_Z"),
            ("_Z9", "_Z9"),
            ("_Z99999999999999999999999x", "_Z99999999999999999999999x"),
            ("_ZN3äöüE", "äö"),
            ("", ""),
        ];
        for (mangled, plain) in cases {
            assert_eq!(plain_name(mangled), plain);
        }
    }

    #[test]
    fn numbers_are_short() {
        let cases = [(0.0, "0"), (0.25, "0.25"), (12.34, "12.3"), (999.9, "1k"), (5000.0, "5k")];
        for (value, text) in cases {
            assert_eq!(short(value), text);
        }
        assert_eq!(bytes(1536.0), "1.54 kB");
        assert_eq!(bytes(320.0), "320 B");
        assert_eq!(percent(Some(0.042)), "4.2 %");
        assert_eq!(percent(Some(1.0)), "100 %");
        assert_eq!(percent(None), "–");
        let energies = [(0.0, "–"), (1.5, "1.5 J"), (0.004_86, "4.86 mJ"), (2e-5, "20 µJ")];
        for (joules, text) in energies {
            assert_eq!(energy(joules), text);
        }
        let times = [(0, "0 s"), (119, "119 s"), (150, "2.5 min"), (9000, "2.5 h")];
        for (seconds, text) in times {
            assert_eq!(duration(seconds), text);
        }
        let small = [(0.0, "0"), (0.004_321, "0.00432"), (0.05, "0.0500"), (1.234, "1.23")];
        for (value, text) in small {
            assert_eq!(precise(value), text);
        }
        let units = [(2.5, "s"), (0.000_999_6, "ms"), (3e-6, "µs"), (0.0, "ns")];
        for (seconds, name) in units {
            assert_eq!(time_unit(seconds).1, name);
        }
        assert_eq!(grouped(1_234_567), "1\u{a0}234\u{a0}567");
    }
}
